/**
 * The options of a step, read once: what is recorded, when an attempt ends, when another one follows.
 *
 * It does not know attempts; js/worker decides by the policy that is made here.
 */
import { toMs } from '../duration.js';
import { STEP_AT_MOST_ONCE, STEP_READ_ONLY } from './host.js';

/** When something that failed is tried again. */
export interface RetryPolicy {
  readonly maxAttempts: number;
  readonly initialMs: number;
  readonly maxMs: number;
  readonly backoff: number;
  readonly jitter: boolean;
  readonly nonRetryable: readonly string[];
  readonly shouldRetry: ((error: unknown) => boolean) | undefined;
  readonly pauses: boolean;
}

/** How a step runs. */
export interface StepPolicy {
  readonly flags: number;
  readonly timeoutMs: number;
  readonly heartbeatMs: number;
  readonly retry: RetryPolicy;
}

const DEFAULT_RETRY: RetryPolicy = {
  maxAttempts: 3,
  initialMs: 1000,
  maxMs: 60_000,
  backoff: 2,
  jitter: true,
  nonRetryable: [],
  shouldRetry: undefined,
  pauses: false,
};

/** A step whose effect must not happen twice is not tried again unless it is asked for. */
const NO_RETRY: RetryPolicy = { ...DEFAULT_RETRY, maxAttempts: 1 };

/** The policy of a step without options. */
export const DEFAULT_POLICY: StepPolicy = { flags: 0, timeoutMs: -1, heartbeatMs: -1, retry: DEFAULT_RETRY };

/** @throws TypeError, RangeError on options that cannot be meant */
export function stepPolicy(options: any): StepPolicy {
  if (options === undefined) return DEFAULT_POLICY;
  if (typeof options !== 'object' || options === null) throw new TypeError('the options of ctx.step must be an object');
  refuseUnsupported(options);
  const isAtMostOnce = options.semantics === 'atMostOnce';
  if (options.semantics !== undefined && !isAtMostOnce && options.semantics !== 'atLeastOnce') {
    throw new RangeError(`semantics must be 'atLeastOnce' or 'atMostOnce', not ${String(options.semantics)}`);
  }
  const isReadOnly = options.readOnly === true;
  if (isAtMostOnce && isReadOnly) throw new RangeError('a readOnly step cannot be atMostOnce: it may run again');
  return {
    flags: (isReadOnly ? STEP_READ_ONLY : 0) | (isAtMostOnce ? STEP_AT_MOST_ONCE : 0),
    timeoutMs: options.timeout === undefined ? -1 : toMs(options.timeout),
    heartbeatMs: options.heartbeatTimeout === undefined ? -1 : toMs(options.heartbeatTimeout),
    retry: retryPolicy(options.retry, isAtMostOnce ? NO_RETRY : DEFAULT_RETRY),
  };
}

/** @throws TypeError, RangeError on options that cannot be meant */
export function retryPolicy(options: any, defaults: RetryPolicy): RetryPolicy {
  if (options === undefined) return defaults;
  if (typeof options !== 'object' || options === null) throw new TypeError('retry must be an object');
  const { maxAttempts = DEFAULT_RETRY.maxAttempts, backoff = 2, nonRetryable = [], shouldRetry, onExhausted } = options;
  if (!(maxAttempts === Infinity || (Number.isInteger(maxAttempts) && maxAttempts >= 1))) {
    throw new RangeError(`retry.maxAttempts must be a whole number from 1, not ${String(maxAttempts)}`);
  }
  if (typeof backoff !== 'number' || !(backoff >= 1)) {
    throw new RangeError(`retry.backoff must be a number from 1, not ${String(backoff)}`);
  }
  if (!Array.isArray(nonRetryable)) throw new TypeError('retry.nonRetryable must be an array of names of errors');
  if (shouldRetry !== undefined && typeof shouldRetry !== 'function') {
    throw new TypeError('retry.shouldRetry must be a function');
  }
  if (onExhausted !== undefined && onExhausted !== 'fail' && onExhausted !== 'pause') {
    throw new RangeError(`retry.onExhausted must be 'fail' or 'pause', not ${String(onExhausted)}`);
  }
  return {
    maxAttempts,
    initialMs: options.initialInterval === undefined ? DEFAULT_RETRY.initialMs : toMs(options.initialInterval),
    maxMs: options.maxInterval === undefined ? DEFAULT_RETRY.maxMs : toMs(options.maxInterval),
    backoff,
    jitter: options.jitter !== false,
    nonRetryable: nonRetryable as readonly string[],
    shouldRetry: shouldRetry as RetryPolicy['shouldRetry'],
    pauses: onExhausted === 'pause',
  };
}

/** An option that would be ignored is worse than one that is refused. */
function refuseUnsupported(options: any): void {
  for (const name of ['compensate', 'limits']) {
    if (options[name] !== undefined) throw new TypeError(`the option ${name} of ctx.step is not supported yet`);
  }
}
