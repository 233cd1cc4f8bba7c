import { signal, workflow } from 'fusee';
import { engineOf, rejection } from './support/engines';

const go = signal<void>('go');
const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Starts a workflow that breaks the rule; gives its row, its explanation and the lines that were written. */
async function broken(handler: (ctx: any) => Promise<unknown>, more: any[] = []): Promise<any> {
  const breaks = workflow('breaks', handler);
  const engine = await engineOf([breaks, ...more]);
  const handle = await engine.start(breaks);
  await new Promise((resolve) => setTimeout(resolve, 10));
  await engine.advance(50);
  return {
    engine,
    handle,
    row: await handle.describe(),
    why: await engine.explain(handle.id),
    lines: engine.lines.map(({ message }: any) => message),
  };
}

test.each<[string, () => PromiseLike<unknown>]>([
  ['a timer', () => new Promise((resolve) => setTimeout(resolve, 1))],
  ['setImmediate', () => tick()],
  ['process.nextTick', () => new Promise<void>((resolve) => process.nextTick(resolve))],
  ['a promise of its own', () => new Promise(() => undefined)],
])('LAW-4: code that awaits %s is stuck, and the report names the place', async (_name, foreign) => {
  let wentOn = false;
  const { row, why, lines } = await broken(async (ctx) => {
    await ctx.step('before', () => 1);
    await foreign();
    await ctx.step('after', () => 2);
    wentOn = true;
  });
  expect(row).toMatchObject({ status: 'running', stuck: true });
  expect(why.reason).toBe('stuck');
  expect(why.message).toMatch(/does not come from ctx/);
  expect(why.message).toMatch(/turns\.test\.ts:\d+:\d+/);
  expect(lines.some((line: string) => line.includes("workflow 'breaks'") && line.includes('resume'))).toBe(true);
  expect(wentOn).toBe(false);
});

test('LAW-4: a foreign await beside an open operation is caught when the code comes back', async () => {
  const { why } = await broken(async (ctx) => {
    const nap = ctx.sleep('1h');
    await new Promise((resolve) => setTimeout(resolve, 1));
    await ctx.step('after', () => 1);
    await nap;
  });
  expect(why.message).toMatch(/ctx\.step was called out of turn.*turns\.test\.ts/);
  expect(why).toMatchObject({ seq: 1, recorded: undefined, asked: undefined });
  expect(why.place).toMatch(/turns\.test\.ts:\d+:\d+$/);
});

test('LAW-4: the return and the throw of the function belong to a turn as well', async () => {
  const returns = await broken(async (ctx) => {
    void ctx.sleep('1h');
    await new Promise((resolve) => setTimeout(resolve, 1));
  });
  expect(returns.why.message).toMatch(/ended \(return\) out of turn/);
  const throws = await broken(async (ctx) => {
    void ctx.sleep('1h');
    await new Promise((resolve) => setTimeout(resolve, 1));
    throw new Error('out of turn');
  });
  expect(throws.why.message).toMatch(/ended \(throw\) out of turn/);
});

test('LAW-4: the error of a broken rule cannot be swallowed', async () => {
  let swallowed: unknown;
  const { row } = await broken(async (ctx) => {
    await tick();
    try {
      await ctx.step('after', () => 1);
    } catch (error) {
      swallowed = error;
    }
    return 'fine';
  });
  expect(row.stuck).toBe(true);
  expect(swallowed).toBeUndefined();
});

test('LAW-11: other runs go on beside one that is stuck', async () => {
  const good = workflow('good', async (ctx: any) => ctx.step('one', () => 1));
  const { engine } = await broken(() => tick(), [good]);
  await expect(engine.execute(good)).resolves.toBe(1);
});

test.each<[string, (ctx: any) => unknown]>([
  ['at once', (ctx) => ctx.sleep(1)],
  ['after an await', async (ctx) => tick().then(() => ctx.sleep(1))],
  ['ctx.now', (ctx) => ctx.now()],
])('ctx in the body of a step, %s, is an error that names the step', async (_name, use) => {
  const misuses = workflow('misuses', async (ctx: any) =>
    ctx.step('body', () => use(ctx), { retry: { maxAttempts: 1 } }),
  );
  const engine = await engineOf([misuses]);
  const { cause } = await rejection(engine.execute(misuses));
  expect(cause.cause.name).toBe('DeterminismError');
  expect(cause.cause.message).toMatch(/inside the function of step 'body'/);
});

test('LAW-5: a replay that asks for something else is stuck until the code is mended and the run resumed', async () => {
  let version = 1;
  const changes = workflow('changes', async (ctx: any) => {
    await ctx.step(version === 2 ? 'renamed' : 'first', () => 1);
    await ctx.waitFor(go);
    return version;
  });
  const engine = await engineOf([changes]);
  const events: any[] = [];
  engine.on('stuck', (event: any) => events.push(event));
  const handle = await engine.start(changes);
  await engine.idle();
  version = 2;
  await engine.crash();
  expect((await handle.describe()).stuck).toBe(true);
  const why = await engine.explain(handle.id);
  expect(why).toEqual({
    reason: 'stuck',
    message: 'operation 1: recorded step "first", asked for step "renamed"',
    seq: 1,
    recorded: { kind: 'step', name: 'first' },
    asked: { kind: 'step', name: 'renamed' },
    place: expect.stringMatching(/turns\.test\.ts:\d+:\d+$/),
  });
  const { reason, ...report } = why;
  expect(events).toMatchObject([{ type: 'stuck', id: handle.id, error: { name: 'DeterminismError', report } }]);
  version = 3;
  await handle.resume();
  await handle.signal(go);
  await expect(handle.result()).resolves.toBe(3);
});

test('LAW-5: a replay that asks for less is stuck as well', async () => {
  let isShort = false;
  const shrinks = workflow('shrinks', async (ctx: any) => {
    await ctx.step('first', () => 1);
    if (!isShort) await ctx.step('second', () => 2);
    await ctx.waitFor(go);
  });
  const engine = await engineOf([shrinks]);
  const handle = await engine.start(shrinks);
  await engine.idle();
  isShort = true;
  await engine.crash();
  expect((await handle.describe()).stuck).toBe(true);
  expect(await engine.explain(handle.id)).toMatchObject({
    seq: 2,
    recorded: { kind: 'step', name: 'second' },
    asked: { kind: 'waitFor', name: 'go' },
  });
});

test('a rejection in a workflow that nobody handles is reported with its run and harms nobody else', async () => {
  const floats = workflow('floats', async (ctx: any) => {
    void (async () => {
      await ctx.sleep('1s');
      throw new Error('floating');
    })();
    await ctx.sleep('2s');
    return 'done';
  });
  const engine = await engineOf([floats]);
  const handle = await engine.start(floats);
  await engine.advance('2s');
  await expect(handle.result()).resolves.toBe('done');
  const line = engine.lines.find(({ message }: any) => message.includes('nobody handled it'));
  expect(line.message).toContain(handle.id);
  expect(line.fields.error.message).toBe('floating');
});

test('clocks, chance and timers in the code of a workflow are reported once a place, elsewhere not at all', async () => {
  const original = Date.now;
  const reads = workflow('reads', async (ctx: any) => {
    for (let index = 0; index < 3; index += 1) Date.now();
    await ctx.step('may', () => Math.random());
    Math.random();
  });
  const engine = await engineOf([reads]);
  Date.now();
  Math.random();
  await engine.execute(reads);
  const traps = engine.lines
    .map(({ message }: any) => message)
    .filter((text: string) => text.includes('a replay gets'));
  expect(traps).toHaveLength(2);
  expect(traps[0]).toMatch(/Date\.now at .*turns\.test\.ts:\d+:\d+.*ctx\.now\(\)/);
  expect(traps[1]).toMatch(/Math\.random.*ctx\.random\(\)/);
  await engine.close();
  expect(Date.now).toBe(original);
});

test('ctx.random and ctx.uuid are the same in replay, differ between runs, and have streams of their own', async () => {
  const lives: unknown[][] = [];
  const draws = workflow('draws', async (ctx: any) => {
    lives.push([ctx.info.id, ctx.random(), ctx.random(), ctx.random('dice'), ctx.uuid(), ctx.uuid()]);
    await ctx.waitFor(go);
  });
  const engine = await engineOf([draws]);
  for (const id of ['one', 'two']) await engine.start(draws, undefined, { id });
  await engine.idle();
  await engine.crash();
  const of = (id: string): unknown[][] => lives.filter(([owner]) => owner === id);
  expect(of('one')[0]).toEqual(of('one')[1]);
  expect(of('two')[0]).toEqual(of('two')[1]);
  const drawn = [...of('one')[0]!.slice(1), ...of('two')[0]!.slice(1)];
  expect(new Set(drawn).size).toBe(10);
  expect(drawn[4]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

test('ctx.log is silent in replay', async () => {
  const logs = workflow('logs', async (ctx: any) => {
    ctx.log.info('one', { more: 1 });
    await ctx.waitFor(go);
    ctx.log.warn('two');
  });
  const engine = await engineOf([logs]);
  const handle = await engine.start(logs, undefined, { id: 'the-id' });
  await engine.idle();
  await engine.crash();
  await handle.signal(go);
  await handle.result();
  const lines = engine.lines.filter(({ fields }: any) => fields.id === 'the-id');
  expect(lines.map(({ message }: any) => message)).toEqual(['one', 'two']);
  expect(lines[0].fields).toMatchObject({ workflow: 'logs', more: 1 });
});
