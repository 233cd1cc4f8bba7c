import { query, signal, update, workflow } from 'fusee';
import { engineOf, rejection } from './support/engines';

const set = update<number, string>('set');
const other = update<void, void>('other');
const total = query<number>('total');
const finish = signal<void>('finish');

let validated = 0;

/** Sums what it is given; takes no negative numbers. */
const sums = workflow('sums', async (ctx: any) => {
  let sum = 0;
  ctx.onQuery(total, () => sum);
  ctx.onUpdate(
    set,
    async (value: number) => {
      const before = sum;
      sum += value;
      await ctx.step('save', () => value);
      return `${before} + ${value} = ${sum}`;
    },
    {
      validate: (value: number) => {
        validated += 1;
        if (value < 0) throw new RangeError('no negative numbers');
      },
    },
  );
  await ctx.waitFor(finish);
  return sum;
});

const kindsOf = async (handle: any): Promise<string[]> => {
  const kinds: string[] = [];
  for await (const { kind } of handle.history()) kinds.push(kind);
  return kinds;
};

test('an update is handled in order and its answer is awaited', async () => {
  const engine = await engineOf([sums]);
  const handle = await engine.start(sums);
  await expect(handle.update(set, 2)).resolves.toBe('0 + 2 = 2');
  await expect(Promise.all([handle.update(set, 3), handle.update(set, 4)])).resolves.toHaveLength(2);
  await expect(handle.query(total)).resolves.toBe(9);
  await handle.signal(finish);
  await expect(handle.result()).resolves.toBe(9);
  expect((await kindsOf(handle)).filter((kind) => kind === 'updateCompleted')).toHaveLength(3);
});

test('a refused update leaves no record, and says why', async () => {
  const engine = await engineOf([sums]);
  const handle = await engine.start(sums);
  await engine.idle();
  const before = await kindsOf(handle);
  const error = await rejection(handle.update(set, -1));
  expect(error).toMatchObject({ name: 'UpdateRejectedError', code: 'UPDATE_REJECTED', update: 'set' });
  expect(error.cause).toBeInstanceOf(RangeError);
  expect(error.message).toMatch(/no negative numbers/);
  expect(await kindsOf(handle)).toEqual(before);
});

test('LAW-7: an update of the same id is the first one again, before, during and after its answer, and after a crash', async () => {
  const engine = await engineOf([sums]);
  const handle = await engine.start(sums);
  validated = 0;
  const answers = [handle.update(set, 5, { id: 'u' }), handle.update(set, 5, { id: 'u' })];
  await expect(Promise.all(answers)).resolves.toEqual(['0 + 5 = 5', '0 + 5 = 5']);
  await expect(handle.update(set, 7, { id: 'u' })).resolves.toBe('0 + 5 = 5');
  expect(validated).toBe(1);
  await engine.crash();
  await expect(handle.update(set, 7, { id: 'u' })).resolves.toBe('0 + 5 = 5');
  await handle.signal(finish);
  await expect(handle.result()).resolves.toBe(5);
  await engine.crash();
  await expect(handle.update(set, 7, { id: 'u' })).resolves.toBe('0 + 5 = 5');
  expect((await rejection(handle.update(set, 7, { id: 'v' }))).name).toBe('RunNotFoundError');
});

test('a client that waits over a crash gets the answer', async () => {
  let isHeld = true;
  const holds = workflow('holds', async (ctx: any) => {
    ctx.onUpdate(set, (value: number) =>
      ctx.step('slow', () => (isHeld ? new Promise(() => undefined) : `saved ${value}`)),
    );
    await ctx.waitFor(finish);
  });
  const engine = await engineOf([holds]);
  const handle = await engine.start(holds);
  const answer = handle.update(set, 1, { id: 'once' });
  await engine.advance(0);
  isHeld = false;
  await engine.crash();
  await expect(answer).resolves.toBe('saved 1');
  expect((await kindsOf(handle)).filter((kind) => kind === 'updateAccepted')).toHaveLength(1);
});

test('what a handler throws goes to who asked, and the run goes on', async () => {
  const fails = workflow('fails', async (ctx: any) => {
    ctx.onUpdate(set, () => {
      throw new RangeError('at once');
    });
    ctx.onUpdate(other, async () => {
      await ctx.sleep(5);
      throw new TypeError('later');
    });
    ctx.onUpdate(update('unfit'), () => () => undefined);
    await ctx.waitFor(finish);
    return 'fine';
  });
  const engine = await engineOf([fails]);
  const handle = await engine.start(fails);
  expect(await rejection(handle.update(set, 1))).toMatchObject({ name: 'RangeError', message: 'at once' });
  const later = rejection(handle.update(other));
  await engine.advance(5);
  expect(await later).toMatchObject({ name: 'TypeError', message: 'later' });
  expect((await rejection(handle.update(update('unfit')))).message).toMatch(/answer to update 'unfit'.*function/);
  await engine.crash();
  await handle.signal(finish);
  await expect(handle.result()).resolves.toBe('fine');
});

test('an update without a handler, to a run that has ended, or to none is refused', async () => {
  const engine = await engineOf([sums]);
  const handle = await engine.start(sums);
  expect((await rejection(handle.update(other))).message).toMatch(/no handler of update 'other'; it has set/);
  expect((await rejection(engine.handle('nobody').update(other))).name).toBe('RunNotFoundError');
  await handle.signal(finish);
  await handle.result();
  expect((await rejection(handle.update(set, 1))).name).toBe('RunNotFoundError');
});

test('an update that is not answered when the run ends is told so', async () => {
  const leaves = workflow('leaves', async (ctx: any) => {
    ctx.onUpdate(set, () => ctx.sleep('1d'));
    await ctx.waitFor(finish);
  });
  const engine = await engineOf([leaves]);
  const handle = await engine.start(leaves);
  const answer = rejection(handle.update(set, 1));
  await engine.idle();
  await handle.signal(finish);
  expect(await answer).toMatchObject({ name: 'RunNotFoundError', message: expect.stringMatching(/has ended/) });
  const stopped = await engine.start(leaves);
  const lost = rejection(stopped.update(set, 1));
  await engine.idle();
  await stopped.terminate();
  expect((await lost).message).toMatch(/has ended/);
});

test('LAW-4: a validator is synchronous and has no ctx; it cannot make a condition true', async () => {
  let isOpen = false;
  const strict = workflow('strict', async (ctx: any) => {
    ctx.onUpdate(set, () => undefined, {
      validate: () => {
        isOpen = true;
      },
    });
    ctx.onUpdate(update('async'), () => undefined, { validate: async () => undefined });
    ctx.onUpdate(update('ctx'), () => undefined, { validate: () => ctx.uuid() });
    ctx.onUpdate(update('refuses'), () => undefined, {
      validate: () => {
        isOpen = true;
        throw new Error('no');
      },
    });
    await ctx.condition(() => isOpen);
    return 'opened';
  });
  // What its validators change is no part of the workflow, so that a replay would not come to the same end.
  const engine = await engineOf([strict], { replayOnClose: false });
  const handle = await engine.start(strict);
  expect((await rejection(handle.update(update('async')))).message).toMatch(/must be synchronous/);
  expect((await rejection(handle.update(update('ctx')))).message).toMatch(/ctx\.uuid/);
  expect((await rejection(handle.update(update('refuses')))).name).toBe('UpdateRejectedError');
  await engine.idle();
  expect(await handle.describe()).toMatchObject({ stuck: false, status: 'running' });
  await handle.update(set, 1);
  await expect(handle.result()).resolves.toBe('opened');
});

test('LAW-4: a handler that awaits something foreign gets its run stuck, and nobody waits for it in vain', async () => {
  const foreign = workflow('foreign', async (ctx: any) => {
    ctx.onUpdate(set, async () => {
      await new Promise((resolve) => setTimeout(resolve, 1));
      return ctx.uuid();
    });
    await ctx.waitFor(finish);
  });
  const engine = await engineOf([foreign]);
  const handle = await engine.start(foreign);
  handle.update(set, 1).catch(() => undefined);
  for (let round = 0; round < 1000 && !(await handle.describe()).stuck; round += 1) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  expect((await handle.describe()).stuck).toBe(true);
  expect((await rejection(handle.update(set, 2))).message).toMatch(/is stuck/);
});

test('LAW-5: an accepted update whose handler is gone gets the run stuck; with the handler back it goes on', async () => {
  let hasHandler = true;
  const changes = workflow('changes', async (ctx: any) => {
    if (hasHandler) ctx.onUpdate(set, (value: number) => ctx.step('set', () => value));
    await ctx.waitFor(finish);
    return 'ended';
  });
  const engine = await engineOf([changes]);
  const handle = await engine.start(changes);
  await expect(handle.update(set, 1)).resolves.toBe(1);
  hasHandler = false;
  await engine.crash();
  expect((await handle.describe()).stuck).toBe(true);
  hasHandler = true;
  await handle.resume();
  await handle.signal(finish);
  await expect(handle.result()).resolves.toBe('ended');
});

test('the argument of an update passes its schema where it is asked for', async () => {
  const schema: any = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: async (value: any) =>
        typeof value === 'string' ? { value: Number(value) } : { issues: [{ message: 'a text is needed' }] },
    },
  };
  const parsed = update('parsed', schema);
  const takes = workflow('takes', async (ctx: any) => {
    ctx.onUpdate(parsed, (value: any) => value + 1);
    await ctx.waitFor(finish);
  });
  const engine = await engineOf([takes]);
  const handle = await engine.start(takes);
  await expect(handle.update(parsed, '41')).resolves.toBe(42);
  expect((await rejection(handle.update(parsed, 1))).message).toMatch(/a text is needed/);
});

test('options and arguments that cannot be meant are refused', async () => {
  const engine = await engineOf([sums]);
  const handle = await engine.start(sums);
  expect((await rejection(handle.update(finish, 1))).message).toMatch(/an update is needed/);
  expect((await rejection(handle.update(set, 1, { ids: 'x' }))).message).toMatch(/has no option 'ids'/);
  expect((await rejection(handle.update(set, 1, { id: '' }))).name).toBe('TypeError');
  expect((await rejection(handle.update(set, () => 1))).message).toMatch(/argument of update 'set'/);
  expect(() => update('')).toThrow(/name that is not empty/);
  expect(() => update('x', 5 as any)).toThrow(/Standard Schema/);
  const bad = workflow('bad', async (ctx: any) => {
    ctx.onUpdate(set, () => 1, { validator: () => 1 });
  });
  expect((await rejection(engine.updateWithStart(sums, { update: set, value: 1 }))).message).toMatch(
    /needs the option id/,
  );
  const second = await engineOf([bad]);
  expect((await rejection(second.execute(bad))).cause.message).toMatch(/has no option 'validator'/);
});

test('signalWithStart starts with the signal, or signals the run that is there', async () => {
  const add = signal<number>('add');
  const adds = workflow(
    'adds',
    async (ctx: any, first: number) => first + (await ctx.waitFor(add)) + (await ctx.waitFor(add)),
  );
  const engine = await engineOf([adds]);
  const handle = await engine.signalWithStart(adds, { id: 'a', input: 1, signal: add, value: 10, dedupeId: 'once' });
  await engine.signalWithStart(adds, { id: 'a', input: 2, signal: add, value: 10, dedupeId: 'once' });
  await engine.crash();
  const again = await engine.signalWithStart(adds, { id: 'a', input: 3, signal: add, value: 100 });
  expect(again.runId).toBe(handle.runId);
  await expect(handle.result()).resolves.toBe(111);
  expect(
    (
      await rejection(
        engine.signalWithStart(adds, { id: 'a', signal: add, value: 1, idReusePolicy: 'rejectDuplicate' }),
      )
    ).name,
  ).toBe('WorkflowAlreadyStartedError');
});

test('updateWithStart starts and asks, or asks the run that is there', async () => {
  const engine = await engineOf([sums]);
  const first = await engine.updateWithStart(sums, { id: 's', update: set, value: 1, updateId: 'one' });
  await expect(first.answer).resolves.toBe('0 + 1 = 1');
  const second = await engine.updateWithStart(sums, { id: 's', update: set, value: 2 });
  expect(second.handle.runId).toBe(first.handle.runId);
  await expect(second.answer).resolves.toBe('1 + 2 = 3');
  const again = await engine.updateWithStart(sums, { id: 's', update: set, value: 5, updateId: 'one' });
  await expect(again.answer).resolves.toBe('0 + 1 = 1');
  const refused = await engine.updateWithStart(sums, { id: 't', update: set, value: -1 });
  expect((await rejection(refused.answer)).name).toBe('UpdateRejectedError');
  expect((await refused.handle.describe()).status).toBe('running');
  const conflict = engine.updateWithStart(sums, { id: 's', update: set, value: 2, idConflictPolicy: 'fail' });
  expect((await rejection(conflict)).name).toBe('WorkflowAlreadyStartedError');
});

test('onSignal calls its function with each value, in order, and what it throws fails the run', async () => {
  const log = signal<string>('log');
  const seen: string[] = [];
  const follows = workflow('follows', async (ctx: any) => {
    const lines: string[] = [];
    ctx.onSignal(log, async (line: string) => {
      if (line === 'bad') throw new RangeError('a bad line');
      lines.push(await ctx.step('keep', () => line));
    });
    await ctx.waitFor(finish);
    seen.push(...lines);
    return lines;
  });
  const engine = await engineOf([follows]);
  const handle = await engine.start(follows);
  for (const line of ['a', 'b', 'c']) await handle.signal(log, line);
  await engine.idle();
  await engine.crash();
  await handle.signal(log, 'd');
  await engine.idle();
  await handle.signal(finish);
  await expect(handle.result()).resolves.toEqual(['a', 'b', 'c', 'd']);
  const failing = await engine.start(follows);
  await failing.signal(log, 'bad');
  expect((await rejection(failing.result())).cause.message).toBe('a bad line');
});
