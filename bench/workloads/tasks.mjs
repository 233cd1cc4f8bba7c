// Tasks: one enqueued, one from submission to result, and many through JavaScript functions, on disk and in memory.

import { performance } from 'node:perf_hooks';
import { open as openEngine, task } from 'fusee';
import { quantile } from '../statistics.mjs';

export const title = 'tasks: enqueue of one, submission to result of one, bulk on disk and in memory';

const quick = task('quick', (_ctx, n) => n);
const silent = { debug() {}, info() {}, warn: console.warn, error: console.error };
const options = { tasks: [quick], queues: { default: { concurrency: 1000 } }, dev: false, logger: silent };

export async function measure({ dirFor, floor, scale }) {
  const engine = await openEngine(dirFor('tasks'), options);
  await bulk(engine, 2000); // warms up
  await engine.queue('default').pause();
  const enqueues = await each(floor, scale(10), () => engine.enqueue(quick, 1));
  await engine.cancel({ type: quick });
  await engine.queue('default').resume();
  const results = await each(floor, scale(10), async () => (await engine.enqueue(quick, 1)).result());
  const durable_per_s = await bulk(engine, scale(50_000));
  await engine.close();
  const memory = await openEngine(':memory:', options);
  await bulk(memory, 2000);
  const memory_per_s = await bulk(memory, scale(100_000));
  await memory.close();
  return {
    enqueue_p50_us: quantile(enqueues, 0.5),
    result_p50_us: quantile(results, 0.5),
    durable_per_s,
    memory_per_s,
  };
}

/** Enqueues many and waits until all have ended. @returns tasks a second */
async function bulk(engine, count) {
  const inputs = Array.from({ length: count }, (_, index) => index);
  const begin = performance.now();
  const settled = await engine.enqueueMany(quick, inputs);
  // They end in about the order in which they came: the last ones tell that all have.
  await Promise.all(settled.slice(-1000).map(({ value }) => value.result()));
  return (count * 1000) / (performance.now() - begin);
}

async function each(floor, blocks, act) {
  const micros = [];
  for (let block = 0; block < blocks; block += 1) {
    await floor.measure();
    for (let k = 0; k < 100; k += 1) {
      const begin = performance.now();
      await act();
      micros.push((performance.now() - begin) * 1000);
    }
  }
  return micros;
}

export function judge({ enqueue_p50_us, result_p50_us, durable_per_s, memory_per_s, floor }) {
  return [
    ['enqueue p50 / floor p50', enqueue_p50_us / floor.p50, 1.3],
    ['result p50 / floor p50', result_p50_us / floor.p50, 2.4],
    ['durable tasks/s', durable_per_s, 80_000, 'at least'],
    ['tasks/s in memory', memory_per_s, 150_000, 'at least'],
  ];
}
