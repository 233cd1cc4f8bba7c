/** Codecs: what they do to payloads, and that every payload passes them. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  aes256gcm,
  CodecError,
  compression,
  object,
  open,
  query,
  signal,
  task,
  update,
  workflow,
  WorkflowAlreadyStartedError,
  type Codec,
} from 'fusee';
import { check, crashEverywhere, replay } from 'fusee/testing';
import { readCodecs } from '../js/codec/chain';
import { runScript } from './support/scripts';
import { closing, engineOf, quietLogger, rejection } from './support/engines';

const key = (fill: number): Uint8Array => new Uint8Array(32).fill(fill);
const one = { id: 'one', key: key(1) };
const two = { id: 'two', key: key(2) };
const place = { kind: 'step', id: 'run', name: 'pay' } as const;
const SECRET = 'quite-a-secret';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'fusee-codecs-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

let directories = 0;
const newDirectory = (): string => join(folder, String((directories += 1)));

/** All that is in the files of a directory. */
function contents(dir: string): string {
  return readdirSync(dir)
    .filter((name) => name !== 'lock')
    .map((name) => readFileSync(join(dir, name), 'latin1'))
    .join('\n');
}

describe('texts through codecs', () => {
  const sealed = (codec: unknown, value: unknown, at: any = place): string => readCodecs(codec).record(value, 'it', at);
  const opened = (codec: unknown, text: string, at: any = place): unknown => readCodecs(codec).read(text, at);

  test.each([
    ['compression', compression({ minBytes: 0 })],
    ['brotli', compression({ algorithm: 'brotli', minBytes: 0 })],
    ['encryption', aes256gcm({ keys: [one] })],
    ['both', [compression(), aes256gcm({ keys: [one] })]],
  ])('come back as they were: %s', (_, codec) => {
    for (const value of [
      undefined,
      null,
      '',
      0,
      'ü😀'.repeat(500),
      { at: new Date(5), n: [1n, NaN] },
      new Map([[1, 2]]),
    ]) {
      const text = sealed(codec, value);
      expect(opened(codec, text)).toEqual(value);
      expect(() => JSON.parse(text)).not.toThrow();
    }
  });

  test('compressed are only those that get shorter by it, as texts', () => {
    const codec = compression({ minBytes: 0 });
    expect(sealed(codec, 'abc')).toBe('"abc"');
    const long = 'abc'.repeat(1000);
    expect(sealed(codec, long).length).toBeLessThan(200);
    let noise = '';
    for (let n = 1; noise.length < 600; n = (n * 48_271) % 2_147_483_647) noise += String.fromCharCode(35 + (n % 57));
    expect(sealed(codec, noise)).toBe(JSON.stringify(noise));
    expect(sealed(compression(), 'abc'.repeat(60))).toBe(JSON.stringify('abc'.repeat(60)));
  });

  test('encrypted twice differ, except where the engine compares them', () => {
    const codec = readCodecs(aes256gcm({ keys: [one] }));
    expect(codec.record('a', 'it', place)).not.toBe(codec.record('a', 'it', place));
    const compared = { kind: 'input', id: 'a', name: '', isCompared: true } as const;
    const text = codec.record('a', 'it', compared);
    expect(sealed(aes256gcm({ keys: [one, two] }), 'a', compared)).toBe(text);
    expect(codec.record('b', 'it', compared)).not.toBe(text);
    expect(codec.record('a', 'it', { ...compared, id: 'b' })).not.toBe(text);
    expect(sealed(aes256gcm({ keys: [two] }), 'a', compared)).not.toBe(text);
    expect(codec.read(text, { kind: 'input', id: 'a', name: '' })).toBe('a');
  });

  test('are read with any of the keys, and written with the first', () => {
    const old = sealed(aes256gcm({ keys: [one] }), 'x');
    const rotated = aes256gcm({ keys: [two, one] });
    expect(opened(rotated, old)).toBe('x');
    const error = thrown(() => opened(aes256gcm({ keys: [one] }), sealed(rotated, 'x')));
    expect(error).toBeInstanceOf(CodecError);
    expect(error).toMatchObject({ code: 'CODEC', id: 'run', codec: 'aes256gcm', keyId: 'two' });
    expect(error.message).toBe(
      "the result of step 'pay' of workflow run cannot be read by the codec 'aes256gcm': it needs key 'two', and there is " +
        "'one'; add that key behind the others",
    );
  });

  test('that were written without a codec are read with one, and the other way round the codec is named', () => {
    const text = sealed(aes256gcm({ keys: [one] }), 'x');
    expect(opened(aes256gcm({ keys: [one] }), sealed([], 'x'))).toBe('x');
    expect(thrown(() => opened([], text))).toMatchObject({ code: 'CODEC', codec: 'aes256gcm', keyId: undefined });
    expect(thrown(() => opened(compression(), text)).message).toContain('it was given compression');
  });

  test.each([
    ['another key of the name', text, aes256gcm({ keys: [{ ...two, id: 'one' }] }), place],
    ['another run', text, aes256gcm({ keys: [one] }), { ...place, id: 'other' }],
    ['another step', text, aes256gcm({ keys: [one] }), { ...place, name: 'refund' }],
    ['another kind', text, aes256gcm({ keys: [one] }), { ...place, kind: 'signal' }],
    [
      'a changed byte',
      () => text().replace(/(.)(.{4}"\]\})$/, (_, c: string, rest) => (c === 'A' ? 'B' : 'A') + rest),
      aes256gcm({ keys: [one] }),
      place,
    ],
    ['a cut', () => text().replace(/.{20}"\]\}$/, '"]}'), aes256gcm({ keys: [one] }), place],
    ['almost nothing', () => '{"$":["x","aes256gcm","AQ=="]}', aes256gcm({ keys: [one] }), place],
    ['nonsense', () => '{"$":["x","compression","AAAA"]}', compression(), place],
  ])('are refused with a typed error: %s', (_, make, codec, at) => {
    expect(thrown(() => opened(codec, make(), at))).toBeInstanceOf(CodecError);
  });
  function text(): string {
    return sealed(aes256gcm({ keys: [one] }), 'value');
  }

  test('a user value that looks like one is none', () => {
    for (const codec of [[], aes256gcm({ keys: [one] })]) {
      const value = { $: ['x', 'aes256gcm', 'AAAA'], text: '{"$":["x","a","b"]}' };
      expect(opened(codec, sealed(codec, value))).toEqual(value);
    }
  });
});

describe('bad input', () => {
  const same = { encode: (bytes: Uint8Array) => bytes, decode: (bytes: Uint8Array) => bytes };
  test.each<[string, () => unknown, string]>([
    ['no codec', () => readCodecs({ name: 'x' }), 'with name, encode and decode'],
    ['a bad name', () => readCodecs({ name: 'a+b', ...same }), 'the name of a codec'],
    [
      'two of one name',
      () =>
        readCodecs([
          { name: 'a', ...same },
          { name: 'a', ...same },
        ]),
      "two codecs named 'a'",
    ],
    ['a bad order', () => readCodecs([aes256gcm({ keys: [one] }), compression()]), 'must come before'],
    ['no keys', () => aes256gcm({ keys: [] }), 'needs keys'],
    ['no options', () => (aes256gcm as any)(), 'needs keys'],
    ['a key that is no key', () => aes256gcm({ keys: [{ id: 'a', key: 5 as any }] }), "key 'a' of aes256gcm must be"],
    ['a short key', () => aes256gcm({ keys: [{ id: 'a', key: 'YWJj' }] }), 'has 3 bytes and must have 32'],
    ['a key without id', () => aes256gcm({ keys: [{ key: key(1) } as any] }), 'the id of keys[0]'],
    ['two keys of one id', () => aes256gcm({ keys: [one, one] }), 'two keys'],
    ['an unknown option', () => aes256gcm({ keys: [one], iv: 1 } as any), "has no option 'iv'"],
    ['an unknown algorithm', () => compression({ algorithm: 'lzma' as any }), 'deflate, brotli or zstd'],
    ['a bad size', () => compression({ minBytes: -1 }), 'minBytes'],
  ])('%s', (_, call, message) => {
    expect(thrown(call).message).toContain(message);
  });

  test('keys are texts too, and never shown', () => {
    const hex = Buffer.from(key(7)).toString('hex');
    const base64 = Buffer.from(key(7)).toString('base64');
    const text = readCodecs(aes256gcm({ keys: [{ id: 'a', key: hex }] })).record(1, 'it', place);
    expect(readCodecs(aes256gcm({ keys: [{ id: 'a', key: base64 }] })).read(text, place)).toBe(1);
    expect(thrown(() => aes256gcm({ keys: [{ id: 'a', key: 'sesame' }] })).message).not.toContain('sesame');
  });

  test('what a codec throws at a value rejects the call that writes it, and fails a step for good', async () => {
    const picky: Codec = {
      name: 'picky',
      encode(bytes) {
        if (Buffer.from(bytes).includes('bad')) throw new Error('not this one');
        return bytes;
      },
      decode: (bytes) => bytes,
    };
    const flow = workflow('flow', (ctx, value: string) => ctx.step('echo', () => `ba${value}`));
    const engine = await engineOf([flow], { codec: picky });
    expect(String(await rejection(engine.start(flow, 'bad')))).toContain("the codec 'picky' says: not this one");
    expect(String(await rejection(engine.execute(flow, 'd')))).toContain('not this one');
    expect(await engine.execute(flow, 'r')).toBe('bar');
  });
});

// ── Every payload passes ──

const review = signal<string>('review');
const rename = update<string, string>('rename');
const shout = task('shout', async (ctx, text: string) => {
  ctx.progress({ text });
  return `${text}!`;
});
const cart = object('cart', {
  state: () => ({ items: [] as string[] }),
  handlers: { add: (ctx, item: string) => [...(ctx.state.items = [...ctx.state.items, item])] },
  shared: { all: (ctx) => ctx.state.items },
});
const child = workflow('child', (ctx, text: string) => ctx.step('child step', () => text));
const tokens: string[] = [];
const seen = query<string>('seen');
const everything = workflow('everything', async (ctx, input: { text: string; round: number }): Promise<string[]> => {
  const { text } = input;
  ctx.onUpdate(rename, (name) => `${name}, ${text}`);
  ctx.onQuery(seen, () => text);
  const stepped = await ctx.step('step', (step) => {
    step.heartbeat({ text });
    return { text };
  });
  const { token, promise } = ctx.awakeable<string>();
  tokens.push(token);
  const told = await ctx.waitFor(review);
  const awaited = await promise;
  const [ofChild, ofTask] = await Promise.all([ctx.run(child, text), ctx.run(shout, text)]);
  const items = await ctx.object(cart, 'c').add(text);
  if (input.round === 0) return ctx.continueAsNew({ text, round: 1 });
  return [stepped.text, told!, awaited, ofChild, ofTask, items.at(-1)!];
});

const definitions = { workflows: [everything, child], objects: [cart], tasks: [shout] };
const codec = [compression({ minBytes: 64 }), aes256gcm({ keys: [one] })];
const long = `${SECRET} ${'and more '.repeat(30)}`;

async function goOn(engine: any, text: string): Promise<void> {
  const handle = engine.handle(everything, 'e');
  await handle.signal(review, text);
  while (tokens.length === 0) await new Promise((next) => setTimeout(next, 1));
  expect(await engine.complete(tokens[0]!, text)).toBe(true);
}

test('no payload is readable in the directory or in exported runs; ids, names and errors are', async () => {
  const dir = newDirectory();
  const options = { ...definitions, codec, logger: quietLogger().logger };
  let engine: any = await open(dir, options);
  const handle = await engine.start(
    everything,
    { text: long, round: 0 },
    { id: 'e', attributes: { visible: 'attribute' } },
  );
  expect(await handle.update(rename, long)).toBe(`${long}, ${long}`);
  await goOn(engine, long);
  while (tokens.length < 2) await new Promise((next) => setTimeout(next, 1));
  const job = await engine.enqueue(shout, long);
  expect(await job.result()).toBe(`${long}!`);
  expect(await engine.object(cart, 'd').add(long)).toEqual([long]);
  await engine.objects.set(cart, 'd', { items: [long, long] });
  expect(await engine.object(cart, 'd').all()).toEqual([long, long]);
  await engine.schedules.upsert('nightly', { cron: '0 3 * * *', run: shout, input: long });
  expect(await (await engine.schedules.trigger('nightly')).result()).toBe(`${long}!`);
  await engine.schedules.upsert('weekly', { cron: '0 3 * * 1', run: child, input: long });
  const scheduled = await engine.schedules.trigger('weekly');
  expect(await scheduled.result()).toBe(long);
  for await (const { kind, value } of scheduled.history()) if (kind === 'started') expect(value).toBe(long);
  await engine.close();
  expect(contents(dir)).not.toContain(SECRET);

  tokens.length = 0;
  engine = await open(dir, options);
  expect(await engine.handle(everything, 'e').query(seen)).toBe(long);
  await goOn(engine, long);
  const again = engine.handle(everything, 'e');
  expect(await again.result()).toEqual([long, long, long, long, `${long}!`, long]);
  expect((await engine.objects.get(cart, 'd')).state).toEqual({ items: [long, long] });

  const values = new Map<string, unknown>();
  for await (const { kind, value } of again.history()) values.set(kind, value);
  expect(Object.fromEntries(values)).toMatchObject({
    started: { text: long, round: 1 },
    stepCompleted: { text: long },
    stepHeartbeat: { text: long },
    childStarted: long,
    ended: [long, long, long, long, `${long}!`, long],
  });
  expect([...values.values()].filter((value) => CodecError.is(value))).toEqual([]);
  const bytes = await again.export();
  expect(Buffer.from(bytes).includes(SECRET)).toBe(false);
  await engine.close();
  const all = contents(dir);
  expect(all).not.toContain(SECRET);
  for (const readable of ['everything', 'review', 'rename', 'child step', 'nightly', 'attribute'])
    expect(all).toContain(readable);

  const code = { workflows: [child], objects: [cart], tasks: [shout] };
  expect(await replay(everything, bytes, { ...code, codec })).toMatchObject({ status: 'completed' });
  expect(await rejection(replay(everything, bytes, code))).toBeInstanceOf(CodecError);
  const { checked, failures } = await check({ ...definitions, dir, ended: true });
  expect(failures.length).toBeGreaterThan(0);
  expect(new Set(failures.map(({ kind }) => kind))).toEqual(new Set(['unreadable']));
  expect((await check({ ...definitions, dir, ended: true, codec })).failures).toEqual([]);
  expect(checked).toBeGreaterThan(2);
});

test('a run whose key is missing is stuck and loses nothing, whatever onMismatch says; with the key it goes on', async () => {
  const dir = newDirectory();
  const { lines, logger } = quietLogger();
  const flow = workflow(
    'flow',
    async (ctx, input: string) => {
      const first = await ctx.step('first', () => `${input}1`);
      const told = await ctx.waitFor(review);
      return [first, told];
    },
    { onMismatch: 'fail' },
  );
  const openWith = (keys: any): Promise<any> =>
    open(dir, { workflows: [flow], logger, ...(keys === null ? {} : { codec: aes256gcm({ keys }) }) });
  let engine = await openWith([one]);
  await engine.start(flow, 'a', { id: 'r' });
  while ((await engine.explain('r')).reason !== 'waiting') await new Promise((next) => setTimeout(next, 1));
  await engine.close();

  for (const keys of [null, [two], [{ ...two, id: 'one' }]]) {
    lines.length = 0;
    engine = await openWith(keys);
    while ((await engine.explain('r')).reason !== 'stuck') await new Promise((next) => setTimeout(next, 1));
    const { message } = (await engine.explain('r')) as { message: string };
    expect(message).toMatch(/CodecError: the input of workflow r /);
    expect(message).toContain(keys === null ? "written by the codec 'aes256gcm'" : "key 'one'");
    await engine
      .handle('r')
      .signal(review, 'late', { dedupeId: `same` })
      .catch(() => undefined);
    expect((await engine.handle('r').describe()).status).toBe('running');
    expect(lines.some((line) => line.message.includes('Open with a codec that can read it'))).toBe(true);
    await engine.close();
  }
  engine = await openWith([two, one]);
  // The signal that came without a codec, first.
  expect(await engine.handle(flow, 'r').result()).toEqual(['a1', 'late']);
  await engine.close();
});

test('what cannot be read waits for its codec, also without a restart: runs until a resume, tasks by themselves', async () => {
  let isLocked = false;
  const lock: Codec = {
    name: 'lock',
    encode: (bytes) => Buffer.from(bytes),
    decode(bytes) {
      if (isLocked) throw Object.assign(new Error('locked'), { keyId: 'k' });
      return bytes;
    },
  };
  const flow = workflow('flow', async (ctx, input: string) => {
    const told = await ctx.waitFor(review);
    return `${input} ${told}`;
  });
  const engine = await engineOf([flow], { codec: lock, tasks: [shout], objects: [cart] });
  const [run, job, item] = [
    await engine.start(flow, 'in'),
    await engine.enqueue(shout, 'a', { delay: '1m' }),
    await engine.object(cart, 'c').add('first'),
  ];
  expect(item).toEqual(['first']);
  isLocked = true;
  await run.signal(review, 'told');
  const added = engine.object(cart, 'c').add('second');
  await engine.advance('1m');
  expect(await engine.explain(run.id)).toMatchObject({ reason: 'stuck' });
  expect(await engine.explain('object:cart:c')).toMatchObject({ reason: 'stuck' });
  expect(await job.describe()).toMatchObject({
    status: 'retrying',
    history: [{ outcome: 'postponed' }],
  });
  expect((await rejection(engine.objects.get(cart, 'c'))).keyId).toBe('k');
  isLocked = false;
  await run.resume();
  await engine.handle('object:cart:c').resume();
  expect(await run.result()).toBe('in told');
  expect(await added).toEqual(['first', 'second']);
  await engine.advance('1m');
  expect(await job.result()).toBe('a!');
});

test('a start with the same input is the same, another one is refused', async () => {
  const waits = workflow('waits', (ctx, _: string) => ctx.waitFor(review));
  const other = closing(await open(':memory:', { workflows: [waits], codec, logger: quietLogger().logger }));
  const there = await other.start(waits, 'a', { id: 'w' });
  expect((await other.start(waits, 'a', { id: 'w' })).runId).toBe(there.runId);
  expect(await rejection(other.start(waits, 'b', { id: 'w' }))).toBeInstanceOf(WorkflowAlreadyStartedError);
});

test('a payload that was copied to another run is refused there', async () => {
  const dir = newDirectory();
  let kept: Uint8Array | undefined;
  const thief: Codec = {
    name: 'thief',
    encode(bytes, { kind }) {
      if (kind !== 'step') return bytes;
      kept ??= bytes;
      return Buffer.from(kept);
    },
    decode: (bytes) => bytes,
  };
  const flow = workflow('flow', async (ctx) => {
    const amount = await ctx.step('amount', () => 5);
    await ctx.waitFor(review);
    return amount;
  });
  const options = { workflows: [flow], codec: [aes256gcm({ keys: [one] }), thief], logger: quietLogger().logger };
  let engine: any = await open(dir, options);
  for (const id of ['mine', 'yours']) {
    await engine.start(flow, undefined, { id });
    while ((await engine.explain(id)).reason !== 'waiting') await new Promise((next) => setTimeout(next, 1));
  }
  await engine.close();
  engine = await open(dir, options);
  while ((await engine.explain('yours')).reason !== 'stuck') await new Promise((next) => setTimeout(next, 1));
  expect((await engine.explain('yours')).message).toContain("the result of step 'amount' of workflow yours");
  await engine.handle(flow, 'mine').signal(review, '');
  expect(await engine.handle(flow, 'mine').result()).toBe(5);
  await engine.close();
});

test('forks, resets and their histories read what they began with', async () => {
  const flow = workflow('flow', async (ctx, input: string) => {
    const first = await ctx.step('first', () => `${input}1`);
    const told = await ctx.waitFor(review);
    return ctx.step('last', () => `${first}, ${told}, ${ctx.info.id}`);
  });
  const engine = await engineOf([flow], { codec });
  const run = await engine.start(flow, 'in', { id: 'a' });
  await run.signal(review, 'told');
  expect(await run.result()).toBe('in1, told, a');
  const forked = await run.fork({ toStep: 'last', id: 'b' });
  expect(await forked.result()).toBe('in1, told, b');
  const again = await (await forked.fork({ toStep: 'last', id: 'c' })).result();
  expect(again).toBe('in1, told, c');
  expect(await (await run.reset({ toStep: 'last' })).result()).toBe('in1, told, a');
  const valuesOf = async (id: string): Promise<unknown[]> => {
    const values: unknown[] = [];
    for await (const { value } of engine.handle(id).history()) if (value !== undefined) values.push(value);
    return values;
  };
  expect(await valuesOf('a')).toEqual(['in', 'in1', 'told', 'in1, told, a', 'in1, told, a']);
  // A history does not know of which runs its own began with records.
  const ofFork = await valuesOf('c');
  expect(ofFork.slice(3)).toEqual(['in1, told, c', 'in1, told, c']);
  expect(ofFork.slice(0, 3).map((value) => CodecError.is(value))).toEqual([true, true, true]);
});

test('a workflow ends the same with a crash at every place', async () => {
  const flow = workflow('flow', async (ctx, input: string) => {
    const stepped = await ctx.step('one', () => `${input}1`);
    const [told, both] = await Promise.all([ctx.waitFor(review), ctx.run(child, stepped)]);
    const items = await ctx.object(cart, 'x').add(both);
    return [stepped, told, both, items, await ctx.run(shout, both)];
  });
  const { crashes } = await crashEverywhere(
    {
      workflow: flow,
      input: 'in',
      signals: [{ signal: review, value: 'yes' }],
      options: { workflows: [child], objects: [cart], tasks: [shout], codec, logger: quietLogger().logger },
    },
    {
      expect: (outcome) =>
        expect(outcome).toEqual({ status: 'completed', result: ['in1', 'yes', 'in1', ['in1'], 'in1!'] }),
    },
  );
  expect(crashes).toBeGreaterThan(10);
});

test('many results at once are read back each in its place', async () => {
  const dir = newDirectory();
  const wide = workflow('wide', async (ctx) => {
    const all = await Promise.all(Array.from({ length: 50 }, (_, i) => ctx.step(`s${i % 7}`, () => ({ i, big: 2n }))));
    await ctx.waitFor(review);
    return all.map(({ i }) => i).join();
  });
  const options = { workflows: [wide], codec, logger: quietLogger().logger };
  let engine: any = await open(dir, options);
  await engine.start(wide, undefined, { id: 'w' });
  while ((await engine.explain('w')).reason !== 'waiting') await new Promise((next) => setTimeout(next, 1));
  await engine.close();
  engine = await open(dir, { ...options, codec: aes256gcm({ keys: [two, one] }), workflows: [wide] });
  await engine.handle(wide, 'w').signal(review, 'x');
  // Compression is missing where nothing was compressed.
  expect(await engine.handle(wide, 'w').result()).toBe(Array.from({ length: 50 }, (_, i) => i).join());
  await engine.close();
});

describe('on other threads and in the command', () => {
  const fixture = join(__dirname, 'fixtures/threads/codecs.cjs');

  test('workers get the keys of the opener, and codecs with functions from their module', async () => {
    const dir = newDirectory();
    const ended = await runScript(`
      const { flow, go, shout, flip, cipher } = require(${JSON.stringify(fixture)});
      const { aes256gcm, compression } = require('fusee');
      const module = ${JSON.stringify(fixture)};
      const place = ${JSON.stringify(dir)};
      const keys = [{ id: 'two', key: new Uint8Array(32).fill(2) }, { id: 'one', key: new Uint8Array(32).fill(1) }];
      const options = (codec) => ({ logger: quiet, tasks: [shout], workers: { count: 2, module }, codec });
      let engine = await open(place, options([compression({ minBytes: 0 }), aes256gcm({ keys: keys.slice(1) }), flip]));
      const handles = await Promise.all(['a', 'b', 'c', 'd'].map((id) => engine.start(flow, 'quite-a-secret', { id })));
      for (const { id } of handles) while ((await engine.explain(id)).reason !== 'waiting') await tick();
      await engine.close();
      engine = await open(place, options([compression(), aes256gcm({ keys }), flip]));
      for (const { id } of handles) await engine.handle(flow, id).signal(go, 'on');
      const results = await Promise.all(handles.map(({ id }) => engine.handle(flow, id).result()));
      await engine.close();
      const own = { name: 'own', encode: (bytes) => bytes, decode: (bytes) => bytes };
      const refused = await open(':memory:', options(own)).then(() => 'opened', (error) => error.name + ': ' + error.message);
      console.log(JSON.stringify({ results, refused }));
    `);
    expect(ended).toMatchObject({ code: 0, err: '' });
    const { results, refused } = JSON.parse(ended.out.trim().split('\n').at(-1)!);
    expect(results).toEqual(Array(4).fill('quite-a-secret! on'));
    expect(refused).toContain('TypeError: worker');
    expect(refused).toContain(
      "the codec 'own' has functions, which cannot be copied to a worker: export it from workers.module",
    );
    expect(contents(dir)).not.toContain(SECRET);
  });

  test('fusee check takes the codecs that the module exports', async () => {
    const dir = newDirectory();
    const { flow, cipher, flip, shout } = require(fixture);
    const dist = require('..');
    const engine = await dist.open(dir, {
      workflows: [flow],
      tasks: [shout],
      codec: [cipher, flip],
      logger: quietLogger().logger,
    });
    await engine.start(flow, 'x', { id: 'a' });
    while ((await engine.explain('a')).reason !== 'waiting') await new Promise((next) => setTimeout(next, 1));
    await engine.close();
    const command = (module: string): any =>
      spawnSync(process.execPath, [join(__dirname, '../dist/bin/fusee.js'), 'check', module, dir], {
        encoding: 'utf8',
      });
    expect(command(fixture)).toMatchObject({ status: 0, stdout: '1 run checked: 1 fit\n' });
    const without = join(folder, 'without.cjs');
    writeFileSync(
      without,
      `const { flow, shout } = require(${JSON.stringify(fixture)}); Object.assign(exports, { flow, shout });`,
    );
    const { status, stdout } = command(without);
    expect(status).toBe(2);
    expect(stdout).toContain(
      "the input of workflow a was written by the codec 'flip', which this engine does not have",
    );
  });
});

function thrown(fn: () => unknown): any {
  try {
    fn();
  } catch (error) {
    return error;
  }
  throw new Error('it did not throw');
}
