/**
 * Values as texts and back.
 *
 * A value is written as JSON. What JSON has no word for is written as an object with the one key `$`:
 *
 * | written | stands for |
 * | --- | --- |
 * | `["u"]` | `undefined` |
 * | `["n", text]` | `NaN`, `Infinity`, `-Infinity`, `-0` |
 * | `["b", digits]` | a `BigInt` |
 * | `["d", ms]` | a `Date`; `null`: an invalid one |
 * | `["m", [[key, value] …]]`, `["s", [value …]]` | a `Map`, a `Set` |
 * | `["r", source, flags]`, `["l", href]` | a `RegExp`, a `URL` |
 * | `["y", name, base64]` | a typed array, an `ArrayBuffer`, a `DataView`, a `Buffer` |
 * | `["e", name, message, stack, fields]` | an `Error`, its cause among the fields |
 * | `["o", fields]` | an object that has a key `$` itself |
 * | `["x", names, base64]` | what codecs of the application made of a text: see js/codec/payloads.ts |
 * | `["&", number, value]`, `["#", number]` | a value that is met again inside itself, and where |
 *
 * A text has no control characters below U+0020 and no lone surrogates. What cannot be written is refused with the path
 * to it. It does not know what a value is for, or where texts go.
 */
import { copyJson, NOT_JSON } from './codec/copy.js';
import { read } from './codec/read.js';
import { write, writeLeniently, writeMarked } from './codec/write.js';

const UNDEFINED = '{"$":["u"]}';
/** What `JSON.stringify` writes as that. */
const UNDEFINED_JSON = { $: ['u'] };

/** Text of a value. @throws TypeError that names the path to what cannot be written */
export function encode(value: unknown): string {
  return value === undefined ? UNDEFINED : write(value);
}

/** The value of a text. @throws SyntaxError, TypeError if it is none */
export function decode(text: string): unknown {
  return text === UNDEFINED ? undefined : read(text);
}

export { NOT_JSON };

/** What `JSON.stringify` writes as the text of a value, also inside of an array. {@link NOT_JSON}: there is none. */
export function jsonOf(value: unknown): unknown {
  return value === undefined ? UNDEFINED_JSON : copyJson(value);
}

/** What a reader of such a text gets (LAW-6). */
export function valueOf(json: unknown): unknown {
  return json === UNDEFINED_JSON ? undefined : json;
}

/**
 * Text of a value, and the value that a reader of the text gets (LAW-6).
 * @throws TypeError that names the path to what cannot be written
 */
export function passThrough(value: unknown): { readonly text: string; readonly value: unknown } {
  if (value === undefined) return { text: UNDEFINED, value };
  const copy = copyJson(value);
  if (copy !== NOT_JSON) return { text: JSON.stringify(copy), value: copy };
  const text = writeMarked(value);
  return { text, value: read(text) };
}

/** Text of what was thrown, whatever it is. What cannot be written is described. Never throws. */
export function encodeFailure(error: unknown): string {
  return writeLeniently(error);
}

/** What was thrown. */
export function decodeFailure(text: string): unknown {
  return decode(text);
}
