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
   * waits until the code is mended, and is tried again by `handle.resume()` and at each `open`. `'fail'`: it fails with a
   * {@link DeterminismError}; nothing is undone. Default `'stuck'`.
   */
  onMismatch?: 'stuck' | 'fail';
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
  /** Who asked: recorded with the start. Default: nobody. */
  actor?: string;
}

/** Options of `engine.execute`: those of the start, and how long to wait. */
export interface ExecuteOptions extends StartOptions {
  /** Stops the waiting with its reason. The run goes on. */
  signal?: AbortSignal;
}

/** Options of `ctx.run` and `ctx.start`. */
export interface ChildOptions extends Omit<StartOptions, 'actor'> {
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
  /** `true` once `close` or `drain` has begun. */
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
  /** Starts a child workflow. Resolves when it is recorded. */
  start<W extends AnyWorkflow>(
    workflow: W,
    ...args: InputThen<InputOf<W>, ChildOptions>
  ): Promise<ChildHandle<OutputOf<W>>>;
  /** Another workflow, by id. Does not check that it exists. */
  handle<W extends AnyWorkflow>(workflow: W, id: string, options?: { runId?: string }): ChildHandle<OutputOf<W>>;
  /** Milliseconds since 1970 at the last delivery. The same in replay, and constant between two awaits. */
  now(): number;
  /** A number in [0, 1), the same in replay. @param name draws from a sequence of its own */
  random(name?: string): number;
  /** A UUID, the same in replay. */
  uuid(): string;
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
  /** Id of the run. */
  readonly id: string;
  /** Waits for its end. @throws {@link ChildWorkflowError}, {@link RunNotFoundError} */
  result(): Promise<Output>;
  /** Sends a signal. Resolves when it is recorded. */
  signal<T>(signal: Signal<T, any>, ...args: undefined extends T ? [value?: T] : [value: T]): Promise<void>;
  /** Asks the run to end. Resolves when the request is recorded. */
  cancel(reason?: string): Promise<void>;
}

// ───────────────────────────── Handles ─────────────────────────────

/** How a run ended. */
export type EndStatus = 'completed' | 'failed' | 'cancelled' | 'terminated' | 'timedOut' | 'continuedAsNew';

/** Status of a run. `paused` and `stuck` are marks beside it. */
export type RunStatus = 'running' | EndStatus;

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
  /** What is known about the run. */
  describe(): Promise<RunRow>;
  /** The records of the run, in order, up to the last durable one. */
  history(): AsyncIterableIterator<HistoryRecord>;
}

/** One record of a run. */
export interface HistoryRecord {
  /** Its number in the log; rises over all runs. */
  readonly lsn: string;
  /** When it was recorded, where that is kept. */
  readonly time: Date | undefined;
  /** What happened, e.g. `stepCompleted`. */
  readonly kind: string;
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
  /** When it was started. */
  readonly createdAt: Date;
  /** When its function was first called. */
  readonly startedAt: Date | undefined;
  /** When it ended. */
  readonly endedAt: Date | undefined;
  /** The run that started it. */
  readonly parent: { readonly id: string; readonly runId: string } | undefined;
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
}

/** Options of `list`. */
export interface ListOptions extends RunFilter {
  /** By start. Default `'newestFirst'`. */
  order?: 'newestFirst' | 'oldestFirst';
  /** Stops after so many. Default: none. */
  limit?: number;
}

// ───────────────────────────── Engine ─────────────────────────────

/** Options of {@link open}. */
export interface OpenOptions {
  /** Workflows that may run here. */
  workflows?: readonly AnyWorkflow[];
  /**
   * Threads that run the workflows of a module; this thread is then a client of them. Default: this thread runs
   * `workflows`, which is not to be given together with it.
   */
  workers?: WorkerOptions;
  /**
   * Parts that a **new** directory is split into; an existing one keeps its own. Default 8, or one a worker if there
   * are more.
   */
  shards?: number;
  /** Where the log is written. Default `'auto'`: chosen from the cores; the environment's `FUSEE_FLUSH` wins. */
  flush?: 'auto' | 'inline' | 'pipeline' | 'background';
  /** Largest recorded value in bytes. Default 4 MiB. */
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

/** Threads that run workflow code: {@link OpenOptions.workers}. */
export interface WorkerOptions {
  /**
   * Number of threads, from 1, and not more than the directory has shards. `'auto'`: one a core, as far as there are
   * shards. Default `'auto'`.
   */
  count?: number | 'auto';
  /**
   * The module that each thread loads, as a URL or a path: ESM, CommonJS, or whatever the loader of this thread takes.
   * Every exported workflow runs there. It must export the same in each thread.
   */
  module: URL | string;
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
export function open(directory: string, options?: OpenOptions): Promise<Engine>;
/** The same with the directory among the options. */
export function open(options: OpenOptions & { dir: string }): Promise<Engine>;

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
}

/** Why a run is not running. `paused` without a step: by `handle.pause()`. `outside`: it awaits something that does not come from `ctx`. */
export type Explanation =
  | { readonly reason: 'running' | 'notRegistered' | 'outside' }
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

/** What listeners get, by name of the event. Each is given when it is durable. */
export interface EngineEvents {
  /** Ended well. */
  completed: RunEvent<'completed', { result: unknown }>;
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
  /** The code of a run asks for something else than was recorded, or broke a rule. */
  stuck: RunEvent<'stuck', { error: DeterminismError }>;
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
  /** A run, by id. Does not look whether it exists. `runId` pins one run. */
  handle<W extends AnyWorkflow>(workflow: W, id: string, options?: { runId?: string }): WorkflowHandle<OutputOf<W>>;
  /** The same without a definition. */
  handle(id: string, options?: { runId?: string }): WorkflowHandle;
  /** Runs, as durable now, read in pages. */
  list(options?: ListOptions): AsyncIterableIterator<RunRow>;
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
  /** Whether it works, and what is wrong. */
  health(): Promise<Health>;
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
  | BusyError
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
  constructor(message: string, options: FuseeErrorOptions & { id: string; runId: string });
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

/** A bound is reached: of open runs, of signals that wait in one run. */
export declare class BusyError extends FuseeError {
  readonly code: 'BUSY';
  readonly name: 'BusyError';
  static is(error: unknown): error is BusyError;
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
