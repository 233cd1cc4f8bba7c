// What the workers of the workload `threads` run.

import { performance } from 'node:perf_hooks';
import { signal, workflow } from 'fusee';

const STEPS = 5;
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

export const awaiting = workflow('awaiting', (ctx) => ctx.waitFor(go));

const leaf = workflow('leaf', async (ctx, n) => n);
export { leaf };

export const messages = workflow('messages', async (ctx) => {
  for (let k = 0; k < STEPS; k += 1) await ctx.run(leaf, k);
});
