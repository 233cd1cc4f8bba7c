import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { onComplete, onFailure, task, workflow } from 'fusee';
import { engineOf, rejection } from './support/engines';
import { live } from './support/lives';

const double = task('double', (_ctx, n: number) => n * 2);
const parents = task('parents', (ctx) => ctx.parents.map(({ id, result }) => [id, result]));

const count = async (engine: any): Promise<number> => {
  let tasks = 0;
  for await (const _ of engine.tasks()) tasks += 1;
  return tasks;
};

test('a transaction takes tasks in together, some after others', async () => {
  const engine = await engineOf([], { tasks: [double, parents] });
  const { one, all } = await engine.atomic((tx: any) => {
    const one = tx.enqueue(double, 1, { key: 'one', tenant: 'acme' });
    const two = tx.enqueue(double, 2);
    tx.enqueue(double, 3, { after: [onFailure(one)], key: 'never' });
    return { one, all: tx.enqueue(parents, undefined, { after: [one, onComplete(two)] }) };
  });
  expect(one).toMatchObject({ kind: 'task', key: 'one', duplicate: false });
  expect(await one.result()).toBe(2);
  expect(await one.describe()).toMatchObject({ id: one.id, tenant: 'acme' });
  expect(await all.result()).toEqual([
    [one.id, 2],
    ['t-2', 4],
  ]);
  expect(await engine.handle(double, 'never').describe()).toMatchObject({ status: 'skipped' });
  expect(await engine.atomic(() => 7)).toBe(7);
});

test('what one call is refused for refuses all, and names the call', async () => {
  const noRoom = { full: { maxPending: 2, onFull: 'reject' } };
  const engine = await engineOf([], { tasks: [double], queues: noRoom });
  await engine.queue('full').pause();
  const refusals = [
    (tx: any) => [tx.enqueue(double, 1), tx.enqueue(double, 2, { queue: 'none' })],
    (tx: any) => [1, 2, 3].map((n) => tx.enqueue(double, n, { queue: 'full' })),
    (tx: any) => [tx.enqueue(double, 1, { key: 'k' }), tx.enqueue(double, 2, { key: 'k' })],
    (tx: any) => [tx.enqueue(double, 1, { after: ['t-99'] })],
    (tx: any) => [tx.enqueue(double, 1, { after: ['b'], key: 'a' }), tx.enqueue(double, 2, { after: ['a'], key: 'b' })],
  ];
  const errors = [];
  for (const fn of refusals) errors.push(await rejection(engine.atomic(fn)));
  expect(errors.map(({ index }) => index)).toEqual([1, 2, 1, 0, 1]);
  expect(errors.map(({ code, name }) => code ?? name)).toEqual([
    'TypeError',
    'QUEUE_FULL',
    'TypeError',
    'TypeError',
    'TypeError',
  ]);
  expect(errors[0].message).toBe('call 1 of the transaction: queue "none" is not defined');
  expect(errors[1]).toMatchObject({ queue: 'full', maxPending: 2 });
  expect(await count(engine)).toBe(0);
});

test('a function that throws, is asynchronous or uses a handle too early records nothing', async () => {
  const engine = await engineOf([], { tasks: [double] });
  const thrown = engine.atomic((tx: any) => {
    tx.enqueue(double, 1);
    throw new RangeError('changed my mind');
  });
  expect((await rejection(thrown)).message).toBe('changed my mind');
  let kept: any;
  const later = engine.atomic(async (tx: any) => {
    kept = tx;
    tx.enqueue(double, 1);
  });
  expect((await rejection(later)).message).toContain('must be synchronous');
  expect(() => kept.enqueue(double, 1)).toThrow('this transaction is over');
  let handle: any;
  const early = engine.atomic((tx: any) => {
    handle = tx.enqueue(double, 1);
    tx.enqueue(double, () => 1);
  });
  expect((await rejection(early)).message).toContain('cannot be recorded');
  expect((await rejection(handle.result())).message).toContain('has no id');
  expect((await rejection(engine.enqueue(double, 1, { after: [handle] }))).message).toContain(
    'within that transaction',
  );
  expect((await rejection(engine.atomic((tx: any) => tx.enqueue(double, 1, { dedupe: {} })))).message).toContain(
    'dedupe',
  );
  const many = engine.atomic((tx: any) => Array.from({ length: 1001 }, (_, n) => tx.enqueue(double, n)).length);
  expect((await rejection(many)).message).toContain('the limit is 1000');
  const large = engine.atomic((tx: any) => Array.from({ length: 9 }, () => tx.enqueue(double, 'x'.repeat(2 << 20))));
  expect((await rejection(large)).message).toMatch(/9 tasks of the transaction take \d+ bytes together/);
  expect(await count(engine)).toBe(0);
});

test('waits for a run, and for room for all', async () => {
  const wait = workflow('wait', (ctx) => ctx.sleep('1h'));
  const engine = await engineOf([wait], {
    tasks: [double, parents],
    queues: { small: { maxPending: 2, concurrency: 1 } },
  });
  const run = await engine.start(wait, undefined, { id: 'run' });
  const after = await engine.atomic((tx: any) => tx.enqueue(double, 4, { after: [run] }));
  const none = engine.atomic((tx: any) => tx.enqueue(double, 4, { after: [engine.handle(wait, 'nobody')] }));
  expect(await rejection(none)).toMatchObject({ code: 'RUN_NOT_FOUND', index: 0 });
  await engine.queue('small').pause();
  const first = await engine.enqueue(double, 1, { queue: 'small' });
  let isIn = false;
  const both = engine
    .atomic((tx: any) => [2, 3].map((n) => tx.enqueue(double, n, { queue: 'small' })))
    .then((handles: any) => {
      isIn = true;
      return handles;
    });
  await engine.idle();
  expect(isIn).toBe(false);
  await first.cancel();
  const [second, third] = await both;
  await engine.queue('small').resume();
  expect([await second.result(), await third.result()]).toEqual([4, 6]);
  await engine.advance('1h');
  expect(await after.result()).toBe(8);
});

test('a schema that takes time checks the inputs before anything is recorded', async () => {
  const input: any = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: async (value: number) => (value > 0 ? { value: value + 1 } : { issues: [{ message: 'too small' }] }),
    },
  };
  const checked = task('checked', (_ctx, n: number) => n, { input });
  const engine = await engineOf([], { tasks: [checked] });
  const handle: any = await engine.atomic((tx: any) => tx.enqueue(checked, 1));
  expect(await handle.result()).toBe(2);
  const bad = engine.atomic((tx: any) => [tx.enqueue(checked, 1), tx.enqueue(checked, 0), tx.enqueue(checked, -1)]);
  expect((await rejection(bad)).message).toContain('too small');
  expect(await count(engine)).toBe(1);
});

test('a process that is killed leaves all tasks of a transaction or none (LAW-1, LAW-3)', async () => {
  const parent = join(resolve(__dirname, '..'), 'target/kill');
  mkdirSync(parent, { recursive: true });
  const place = mkdtempSync(join(parent, '/'));
  const acknowledged: string[] = [];
  const found = new Map<string, number[]>();
  const complaints: string[] = [];
  let finished = false;
  const hear = (line: any): boolean => {
    if (line.warning !== undefined) complaints.push(line.warning);
    if (line.acknowledged !== undefined) acknowledged.push(line.acknowledged);
    if (line.task !== undefined) found.set(line.of, [...(found.get(line.of) ?? []), line.parents]);
    if (line.finished === true) finished = true;
    return line.acknowledged !== undefined;
  };
  for (let life = 0; life < 3; life += 1) {
    const { signal } = await live('atomic-child.mjs', ['work', place, String(life)], 20 + 10 * life, hear);
    expect(signal).toBe('SIGKILL');
  }
  const { code } = await live('atomic-child.mjs', ['finish', place], Infinity, hear);
  expect({ code, finished, complaints }).toEqual({ code: 0, finished: true, complaints: [] });
  for (const transaction of acknowledged) expect(found.has(transaction)).toBe(true);
  for (const of of found.values()) expect(of).toEqual([0, 1, 2]);
  rmSync(place, { recursive: true });
}, 120_000);
