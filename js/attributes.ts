/**
 * Search attributes: checked, and as the texts in which they cross to the engine and back.
 *
 * Names and values in turn; a letter before a value says what it is, `-` that the name is taken away.
 */
import { shown } from './options.js';

/** What separates names and values. */
const PART = '\u001d';
/** What comes before each text of a list. */
const TEXT = '\u001c';
// eslint-disable-next-line no-control-regex -- control characters are what it looks for
const CONTROL = /[\u0000-\u001f]/;
/** Bytes of a name, of a text among the values; texts of a list; what the engine takes. */
const NAME_BYTES_MAX = 64;
const TEXT_BYTES_MAX = 1024;
const TEXTS_MAX = 64;
const WHOLE_MIN = -(2n ** 63n);
const WHOLE_MAX = 2n ** 63n - 1n;

/** Search attributes as texts; empty: none are given. @param what as messages name them @throws TypeError, RangeError */
export function packAttributes(attributes: unknown, what: string): string {
  if (attributes === undefined) return '';
  if (typeof attributes !== 'object' || attributes === null || Array.isArray(attributes)) {
    throw new TypeError(`${what} must be an object of names and values, not ${shown(attributes)}`);
  }
  const parts: string[] = [];
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined) continue;
    parts.push(checkName(name, what, NAME_BYTES_MAX), value === null ? '-' : packValue(value, `'${name}' of ${what}`));
  }
  return parts.join(PART);
}

/** @throws TypeError */
export function checkName(name: string, what: string, bytesMax = Infinity): string {
  if (name === '' || CONTROL.test(name) || Buffer.byteLength(name) > bytesMax) {
    throw new TypeError(
      `'${name}' is no name of an attribute in ${what}: 1 to ${NAME_BYTES_MAX} bytes of text without control characters`,
    );
  }
  return name;
}

/** A value as a text. @throws TypeError, RangeError */
export function packValue(value: unknown, what: string): string {
  if (!Array.isArray(value)) return packOne(value, what);
  if (value.length > TEXTS_MAX)
    throw new RangeError(`${what} has ${value.length} texts; it can have up to ${TEXTS_MAX}`);
  return value.map((text) => TEXT + plain(text, what)).join('');
}

/** A value that is no list, as a text. @throws TypeError, RangeError */
export function packOne(value: unknown, what: string): string {
  switch (typeof value) {
    case 'string':
      return `t${plain(value, what)}`;
    case 'boolean':
      return value ? 'b1' : 'b0';
    case 'number':
      if (!Number.isFinite(value)) throw new RangeError(`${what} must be a number that is finite, not ${value}`);
      return `n${value}`;
    case 'bigint':
      if (value < WHOLE_MIN || value > WHOLE_MAX) throw new RangeError(`${what} must fit into 64 bits, not ${value}`);
      return `w${value}`;
    case 'object':
    case 'function':
    case 'symbol':
    case 'undefined':
      return packTime(value, what);
  }
}

function packTime(value: unknown, what: string): string {
  // Also of another realm.
  if (Object.prototype.toString.call(value) === '[object Date]') {
    const timeMs = (value as Date).getTime();
    if (Number.isNaN(timeMs)) throw new RangeError(`${what} is a Date of no time`);
    return `d${timeMs}`;
  }
  throw new TypeError(
    `${what} must be a text, a number, a bigint, a boolean, a Date or an array of texts, not ${shown(value)}`,
  );
}

function plain(text: unknown, what: string): string {
  if (typeof text !== 'string') throw new TypeError(`${what} must be an array of texts, not of ${shown(text)}`);
  if (CONTROL.test(text)) throw new TypeError(`${what} must have no control characters`);
  const bytes = Buffer.byteLength(text);
  if (bytes > TEXT_BYTES_MAX) throw new RangeError(`${what} takes ${bytes} bytes; the limit is ${TEXT_BYTES_MAX}`);
  return text;
}

/** Value of a search attribute. */
export type AttributeValue = string | number | bigint | boolean | Date | readonly string[];

/** Reads attributes of a run. */
export function readAttributes(text: string): { readonly [name: string]: AttributeValue } {
  const entries: [string, AttributeValue][] = [];
  if (text !== '') {
    const parts = text.split(PART);
    for (let at = 0; at < parts.length; at += 2) entries.push([parts[at]!, readValue(parts[at + 1]!)]);
  }
  return Object.fromEntries(entries);
}

function readValue(text: string): AttributeValue {
  const rest = text.slice(1);
  switch (text.slice(0, 1)) {
    case 't':
      return rest;
    case 'n':
      return Number(rest);
    case 'b':
      return rest === '1';
    case 'd':
      return new Date(Number(rest));
    case 'w':
      return BigInt(rest);
    default:
      return text.split(TEXT).slice(1);
  }
}
