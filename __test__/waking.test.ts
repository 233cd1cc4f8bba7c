import { signal, workflow } from 'fusee';
import { engineOf, rejection } from './support/engines';

const go = signal<number>('go');

const naps = workflow('naps', async (ctx: any) => {
  const begin = ctx.now();
  const both = await Promise.all([ctx.sleep('1d'), ctx.sleep('2d'), ctx.waitFor(go, { timeout: '1h', orElse: -1 })]);
  return { ms: ctx.now() - begin, got: both[2] };
});

test('wake ends all sleeps early, leaves other times alone, and holds over a crash', async () => {
  const engine = await engineOf([naps]);
  const handle = await engine.start(naps, undefined, { id: 'w' });
  await engine.advance('10m');
  await handle.wake({ actor: 'ann' });
  await engine.crash();
  await engine.idle();
  await expect(engine.explain('w')).resolves.toMatchObject({ reason: 'waiting' });
  await engine.advance('50m');
  await expect(handle.result()).resolves.toEqual({ ms: 3_600_000, got: -1 });
  expect((await rejection(handle.wake())).name).toBe('RunNotFoundError');
});

test.each(['live', 'before its code is back'])('the time limit of a scope is no sleep, and stays: %s', async (when) => {
  const limited = workflow('limited', async (ctx: any) => {
    const inner = ctx.scope(() => ctx.sleep('30m').then(() => ctx.waitFor(go)), { timeout: '1h' });
    return inner.catch((error: Error) => [error.name, ctx.now()]);
  });
  const engine = await engineOf([limited]);
  const begin = engine.now();
  const handle = await engine.start(limited, undefined, { id: 'l' });
  await engine.idle();
  if (when === 'live') await handle.wake();
  else {
    await handle.pause();
    await engine.crash();
    await handle.wake();
    await handle.resume();
  }
  await engine.idle();
  await expect(handle.describe()).resolves.toMatchObject({ status: 'running' });
  await engine.advance('1h');
  await expect(handle.result()).resolves.toEqual(['TimeoutError', Number(begin) + 3_600_000]);
});

test('a paused run notices when it is resumed; a run that does not sleep is left alone', async () => {
  const sleeps = workflow('sleeps', (ctx: any) => ctx.sleep('1d').then(() => ctx.waitFor(go)));
  const engine = await engineOf([sleeps]);
  const handle = await engine.start(sleeps);
  await engine.idle();
  await handle.pause();
  await handle.wake();
  await engine.idle();
  await handle.resume();
  await engine.idle();
  await expect(engine.explain(handle.id)).resolves.toMatchObject({ reason: 'waiting' });
  const rows = async () => {
    const labels: string[] = [];
    for await (const row of handle.history()) labels.push(row.kind);
    return labels;
  };
  const before = await rows();
  await handle.wake();
  expect(await rows()).toEqual(before);
  await handle.signal(go, 3);
  await expect(handle.result()).resolves.toBe(3);
});

test.each([
  ['an unknown option', { by: 'ann' }, TypeError],
  ['an actor of 257 bytes', { actor: 'x'.repeat(257) }, /256/],
  ['an actor that is no text', { actor: 7 }, TypeError],
])('%s is refused', async (_, options, type) => {
  const engine = await engineOf([naps]);
  const handle = await engine.start(naps);
  await expect(handle.wake(options as any)).rejects.toThrow(type);
});
