/**
 * One submission of a task: what a caller gives, read, checked and packed.
 */
import { toMs, toTimeMs } from '../duration.js';
import { checkText, knownOptions, shown } from '../options.js';
import { lengthMs, readLimits, readPriority, readRetry, type LimitUse, type TaskDefinition } from './definition.js';
import type { RetryPolicy } from '../workflow/step-options.js';
import { FIELD, packRetry, PART } from './packing.js';
import { fromNow, type TaskSettings } from './settings.js';

/** Options of `enqueue`, as callers give them. */
export interface EnqueueOptions {
  readonly [option: string]: unknown;
}

/** A condition on how another task, or a run of a workflow, ends. */
export interface Edge {
  readonly kind: 'edge';
  readonly run: string;
  /** Of a workflow: one run of it; empty: the latest one. Of a task: `undefined`. */
  readonly runId: string | undefined;
  readonly on: 'success' | 'complete' | 'failure';
  /** A task of a transaction that has no id yet. */
  readonly part?: Part;
}

/** A task of a transaction: which, and where in it, from 0. */
interface Part {
  readonly transaction: object;
  readonly place: number;
}

/** Handles of tasks of transactions. */
const parts = new WeakMap<object, Part>();

/** A handle stands for a task of a transaction. */
export function joinTransaction(handle: object, transaction: object, place: number): void {
  parts.set(handle, { transaction, place });
}

/** What is waited for. */
type Ref = Pick<Edge, 'run' | 'runId' | 'part'>;

/** What `enqueue` can be told. */
export const ENQUEUE_OPTIONS = [
  'queue',
  'priority',
  'delay',
  'runAt',
  'deadline',
  'expires',
  'reserve',
  'tenant',
  'orderKey',
  'after',
  'limits',
  'labels',
  'tags',
  'key',
  'dedupe',
  'retry',
  'timeout',
  'durationHint',
];
const CONDITIONS = ['success', 'complete', 'failure'];
/** Added to the number of a condition on a run. */
const ON_RUN = 16;
/** And to that of one on a task of the same transaction. */
const ON_PART = 32;
const ON_MISS = ['late', 'skip', 'fail'];

/** Holds when the task or run ended `completed`. The same as giving it itself. */
export function onSuccess(run: unknown): Edge {
  return edge(run, 'success');
}

/** Holds when the task or run ended, however it ended. */
export function onComplete(run: unknown): Edge {
  return edge(run, 'complete');
}

/** Holds when the task ended `failed` or `dead`, or the run `failed` or `timedOut`. */
export function onFailure(run: unknown): Edge {
  return edge(run, 'failure');
}

function edge(run: unknown, on: Edge['on']): Edge {
  return Object.freeze({ kind: 'edge', ...refOf(run), on });
}

/** Packs a submission. `payload`: the input, encoded. @throws TypeError, RangeError */
export function packSubmission(
  definition: Pick<TaskDefinition, 'name' | 'policy'>,
  input: unknown,
  payload: string,
  options: EnqueueOptions | undefined,
  settings: Pick<TaskSettings, 'rates'>,
  nowMs: number,
  verb = 'engine.enqueue',
  transaction?: object,
): string {
  const { policy } = definition;
  if (options !== undefined) knownOptions(options, ENQUEUE_OPTIONS, verb);
  const given = options ?? {};
  const queue = given['queue'] ?? policy.queue;
  checkText(queue, 'queue');
  let row = queue + FIELD + definition.name + FIELD + payload;
  const add = (letter: string, value: string | number): void => {
    row += FIELD + letter + value;
  };
  const priority = given['priority'] === undefined ? policy.priority : readPriority(given['priority']);
  if (priority !== 2) add('p', priority);
  const retry = given['retry'] === undefined ? policy.retry : readOwnRetry(given['retry'], verb);
  if (retry !== undefined) add('R', packRetry(retry));
  const timeoutMs = given['timeout'] === undefined ? policy.timeoutMs : lengthMs(given['timeout']);
  if (timeoutMs !== undefined) add('T', timeoutMs);
  const estimateMs = given['durationHint'] === undefined ? policy.estimateMs : lengthMs(given['durationHint']);
  if (estimateMs !== undefined) add('e', estimateMs);
  const rate = settings.rates.get(queue);
  if (rate !== undefined) add('l', `1${PART}${rate}`);
  for (const use of policy.limits) add('l', packUse(use, input));
  if (options !== undefined) packOptions(given, add, nowMs, transaction);
  return row;
}

/** What is recorded with a task is numbers: what only code can decide is the definition's or the queue's. */
function readOwnRetry(given: unknown, verb: string): RetryPolicy | undefined {
  const retry = readRetry(given);
  if (retry?.shouldRetry !== undefined || (retry?.nonRetryable.length ?? 0) > 0) {
    throw new TypeError(
      `retry of ${verb} has numbers only: give shouldRetry and nonRetryable to task(), or to the retry of its queue`,
    );
  }
  return retry;
}

function packUse({ name, amount, key }: LimitUse, input: unknown): string {
  if (key === undefined) return `${amount}${PART}${name}`;
  const value: unknown = typeof key === 'function' ? key(input) : key;
  const text = typeof value === 'number' ? String(value) : value;
  checkText(text, `the key of limit '${name}'`);
  return `${amount}${PART}${name}${PART}${text}`;
}

function packOptions(
  given: EnqueueOptions,
  add: (letter: string, value: string | number) => void,
  nowMs: number,
  transaction: object | undefined,
): void {
  const { delay, runAt, deadline, expires, reserve, tags, labels, dedupe } = given;
  if (delay !== undefined && runAt !== undefined) throw new TypeError('give delay or runAt, not both');
  for (const [letter, name] of [
    ['k', 'key'],
    ['t', 'tenant'],
    ['o', 'orderKey'],
  ] as const) {
    const text = given[name];
    if (text === undefined) continue;
    checkText(text, name);
    add(letter, text);
  }
  if (delay !== undefined) add('n', nowMs + toMs(delay));
  else if (runAt !== undefined) add('n', toTimeMs(runAt));
  if (deadline !== undefined) add('d', fromNow(deadline, nowMs));
  if (expires !== undefined) add('x', fromNow(expires, nowMs));
  if (reserve !== undefined) add('r', packReserve(reserve));
  if (dedupe !== undefined) add('D', packDedupe(dedupe));
  for (const parent of listOf(given['after'], 'after')) add('a', packParent(parent, transaction));
  for (const use of readLimits(given['limits'], false)) add('l', packUse(use, undefined));
  for (const pair of packPairs(labels, 'label')) add('L', pair);
  for (const pair of packPairs(tags, 'tag')) add('g', pair);
}

/** Names and values. @throws TypeError */
export function packPairs(given: unknown, what: string): string[] {
  if (given === undefined) return [];
  if (typeof given !== 'object' || given === null) throw new TypeError(`${what}s must be an object of texts, by name`);
  return Object.entries(given).map(([name, value]: [string, unknown]) => {
    checkText(name, `the name of a ${what}`);
    checkText(value, `${what} '${name}'`);
    return `${name}${PART}${value}`;
  });
}

function packReserve(reserve: unknown): string {
  knownOptions(reserve, ['tolerance', 'onMiss'], 'reserve');
  const { tolerance = 1000, onMiss = 'late' } = reserve as { tolerance?: unknown; onMiss?: unknown };
  const code = ON_MISS.indexOf(onMiss as string);
  if (code < 0) throw new RangeError(`reserve.onMiss must be one of ${ON_MISS.join(', ')}, not ${shown(onMiss)}`);
  return `${lengthMs(tolerance)}${PART}${code}`;
}

function packDedupe(dedupe: unknown): string {
  knownOptions(dedupe, ['mode', 'scope', 'window', 'maxWait'], 'dedupe');
  const { mode = 'skip', scope = 'live', window, maxWait } = dedupe as { readonly [option: string]: unknown };
  if (!['skip', 'replace', 'rerun', 'error', 'debounce', 'throttle'].includes(mode as string)) {
    throw new RangeError(`dedupe.mode cannot be ${shown(mode)}`);
  }
  if (!['pending', 'live', 'retained'].includes(scope as string)) {
    throw new RangeError(`dedupe.scope must be pending, live or retained, not ${shown(scope)}`);
  }
  const hasWindow = mode === 'debounce' || mode === 'throttle';
  if (hasWindow !== (window !== undefined)) {
    throw new TypeError(
      hasWindow ? `dedupe.mode '${String(mode)}' needs a window` : 'dedupe.window is for debounce and throttle',
    );
  }
  const windowMs = window === undefined ? '' : lengthMs(window);
  return [mode, windowMs, maxWait === undefined ? '' : lengthMs(maxWait), scope].join(PART);
}

function packParent(parent: unknown, transaction: object | undefined): string {
  const given = parent as Partial<Edge> | null;
  const isEdge = typeof given === 'object' && given?.kind === 'edge';
  const on = isEdge ? CONDITIONS.indexOf(String(given.on)) : 0;
  const { run, runId, part } = isEdge ? (given as Edge) : refOf(parent);
  if (part !== undefined) {
    if (part.transaction === transaction) return `${on + ON_PART}${PART}${part.place}`;
    throw new TypeError('a task of a transaction that is not durable can be waited for within that transaction only');
  }
  return runId === undefined ? `${on}${PART}${run}` : `${on + ON_RUN}${PART}${run}${PART}${runId}`;
}

function refOf(run: unknown): Ref {
  const given = run as { readonly kind?: unknown; readonly id?: unknown; readonly runId?: unknown } | null | undefined;
  const isHandle = given?.kind === 'task' || given?.kind === 'workflow';
  const part = given?.id === '' ? parts.get(given) : undefined;
  if (part !== undefined) return { run: '', runId: undefined, part };
  const id = typeof run === 'string' ? run : isHandle ? given.id : undefined;
  if (id === undefined) {
    throw new TypeError(
      `a task is named by its handle, its id or its key, a workflow by its handle, not by ${shown(run)}`,
    );
  }
  checkText(id, 'the id or key in after');
  if (given?.kind !== 'workflow') return { run: id, runId: undefined };
  const { runId = '' } = given;
  if (runId !== '') checkText(runId, 'the run id in after');
  return { run: id, runId: runId };
}

function listOf(value: unknown, what: string): readonly unknown[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw new TypeError(`${what} must be an array`);
  return value;
}
