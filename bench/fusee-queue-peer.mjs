// fusee's tasks in the harness that measures other queues; as for fusee-peer.mjs, bench/peers.mjs copies and starts it.

import { createRequire } from 'node:module';
import { mkdtempSync, rmSync } from 'node:fs';
import path from 'node:path';
import { DATA, lat, now, pool, suite } from './lib.mjs';

const require = createRequire(path.join(process.env.FUSEE_ROOT, 'package.json'));
const { open, task } = require('fusee');
const { version } = require('fusee/package.json');

const JOBS = 10_000;
const ROUND_TRIPS = 300;
/** Calls of `enqueue` that wait for their acknowledgement at once, and jobs in one call of `enqueueMany`. */
const WIDTH = 100;
const BATCH = 1_000;

const job = task('job', () => ({ ok: 1 }));

const dir = mkdtempSync(path.join(DATA, 'fusee-queue-'));
const engine = await open(dir, { tasks: [job], queues: { default: { concurrency: WIDTH } }, dev: false });
const queue = engine.queue('default');

await suite(
  'fusee',
  {
    'W4-enqueue-c100': () =>
      filledThenDrained((jobs) => pool(JOBS, WIDTH, async (i) => (jobs[i] = await engine.enqueue(job, { i })))),
    'W4-enqueueMany1000': () =>
      filledThenDrained(async (jobs) => {
        for (let first = 0; first < JOBS; first += BATCH) {
          const inputs = Array.from({ length: BATCH }, (_, k) => ({ i: first + k }));
          for (const { value } of await engine.enqueueMany(job, inputs)) jobs.push(value);
        }
      }),
    'W4-roundtrip': async () => {
      const times = [];
      for (let i = 0; i < ROUND_TRIPS; i += 1) {
        const begin = now();
        await (await engine.enqueue(job, { i })).result();
        times.push(now() - begin);
      }
      return lat(times);
    },
  },
  { versions: `fusee ${version}`, settings: 'flush auto, durable on every acknowledgement; concurrency 100' },
);
await engine.close({ grace: 0 });
rmSync(dir, { recursive: true, force: true });
process.exit(0);

/** As the other queues are measured: all are in the queue before the first is worked on. */
async function filledThenDrained(fill) {
  await queue.pause();
  const jobs = [];
  const begin = now();
  await fill(jobs);
  const filled = now();
  await queue.resume();
  // FIFO: once the last ones have durable results, all have.
  await Promise.all(jobs.slice(-2 * WIDTH).map((last) => last.result()));
  const drained = now();
  const perSecond = (ms) => Math.round((JOBS * 1000) / ms);
  return {
    enqueue_s: perSecond(filled - begin),
    process_s: perSecond(drained - filled),
    e2e_s: perSecond(drained - begin),
  };
}
