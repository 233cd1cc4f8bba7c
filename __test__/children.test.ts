import { signal, workflow } from 'fusee';
import { engineOf, rejection } from './support/engines';

const go = signal<string>('go');
const child = workflow('child', async (ctx: any, name: string) => {
  if (name === 'fails') throw new Error('child broke');
  if (name === 'waits') return ctx.waitFor(go);
  if (name === 'sleeps') await ctx.sleep('1h');
  return `${name} done`;
});

test('ctx.run gives the result of a child, or says how it ended', async () => {
  const parent = workflow('parent', async (ctx: any) => {
    const good = await ctx.run(child, 'good');
    const bad = await ctx.run(child, 'fails', { id: 'bad-one' }).catch((error: any) => error);
    return [good, bad.name, bad.id, bad.status, bad.cause.message];
  });
  const engine = await engineOf([parent, child]);
  await expect(engine.execute(parent)).resolves.toEqual([
    'good done',
    'ChildWorkflowError',
    'bad-one',
    'failed',
    'child broke',
  ]);
});

test('ctx.start gives a handle by which the child is signalled and awaited', async () => {
  const parent = workflow('parent', async (ctx: any) => {
    const handle = await ctx.start(child, 'waits');
    await handle.signal(go, 'went');
    return [await handle.result(), await handle.result()];
  });
  const engine = await engineOf([parent, child]);
  await expect(engine.execute(parent)).resolves.toEqual(['went', 'went']);
});

test('ctx.handle addresses a workflow that somebody else started', async () => {
  const parent = workflow('parent', async (ctx: any) => {
    const other = ctx.handle(child, 'other');
    await other.signal(go, 'hello');
    const missing = await ctx
      .handle(child, 'nobody')
      .result()
      .catch((error: any) => error.name);
    return [await other.result(), missing];
  });
  const engine = await engineOf([parent, child]);
  await engine.start(child, 'waits', { id: 'other' });
  await expect(engine.execute(parent)).resolves.toEqual(['hello', 'RunNotFoundError']);
});

test.each([
  ['terminate', 'terminated'],
  ['cancel', 'cancelled'],
  ['abandon', 'running'],
])('onParentClose: %s leaves a child %s when its parent ends', async (onParentClose, status) => {
  const parent = workflow('parent', async (ctx: any) => {
    await ctx.start(child, 'waits', { id: 'kid', onParentClose });
  });
  const engine = await engineOf([parent, child]);
  await engine.execute(parent);
  await engine.idle();
  expect((await engine.handle(child, 'kid').describe()).status).toBe(status);
});

test('a child with an id that is taken is refused by the policy', async () => {
  const parent = workflow('parent', async (ctx: any) =>
    ctx.run(child, 'good', { id: 'taken', idConflictPolicy: 'fail' }).catch((error: any) => error.name),
  );
  const engine = await engineOf([parent, child]);
  await engine.start(child, 'waits', { id: 'taken' });
  await expect(engine.execute(parent)).resolves.toBe('WorkflowAlreadyStartedError');
});

test('cancelling a parent rejects what it waits for, and closes its children', async () => {
  const parent = workflow('parent', async (ctx: any) => ctx.run(child, 'waits', { id: 'kid' }));
  const engine = await engineOf([parent, child]);
  const handle = await engine.start(parent);
  await engine.idle();
  await handle.cancel('enough');
  expect(await rejection(handle.result())).toMatchObject({ name: 'CancelledError', reason: 'enough' });
  await engine.idle();
  expect((await engine.handle(child, 'kid').describe()).status).toBe('terminated');
});

test('a child that was not given to open makes its parent stuck, not wrong', async () => {
  const parent = workflow('parent', async (ctx: any) => ctx.run(child, 'good'));
  const engine = await engineOf([parent]);
  const handle = await engine.start(parent);
  await engine.idle();
  expect((await handle.describe()).stuck).toBe(true);
  expect((await engine.explain(handle.id)).message).toMatch(/'child'.*not given to open/);
});
