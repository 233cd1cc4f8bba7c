/**
 * Tasks as users have them: enqueued, seen through handles, queues and limits.
 */
import { checkSchema, isThenable } from '../scheduler/checked.js';
import { QueueFullError, ReservationError, UnknownDefinitionError, fromNative } from '../errors.js';
import { checkText, knownOptions, oneLine, shown } from '../options.js';
import { asTask, isTask, readPriority, type TaskDefinition } from '../scheduler/definition.js';
import { ENTRY, FIELD, packLimit, PART, ROW } from '../scheduler/packing.js';
import { readTaskResult, readTaskRow, taskStatusCode, type TaskRow } from '../scheduler/rows.js';
import { readBounds } from '../scheduler/scaling.js';
import { readCount, readLimit } from '../scheduler/settings.js';
import { packSubmission, type EnqueueOptions } from '../scheduler/submission.js';
import type { EngineCore } from './core.js';
import { patienceOf, waitFor, type ResultOptions } from './patience.js';

/** So many submissions cross at a time. */
const CHUNK = 1000;

/** What became of one submission. */
type Admitted = TaskHandle | Error;

/** Options of {@link enqueueMany}: for all, or computed from each input. */
export type ManyOptions = EnqueueOptions | ((input: unknown, index: number) => EnqueueOptions | undefined);

/** A task, seen from outside. A handle is no promise: await `result()`. */
export class TaskHandle {
  readonly kind = 'task';
  readonly #core: EngineCore;
  /** The key was taken, and this is the task that was there. */
  readonly duplicate: boolean;
  /** Id of the task, or the key by which it is known. */
  readonly id: string;

  constructor(
    core: EngineCore,
    /** Empty: of a transaction that is not durable yet. */
    id: string,
    readonly key: string | undefined,
    duplicate: boolean,
  ) {
    this.#core = core;
    this.id = id;
    this.duplicate = duplicate;
  }

  /** Its transaction is durable. Not part of the public surface. */
  becomes({ id, duplicate }: TaskHandle): void {
    Object.assign(this, { id, duplicate });
  }

  get #target(): string {
    if (this.id !== '') return this.id;
    throw new TypeError('this task has no id: its engine.atomic has not resolved, or recorded nothing');
  }

  /** Waits for the end. Resolved means that the result is durable. */
  async result(options?: ResultOptions): Promise<unknown> {
    const patience = patienceOf(options, 'handle.result');
    const { native } = this.#core;
    const id = this.#target;
    const target = { id, runId: '', isTask: true };
    const request = this.#core.request(
      (token) => native.taskResult(token, id),
      (text, code) => readTaskResult(this.#core.payloads, text, code),
      target,
    );
    return waitFor(this.#core, request, patience, `the result of task ${id}`);
  }

  /** What is known about the task. */
  async describe(): Promise<TaskRow> {
    const { native, payloads } = this.#core;
    const id = this.#target;
    const read = (text: string): TaskRow => readTaskRow(payloads, text);
    return this.#core.request((token) => native.describeTask(token, id), read).promise;
  }

  /** Ends the task at once; a running attempt is aborted. No-op after its end. */
  async cancel(reason?: string): Promise<void> {
    const why = oneLine(reason, 'the reason given to handle.cancel');
    const id = this.#target;
    await this.#core.request((token) => this.#core.native.cancelTask(token, id, why), String).promise;
  }

  /** Starts a task that ended otherwise than completed again, with fresh attempts. @returns whether it was such a one */
  async retry(): Promise<boolean> {
    const id = this.#target;
    const answer = await this.#core.request((token) => this.#core.native.retryTask(token, id), String).promise;
    return answer === '1';
  }

  /** Moves a waiting task. @returns `false`: it has ended */
  async reprioritize(priority: unknown): Promise<boolean> {
    const code = readPriority(priority);
    const { native } = this.#core;
    const id = this.#target;
    return (await this.#core.request((token) => native.reprioritizeTask(token, id, code), String).promise) === '1';
  }
}

/** Puts a task into its queue. */
export async function enqueue(
  core: EngineCore,
  given: unknown,
  input: unknown,
  options: EnqueueOptions | undefined,
): Promise<TaskHandle> {
  const read = packed(core, known(core, given), input, options);
  const row = typeof read === 'string' ? read : await read;
  const [admitted] = await submit(core, [row], [options]).promise;
  if (admitted instanceof Error) throw admitted;
  return admitted!;
}

/** Enqueues many, each admitted or refused for itself, in order. */
export async function enqueueMany(
  core: EngineCore,
  given: unknown,
  inputs: unknown,
  options: ManyOptions | undefined,
): Promise<PromiseSettledResult<TaskHandle>[]> {
  const definition = known(core, given);
  if (!Array.isArray(inputs)) throw new TypeError('enqueueMany needs an array of inputs');
  const settled: PromiseSettledResult<TaskHandle>[] = Array.from<PromiseSettledResult<TaskHandle>>({
    length: inputs.length,
  });
  const chunks: Promise<void>[] = [];
  for (let from = 0; from < inputs.length; from += CHUNK) {
    const rows: string[] = [];
    const places: number[] = [];
    const optionsOf: (EnqueueOptions | undefined)[] = [];
    for (let at = from; at < Math.min(from + CHUNK, inputs.length); at += 1) {
      try {
        const own = typeof options === 'function' ? options(inputs[at], at) : options;
        const read = packed(core, definition, inputs[at], own);
        rows.push(typeof read === 'string' ? read : await read);
        places.push(at);
        optionsOf.push(own);
      } catch (reason) {
        settled[at] = { status: 'rejected', reason };
      }
    }
    if (rows.length > 0) chunks.push(settleChunk(core, rows, optionsOf, places, settled));
  }
  await Promise.all(chunks);
  return settled;
}

async function settleChunk(
  core: EngineCore,
  rows: string[],
  options: readonly (EnqueueOptions | undefined)[],
  places: readonly number[],
  settled: PromiseSettledResult<TaskHandle>[],
): Promise<void> {
  let admitted: Admitted[];
  try {
    admitted = await submit(core, rows, options).promise;
  } catch (reason) {
    for (const at of places) settled[at] = { status: 'rejected', reason };
    return;
  }
  admitted.forEach((one, index) => {
    settled[places[index]!] =
      one instanceof Error ? { status: 'rejected', reason: one } : { status: 'fulfilled', value: one };
  });
}

function submit(
  core: EngineCore,
  rows: readonly string[],
  options: readonly (EnqueueOptions | undefined)[],
): { readonly promise: Promise<Admitted[]> } {
  return core.request(
    (token) => core.native.enqueueTasks(token, rows.join(ROW)),
    (text) =>
      text.split(ROW).map((row, index) => readAdmitted(core, row, options[index]?.['key'] as string | undefined)),
  );
}

/** Reads what became of a submission. */
export function readAdmitted(core: EngineCore, row: string, key: string | undefined): Admitted {
  const [what, number] = row.split(FIELD) as [string, string];
  return what === 'r' ? readRefusal(row) : new TaskHandle(core, `t-${number}`, key, what !== 'n');
}

/** Why a submission was refused. */
export function readRefusal(row: string): Error {
  const [, code = '', message = '', queue = '', more = ''] = row.split(FIELD);
  if (code === 'QUEUE_FULL') return new QueueFullError(message, { queue, maxPending: Number(more) });
  if (code === 'RESERVATION') return new ReservationError(message, { queue, at: new Date(Number(more)) });
  return fromNative({ code, message });
}

function known(core: EngineCore, given: unknown): TaskDefinition {
  core.check();
  const definition = asTask(given);
  if (!core.settings.tasks.definitions.has(definition.name)) {
    const type = definition.name;
    throw new UnknownDefinitionError(`task '${type}' was not given to open(); add it to the option tasks`, { type });
  }
  return definition;
}

/** A task as it crosses; a promise of it if its schema takes time. @throws TypeError, RangeError */
export function packTask(
  core: EngineCore,
  given: unknown,
  input: unknown,
  options: EnqueueOptions | undefined,
  transaction?: object,
): string | Promise<string> {
  return packed(core, known(core, given), input, options, transaction);
}

function packed(
  core: EngineCore,
  definition: TaskDefinition,
  input: unknown,
  options: EnqueueOptions | undefined,
  transaction?: object,
): string | Promise<string> {
  const what = `the input of task '${definition.name}'`;
  const place = { kind: 'task', id: '', name: definition.name } as const;
  const verb = transaction === undefined ? 'engine.enqueue' : 'tx.enqueue';
  const { tasks } = core.settings;
  const pack = (value: unknown): string =>
    packSubmission(definition, value, core.record(value, what, place), options, tasks, core.nowMs(), verb, transaction);
  const checked = checkSchema(definition.options.input, input, what);
  return isThenable(checked) ? Promise.resolve(checked).then(pack) : pack(checked);
}

/** Which tasks: all conditions must hold. */
export interface TaskFilter {
  readonly type?: unknown;
  readonly status?: unknown;
  readonly queue?: unknown;
  readonly tenant?: unknown;
  readonly keyPrefix?: unknown;
  readonly tags?: unknown;
}

/** @throws TypeError, RangeError */
export function packFilter(filter: TaskFilter | undefined, verb: string, mustChoose: boolean): string {
  knownOptions(filter, ['type', 'status', 'queue', 'tenant', 'keyPrefix', 'tags'], verb);
  const { type, status, queue = '', tenant = '', keyPrefix = '', tags = {} } = filter ?? {};
  if (mustChoose && Object.values(filter ?? {}).every((value) => value === undefined)) {
    throw new TypeError(`${verb} needs a filter that is not empty: it would mean every task`);
  }
  const types = type === undefined ? [] : ((Array.isArray(type) ? type : [type]) as unknown[]);
  const names = types.map((name) => oneLine(isTask(name) ? name.name : name, 'type'));
  const statuses = status === undefined ? [] : ((Array.isArray(status) ? status : [status]) as unknown[]);
  let mask = 0;
  for (const name of statuses) {
    const code = taskStatusCode(name);
    if (code === undefined) throw new RangeError(`a task has no status ${shown(name)}`);
    mask |= 1 << code;
  }
  const pairs = Object.entries(tags as object).map(
    ([name, value]) => `${oneLine(name, 'a tag')}${PART}${oneLine(value, 'a tag')}`,
  );
  const texts = [oneLine(queue, 'queue'), oneLine(tenant, 'tenant'), oneLine(keyPrefix, 'keyPrefix')];
  return [names.join(ENTRY), mask, ...texts, pairs.join(ENTRY)].join(FIELD);
}

/** Does the same to many tasks, slice by slice: others come in between. @returns to how many */
export async function changeTasks(
  core: EngineCore,
  filter: string,
  what: 'cancel' | 'retry' | 'priority',
  more: string,
): Promise<number> {
  let total = 0;
  for (let after = 0, until = 0; ;) {
    const [from, to] = [after, until];
    const text = core.request((token) => core.native.changeTasks(token, filter, what, more, from, to), String);
    const [count, next, last] = (await text.promise).split(FIELD).map(Number) as [number, number, number];
    total += count;
    if (next === 0) return total;
    [after, until] = [next, last];
  }
}

const STATS = [
  'concurrency',
  'running',
  'pending',
  'ready',
  'retrying',
  'dispatched',
  'completed',
  'failedAttempts',
  'retried',
  'utilisation',
  'waitMean',
  'waitP50',
  'waitP99',
  'runP50',
  'runP99',
];

/** One queue. Changes are durable when their promise resolves, and stay over restarts. */
export class QueueControl {
  readonly #core: EngineCore;

  constructor(
    core: EngineCore,
    readonly name: string,
  ) {
    this.#core = core;
    core.check();
    if (!core.settings.tasks.queues.has(name))
      throw new TypeError(`there is no queue ${shown(name)}; add it to the option queues`);
  }

  /** Starts nothing more until `resume`; what runs goes on. */
  async pause(): Promise<void> {
    await this.#core.request((token) => this.#core.native.pauseQueue(token, this.name, 1), String).promise;
  }

  async resume(): Promise<void> {
    await this.#core.request((token) => this.#core.native.pauseQueue(token, this.name, 0), String).promise;
  }

  async setConcurrency(concurrency: unknown): Promise<void> {
    if (typeof concurrency === 'object' && concurrency !== null) {
      const { min, max } = readBounds(concurrency, `concurrency of queue '${this.name}'`, readCount);
      await this.#core.request((token) => this.#core.native.boundQueue(token, this.name, min, max), String).promise;
      return;
    }
    const count = readCount(concurrency, 'concurrency', 0);
    await this.#core.request((token) => this.#core.native.resizeQueue(token, this.name, count), String).promise;
  }

  /** Says how many slots somebody outside provides. */
  reportCapacity(slots: number): void {
    this.#core.check();
    if (this.#core.settings.tasks.queues.get(this.name)?.scale?.isOutside !== true) {
      throw new TypeError(
        `queue '${this.name}' gets its slots from its option concurrency; give it { min, max, scale: a function } to report them`,
      );
    }
    this.#core.scalers.report(this.name, readCount(slots, 'the capacity', 0));
  }

  async stats(): Promise<object> {
    const text = await this.#core.request((token) => this.#core.native.queueStats(token, this.name), String).promise;
    const [paused, ...numbers] = text.split(FIELD);
    const figures = STATS.map(
      (name, index) => [name, Number(numbers[index]) / (name === 'utilisation' ? 1000 : 1)] as const,
    );
    return { paused: paused === '1', ...Object.fromEntries(figures) };
  }
}

/** Makes or changes a limit. */
export async function setLimit(core: EngineCore, name: unknown, spec: unknown): Promise<void> {
  checkText(name, 'the name of a limit');
  const text = packLimit(readLimit(name, spec));
  await core.request((token) => core.native.setLimit(token, name, text), String).promise;
}
