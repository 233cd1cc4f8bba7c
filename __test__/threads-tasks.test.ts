import { resolve } from 'node:path';
import { runScript } from './support/scripts';

const module_ = resolve(__dirname, 'fixtures/threads/ordering.cjs');

async function run(body: string): Promise<any> {
  const ended = await runScript(`
    const { half, quarter, deadlyOnce } = require(${JSON.stringify(module_)});
    const lives = new SharedArrayBuffer(4);
    const workers = { count: 2, module: ${JSON.stringify(module_)}, workerData: { lives } };
    const ids = Array.from({ length: 20 }, (_, n) => 'id' + n);
    const print = (value) => console.log(JSON.stringify(value ?? null));
    ${body}
  `);
  expect(ended).toMatchObject({ code: 0, signal: null });
  return JSON.parse(ended.out.trim().split('\n').at(-1) ?? 'null');
}

test('runs on workers ask for tasks, which run on the thread that opened the engine', async () => {
  const results = await run(`
    const engine = await open(dir, { logger: quiet, workers, tasks: [half] });
    print(await Promise.all(ids.map((id, n) => engine.execute(quarter, 4 * n, { id }))));
    await engine.close();
  `);
  expect(results.map((result: any) => result.value)).toEqual(Array.from({ length: 20 }, (_, n) => n));
  expect(new Set(results.flatMap((result: any) => result.taskThreads))).toEqual(new Set([0]));
  expect(results.every((result: any) => result.thread > 0)).toBe(true);
});

test('a worker that ends while its run waits for a task: the task runs once, and its result comes to the next life', async () => {
  const told = await run(`
    const engine = await open(dir, { logger: quiet, workers, tasks: [half] });
    const value = await engine.execute(deadlyOnce, 200, { id: 'a' });
    const first = await engine.handle(half, 't-1').describe();
    const second = await engine.handle(half, 't-2').describe().catch((error) => error.name);
    await engine.close();
    print({ value, attempts: first.attempts, second, deaths: new Int32Array(lives)[0] });
  `);
  expect(told).toEqual({ value: 100, attempts: 1, second: 'RunNotFoundError', deaths: 2 });
});

test('a task that the opener was not given leaves its runs stuck, with what to do', async () => {
  const why = await run(`
    const engine = await open(dir, { logger: quiet, workers });
    const stuck = new Promise((resolve) => engine.on('stuck', resolve));
    const run = await engine.start(quarter, 4, { id: 'a' });
    await stuck;
    print(await engine.explain('a'));
    await engine.close({ grace: 0 });
  `);
  expect(JSON.stringify(why)).toContain('was not given to open()');
});
