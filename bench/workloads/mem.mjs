// Memory of a run that waits with its code loaded: a process of its own starts n of them, with inputs of 100 bytes. Its
// addon is built with an allocator that counts.

import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const CHILD = fileURLToPath(new URL('../mem-child.mjs', import.meta.url));

export const title = 'memory of a loaded waiting run, 100-byte input';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LIBRARIES = { darwin: 'libfusee.dylib', win32: 'fusee.dll' };

/** Builds the addon that counts. @returns its path */
function countingAddon() {
  const target = join(ROOT, 'target/bench/count-bytes');
  const args = ['build', '--release', '--locked', '--quiet', '--features', 'count-bytes', '--target-dir', target];
  execFileSync('cargo', args, { cwd: ROOT, stdio: 'inherit' });
  const addon = join(target, 'fusee.node');
  copyFileSync(join(target, 'release', LIBRARIES[process.platform] ?? 'libfusee.so'), addon);
  return addon;
}

export async function measure({ dirFor, floor, scale }) {
  const env = { ...process.env, FUSEE_NATIVE_PATH: countingAddon() };
  await floor.measure();
  const result = {};
  for (const count of [10_000, 100_000].map(scale)) {
    const { stdout, status } = spawnSync(process.execPath, ['--expose-gc', CHILD, dirFor('mem'), String(count)], {
      encoding: 'utf8',
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    if (status !== 0) throw new Error(`the process with ${count} runs ended with ${status}`);
    const { heapBytes, allocatedBytes, residentBytes } = JSON.parse(stdout.trim().split('\n').at(-1));
    result[`used_bytes_${count}`] = heapBytes + allocatedBytes;
    result[`heap_bytes_${count}`] = heapBytes;
    result[`allocated_bytes_${count}`] = allocatedBytes;
    result[`resident_bytes_${count}`] = residentBytes;
  }
  return result;
}

export function judge(result) {
  return Object.entries(result)
    .filter(([name]) => name.startsWith('used_bytes'))
    .map(([name, bytes]) => [`${name}: bytes/run`, bytes, 2048]);
}
