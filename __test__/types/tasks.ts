/** What the compiler must infer of tasks, and what it must refuse. Compiled, never run. */
import { onFailure, open, task, TaskError, type TaskHandle } from 'fusee';

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
  const engine = await open('./data', { tasks: [resize, nothing], limits: { disk: { concurrency: 1 } } });
  const handle = await engine.enqueue(resize, { path: 'a' }, { priority: 'high', delay: '1m', key: 'a' });
  is<number>()((await handle.result()).bytes);
  is<TaskHandle<number>>()(await engine.enqueue(nothing));
  await engine.enqueue(nothing, undefined, { after: [handle, onFailure(handle), 'key'] });
  const many = await engine.enqueueMany(resize, [{ path: 'a' }], (file, index) => ({ key: `${file.path}${index}` }));
  for (const one of many) if (one.status === 'fulfilled') is<TaskHandle<{ bytes: number }>>()(one.value);
  is<TaskHandle<{ bytes: number }>>()(engine.handle(resize, 't-1'));
  is<boolean>()((await engine.queue('default').stats()).paused);

  // @ts-expect-error: the input has another type
  await engine.enqueue(resize, { path: 1 });
  // @ts-expect-error: a task with an input needs one
  await engine.enqueue(resize);
  // @ts-expect-error: there is no such priority
  await engine.enqueue(nothing, undefined, { priority: 'urgent' });
  // @ts-expect-error: a task is not paused
  task('paused', () => 1, { retry: { onExhausted: 'pause' } });

  const error: unknown = undefined;
  if (TaskError.is(error)) is<string>()(error.status);
}
