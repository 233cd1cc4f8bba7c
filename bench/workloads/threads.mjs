// 500 workflows of 50 steps on 1, 2 and 4 workers: steps of 50 µs of work, steps that only journal; 500 of 5 children on
// other shards; records a flush, of all at once and of so few runs for each worker that the disk decides; signals to runs of
// the same and of another worker; the loss of a worker under load.

import { performance } from 'node:perf_hooks';
import { CHILDREN, STEPS, awaiting, burn, deadly, go, journal, messages, signaller } from '../threads-definitions.mjs';
import { median } from '../statistics.mjs';
import { pool } from '../pool.mjs';

const WORKFLOWS = 500;
/** Runs at the same time for each worker, where the disk is to decide. */
const FEW = 16;
const WORKERS = [1, 2, 4];
/** Bursts before the first that counts: a worker compiles its code on the cores that it is to be measured on. */
const WARM = 12;
/** Bursts of a figure in a round, since one takes a tenth of a second. */
const BURSTS = 3;
const SIGNALS = 60;
/** Runs that wait when a worker is lost. */
const WAITING = 200;
const module = new URL('../threads-definitions.mjs', import.meta.url);

export const title = `${WORKFLOWS} workflows of ${STEPS} steps on ${WORKERS.join(', ')} workers, steps/s`;

export async function measure({ open, floor, scale }) {
  const rounds = scale(3);
  const figures = { n: rounds * WORKFLOWS * STEPS };
  for (const count of WORKERS) {
    const died = new Float64Array(new SharedArrayBuffer(8));
    const engine = await open({ workers: { count, module, workerData: { died } } });
    for (let k = 0; k < WARM; k += 1) await burst(engine, [journal, burn, messages][k % 3]);
    const rates = { burn: [], journal: [], few: [], messages: [], records: [], fewRecords: [], same: [], other: [] };
    for (let round = 0; round < rounds; round += 1) {
      await floor.measure();
      for (let k = 0; k < BURSTS; k += 1) {
        rates.burn.push(await burst(engine, burn));
        const all = await flushed(engine, () => burst(engine, journal));
        rates.journal.push(all.rate);
        rates.records.push(all.records);
        const few = await flushed(engine, () => burst(engine, journal, FEW * count));
        rates.few.push(few.rate);
        rates.fewRecords.push(few.records);
        rates.messages.push(await burst(engine, messages, WORKFLOWS, CHILDREN));
      }
      const { same, other } = await signalled(engine);
      rates.same.push(...same);
      rates.other.push(...other);
    }
    figures[`burn_${count}_steps_per_s`] = median(rates.burn);
    figures[`journal_${count}_steps_per_s`] = median(rates.journal);
    figures[`journal_${count}_records_per_flush`] = median(rates.records);
    figures[`few_${count}_steps_per_s`] = median(rates.few);
    figures[`few_${count}_records_per_flush`] = median(rates.fewRecords);
    figures[`messages_${count}_children_per_s`] = median(rates.messages);
    figures[`signal_same_${count}_us`] = median(rates.same);
    if (count > 1) {
      figures[`signal_other_${count}_us`] = median(rates.other);
      const { healMs, replayMs } = await healed(engine, died);
      figures[`heal_${count}_ms`] = healMs;
      figures[`heal_replay_${count}_ms`] = replayMs;
    }
    await engine.close();
  }
  return figures;
}

/** @returns operations a second, of `each` in a workflow, with `width` workflows at a time */
async function burst(engine, definition, width = WORKFLOWS, each = STEPS) {
  const begin = performance.now();
  await pool(WORKFLOWS, width, () => engine.execute(definition));
  return (WORKFLOWS * each * 1000) / (performance.now() - begin);
}

/** What `work` answers, and the records of a flush meanwhile. */
async function flushed(engine, work) {
  const before = await engine.metrics();
  const rate = await work();
  const after = await engine.metrics();
  const flushes = after['log.flushes'] - before['log.flushes'];
  return { rate, records: (after['log.last_lsn'] - before['log.last_lsn']) / flushes };
}

/** Times until signals from a worker are acknowledged, to runs of that worker and of others. */
async function signalled(engine) {
  const runs = await Promise.all(Array.from({ length: SIGNALS }, () => engine.start(awaiting)));
  const ids = runs.map((run) => run.id);
  const { thread, times } = await engine.execute(signaller, ids);
  const threads = await Promise.all(runs.map((run) => run.result()));
  const of = (isSame) => times.filter((_, index) => (threads[index] === thread) === isSame);
  return { same: of(true), other: of(false) };
}

/**
 * Time from the death of a worker under load until its runs are back where they were, and how much of it they were replayed.
 * All that waited, its own too, must go on and end.
 */
async function healed(engine, died) {
  const runs = await Promise.all(Array.from({ length: WAITING }, () => engine.start(awaiting)));
  const load = pool(WORKFLOWS, 50, () => engine.execute(journal));
  const lost = new Promise((resolve) => engine.once('workerLost', resolve));
  const healed = new Promise((resolve) => {
    engine.once('workerReplaced', ({ replayMs }) => {
      resolve({ healMs: performance.timeOrigin + performance.now() - died[0], replayMs });
    });
  });
  const dying = engine.execute(deadly);
  await lost;
  await Promise.all(runs.map((run) => run.signal(go)));
  await Promise.all(runs.map((run) => run.result()));
  await dying;
  await load;
  return healed;
}

export function judge(result) {
  return [
    ['2 workers over 1, 50 µs of work a step', result.burn_2_steps_per_s / result.burn_1_steps_per_s, 1.8, 'at least'],
    ['2 workers over 1, journal only', result.journal_2_steps_per_s / result.journal_1_steps_per_s, 1.3, 'at least'],
    [
      `2 workers over 1, ${FEW} runs each, records a flush`,
      result.few_2_records_per_flush / result.few_1_records_per_flush,
      1,
      'at least',
    ],
    ['a signal to another worker, µs', result.signal_other_2_us, 1.3 * result.signal_same_2_us + 20],
    ['a lost worker, ms beside the replay of its runs', result.heal_2_ms - result.heal_replay_2_ms, 100],
  ];
}
