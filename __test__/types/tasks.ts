/** What the compiler must infer of tasks, and what it must refuse. Compiled, never run. */
import { onFailure, open, task, TaskError, workflow, type TaskHandle, type TaskRef, type WorkflowHandle } from 'fusee';

const is =
  <T>() =>
  <V extends T>(_value: V): void =>
    undefined;

export async function usage(): Promise<void> {
  const resize = task('resize', async (ctx, file: { path: string }) => ({ bytes: file.path.length + ctx.attempt }), {
    limits: ['disk', { name: 'per-path', key: (file) => file.path }],
    retry: { maxAttempts: 5 },
  });
  const nothing = task('nothing', () => 1);
  const sum = workflow('sum', (_ctx, of: number[]) => Promise.resolve(of.length));
  const idle = workflow('idle', async (ctx) => ctx.sleep(1));
  const engine = await open('./data', { tasks: [resize, nothing], limits: { disk: { concurrency: 1 } } });
  const handle = await engine.enqueue(resize, { path: 'a' }, { priority: 'high', delay: '1m', key: 'a' });
  is<number>()((await handle.result()).bytes);
  is<TaskHandle<number>>()(await engine.enqueue(nothing));
  await engine.enqueue(nothing, undefined, { after: [handle, onFailure(handle), 'key'] });
  const many = await engine.enqueueMany(resize, [{ path: 'a' }], (file, index) => ({ key: `${file.path}${index}` }));
  for (const one of many) if (one.status === 'fulfilled') is<TaskHandle<{ bytes: number }>>()(one.value);
  is<TaskHandle<{ bytes: number }>>()(engine.handle(resize, 't-1'));
  const added = await engine.atomic((tx) => {
    const first = tx.enqueue(resize, { path: 'a' }, { key: 'a' });
    return [first, tx.enqueue(nothing, undefined, { after: [onFailure(first)] })] as const;
  });
  is<readonly [TaskHandle<{ bytes: number }>, TaskHandle<number>]>()(added);
  // @ts-expect-error the function is synchronous
  await engine.atomic(async (tx) => tx.enqueue(nothing));
  // @ts-expect-error a live task of the key stands for it
  await engine.atomic((tx) => tx.enqueue(nothing, undefined, { dedupe: { mode: 'error' } }));
  is<boolean>()((await engine.queue('default').stats()).paused);

  workflow('resizes', async (ctx, path: string) => {
    is<number>()((await ctx.run(resize, { path })).bytes);
    is<number>()(await ctx.run(nothing, undefined, { onParentClose: 'abandon', priority: 'low' }));
    const ref = await ctx.enqueue(resize, { path }, { key: path });
    is<TaskRef<{ bytes: number }>>()(ref);
    await ctx.enqueue(nothing, undefined, { after: [ref, onFailure(ref)] });
    is<number>()((await ref.result()).bytes);
    const flow = workflow('flow', async (ctx, of: { path: string }) => of.path.length);
    const bare = workflow('bare', async () => 'x');
    const run = await engine.enqueue(
      flow,
      { path: 'a' },
      { id: 'a', queue: 'default', expires: '1h', after: [handle] },
    );
    is<WorkflowHandle<number>>()(run);
    is<string>()(await (await engine.enqueue(bare)).result());
    // @ts-expect-error: keys are for tasks, workflows have ids
    await engine.enqueue(bare, undefined, { key: 'a' });
    // @ts-expect-error: a workflow runs where its shard is
    await engine.enqueue(bare, undefined, { labels: { gpu: 'a' } });
    // @ts-expect-error: the input has another type
    await engine.enqueue(flow, { path: 1 });

    // @ts-expect-error: the input has another type
    await ctx.run(resize, { path: 1 });
    // @ts-expect-error: a task is not terminated
    await ctx.run(nothing, undefined, { onParentClose: 'terminate' });
    // @ts-expect-error: an enqueued task is nobody's child
    await ctx.enqueue(nothing, undefined, { onParentClose: 'cancel' });
  });

  // @ts-expect-error: the input has another type
  await engine.enqueue(resize, { path: 1 });
  // @ts-expect-error: a task with an input needs one
  await engine.enqueue(resize);
  // @ts-expect-error: there is no such priority
  await engine.enqueue(nothing, undefined, { priority: 'urgent' });
  // @ts-expect-error: a task is not paused
  task('paused', () => 1, { retry: { onExhausted: 'pause' } });

  await open('./data', {
    tasks: [resize, nothing],
    schedules: {
      nightly: { cron: '0 3 * * *', timezone: 'Europe/Berlin', run: resize, input: { path: 'a' }, overlap: 'queue' },
      often: { every: '5m', run: nothing, options: { priority: 'low', expires: '1m' } },
    },
  });
  // @ts-expect-error: the input is missing
  await open('./data', { schedules: { bad: { cron: '@daily', run: resize } } });
  // @ts-expect-error: the input has another type
  await open('./data', { schedules: { bad: { cron: '@daily', run: resize, input: { path: 1 } } } });
  await engine.schedules.upsert('s', { every: '1h', run: resize, input: { path: 'a' } });
  // @ts-expect-error: the schedule gives the key
  await engine.schedules.upsert('s', { every: '1h', run: nothing, options: { key: 'k' } });
  is<Date[]>()(await engine.schedules.preview({ cron: '@daily' }, 3));
  is<(TaskHandle | WorkflowHandle)[]>()(await engine.schedules.backfill('s', { from: 0, to: new Date() }));
  is<unknown>()(await (await engine.schedules.trigger('s')).result());
  const sums = await engine.start(sum, [1]);
  await engine.enqueue(nothing, undefined, { after: [sums, onFailure(sums), engine.handle('x')] });
  await engine.enqueue(idle, undefined, { after: [sums] });
  await open('./data', {
    workflows: [sum, idle],
    schedules: {
      sums: {
        every: '1h',
        run: sum,
        input: [1, 2],
        options: { id: 'sum-{time}', queue: 'q', timeout: '1h', version: 2 },
      },
      idles: { cron: '@daily', run: idle },
      tasks: { cron: '@daily', run: nothing },
    },
  });
  // @ts-expect-error: the input is missing
  await open('./data', { schedules: { bad: { cron: '@daily', run: sum } } });
  // @ts-expect-error: the input has another type
  await engine.schedules.upsert('s', { every: '1h', run: sum, input: 'a' });
  // @ts-expect-error: an id is used once
  await engine.schedules.upsert('s', { every: '1h', run: idle, options: { idReusePolicy: 'allowDuplicate' } });
  // @ts-expect-error: labels are for tasks
  await engine.schedules.upsert('s', { every: '1h', run: idle, options: { labels: { gpu: 'a' } } });
  const [row] = await engine.schedules.list();
  is<Date | undefined>()(row?.nextAt);

  const error: unknown = undefined;
  if (TaskError.is(error)) is<string>()(error.status);
}
