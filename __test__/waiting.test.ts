import { signal, workflow } from 'fusee';
import { engineOf, rejection } from './support/engines';

const ping = signal<number>('ping');

test('a sleep ends when the clock says so, and not before', async () => {
  const naps = workflow('naps', async (ctx: any) => {
    const from = ctx.now();
    await ctx.sleep('1h30m');
    const between = ctx.now();
    await ctx.sleepUntil(from + 7_200_000);
    return [between - from, ctx.now() - from];
  });
  const engine = await engineOf([naps]);
  const handle = await engine.start(naps);
  await engine.advance('2h');
  await expect(handle.result()).resolves.toEqual([5_400_000, 7_200_000]);
  expect(engine.now()).toBe(Date.UTC(2025, 0, 1) + 7_200_000);
});

test('timers fire in the order of their times, whatever the order of the calls', async () => {
  const order = workflow('order', async (ctx: any) => {
    const fired: number[] = [];
    await Promise.all([3, 1, 2].map((hours) => ctx.sleep({ hours }).then(() => fired.push(hours))));
    return fired;
  });
  const engine = await engineOf([order]);
  const handle = await engine.start(order);
  await engine.advance('1d');
  await expect(handle.result()).resolves.toEqual([1, 2, 3]);
});

test('ctx.now() stands still between two awaits', async () => {
  const still = workflow('still', async (ctx: any) => {
    const before = ctx.now();
    for (let spin = 0; spin < 1e6; spin += 1);
    return ctx.now() === before;
  });
  const engine = await engineOf([still]);
  await expect(engine.execute(still)).resolves.toBe(true);
});

test('a signal that came before it was waited for is kept, and values come in order', async () => {
  const takes = workflow('takes', async (ctx: any) => {
    await ctx.sleep('1s');
    return [await ctx.waitFor(ping), await ctx.waitFor(ping), await ctx.waitFor(ping)];
  });
  const engine = await engineOf([takes]);
  const handle = await engine.start(takes);
  await handle.signal(ping, 1);
  await handle.signal(ping, 2);
  await engine.advance('1s');
  await handle.signal(ping, 3);
  await expect(handle.result()).resolves.toEqual([1, 2, 3]);
});

test('a second signal with the same dedupeId is dropped', async () => {
  const takes = workflow('takes', async (ctx: any) => [await ctx.waitFor(ping), await ctx.waitFor(ping)]);
  const engine = await engineOf([takes]);
  const handle = await engine.start(takes);
  await handle.signal(ping, 1, { dedupeId: 'a' });
  await handle.signal(ping, 1, { dedupeId: 'a' });
  await handle.signal(ping, 2, { dedupeId: 'b' });
  await expect(handle.result()).resolves.toEqual([1, 2]);
});

test('a wait that times out gives orElse, and eats no value', async () => {
  const times = workflow('times', async (ctx: any) => {
    const first = await ctx.waitFor(ping, { timeout: '1m', orElse: 'late' });
    const second = await ctx.waitFor(ping, { timeout: '1m' });
    return [first, second, await ctx.waitFor(ping)];
  });
  const engine = await engineOf([times]);
  const handle = await engine.start(times);
  await engine.advance('2m');
  await handle.signal(ping, 5);
  await expect(handle.result()).resolves.toEqual(['late', undefined, 5]);
});

test('signals() gives one value after the other; leaving the loop gives up the wait and eats no value', async () => {
  const loops = workflow('loops', async (ctx: any) => {
    const seen: number[] = [];
    for await (const value of ctx.signals(ping)) {
      seen.push(value);
      if (value === 3) break;
    }
    const iterator = ctx.signals(ping);
    const pending = iterator.next();
    const closed = await iterator.return('end');
    const withdrawn = await pending;
    return [seen, closed, withdrawn.done, await ctx.waitFor(ping), await iterator.next()];
  });
  const engine = await engineOf([loops]);
  const handle = await engine.start(loops);
  for (const value of [1, 2, 3, 4]) await handle.signal(ping, value);
  await expect(handle.result()).resolves.toEqual([
    [1, 2, 3],
    { value: 'end', done: true },
    true,
    4,
    { value: undefined, done: true },
  ]);
});

test('several waits for one signal take its values in the order of the calls', async () => {
  const many = workflow('many', async (ctx: any) => Promise.all([1, 2, 3].map(() => ctx.waitFor(ping))));
  const engine = await engineOf([many]);
  const handle = await engine.start(many);
  for (const value of [7, 8, 9]) await handle.signal(ping, value);
  await expect(handle.result()).resolves.toEqual([7, 8, 9]);
});

test('LAW-4: a condition is looked at after every delivery, in the order of the calls, before the next delivery', async () => {
  const conditions = workflow('conditions', async (ctx: any) => {
    const trace: string[] = [];
    let count = 0;
    const a = ctx.condition(() => count >= 2).then(() => trace.push('a'));
    const b = ctx.condition(() => count >= 1).then(() => trace.push('b'));
    const c = ctx.condition(() => trace.includes('b')).then(() => trace.push('c'));
    for (let index = 0; index < 3; index += 1) {
      await ctx.waitFor(ping);
      count += 1;
      trace.push(`ping ${count}`);
    }
    await Promise.all([a, b, c]);
    return trace;
  });
  const engine = await engineOf([conditions]);
  const handle = await engine.start(conditions);
  for (const value of [1, 2, 3]) await handle.signal(ping, value);
  await expect(handle.result()).resolves.toEqual(['ping 1', 'b', 'c', 'ping 2', 'a', 'ping 3']);
});

test('a condition answers whether it held in time, and what its predicate throws', async () => {
  const times = workflow('times', async (ctx: any) => {
    let isSet = false;
    void ctx.sleep('1s').then(() => (isSet = true));
    const held = await ctx.condition(() => isSet, { timeout: '1m' });
    const late = await ctx.condition(() => false, { timeout: '1m' });
    const now = await ctx.condition(() => true);
    const error = await ctx
      .condition(() => {
        throw new Error('broken');
      })
      .catch((thrown: Error) => thrown.message);
    return [held, late, now, error];
  });
  const engine = await engineOf([times]);
  const handle = await engine.start(times);
  await engine.advance('2m');
  await expect(handle.result()).resolves.toEqual([true, false, undefined, 'broken']);
});

test('a predicate must only look: ctx in it is an error', async () => {
  const asks = workflow('asks', async (ctx: any) => {
    await ctx.condition(() => ctx.random() > 2);
  });
  const engine = await engineOf([asks]);
  const { cause } = await rejection(engine.execute(asks));
  expect(cause.name).toBe('DeterminismError');
  expect(cause.message).toMatch(/condition/);
});

test('a result that only timers could bring says that the clock must be moved', async () => {
  const naps = workflow('naps', (ctx: any) => ctx.sleep('1d'));
  const engine = await engineOf([naps]);
  const error = await rejection(engine.execute(naps));
  expect(error.message).toMatch(/call advance\(\)/);
});
