/**
 * One run whose code is in memory: what it waits for, and what a delivery does to it.
 *
 * A delivery resolves the promises of one operation and nothing else; it happens within a turn of this run, and the
 * turn ends when the code can go no further (LAW-4). It does not know how turns are made or where records go.
 */
import { decode, decodeFailure } from '../codec.js';
import { hasSealed, isSealed, type PayloadKind, type PayloadPlace } from '../codec/payloads.js';
import {
  CancelledError,
  ChildWorkflowError,
  RunNotFoundError,
  TerminatedError,
  TimeoutError,
  WorkflowAlreadyStartedError,
} from '../errors.js';
import {
  CALL,
  CANCEL,
  CANCELLED,
  COMPLETED,
  CONDITION_TIMED_OUT,
  NOT_FOUND,
  EXPIRED,
  MISSED,
  REFUSED,
  RUN_ENDED,
  SHED,
  SKIPPED,
  START,
  STEP_COMPLETED,
  STEP_FAILED,
  TERMINATED,
  TIMED_OUT,
  TIMER_FIRED,
  UPDATE,
  WAIT_GOT_VALUE,
  WAIT_TIMED_OUT,
  type Host,
} from './host.js';
import { idsOf, originOf, type Origin } from './borders.js';
import { compensate, type Undo } from './compensation.js';
import { Continuation } from './continuing.js';
import { settleCall } from './object-calls.js';
import type { ObjectCalls } from './objects.js';
import { CallOp, ConditionOp, EndOp, NOTHING, PendingOps, StepOp, TaskOp, WaitOp, type Op } from './operations.js';
import { ReplayedResults, Unread } from './replayed-results.js';
import { giveUp, type Scope, type Scopes } from './scopes.js';
import type { ObjectDefinition } from '../object-definition.js';
import type { StepNames } from './step-names.js';
import { settleTask } from './tasks.js';
import { deliverUpdate, type UpdateHandler } from './updates.js';

/** What the function of a workflow is given to `workflow()` as. */
export interface WorkflowCode {
  readonly name: string;
  readonly handler: (ctx: never, input: never) => unknown;
  /** As `workflow()` was given them. */
  readonly options?: { readonly onMismatch?: unknown };
  /** What it runs is this object's calls, not the handler. */
  readonly object?: ObjectDefinition;
}

/** How the function of a run ended. */
export interface Outcome {
  readonly hasFailed: boolean;
  readonly value: unknown;
}

/** A run whose code is in memory. Kept lean: tens of thousands of them wait at the same time. */
export class Run extends PendingOps {
  /** Number of the last operation. */
  seq = 0;
  /** Its code goes on no more: the run ended, is stuck, or was taken away. What it waits for stays pending. */
  isDead = false;
  /** It has ended and only replays, to be asked: nothing that it does counts. */
  isRevived = false;
  /** It is in the queue of runs that have deliveries. */
  isReady = false;
  /** In a replay: results that were read ahead. */
  private replayed: ReplayedResults | null = null;
  /** The step whose result was taken as its next delivery and waits for its turn; 0: none. */
  taken = 0;
  /** More may be recorded than its code was handed. */
  hasNews = false;
  /** What it waits for that is a predicate, in call order. */
  conditions: ConditionOp[] | null = null;
  /** Set when the function has returned or thrown; the end of the turn records it. */
  outcome: Outcome | null = null;
  /** Set when a cancel was delivered. */
  cancelled: CancelledError | null = null;
  /** Handlers of queries, by name. */
  queries: Map<string, (input: unknown) => unknown> | null = null;
  /** Handlers of updates, by name. */
  updates: Map<string, UpdateHandler> | null = null;
  /** `null`: it has had none. */
  scopes: Scopes | null = null;
  /** Steps that are to be undone if it fails, in the order of their results. */
  undos: Undo[] | null = null;
  private isUndoing = false;
  /** Changes of the code that were asked for, and whether the run takes them. */
  patches: Map<string, boolean> | null = null;
  /** Its calls, if it is an object. */
  object: ObjectCalls | null = null;
  /** Names of the steps so far; of an object those of the present call. */
  steps: StepNames | null = null;
  /** Made when someone asks for `ctx.signal`. */
  abort: AbortController | null = null;
  /** In development: where `ctx` was used last. The message is the verb. */
  lastUse: Error | null = null;
  private timeMs = -1;

  constructor(
    readonly host: Host,
    readonly slot: number,
    readonly code: WorkflowCode,
    /** Id and key roots. */
    private readonly identity: string,
    /** Text of the input; `null` once the function was called. */
    public input: string | null,
  ) {
    super();
  }

  /** The caller's name of the run. */
  get id(): string {
    return this.identity.slice(0, this.identity.indexOf('\u001f'));
  }

  /** From which idempotency keys, chance and ids of children follow, for an operation. */
  originAt(seq: number): Origin {
    const origin = originOf(this.id, this.identity.slice(this.identity.indexOf('\u001f') + 1), seq);
    return this.object === null ? origin : { ...origin, keyRoot: `${origin.keyRoot}.${this.object.current}` };
  }

  /** The value of a text that was recorded for it. @throws CodecError */
  read(kind: PayloadKind, name: string, text: string, id = this.id): unknown {
    return isSealed(text) ? decode(this.open(kind, name, text, id)) : decode(text);
  }

  /** The text of a value as it was before codecs changed it. @throws CodecError */
  open(kind: PayloadKind, name: string, text: string, id = this.id): string {
    if (!isSealed(text)) return text;
    const others: PayloadPlace[] = [];
    if (id === this.id) {
      // What it began with may have been written for the runs that it comes from.
      for (const from of idsOf(this.identity.slice(id.length + 1))) others.push({ kind, id: from, name });
      // A schedule does not know the ids of its runs.
      if (kind === 'input') others.push({ kind, id: '', name: this.code.name });
    }
    return this.host.payloads.open(text, { kind, id, name }, others);
  }

  /** Its function was called. */
  get isLaunched(): boolean {
    return this.input === null;
  }

  /** This one execution under that name. */
  get runId(): string {
    return this.field(1);
  }

  /** Version of the code that it was started with. */
  get version(): number {
    return Number(this.field(3));
  }

  /** First start, in ms since 1970. */
  get startedAtMs(): number {
    return Number(this.field(5));
  }

  /** Time of the delivery whose turn it is. */
  get now(): number {
    if (this.timeMs < 0) this.timeMs = this.host.verbs.turnTime(this.slot);
    return this.timeMs;
  }

  /** The time of the turn has changed within it. */
  forgetTime(): void {
    this.timeMs = -1;
  }

  get isReplaying(): boolean {
    return !this.isDead && this.host.verbs.replaying(this.slot) === 1;
  }

  /** A wait that is neither for a delivery nor over: whatever the code awaits did not come from `ctx` (LAW-8). */
  get waitsOutside(): boolean {
    return this.outcome === null && this.pendingCount === 0 && (this.object === null || this.object.current > 0);
  }

  /** Hands the code the result that was taken. Call it only within a turn of this run. */
  deliverTaken(): void {
    const seq = this.taken;
    this.taken = 0;
    this.timeMs = -1;
    const op = this.takePending(seq);
    if (op instanceof StepOp) this.completeStep(op, op.result);
  }

  /** Hands a delivery to the code. Call it only within a turn of this run. */
  deliver(kind: number, seq: number): void {
    this.timeMs = -1;
    switch (kind) {
      case START:
        // From a microtask: a tick that the function queues at once would otherwise run before the end of the turn.
        void Promise.resolve().then(() => this.launch());
        break;
      case STEP_COMPLETED: {
        const op = this.takePending(seq);
        if (op instanceof StepOp) this.completeStep(op, op.result === NOTHING ? this.replayedResult(op) : op.result);
        break;
      }
      case STEP_FAILED:
        this.takePending(seq)?.reject(decodeFailure(this.payload()));
        break;
      case TIMER_FIRED:
        this.takePending(seq)?.resolve(undefined);
        break;
      case WAIT_GOT_VALUE: {
        const op = this.takePending(seq);
        if (op instanceof WaitOp) op.take(this.read('signal', op.name, this.payload()));
        break;
      }
      case WAIT_TIMED_OUT: {
        const op = this.takePending(seq);
        if (op instanceof WaitOp) op.expire();
        break;
      }
      case CONDITION_TIMED_OUT: {
        const op = this.takePending(seq);
        if (op instanceof ConditionOp) {
          this.dropCondition(op);
          op.resolve(false);
        }
        break;
      }
      case RUN_ENDED: {
        const op = this.takePending(seq);
        if (op instanceof EndOp) this.settleEnd(op, this.payload());
        else if (op instanceof TaskOp) this.settleTask(op, this.payload());
        else if (op instanceof CallOp) this.settleCall(op, this.payload());
        break;
      }
      case UPDATE:
        deliverUpdate(this, seq, this.payload());
        break;
      case CALL:
        this.object?.deliver(seq, this.payload());
        break;
      case CANCEL:
        this.cancel(this.payload());
        break;
      default:
        throw new Error(`a delivery of an unknown kind, ${kind}`);
    }
  }

  /** An operation was opened, in the scope of the caller. */
  addPending(op: Op): void {
    this.keepPending(op);
    if (this.scopes !== null) this.scopes.adopt(op, this.scopes.current);
  }

  /** An operation was opened, in a certain scope. */
  addPendingTo(op: Op, scope: Scope | null): void {
    this.keepPending(op);
    this.scopes?.adopt(op, scope);
  }

  private completeStep(op: StepOp, result: unknown): void {
    if (op.policy.compensate !== undefined) (this.undos ??= []).push({ step: op, result });
    op.resolve(result);
  }

  /** The first condition in call order that holds now. What a predicate throws counts as holding. */
  findHolding(): { readonly op: ConditionOp; readonly error: unknown } | null {
    if (this.conditions === null) return null;
    for (const op of this.conditions) {
      try {
        if (op.predicate()) return { op, error: NOTHING };
      } catch (error) {
        return { op, error };
      }
    }
    return null;
  }

  /** Resolves a condition. Call it only within a turn of this run. */
  hold(op: ConditionOp, error: unknown): void {
    this.takePending(op.seq);
    this.dropCondition(op);
    this.host.verbs.withdraw(this.slot, op.seq);
    if (error === NOTHING) op.hold();
    else op.reject(error);
  }

  /** The run fails, as if its function had thrown. Call it only within a turn of this run. */
  failWith(error: unknown): void {
    this.settle(true, error);
  }

  /** A condition is waited for no more. */
  dropCondition(op: ConditionOp): void {
    if (this.conditions === null) return;
    const rest = this.conditions.filter((other) => other !== op);
    this.conditions = rest.length === 0 ? null : rest;
  }

  /** Its code goes on no more. */
  kill(reason: unknown): void {
    this.isDead = true;
    this.conditions = null;
    this.queries = null;
    this.updates = null;
    for (const op of this.takeAllPending()) if (op instanceof StepOp) this.host.abandon(op, reason);
    this.abort?.abort(reason);
  }

  private launch(): void {
    if (this.isDead) return;
    let returned: unknown;
    try {
      returned = this.host.launch(this);
    } catch (error) {
      this.settle(true, error);
      return;
    }
    if (!isThenable(returned)) {
      this.settle(false, returned);
      return;
    }
    void Promise.resolve(returned).then(
      (value) => this.settle(false, value),
      (error: unknown) => this.settle(true, error),
    );
  }

  private settle(hasFailed: boolean, value: unknown): void {
    if (this.isDead) return;
    if (this.host.current !== this) {
      this.host.outOfTurn(this, hasFailed ? 'throw' : 'return');
      return;
    }
    if (this.isUndoing) return;
    if (!hasFailed || this.undos === null || value instanceof Continuation) {
      this.outcome ??= { hasFailed, value };
      return;
    }
    this.isUndoing = true;
    void compensate(this).then(() => {
      this.isUndoing = false;
      this.undos = null;
      this.settle(true, value);
    });
  }

  private payload(): string {
    return this.host.verbs.payload(this.slot);
  }

  private replayedResult({ seq, name }: StepOp): unknown {
    if (this.replayed === null || !this.replayed.find(seq)) {
      this.replayed = this.readResults(this.host.verbs.results(this.slot));
      if (!this.replayed.find(seq)) throw new Error(`step ${seq} has no result`);
    }
    const result = this.replayed.take();
    return result instanceof Unread ? this.read('step', name, result.text) : result;
  }

  private readResults(texts: string): ReplayedResults {
    if (!hasSealed(texts)) return new ReplayedResults(decode(texts) as unknown[]);
    const [seqs, ...results] = JSON.parse(texts) as [unknown, ...unknown[]];
    return new ReplayedResults([seqs, ...results.map((json) => new Unread(JSON.stringify(json)))]);
  }

  private settleEnd(op: EndOp, text: string): void {
    const border = text.indexOf('\u001f');
    const status = Number(text.slice(0, border));
    const payload = text.slice(border + 1);
    if (status === COMPLETED) op.resolve(this.read('result', '', payload, op.id));
    else op.reject(endError(op.id, status, payload));
  }

  private settleCall(op: CallOp, text: string): void {
    const border = text.indexOf('\u001f');
    settleCall(this, op, Number(text.slice(0, border)), text.slice(border + 1));
  }

  private settleTask(op: TaskOp, text: string): void {
    const border = text.indexOf('\u001f');
    settleTask(this, op, Number(text.slice(0, border)), text.slice(border + 1));
  }

  private cancel(reason: string): void {
    // Of an object only the call that runs is cancelled.
    if (this.object?.current === 0) return;
    const error = new CancelledError(`workflow ${this.id} was cancelled${reason === '' ? '' : `: ${reason}`}`, {
      reason: reason === '' ? undefined : reason,
    });
    this.cancelled = error;
    this.scopes?.closeAll(error);
    for (const op of this.takeAllPending(this.scopes?.shielded)) giveUp(this, op, error);
    const { abort } = this;
    // From a microtask, like everything that lets code go on: see the start.
    if (abort !== null) void Promise.resolve().then(() => abort.abort(error));
  }

  private field(index: number): string {
    return this.host.verbs.identity(this.slot).split('\u001f', index + 1)[index] ?? '';
  }
}

/** From the first of their numbers on. */
const NEVER_STARTED = ['skipped', 'missed', 'expired', 'shed'] as const;

/** What stands for an end that was not `completed`. */
function endError(id: string, status: number, payload: string): Error {
  switch (status) {
    case NOT_FOUND:
      return new RunNotFoundError(payload, { id });
    case REFUSED:
      return new WorkflowAlreadyStartedError(payload, { id });
    case TERMINATED: {
      const reason = payload === '' ? '' : `: ${payload}`;
      const cause = new TerminatedError(`workflow ${id} was terminated${reason}`, { reason: payload || undefined });
      return new ChildWorkflowError(`child workflow ${id} was terminated${reason}`, {
        id,
        status: 'terminated',
        cause,
      });
    }
    case TIMED_OUT:
      return new ChildWorkflowError(`child workflow ${id} timed out`, {
        id,
        status: 'timedOut',
        cause: new TimeoutError(`workflow ${id} took longer than its timeout`, { of: 'run' }),
      });
    case CANCELLED:
      return new ChildWorkflowError(`child workflow ${id} was cancelled`, {
        id,
        status: 'cancelled',
        cause: decodeFailure(payload),
      });
    case SKIPPED:
    case MISSED:
    case EXPIRED:
    case SHED: {
      const ended = NEVER_STARTED[status - SKIPPED]!;
      const why = payload === '' ? '' : `: ${payload}`;
      return new ChildWorkflowError(`workflow ${id} is ${ended} and never started${why}`, { id, status: ended });
    }
    default:
      return new ChildWorkflowError(`child workflow ${id} failed`, {
        id,
        status: 'failed',
        cause: decodeFailure(payload),
      });
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
