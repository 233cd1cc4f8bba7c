// Starts workers and ends them under load, again and again, in one process, and looks whether anything acknowledged was
// lost, any caller was left waiting, and any thread, file or memory was left behind.
//
// FUSEE_CYCLES=1000 node --expose-gc tests/thread-cycles.mjs
//
// Of four cycles one ends a worker from outside (terminate), one by process.exit, one by an uncaught error, and one closes
// the engine without a grace and opens it again. 1,000 cycles and more are the full run, whose result is written to
// docs/results/thread-cycles.json.

import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { open } from 'fusee';
import { machineFacts } from '../bench/machine.mjs';
import { DEATHS, go, work } from './threads/flows.mjs';

const CYCLES = Number(process.env.FUSEE_CYCLES ?? 8);
const FULL_RUN = 1000;
const WORKERS = 2;
const RUNS = 20;
/** Cycles in one directory. */
const CYCLES_PER_LIFE = 20;
/** From no end to no result in so long: it hangs. */
const PATIENCE_MS = 60_000;

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const parent = here('../target/cycles/');
mkdirSync(parent, { recursive: true });

const order = new Int32Array(new SharedArrayBuffer(4));
const workers = { count: WORKERS, module: here('./threads/flows.mjs'), workerData: { order } };
const quiet = { debug() {}, info() {}, warn() {}, error: (message) => fail(message) };
const threads = new Set();
process.on('worker', (worker) => {
  threads.add(worker);
  worker.once('exit', () => threads.delete(worker));
});

const begin = performance.now();
const sums = { runs: 0, lost: 0, closed: 0, again: 0 };
const healedMs = [];
let early;
for (let cycle = 0; cycle < CYCLES;) {
  const inThisLife = Math.min(CYCLES_PER_LIFE, CYCLES - cycle);
  await live(cycle, inThisLife);
  cycle += inThisLife;
  const left = await whatIsLeft();
  if (cycle <= CYCLES / 5 || early === undefined) early = left;
  if (cycle % 100 === 0) console.log(cycle, left);
}
const late = await whatIsLeft();
const seconds = Math.round((performance.now() - begin) / 1000);
for (const what of ['threads', 'files']) {
  if (late[what] > early[what]) fail(`${what} are left behind: ${JSON.stringify({ early, late })}`);
}
if (late.rssMb > early.rssMb * 1.5 + 32) fail(`memory is left behind: ${JSON.stringify({ early, late })}`);
console.log(`${CYCLES} cycles in ${seconds} s: every run ended with its result, nothing was left behind`);
const result = { cycles: CYCLES, seconds, ...sums, healedMs: median(healedMs), early, late };
console.log(result);
if (CYCLES >= FULL_RUN) {
  const { commit, node, cores, cpu, kernel, at } = machineFacts(parent);
  const file = here('../docs/results/thread-cycles.json');
  writeFileSync(file, `${JSON.stringify({ ...result, commit, node, cores, cpu, kernel, at }, null, 2)}\n`);
}

/** So many cycles in a directory of their own. */
async function live(first, cycles) {
  const place = mkdtempSync(parent);
  let engine = await enter(place);
  for (let cycle = first; cycle < first + cycles; cycle += 1) {
    const ids = Array.from({ length: RUNS }, (_, n) => `c${cycle}-${n}`);
    const handles = await Promise.all(ids.map((id) => engine.start(work, id, { id })));
    sums.runs += RUNS;
    const way = cycle % 4;
    if (way === 3) {
      handles.forEach((handle) => handle.signal(go, handle.id).catch(() => undefined));
      await engine.close({ grace: 0 });
      sums.closed += 1;
      engine = await enter(place);
      await Promise.all(
        ids.map((id) =>
          engine
            .handle(work, id)
            .signal(go, id)
            .catch(() => undefined),
        ),
      );
      await allEnd(engine, ids);
      continue;
    }
    const begun = performance.now();
    const isLost = once(engine, 'workerLost');
    if (way === 0) void [...threads][cycle % threads.size].terminate();
    else Atomics.store(order, 0, way === 1 ? DEATHS.exit : DEATHS.error);
    await Promise.all(handles.map((handle) => handle.signal(go, handle.id)));
    await patiently(isLost, `worker to be lost in cycle ${cycle}`);
    await allEnd(engine, ids);
    healedMs.push(performance.now() - begun);
    sums.lost += 1;
  }
  await engine.close();
  rmSync(place, { recursive: true, force: true });
}

function enter(place) {
  return open(join(place, 'data'), { workers, logger: quiet });
}

async function allEnd(engine, ids) {
  const results = Promise.all(ids.map((id) => engine.handle(work, id).result()));
  for (const [n, result] of (await patiently(results, `results of ${ids[0]} to ${ids.at(-1)}`)).entries()) {
    if (result.id !== ids[n] || result.value !== ids[n]) fail(`${ids[n]} ended with ${JSON.stringify(result)}`);
    if (result.attempt > 1) sums.again += 1;
  }
}

function once(engine, name) {
  return new Promise((resolve) => engine.once(name, resolve));
}

async function patiently(promise, what) {
  let timer;
  const overdue = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it hangs: no ${what} for ${PATIENCE_MS} ms`)), PATIENCE_MS);
  });
  try {
    return await Promise.race([promise, overdue]);
  } catch (error) {
    return fail(error.message);
  } finally {
    clearTimeout(timer);
  }
}

async function whatIsLeft() {
  while (threads.size > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  globalThis.gc?.();
  const count = (path) => readdirSync(path).length;
  return {
    threads: process.platform === 'linux' ? count('/proc/self/task') : 0,
    files: process.platform === 'linux' ? count('/proc/self/fd') : 0,
    rssMb: Math.round(process.memoryUsage.rss() / 2 ** 20),
  };
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return Math.round(sorted[sorted.length >> 1] ?? 0);
}

function fail(text) {
  console.error(text);
  process.exit(1);
}
