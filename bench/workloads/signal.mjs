// A signal to a waiting workflow, until it is acknowledged, one at a time.

import { performance } from 'node:perf_hooks';
import { go, listener } from '../definitions.mjs';
import { quantile } from '../statistics.mjs';

export const title = 'signal, acknowledged, one at a time';

export async function measure({ open, floor, scale }) {
  const engine = await open();
  const blocks = scale(20);
  const warmUps = 500;
  const run = await engine.start(listener, blocks * 200 + warmUps);
  for (let k = 0; k < warmUps; k += 1) await run.signal(go);
  const micros = [];
  for (let block = 0; block < blocks; block += 1) {
    await floor.measure();
    for (let k = 0; k < 200; k += 1) {
      const begin = performance.now();
      await run.signal(go);
      micros.push((performance.now() - begin) * 1000);
    }
  }
  await run.result();
  await engine.close();
  return { n: micros.length, p50_us: quantile(micros, 0.5), p99_us: quantile(micros, 0.99) };
}

export function judge({ p50_us, floor }) {
  return [['p50 / floor p50', p50_us / floor.p50, 1.3]];
}
