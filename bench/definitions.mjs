// The workflows that are measured. Shapes and names are those of the harness that measures other engines, so that
// figures compare; see bench/peers.mjs.

import { signal, workflow } from 'fusee';
import { performance } from 'node:perf_hooks';

/** What the bodies leave behind. */
export const seen = { times: [], blocked: 0, ended: 0, sleeping: 0, replayed: 0, onEnded: () => {} };

const tick = (i) => {
  seen.times.push(performance.now());
  return { ok: true, i, v: `result-${i}` };
};

export const go = signal('go');

/** n steps, one after the other. */
export const chain = workflow('chain', async (ctx, n) => {
  for (let i = 0; i < n; i += 1) await ctx.step(`s${i}`, () => tick(i));
  return { n };
});

export const five = workflow('five', async (ctx, k) => {
  for (let i = 0; i < 5; i += 1) await ctx.step(`s${i}`, () => tick(i));
  return { k };
});

export const one = workflow('one', async (ctx, k) => ctx.step('s0', () => tick(k)));

/** One step, then a long sleep. */
export const sleeper = workflow('sleeper', async (ctx, input) => {
  await ctx.step('e', () => {
    seen.sleeping += 1;
    return { ok: true };
  });
  await ctx.sleep('2h');
  return input;
});

/** Blocks in its second step as long as `BENCH_BLOCK` is set. */
export const recov = workflow('recov', async (ctx, k) => {
  await ctx.step('a', () => tick(0));
  await ctx.step('b', async () => {
    seen.blocked += 1;
    if (process.env.BENCH_BLOCK === '1') await new Promise(() => {});
    return { ok: true, k };
  });
  for (let i = 2; i < 5; i += 1) await ctx.step(`s${i}`, () => tick(i));
  seen.ended += 1;
  seen.onEnded();
  return { k };
});

/** Takes n signals. */
export const listener = workflow('listener', async (ctx, n) => {
  for (let i = 0; i < n; i += 1) await ctx.waitFor(go);
  return { n };
});

/** n steps, then a wait: what a replay runs through. */
export const story = workflow('story', async (ctx, n) => {
  for (let i = 0; i < n; i += 1) await ctx.step(`s${i}`, () => tick(i));
  seen.replayed += 1;
  await ctx.waitFor(go);
  return { n };
});

export const workflows = [chain, five, one, sleeper, recov, listener, story];
