// Search: a page of 100 runs among 100,000 that have ended or wait, by type, by status, by attribute.

import { performance } from 'node:perf_hooks';
import { open as openEngine, signal, workflow } from 'fusee';
import { quantile } from '../statistics.mjs';

export const title = 'search: pages of 100 among 100,000 runs, in memory';

const go = signal('go');
const waits = workflow('waits', async (ctx) => void (await ctx.waitFor(go)));
const rare = workflow('rare', async (ctx) => void (await ctx.waitFor(go)));
const ends = workflow('ends', async (_ctx, n) => {
  if (n % 100 === 1) throw new Error('as it was told');
});
const silent = { debug() {}, info() {}, warn: console.warn, error: console.error };

const PAGES = {
  by_type_p50_us: { type: 'ends' },
  by_rare_type_p50_us: { type: 'rare' },
  by_status_p50_us: { status: 'completed' },
  by_rare_status_p50_us: { status: 'failed' },
  by_attribute_p50_us: { attributes: { customer: 7 } },
  by_rare_attribute_p50_us: { attributes: { order: 'order-000123' } },
  by_range_p50_us: { attributes: { total: { gte: 500, lt: 501 } } },
  by_wide_range_p50_us: { attributes: { total: { gte: 100 } } },
  by_prefix_p50_us: { attributes: { order: { prefix: 'order-0001' } } },
  by_several_p50_us: { status: 'completed', attributes: { customer: 7 }, not: { attributes: { total: { lt: 200 } } } },
};

export async function measure({ scale }) {
  const engine = await openEngine(':memory:', { workflows: [waits, rare, ends], dev: false, logger: silent });
  const count = scale(100_000);
  for (let n = 0; n < count; n += 1000) {
    const batch = Array.from({ length: Math.min(1000, count - n) }, (_, k) => start(engine, n + k));
    await Promise.all(batch);
  }
  const figures = {};
  for (const [name, options] of Object.entries(PAGES)) {
    const micros = [];
    for (let k = 0; k < 200; k += 1) {
      const begin = performance.now();
      await engine.listPage({ ...options, limit: 100 });
      micros.push((performance.now() - begin) * 1000);
    }
    figures[name] = quantile(micros, 0.5);
  }
  await engine.close({ grace: 0 });
  return figures;
}

function start(engine, n) {
  const definition = n % 1000 === 0 ? rare : n % 2 === 0 ? waits : ends;
  const order = `order-${String(n).padStart(6, '0')}`;
  return engine.start(definition, n, { attributes: { customer: n % 97, order, total: (n * 7919) % 1000 } });
}

export function judge(figures) {
  return Object.keys(PAGES).map((name) => [
    name.replace('_p50_us', ', p50 in µs').replaceAll('_', ' '),
    figures[name],
    1000,
  ]);
}
