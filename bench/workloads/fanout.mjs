// 2,000 workflows of 5 steps, all at once and 100 at a time; again while the application uses AsyncLocalStorage.

import { AsyncLocalStorage } from 'node:async_hooks';
import { performance } from 'node:perf_hooks';
import { five, seen } from '../definitions.mjs';
import { pool } from '../pool.mjs';
import { median } from '../statistics.mjs';

const WORKFLOWS = 2000;
const STEPS = 5;

export const title = `${WORKFLOWS} workflows of ${STEPS} steps, steps/s`;

export async function measure({ open, floor, scale }) {
  const engine = await open();
  const rounds = scale(5);
  const all = () => burst(engine, WORKFLOWS);
  const hundred = () => burst(engine, 100);
  for (const warmUp of [all, hundred]) await warmUp();

  const rates = { all: [], hundred: [], allWithStorage: [], hundredWithStorage: [] };
  for (let round = 0; round < rounds; round += 1) {
    await floor.measure();
    rates.all.push(await all());
    rates.hundred.push(await hundred());
  }
  const storage = new AsyncLocalStorage();
  for (let round = 0; round < rounds; round += 1) {
    await floor.measure();
    rates.allWithStorage.push(await storage.run({ round }, all));
    rates.hundredWithStorage.push(await storage.run({ round }, hundred));
  }
  storage.disable();
  await engine.close();
  return {
    n: rounds * WORKFLOWS * STEPS,
    all_steps_per_s: median(rates.all),
    at_100_steps_per_s: median(rates.hundred),
    all_with_storage_steps_per_s: median(rates.allWithStorage),
    at_100_with_storage_steps_per_s: median(rates.hundredWithStorage),
  };
}

async function burst(engine, width) {
  seen.times = [];
  const begin = performance.now();
  await pool(WORKFLOWS, width, (k) => engine.execute(five, k));
  return (WORKFLOWS * STEPS * 1000) / (performance.now() - begin);
}

export function judge(result) {
  return [
    ['all at once, steps/s', result.all_steps_per_s, 200_000, 'at least'],
    ['100 at a time, steps/s', result.at_100_steps_per_s, 80_000, 'at least'],
    ['share left with storage, all', result.all_with_storage_steps_per_s / result.all_steps_per_s, 0.7, 'at least'],
    [
      'share left with storage, 100',
      result.at_100_with_storage_steps_per_s / result.at_100_steps_per_s,
      0.7,
      'at least',
    ],
  ];
}
