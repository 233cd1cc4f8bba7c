// A process with n workflows in the middle of their second step is killed with SIGKILL; the next one finishes them all.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';

const CHILD = fileURLToPath(new URL('../recover-child.mjs', import.meta.url));

export const title = 'killed with n in flight, until all have finished';

export async function measure({ dirFor, floor, scale }) {
  const result = {};
  for (const count of [1000, 100_000].map(scale)) {
    const dir = dirFor('recover');
    await floor.measure();
    const first = child('block', dir, count);
    await first.line('READY');
    first.process.kill('SIGKILL');
    await first.ended;
    const begin = performance.now();
    const second = child('recover', dir, count);
    const words = (await second.line('DONE')).split(' ');
    result[`with_start_ms_${count}`] = performance.now() - begin;
    result[`up_to_done_ms_${count}`] = Number(words[1]);
    await second.ended;
  }
  return result;
}

function child(mode, dir, count) {
  const process_ = spawn(process.execPath, [CHILD, mode, dir, String(count)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, BENCH_BLOCK: mode === 'block' ? '1' : '0' },
  });
  const lines = createInterface({ input: process_.stdout });
  const ended = new Promise((resolve) => process_.once('close', resolve));
  return {
    process: process_,
    ended,
    line: (word) =>
      new Promise((resolve, reject) => {
        lines.on('line', (line) => {
          if (line.startsWith(word)) resolve(line);
        });
        void ended.then(() => reject(new Error(`the process that should ${mode} ended before it said ${word}`)));
      }),
  };
}

export function judge(result) {
  return Object.entries(result)
    .filter(([name]) => name.startsWith('up_to_done'))
    .map(([name, ms]) => [`${name.split('_').at(-1)} runs, ms`, ms, name.endsWith('_1000') ? 100 : 5000]);
}
