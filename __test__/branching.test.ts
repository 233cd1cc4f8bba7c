import { NonRetryableError, signal, task, workflow } from 'fusee';
import { replay } from 'fusee/testing';
import { engineOf, rejection } from './support/engines';

const go = signal<string>('go');

/** Two steps with a wait behind them; says which idempotency keys and chance it saw. */
function orders(log: string[] = []) {
  return workflow('orders', async (ctx: any, total: number) => {
    const keys: string[] = [];
    const quote = await ctx.step('quote', (s: any) => (log.push(`quote ${s.idempotencyKey.slice(0, 8)}`), total * 2));
    const before = ctx.uuid();
    const paid = await ctx.step('charge', (s: any) => {
      log.push(`charge ${s.idempotencyKey.slice(0, 8)}`);
      return `paid ${quote} with ${s.idempotencyKey}`;
    });
    keys.push(paid.split(' ')[3]);
    const got = await ctx.waitFor(go);
    return { quote, before, after: ctx.uuid(), got, keys, id: ctx.info.id, version: ctx.version };
  });
}

async function labels(handle: any): Promise<string[]> {
  const kinds: string[] = [];
  for await (const { kind } of handle.history()) kinds.push(kind);
  return kinds;
}

test('a reset goes on from before a step with the same keys, and who waits for the result gets the new one', async () => {
  const log: string[] = [];
  const definition = orders(log);
  const engine = await engineOf([definition]);
  const first = await engine.start(definition, 5, { id: 'o' });
  const waiting = first.result();
  await engine.idle();
  await first.signal(go, 'late');
  const second = await engine.start(definition, 6, { id: 'p' });
  await engine.idle();
  const handle = await second.reset({ toStep: 'charge', actor: 'ann' });
  expect(handle.id).toBe('p');
  expect(handle.runId).not.toBe(second.runId);
  await engine.idle();
  expect(log.map((line) => line.split(' ')[0])).toEqual(['quote', 'charge', 'quote', 'charge', 'charge']);
  expect(log[3]).toBe(log[4]);
  await engine.crash();
  await second.signal(go, 'now');
  const [, result] = await Promise.all([waiting, handle.result()]);
  expect(result).toMatchObject({ quote: 12, got: 'now', id: 'p' });
  await expect(second.result()).resolves.toEqual(result);
  expect(await labels(handle)).toEqual(expect.arrayContaining(['started', 'branched']));
  const old = await engine.handle(definition, 'p', { runId: second.runId! }).describe();
  expect(old).toMatchObject({ status: 'terminated', runId: second.runId });
});

test.each([
  [true, false, 'now'],
  [false, false, 'again'],
  [true, true, 'now'],
])('reapplySignals: %s, freshKeys: %s', async (reapplySignals, freshKeys, got) => {
  const definition = orders();
  const engine = await engineOf([definition]);
  const first = await engine.start(definition, 5, { id: 'o' });
  await engine.idle();
  await first.signal(go, 'now');
  const before: any = await first.result();
  const handle = await engine
    .handle(definition, 'o')
    .reset({ toStep: 'charge', reapplySignals, freshKeys, version: 4 });
  await engine.idle();
  await engine.crash();
  if (!reapplySignals) await handle.signal(go, 'again');
  const after: any = await handle.result();
  expect(after).toMatchObject({ quote: before.quote, got, version: 4 });
  expect(after.keys[0] === before.keys[0]).toBe(!freshKeys);
  expect(after.before === before.before).toBe(!freshKeys);
  await expect(first.result()).resolves.toEqual(before);
});

test('a fork has its own id, keys and chance from the step on, and leaves its source alone', async () => {
  const log: string[] = [];
  const definition = orders(log);
  const engine = await engineOf([definition]);
  const source = await engine.start(definition, 5, { id: 'source' });
  await engine.idle();
  const fork = await source.fork({ toStep: 2, id: 'fork' });
  const random = await source.fork({ toStep: 'charge' });
  expect(fork.id).toBe('fork');
  await engine.idle();
  await engine.crash();
  for (const handle of [source, fork, random]) await handle.signal(go, handle.id);
  const [a, b, c]: any[] = await Promise.all([source.result(), fork.result(), random.result()]);
  expect([a.quote, b.quote, c.quote]).toEqual([10, 10, 10]);
  expect(new Set([a.keys[0], b.keys[0], c.keys[0]]).size).toBe(3);
  expect(new Set([a.before, b.before, c.before]).size).toBe(3);
  expect([a.id, b.id, c.id]).toEqual(['source', 'fork', random.id]);
  expect(log.filter((line) => line.startsWith('quote'))).toHaveLength(1);
  const again = await rejection(source.fork({ toStep: 'charge', id: 'fork' }));
  expect(again.name).toBe('WorkflowAlreadyStartedError');
});

test('ids of children, chance and tokens from before the step replay in a fork of a fork', async () => {
  const child = workflow('child', (ctx: any, n: number) => ctx.waitFor(go).then((got: string) => `${n} ${got}`));
  const parent = workflow('parent', async (ctx: any) => {
    const kid = await ctx.start(child, 1);
    const { promise } = ctx.awakeable({ timeout: '1h' });
    await ctx.step('one', () => 1);
    const later = await ctx.start(child, 2);
    await ctx.step('two', () => 2);
    return Promise.all([kid.id, kid.result(), later.id, later.result(), promise.catch((e: Error) => e.name)]);
  });
  const engine = await engineOf([parent, child]);
  const source = await engine.start(parent, undefined, { id: 's' });
  await engine.idle();
  const fork = await source.fork({ toStep: 'two', id: 'f' });
  await engine.idle();
  const deep = await fork.fork({ toStep: 'one', id: 'd' });
  await engine.idle();
  await engine.crash();
  await engine.idle();
  expect(await engine.count({ stuck: true })).toBe(0);
  const kids: string[] = [];
  for await (const run of engine.list({ type: 'child' })) kids.push(run.id);
  expect(kids).toHaveLength(3);
  for (const id of kids) await engine.handle(child, id).signal(go, 'done');
  await engine.advance('1h');
  const [a, b, c]: any[] = await Promise.all([source.result(), fork.result(), deep.result()]);
  expect(b).toEqual(a);
  expect([c[0], c[1], c[4]]).toEqual([a[0], '1 done', 'TimeoutError']);
  expect(c[2]).not.toBe(a[2]);
  expect(kids).toContain(c[2]);
});

test('a token that was given away before the step completes the awakeable after a reset, not in a fork', async () => {
  let token = '';
  const waits = workflow('waits', async (ctx: any) => {
    const awakeable = ctx.awakeable();
    await ctx.step('send', () => (token = awakeable.token));
    await ctx.step('then', () => 1);
    return awakeable.promise;
  });
  const engine = await engineOf([waits]);
  const first = await engine.start(waits, undefined, { id: 'w' });
  await engine.idle();
  const given = token;
  const fork = await first.fork({ toStep: 'then' });
  const handle = await first.reset({ toStep: 'then' });
  await engine.idle();
  await expect(engine.complete(given, 'yes')).resolves.toBe(true);
  await expect(engine.complete(given, 'twice')).resolves.toBe(false);
  await expect(handle.result()).resolves.toBe('yes');
  await engine.idle();
  expect((await fork.describe()).status).toBe('running');
});

test('tasks from before the step are waited for after a reset, and enqueued again by a fork', async () => {
  let runs = 0;
  let release!: () => void;
  const held = new Promise<void>((resolve) => (release = resolve));
  const slow = task('slow', async (_: any, name: string) => ((runs += 1), await held, `did ${name}`));
  const uses = workflow('uses', async (ctx: any) => {
    const job = ctx.run(slow, 'it');
    await ctx.step('s', () => 1);
    return job;
  });
  const engine = await engineOf([uses], { tasks: [slow] } as any);
  const first = await engine.start(uses, undefined, { id: 'u' });
  await engine.settle();
  const handle = await first.reset({ toStep: 's' });
  await engine.settle();
  expect(runs).toBe(1);
  const fork = await handle.fork({ toStep: 's' });
  await engine.settle();
  expect(runs).toBe(2);
  release();
  await expect(Promise.all([handle.result(), fork.result()])).resolves.toEqual(['did it', 'did it']);
});

test('a run that failed goes on from the failed step, also one in the middle of others', async () => {
  let isBroken = true;
  const runs: string[] = [];
  const fails = workflow('fails', async (ctx: any) => {
    await ctx
      .step('odd', () => {
        throw new NonRetryableError('handled');
      })
      .catch(() => undefined);
    const [a, b] = await Promise.all([
      ctx.step('a', () => (runs.push('a'), 'a')),
      ctx.step('b', () => {
        runs.push('b');
        if (isBroken) throw new NonRetryableError('down');
        return 'b';
      }),
    ]);
    return a + b;
  });
  const engine = await engineOf([fails]);
  const handle = await engine.start(fails, undefined, { id: 'f' });
  expect((await rejection(handle.result())).name).toBe('WorkflowFailedError');
  const again = await handle.retry({ actor: 'ann' });
  expect((await rejection(again.result())).name).toBe('WorkflowFailedError');
  isBroken = false;
  const last = await engine.handle(fails, 'f').retry();
  await expect(last.result()).resolves.toBe('ab');
  expect(runs).toEqual(['a', 'b', 'b', 'b']);
  expect(await rejection(last.retry())).toMatchObject({ name: 'TypeError', message: /has not failed \(completed\)/ });
  expect(await rejection(handle.retry())).toMatchObject({ message: /not its latest one/ });
});

test('a run that failed by its own code keeps its steps; one whose child failed runs the child again', async () => {
  let bug = true;
  const runs: string[] = [];
  const kid = workflow('kid', async () => {
    if (bug) throw new Error('kid is broken');
    return 'kid';
  });
  const own = workflow('own', async (ctx: any) => {
    await ctx.step('s', () => runs.push('s'));
    if (bug) throw new TypeError('a bug');
    return 'fine';
  });
  const parent = workflow('parent', async (ctx: any) => {
    await ctx.step('s', () => runs.push('p'));
    return ctx.run(kid);
  });
  const engine = await engineOf([own, kid, parent], { replayOnClose: false });
  const [a, b] = [await engine.start(own), await engine.start(parent)];
  await rejection(a.result());
  await rejection(b.result());
  bug = false;
  const [again, parentAgain] = [await a.retry(), await b.retry()];
  await expect(again.result()).resolves.toBe('fine');
  await expect(parentAgain.result()).resolves.toBe('kid');
  expect(runs).toEqual(['s', 'p']);
});

test('a run that has undone its steps is not tried again from the one that failed', async () => {
  const undone = workflow('undone', async (ctx: any) => {
    await ctx.step('book', () => 1, { compensate: () => undefined });
    await ctx.step('pay', () => {
      throw new NonRetryableError('no');
    });
  });
  const engine = await engineOf([undone]);
  const handle = await engine.start(undone, undefined, { id: 'u' });
  await rejection(handle.result());
  expect(await rejection(handle.retry())).toMatchObject({ name: 'TypeError', message: /compensate book.*reset it/ });
  const again = await handle.reset({ toStep: 'book' });
  expect((await rejection(again.result())).name).toBe('WorkflowFailedError');
});

test('what was opened behind the step is closed, an update is answered again, a pause is over', async () => {
  const kid = workflow('kid', (ctx: any) => ctx.waitFor(go));
  const parent = workflow('parent', async (ctx: any) => {
    await ctx.step('s', () => 1);
    const handle = await ctx.start(kid, undefined, { id: 'kid' });
    return handle.result();
  });
  const engine = await engineOf([parent, kid]);
  const first = await engine.start(parent);
  await engine.idle();
  const before = await engine.handle(kid, 'kid').describe();
  await first.pause();
  const handle = await first.reset({ toStep: 's' });
  await engine.idle();
  await expect(engine.handle(kid, 'kid', { runId: before.runId }).describe()).resolves.toMatchObject({
    status: 'terminated',
  });
  expect((await handle.describe()).paused).toBe(false);
  await engine.handle(kid, 'kid').signal(go, 'second');
  await expect(handle.result()).resolves.toBe('second');
});

test('steps of before a continueAsNew are in another run', async () => {
  const loops = workflow('loops', async (ctx: any, n: number) => {
    await ctx.step(`step ${n}`, () => n);
    return n === 2 ? ctx.waitFor(go) : ctx.continueAsNew(n + 1);
  });
  const engine = await engineOf([loops]);
  const handle = await engine.start(loops, 1, { id: 'l' });
  await engine.idle();
  expect(await rejection(handle.reset({ toStep: 'step 1' }))).toMatchObject({
    name: 'TypeError',
    message: /has no step "step 1".*continueAsNew/,
  });
  const again = await handle.reset({ toStep: 'step 2' });
  await again.signal(go, 'end');
  await expect(handle.result()).resolves.toBe('end');
});

test('a fork and a run in the place of another one are exported and replayed', async () => {
  const kid = workflow('kid', () => 7);
  const parent = workflow('parent', async (ctx: any) => {
    const seven = await ctx.run(kid);
    const before = ctx.uuid();
    await ctx.step('s', () => seven);
    return [seven, before, ctx.uuid(), await ctx.run(kid)];
  });
  const engine = await engineOf([parent, kid]);
  const source = await engine.start(parent, undefined, { id: 'p' });
  await source.result();
  const fork = await source.fork({ toStep: 's', id: 'f' });
  const deep = await fork.fork({ toStep: 's', id: 'g' });
  const reset = await source.reset({ toStep: 's', freshKeys: true });
  for (const handle of [fork, deep, reset]) {
    const result = await handle.result();
    const replayed = await replay(parent as any, await handle.export(), { workflows: [kid] } as any);
    expect(replayed).toMatchObject({ status: 'completed', result });
  }
});

test('a query of a fork that has ended is answered from its copied records', async () => {
  const definition = orders();
  const engine = await engineOf([definition]);
  const handle = await engine.start(definition, 5);
  await engine.idle();
  const fork = await handle.fork({ toStep: 'charge' });
  await fork.signal(go, 'x');
  await fork.result();
  expect(await rejection(fork.query('none'))).not.toMatchObject({ name: 'StorageError' });
});

/** A reset with an open child, a task-free past and a signal behind the step; then a fork of what came of it. */
async function resetAndFork(engine: any, parent: any): Promise<void> {
  const first = await engine.start(parent, 5, { id: 'p' });
  await engine.idle();
  await first.signal(go, 'kept');
  await engine.idle();
  await first.reset({ toStep: 'charge' });
  await engine.idle();
  await engine.handle(parent, 'p').fork({ toStep: 'charge', id: 'fork' });
  await engine.idle();
}

test('after a crash behind any record the run, or the one in its place, comes to its end (LAW-3)', async () => {
  const kid = workflow('kid', (ctx: any) => ctx.waitFor(go));
  const parent = workflow('parent', async (ctx: any, total: number) => {
    const open = await ctx.start(kid, undefined, { id: 'kid' });
    const quote = await ctx.step('quote', () => total * 2);
    const paid = await ctx.step('charge', () => quote + 1);
    const got = await ctx.waitFor(go);
    return [quote, paid, got, await open.result()];
  });
  const whole = await engineOf([parent, kid]);
  await resetAndFork(whole, parent);
  const records = whole.durable;
  expect(records).toBeGreaterThan(12);
  let forks = 0;
  for (let kept = 1; kept <= records; kept += 1) {
    const engine = await engineOf([parent, kid]);
    await resetAndFork(engine, parent);
    await engine.crashTo(kept, 'none');
    await engine.idle();
    if ((await engine.count({ idPrefix: 'p' })) === 0) continue;
    const handle = engine.handle(parent, 'p');
    await handle.signal(go, 'kept');
    const fork = engine.handle(parent, 'fork');
    const isForked = (await engine.count({ idPrefix: 'fork' })) === 1;
    await engine.handle(kid, 'kid').signal(go, 'kid');
    await expect(handle.result()).resolves.toEqual([10, 11, 'kept', 'kid']);
    if (isForked) await expect(fork.result()).resolves.toEqual([10, 11, 'kept', 'kid']);
    forks += Number(isForked);
    await engine.close();
  }
  expect(forks).toBeGreaterThan(0);
});

test.each([
  ['reset', undefined, TypeError],
  ['reset', {}, TypeError],
  ['reset', { toStep: '' }, TypeError],
  ['reset', { toStep: true }, TypeError],
  ['reset', { toStep: -1 }, RangeError],
  ['reset', { toStep: 0 }, RangeError],
  ['reset', { toStep: 1.5 }, RangeError],
  ['reset', { toStep: NaN }, RangeError],
  ['reset', { toStep: 2 ** 33 }, RangeError],
  ['reset', { toStep: 9 }, /has no operation 9 \(the newest is 3\)/],
  ['reset', { toStep: 'none' }, /has no step "none".*handle\.history\(\)/],
  ['reset', { toStep: 'quote', by: 'ann' }, /no option 'by'/],
  ['reset', { toStep: 'quote', reapplySignals: 'yes' }, /reapplySignals must be true or false/],
  ['reset', { toStep: 'quote', freshKeys: 1 }, /freshKeys must be true or false/],
  ['reset', { toStep: 'quote', version: -1 }, RangeError],
  ['reset', { toStep: 'quote', version: 1.5 }, RangeError],
  ['reset', { toStep: 'quote', actor: 'x'.repeat(257) }, /256/],
  ['fork', undefined, TypeError],
  ['fork', { toStep: 'none' }, /has no step "none"/],
  ['fork', { toStep: -3 }, RangeError],
  ['fork', { toStep: 'quote', id: '' }, TypeError],
  ['fork', { toStep: 'quote', id: 'a\u0001b' }, TypeError],
  ['fork', { toStep: 'quote', id: 'x'.repeat(257) }, /257 bytes/],
  ['fork', { toStep: 'quote', id: 'o' }, /give the fork another id/],
  ['fork', { toStep: 'quote', freshKeys: true }, /no option 'freshKeys'/],
  ['retry', { toStep: 'quote' }, /no option 'toStep'/],
  ['retry', {}, /has not failed \(running\)/],
])('%s with %p is refused and changes nothing', async (verb, options, type) => {
  const definition = orders();
  const engine = await engineOf([definition]);
  const handle: any = await engine.start(definition, 5, { id: 'o' });
  await engine.idle();
  const before = await labels(handle);
  await expect(handle[verb](options)).rejects.toThrow(type as any);
  expect(await labels(handle)).toEqual(before);
  expect(await engine.count()).toBe(1);
});

test.each(['reset', 'fork', 'retry'])('%s of a run that is not there is refused', async (verb) => {
  const definition = orders();
  const engine = await engineOf([definition]);
  const handle: any = engine.handle(definition, 'nobody');
  expect((await rejection(handle[verb]({ ...(verb === 'retry' ? {} : { toStep: 'quote' }) }))).name).toBe(
    'RunNotFoundError',
  );
});

test('a run whose history is not kept any more cannot be gone back in', async () => {
  const small = workflow('small', async (ctx: any) => ctx.step('s', () => 1));
  const big = workflow('big', async (_: any, text: string) => text.length);
  const engine = await engineOf([small, big], { replayOnClose: false });
  const handle = await engine.start(small, undefined, { id: 's' });
  await handle.result();
  const shard = handle.runId!.split('-')[0];
  for (let n = 0, found = 0; found < 3; n += 1) {
    const other = await engine.start(big, 'x'.repeat(2_000_000), { id: `b${n}` });
    await other.result();
    if (other.runId!.split('-')[0] === shard) found += 1;
  }
  for (const verb of ['reset', 'fork'] as const) {
    const refused = await rejection((handle as any)[verb]({ toStep: 's' }));
    expect(refused).toMatchObject({
      name: 'RunNotFoundError',
      message: /history is not kept any more.*start it again/,
    });
  }
});
