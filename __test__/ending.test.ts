import { signal, workflow } from 'fusee';
import { engineOf, rejection } from './support/engines';

const go = signal<void>('go');

test('cancel rejects everything open in call order within one turn, and every later operation', async () => {
  const trace: string[] = [];
  const stops = workflow('stops', async (ctx: any) => {
    ctx.signal.addEventListener('abort', () => trace.push('abort'));
    const waits = [ctx.sleep('1h'), ctx.waitFor(go), ctx.condition(() => false)].map((wait, index) =>
      wait.catch((error: any) => void trace.push(`${index} ${error.name}`)),
    );
    await Promise.all(waits);
    await ctx.step('later', () => trace.push('never')).catch((error: any) => trace.push(`later ${error.name}`));
    await ctx.sleep(1);
  });
  const engine = await engineOf([stops]);
  const handle = await engine.start(stops);
  await engine.idle();
  await handle.cancel('why not');
  const error = await rejection(handle.result());
  expect(error).toMatchObject({ name: 'CancelledError', reason: 'why not' });
  expect(trace.sort()).toEqual([
    '0 CancelledError',
    '1 CancelledError',
    '2 CancelledError',
    'abort',
    'later CancelledError',
  ]);
  expect((await handle.describe()).status).toBe('cancelled');
});

test('a workflow that swallows a cancel completes; one that throws something else fails', async () => {
  const swallows = workflow('swallows', async (ctx: any) => ctx.sleep('1h').catch(() => 'calm'));
  const throws = workflow('throws', async (ctx: any) =>
    ctx.sleep('1h').catch(() => {
      throw new Error('angry');
    }),
  );
  const engine = await engineOf([swallows, throws]);
  const [first, second] = [await engine.start(swallows), await engine.start(throws)];
  await Promise.all([first.cancel(), second.cancel()]);
  await expect(first.result()).resolves.toBe('calm');
  expect((await rejection(second.result())).cause.message).toBe('angry');
});

test('cancel aborts the signal of a running step; its outcome does not count', async () => {
  let reason: any;
  const runs = workflow('runs', async (ctx: any) =>
    ctx.step(
      'run',
      (step: any) =>
        new Promise((_resolve, reject) => {
          step.signal.addEventListener('abort', () => {
            reason = step.signal.reason;
            reject(new Error('stopped'));
          });
        }),
    ),
  );
  const engine = await engineOf([runs]);
  const handle = await engine.start(runs);
  await engine.advance(0);
  await handle.cancel('stop');
  expect((await rejection(handle.result())).name).toBe('CancelledError');
  expect(reason).toMatchObject({ name: 'CancelledError', reason: 'stop' });
});

test('terminate ends a run at once, and aborts what runs', async () => {
  let wasAborted = false;
  const runs = workflow('runs', async (ctx: any) => {
    try {
      await ctx.step(
        'run',
        (step: any) =>
          new Promise(() => {
            step.signal.addEventListener('abort', () => (wasAborted = true));
          }),
      );
    } finally {
      await ctx.step('never', () => {
        throw new Error('no code runs after terminate');
      });
    }
  });
  const engine = await engineOf([runs]);
  const handle = await engine.start(runs);
  await engine.advance(0);
  await handle.terminate('now');
  expect(await rejection(handle.result())).toMatchObject({ name: 'TerminatedError', reason: 'now' });
  await engine.idle();
  expect(wasAborted).toBe(true);
  await handle.terminate();
  await handle.cancel();
});

test('the timeout of a run ends it', async () => {
  const naps = workflow('naps', async (ctx: any) => ctx.sleep('2h'));
  const engine = await engineOf([naps]);
  const handle = await engine.start(naps, undefined, { timeout: '1h' });
  await engine.advance('1h');
  expect(await rejection(handle.result())).toMatchObject({ name: 'TimeoutError', of: 'run' });
});

test('bodies of steps that nobody waited for do not outlive their run', async () => {
  let wasAborted = false;
  const leaves = workflow('leaves', async (ctx: any) => {
    void ctx.step(
      'left',
      (step: any) =>
        new Promise(() => {
          step.signal.addEventListener('abort', () => (wasAborted = true));
        }),
    );
    await ctx.sleep('1s');
    return 'left';
  });
  const engine = await engineOf([leaves]);
  const handle = await engine.start(leaves);
  await engine.advance('1s');
  await expect(handle.result()).resolves.toBe('left');
  await engine.idle();
  expect(wasAborted).toBe(true);
});

test('an ended run takes no signals', async () => {
  const ends = workflow('ends', async () => 1);
  const engine = await engineOf([ends]);
  const handle = await engine.start(ends);
  await handle.result();
  expect((await rejection(handle.signal(go))).name).toBe('RunNotFoundError');
});

test('a result that cannot be recorded fails the run and names the path', async () => {
  const bad = workflow('bad', async () => ({ a: [() => 1] }));
  const engine = await engineOf([bad]);
  const error = await rejection(engine.execute(bad));
  expect(error.name).toBe('WorkflowFailedError');
  expect(error.cause.message).toMatch(/a\[0\]/);
});

test('result() stops waiting after its timeout or when its signal aborts; the run goes on', async () => {
  const waits = workflow('waits', (ctx: any) => ctx.waitFor(go));
  const engine = await engineOf([waits]);
  const handle = await engine.start(waits);
  expect(await rejection(handle.result({ timeout: 5 }))).toMatchObject({ name: 'TimeoutError', of: 'wait' });
  const controller = new AbortController();
  const waiting = rejection(handle.result({ signal: controller.signal }));
  controller.abort(new Error('no more'));
  expect((await waiting).message).toBe('no more');
  await handle.signal(go);
  await expect(handle.result()).resolves.toBeUndefined();
});
