import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, signal, workflow } from 'fusee';
import { check } from 'fusee/testing';
import { quietLogger, rejection } from './support/engines';
import { runScript } from './support/scripts';

const MIB = 1 << 20;
/** A log file of the default size; one checkpoint is made for about as many bytes of records. */
const SEGMENT = 64 * MIB;
const RUNS = 90;
let folder: string;
let data: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'fusee-store-'));
  data = join(folder, 'data');
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const logBytes = (): number =>
  readdirSync(data)
    .filter((name) => name.endsWith('.log'))
    .reduce((sum, name) => sum + statSync(join(data, name)).size, 0);

/** The files of the directory, each by a hash. */
const contents = (): Record<string, string> => {
  const hash = (name: string): string =>
    createHash('sha1')
      .update(readFileSync(join(data, name)))
      .digest('hex');
  return Object.fromEntries(readdirSync(data).map((name) => [name, name === 'lock' ? '' : hash(name)]));
};

/** The workflows of both processes, as a third one sees them. */
const go = signal<string>('go');
const w = workflow('w', async (ctx, text: string) => [text.length, await ctx.step('s', () => text[0])]);
const waits = workflow('waits', async (ctx, text: string) => text + (await ctx.waitFor(go)));

/** What both processes share: a workflow whose inputs are large, and how many bytes the log has. */
const common = (): string => `
  const { readdirSync, statSync } = require('node:fs');
  const dir = ${JSON.stringify(data)};
  const logBytes = () => readdirSync(dir).filter((name) => name.endsWith('.log'))
    .reduce((sum, name) => sum + statSync(dir + '/' + name).size, 0);
  const go = signal('go');
  const w = workflow('w', async (ctx, text) => [text.length, await ctx.step('s', () => text[0])]);
  const waits = workflow('waits', async (ctx, text) => text + (await ctx.waitFor(go)));
  const engine = await open(dir, { workflows: [w, waits], logger: quiet });
  const replayed = Number(engine.core.native.report().split('\\u001f')[1]);
`;

test('LAW-1 LAW-12: the log stays bounded, and a killed process has every result and goes on', async () => {
  // `dir` of the script is replaced, so it stands in a block of its own.
  const first = await runScript(`{${common()}
    const waiting = await engine.start(waits, 'begun', { id: 'waits' });
    for (let n = 0; n < ${RUNS}; n++) {
      await engine.execute(w, String(n % 10).repeat(3.5 * ${MIB}), { id: 'r' + n });
    }
    while (logBytes() > 3 * ${SEGMENT}) await tick();
    await waiting.signal(go, '!');
    process.kill(process.pid, 'SIGKILL');
  }`);
  expect(first).toMatchObject({ signal: 'SIGKILL', err: '' });
  expect(logBytes()).toBeLessThanOrEqual(3 * SEGMENT);

  // A look reads the store and the killed log, and leaves both as they are.
  const before = contents();
  expect(before).toHaveProperty('runs');
  expect(await check({ workflows: [w, waits], dir: data, ended: true })).toMatchObject({ failures: [] });
  expect(contents()).toEqual(before);

  const second = await runScript(`{${common()}
    const results = [];
    for (let n = 0; n < ${RUNS}; n++) results.push(await engine.handle(w, 'r' + n).result());
    console.log(JSON.stringify([results, await engine.handle(waits, 'waits').result(), await engine.health()]));
    await engine.close();
  }`);
  expect(second).toMatchObject({ code: 0, err: '' });
  const expected = Array.from({ length: RUNS }, (_, n) => [3.5 * MIB, String(n % 10)]);
  expect(JSON.parse(second.out)).toEqual([expected, 'begun!', { status: 'ok', problems: [] }]);

  const third = await runScript(`{${common()}
    console.log(replayed);
    console.log(JSON.stringify(await engine.handle(w, 'r3').result()));
    await engine.close();
  }`);
  expect(third).toMatchObject({ code: 0, err: '', out: `0\n[${3.5 * MIB},"3"]\n` });
}, 180_000);

/** What both processes of tasks share. A task whose name begins with `held` waits until its process is told to go. */
const withTasks = (): string => `
  const { existsSync, statSync } = require('node:fs');
  const { task, onComplete } = fusee;
  const dir = ${JSON.stringify(data)};
  const ran = [];
  let isHeld = true;
  const work = task('work', async (ctx, { name, size }) => {
    while (isHeld && name.startsWith('held')) {
      ctx.signal.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    ran.push(name);
    if (name === 'flaky' && ctx.attempt === 1) throw new Error('not yet');
    return name + ' done';
  }, { queue: 'line', retry: { maxAttempts: 2, initialInterval: '10ms' } });
  const asks = workflow('asks', (ctx) => ctx.run(work, { name: 'held of a run' }));
  const engine = await open(dir, {
    workflows: [asks], tasks: [work], logger: quiet,
    queues: { line: { concurrency: 1 } },
    schedules: { yearly: { cron: '0 0 1 1 *', run: work, input: { name: 'yearly' } } },
  });
  const replayed = Number(engine.core.native.report().split('\\u001f')[1]);
`;

test('LAW-3 LAW-12: tasks and schedules are in a checkpoint, and a process killed behind it has all of them', async () => {
  const first = await runScript(`{${withTasks()}
    const done = await engine.enqueue(work, { name: 'large', size: 'x'.repeat(1.5 * ${MIB}) }, { key: 'large' });
    await done.result();
    await engine.start(asks, undefined, { id: 'asks' });
    while ((await engine.queue('line').stats()).running === 0) await tick();
    const parent = await engine.enqueue(work, { name: 'flaky' }, { orderKey: 'o' });
    const child = await engine.enqueue(work, { name: 'child' }, { after: [onComplete(parent)], key: 'child' });
    const second = await engine.enqueue(work, { name: 'second' }, { orderKey: 'o' });
    const far = await engine.enqueue(work, { name: 'far' }, { delay: '300d', key: 'far' });
    await engine.schedules.upsert('monthly', { cron: '0 0 1 * *', run: work, input: { name: 'monthly' } });
    await engine.schedules.pause('monthly');
    await engine.close({ grace: 0 });
    console.log(JSON.stringify([done, parent, child, second, far].map((handle) => handle.id)));
  }`);
  expect(first).toMatchObject({ code: 0, err: '' });
  const [done, parent, child, second, far] = JSON.parse(first.out) as string[];
  expect(readdirSync(data)).toContain('runs');

  const killed = await runScript(`{${withTasks()}
    const again = await engine.enqueue(work, { name: 'other' }, { key: 'child' });
    const behind = await engine.enqueue(work, { name: 'held behind' });
    console.log(JSON.stringify([replayed, again.id, behind.id]));
    process.kill(process.pid, 'SIGKILL');
  }`);
  expect(killed).toMatchObject({ signal: 'SIGKILL', err: '' });
  const [replayed, again, behind] = JSON.parse(killed.out) as [number, string, string];
  expect(again).toBe(child);
  expect(replayed).toBeLessThan(5);

  const third = await runScript(`{${withTasks()}
    isHeld = false;
    const results = [];
    for (const id of ${JSON.stringify([done, parent, child, second, behind])}) results.push(await engine.handle(work, id).result());
    results.push(await engine.handle(asks, 'asks').result());
    const schedules = (await engine.schedules.list()).map(({ name, paused }) => name + ' ' + paused);
    const { status } = await engine.handle(work, '${far!}').describe();
    console.log(JSON.stringify([results, ran.filter((name) => name === 'flaky' || name === 'second'), schedules, status]));
    await engine.close();
  }`);
  expect(third).toMatchObject({ code: 0, err: '' });
  const names = ['large', 'flaky', 'child', 'second', 'held behind', 'held of a run'];
  expect(JSON.parse(third.out)).toEqual([
    names.map((name) => `${name} done`),
    ['flaky', 'flaky', 'second'],
    ['monthly true', 'yearly false'],
    'scheduled',
  ]);
}, 60_000);

/** What both processes of runs and tasks that meet share. */
const meeting = (): string => `
  const { task, signal } = fusee;
  const dir = ${JSON.stringify(data)};
  const go = signal('go');
  const work = task('work', (ctx, text) => [text.length, ctx.parents.map(({ id, type, result }) => [id, type, result])]);
  const patient = workflow('patient', async (ctx) => ctx.waitFor(go));
  const engine = await open(dir, {
    workflows: [patient], tasks: [work], logger: quiet,
    queues: { line: { concurrency: 1 } },
    schedules: { yearly: { cron: '0 0 1 1 *', run: patient, options: { queue: 'line' } } },
  });
  const replayed = Number(engine.core.native.report().split('\\u001f')[1]);
`;

test('LAW-3 LAW-12: runs of schedules, and who waits for runs, are in a checkpoint', async () => {
  const first = await runScript(`{${meeting()}
    await (await engine.enqueue(work, 'x'.repeat(1.5 * ${MIB}))).result();
    const scheduled = await engine.schedules.trigger('yearly');
    const behind = await engine.enqueue(patient, undefined, { id: 'behind', queue: 'line', after: [scheduled] });
    const last = await engine.enqueue(work, 'ab', { after: [scheduled, behind] });
    await engine.close({ grace: 0 });
    console.log(JSON.stringify([scheduled.id, last.id]));
  }`);
  expect(first).toMatchObject({ code: 0, err: '' });
  const [scheduled, last] = JSON.parse(first.out) as [string, string];
  expect(readdirSync(data)).toContain('runs');

  const killed = await runScript(`{${meeting()}
    await engine.handle(patient, '${scheduled}').signal(go, 1);
    await engine.handle('${scheduled}').result();
    console.log(replayed);
    process.kill(process.pid, 'SIGKILL');
  }`);
  expect(killed).toMatchObject({ signal: 'SIGKILL', err: '' });
  expect(Number(killed.out)).toBeLessThan(5);

  const third = await runScript(`{${meeting()}
    await engine.handle(patient, 'behind').signal(go, 2);
    const result = await engine.handle(work, '${last}').result();
    const { running, pending } = await engine.queue('line').stats();
    const { active, kind } = await engine.schedules.describe('yearly');
    console.log(JSON.stringify([result, running, pending, active, kind]));
    await engine.close();
  }`);
  expect(third).toMatchObject({ code: 0, err: '' });
  const parents = [
    [scheduled, 'patient', 1],
    ['behind', 'patient', 2],
  ];
  expect(JSON.parse(third.out)).toEqual([[2, parents], 0, 0, 0, 'workflow']);
}, 60_000);

test('LAW-10: a run store that is not the one of the log is refused by name', async () => {
  const nothing = workflow('nothing', async () => undefined);
  const { logger } = quietLogger();
  const engine: any = await open(data, { workflows: [nothing], logger } as any);
  await engine.execute(nothing);
  await engine.close();
  expect(readdirSync(data)).not.toContain('runs');
  writeFileSync(join(data, 'runs'), 'something else');
  const error: any = await rejection(open(data, { workflows: [nothing], logger } as any));
  expect(error.name).toBe('LogCorruptError');
  expect(error.message).toMatch(/file "runs": the run store is damaged: .*restore a copy of the directory/);
});
