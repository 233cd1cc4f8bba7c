/**
 * The options of a step, read once: what is recorded, when an attempt ends, when another one follows.
 *
 * It does not know attempts; js/worker decides by the policy that is made here.
 */
import { toMs } from '../duration.js';
import { knownOptions, shown } from '../options.js';
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
  /** Undoes the step, given its result. */
  readonly compensate: ((result: never, step: never) => unknown) | undefined;
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

/** Options as users give them. */
interface GivenStep {
  readonly retry?: unknown;
  readonly timeout?: unknown;
  readonly heartbeatTimeout?: unknown;
  readonly readOnly?: unknown;
  readonly semantics?: unknown;
  readonly compensate?: unknown;
}

interface GivenRetry {
  readonly maxAttempts?: number;
  readonly initialInterval?: unknown;
  readonly maxInterval?: unknown;
  readonly backoff?: number;
  readonly jitter?: unknown;
  readonly nonRetryable?: readonly string[];
  readonly shouldRetry?: (error: unknown) => boolean;
  readonly onExhausted?: unknown;
}

const RETRY_OPTIONS = [
  'maxAttempts',
  'initialInterval',
  'maxInterval',
  'backoff',
  'jitter',
  'nonRetryable',
  'shouldRetry',
  'onExhausted',
];
const STEP_OPTIONS = ['retry', 'timeout', 'heartbeatTimeout', 'readOnly', 'semantics', 'compensate'];

/** The policy of a step without options. */
export const DEFAULT_POLICY: StepPolicy = {
  flags: 0,
  timeoutMs: -1,
  heartbeatMs: -1,
  retry: DEFAULT_RETRY,
  compensate: undefined,
};

/** @throws TypeError, RangeError on options that cannot be meant */
export function stepPolicy(options: unknown): StepPolicy {
  if (options === undefined) return DEFAULT_POLICY;
  knownOptions(options, STEP_OPTIONS, 'ctx.step');
  const given = options as GivenStep;
  const isAtMostOnce = given.semantics === 'atMostOnce';
  if (given.semantics !== undefined && !isAtMostOnce && given.semantics !== 'atLeastOnce') {
    throw new RangeError(`semantics must be 'atLeastOnce' or 'atMostOnce', not ${shown(given.semantics)}`);
  }
  const isReadOnly = given.readOnly === true;
  if (isAtMostOnce && isReadOnly) throw new RangeError('a readOnly step cannot be atMostOnce: it may run again');
  if (given.compensate !== undefined && typeof given.compensate !== 'function') {
    throw new TypeError('the option compensate of ctx.step must be a function');
  }
  return {
    flags: (isReadOnly ? STEP_READ_ONLY : 0) | (isAtMostOnce ? STEP_AT_MOST_ONCE : 0),
    timeoutMs: given.timeout === undefined ? -1 : toMs(given.timeout),
    heartbeatMs: given.heartbeatTimeout === undefined ? -1 : toMs(given.heartbeatTimeout),
    retry: retryPolicy(given.retry, isAtMostOnce ? NO_RETRY : DEFAULT_RETRY),
    compensate: given.compensate as StepPolicy['compensate'],
  };
}

/** @throws TypeError, RangeError on options that cannot be meant */
export function retryPolicy(options: unknown, defaults: RetryPolicy): RetryPolicy {
  if (options === undefined) return defaults;
  if (typeof options !== 'object' || options === null) throw new TypeError('retry must be an object');
  knownOptions(options, RETRY_OPTIONS, 'retry');
  const given = options as GivenRetry;
  const { maxAttempts = DEFAULT_RETRY.maxAttempts, backoff = 2, nonRetryable = [], shouldRetry, onExhausted } = given;
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
    throw new RangeError(`retry.onExhausted must be 'fail' or 'pause', not ${shown(onExhausted)}`);
  }
  return {
    maxAttempts,
    initialMs: given.initialInterval === undefined ? DEFAULT_RETRY.initialMs : toMs(given.initialInterval),
    maxMs: given.maxInterval === undefined ? DEFAULT_RETRY.maxMs : toMs(given.maxInterval),
    backoff,
    jitter: given.jitter !== false,
    nonRetryable,
    shouldRetry,
    pauses: onExhausted === 'pause',
  };
}
