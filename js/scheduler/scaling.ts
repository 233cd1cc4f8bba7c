/**
 * Bounds between which a queue follows its load, as callers give them.
 */
import { knownOptions, shown } from '../options.js';
import { lengthMs } from './definition.js';
import type { QueueScale } from './packing.js';

/** Provides slots outside of the process: answers those that there are; `undefined`: they will be reported. */
export type Scaler = (queue: string, desired: number) => unknown;

const SCALE_OPTIONS = ['interval', 'drainTime', 'slo'];
const CLASSES = ['critical', 'high', 'normal', 'low'];

/** Reads `{ min, max, scale }`. @throws TypeError, RangeError */
export function readScale(
  given: object,
  queue: string,
  readCount: ReadCount,
): QueueScale & { scaler: Scaler | undefined } {
  const what = `concurrency of queue '${queue}'`;
  const bounds = readBounds(given, what, readCount, ['scale']);
  const { scale } = given as { readonly scale?: unknown };
  const scaler = typeof scale === 'function' ? (scale as Scaler) : undefined;
  const options = scaler === undefined ? (scale ?? {}) : {};
  knownOptions(options, SCALE_OPTIONS, `scale of the ${what}`);
  const { interval = '1s', drainTime = '30s', slo = {} } = options as { readonly [option: string]: unknown };
  knownOptions(slo, CLASSES, `slo of the ${what}`);
  const times = slo as { readonly [priority: string]: unknown };
  return {
    ...bounds,
    intervalMs: atLeastOneMs(interval, `interval of the ${what}`),
    drainMs: atLeastOneMs(drainTime, `drainTime of the ${what}`),
    isOutside: scaler !== undefined,
    sloMs: CLASSES.map((name) =>
      times[name] === undefined ? undefined : atLeastOneMs(times[name], `slo.${name} of the ${what}`),
    ),
    scaler,
  };
}

/** Reads `{ min, max }`, where these other options may be. @throws TypeError, RangeError */
export function readBounds(
  given: object,
  what: string,
  readCount: ReadCount,
  others: readonly string[] = [],
): { readonly min: number; readonly max: number } {
  knownOptions(given, ['min', 'max', ...others], what);
  const { min, max } = given as { readonly [option: string]: unknown };
  const bounds = { min: readCount(min, `min of the ${what}`, 0), max: readCount(max, `max of the ${what}`, 1) };
  if (bounds.min > bounds.max) {
    throw new RangeError(`min of the ${what} is ${bounds.min}, which is more than its max, ${bounds.max}`);
  }
  return bounds;
}

type ReadCount = (value: unknown, what: string, least: number) => number;

function atLeastOneMs(value: unknown, what: string): number {
  const ms = lengthMs(value);
  if (ms < 1 || ms > 0xffffffff) throw new RangeError(`${what} must be from 1 ms to 49 days, not ${shown(value)}`);
  return ms;
}
