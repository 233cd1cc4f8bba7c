// Starts n workflows that wait, and prints what one of them takes: bytes of JS heap in use after a collection, bytes that
// the addon has allocated, and bytes by which the whole process grew. Wants an addon that counts (feature count-bytes).

import { open } from 'fusee';
import { createRequire } from 'node:module';
import { seen, sleeper, workflows } from './definitions.mjs';
import { pool } from './pool.mjs';

const [dir, countText] = process.argv.slice(2);
const count = Number(countText);
const { allocatedBytes } = createRequire(import.meta.url)(process.env.FUSEE_NATIVE_PATH);
const engine = await open(dir, { workflows, dev: false });
const text = 'x'.repeat(98); // 100 bytes with its quotes

const start = (first, last) =>
  pool(last - first, 200, (k) => engine.start(sleeper, text, { id: `sleeper-${first + k}` }));
const settle = async () => {
  for (let i = 0; i < 5; i += 1) {
    globalThis.gc();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
};

// The first ones warm up: code that gets compiled and pools that grow once are not what a run costs.
const warmUps = 1000;
await start(0, warmUps);
await settle();
const before = { ...process.memoryUsage(), allocated: allocatedBytes() };
await start(warmUps, warmUps + count);
while (seen.sleeping < warmUps + count) await new Promise((resolve) => setTimeout(resolve, 5));
await settle();
const after = { ...process.memoryUsage(), allocated: allocatedBytes() };
console.log(
  JSON.stringify({
    heapBytes: Math.round((after.heapUsed - before.heapUsed) / count),
    allocatedBytes: Math.round((after.allocated - before.allocated) / count),
    residentBytes: Math.round((after.rss - before.rss) / count),
  }),
);
process.exit(0); // closing would write; nothing more is measured
