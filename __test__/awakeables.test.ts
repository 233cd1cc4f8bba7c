import { signal, workflow } from 'fusee';
import { crashEverywhere } from 'fusee/testing';
import { engineOf, rejection } from './support/engines';

const quiet = { logger: { debug() {}, info() {}, warn() {}, error() {} } };

/** A workflow that gives its token away in a step and returns what it is completed with; and the tokens. */
function asking(options?: object): { readonly asks: any; readonly tokens: string[] } {
  const tokens: string[] = [];
  const asks = workflow('asks', async (ctx: any) => {
    const { token, promise } = ctx.awakeable(options);
    await ctx.step('send', () => void tokens.push(token));
    return promise;
  });
  return { asks, tokens };
}

test('the first completion settles it, later ones change nothing and say so', async () => {
  const { asks, tokens } = asking();
  const engine = await engineOf([asks]);
  const handle = await engine.start(asks);
  await engine.idle();
  await expect(engine.complete(tokens[0], { at: new Date(5) }, { actor: 'ann' })).resolves.toBe(true);
  await expect(engine.complete(tokens[0], 'second')).resolves.toBe(false);
  await expect(engine.fail(tokens[0], new Error('third'))).resolves.toBe(false);
  await expect(handle.result()).resolves.toEqual({ at: new Date(5) });
  await expect(engine.complete(tokens[0], 'after the end')).resolves.toBe(false);
});

test('a token that somebody makes up for a signal completes nothing, and no signal has the name of an awakeable', async () => {
  const waits = workflow('waits', (ctx: any) => ctx.waitFor(signal('approved')));
  const engine = await engineOf([waits]);
  const handle = await engine.start(waits, undefined, { id: 'a' });
  await engine.idle();
  const token = `fusee1.${Buffer.from(JSON.stringify(['a', handle.runId, 'approved'])).toString('base64url')}`;
  expect((await rejection(engine.complete(token, 'forged'))).name).toBe('RunNotFoundError');
  expect((await handle.describe()).status).toBe('running');
  expect(() => signal('awakeable:x')).toThrow(/must not begin with 'awakeable:'/);
});

test('two completions at once have one winner', async () => {
  const { asks, tokens } = asking();
  const engine = await engineOf([asks]);
  const handle = await engine.start(asks);
  await engine.idle();
  const first = await Promise.all([engine.complete(tokens[0], 'a'), engine.complete(tokens[0], 'b')]);
  expect(first).toEqual([true, false]);
  await expect(handle.result()).resolves.toBe('a');
});

test('a failure rejects it with that error', async () => {
  const asks = workflow('asks', async (ctx: any) => {
    const { token, promise } = ctx.awakeable();
    await ctx.step('send', () => void tokens.push(token));
    return promise.catch((error: Error) => `caught ${error.message}`);
  });
  const tokens: string[] = [];
  const engine = await engineOf([asks]);
  const handle = await engine.start(asks);
  await engine.idle();
  await expect(engine.fail(tokens[0], new Error('declined'))).resolves.toBe(true);
  await expect(handle.result()).resolves.toBe('caught declined');
});

test('a token is good after a crash, and its workflow asks for the same one again', async () => {
  const seen = new Set<string>();
  const tokens: string[] = [];
  const asks = workflow('asks', async (ctx: any) => {
    const { token, promise } = ctx.awakeable();
    seen.add(token);
    await ctx.step('send', () => void tokens.push(token));
    return promise;
  });
  const engine = await engineOf([asks]);
  const handle = await engine.start(asks, undefined, { id: 'a' });
  await engine.idle();
  await engine.crash();
  await engine.idle();
  expect(seen).toEqual(new Set([tokens[0]]));
  await expect(engine.complete(tokens[0], 1)).resolves.toBe(true);
  await engine.crash();
  await expect(engine.complete(tokens[0], 2)).resolves.toBe(false);
  await expect(handle.result()).resolves.toBe(1);
});

test('its time can be over: the promise rejects, and a late completion changes nothing', async () => {
  const { asks, tokens } = asking({ timeout: '1h' });
  const caught = workflow('caught', async (ctx: any) => {
    const error = await rejection(ctx.run(asks, undefined, { id: 'asks' }));
    await ctx.sleep('1d');
    return error.cause;
  });
  const engine = await engineOf([asks, caught]);
  const handle = await engine.start(asks);
  await engine.advance('2h');
  expect(await rejection(handle.result())).toMatchObject({ cause: { name: 'TimeoutError', of: 'wait' } });
  await expect(engine.complete(tokens[0], 1)).resolves.toBe(false);
});

test('an expired one of a run that goes on takes nothing', async () => {
  const tokens: string[] = [];
  const goesOn = workflow('goesOn', async (ctx: any) => {
    const { token, promise } = ctx.awakeable({ timeout: '1h' });
    await ctx.step('send', () => void tokens.push(token));
    const late = await promise.catch((error: Error) => error.name);
    await ctx.sleep('1d');
    return late;
  });
  const engine = await engineOf([goesOn]);
  const handle = await engine.start(goesOn);
  await engine.advance('2h');
  await expect(engine.complete(tokens[0], 1)).resolves.toBe(false);
  await engine.advance('1d');
  await expect(handle.result()).resolves.toBe('TimeoutError');
});

test('one that a cancel has withdrawn takes nothing', async () => {
  const tokens: string[] = [];
  const cleans = workflow('cleans', async (ctx: any) => {
    const { token, promise } = ctx.awakeable();
    await ctx.step('send', () => void tokens.push(token));
    try {
      await promise;
    } finally {
      await ctx.scope(() => ctx.sleep('1d'), { cancellable: false });
    }
  });
  const engine = await engineOf([cleans]);
  const handle = await engine.start(cleans);
  await engine.idle();
  await handle.cancel();
  await engine.idle();
  await expect(engine.complete(tokens[0], 1)).resolves.toBe(false);
  await engine.advance('1d');
  expect((await rejection(handle.result())).name).toBe('CancelledError');
});

test('tokens differ, and none is an idempotency key that a step has given away', async () => {
  const many = workflow('many', async (ctx: any) => {
    const tokens = Array.from({ length: 50 }, () => ctx.awakeable().token);
    const keys = await Promise.all([1, 2, 3].map(() => ctx.step('awakeable', (step: any) => step.idempotencyKey)));
    return { tokens, keys };
  });
  const engine = await engineOf([many]);
  const [one, two] = await Promise.all([engine.execute(many), engine.execute(many)]);
  const tokens: string[] = [...one.tokens, ...two.tokens];
  expect(new Set(tokens).size).toBe(100);
  const plain = tokens.map((token) => Buffer.from(token.slice('fusee1.'.length), 'base64url').toString());
  for (const key of [...one.keys, ...two.keys]) expect(plain.some((text) => text.includes(key))).toBe(false);
});

test('a crash at any record leaves the outcome the same', async () => {
  const asks = workflow('asks', async (ctx: any) => {
    const { promise } = ctx.awakeable({ timeout: '1h' });
    const late = await promise.catch((error: Error) => error.name);
    return [late, await ctx.step('s', () => 1)];
  });
  const { crashes } = await crashEverywhere(
    { workflow: asks, options: quiet } as any,
    { expect: (outcome: any) => expect(outcome).toEqual({ status: 'completed', result: ['TimeoutError', 1] }) } as any,
  );
  expect(crashes).toBeGreaterThanOrEqual(10);
});

describe('bad input', () => {
  const forged = (fields: unknown): string => `fusee1.${Buffer.from(JSON.stringify(fields)).toString('base64url')}`;

  test.each([
    ['nothing', undefined],
    ['a number', 7],
    ['an empty text', ''],
    ['another text', 'hello'],
    ['no JSON', 'fusee1.!!!'],
    ['no list', forged({})],
    ['too few fields', forged(['a', 'b'])],
    ['a field that is no text', forged(['a', 'b', 1])],
    ['an empty field', forged(['a', 'b', ''])],
    ['control characters', forged(['a', 'b\u001f', 'c'])],
    ['a long field', forged(['a', 'b', 'c'.repeat(300)])],
  ])('%s is no token', async (_, token) => {
    const { asks } = asking();
    const engine = await engineOf([asks]);
    expect((await rejection(engine.complete(token, 1))).name).toBe('TypeError');
    expect((await rejection(engine.fail(token, new Error('no')))).name).toBe('TypeError');
  });

  test('a token with another secret, and one of no run, complete nothing', async () => {
    const { asks, tokens } = asking();
    const engine = await engineOf([asks]);
    const handle = await engine.start(asks, undefined, { id: 'a' });
    await engine.idle();
    const [id, runId] = JSON.parse(Buffer.from(tokens[0]!.slice('fusee1.'.length), 'base64url').toString());
    for (const fields of [
      [id, runId, 'awakeable:0000'],
      ['b', runId, 'awakeable:0000'],
    ]) {
      expect((await rejection(engine.complete(forged(fields), 1))).name).toBe('RunNotFoundError');
    }
    expect((await handle.describe()).status).toBe('running');
  });

  test('options and values that cannot be taken are named', async () => {
    const { asks, tokens } = asking();
    const engine = await engineOf([asks]);
    await engine.start(asks);
    await engine.idle();
    expect(await rejection(engine.complete(tokens[0], 1, { who: 'me' }))).toMatchObject({ name: 'TypeError' });
    expect((await rejection(engine.complete(tokens[0], () => 1))).name).toBe('TypeError');
    await expect(engine.complete(tokens[0])).resolves.toBe(true);
  });

  test('ctx.awakeable refuses options that it does not have', async () => {
    const asks = workflow('asks', async (ctx: any) => ctx.awakeable({ expires: '1h' }).promise);
    const engine = await engineOf([asks]);
    expect(await rejection(engine.execute(asks))).toMatchObject({
      cause: { message: "ctx.awakeable has no option 'expires'; it has timeout" },
    });
  });
});
