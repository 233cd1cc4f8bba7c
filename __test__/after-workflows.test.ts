import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onComplete, onFailure, open, RunNotFoundError, signal, task, TaskError, workflow } from 'fusee';
import { engineOf, quietLogger, rejection } from './support/engines';

const go = signal<string>('go');
const patient = workflow('patient', async (ctx) => {
  const said = await ctx.waitFor(go);
  if (said === 'fail') throw new RangeError('no');
  return said;
});
const look = task('look', (ctx) => ctx.parents);

describe('a task that waits for a workflow', () => {
  test('starts when that has completed, and is given its result', async () => {
    const engine = await engineOf([patient], { tasks: [look] });
    const run = await engine.start(patient, undefined, { id: 'run' });
    const first = await engine.enqueue(look);
    const then = await engine.enqueue(look, undefined, { after: [run, first] });
    await engine.idle();
    expect(await engine.explainTask(then)).toEqual({ reason: 'blocked', by: ['run'] });
    await run.signal(go, 'well');
    expect(await then.result()).toEqual([
      { id: first.id, type: 'look', status: 'completed', result: [] },
      { id: 'run', type: 'patient', status: 'completed', result: 'well' },
    ]);
    // It has ended already: by its id, and by the run.
    expect(await (await engine.enqueue(look, undefined, { after: [engine.handle('run')] })).result()).toHaveLength(1);
    expect(await (await engine.enqueue(look, undefined, { after: [run] })).result()).toHaveLength(1);
  });

  test('is skipped when it ends otherwise, unless that is what it waits for', async () => {
    const engine = await engineOf([patient], { tasks: [look] });
    const [a, b] = [
      await engine.start(patient, undefined, { id: 'a' }),
      await engine.start(patient, undefined, { id: 'b' }),
    ];
    const options = [[a], [onFailure(a)], [b], [onFailure(b)], [onComplete(b)]];
    const tasks: any[] = [];
    for (const after of options) tasks.push(await engine.enqueue(look, undefined, { after }));
    await a.signal(go, 'fail');
    await b.cancel();
    await engine.idle();
    const statuses = await Promise.all(tasks.map(async (one) => (await one.describe()).status));
    expect(statuses).toEqual(['skipped', 'completed', 'skipped', 'skipped', 'completed']);
    const why = await rejection(tasks[0].result());
    expect(TaskError.is(why) && why.status).toBe('skipped');
    expect((await tasks[1].result())[0]).toMatchObject({ id: 'a', status: 'failed', error: { message: 'no' } });
    expect((await tasks[4].result())[0]).toMatchObject({ id: 'b', status: 'cancelled' });
  });

  test('waits for a child of the workflow that asks for it', async () => {
    const child = workflow('child', async (ctx, n: number) => {
      await ctx.sleep('1h');
      return n + 1;
    });
    const parent = workflow('parent', async (ctx) => {
      const one = await ctx.start(child, 1, { id: 'one' });
      const other = ctx.handle(child, 'other');
      const parents = (await ctx.run(look, undefined, { after: [one, onComplete(other)] })) as any[];
      return parents.map(({ id, result }) => [id, result]);
    });
    const engine = await engineOf([child, parent], { tasks: [look] });
    await engine.start(child, 2, { id: 'other' });
    const run = await engine.start(parent);
    await engine.advance('1h');
    expect(await run.result()).toEqual([
      ['one', 2],
      ['other', 3],
    ]);
  });

  test('is refused if there is none', async () => {
    const engine = await engineOf([patient], { tasks: [look] });
    const none = await rejection(engine.enqueue(look, undefined, { after: [engine.handle('none')] }));
    expect(RunNotFoundError.is(none)).toBe(true);
    expect(none.message).toContain('there is no workflow "none"');
    const run = await engine.start(patient, undefined, { id: 'run' });
    const other = engine.handle('run', { runId: run.runId.replace(/\d+$/u, '99') });
    expect(RunNotFoundError.is(await rejection(engine.enqueue(look, undefined, { after: [other] })))).toBe(true);
    const queued = engine.enqueue(patient, undefined, { id: 'queued', after: [engine.handle('none')] });
    expect(RunNotFoundError.is(await rejection(queued))).toBe(true);
    expect(RunNotFoundError.is(await rejection(engine.handle('queued').describe()))).toBe(true);
    const many = await engine.enqueueMany(look, [1, 2], (_n: any, index: number) =>
      index === 0 ? { after: [engine.handle('none')] } : undefined,
    );
    expect(many.map(({ status }: any) => status)).toEqual(['rejected', 'fulfilled']);
    expect((await rejection(engine.enqueue(look, undefined, { after: [{ id: 'x' }] }))).message).toContain(
      'its handle',
    );
  });

  test('waits for the last of those that take its place, over crashes', async () => {
    const chain = workflow('chain', async (ctx, left: number) => {
      await ctx.sleep('1m');
      return left > 0 ? ctx.continueAsNew(left - 1) : 'end';
    });
    const engine = await engineOf([chain], { tasks: [look] });
    await engine.start(chain, 2, { id: 'chain' });
    const task = await engine.enqueue(look, undefined, { after: [engine.handle('chain')] });
    for (let minute = 0; minute < 3; minute += 1) {
      await engine.crash();
      expect((await engine.handle(look, task.id).describe()).status).toBe('blocked');
      await engine.advance('1m');
    }
    const [parent] = await engine.handle(look, task.id).result();
    expect(parent).toEqual({ id: 'chain', type: 'chain', status: 'completed', result: 'end' });
  });
});

test('a workflow that is enqueued behind others starts when they have ended', async () => {
  const engine = await engineOf([patient], {});
  const a = await engine.enqueue(patient, undefined, { id: 'a' });
  const b = await engine.enqueue(patient, undefined, { id: 'b', after: [a] });
  const c = await engine.enqueue(patient, undefined, { id: 'c', after: [onFailure(b)] });
  await engine.idle();
  expect((await b.describe()).status).toBe('queued');
  expect(await engine.explain('b')).toEqual({ reason: 'blocked', by: ['a'] });
  await a.signal(go, '1');
  await b.signal(go, '2');
  expect(await b.result()).toBe('2');
  expect(await rejection(c.result())).toMatchObject({ status: 'skipped' });
});

test('the wait goes on in a directory that is opened again', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'fusee-'));
  const options = { workflows: [patient], tasks: [look], logger: quietLogger().logger };
  let engine = await open(dir, options);
  const run = await engine.start(patient, undefined, { id: 'run' });
  const { id } = await engine.enqueue(look, undefined, { after: [run] });
  await engine.close();
  engine = await open(dir, options);
  await engine.handle(patient, 'run').signal(go, 'late');
  expect(await engine.handle(look, id).result()).toMatchObject([{ id: 'run', result: 'late' }]);
  await engine.close();
  rmSync(dir, { recursive: true });
});
