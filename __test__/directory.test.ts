import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, query, signal, workflow } from 'fusee';
import { quietLogger, rejection } from './support/engines';
import { runScript } from './support/scripts';

const go = signal<number>('go');
const status = query<string>('status');
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'fusee-dir-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const calls: string[] = [];
const long = workflow('long', async (ctx: any, name: string) => {
  let phase = 'begun';
  ctx.onQuery(status, () => phase);
  const a = await ctx.step('a', () => calls.push(name));
  phase = 'waits';
  return [a, await ctx.waitFor(go)];
});
const other = workflow('other', async (ctx: any) => {
  await ctx.waitFor(go);
});

async function engineAt(workflows: readonly any[]): Promise<any> {
  const { lines, logger } = quietLogger();
  return Object.assign((await open(join(folder, 'data'), { workflows, logger } as any)) as object, { lines });
}

test('what was under way goes on after a close, and open says in one line what it found', async () => {
  const first = await engineAt([long, other]);
  await first.start(long, 'x', { id: 'x' });
  await first.start(other, undefined, { id: 'y' });
  await first.close();
  expect(first.lines).toEqual([]);
  const second = await engineAt([long]);
  try {
    const handle = second.handle(long, 'x');
    await expect(handle.query(status)).resolves.toBe('waits');
    expect(second.lines.map(({ message }: any) => message)).toEqual([
      expect.stringMatching(/^fusee: opened .*data: 1 resumed; 1 without a definition here: 'other' \(1\)$/),
    ]);
    await expect(second.explain('y')).resolves.toEqual({ reason: 'notRegistered' });
    expect((await rejection(second.handle(other, 'y').query(status))).name).toBe('UnknownDefinitionError');
    await handle.signal(go, 5);
    await expect(handle.result()).resolves.toEqual([1, 5]);
    expect(calls).toEqual(['x']);
  } finally {
    await second.close();
  }
});

test('a directory has one engine at a time; a failed open leaves nothing behind', async () => {
  const first = await engineAt([long]);
  const error = await rejection(engineAt([long]));
  expect(error).toMatchObject({ name: 'DirectoryLockedError', code: 'DIRECTORY_LOCKED' });
  await first.close();
  await (await engineAt([long])).close();
  expect((await rejection(open('/proc/no/such/place'))).name).toBe('StorageError');
});

test('LAW-1 LAW-7: what was acknowledged survives kill -9, and a finished step does not run again', async () => {
  const script = (isFirst: boolean): string => `
    const go = signal('go');
    const w = workflow('w', async (ctx) => {
      const a = await ctx.step('a', () => { console.log('effect'); return 1; });
      return [a, await ctx.waitFor(go)];
    });
    const engine = await open(${JSON.stringify(join(folder, 'killed'))}, { workflows: [w], logger: quiet });
    if (${isFirst}) {
      const handle = await engine.start(w, undefined, { id: 'w' });
      while ((await engine.explain('w')).reason !== 'waiting') await tick();
      await handle.signal(go, 7);
      process.kill(process.pid, 'SIGKILL');
    }
    console.log(JSON.stringify(await engine.handle(w, 'w').result()));
    await engine.close();
  `;
  const first = await runScript(script(true));
  expect(first).toMatchObject({ signal: 'SIGKILL', out: 'effect\n' });
  const second = await runScript(script(false));
  expect(second).toMatchObject({ code: 0, out: '[1,7]\n' });
});
