// Chains of 1,000 steps, each of which waits for the disk: time from one step's body to the next one's.

import { performance } from 'node:perf_hooks';
import { chain, seen } from '../definitions.mjs';
import { gaps, quantile } from '../statistics.mjs';

const STEPS = 1000;

export const title = `chain of ${STEPS} sequential steps, per step`;

export async function measure({ open, floor, scale }) {
  const engine = await open();
  await engine.execute(chain, STEPS); // warms up
  const micros = [];
  const chains = scale(50);
  let stepsMs = 0;
  for (let k = 0; k < chains; k += 1) {
    await floor.measure();
    seen.times = [];
    const begin = performance.now();
    await engine.execute(chain, STEPS);
    stepsMs += performance.now() - begin;
    for (const gap of gaps(seen.times)) micros.push(gap * 1000);
  }
  await engine.close();
  return {
    n: micros.length,
    p50_us: quantile(micros, 0.5),
    p99_us: quantile(micros, 0.99),
    steps_per_s: (chains * STEPS * 1000) / stepsMs,
  };
}

export function judge({ p50_us, p99_us, floor }) {
  const limit = floor.p50 + Math.max(floor.p50 * 0.1, 6);
  return [
    ['p50 over floor p50, us', p50_us - floor.p50, limit - floor.p50],
    ['p99 / floor p99', p99_us / floor.p99, 1.6],
  ];
}
