/**
 * Whether anybody queued a tick since a certain moment.
 *
 * A tick of `process.nextTick` that was queued in a drain runs before the next drain, beside ours: what it resolves would
 * go on within a turn that ours begins. The queue cannot be looked into, but each tick takes the next async id of the
 * thread, as do timers and requests: if no id went to anybody but us, there is no such tick.
 *
 * Where async hooks are on (an `AsyncLocalStorage` in Node.js 20 turns them on), promises take ids as well, and the ids
 * tell nothing. There every new resource is announced to hooks with its type, so ticks are counted by a hook of our own.
 * It is on only while somebody else's are: alone it would make all promises dearer.
 */
import { AsyncResource, createHook } from 'node:async_hooks';

const MANUAL = { requireManualDestroy: true };
/** So many looks until the hook is taken off to see whether it was the only one. */
const LOOKS_PER_PROBE = 4096;

/** Ticks announced to the hook so far. */
let ticks = 0;
const hook = createHook({
  init(_id: number, type: string) {
    if (type === 'TickObject') ticks += 1;
  },
});
let isHooked = false;
/** Times the hook was put on. */
let era = 0;
let looksToProbe = 0;

/** Counts the ticks, or at least the ids, that went to others. */
export class TickWatch {
  private first = 0;
  private ownIds = 0;
  private ownTicks = 0;
  /** The time of the hook in which ticks are counted; 0: ids are. */
  private era = 0;

  /** From now on. */
  begin(): void {
    this.ownIds = 0;
    this.ownTicks = 0;
    if (isHooked && --looksToProbe <= 0) TickWatch.unhook();
    this.era = isHooked ? era : 0;
    this.first = isHooked ? ticks : nextId();
  }

  /** The next id is taken by us, for no tick. */
  takeId(): void {
    this.ownIds += 1;
  }

  /** The next id is taken by a tick of ours. */
  takeTick(): void {
    this.ownTicks += 1;
  }

  /** Whether surely nobody else has queued a tick. */
  get isUndisturbed(): boolean {
    if (this.era > 0) return isHooked && this.era === era && ticks - this.first === this.ownTicks;
    if (nextId() - this.first === this.ownIds + this.ownTicks + 1) return true;
    if (!isHooked && promisesTakeIds()) putHookOn();
    return false;
  }

  /** Takes the hook off. It comes back with the next look that finds promises taking ids. */
  static unhook(): void {
    if (isHooked) hook.disable();
    isHooked = false;
  }
}

function putHookOn(): void {
  isHooked = true;
  era += 1;
  looksToProbe = LOOKS_PER_PROBE;
  hook.enable();
}

function nextId(): number {
  return new AsyncResource('fusee.watch', MANUAL).asyncId();
}

/** Whether hooks are on. */
function promisesTakeIds(): boolean {
  const before = nextId();
  void Promise.resolve();
  return nextId() - before > 1;
}
