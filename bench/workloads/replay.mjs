// Workflows with long journals wait; the directory is closed and opened again: entries replayed in a second, from the
// call of open (which reads the log) until the last function is back where it was.

import { performance } from 'node:perf_hooks';
import { seen, story } from '../definitions.mjs';

const RUNS = 200;
const STEPS = 1000;

export const title = `replay of ${RUNS} runs of ${STEPS} entries, reading the log included`;

export async function measure({ open, floor, scale }) {
  const runs = scale(RUNS);
  seen.replayed = 0;
  const first = await open();
  for (let k = 0; k < runs; k += 1) await first.start(story, STEPS, { id: `story-${k}` });
  await until(() => seen.replayed >= runs);
  await first.close();
  await floor.measure();

  seen.replayed = 0;
  seen.times = [];
  const begin = performance.now();
  const second = await open({ keep: true });
  const openedMs = performance.now() - begin;
  await until(() => seen.replayed >= runs);
  const ms = performance.now() - begin;
  if (seen.times.length > 0) throw new Error(`${seen.times.length} steps ran again in replay`);
  await second.close({ grace: 0 });
  return { n: runs * STEPS, entries_per_s: (runs * STEPS * 1000) / ms, opened_ms: openedMs };
}

async function until(isReached) {
  while (!isReached()) await new Promise((resolve) => setTimeout(resolve, 1));
}

export function judge({ entries_per_s }) {
  return [['entries/s', entries_per_s, 500_000, 'at least']];
}
