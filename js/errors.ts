/**
 * The errors of this package. Each has a stable `code`, its `name` on the instance, and a static `is` that also knows
 * errors of another installed copy.
 *
 * It does not know where they come from; {@link fromNative} makes them of what the addon throws.
 */

/** How a child ended that did not complete. */
export type ChildEnd = 'failed' | 'cancelled' | 'terminated' | 'timedOut' | NeverStarted;

/** How a run ended that was to start through a queue and never did. */
export type NeverStarted = 'skipped' | 'missed' | 'expired' | 'shed';

/** What errors take beside the message. */
export interface ErrorOptions {
  /** What led to it; kept as it is, also if it is no error. */
  readonly cause?: unknown;
}

const BRAND = Symbol.for('fusee.error');

/** Base of the errors of this package. */
export abstract class FuseeError extends Error {
  abstract readonly code: string;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options !== undefined && 'cause' in options ? { cause: options.cause } : undefined);
    // On the instance, so that it is shown and logged whatever prints the error; not enumerable, as in all errors.
    const name = brandOf(Object.getPrototypeOf(this) as object) ?? 'FuseeError';
    Object.defineProperty(this, 'name', { value: name, writable: true, configurable: true });
  }

  /** Like `instanceof`, but also for errors of another installed copy. */
  static is<T extends FuseeError>(this: { readonly prototype: T }, error: unknown): error is T {
    const brand = ownBrand(this.prototype);
    for (let at = error; typeof at === 'object' && at !== null; at = Object.getPrototypeOf(at) as unknown) {
      if (ownBrand(at) === brand) return true;
    }
    return false;
  }
}

/** Throw it to say: do not try again. */
export class NonRetryableError extends FuseeError {
  readonly code = 'NON_RETRYABLE';
}

/** Throw it to say: try again, not before `retryAfter`. */
export class RetryableError extends FuseeError {
  readonly code = 'RETRYABLE';
  /** Shortest wait, or earliest time. */
  readonly retryAfter: unknown;

  constructor(message: string, options?: ErrorOptions & { readonly retryAfter?: unknown }) {
    super(message, options);
    this.retryAfter = options?.retryAfter;
  }
}

/** A step has failed for good. `cause` is what it threw last. */
export class StepError extends FuseeError {
  readonly code = 'STEP_FAILED';
  readonly step: string;
  readonly attempts: number;
  /** What the attempts before the last one threw, as far as this process saw them. */
  readonly history: readonly unknown[];

  constructor(
    message: string,
    options: ErrorOptions & { readonly step: string; readonly attempts: number; readonly history?: readonly unknown[] },
  ) {
    super(message, options);
    this.step = options.step;
    this.attempts = options.attempts;
    this.history = options.history ?? [];
  }
}

/** The process ended during a step: its effect may or may not have happened. */
export class StepInterruptedError extends FuseeError {
  readonly code = 'STEP_INTERRUPTED';
  readonly step: string;

  constructor(message: string, options: ErrorOptions & { readonly step: string }) {
    super(message, options);
    this.step = options.step;
  }
}

/** A child workflow did not complete. */
export class ChildWorkflowError extends FuseeError {
  readonly code = 'CHILD_WORKFLOW_FAILED';
  readonly id: string;
  readonly status: ChildEnd;

  constructor(message: string, options: ErrorOptions & { readonly id: string; readonly status: ChildEnd }) {
    super(message, options);
    this.id = options.id;
    this.status = options.status;
  }
}

/** The run was cancelled. */
export class CancelledError extends FuseeError {
  readonly code = 'CANCELLED';
  readonly reason: string | undefined;

  constructor(message: string, options?: ErrorOptions & { readonly reason?: string | undefined }) {
    super(message, options);
    this.reason = options?.reason;
  }
}

/** The run was terminated. */
export class TerminatedError extends FuseeError {
  readonly code = 'TERMINATED';
  readonly reason: string | undefined;

  constructor(message: string, options?: ErrorOptions & { readonly reason?: string | undefined }) {
    super(message, options);
    this.reason = options?.reason;
  }
}

/** Something took longer than its timeout. */
export class TimeoutError extends FuseeError {
  readonly code = 'TIMEOUT';
  readonly of: 'attempt' | 'heartbeat' | 'run' | 'scope' | 'wait';

  constructor(
    message: string,
    options: ErrorOptions & { readonly of: 'attempt' | 'heartbeat' | 'run' | 'scope' | 'wait' },
  ) {
    super(message, options);
    this.of = options.of;
  }
}

/** What a workflow's code does at one place. */
export interface StuckOperation {
  readonly kind: string;
  readonly name: string | undefined;
}

/** Where code and records part. */
export interface StuckReport {
  readonly message: string;
  readonly seq: number;
  readonly recorded: StuckOperation | undefined;
  readonly asked: StuckOperation | undefined;
  readonly place: string | undefined;
}

/** The code of a workflow asked for something else than was recorded, or out of turn. The run is stuck, not lost. */
export class DeterminismError extends FuseeError {
  readonly code = 'DETERMINISM';
  /** Of a run that is stuck. */
  readonly report: StuckReport | undefined;

  constructor(message: string, options?: ErrorOptions & { readonly report?: StuckReport | undefined }) {
    super(message, options);
    this.report = options?.report;
  }
}

/** The id is taken, and the policies say no. */
export class WorkflowAlreadyStartedError extends FuseeError {
  readonly code = 'WORKFLOW_ALREADY_STARTED';
  readonly id: string;

  constructor(message: string, options?: ErrorOptions & { readonly id?: string }) {
    super(message, options);
    this.id = options?.id ?? '';
  }
}

/** There is no such run, or it has ended and takes no more messages. */
export class RunNotFoundError extends FuseeError {
  readonly code = 'RUN_NOT_FOUND';
  readonly id: string;

  constructor(message: string, options?: ErrorOptions & { readonly id?: string }) {
    super(message, options);
    this.id = options?.id ?? '';
  }
}

/** The update was refused by its validator. `cause` is what that threw. */
export class UpdateRejectedError extends FuseeError {
  readonly code = 'UPDATE_REJECTED';
  readonly update: string;

  constructor(message: string, options: ErrorOptions & { readonly update: string }) {
    super(message, options);
    this.update = options.update;
  }
}

/** The workflow failed. `cause` is what it threw. */
export class WorkflowFailedError extends FuseeError {
  readonly code = 'WORKFLOW_FAILED';
  readonly id: string;
  readonly runId: string;
  /** What it is beside `failed`, if it never started. */
  readonly status: 'failed' | NeverStarted;

  constructor(
    message: string,
    options: ErrorOptions & {
      readonly id: string;
      readonly runId: string;
      readonly status?: 'failed' | NeverStarted | undefined;
    },
  ) {
    super(message, options);
    this.id = options.id;
    this.runId = options.runId;
    this.status = options.status ?? 'failed';
  }
}

/** The workflow was not given to `open`. */
export class UnknownDefinitionError extends FuseeError {
  readonly code = 'UNKNOWN_DEFINITION';
  readonly type: string;

  constructor(message: string, options: ErrorOptions & { readonly type: string }) {
    super(message, options);
    this.type = options.type;
  }
}

/** A task did not complete. `cause` is what its last attempt threw. */
export class TaskError extends FuseeError {
  readonly code = 'TASK_FAILED';
  readonly id: string;
  readonly status: string;
  readonly attempts: number;
  /** Attempts that others followed, the newest ones. */
  readonly history: readonly unknown[];

  constructor(
    message: string,
    options: ErrorOptions & {
      readonly id: string;
      readonly status: string;
      readonly attempts: number;
      readonly history?: readonly unknown[];
    },
  ) {
    super(message, options);
    this.id = options.id;
    this.status = options.status;
    this.attempts = options.attempts;
    this.history = options.history ?? [];
  }
}

/** The queue is full and does not let callers wait. */
export class QueueFullError extends FuseeError {
  readonly code = 'QUEUE_FULL';
  readonly queue: string;
  readonly maxPending: number;

  constructor(message: string, options: ErrorOptions & { readonly queue: string; readonly maxPending: number }) {
    super(message, options);
    this.queue = options.queue;
    this.maxPending = options.maxPending;
  }
}

/** No place can be kept at that time. */
export class ReservationError extends FuseeError {
  readonly code = 'RESERVATION';
  readonly queue: string;
  readonly at: Date;

  constructor(message: string, options: ErrorOptions & { readonly queue: string; readonly at: Date }) {
    super(message, options);
    this.queue = options.queue;
    this.at = options.at;
  }
}

/** A bound is reached: of open runs, of signals that wait. */
export class BusyError extends FuseeError {
  readonly code = 'BUSY';
}

/** The run failed because its journal reached a limit. */
export class JournalLimitError extends FuseeError {
  readonly code = 'JOURNAL_LIMIT';
}

/** The bytes of an exported run cannot be read. */
export class JournalFileError extends FuseeError {
  readonly code = 'JOURNAL_FILE';
  /** The file, or what else the bytes were said to come from. */
  readonly source: string | undefined;
  /** First byte of what is wrong. */
  readonly offset: number;

  constructor(
    message: string,
    options: ErrorOptions & { readonly source?: string | undefined; readonly offset: number },
  ) {
    super(message, options);
    this.source = options.source;
    this.offset = options.offset;
  }
}

/** What is recorded cannot be read by the codecs that are here. Nothing is lost: it can once they have the key. */
export class CodecError extends FuseeError {
  readonly code = 'CODEC';
  /** Of the run; empty: of a task. */
  readonly id: string;
  /** What cannot be read. */
  readonly place: string;
  /** The codec that it needs. */
  readonly codec: string;
  /** The key that it needs, where the codec has keys. */
  readonly keyId: string | undefined;

  constructor(
    message: string,
    options: ErrorOptions & {
      readonly id: string;
      readonly place: string;
      readonly codec: string;
      readonly keyId?: string | undefined;
    },
  ) {
    super(message, options);
    this.id = options.id;
    this.place = options.place;
    this.codec = options.codec;
    this.keyId = options.keyId;
  }
}

/** The disk failed. Nothing more is acknowledged; open again. */
export class StorageError extends FuseeError {
  readonly code = 'STORAGE';
}

/** The disk is full; nothing was written. Heals by itself. */
export class StorageFullError extends FuseeError {
  readonly code = 'STORAGE_FULL';
}

/** Acknowledged records are damaged. */
export class LogCorruptError extends FuseeError {
  readonly code = 'LOG_CORRUPT';
}

/** Another process, or another engine of this one, has the directory open. */
export class DirectoryLockedError extends FuseeError {
  readonly code = 'DIRECTORY_LOCKED';
}

/** The engine is closing or closed. */
export class ClosedError extends FuseeError {
  readonly code = 'CLOSED';
}

/** Classes by the names that their errors carry. */
const CLASSES = {
  NonRetryableError,
  RetryableError,
  StepError,
  StepInterruptedError,
  ChildWorkflowError,
  CancelledError,
  TerminatedError,
  TimeoutError,
  DeterminismError,
  WorkflowAlreadyStartedError,
  RunNotFoundError,
  WorkflowFailedError,
  UpdateRejectedError,
  UnknownDefinitionError,
  TaskError,
  QueueFullError,
  ReservationError,
  BusyError,
  CodecError,
  JournalFileError,
  JournalLimitError,
  StorageError,
  StorageFullError,
  LogCorruptError,
  DirectoryLockedError,
  ClosedError,
};

Object.defineProperty(FuseeError.prototype, BRAND, { value: 'FuseeError' });
for (const [name, { prototype }] of Object.entries(CLASSES)) Object.defineProperty(prototype, BRAND, { value: name });

/** The prototype of our errors of a name, to revive one of them. */
export function prototypeOf(name: string): object | undefined {
  return Object.prototype.hasOwnProperty.call(CLASSES, name)
    ? CLASSES[name as keyof typeof CLASSES].prototype
    : undefined;
}

/** Makes ours of what the addon throws or answers: an object with `code` and `message`. @param id of the run, if known */
export function fromNative(error: unknown, id?: string): Error {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  const text = typeof message === 'string' ? message : String(error);
  const about = id === undefined ? {} : { id };
  switch (code) {
    case 'STORAGE':
    case 'NEWER_FORMAT':
      return new StorageError(text);
    case 'STORAGE_FULL':
      return new StorageFullError(text);
    case 'LOG_CORRUPT':
      return new LogCorruptError(text);
    case 'LOCKED':
      return new DirectoryLockedError(text);
    case 'CLOSED':
      return new ClosedError(text);
    case 'NOT_FOUND':
      return new RunNotFoundError(text, about);
    case 'ALREADY_STARTED':
      return new WorkflowAlreadyStartedError(text, about);
    case 'UNREGISTERED':
      return new UnknownDefinitionError(text, { type: '' });
    case 'BUSY':
      return new BusyError(text);
    case 'BAD_INPUT':
    case 'InvalidArg':
      return new TypeError(text);
    default:
      return new StorageError(`the engine failed: ${text}`, { cause: error });
  }
}

function ownBrand(value: object): unknown {
  return Object.getOwnPropertyDescriptor(value, BRAND)?.value as unknown;
}

function brandOf(prototype: object): string | undefined {
  return (prototype as { readonly [BRAND]?: string })[BRAND];
}
