import { object, open, query, task, update, workflow } from 'fusee';
import { crashEverywhere } from 'fusee/testing';
import { engineOf, quietLogger, rejection } from './support/engines';

let runs: string[] = [];

const cart = object('cart', {
  state: () => ({ items: [] as string[] }),
  handlers: {
    add: async (ctx: any, sku: string) => ctx.state.items.push(sku),
    slowly: async (ctx: any, sku: string) => {
      const priced = await ctx.step('price', () => {
        runs.push(sku);
        return `${sku}!`;
      });
      await ctx.sleep('1h');
      ctx.state.items.push(priced);
      return ctx.state.items.length;
    },
    clear: (ctx: any) => {
      ctx.state = { items: [] };
    },
    fails: async (ctx: any, sku: string) => {
      ctx.state.items.push(sku);
      await ctx.step('s', () => 1);
      throw new RangeError(`no ${sku}`);
    },
    race: async (ctx: any) => Promise.race([ctx.step('quick', () => 'quick'), ctx.sleep('1d')]),
    now: (ctx: any) => ctx.now(),
  },
  shared: { count: (ctx: any) => ctx.state.items.length, at: (ctx: any, index: number) => ctx.state.items[index] },
} as any) as any;

const engineWith = (options: object = {}): Promise<any> => engineOf([], { objects: [cart], ...options });
const kindsOf = async (handle: any): Promise<string[]> => {
  const kinds: string[] = [];
  for await (const { kind } of handle.history()) kinds.push(kind);
  return kinds;
};

beforeEach(() => {
  runs = [];
});

test('an object begins to exist with its first call and keeps its state', async () => {
  const engine = await engineWith();
  const u1 = engine.object(cart, 'u1');
  await expect(u1.count()).resolves.toBe(0);
  await expect(engine.objects.get(cart, 'u1')).resolves.toBeUndefined();
  await expect(u1.add('a')).resolves.toBe(1);
  await expect(u1.add('b')).resolves.toBe(2);
  await expect(u1.count()).resolves.toBe(2);
  await expect(u1.at(1)).resolves.toBe('b');
  await expect(engine.object(cart, 'u2').count()).resolves.toBe(0);
  await expect(engine.objects.get(cart, 'u1')).resolves.toEqual({ state: { items: ['a', 'b'] }, version: 2 });
});

test('exclusive handlers of one id run one after the other, those of others beside them', async () => {
  const engine = await engineWith();
  const answers = ['a', 'b', 'c'].map((sku) => engine.object(cart, 'u1').slowly(sku));
  const other = engine.object(cart, 'u2').slowly('x');
  await engine.idle();
  expect(runs.sort()).toEqual(['a', 'x']);
  await expect(engine.object(cart, 'u1').count()).resolves.toBe(0);
  await engine.advance('1h');
  await expect(Promise.all([answers[0], other])).resolves.toEqual([1, 1]);
  await expect(engine.object(cart, 'u1').count()).resolves.toBe(1);
  await engine.advance('2h');
  await expect(Promise.all(answers)).resolves.toEqual([1, 2, 3]);
  await expect(engine.object(cart, 'u1').at(2)).resolves.toBe('c!');
});

test('a handler that throws changes nothing, and its error is the answer', async () => {
  const engine = await engineWith();
  const u1 = engine.object(cart, 'u1');
  await u1.add('a');
  const error = await rejection(u1.fails('b'));
  expect(error).toBeInstanceOf(RangeError);
  expect(error.message).toBe('no b');
  await expect(engine.objects.get(cart, 'u1')).resolves.toEqual({ state: { items: ['a'] }, version: 1 });
  await u1.clear();
  await expect(engine.objects.get(cart, 'u1')).resolves.toEqual({ state: { items: [] }, version: 2 });
  await u1.clear();
  await expect(engine.objects.get(cart, 'u1')).resolves.toMatchObject({ version: 2 });
});

test('what a call has not waited for ends with it', async () => {
  const engine = await engineWith();
  await expect(engine.object(cart, 'u1').race()).resolves.toBe('quick');
  expect(engine.nextDue()).toBe(-1);
  await expect(engine.object(cart, 'u1').add('a')).resolves.toBe(1);
  await expect(engine.explain('object:cart:u1')).resolves.toMatchObject({ reason: 'waiting' });
});

test('a repeated call of the same id is the first one again', async () => {
  const engine = await engineWith();
  const u1 = engine.object(cart, 'u1');
  await expect(Promise.all([u1.add('a', { id: 'c1' }), u1.add('a', { id: 'c1' })])).resolves.toEqual([1, 1]);
  await expect(u1.add('z', { id: 'c1' })).resolves.toBe(1);
  await expect(u1.count()).resolves.toBe(1);
});

test('after a crash a call in progress goes on from its records, and calls that wait are run', async () => {
  const engine = await engineWith();
  const lost = ['a', 'b'].map((sku) => engine.object(cart, 'u1').slowly(sku, { id: sku }));
  lost.forEach((answer) => answer.catch(() => undefined));
  await engine.idle();
  await engine.crash();
  await engine.advance('2h');
  expect(runs).toEqual(['a', 'b']);
  await expect(engine.object(cart, 'u1').slowly('a', { id: 'a' })).resolves.toBe(1);
  await expect(engine.object(cart, 'u1').slowly('b', { id: 'b' })).resolves.toBe(2);
  await expect(engine.objects.get(cart, 'u1')).resolves.toEqual({ state: { items: ['a!', 'b!'] }, version: 2 });
});

test('the state does not follow from code that has changed since', async () => {
  const first: any = object('sum', {
    state: () => 0,
    handlers: { add: async (ctx: any, n: number) => (ctx.state += n) },
  } as any);
  const engine = await engineOf([], { objects: [first] });
  const code = engine.core.settings.definitions;
  await engine.object(first, 's').add(2);
  const second: any = object('sum', {
    state: () => 0,
    handlers: { add: async (ctx: any, n: number) => (ctx.state += await ctx.step('double', () => 2 * n)) },
  } as any);
  code.set('sum', { ...code.get('sum'), object: second });
  await engine.crash();
  await expect(engine.object(second, 's').add(2)).resolves.toBe(6);
});

test('a journal that has grown is left for a new one, with the calls that wait and the answers that are known', async () => {
  const engine = await engineWith({ journalRecordsMax: 200 });
  const u1 = engine.object(cart, 'u1');
  await expect(u1.add('first', { id: 'first' })).resolves.toBe(1);
  const answers = await Promise.all(Array.from({ length: 300 }, (_, index) => u1.add(`${index}`)));
  expect(answers).toEqual(Array.from({ length: 300 }, (_, index) => index + 2));
  expect(await kindsOf(engine.handle('object:cart:u1'))).not.toHaveLength(0);
  expect(await engine.count({ type: 'cart', status: 'continuedAsNew' })).toBeGreaterThan(0);
  await expect(u1.add('last', { id: 'last' })).resolves.toBe(302);
  for (let index = 0; index < 60; index += 1) await u1.now();
  await expect(u1.add('last', { id: 'last' })).resolves.toBe(302);
  await engine.crash();
  await expect(u1.count()).resolves.toBe(302);
  await expect(u1.add('more')).resolves.toBe(303);
});

test('a workflow calls objects, and hears what they answer', async () => {
  const caller = workflow('caller', async (ctx: any) => {
    const u1 = ctx.object(cart, 'u1');
    const added = await u1.add('a');
    const both = await Promise.all([u1.slowly('b'), u1.count()]);
    try {
      await u1.fails('c');
    } catch (error) {
      return [added, both, (error as Error).message, error instanceof RangeError, await u1.at(0)];
    }
    return undefined;
  });
  const engine = await engineOf([caller], { objects: [cart] });
  const handle = await engine.start(caller);
  await engine.advance('1h');
  await expect(handle.result()).resolves.toEqual([1, [2, 1], 'no c', true, 'a']);
  expect((await kindsOf(handle)).filter((kind) => kind === 'callSent')).toHaveLength(5);
});

test('handlers run tasks and children, and call other objects', async () => {
  const double = task('double', async (_ctx: any, n: number) => 2 * n);
  const child = workflow('child', async (_ctx: any, n: number) => n + 1);
  const log: any = object('log', {
    state: () => [] as number[],
    handlers: { write: (ctx: any, n: number) => ctx.state.push(n) },
  } as any);
  const sum: any = object('sum', {
    state: () => 0,
    handlers: {
      add: async (ctx: any, n: number) => {
        ctx.state += (await ctx.run(double, n)) + (await ctx.run(child, n));
        await ctx.object(log, 'all').write(ctx.state);
        return [ctx.id, ctx.state];
      },
    },
  } as any);
  const engine = await engineOf([child], { objects: [sum, log], tasks: [double] });
  await expect(Promise.all([1, 10].map((n) => engine.object(sum, 'x').add(n)))).resolves.toEqual([
    ['x', 4],
    ['x', 35],
  ]);
  await expect(engine.objects.get(log, 'all')).resolves.toEqual({ state: [4, 35], version: 2 });
});

test('the state is changed from outside between calls, at the version that is meant', async () => {
  const engine = await engineWith();
  const u1 = engine.object(cart, 'u1');
  const slow = u1.slowly('a');
  const set = engine.objects.set(cart, 'u1', { items: ['s'] });
  await engine.advance('1h');
  await expect(slow).resolves.toBe(1);
  await expect(set).resolves.toBe(2);
  await expect(
    engine.objects.patch(cart, 'u1', [{ op: 'add', path: '/items/-', value: 'p' }], { version: 2 }),
  ).resolves.toBe(3);
  const late = await rejection(engine.objects.clear(cart, 'u1', { version: 2 }));
  expect(late).toMatchObject({ code: 'UPDATE_REJECTED', message: expect.stringMatching(/version 3, not 2/) });
  const wrong = await rejection(engine.objects.patch(cart, 'u1', [{ op: 'remove', path: '/nothing' }]));
  expect(wrong).toMatchObject({ code: 'UPDATE_REJECTED', message: expect.stringMatching(/operation 0.*no 'nothing'/) });
  await expect(engine.objects.get(cart, 'u1')).resolves.toEqual({ state: { items: ['s', 'p'] }, version: 3 });
  await expect(engine.objects.clear(cart, 'u1')).resolves.toBe(4);
  await expect(engine.objects.get(cart, 'u1')).resolves.toEqual({ state: { items: [] }, version: 4 });
});

test('of two who delete an object at once, one did', async () => {
  const engine = await engineWith();
  await engine.object(cart, 'u1').add('a');
  const deleted = await Promise.all([1, 2, 3].map(() => engine.objects.delete(cart, 'u1')));
  expect(deleted).toEqual([true, false, false]);
  expect(await engine.objects.delete(cart, 'never was')).toBe(false);
});

test('a deleted object is as it was at first, and calls that wait get no answer', async () => {
  const engine = await engineWith();
  const u1 = engine.object(cart, 'u1');
  await u1.add('a');
  const waiting = u1.slowly('b');
  const lost = rejection(waiting);
  await engine.idle();
  await expect(engine.objects.delete(cart, 'u1')).resolves.toBe(true);
  expect(await lost).toMatchObject({ code: 'RUN_NOT_FOUND' });
  await expect(engine.objects.delete(cart, 'u1')).resolves.toBe(false);
  await expect(u1.count()).resolves.toBe(0);
  await expect(u1.add('c')).resolves.toBe(1);
});

test('a cancel ends the call that runs, and no other', async () => {
  const engine = await engineWith();
  const u1 = engine.object(cart, 'u1');
  const first = rejection(u1.slowly('a'));
  const second = u1.slowly('b');
  await engine.idle();
  await engine.handle('object:cart:u1').cancel('enough');
  expect(await first).toMatchObject({ code: 'CANCELLED' });
  await engine.advance('1h');
  await expect(second).resolves.toBe(1);
  await engine.handle('object:cart:u1').cancel('nothing runs');
  await expect(u1.add('c')).resolves.toBe(2);
});

test('keys of steps belong to their call', async () => {
  const keys: string[] = [];
  const keyed: any = object('keyed', {
    state: () => 0,
    handlers: { go: (ctx: any) => ctx.step('s', (step: any) => keys.push(step.idempotencyKey)) },
  } as any);
  const engine = await engineOf([], { objects: [keyed] });
  await engine.object(keyed, 'k').go();
  await engine.object(keyed, 'k').go();
  expect(new Set(keys).size).toBe(2);
});

test('a handler that awaits something foreign has its object stuck, and others go on', async () => {
  const odd: any = object('odd', {
    state: () => 0,
    handlers: { wait: () => new Promise(() => undefined), inc: (ctx: any) => (ctx.state += 1) },
  } as any);
  const engine = await engineOf([], { objects: [odd] });
  engine
    .object(odd, 'a')
    .wait()
    .catch(() => undefined);
  await engine.idle();
  await expect(engine.explain('object:odd:a')).resolves.toMatchObject({ reason: 'stuck' });
  expect(await rejection(engine.object(odd, 'a').inc())).toMatchObject({
    code: 'RUN_NOT_FOUND',
    message: expect.stringMatching(/stuck/),
  });
  await expect(engine.object(odd, 'b').inc()).resolves.toBe(1);
});

test('LAW-3, LAW-7: a workflow and the objects that it calls come to the same wherever they are cut', async () => {
  const effects = new Map<string, string>();
  const stock: any = object('stock', {
    state: () => ({ left: 5, sold: [] as string[] }),
    handlers: {
      take: async (ctx: any, id: string) => {
        const label = await ctx.step('label', (step: any) => {
          effects.set(step.idempotencyKey, id);
          return `${id} of ${ctx.state.left}`;
        });
        await ctx.sleep('1m');
        if (ctx.state.left === 3) throw new RangeError('not the third');
        ctx.state.left -= 1;
        ctx.state.sold.push(`${label} ${ctx.now() - Date.UTC(2025, 0, 1)}`);
        return ctx.state.left;
      },
    },
    shared: { sold: (ctx: any) => ctx.state.sold },
  } as any);
  const order = workflow('order', async (ctx: any) => {
    const item = ctx.object(stock, 'x');
    const taken = await Promise.allSettled(['a', 'b', 'c'].map((id) => item.take(id)));
    return [taken.map((one: any) => one.value ?? one.reason.message), await item.sold()];
  });
  const { crashes } = await crashEverywhere(
    { workflow: order, options: { objects: [stock], logger: quietLogger().logger } as any },
    {
      expect: (outcome) => {
        expect(outcome).toEqual({
          status: 'completed',
          result: [
            [4, 3, 'not the third'],
            ['a of 5 60000', 'b of 4 120000'],
          ],
        });
        expect(new Set(effects.values())).toEqual(new Set(['a', 'b', 'c']));
        expect(effects.size).toBe(3);
        effects.clear();
      },
    },
  );
  expect(crashes).toBeGreaterThan(50);
});

test('LAW-3, LAW-7: calls from outside are answered once, wherever the object is cut', async () => {
  const live = async (at: number, kept: number): Promise<number> => {
    const engine = await engineWith();
    await engine.idle();
    const first = engine.durable;
    if (at > 0) engine.haltAt(first + at);
    const u1 = engine.object(cart, 'u1');
    const asked = [u1.slowly('a', { id: '1' }), u1.fails('b', { id: '2' }), u1.slowly('c', { id: '3' })];
    const answers = Promise.allSettled(asked);
    for (let turn = 0; turn < 4 && !engine.isHalted; turn += 1) await engine.moveTo(engine.now() + 3_600_000);
    if (engine.isHalted) await engine.crashTo(first + kept, 'none');
    await engine.advance('3h');
    expect((await answers).map((one: any) => one.value ?? one.reason.message)).toEqual([1, 'no b', 2]);
    await expect(engine.objects.get(cart, 'u1')).resolves.toEqual({ state: { items: ['a!', 'c!'] }, version: 2 });
    return engine.durable - first;
  };
  const records = await live(0, 0);
  for (let kept = 0; kept < records; kept += 1) {
    await live(kept, kept);
    await live(kept + 1, kept);
  }
  expect(records).toBeGreaterThan(12);
});

test('what cannot be meant is refused where it is given', async () => {
  const ok = { state: () => 0, handlers: {} };
  for (const [name, definition, said] of [
    ['', ok, /name of an object/],
    ['a:b', ok, /must not contain ':'/],
    ['x', { handlers: {} }, /needs a function 'state'/],
    ['x', { state: () => 0 }, /handlers of object 'x' must be an object of functions, not undefined/],
    ['x', { ...ok, more: 1 }, /no option 'more'/],
    ['x', { ...ok, handlers: { a: 1 } }, /'a' in the handlers of object 'x' must be a function, not 1/],
    ['x', { ...ok, handlers: { then: () => 1 } }, /must not have 'then'/],
    ['x', { ...ok, handlers: { $set: () => 1 } }, /must not begin with '\$'/],
    ['x', { ...ok, handlers: { a: () => 1 }, shared: { a: () => 1 } }, /'a' both in handlers and in shared/],
  ] as any[]) {
    expect(() => object(name, definition)).toThrow(said);
  }
  const other: any = object('other', ok as any);
  const same = workflow('cart', async () => 1);
  for (const [options, said] of [
    [{ objects: 'cart' }, /objects must be an array/],
    [{ objects: [same] }, /objects\[0\] is not what object\(\) returned/],
    [{ objects: [cart], workflows: [same] }, /two definitions named 'cart'/],
    [{ objects: [cart], workers: { module: './x.js' } }, /leave out the option objects/],
  ] as any[]) {
    expect((await rejection(open(':memory:', options))).message).toMatch(said);
  }
  const engine = await engineWith({ payloadBytesMax: 2_000 });
  const u1 = engine.object(cart, 'u1');
  expect(() => engine.object(other, 'x')).toThrow(/'other' was not given to open.*option objects/);
  expect(() => engine.object(same, 'x')).toThrow(/an object is needed/);
  for (const id of ['', 5, 'a\u001fb', 'x'.repeat(250)]) expect(() => engine.object(cart, id)).toThrow(TypeError);
  expect((await rejection(u1.add('a', { idd: 1 }))).message).toMatch(/no option 'idd'/);
  expect((await rejection(u1.add('a', { id: '' }))).message).toMatch(/option id/);
  expect((await rejection(u1.add('a', { timeout: 'soon' }))).name).toBe('RangeError');
  expect((await rejection(u1.add(() => 1))).message).toMatch(/input of 'add' of object 'cart'/);
  expect((await rejection(u1.add('x'.repeat(3_000)))).message).toMatch(/3002 bytes; the limit is 2000/);
  expect((await rejection(engine.objects.set(cart, 'u1', 1, { version: -1 }))).message).toMatch(/version/);
  expect((await rejection(engine.objects.patch(cart, 'u1', { op: 'add' }))).message).toMatch(/array of operations/);
  expect((await rejection(engine.start(cart))).message).toMatch(/a workflow is needed/);
  expect((await rejection(engine.start(same))).name).toBe('UnknownDefinitionError');
  const flow = workflow('flow', async () => 1);
  const second = await engineOf([flow], { objects: [cart] });
  expect((await rejection(second.start(flow, undefined, { id: 'object:cart:x' }))).message).toMatch(
    /as those of objects do/,
  );
  await second.object(cart, 'x').add('a');
  const handle = second.handle('object:cart:x');
  expect((await rejection(handle.reset({ toStep: 1 }))).message).toMatch(/is an object/);
  expect((await rejection(handle.query(query('q')))).message).toMatch(/no handler of query 'q'/);
  expect((await rejection(handle.update(update('u')))).message).toMatch(/no handler of update 'u'/);
  await expect(second.object(cart, 'x').count()).resolves.toBe(1);
});

test('what a handler does that it may not is its answer, and the object goes on', async () => {
  let leaked: any;
  const odd: any = object('odd', {
    state: () => ({ n: 0 }),
    handlers: {
      unwritable: (ctx: any) => void (ctx.state.f = () => 1),
      unreadable: () => () => 1,
      waits: (ctx: any) => ctx.waitFor('x'),
      leaks: (ctx: any) => void (leaked = ctx),
      uses: () => leaked.step('late', () => 1),
      many: async (ctx: any) => {
        for (;;) await ctx.step('s', () => 1);
      },
      inc: (ctx: any) => (ctx.state.n += 1),
    },
    shared: { changes: (ctx: any) => (ctx.state.n = 5), later: async () => 1, fine: (ctx: any) => ctx.state.n },
  } as any);
  const outer = workflow('outer', async (ctx: any) => {
    const results = await Promise.allSettled(['changes', 'later'].map((name) => ctx.object(odd, 'a')[name]()));
    return results.map((one: any) => one.reason.message);
  });
  const engine = await engineOf([outer], { objects: [odd] });
  const a = engine.object(odd, 'a');
  const said = async (answer: Promise<unknown>): Promise<string> => (await rejection(answer)).message;
  expect(await said(a.unwritable())).toMatch(/state of object 'odd' a cannot be recorded.*f/);
  expect(await said(a.unreadable())).toMatch(/answer of 'unreadable'/);
  expect(await said(a.waits())).toMatch(/handlers of objects have no ctx.waitFor/);
  await a.leaks();
  expect(await said(a.uses())).toMatch(/after the handler of object a had ended/);
  expect(await rejection(a.many())).toMatchObject({ code: 'JOURNAL_LIMIT' });
  expect(await said(a.changes())).toMatch(/read only/);
  expect(await said(a.later())).toMatch(/must be synchronous/);
  expect(await (await engine.start(outer)).result()).toEqual([
    expect.stringMatching(/read only/),
    expect.stringMatching(/synchronous/),
  ]);
  await expect(a.inc()).resolves.toBe(1);
  await expect(a.fine()).resolves.toBe(1);
});
