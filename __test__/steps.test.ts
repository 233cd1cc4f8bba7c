import { NonRetryableError, workflow } from 'fusee';
import { engineOf, rejection } from './support/engines';

test('steps run one after the other and give their results to the code', async () => {
  const order: string[] = [];
  const sums = workflow('sums', async (ctx: any, n: number) => {
    const a = await ctx.step('one', () => {
      order.push('one');
      return n + 1;
    });
    const b = await ctx.step('two', async () => {
      order.push('two');
      await new Promise((resolve) => setImmediate(resolve));
      return a * 2;
    });
    return [a, b];
  });
  const engine = await engineOf([sums]);
  await expect(engine.execute(sums, 1)).resolves.toEqual([2, 4]);
  expect(order).toEqual(['one', 'two']);
});

test('LAW-6: the code gets the value that a replay would give', async () => {
  const given = { at: new Date(5), toJSON: () => ({ is: 'json' }) };
  const same = workflow('same', async (ctx: any) => {
    const value = await ctx.step('value', () => given);
    return [value === given, value];
  });
  const engine = await engineOf([same]);
  await expect(engine.execute(same)).resolves.toEqual([false, { is: 'json' }]);
});

test('LAW-6: a result that cannot be recorded is a failure that is not tried again and names the path', async () => {
  let calls = 0;
  const bad = workflow('bad', async (ctx: any) => {
    await ctx.step('make', () => {
      calls += 1;
      return { deep: { fn: () => 1 } };
    });
  });
  const engine = await engineOf([bad]);
  const error = await rejection(engine.execute(bad));
  expect(error.name).toBe('WorkflowFailedError');
  expect(error.cause.name).toBe('StepError');
  expect(error.cause.message).toMatch(/deep\.fn/);
  expect(calls).toBe(1);
});

test('parallel steps resolve in the order in which they ended', async () => {
  const race = workflow('race', async (ctx: any) => {
    const order: string[] = [];
    const run = async (name: string, rounds: number): Promise<void> => {
      await ctx.step(name, async () => {
        for (let round = 0; round < rounds; round += 1) await new Promise((resolve) => setImmediate(resolve));
      });
      order.push(name);
    };
    await Promise.all([run('slow', 20), run('middle', 8), run('fast', 1)]);
    return order;
  });
  const engine = await engineOf([race]);
  await expect(engine.execute(race)).resolves.toEqual(['fast', 'middle', 'slow']);
});

test('a step knows its attempt, its run and a key that names it and the call of its name', async () => {
  const keys = workflow('keys', async (ctx: any) => {
    const seen: string[] = [];
    for (let call = 0; call < 2; call += 1) {
      const key = await ctx.step('same', (step: any) => {
        expect(step.attempt).toBe(1);
        expect(step.info.id).toBe(ctx.info.id);
        expect(step.lastHeartbeat).toBeUndefined();
        expect(step.signal.aborted).toBe(false);
        return step.idempotencyKey;
      });
      seen.push(key);
    }
    seen.push(await ctx.step('other', (step: any) => step.idempotencyKey));
    return seen;
  });
  const engine = await engineOf([keys]);
  const [first, second] = await Promise.all([engine.execute(keys), engine.execute(keys)]);
  expect(new Set([...first, ...second]).size).toBe(6);
  for (const key of first) expect(key).toMatch(/^[0-9a-f]{32}$/);
});

test('LAW-7: the n-th call of a name keeps its key in runs of many steps', async () => {
  const many = workflow('many', async (ctx: any) => {
    const seen = new Set<string>();
    for (let index = 0; index < 200; index += 1) {
      seen.add(await ctx.step(`s${index % 3}`, (step: any) => step.idempotencyKey));
    }
    return seen.size;
  });
  const engine = await engineOf([many]);
  await expect(engine.execute(many)).resolves.toBe(200);
});

test('steps and workflows keep what they throw, also when it is no error', async () => {
  const throws = workflow('throws', async (ctx: any) => {
    const thrown = await ctx
      .step('text', () => Promise.reject('just a text'), { retry: { maxAttempts: 1 } })
      .catch((error: any) => error);
    throw Object.assign(new NonRetryableError('gone'), { cause: thrown.cause });
  });
  const engine = await engineOf([throws]);
  const error = await rejection(engine.execute(throws));
  expect(error.cause.name).toBe('NonRetryableError');
  expect(error.cause.cause).toBe('just a text');
});

test('a caught failure of a step lets the workflow go on, and floating ones harm nobody', async () => {
  const floats = workflow('floats', async (ctx: any) => {
    const a = ctx.step('a', () => 1);
    const b = ctx.step('b', () => Promise.reject(new Error('b')), { retry: { maxAttempts: 1 } });
    await ctx.sleep('1s');
    await a;
    return b.catch((error: any) => error.name);
  });
  const engine = await engineOf([floats]);
  const handle = await engine.start(floats);
  await engine.advance('1s');
  await expect(handle.result()).resolves.toBe('StepError');
});

test('readOnly steps run without waiting for the disk', async () => {
  const reads = workflow('reads', async (ctx: any) => ctx.step('read', () => 7, { readOnly: true }));
  const engine = await engineOf([reads]);
  await expect(engine.execute(reads)).resolves.toBe(7);
});

test('the context of a ctx.step call reaches its function, the context of a caller does not reach the run', async () => {
  const { AsyncLocalStorage } = await import('node:async_hooks');
  const storage = new AsyncLocalStorage<string>();
  const contexts = workflow('contexts', async (ctx: any) => {
    const atStart = storage.getStore();
    const inBody = await storage.run('mine', () => ctx.step('look', async () => storage.getStore()));
    const after = storage.getStore();
    return [atStart, inBody, after];
  });
  const engine = await engineOf([contexts]);
  const result = await storage.run('callers', () => engine.execute(contexts));
  expect(result).toEqual([undefined, 'mine', undefined]);
});

test('LAW-6, LAW-7: results that come at the same time are each given to their own step, now and in a replay', async () => {
  const values = [
    undefined,
    null,
    '],[{"a\\',
    { a: [1, { b: ',}' }], $: 'x' },
    [[]],
    new Date(5),
    -0,
    3n,
    'é😀',
    new Map([[1, ',']]),
    {},
    true,
  ];
  const given = (index: number): unknown => values[index % values.length];
  const parallel = workflow('parallel', async (ctx: any, count: number) => {
    const steps = Array.from({ length: count }, (_, index) => ctx.step(`s${index}`, () => given(index)));
    return await Promise.all(steps);
  });
  const failing = workflow('failing', async (ctx: any) => {
    const steps = [1, 2, 3].map((index) =>
      ctx.step(`f${index}`, () => {
        if (index === 2) throw new NonRetryableError('two');
        return index;
      }),
    );
    return (await Promise.allSettled(steps)).map(({ status }) => status);
  });
  const engine = await engineOf([parallel, failing]);
  const runs = [...Array(40).keys()].map((index) => engine.execute(parallel, index % 20));
  const ends = [engine.execute(failing), engine.execute(parallel, 700), engine.execute(failing)];
  for (const [index, result] of (await Promise.all(runs)).entries()) {
    expect(result).toEqual([...Array(index % 20).keys()].map(given));
  }
  const [first, many, last] = await Promise.all(ends);
  expect(many).toEqual([...Array(700).keys()].map(given));
  expect([first, last]).toEqual(Array(2).fill(['fulfilled', 'rejected', 'fulfilled']));
});

test('of results that come at the same time, one that is too large fails its own step alone', async () => {
  const sized = workflow('sized', async (ctx: any, bytes: number) => ctx.step('s', () => 'x'.repeat(bytes)));
  const engine = await engineOf([sized], { payloadBytesMax: 20_000, replayOnClose: false });
  const ends = await Promise.allSettled([100, 19_998, 19_999, 5, 30_000].map((bytes) => engine.execute(sized, bytes)));
  expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'rejected']);
  expect(String((ends[2] as any).reason.cause.message)).toMatch(
    /the result of step 's' takes 20001 bytes; the limit is 20000/,
  );
});
