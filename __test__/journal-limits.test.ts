import { open, signal, workflow } from 'fusee';
import { engineOf, rejection } from './support/engines';

const go = signal<number>('go');
const collects = workflow('collects', async (ctx: any) => {
  let sum = 0;
  for await (const value of ctx.signals(go)) sum += value;
  return sum;
});
const counts = workflow('counts', async (ctx: any, steps: number) => {
  for (let n = 0; n < steps; n += 1) await ctx.step('count', () => n);
  return steps;
});

const halves = (engine: any): string[] =>
  engine.lines.filter(({ fields }: any) => fields.code === 'JOURNAL_HALF').map(({ message }: any) => message);

test('a run that reaches the limit of its journal fails with a JournalLimitError; there was a warning, and others go on', async () => {
  const engine = await engineOf([counts], { journalRecordsMax: 20 });
  const warnings: any[] = [];
  engine.on('warning', (event: any) => warnings.push(event));
  const failed = await rejection(engine.execute(counts, 100, { id: 'long' }));
  expect(failed).toMatchObject({ name: 'WorkflowFailedError', id: 'long' });
  expect(failed.cause).toMatchObject({ name: 'JournalLimitError', code: 'JOURNAL_LIMIT' });
  expect(failed.cause.message).toMatch(/"long" has 20 records .* 20 records \(journalRecordsMax\).*child workflows/);
  await expect(engine.execute(counts, 5, { id: 'short' })).resolves.toBe(5);
  await engine.idle();
  expect(halves(engine)).toHaveLength(1);
  expect(halves(engine)[0]).toMatch(/"long" has 1[01] records/);
  expect(warnings).toMatchObject([{ type: 'warning', code: 'JOURNAL_HALF' }]);
});

test('the limit in bytes, and a run that is ended by what arrives from outside', async () => {
  const engine = await engineOf([collects], { journalBytesMax: 4_000 });
  const handle = await engine.start(collects);
  for (let n = 0; n < 1_000; n += 1) {
    if ((await handle.describe()).status !== 'running') break;
    await handle.signal(go, n);
  }
  expect((await rejection(handle.result())).cause.message).toMatch(/4000 bytes \(journalBytesMax\)/);
  expect(await rejection(handle.signal(go, 1))).toMatchObject({ name: 'RunNotFoundError' });
});

test('a body that runs when its run reaches the limit has its signal aborted', async () => {
  const reasons: any[] = [];
  const waits = workflow('waits', (ctx: any) =>
    Promise.all([
      ctx.step('slow', (step: any) => {
        step.signal.addEventListener('abort', () => reasons.push(step.signal.reason));
        return new Promise(() => undefined);
      }),
      (async () => {
        for (;;) await ctx.sleep('1s');
      })(),
    ]),
  );
  const engine = await engineOf([waits], { journalRecordsMax: 15 });
  const handle = await engine.start(waits);
  const ended = rejection(handle.result());
  await engine.advance('1m');
  expect((await ended).cause).toMatchObject({ code: 'JOURNAL_LIMIT' });
  await engine.idle();
  expect(reasons).toHaveLength(1);
});

test('the end outlives a crash, and a longer limit later does not undo it', async () => {
  const engine = await engineOf([counts], { journalRecordsMax: 20 });
  const handle = await engine.start(counts, 100, { id: 'long' });
  await rejection(handle.result());
  await engine.crash();
  expect((await handle.describe()).status).toBe('failed');
  expect((await rejection(handle.result())).cause.code).toBe('JOURNAL_LIMIT');
});

test('limits that no run could live with are refused', async () => {
  for (const options of [{ journalRecordsMax: 0 }, { journalRecordsMax: 9 }, { journalBytesMax: 2 ** 31 }]) {
    const error = await rejection(open(':memory:', options));
    expect(error.message).toMatch(/journal/i);
  }
});
