// The workflow: imports the flights of a data set slice by slice, one step a slice, and returns their totals.

import { readFileSync } from 'node:fs';
import { workflow } from 'fusee';
import { post } from './ledger.mjs';

/** Called by each step, for the figures at the end. */
export const watch = { stepBegins() {}, stepEnds() {} };

export const importFlights = workflow('import-flights', async (ctx, { slices, ledger }) => {
  const totals = noFlights();
  for (let slice = 0; slice < slices; slice += 1) {
    // A step's result is recorded: after a crash the loop runs again, but a step that is recorded does not.
    const part = await ctx.step(`slice ${slice}`, async (step) => {
      watch.stepBegins();
      const sums = totalsOf(flights.slice(...bounds(slice, slices)));
      // A crash may come after the effect and before its record. Then the step runs again, with the same key.
      await post(ledger, step.idempotencyKey, sums);
      watch.stepEnds();
      return sums;
    });
    add(totals, part);
  }
  return totals;
});

const file = new URL('../data/flights-20k.json', import.meta.resolve('vega-datasets'));
export const flights = JSON.parse(readFileSync(file, 'utf8'));

/** Totals of some flights, in a single pass. */
export function totalsOf(some) {
  const totals = noFlights();
  for (const { distance, delay } of some) add(totals, { flights: 1, miles: distance, late: delay > 15 ? 1 : 0, delay });
  return totals;
}

export function noFlights() {
  return { flights: 0, miles: 0, late: 0, delay: 0 };
}

export function add(totals, part) {
  for (const name of Object.keys(totals)) totals[name] += part[name];
}

function bounds(slice, slices) {
  return [slice, slice + 1].map((index) => Math.floor((index * flights.length) / slices));
}
