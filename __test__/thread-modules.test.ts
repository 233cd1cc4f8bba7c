import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const fixtures = resolve(__dirname, 'fixtures/threads');
const dist = pathToFileURL(resolve(__dirname, '../dist/index.js')).href;
let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'fusee-modules-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A program that runs a workflow on two workers and prints what it gave. */
function program(): string {
  const file = join(folder, 'program.mjs');
  writeFileSync(
    file,
    `
    import { isMainThread, threadId } from 'node:worker_threads';
    import { open, workflow } from ${JSON.stringify(dist)};
    export const where = workflow('where', async (ctx, input) => ({ thread: await ctx.step('t', () => threadId), input }));
    if (isMainThread) {
      const engine = await open(process.argv[2], { workers: { count: 2, module: import.meta.url } });
      console.log(JSON.stringify(await engine.execute(where, 7)));
      await engine.close();
    }
    `,
  );
  return file;
}

const answers = (out: string): any[] =>
  out
    .split('\n')
    .filter((line) => line.startsWith('{"thread"'))
    .map((line) => JSON.parse(line));

test('a module of TypeScript is loaded in the workers by the loader of the main thread', () => {
  const loader = pathToFileURL(join(fixtures, 'register-typescript.mjs')).href;
  const ended = spawnSync(
    process.execPath,
    ['--no-warnings', '--import', loader, join(fixtures, 'typed.ts'), join(folder, 'data')],
    { encoding: 'utf8' },
  );
  expect(ended.stderr).toBe('');
  expect(answers(ended.stdout)).toEqual([{ thread: expect.any(Number), input: 7 }]);
  expect(answers(ended.stdout)[0].thread).toBeGreaterThan(0);
});

test('a workflow of several versions runs each of them in the workers', () => {
  const file = join(folder, 'versions.mjs');
  writeFileSync(
    file,
    `
    import { isMainThread, threadId } from 'node:worker_threads';
    import { open, workflow } from ${JSON.stringify(dist)};
    const run = (version) => async (ctx) => ({ thread: await ctx.step('t', () => threadId), version });
    export const old = workflow('versioned', run(1), { version: 1 });
    export const newest = workflow('versioned', run(2), { version: 2 });
    if (isMainThread) {
      const engine = await open(process.argv[2], { workers: { count: 2, module: import.meta.url } });
      for (const version of [1, 2]) console.log(JSON.stringify(await engine.execute(newest, null, { version })));
      await engine.close();
    }
    `,
  );
  const ended = spawnSync(process.execPath, [file, join(folder, 'data')], { encoding: 'utf8' });
  expect(ended.stderr).toBe('');
  expect(answers(ended.stdout).map((answer) => answer.version)).toEqual([1, 2]);
});

test('a debugger may be attached: the workers run as without it', () => {
  const ended = spawnSync(process.execPath, ['--inspect=127.0.0.1:0', program(), join(folder, 'data')], {
    encoding: 'utf8',
  });
  expect(ended.stderr).toMatch(/^Debugger listening/);
  expect(ended.status).toBe(0);
  expect(answers(ended.stdout)).toEqual([{ thread: expect.any(Number), input: 7 }]);
});

test('node --watch runs a program with workers, and runs it again when it has changed', async () => {
  const file = program();
  const watching = spawn(process.execPath, ['--watch', file, join(folder, 'data')], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  try {
    await outputOf(watching, (out) => answers(out).length === 1);
    appendFileSync(file, '\n// It is another file now.\n');
    const out = await outputOf(watching, (out) => answers(out).length === 1);
    expect(answers(out)[0].input).toBe(7);
  } finally {
    watching.kill('SIGKILL');
  }
});

/** What a process writes from now on, until that is enough. */
function outputOf(child: ChildProcess, isEnough: (out: string) => boolean): Promise<string> {
  return new Promise((done, fail) => {
    let out = '';
    const take = (data: Buffer): void => {
      out += data.toString();
      if (!isEnough(out)) return;
      child.stdout!.off('data', take);
      done(out);
    };
    child.stdout!.on('data', take);
    child.once('exit', (code) => fail(new Error(`it ended with ${code}: ${out}`)));
  });
}
