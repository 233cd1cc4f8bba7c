// Start to result of a workflow of one step, one at a time.

import { performance } from 'node:perf_hooks';
import { one } from '../definitions.mjs';
import { quantile } from '../statistics.mjs';

export const title = 'start to result, 1 step, one at a time';

export async function measure({ open, floor, scale }) {
  const engine = await open();
  for (let k = 0; k < 500; k += 1) await engine.execute(one, k); // warms up
  const micros = [];
  for (let block = 0; block < scale(20); block += 1) {
    await floor.measure();
    for (let k = 0; k < 200; k += 1) {
      const begin = performance.now();
      await engine.execute(one, k);
      micros.push((performance.now() - begin) * 1000);
    }
  }
  await engine.close();
  return { n: micros.length, p50_us: quantile(micros, 0.5), p99_us: quantile(micros, 0.99) };
}

export function judge({ p50_us, floor }) {
  return [['p50 / floor p50', p50_us / floor.p50, 2.3]];
}
