import { resolve } from 'node:path';
import { runScript } from './support/scripts';

const fixture = resolve(__dirname, 'fixtures/threads/objects.cjs');

async function run(body: string): Promise<any> {
  const ended = await runScript(`
    const { account, spender } = require(${JSON.stringify(fixture)});
    const lives = new SharedArrayBuffer(4);
    const workers = (count) => ({ logger: quiet, workers: { count, module: ${JSON.stringify(fixture)}, workerData: { lives } } });
    const ids = Array.from({ length: 12 }, (_, n) => 'a' + n);
    const print = (value) => console.log(JSON.stringify(value ?? null));
    ${body}
  `);
  expect(ended).toMatchObject({ code: 0, signal: null, err: '' });
  return JSON.parse(ended.out.trim().split('\n').at(-1) ?? 'null');
}

test('an object has one owner, whichever thread calls it', async () => {
  const { balances, threads, sums } = await run(`
    const engine = await open(dir, workers(2));
    const deposits = ids.flatMap((id) => [1, 2, 3].map((amount) => engine.object(account, id).deposit(amount)));
    const runs = [1, 2, 3].map(() => engine.execute(spender, ids));
    await Promise.all([...deposits, ...runs]);
    const balances = await Promise.all(ids.map((id) => engine.object(account, id).balance()));
    const threads = await Promise.all(ids.map((id) => engine.object(account, id).threads()));
    const sums = (await runs[2]).length;
    await engine.close();
    print({ balances, threads, sums });
  `);
  expect(balances).toEqual(Array.from({ length: 12 }, () => 9));
  expect(threads.every((of: number[]) => of.length === 1)).toBe(true);
  expect(new Set(threads.flat()).size).toBe(2);
  expect(sums).toBe(12);
});

test('LAW-7: a call goes on in another life of the worker that was lost in it', async () => {
  const answers = await run(`
    const engine = await open(dir, workers(1));
    const first = engine.object(account, 'a').deadly();
    const second = engine.object(account, 'a').deposit(5);
    const answers = [await first, await second, await engine.object(account, 'a').balance()];
    await engine.close();
    print(answers);
  `);
  expect(answers).toEqual([1, 6, 6]);
});

test('an object in a directory is as it was left', async () => {
  const found = await run(`
    const before = await open(dir, workers(2));
    await Promise.all(ids.map((id, n) => before.object(account, id).deposit(n)));
    await before.close();
    const after = await open(dir, { logger: quiet, objects: [account] });
    const balances = await Promise.all(ids.map((id) => after.object(account, id).balance()));
    const more = await after.object(account, 'a3').deposit(4);
    await after.close();
    print([...balances, more]);
  `);
  expect(found).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 7]);
});
