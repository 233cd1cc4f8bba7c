// Workflows that tell on themselves: every body writes down what it was given, so that a value which changed shows.

import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { signal, workflow } from 'fusee';

export const number = signal('number');
export const LAST = -1;

const place = process.env.KILL_EFFECTS;

/** One line for each time a body runs. `before`: the results of the steps before it, as the code got them. */
function effect(run, index, before, step) {
  const value = randomUUID();
  appendFileSync(place, `${JSON.stringify({ run, index, before, key: step.idempotencyKey, value })}\n`);
  return value;
}

/** Steps in a row. Their results are drawn by lot: two results for one step would show. */
export const chained = workflow('chained', async (ctx, count) => {
  const run = ctx.info.id;
  const values = [];
  for (let index = 0; index < count; index += 1) {
    values.push(await ctx.step(`step ${index}`, (step) => effect(run, index, [...values], step)));
  }
  return values;
});

/** Steps side by side that end in no particular order, then one that saw them all. */
export const parallel = workflow('parallel', async (ctx, count) => {
  const run = ctx.info.id;
  const order = [];
  const values = await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const value = await ctx.step(`step ${index}`, async (step) => {
        await setTimeout(Math.random() * 4);
        return effect(run, index, [], step);
      });
      order.push(index);
      return value;
    }),
  );
  const last = await ctx.step('last', (step) => effect(run, count, values, step));
  return [...values, last, order.join()];
});

/** Attempts that fail, timers, and a race that the code depends on. */
export const timed = workflow('timed', async (ctx) => {
  const run = ctx.info.id;
  const first = await ctx.step(
    'fails at first',
    (step) => {
      if (step.attempt === 1) throw new Error('the first attempt fails');
      return effect(run, 0, [], step);
    },
    { retry: { initialInterval: 5, jitter: false } },
  );
  await ctx.sleep(10);
  const winner = await Promise.race([
    ctx.sleep(3).then(() => 'timer'),
    ctx.step('races', async () => {
      await setTimeout(Math.random() * 6);
      return 'step';
    }),
  ]);
  const last = await ctx.step('last', (step) => effect(run, 1, [first], step));
  return [first, last, winner];
});

/** Children on other shards. */
export const family = workflow('family', async (ctx, count) => {
  const children = Array.from({ length: count }, (_, index) => ctx.run(chained, index + 1));
  return (await Promise.all(children)).flat();
});

/** Takes numbers until the last one. */
export const collector = workflow('collector', async (ctx) => {
  const got = [];
  for await (const value of ctx.signals(number)) {
    if (value === LAST) return got;
    got.push(value);
  }
});

export const workflows = [chained, parallel, timed, family, collector];
