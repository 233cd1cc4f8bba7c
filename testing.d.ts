/**
 * `fusee/testing`: the real engine in memory, under a clock that you move.
 *
 * @packageDocumentation
 */
import type {
  AnyObject,
  AnyTask,
  TaskInputOf,
  TaskOutputOf,
  AnyWorkflow,
  Codec,
  DeterminismError,
  Duration,
  EndStatus,
  Engine,
  InputOf,
  MaybePromise,
  OpenOptions,
  OutputOf,
  Signal,
  StuckReport,
  Time,
} from './index.js';

/** Options of {@link testEngine}: those of `open`, except what an engine in memory on one thread has no use for. */
export interface TestOptions<
  Schedules extends { [name: string]: AnyTask | AnyWorkflow } = { [name: string]: AnyTask | AnyWorkflow },
> extends Omit<OpenOptions<Schedules>, 'shards' | 'flush' | 'workers'> {
  /** Where the clock stands at first. Default: 2025-01-01T00:00:00Z, so that tests repeat. */
  now?: Time;
  /** Seed of everything left to chance. Default 1. */
  seed?: number;
  /**
   * At `close`, replays the runs that their own code has ended (the first 200) and throws if one does not come to the same
   * end: its code takes time, chance or outside state from elsewhere than `ctx` and its steps. Runs of workflows replaced
   * by {@link TestEngine.mock} are left out. Default `true`.
   */
  replayOnClose?: boolean;
}

/**
 * Opens an engine in memory under a virtual clock. Nothing stays open after `close`; works under fake timers.
 * @throws as `open`
 */
export function testEngine<Schedules extends { [name: string]: AnyTask | AnyWorkflow } = {}>(
  options?: TestOptions<Schedules>,
): Promise<TestEngine>;

/** An engine whose clock moves only by {@link TestEngine.advance}. */
export interface TestEngine extends Engine {
  /** Time of the virtual clock, in milliseconds since 1970. */
  now(): number;
  /** Moves the clock, firing what falls due in its order, and waits until the engine is idle again. */
  advance(by: Duration): Promise<void>;
  /** Waits until nothing can go on without the clock or someone outside. */
  idle(): Promise<void>;
  /**
   * Runs `fn` in place of a step's function, for runs of this workflow from now on. Retries and timeouts still apply.
   * One that was not called until `close`, and not undone, is warned about then; so are those of {@link TestEngine.mock}.
   * The step's result type cannot be known from its name: give `fn` a return annotation if it matters.
   * @returns a function that undoes it
   */
  mockStep(workflow: AnyWorkflow, step: string, fn: (attempt: number) => unknown): () => void;
  /**
   * Runs `fn` in place of a task's function, from now on. It gets the input as it was recorded.
   * @returns a function that undoes it
   */
  mock<T extends AnyTask>(task: T, fn: (input: TaskInputOf<T>) => MaybePromise<TaskOutputOf<T>>): () => void;
  /** The same for a workflow. */
  mock<W extends AnyWorkflow>(workflow: W, fn: (input: InputOf<W>) => MaybePromise<OutputOf<W>>): () => void;
  /** Loses everything that was not durable, as `kill -9` would, and opens again. Handles stay good. */
  crash(): Promise<void>;
  /**
   * Closes.
   * @throws {@link DeterminismError} if a run that ended does not replay to the same end; see `replayOnClose`
   */
  close(options?: { grace?: Duration }): Promise<void>;
}

/** A signal that a test sends: which, what, and how long after the start (default: at once). */
export interface ScriptedSignal {
  readonly signal: Signal;
  readonly value?: unknown;
  readonly at?: Duration;
}

/** How a run ended. */
export type Outcome<Output> =
  | { readonly status: 'completed'; readonly result: Output }
  | { readonly status: Exclude<EndStatus, 'completed'>; readonly error: unknown };

/**
 * Runs a workflow again and again in engines in memory, each time with a crash at another place: before every record, once
 * so that nothing that rests on it has happened, and once so that what it tells of has happened (a step's function has
 * run) and the record is lost. The clock moves by itself. Wherever it was cut, the run must come to a right end.
 * @param check `expect` looks at the outcome without a crash and after each crash, and throws if it is not right
 * @returns how many crashes were tried
 * @throws what `expect` threw for the run without a crash; an `AssertionError` that names the crash point for the others;
 * an `Error` if the run does not end by itself
 */
export function crashEverywhere<W extends AnyWorkflow>(
  scenario: {
    readonly workflow: W;
    readonly input?: InputOf<W>;
    /** Sent in this order. */
    readonly signals?: readonly ScriptedSignal[];
    /** Further definitions that the workflow uses, and other options of the engine. */
    readonly options?: TestOptions;
  },
  check: { readonly expect: (outcome: Outcome<OutputOf<W>>) => MaybePromise<void> },
): Promise<{ readonly crashes: number }>;

/** Options of {@link replay}. */
export interface ReplayOptions {
  /** Replays only what was recorded before this step: its name (its first call), or its number in the history. */
  toStep?: string | number;
  /** Further workflows that the workflow starts. */
  workflows?: readonly AnyWorkflow[];
  /** Objects that the workflow calls. */
  objects?: readonly AnyObject[];
  /** Tasks that the workflow asks for. */
  tasks?: readonly AnyTask[];
  /** What its values were written by. */
  codec?: Codec | readonly Codec[];
  /** What messages call the bytes: the name of their file. */
  source?: string;
}

/**
 * Calls the present code with the records of an exported run, as after a crash: it gets the recorded results and comes to
 * where the run was. No step runs, no time passes, nothing is recorded. The code runs on this thread, so that breakpoints
 * stop in it.
 * @param journal what `handle.export()` gave
 * @returns how the run ended; `open` if neither its records nor the code say so
 * @throws {@link DeterminismError} where code and records part, with both places; {@link JournalFileError} for bytes that
 * are no exported run; `CodecError` for values that `codec` cannot read
 */
export function replay<W extends AnyWorkflow>(
  workflow: W,
  journal: Uint8Array,
  options?: ReplayOptions,
): Promise<Outcome<OutputOf<W>> | { readonly status: 'open' }>;

/** An exported run: its bytes, those with a name for messages, or the name of its file. */
export type ExportedRun = Uint8Array | string | { readonly bytes: Uint8Array; readonly source: string };

/** Options of {@link check}: `dir`, `journals`, or both. */
export interface CheckOptions {
  /** Code to check against. */
  readonly workflows: readonly AnyWorkflow[];
  /** Objects that the workflows call, and that are checked themselves. */
  readonly objects?: readonly AnyObject[];
  /** Tasks that the workflows ask for. */
  readonly tasks?: readonly AnyTask[];
  /** What values were written by. */
  readonly codec?: Codec | readonly Codec[];
  /** Directory of an engine that is not open. Nothing is written to it, and it is locked while it is checked. */
  readonly dir?: string;
  /** Of the directory also runs that have ended, as far as their records are kept. Default `false`. */
  readonly ended?: boolean;
  /** Runs that `handle.export()` gave. */
  readonly journals?: Iterable<ExportedRun> | AsyncIterable<ExportedRun>;
}

/** A run that its code does not fit, or that says nothing. */
export interface CheckFailure {
  /** `undefinedType`: its type has no code among `workflows`. `unreadable`: its bytes are no exported run, or need another `codec`. */
  readonly kind: 'differs' | 'undefinedType' | 'unreadable';
  /** Id of the run; `undefined` where the bytes do not say. */
  readonly id: string | undefined;
  /** This one execution under that name. */
  readonly runId: string | undefined;
  /** Name of the workflow. */
  readonly type: string | undefined;
  /** The directory or the file. */
  readonly source: string | undefined;
  /** A {@link DeterminismError}, an `UnknownDefinitionError`, a `JournalFileError` or a `CodecError`. */
  readonly error: Error;
  /** Of a run that differs: the first operation that does, recorded and asked for, with both places. */
  readonly difference: StuckReport | undefined;
}

/** What {@link check} found. */
export interface CheckReport {
  /** Runs that were looked at. */
  readonly checked: number;
  /** Those that do not fit. */
  readonly failures: readonly CheckFailure[];
}

/**
 * Replays many runs against the present code, before a deploy: see {@link replay}. Does not throw for one of them.
 * `fusee check` does the same on the command line.
 * @throws `DirectoryLockedError` if the directory is open
 */
export function check(options: CheckOptions): Promise<CheckReport>;

export {};
