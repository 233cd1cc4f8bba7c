import { resolve } from 'node:path';
import { runScript } from './support/scripts';

const ordering = resolve(__dirname, 'fixtures/threads/ordering.cjs');
const tasks = resolve(__dirname, 'fixtures/threads/tasks.cjs');

async function run(body: string): Promise<any> {
  const ended = await runScript(`
    const { deadlyOnce } = require(${JSON.stringify(ordering)});
    const { task } = fusee;
    const { half, labelled, deadly, slow, asks, quarter } = require(${JSON.stringify(tasks)});
    const lives = new SharedArrayBuffer(4);
    const counts = new SharedArrayBuffer(16);
    const seen = new Int32Array(counts);
    const queues = { narrow: { concurrency: 1 } };
    const workers = { count: 2, module: ${JSON.stringify(tasks)}, workerData: { counts } };
    const ids = Array.from({ length: 20 }, (_, n) => 'id' + n);
    const print = (value) => console.log(JSON.stringify(value ?? null));
    const until = async (holds) => { while (!holds()) await new Promise((resolve) => setTimeout(resolve, 2)); };
    ${body}
  `);
  expect({ ...ended, out: '' }).toMatchObject({ code: 0, signal: null });
  return JSON.parse(ended.out.trim().split('\n').at(-1) ?? 'null');
}

test('tasks that the module exports run on the workers, also those that the opener was given', async () => {
  const { own, results } = await run(`
    const engine = await open(dir, { logger: quiet, workers, queues, tasks: [half] });
    const many = await engine.enqueueMany(half, ids.map((_, n) => 2 * n));
    const own = await Promise.all(many.map(({ value }) => value.result()));
    const results = await Promise.all(ids.map((id, n) => engine.execute(quarter, 4 * n, { id })));
    print({ own, results });
    await engine.close();
  `);
  expect(own.map(({ value }: any) => value)).toEqual(Array.from({ length: 20 }, (_, n) => n));
  expect(new Set(own.map(({ thread }: any) => thread)).size).toBe(2);
  expect(results.map((result: any) => result.value)).toEqual(Array.from({ length: 20 }, (_, n) => n));
  const threads = [...own.map(({ thread }: any) => thread), ...results.flatMap((result: any) => result.taskThreads)];
  expect(threads.every((thread: number) => thread > 0)).toBe(true);
});

test('a task that the module does not export runs on the thread that opened the engine', async () => {
  const told = await run(`
    const here = task('here', () => require('node:worker_threads').threadId);
    const engine = await open(dir, { logger: quiet, workers, queues, tasks: [here] });
    print([await (await engine.enqueue(here)).result(), (await (await engine.enqueue(half, 2)).result()).thread > 0]);
    await engine.close();
  `);
  expect(told).toEqual([0, true]);
});

test('a declared schedule may run what only the module of the workers exports', async () => {
  const told = await run(`
    const schedules = { halves: { run: half, every: '1h', input: 4 }, quarters: { run: quarter, every: '1h', input: 8 } };
    const engine = await open(dir, { logger: quiet, workers, queues, schedules });
    const values = [];
    for (const name of ['halves', 'quarters']) values.push((await (await engine.schedules.trigger(name)).result()).value);
    print(values);
    await engine.close();
  `);
  expect(told).toEqual([2, 2]);
});

test('an open that is refused for one declared schedule has recorded and removed none', async () => {
  const told = await run(`
    const good = { run: half, every: '1h', input: 4 };
    const kept = await open(dir, { logger: quiet, workers, queues, schedules: { kept: good } });
    await kept.close();
    const schedules = { good, nightly: { run: task('gone', () => 1), every: '1h' } };
    const refused = await open(dir, { logger: quiet, workers, queues, schedules }).catch((error) => error.message);
    const engine = await open(dir, { logger: quiet, workers, queues });
    print([/nightly/.test(refused), (await engine.schedules.list()).map(({ name }) => name)]);
    await engine.close();
  `);
  expect(told).toEqual([true, ['kept']]);
});

test('a declared schedule of what neither the module nor the options have is refused by name', async () => {
  const told = await run(`
    const { workflow } = fusee;
    const said = [];
    for (const run of [task('gone', () => 1), workflow('half', async () => 1)]) {
      const schedules = { nightly: { run, every: '1h' } };
      said.push(await open(dir, { logger: quiet, workers, queues, schedules }).then(() => 'open', (error) => [error.name, error.message]));
    }
    print(said);
  `);
  expect(told).toEqual([
    [
      'TypeError',
      expect.stringMatching(
        /schedule 'nightly' runs task 'gone', .* workers.module exports, nor among the option tasks/,
      ),
    ],
    ['TypeError', expect.stringMatching(/schedule 'nightly' starts workflow 'half', .* workers.module exports/)],
  ]);
});

test('a worker enqueues, waits, lists and asks queues as the opener does', async () => {
  const told = await run(`
    const engine = await open(dir, { logger: quiet, workers, queues });
    print(await (await engine.enqueue(asks, 10)).result());
    await engine.close();
  `);
  expect(told).toMatchObject({ value: 5, pending: 0, concurrency: 10, values: [1, 2], listed: ['of-10'] });
});

test('a worker that dies in a task: the attempt goes to another thread at once, the first time at no cost', async () => {
  const told = await run(`
    const engine = await open(dir, { logger: quiet, workers, queues });
    const retry = { maxAttempts: 2, initialInterval: 1, jitter: false };
    const once = await (await engine.enqueue(deadly, 2, { retry })).result();
    seen[0] = 0;
    const why = await (await engine.enqueue(deadly, 9, { retry })).result().catch((error) => error.status);
    print({ once, calls: seen[0], why });
    await engine.close();
  `);
  expect(told.once.attempt).toBe(3);
  expect(told).toMatchObject({ calls: 3, why: 'dead' });
});

test('labels: a task waits for a thread that carries them', async () => {
  const told = await run(`
    const labels = { gpu: 'a100' };
    const engine = await open(dir, { logger: quiet, queues, workers: { ...workers, labels } });
    const fits = await (await engine.enqueue(labelled, undefined, { labels })).result();
    const waits = await engine.enqueue(labelled, undefined, { labels: { gpu: 'b200' } });
    const { reason } = await engine.explainTask(waits);
    // It holds up nobody in its queue of one slot.
    const next = await (await engine.enqueue(labelled)).result();
    await engine.close();
    const again = await open(dir, { logger: quiet, queues, workers: { ...workers, labels: { gpu: 'b200' } } });
    const later = await again.handle(labelled, waits.id).result();
    print({ fits, reason, next, later });
    await again.close();
  `);
  expect(told).toMatchObject({
    fits: { attempt: 1 },
    reason: 'labels',
    next: { attempt: 1 },
    later: { attempt: 1 },
  });
});

test('a cancel aborts the signal of a task on a worker, and a close gives back what it cuts at no cost', async () => {
  const told = await run(`
    const engine = await open(dir, { logger: quiet, workers, queues });
    const first = await engine.enqueue(slow);
    await until(() => seen[1] === 1);
    await first.cancel();
    await until(() => seen[3] === 1);
    const second = await engine.enqueue(slow, undefined, { retry: { maxAttempts: 1 } });
    await until(() => seen[1] === 2);
    await engine.close({ grace: 0 });
    seen[2] = 1;
    const again = await open(dir, { logger: quiet, workers, queues });
    const thread = await again.handle(slow, second.id).result();
    print({ first: (await first.id), aborted: seen[3] > 0, thread: thread > 0 });
    await again.close();
  `);
  expect(told).toEqual({ first: 't-1', aborted: true, thread: true });
});

test('a worker that ends while its run waits for a task: the task runs once, and its result comes to the next life', async () => {
  const told = await run(`
    const { half: ofOrdering } = require(${JSON.stringify(ordering)});
    const ofRuns = { count: 2, module: ${JSON.stringify(ordering)}, workerData: { lives } };
    const engine = await open(dir, { logger: quiet, workers: ofRuns });
    const value = await engine.execute(deadlyOnce, 200, { id: 'a' });
    const first = await engine.handle(ofOrdering, "t-1").describe();
    const second = await engine.handle(ofOrdering, "t-2").describe().catch((error) => error.name);
    await engine.close();
    print({ value, status: first.status, second, deaths: new Int32Array(lives)[0] });
  `);
  expect(told).toEqual({ value: 100, status: 'completed', second: 'RunNotFoundError', deaths: 2 });
});

test('what cannot be meant is refused when it opens', async () => {
  const told = await run(`
    const why = (options) => open(dir, { logger: quiet, ...options }).then(() => 'opened', (error) => error.message);
    print([
      await why({ workers }),
      await why({ workers: { ...workers, labels: { gpu: 1 } }, queues }),
      await why({ workers, queues: { narrow: { retry: { shouldRetry: () => true } } } }),
    ]);
  `);
  expect(told[0]).toContain("task 'labelled' goes to queue 'narrow', which is not among the option queues");
  expect(told[1]).toContain("label 'gpu'");
  expect(told[2]).toContain('cannot be given to workers');
});

test('workflows that are enqueued start on the workers, one after the other, over the death of one', async () => {
  const { values, running, left } = await run(`
    const engine = await open(dir, { logger: quiet, workers, queues });
    const runs = await Promise.all(
      ids.map((id, n) => engine.enqueue(quarter, 4 * n, { id, queue: 'narrow', priority: n % 10 })),
    );
    let most = 0;
    const count = async () => { most = Math.max(most, await engine.count({ status: 'running' })); };
    const results = [];
    for (const [n, one] of runs.entries()) {
      await count();
      if (n === 5) await engine.enqueue(deadly, 1);
      results.push(await one.result());
    }
    print({ values: results.map(({ value }) => value), running: most, left: await engine.queue('narrow').stats() });
    await engine.close();
  `);
  expect(values).toEqual(Array.from({ length: 20 }, (_, n) => n));
  expect(running).toBeLessThanOrEqual(1);
  expect(left).toMatchObject({ running: 0, pending: 0 });
});

test('a schedule starts workflows that the module of the workers exports', async () => {
  const told = await run(`
    const schedules = { yearly: { cron: '@yearly', run: quarter, input: 8, options: { queue: 'narrow' } } };
    const engine = await open(dir, { logger: quiet, workers, queues, schedules });
    const run = await engine.schedules.trigger('yearly');
    const row = await engine.schedules.describe('yearly');
    print({ kind: run.kind, named: run.id.startsWith('yearly@'), value: (await run.result()).value, row: row.kind });
    await engine.close();
  `);
  expect(told).toEqual({ kind: 'workflow', named: true, value: 2, row: 'workflow' });
});
