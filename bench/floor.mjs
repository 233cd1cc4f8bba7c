// The disk floor as a process of its own, asked between blocks of work, so that floor and work see the same disk.

import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, statSync, statfsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { quantile } from './statistics.mjs';

const SOURCE = fileURLToPath(new URL('floor.rs', import.meta.url));
const PROGRAM = fileURLToPath(new URL('../target/bench/floor', import.meta.url));
const MEMORY_FILE_SYSTEMS = new Map([
  [0x01021994, 'tmpfs'],
  [0x858458f6, 'ramfs'],
]);

/** A floor that was measured in blocks. Times in microseconds. */
export class Floor {
  #process;
  #lines;
  #synced = [];
  #direct = [];

  /** @param dir on the disk that is to be measured */
  static open(dir) {
    refuseMemory(dir);
    build();
    return new Floor(dir);
  }

  constructor(dir) {
    this.#process = spawn(PROGRAM, [dir], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#lines = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
  }

  /** Measures one block. @returns the medians of this block, for a ratio that is free of the disk's drift */
  async measure(count = 200) {
    this.#process.stdin.write(`${count}\n`);
    const { value, done } = await this.#lines.next();
    if (done) throw new Error('the floor ended early; its message is above');
    const micros = value.split(' ').map((nanos) => Number(nanos) / 1000);
    const synced = micros.slice(0, count);
    const direct = micros.slice(count).filter((time) => time > 0);
    this.#synced.push(...synced);
    this.#direct.push(...direct);
  }

  /** The faster of the two primitives over all blocks since the last call. */
  take() {
    const ways = [
      { by: 'fdatasync', samples: this.#synced },
      { by: 'RWF_DSYNC', samples: this.#direct },
    ].filter(({ samples }) => samples.length > 0);
    this.#synced = [];
    this.#direct = [];
    const [best] = ways
      .map(({ by, samples }) => ({
        by,
        samples: samples.length,
        p50: quantile(samples, 0.5),
        p99: quantile(samples, 0.99),
      }))
      .sort((a, b) => a.p50 - b.p50);
    return best;
  }

  async close() {
    const ended = new Promise((resolve) => this.#process.once('close', resolve));
    this.#process.stdin.end();
    await ended;
  }
}

/** A file system in memory makes every figure here meaningless. */
export function refuseMemory(dir) {
  const name = MEMORY_FILE_SYSTEMS.get(statfsSync(dir).type);
  if (name === undefined) return;
  throw new Error(`${dir} is on ${name}: nothing there is durable. Set FUSEE_BENCH_DIR to a directory on a disk`);
}

function build() {
  if (existsSync(PROGRAM) && statSync(PROGRAM).mtimeMs > statSync(SOURCE).mtimeMs) return;
  mkdirSync(dirname(PROGRAM), { recursive: true });
  const root = join(dirname(SOURCE), '..');
  execFileSync('rustc', ['-O', '--edition', '2024', SOURCE, '-o', PROGRAM], { cwd: root, stdio: 'inherit' });
}
