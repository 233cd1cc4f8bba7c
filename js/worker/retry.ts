/**
 * What follows a failed attempt. Pure: a policy, an error and a number in, a decision out.
 */
import { toMs, toTimeMs } from '../duration.js';
import { DeterminismError, NonRetryableError, RetryableError } from '../errors.js';
import type { RetryPolicy } from '../workflow/step-options.js';

/** No attempt follows. */
export const FINAL = -1;
/** No attempt follows until someone resumes the run. */
export const PAUSE = -2;

/**
 * Milliseconds until the next attempt, or {@link FINAL}, or {@link PAUSE}.
 * @param attempt number of the one that failed, of those that the policy counts, from 1
 */
export function afterFailure(
  policy: RetryPolicy,
  error: unknown,
  attempt: number,
  nowMs: number,
  random: () => number,
): number {
  if (!isRetryable(policy, error)) return FINAL;
  if (attempt >= policy.maxAttempts) return policy.pauses ? PAUSE : FINAL;
  const backoff = Math.min(policy.maxMs, policy.initialMs * policy.backoff ** (attempt - 1));
  const wait = policy.jitter ? backoff * random() : backoff;
  return Math.ceil(Math.max(wait, askedFor(error, nowMs)));
}

function isRetryable(policy: RetryPolicy, error: unknown): boolean {
  // Code that uses ctx where it has none does so each time.
  if (NonRetryableError.is(error) || DeterminismError.is(error)) return false;
  const name = (error as { name?: unknown } | null | undefined)?.name;
  if (typeof name === 'string' && policy.nonRetryable.includes(name)) return false;
  return policy.shouldRetry === undefined || policy.shouldRetry(error);
}

/** The shortest wait that the error itself asks for. */
function askedFor(error: unknown, nowMs: number): number {
  if (!RetryableError.is(error) || error.retryAfter === undefined) return 0;
  const after = error.retryAfter;
  return isDate(after) ? toTimeMs(after) - nowMs : toMs(after);
}

function isDate(value: unknown): value is Date {
  return Object.prototype.toString.call(value) === '[object Date]';
}
