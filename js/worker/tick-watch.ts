/**
 * Whether anybody queued a tick since a certain moment.
 *
 * A tick of `process.nextTick` that was queued in a drain runs before the next drain, beside ours: what it resolves would
 * go on within a turn that ours begins. The queue cannot be looked into, but each tick takes the next async id of the
 * thread, as do timers and requests: if no id went to anybody but us, there is no such tick. Where async hooks are on (an
 * `AsyncLocalStorage` in Node.js 20 turns them on), promises take ids as well, and the answer is "perhaps".
 */
import { AsyncResource } from 'node:async_hooks';

const MANUAL = { requireManualDestroy: true };

/** Counts the ids that went to others. */
export class TickWatch {
  private firstId = 0;
  private own = 0;

  /** From now on. */
  begin(): void {
    this.own = 0;
    this.firstId = nextId();
  }

  /** The next id is taken by us. */
  take(): void {
    this.own += 1;
  }

  /** Whether nobody else has taken an id, so that no tick of anybody waits. */
  get isUndisturbed(): boolean {
    return nextId() - this.firstId === this.own + 1;
  }
}

function nextId(): number {
  return new AsyncResource('fusee.watch', MANUAL).asyncId();
}
