import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CancelledError, open, signal, task, workflow } from 'fusee';
import { engineOf, quietLogger, rejection } from './support/engines';

const HOUR = 3_600_000;
/** Where the virtual clock begins. */
const BEGIN = Date.UTC(2025, 0, 1);
const go = signal('go');

/** Takes so long. */
const job = workflow('job', async (ctx, lasts: string) => {
  await ctx.sleep(lasts);
  return `${ctx.info.id} after ${lasts}`;
});
const patient = workflow('patient', async (ctx) => {
  await ctx.waitFor(go);
  return 'gone';
});
const one = task('one', (_ctx, n: number) => n);

async function runsOf(engine: any): Promise<string[]> {
  const rows: string[] = [];
  for await (const row of engine.list({ order: 'oldestFirst' })) rows.push(`${row.id} ${row.status}`);
  return rows;
}

describe('a schedule that starts workflows', () => {
  test('makes a run at each of its times, in its queue, with its input and version', async () => {
    const two = workflow('two', async (ctx, n: number) => [ctx.info.version, n], { version: 2 });
    const engine = await engineOf([two], {
      queues: { line: { concurrency: 1 } },
      schedules: { s: { every: '1h', run: two, input: 7, options: { queue: 'line', priority: 'high' }, limit: 3 } },
    });
    await engine.advance('5h');
    expect(await runsOf(engine)).toEqual(['01', '02', '03'].map((hour) => `s@2025-01-01T${hour}:00:00Z completed`));
    expect(await engine.handle('s@2025-01-01T01:00:00Z').result()).toEqual([2, 7]);
    expect(await engine.schedules.describe('s')).toMatchObject({
      run: 'two',
      kind: 'workflow',
      queue: 'line',
      lastId: 's@2025-01-01T03:00:00Z',
      fires: 3,
      active: 0,
      nextAt: undefined,
    });
    for await (const row of engine.tasks()) throw new Error(`what stands for a run is no task: ${row.id}`);
  });

  test('gives ids as they are asked for, and leaves out those that are taken', async () => {
    const engine = await engineOf([job], {
      schedules: { s: { every: '1h', run: job, input: '1m', options: { id: 'job/{time}' }, limit: 2 } },
    });
    const told: any[] = [];
    engine.on('schedule', (event: unknown) => told.push(event));
    await engine.start(job, '5h', { id: 'job/2025-01-01T01:00:00Z' });
    await engine.advance('3h');
    expect(told).toMatchObject([{ what: 'skipped', reason: 'exists', at: new Date(BEGIN + HOUR) }]);
    expect(await runsOf(engine)).toEqual(['job/2025-01-01T01:00:00Z running', 'job/2025-01-01T02:00:00Z completed']);
    expect(await engine.queue('default').stats()).toMatchObject({ running: 0, pending: 0 });
  });

  test.each([
    ['skip', ['04 completed', '16 completed', '28 completed', '40 completed']],
    ['allow', ['04 completed', '08 completed', '12 completed', '16 completed']],
    ['queue', ['04 completed', '08 skipped', '12 completed', '16 completed']],
    ['queueAll', ['04 completed', '08 completed', '12 completed', '16 completed']],
    ['queueOnSuccess', ['04 completed', '08 completed', '12 completed', '16 completed']],
    ['cancelOther', ['04 cancelled', '08 cancelled', '12 cancelled', '16 completed']],
  ] as const)('looks at the run before it: %s', async (overlap, expected) => {
    const engine = await engineOf([job], {
      schedules: { s: { cron: '*/4 * * * *', run: job, input: '10m', overlap, limit: 4 } },
    });
    await engine.advance('55m');
    expect((await runsOf(engine)).map((row) => row.replace(/.*T00:(..):00Z/u, '$1'))).toEqual(expected);
  });

  test('pauses itself after a run that failed, and names it', async () => {
    const broken = workflow('broken', () => {
      throw new RangeError('no paper');
    });
    const engine = await engineOf([broken], { schedules: { s: { every: '1h', run: broken, pauseOnFailure: true } } });
    const told: any[] = [];
    engine.on('schedule', (event: unknown) => told.push(event));
    await engine.advance('1d');
    expect(await runsOf(engine)).toEqual(['s@2025-01-01T01:00:00Z failed']);
    expect(told).toMatchObject([{ what: 'paused', workflowId: 's@2025-01-01T01:00:00Z', taskId: undefined }]);
    const warnings = engine.lines.filter((line: any) => line.level === 'warn');
    expect(warnings.at(-1).message).toContain('because workflow s@2025-01-01T01:00:00Z failed');
  });

  test('is triggered, backfilled, previewed, paused and changed like one of tasks', async () => {
    const engine = await engineOf([job], { tasks: [one], queues: { line: { concurrency: 1 } } });
    await engine.schedules.upsert('s', { cron: '@daily', run: job, input: '1m', options: { queue: 'line' } });
    const handle = await engine.schedules.trigger('s');
    expect(handle).toMatchObject({ kind: 'workflow', id: 's@2025-01-01T00:00:00Z' });
    expect(handle.runId).toMatch(/^\d-\d+$/u);
    await engine.advance('1m');
    expect(await handle.result()).toBe('s@2025-01-01T00:00:00Z after 1m');
    const range = { from: new Date(BEGIN - 3 * 24 * HOUR), to: new Date(BEGIN) };
    const made = await engine.schedules.backfill('s', range);
    // That of the last one was made by hand.
    expect(made.map(({ id }: any) => id)).toEqual(['29', '30', '31'].map((day) => `s@2024-12-${day}T00:00:00Z`));
    await engine.advance('5m');
    expect(await made[2].result()).toBe('s@2024-12-31T00:00:00Z after 1m');
    expect(await engine.schedules.backfill('s', range)).toEqual([]);
    expect(await engine.schedules.preview('s', 1)).toEqual([new Date('2025-01-02T00:00:00Z')]);
    await engine.schedules.pause('s');
    await engine.advance('3d');
    expect(await engine.schedules.describe('s')).toMatchObject({ fires: 0, paused: true });
    await engine.schedules.upsert('s', { cron: '@daily', run: one, input: 1 });
    expect(await engine.schedules.describe('s')).toMatchObject({ run: 'one', kind: 'task' });
  });

  test('leaves a time out that has a run, however long ago that ended', async () => {
    const engine = await engineOf([job], { schedules: { s: { cron: '@yearly', run: job, input: '1m' } } });
    const range = { from: new Date(BEGIN - HOUR), to: new Date(BEGIN) };
    expect(await engine.schedules.backfill('s', range)).toHaveLength(1);
    await engine.advance('1d');
    expect(await engine.schedules.backfill('s', range)).toEqual([]);
  });

  test('goes on over crashes: each time once, and those that have started are cancelled where that is asked for', async () => {
    const engine = await engineOf([patient], {
      schedules: { s: { every: '1h', run: patient, overlap: 'cancelOther' } },
    });
    for (let hour = 0; hour < 3; hour += 1) {
      await engine.crash();
      await engine.advance('30m');
      await engine.crash();
      await engine.advance('30m');
    }
    expect(await runsOf(engine)).toEqual([
      's@2025-01-01T01:00:00Z cancelled',
      's@2025-01-01T02:00:00Z cancelled',
      's@2025-01-01T03:00:00Z running',
    ]);
    expect(CancelledError.is(await rejection(engine.handle('s@2025-01-01T01:00:00Z').result()))).toBe(true);
    await engine.handle('s@2025-01-01T03:00:00Z').signal(go);
    await engine.idle();
    expect(await engine.queue('default').stats()).toMatchObject({ running: 0, pending: 0 });
  });

  test('refuses what cannot be meant', async () => {
    const engine = await engineOf([job]);
    const upsert = async (spec: any): Promise<string> =>
      (await rejection(engine.schedules.upsert('s', { every: '1h', run: job, input: '1m', ...spec }))).message;
    expect(await upsert({ run: patient })).toContain("workflow 'patient', which is not among the option workflows");
    expect(await upsert({ run: 7 })).toContain('needs a task or a workflow as run');
    expect(await upsert({ options: { id: 'daily' } })).toContain("put '{time}' into the option id");
    expect(await upsert({ options: { id: 'object:{time}' } })).toContain('as those of objects do');
    expect(await upsert({ options: { idReusePolicy: 'allowDuplicate' } })).toContain('idReusePolicy');
    expect(await upsert({ options: { labels: { gpu: 'a' } } })).toContain('labels');
    expect(await upsert({ options: { version: -1 } })).toContain('version');
    expect(await upsert({ options: { queue: 'none' } })).toContain('"none" is not defined');
    expect(await engine.schedules.list()).toEqual([]);
  });
});

test('a directory that is opened again goes on with the schedule, the runs and their slots', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'fusee-'));
  const options = {
    workflows: [patient],
    schedules: { s: { cron: '@yearly', run: patient } },
    logger: quietLogger().logger,
  };
  let engine = await open(dir, options);
  const { id } = await engine.schedules.trigger('s');
  await engine.close();
  engine = await open(dir, options);
  expect(await engine.schedules.describe('s')).toMatchObject({ active: 1 });
  expect(await engine.queue('default').stats()).toMatchObject({ running: 1 });
  await engine.handle(id).signal(go);
  expect(await engine.handle(id).result()).toBe('gone');
  await engine.close();
  rmSync(dir, { recursive: true });
});
