import { signal, workflow } from 'fusee';
import { engineOf, rejection } from './support/engines';

const go = signal<number>('go');

test('a run goes on after a crash where it was; finished steps do not run again', async () => {
  const calls: string[] = [];
  const long = workflow('long', async (ctx: any) => {
    const a = await ctx.step('a', () => calls.push('a'));
    await ctx.sleep('1h');
    const b = await ctx.step('b', () => calls.push('b'));
    const value = await ctx.waitFor(go);
    return [a, b, value];
  });
  const engine = await engineOf([long]);
  const handle = await engine.start(long);
  await engine.idle();
  await engine.crash();
  await engine.advance('1h');
  await engine.crash();
  await handle.signal(go, 9);
  await engine.crash();
  await expect(handle.result()).resolves.toEqual([1, 2, 9]);
  expect(calls).toEqual(['a', 'b']);
});

test('a result() that was asked for before a crash still comes', async () => {
  const naps = workflow('naps', async (ctx: any) => {
    await ctx.sleep('1h');
    return 'slept';
  });
  const engine = await engineOf([naps]);
  const handle = await engine.start(naps);
  const result = handle.result();
  await engine.crash();
  await engine.advance('1h');
  await expect(result).resolves.toBe('slept');
});

test('execute() says that its start was lost in a crash, or still gives the result', async () => {
  const naps = workflow('naps', async (ctx: any) => {
    await ctx.sleep('1h');
    return 'slept';
  });
  const engine = await engineOf([naps]);
  const lost = rejection(engine.execute(naps, undefined, { id: 'n' }));
  await engine.crash();
  const error = await lost;
  expect(error).toMatchObject({ name: 'StorageError' });
  expect(String(error)).toContain('crashed before the answer was durable');
  const kept = engine.execute(naps, undefined, { id: 'n' });
  await engine.idle();
  await engine.crash();
  await engine.advance('1h');
  await expect(kept).resolves.toBe('slept');
});

test('an execute() that fails names the run that it started', async () => {
  const broken = workflow('broken', async () => {
    throw new Error('no');
  });
  const engine = await engineOf([broken]);
  const error: any = await rejection(engine.execute(broken, undefined, { id: 'b' }));
  const { runId } = await engine.handle(broken, 'b').describe();
  expect(error).toMatchObject({ name: 'WorkflowFailedError', id: 'b', runId });
});

test('LAW-7: a body that was lost runs again as the next attempt, with the same key', async () => {
  const keys: [number, string][] = [];
  let hangs = true;
  const lost = workflow('lost', (ctx: any) =>
    ctx.step('effect', (step: any) => {
      keys.push([step.attempt, step.idempotencyKey]);
      return hangs ? new Promise(() => undefined) : 'done';
    }),
  );
  const engine = await engineOf([lost]);
  const handle = await engine.start(lost);
  await engine.advance(0);
  await engine.crash();
  await engine.advance(0);
  hangs = false;
  await engine.crash();
  await expect(handle.result()).resolves.toBe('done');
  expect(new Set(keys.map(([, key]) => key)).size).toBe(1);
  expect(keys.map(([attempt]) => attempt)).toEqual([1, 1, 2]);
});

test('LAW-7: a step that takes its process with it every time ends as a StepError', async () => {
  let calls = 0;
  const kills = workflow('kills', (ctx: any) =>
    ctx.step('kill', () => {
      calls += 1;
      return new Promise(() => undefined);
    }),
  );
  const engine = await engineOf([kills]);
  const handle = await engine.start(kills);
  for (let life = 0; life < 6; life += 1) {
    await engine.advance(0);
    await engine.crash();
  }
  const { cause } = await rejection(handle.result());
  expect(cause).toMatchObject({ name: 'StepError', step: 'kill', attempts: 3 });
  expect(cause.cause.name).toBe('StepInterruptedError');
  expect(calls).toBe(4);
});

test('an atMostOnce step is not run again after a crash; it fails with StepInterruptedError', async () => {
  let calls = 0;
  const once = workflow('once', (ctx: any) =>
    ctx.step(
      'once',
      () => {
        calls += 1;
        return new Promise(() => undefined);
      },
      { semantics: 'atMostOnce' },
    ),
  );
  const engine = await engineOf([once]);
  const handle = await engine.start(once);
  await engine.advance(0);
  await engine.crash();
  expect((await rejection(handle.result())).cause).toMatchObject({ name: 'StepInterruptedError', step: 'once' });
  expect(calls).toBe(1);
});

test('retries go on after a crash with the attempts that were made', async () => {
  const attempts: number[] = [];
  const tries = workflow('tries', (ctx: any) =>
    ctx.step(
      'try',
      (step: any) => {
        attempts.push(step.attempt);
        if (attempts.length < 3) throw new Error('no');
        return 'ok';
      },
      { retry: { maxAttempts: 3, initialInterval: '1h', jitter: false } },
    ),
  );
  const engine = await engineOf([tries]);
  const handle = await engine.start(tries);
  await engine.idle();
  await engine.crash();
  await engine.advance('1h');
  await engine.crash();
  await engine.advance('2h');
  await expect(handle.result()).resolves.toBe('ok');
  expect(attempts).toEqual([1, 2, 3]);
});

test('a cancel that was acknowledged survives a crash', async () => {
  const waits = workflow('waits', (ctx: any) => ctx.waitFor(go));
  const engine = await engineOf([waits]);
  const handle = await engine.start(waits);
  await handle.cancel('before the crash');
  await engine.crash();
  expect(await rejection(handle.result())).toMatchObject({ name: 'CancelledError' });
});

test('children and their parents find each other again after a crash', async () => {
  const child = workflow('child', async (ctx: any) => {
    await ctx.sleep('1h');
    return 'from child';
  });
  const parent = workflow('parent', async (ctx: any) => [await ctx.run(child), await ctx.run(child)]);
  const engine = await engineOf([parent, child]);
  const handle = await engine.start(parent);
  await engine.idle();
  await engine.crash();
  await engine.advance('1h');
  await engine.crash();
  await engine.advance('1h');
  await expect(handle.result()).resolves.toEqual(['from child', 'from child']);
});
