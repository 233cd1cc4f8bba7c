/**
 * A codec that encrypts: AES-256-GCM with keys that have names.
 *
 * | bytes | what |
 * | --- | --- |
 * | 1 | form, 1 |
 * | 1 + n | length and text of the key's id |
 * | 12 | nonce |
 * | … | encrypted |
 * | 16 | tag |
 *
 * The place of a payload and the id of the key are authenticated with it: one that is put elsewhere does not decrypt.
 * Nonces are random. Only where the engine compares what it is given with what is recorded, the nonce follows from key,
 * place and content (by HMAC-SHA256, with a key of its own): the same content gives the same bytes there, and other
 * content another nonce.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  randomFillSync,
  KeyObject,
} from 'node:crypto';
import { checkText, knownOptions } from '../options.js';
import type { Codec, PayloadPlace } from './payloads.js';

const NAME = 'aes256gcm';
const ALGORITHM = 'aes-256-gcm';
const FORM = 1;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const ID_BYTES_MAX = 64;
/** So many nonces are drawn at a time. */
const NONCES = 512;

/** A key, as users give it. */
export interface GivenKey {
  readonly id?: unknown;
  readonly key?: unknown;
}

/** A key with what follows from it. */
interface Key {
  readonly id: string;
  readonly key: KeyObject;
  /** Form and id. */
  readonly head: Buffer;
}

/** Says that a payload does not decrypt, and with which key. */
class KeyError extends Error {
  constructor(
    message: string,
    readonly keyId: string,
  ) {
    super(message);
  }
}

/** Encrypts with the first key, and decrypts with any. @throws TypeError, RangeError on what cannot be a key */
export function aes256gcm(options: { readonly keys?: readonly GivenKey[] }): Aes256Gcm {
  knownOptions(options, ['keys'], 'aes256gcm');
  const { keys } = options ?? {};
  if (!Array.isArray(keys) || keys.length === 0)
    throw new TypeError('aes256gcm needs keys: [{ id, key }], one or more');
  return new Aes256Gcm((keys as readonly GivenKey[]).map(readKey));
}

function readKey(given: GivenKey, index: number): { readonly id: string; readonly key: KeyObject } {
  knownOptions(given, ['id', 'key'], `keys[${index}] of aes256gcm`);
  const { id, key } = given ?? {};
  checkText(id, `the id of keys[${index}] of aes256gcm`);
  if (Buffer.byteLength(id) > ID_BYTES_MAX) {
    throw new RangeError(`the id of keys[${index}] of aes256gcm has more than ${ID_BYTES_MAX} bytes`);
  }
  return { id, key: key instanceof KeyObject ? key : createSecretKey(bytesOf(id, key)) };
}

function bytesOf(id: string, key: unknown): Uint8Array {
  let bytes: Uint8Array;
  if (ArrayBuffer.isView(key)) bytes = new Uint8Array(key.buffer, key.byteOffset, key.byteLength);
  else if (typeof key === 'string') bytes = Buffer.from(key, /^[0-9a-f]{64}$/i.test(key) ? 'hex' : 'base64');
  else throw new TypeError(`key '${id}' of aes256gcm must be a Uint8Array or a text in base64 or hexadecimal digits`);
  if (bytes.length !== KEY_BYTES) {
    throw new RangeError(`key '${id}' of aes256gcm has ${bytes.length} bytes and must have ${KEY_BYTES}`);
  }
  return bytes;
}

/** The codec. */
export class Aes256Gcm implements Codec {
  readonly name = NAME;
  readonly #first: Key;
  readonly #keys = new Map<string, Key>();
  readonly #nonces = Buffer.alloc(NONCES * NONCE_BYTES);
  #nextNonce = this.#nonces.length;
  #nonceKey: KeyObject | undefined;

  constructor(given: readonly { readonly id: string; readonly key: KeyObject }[]) {
    for (const { id, key } of given) {
      if (this.#keys.has(id)) throw new TypeError(`aes256gcm was given two keys with the id '${id}'`);
      const text = Buffer.from(id);
      this.#keys.set(id, { id, key, head: Buffer.concat([Buffer.from([FORM, text.length]), text]) });
    }
    this.#first = this.#keys.values().next().value!;
  }

  /** For another thread: keys are handed over as handles, not as bytes. */
  get spec(): {
    readonly kind: 'aes256gcm';
    readonly keys: readonly { readonly id: string; readonly key: KeyObject }[];
  } {
    return { kind: NAME, keys: [...this.#keys.values()].map(({ id, key }) => ({ id, key })) };
  }

  encode(bytes: Uint8Array, place: PayloadPlace): Uint8Array {
    const { id, key, head } = this.#first;
    const bound = boundTo(id, place);
    const nonce = place.isCompared === true ? this.#nonceOf(bound, bytes) : this.#nonce();
    const cipher = createCipheriv(ALGORITHM, key, nonce);
    cipher.setAAD(bound);
    const body = cipher.update(bytes);
    cipher.final();
    return Buffer.concat([head, nonce, body, cipher.getAuthTag()]);
  }

  decode(given: Uint8Array, place: PayloadPlace): Uint8Array {
    const bytes = Buffer.from(given.buffer, given.byteOffset, given.byteLength);
    const headEnd = 2 + (bytes[1] ?? 0);
    const bodyStart = headEnd + NONCE_BYTES;
    if (bytes[0] !== FORM || bytes.length < bodyStart + TAG_BYTES)
      throw new TypeError('it is not what this codec wrote');
    const id = bytes.toString('utf8', 2, headEnd);
    const key = this.#keys.get(id)?.key;
    if (key === undefined) {
      const known = [...this.#keys.keys()].map((name) => `'${name}'`).join(', ');
      throw new KeyError(`it needs key '${id}', and there is ${known}; add that key behind the others`, id);
    }
    const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(headEnd, bodyStart));
    decipher.setAAD(boundTo(id, place));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const body = decipher.update(bytes.subarray(bodyStart, -TAG_BYTES));
      decipher.final();
      return body;
    } catch {
      throw new KeyError(
        `it does not decrypt with key '${id}': that is another key of this name, or the bytes were changed or moved here`,
        id,
      );
    }
  }

  #nonce(): Buffer {
    if (this.#nextNonce === this.#nonces.length) {
      randomFillSync(this.#nonces);
      this.#nextNonce = 0;
    }
    const from = this.#nextNonce;
    this.#nextNonce += NONCE_BYTES;
    return this.#nonces.subarray(from, this.#nextNonce);
  }

  #nonceOf(bound: Buffer, bytes: Uint8Array): Buffer {
    this.#nonceKey ??= createSecretKey(
      new Uint8Array(hkdfSync('sha256', this.#first.key, '', 'fusee: nonces of what is compared', KEY_BYTES)),
    );
    const hmac = createHmac('sha256', this.#nonceKey).update(`${bound.length}\n`).update(bound).update(bytes);
    return hmac.digest().subarray(0, NONCE_BYTES);
  }
}

/** What is authenticated beside the payload. Ids and names have no such separators. */
function boundTo(keyId: string, { kind, id, name }: PayloadPlace): Buffer {
  return Buffer.from(`${keyId}\u001f${kind}\u001f${id}\u001f${name}`);
}
