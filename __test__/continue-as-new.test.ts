import { query, signal, update, workflow } from 'fusee';
import { crashEverywhere } from 'fusee/testing';
import { engineOf, rejection } from './support/engines';

const add = signal<number>('add');
const sum = query<number>('sum');
const bump = update<void, number>('bump');

interface State {
  readonly round: number;
  readonly sum: number;
}

/** Three rounds of two signals each. */
const rounds = workflow('rounds', async (ctx: any, state: State): Promise<number> => {
  let total = state.sum;
  ctx.onQuery(sum, () => total);
  ctx.onUpdate(bump, () => (total += 1000));
  for (let taken = 0; taken < 2; taken += 1) total += await ctx.waitFor(add);
  await ctx.step('save', () => total);
  if (state.round === 3) return total;
  return ctx.continueAsNew({ round: state.round + 1, sum: total });
});

test('a run continues as a new one under its id; result() follows, and no signal is lost', async () => {
  const engine = await engineOf([rounds]);
  const ends: string[] = [];
  engine.on('continuedAsNew', ({ runId }: any) => ends.push(runId));
  const handle = await engine.start(rounds, { round: 1, sum: 0 }, { id: 'r' });
  const result = handle.result();
  for (let value = 1; value <= 5; value += 1) await engine.handle('r').signal(add, value);
  await engine.idle();
  await engine.crash();
  await expect(handle.query(sum)).resolves.toBe(15);
  await handle.signal(add, 6);
  await expect(result).resolves.toBe(21);
  await expect(handle.result()).resolves.toBe(21);
  await expect(engine.handle(rounds, 'r').result()).resolves.toBe(21);
  const first = await handle.describe();
  expect(first.status).toBe('continuedAsNew');
  expect((await engine.handle('r').describe()).status).toBe('completed');
  expect(ends).toContain(handle.runId);
  const rows: any[] = [];
  for await (const row of engine.list({ status: 'continuedAsNew' })) rows.push(row);
  expect(rows.map(({ id }) => id)).toEqual(['r', 'r']);
  await expect(engine.count({ type: rounds })).resolves.toBe(3);
});

test('LAW-3: the end of one run and the start of the next are one record', async () => {
  const counts = workflow('counts', async (ctx: any, left: number): Promise<string> => {
    await ctx.step('count', () => left);
    const value = await ctx.waitFor(add);
    return left === 0 ? `counted, last ${value}` : ctx.continueAsNew(left - 1);
  });
  const { crashes } = await crashEverywhere(
    {
      workflow: counts,
      input: 2,
      signals: [1, 2, 3].map((value) => ({ signal: add, value })),
      options: { workflows: [counts] } as any,
    },
    {
      // The first run's own end; the chain is looked at below.
      expect: ({ status }: any) => expect(['completed', 'continuedAsNew']).toContain(status),
    },
  );
  expect(crashes).toBeGreaterThan(4);
});

test('each run has keys, randomness and a journal of its own', async () => {
  const seen: any[] = [];
  const draws = workflow('draws', async (ctx: any, left: number): Promise<number> => {
    await ctx.step('draw', (step: any) => seen.push([step.idempotencyKey, ctx.info.runId]));
    const drawn = ctx.random();
    seen.push(drawn);
    return left === 0 ? drawn : ctx.continueAsNew(left - 1, { version: 7 });
  });
  const engine = await engineOf([draws]);
  const handle = await engine.start(draws, 2, { id: 'd' });
  await handle.result();
  expect(new Set(seen.map(String)).size).toBe(6);
  expect((await engine.handle('d').describe()).version).toBe(7);
  const records: string[] = [];
  for await (const { kind } of handle.history()) records.push(kind);
  expect(records).toEqual(['started', 'stepCompleted', 'ended']);
});

test('a parent waits for the last run of its child, and a cancel reaches it', async () => {
  const child = workflow('child', async (ctx: any, left: number): Promise<string> => {
    await ctx.sleep('1h');
    return left === 0 ? 'done' : ctx.continueAsNew(left - 1);
  });
  const parent = workflow('parent', (ctx: any) => ctx.run(child, 2, { id: 'kid' }));
  const engine = await engineOf([parent, child]);
  const handle = await engine.start(parent);
  await engine.advance('1h');
  await engine.crash();
  await engine.advance('2h');
  await expect(handle.result()).resolves.toBe('done');
  const alone = await engine.start(child, 5);
  await engine.advance('2h');
  await alone.cancel('enough');
  expect(await rejection(alone.result())).toMatchObject({ name: 'CancelledError', reason: 'enough' });
});

test('the timeout of a run begins anew, and a schema converts the next input', async () => {
  const schema: any = {
    '~standard': { version: 1, vendor: 'test', validate: (value: any) => ({ value: Number(value) }) },
  };
  const timed = workflow(
    'timed',
    async (ctx: any, left: number): Promise<unknown> => {
      await ctx.sleep('3h');
      return left === 0 ? typeof left : ctx.continueAsNew(String(left - 1));
    },
    { timeout: '4h', input: schema },
  );
  const engine = await engineOf([timed]);
  const handle = await engine.start(timed, '2' as any);
  await engine.advance('9h');
  await expect(handle.result()).resolves.toBe('number');
});

test('what cannot be meant fails the run, and an update without an answer is told', async () => {
  const bad = workflow('bad', async (ctx: any, what: string): Promise<unknown> => {
    if (what === 'option') return ctx.continueAsNew('x', { versions: 1 });
    if (what === 'version') return ctx.continueAsNew('x', { version: -1 });
    return ctx.continueAsNew(() => 1);
  });
  const leaves = workflow('leaves', async (ctx: any, left: number): Promise<unknown> => {
    ctx.onUpdate(bump, () => ctx.sleep('1d'));
    await ctx.waitFor(add);
    return left === 0 ? 'over' : ctx.continueAsNew(left - 1);
  });
  const engine = await engineOf([bad, leaves]);
  for (const what of ['option', 'version', 'function']) {
    expect((await rejection(engine.execute(bad, what))).name).toBe('WorkflowFailedError');
  }
  const handle = await engine.start(leaves, 1);
  const lost = rejection(handle.update(bump));
  await engine.idle();
  await handle.signal(add, 1);
  expect((await lost).message).toMatch(/has ended/);
  await handle.signal(add, 1);
  await expect(handle.result()).resolves.toBe('over');
});
