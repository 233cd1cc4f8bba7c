import { signal, workflow } from 'fusee';
import { engineOf, rejection } from './support/engines';

const go = signal<void>('go');
const waits = workflow('waits', async (ctx: any, _input?: number) => {
  await ctx.waitFor(go);
});
const ends = workflow('ends', async (_ctx: any, isGood: boolean) => {
  if (!isGood) throw new Error('bad');
});

test('a second start with the same input is the first one; with another input it is refused', async () => {
  const engine = await engineOf([waits]);
  const first = await engine.start(waits, 1, { id: 'a' });
  const second = await engine.start(waits, 1, { id: 'a' });
  expect(second.runId).toBe(first.runId);
  expect(await rejection(engine.start(waits, 2, { id: 'a' }))).toMatchObject({ name: 'WorkflowAlreadyStartedError' });
});

test('idConflictPolicy decides about an id that is in use', async () => {
  const engine = await engineOf([waits]);
  const first = await engine.start(waits, 1, { id: 'a' });
  const used = await engine.start(waits, 2, { id: 'a', idConflictPolicy: 'useExisting' });
  expect(used.runId).toBe(first.runId);
  await rejection(engine.start(waits, 1, { id: 'a', idConflictPolicy: 'fail' }));
  const next = await engine.start(waits, 1, { id: 'a', idConflictPolicy: 'terminateExisting' });
  expect(next.runId).not.toBe(first.runId);
  expect((await rejection(first.result())).name).toBe('TerminatedError');
});

test('idReusePolicy decides about an id that was used', async () => {
  const engine = await engineOf([ends]);
  await engine.execute(ends, true, { id: 'good' });
  await rejection(engine.execute(ends, false, { id: 'bad' }));
  await engine.execute(ends, true, { id: 'good' });
  const failedOnly = { idReusePolicy: 'allowDuplicateFailedOnly' };
  await rejection(engine.start(ends, true, { id: 'good', ...failedOnly }));
  await engine.execute(ends, true, { id: 'bad', ...failedOnly });
  await rejection(engine.start(ends, true, { id: 'bad', idReusePolicy: 'rejectDuplicate' }));
});

test('a handle of a start stays with its run when the id is used again', async () => {
  const counts = workflow('counts', async (_ctx: any, n: number) => n);
  const engine = await engineOf([counts]);
  const first = await engine.start(counts, 1, { id: 'a' });
  await first.result();
  await engine.execute(counts, 2, { id: 'a' });
  await expect(first.result()).resolves.toBe(1);
  await expect(engine.handle(counts, 'a').result()).resolves.toBe(2);
  await expect(engine.handle('a').result()).resolves.toBe(2);
});

test('runs are listed and counted by type, status, id and mark', async () => {
  const engine = await engineOf([waits, ends]);
  for (let index = 0; index < 250; index += 1) await engine.start(waits, index, { id: `w-${index}` });
  await engine.execute(ends, true, { id: 'e-1' });
  const all: string[] = [];
  for await (const row of engine.list({ type: waits, order: 'oldestFirst' })) all.push(row.id);
  expect(new Set(all).size).toBe(250);
  const some: any[] = [];
  for await (const row of engine.list({ status: 'completed' })) some.push(row);
  expect(some).toMatchObject([{ id: 'e-1', status: 'completed', type: 'ends' }]);
  await expect(engine.count({ status: 'running' })).resolves.toBe(250);
  await expect(engine.count({ idPrefix: 'w-1' })).resolves.toBe(111);
  await expect(engine.count({ stuck: true })).resolves.toBe(0);
  const few: string[] = [];
  for await (const row of engine.list({ limit: 3 })) few.push(row.id);
  expect(few).toHaveLength(3);
});
