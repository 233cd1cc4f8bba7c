/**
 * Waiting for signals: one value, or one after the other.
 *
 * Values come in order of arrival, each to the oldest wait of its name. A wait that is given up eats no value.
 */
import { CodecError } from '../errors.js';
import { WaitOp } from './operations.js';
import type { Run } from './run.js';
import { enter, isOpen, never, refusalOf, refuse } from './turn.js';

/** Opens a wait. @returns its operation; a promise when the value is there now or will never be */
export function openWait(
  run: Run,
  name: string,
  timeoutMs: number,
  orElse: unknown,
  isIteration: boolean,
): WaitOp | Promise<unknown> {
  const seq = ++run.seq;
  const answer = run.host.verbs.openWait(run.slot, seq, name, timeoutMs);
  if (!isOpen(run, answer, `waitFor '${name}'`)) return never();
  if (answer === 1) {
    let value: unknown;
    try {
      value = run.read('signal', name, run.host.verbs.payload(run.slot));
    } catch (error) {
      if (!CodecError.is(error)) throw error;
      run.host.unreadable(run, error);
      return never();
    }
    return Promise.resolve(isIteration ? { value, done: false } : value);
  }
  const op = new WaitOp(seq, name, orElse, isIteration);
  run.addPending(op);
  return op;
}

/** The values of a signal, without end. Leaving the loop gives up what it waits for. */
export class SignalIterator implements AsyncIterableIterator<unknown> {
  readonly #run: Run;
  readonly #name: string;
  #waits: WaitOp[] = [];
  #isClosed = false;

  constructor(run: Run, name: string) {
    this.#run = run;
    this.#name = name;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<unknown>> {
    const run = this.#run;
    if (!enter(run, 'signals')) return never();
    if (this.#isClosed) return Promise.resolve({ value: undefined, done: true });
    const refusal = refusalOf(run);
    if (refusal !== null) return refuse(refusal);
    const wait = openWait(run, this.#name, -1, undefined, true);
    if (!(wait instanceof WaitOp)) return wait as Promise<IteratorResult<unknown>>;
    this.#waits = this.#waits.filter((op) => run.findPending(op.seq) === op);
    this.#waits.push(wait);
    return wait.promise as Promise<IteratorResult<unknown>>;
  }

  return(value?: unknown): Promise<IteratorResult<unknown>> {
    const run = this.#run;
    if (!enter(run, 'signals')) return never();
    this.#isClosed = true;
    for (const op of this.#waits) {
      if (run.findPending(op.seq) !== op) continue;
      run.takePending(op.seq);
      run.host.verbs.withdraw(run.slot, op.seq);
      op.resolve({ value: undefined, done: true });
    }
    this.#waits = [];
    return Promise.resolve({ value, done: true });
  }
}

/** Calls a function with each value of a signal, in the turn in which it comes. What it throws fails the run. */
export function followSignals(run: Run, name: string, fn: (value: unknown) => unknown): void {
  const values = new SignalIterator(run, name);
  const next = (): void => {
    if (refusalOf(run) !== null) return;
    values.next().then(
      ({ value }) => {
        next();
        try {
          const returned = fn(value);
          if (isThenable(returned)) returned.then(undefined, (error: unknown) => fail(run, error));
        } catch (error) {
          fail(run, error);
        }
      },
      () => undefined,
    );
  };
  next();
}

function fail(run: Run, error: unknown): void {
  // What a cancel rejected in the handler is told by the function itself.
  if (error !== run.cancelled && error !== refusalOf(run)) run.failWith(error);
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
