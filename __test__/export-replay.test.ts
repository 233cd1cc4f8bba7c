/** Runs as files: exported, replayed against code, refused when they are something else. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { signal, task, workflow, DeterminismError, JournalFileError, RunNotFoundError } from 'fusee';
import { replay } from 'fusee/testing';
import { engineOf, rejection } from './support/engines';

const go = signal<number>('go');

interface Order {
  readonly total: number;
}

const order = workflow('order', async (ctx, input: Order) => {
  const quote = await ctx.step('quote', () => input.total + 1);
  const paid = await Promise.all([ctx.step('pay', () => quote * 2), ctx.step('mail', () => 'sent')]);
  await ctx.sleep('1h');
  const more = await ctx.waitFor(go);
  return { paid, more };
});

async function exportedOrder(options?: object): Promise<Uint8Array> {
  const engine = await engineOf([order]);
  const handle = await engine.start(order, { total: 1 }, { id: 'o1' });
  await engine.advance('2h');
  await handle.signal(go, 7);
  await handle.result();
  return handle.export(options);
}

test('a run that was exported replays to the same end, in another engine and without effects', async () => {
  const calls: string[] = [];
  const counted = workflow('order', async (ctx, input: Order) => {
    calls.push('function');
    const quote = await ctx.step('quote', () => (calls.push('quote'), input.total + 1));
    const paid = await Promise.all([ctx.step('pay', () => calls.push('pay')), ctx.step('mail', () => 'sent')]);
    await ctx.sleep('1h');
    const more = await ctx.waitFor(go);
    calls.push(`${quote} ${JSON.stringify(paid)} ${more}`);
    return { paid: [4, 'sent'], more };
  });
  const outcome = await replay(counted, await exportedOrder());
  expect(outcome).toEqual({ status: 'completed', result: { paid: [4, 'sent'], more: 7 } });
  expect(calls).toEqual(['function', '2 [4,"sent"] 7']);
});

test('a run that has not ended replays to where it is, and one that is cut to before its step', async () => {
  const engine = await engineOf([order]);
  const handle = await engine.start(order, { total: 1 });
  await engine.idle();
  expect(await replay(order, await handle.export())).toEqual({ status: 'open' });
  const seen: unknown[] = [];
  const watched = workflow('order', async (ctx, _: Order) => {
    seen.push(await ctx.step('quote', () => 0));
    seen.push(await ctx.step('pay', () => 0));
  });
  const journal = await exportedOrder();
  expect(await replay(watched, journal, { toStep: 'pay' })).toEqual({ status: 'open' });
  expect(seen).toEqual([2]);
  expect(await replay(watched, journal, { toStep: 1 })).toEqual({ status: 'open' });
  expect(seen).toEqual([2]);
  const cut = await exportedOrder({ toStep: 'pay' });
  expect(cut.length).toBeLessThan(journal.length);
  expect(await replay(watched, cut)).toEqual({ status: 'open' });
  expect(seen).toEqual([2, 2]);
});

test('what the code asks for instead of what is recorded is told with both places', async () => {
  const renamed = workflow('order', async (ctx, input: Order) => {
    const quote = await ctx.step('price', () => input.total);
    return quote;
  });
  const error = await rejection(replay(renamed, await exportedOrder()));
  expect(error).toBeInstanceOf(DeterminismError);
  expect(error.message).toMatch(
    /^workflow 'order' o1 \(run \S+\) differs: operation 1: recorded step "quote", asked for step "price"; recorded as record 2 \(LSN \d+\); the code is at .*export-replay\.test\.ts:\d+/,
  );
  expect(error.report).toMatchObject({
    seq: 1,
    recorded: { kind: 'step', name: 'quote' },
    asked: { kind: 'step', name: 'price' },
    recordedAt: { record: 2 },
  });
});

test('another end, no end, another error and a wait for something outside are differences as well', async () => {
  const journal = await exportedOrder();
  const body = async (ctx: any): Promise<unknown> => {
    await ctx.step('quote', () => 0);
    await Promise.all([ctx.step('pay', () => 0), ctx.step('mail', () => 0)]);
    await ctx.sleep('1h');
    return ctx.waitFor(go);
  };
  const message = async (end: (ctx: any) => unknown): Promise<string> => {
    const changed = workflow('order', async (ctx, _: Order) => {
      await body(ctx);
      return end(ctx);
    });
    return (await rejection(replay(changed, journal))).message as string;
  };
  expect(await message(() => 8)).toContain('recorded that it completed with {"paid":[4,"sent"],"more":7}');
  expect(await message(() => 8)).toContain('but the code completed with 8');
  expect(await message(() => Promise.reject(new RangeError('no')))).toContain(
    'but the code failed with RangeError: no',
  );
  expect(await message((ctx) => ctx.step('new', () => 0))).toContain('but the code does not end');
  expect(await message(() => new Promise(() => undefined))).toContain('awaits something that does not come from ctx');
});

test('a run that was ended from outside is the same as long as its code fits what was recorded', async () => {
  const engine = await engineOf([order]);
  const handle = await engine.start(order, { total: 1 }, { id: 'o2' });
  await engine.idle();
  await handle.pause();
  await handle.terminate('enough');
  const outcome: any = await replay(order, await handle.export());
  expect(outcome).toMatchObject({ status: 'terminated', error: { message: 'workflow o2 was terminated: enough' } });
});

test('children, tasks, updates, failures and continue-as-new are replayed as well', async () => {
  const mail = task('mail', async (_, to: string) => `to ${to}`);
  const child = workflow('child', async (ctx, n: number): Promise<number> => (n === 0 ? 0 : ctx.continueAsNew(n - 1)));
  const parent = workflow('parent', async (ctx) => {
    const got = [await ctx.run(child, 1), await ctx.run(mail, 'ann')];
    await ctx.step('fails', () => Promise.reject(new RangeError(String(got))), { retry: { maxAttempts: 1 } });
  });
  const engine = await engineOf([parent, child], { tasks: [mail] });
  const handle = await engine.start(parent, undefined, { id: 'p' });
  await rejection(handle.result());
  const code = { workflows: [child], tasks: [mail] };
  const outcome: any = await replay(parent, await handle.export(), code);
  expect(outcome).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('0,to ann') } });
  const [row] = (await collect(engine.list({ type: 'child', order: 'oldestFirst' }))) as {
    id: string;
    runId: string;
  }[];
  const first = engine.handle(row!.id, { runId: row!.runId });
  expect(await replay(child, await first.export())).toMatchObject({ status: 'continuedAsNew' });
});

test('bytes that are no exported run are refused with their name and the place', async () => {
  const journal = await exportedOrder();
  const refusal = async (bytes: Uint8Array): Promise<any> => rejection(replay(order, bytes, { source: 'x.fjnl' }));
  const damaged = Uint8Array.from(journal);
  damaged[60]! ^= 1;
  const error = await refusal(damaged);
  expect(error).toBeInstanceOf(JournalFileError);
  expect(error).toMatchObject({ code: 'JOURNAL_FILE', source: 'x.fjnl', offset: 40 });
  expect(error.message).toBe('the exported run x.fjnl cannot be read at byte 40: the entry is damaged');
  const short = await refusal(journal.subarray(0, 100));
  expect(short).toMatchObject({ offset: 100, message: expect.stringContaining('it has 100 bytes and should have') });
  expect((await refusal(Buffer.from('{"json":1}'))).message).toContain('at byte 0: this is no exported run');
  expect(await rejection(replay(order, 'x.fjnl' as never))).toBeInstanceOf(TypeError);
  expect(await rejection(replay(order, journal, { toStep: 'ship' }))).toMatchObject({
    message: expect.stringContaining('no record of a step "ship"'),
  });
  expect(await rejection(replay(order, journal, { toStep: 0 }))).toBeInstanceOf(TypeError);
  const other = workflow('other', async () => 1);
  expect(await rejection(replay(other, journal))).toMatchObject({
    code: 'UNKNOWN_DEFINITION',
    message: expect.stringContaining("workflow 'o1' of type 'order' has no code here"),
  });
});

test('a run that is not there cannot be exported, nor cut where it has nothing', async () => {
  const engine = await engineOf([order]);
  expect(await rejection(engine.handle('nobody').export())).toBeInstanceOf(RunNotFoundError);
  const handle = await engine.start(order, { total: 1 });
  await engine.idle();
  expect((await rejection(handle.export({ toStep: 'ship' }))).message).toContain('no record of a step "ship"');
  expect(await rejection(handle.export({ toStep: '' }))).toBeInstanceOf(TypeError);
  expect(await rejection(handle.export({ until: 1 }))).toBeInstanceOf(TypeError);
});

test('a file of the first format is read by this version', async () => {
  const journal = readFileSync(join(__dirname, 'fixtures/journals/format-1.fjnl'));
  expect(await replay(order, journal)).toEqual({ status: 'completed', result: { paid: [4, 'sent'], more: 7 } });
});

test('a file that was made up to harm is replayed or refused, and the process goes on', async () => {
  const journal = await exportedOrder();
  for (let at = 0; at < journal.length; at += 1) {
    const bent = Uint8Array.from(journal);
    bent[at]! ^= 0x41;
    expect(await rejection(replay(order, bent))).toBeInstanceOf(JournalFileError);
  }
});

async function collect<T>(rows: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const row of rows) all.push(row);
  return all;
}
