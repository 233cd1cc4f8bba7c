import { task } from 'fusee';
import { engineOf, rejection } from './support/engines';

const COUNT = 2_500;

const work = task('work', (_ctx, n: number) => n);
const fails = task('fails', () => Promise.reject(new Error('no')), { retry: { maxAttempts: 1 } });

const many = (engine: any, of: any, options: object): Promise<any> =>
  engine.enqueueMany(
    of,
    Array.from({ length: COUNT }, (_, n) => n),
    options,
  );
const counted = async (engine: any, filter: object): Promise<number> => {
  let tasks = 0;
  for await (const _ of engine.tasks(filter)) tasks += 1;
  return tasks;
};

test('thousands of tasks are cancelled in slices, and others come in between', async () => {
  const engine = await engineOf([], { tasks: [work], queues: { bulk: { concurrency: 4 } } });
  await engine.queue('bulk').pause();
  await many(engine, work, { queue: 'bulk', tenant: 'acme' });
  await engine.enqueue(work, 1, { queue: 'bulk', tenant: 'other' });
  const order: string[] = [];
  const cancelling = engine.cancel({ tenant: 'acme' }, 'moved away').then((count: number) => {
    order.push('cancelled');
    return count;
  });
  // It was not there when the cancel began.
  const later = await engine.enqueue(work, 2, { queue: 'bulk', tenant: 'acme' });
  order.push('enqueued');
  expect(await cancelling).toBe(COUNT);
  expect(order).toEqual(['enqueued', 'cancelled']);
  expect(await later.describe()).toMatchObject({ status: 'queued' });
  expect((await engine.queue('bulk').stats()).pending).toBe(2);
  expect((await rejection(engine.handle(work, 't-1').result())).message).toContain('moved away');
  expect(await engine.cancel({ tenant: 'acme' })).toBe(1);
  expect(await engine.cancel({ tenant: 'nobody' })).toBe(0);
});

test('thousands of tasks get another priority, or their attempts back', async () => {
  const engine = await engineOf([], { tasks: [work, fails], queues: { bulk: { concurrency: 100 } } });
  await many(engine, fails, { queue: 'bulk' });
  await engine.idle();
  await engine.queue('bulk').pause();
  expect(await engine.retry({ status: ['failed', 'dead'] })).toBe(COUNT);
  expect(await counted(engine, { status: 'queued' })).toBe(COUNT);
  expect(await engine.reprioritize({ type: fails }, 'low')).toBe(COUNT);
  expect(await engine.handle(fails, 't-2500').describe()).toMatchObject({ priority: 'low' });
  expect(await engine.reprioritize('t-7', 'critical')).toBe(true);
  expect(await engine.handle(fails, 't-7').describe()).toMatchObject({ priority: 'critical' });
  expect((await rejection(engine.reprioritize({}, 'low'))).message).toContain('a filter that is not empty');
  expect((await rejection(engine.reprioritize('t-9999', 'low'))).code).toBe('RUN_NOT_FOUND');
  expect((await rejection(engine.reprioritize({ type: fails }, 'best'))).name).toBe('RangeError');
});

test('a crash between the slices leaves it done to the first ones', async () => {
  const engine = await engineOf([], { tasks: [work], queues: { bulk: { concurrency: 4 } } });
  await engine.queue('bulk').pause();
  await many(engine, work, { queue: 'bulk' });
  const cancelling = rejection(engine.cancel({ queue: 'bulk' }));
  await engine.crash();
  await cancelling;
  const done = await counted(engine, { status: 'cancelled' });
  const numbers: number[] = [];
  for await (const { id } of engine.tasks({ status: 'cancelled' })) numbers.push(Number(id.slice(2)));
  expect(Math.max(0, ...numbers)).toBeLessThanOrEqual(1_000);
  expect(await engine.cancel({ queue: 'bulk' })).toBe(COUNT - done);
});
