import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NonRetryableError, QueueFullError, TaskError, onFailure, open, task } from 'fusee';
import { engineOf, quietLogger, rejection } from './support/engines';

const double = task('double', (_ctx, n: number) => n * 2);

describe('a task', () => {
  test('is enqueued, runs, and gives its result to whoever asks', async () => {
    const engine = await engineOf([], { tasks: [double] });
    const handle = await engine.enqueue(double, 21);
    expect(handle).toMatchObject({ kind: 'task', id: 't-1', duplicate: false });
    expect(await handle.result()).toBe(42);
    expect(await engine.handle(double, 't-1').result()).toBe(42);
    expect(await handle.describe()).toMatchObject({
      type: 'double',
      queue: 'default',
      status: 'completed',
      attempts: 1,
    });
    expect(await engine.explainTask(handle)).toEqual({ reason: 'ended', status: 'completed' });
  });

  test('is tried again after its wait, under the virtual clock, with one key for all attempts', async () => {
    const keys = new Set<string>();
    const times: number[] = [];
    const flaky = task(
      'flaky',
      async (ctx, input: string) => {
        keys.add(ctx.idempotencyKey);
        times.push(engine.now());
        if (ctx.attempt < 3) throw new Error(`no ${ctx.attempt}`);
        return `${input} ${ctx.attempt}`;
      },
      { retry: { maxAttempts: 3, initialInterval: '1m', maxInterval: '1h', jitter: false } },
    );
    const engine = await engineOf([], { tasks: [flaky] });
    const handle = await engine.enqueue(flaky, 'yes', { delay: '10m' });
    await engine.advance('1h');
    expect(await handle.result()).toBe('yes 3');
    expect(keys.size).toBe(1);
    const begin = Date.UTC(2025, 0, 1);
    expect(times.map((time) => (time - begin) / 60_000)).toEqual([10, 11, 13]);
    const { history } = await handle.describe();
    expect(history.map(({ error }: any) => error.message)).toEqual(['no 1', 'no 2']);
  });

  test('that fails to the end is dead, and is started again by a filter', async () => {
    let isBroken = true;
    const broken = task('broken', () => {
      if (isBroken) throw new RangeError('out of paper');
      return 'printed';
    });
    const engine = await engineOf([], { tasks: [broken] });
    const handle = await engine.enqueue(broken, undefined, { retry: { maxAttempts: 1 } });
    const error = await rejection(handle.result());
    expect(TaskError.is(error)).toBe(true);
    expect(error).toMatchObject({ code: 'TASK_FAILED', id: 't-1', status: 'dead', attempts: 1 });
    expect(error.cause).toBeInstanceOf(RangeError);
    isBroken = false;
    expect((await rejection(engine.retry({}))).message).toContain('not empty');
    expect(await engine.retry({ status: 'dead', type: broken })).toBe(1);
    expect(await handle.result()).toBe('printed');
  });

  test('without retries of its own goes by those of its queue, also where code decides', async () => {
    const asked: string[] = [];
    const picky = task('picky', (ctx, name: string) => {
      throw Object.assign(new Error(`${name} ${ctx.attempt}`), { name });
    });
    const retry = {
      maxAttempts: 2,
      initialInterval: 1,
      nonRetryable: ['Never'],
      shouldRetry: (error: any) => asked.push(error.message) > 0 && error.name !== 'Stop',
    };
    const engine = await engineOf([], { tasks: [picky], queues: { other: { retry } } });
    const handles = await Promise.all(
      ['Never', 'Stop', 'Go'].map((name) => engine.enqueue(picky, name, { queue: 'other' })),
    );
    await engine.advance('1m');
    const ends = await Promise.all(handles.map((handle) => handle.describe()));
    expect(ends.map(({ status, attempts }: any) => [status, attempts])).toEqual([
      ['failed', 1],
      ['failed', 1],
      ['dead', 2],
    ]);
    expect(asked).toEqual(['Stop 1', 'Go 1', 'Go 2']);
    const refusal = await rejection(engine.enqueue(picky, 'x', { retry: { nonRetryable: ['Never'] } }));
    expect(refusal.message).toContain('give shouldRetry and nonRetryable to task()');
  });

  test('that throws what no retry mends fails at once', async () => {
    const never = task('never', () => {
      throw new NonRetryableError('refused');
    });
    const engine = await engineOf([], { tasks: [never] });
    const error = await rejection((await engine.enqueue(never)).result());
    expect(error).toMatchObject({ status: 'failed', attempts: 1 });
  });

  test('is aborted when it is cancelled or takes too long', async () => {
    const reasons: unknown[] = [];
    const endless = task('endless', (ctx) => {
      return new Promise<void>((_, reject) => {
        ctx.signal.addEventListener('abort', () => {
          reasons.push(ctx.signal.reason.code);
          reject(ctx.signal.reason);
        });
      });
    });
    const engine = await engineOf([], { tasks: [endless] });
    const cancelled = await engine.enqueue(endless);
    const late = await engine.enqueue(endless, undefined, { timeout: '1s', retry: { maxAttempts: 1 } });
    await engine.advance(500);
    await cancelled.cancel('enough');
    expect(await rejection(cancelled.result())).toMatchObject({ code: 'CANCELLED', reason: 'enough' });
    await engine.advance('1s');
    expect(await rejection(late.result())).toMatchObject({ status: 'dead' });
    expect(reasons).toEqual(['CANCELLED', 'TIMEOUT']);
  });

  test('that was interrupted by a crash runs again and ends once (LAW-7)', async () => {
    const attempts: number[] = [];
    const slow = task('slow', async (ctx, n: number) => {
      attempts.push(ctx.attempt);
      if (ctx.attempt === 1) await new Promise(() => {});
      return n;
    });
    const engine = await engineOf([], { tasks: [slow] });
    const handle = await engine.enqueue(slow, 5);
    const result = handle.result();
    await engine.advance(1);
    await engine.crash();
    expect(await result).toBe(5);
    expect(attempts).toEqual([1, 2]);
  });

  test('postpones itself without being counted, and says how far it is', async () => {
    let calls = 0;
    const patient = task('patient', (ctx) => {
      ctx.progress(`call ${++calls}`);
      if (calls < 6) return ctx.postpone('1m');
      return 'done';
    });
    const engine = await engineOf([], { tasks: [patient] });
    const handle = await engine.enqueue(patient);
    await engine.advance('2m');
    expect(await handle.describe()).toMatchObject({ status: 'retrying', progress: 'call 3' });
    await engine.advance('3m');
    expect(await handle.result()).toBe('done');
  });
});

describe('queues', () => {
  test('start the more important first, one at a time', async () => {
    const order: string[] = [];
    const note = task('note', (_ctx, name: string) => void order.push(name), { queue: 'one' });
    const engine = await engineOf([], { tasks: [note], queues: { one: { concurrency: 1 } } });
    await engine.queue('one').pause();
    await engine.enqueueMany(note, ['a', 'b', 'c'], (_: string, i: number) => ({
      priority: i === 2 ? 'high' : 'normal',
    }));
    expect(await engine.queue('one').stats()).toMatchObject({ paused: true, pending: 3, ready: 3, running: 0 });
    await engine.queue('one').resume();
    await engine.idle();
    expect(order).toEqual(['c', 'a', 'b']);
  });

  test('refuse what is too much, each submission for itself', async () => {
    const engine = await engineOf([], { tasks: [double], queues: { small: { maxPending: 1, onFull: 'reject' } } });
    await engine.queue('small').pause();
    const settled = await engine.enqueueMany(double, [1, 2, () => 3], { queue: 'small' });
    expect(settled.map(({ status }: any) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
    expect(QueueFullError.is(settled[1].reason)).toBe(true);
    expect(settled[1].reason).toMatchObject({ queue: 'small', maxPending: 1 });
    expect(settled[2].reason.message).toContain('cannot be recorded');
    expect(await engine.cancel({ queue: 'small' })).toBe(1);
  });

  test('keep to keys, order, dependencies and keyed limits', async () => {
    let running = 0;
    let most = 0;
    const busy = task(
      'busy',
      async (_ctx, _user: string) => {
        most = Math.max(most, ++running);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
      },
      { limits: [{ name: 'per-user', key: (user: string) => user }] },
    );
    const last = task('last', (ctx) => ctx.parents.map(({ id, status }) => `${id} ${status}`));
    const fails = task('fails', () => {
      throw new NonRetryableError('as it should');
    });
    const engine = await engineOf([], {
      tasks: [busy, last, fails, double],
      limits: { 'per-user': { concurrency: 1 } },
    });
    await engine.enqueueMany(busy, ['ada', 'ada', 'ada']);
    await engine.idle();
    expect(most).toBe(1);
    expect(await engine.limitUsage('per-user', 'ada')).toMatchObject({
      capacity: 1,
      used: 0,
      available: 1,
      waiting: 0,
    });
    const failing = await engine.enqueue(fails, undefined, { delay: '1s' });
    const after = await engine.enqueue(last, undefined, { after: [onFailure(failing)] });
    expect(await engine.explainTask(after)).toEqual({ reason: 'blocked', by: [failing.id] });
    await engine.advance('1s');
    expect(await after.result()).toEqual([`${failing.id} failed`]);
    const first = await engine.enqueue(double, 1, { key: 'k', delay: '1m' });
    const second = await engine.enqueue(double, 2, { key: 'k' });
    expect(second).toMatchObject({ id: first.id, duplicate: true });
  });

  test('say what is wrong with what they are given', async () => {
    const engine = await engineOf([], { tasks: [double] });
    const stranger = task('stranger', () => 1);
    expect((await rejection(engine.enqueue(stranger))).code).toBe('UNKNOWN_DEFINITION');
    expect((await rejection(engine.enqueue(double, 1, { prio: 1 }))).message).toContain("no option 'prio'");
    expect((await rejection(engine.enqueue(double, 1, { queue: 'nowhere' }))).message).toContain('not defined');
    expect((await rejection(engine.enqueue(double, 1, { key: 't-1' }))).message).toContain('cannot look like the id');
    expect(await rejection(engine.handle(double, 't-9').describe())).toMatchObject({ code: 'RUN_NOT_FOUND' });
    expect(() => engine.queue('nowhere')).toThrow("there is no queue 'nowhere'");
  });
});

test('tasks and their results are there after a close (LAW-3)', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'fusee-tasks-'));
  const options = { tasks: [double], logger: quietLogger().logger };
  const first = await open(dir, options);
  const done = await first.enqueue(double, 1);
  expect(await done.result()).toBe(2);
  await first.enqueue(double, 4, { key: 'later', delay: '300ms' });
  await first.close();
  const second = await open(dir, options);
  expect(await second.handle(double, done.id).result()).toBe(2);
  expect(await second.handle(double, 'later').result()).toBe(8);
  await second.close();
  rmSync(dir, { recursive: true });
});
