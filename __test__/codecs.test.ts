/** Codecs: what they do to payloads, and that every payload passes them. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
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
    for (let n = 1; noise.length < 600; n = (n * 48_271) % 2_147_483_647) noise += n.toString(36);
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
  tokens.length = 0;
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
  const job = await engine.enqueue(shout, long);
  expect(await job.result()).toBe(`${long}!`);
  expect((await job.describe()).progress).toEqual({ text: long });
  expect(await engine.object(cart, 'd').add(long)).toEqual([long]);
  await engine.objects.set(cart, 'd', { items: [long, long] });
  expect(await engine.object(cart, 'd').all()).toEqual([long, long]);
  await engine.schedules.upsert('nightly', { cron: '0 3 * * *', run: shout, input: long });
  expect(await (await engine.schedules.trigger('nightly')).result()).toBe(`${long}!`);
  await engine.close();
  expect(contents(dir)).not.toContain(SECRET);

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
  const slow = task('slow', async (ctx, input: string) => input);
  const openWith = (keys: any, queue = 4): Promise<any> =>
    open(dir, {
      workflows: [flow],
      tasks: [slow],
      queues: { default: { concurrency: queue } },
      logger,
      ...(keys === null ? {} : { codec: aes256gcm({ keys }) }),
    });
  let engine = await openWith([one]);
  await engine.start(flow, 'a', { id: 'r' });
  while ((await engine.explain('r')).reason !== 'waiting') await new Promise((next) => setTimeout(next, 1));
  await engine.queue('default').pause();
  const job = await engine.enqueue(slow, 'of one');
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
    await engine.queue('default').resume();
    while (!lines.some((line) => line.message.includes('waits for a codec')))
      await new Promise((next) => setTimeout(next, 1));
    expect((await engine.handle(slow, job.id).describe()).history).toMatchObject([]);
    await engine.queue('default').pause();
    await engine.close();
  }
  engine = await openWith([two, one]);
  // The signal that came without a codec, first.
  expect(await engine.handle(flow, 'r').result()).toEqual(['a1', 'late']);
  await engine.close();
}, 60_000);

test('a start with the same input is the same, another one is refused', async () => {
  const engine = await engineOf([child], { codec });
  const first = await engine.start(child, long, { id: 'same' });
  expect((await engine.start(child, long, { id: 'same' })).runId).toBe(first.runId);
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
  const values: unknown[] = [];
  for await (const { value } of engine.handle('c').history()) if (value !== undefined) values.push(value);
  expect(values).toEqual(['in', 'in1', 'told', 'in1, told, c', 'in1, told, c']);
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

function thrown(fn: () => unknown): any {
  try {
    fn();
  } catch (error) {
    return error;
  }
  throw new Error('it did not throw');
}
