/**
 * The options of `open` about tasks: definitions, queues, limits.
 */
import { toMs } from '../duration.js';
import { checkText, knownOptions, shown } from '../options.js';
import { isTask, lengthMs, readRetry, type TaskDefinition } from './definition.js';
import { packConfig, type LimitSpec, type QueueSettings } from './packing.js';
import { readScale, type Scaler } from './scaling.js';

/** What an open fixes about tasks. */
export interface TaskSettings {
  readonly definitions: ReadonlyMap<string, TaskDefinition>;
  readonly queues: ReadonlyMap<string, QueueSettings>;
  /** Queues whose starts are limited, by the limit that does it. */
  readonly rates: ReadonlyMap<string, string>;
  /** Who provides the slots of queues that get theirs from outside. */
  readonly scalers: ReadonlyMap<string, Scaler>;
  /** Names of the limits. */
  readonly limits: ReadonlySet<string>;
  readonly packed: string;
}

/** Options as callers give them. */
export interface GivenTasks {
  readonly tasks?: unknown;
  /** Its threads say what they run when they come. */
  readonly workers?: unknown;
  readonly queues?: unknown;
  readonly limits?: unknown;
}

const QUEUE_OPTIONS = ['concurrency', 'rateLimit', 'maxPending', 'onFull', 'fair', 'retry', 'heartbeatTimeout'];
const RATE = ['limit', 'period', 'burst'];
const ON_FULL = ['wait', 'reject', 'dropOldest', 'dropLowest'];

/** @throws TypeError, RangeError */
export function readTasks(options: GivenTasks, random: () => number): TaskSettings {
  const definitions = readTaskDefinitions(options.tasks ?? [], 'tasks');
  const hasWorkers = options.workers !== undefined;
  const scalers = new Map<string, Scaler>();
  const queues = new Map<string, QueueSettings>([['default', readQueue('default', {}, scalers)]]);
  const limits = new Map<string, LimitSpec>();
  const rates = new Map<string, string>();
  for (const [name, spec] of entriesOf(options.limits, 'limits')) limits.set(name, readLimit(name, spec));
  for (const [name, spec] of entriesOf(options.queues, 'queues')) {
    const queue = readQueue(name, spec, scalers);
    if (hasWorkers && queue.retry?.shouldRetry !== undefined) {
      throw new TypeError(
        `retry.shouldRetry of queue '${name}' cannot be given to workers, since it is a function: give it to task()`,
      );
    }
    queues.set(name, queue);
    const rate = (spec as { rateLimit?: unknown } | null)?.rateLimit;
    if (rate === undefined) continue;
    const limit = `queue:${name}`;
    if (limits.has(limit))
      throw new TypeError(`limit '${limit}' has the name that the rateLimit of queue '${name}' takes`);
    knownOptions(rate, RATE, `rateLimit of queue '${name}'`);
    limits.set(limit, readLimit(limit, rate));
    rates.set(name, limit);
  }
  const settings = { queues, limits: new Set(limits.keys()) };
  for (const { name, policy } of definitions.values()) {
    checkNeeds({ name, queue: policy.queue, limits: policy.limits.map((use) => use.name) }, settings);
  }
  // Those of the workers come with them, and tasks that they have are not begun here meanwhile.
  const kinds = hasWorkers ? [] : definitions.keys();
  const seed = Math.floor(random() * 0xffffffff);
  return {
    definitions,
    queues,
    rates,
    scalers,
    limits: settings.limits,
    packed: packConfig(seed, kinds, queues.values(), limits),
  };
}

/** What a task needs of the options. */
export interface TaskNeeds {
  readonly name: string;
  readonly queue: string;
  readonly limits: readonly string[];
}

/** @throws TypeError where the options do not have what a task needs */
export function checkNeeds(task: TaskNeeds, settings: Pick<TaskSettings, 'queues' | 'limits'>): void {
  if (!settings.queues.has(task.queue)) {
    throw new TypeError(`task '${task.name}' goes to queue '${task.queue}', which is not among the option queues`);
  }
  for (const limit of task.limits) {
    if (!settings.limits.has(limit))
      throw new TypeError(`task '${task.name}' uses limit '${limit}', which is not among the option limits`);
  }
}

/** Definitions by name. @throws TypeError */
export function readTaskDefinitions(tasks: unknown, what: string): ReadonlyMap<string, TaskDefinition> {
  if (!Array.isArray(tasks)) throw new TypeError(`${what} must be an array of what task() returned`);
  const definitions = new Map<string, TaskDefinition>();
  tasks.forEach((definition: unknown, index) => {
    if (!isTask(definition)) throw new TypeError(`${what}[${index}] is not what task() returned`);
    const before = definitions.get(definition.name);
    if (before !== undefined && before !== definition)
      throw new TypeError(`there are two tasks named '${definition.name}'`);
    definitions.set(definition.name, definition);
  });
  return definitions;
}

function entriesOf(value: unknown, what: string): [string, unknown][] {
  if (value === undefined) return [];
  if (typeof value !== 'object' || value === null) throw new TypeError(`${what} must be an object, by name`);
  const entries = Object.entries(value);
  for (const [name] of entries) checkText(name, `a name among the option ${what}`);
  return entries;
}

/** @param scalers gets the function that provides the queue's slots, if there is one */
function readQueue(name: string, given: unknown, scalers: Map<string, Scaler>): QueueSettings {
  knownOptions(given, QUEUE_OPTIONS, `queue '${name}'`);
  const {
    concurrency = 10,
    maxPending,
    onFull = 'wait',
    fair,
    retry,
    heartbeatTimeout,
  } = (given ?? {}) as {
    readonly [option: string]: unknown;
  };
  if (typeof onFull !== 'string' || !ON_FULL.includes(onFull)) {
    throw new RangeError(`onFull of queue '${name}' must be one of ${ON_FULL.join(', ')}, not ${shown(onFull)}`);
  }
  const bounds = typeof concurrency === 'object' && concurrency !== null ? concurrency : undefined;
  const { scaler, ...scale } = bounds === undefined ? {} : readScale(bounds, name, readCount);
  if (scaler !== undefined) scalers.set(name, scaler);
  return {
    name,
    concurrency: 'max' in scale ? scale.max : readCount(concurrency, `concurrency of queue '${name}'`, 0),
    scale: 'max' in scale ? scale : undefined,
    maxPending: maxPending === undefined ? undefined : readCount(maxPending, `maxPending of queue '${name}'`, 1),
    onFull,
    retry: readRetry(retry),
    heartbeatMs: heartbeatTimeout === undefined ? undefined : lengthMs(heartbeatTimeout),
    weights: fair === undefined ? undefined : readWeights(fair, name),
  };
}

function readWeights(fair: unknown, queue: string): readonly (readonly [string, number])[] {
  knownOptions(fair, ['weights'], `fair of queue '${queue}'`);
  return entriesOf((fair as { weights?: unknown }).weights, `weights of queue '${queue}'`).map(([tenant, weight]) => {
    const percent = typeof weight === 'number' ? Math.round(weight * 100) : NaN;
    if (!(percent >= 1 && percent <= 0xffffffff)) {
      throw new RangeError(
        `the weight of tenant '${tenant}' in queue '${queue}' must be a number from 0.01, not ${shown(weight)}`,
      );
    }
    return [tenant, percent] as const;
  });
}

/** @throws TypeError, RangeError */
export function readLimit(name: string, given: unknown): LimitSpec {
  const spec = given as { readonly [option: string]: unknown } | null;
  if (typeof spec !== 'object' || spec === null) throw new TypeError(`limit '${name}' must be an object`);
  const isConcurrency = 'concurrency' in spec;
  const isRate = 'limit' in spec || 'period' in spec;
  // Until one says which of the two it is, it may have become either.
  const known = isConcurrency ? ['concurrency'] : [...(isRate ? [] : ['concurrency']), ...RATE];
  knownOptions(spec, known, `limit '${name}'`);
  if (!isConcurrency && !isRate) {
    throw new TypeError(`limit '${name}' needs concurrency, or limit and period`);
  }
  if (isConcurrency) return { concurrency: readCount(spec['concurrency'], `concurrency of limit '${name}'`, 1) };
  const limit = readCount(spec['limit'], `limit of limit '${name}'`, 1);
  const periodMs = lengthMs(spec['period']);
  if (periodMs < 1) throw new RangeError(`the period of limit '${name}' must be 1 ms or more`);
  return {
    limit,
    periodMs,
    burst: spec['burst'] === undefined ? limit : readCount(spec['burst'], `burst of limit '${name}'`, 1),
  };
}

/** @throws RangeError */
export function readCount(value: unknown, what: string, least: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > 0xffffffff) {
    throw new RangeError(`${what} must be a whole number from ${least}, not ${shown(value)}`);
  }
  return value;
}

/** A length or a point of time, as a time. @throws RangeError */
export function fromNow(value: unknown, nowMs: number): number {
  return Object.prototype.toString.call(value) === '[object Date]' ? (value as Date).getTime() : nowMs + toMs(value);
}
