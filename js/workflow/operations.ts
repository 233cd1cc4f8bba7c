/**
 * What a run waits for: one object and one promise an operation.
 *
 * It does not know how operations are recorded or what resolves them.
 */
import type { StepScope } from './host.js';
import type { StepPolicy } from './step-options.js';
import type { Run } from './run.js';

let capturedResolve: (value: unknown) => void;
let capturedReject: (reason: unknown) => void;

/** One executor for all promises, so that an operation makes no closure of its own. */
function capture(resolve: (value: unknown) => void, reject: (reason: unknown) => void): void {
  capturedResolve = resolve;
  capturedReject = reject;
}

function ignore(): void {
  // A rejection that nobody looks at harms nobody: the run goes on, and its end says how it went.
}

/** An operation that was opened and has no outcome yet. */
export class Op {
  readonly promise: Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  private readonly rejectPromise: (reason: unknown) => void;

  constructor(readonly seq: number) {
    this.promise = new Promise<unknown>(capture);
    this.resolve = capturedResolve;
    this.rejectPromise = capturedReject;
  }

  /**
   * Rejects without an 'unhandledRejection' of the process: `const a = ctx.step(…), b = ctx.step(…); await a; await b`
   * is correct code even if `b` fails first.
   */
  reject(reason: unknown): void {
    this.promise.then(undefined, ignore);
    this.rejectPromise(reason);
  }
}

/** What stands for "no value" where every value is possible. */
export const NOTHING: unique symbol = Symbol('nothing');

/** A step. */
export class StepOp extends Op {
  /** The result as it was recorded in this life, so that it need not be read back. */
  result: unknown = NOTHING;
  /** Where its body runs; `undefined` when its body will not run. */
  scope: StepScope | undefined = undefined;
  /** Its body may run once this is durable. */
  gate = 0;
  /** The attempt that runs now. Belongs to whoever runs bodies. */
  attempt: object | null = null;
  /** What earlier attempts of this life threw. */
  failures: unknown[] | null = null;
  /** No outcome of a body counts any more. */
  isClosed = false;

  constructor(
    readonly run: Run,
    seq: number,
    readonly name: string,
    readonly nth: number,
    readonly body: (step: never) => unknown,
    readonly policy: StepPolicy,
  ) {
    super(seq);
  }
}

/** A wait for a signal. */
export class WaitOp extends Op {
  constructor(
    seq: number,
    /** Of the signal. */
    readonly name: string,
    /** What a timeout gives. */
    readonly orElse: unknown,
    /** The value goes to an iterator. */
    readonly isIteration: boolean,
  ) {
    super(seq);
  }

  take(value: unknown): void {
    this.resolve(this.isIteration ? { value, done: false } : value);
  }

  /** Its time is over. */
  expire(): void {
    this.resolve(this.orElse);
  }
}

/** A wait until a predicate holds. */
export class ConditionOp extends Op {
  constructor(
    seq: number,
    readonly predicate: () => boolean,
    /** It answers whether the predicate held; otherwise nothing. */
    readonly isTimed: boolean,
  ) {
    super(seq);
  }

  hold(): void {
    this.resolve(this.isTimed ? true : undefined);
  }
}

/** A wait for the end of a child or of another workflow. */
export class EndOp extends Op {
  constructor(
    seq: number,
    readonly id: string,
    /** It was started here, and is cancelled with what waits for it. */
    readonly isChild: boolean,
  ) {
    super(seq);
  }
}

/** A call of an object. */
export class CallOp extends Op {
  constructor(
    seq: number,
    /** Id of the run that the object is. */
    readonly id: string,
  ) {
    super(seq);
  }
}

/** A task that was asked for, or is watched. */
export class TaskOp extends Op {
  constructor(
    seq: number,
    /** Name of the definition, or id of the task. */
    readonly name: string,
    /** Its end is waited for; else only that it exists. */
    readonly isAwaited: boolean,
    /** It was asked for here, and is cancelled with what waits for it. */
    readonly isBound: boolean,
  ) {
    super(seq);
  }
}

/**
 * Operations without an outcome, by number. Nearly always there is one at most; it then costs no map. A run is such a
 * set by inheritance: an object of its own would be felt where many runs wait.
 */
export class PendingOps {
  private only: Op | null = null;
  private more: Map<number, Op> | null = null;

  get pendingCount(): number {
    return (this.only === null ? 0 : 1) + (this.more === null ? 0 : this.more.size);
  }

  protected keepPending(op: Op): void {
    if (this.only === null) this.only = op;
    else (this.more ??= new Map()).set(op.seq, op);
  }

  findPending(seq: number): Op | undefined {
    if (this.only !== null && this.only.seq === seq) return this.only;
    return this.more?.get(seq);
  }

  takePending(seq: number): Op | undefined {
    const { only, more } = this;
    if (only !== null && only.seq === seq) {
      this.only = null;
      return only;
    }
    const op = more?.get(seq);
    if (op !== undefined && more!.delete(seq) && more!.size === 0) this.more = null;
    return op;
  }

  /** Takes all but those in `kept`, in call order. */
  takeAllPending(kept?: ReadonlySet<Op>): Op[] {
    const all = this.only === null ? [] : [this.only];
    if (this.more !== null) all.push(...this.more.values());
    this.only = null;
    this.more = null;
    all.sort((a, b) => a.seq - b.seq);
    if (kept === undefined || kept.size === 0) return all;
    for (const op of all) if (kept.has(op)) this.keepPending(op);
    return all.filter((op) => !kept.has(op));
  }

  /** All, in no order. */
  *allPending(): IterableIterator<Op> {
    if (this.only !== null) yield this.only;
    if (this.more !== null) yield* this.more.values();
  }
}
