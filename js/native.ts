/**
 * The addon: found, loaded, and typed. The only place that loads it.
 *
 * Numbers, codes and strings cross; errors come with a `code` that js/errors knows. Timing primitives are taken from
 * the realm in which the addon lives, and when it is loaded: fake timers of a test neither hang the engine nor lie to it.
 */
import * as fs from 'node:fs';
import * as path from 'node:path';
import type { PumpVerbs } from './worker/pump.js';

/** How an engine is opened. */
export interface NativeOptions {
  /** `null`: in memory. */
  readonly dir: string | null;
  /** Types of workflows that have code here. */
  readonly definitions: readonly string[];
  /** 0: the default. */
  readonly shards: number;
  /** Threads that will join to run the code; 0: this one runs it. */
  readonly workers: number;
  /** Fewer workers will do where there are fewer shards. */
  readonly mayClampWorkers: boolean;
  readonly flush: 'auto' | 'inline' | 'pipeline' | 'background';
  /** Time of a virtual clock, in ms since 1970; `null`: real time. */
  readonly virtualNow: number | null;
  /** 0: the default. */
  readonly maxPayloadBytes: number;
  /** 0: the default. */
  readonly maxJournalRecords: number;
  /** 0: the default. */
  readonly maxJournalBytes: number;
  /** 0: the default. */
  readonly maxRuns: number;
  /** Queues, limits, definitions and declared schedules of tasks, packed; see js/scheduler/packing. */
  readonly tasks: string;
}

/** The verbs of one open engine. `token` names the answer, which comes as an event. */
export interface NativeEngine extends PumpVerbs {
  durable(): number;
  /**
   * Starts a run. Token 0: nobody waits for its run id.
   * @returns its number times 2^16, plus its shard, to be told nobody before its result; below 0: it is refused
   */
  start(
    token: number,
    resultToken: number,
    id: string,
    type: string,
    version: number,
    input: string,
    policies: number,
    timeoutMs: number,
    actor: string,
    attributes?: string,
  ): number;
  enqueueRun(
    token: number,
    id: string,
    type: string,
    version: number,
    input: string,
    policies: number,
    timeoutMs: number,
    actor: string,
    row: string,
  ): void;
  signal(
    token: number,
    id: string,
    runId: string,
    name: string,
    payload: string,
    dedupeId: string,
    actor: string,
  ): void;
  /** Answers whether this was what completed it. */
  completeAwakeable(token: number, id: string, runId: string, name: string, payload: string, actor: string): void;
  update(
    token: number,
    id: string,
    runId: string,
    name: string,
    updateId: string,
    payload: string,
    actor: string,
  ): void;
  /** Calls an object, by the id of its run. */
  callObject(
    token: number,
    id: string,
    type: string,
    name: string,
    callId: string,
    payload: string,
    actor: string,
  ): void;
  /** Answers with the state of an object, as it is recorded. */
  readObject(token: number, id: string): void;
  deleteObject(token: number, id: string, actor: string): void;
  startWith(
    token: number,
    id: string,
    type: string,
    version: number,
    input: string,
    policies: number,
    timeoutMs: number,
    actor: string,
    what: number,
    name: string,
    payload: string,
    messageId: string,
    answerToken: number,
    attributes: string,
  ): void;
  cancel(token: number, id: string, runId: string, reason: string, actor: string): void;
  terminate(token: number, id: string, runId: string, reason: string, actor: string): void;
  pause(token: number, id: string, runId: string, actor: string): void;
  resume(token: number, id: string, runId: string, actor: string): void;
  wake(token: number, id: string, runId: string, actor: string): void;
  /** Forks the run as `to`, or resets it where that is empty. Answers with the id of the new run. */
  branch(
    token: number,
    id: string,
    runId: string,
    to: string,
    border: number,
    name: string,
    seq: number,
    flags: number,
    version: number,
    actor: string,
  ): void;
  result(token: number, id: string, runId: string): void;
  forget(token: number): void;
  enqueueTasks(token: number, rows: string): void;
  enqueueTogether(token: number, rows: string): void;
  taskOutcomes(rows: string): void;
  taskInfo(number: string): string;
  taskParents(number: string): string;
  taskKey(number: string): string;
  drainTasks(): void;
  /** This thread has the code of these tasks, and carries these labels. */
  defineTasks(packed: string): void;
  taskResult(token: number, task: string): void;
  describeTask(token: number, task: string): void;
  explainTask(token: number, task: string): void;
  cancelTask(token: number, task: string, reason: string): void;
  retryTask(token: number, task: string): void;
  reprioritizeTask(token: number, task: string, priority: number): void;
  listTasks(token: number, filter: string, after: number, limit: number): void;
  countTasks(token: number, filter: string): void;
  changeTasks(token: number, filter: string, what: string, more: string, after: number, until: number): void;
  pauseQueue(token: number, queue: string, isPaused: number): void;
  boundQueue(token: number, queue: string, min: number, max: number): void;
  resizeQueue(token: number, queue: string, concurrency: number): void;
  /** Slots that somebody outside provides. At once, and gone with the engine. */
  reportCapacity(queue: string, slots: number): void;
  queueStats(token: number, queue: string): void;
  limitUsage(token: number, name: string, key: string): void;
  setLimit(token: number, name: string, spec: string): void;
  setSchedule(token: number, name: string, packed: string): void;
  declareSchedules(token: number): void;
  removeSchedule(token: number, name: string): void;
  pauseSchedule(token: number, name: string, isPaused: number): void;
  triggerSchedule(token: number, name: string): void;
  backfillSchedule(token: number, name: string, fromMs: number, toMs: number): void;
  /** The run that task number `task` stands for, once it is made: id, run id. Empty: it stands for none. */
  runOfTask(token: number, task: string): void;
  /** All of them, or one: without one of the name it is refused. */
  listSchedules(token: number, name: string): void;
  previewSchedule(token: number, name: string, count: number): void;
  /** The next times of a plan that belongs to no schedule. */
  previewPlan(plan: string, afterMs: number, count: number): string;
  querySlot(id: string, runId: string): number;
  /** A file with the run's records, in hexadecimal digits; cut before a step or an operation, if one is given. */
  exportRun(token: number, id: string, runId: string, step: string, operation: number): void;
  /** An exported run, for its code to replay: slot, run id, status and number of records; payload of its end; the start. */
  openJournal(bytes: Uint8Array, step: string, operation: number): string;
  /** Why the code of a run does not fit its records, in seven fields; place and number of the record. Empty: it fits. */
  misfit(slot: number): string;
  /** A run that has ended, for its code to replay: slot, id, key root, type, input. */
  revive(id: string, runId: string): string;
  describe(token: number, id: string, runId: string): void;
  history(token: number, id: string, runId: string, from: number, limit: number): void;
  /** Rows, then the cursor of the next page. @param query what js/client/filters.ts packed */
  list(token: number, query: string, newestFirst: number, cursor: string, limit: number): void;
  count(token: number, query: string): void;
  explain(token: number, id: string, runId: string): void;
  /** Makes the group known to the other threads of the process. @returns its number, for {@link joinNative} */
  publish(): number;
  /** Tokens of this engine are this one and those after it, 2^24 of them. */
  firstToken(): number;
  /** Number of its life among all those of the group. */
  incarnation(): number;
  /** How many there are; 0: this thread runs the code. */
  workers(): number;
  /** The worker that runs the workflow of an id; below 0: none does. */
  owner(id: string): number;
  /** Types that have code in the workers. */
  define(definitions: readonly string[]): void;
  /** The thread of a worker has gone. @returns whether that life of it was its present one */
  lose(part: number, incarnation: number): boolean;
  /** Others get the shards of a worker that is not there. @returns how many moved */
  spread(part: number): number;
  watchParts(afterMs: number): void;
  /** Asks the code of a run, whichever thread has it. */
  ask(token: number, id: string, runId: string, name: string, input: string): void;
  /** Answers a question. */
  answer(token: number, text: string): void;
  /** Law 8: runs that nothing will ever wake. */
  orphans(): string;
  metrics(): string;
  backup(token: number, directory: string): void;
  health(): string;
  report(): string;
  /** What somebody should know about the directory, a row each. */
  warnings(): string;
  subscribe(mask: number): void;
  setNow(ms: number): void;
  nextDueAt(): number;
  /** In memory only: loses what was not durable. Slots and tokens are void. */
  crash(): void;
  /** In memory only: crashes, and answers how many records there are. Nothing works before {@link rewind}. */
  past(): number;
  /** How runs of the past ended by their own code: rows of records before it, type, id, status and payload. */
  pastEnds(): string;
  /** How many signals of the past, among its first `records`, have dedupe ids that begin with `prefix`. */
  pastSignals(records: number, prefix: string): number;
  /** How the run of such a row stands now: status and payload; while it has not ended, 0 and why it is stuck. */
  standing(index: number): string;
  /** Opens with the first `count` records of the past, under a virtual clock that stands at `nowMs`. */
  rewind(count: number, nowMs: number): void;
  close(): void;
}

/** A directory that is only looked at. It is locked until it is closed, and nothing is written to it. */
export interface NativeLook {
  /** Runs whose records are kept, a row each. */
  runs(): string;
  /** A file with a run's records, in hexadecimal digits. */
  journal(id: string, runId: string): string;
  close(): void;
}

/** What the addon exports. */
interface Addon {
  /** The global object of the realm in which the addon lives. */
  realm(): Realm;
  open(options: NativeOptions, notify: () => void): NativeEngine;
  look(dir: string): NativeLook;
  join(group: number, part: number, definitions: readonly string[], notify: () => void): NativeEngine;
}

interface Realm {
  readonly process: NodeJS.Process;
  readonly performance: { now(): number };
  readonly Date: { now(): number };
  readonly setImmediate: (fn: () => void) => unknown;
  readonly setTimeout: (fn: () => void, ms: number) => unknown;
  readonly clearTimeout: (timer: unknown) => void;
  readonly setInterval: (fn: () => void, ms: number) => unknown;
  readonly clearInterval: (timer: unknown) => void;
}

/** What time and turns are made of. */
export interface Primitives {
  readonly nextTick: (fn: () => void) => void;
  readonly setImmediate: (fn: () => void) => unknown;
  readonly setTimeout: (fn: () => void, ms: number) => unknown;
  readonly clearTimeout: (timer: unknown) => void;
  readonly setInterval: (fn: () => void, ms: number) => unknown;
  readonly clearInterval: (timer: unknown) => void;
  /** Rises evenly; from no point in particular. */
  readonly monotonicMs: () => number;
  /** Since 1970. */
  readonly wallMs: () => number;
  /** The process, as the realm of the addon sees it. */
  readonly process: NodeJS.Process;
}

let loaded: { readonly addon: Addon; readonly primitives: Primitives } | undefined;

/** Opens an engine. `notify` is called, from a place of its own, when there is news. @throws with a `code` */
export function openNative(options: NativeOptions, notify: () => void): NativeEngine {
  return load().addon.open(options, notify);
}

/** Opens a directory that is there to look at its runs. @throws with a `code` */
export function lookNative(dir: string): NativeLook {
  return load().addon.look(dir);
}

/** Joins a group of this process as one of its workers. @throws with a `code` */
export function joinNative(
  group: number,
  part: number,
  definitions: readonly string[],
  notify: () => void,
): NativeEngine {
  return load().addon.join(group, part, definitions, notify);
}

/** @throws when there is no addon for this platform */
export function primitives(): Primitives {
  return load().primitives;
}

function load(): { readonly addon: Addon; readonly primitives: Primitives } {
  if (loaded === undefined) {
    const addon = loadAddon();
    loaded = { addon, primitives: primitivesOf(addon.realm()) };
  }
  return loaded;
}

function primitivesOf(realm: Realm): Primitives {
  const { process, performance, Date } = realm;
  return {
    process,
    nextTick: process.nextTick.bind(process) as (fn: () => void) => void,
    setImmediate: realm.setImmediate,
    setTimeout: realm.setTimeout,
    clearTimeout: realm.clearTimeout,
    setInterval: realm.setInterval,
    clearInterval: realm.clearInterval,
    monotonicMs: performance.now.bind(performance),
    wallMs: Date.now.bind(Date),
  };
}

function loadAddon(): Addon {
  const given = process.env['FUSEE_NATIVE_PATH'];
  if (given !== undefined && given !== '') return require(path.resolve(given)) as Addon;
  const tried: string[] = [];
  for (const triple of triples()) {
    const beside = path.join(__dirname, '..', `fusee.${triple}.node`);
    for (const place of fs.existsSync(beside) ? [beside] : [beside, `fusee-${triple}`]) {
      try {
        return require(place) as Addon;
      } catch (error) {
        tried.push(`  ${place}: ${(error as Error).message.split('\n')[0]}`);
      }
    }
  }
  throw new Error(
    `fusee has no addon for ${process.platform}-${process.arch}. Tried:\n${tried.join('\n')}\n` +
      `Prebuilt ones come with the package's optional dependencies. From source: install Rust, then run npm run build`,
  );
}

/** The names by which an addon for this machine may go. */
function triples(): string[] {
  const base = `${process.platform}-${process.arch}`;
  if (process.platform === 'linux') return [`${base}-gnu`, `${base}-musl`];
  if (process.platform === 'win32') return [`${base}-msvc`];
  return [base];
}
