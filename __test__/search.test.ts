/** Runs found by what they are: search attributes, filters, pages. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, signal, workflow } from 'fusee';
import { crashEverywhere } from 'fusee/testing';
import { engineOf, quietLogger, rejection } from './support/engines';

const go = signal('go');
const idle = workflow('idle', async (ctx) => void (await ctx.waitFor(go)));
const quick = workflow('quick', async () => 1);

async function ids(engine: any, options: object): Promise<string> {
  const found: string[] = [];
  for await (const row of engine.list(options)) found.push(row.id);
  return found.join('');
}

const when = new Date('2026-01-02T03:04:05Z');

/** `a` to `e`, with attributes of all kinds. */
async function five(): Promise<any> {
  const engine = await engineOf([idle, quick]);
  const start = async (id: string, attributes: object): Promise<void> => {
    await engine.start(idle, undefined, { id, attributes });
    // Those of one millisecond are in the order of their shards.
    await engine.advance(1);
  };
  await start('a', { customer: 7, total: 99.5, tag: 'new', at: when });
  await start('b', { customer: 7, total: 100, tag: 'newer', vip: true });
  await start('c', { customer: 8, total: 2n ** 60n, tags: ['red', 'blue'] });
  await start('d', { total: -1, tag: '', vip: false, tags: [] });
  await engine.execute(quick, undefined, { id: 'e' });
  return engine;
}

test('attributes come back as they were given', async () => {
  const engine = await five();
  const attributes = async (id: string): Promise<object> => (await engine.handle(id).describe()).attributes;
  expect(await attributes('a')).toEqual({ at: when, customer: 7, tag: 'new', total: 99.5 });
  expect(await attributes('b')).toEqual({ customer: 7, tag: 'newer', total: 100, vip: true });
  expect(await attributes('c')).toEqual({ customer: 8, tags: ['red', 'blue'], total: 2n ** 60n });
  expect(await attributes('d')).toEqual({ tag: '', tags: [], total: -1, vip: false });
  expect(await attributes('e')).toEqual({});
});

test.each<[string, object, string]>([
  ['all', {}, 'edcba'],
  ['one of a number', { attributes: { customer: 7 } }, 'ba'],
  ['a bigint is the number that it is', { attributes: { customer: 7n } }, 'ba'],
  ['a number that is a bigint beyond 2^53', { attributes: { total: 2 ** 60 } }, 'c'],
  ['its neighbour', { attributes: { total: 2n ** 60n + 1n } }, ''],
  ['a text', { attributes: { tag: 'new' } }, 'a'],
  ['the empty text', { attributes: { tag: '' } }, 'd'],
  ['a text is no number', { attributes: { customer: '7' } }, ''],
  ['a time', { attributes: { at: when } }, 'a'],
  ['a flag', { attributes: { vip: false } }, 'd'],
  ['one text of a list', { attributes: { tags: 'blue' } }, 'c'],
  ['above', { attributes: { total: { gt: 99.5 } } }, 'cb'],
  ['between', { attributes: { total: { gte: 0, lt: 100 } } }, 'a'],
  ['nothing between', { attributes: { total: { gt: 99.5, lt: 100 } } }, ''],
  ['times', { attributes: { at: { lte: when } } }, 'a'],
  ['texts in their order', { attributes: { tag: { gt: 'new' } } }, 'b'],
  ['a prefix', { attributes: { tag: { prefix: 'new' } } }, 'ba'],
  ['having one', { attributes: { vip: { exists: true } } }, 'db'],
  ['having none', { attributes: { vip: { exists: false } } }, 'eca'],
  ['two at once', { attributes: { customer: 7, tag: { prefix: 'newe' } } }, 'b'],
  ['or', { or: [{ attributes: { customer: 8 } }, { attributes: { vip: true } }] }, 'cb'],
  ['no or holds', { or: [] }, ''],
  ['not', { not: { attributes: { customer: 7 } } }, 'edc'],
  ['and', { and: [{ status: 'running' }, { not: { attributes: { customer: 7 } } }] }, 'dc'],
  [
    'all of them together',
    { type: idle, or: [{ idPrefix: 'a' }, { not: { idPrefix: 'b' } }], attributes: { customer: 7 } },
    'a',
  ],
  ['by type', { type: 'quick' }, 'e'],
  ['by one of several types and statuses', { type: ['quick', idle], status: ['completed', 'failed'] }, 'e'],
  ['of no type', { type: [] }, ''],
  ['oldest first', { attributes: { customer: 7 }, order: 'oldestFirst' }, 'ab'],
])('found: %s', async (_, options, expected) => {
  const engine = await five();
  expect(await ids(engine, options)).toBe(expected);
  const { order, ...filter } = options as { order?: unknown };
  expect(await engine.count(filter)).toBe(expected.length);
});

test('code sets attributes and takes them away; a crash and a replay change nothing', async () => {
  let turns = 0;
  const order = workflow('order', async (ctx) => {
    turns += 1;
    ctx.setAttributes({ stage: 'paid', total: 3 });
    ctx.setAttributes({});
    await ctx.step('one', () => 1);
    ctx.setAttributes({ stage: 'sent', total: null, sent: new Date(ctx.now()) });
    await ctx.waitFor(go);
    ctx.setAttributes({ stage: 'over' });
  });
  const engine = await engineOf([order]);
  const handle = await engine.start(order, undefined, { id: 'o', attributes: { customer: 7, total: 1 } });
  await engine.idle();
  const row = await handle.describe();
  expect(row.attributes).toEqual({ customer: 7, stage: 'sent', sent: expect.any(Date) });
  expect(await ids(engine, { attributes: { stage: 'paid' } })).toBe('');
  await engine.crash();
  expect(turns).toBe(2);
  expect((await handle.describe()).attributes).toEqual(row.attributes);
  expect(await ids(engine, { attributes: { stage: 'sent' } })).toBe('o');
  const kinds: string[] = [];
  for await (const record of handle.history()) kinds.push(record.kind);
  expect(kinds.filter((kind) => kind === 'attributesSet')).toHaveLength(3);
  await handle.signal(go);
  await handle.result();
  expect(await ids(engine, { attributes: { stage: 'over' }, status: 'completed' })).toBe('o');
});

test('a workflow that sets attributes comes to the same end wherever it crashes', async () => {
  const order = workflow('order', async (ctx) => {
    ctx.setAttributes({ stage: 1 });
    const one = await ctx.step('one', () => 1);
    ctx.setAttributes({ stage: 2, other: ['a'] });
    await ctx.sleep('1h');
    ctx.setAttributes({ stage: null });
    return one;
  });
  const { crashes } = await crashEverywhere(
    { workflow: order },
    { expect: (outcome) => expect(outcome).toEqual({ status: 'completed', result: 1 }) },
  );
  expect(crashes).toBeGreaterThan(8);
});

test('a replay that sets none where one was set is stuck', async () => {
  let sets = true;
  const order = workflow('order', async (ctx) => {
    if (sets) ctx.setAttributes({ a: 1 });
    await ctx.waitFor(go);
  });
  const engine = await engineOf([order], { replayOnClose: false });
  await engine.start(order, undefined, { id: 'o' });
  await engine.idle();
  sets = false;
  await engine.crash();
  expect(await engine.explain('o')).toMatchObject({ reason: 'stuck', recorded: { kind: 'setAttributes' } });
});

test('signalWithStart, updateWithStart and continueAsNew keep attributes', async () => {
  const rounds = workflow('rounds', async (ctx, left: number): Promise<string> => {
    await ctx.waitFor(go);
    return left === 0 ? 'done' : ctx.continueAsNew(left - 1);
  });
  const engine = await engineOf([rounds]);
  const attributes = { customer: 7 };
  const handle = await engine.signalWithStart(rounds, { id: 'r', input: 1, signal: go, attributes });
  await engine.idle();
  expect((await handle.describe()).status).toBe('continuedAsNew');
  expect((await engine.handle('r').describe()).attributes).toEqual(attributes);
  expect(await engine.count({ attributes })).toBe(2);
});

test('attributes outlive a restart from disk', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'fusee-search-'));
  const options = { workflows: [idle], logger: quietLogger().logger };
  let engine = await open(dir, options);
  await engine.start(idle, undefined, { id: 'a', attributes: { customer: 7 } });
  await engine.close();
  engine = await open(dir, options);
  expect(await ids(engine, { attributes: { customer: { gte: 7 } } })).toBe('a');
  await engine.close();
  rmSync(dir, { recursive: true });
});

test('pages are stable while runs start and end, and a cursor belongs to its query', async () => {
  const engine = await engineOf([idle]);
  const start = async (id: string): Promise<void> => {
    await engine.start(idle, undefined, { id, attributes: { odd: 'acegi'.includes(id) } });
    await engine.advance(1);
  };
  for (const id of 'abcdefghi') await start(id);
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page: any = await engine.listPage({ attributes: { odd: true }, limit: 2, cursor });
    seen.push(page.runs.map(({ id }: { id: string }) => id).join(''));
    cursor = page.cursor;
    await start(`${seen.length}`);
    await engine.handle('i').terminate();
  } while (cursor !== undefined);
  expect(seen).toEqual(['ig', 'ec', 'a']);
  const page = await engine.listPage({ attributes: { odd: true }, limit: 2 });
  for (const other of [{}, { attributes: { odd: false } }, { attributes: { odd: true }, order: 'oldestFirst' }]) {
    const error = await rejection(engine.listPage({ ...other, cursor: page.cursor }));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toContain('is of another query');
  }
  expect((await rejection(engine.listPage({ cursor: 'x' }))).message).toBe('"x" is no cursor of a list');
  expect((await engine.listPage({ limit: 100 })).cursor).toBeUndefined();
});

test.each<[object, string]>([
  [{ attributes: 7 }, 'must be an object'],
  [{ attributes: { a: { above: 1 } } }, "no option 'above'"],
  [{ attributes: { a: {} } }, 'needs a value, or some of gt'],
  [{ attributes: { a: null } }, 'must be a text, a number'],
  [{ attributes: { a: ['x'] } }, "no option '0'"],
  [{ attributes: { a: NaN } }, 'finite'],
  [{ attributes: { a: { prefix: 7 } } }, 'the prefix of'],
  [{ attributes: { a: { exists: 1 } } }, 'true or false'],
  [{ attributes: { a: 'x\u001fy' } }, 'control characters'],
  [{ attributes: { '': 1 } }, 'is no name of an attribute'],
  [{ and: {} }, 'must be an array of filters'],
  [{ or: [{ sort: 1 }] }, "no option 'sort'"],
  [{ not: 7 }, 'must be an object'],
  [{ stuck: 'yes' }, 'stuck must be true or false'],
  [{ type: 'a\u001eb' }, 'control characters'],
  [{ status: 'dead' }, "there is no status 'dead'"],
  [{ or: Array.from({ length: 1100 }, () => ({ attributes: { a: 1 } })) }, 'more than 1000 conditions'],
  [Array.from({ length: 40 }).reduce<object>((not) => ({ not }), {}), 'in 32 others at most'],
])('filter %# is refused', async (filter, why) => {
  const engine = await engineOf([idle]);
  const error = await rejection(engine.count(filter));
  expect(error).toBeInstanceOf(Error);
  expect(error.message).toContain(why);
});

test.each<[object, string]>([
  [{ a: {} }, 'must be a text, a number'],
  [{ a: Infinity }, 'finite'],
  [{ a: 2n ** 63n }, '64 bits'],
  [{ a: new Date(NaN) }, 'Date of no time'],
  [{ a: [1] }, 'array of texts'],
  [{ a: ['x\n'] }, 'control characters'],
  [{ a: 'x'.repeat(1025) }, '1025 bytes'],
  [{ ['x'.repeat(65)]: 1 }, 'is no name of an attribute'],
  [{ a: Array.from({ length: 65 }, () => 'x') }, '65 texts'],
  [Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`a${n}`, n])), '65 search attributes'],
  [
    Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`a${n}`, 'x'.repeat(1000)])),
    'a run has up to 64 of 8192 bytes',
  ],
])('attributes %# are refused', async (attributes, why) => {
  const engine = await engineOf([idle]);
  const error = await rejection(engine.start(idle, undefined, { attributes }));
  expect(error.message).toContain(why);
  expect(await engine.count()).toBe(0);
});

test('code that sets what is no attribute gets an error, and a run with too many of them fails', async () => {
  const bad = workflow('bad', async (ctx) => {
    try {
      ctx.setAttributes({ a: {} as never });
    } catch (error) {
      return (error as Error).message;
    }
    return '';
  });
  const many = workflow('many', async (ctx) => {
    for (let n = 0; n < 100; n += 1) ctx.setAttributes({ [`a${n}`]: n });
    await ctx.sleep('1h');
  });
  const engine = await engineOf([bad, many]);
  expect(await engine.execute(bad)).toContain("'a' of the argument of ctx.setAttributes must be a text");
  const error = await rejection(engine.execute(many, undefined, { id: 'm' }));
  expect(error.message).toContain('65 search attributes');
});
