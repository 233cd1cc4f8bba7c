// The memory environment: what the engine and the SDK cost when no disk is in the way.

import { performance } from 'node:perf_hooks';
import { open } from 'fusee';
import { five, seen, workflows } from '../definitions.mjs';
import { pool } from '../pool.mjs';
import { median } from '../statistics.mjs';

const WORKFLOWS = 2000;
const STEPS = 5;

export const title = `in memory: ${WORKFLOWS} workflows of ${STEPS} steps at once, steps/s`;

export async function measure({ scale }) {
  const engine = await open(':memory:', { workflows, dev: false });
  const burst = async () => {
    seen.times = [];
    const begin = performance.now();
    await pool(WORKFLOWS, WORKFLOWS, (k) => engine.execute(five, k));
    return (WORKFLOWS * STEPS * 1000) / (performance.now() - begin);
  };
  await burst(); // warms up
  const rates = [];
  for (let round = 0; round < scale(10); round += 1) rates.push(await burst());
  await engine.close();
  return { n: rates.length * WORKFLOWS * STEPS, steps_per_s: median(rates) };
}

export function judge({ steps_per_s }) {
  return [['steps/s', steps_per_s, 250_000, 'at least']];
}
