import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CancelledError, onFailure, open, QueueFullError, signal, task, TerminatedError, workflow } from 'fusee';
import { crashEverywhere } from 'fusee/testing';
import { closing, engineOf, quietLogger, rejection } from './support/engines';

const go = signal<number>('go');
const order: string[] = [];
/** Says when it starts, then waits for a signal. */
const patient = workflow('patient', async (ctx, name: string) => {
  order.push(name);
  return [name, await ctx.waitFor(go)];
});
const queues = { line: { concurrency: 1 }, small: { concurrency: 1, maxPending: 1, onFull: 'reject' as const } };

beforeEach(() => order.splice(0));

async function statuses(engine: any, ...ids: string[]): Promise<string[]> {
  const rows = await Promise.all(ids.map((id) => engine.handle(id).describe()));
  return rows.map((row) => row.status);
}

describe('a workflow that is enqueued', () => {
  test('waits for its turn, by priority, and holds its slot until it ends', async () => {
    const engine = await engineOf([patient], { queues });
    const a = await engine.enqueue(patient, 'a', { queue: 'line', id: 'a' });
    await engine.enqueue(patient, 'b', { queue: 'line', id: 'b' });
    await engine.enqueue(patient, 'c', { queue: 'line', id: 'c', priority: 'high' });
    await engine.idle();
    expect(order).toEqual(['a']);
    expect(await statuses(engine, 'a', 'b', 'c')).toEqual(['running', 'queued', 'queued']);
    expect(await engine.count({ status: 'queued' })).toBe(2);
    expect(await engine.count({ status: ['queued', 'running'] })).toBe(3);
    expect(await engine.count({ status: ['running', 'completed'] })).toBe(1);
    expect(await engine.explain('c')).toEqual({ reason: 'queue', queue: 'line', behind: 0, queuePaused: false });
    expect(await engine.explain('a')).toEqual({ reason: 'waiting', for: 'signal "go"' });
    await a.signal(go, 1);
    expect(await a.result()).toEqual(['a', 1]);
    await engine.idle();
    expect(order).toEqual(['a', 'c']);
    await engine.handle(patient, 'c').terminate('enough');
    expect(TerminatedError.is(await rejection(engine.handle('c').result()))).toBe(true);
    await engine.handle(patient, 'b').signal(go, 2);
    expect(await engine.handle('b').result()).toEqual(['b', 2]);
    expect(await engine.queue('line').stats()).toMatchObject({ running: 0, pending: 0 });
    for await (const row of engine.tasks()) throw new Error(`what stands for a run is no task: ${row.id}`);
  });

  test('takes signals while it waits, is cancelled at once, and its id is taken', async () => {
    const engine = await engineOf([patient], { queues });
    await engine.enqueue(patient, 'a', { queue: 'line', id: 'a' });
    const b = await engine.enqueue(patient, 'b', { queue: 'line', id: 'b' });
    await b.signal(go, 7);
    const again = await engine.enqueue(patient, 'b', { queue: 'line', id: 'b' });
    expect(again.runId).toBe(b.runId);
    expect((await rejection(engine.start(patient, 'other', { id: 'b' }))).code).toBe('WORKFLOW_ALREADY_STARTED');
    const c = await engine.enqueue(patient, 'c', { queue: 'line', id: 'c' });
    expect((await rejection(c.query({ kind: 'query', name: 'q' } as any))).code).toBe('BUSY');
    await c.cancel('not needed');
    const error = await rejection(c.result());
    expect(CancelledError.is(error)).toBe(true);
    expect(error.message).toContain('not needed');
    await engine.handle(patient, 'a').signal(go, 1);
    expect(await b.result()).toEqual(['b', 7]);
    expect(order).toEqual(['a', 'b']);
  });

  test('waits for its time, expires, times out from its start, and is skipped with what it waits for', async () => {
    const boom = task('boom', () => Promise.reject(new Error('no')), { retry: { maxAttempts: 1 } });
    const sleepy = workflow('sleepy', async (ctx) => {
      const from = ctx.now();
      await ctx.sleep('10m');
      return [ctx.info.startedAt.getTime() - from, ctx.now() - from];
    });
    const engine = await engineOf([patient, sleepy], { queues, tasks: [boom] });
    const seen: string[] = [];
    engine.on('expired', (event: any) => seen.push(`${event.id} ${event.type}`));
    await engine.enqueue(patient, 'a', { queue: 'line', id: 'a' });
    const late = await engine.enqueue(patient, 'b', { queue: 'line', expires: '1h', id: 'b' });
    const failed = await engine.enqueue(boom);
    const skipped = await engine.enqueue(patient, 'c', { after: [failed] });
    const onError = await engine.enqueue(sleepy, undefined, { after: [onFailure(failed)] });
    const timed = await engine.enqueue(patient, 'd', { delay: '2h', timeout: '1h', id: 'd' });
    expect(await engine.explain('d')).toMatchObject({ reason: 'timer' });
    await engine.advance('1h');
    expect((await rejection(late.result())).status).toBe('expired');
    expect((await rejection(skipped.result())).status).toBe('skipped');
    expect(await onError.result()).toEqual([0, 600_000]);
    await engine.advance('90m');
    expect(await statuses(engine, 'b', 'd')).toEqual(['expired', 'running']);
    expect(seen).toEqual(['b expired']);
    await engine.advance('30m');
    expect((await rejection(timed.result())).code).toBe('TIMEOUT');
  });

  test('is refused without a trace where that is sure at once', async () => {
    const engine = await engineOf([patient], { queues });
    await engine.enqueue(patient, 'a', { queue: 'small', id: 'a' });
    await engine.enqueue(patient, 'b', { queue: 'small', id: 'b' });
    const full = await rejection(engine.enqueue(patient, 'c', { queue: 'small', id: 'c' }));
    expect(QueueFullError.is(full) && [full.queue, full.maxPending]).toEqual(['small', 1]);
    expect((await rejection(engine.enqueue(patient, 'c', { queue: 'none', id: 'c' }))).name).toBe('TypeError');
    expect((await rejection(engine.enqueue(patient, 'c', { limits: ['none'], id: 'c' }))).name).toBe('TypeError');
    expect((await rejection(engine.enqueue(patient, 'c', { key: 'c' } as any))).name).toBe('TypeError');
    const attributed = await rejection(engine.enqueue(patient, 'c', { attributes: { a: 1 } } as any));
    expect(attributed.message).toContain("no option 'attributes'");
    expect((await rejection(engine.handle('c').describe())).code).toBe('RUN_NOT_FOUND');
    // What is there already needs no room.
    expect((await engine.enqueue(patient, 'b', { queue: 'small', id: 'b' })).id).toBe('b');
  });

  test('holds its limits until it ends, and continues as new in its slot', async () => {
    const rounds = workflow('rounds', async (ctx, left: number): Promise<any> => {
      await ctx.sleep('1m');
      return left === 0 ? 'done' : ctx.continueAsNew(left - 1);
    });
    const engine = await engineOf([patient, rounds], { limits: { one: { concurrency: 1 } } });
    const first = await engine.enqueue(rounds, 2, { limits: ['one'], id: 'r' });
    await engine.enqueue(patient, 'b', { limits: ['one'], id: 'b' });
    await engine.advance('150s');
    expect(await statuses(engine, 'b')).toEqual(['queued']);
    expect(await engine.explain('b')).toEqual({ reason: 'limit', limit: 'one', key: undefined, short: 1 });
    await engine.advance('30s');
    expect(await first.result()).toBe('done');
    expect(order).toEqual(['b']);
  });

  test('waits for room with its caller, where its queue lets callers wait', async () => {
    const tight = { tight: { concurrency: 1, maxPending: 1 } };
    const engine = await engineOf([patient], { queues: tight });
    await engine.enqueue(patient, 'a', { queue: 'tight', id: 'a' });
    await engine.enqueue(patient, 'b', { queue: 'tight', id: 'b' });
    const third = engine.enqueue(patient, 'c', { queue: 'tight', id: 'c' });
    const fourth = engine.enqueue(patient, 'd', { queue: 'tight', id: 'd' });
    await engine.idle();
    expect(await statuses(engine, 'c', 'd')).toEqual(['queued', 'queued']);
    await engine.handle('d').cancel();
    expect(CancelledError.is(await rejection((await fourth).result()))).toBe(true);
    await engine.handle('a').signal(go, 1);
    expect((await third).id).toBe('c');
  });
});

test('a crash keeps who waits, who runs, and the slots', async () => {
  const engine = await engineOf([patient], { queues, limits: { one: { concurrency: 1 } } });
  for (const id of ['a', 'b', 'c']) await engine.enqueue(patient, id, { queue: 'line', id, limits: ['one'] });
  await engine.crash();
  await engine.idle();
  expect(order).toEqual(['a', 'a']);
  expect(await statuses(engine, 'a', 'b', 'c')).toEqual(['running', 'queued', 'queued']);
  expect(await engine.queue('line').stats()).toMatchObject({ running: 1, pending: 2 });
  expect(await engine.limitUsage('one')).toMatchObject({ used: 1 });
  await engine.handle('b').cancel();
  await engine.handle('a').signal(go, 1);
  await engine.idle();
  await engine.crash();
  await engine.idle();
  expect(await statuses(engine, 'a', 'b', 'c')).toEqual(['completed', 'cancelled', 'running']);
  await engine.handle('c').signal(go, 3);
  expect(await engine.handle('c').result()).toEqual(['c', 3]);
  expect(await engine.queue('line').stats()).toMatchObject({ running: 0, pending: 0 });
  expect(await engine.limitUsage('one')).toMatchObject({ used: 0 });
});

test('a directory is opened again, and the queue goes on where it was', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'fusee-enqueued-'));
  const options = { workflows: [patient], queues, logger: quietLogger().logger };
  const first = await open(dir, options);
  for (const id of ['a', 'b']) await first.enqueue(patient, id, { queue: 'line', id });
  await first.close();
  const second = closing(await open(dir, options));
  expect(await statuses(second, 'a', 'b')).toEqual(['running', 'queued']);
  await second.handle(patient, 'a').signal(go, 1);
  await second.handle(patient, 'b').signal(go, 2);
  expect(await second.handle(patient, 'b').result()).toEqual(['b', 2]);
  expect(order.at(-1)).toBe('b');
  rmSync(dir, { recursive: true });
});

test('tasks that an enqueued workflow waits for have its priority and tenant, unless they say otherwise', async () => {
  const look = task('look', (ctx) => ctx.info.id);
  const low = task('low', (ctx) => ctx.info.id, { priority: 'low' });
  const asks = workflow('asks', async (ctx) => [
    await ctx.run(look),
    await ctx.run(look, undefined, { priority: 'normal', tenant: 'other' }),
    await ctx.run(low),
    (await ctx.enqueue(look)).id,
  ]);
  const engine = await engineOf([asks], { tasks: [look, low] });
  const options = { priority: 'high', tenant: 'acme', deadline: '1h' };
  const run = await engine.enqueue(asks, undefined, options);
  const ids: string[] = await run.result();
  const rows = await Promise.all(ids.map((id) => engine.handle(look, id).describe()));
  expect(rows.map(({ priority, tenant }) => [priority, tenant])).toEqual([
    ['high', 'acme'],
    ['normal', 'other'],
    ['low', 'acme'],
    ['normal', undefined],
  ]);
});
