/**
 * Values to texts. See js/codec.ts for the form.
 */
import { copyJson, NOT_JSON } from './copy.js';
import { isError, isPlain, tagOf } from './kinds.js';

/** Values nested deeper than this are refused, before the stack is. */
const DEPTH_MAX = 500;
/** Lines of a stack that are kept. */
const STACK_LINES_MAX = 12;
/** Fields of an error that are written for themselves. */
const ERROR_FIELDS = new Set(['name', 'message', 'stack']);

/** Text of a value. @throws TypeError that names the path to what cannot be written */
export function write(value: unknown): string {
  const copy = copyJson(value);
  return copy === NOT_JSON ? writeMarked(value) : JSON.stringify(copy);
}

/** Text of a value that JSON has no word for. @throws TypeError that names the path to what cannot be written */
export function writeMarked(value: unknown): string {
  return new Writer(false).whole(value);
}

/** Text of a value; what cannot be written is described in its place. Never throws. */
export function writeLeniently(value: unknown): string {
  try {
    return new Writer(true).whole(value);
  } catch (broken) {
    // A getter or a toJSON that throws, a proxy that was revoked.
    return JSON.stringify(`something that cannot be read: ${messageOf(broken)}`);
  }
}

/** Writes one value with everything in it. */
class Writer {
  /** Objects that are being written, with the numbers of those that were met again. */
  private readonly open = new Map<object, number>();
  private lastNumber = 0;

  constructor(private readonly isLenient: boolean) {}

  whole(value: unknown): string {
    return this.value(value, 'the value');
  }

  private value(value: unknown, path: string): string {
    switch (typeof value) {
      case 'string':
      case 'boolean':
        return JSON.stringify(value);
      case 'number':
        if (Number.isFinite(value) && !Object.is(value, -0)) return String(value);
        return marked('n', JSON.stringify(Object.is(value, -0) ? '-0' : String(value)));
      case 'undefined':
        return marked('u');
      case 'bigint':
        return marked('b', `"${value}"`);
      case 'object':
        return value === null ? 'null' : this.object(value, path);
      case 'function':
        return this.refuse(path, `a function${value.name === '' ? '' : ` (${value.name})`}`);
      case 'symbol':
        return this.refuse(path, 'a symbol');
    }
  }

  private object(value: object, path: string): string {
    const number = this.open.get(value);
    if (number !== undefined) {
      const known = number === 0 ? (this.lastNumber += 1) : number;
      this.open.set(value, known);
      return marked('#', String(known));
    }
    if (this.open.size > DEPTH_MAX) return this.refuse(path, `nested deeper than ${DEPTH_MAX} levels`);
    this.open.set(value, 0);
    const text = this.content(value, path);
    const met = this.open.get(value)!;
    this.open.delete(value);
    return met === 0 ? text : marked('&', String(met), text);
  }

  private content(value: object, path: string): string {
    if (Array.isArray(value)) return this.array(value, path);
    if (isError(value)) return this.error(value, path);
    switch (tagOf(value)) {
      case 'Date': {
        const ms = (value as Date).getTime();
        return marked('d', Number.isNaN(ms) ? 'null' : String(ms));
      }
      case 'Map': {
        const entries = [...(value as Map<unknown, unknown>)].map(([key, item], index) => {
          const at = typeof key === 'string' ? `${path}.get('${key}')` : `${path}.entry(${index})`;
          return `[${this.value(key, `${at}.key`)},${this.value(item, at)}]`;
        });
        return marked('m', `[${entries.join(',')}]`);
      }
      case 'Set': {
        const items = [...(value as Set<unknown>)].map((item, index) => this.value(item, `${path}.item(${index})`));
        return marked('s', `[${items.join(',')}]`);
      }
      case 'RegExp':
        return marked('r', JSON.stringify((value as RegExp).source), JSON.stringify((value as RegExp).flags));
      case 'URL':
        return marked('l', JSON.stringify((value as URL).href));
      case 'Promise':
        return this.refuse(path, 'a promise; await it first');
      default:
        return bytesOf(value) ?? this.fieldsOf(value, path);
    }
  }

  private array(value: readonly unknown[], path: string): string {
    const items: string[] = [];
    for (let index = 0; index < value.length; index += 1) items.push(this.value(value[index], `${path}[${index}]`));
    return `[${items.join(',')}]`;
  }

  private fieldsOf(value: object, path: string): string {
    const { toJSON } = value as { readonly toJSON?: unknown };
    if (typeof toJSON === 'function') return this.value(Reflect.apply(toJSON, value, ['']), path);
    if (!isPlain(value))
      return this.refuse(path, `an instance of ${classOf(value)}; give its data, or a toJSON method`);
    const fields = this.fields(value, Object.keys(value), path);
    return Object.prototype.hasOwnProperty.call(value, '$') ? marked('o', fields) : fields;
  }

  private fields(value: object, names: readonly string[], path: string): string {
    const parts = names.map((name) => {
      const item = (value as { readonly [name: string]: unknown })[name];
      const at = /^[A-Za-z_$][\w$]*$/.test(name) ? `${path}.${name}` : `${path}[${JSON.stringify(name)}]`;
      return `${JSON.stringify(name)}:${this.value(item, at)}`;
    });
    return `{${parts.join(',')}}`;
  }

  private error(error: Error, path: string): string {
    const names = Object.keys(error).filter((name) => !ERROR_FIELDS.has(name));
    for (const name of ['cause', 'errors']) {
      if (Object.prototype.hasOwnProperty.call(error, name) && !names.includes(name)) names.push(name);
    }
    return marked(
      'e',
      JSON.stringify(textOr(error.name, 'Error')),
      JSON.stringify(textOr(error.message, '')),
      JSON.stringify(textOr(error.stack, '').split('\n').slice(0, STACK_LINES_MAX).join('\n')),
      this.fields(error, names, path),
    );
  }

  private refuse(path: string, what: string): string {
    if (this.isLenient) return JSON.stringify(`[${what}]`);
    throw new TypeError(`${path} is ${what}`);
  }
}

function marked(kind: string, ...parts: string[]): string {
  return `{"$":[${[`"${kind}"`, ...parts].join(',')}]}`;
}

/** Bytes of a typed array, an `ArrayBuffer`, a `DataView`, a `Buffer`. */
function bytesOf(value: object): string | undefined {
  if (ArrayBuffer.isView(value)) {
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    return marked('y', `"${Buffer.isBuffer(value) ? 'Buffer' : tagOf(value)}"`, `"${bytes.toString('base64')}"`);
  }
  if (tagOf(value) !== 'ArrayBuffer') return undefined;
  return marked('y', '"ArrayBuffer"', `"${Buffer.from(value as ArrayBuffer).toString('base64')}"`);
}

function classOf(value: object): string {
  const { constructor } = value as { readonly constructor?: unknown };
  return typeof constructor === 'function' && constructor.name !== '' ? constructor.name : tagOf(value);
}

function textOr(value: unknown, other: string): string {
  return typeof value === 'string' ? value : other;
}

function messageOf(error: unknown): string {
  const message = (error as { readonly message?: unknown } | null | undefined)?.message;
  return typeof message === 'string' ? message : typeof error;
}
