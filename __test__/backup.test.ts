import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { open, signal, task, workflow } from 'fusee';
import { quietLogger, rejection } from './support/engines';

let folder: string;
let data: string;
let copy: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'fusee-backup-'));
  data = join(folder, 'data');
  copy = join(folder, 'copy');
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const go = signal<string>('go');
const waits = workflow('waits', async (ctx, text: string) => text + (await ctx.waitFor(go)));
const asks = workflow('asks', (ctx, name: string) => ctx.run(work, name));
const work = task('work', (ctx, name: string) => `${name} done`, { queue: 'line' });
const options = (): any => ({
  workflows: [waits, asks],
  tasks: [work],
  queues: { line: { concurrency: 4 } },
  logger: quietLogger().logger,
});

test('LAW-1: a copy that is made while the engine works has all that was acknowledged, and both go on', async () => {
  const engine: any = await open(data, options());
  await engine.start(waits, 'begun', { id: 'waits' });
  await engine.execute(asks, 'first', { id: 'asks' });
  const later = await engine.enqueue(work, 'later', { delay: '1h', key: 'later' });
  await engine.schedules.upsert('monthly', { cron: '0 0 1 * *', run: work, input: 'monthly' });
  let made = 0;
  const isMade = engine.backup(copy).finally(() => (made = 1));
  let count = 0;
  while (made === 0) await engine.execute(asks, 'meanwhile', { id: `meanwhile ${count++}` });
  await isMade;
  await engine.handle(waits, 'waits').signal(go, ' in the origin');
  expect(await engine.handle(waits, 'waits').result()).toBe('begun in the origin');

  const other: any = await open(copy, options());
  expect(await other.handle(asks, 'asks').result()).toBe('first done');
  expect((await other.handle(work, 'later').describe()).status).toBe('scheduled');
  expect((await other.enqueue(work, 'again', { key: 'later' })).id).toBe(later.id);
  expect((await other.schedules.list()).map(({ name }: any) => name)).toEqual(['monthly']);
  await other.handle(waits, 'waits').signal(go, ' in the copy');
  expect(await other.handle(waits, 'waits').result()).toBe('begun in the copy');
  expect(await other.execute(asks, 'new')).toBe('new done');
  await other.close();
  expect(await engine.execute(asks, 'more')).toBe('more done');
  await engine.close();
});

test('a copy needs a directory of its own, and an engine that is open and not in memory', async () => {
  const engine: any = await open(data, options());
  await engine.execute(asks, 'first');
  for (const own of [data, join(data, 'copy'), join(data, 'a', 'b'), join(data, '..', basename(data))]) {
    const refused = await rejection(engine.backup(own));
    expect(refused).toMatchObject({
      name: 'TypeError',
      message: expect.stringMatching(/the directory of this engine/),
    });
  }
  writeFileSync(join(folder, 'file'), '');
  expect((await rejection(engine.backup(folder))).message).toMatch(/not empty, it has "(data|file)"/);
  expect((await rejection(engine.backup(join(folder, 'file')))).message).toMatch(/it is a file/);
  expect((await rejection(engine.backup(''))).message).toBe('engine.backup needs a directory');
  await engine.close();
  expect((await rejection(engine.backup(copy))).name).toBe('ClosedError');
  const memory: any = await open(':memory:', options());
  const error = await rejection(memory.backup(copy));
  expect(error.name).toBe('StorageError');
  expect(error.message).toMatch(/no directory to copy/);
  await memory.close();
});

test('LAW-10: a copy that was not finished is refused with the reason, and the next one replaces it', async () => {
  const engine: any = await open(data, options());
  await engine.execute(asks, 'first', { id: 'asks' });
  await engine.backup(copy);
  writeFileSync(join(copy, 'copy.unfinished'), '');
  const error = await rejection(open(copy, options()));
  expect(error.name).toBe('LogCorruptError');
  expect(error.message).toMatch(/a copy that was not finished, as its file "copy.unfinished" says/);
  await engine.backup(copy);
  expect(readdirSync(copy)).not.toContain('copy.unfinished');
  await engine.close();
  const other: any = await open(copy, options());
  expect(await other.handle(asks, 'asks').result()).toBe('first done');
  await other.close();
});

test('the files of a closed directory are a copy', async () => {
  const engine: any = await open(data, options());
  await engine.start(waits, 'x'.repeat(2 << 20), { id: 'waits' });
  await engine.execute(asks, 'first', { id: 'asks' });
  await engine.close();
  expect(readdirSync(data)).toContain('runs');
  cpSync(data, copy, { recursive: true });
  const other: any = await open(copy, options());
  expect(await other.handle(asks, 'asks').result()).toBe('first done');
  await other.handle(waits, 'waits').signal(go, '!');
  expect(await other.handle(waits, 'waits').result()).toHaveLength((2 << 20) + 1);
  await other.close();
});

test('LAW-10: a copy that mixes times is refused with the reason', async () => {
  const engine: any = await open(data, options());
  await engine.start(waits, 'x'.repeat(2 << 20), { id: 'waits' });
  await engine.execute(asks, 'first', { id: 'asks' });
  // What the tools of the system copy first...
  const logs = readdirSync(data).filter((name) => name.endsWith('.log'));
  for (const name of logs) cpSync(join(data, name), join(copy, name));
  await engine.handle(waits, 'waits').signal(go, '!');
  await engine.close();
  // ... and last, behind a checkpoint.
  cpSync(join(data, 'runs'), join(copy, 'runs'));
  const error = await rejection(open(copy, options()));
  expect(error.name).toBe('LogCorruptError');
  expect(error.message).toMatch(/the run store knows that record \d+ was durable/);
});
