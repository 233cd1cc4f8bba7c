// What the workers of thread-cycles.mjs run: a step that may end its thread, a signal, another step.

import { workerData } from 'node:worker_threads';
import { signal, workflow } from 'fusee';

/** How the next step that runs ends its thread; 0: it does not. */
export const DEATHS = { exit: 1, error: 2 };

export const go = signal('go');

export const work = workflow('work', async (ctx, id) => {
  await ctx.step('one', () => undefined);
  const value = await ctx.waitFor(go);
  const attempt = await ctx.step('two', ({ attempt }) => dieIfOrdered() ?? attempt);
  return { id, value, attempt };
});

/** @returns a promise that never settles where it dies soon, nothing where it does not */
function dieIfOrdered() {
  switch (Atomics.exchange(workerData.order, 0, 0)) {
    case DEATHS.exit:
      return process.exit(3);
    case DEATHS.error:
      setImmediate(() => {
        throw new Error('thrown outside');
      });
      return new Promise(() => undefined);
    default:
      return undefined;
  }
}
