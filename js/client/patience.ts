/**
 * How long a caller waits for an answer; what was asked goes on.
 */
import { toMs } from '../duration.js';
import { TimeoutError } from '../errors.js';
import { knownOptions } from '../options.js';
import type { EngineCore } from './core.js';
import type { Request } from './requests.js';

/** How long a caller waits. */
export interface ResultOptions {
  readonly timeout?: unknown;
  readonly signal?: AbortSignal | undefined;
}

/** How long a caller waits, read before anything is asked. */
export interface Patience {
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** @throws TypeError, RangeError */
export function patienceOf(options: ResultOptions | undefined, verb: string): Patience {
  knownOptions(options, ['timeout', 'signal'], verb);
  const { timeout, signal } = options ?? {};
  if (signal !== undefined && typeof signal.addEventListener !== 'function') {
    throw new TypeError(`the option signal of ${verb} must be an AbortSignal`);
  }
  return { timeoutMs: timeout === undefined ? -1 : toMs(timeout), signal };
}

/** Waits for a request as long as the caller wants; what was asked goes on. */
export function waitFor<T>(core: EngineCore, request: Request<T>, patience: Patience, what: string): Promise<T> {
  const { timeoutMs, signal } = patience;
  return timeoutMs < 0 && signal === undefined ? request.promise : waitPatiently(core, request, patience, what);
}

async function waitPatiently<T>(core: EngineCore, request: Request<T>, patience: Patience, what: string): Promise<T> {
  const { timeoutMs, signal } = patience;
  const giveUp = (error: unknown): void => {
    core.forget(request);
    request.reject(error);
  };
  const onAbort = (): void => giveUp(signal!.reason);
  let timer: unknown;
  if (signal?.aborted === true) onAbort();
  else signal?.addEventListener('abort', onAbort, { once: true });
  if (timeoutMs >= 0) {
    timer = core.primitives.setTimeout(
      () => giveUp(new TimeoutError(`${what} did not come within ${timeoutMs} ms`, { of: 'wait' })),
      Math.min(timeoutMs, 0x7fffffff),
    );
  }
  try {
    return await request.promise;
  } finally {
    signal?.removeEventListener('abort', onAbort);
    if (timer !== undefined) core.primitives.clearTimeout(timer);
  }
}
