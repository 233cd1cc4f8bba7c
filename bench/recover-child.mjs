// block: starts n workflows, says READY when each is in its second step, and waits to be killed.
// recover: finishes them, and says DONE with the milliseconds since its first line ran.

import { performance } from 'node:perf_hooks';

const begin = performance.now();
const { open } = await import('fusee');
const { recov, seen, workflows } = await import('./definitions.mjs');
const { pool } = await import('./pool.mjs');

const [mode, dir, countText] = process.argv.slice(2);
const count = Number(countText);
const engine = await open(dir, { workflows, dev: false });

if (mode === 'block') {
  await pool(count, 1000, (k) => engine.start(recov, k, { id: `recov-${k}` }));
  while (seen.blocked < count) await new Promise((resolve) => setTimeout(resolve, 1));
  console.log('READY');
} else {
  const ended = new Promise((resolve) => {
    seen.onEnded = () => seen.ended === count && resolve();
    seen.onEnded();
  });
  await ended;
  // The functions have returned; finished means that their results are durable.
  while ((await engine.count({ type: 'recov', status: 'completed' })) < count)
    await new Promise((r) => setImmediate(r));
  console.log(`DONE ${performance.now() - begin}`);
  process.exit(0);
}
