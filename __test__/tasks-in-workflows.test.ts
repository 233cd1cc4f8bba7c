import { CancelledError, NonRetryableError, QueueFullError, TaskError, task, workflow } from 'fusee';
import { crashEverywhere, testEngine } from 'fusee/testing';
import { quietLogger } from './support/engines';

const quiet = { logger: quietLogger().logger };

describe('tasks in workflows', () => {
  const double = task('double', (ctx, n: number) => n * 2);
  const twice = workflow('twice', async (ctx: any, n: number) => {
    const once = await ctx.run(double, n);
    return ctx.run(double, once);
  });

  test('ctx.run gives what the task returned', async () => {
    const t = await testEngine({ ...quiet, workflows: [twice], tasks: [double] });
    expect(await t.execute(twice, 3)).toBe(12);
    await t.close();
  });

  test('a task that fails rejects with what it threw; one that is retried is awaited through its retries', async () => {
    let calls = 0;
    const broken = task('broken', () => {
      throw new NonRetryableError('no');
    });
    const flaky = task('flaky', () => {
      calls += 1;
      if (calls < 3) throw new Error(`try ${calls}`);
      return calls;
    });
    const both = workflow('both', async (ctx: any) => {
      const tries = await ctx.run(flaky);
      try {
        await ctx.run(broken);
      } catch (error) {
        if (!TaskError.is(error)) throw error;
        return [tries, error.status, error.attempts, (error.cause as Error).message];
      }
      return null;
    });
    const t = await testEngine({ ...quiet, workflows: [both], tasks: [broken, flaky] });
    const run = await t.start(both);
    await t.advance('1h');
    expect(await run.result()).toEqual([3, 'failed', 1, 'no']);
    await t.close();
  });

  test('ctx.enqueue gives a handle with an id, whose result and cancel are asked for later', async () => {
    const slow = task('slow', (ctx) => new Promise((_, reject) => ctx.signal.addEventListener('abort', reject)));
    const fan = workflow('fan', async (ctx: any) => {
      const [a, again] = await Promise.all([
        ctx.enqueue(double, 1, { key: 'a', delay: '1m' }),
        ctx.enqueue(double, 2, { key: 'a' }),
      ]);
      const b = await ctx.enqueue(slow);
      await b.cancel('not needed');
      const end = await b.result().catch((error: unknown) => (CancelledError.is(error) ? error.reason : error));
      return [a.id === again.id, a.duplicate, again.duplicate, await a.result(), end];
    });
    const engine = await testEngine({ ...quiet, workflows: [fan], tasks: [double, slow] });
    const run = await engine.start(fan);
    await engine.advance('1h');
    expect(await run.result()).toEqual([true, false, true, 2, 'not needed']);
    await engine.close();
  });

  test('what a queue refuses is thrown, and what waits for room waits', async () => {
    const held = task('held', (ctx, ms: number) => ctx.postpone(ms), { queue: 'narrow' });
    const queues = {
      narrow: { concurrency: 1, maxPending: 1, onFull: 'reject' as const },
      roomy: { concurrency: 1, maxPending: 1 },
    };
    const order: number[] = [];
    const note = task('note', (ctx, n: number) => void order.push(n), { queue: 'roomy' });
    const full = workflow('full', async (ctx: any) => {
      await ctx.enqueue(held, 1, { delay: '1h' });
      const refused = await ctx.enqueue(held, 2, { delay: '1h' }).catch((error: unknown) => error);
      await Promise.all([1, 2, 3, 4, 5].map((n) => ctx.run(note, n)));
      return [QueueFullError.is(refused) && refused.queue];
    });
    const t = await testEngine({ ...quiet, workflows: [full], tasks: [held, note], queues });
    expect(await t.execute(full)).toEqual(['narrow']);
    expect(order).toEqual([1, 2, 3, 4, 5]);
    await t.close();
  });

  test('the end of a run cancels the tasks that it awaits, and leaves the others', async () => {
    const aborted: string[] = [];
    const endless = task(
      'endless',
      (ctx, name: string) =>
        new Promise((_, reject) =>
          ctx.signal.addEventListener('abort', () => {
            aborted.push(name);
            reject(ctx.signal.reason);
          }),
        ),
    );
    const waits = workflow('waits', async (ctx: any) => {
      await ctx.enqueue(endless, 'detached');
      const loose = ctx.run(endless, 'loose', { onParentClose: 'abandon' });
      await Promise.all([loose, ctx.run(endless, 'bound')]);
    });
    const t = await testEngine({ ...quiet, workflows: [waits], tasks: [endless], replayOnClose: false });
    for (const end of ['cancel', 'terminate'] as const) {
      aborted.length = 0;
      const run = await t.start(waits);
      await t.advance('1s');
      await run[end]('enough');
      await expect(run.result()).rejects.toThrow();
      await t.advance('1s');
      expect(aborted).toEqual(['bound']);
    }
    await t.close({ grace: 0 });
  });

  test('a scope that is cancelled cancels the tasks that it awaits', async () => {
    const endless = task('endless', (ctx) => new Promise((_, reject) => ctx.signal.addEventListener('abort', reject)));
    const limited = workflow('limited', (ctx: any) =>
      ctx.scope(() => ctx.run(endless), { timeout: '1m' }).catch((error: Error) => error.name),
    );
    const t = await testEngine({ ...quiet, workflows: [limited], tasks: [endless] });
    const run = await t.start(limited);
    await t.advance('2m');
    expect(await run.result()).toBe('TimeoutError');
    expect((await t.handle(endless, 't-1').describe()).status).toBe('cancelled');
    await t.close();
  });

  test('LAW-3, LAW-5, LAW-7: wherever it is cut, each task exists once and its result arrives once', async () => {
    const done = new Map<string, number>();
    const charge = task('charge', (ctx, n: number) => {
      done.set(ctx.idempotencyKey, n);
      return n + 1;
    });
    const order = workflow('order', async (ctx: any, n: number) => {
      const one = await ctx.run(charge, n);
      const [two, three] = await Promise.all([ctx.run(charge, one), ctx.step('s', () => 5)]);
      const later = await ctx.enqueue(charge, 40, { delay: '1h' });
      return [one, two, three, await later.result()];
    });
    const { crashes } = await crashEverywhere(
      { workflow: order, input: 1, options: { ...quiet, tasks: [charge] } },
      {
        expect: (outcome) => {
          expect(outcome).toEqual({ status: 'completed', result: [2, 3, 5, 41] });
          // A crash may cost a life of the same task, never a second task.
          expect([...done.values()].sort((a, b) => a - b)).toEqual([1, 2, 40]);
          done.clear();
        },
      },
    );
    expect(crashes).toBeGreaterThan(20);
  });
});
