/**
 * LAW-4: code that awaits what does not come from `ctx` is found out live, whatever it awaits and whatever else goes on.
 *
 * Nothing here waits for time: a test goes on when the awaited thing has come back.
 */
import { createHash, randomBytes, webcrypto } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { readFile, promises as fs } from 'node:fs';
import { Readable } from 'node:stream';
import { gzip } from 'node:zlib';
import { MessageChannel } from 'node:worker_threads';
import { workflow } from 'fusee';
import { engineOf } from './support/engines';

type Foreign = () => PromiseLike<unknown>;

const tick = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve));
const immediate = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Sources that come back after the drain in which they were asked. */
const SOURCES: [string, Foreign][] = [
  ['setImmediate', immediate],
  ['setTimeout', () => new Promise((resolve) => setTimeout(resolve, 0))],
  ['process.nextTick', tick],
  [
    'process.nextTick, several in a row',
    async () => {
      for (let i = 0; i < 5; i += 1) await tick();
    },
  ],
  [
    'process.nextTick, then some microtasks',
    async () => {
      await tick();
      for (let i = 0; i < 20; i += 1) await null;
    },
  ],
  [
    'microtasks, then process.nextTick',
    async () => {
      for (let i = 0; i < 20; i += 1) await null;
      await tick();
    },
  ],
  ['fs.promises', () => fs.stat(__filename)],
  ['a callback of fs', () => new Promise((resolve) => readFile(__filename, resolve))],
  ['a callback of crypto', () => new Promise((resolve) => randomBytes(16, resolve))],
  ['webcrypto', () => webcrypto.subtle.digest('SHA-256', createHash('md5').digest())],
  ['zlib', () => new Promise((resolve) => gzip('text', resolve))],
  [
    'an EventEmitter',
    () => {
      const e = new EventEmitter();
      setImmediate(() => e.emit('x'));
      return once(e, 'x');
    },
  ],
  [
    'a stream',
    async () => {
      for await (const part of Readable.from([1, 2])) void part;
    },
  ],
  [
    'a MessageChannel',
    () =>
      new Promise<void>((resolve) => {
        const { port1, port2 } = new MessageChannel();
        port1.once('message', () => {
          port1.close();
          resolve();
        });
        port2.postMessage(1);
      }),
  ],
];

async function foundOut(
  start: (ctx: any, foreign: () => Promise<void>) => Promise<unknown>,
  source: Foreign,
): Promise<void> {
  for (const dev of [true, false]) {
    const { promise: hasCome, resolve: come } = arrival();
    const breaks = workflow('breaks', (ctx: any) =>
      start(ctx, async () => {
        await source();
        come();
        ctx.now();
      }),
    );
    const engine = await engineOf([breaks], { dev });
    const handle = await engine.start(breaks);
    await hasCome;
    await engine.idle();
    expect([dev, (await handle.describe()).stuck]).toEqual([dev, true]);
  }
}

function arrival(): { promise: Promise<void>; resolve: () => void } {
  let resolve!: () => void;
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

test.each(SOURCES)('LAW-4: %s, at the start, is found out', (_n, source) =>
  foundOut(async (ctx, foreign) => {
    void ctx.sleep('1h');
    await foreign();
  }, source),
);

test.each(SOURCES)('LAW-4: %s, after a step, is found out', (_n, source) =>
  foundOut(async (ctx, foreign) => {
    void ctx.sleep('1h');
    await ctx.step('one', () => 1);
    await foreign();
  }, source),
);

test.each(SOURCES)('LAW-4: %s, while turn follows turn, is found out', (_n, source) =>
  foundOut(async (ctx, foreign) => {
    void ctx.sleep('1h');
    await Promise.all(
      Array.from({ length: 200 }, async (_, i) => {
        await ctx.step(`s${i}`, () => 1);
        if (i === 0) await foreign();
      }),
    );
    await ctx.sleep('1h');
  }, source),
);
