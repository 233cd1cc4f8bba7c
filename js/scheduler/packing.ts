/**
 * Texts about tasks for the crossing: rows, fields, entries, parts, each with a separator that no text contains.
 *
 * The other end is src/node/task_texts.rs.
 */
import type { RetryPolicy } from '../workflow/step-options.js';

export const ROW = '\u001e';
export const FIELD = '\u001f';
export const ENTRY = '\u001d';
export const PART = '\u001c';

const MAX_32 = 0xffffffff;

/** When failed attempts are followed by others. What only code can decide is decided where the code is. */
export function packRetry({ maxAttempts, initialMs, backoff, maxMs, jitter }: RetryPolicy): string {
  return [
    Math.min(maxAttempts, MAX_32),
    Math.min(initialMs, MAX_32),
    Math.min(Math.round(backoff * 100), MAX_32),
    Math.min(maxMs, MAX_32),
    jitter ? 1 : 0,
  ].join(PART);
}

/** How much a limit gives. */
export type LimitSpec =
  { readonly concurrency: number } | { readonly limit: number; readonly periodMs: number; readonly burst: number };

export function packLimit(spec: LimitSpec): string {
  return 'concurrency' in spec
    ? `c${PART}${spec.concurrency}`
    : `r${PART}${spec.limit}${PART}${spec.periodMs}${PART}${spec.burst}`;
}

/** How a queue follows its load. */
export interface QueueScale {
  readonly min: number;
  readonly max: number;
  readonly intervalMs: number;
  readonly drainMs: number;
  /** Whether a function of the application provides the slots. */
  readonly isOutside: boolean;
  /** Longest wait by class, from critical to low. */
  readonly sloMs: readonly (number | undefined)[];
}

/** A queue, read. */
export interface QueueSettings {
  readonly name: string;
  /** Slots; of a queue that follows its load the most. */
  readonly concurrency: number;
  readonly scale: QueueScale | undefined;
  readonly maxPending: number | undefined;
  readonly onFull: string;
  readonly retry: RetryPolicy | undefined;
  readonly heartbeatMs: number | undefined;
  /** Shares by tenant, in percent. */
  readonly weights: readonly (readonly [string, number])[] | undefined;
}

function packQueue(queue: QueueSettings): string {
  const { name, concurrency, maxPending = '', onFull, retry, heartbeatMs = '', weights } = queue;
  const fair =
    weights === undefined ? '' : ['w', ...weights.map(([tenant, share]) => `${tenant}${PART}${share}`)].join(ENTRY);
  const policy = retry === undefined ? '' : packRetry(retry);
  const scale = queue.scale === undefined ? '' : packScale(queue.scale);
  return ['q', name, concurrency, maxPending, onFull, policy, heartbeatMs, fair, scale].join(FIELD);
}

function packScale({ min, max, intervalMs, drainMs, isOutside, sloMs }: QueueScale): string {
  return [min, max, intervalMs, drainMs, isOutside ? 1 : 0, ...sloMs.map((ms) => ms ?? '')].join(PART);
}

/** What a thread runs: definitions, and labels as names with values. */
export function packMember(kinds: Iterable<string>, labels: readonly string[]): string {
  return [...Array.from(kinds, (kind) => `k${kind}`), ...labels.map((label) => `L${label}`)].join(FIELD);
}

/** Everything that an open fixes about tasks. */
export function packConfig(
  seed: number,
  kinds: Iterable<string>,
  queues: Iterable<QueueSettings>,
  limits: Iterable<readonly [string, LimitSpec]>,
): string {
  return [
    `s${FIELD}${seed}`,
    ...Array.from(kinds, (kind) => `k${FIELD}${kind}`),
    ...Array.from(queues, packQueue),
    ...Array.from(limits, ([name, spec]) => `l${FIELD}${name}${FIELD}${packLimit(spec)}`),
  ].join(ROW);
}
