import { query, signal, workflow } from 'fusee';
import { engineOf, rejection } from './support/engines';

const status = query<string>('status');
const item = query<number, string>('item');
const go = signal<void>('go');

const asked = workflow('asked', async (ctx: any) => {
  let phase = 'first';
  ctx.onQuery(status, () => phase);
  ctx.onQuery(item, (index: number) => `item ${index}`);
  await ctx.waitFor(go);
  phase = 'second';
  await ctx.waitFor(go);
});

test('a query is answered between turns, with what the code has made so far', async () => {
  const engine = await engineOf([asked]);
  const handle = await engine.start(asked);
  await expect(handle.query(status)).resolves.toBe('first');
  await handle.signal(go);
  await expect(handle.query(status)).resolves.toBe('second');
  await expect(handle.query(item, 3)).resolves.toBe('item 3');
});

test('a query after a crash is answered when the run has replayed', async () => {
  const engine = await engineOf([asked]);
  const handle = await engine.start(asked);
  await handle.signal(go);
  await engine.idle();
  await engine.crash();
  await expect(handle.query(status)).resolves.toBe('second');
});

test('a run that has ended answers queries from its records; nothing runs again', async () => {
  const calls: string[] = [];
  const works = workflow('works', async (ctx: any, end: string) => {
    const log: string[] = [];
    ctx.onQuery(status, () => log.join(' '));
    log.push(await ctx.step('one', () => calls.push('one') && 'one'));
    await ctx.waitFor(go);
    void ctx.step('nobody waits', () => calls.push('nobody waits'));
    log.push('gone');
    if (end === 'fails') throw new Error('as it should');
    if (end === 'waits') await ctx.waitFor(go);
    return 'done';
  });
  const engine = await engineOf([works]);
  for (const end of ['returns', 'fails', 'waits']) {
    const handle = await engine.start(works, end);
    await handle.signal(go);
    await engine.idle();
    if (end === 'waits') await handle.terminate();
    await handle.result().catch(() => undefined);
    const before = [...calls];
    const records: string[] = [];
    for await (const { kind } of handle.history()) records.push(kind);
    await expect(handle.query(status)).resolves.toBe('one gone');
    await engine.crash();
    await expect(Promise.all([handle.query(status), handle.query(status)])).resolves.toEqual(['one gone', 'one gone']);
    expect((await rejection(handle.query(item, 1))).message).toMatch(/no handler of query 'item'/);
    await engine.idle();
    expect(calls).toEqual(before);
    let again = 0;
    for await (const { kind } of handle.history()) expect(kind).toBe(records[again++]);
    expect(again).toBe(records.length);
  }
});

test('a run that has ended and whose code is another now says so', async () => {
  let name = 'first';
  const changes = workflow('changes', async (ctx: any) => {
    ctx.onQuery(status, () => name);
    await ctx.step(name, () => 1);
  });
  const engine = await engineOf([changes], { replayOnClose: false });
  const handle = await engine.start(changes);
  await handle.result();
  name = 'second';
  expect((await rejection(handle.query(status))).message).toMatch(/has ended, and its code does not fit/);
  expect(engine.lines.filter(({ level }: any) => level === 'warn')).toEqual([]);
});

test('a query without a handler, or to none is refused', async () => {
  const ends = workflow('ends', async () => 1);
  const engine = await engineOf([asked, ends]);
  const handle = await engine.start(asked);
  const error = await rejection(handle.query(query('other')));
  expect(error.message).toMatch(/no handler of query 'other'; it has status, item/);
  const ended = await engine.start(ends);
  await ended.result();
  expect((await rejection(ended.query(status))).message).toMatch(/no handler of query 'status'; it has none/);
  expect((await rejection(engine.handle(ends, 'nobody').query(status))).name).toBe('RunNotFoundError');
});

test('a query may be asked before the run was even loaded', async () => {
  const engine = await engineOf([asked]);
  const start = engine.start(asked, undefined, { id: 'early' });
  await expect(engine.handle(asked, 'early').query(status)).resolves.toBe('first');
  await start;
});

test('a stuck run answers no queries, and says so', async () => {
  const breaks = workflow('breaks', async (ctx: any) => {
    ctx.onQuery(status, () => 'fine');
    await new Promise(() => undefined);
  });
  const engine = await engineOf([breaks]);
  const handle = await engine.start(breaks);
  await engine.idle();
  expect((await rejection(handle.query(status))).message).toMatch(/stuck, and answers no queries/);
});

test('LAW-4: a handler must be synchronous, has no ctx, and its answer is a copy', async () => {
  const shared = { list: [1] };
  const bad = workflow('bad', async (ctx: any) => {
    ctx.onQuery(query('async'), async () => 1);
    ctx.onQuery(query('ctx'), () => ctx.uuid());
    ctx.onQuery(query('throws'), () => {
      throw new RangeError('no such thing');
    });
    ctx.onQuery(query('copy'), () => shared);
    await ctx.waitFor(go);
  });
  const engine = await engineOf([bad]);
  const handle = await engine.start(bad);
  expect((await rejection(handle.query(query('async')))).message).toMatch(/synchronous/);
  expect((await rejection(handle.query(query('ctx')))).message).toMatch(/ctx\.uuid.*handler of query 'ctx'/);
  expect((await rejection(handle.query(query('throws')))).message).toBe('no such thing');
  const copy: any = await handle.query(query('copy'));
  expect(copy).toEqual(shared);
  expect(copy).not.toBe(shared);
  expect((await handle.describe()).stuck).toBe(false);
});
