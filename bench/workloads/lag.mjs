// How long other work of the event loop waits while chains run: another thread posts a message each millisecond; its lag
// is the time from the post to the callback here. The same without any workflow is the baseline.

import { performance } from 'node:perf_hooks';
import { Worker } from 'node:worker_threads';
import { chain } from '../definitions.mjs';
import { quantile } from '../statistics.mjs';

const POSTER = `
  const { parentPort } = require('node:worker_threads');
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    Atomics.wait(pause, 0, 0, 1);
    parentPort.postMessage(performance.timeOrigin + performance.now());
  }
`;

export const title = 'lag of other work on the event loop while chains run, ms';

export async function measure({ open, floor, scale }) {
  const engine = await open();
  await engine.execute(chain, 1000); // warms up
  const poster = new Worker(POSTER, { eval: true });
  let lags = [];
  poster.on('message', (posted) => lags.push(performance.timeOrigin + performance.now() - posted));
  await new Promise((resolve) => poster.once('message', resolve));

  lags = [];
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const idle = lags;
  const busy = [];
  for (let k = 0; k < scale(50); k += 1) {
    await floor.measure();
    lags = [];
    await engine.execute(chain, 1000);
    busy.push(...lags);
  }
  await poster.terminate();
  await engine.close();
  return {
    n: busy.length,
    p50_ms: quantile(busy, 0.5),
    p99_ms: quantile(busy, 0.99),
    max_ms: quantile(busy, 1),
    idle_p99_ms: quantile(idle, 0.99),
  };
}

export function judge({ p99_ms }) {
  return [['p99, ms', p99_ms, 1]];
}
