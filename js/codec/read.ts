/**
 * Texts to values. See js/codec.ts for the form.
 */
import { prototypeOf } from '../errors.js';
import { setField } from './kinds.js';

/** The value of a text. @throws SyntaxError, TypeError if it is none */
export function read(text: string): unknown {
  const json: unknown = JSON.parse(text);
  return text.includes('"$":[') ? new Reader().value(json) : json;
}

const BYTES: { readonly [name: string]: new (buffer: ArrayBuffer) => object } = {
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
  DataView,
};

const ERRORS: { readonly [name: string]: object } = {
  EvalError: EvalError.prototype,
  RangeError: RangeError.prototype,
  ReferenceError: ReferenceError.prototype,
  SyntaxError: SyntaxError.prototype,
  TypeError: TypeError.prototype,
  URIError: URIError.prototype,
  AggregateError: AggregateError.prototype,
};

/** Reads one value with everything in it. */
class Reader {
  /** Values that are met again inside themselves, by number. */
  private readonly known = new Map<number, unknown>();

  /** @param note is told of a container before what is in it is read */
  value(json: unknown, note?: (value: unknown) => void): unknown {
    if (typeof json !== 'object' || json === null) return json;
    if (Array.isArray(json)) return this.array(json, note);
    const { $: mark } = json as { readonly $?: unknown };
    if (!Array.isArray(mark)) return this.fields(json, noted({}, note));
    return this.marked(mark, note);
  }

  private array(json: readonly unknown[], note?: (value: unknown) => void): unknown[] {
    const array = noted<unknown[]>([], note);
    for (const item of json) array.push(this.value(item));
    return array;
  }

  private fields(json: object, target: object): object {
    for (const [name, item] of Object.entries(json)) setField(target, name, this.value(item));
    return target;
  }

  private marked(mark: readonly unknown[], note?: (value: unknown) => void): unknown {
    const [kind, first, second] = mark;
    switch (kind) {
      case 'u':
        return undefined;
      case 'n':
        return Number(first);
      case 'b':
        return BigInt(first as string);
      case 'd':
        return new Date(first === null ? NaN : (first as number));
      case 'm': {
        const map = noted(new Map<unknown, unknown>(), note);
        for (const [key, item] of first as [unknown, unknown][]) map.set(this.value(key), this.value(item));
        return map;
      }
      case 's': {
        const set = noted(new Set<unknown>(), note);
        for (const item of first as unknown[]) set.add(this.value(item));
        return set;
      }
      case 'r':
        return new RegExp(first as string, second as string);
      case 'l':
        return new URL(first as string);
      case 'y':
        return bytes(first as string, second as string);
      case 'e':
        return this.error(mark, note);
      case 'o':
        return this.fields(first as object, noted({}, note));
      case '&':
        return this.value(second, (value) => this.known.set(first as number, value));
      case '#':
        return this.known.get(first as number);
      case 'x':
        throw new TypeError(`it was written by the codec ${JSON.stringify(first)}, and is read without`);
      default:
        throw new TypeError(`a value of the unknown kind ${JSON.stringify(kind)}; was it written by a newer version?`);
    }
  }

  private error(mark: readonly unknown[], note?: (value: unknown) => void): Error {
    const [, name, message, stack, fields] = mark as [string, string, string, string, object];
    const error = noted(new Error(message), note);
    const prototype =
      prototypeOf(name) ?? (Object.prototype.hasOwnProperty.call(ERRORS, name) ? ERRORS[name] : undefined);
    if (prototype !== undefined) Object.setPrototypeOf(error, prototype);
    // A name that the prototype does not give belongs to the error itself.
    if (prototype === undefined ? name !== 'Error' : prototypeOf(name) !== undefined) hide(error, 'name', name);
    hide(error, 'stack', stack === '' ? `${name}: ${message}` : stack);
    this.fields(fields, error);
    for (const hidden of ['cause', 'errors']) {
      const field = Object.getOwnPropertyDescriptor(error, hidden);
      if (field !== undefined) hide(error, hidden, field.value);
    }
    return error;
  }
}

function noted<T>(value: T, note: ((value: unknown) => void) | undefined): T {
  note?.(value);
  return value;
}

/** Fields of errors that are no data are not enumerable. */
function hide(error: Error, name: string, value: unknown): void {
  Object.defineProperty(error, name, { value, writable: true, enumerable: false, configurable: true });
}

function bytes(name: string, base64: string): object {
  const buffer = Buffer.from(base64, 'base64');
  if (name === 'Buffer') return buffer;
  const copy = new Uint8Array(buffer).buffer;
  if (name === 'ArrayBuffer') return copy;
  const Type = Object.prototype.hasOwnProperty.call(BYTES, name) ? BYTES[name] : undefined;
  if (Type === undefined) throw new TypeError(`bytes of the unknown kind '${name}'`);
  return new Type(copy);
}
