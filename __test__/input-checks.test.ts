import { open, query, signal, workflow } from 'fusee';
import { engineOf, rejection } from './support/engines';

const go = signal<unknown>('go');
const takes = workflow('takes', async (ctx: any, input: unknown) => {
  await ctx.waitFor(go);
  return input;
});

test('open refuses what cannot be meant, and leaves nothing behind', async () => {
  for (const [dir, options, said] of [
    ['', {}, /needs a directory/],
    [undefined, undefined, /needs a directory/],
    [':memory:', { workflows: [{ name: 'x' }] }, /workflows\[0\] is not what workflow\(\) returned/],
    [':memory:', { workflows: 'takes' }, /must be an array/],
    [':memory:', { workflows: [takes, workflow('takes', async () => 1)] }, /two workflows named 'takes'/],
    [':memory:', { wrokflows: [] }, /no option 'wrokflows'/],
    [':memory:', { flush: 'sometimes' }, /flush must be one of/],
    [':memory:', { shards: 0 }, /shards must be a whole number/],
    [':memory:', { logger: {} }, /no function 'debug'/],
  ] as any[]) {
    expect((await rejection(open(dir, options))).message).toMatch(said);
  }
});

test('a definition that was not given to open is refused by name', async () => {
  const engine = await engineOf([]);
  expect(await rejection(engine.start(takes))).toMatchObject({ name: 'UnknownDefinitionError' });
  expect((await rejection(engine.start(takes))).message).toMatch(/'takes'.*option workflows/);
  await expect(engine.start({ name: 'takes' })).rejects.toThrow(TypeError);
});

test('ids, names and options are checked where they are given', async () => {
  const engine = await engineOf([takes]);
  for (const id of ['', 5, null]) expect((await rejection(engine.start(takes, 1, { id })))?.message).toMatch(/id/);
  expect((await rejection(engine.start(takes, 1, { id: 'x'.repeat(10_000) }))).message).toMatch(/10000 bytes/);
  expect((await rejection(engine.start(takes, 1, { id: 'a\u001fb' }))).message).toMatch(/control/);
  expect((await rejection(engine.start(takes, 1, { idd: 'a' }))).message).toMatch(/no option 'idd'/);
  expect((await rejection(engine.start(takes, 1, { idReusePolicy: 'no' }))).message).toMatch(/idReusePolicy/);
  expect((await rejection(engine.start(takes, 1, { timeout: 'soon' }))).name).toBe('RangeError');
  expect((await rejection(engine.start(takes, 1, { version: 1.5 }))).message).toMatch(/version/);
  const handle = await engine.start(takes, 1);
  await expect(handle.signal('go', 1)).rejects.toThrow(TypeError);
  await expect(handle.query(go)).rejects.toThrow(TypeError);
  await expect(handle.query(query('q'), 1, { timeout: -1 })).rejects.toThrow(RangeError);
  await expect(handle.cancel(5)).rejects.toThrow(TypeError);
  await expect(engine.count({ status: 'sleeping' })).rejects.toThrow(/no status 'sleeping'/);
  expect(() => engine.handle(takes, '')).toThrow(TypeError);
});

test('a value that cannot be recorded is refused with its path, one that is too large with its size and the limit', async () => {
  const engine = await engineOf([takes], { payloadBytesMax: 1000 });
  expect((await rejection(engine.start(takes, { a: [1, () => 1] }))).message).toMatch(
    /input of workflow 'takes'.*a\[1\]/,
  );
  const large = await rejection(engine.start(takes, 'x'.repeat(2000)));
  expect(large.message).toMatch(/input of workflow 'takes' takes 2002 bytes; the limit is 1000/);
  const handle = await engine.start(takes, 1);
  expect((await rejection(handle.signal(go, { b: Symbol('s') }))).message).toMatch(/signal 'go'.*b/);
  expect((await rejection(handle.signal(go, 'ü'.repeat(600)))).message).toMatch(/1202 bytes/);
});

test('ctx refuses what cannot be meant by throwing in the code, which may catch it', async () => {
  const checks = workflow('checks', async (ctx: any) => {
    const said: string[] = [];
    const attempt = async (call: () => unknown): Promise<void> => {
      try {
        await call();
        said.push('nothing');
      } catch (error: any) {
        said.push(error.name);
      }
    };
    await attempt(() => ctx.step('', () => 1));
    await attempt(() => ctx.step('s'));
    await attempt(() => ctx.step('s', () => 1, { retry: { maxAttempts: 0 } }));
    await attempt(() => ctx.step('s', () => 1, { semantics: 'often' }));
    await attempt(() => ctx.step('s', () => 1, { compensate: () => 1 }));
    await attempt(() => ctx.sleep('soon'));
    await attempt(() => ctx.sleepUntil('never'));
    await attempt(() => ctx.waitFor('go'));
    await attempt(() => ctx.condition(true));
    await attempt(() => ctx.onQuery(go, () => 1));
    await attempt(() => ctx.run('child'));
    await attempt(() => ctx.run(takes, () => 1));
    await attempt(() => ctx.handle(takes, ''));
    return said;
  });
  const engine = await engineOf([checks, takes]);
  await expect(engine.execute(checks)).resolves.toEqual([
    'TypeError',
    'TypeError',
    'RangeError',
    'RangeError',
    'TypeError',
    'RangeError',
    'RangeError',
    'TypeError',
    'TypeError',
    'TypeError',
    'TypeError',
    'TypeError',
    'TypeError',
  ]);
});

test('mockStep and mock put other functions in place, until they are undone', async () => {
  const child = workflow('child', async () => 'real child');
  const parent = workflow('parent', async (ctx: any) => [await ctx.step('s', () => 'real step'), await ctx.run(child)]);
  const engine = await engineOf([parent, child]);
  const undo = [
    engine.mockStep(parent, 's', (attempt: number) => `mock ${attempt}`),
    engine.mock(child, () => 'mock child'),
  ];
  await expect(engine.execute(parent)).resolves.toEqual(['mock 1', 'mock child']);
  for (const back of undo) back();
  await expect(engine.execute(parent)).resolves.toEqual(['real step', 'real child']);
});

test('names and ids that are too long throw in the code, which goes on', async () => {
  const long = 'ü'.repeat(129);
  const child = workflow('child', async () => 1);
  const names = workflow('names', async (ctx: any) => {
    const said: string[] = [];
    for (const call of [
      () => ctx.step(long, () => 1),
      () => ctx.step('a\u001fb', () => 1),
      () => ctx.run(child, undefined, { id: long }),
      () => ctx.handle(child, long),
    ]) {
      try {
        await call();
      } catch (error: any) {
        said.push(`${error.name}: ${error.message}`);
      }
    }
    return [...said, await ctx.step('ü'.repeat(128), () => 'ok')];
  });
  const engine = await engineOf([names, child]);
  expect(await engine.execute(names)).toEqual([
    'TypeError: the name given to ctx.step takes 258 bytes; the limit is 256',
    'TypeError: the name given to ctx.step must not contain control characters',
    'TypeError: the id in ctx.run takes 258 bytes; the limit is 256',
    'TypeError: the name given to ctx.handle takes 258 bytes; the limit is 256',
    'ok',
  ]);
});

test('LAW-6: an error that is too large is recorded as one that says so, and harms nobody else', async () => {
  const loud = workflow('loud', (ctx: any) =>
    ctx.step(
      'shout',
      () => {
        throw Object.assign(new Error('x'), { details: 'x'.repeat(2000) });
      },
      { retry: { maxAttempts: 2, jitter: false } },
    ),
  );
  const throws = workflow('throws', async () => {
    throw new Error('x'.repeat(5000));
  });
  // How large the error is depends on its stack, which differs in a replay.
  const engine = await engineOf([loud, throws, takes], { payloadBytesMax: 1000, replayOnClose: false });
  const handle = await engine.start(loud);
  await engine.advance('1m');
  const { cause } = await rejection(handle.result());
  expect(cause).toMatchObject({ name: 'StepError', step: 'shout', attempts: 2 });
  expect(cause.message).toMatch(/the error of step "shout" takes \d+ bytes; the limit is 1000 bytes/);
  const failed = await rejection(engine.execute(throws, undefined, { id: 'big' }));
  expect(failed.cause.message).toMatch(/the error takes \d+ bytes; the limit is 1000 bytes.*"big"/);
  expect((await engine.health()).status).toBe('ok');
});

test('a limit that the log could not keep is refused at open', async () => {
  for (const payloadBytesMax of [2 ** 24, 2 ** 40]) {
    const error = await rejection(open(':memory:', { payloadBytesMax }));
    expect(error.message).toContain(String(payloadBytesMax));
    expect(error).toBeInstanceOf(TypeError);
  }
});
