// On what machine, with what code, and how busy with other things: without these a figure says little.

import { execFileSync } from 'node:child_process';
import { readFileSync, statfsSync } from 'node:fs';
import os from 'node:os';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

export function machineFacts(dir) {
  return {
    at: new Date().toISOString(),
    commit: commit(),
    node: process.version,
    cpu: os.cpus()[0]?.model ?? 'unknown',
    cores: os.availableParallelism(),
    memoryGb: Math.round(os.totalmem() / 2 ** 30),
    kernel: `${os.type()} ${os.release()} ${os.arch()}`,
    fileSystem: `0x${statfsSync(dir).type.toString(16)}`,
    flush: process.env.FUSEE_FLUSH ?? 'auto',
  };
}

function commit() {
  const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  try {
    const isChanged = git('status', '--porcelain', '--untracked-files=no', '--', ':!bench/results') !== '';
    return git('rev-parse', '--short', 'HEAD') + (isChanged ? ' with changes' : '');
  } catch {
    return 'unknown';
  }
}

/** Share of the machine that others use between two looks, in percent; `undefined` where the system does not say. */
export class OtherLoad {
  #before = look();

  percent() {
    const after = look();
    const before = this.#before;
    if (before === undefined || after === undefined) return undefined;
    const total = after.total - before.total;
    const others = after.busy - before.busy - (after.own - before.own);
    return total <= 0 ? 0 : Math.max(0, Math.round((100 * others) / total));
  }
}

function look() {
  try {
    const ticks = readFileSync('/proc/stat', 'utf8').split('\n')[0].trim().split(/\s+/).slice(1, 9).map(Number);
    const total = ticks.reduce((sum, tick) => sum + tick, 0);
    return { total, busy: total - ticks[3] - ticks[4], own: ownTicks(process.pid) };
  } catch {
    return undefined;
  }
}

/** Ticks of this process, its living children and those that it has waited for. */
function ownTicks(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  let sum = fields.slice(11, 15).reduce((total, tick) => total + Number(tick), 0);
  for (const child of readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')) {
    if (child === '') continue;
    try {
      sum += ownTicks(child);
    } catch {
      // It has ended meanwhile; then it counts among those waited for.
    }
  }
  return sum;
}
