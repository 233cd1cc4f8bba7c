/**
 * Lengths and points of time, as users write them, in milliseconds.
 */

const UNITS_MS: { readonly [unit: string]: number } = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

const PARTS_MS: { readonly [part: string]: number } = {
  weeks: 604_800_000,
  days: 86_400_000,
  hours: 3_600_000,
  minutes: 60_000,
  seconds: 1000,
  milliseconds: 1,
  microseconds: 0.001,
  nanoseconds: 0.000_001,
};

const WORDS = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d|w))+$/;
const WORD = /(\d+(?:\.\d+)?)(ms|s|m|h|d|w)/g;
/** As far as a `Date` goes. */
const MS_MAX = 8.64e15;
const HOW = "write milliseconds, '1h30m' or { hours: 1, minutes: 30 }";

/** Reads a duration from configuration. @returns milliseconds @throws RangeError */
export function duration(text: string): number {
  return toMs(text);
}

/** A length of time in milliseconds, whole ones. @throws RangeError */
export function toMs(value: unknown): number {
  const ms = typeof value === 'number' ? value : typeof value === 'string' ? wordsToMs(value) : partsToMs(value);
  if (!(ms >= 0 && ms <= MS_MAX)) throw new RangeError(`${shown(value)} is no duration; ${HOW}`);
  return Math.round(ms);
}

/** A point in time in milliseconds since 1970. @throws RangeError */
export function toTimeMs(value: unknown): number {
  const ms =
    typeof value === 'number'
      ? value
      : typeof value === 'string'
        ? textToTimeMs(value)
        : isDate(value)
          ? value.getTime()
          : NaN;
  if (!(Math.abs(ms) <= MS_MAX)) {
    throw new RangeError(`${shown(value)} is no time; give a Date, milliseconds, or an ISO 8601 text with a zone`);
  }
  return Math.round(ms);
}

function wordsToMs(text: string): number {
  if (!WORDS.test(text)) return NaN;
  let ms = 0;
  for (const [, count, unit] of text.matchAll(WORD)) ms += Number(count) * UNITS_MS[unit!]!;
  return ms;
}

/** Parts in an object, a `Temporal.Duration` for one: its parts are read through its prototype. */
function partsToMs(value: unknown): number {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return NaN;
  const parts = value as { readonly [part: string]: unknown };
  for (const part of ['years', 'months']) {
    if (parts[part] !== undefined && parts[part] !== 0) throw new RangeError(`${part} have no fixed length; ${HOW}`);
  }
  for (const part of Object.keys(parts)) {
    if (PARTS_MS[part] === undefined && part !== 'years' && part !== 'months') return NaN;
  }
  let ms: number | undefined;
  for (const [part, unitMs] of Object.entries(PARTS_MS)) {
    const count = parts[part];
    if (count === undefined) continue;
    if (typeof count !== 'number') return NaN;
    ms = (ms ?? 0) + count * unitMs;
  }
  return ms ?? NaN;
}

/** A text without a zone would mean another time on another machine. */
function textToTimeMs(text: string): number {
  return /^\d{4}-\d{2}-\d{2}T.*(?:Z|[+-]\d{2}:?\d{2})$/.test(text) ? Date.parse(text) : NaN;
}

function isDate(value: unknown): value is Date {
  return Object.prototype.toString.call(value) === '[object Date]';
}

function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`;
  return typeof value === 'object' && value !== null ? Object.prototype.toString.call(value) : String(value);
}
