// What the package costs before it does anything: bytes of the addon as built, and the time of `require('fusee')`.

import { execFileSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { median } from '../statistics.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const TIMED = `const begin = performance.now(); require('fusee'); console.log(performance.now() - begin)`;

export const title = "size of the addon; require('fusee') in a new process";

export async function measure({ scale }) {
  const addon = readdirSync(root).find((name) => /^fusee\..*\.node$/.test(name));
  const times = Array.from({ length: scale(20) }, () =>
    Number(execFileSync(process.execPath, ['-e', TIMED], { cwd: root, encoding: 'utf8' })),
  );
  return { addon_mb: statSync(join(root, addon)).size / 2 ** 20, require_ms: median(times) };
}

export function judge({ addon_mb, require_ms }) {
  return [
    ['addon, MB', addon_mb, 3],
    ['require, ms', require_ms, 30],
  ];
}
