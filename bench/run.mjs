// Measures: `npm run bench -- [name…] [--reps 3] [--quick]`. Without a name, everything.
//
// Each workload is measured three times; tables show medians with their range. The disk floor is measured between blocks
// of the work, in the same run. Results go to bench/results/<name>.json. --quick does a tenth, to try the bench itself;
// its results are not kept.

import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { open as openEngine } from 'fusee';
import { workflows } from './definitions.mjs';
import { Floor } from './floor.mjs';
import { machineFacts, OtherLoad } from './machine.mjs';
import { spread } from './statistics.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const data = process.env.FUSEE_BENCH_DIR ?? join(here, '../target/bench/data');
const silent = { debug() {}, info() {}, warn: console.warn, error: console.error };
const all = [
  'chain',
  'lag',
  'start',
  'signal',
  'fanout',
  'replay',
  'memory',
  'mem',
  'recover',
  'load',
  'tasks',
  'threads',
  'search',
];
const found = readdirSync(join(here, 'workloads')).map((file) => file.replace('.mjs', ''));

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { reps: { type: 'string', default: '3' }, quick: { type: 'boolean', default: false } },
});
const names = positionals.length > 0 ? positionals : all;
const unknown = names.filter((name) => !found.includes(name));
if (unknown.length > 0) {
  console.error(`unknown: ${unknown.join(', ')}. There are: ${all.join(', ')}`);
  process.exit(2);
}

mkdirSync(data, { recursive: true });
const facts = machineFacts(data);
const { cpu, cores, node, kernel, commit } = facts;
console.log(`${cores} cores of ${cpu}, ${kernel}, Node.js ${node}, commit ${commit}\n`);
const floor = Floor.open(data);
try {
  for (const name of names) await bench(name);
} finally {
  await floor.close();
  rmSync(data, { recursive: true, force: true });
}

async function bench(name) {
  const workload = await import(`./workloads/${name}.mjs`);
  const repetitions = [];
  for (let k = 0; k < Number(values.reps); k += 1) {
    const others = new OtherLoad();
    const measured = await workload.measure(tools());
    repetitions.push({ ...measured, floor: floor.take(), others_percent: others.percent() });
  }
  const figures = summary(repetitions);
  print(workload.title, figures, verdicts(workload, repetitions));
  if (!values.quick) save(name, { name, title: workload.title, ...facts, figures, repetitions });
}

/** What a workload is given. */
function tools() {
  let count = 0;
  const dirFor = (purpose) => join(data, `${purpose}-${process.pid}-${count}`);
  return {
    floor,
    /** Amounts, a tenth with --quick. */
    scale: (amount) => (values.quick ? Math.ceil(amount / 10) : amount),
    /** A new directory. */
    dirFor: (purpose) => {
      count += 1;
      rmSync(dirFor(purpose), { recursive: true, force: true });
      return dirFor(purpose);
    },
    /** An engine on a new directory, or with `keep` on the last one. */
    open: ({ keep = false, workers } = {}) => {
      if (!keep) {
        count += 1;
        rmSync(dirFor('engine'), { recursive: true, force: true });
      }
      const code = workers === undefined ? { workflows } : { workers };
      return openEngine(dirFor('engine'), { ...code, dev: false, logger: silent });
    },
  };
}

function summary(repetitions) {
  const figures = {};
  for (const key of Object.keys(repetitions[0])) {
    const samples = repetitions.map((repetition) => repetition[key]).filter((value) => typeof value === 'number');
    if (samples.length > 0) figures[key] = spread(samples);
  }
  const floors = repetitions.map((repetition) => repetition.floor).filter(Boolean);
  if (floors.length > 0) {
    figures.floor_p50_us = spread(floors.map(({ p50 }) => p50));
    figures.floor_p99_us = spread(floors.map(({ p99 }) => p99));
  }
  return figures;
}

/** What is to be reached, by the median of the repetitions, each against the floor of its own. */
function verdicts(workload, repetitions) {
  const judged = repetitions.map((repetition) => workload.judge(repetition));
  return judged[0].map(([what, , , direction], index) => {
    const value = spread(judged.map((rows) => rows[index][1]));
    const goal = spread(judged.map((rows) => rows[index][2])).median;
    const isReached = direction === 'at least' ? value.median >= goal : value.median <= goal;
    return { what, value, goal, sign: direction === 'at least' ? '≥' : '≤', isReached };
  });
}

function print(title, figures, reached) {
  console.log(title);
  const rows = Object.entries(figures).map(([key, { median, min, max }]) => [
    key,
    round(median),
    min === max ? '' : `${round(min)} – ${round(max)}`,
  ]);
  for (const { what, value, goal, sign, isReached } of reached) {
    rows.push([
      `-> ${what}`,
      round(value.median),
      `${round(value.min)} – ${round(value.max)}`,
      `${sign} ${round(goal)}`,
    ]);
    rows.at(-1).push(isReached ? 'reached' : 'MISSED');
  }
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  for (const row of rows) {
    const cells = row.map((cell, column) => (column === 1 ? cell.padStart(widths[1]) : cell.padEnd(widths[column])));
    console.log(`  ${cells.join('  ')}`.trimEnd());
  }
  console.log();
}

function round(value) {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString('en', { maximumFractionDigits: digits });
}

function save(name, result) {
  mkdirSync(join(here, 'results'), { recursive: true });
  writeFileSync(join(here, `results/${name}.json`), `${JSON.stringify(result, null, 2)}\n`);
}
