/**
 * The engine as users have it: arguments read and checked, answers shaped.
 */
import { realpathSync } from 'node:fs';
import * as path from 'node:path';
import { atomic, type Transaction } from './atomic.js';
import { completeAwakeable, type CompleteOptions } from './awakeables.js';
import { asWorkflow, isWorkflow } from '../definitions.js';
import { toMs } from '../duration.js';
import { knownOptions, oneLine } from '../options.js';
import { EngineCore, type CoreSettings } from './core.js';
import { enqueueRun } from './enqueueing.js';
import { WorkflowHandle } from './handle.js';
import { metricsOf, metricsText } from './metrics.js';
import { patienceOf, waitFor, type ResultOptions } from './patience.js';
import type { RunFilter } from './filters.js';
import { countRuns, listRuns, pageOfRuns, type ListOptions, type PageOptions, type RunPage } from './listing.js';
import { ObjectControl, objectClient } from './objects.js';
import { readExplanation, rowsOf, type Explanation, type RunRow } from './rows.js';
import {
  requestSignalWithStart,
  requestUpdateWithStart,
  type SignalWithStart,
  type UpdateWithStart,
} from './updating.js';
import type { EnqueueOptions } from '../scheduler/submission.js';
import { isTask, readPriority, type TaskDefinition } from '../scheduler/definition.js';
import { readTaskReason, readTaskRow, readUsage, type TaskRow } from '../scheduler/rows.js';
import {
  changeTasks,
  enqueue,
  enqueueMany,
  packFilter,
  QueueControl,
  setLimit,
  TaskHandle,
  type ManyOptions,
  type TaskFilter,
} from './tasks.js';
import { ScheduleControl } from './schedules.js';
import { checkId, readStart, requestResult, requestStart, START_OPTIONS, type StartOptions } from './starting.js';

/** Rows fetched at a time. */
const PAGE = 100;
const GRACE_MS = 10_000;

/** An open directory, or an engine in memory. */
export class Engine {
  /** Not part of the public surface. */
  protected readonly core: EngineCore;
  private closing: Promise<void> | undefined;
  private removeSignalHandlers: () => void = () => undefined;

  constructor(settings: CoreSettings) {
    this.core = new EngineCore(settings);
  }

  /** Starts a workflow. Resolved: the start is durable. */
  async start(workflow: unknown, input?: unknown, options?: StartOptions): Promise<WorkflowHandle> {
    const read = readStart(this.core, workflow, input, options, 'engine.start');
    const start = isThenable(read) ? await read : read;
    const runId = await requestStart(this.core, start).promise;
    return new WorkflowHandle(this.core, start.id, runId);
  }

  /** Starts a workflow and waits for its result. */
  execute(workflow: unknown, input?: unknown, options?: StartOptions & ResultOptions): Promise<unknown> {
    if (options !== undefined) return this.executeWith(workflow, input, options);
    try {
      const start = readStart(this.core, workflow, input, undefined, 'engine.execute');
      // The promise of the request itself: another one around it would be felt where thousands are executed at once.
      if (!isThenable(start)) return requestResult(this.core, start, this.core.readResult).promise;
      return start.then((read) => requestResult(this.core, read, this.core.readResult).promise);
    } catch (error) {
      return promised(() => {
        throw error;
      });
    }
  }

  private async executeWith(
    workflow: unknown,
    input: unknown,
    options: StartOptions & ResultOptions,
  ): Promise<unknown> {
    knownOptions(options, [...START_OPTIONS, 'signal'], 'engine.execute');
    const { signal, ...startOptions } = options;
    const patience = patienceOf({ signal }, 'engine.execute');
    const read = readStart(this.core, workflow, input, startOptions, 'engine.execute');
    const start = isThenable(read) ? await read : read;
    const result = requestResult(this.core, start, this.core.readResult);
    return waitFor(this.core, result, patience, `the result of workflow ${start.id}`);
  }

  /** Sends a signal to a workflow and starts it if it does not run, in one record. */
  async signalWithStart(workflow: unknown, request: SignalWithStart): Promise<WorkflowHandle> {
    const { start, runId } = await requestSignalWithStart(this.core, workflow, request);
    return new WorkflowHandle(this.core, start.id, runId);
  }

  /** Sends an update to a workflow and starts it first if it does not run. */
  async updateWithStart(
    workflow: unknown,
    request: UpdateWithStart,
  ): Promise<{ readonly handle: WorkflowHandle; readonly answer: Promise<unknown> }> {
    const { start, runId, answer } = await requestUpdateWithStart(this.core, workflow, request);
    return { handle: new WorkflowHandle(this.core, start.id, runId), answer };
  }

  /** Settles an awakeable. @returns whether this was what settled it */
  complete(token: string, value?: unknown, options?: CompleteOptions): Promise<boolean> {
    return completeAwakeable(this.core, token, { ok: value }, options, 'engine.complete');
  }

  /** Rejects an awakeable. @returns whether this was what settled it */
  fail(token: string, error: unknown, options?: CompleteOptions): Promise<boolean> {
    return completeAwakeable(this.core, token, { failure: error }, options, 'engine.fail');
  }

  /** A run, by id. Does not look whether it exists. */
  handle(definition: TaskDefinition, key: string): TaskHandle;
  handle(definition: unknown, id?: unknown, options?: { runId?: string }): WorkflowHandle;
  handle(definition: unknown, id?: unknown, options?: { runId?: string }): WorkflowHandle | TaskHandle {
    if (isTask(definition)) return new TaskHandle(this.core, checkId(id), undefined, false);
    const isById = typeof definition === 'string';
    if (!isById) asWorkflow(definition);
    const name: unknown = isById ? definition : id;
    const more = (isById ? id : options) as { runId?: string } | undefined;
    knownOptions(more, ['runId'], 'engine.handle');
    return new WorkflowHandle(this.core, checkId(name), more?.runId);
  }

  /** An object, by id. It begins to exist with the first call. */
  object(definition: unknown, id: unknown): ReturnType<typeof objectClient> {
    return objectClient(this.core, definition, id);
  }

  /** States of objects. */
  get objects(): ObjectControl {
    return new ObjectControl(this.core);
  }

  /** Puts a task, or a workflow that starts when its turn has come, into a queue. Resolved: admitted and durable. */
  enqueue(definition: unknown, input?: unknown, options?: EnqueueOptions): Promise<TaskHandle | WorkflowHandle> {
    if (isWorkflow(definition)) return enqueueRun(this.core, definition, input, options);
    return enqueue(this.core, definition, input, options);
  }

  /** Enqueues many, each admitted or refused for itself, in order. */
  enqueueMany(task: unknown, inputs: unknown, options?: ManyOptions): Promise<PromiseSettledResult<TaskHandle>[]> {
    return enqueueMany(this.core, task, inputs, options);
  }

  /** Takes tasks in together, all or none. Resolved: durable. */
  atomic<T>(fn: (tx: Transaction) => T): Promise<T> {
    return atomic(this.core, fn);
  }

  /** One queue. */
  queue(name: string): QueueControl {
    return new QueueControl(this.core, name);
  }

  /** Schedules. */
  get schedules(): ScheduleControl {
    return new ScheduleControl(this.core);
  }

  /** Makes or changes a limit. Resolved: durable. */
  limit(name: string, spec: unknown): Promise<void> {
    return setLimit(this.core, name, spec);
  }

  /** Use of a limit now, or of one key of it. */
  async limitUsage(name: string, key?: string): Promise<object> {
    const [limit, of] = [oneLine(name, 'the name of a limit'), oneLine(key, 'the key of a limit')];
    const usage = this.core.request((token) => this.core.native.limitUsage(token, limit, of), readUsage);
    return usage.promise;
  }

  /** Starts `dead` and `failed` tasks again. @returns how many */
  async retry(filter: TaskFilter): Promise<number> {
    const packed = packFilter(filter, 'engine.retry', true);
    return changeTasks(this.core, packed, 'retry', '');
  }

  /** Cancels tasks. @returns how many */
  async cancel(filter: TaskFilter, reason = ''): Promise<number> {
    const packed = packFilter(filter, 'engine.cancel', true);
    return changeTasks(this.core, packed, 'cancel', oneLine(reason, 'the reason given to engine.cancel'));
  }

  /** Moves a task by its id or key, or all that a filter admits. @returns whether it has not ended; how many have not */
  async reprioritize(which: string | TaskFilter, priority: unknown): Promise<boolean | number> {
    if (typeof which === 'string') return this.handleOf(which).reprioritize(priority);
    const packed = packFilter(which, 'engine.reprioritize', true);
    return changeTasks(this.core, packed, 'priority', String(readPriority(priority)));
  }

  private handleOf(task: string): TaskHandle {
    return new TaskHandle(this.core, checkId(task), undefined, false);
  }

  /** Tasks, as durable now, oldest first, read in pages. */
  async *tasks(filter?: TaskFilter): AsyncIterableIterator<TaskRow> {
    const packed = packFilter(filter, 'engine.tasks', false);
    for (let after = 0; ;) {
      const at = after;
      const page = this.core.request((token) => this.core.native.listTasks(token, packed, at, PAGE), rowsOf);
      const rows = (await page.promise).map((row) => readTaskRow(this.core.payloads, row));
      yield* rows;
      if (rows.length < PAGE) return;
      after = Number(rows.at(-1)!.id.slice(2));
    }
  }

  /** Why a task is not running. */
  async explainTask(task: TaskHandle | string): Promise<object> {
    const id = checkId(typeof task === 'string' ? task : task.id);
    return this.core.request((token) => this.core.native.explainTask(token, id), readTaskReason).promise;
  }

  /** Runs, as durable now, read in pages. */
  list(options?: ListOptions): AsyncIterableIterator<RunRow> {
    return listRuns(this.core, options);
  }

  /** One page of a list, and where it goes on. */
  listPage(options?: PageOptions): Promise<RunPage> {
    return pageOfRuns(this.core, options);
  }

  /** Number of runs. */
  count(filter?: RunFilter): Promise<number> {
    return countRuns(this.core, filter);
  }

  /** Why a run is not running. */
  async explain(id: string): Promise<Explanation> {
    const name = checkId(id);
    return this.core.request((token) => this.core.native.explain(token, name, ''), readExplanation).promise;
  }

  on(event: string, listener: (event: unknown) => void): this {
    return this.listen(event, listener, false);
  }

  once(event: string, listener: (event: unknown) => void): this {
    return this.listen(event, listener, true);
  }

  off(event: string, listener: (event: unknown) => void): this {
    this.core.listeners.remove(event, listener);
    if (this.closing === undefined) this.core.updateSubscription();
    return this;
  }

  /** Figures by name. */
  metrics(): Promise<{ readonly [name: string]: number }> {
    return promised(() => {
      this.core.check();
      return metricsOf(this.core);
    });
  }

  /** The same, and those of its queues, in the text format of Prometheus. */
  async metricsText(): Promise<string> {
    this.core.check();
    return metricsText(this.core);
  }

  /** Copies what is durable now to a new directory, while it runs. Resolved: the copy is durable and can be opened. */
  async backup(directory: string): Promise<void> {
    if (typeof directory !== 'string' || directory === '') throw new TypeError('engine.backup needs a directory');
    checkApart(directory, this.core.settings.dir);
    await this.core.request((token) => this.core.native.backup(token, directory), String).promise;
  }

  /** Whether it works, and what is wrong. */
  health(): Promise<{ readonly status: string; readonly problems: readonly string[] }> {
    return promised(() => {
      if (this.closing !== undefined) return { status: 'failed', problems: ['the engine is closed; open it again'] };
      const [status = 'failed', ...problems] = this.core.native.health().split('\u001f');
      return { status, problems };
    });
  }

  /** Lets the process end while the engine is open. */
  unref(): this {
    this.core.setWanted(false);
    return this;
  }

  /** Undoes `unref`. */
  ref(): this {
    this.core.setWanted(true);
    return this;
  }

  /** Closes on `SIGTERM` and `SIGINT`, then lets the process end. */
  handleSignals(options?: { grace?: unknown }): this {
    knownOptions(options, ['grace'], 'engine.handleSignals');
    this.core.check();
    this.removeSignalHandlers();
    const { process } = this.core.primitives;
    const names = ['SIGTERM', 'SIGINT'] as const;
    const onSignal = (): void => {
      this.close(options).catch((error: unknown) => {
        this.core.settings.logger.error('fusee: closing on a signal of the process failed', { error });
      });
    };
    for (const name of names) process.on(name, onSignal);
    this.removeSignalHandlers = () => {
      for (const name of names) process.off(name, onSignal);
    };
    return this;
  }

  /** Takes nothing new, lets bodies end within the grace, leaves nothing open. */
  close(options?: { grace?: unknown }): Promise<void> {
    return promised(() => {
      knownOptions(options, ['grace'], 'engine.close');
      const graceMs = options?.grace === undefined ? GRACE_MS : toMs(options.grace);
      this.closing ??= this.closeCore(graceMs).finally(() => this.removeSignalHandlers());
      return this.closing;
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  protected closeCore(graceMs: number): Promise<void> {
    return this.core.close(graceMs);
  }

  private listen(event: string, listener: (event: unknown) => void, isOnce: boolean): this {
    this.core.check();
    this.core.listeners.add(event, listener, isOnce);
    this.core.updateSubscription();
    return this;
  }
}

/** @throws TypeError: a copy that is part of what it copies is lost with it */
function checkApart(copy: string, own: string | null): void {
  if (own === null) return;
  const place = path.relative(realPath(own), realPath(path.resolve(copy)));
  const isInside = place === '' || !(place === '..' || place.startsWith(`..${path.sep}`) || path.isAbsolute(place));
  if (!isInside) return;
  const where = place === '' ? 'is the directory of this engine' : `is inside the directory of this engine, ${own}`;
  throw new TypeError(`engine.backup cannot copy to ${copy}, which ${where}; name one elsewhere`);
}

/** Without links, as far as it exists. */
function realPath(place: string): string {
  try {
    return realpathSync(place);
  } catch {
    const parent = path.dirname(place);
    return parent === place ? place : path.join(realPath(parent), path.basename(place));
  }
}

/** What `fn` returns or throws, as a promise. */
function promised<T>(fn: () => T | Promise<T>): Promise<T> {
  return new Promise((resolve) => {
    resolve(fn());
  });
}

function isThenable<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown }).then === 'function';
}
