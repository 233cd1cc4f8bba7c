// LAW-4: a turn begins in the same tick only if nobody else has a tick waiting, with async hooks on and off.

import { AsyncLocalStorage } from 'node:async_hooks';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { buildSync } from 'esbuild';
import { TickWatch } from '../js/worker/tick-watch.js';
import { runScript } from './support/scripts';

describe('with an AsyncLocalStorage in use', () => {
  const others = new AsyncLocalStorage<number>();
  let watch: TickWatch;

  beforeEach(() => {
    watch = new TickWatch();
    others.enterWith(1);
    // The first look finds out that promises take ids.
    expect(lookAround(watch, makePromises)).toBe(false);
  });
  afterEach(() => {
    TickWatch.unhook();
    others.disable();
  });

  test('promises alone disturb nobody', () => {
    expect(lookAround(watch, makePromises)).toBe(true);
  });

  test('a tick of somebody else is noticed, beside our own too', () => {
    expect(lookAround(watch, queueTick)).toBe(false);
    const isUndisturbed = lookAround(watch, () => {
      watch.takeTick();
      queueTick();
      queueTick();
    });
    expect(isUndisturbed).toBe(false);
  });

  test('a tick of our own is not', () => {
    const isUndisturbed = lookAround(watch, () => {
      watch.takeTick();
      queueTick();
      makePromises();
    });
    expect(isUndisturbed).toBe(true);
  });

  test('when the hook was taken off meanwhile, the answer is no, and the next look finds out anew', () => {
    expect(lookAround(watch, () => TickWatch.unhook())).toBe(false);
    expect(lookAround(watch, makePromises)).toBe(false);
    expect(lookAround(watch, makePromises)).toBe(true);
    expect(lookAround(watch, queueTick)).toBe(false);
  });
});

test('hooks that come and go are found out, and every tick is noticed meanwhile', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'fusee-watch-'));
  const built = join(folder, 'tick-watch.cjs');
  buildSync({
    entryPoints: [resolve(__dirname, '../js/worker/tick-watch.ts')],
    outfile: built,
    bundle: true,
    platform: 'node',
  });
  const { out, err } = await runScript(`
    const { AsyncLocalStorage, AsyncResource } = require('node:async_hooks');
    const { TickWatch } = require(${JSON.stringify(built)});
    const others = new AsyncLocalStorage();
    const watch = new TickWatch();
    const look = (work) => { watch.begin(); work(); return watch.isUndisturbed; };
    const promises = () => { for (let k = 0; k < 10; k += 1) Promise.resolve(); };
    const tick = () => process.nextTick(() => undefined);
    const ticks = () => { let missed = 0; for (let k = 0; k < 10_000; k += 1) missed += look(tick) ? 1 : 0; return missed; };
    console.log(look(promises), ticks());
    others.run(1, () => console.log(look(promises), look(promises), ticks()));
    others.disable();
    // Node.js takes the hooks of promises off in a microtask.
    for (let k = 0; k < 10_000; k += 1) {
      watch.begin();
      tick();
      await null;
      if (watch.isUndisturbed) console.log('missed', k);
    }
    const before = new AsyncResource('x').asyncId();
    promises();
    console.log(new AsyncResource('x').asyncId() - before < 10);
  `).finally(() => rmSync(folder, { recursive: true }));
  expect(err).toBe('');
  expect(out).toBe('true 0\nfalse true 0\ntrue\n');
});

function lookAround(watch: TickWatch, work: () => void): boolean {
  watch.begin();
  work();
  return watch.isUndisturbed;
}

function makePromises(): void {
  for (let k = 0; k < 10; k += 1) void Promise.resolve().then(() => undefined);
}

function queueTick(): void {
  process.nextTick(() => undefined);
}
