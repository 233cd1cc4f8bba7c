import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BusyError, RunNotFoundError, open, task } from 'fusee';
import { engineOf, quietLogger, rejection } from './support/engines';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const MINUTE = 60_000;
/** Where the virtual clock begins. */
const BEGIN = Date.UTC(2025, 0, 1);

/** A task that notes when it ran, and what does so at the given times. */
function noting(): { readonly times: number[]; readonly note: any; at(engine: any): void } {
  const times: number[] = [];
  let now = (): number => 0;
  const note = task('note', (_ctx, _input: unknown) => {
    times.push(now());
  });
  return { times, note, at: (engine) => (now = () => engine.now()) };
}

const keysOf = async (engine: any): Promise<string[]> => {
  const keys: string[] = [];
  for await (const row of engine.tasks()) keys.push(row.key);
  return keys;
};

describe('a schedule', () => {
  test('makes a task at each of its times for a month, by the clock of its zone', async () => {
    const { times, note, at } = noting();
    const engine = await engineOf([], {
      now: '2025-03-10T00:00:00Z',
      tasks: [note],
      schedules: { nightly: { cron: '0 3 * * *', timezone: 'Europe/Berlin', run: note, input: { deep: [1] } } },
    });
    at(engine);
    await engine.advance('31d');
    expect(times).toHaveLength(31);
    // Clocks go forward on 30 March: 3:00 is 2:00 in UTC before, 1:00 from then on.
    const hours = times.map((time) => new Date(time).getUTCHours());
    expect(hours).toEqual([...Array<number>(20).fill(2), ...Array<number>(11).fill(1)]);
    const row = await engine.schedules.describe('nightly');
    expect(row).toMatchObject({
      name: 'nightly',
      run: 'note',
      queue: 'default',
      declared: true,
      paused: false,
      nextAt: new Date('2025-04-10T01:00:00Z'),
      lastAt: new Date('2025-04-09T01:00:00Z'),
      lastId: 't-31',
      fires: 31,
      active: 0,
      cron: '0 3 * * *',
      timezone: 'Europe/Berlin',
      every: undefined,
      overlap: 'skip',
      catchUp: 'last',
      broken: undefined,
    });
    expect((await keysOf(engine)).at(-1)).toBe('nightly@2025-04-09T01:00:00Z');
  });

  test('gives its input and options to each task', async () => {
    const seen: unknown[] = [];
    const report = task('report', (ctx, input: unknown) => {
      seen.push([input, ctx.info.tags]);
    });
    const engine = await engineOf([], {
      tasks: [report],
      queues: { slow: { concurrency: 1 } },
      schedules: {
        s: {
          every: '1h',
          run: report,
          input: new Map([['a', 1n]]),
          options: { queue: 'slow', priority: 'high', tags: { of: 's' }, tenant: 'acme', expires: '10m' },
        },
      },
    });
    await engine.queue('slow').pause();
    await engine.advance('2h');
    await engine.queue('slow').resume();
    await engine.idle();
    const rows: any[] = [];
    for await (const row of engine.tasks()) rows.push([row.status, row.queue, row.priority, row.tenant]);
    // The first one expired 10 min after its time; the second one came at that of the third.
    expect(rows).toEqual([
      ['expired', 'slow', 'high', 'acme'],
      ['completed', 'slow', 'high', 'acme'],
    ]);
    expect(seen).toEqual([[new Map([['a', 1n]]), { of: 's' }]]);
  });

  test('ends with its limit and its end, begins with its start, and counts periods from there', async () => {
    const { note } = noting();
    const start = new Date(BEGIN + 90_000);
    const engine = await engineOf([], {
      tasks: [note],
      schedules: {
        few: { every: '1m', start, limit: 2, run: note },
        short: { every: '1m', start, end: new Date(BEGIN + 4 * 60_000), run: note },
      },
    });
    await engine.advance('1h');
    expect(await keysOf(engine)).toEqual([
      'few@2025-01-01T00:01:30Z',
      'short@2025-01-01T00:01:30Z',
      'few@2025-01-01T00:02:30Z',
      'short@2025-01-01T00:02:30Z',
      'short@2025-01-01T00:03:30Z',
    ]);
    expect((await engine.schedules.list()).map((row: any) => [row.name, row.fires, row.nextAt])).toEqual([
      ['few', 2, undefined],
      ['short', 3, undefined],
    ]);
  });

  test('makes its tasks late by the jitter, the same after a crash', async () => {
    const { times, note, at } = noting();
    const engine = await engineOf([], {
      tasks: [note],
      schedules: { s: { every: '5m', jitter: '3m', run: note } },
    });
    at(engine);
    await engine.advance('28m');
    await engine.crash();
    await engine.advance('28m');
    const late = times.map((time) => (time - BEGIN) % (5 * MINUTE));
    expect(late.every((ms) => ms <= 3 * MINUTE)).toBe(true);
    expect(new Set(late).size).toBeGreaterThan(3);
    expect(new Set(await keysOf(engine)).size).toBe(times.length);
  });
});

describe('if the one before has not ended', () => {
  const RUN_MS = 10 * MINUTE;

  async function run(overlap: string): Promise<[string, string][]> {
    const long = task('long', (ctx) =>
      ctx.attempt === 1 && ctx.lastHeartbeat === undefined ? ctx.postpone(new Date(engine.now() + RUN_MS)) : 'done',
    );
    const engine = await engineOf([], {
      tasks: [long],
      schedules: { s: { cron: '*/4 * * * *', run: long, overlap, limit: 4 } },
    });
    await engine.advance('55m');
    const rows: [string, string][] = [];
    for await (const row of engine.tasks()) rows.push([row.key.slice(16, 18), row.status]);
    return rows;
  }

  test.each([
    ['skip', ['04 completed', '16 completed', '28 completed', '40 completed']],
    ['allow', ['04 completed', '08 completed', '12 completed', '16 completed']],
    ['queue', ['04 completed', '08 skipped', '12 completed', '16 completed']],
    ['queueAll', ['04 completed', '08 completed', '12 completed', '16 completed']],
    ['queueOnSuccess', ['04 completed', '08 completed', '12 completed', '16 completed']],
    ['cancelOther', ['04 cancelled', '08 cancelled', '12 cancelled', '16 completed']],
  ])('%s', async (overlap, expected) => {
    expect((await run(overlap)).map((row) => row.join(' '))).toEqual(expected);
  });

  test('a skipped time is told to listeners', async () => {
    const stay = task('stay', (ctx) => ctx.postpone('1d'));
    const engine = await engineOf([], { tasks: [stay], schedules: { s: { every: '1h', run: stay } } });
    const told: any[] = [];
    engine.on('schedule', (event: unknown) => told.push(event));
    await engine.advance('2h');
    expect(told).toMatchObject([
      { type: 'schedule', schedule: 's', what: 'skipped', reason: 'overlap', at: new Date(BEGIN + 2 * HOUR) },
    ]);
  });
});

describe('schedules at run time', () => {
  test('are made, changed, paused, resumed and removed, over crashes', async () => {
    const { note } = noting();
    const engine = await engineOf([], { tasks: [note] });
    const { schedules } = engine;
    expect(await schedules.list()).toEqual([]);
    await schedules.upsert('s', { every: '5m', run: note });
    await engine.advance('5m');
    await engine.crash();
    await engine.advance('5m');
    expect(await keysOf(engine)).toHaveLength(2);
    await schedules.upsert('s', { every: '15m', run: note });
    await engine.advance('5m');
    expect(await keysOf(engine)).toHaveLength(3);
    await schedules.pause('s');
    await engine.crash();
    await engine.advance('20m');
    expect(await schedules.describe('s')).toMatchObject({ declared: false, paused: true, nextAt: undefined, fires: 3 });
    expect(await keysOf(engine)).toHaveLength(3);
    // The last of those that were missed is made up for.
    await schedules.resume('s');
    expect((await keysOf(engine)).at(-1)).toBe('s@2025-01-01T00:30:00Z');
    expect(await schedules.remove('s')).toBe(true);
    expect(await schedules.remove('s')).toBe(false);
    await engine.crash();
    await engine.advance('20m');
    expect(await keysOf(engine)).toHaveLength(4);
    expect((await rejection(schedules.pause('s'))).message).toBe('schedule "s": there is none of that name');
    expect(RunNotFoundError.is(await rejection(schedules.describe('s')))).toBe(true);
  });

  test('are triggered beside the plan, also while they are paused', async () => {
    const square = task('square', (_ctx, n: number) => n * n);
    const engine = await engineOf([], {
      tasks: [square],
      schedules: { s: { every: '1h', run: square, input: 7 } },
    });
    await engine.schedules.pause('s');
    const handle = await engine.schedules.trigger('s');
    expect(await handle.result()).toBe(49);
    expect(await handle.describe()).toMatchObject({ key: 's@2025-01-01T00:00:00Z' });
    expect(await engine.schedules.describe('s')).toMatchObject({ fires: 0 });
    expect(RunNotFoundError.is(await rejection(engine.schedules.trigger('none')))).toBe(true);
  });

  test('make the tasks of times that have passed, each once', async () => {
    const { note } = noting();
    const engine = await engineOf([], { tasks: [note], schedules: { s: { cron: '@daily', run: note } } });
    const range = { from: new Date(BEGIN - 3 * DAY), to: new Date(BEGIN - 1) };
    const handles = await engine.schedules.backfill('s', range);
    expect(handles.map(({ id }: any) => id)).toEqual(['t-1', 't-2', 't-3']);
    await handles[2].result();
    expect(await keysOf(engine)).toEqual([
      's@2024-12-29T00:00:00Z',
      's@2024-12-30T00:00:00Z',
      's@2024-12-31T00:00:00Z',
    ]);
    expect(await engine.schedules.backfill('s', range)).toEqual([]);
    const many = await rejection(engine.schedules.backfill('s', { from: 0, to: new Date(BEGIN) }));
    expect(many.message).toContain('more than 1000 times');
    expect((await rejection(engine.schedules.backfill('s', { from: 2, to: 1 }))).message).toContain('begins after');
  });

  test('that are backfilled into a queue without room are refused as a whole', async () => {
    const { note } = noting();
    const engine = await engineOf([], {
      tasks: [note],
      queues: { default: { maxPending: 2, onFull: 'reject' } },
      schedules: { s: { cron: '@daily', run: note } },
    });
    const range = { from: new Date(BEGIN - 5 * DAY), to: new Date(BEGIN - 1) };
    expect(BusyError.is(await rejection(engine.schedules.backfill('s', range)))).toBe(true);
    expect(await keysOf(engine)).toEqual([]);
  });

  test('show their next times, and those of a plan that belongs to none', async () => {
    const { note } = noting();
    const engine = await engineOf([], {
      tasks: [note],
      schedules: { s: { cron: '30 2 * * *', timezone: 'Europe/Berlin', run: note, limit: 5 } },
    });
    const spring = '2025-03-29T00:00:00Z';
    expect(await engine.schedules.preview('s', 2)).toEqual([
      new Date('2025-01-01T01:30:00Z'),
      new Date('2025-01-02T01:30:00Z'),
    ]);
    expect(await engine.schedules.preview('s')).toHaveLength(5);
    // 2:30 does not exist on 30 March: 3:00 local.
    const plan = { cron: '30 2 * * *', timezone: 'Europe/Berlin', start: spring };
    expect(await engine.schedules.preview(plan, 2)).toEqual([
      new Date('2025-03-29T01:30:00Z'),
      new Date('2025-03-30T01:00:00Z'),
    ]);
    const days = { every: '1d', start: spring, end: '2025-03-30T12:00:00Z', limit: 9 };
    expect(await engine.schedules.preview(days)).toEqual([new Date(spring), new Date('2025-03-30T00:00:00Z')]);
  });

  test('pause themselves after a failure if they are to, and say so', async () => {
    const broken = task('broken', () => {
      throw new RangeError('no paper');
    });
    const engine = await engineOf([], {
      tasks: [broken],
      schedules: {
        s: { every: '1h', run: broken, pauseOnFailure: true, options: { retry: { maxAttempts: 1 } } },
      },
    });
    await engine.advance('1d');
    expect(await keysOf(engine)).toHaveLength(1);
    expect(await engine.schedules.describe('s')).toMatchObject({ paused: true });
    const warnings = engine.lines.filter((line: any) => line.level === 'warn');
    expect(warnings).toMatchObject([{ fields: { code: 'SCHEDULE' } }]);
    expect(warnings[0].message).toContain("schedule 's' has paused itself because task t-1 failed");
  });
});

describe('declared schedules', () => {
  const places: string[] = [];
  const place = (): string => {
    places.push(mkdtempSync(join(tmpdir(), 'fusee-')));
    return places.at(-1)!;
  };
  afterAll(() => places.forEach((dir) => rmSync(dir, { recursive: true })));
  const { note } = noting();
  const { logger } = quietLogger();
  const inDir = (dir: string, schedules?: object): Promise<any> =>
    open(dir, { tasks: [note], logger, ...(schedules === undefined ? {} : { schedules }) } as any);
  const yearly = { cron: '0 0 1 1 *', run: note };

  test('are brought to what open says: new, changed and gone, and those made by hand stay', async () => {
    const dir = place();
    let engine = await inDir(dir, { a: yearly, b: yearly });
    await engine.schedules.upsert('mine', yearly);
    await engine.schedules.pause('b');
    await engine.close();
    engine = await inDir(dir, { b: { ...yearly, timezone: 'Asia/Tokyo' }, c: yearly });
    const rows = (await engine.schedules.list()).map((row: any) => [row.name, row.declared, row.paused, row.timezone]);
    expect(rows).toEqual([
      ['b', true, true, 'Asia/Tokyo'],
      ['c', true, false, 'UTC'],
      ['mine', false, false, 'UTC'],
    ]);
    await engine.close();
    engine = await inDir(dir);
    expect(await engine.schedules.list()).toHaveLength(3);
    await engine.close();
    engine = await inDir(dir, {});
    expect((await engine.schedules.list()).map((row: any) => row.name)).toEqual(['mine']);
    await engine.close();
  });

  test('are refused together if one of them cannot be, and the directory stays as it was', async () => {
    const dir = place();
    await (await inDir(dir, { a: yearly })).close();
    const error = await rejection(inDir(dir, { b: yearly, bad: { cron: '0 25 * * *', run: note } }));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toBe(
      'schedule "bad": cron "0 25 * * *": hour at position 3: "25" is out of range; 0 to 23 are allowed',
    );
    const engine = await inDir(dir);
    expect((await engine.schedules.list()).map((row: any) => row.name)).toEqual(['a']);
    await engine.close();
  });
});

test('what a schedule cannot be is refused with what is wrong and where', async () => {
  const { note } = noting();
  const other = task('other', () => 1);
  const engine = await engineOf([], { tasks: [note] });
  const refusal = async (spec: object): Promise<string> =>
    (await rejection(engine.schedules.upsert('s', { cron: '@daily', run: note, ...spec }))).message;
  expect(await refusal({ cron: '* * * * MOO' })).toContain('day of week at position 9: "MOO" is not understood');
  expect(await refusal({ cron: '' })).toContain('it is empty');
  expect(await refusal({ cron: '* *' })).toContain('it has 2 fields');
  expect(await refusal({ cron: '0 0 30 2 *' })).toContain('no date fits');
  expect(await refusal({ timezone: 'Europe/Atlantis' })).toContain('"Europe/Atlantis" is not known');
  expect(await refusal({ every: '1h' })).toContain('either cron or every');
  expect(await refusal({ cron: undefined })).toContain('either cron or every');
  expect(await refusal({ cron: undefined, every: '1h', timezone: 'UTC' })).toContain('timezone is for cron');
  expect(await refusal({ cron: undefined, every: 0 })).toContain('1 ms or more');
  expect(await refusal({ cron: undefined, every: '1m', jitter: '2m' })).toContain('longer than the period');
  expect(await refusal({ overlap: 'maybe' })).toContain('must be one of skip, allow');
  expect(await refusal({ catchUp: 0 })).toContain('from 1');
  expect(await refusal({ catchUp: 1001 })).toContain('at most 1,000');
  expect(await refusal({ limit: 0 })).toContain('from 1');
  expect(await refusal({ start: 2, end: 1 })).toContain('ends before it starts');
  expect(await refusal({ run: other })).toContain("runs task 'other', which is not among the option tasks");
  expect(await refusal({ run: { kind: 'workflow' } })).toContain('needs a task or a workflow as run');
  expect(await refusal({ options: { key: 'k' } })).toContain("has no option 'key'");
  expect(await refusal({ options: { queue: 'none' } })).toContain('queue "none" is not defined');
  expect(await refusal({ options: { deadline: new Date() } })).toContain('give a duration');
  expect(await refusal({ input: () => 1 })).toContain("the input of schedule 's' cannot be recorded");
  expect(await refusal({ often: true })).toContain("has no option 'often'");
  expect((await rejection(engine.schedules.preview({ cron: '61 * * * *' }))).message).toContain('minute at position 1');
  expect(await engine.schedules.list()).toEqual([]);
});
