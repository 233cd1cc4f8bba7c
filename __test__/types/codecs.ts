/** What the compiler must infer of codecs, and what it must refuse. Compiled, never run. */
import { aes256gcm, compression, open, CodecError, FuseeError, type Codec, type PayloadPlace } from 'fusee';
import { check, replay, testEngine } from 'fusee/testing';

const is =
  <T>() =>
  <V extends T>(_value: V): void =>
    undefined;

export async function usage(): Promise<void> {
  const cipher = aes256gcm({
    keys: [
      { id: 'a', key: new Uint8Array(32) },
      { id: 'b', key: 'text' },
    ],
  });
  const own = { name: 'own', encode: (bytes: Uint8Array) => bytes, decode: (bytes: Uint8Array) => bytes };
  const placed: Codec = { ...own, encode: (bytes, place) => (is<PayloadPlace>()(place), bytes) };
  await open('./data', { codec: cipher });
  await open('./data', { codec: [compression({ algorithm: 'zstd', minBytes: 1 }), cipher, own, placed] });
  await testEngine({ codec: own });
  await check({ workflows: [], dir: 'x', codec: [cipher] });
  await replay({ kind: 'workflow', name: 'x' }, new Uint8Array(), { codec: cipher });
  // @ts-expect-error -- no such algorithm
  compression({ algorithm: 'gzip' });
  // @ts-expect-error -- a key has an id
  aes256gcm({ keys: [{ key: 'text' }] });
  // @ts-expect-error -- codecs are synchronous
  await open('./data', { codec: { ...own, encode: async (bytes: Uint8Array) => bytes } });
  const error: unknown = undefined;
  if (CodecError.is(error)) is<string | undefined>()(error.keyId);
  if (FuseeError.is(error) && error.code === 'CODEC') is<CodecError>()(error);
}
