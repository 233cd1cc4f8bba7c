/**
 * What codecs of the application make of the texts that are recorded, and back.
 *
 * A text that codecs have changed is a value of a kind of its own, `["x", names, base64]` (see js/codec.ts): it says by
 * which codecs, in which order. Texts without that mark pass as they are, so a codec can be added to a directory that
 * has runs, and taken away again. It does not know what any codec does, nor where texts go.
 */
import { decode, encode } from '../codec.js';
import { CodecError } from '../errors.js';

/** What a payload is to its run. */
export type PayloadKind =
  | 'input'
  | 'result'
  | 'step'
  | 'heartbeat'
  | 'signal'
  | 'update'
  | 'updateAnswer'
  | 'call'
  | 'callAnswer'
  | 'state'
  | 'task'
  | 'taskResult'
  | 'taskProgress';

/** Where a payload belongs. Codecs may refuse one that they find elsewhere. */
export interface PayloadPlace {
  readonly kind: PayloadKind;
  /** Id of the run; empty: it is of a task, or of runs that a schedule starts. */
  readonly id: string;
  /** Of the step, the signal, the update, the handler, the task; empty: whoever reads it may not know one. */
  readonly name: string;
  /** The engine compares it with what was recorded before: the same bytes should become the same again. No part of the place. */
  readonly isCompared?: boolean;
}

/** Changes bytes on their way to the log, and back. */
export interface Codec {
  readonly name: string;
  /** Gives the bytes that it was given, themselves, where it leaves them as they are. */
  encode(bytes: Uint8Array, place: PayloadPlace): Uint8Array;
  decode(bytes: Uint8Array, place: PayloadPlace): Uint8Array;
}

/** The codec that is worth its mark only where the text gets shorter. */
export const COMPRESSION = 'compression';

const MARK = '{"$":["x","';
const MIDDLE = '","';
const END = '"]}';

/** Whether a codec has changed a text. */
export function isSealed(text: string): boolean {
  return text.startsWith(MARK);
}

/** Whether there is such a text in a JSON array of texts. */
export function hasSealed(texts: string): boolean {
  return texts.includes(MARK);
}

/** The codecs of one engine. */
export class Payloads {
  private readonly byName: ReadonlyMap<string, Codec>;

  /** @param codecs in the order in which they are applied to what is written */
  constructor(readonly codecs: readonly Codec[]) {
    this.byName = new Map(codecs.map((codec) => [codec.name, codec]));
  }

  /** Nothing is changed. */
  get isPlain(): boolean {
    return this.codecs.length === 0;
  }

  /** Text that records a value. @throws TypeError naming the path to what cannot be recorded, or the codec that refuses it */
  record(value: unknown, what: string, place: PayloadPlace): string {
    let text: string;
    try {
      text = encode(value);
    } catch (error) {
      throw new TypeError(`${what} cannot be recorded: ${messageOf(error)}`, { cause: error });
    }
    return this.isPlain ? text : this.seal(text, what, place);
  }

  /** What is recorded in place of a text. @throws TypeError naming the codec that refuses it */
  seal(text: string, what: string, place: PayloadPlace): string {
    const plain: Uint8Array = Buffer.from(text);
    let bytes = plain;
    let names = '';
    for (const codec of this.codecs) {
      const encoded = encodeBy(codec, bytes, what, place);
      if (encoded === bytes) continue;
      bytes = encoded;
      names = names === '' ? codec.name : `${names}+${codec.name}`;
    }
    if (bytes === plain) return text;
    const sealed = MARK + names + MIDDLE + base64Of(bytes) + END;
    return names === COMPRESSION && sealed.length >= text.length ? text : sealed;
  }

  /**
   * The text that was given to {@link seal}.
   * @param others further places that it may have been written for
   * @throws CodecError
   */
  open(text: string, place: PayloadPlace, others: readonly PayloadPlace[] = []): string {
    if (!isSealed(text)) return text;
    try {
      return this.openAt(text, place);
    } catch (error) {
      for (const other of others) {
        try {
          return this.openAt(text, other);
        } catch {
          // What is said is said of the first place.
        }
      }
      throw error;
    }
  }

  /** The value that was recorded. @throws CodecError; SyntaxError, TypeError if it is no value */
  read(text: string, place: PayloadPlace, others?: readonly PayloadPlace[]): unknown {
    return decode(this.open(text, place, others));
  }

  private openAt(text: string, place: PayloadPlace): string {
    const middle = text.indexOf(MIDDLE, MARK.length);
    if (middle < 0 || !text.endsWith(END)) throw new TypeError('a recorded value of codecs has another form');
    const names = text.slice(MARK.length, middle).split('+').reverse();
    let bytes: Uint8Array = Buffer.from(text.slice(middle + MIDDLE.length, -END.length), 'base64');
    for (const name of names) bytes = this.decodeBy(name, bytes, place);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
  }

  private decodeBy(name: string, bytes: Uint8Array, place: PayloadPlace): Uint8Array {
    const codec = this.byName.get(name);
    const about = { id: place.id, place: shownPlace(place), codec: name };
    if (codec === undefined) {
      const known = this.isPlain ? 'it was given none' : `it was given ${[...this.byName.keys()].join(', ')}`;
      throw new CodecError(
        `${about.place} was written by the codec '${name}', which this engine does not have (${known}): ` +
          `add it to the option codec`,
        about,
      );
    }
    try {
      const decoded: unknown = codec.decode(bytes, place);
      if (!isBytes(decoded)) throw new TypeError('it gave no Uint8Array');
      return decoded;
    } catch (error) {
      const { keyId } = error as { readonly keyId?: unknown };
      throw new CodecError(`${about.place} cannot be read by the codec '${name}': ${messageOf(error)}`, {
        ...about,
        keyId: typeof keyId === 'string' ? keyId : undefined,
        cause: error,
      });
    }
  }
}

function encodeBy(codec: Codec, bytes: Uint8Array, what: string, place: PayloadPlace): Uint8Array {
  let encoded: unknown;
  try {
    encoded = codec.encode(bytes, place);
  } catch (error) {
    throw new TypeError(`${what} cannot be recorded: the codec '${codec.name}' says: ${messageOf(error)}`, {
      cause: error,
    });
  }
  if (!isBytes(encoded)) {
    throw new TypeError(`${what} cannot be recorded: the codec '${codec.name}' gave no Uint8Array`);
  }
  return encoded;
}

/** Also of another realm. */
function isBytes(value: unknown): value is Uint8Array {
  return ArrayBuffer.isView(value) && 'subarray' in value;
}

function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

function messageOf(error: unknown): string {
  return String((error as { message?: unknown } | null | undefined)?.message ?? error);
}

/** A place in words. */
function shownPlace({ kind, id, name }: PayloadPlace): string {
  const named = name === '' ? '' : ` '${name}'`;
  switch (kind) {
    case 'input':
      return id === '' ? `the input of workflow${named}` : `the input of workflow ${id}`;
    case 'result':
      return `the result of workflow ${id}`;
    case 'step':
      return `the result of step${named} of workflow ${id}`;
    case 'heartbeat':
      return `a heartbeat of a step of workflow ${id}`;
    case 'signal':
      return `a value of signal${named} of workflow ${id}`;
    case 'update':
      return `the argument of update${named} of workflow ${id}`;
    case 'updateAnswer':
      return `the answer to an update of workflow ${id}`;
    case 'call':
      return `the input of '${name}' of object ${id}`;
    case 'callAnswer':
      return `an answer of object ${id}`;
    case 'state':
      return `the state of object ${id}`;
    case 'task':
      return `the input of task${named}`;
    case 'taskResult':
      return 'the result of a task';
    case 'taskProgress':
      return `the progress of task${named}`;
  }
}
