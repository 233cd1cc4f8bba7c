// Durable execution, shown: a workflow imports 20,000 flights, its process is killed again and again with SIGKILL, and a
// new process goes on where the last one was. In the end the totals are those of a single pass, and each slice is in the
// ledger once. `npm run quickstart`

import { spawn } from 'node:child_process';
import { closeSync, fdatasyncSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { isDeepStrictEqual } from 'node:util';
import { fileURLToPath } from 'node:url';
import { add, flights, noFlights, totalsOf } from './flights.mjs';
import { rowsOf } from './ledger.mjs';
import { number, Progress, table } from './terminal.mjs';

const KILLS = 4;
const KILLS_MIN = 3;
const TRIES = 5;

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const parent = here('../../target/quickstart/');
mkdirSync(parent, { recursive: true });
const place = mkdtempSync(parent);
try {
  process.exitCode = await main();
} finally {
  rmSync(place, { recursive: true, force: true });
}

async function main() {
  const flushes = diskFlushes(place);
  const slices = sliceCount(quantile(flushes, 0.5));
  console.log(
    `Importing ${number(flights.length)} flights in ${number(slices)} steps; the process will be killed ${KILLS} times.`,
  );
  for (let attempt = 1; attempt <= TRIES; attempt += 1) {
    const story = await importWithKills(join(place, `${attempt}`), slices);
    flushes.push(...diskFlushes(place));
    if (story.kills >= KILLS_MIN) return conclude(story, slices, flushes);
    console.log(`It was done before it could be killed ${KILLS_MIN} times. Once more.`);
  }
  console.log('This machine is too quick to be shown anything.');
  return 1;
}

/** Runs importers, one after the other, until one of them reports the totals. */
async function importWithKills(directory, slices) {
  mkdirSync(directory);
  const story = { ledger: join(directory, 'ledger'), kills: 0, begun: 0, gaps: [], totals: undefined };
  const progress = new Progress(slices);
  while (story.totals === undefined) {
    // Somewhere in the middle part of the next stretch, at whatever the step happens to be doing then.
    const stretch = slices / (KILLS + 1);
    const killAt = story.kills < KILLS ? (story.kills + 0.2 + 0.6 * Math.random()) * stretch : Infinity;
    await importOnce(directory, slices, story, killAt, progress);
  }
  progress.end();
  return story;
}

async function importOnce(directory, slices, story, killAt, progress) {
  const args = [here('importer.mjs'), join(directory, 'fusee'), story.ledger, String(slices)];
  const importer = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const closed = new Promise((resolve) => importer.once('close', (code, signal) => resolve({ code, signal })));
  let done = rowsOf(story.ledger).length;
  let isDoomed = false;
  for await (const line of createInterface({ input: importer.stdout })) {
    const [word, rest] = split(line);
    if (word === 'totals') story.totals = JSON.parse(rest);
    else if (word !== 'step') progress.say(line);
    else {
      done += 1;
      story.begun += 1;
      if (rest !== '') story.gaps.push(Number(rest));
      progress.show(done);
      if (done >= killAt && !isDoomed) {
        isDoomed = true;
        setTimeout(() => importer.kill('SIGKILL'), Math.random() * 3);
      }
    }
  }
  const { code, signal } = await closed;
  if (signal === 'SIGKILL') {
    story.kills += 1;
    progress.say(`killed in step ${number(rowsOf(story.ledger).length)}`);
  } else if (code !== 0) {
    throw new Error(`the importer ended with ${signal ?? code}; its message is above`);
  }
}

function conclude({ ledger, kills, begun, gaps, totals }, slices, flushes) {
  const rows = rowsOf(ledger);
  const inLedger = noFlights();
  for (const { row } of rows) add(inLedger, row);
  const singlePass = totalsOf(flights);
  const isRight = isDeepStrictEqual(totals, singlePass);
  const isOnce = isDeepStrictEqual(inLedger, singlePass) && new Set(rows.map(({ key }) => key)).size === slices;
  table([
    ['steps', number(slices)],
    ['kills', number(kills)],
    ['steps run again', number(begun - slices), 'their effect was there, or their result was not yet durable'],
    ['step to step, p50', micros(gaps, 0.5), 'result recorded, durable, next step begun'],
    ['step to step, p99', micros(gaps, 0.99)],
    ['flush of the disk, p50', micros(flushes, 0.5), 'fdatasync of 256 bytes, in the same minute'],
    ['flush of the disk, p99', micros(flushes, 0.99)],
    [
      'totals',
      isRight ? 'right' : 'WRONG',
      `${number(totals.flights)} flights, ${number(totals.miles)} miles, ${number(totals.late)} late`,
    ],
    ['effects', isOnce ? 'each once' : 'WRONG', `${number(rows.length)} rows in the ledger`],
  ]);
  if (!isRight) console.log('The workflow says', totals, 'and a single pass', singlePass);
  if (!isOnce) console.log('The ledger says', inLedger, 'and a single pass', singlePass);
  return isRight && isOnce ? 0 : 1;
}

/** What the disk itself takes to make 256 bytes durable, in microseconds. */
function diskFlushes(directory) {
  const path = join(directory, 'flushes');
  const file = openSync(path, 'w');
  writeSync(file, Buffer.alloc(64 * 1024));
  fdatasyncSync(file);
  const bytes = Buffer.alloc(256, 'x');
  const times = Array.from({ length: 200 }, (_, index) => {
    const begin = performance.now();
    writeSync(file, bytes, 0, bytes.length, index * bytes.length);
    fdatasyncSync(file);
    return (performance.now() - begin) * 1000;
  });
  closeSync(file);
  rmSync(path);
  return times;
}

/** As many as a disk takes in about five seconds, with four flushes a step. */
function sliceCount(flushMicros) {
  return Math.round(Math.min(2000, Math.max(100, 5e6 / (4 * flushMicros + 1500))));
}

function split(line) {
  const at = line.indexOf(' ');
  return at < 0 ? [line, ''] : [line.slice(0, at), line.slice(at + 1)];
}

function quantile(samples, share) {
  const sorted = Float64Array.from(samples).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

function micros(samples, share) {
  return `${number(Math.round(quantile(samples, share)))} µs`;
}
