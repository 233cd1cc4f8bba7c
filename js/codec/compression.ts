/**
 * A codec that compresses, where that makes a payload smaller.
 *
 * One byte says how; whoever reads needs no option for it.
 */
import * as zlib from 'node:zlib';
import { knownOptions, shown } from '../options.js';
import { COMPRESSION, type Codec } from './payloads.js';

/** How payloads are compressed. */
export type Algorithm = 'deflate' | 'brotli' | 'zstd';

/** Below this, the few bytes that are saved are not worth the time. */
const BYTES_MIN = 256;
/** What is more than this is neither compressed nor taken for what was compressed. */
const BYTES_MAX = 256 * 1024 * 1024;
/** As quick as deflate, and smaller. */
const BROTLI_QUALITY = 4;
/** The first byte. */
const FORMS = { deflate: 1, brotli: 2, zstd: 3 } as const;

interface Zstd {
  readonly zstdCompressSync?: (bytes: Uint8Array) => Buffer;
  readonly zstdDecompressSync?: (bytes: Uint8Array, options: object) => Buffer;
}

/** Compresses payloads of some size. @throws TypeError, RangeError */
export function compression(options: { readonly algorithm?: unknown; readonly minBytes?: unknown } = {}): Compression {
  knownOptions(options, ['algorithm', 'minBytes'], 'compression');
  const { algorithm = 'deflate', minBytes = BYTES_MIN } = options;
  if (algorithm !== 'deflate' && algorithm !== 'brotli' && algorithm !== 'zstd') {
    throw new RangeError(`algorithm of compression must be deflate, brotli or zstd, not ${shown(algorithm)}`);
  }
  if (algorithm === 'zstd' && (zlib as Zstd).zstdCompressSync === undefined) {
    throw new RangeError(`Node.js ${process.version} has no zstd: take deflate or brotli, or Node.js 22.15 or later`);
  }
  if (typeof minBytes !== 'number' || !Number.isSafeInteger(minBytes) || minBytes < 0) {
    throw new RangeError(`minBytes of compression must be a whole number from 0, not ${shown(minBytes)}`);
  }
  return new Compression(algorithm, minBytes);
}

/** The codec. */
export class Compression implements Codec {
  readonly name = COMPRESSION;

  constructor(
    private readonly algorithm: Algorithm,
    private readonly bytesMin: number,
  ) {}

  /** For another thread. */
  get spec(): { readonly kind: 'compression'; readonly algorithm: Algorithm; readonly minBytes: number } {
    return { kind: COMPRESSION, algorithm: this.algorithm, minBytes: this.bytesMin };
  }

  encode(bytes: Uint8Array): Uint8Array {
    if (bytes.length < this.bytesMin || bytes.length > BYTES_MAX) return bytes;
    const smaller = compress(this.algorithm, bytes);
    if (smaller.length + 1 >= bytes.length) return bytes;
    return Buffer.concat([Buffer.from([FORMS[this.algorithm]]), smaller]);
  }

  decode(bytes: Uint8Array): Uint8Array {
    const body = bytes.subarray(1);
    const options = { maxOutputLength: BYTES_MAX };
    switch (bytes[0] ?? 0) {
      case FORMS.deflate:
        return zlib.inflateRawSync(body, options);
      case FORMS.brotli:
        return zlib.brotliDecompressSync(body, options);
      case FORMS.zstd: {
        const { zstdDecompressSync: decompress } = zlib as Zstd;
        if (decompress !== undefined) return decompress(body, options);
        throw new RangeError(`it is compressed by zstd, which Node.js ${process.version} does not have`);
      }
      default:
        throw new TypeError('it is not what this codec wrote');
    }
  }
}

function compress(algorithm: Algorithm, bytes: Uint8Array): Buffer {
  switch (algorithm) {
    case 'deflate':
      return zlib.deflateRawSync(bytes);
    case 'brotli':
      return zlib.brotliCompressSync(bytes, {
        params: {
          [zlib.constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
          [zlib.constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
        },
      });
    case 'zstd':
      return (zlib as Zstd).zstdCompressSync!(bytes);
  }
}
