/**
 * One pump at a time on a thread: the microtasks of two engines' turns must not share a drain (LAW-4).
 */

/** Something that has turns. */
export interface TurnTaker {
  /** It may go on now. Called from a place of its own, never within {@link leave}. */
  takeTurns(): void;
}

let holder: TurnTaker | null = null;
const waiting: TurnTaker[] = [];

/** Whether `taker` may have turns now; if not, it is called when it may. */
export function enter(taker: TurnTaker): boolean {
  if (holder === null || holder === taker) {
    holder = taker;
    return true;
  }
  if (!waiting.includes(taker)) waiting.push(taker);
  return false;
}

/** `taker` has no more turns for now. @param defer calls a function later, outside of all turns */
export function leave(taker: TurnTaker, defer: (fn: () => void) => void): void {
  const index = waiting.indexOf(taker);
  if (index >= 0) waiting.splice(index, 1);
  if (holder !== taker) return;
  holder = null;
  const next = waiting.shift();
  if (next === undefined) return;
  holder = next;
  defer(() => next.takeTurns());
}
