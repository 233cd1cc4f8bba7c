/**
 * What a run needs from whoever runs it: the verbs that record, and someone who knows whose turn it is.
 *
 * Everything in this folder is replay safe. It does not know the addon, the event loop, the clock or chance: what it
 * needs of them comes through {@link Host}. js/worker implements it.
 */
import type { PayloadPlace, Payloads } from '../codec/payloads.js';
import type { Run } from './run.js';
import type { StepOp } from './operations.js';

/** Answers of verbs that open an operation, beside zero and more. */
/** It has a record: its outcome comes as a delivery. */
export const RECORDED = -1;
/** An attempt may run, but not now: an event will say when. */
export const LATER = -2;
/** The record at this place is of something else (LAW-5). */
export const MISMATCH = -3;
/** The run has ended, or was taken away: nothing of it matters any more. */
export const DEAD = -4;

/** Kinds of deliveries, as `quiescent` answers them. */
export const START = 1;
export const STEP_COMPLETED = 2;
export const STEP_FAILED = 3;
export const TIMER_FIRED = 4;
export const WAIT_GOT_VALUE = 5;
export const WAIT_TIMED_OUT = 6;
export const CONDITION_TIMED_OUT = 7;
export const RUN_ENDED = 8;
export const CANCEL = 9;
export const UPDATE = 10;
export const CALL = 11;

/** Statuses by the numbers that they have in records. */
export const COMPLETED = 1;
export const FAILED = 2;
export const CANCELLED = 3;
export const TERMINATED = 4;
export const TIMED_OUT = 5;
/** Of an operation that asks for another run: there is none. */
export const NOT_FOUND = 6;
/** Of a child: the id policies say no. */
export const REFUSED = 7;
/** The next run under its id took its place. */
export const CONTINUED_AS_NEW = 8;
/** It was to start through a queue and never did. */
export const SKIPPED = 9;
export const MISSED = 10;
export const EXPIRED = 11;
export const SHED = 12;

/** What `openSend` sends. */
export const SEND_SIGNAL = 0;
export const SEND_CANCEL = 1;
export const SEND_WATCH = 2;
/** To the child that the operation in the payload started. */
export const SEND_CANCEL_CHILD = 3;
/** To the task that the operation in the payload asked for. */
export const SEND_CANCEL_ORDER = 4;
export const SEND_CANCEL_TASK = 5;
export const SEND_WATCH_TASK = 6;
/** Of an object: the name has its definition and its handler. */
export const SEND_CALL = 7;

/** Flags of `openStep`. */
export const STEP_READ_ONLY = 1;
export const STEP_AT_MOST_ONCE = 2;

/** Flags of `openTimer`: the value is a time and not a duration, the timer limits a scope and is no sleep. */
export const TIMER_ABSOLUTE = 1;
export const TIMER_LIMIT = 2;

/** The verbs of the engine that a run's code uses. Plain functions; a slot names the run, a seq the operation. */
export interface Verbs {
  openStep(slot: number, seq: number, name: string, flags: number): number;
  openTimer(slot: number, seq: number, value: number, flags: number): number;
  openWait(slot: number, seq: number, signal: string, timeoutMs: number): number;
  openCondition(slot: number, seq: number, timeoutMs: number): number;
  withdraw(slot: number, seq: number): number;
  /** A cancel of the run leaves an open operation alone. */
  shield(slot: number, seq: number): number;
  /** @param attributes what js/attributes.ts packed */
  setAttributes(slot: number, seq: number, attributes: string): number;
  /** 1: the run takes the changed way. */
  patched(slot: number, id: string): number;
  /** The last operation before, and the recorded state of an object. */
  objectState(slot: number): string;
  /** @returns 1: the journal has grown, the run should continue as new @param flags 1: it has failed, 2: it ran alone, 4: there is a state */
  answerCall(slot: number, number: number, flags: number, payload: string, state: string): number;
  answerUpdate(slot: number, number: number, hasFailed: boolean, payload: string): number;
  openChild(
    slot: number,
    seq: number,
    flags: number,
    id: string,
    type: string,
    version: number,
    input: string,
    timeoutMs: number,
  ): number;
  /** Asks for a task. @param role what it is to the run @param row what {@link TaskHost.pack} made */
  openTask(slot: number, seq: number, role: number, row: string): number;
  openSend(slot: number, seq: number, what: number, id: string, runId: string, name: string, payload: string): number;
  /** Id, run id, type, version, key root, start, parent's run, joined by U+001F; nothing once the run has gone. */
  identity(slot: number): string;
  payload(slot: number): string;
  /** The result that was delivered last and those recorded right behind it: a JSON array of steps, then of results. */
  results(slot: number): string;
  turnTime(slot: number): number;
  replaying(slot: number): number;
}

/** What a run needs of tasks. */
export interface TaskHost {
  /** Whether a task of this name was given to `open`. */
  knows(name: string): boolean;
  /** A submission for the crossing. @throws TypeError, RangeError on what cannot be meant */
  pack(name: string, input: unknown, options: object, nowMs: number, verb: string): string;
  /** What a task that was asked for gave. @throws TaskError, CancelledError, what it was refused for */
  read(status: number, payload: string, name: string): unknown;
}

/** How a workflow's line is written. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** Whoever runs the code of runs on this thread. */
export interface Host {
  /** The run whose turn it is; `null` between turns. */
  current: Run | null;
  readonly verbs: Verbs;
  readonly tasks: TaskHost;
  /** More checks, and places in the code. */
  readonly isDev: boolean;
  /** `true` once the engine takes nothing new. */
  readonly isShuttingDown: boolean;
  /** Reads what {@link record} made. */
  readonly payloads: Payloads;
  /** Text of a value that is told and not recorded. @throws TypeError naming the path; RangeError naming the size */
  encode(value: unknown, what: string): string;
  /** Text that records a value. @throws TypeError naming the path, or the codec; RangeError naming the size */
  record(value: unknown, what: string, place: PayloadPlace): string;
  /** @throws RangeError */
  checkSize(text: string, what: string): void;
  /** Calls the function of a run in the root context; what it returns is what the function returned. */
  launch(run: Run): unknown;
  /** Calls other code of a run than its function, in the root context too. */
  call(run: Run, fn: (argument: unknown) => unknown, argument: unknown): unknown;
  /** The body of a step may run once its gate is durable. */
  gate(step: StepOp): void;
  /** The outcome of a step's body does not matter any more. */
  abandon(step: StepOp, reason: unknown): void;
  /** The async context of a `ctx.step` call, in which its body will run. */
  captureContext(): StepScope;
  /** Calls a function so that what follows from it belongs to a scope. */
  inScope<Argument>(scope: object, fn: (argument: Argument) => unknown, argument: Argument): unknown;
  /** The scope that the caller belongs to. */
  currentScope(): object | undefined;
  /** In development: whether the caller is the body of a step, or a query's or a condition's function. */
  isOutside(): boolean;
  /** A verb was called when it may not be. @throws when the caller is no workflow code; else the run is stuck now */
  outOfTurn(run: Run, verb: string): void;
  /** Marks a run as stuck: its code broke a rule. */
  stuck(run: Run, message: string): void;
  /** Marks a run as stuck: something that it needs cannot be read by the codecs that are here. */
  unreadable(run: Run, error: unknown): void;
  /** The run has ended elsewhere, or was taken away: its code goes on no more. */
  gone(run: Run): void;
  /** The record at this place is of something else: the run is stuck. */
  mismatch(run: Run, verb: string): void;
  /** Whether runs of this type can run here. */
  knows(type: string): boolean;
  /** The same for all attempts of a step. */
  idempotencyKey(run: Run, seq: number, name: string, nth: number): string;
  /** Writes a line about a run. */
  log(run: Run, level: LogLevel, message: string, fields: object | undefined): void;
  /** Text that a failure is recorded as. Never throws. */
  encodeFailure(error: unknown): string;
}

/** An async context that was captured. */
export interface StepScope {
  runInAsyncScope(fn: (...args: never[]) => unknown, thisArg: undefined, ...args: unknown[]): unknown;
}
