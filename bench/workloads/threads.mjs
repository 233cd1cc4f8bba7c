// 500 workflows of 5 steps on 1, 2 and 4 workers: steps of 50 µs of work, steps that only journal, children on other
// shards; records a flush, and signals acknowledged.

import { performance } from 'node:perf_hooks';
import { awaiting, burn, go, journal, messages } from '../threads-definitions.mjs';
import { median } from '../statistics.mjs';
import { pool } from '../pool.mjs';

const WORKFLOWS = 500;
const STEPS = 5;
const WORKERS = [1, 2, 4];
const module = new URL('../threads-definitions.mjs', import.meta.url);

export const title = `${WORKFLOWS} workflows of ${STEPS} steps on ${WORKERS.join(', ')} workers, steps/s`;

export async function measure({ open, floor, scale }) {
  const rounds = scale(3);
  const figures = { n: rounds * WORKFLOWS * STEPS };
  for (const count of WORKERS) {
    const engine = await open({ workers: { count, module } });
    await burst(engine, journal);
    const rates = { burn: [], journal: [], messages: [], records: [], signals: [] };
    for (let round = 0; round < rounds; round += 1) {
      await floor.measure();
      rates.burn.push(await burst(engine, burn));
      const before = await engine.metrics();
      rates.journal.push(await burst(engine, journal));
      const after = await engine.metrics();
      const flushes = after['log.flushes'] - before['log.flushes'];
      rates.records.push((after['log.last_lsn'] - before['log.last_lsn']) / flushes);
      rates.messages.push(await burst(engine, messages));
      rates.signals.push(await signalled(engine));
    }
    await engine.close();
    figures[`burn_${count}_steps_per_s`] = median(rates.burn);
    figures[`journal_${count}_steps_per_s`] = median(rates.journal);
    figures[`journal_${count}_records_per_flush`] = median(rates.records);
    figures[`messages_${count}_children_per_s`] = median(rates.messages);
    figures[`signal_${count}_us`] = median(rates.signals);
  }
  return figures;
}

async function burst(engine, definition) {
  const begin = performance.now();
  await pool(WORKFLOWS, WORKFLOWS, () => engine.execute(definition));
  return (WORKFLOWS * STEPS * 1000) / (performance.now() - begin);
}

/** Time until a signal is acknowledged, one at a time. */
async function signalled(engine) {
  const times = [];
  for (let k = 0; k < 50; k += 1) {
    const run = await engine.start(awaiting);
    const begin = performance.now();
    await run.signal(go);
    times.push((performance.now() - begin) * 1000);
    await run.result();
  }
  return median(times);
}

export function judge(result) {
  return [
    ['2 workers over 1, 50 µs of work a step', result.burn_2_steps_per_s / result.burn_1_steps_per_s, 1.8, 'at least'],
    ['2 workers over 1, journal only', result.journal_2_steps_per_s / result.journal_1_steps_per_s, 1.3, 'at least'],
  ];
}
