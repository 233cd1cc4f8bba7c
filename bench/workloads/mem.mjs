// Memory of a run that waits with its code loaded: a process of its own starts n of them, with inputs of 100 bytes.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const CHILD = fileURLToPath(new URL('../mem-child.mjs', import.meta.url));

export const title = 'memory of a loaded waiting run, 100-byte input';

export async function measure({ dirFor, floor, scale }) {
  await floor.measure();
  const result = {};
  for (const count of [10_000, 100_000].map(scale)) {
    const { stdout, status } = spawnSync(process.execPath, ['--expose-gc', CHILD, dirFor('mem'), String(count)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    if (status !== 0) throw new Error(`the process with ${count} runs ended with ${status}`);
    const { heapBytes, residentBytes } = JSON.parse(stdout.trim().split('\n').at(-1));
    result[`heap_bytes_${count}`] = heapBytes;
    result[`resident_bytes_${count}`] = residentBytes;
  }
  return result;
}

export function judge(result) {
  return Object.entries(result)
    .filter(([name]) => name.startsWith('resident_bytes'))
    .map(([name, bytes]) => [`${name}: bytes/run`, bytes, 2048]);
}
