/**
 * Tasks as they are defined: importable anywhere, they need no engine.
 */
import { toMs } from '../duration.js';
import { checkText, knownOptions, shown } from '../options.js';
import type { Schema } from '../definitions.js';
import { retryPolicy, type RetryPolicy } from '../workflow/step-options.js';

/** A class of priority, by its number. */
export const PRIORITIES = ['critical', 'high', 'normal', 'low'] as const;

/** What an attempt takes of a limit. */
export interface LimitUse {
  readonly name: string;
  readonly amount: number;
  readonly key: string | ((input: unknown) => unknown) | undefined;
}

/** What {@link task} returns. */
export interface TaskDefinition {
  readonly kind: 'task';
  readonly name: string;
  readonly handler: (ctx: never, input: never) => unknown;
  readonly options: TaskOptions;
  /** Options, read. */
  readonly policy: TaskPolicy;
}

/** Options of a task, as callers give them. */
export interface TaskOptions {
  readonly input?: Schema;
  readonly queue?: unknown;
  readonly retry?: unknown;
  readonly timeout?: unknown;
  readonly limits?: unknown;
  readonly priority?: unknown;
  readonly durationHint?: unknown;
}

/** Options of a task, read. */
export interface TaskPolicy {
  readonly queue: string;
  readonly retry: RetryPolicy | undefined;
  readonly timeoutMs: number | undefined;
  readonly limits: readonly LimitUse[];
  readonly priority: number;
  readonly estimateMs: number | undefined;
}

/** The retries of a task without options. */
export const TASK_RETRY: RetryPolicy = {
  maxAttempts: 3,
  initialMs: 1000,
  maxMs: 60_000,
  backoff: 2,
  jitter: true,
  nonRetryable: [],
  shouldRetry: undefined,
  pauses: false,
};

const OPTIONS = ['input', 'queue', 'retry', 'timeout', 'limits', 'priority', 'durationHint'];

/** Defines a task. @throws TypeError, RangeError on what cannot be meant */
export function task(
  name: string,
  handler: (ctx: never, input: never) => unknown,
  options: TaskOptions = {},
): TaskDefinition {
  checkText(name, 'the name of a task');
  if (typeof handler !== 'function') throw new TypeError(`task '${name}' needs a function as its second argument`);
  knownOptions(options, OPTIONS, `task '${name}'`);
  const { input, queue = 'default', retry, timeout, limits, priority, durationHint } = options;
  if (input !== undefined && typeof (input as Partial<Schema> | null)?.['~standard']?.validate !== 'function') {
    throw new TypeError(`the option input of task '${name}' must be a Standard Schema`);
  }
  checkText(queue, `the queue of task '${name}'`);
  const policy = {
    queue,
    retry: readRetry(retry),
    timeoutMs: optionalMs(timeout),
    limits: readLimits(limits, true),
    priority: readPriority(priority),
    estimateMs: optionalMs(durationHint),
  };
  return Object.freeze({ kind: 'task', name, handler, options: Object.freeze({ ...options }), policy });
}

/** What stands for the code of a task that another thread runs. */
export function runsElsewhere(): never {
  throw new Error('the code of this task runs on another thread');
}

/** Whether a value is what {@link task} returns. */
export function isTask(value: unknown): value is TaskDefinition {
  const given = value as Partial<TaskDefinition> | null | undefined;
  return (
    typeof value === 'object' &&
    given?.kind === 'task' &&
    typeof given.name === 'string' &&
    typeof given.handler === 'function' &&
    typeof given.policy === 'object'
  );
}

/** @throws TypeError */
export function asTask(value: unknown): TaskDefinition {
  if (!isTask(value)) throw new TypeError(`a task is needed here, as task() returns it, not ${shown(value)}`);
  return value;
}

/** @throws TypeError, RangeError */
export function readRetry(retry: unknown): RetryPolicy | undefined {
  if (retry === undefined) return undefined;
  const read = retryPolicy(retry, TASK_RETRY);
  if (read.pauses)
    throw new RangeError("retry.onExhausted of a task cannot be 'pause': it ends dead, see engine.retry()");
  return read;
}

/** A class of priority, or 0 to 9. @throws RangeError */
export function readPriority(priority: unknown): number {
  if (priority === undefined) return 2;
  if (typeof priority === 'number' && Number.isInteger(priority) && priority >= 0 && priority <= 9) {
    return priority < 2 ? 0 : priority < 4 ? 1 : priority < 7 ? 2 : 3;
  }
  const code = PRIORITIES.indexOf(priority as (typeof PRIORITIES)[number]);
  if (code < 0)
    throw new RangeError(`priority must be one of ${PRIORITIES.join(', ')}, or 0 to 9, not ${shown(priority)}`);
  return code;
}

/** @throws TypeError, RangeError */
export function readLimits(limits: unknown, mayCompute: boolean): readonly LimitUse[] {
  if (limits === undefined) return [];
  if (!Array.isArray(limits)) throw new TypeError('limits must be an array of names, or of objects with a name');
  return limits.map((of: unknown) => {
    if (typeof of === 'string') return { name: of, amount: 1, key: undefined };
    knownOptions(of, ['name', 'amount', 'key'], 'a use of a limit');
    const { name, amount = 1, key } = (of ?? {}) as { name?: unknown; amount?: unknown; key?: unknown };
    checkText(name, 'the name of a limit');
    if (typeof amount !== 'number' || !Number.isInteger(amount) || amount < 1 || amount > 0xffffffff) {
      throw new RangeError(`the amount of limit '${name}' must be a whole number from 1, not ${shown(amount)}`);
    }
    if (typeof key === 'function' && mayCompute) return { name, amount, key: key as (input: unknown) => unknown };
    if (key !== undefined) checkText(key, `the key of limit '${name}'`);
    return { name, amount, key };
  });
}

function optionalMs(value: unknown): number | undefined {
  return value === undefined ? undefined : lengthMs(value);
}

/** A length of time that is recorded in 32 bits. @throws RangeError */
export function lengthMs(value: unknown): number {
  const ms = toMs(value);
  if (ms > 0xffffffff) throw new RangeError('a duration of a task can have 49 days at most');
  return ms;
}
