// Kills processes and looks whether anything acknowledged was lost, any result given twice, any run forgotten.
//
// FUSEE_KILLS=300 node tests/kill-rounds.mjs
//
// A life is a directory: up to ten processes work in it, each killed with SIGKILL 0 to 400 ms after its start; a last one
// lets everything end. 300 kills and more are the full run, whose result is written to docs/results/kill-rounds.json.

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { machineFacts } from '../bench/machine.mjs';
import { Ledger } from './kill/ledger.mjs';

const KILLS = Number(process.env.FUSEE_KILLS ?? 6);
const KILLS_PER_LIFE = 10;
const FULL_RUN = 300;
const KILL_AFTER_MS_MAX = 400;
const FINISH_MS_MAX = 60_000;

const seed = Number(process.env.FUSEE_SEED ?? Math.floor(Math.random() * 2 ** 32));
const random = generator(seed);
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const parent = here('../target/kill/');
mkdirSync(parent, { recursive: true });

console.log(`${KILLS} kills, seed ${seed}`);
const begin = performance.now();
const sums = {};
for (let kills = 0, life = 0; kills < KILLS; life += 1) {
  const inThisLife = Math.min(KILLS_PER_LIFE, KILLS - kills);
  const counts = await live(life, inThisLife);
  for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
  kills += inThisLife;
}
const seconds = Math.round((performance.now() - begin) / 1000);
console.log(`${KILLS} kills in ${seconds} s: nothing acknowledged was lost, no result changed, all runs ended`);
console.log(sums);
if (KILLS >= FULL_RUN) save();

async function live(life, kills) {
  const place = mkdtempSync(parent);
  const ledger = new Ledger();
  for (let kill = 0; kill < kills; kill += 1) {
    const process_ = start('work', place, life, ledger);
    const timer = setTimeout(() => process_.kill('SIGKILL'), random() * KILL_AFTER_MS_MAX);
    const { code, signal, complaints } = await process_.ended;
    clearTimeout(timer);
    if (signal !== 'SIGKILL') fail(place, [`process ${kill} ended by itself with ${signal ?? code}: ${complaints}`]);
    if (ledger.violations.length > 0) fail(place, ledger.violations);
  }
  const last = start('finish', place, life, ledger);
  const timer = setTimeout(() => last.kill('SIGKILL'), FINISH_MS_MAX);
  await last.isOpen;
  await start('probe', place, life, ledger).ended;
  last.release();
  const { code, signal, complaints } = await last.ended;
  clearTimeout(timer);
  if (code !== 0) fail(place, [`the last process ended with ${signal ?? code}: ${complaints}`, ...ledger.violations]);
  ledger.conclude(life, join(place, 'effects'), last.pid);
  if (ledger.violations.length > 0) fail(place, ledger.violations);
  rmSync(place, { recursive: true });
  return ledger.counts;
}

function start(mode, place, life, ledger) {
  const args = [here('kill/child.mjs'), mode, join(place, 'fusee'), String(life), String(ledger.nextNumber)];
  const env = { ...process.env, KILL_EFFECTS: join(place, 'effects') };
  const process_ = spawn(process.execPath, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
  let rest = '';
  let complaints = '';
  let opened;
  const isOpen = new Promise((resolve) => (opened = resolve));
  process_.stderr.setEncoding('utf8').on('data', (text) => (complaints += text));
  process_.stdout.setEncoding('utf8').on('data', (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop(); // what has no end yet, or was cut off by the kill
    for (const line of lines.map((text) => JSON.parse(text))) {
      ledger.hear(line);
      if (line.tell === 'open') opened();
    }
  });
  const ended = new Promise((resolve) => {
    process_.once('close', (code, signal) => {
      opened();
      resolve({ code, signal, complaints });
    });
  });
  return {
    pid: process_.pid,
    isOpen,
    ended,
    kill: (signal) => process_.kill(signal),
    release: () => process_.stdin.end(),
  };
}

function fail(place, violations) {
  for (const violation of violations.slice(0, 20)) console.error(violation);
  if (violations.length > 20) console.error(`and ${violations.length - 20} more`);
  console.error(`seed ${seed}; what is left of it is in ${place}`);
  process.exit(1);
}

function save() {
  mkdirSync(here('../docs/results'), { recursive: true });
  const { commit, node, cores, cpu, kernel, at } = machineFacts(parent);
  const result = { kills: KILLS, seed, seconds, ...sums, commit, node, cores, cpu, kernel, at };
  writeFileSync(here('../docs/results/kill-rounds.json'), `${JSON.stringify(result, null, 2)}\n`);
}

/** mulberry32: when a kill comes is drawn by lot, but by the same lot for the same seed. */
function generator(state) {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}
