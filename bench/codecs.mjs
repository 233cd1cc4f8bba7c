// What codecs cost a payload of 256 bytes, beside what node:crypto costs for the same bytes: `node bench/codecs.mjs [--quick]`.
// In one process and in turns, so that the ratio says something on a busy machine too.

import { createCipheriv, createSecretKey, randomBytes, randomFillSync } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { aes256gcm, compression } from 'fusee';
import { quantile } from './statistics.mjs';

const rounds = process.argv.includes('--quick') ? 20 : 200;
const CALLS = 500;
const place = { kind: 'step', id: 'order-1234', name: 'charge the card' };
const value = { customer: 'c-1234', lines: Array.from({ length: 9 }, (_, n) => ({ sku: `sku-${n}`, n })) };
const bytes = Buffer.from(JSON.stringify(value).padEnd(256).slice(0, 256));
const cipher = aes256gcm({ keys: [{ id: 'k1', key: randomBytes(32) }] });
const shrink = compression({ minBytes: 0 });
const sealed = cipher.encode(bytes, place);
const shrunk = shrink.encode(bytes, place);

const key = createSecretKey(randomBytes(32));
const nonce = Buffer.alloc(12);
const bound = Buffer.from('k1 step order-1234 charge the card');

const cases = {
  'node:crypto alone, encrypt': () => {
    randomFillSync(nonce);
    const own = createCipheriv('aes-256-gcm', key, nonce);
    own.setAAD(bound);
    own.update(bytes);
    own.final();
    own.getAuthTag();
  },
  'aes256gcm, encrypt': () => cipher.encode(bytes, place),
  'aes256gcm, decrypt': () => cipher.decode(sealed, place),
  'aes256gcm, encrypt what is compared': () => cipher.encode(bytes, { ...place, isCompared: true }),
  'compression, deflate': () => shrink.encode(bytes, place),
  'compression, inflate': () => shrink.decode(shrunk, place),
};

const times = new Map(Object.keys(cases).map((name) => [name, []]));
for (let round = 0; round < rounds; round += 1) {
  for (const [name, call] of Object.entries(cases)) {
    const begin = performance.now();
    for (let n = 0; n < CALLS; n += 1) call();
    times.get(name).push(((performance.now() - begin) * 1000) / CALLS);
  }
}
console.log(`a payload of 256 bytes, µs: the quickest round of ${rounds}, p50`);
for (const [name, all] of times) {
  console.log(
    `${name.padEnd(40)}${Math.min(...all)
      .toFixed(2)
      .padStart(8)}${quantile(all, 0.5).toFixed(2).padStart(8)}`,
  );
}
