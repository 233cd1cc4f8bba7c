/// <reference lib="esnext.disposable" />

/**
 * fusee: durable workflows inside one Node.js process.
 *
 * Three words are used in one sense throughout:
 * - *durable*: it has survived a completed write to the disk; a crash right after cannot lose it.
 * - *run*: one execution of a workflow.
 * - *replay*: a workflow's function is called again and gets its recorded results back.
 *
 * @packageDocumentation
 */

// ───────────────────────────── Time ─────────────────────────────

type DurationUnit = 'ms' | 's' | 'm' | 'h' | 'd' | 'w';

/** A duration in words, one or two parts: `'250ms'`, `'30s'`, `'1h30m'`, `'7d'`. `m` is minutes. */
export type DurationString = `${number}${DurationUnit}` | `${number}${DurationUnit}${number}${DurationUnit}`;

/** A duration in parts. Parts add up. A `Temporal.Duration` fits; its years and months must be 0. */
export interface DurationObject {
  /** 7 days each. */
  readonly weeks?: number;
  /** 24 hours each. */
  readonly days?: number;
  /** 60 minutes each. */
  readonly hours?: number;
  /** 60 seconds each. */
  readonly minutes?: number;
  /** 1000 milliseconds each. */
  readonly seconds?: number;
  /** May have a fraction. */
  readonly milliseconds?: number;
}

/**
 * A length of time: a number of **milliseconds**, a {@link DurationString} or a {@link DurationObject}.
 * Negative, `NaN` and unreadable durations throw a `RangeError` where they are given.
 */
export type Duration = number | DurationString | DurationObject;

/**
 * Reads a duration from configuration, where the text is only known at run time.
 *
 * @example `await engine.close({ grace: duration(process.env.GRACE ?? '10s') })`
 * @returns milliseconds
 * @throws `RangeError` if the text is no duration
 */
export function duration(text: string): number;

/** A point in time: a `Date`, a number of milliseconds since 1970, or an ISO 8601 text with a zone. */
export type Time = Date | number | string;

// ───────────────────────────── Standard Schema ─────────────────────────────

/**
 * The part of [Standard Schema v1](https://standardschema.dev) that is used here, so that schemas of Zod, Valibot,
 * ArkType and others fit without a dependency. `Input` is what callers give, `Output` what handlers get.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** As the standard says. */
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
  };
}

/** What a schema answers: the value, or what is wrong with it. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string }[] };

// ───────────────────────────── Types that read other types ─────────────────────────────

/** The arguments after a definition: the input, which may be left out when it may be `undefined`, then the options. */
export type InputThen<Input, Options> = undefined extends Input
  ? [input?: Input, options?: Options]
  : [input: Input, options?: Options];

/** An `input` field, required unless the input may be `undefined`. */
export type InputField<Input> = undefined extends Input ? { readonly input?: Input } : { readonly input: Input };

/** A `value` field, required unless it may be `undefined`. */
export type ValueField<T> = undefined extends T ? { readonly value?: T } : { readonly value: T };

/** The input that starts a workflow. */
export type InputOf<W extends AnyWorkflow> = W extends Workflow<infer Input, any> ? Input : never;

/** What a workflow resolves with. */
export type OutputOf<W extends AnyWorkflow> = W extends Workflow<any, infer Output> ? Output : never;

/** A handler's result: a value or a promise of it. */
export type MaybePromise<T> = T | Promise<T>;

// ───────────────────────────── Definitions ─────────────────────────────

/** A workflow. Made by {@link workflow}, never by hand. */
export interface Workflow<Input = any, Output = any> {
  /** Tells definitions apart. */
  readonly kind: 'workflow';
  /** The name under which runs are recorded. Renaming it orphans the runs that are under way. */
  readonly name: string;
  /** Types only; there is no such property at run time. */
  readonly '~types'?: { readonly input: (input: Input) => void; readonly output: Output };
}

/** Any workflow. */
export type AnyWorkflow = Workflow<any, any>;

/** Options of {@link workflow}. */
export interface WorkflowOptions<Input = any, Parsed = Input> {
  /** Checks and converts the input, once, before the start is recorded. A bad input rejects the start. */
  input?: StandardSchema<Input, Parsed>;
  /**
   * Version of the code, for `ctx.version` of new runs. Default 1. `open` takes several versions of a workflow: a run goes on
   * with the code of the version that it was started with, or with the newest if that one is not there.
   */
  version?: number;
  /** Longest life of a run, from its start, waits included. Then its status is `timedOut`. Default: none. */
  timeout?: Duration;
  /**
   * What becomes of a run whose records its code does not fit, or that breaks the rule of awaiting `ctx` only. `'stuck'`: it
   * waits until the code is mended, and is tried again by `handle.resume()` and at each `open`. `'retry'`: the same, and it is tried
   * again by itself, from its first record, after 1 s, 2 s, 4 s and so on, at most 1 min: for code that breaks the rule only now
   * and then. Nothing is recorded about it. `'fail'`: it fails with a
   * {@link DeterminismError}; nothing is undone. Default `'stuck'`.
   */
  onMismatch?: 'stuck' | 'retry' | 'fail';
}

/**
 * Defines a workflow: a function whose every step is recorded, so that it goes on where it was after a crash.
 *
 * The function must be deterministic: time, chance and everything outside come through `ctx`. Annotate its second
 * parameter (or give a schema in `options.input`) and everything else infers. Without a second parameter the workflow
 * starts without an input. A workflow that starts itself needs a return annotation: `async (ctx, n: number): Promise<number>`.
 *
 * A plain error thrown by the function fails the run; retries belong to steps.
 *
 * @param name unique among the workflows of an engine; stable for as long as runs live
 * @throws `TypeError` if the name is empty, too long, or contains control characters; `RangeError` if a duration
 *   cannot be read
 */
export function workflow<Parsed = void, Input = Parsed, Output = unknown>(
  name: string,
  handler: (ctx: WorkflowContext<NoInfer<Input>>, input: Parsed) => MaybePromise<Output>,
  options?: WorkflowOptions<Input, Parsed>,
): Workflow<Input, Output>;

/** Names a kind of message to a workflow that wants no answer. Made by {@link signal}. */
export interface Signal<Input = any, Parsed = Input> {
  /** Tells messages apart. */
  readonly kind: 'signal';
  /** Name under which it is recorded; stable for as long as runs live. */
  readonly name: string;
  /** Types only; there is no such property at run time. */
  readonly '~types'?: { readonly input: (input: Input) => void; readonly parsed: Parsed };
}

/** Names a question to a workflow that changes nothing. Made by {@link query}. */
export interface Query<Input = any, Output = any> {
  /** Tells messages apart. */
  readonly kind: 'query';
  /** Name by which the workflow finds its handler. */
  readonly name: string;
  /** Types only; there is no such property at run time. */
  readonly '~types'?: { readonly input: (input: Input) => void; readonly output: Output };
}

/** Names a request to a workflow that may change it and that it answers. Made by {@link update}. */
export interface Update<Input = any, Output = any, Parsed = Input> {
  /** Tells messages apart. */
  readonly kind: 'update';
  /** Name under which it is recorded; stable for as long as runs live. */
  readonly name: string;
  /** Types only; there is no such property at run time. */
  readonly '~types'?: { readonly input: (input: Input) => void; readonly output: Output; readonly parsed: Parsed };
}

/** Defines a signal. Without a type argument it carries nothing. */
export function signal<T = void>(name: string): Signal<T>;
/** Defines a signal whose value a schema checks; a bad value rejects the call that sends it, nothing is recorded. */
export function signal<Input, Parsed>(name: string, schema: StandardSchema<Input, Parsed>): Signal<Input, Parsed>;

/** Defines a query without an argument. */
export function query<Output = unknown>(name: string): Query<void, Output>;
/** Defines a query with an argument. */
export function query<Input, Output>(name: string): Query<Input, Output>;

/** Defines an update: its argument's type and its answer's. */
export function update<Input = void, Output = void>(name: string): Update<Input, Output>;
/**
 * Defines an update by schemas. The first one checks the argument where it is asked for: a bad one rejects the call, nothing
 * is recorded. The second one gives the answer its type; without it the answer is `unknown`.
 */
export function update<Input, Parsed, Output = unknown>(
  name: string,
  input: StandardSchema<Input, Parsed>,
  output?: StandardSchema<any, Output>,
): Update<Input, Output, Parsed>;

/** Handlers of an object by name: `(ctx, input?) => result`. */
export type ObjectHandlers<Context> = { [name: string]: (ctx: Context, input: any) => unknown };

/** A durable object. Made by {@link object}, never by hand. */
export interface ObjectDefinition<State = any, Handlers = any, Shared = any> {
  /** Tells definitions apart. */
  readonly kind: 'object';
  /** The name under which objects are recorded. Renaming it orphans their state. */
  readonly name: string;
  /** Types only; there is no such property at run time. */
  readonly '~types'?: { readonly state: State; readonly handlers: Handlers; readonly shared: Shared };
}

/** Any object definition. */
export type AnyObject = ObjectDefinition<any, any, any>;

/** The state of an object. */
export type StateOf<D extends AnyObject> = D extends ObjectDefinition<infer State, any, any> ? State : never;

/**
 * Defines a durable object: state under an id, and handlers on it. It begins to exist with the first call.
 *
 * @param name unique among the workflows and objects of an engine, without `:`; stable for as long as objects live
 * @param definition `state` makes the first state: the same each time. `handlers` run one at a time per id, in the order of
 *   the calls, and may change `ctx.state`; a change is recorded with the handler's answer, and a handler that throws changes
 *   nothing. `shared` handlers run beside them, synchronously, see the last recorded state and cannot change it.
 * @throws `TypeError` if a name occurs in both, is `then`, or begins with `$`
 */
export function object<State, Handlers extends ObjectHandlers<ObjectContext<State>>, Shared = {}>(
  name: string,
  definition: {
    state: () => State;
    handlers: Handlers;
    shared?: Shared & ObjectHandlers<SharedObjectContext<State>>;
  },
): ObjectDefinition<State, Handlers, Shared>;

/** Options of a call of an object from outside. */
export interface CallOptions extends AuditOptions, ResultOptions {
  /**
   * Names the call: a second one with the same id gets the first one's answer, as long as that is kept (some 250 calls, less
   * if they are large). Default: every call is a new one.
   */
  id?: string;
}

type ObjectMethods<Handlers, Options extends any[]> = {
  readonly [Name in keyof Handlers]: Handlers[Name] extends (ctx: any, ...input: infer Input) => infer Output
    ? (
        ...args: Input extends [] ? (Options extends [] ? [] : [input?: undefined, ...Options]) : [...Input, ...Options]
      ) => Promise<Awaited<Output>>
    : never;
};

/** Calls the handlers of one object. Each resolves with the answer, which is durable then, or rejects with what was thrown. */
export type ObjectClient<D extends AnyObject, Options extends any[] = [options?: CallOptions]> =
  D extends ObjectDefinition<any, infer Handlers, infer Shared>
    ? ObjectMethods<Handlers, Options> & ObjectMethods<Shared, Options>
    : never;

/** What an exclusive handler of an object gets as `ctx`, for the length of the call. */
export interface ObjectContext<State> extends Pick<
  WorkflowContext,
  | 'step'
  | 'sleep'
  | 'sleepUntil'
  | 'awakeable'
  | 'run'
  | 'enqueue'
  | 'start'
  | 'handle'
  | 'object'
  | 'now'
  | 'random'
  | 'uuid'
  | 'scope'
  | 'signal'
  | 'log'
  | 'info'
> {
  /** Id of the object. */
  readonly id: string;
  /** The state. Change it in place or assign a new one; it is recorded with the handler's answer. */
  state: State;
}

/** What a shared handler of an object gets as `ctx`. */
export interface SharedObjectContext<State> {
  /** Id of the object. */
  readonly id: string;
  /** The state as last recorded. Frozen. */
  readonly state: ReadonlyDeep<State>;
  /** Writes a line with the object's id. */
  readonly log: Logger;
}

/** `T` with everything in it read only. */
export type ReadonlyDeep<T> = T extends string | number | bigint | boolean | null | undefined | Date | RegExp | URL
  ? T
  : T extends ReadonlyMap<infer K, infer V>
    ? ReadonlyMap<K, ReadonlyDeep<V>>
    : T extends ReadonlySet<infer E>
      ? ReadonlySet<ReadonlyDeep<E>>
      : { readonly [K in keyof T]: ReadonlyDeep<T[K]> };

/** A task. Made by {@link task}, never by hand. */
export interface Task<Input = any, Output = any> {
  /** Tells definitions apart. */
  readonly kind: 'task';
  /** The name under which tasks are recorded. Renaming it orphans those that wait. */
  readonly name: string;
  /** Types only; there is no such property at run time. */
  readonly '~types'?: { readonly input: (input: Input) => void; readonly output: Output };
}

/** Any task. */
export type AnyTask = Task<any, any>;

/** The input of a task. */
export type TaskInputOf<T extends AnyTask> = T extends Task<infer Input, any> ? Input : never;

/** What a task resolves with. */
export type TaskOutputOf<T extends AnyTask> = T extends Task<any, infer Output> ? Output : never;

/** A class of priority, or 0 (first) to 9 (last), which map into the classes. A waiting task rises with time. */
export type Priority = 'critical' | 'high' | 'normal' | 'low' | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9;

/** Use of a limit declared in `open`: its name, or more about it. */
export type LimitUse<Input = any> = string | LimitUseObject<string | ((input: Input) => string | number)>;

/** Use of a limit in a call: its name, or more about it. */
export type LimitCall = string | LimitUseObject<string>;

interface LimitUseObject<Key> {
  /** Name of the limit. */
  readonly name: string;
  /** Units taken. Default 1. More than the limit gives is refused. */
  readonly amount?: number;
  /** Limits of the same name with different keys are apart. Default: one for all. */
  readonly key?: Key;
}

/** Retries of a task. After the last attempt it is `dead`; see `engine.retry`. */
export type TaskRetryOptions = Omit<RetryOptions, 'onExhausted'>;

/** Options of {@link task}. */
export interface TaskOptions<Input = any, Parsed = Input> {
  /** Checks and converts the input, once, before the task is recorded. A bad input rejects the call. */
  input?: StandardSchema<Input, Parsed>;
  /** Queue. Default `'default'`. An unknown queue makes `open` throw. */
  queue?: string;
  /** When a failed attempt is tried again. Default: the queue's, else see {@link RetryOptions}. */
  retry?: TaskRetryOptions;
  /** Longest time of **one attempt**; then `ctx.signal` aborts and the attempt has failed. Default: none. */
  timeout?: Duration;
  /** Limits that each attempt holds: names, or keyed by something in the input. */
  limits?: readonly LimitUse<Parsed>[];
  /** Default `'normal'`. */
  priority?: Priority;
  /** Expected run time, for deadlines and reserved starts. Default: learned from attempts that succeeded. */
  durationHint?: Duration;
}

/**
 * Defines a task: a function behind a queue, tried again as a whole when it fails.
 *
 * An attempt may run more than once (a crash between its effect and its record); pass `ctx.idempotencyKey` on.
 *
 * @param name unique among the tasks of an engine; stable for as long as tasks wait
 * @throws `TypeError` if the name is empty, too long, or contains control characters; `RangeError` if a duration
 *   cannot be read
 */
export function task<Parsed = void, Input = Parsed, Output = unknown>(
  name: string,
  handler: (ctx: TaskContext, input: Parsed) => MaybePromise<Output>,
  options?: TaskOptions<Input, Parsed>,
): Task<Input, Output>;

/** A condition on how another task ends. If it can no longer hold, the dependent is `skipped`. */
export interface Edge {
  /** Tells an edge from a handle. */
  readonly kind: 'edge';
  /** Id or key of the task. */
  readonly run: string;
  /** How it must end. */
  readonly on: 'complete' | 'failure' | 'success';
}

/** What can be waited for: a task, by its handle, id or key, or a run of a workflow, by its handle. */
export type Awaitable = TaskHandle<any> | TaskRef<any> | WorkflowHandle<any> | ChildHandle<any> | string;

/**
 * What a task or an enqueued workflow waits for: a task or run, which must complete, or an {@link Edge}. A run that continues
 * as new, or is reset, is waited for until the last of those that take its place has ended.
 */
export type Dependency = Awaitable | Edge;

/** Holds when the task ended `failed` or `dead`, or the run `failed` or `timedOut` (not when it was cancelled, skipped or expired). */
export function onFailure(run: Awaitable): Edge;
/** Holds when the task or run ended, however it ended. */
export function onComplete(run: Awaitable): Edge;
/** Holds when the task or run ended `completed`. The same as giving it itself. */
export function onSuccess(run: Awaitable): Edge;

/** What happens to a task whose key is taken. */
export interface Dedupe {
  /**
   * `skip`: the existing one stands for it. `replace`: a waiting one takes its input and time. `rerun`: at most one running
   * and one waiting, with the newest input. `error`: the call rejects with {@link BusyError}. `debounce`: each call moves
   * the start to `window` from now, with the newest input. `throttle`: at most one per `window`. Default `'skip'`.
   */
  readonly mode?: 'skip' | 'replace' | 'rerun' | 'error' | 'debounce' | 'throttle';
  /** Which tasks hold a key: waiting, not ended, or still remembered. Default `'live'`. */
  readonly scope?: 'pending' | 'live' | 'retained';
  /** For `debounce` and `throttle`. */
  readonly window?: Duration;
  /** For `debounce`: latest start after the first call. Default: none. */
  readonly maxWait?: Duration;
}

/** Options of `enqueue`. */
export interface EnqueueOptions {
  /** Queue. Default: the definition's. */
  queue?: string;
  /** Default: the definition's. */
  priority?: Priority;
  /** Eligible only after this long. Not with `runAt`. */
  delay?: Duration;
  /** Eligible only from this time on. In the past: now. Not with `delay`. */
  runAt?: Time;
  /** Should be **finished** by then (a duration counts from now): raises its urgency, never drops it. */
  deadline?: Duration | Date;
  /** Not **started** by then (a duration counts from now): ends as `expired`. Default: never. */
  expires?: Duration | Date;
  /** Keeps a place free at `runAt` (or after `delay`). Rejects with {@link ReservationError} if none can be kept. */
  reserve?: {
    /** How late the start may be. Default 1 s. */
    tolerance?: Duration;
    /** Later than that: run anyway, end as `missed`, or fail. Default `'late'`. */
    onMiss?: 'late' | 'skip' | 'fail';
  };
  /** Whose work it is, for fair shares. Default: nobody's in particular. */
  tenant?: string;
  /** Tasks with the same key run one at a time, in the order of the calls, retries included. */
  orderKey?: string;
  /** Tasks and runs that must end first. */
  after?: readonly Dependency[];
  /** Limits, beside the definition's. */
  limits?: readonly LimitCall[];
  /** Runs on threads that carry all of these: {@link WorkerOptions.labels}. Waits while there is none. */
  labels?: { readonly [name: string]: string };
  /** Free notes. Listed, and handed to the function as `ctx.info.tags`. */
  tags?: { readonly [name: string]: string };
  /** Names the task for `dedupe` and for `handle`. It is free again when the task has ended. Not `t-1`, `t-2` …: ids. */
  key?: string;
  /** The key is taken: what then? Ignored without `key`. */
  dedupe?: Dedupe;
  /** Default: the definition's. What only code can decide is the definition's, or the queue's. */
  retry?: Omit<TaskRetryOptions, 'shouldRetry' | 'nonRetryable'>;
  /** Longest time of one attempt. Default: the definition's. */
  timeout?: Duration;
  /** Expected run time. Default: the definition's, else learned. */
  durationHint?: Duration;
}

/** How much a limit gives. */
export type LimitSpec =
  | {
      /** Units in use at the same time. */
      readonly concurrency: number;
    }
  | {
      /** Units per `period`. After a crash it begins empty. */
      readonly limit: number;
      /** Units flow back evenly over it. */
      readonly period: Duration;
      /** Units at once after a rest. Default: `limit`. */
      readonly burst?: number;
    };

/** Use of a limit. */
export interface LimitUsage {
  /** Units that it gives at most at once. */
  readonly capacity: number;
  /** Units in use. */
  readonly used: number;
  /** Units that can be taken now. */
  readonly available: number;
  /** Attempts that wait for units. */
  readonly waiting: number;
  /** Keys with units in use, missing or waited for. */
  readonly keys: number;
}

/** A queue. */
export interface QueueSpec {
  /**
   * Attempts at the same time, over all workers; or bounds between which it follows its load. `0`: none, its tasks wait until
   * `setConcurrency`. Default 10.
   */
  concurrency?: number | { readonly min: number; readonly max: number; readonly scale?: ScaleOptions | Scaler };
  /** Starts per period. Default: none. */
  rateLimit?: { readonly limit: number; readonly period: Duration; readonly burst?: number };
  /** Tasks that may wait, running ones not counted. Default: none. */
  maxPending?: number;
  /**
   * One more than `maxPending`: the call waits, rejects with {@link QueueFullError}, or a waiting task ends as `shed`.
   * Default `'wait'`.
   */
  onFull?: 'wait' | 'reject' | 'dropOldest' | 'dropLowest';
  /** Shares by `tenant`. Default weight 1. Default: off, first come first served within a priority. */
  fair?: { readonly weights?: { readonly [tenant: string]: number } };
  /** Default for its tasks. */
  retry?: TaskRetryOptions;
  /** Longest silence of an attempt between two `ctx.heartbeat()`; then it has failed. Default: none. */
  heartbeatTimeout?: Duration;
}

/** How a queue follows its load. */
export interface ScaleOptions {
  /** Time between two looks at the load. Default 1 s. */
  readonly interval?: Duration;
  /** What waits should be gone in this time. Default 30 s. */
  readonly drainTime?: Duration;
  /** Longest wait by priority. Default: none. */
  readonly slo?: { readonly [P in 'critical' | 'high' | 'normal' | 'low']?: Duration };
}

/**
 * Provides slots outside of fusee's own reckoning. It is asked when another number is wanted, and once at the open; until it
 * answers there are none. It answers the slots that there are, or `undefined`: then {@link QueueControl.reportCapacity} will
 * say. An answer that comes after a newer one, or after a report, does not count. What it throws is a `warning` with the code
 * `SCALER`.
 */
export type Scaler = (queue: string, desired: number) => number | undefined | PromiseLike<number | undefined>;

// ───────────────────────────── Shared options ─────────────────────────────

/** When and how often something that failed is tried again. */
export interface RetryOptions {
  /** Attempts in all, the first try included. `1`: never again. Default 3. */
  maxAttempts?: number;
  /** Wait before the second attempt. Default 1 s. */
  initialInterval?: Duration;
  /** Longest wait between two attempts. Default 1 min. */
  maxInterval?: Duration;
  /** Factor from one wait to the next, at least 1. Default 2. */
  backoff?: number;
  /** Draw each wait evenly between 0 and its full length. Default `true`. */
  jitter?: boolean;
  /** Names of errors (`error.name`) that are never tried again, as if they were a {@link NonRetryableError}. */
  nonRetryable?: readonly string[];
  /** Asked for every other error. `false`: not again. Must not have effects. */
  shouldRetry?: (error: unknown) => boolean;
  /** After the last attempt: fail, or pause the run until someone resumes it. Default `'fail'`. */
  onExhausted?: 'fail' | 'pause';
}

/** What happens to a child when its parent ends first. */
export type ParentClosePolicy = 'terminate' | 'cancel' | 'abandon';

/** Options of `engine.start` and `engine.execute`. */
export interface StartOptions {
  /** The workflow's name for callers, e.g. an order number: 1 to 256 bytes. Default: a random one. */
  id?: string;
  /** May the id of a run that has **ended** be used again? Default `'allowDuplicate'`. */
  idReusePolicy?: 'allowDuplicate' | 'allowDuplicateFailedOnly' | 'rejectDuplicate';
  /** The id belongs to a **live** run: what then? Default: `'useExisting'` when the input is the same, else `'fail'`. */
  idConflictPolicy?: 'fail' | 'useExisting' | 'terminateExisting';
  /** Version of the code that the run reports. Default: the definition's. */
  version?: number;
  /** Longest life of the run. Default: the definition's. */
  timeout?: Duration;
  /** First search attributes, recorded with the start; `engine.list` finds runs by them. Default: none. */
  attributes?: Attributes;
  /** Who asked: recorded with the start. Default: nobody. */
  actor?: string;
}

/**
 * Options of `enqueue` of a workflow: those of a start and those of a queue. `timeout` counts from its start. `deadline`,
 * `expires`, `limits` and the rest are about the whole run: it holds its slot and its limits until it ends. It has no attributes
 * before its code sets some.
 */
export interface EnqueueWorkflowOptions
  extends
    Omit<StartOptions, 'attributes'>,
    Pick<
      EnqueueOptions,
      | 'priority'
      | 'delay'
      | 'runAt'
      | 'deadline'
      | 'expires'
      | 'reserve'
      | 'tenant'
      | 'orderKey'
      | 'after'
      | 'limits'
      | 'durationHint'
    > {
  /** Queue. Default `'default'`. */
  queue?: string;
}

/** Options of `engine.execute`: those of the start, and how long to wait. */
export interface ExecuteOptions extends StartOptions {
  /** Stops the waiting with its reason. The run goes on. */
  signal?: AbortSignal;
}

/** Options of `ctx.run` and `ctx.start`. A child has no attributes before its code sets some. */
export interface ChildOptions extends Omit<StartOptions, 'actor' | 'attributes'> {
  /** What happens to the child when this run ends first. Default `'terminate'`. */
  onParentClose?: ParentClosePolicy;
}

// ───────────────────────────── Contexts ─────────────────────────────

/** What a step's function gets. */
export interface StepContext {
  /** The same for all attempts, over crashes and replays: give it to the service you call. */
  readonly idempotencyKey: string;
  /** Number of this attempt, from 1. After a pause, `handle.resume()` gives fresh attempts: it is counted from 1 again. */
  readonly attempt: number;
  /** Aborts on timeout, cancellation and shutdown. `signal.reason` says which. */
  readonly signal: AbortSignal;
  /** Says that the attempt is alive. Never blocks, never throws. @param details seen by the next attempt */
  heartbeat(details?: unknown): void;
  /** What the last heartbeat of an earlier attempt said, `undefined` if there was none. */
  readonly lastHeartbeat: unknown;
  /** About the run. */
  readonly info: RunInfo;
}

/** Options of `ctx.step`. */
export interface StepOptions<Result = any> {
  /** When a failed attempt is tried again. Default: see {@link RetryOptions}. */
  retry?: RetryOptions;
  /** Longest time of one attempt; then `signal` aborts and the attempt has failed. Default: none. */
  timeout?: Duration;
  /** Longest silence between two heartbeats; then the attempt has failed. Default: none. */
  heartbeatTimeout?: Duration;
  /** It has no effect outside: it need not wait for the disk, and may run again after a crash. Default `false`. */
  readOnly?: boolean;
  /**
   * Undoes the step: called with its result when the workflow fails or is cancelled, the last step first, each as a step of its
   * own with the same retries, shielded from cancellation. One that fails for good is logged; the others are still tried, and
   * the run ends as it would have. Not called after `terminate` or the timeout of the run.
   */
  compensate?: (result: Result, step: StepContext) => unknown;
  /**
   * `'atMostOnce'`: the start is recorded and waited for (one more write); after a crash in between the step fails with
   * {@link StepInterruptedError} instead of running again, and it is tried once unless `retry` says otherwise.
   * Default `'atLeastOnce'`.
   */
  semantics?: 'atLeastOnce' | 'atMostOnce';
}

/** About the run itself. */
export interface RunInfo {
  /** The caller's name of the run. */
  readonly id: string;
  /** This one execution under that name. */
  readonly runId: string;
  /** The definition's name. */
  readonly type: string;
  /** Number of the attempt, from 1. In a workflow always 1: a replay is no attempt. */
  readonly attempt: number;
  /** Version of the code that the run was started with. */
  readonly version: number;
  /** `true` while recorded results are given back. Do not branch on it. */
  readonly replaying: boolean;
  /** First start, not that of this attempt. */
  readonly startedAt: Date;
  /** `true` once `close` has begun. */
  readonly shuttingDown: boolean;
  /** As given to `enqueue`. */
  readonly tags: { readonly [name: string]: string };
}

/** Writes lines. Fields are kept apart from the message. */
export interface Logger {
  /** For development. */
  debug(message: string, fields?: object): void;
  /** What happened. */
  info(message: string, fields?: object): void;
  /** What someone should look at. */
  warn(message: string, fields?: object): void;
  /** What went wrong. */
  error(message: string, fields?: object): void;
}

/**
 * What a workflow's function gets as `ctx`. Functions that take one need no type argument: `(ctx: WorkflowContext)`.
 *
 * Operations are recorded. Each is known by its place in the order of calls: use native `await`, `Promise.all`, `race`;
 * do not await anything that does not come from `ctx`. They throw {@link CancelledError} once the run is cancelled.
 */
export interface WorkflowContext<Input = any> {
  /**
   * Runs `fn` and records its result; in replay the result comes from the record.
   *
   * `fn` starts once everything before it is durable. The promise resolves as soon as the result is there; nothing
   * leaves the process before it is durable. The value is the one that replay would give (`toJSON` applied).
   *
   * @param name shown in histories; need not be unique
   * @throws {@link StepError} after the last attempt, {@link TimeoutError} as its cause after a timeout;
   *   {@link StepInterruptedError} with `semantics: 'atMostOnce'`
   */
  step<Result>(
    name: string,
    fn: (step: StepContext) => MaybePromise<Result>,
    options?: StepOptions<NoInfer<Result>>,
  ): Promise<Result>;
  /** Waits. It survives restarts; a time that has passed meanwhile fires at once. */
  sleep(duration: Duration): Promise<void>;
  /** Waits until a time. */
  sleepUntil(time: Time): Promise<void>;
  /** Takes the next value of a signal, in order of arrival; waits for it. Values sent before are kept. */
  waitFor<T>(signal: Signal<any, T>): Promise<T>;
  /**
   * As above, but for a limited time.
   * @returns the value, or on timeout `orElse`, which is `undefined` unless given
   */
  waitFor<T, const E = undefined>(signal: Signal<any, T>, options: { timeout: Duration; orElse?: E }): Promise<T | E>;
  /** The values of a signal, one after the other, without end: leave the loop with `break`. */
  signals<T>(signal: Signal<any, T>): AsyncIterableIterator<T>;
  /**
   * A promise that somebody outside settles with `engine.complete(token, value)` or `engine.fail(token, error)`, also
   * after a restart. The first settles it. The token cannot be guessed, and is all that it takes: give it to nobody else.
   * @throws {@link TimeoutError} from the promise when `timeout` is over
   */
  awakeable<T = unknown>(options?: { timeout?: Duration }): { readonly token: string; readonly promise: Promise<T> };
  /** Waits until `predicate`, looked at after every delivery, is true. It must change nothing. */
  condition(predicate: () => boolean): Promise<void>;
  /** As above, but for a limited time. @returns `false` on timeout */
  condition(predicate: () => boolean, options: { timeout: Duration }): Promise<boolean>;
  /** Answers a query from now on. `fn` is synchronous and must change nothing. */
  onQuery<I, O>(query: Query<I, O>, fn: (input: I) => O): void;
  /**
   * Answers an update from now on. `validate` is synchronous, is called between turns and must change nothing; what it
   * throws rejects the update with {@link UpdateRejectedError} and leaves no record. `fn` may use `ctx` and may take as long
   * as it wants; what it returns or throws is the answer, recorded once. What it throws does not fail the run.
   *
   * Register handlers before the first `await`: an update that finds none is refused.
   */
  onUpdate<O, P>(
    update: Update<any, O, P>,
    fn: (input: P) => MaybePromise<O>,
    options?: { validate?: (input: P) => void },
  ): void;
  /**
   * Calls `fn` with each value of a signal, from now on, those that wait included. It may use `ctx`. What it throws, or its
   * promise rejects with, fails the run.
   */
  onSignal<T>(signal: Signal<any, T>, fn: (value: T) => MaybePromise<unknown>): void;
  /**
   * Starts a child workflow and waits for its result.
   * @throws {@link ChildWorkflowError} if it ends otherwise than completed
   */
  run<W extends AnyWorkflow>(workflow: W, ...args: InputThen<InputOf<W>, ChildOptions>): Promise<OutputOf<W>>;
  /**
   * Puts a task into its queue and waits for its end, however long that takes. Of a run that was enqueued it has `priority`,
   * `tenant` and `deadline`, where neither `options` nor the definition says. It is enqueued once, whatever crashes. Unless it
   * has a deadline of its own it is as urgent as the run's `timeout` asks for.
   * @throws {@link TaskError}, {@link CancelledError}, {@link QueueFullError}, {@link ReservationError}
   */
  run<T extends AnyTask>(task: T, ...args: InputThen<TaskInputOf<T>, AwaitedTaskOptions>): Promise<TaskOutputOf<T>>;
  /**
   * Puts a task into its queue. Resolves when it is accepted; it goes on when this run ends.
   * @throws {@link QueueFullError}, {@link ReservationError}, {@link BusyError}
   */
  enqueue<T extends AnyTask>(
    task: T,
    ...args: InputThen<TaskInputOf<T>, EnqueueOptions>
  ): Promise<TaskRef<TaskOutputOf<T>>>;
  /** Starts a child workflow. Resolves when it is recorded. */
  start<W extends AnyWorkflow>(
    workflow: W,
    ...args: InputThen<InputOf<W>, ChildOptions>
  ): Promise<ChildHandle<OutputOf<W>>>;
  /**
   * An object, by id; calls are recorded and run once, whatever crashes. An object that calls itself, also by others, waits
   * for ever. A call that is withdrawn goes on.
   * @throws from its methods what the handler throws; {@link BusyError} if 10,000 calls wait there, {@link RunNotFoundError}
   *   if the object is deleted before it answers
   */
  object<D extends AnyObject>(object: D, id: string): ObjectClient<D, []>;
  /** Another workflow, by id. Does not check that it exists. */
  handle<W extends AnyWorkflow>(workflow: W, id: string, options?: { runId?: string }): ChildHandle<OutputOf<W>>;
  /** Milliseconds since 1970 at the last delivery. The same in replay, and constant between two awaits. */
  now(): number;
  /** A number in [0, 1), the same in replay. @param name draws from a sequence of its own */
  random(name?: string): number;
  /** A UUID, the same in replay. */
  uuid(): string;
  /**
   * Sets search attributes, those of its start as well: those that are not named stay, `null` takes one away. They are for
   * `engine.list` and no state of the run: its code cannot read them. The next run of `continueAsNew` has them too.
   * @throws `TypeError`, `RangeError` for what is no attribute
   */
  setAttributes(attributes: Attributes): void;
  /**
   * Guards a change of the code: `true` for runs that come to this place with the new code, `false` for those that have been
   * past it. The first answer holds for the whole run. `true` is recorded.
   *
   * @example `if (ctx.patched('tax')) await ctx.step('tax', …)`
   */
  patched(id: string): boolean;
  /** In place of `patched`, once no run without the patch is left: older code that still asks for it gets `true`. */
  deprecatePatch(id: string): void;
  /** Version of the code that this run was started with. */
  readonly version: number;
  /**
   * Runs `fn` as a group: what is asked for in it, and in what follows from it, is cancelled together. `scope.cancel()` does
   * so, or `timeout`, with a {@link TimeoutError}. `cancellable: false` shields it from a cancel of the run and of scopes
   * around it, for work that must end. Default `true`.
   *
   * It resolves or rejects with what `fn` does. Children that `ctx.run` and `ctx.start` started in a cancelled scope are asked
   * to end, unless `onParentClose` is `'abandon'`.
   */
  scope<T>(fn: (scope: Scope) => MaybePromise<T>, options?: { cancellable?: boolean; timeout?: Duration }): Promise<T>;
  /**
   * Ends this run and starts the next one under the same id, in one record, with keys of its own. Signals that nobody has
   * taken go with it, and so does whoever waits for the result; children are closed as `onParentClose` says, and updates
   * without an answer get none. Write `return ctx.continueAsNew(next)`.
   *
   * `version` and `timeout` are by default those of the definition.
   * @throws always: it does not return. Do not catch it.
   */
  continueAsNew(...args: InputThen<Input, { version?: number; timeout?: Duration }>): never;
  /** Aborts when the run is cancelled. */
  readonly signal: AbortSignal;
  /** Writes a line with the run's id. Silent in replay. */
  readonly log: Logger;
  /** About this run. */
  readonly info: RunInfo;
}

/** A group of operations of a workflow. */
export interface Scope {
  /** Aborts when the group is cancelled, or the run if the group is not shielded from that. */
  readonly signal: AbortSignal;
  /** Cancels what was asked for in it: what waits throws {@link CancelledError}, and so does what is asked for later. */
  cancel(reason?: unknown): void;
}

/** Another workflow, seen from a workflow: a child, or one known by its id. */
export interface ChildHandle<Output> {
  /** Tells it from a task's. */
  readonly kind: 'workflow';
  /** Id of the run. */
  readonly id: string;
  /** Waits for its end. @throws {@link ChildWorkflowError}, {@link RunNotFoundError} */
  result(): Promise<Output>;
  /** Sends a signal. Resolves when it is recorded. */
  signal<T>(signal: Signal<T, any>, ...args: undefined extends T ? [value?: T] : [value: T]): Promise<void>;
  /** Asks the run to end. Resolves when the request is recorded. */
  cancel(reason?: string): Promise<void>;
}

/** Options of a task that a workflow waits for. */
export interface AwaitedTaskOptions extends EnqueueOptions {
  /** What happens to the task when the run ends first, or gives it up. Default `'cancel'`. */
  onParentClose?: 'cancel' | 'abandon';
}

/** A task, seen from the workflow that enqueued it. */
export interface TaskRef<Output = unknown> {
  /** Tells it from a workflow's. */
  readonly kind: 'task';
  /** Id of the task. */
  readonly id: string;
  /** The key that it was enqueued with. */
  readonly key: string | undefined;
  /** `true` if the key was taken and this is the task that was there. */
  readonly duplicate: boolean;
  /** Waits for its end. @throws {@link TaskError}, {@link CancelledError}, {@link RunNotFoundError} if it is not remembered */
  result(): Promise<Output>;
  /** Ends the task at once. Resolves when the request is recorded. */
  cancel(reason?: string): Promise<void>;
}

/** What a task's function gets as `ctx`. */
export interface TaskContext {
  /** The same for all attempts, over crashes, and no other task's: give it to the service you call. */
  readonly idempotencyKey: string;
  /** Number of this attempt, from 1; those that did not count are counted here. */
  readonly attempt: number;
  /** Aborts on timeout, cancellation and shutdown. `signal.reason` says which. */
  readonly signal: AbortSignal;
  /** Says that the attempt is alive. Never blocks. @param details seen by the next attempt, unless the process ends */
  heartbeat(details?: unknown): void;
  /** What the last heartbeat of an earlier attempt said, `undefined` if there was none. */
  readonly lastHeartbeat: unknown;
  /** Says how far the attempt is; seen in `describe()`. Not durable, newest wins. */
  progress(value: unknown): void;
  /** Writes a line with the task's id and attempt. */
  readonly log: Logger;
  /**
   * The tasks in `after` and then the runs, in that order, with what they ended with; tasks as far as they are remembered.
   */
  readonly parents: readonly ParentResult[];
  /** About the task. */
  readonly info: TaskInfo;
  /**
   * Ends this attempt and asks for another one later, without counting it. Write `return ctx.postpone('5m')`.
   * @throws always: it does not return
   */
  postpone(until: Duration | Date): never;
}

/** About a task. */
export interface TaskInfo {
  /** Id of the task. */
  readonly id: string;
  /** The definition's name. */
  readonly type: string;
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  /** As given to `enqueue`. */
  readonly tags: { readonly [name: string]: string };
}

/** How a task or run in `after` ended. */
export interface ParentResult {
  /** Its id. */
  readonly id: string;
  /** Name of its definition. */
  readonly type: string;
  /** How it ended. */
  readonly status: TaskStatus | EndStatus;
  /** When it completed. */
  readonly result?: unknown;
  /** When it did not. */
  readonly error?: unknown;
}

// ───────────────────────────── Handles ─────────────────────────────

/** How a run ended. */
export type EndStatus =
  'completed' | 'failed' | 'cancelled' | 'terminated' | 'timedOut' | 'continuedAsNew' | NeverStarted;

/**
 * How a run ended that was to start through a queue and never did: what it waited for cannot be any more, its reserved start
 * went by, its time was over, or it gave way when its queue was full.
 */
export type NeverStarted = 'skipped' | 'missed' | 'expired' | 'shed';

/** Status of a run. `queued`: it starts when its queue lets it. `paused` and `stuck` are marks beside it. */
export type RunStatus = 'queued' | 'running' | EndStatus;

/** Options of calls that wait. */
export interface ResultOptions {
  /** Longest wait; then {@link TimeoutError}. The run goes on. Default: none. */
  timeout?: Duration;
  /** Stops the waiting with its reason. The run goes on. */
  signal?: AbortSignal;
}

/** Options of calls that are recorded with who asked. */
export interface AuditOptions {
  /** Who asked. Default: nobody. */
  actor?: string;
}

/** Options of `handle.signal`. */
export interface SignalOptions extends AuditOptions {
  /** A second signal to the same run with the same id is dropped. */
  dedupeId?: string;
}

/** Options of `handle.update`. `timeout` and `signal` end the waiting: the update goes on. */
export interface UpdateOptions extends AuditOptions, ResultOptions {
  /**
   * Names the update: a second one of the same id gets the first one's answer, over restarts, as long as the run's history
   * is kept. Default: a random one.
   */
  id?: string;
}

/** Options of {@link WorkflowHandle.fork}. */
export interface ForkOptions extends AuditOptions {
  /** The first step that is not taken over: its name (its first call), or the `seq` of an operation in the history. */
  toStep: string | number;
  /** Id of the new run. Default: a random one. */
  id?: string;
  /** Version of the code. Default: the run's. */
  version?: number;
}

/** Options of {@link WorkflowHandle.reset}. */
export interface ResetOptions extends AuditOptions {
  /** The first step that is not taken over: its name (its first call), or the `seq` of an operation in the history. */
  toStep: string | number;
  /** Signals that came after it come again. Default `true`. */
  reapplySignals?: boolean;
  /** Version of the code. Default: the run's. */
  version?: number;
  /** Steps from there on get other idempotency keys than in the first run. Default `false`. */
  freshKeys?: boolean;
}

/** Options of {@link WorkflowHandle.retry}. */
export interface RetryRunOptions extends AuditOptions {
  /** Version of the code. Default: the run's. */
  version?: number;
}

/**
 * A workflow. A handle is no promise: await `result()`. One that `start` gave, or that was made with a `runId`, stays with
 * its run and those that continue it (`describe` and `history` are of that one run); one from `engine.handle` without
 * `runId` means the latest run of the id. Calls reject with {@link RunNotFoundError} when there
 * is no such run. All `Promise<void>` resolve when the request is durable.
 */
export interface WorkflowHandle<Output = unknown> {
  /** Tells it from other things. */
  readonly kind: 'workflow';
  /** Id of the run. */
  readonly id: string;
  /** The run that was started, or that the handle is pinned to. */
  readonly runId: string | undefined;
  /**
   * Waits for the end. Of a stuck run it goes on waiting. Resolved means that the result is durable.
   * @throws {@link WorkflowFailedError}, {@link CancelledError}, {@link TerminatedError}, {@link TimeoutError},
   *   {@link ClosedError} if the engine closes first
   */
  result(options?: ResultOptions): Promise<Output>;
  /** Sends a signal. Resolved: durable, and will be delivered. @throws {@link RunNotFoundError} after its end */
  signal<T>(signal: Signal<T, any>, ...args: InputThen<T, SignalOptions>): Promise<void>;
  /**
   * Asks a query. The answer rests on durable records only. A run that has ended answers as well, as long as its history is
   * kept: its code replays for it, without effects.
   * @throws what the handler throws; {@link RunNotFoundError} if the run is stuck, or its code does not fit its records
   */
  query<I, O>(query: Query<I, O>, ...args: InputThen<I, ResultOptions>): Promise<O>;
  /**
   * Asks the run to do something and waits for the answer. Resolved: both are durable.
   * @throws what the handler throws; {@link UpdateRejectedError} if its validator refuses it; `TypeError` if there is no
   *   handler; {@link RunNotFoundError} if the run ends, or is stuck, before it answers; {@link BusyError}
   */
  update<I, O>(update: Update<I, O, any>, ...args: InputThen<I, UpdateOptions>): Promise<O>;
  /** Asks the run to end: `signal` aborts. No-op after its end. */
  cancel(reason?: string, options?: AuditOptions): Promise<void>;
  /** Ends the run at once: no code of it runs again. No-op after its end. */
  terminate(reason?: string, options?: AuditOptions): Promise<void>;
  /**
   * Nothing of its code goes on until `resume`, also over restarts: what comes for it is recorded and waits, timers that fall due
   * fire then. Running attempts end and count no more; after `resume` their steps are tried again. Queries are refused meanwhile.
   * `cancel` waits, `terminate` and the timeout of the run do not.
   */
  pause(options?: AuditOptions): Promise<void>;
  /** Ends a pause; tries a stuck run again. */
  resume(options?: AuditOptions): Promise<void>;
  /**
   * Has its sleeps (`ctx.sleep`, `ctx.sleepUntil`) end now, before their time; time limits of waits and scopes and the times
   * between attempts stay. Resolved: that is durable. No-op if it does not sleep; a paused run notices when it is resumed.
   * @throws {@link RunNotFoundError} if it has ended
   */
  wake(options?: AuditOptions): Promise<void>;
  /**
   * The id goes on as a new run, which begins with the records before a step; a run that has not ended ends as `terminated`.
   * Idempotency keys, awakeables' tokens and chance stay, unless `freshKeys`. Open children, tasks and timers from before the
   * step go on; what the step or anything after it opened is cancelled (children by `onParentClose`). Whoever waits for the
   * result waits for that of the new run. Its time limit begins anew. Resolved: that is durable.
   * @returns a handle of the new run. Handles of a run that had ended stay with that one
   * @throws {@link RunNotFoundError} if there is no such run, or its history is not kept any more; `TypeError` if it has not
   *   come to the step, or what comes before it is larger than `payloadBytesMax`
   */
  reset(options: ResetOptions): Promise<WorkflowHandle<Output>>;
  /**
   * Starts another run under another id with the records before a step; this one goes on. Steps from there on have keys of their
   * own. It waits for the children that this one waits for without owning them; tasks without a result are enqueued again.
   * @throws as `reset`, and {@link WorkflowAlreadyStartedError} if the id has been used
   */
  fork(options: ForkOptions): Promise<WorkflowHandle<Output>>;
  /**
   * A run that has failed goes on, as a new run under its id, from the step, child or task whose error it failed with; if it was an
   * error of its own code, from where it was: mend the code first. Idempotency keys stay.
   * @throws as `reset`; `TypeError` if it has not failed, or has compensated steps
   */
  retry(options?: RetryRunOptions): Promise<WorkflowHandle<Output>>;
  /** What is known about the run. */
  describe(): Promise<RunRow>;
  /** The records of the run, in order, up to the last durable one. */
  history(): AsyncIterableIterator<HistoryRecord>;
  /**
   * The records of the run, up to the last durable one, as the bytes of a file (`.fjnl`): for `replay` and `check` of
   * `fusee/testing`, and for `fusee check`. Everything in it is as it was recorded, inputs and results too.
   * @throws {@link RunNotFoundError} if there is no such run, or its records are not kept any more
   */
  export(options?: ExportOptions): Promise<Uint8Array>;
}

/** Options of `export`. */
export interface ExportOptions {
  /**
   * The first step that is left out, with everything that was recorded after it: its name (its first call), or its number
   * in the history. Default: none.
   */
  toStep?: string | number;
}

/** Where a task is, or how it ended. */
export type TaskStatus = 'blocked' | 'scheduled' | 'queued' | 'running' | 'retrying' | 'completed' | TaskFailureStatus;

/** How a task ended that did not complete. */
export type TaskFailureStatus = 'failed' | 'dead' | 'cancelled' | 'skipped' | 'missed' | 'expired' | 'shed';

/** One attempt that another one followed. */
export interface AttemptRecord {
  /** From 1. */
  readonly attempt: number;
  /** When its function was called. */
  readonly startedAt: Date;
  /** When its outcome was known. */
  readonly endedAt: Date;
  /** `lost`: its process ended. `drained`: an orderly close cut it. `silent`: it gave no heartbeat. */
  readonly outcome: 'failed' | 'timedOut' | 'silent' | 'lost' | 'drained' | 'postponed';
  /** What it threw. */
  readonly error: unknown;
}

/** A task in a list. */
export interface TaskRow {
  /** Tells it from a workflow. */
  readonly kind: 'task';
  /** Its id. */
  readonly id: string;
  /** The definition's name. */
  readonly type: string;
  /** Its queue. */
  readonly queue: string;
  /** Its class of priority now. */
  readonly priority: 'critical' | 'high' | 'normal' | 'low';
  /** Where it is, or how it ended. */
  readonly status: TaskStatus;
  /** Attempts begun. */
  readonly attempts: number;
  /** When it was enqueued. */
  readonly createdAt: Date;
  /** When the attempt that runs began. */
  readonly startedAt: Date | undefined;
  /** When it ended. */
  readonly endedAt: Date | undefined;
  /** The key that it was enqueued with. */
  readonly key: string | undefined;
  /** Whose work it is. */
  readonly tenant: string | undefined;
  /** Free notes. */
  readonly tags: { readonly [name: string]: string };
  /** What `ctx.progress` said last, while it has not ended. */
  readonly progress: unknown;
  /** Attempts that others followed, the newest 16. */
  readonly history: readonly AttemptRecord[];
  /** What it threw last, when it did not complete. */
  readonly error: unknown;
}

/** A task. A handle is no promise: await `result()`. Calls reject with {@link RunNotFoundError} if it is not remembered. */
export interface TaskHandle<Output = unknown> {
  /** Tells it from a workflow's. */
  readonly kind: 'task';
  /** Id of the task, or the key that the handle was asked for by. */
  readonly id: string;
  /** The key that it was enqueued with. */
  readonly key: string | undefined;
  /** `true` if the key was taken and this is the task that was there. */
  readonly duplicate: boolean;
  /**
   * Waits for the end. Resolved means that the result is durable.
   * @throws {@link TaskError}, {@link CancelledError}, {@link TimeoutError}, {@link ClosedError} if the engine closes first
   */
  result(options?: ResultOptions): Promise<Output>;
  /** What is known about the task, as durable now. */
  describe(): Promise<TaskRow>;
  /** Ends the task at once, durably; a running attempt is aborted. No-op after its end. */
  cancel(reason?: string): Promise<void>;
  /** Starts a task that ended otherwise than completed again, with fresh attempts. @returns `false`: it is no such one */
  retry(): Promise<boolean>;
  /** Changes its priority. @returns `false`: it has ended */
  reprioritize(priority: Priority): Promise<boolean>;
}

/** Which tasks: all conditions must hold. */
export interface TaskFilter {
  /** Definitions, or their names. */
  type?: string | AnyTask | readonly (string | AnyTask)[];
  /** One of these. */
  status?: TaskStatus | readonly TaskStatus[];
  /** In this queue. */
  queue?: string;
  /** Of this tenant. */
  tenant?: string;
  /** Keys that begin so. */
  keyPrefix?: string;
  /** All of these. */
  tags?: { readonly [name: string]: string };
}

/** A queue's figures. Counts are now; those from `dispatched` on are over the last minute. Times in milliseconds. */
export interface QueueStats {
  /** Someone paused it. */
  readonly paused: boolean;
  /** Attempts at the same time. */
  readonly concurrency: number;
  /** Attempts that run. */
  readonly running: number;
  /** Accepted, not running, not ended. */
  readonly pending: number;
  /** Among them, those that could run. */
  readonly ready: number;
  /** Among them, those that wait for another attempt. */
  readonly retrying: number;
  /** Attempts that began. */
  readonly dispatched: number;
  /** Tasks that completed. */
  readonly completed: number;
  /** Attempts that did not complete. */
  readonly failedAttempts: number;
  /** Attempts that another one followed. */
  readonly retried: number;
  /** Part of the concurrency in use, 0 to 1. */
  readonly utilisation: number;
  /** From when a task could run to its first attempt. */
  readonly waitMean: number;
  /** Half waited no longer. */
  readonly waitP50: number;
  /** All but one of a hundred waited no longer. */
  readonly waitP99: number;
  /** Half of those that completed ran no longer. */
  readonly runP50: number;
  /** All but one of a hundred ran no longer. */
  readonly runP99: number;
}

/** One queue. Changes are durable when their promise resolves, and stay over restarts until the next change. */
export interface QueueControl {
  /** Its name. */
  readonly name: string;
  /** Starts nothing more until `resume`; what runs goes on. */
  pause(): Promise<void>;
  /** Undoes `pause`. */
  resume(): Promise<void>;
  /**
   * Changes how many attempts run at the same time, or, of a queue that follows its load, the bounds between which it does;
   * what runs goes on. `0`: none.
   * @throws FuseeError if it is given a number for a queue that follows its load, or bounds for another one
   */
  setConcurrency(concurrency: number | { readonly min: number; readonly max: number }): Promise<void>;
  /**
   * Says how many slots there are, where a {@link Scaler} provides them. At once, and not kept over a restart.
   * @throws TypeError if its slots come from its options
   */
  reportCapacity(capacity: number): void;
  /** Its figures. */
  stats(): Promise<QueueStats>;
}

/** A schedule in a list. */
export interface ScheduleRow {
  /** Its name. */
  readonly name: string;
  /** The name of the definition of its task or workflow. */
  readonly run: string;
  /** Which of them it is. */
  readonly kind: 'task' | 'workflow';
  /** Where its tasks or runs go. */
  readonly queue: string;
  /** Whether it is from the option `schedules`. */
  readonly declared: boolean;
  /** Its times make nothing. */
  readonly paused: boolean;
  /** Its next time. `undefined`: it is paused, or has none. */
  readonly nextAt: Date | undefined;
  /** The newest time that made a task or a run. */
  readonly lastAt: Date | undefined;
  /** Id of that. */
  readonly lastId: string | undefined;
  /** Times that made one. */
  readonly fires: number;
  /** Its tasks or runs that have not ended, triggered and backfilled ones as well. */
  readonly active: number;
  /** The expression. */
  readonly cron: string | undefined;
  /** Of the expression. */
  readonly timezone: string | undefined;
  /** In milliseconds. */
  readonly every: number | undefined;
  /** See {@link ScheduleSpec}. */
  readonly overlap: 'skip' | 'allow' | 'queue' | 'queueAll' | 'queueOnSuccess' | 'cancelOther';
  /** See {@link ScheduleSpec}. */
  readonly catchUp: 'none' | 'last' | number;
  /** Why what is stored says no times in this release. `undefined`: it does. */
  readonly broken: string | undefined;
}

/**
 * Schedules. Changes are durable when their promise resolves. Calls that name one that is not there reject with
 * {@link RunNotFoundError}.
 */
export interface ScheduleControl {
  /**
   * Makes a schedule, or changes it: a plan that is the same goes on where it was, another one begins now. What was made is
   * not made again, and a paused one stays paused.
   * @throws `TypeError` with the place of what is wrong in the expression
   */
  upsert<T extends AnyTask | AnyWorkflow>(name: string, spec: ScheduleSpec<T>): Promise<void>;
  /** Ends a schedule; the tasks and runs that it made go on. @returns `false`: there was none */
  remove(name: string): Promise<boolean>;
  /** Its times make nothing until `resume`, also over restarts. */
  pause(name: string): Promise<void>;
  /** Goes on with the next time; `catchUp` decides about those in between. */
  resume(name: string): Promise<void>;
  /**
   * Makes its task or its run now, beside the plan, also of a paused one.
   * @throws {@link WorkflowAlreadyStartedError} if a run has the id that the new one would have
   */
  trigger(name: string): Promise<TaskHandle | WorkflowHandle>;
  /** All schedules, by name. */
  list(): Promise<ScheduleRow[]>;
  /** One schedule. */
  describe(name: string): Promise<ScheduleRow>;
  /** The next times of a schedule, as if it were not paused, or of a plan. Default 10. */
  preview(of: string | ScheduleTiming, count?: number): Promise<Date[]>;
  /**
   * Makes the tasks or runs of the times in between, both included, that have passed: all or none, 1,000 at most. Those
   * that are still remembered are left out. Unless `overlap` allows it they run one after the other.
   */
  backfill(name: string, range: { from: Time; to: Time }): Promise<(TaskHandle | WorkflowHandle)[]>;
}

/** Why a task is not running. `queue`: so many go before it; `limit`: `short` units are missing. */
export type TaskExplanation =
  | { readonly reason: 'running' | 'notRegistered' | 'labels' | 'queueGone' | 'draining' }
  | { readonly reason: 'ended'; readonly status: TaskStatus }
  | { readonly reason: 'timer' | 'retry'; readonly until: Date }
  | { readonly reason: 'blocked'; readonly by: readonly string[] }
  | { readonly reason: 'queue'; readonly queue: string; readonly behind: number; readonly queuePaused: boolean }
  | { readonly reason: 'limit'; readonly limit: string; readonly key: string | undefined; readonly short: number };

/** What a record of a run says. */
export type HistoryKind =
  | 'started'
  | 'stepCompleted'
  | 'stepFailed'
  | 'stepAttemptFailed'
  | 'stepStarted'
  | 'stepHeartbeat'
  | 'timerSet'
  | 'timerFired'
  | 'waitSet'
  | 'conditionSet'
  | 'signalReceived'
  | 'signalSent'
  | 'childStarted'
  | 'childEnded'
  | 'cancelSent'
  | 'cancelRequested'
  | 'watchSet'
  | 'watched'
  | 'taskEnqueued'
  | 'updateAccepted'
  | 'updateCompleted'
  | 'updateFailed'
  | 'patched'
  | 'attributesSet'
  | 'branched'
  | 'paused'
  | 'resumed'
  | 'ended';

/** One record of a run. */
export interface HistoryRecord {
  /** Its number in the log; rises over all runs. */
  readonly lsn: string;
  /** When it was recorded, where that is kept. */
  readonly time: Date | undefined;
  /** What happened. */
  readonly kind: HistoryKind;
  /** Number of the operation in the run. */
  readonly seq: number | undefined;
  /** Name of the step, signal, child … */
  readonly name: string | undefined;
  /** Number of the attempt. */
  readonly attempt: number | undefined;
  /** Result, input or error. */
  readonly value: unknown;
}

/** A run in a list. */
export interface RunRow {
  /** Tells it from other things. */
  readonly kind: 'workflow';
  /** The caller's name of the run. */
  readonly id: string;
  /** This one execution under that name. */
  readonly runId: string;
  /** The definition's name. */
  readonly type: string;
  /** Version of the code that it was started with. */
  readonly version: number;
  /** Where it is, or how it ended. */
  readonly status: RunStatus;
  /** It was paused, or a step of it waits for someone to resume it. */
  readonly paused: boolean;
  /** Its code asks for something else than was recorded, or broke a rule; see `explain`. */
  readonly stuck: boolean;
  /** When it was started, or enqueued. */
  readonly createdAt: Date;
  /** When its function was first called, at the earliest. `undefined`: it is queued, or ended so. */
  readonly startedAt: Date | undefined;
  /** When it ended. */
  readonly endedAt: Date | undefined;
  /** The run that started it. */
  readonly parent: { readonly id: string; readonly runId: string } | undefined;
  /** Search attributes. */
  readonly attributes: { readonly [name: string]: AttributeValue };
}

/** Which runs: all conditions must hold. */
export interface RunFilter {
  /** Definitions, or their names. */
  type?: string | AnyWorkflow | readonly (string | AnyWorkflow)[];
  /** One of these. */
  status?: RunStatus | readonly RunStatus[];
  /** With or without this mark. */
  paused?: boolean;
  /** With or without this mark. */
  stuck?: boolean;
  /** Ids that begin so. */
  idPrefix?: string;
  /** Started at this time or later. */
  startedAfter?: Time;
  /** Started before this time. */
  startedBefore?: Time;
  /** What search attributes are: all of these. A value of another kind than what it is compared with does not fulfil it. */
  attributes?: { readonly [name: string]: AttributeFilter };
  /** All of these hold as well. */
  and?: readonly RunFilter[];
  /** One of these holds as well, at least. */
  or?: readonly RunFilter[];
  /** This does not hold. */
  not?: RunFilter;
}

/** Value of a search attribute. */
export type AttributeValue = string | number | bigint | boolean | Date | readonly string[];

/**
 * Search attributes of a run. `null` takes one away. Up to 64 of a run, 8,192 bytes together; names have 64 bytes, texts 1,024,
 * both without control characters; lists 64 texts. They are readable on disk and in exported runs.
 */
export type Attributes = { readonly [name: string]: AttributeValue | null | undefined };

/** What an attribute is compared with; numbers with numbers, texts by their bytes. */
export type AttributeBound = string | number | bigint | boolean | Date;

/** What the value of an attribute is, or, of a list, one of its texts: this, or all of these. */
export type AttributeFilter =
  | AttributeBound
  | {
      /** Above it. */
      readonly gt?: AttributeBound;
      /** Above it, or equal. */
      readonly gte?: AttributeBound;
      /** Below it. */
      readonly lt?: AttributeBound;
      /** Below it, or equal. */
      readonly lte?: AttributeBound;
      /** A text that begins so. */
      readonly prefix?: string;
      /** Whether there is one. */
      readonly exists?: boolean;
    };

/** Options of `list`. */
export interface ListOptions extends RunFilter {
  /** By start. Default `'newestFirst'`. */
  order?: 'newestFirst' | 'oldestFirst';
  /** Stops after so many. Default: none. */
  limit?: number;
}

/** Options of `listPage`. */
export interface PageOptions extends ListOptions {
  /** Runs of the page. Default 100, at most 10,000. */
  limit?: number;
  /** Where the page before it ended. It belongs to the filter and the order that it was given for. */
  cursor?: string | undefined;
}

/** Some runs of a list. */
export interface RunPage {
  /** In the order of the list. */
  readonly runs: readonly RunRow[];
  /** Where the list goes on. `undefined`: it ends here. */
  readonly cursor: string | undefined;
}

// ───────────────────────────── Engine ─────────────────────────────

/** When a schedule fires. */
export interface ScheduleTiming {
  /**
   * Five fields (minute, hour, day of month, month, day of week), or six with the second first; `@daily` and its like.
   * Either this or `every`.
   */
  cron?: string;
  /** Fixed distance, counted from `start`, else from 1970. Either this or `cron`. */
  every?: Duration;
  /** Time zone of `cron`, as IANA names it. Default `'UTC'`. */
  timezone?: string;
  /** No time before this one. Default: from when the schedule is made. */
  start?: Time;
  /** No time after this one. Default: without end. */
  end?: Time;
  /** So many times in all. Default: without end. */
  limit?: number;
}

/** Options of what a schedule makes. `deadline` and `expires` count from its time. */
type ScheduledOptions<Options> = Omit<
  Options,
  'key' | 'dedupe' | 'delay' | 'runAt' | 'reserve' | 'after' | 'deadline' | 'expires'
> & {
  deadline?: Duration;
  expires?: Duration;
};

/** Options of each task of a schedule. */
export type ScheduledTaskOptions = ScheduledOptions<EnqueueOptions>;

/** Options of each run of a schedule. */
export type ScheduledRunOptions = ScheduledOptions<
  Omit<EnqueueWorkflowOptions, 'id' | 'idReusePolicy' | 'idConflictPolicy' | 'attributes' | 'actor'>
> & {
  /** What its id is made of: a text with `{time}`, which becomes the time in UTC. Default `'name@{time}'`. */
  id?: string;
};

/**
 * A schedule: when, what, and with which input. The task of a time has the key `name@time`, the time in UTC, and a run has
 * that as its id.
 */
export type ScheduleSpec<T extends AnyTask | AnyWorkflow = AnyTask | AnyWorkflow> = ScheduleTiming & {
  /** What runs: one of the option `tasks`; or one of the workflows, which then start as with `engine.enqueue`. */
  run: T;
  /** Options of each task or run. */
  options?: T extends AnyTask ? ScheduledTaskOptions : ScheduledRunOptions;
  /** Each task is late by a part of this that follows from the name and the time. Default 0. */
  jitter?: Duration;
  /**
   * The one before has not ended: `skip` this time; `allow` both; `queue` one, and a later one takes its place; `queueAll`
   * (100 at most); `queueOnSuccess`, which waits and is skipped if the one before does not complete; `cancelOther`.
   * Default `'skip'`.
   */
  overlap?: 'skip' | 'allow' | 'queue' | 'queueAll' | 'queueOnSuccess' | 'cancelOther';
  /** Times that passed more than 10 s ago, while it could not run: none is made up for, the last, or the last n. Default `'last'`. */
  catchUp?: 'none' | 'last' | number;
  /** Pauses itself when a task of it ends `failed` or `dead`, or a run `failed` or `timedOut`. Default `false`. */
  pauseOnFailure?: boolean;
} & InputField<T extends AnyTask ? TaskInputOf<T> : T extends AnyWorkflow ? InputOf<T> : never>;

/** What a recorded value is to its run, or its task. */
export type PayloadKind =
  | 'input'
  | 'result'
  | 'step'
  | 'heartbeat'
  | 'signal'
  | 'update'
  | 'updateAnswer'
  | 'call'
  | 'callAnswer'
  | 'state'
  | 'task'
  | 'taskResult'
  | 'taskProgress';

/** Where a recorded value belongs. */
export interface PayloadPlace {
  /** What it is. A value that completes an awakeable is a signal. */
  readonly kind: PayloadKind;
  /** Id of the run; of an object `object:name:id`. Empty: it is of a task, or the input of runs that a schedule starts. */
  readonly id: string;
  /** Of the step, the signal, the update, the handler or the task. Empty where whoever reads it may not know one. */
  readonly name: string;
  /**
   * The engine compares what is written here with what is recorded already: give the same bytes for the same ones, or a start
   * with the same input counts as one with another.
   */
  readonly isCompared?: boolean;
}

/**
 * Changes values on their way to the log: {@link compression}, {@link aes256gcm}, or your own. It is called synchronously, on
 * each thread that runs code, and must give back what it was given, byte by byte.
 */
export interface Codec {
  /** 1 to 64 letters, digits, `.`, `_` or `-`. It is recorded with each value that it has changed: keep it. */
  readonly name: string;
  /**
   * Called once a value. Returns the very array that it was given to leave a value as it is. What it throws rejects the call
   * that wrote the value.
   */
  encode(bytes: Uint8Array, place: PayloadPlace): Uint8Array;
  /** Undoes `encode`. What it throws becomes the cause of a {@link CodecError}; a field `keyId` of it is kept. */
  decode(bytes: Uint8Array, place: PayloadPlace): Uint8Array;
}

/** Options of {@link compression}. */
export interface CompressionOptions {
  /** Default `'deflate'`. `'zstd'` needs Node.js 22.15 or later. All that this Node.js knows can be read, whichever is written. */
  algorithm?: 'deflate' | 'brotli' | 'zstd';
  /** Smaller values are left as they are. Default 256. */
  minBytes?: number;
}

/**
 * Compresses values, where that makes them smaller. Put it before {@link aes256gcm}.
 * @throws `RangeError` if this Node.js does not know the algorithm
 */
export function compression(options?: CompressionOptions): Codec;

/** A key of {@link aes256gcm}. */
export interface EncryptionKey {
  /** Recorded with each value; readable. Never use one id for two keys. */
  readonly id: string;
  /** 32 bytes; as a text in base64 or 64 hexadecimal digits. */
  readonly key: Uint8Array | string;
}

/**
 * Encrypts with AES-256-GCM. The first key encrypts, every one decrypts: to change keys, put the new one before the others. A
 * value is bound to its place, so one that was copied to another run does not decrypt. Values written without it stay readable.
 * @throws `RangeError` if a key has not 32 bytes; `TypeError` if there is none, or two have one id
 */
export function aes256gcm(options: { readonly keys: readonly EncryptionKey[] }): Codec;

/** Options of {@link open}. */
export interface OpenOptions<
  Schedules extends { [name: string]: AnyTask | AnyWorkflow } = { [name: string]: AnyTask | AnyWorkflow },
> {
  /** Workflows that may run here. */
  workflows?: readonly AnyWorkflow[];
  /** Objects that may run here. */
  objects?: readonly AnyObject[];
  /** Tasks that may run here. Those of others wait, and hold up nobody. */
  tasks?: readonly AnyTask[];
  /** Queues by name. `'default'` always exists. */
  queues?: { readonly [name: string]: QueueSpec };
  /** Limits by name, shared by all queues. */
  limits?: { readonly [name: string]: LimitSpec };
  /**
   * Schedules by name, all of them taken or none. Those that were declared before and are not named here are removed,
   * those that `upsert` made stay. What they run is among the options, or, with `workers`, among what their module exports;
   * the latter is known when the workers have loaded it, and an `open` that fails then has taken the others already.
   * Default: all stay as they are.
   */
  schedules?: { readonly [Name in keyof Schedules]: ScheduleSpec<Schedules[Name]> };
  /**
   * Threads that run the workflows of a module; this thread is then a client of them. Default: this thread runs
   * `workflows` and `objects`, which are not to be given together with it.
   */
  workers?: WorkerOptions;
  /**
   * Parts that a **new** directory is split into; an existing one keeps its own. Default 8, or one a worker if there
   * are more.
   */
  shards?: number;
  /** Where the log is written. Default `'auto'`: chosen from the cores; the environment's `FUSEE_FLUSH` wins. */
  flush?: 'auto' | 'inline' | 'pipeline' | 'background';
  /**
   * What changes values on their way to the log, in this order; back in the other one. Default: nothing. Values say by which
   * codecs they were written, so one can be added to a directory that has runs. One that is taken away, or a key, leaves runs
   * that need it stuck, with a {@link CodecError}; they go on when it is there again. Ids, names, errors and attributes are
   * never changed.
   */
  codec?: Codec | readonly Codec[];
  /** Largest recorded value in bytes, as codecs have left it. Default 4 MiB. */
  payloadBytesMax?: number;
  /**
   * Records of one run before it fails with {@link JournalLimitError}; at half of it there is a warning. Default 50,000.
   */
  journalRecordsMax?: number;
  /** The same in bytes. Default 50 MiB, 1 GiB at most. */
  journalBytesMax?: number;
  /** Runs that may be open at once; more starts are refused with {@link BusyError}. Default 1,000,000. */
  runsMax?: number;
  /** More checks, warnings with places in the code. Default: `NODE_ENV` is not `'production'`. */
  dev?: boolean;
  /** Where lines go. Default: the console. */
  logger?: Logger;
}

/** Threads that run the code of workflows and tasks: {@link OpenOptions.workers}. */
export interface WorkerOptions {
  /**
   * Number of threads, from 1, and not more than the directory has shards. `'auto'`: one a core, as far as there are
   * shards. Default `'auto'`.
   */
  count?: number | 'auto';
  /**
   * The module that each thread loads, as a URL or a path: ESM, CommonJS, or whatever the loader of this thread takes.
   * Every exported workflow and task runs there. It must export the same in each thread.
   */
  module: URL | string;
  /** What these threads have that others have not: tasks that ask for it by `labels` run on such threads only. */
  labels?: { readonly [name: string]: string };
  /** What the module finds as `workerData` of `node:worker_threads`. */
  workerData?: unknown;
  /** Options of Node.js for the threads. Default: those of this process. */
  execArgv?: readonly string[];
  /** Bounds of the memory of each thread, as `node:worker_threads` has them. */
  resourceLimits?: {
    readonly maxYoungGenerationSizeMb?: number;
    readonly maxOldGenerationSizeMb?: number;
    readonly codeRangeSizeMb?: number;
    readonly stackSizeMb?: number;
  };
  /** A worker is blocked when its thread has been busy with one piece of code for so long. Default 1 s. */
  blockedAfter?: Duration;
  /**
   * What becomes of a blocked worker: `'report'` tells of it (`workerBlocked`, {@link Engine.health}); `'replace'` also
   * ends its thread and has another take over. Attempts that ran there are lost and run again. Default `'report'`.
   */
  onBlocked?: 'report' | 'replace';
}

/**
 * The engine of the worker that this runs in, for code in the functions of steps. It is closed by the thread that
 * opened it.
 *
 * @throws `TypeError` outside of the workers of an engine
 */
export function workerEngine(): Engine;

/**
 * Opens a directory, or `':memory:'`, and resumes what was under way. Says in one line what it resumed, what is stuck
 * and what has no definition here. One process at a time.
 *
 * @throws {@link DirectoryLockedError} if another process has it; {@link LogCorruptError} if acknowledged records are
 *   damaged; {@link StorageError}; `TypeError` on what cannot be meant, on workers that have different code, and when
 *   called inside one of its own workers (guard with `isMainThread`); what the module of the workers throws
 */
export function open<Schedules extends { [name: string]: AnyTask | AnyWorkflow } = {}>(
  directory: string,
  options?: OpenOptions<Schedules>,
): Promise<Engine>;
/** The same with the directory among the options. */
export function open<Schedules extends { [name: string]: AnyTask | AnyWorkflow } = {}>(
  options: OpenOptions<Schedules> & { dir: string },
): Promise<Engine>;

/** An operation of a workflow. */
export interface StuckOperation {
  /** What it is. */
  readonly kind: 'step' | 'sleep' | 'waitFor' | 'condition' | 'child' | 'signal' | 'cancel' | 'result';
  /**
   * Its name: of the step, or of the signal that is waited for; type and id of a child; name and receiver of a signal
   * that is sent; id of the other workflow. `undefined` for a sleep and a condition.
   */
  readonly name: string | undefined;
}

/** Where the code of a stuck run and its records part. */
export interface StuckReport {
  /** All of it in a sentence. */
  readonly message: string;
  /** Number of the operation, from 1, as in the history; of code that broke a rule, of the last one that it asked for. */
  readonly seq: number;
  /** What is recorded there. `undefined`: nothing. */
  readonly recorded: StuckOperation | undefined;
  /** What the code asked for. `undefined`: nothing; it ended, waits, or broke a rule. */
  readonly asked: StuckOperation | undefined;
  /**
   * `file:line:column` of the code's last use of `ctx`, that which was out of turn included. Known in development
   * (`dev: true`), and for calls out of turn. Where the code was when it recorded the operation is in no record.
   */
  readonly place: string | undefined;
  /** Of a replay: the record at which code and records part, if there is one. */
  readonly recordedAt?: RecordPlace | undefined;
}

/** Where a record is. */
export interface RecordPlace {
  /** Its place among the records of the run, from 1. */
  readonly record: number;
  /** Its number in the log. */
  readonly lsn: string;
}

/** Why a run is not running. `paused` without a step: by `handle.pause()`. `outside`: it awaits something that does not come from `ctx`. */
export type Explanation =
  | { readonly reason: 'running' | 'starting' | 'notRegistered' | 'outside' }
  /** It waits in a queue: there, for others, at a limit, for a queue that is defined, or for the next open. */
  | { readonly reason: 'queue'; readonly queue: string; readonly behind: number; readonly queuePaused: boolean }
  | { readonly reason: 'blocked'; readonly by: readonly string[] }
  | { readonly reason: 'limit'; readonly limit: string; readonly key: string | undefined; readonly short: number }
  | { readonly reason: 'queueGone' | 'draining' }
  | { readonly reason: 'ended'; readonly status: EndStatus }
  | { readonly reason: 'timer'; readonly until: Date }
  | { readonly reason: 'retry'; readonly until: Date; readonly step: string }
  | { readonly reason: 'step'; readonly step: string }
  | { readonly reason: 'paused'; readonly step: string | undefined }
  | { readonly reason: 'waiting'; readonly for: string }
  | ({ readonly reason: 'stuck' } & StuckReport);

interface RunEventBase {
  /** When it was told. */
  readonly time: Date;
  /** The caller's name of the run. */
  readonly id: string;
  /** This one execution under that name. */
  readonly runId: string;
  /** Kind of the definition. */
  readonly kind: 'workflow';
  /** Name of the definition. */
  readonly definition: string;
}

type RunEvent<Type extends string, More = {}> = Readonly<{ type: Type } & More> & RunEventBase;

/** States of objects, read and changed from outside. A change waits for the calls before it, like a call. */
export interface ObjectControl {
  /** The recorded state, and how often it was changed; `undefined`: the object does not exist. */
  get<D extends AnyObject>(
    object: D,
    id: string,
  ): Promise<{ readonly state: StateOf<D>; readonly version: number } | undefined>;
  /**
   * Puts another state in its place. **Resolved: durable.**
   * @returns the version that it has now
   * @throws {@link UpdateRejectedError} if `version` is given and the object has another one
   */
  set<D extends AnyObject>(object: D, id: string, state: StateOf<D>, options?: EditOptions): Promise<number>;
  /** Changes it by a JSON Patch (RFC 6902), all of it or nothing. Else as `set`. */
  patch<D extends AnyObject>(object: D, id: string, patch: JsonPatch, options?: EditOptions): Promise<number>;
  /** Makes it what it is at first. Else as `set`. */
  clear<D extends AnyObject>(object: D, id: string, options?: EditOptions): Promise<number>;
  /**
   * Deletes an object at once: a handler that runs goes on no more, calls that wait are rejected with
   * {@link RunNotFoundError}. The next call begins a new one. **Resolved: durable.**
   * @returns whether there was one
   */
  delete<D extends AnyObject>(object: D, id: string, options?: AuditOptions): Promise<boolean>;
}

/** Options of a change of an object's state. */
export interface EditOptions extends AuditOptions {
  /** The version that is meant; 0: it was never changed. Default: any. */
  version?: number;
  /** Names the change: a second one of the same id is the first one again, as with calls. */
  id?: string;
}

/** A JSON Patch, RFC 6902. Paths are `''` or `/` before each name, with `~1` for `/` and `~0` for `~`. */
export type JsonPatch = readonly (
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string }
  | { readonly op: 'move' | 'copy'; readonly path: string; readonly from: string }
)[];

/** What listeners get, by name of the event. Each is given when it is durable. */
export interface EngineEvents {
  /** Ended well. */
  /** `unreadable`: why the result could not be read here; it is `undefined` then. */
  completed: RunEvent<'completed', { result: unknown; unreadable?: CodecError }>;
  /** Ended with an error. */
  failed: RunEvent<'failed', { error: unknown }>;
  /** Ended after `cancel`. */
  cancelled: RunEvent<'cancelled', { reason: string | undefined }>;
  /** Ended by `terminate`. */
  terminated: RunEvent<'terminated', { reason: string | undefined }>;
  /** Ended by the timeout of the whole run. */
  timedOut: RunEvent<'timedOut'>;
  /** Ended by `ctx.continueAsNew`: the next run under its id took its place. */
  continuedAsNew: RunEvent<'continuedAsNew'>;
  /** Never started: what it waited for in its queue cannot be any more. */
  skipped: RunEvent<'skipped', { reason: string | undefined }>;
  /** Never started: its reserved start went by. */
  missed: RunEvent<'missed', { reason: string | undefined }>;
  /** Never started: its time was over. */
  expired: RunEvent<'expired', { reason: string | undefined }>;
  /** Never started: it gave way when its queue was full. */
  shed: RunEvent<'shed', { reason: string | undefined }>;
  /** The code of a run asks for something else than was recorded, or broke a rule. */
  stuck: RunEvent<'stuck', { error: DeterminismError }>;
  /** A queue that follows its load wants other slots than before. */
  scale: {
    readonly type: 'scale';
    readonly time: Date;
    readonly queue: string;
    readonly from: number;
    readonly to: number;
  };
  /**
   * A worker ended although nobody closed it; it is logged as well. Its runs go on in its replacement; attempts that ran
   * there are lost and run again.
   */
  workerLost: {
    readonly type: 'workerLost';
    readonly time: Date;
    /** Its number, from 0. */
    readonly worker: number;
    readonly exitCode: number;
    /** What it threw last. `undefined`: nothing. */
    readonly error: unknown;
    /** Wait until its replacement starts, in ms: 0 the first time, then longer each time that it dies soon. */
    readonly restartInMs: number;
    /** Shards that the other workers run meanwhile. */
    readonly movedShards: number;
  };
  /** A lost worker has a replacement, and the runs that had been in its memory have come as far as they can at once. */
  workerReplaced: {
    readonly type: 'workerReplaced';
    readonly time: Date;
    /** Its number, from 0. */
    readonly worker: number;
    /** From the loss, as the opener saw it, until the replacement could run code, in ms, with the waits before it started. */
    readonly lostForMs: number;
    /** From there until its runs had been replayed, in ms. */
    readonly replayMs: number;
  };
  /** A worker's thread has been busy for longer than `blockedAfter`, or works again; it is logged as well. */
  workerBlocked: {
    readonly type: 'workerBlocked';
    readonly time: Date;
    /** Its number, from 0. */
    readonly worker: number;
    /** `false`: it works again. */
    readonly isBlocked: boolean;
    /** For how long it has been silent, in ms. */
    readonly silentMs: number;
    /** The run whose code or step it entered last, and which probably blocks it. `undefined`: none, or not known. */
    readonly run: { readonly id: string; readonly runId: string; readonly definition: string } | undefined;
  };
  /** What a schedule did that no task shows. */
  schedule: {
    readonly type: 'schedule';
    readonly time: Date;
    /** Its name. */
    readonly schedule: string;
    /**
     * `skipped`: a time made no task, for `reason`; `missed`: the times from `at` to `until` passed while it could not
     * run; `refused`: the queue did not take the task; `paused`: it paused itself because of `taskId` or `workflowId`; `broken`: what is
     * stored says no times in this release. The last three are warnings as well.
     */
    readonly what: 'skipped' | 'missed' | 'refused' | 'paused' | 'broken';
    readonly at: Date | undefined;
    readonly until: Date | undefined;
    /** Of `skipped`: `overlap`, `afterFailure`, `tooManyWait`, or `exists`: there was a task of that time, or a run of that id. */
    readonly reason: string | undefined;
    readonly taskId: string | undefined;
    /** In place of `taskId`, if it starts workflows. */
    readonly workflowId: string | undefined;
  };
  /** Something that a person should read; it is logged as well. */
  warning: { readonly type: 'warning'; readonly code: string; readonly message: string };
}

/** State of the engine. */
export interface Health {
  /** `degraded`: the disk is full, or a worker is blocked or missing. `failed`: reopen. */
  readonly status: 'ok' | 'degraded' | 'failed';
  /** One sentence each, with the remedy. */
  readonly problems: readonly string[];
}

/** What {@link Engine.atomic} records together. Calls return at once; nothing has happened before the whole is durable. */
export interface Transaction {
  /**
   * Adds a task. Its handle may be used in `after` of the same transaction at once; it gets its `id`, and can be asked, when
   * the promise of `engine.atomic` has resolved. A live task that has the `key` stands for the one that is added.
   * @throws `TypeError`, `RangeError` on bad options
   */
  enqueue<T extends AnyTask>(
    task: T,
    ...args: InputThen<TaskInputOf<T>, Omit<EnqueueOptions, 'dedupe'>>
  ): TaskHandle<TaskOutputOf<T>>;
}

/** An open directory. Has the process stay alive until {@link Engine.close} or {@link Engine.unref}. */
export interface Engine extends AsyncDisposable {
  /**
   * Starts a workflow. **Resolved: the start is durable** and will go on after any crash.
   * @throws {@link WorkflowAlreadyStartedError} by the id policies; {@link UnknownDefinitionError} if it was not given to
   *   `open`; {@link BusyError}, {@link StorageFullError}, {@link StorageError}, {@link ClosedError}; `TypeError` naming
   *   the path of a value that cannot be recorded
   */
  start<W extends AnyWorkflow>(
    workflow: W,
    ...args: InputThen<InputOf<W>, StartOptions>
  ): Promise<WorkflowHandle<OutputOf<W>>>;
  /** Starts a workflow and waits for its result. @throws as `start` and `result` */
  execute<W extends AnyWorkflow>(workflow: W, ...args: InputThen<InputOf<W>, ExecuteOptions>): Promise<OutputOf<W>>;
  /**
   * Sends a signal to a workflow and starts it if it does not run, in one record. A run that has the id gets the signal
   * whatever its input was, unless `idConflictPolicy` says otherwise. @throws as `start` and `signal`
   */
  signalWithStart<W extends AnyWorkflow, T>(
    workflow: W,
    request: StartOptions & { id: string; signal: Signal<T, any>; dedupeId?: string } & InputField<InputOf<W>> &
      ValueField<T>,
  ): Promise<WorkflowHandle<OutputOf<W>>>;
  /**
   * Sends an update to a workflow and starts it first if it does not run; nobody can come between. Resolved: the start is
   * durable. The update is validated by the run's code, so a refused one leaves the run that was started. `answer` is the
   * update's. @throws as `start`; `answer` rejects as `handle.update`
   */
  updateWithStart<W extends AnyWorkflow, I, O>(
    workflow: W,
    request: StartOptions & { id: string; update: Update<I, O, any>; updateId?: string } & InputField<InputOf<W>> &
      ValueField<I>,
  ): Promise<{ readonly handle: WorkflowHandle<OutputOf<W>>; readonly answer: Promise<O> }>;
  /**
   * Settles an awakeable with a value. Resolved: durable.
   * @returns `false` if it was settled before, its time is over, or its run has ended or given it up
   * @throws {@link RunNotFoundError} when there is no such awakeable; {@link StorageFullError}, {@link StorageError},
   *   {@link ClosedError}; `TypeError` on what is no token and on values that cannot be recorded
   */
  complete(token: string, value?: unknown, options?: { actor?: string }): Promise<boolean>;
  /** Rejects an awakeable with an error, else as `complete`. */
  fail(token: string, error: unknown, options?: { actor?: string }): Promise<boolean>;
  /**
   * An object, by id. It begins to exist with the first call. A call of an exclusive handler is taken at once and runs when
   * those before it have answered; it goes on if the caller stops waiting. Shared handlers run here, on the recorded state.
   * @throws {@link UnknownDefinitionError}, {@link ClosedError}; from its methods what the handler throws;
   *   {@link RunNotFoundError} if the object is stuck, or is deleted before it answers; {@link BusyError} if 10,000 calls wait;
   *   {@link TimeoutError}, {@link StorageFullError}, {@link StorageError}; `TypeError` on values that cannot be recorded
   */
  object<D extends AnyObject>(object: D, id: string): ObjectClient<D>;
  /** States of objects, read and changed from outside. */
  readonly objects: ObjectControl;
  /**
   * Puts a task into its queue. **Resolved: admitted and durable.**
   * @throws {@link QueueFullError}, {@link ReservationError}, {@link BusyError} by `dedupe`, {@link UnknownDefinitionError},
   *   {@link RunNotFoundError} when there is no such run as in `after`, {@link StorageFullError}, {@link StorageError}, {@link ClosedError}; `TypeError` on unknown queues and limits, loops in
   *   `after`, values that cannot be recorded
   */
  enqueue<T extends AnyTask>(
    task: T,
    ...args: InputThen<TaskInputOf<T>, EnqueueOptions>
  ): Promise<TaskHandle<TaskOutputOf<T>>>;
  /**
   * Makes a run that starts when its turn in a queue has come, and holds its slot until it ends; a run that continues as new
   * goes on in it. **Resolved: admitted and durable.** The run exists from then on: `handle`, `signal`, `cancel` and `result`
   * work, and its id is taken as by `start`.
   * @throws as for a task, and {@link WorkflowAlreadyStartedError}
   */
  enqueue<W extends AnyWorkflow>(
    workflow: W,
    ...args: InputThen<InputOf<W>, EnqueueWorkflowOptions>
  ): Promise<WorkflowHandle<OutputOf<W>>>;
  /**
   * Enqueues many, each admitted or refused for itself, in order. Resolves when all are decided, never rejects for one.
   * @param options for all, or computed from each input
   * @returns one entry an input, as of `Promise.allSettled`
   */
  enqueueMany<T extends AnyTask>(
    task: T,
    inputs: readonly TaskInputOf<T>[],
    options?: EnqueueOptions | ((input: TaskInputOf<T>, index: number) => EnqueueOptions | undefined),
  ): Promise<PromiseSettledResult<TaskHandle<TaskOutputOf<T>>>[]>;
  /**
   * Takes tasks in together: all or none, in one durable write. `fn` is synchronous; if it throws, nothing is recorded.
   * **Resolved: all are durable**, and the handles have their ids. A crash leaves all of them or none. Where a full queue
   * lets callers wait, all wait until there is room for all. At most 1,000 tasks, which fit one record together (16 MiB).
   * @returns what `fn` returned
   * @throws what {@link Engine.enqueue} throws, with `index`, the place of the call of `tx.enqueue` that is refused, from 0;
   *   `TypeError` if `fn` returns a promise; `RangeError` or `TypeError` on bad options, from `tx.enqueue` itself
   */
  atomic<T>(fn: (tx: Transaction) => T extends PromiseLike<any> ? never : T): Promise<T>;
  /** One queue. @throws `TypeError` if there is none of that name */
  queue(name: string): QueueControl;
  /** Schedules, also those that were not declared at `open`. */
  readonly schedules: ScheduleControl;
  /** Makes or changes a limit. Resolved: durable; it stays over restarts. */
  limit(name: string, spec: LimitSpec): Promise<void>;
  /** Use of a limit now, or of one key of it. @throws `TypeError` if there is none of that name */
  limitUsage(name: string, key?: string): Promise<LimitUsage>;
  /**
   * Starts `dead` and `failed` tasks again. An empty filter throws. It is done a thousand tasks at a time, to those that there
   * were when it began, oldest first, so that others come in between; each thousand is durable before the next one. A crash
   * or a rejection in between leaves it done to the first ones. Doing it again goes on.
   * @returns how many
   */
  retry(filter: TaskFilter): Promise<number>;
  /** Cancels tasks that have not ended, like {@link Engine.retry} in thousands. An empty filter throws. @returns how many */
  cancel(filter: TaskFilter, reason?: string): Promise<number>;
  /** Moves a task, by id or key. @returns `false` if it has ended @throws {@link RunNotFoundError} */
  reprioritize(task: string, priority: Priority): Promise<boolean>;
  /** Moves tasks that have not ended, like {@link Engine.retry} in thousands. An empty filter throws. @returns how many */
  reprioritize(filter: TaskFilter, priority: Priority): Promise<number>;
  /** Tasks, as durable now, the oldest first, read in pages. */
  tasks(filter?: TaskFilter): AsyncIterableIterator<TaskRow>;
  /** Why a task is not running. @throws {@link RunNotFoundError} */
  explainTask(task: TaskHandle<any> | string): Promise<TaskExplanation>;
  /** A task, by id or key. Does not look whether it exists. */
  handle<T extends AnyTask>(task: T, idOrKey: string): TaskHandle<TaskOutputOf<T>>;
  /** A run, by id. Does not look whether it exists. `runId` pins one run. */
  handle<W extends AnyWorkflow>(workflow: W, id: string, options?: { runId?: string }): WorkflowHandle<OutputOf<W>>;
  /** The same without a definition. */
  handle(id: string, options?: { runId?: string }): WorkflowHandle;
  /** Runs, as durable now, read in pages. */
  list(options?: ListOptions): AsyncIterableIterator<RunRow>;
  /**
   * One page of a list. Pages are stable: runs that start meanwhile come on none of those that follow (newest first).
   * @throws `TypeError` for a cursor of another filter or order
   */
  listPage(options?: PageOptions): Promise<RunPage>;
  /** Number of runs. */
  count(filter?: RunFilter): Promise<number>;
  /** Why a run is not running. @throws {@link RunNotFoundError} */
  explain(id: string): Promise<Explanation>;
  /** Calls a function on each event of a name, from now on. What it throws is reported as a warning. */
  on<E extends keyof EngineEvents>(event: E, listener: (event: EngineEvents[E]) => void): this;
  /** As `on`, for the next event only. */
  once<E extends keyof EngineEvents>(event: E, listener: (event: EngineEvents[E]) => void): this;
  /** Undoes `on`. */
  off<E extends keyof EngineEvents>(event: E, listener: (event: EngineEvents[E]) => void): this;
  /** Figures by name. */
  metrics(): Promise<{ readonly [name: string]: number }>;
  /**
   * The same, and those of its queues, in the text format of Prometheus (version 0.0.4): answer a scrape with it. Times are in
   * seconds. What is counted begins anew with each `open`.
   */
  metricsText(): Promise<string>;
  /** Whether it works, and what is wrong. */
  health(): Promise<Health>;
  /**
   * Copies what is durable now, all of the directory, into a directory that is new or empty, while everything goes on; opening
   * the copy restores it, and is like an open after a kill. Resolved: the copy is durable. No checkpoint is made
   * meanwhile, so that the log grows. A copy that failed or was killed is refused by `open` with the reason; the next
   * backup into its directory replaces it.
   * @throws {@link StorageError} if the directory has other files or cannot be written to, or the engine is in memory;
   * {@link StorageFullError}, {@link ClosedError} if the engine is closed meanwhile; `TypeError` for the engine's own directory,
   * or one inside it
   * @example `await engine.backup('/backups/2026-12-03')`
   */
  backup(directory: string): Promise<void>;
  /** Lets the process end while the engine is open. */
  unref(): this;
  /** Undoes `unref`. */
  ref(): this;
  /** Closes on `SIGTERM` and `SIGINT`, then lets the process end. */
  handleSignals(options?: { grace?: Duration }): this;
  /**
   * Takes nothing new, lets attempts end within `grace`, then aborts them (that costs them no attempt), and leaves
   * nothing open. What was acknowledged was durable before. Workflows go on at the next `open`. Default grace 10 s.
   */
  close(options?: { grace?: Duration }): Promise<void>;
  /** `close()` with its defaults. */
  [Symbol.asyncDispose](): Promise<void>;
}

// ───────────────────────────── Errors ─────────────────────────────

/** What errors take beside the message. */
export interface FuseeErrorOptions {
  /** What led to it; kept as it is. */
  cause?: unknown;
}

/** Base of the errors of this package. Tell them apart by `code`, or by the static `is` of a class. */
export declare abstract class FuseeError extends Error {
  /** Stable; never changes its meaning. */
  abstract readonly code: FuseeErrorCode;
  /** What led to it; kept as it is, also if it is no `Error`. */
  readonly cause?: unknown;
  constructor(message: string, options?: FuseeErrorOptions);
  /** Like `instanceof`, but also for errors of another installed copy and for subclasses. Narrows to all of them. */
  static is(error: unknown): error is AnyFuseeError;
}

/** Every class of error, for a `switch` over `code`. */
export type AnyFuseeError =
  | NonRetryableError
  | RetryableError
  | StepError
  | StepInterruptedError
  | ChildWorkflowError
  | CancelledError
  | TerminatedError
  | TimeoutError
  | DeterminismError
  | WorkflowAlreadyStartedError
  | RunNotFoundError
  | WorkflowFailedError
  | UpdateRejectedError
  | UnknownDefinitionError
  | TaskError
  | QueueFullError
  | ReservationError
  | BusyError
  | CodecError
  | JournalFileError
  | JournalLimitError
  | StorageError
  | StorageFullError
  | LogCorruptError
  | DirectoryLockedError
  | ClosedError;

/** Every code. */
export type FuseeErrorCode = AnyFuseeError['code'];

/** Throw it to say: do not try again. */
export declare class NonRetryableError extends FuseeError {
  readonly code: 'NON_RETRYABLE';
  readonly name: 'NonRetryableError';
  static is(error: unknown): error is NonRetryableError;
}

/** Throw it to say: try again, not before `retryAfter`. It counts as an attempt. */
export declare class RetryableError extends FuseeError {
  readonly code: 'RETRYABLE';
  readonly name: 'RetryableError';
  /** Shortest wait, or earliest time. `undefined`: as the retry options say. */
  readonly retryAfter: Duration | Date | undefined;
  constructor(message: string, options?: FuseeErrorOptions & { retryAfter?: Duration | Date });
  static is(error: unknown): error is RetryableError;
}

/** A step has failed for good. `cause` is what it threw last. */
export declare class StepError extends FuseeError {
  readonly code: 'STEP_FAILED';
  readonly name: 'StepError';
  /** Name of the step. */
  readonly step: string;
  /** Attempts made, since the run was last resumed if the step was paused. */
  readonly attempts: number;
  /** What the attempts before the last one threw, as far as the process that recorded the failure saw them. */
  readonly history: readonly unknown[];
  constructor(
    message: string,
    options: FuseeErrorOptions & { step: string; attempts: number; history?: readonly unknown[] },
  );
  static is(error: unknown): error is StepError;
}

/** The process ended during a step: its effect may or may not have happened. Of a step with `semantics: 'atMostOnce'`, and the cause of one whose process was lost with every attempt. */
export declare class StepInterruptedError extends FuseeError {
  readonly code: 'STEP_INTERRUPTED';
  readonly name: 'StepInterruptedError';
  /** Name of the step. */
  readonly step: string;
  constructor(message: string, options: FuseeErrorOptions & { step: string });
  static is(error: unknown): error is StepInterruptedError;
}

/** A child workflow, or another one that was waited for, did not complete. */
export declare class ChildWorkflowError extends FuseeError {
  readonly code: 'CHILD_WORKFLOW_FAILED';
  readonly name: 'ChildWorkflowError';
  /** Id of the child. */
  readonly id: string;
  /** How it ended. */
  readonly status: Exclude<EndStatus, 'completed' | 'continuedAsNew'>;
  constructor(
    message: string,
    options: FuseeErrorOptions & { id: string; status: Exclude<EndStatus, 'completed' | 'continuedAsNew'> },
  );
  static is(error: unknown): error is ChildWorkflowError;
}

/** The run was cancelled. */
export declare class CancelledError extends FuseeError {
  readonly code: 'CANCELLED';
  readonly name: 'CancelledError';
  /** As given. */
  readonly reason: string | undefined;
  constructor(message: string, options?: FuseeErrorOptions & { reason?: string | undefined });
  static is(error: unknown): error is CancelledError;
}

/** The run was terminated. */
export declare class TerminatedError extends FuseeError {
  readonly code: 'TERMINATED';
  readonly name: 'TerminatedError';
  /** As given. */
  readonly reason: string | undefined;
  constructor(message: string, options?: FuseeErrorOptions & { reason?: string | undefined });
  static is(error: unknown): error is TerminatedError;
}

/** Something took longer than its timeout: an attempt, a run, or the waiting for it. */
export declare class TimeoutError extends FuseeError {
  readonly code: 'TIMEOUT';
  readonly name: 'TimeoutError';
  /** What took too long. */
  readonly of: 'attempt' | 'heartbeat' | 'run' | 'scope' | 'wait';
  constructor(message: string, options: FuseeErrorOptions & { of: 'attempt' | 'heartbeat' | 'run' | 'scope' | 'wait' });
  static is(error: unknown): error is TimeoutError;
}

/** The code of a workflow asked for something else than was recorded, or out of turn. The run is stuck, not lost. */
export declare class DeterminismError extends FuseeError {
  readonly code: 'DETERMINISM';
  readonly name: 'DeterminismError';
  /** Where code and records part, if a run is stuck by it. */
  readonly report: StuckReport | undefined;
  constructor(message: string, options?: FuseeErrorOptions & { report?: StuckReport | undefined });
  static is(error: unknown): error is DeterminismError;
}

/** The id is taken, and the policies say no. */
export declare class WorkflowAlreadyStartedError extends FuseeError {
  readonly code: 'WORKFLOW_ALREADY_STARTED';
  readonly name: 'WorkflowAlreadyStartedError';
  /** The id that is taken. */
  readonly id: string;
  constructor(message: string, options?: FuseeErrorOptions & { id?: string });
  static is(error: unknown): error is WorkflowAlreadyStartedError;
}

/** There is no such run, or it has ended and takes no more messages. */
export declare class RunNotFoundError extends FuseeError {
  readonly code: 'RUN_NOT_FOUND';
  readonly name: 'RunNotFoundError';
  /** The id that was asked for. */
  readonly id: string;
  constructor(message: string, options?: FuseeErrorOptions & { id?: string });
  static is(error: unknown): error is RunNotFoundError;
}

/** The workflow failed. `cause` is what it threw. */
export declare class WorkflowFailedError extends FuseeError {
  readonly code: 'WORKFLOW_FAILED';
  readonly name: 'WorkflowFailedError';
  /** Id of the workflow. */
  readonly id: string;
  /** The run that failed. */
  readonly runId: string;
  /** `failed`, or how it ended without having started. */
  readonly status: 'failed' | NeverStarted;
  constructor(
    message: string,
    options: FuseeErrorOptions & { id: string; runId: string; status?: 'failed' | NeverStarted | undefined },
  );
  static is(error: unknown): error is WorkflowFailedError;
}

/** The update was refused by its validator; nothing was recorded. `cause` is what that threw. */
export declare class UpdateRejectedError extends FuseeError {
  readonly code: 'UPDATE_REJECTED';
  readonly name: 'UpdateRejectedError';
  /** Name of the update. */
  readonly update: string;
  constructor(message: string, options: FuseeErrorOptions & { update: string });
  static is(error: unknown): error is UpdateRejectedError;
}

/** The workflow was not given to `open`. */
export declare class UnknownDefinitionError extends FuseeError {
  readonly code: 'UNKNOWN_DEFINITION';
  readonly name: 'UnknownDefinitionError';
  /** Name of the missing definition. */
  readonly type: string;
  constructor(message: string, options: FuseeErrorOptions & { type: string });
  static is(error: unknown): error is UnknownDefinitionError;
}

/** A task did not complete. `cause` is what its last attempt threw. */
export declare class TaskError extends FuseeError {
  readonly code: 'TASK_FAILED';
  readonly name: 'TaskError';
  /** Id of the task. */
  readonly id: string;
  /** How it ended. */
  readonly status: Exclude<TaskFailureStatus, 'cancelled'>;
  /** Attempts that began. */
  readonly attempts: number;
  /** Those that others followed, the newest 16. */
  readonly history: readonly AttemptRecord[];
  constructor(
    message: string,
    options: FuseeErrorOptions & {
      id: string;
      status: Exclude<TaskFailureStatus, 'cancelled'>;
      attempts: number;
      history?: readonly AttemptRecord[];
    },
  );
  static is(error: unknown): error is TaskError;
}

/** The queue is full and does not let callers wait. */
export declare class QueueFullError extends FuseeError {
  readonly code: 'QUEUE_FULL';
  readonly name: 'QueueFullError';
  /** Name of the queue. */
  readonly queue: string;
  /** The bound that was reached. */
  readonly maxPending: number;
  constructor(message: string, options: FuseeErrorOptions & { queue: string; maxPending: number });
  static is(error: unknown): error is QueueFullError;
}

/** No place can be kept at that time. */
export declare class ReservationError extends FuseeError {
  readonly code: 'RESERVATION';
  readonly name: 'ReservationError';
  /** Name of the queue. */
  readonly queue: string;
  /** The time asked for. */
  readonly at: Date;
  constructor(message: string, options: FuseeErrorOptions & { queue: string; at: Date });
  static is(error: unknown): error is ReservationError;
}

/** A bound is reached: of open runs, of signals that wait in one run; or a task's key is taken and `dedupe` says `error`. */
export declare class BusyError extends FuseeError {
  readonly code: 'BUSY';
  readonly name: 'BusyError';
  static is(error: unknown): error is BusyError;
}

/**
 * A recorded value cannot be read by the codecs that are here: one is missing, a key of it is missing or another one, or the
 * bytes were changed or moved from another place. Nothing is lost: open with the codec or key that it names. A run that needs
 * it is stuck until then, a task waits and tries again every minute; a caller's promise is rejected with it.
 */
export declare class CodecError extends FuseeError {
  readonly code: 'CODEC';
  readonly name: 'CodecError';
  /** Id of the run; empty: a task. */
  readonly id: string;
  /** What cannot be read, in words. */
  readonly place: string;
  /** Name of the codec that it needs. */
  readonly codec: string;
  /** Id of the key that it needs, where the codec tells. */
  readonly keyId: string | undefined;
  constructor(
    message: string,
    options: FuseeErrorOptions & { id: string; place: string; codec: string; keyId?: string | undefined },
  );
  static is(error: unknown): error is CodecError;
}

/** The bytes of an exported run cannot be read: damaged, cut off, of a newer version, or something else altogether. */
export declare class JournalFileError extends FuseeError {
  readonly code: 'JOURNAL_FILE';
  readonly name: 'JournalFileError';
  /** The file, or what else the bytes were said to come from. */
  readonly source: string | undefined;
  /** First byte of what is wrong. */
  readonly offset: number;
  static is(error: unknown): error is JournalFileError;
}

/**
 * The cause of a run's failure: it has recorded more than `journalRecordsMax` or `journalBytesMax` allow. Divide the work
 * among child workflows.
 */
export declare class JournalLimitError extends FuseeError {
  readonly code: 'JOURNAL_LIMIT';
  readonly name: 'JournalLimitError';
  static is(error: unknown): error is JournalLimitError;
}

/** The disk failed. Nothing more is acknowledged; open again. */
export declare class StorageError extends FuseeError {
  readonly code: 'STORAGE';
  readonly name: 'StorageError';
  static is(error: unknown): error is StorageError;
}

/** The disk is full; nothing was written. Heals by itself. */
export declare class StorageFullError extends FuseeError {
  readonly code: 'STORAGE_FULL';
  readonly name: 'StorageFullError';
  static is(error: unknown): error is StorageFullError;
}

/** Acknowledged records are damaged. The message names file, offset and record. */
export declare class LogCorruptError extends FuseeError {
  readonly code: 'LOG_CORRUPT';
  readonly name: 'LogCorruptError';
  static is(error: unknown): error is LogCorruptError;
}

/** Another process, or another engine of this one, has the directory open. */
export declare class DirectoryLockedError extends FuseeError {
  readonly code: 'DIRECTORY_LOCKED';
  readonly name: 'DirectoryLockedError';
  static is(error: unknown): error is DirectoryLockedError;
}

/** The engine is closing or closed. */
export declare class ClosedError extends FuseeError {
  readonly code: 'CLOSED';
  readonly name: 'ClosedError';
  static is(error: unknown): error is ClosedError;
}

// Only what says `export` is exported.
export {};
