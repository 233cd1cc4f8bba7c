import { query, signal, workflow } from 'fusee';
import { engineOf, rejection } from './support/engines';

const go = signal<number>('go');
const status = query<string>('status');

test('a paused run stands still, also over a crash, and goes on with all that came when it is resumed', async () => {
  const aborted: unknown[] = [];
  let isHeld = true;
  const works = workflow('works', async (ctx: any) => {
    ctx.onQuery(status, () => 'fine');
    const slept = ctx.sleep('1h').then(() => 'slept');
    const stepped = ctx.step('long', (step: any) => {
      step.signal.addEventListener('abort', () => aborted.push(step.attempt));
      return isHeld ? new Promise(() => undefined) : 'stepped';
    });
    return Promise.all([slept, stepped, ctx.waitFor(go)]);
  });
  const engine = await engineOf([works]);
  const handle = await engine.start(works, undefined, { id: 'w' });
  await engine.advance(0);
  await handle.pause({ actor: 'ann' });
  await engine.idle();
  expect(aborted).toEqual([1]);
  isHeld = false;
  await handle.signal(go, 7);
  await engine.advance('2h');
  expect(await handle.describe()).toMatchObject({ status: 'running', paused: true });
  await expect(engine.explain('w')).resolves.toEqual({ reason: 'paused', step: undefined });
  expect(await rejection(handle.query(status))).toMatchObject({ name: 'BusyError' });
  await engine.crash();
  await engine.idle();
  expect((await handle.describe()).paused).toBe(true);
  await handle.resume();
  await engine.advance(0);
  await expect(handle.result()).resolves.toEqual(['slept', 'stepped', 7]);
  expect((await rejection(handle.pause())).name).toBe('RunNotFoundError');
});

test('a cancel waits for the end of a pause, terminate does not', async () => {
  const waits = workflow('waits', (ctx: any) => ctx.waitFor(go));
  const engine = await engineOf([waits]);
  const handle = await engine.start(waits);
  await handle.pause();
  await handle.cancel('later');
  await engine.idle();
  expect((await handle.describe()).status).toBe('running');
  await handle.resume();
  expect(await rejection(handle.result())).toMatchObject({ name: 'CancelledError', reason: 'later' });
  const other = await engine.start(waits);
  await other.pause();
  await other.terminate('now');
  expect((await rejection(other.result())).name).toBe('TerminatedError');
});
