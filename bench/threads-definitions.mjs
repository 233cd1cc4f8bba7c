// What the workers of the workload `threads` run.

import { performance } from 'node:perf_hooks';
import { threadId, workerData } from 'node:worker_threads';
import { signal, workerEngine, workflow } from 'fusee';

/** So many that what a client pays for a start and a result does not decide. */
export const STEPS = 50;
export const CHILDREN = 5;
/** Work of a step that burns. */
const BURN_MS = 0.05;

export const go = signal('go');

export const burn = workflow('burn', async (ctx) => {
  for (let k = 0; k < STEPS; k += 1) {
    await ctx.step('burn', () => {
      const until = performance.now() + BURN_MS;
      while (performance.now() < until);
    });
  }
});

export const journal = workflow('journal', async (ctx) => {
  for (let k = 0; k < STEPS; k += 1) await ctx.step('journal', () => k);
});

/** Where it ran, once it was told to go. */
export const awaiting = workflow('awaiting', async (ctx) => {
  await ctx.waitFor(go);
  return ctx.step('where', () => threadId);
});

/** Signals runs of any worker from this one, one at a time: where that was, and how long each acknowledgement took. */
export const signaller = workflow('signaller', async (ctx, ids) =>
  ctx.step('signal', async () => {
    const engine = workerEngine();
    const times = [];
    for (const id of ids) {
      const begin = performance.now();
      await engine.handle(awaiting, id).signal(go);
      times.push((performance.now() - begin) * 1000);
    }
    return { thread: threadId, times };
  }),
);

/** Ends its thread once, and says when. */
export const deadly = workflow('deadly', async (ctx) =>
  ctx.step('die', () => {
    const died = workerData.died;
    if (died[0] !== 0) return threadId;
    died[0] = performance.timeOrigin + performance.now();
    return process.exit(1);
  }),
);

const leaf = workflow('leaf', async (ctx, n) => n);
export { leaf };

export const messages = workflow('messages', async (ctx) => {
  for (let k = 0; k < CHILDREN; k += 1) await ctx.run(leaf, k);
});
