/**
 * The option `codec`, read and checked, and handed to other threads.
 */
import type { KeyObject } from 'node:crypto';
import { shown } from '../options.js';
import { aes256gcm } from './aes256gcm.js';
import { compression } from './compression.js';
import { COMPRESSION, Payloads, type Codec } from './payloads.js';

/** Names stand in what is written, between marks. */
const NAME = /^[A-Za-z0-9._-]{1,64}$/;

/** A codec as another thread gets it: its settings, or the name by which its module exports it. */
export type CodecSpec =
  | { readonly kind: 'aes256gcm'; readonly keys: readonly { readonly id: string; readonly key: KeyObject }[] }
  | { readonly kind: 'compression'; readonly algorithm: unknown; readonly minBytes: unknown }
  | { readonly kind: 'exported'; readonly name: string };

/** Whether a value is a codec: of ours, or one that an application made. */
export function isCodec(value: unknown): value is Codec {
  if (typeof value !== 'object' || value === null) return false;
  const { name, encode, decode } = value as { readonly [name: string]: unknown };
  return typeof name === 'string' && typeof encode === 'function' && typeof decode === 'function';
}

/** Reads the option `codec`. @throws TypeError */
export function readCodecs(given: unknown): Payloads {
  if (given === undefined) return new Payloads([]);
  const codecs: readonly unknown[] = Array.isArray(given) ? given : [given];
  const names = new Set<string>();
  for (const codec of codecs) {
    if (!isCodec(codec)) {
      throw new TypeError(`codec must be a codec or an array of them, with name, encode and decode`);
    }
    if (!NAME.test(codec.name)) {
      throw new TypeError(
        `the name of a codec has 1 to 64 letters, digits, '.', '_' or '-'; ${shown(codec.name)} is none`,
      );
    }
    if (names.has(codec.name)) throw new TypeError(`codec has two codecs named '${codec.name}'`);
    if (codec.name === COMPRESSION && names.has('aes256gcm')) {
      throw new TypeError('compression must come before aes256gcm: what is encrypted does not get smaller');
    }
    names.add(codec.name);
  }
  return new Payloads(codecs as readonly Codec[]);
}

/** What another thread makes the same codecs of. */
export function specsOf({ codecs }: Payloads): readonly CodecSpec[] {
  return codecs.map((codec) => (codec as { readonly spec?: CodecSpec }).spec ?? { kind: 'exported', name: codec.name });
}

/** Makes codecs of what {@link specsOf} gave. @param exported those of the module of this thread @throws TypeError */
export function codecsOf(specs: readonly CodecSpec[], exported: readonly Codec[]): Payloads {
  return new Payloads(specs.map((spec) => codecOf(spec, exported)));
}

function codecOf(spec: CodecSpec, exported: readonly Codec[]): Codec {
  switch (spec.kind) {
    case 'aes256gcm':
      return aes256gcm({ keys: spec.keys });
    case 'compression':
      return compression({ algorithm: spec.algorithm, minBytes: spec.minBytes });
    case 'exported': {
      const found = exported.find(({ name }) => name === spec.name);
      if (found !== undefined) return found;
      throw new TypeError(
        `the codec '${spec.name}' has functions, which cannot be copied to a worker: export it from workers.module`,
      );
    }
  }
}
