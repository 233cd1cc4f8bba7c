/** Many recorded runs against the code that is here: the function, and the command as somebody runs it. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { open, task, workflow, DeterminismError, DirectoryLockedError, JournalFileError } from 'fusee';
import { check } from 'fusee/testing';
import { quietLogger, rejection } from './support/engines';

const root = resolve(__dirname, '..');
const flows = join(__dirname, 'fixtures/check/flows.cjs');

const mail = task('mail', async (_, to: string) => `to ${to}`);
const order = workflow('order', async (ctx, total: number) => {
  const paid = await ctx.step('pay', () => total * 2);
  await ctx.run(mail, 'ann');
  await ctx.sleep('1h');
  return paid;
});
const short = workflow('short', async (ctx) => ctx.step('one', () => 1));
const renamed = workflow('order', async (ctx, total: number) => {
  await ctx.step('charge', () => total);
});

let folder: string;
let dir: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'fusee-check-'));
  dir = join(folder, 'data');
  const engine = await open(dir, { workflows: [order, short], tasks: [mail], logger: quietLogger().logger });
  mkdirSync(join(folder, 'runs'));
  for (const id of ['a', 'b']) {
    const handle = await engine.start(order, 1, { id });
    while ((await engine.explain(id)).reason !== 'timer') await new Promise((next) => setImmediate(next));
    writeFileSync(join(folder, 'runs', `${id}.fjnl`), await handle.export());
  }
  await engine.execute(short, undefined, { id: 'c' });
  await engine.close();
});

afterAll(() => rmSync(folder, { recursive: true }));

function contents(): Record<string, string> {
  const read = (name: string): string => readFileSync(join(dir, name), 'base64');
  return Object.fromEntries(readdirSync(dir).map((name) => [name, name === 'lock' ? '' : read(name)]));
}

test('the open runs of a directory fit their code, and the directory stays as it is', async () => {
  const before = contents();
  expect(await check({ workflows: [order], tasks: [mail], dir })).toEqual({ checked: 2, failures: [] });
  expect(contents()).toEqual(before);
  expect((await check({ workflows: [order, short], tasks: [mail], dir, ended: true })).checked).toBe(3);
});

test('a run that differs is listed with the first step that does, recorded and asked for, and both places', async () => {
  const { checked, failures } = await check({ workflows: [renamed], dir });
  expect(checked).toBe(2);
  expect(failures).toHaveLength(2);
  const failure = failures.find(({ id }) => id === 'a')!;
  expect(failure).toMatchObject({ kind: 'differs', id: 'a', type: 'order', source: dir });
  expect(failure.error).toBeInstanceOf(DeterminismError);
  expect(failure.difference).toMatchObject({
    seq: 1,
    recorded: { kind: 'step', name: 'pay' },
    asked: { kind: 'step', name: 'charge' },
    recordedAt: { record: 2, lsn: expect.stringMatching(/^\d+$/) },
    place: expect.stringMatching(/check\.test\.ts:\d+:\d+$/),
  });
});

test('a type without code, and a file that cannot be read, are told and hinder nothing', async () => {
  const bytes = readFileSync(join(folder, 'runs/a.fjnl'));
  const journals = [bytes, { bytes: bytes.subarray(0, 90), source: 'half' }, join(folder, 'runs/b.fjnl')];
  const report = await check({ workflows: [short], journals });
  expect(report.checked).toBe(3);
  expect(report.failures.map(({ kind, source }) => [kind, source])).toEqual([
    ['undefinedType', undefined],
    ['unreadable', 'half'],
    ['undefinedType', join(folder, 'runs/b.fjnl')],
  ]);
  expect(report.failures[1]!.error).toBeInstanceOf(JournalFileError);
});

test('a directory that is open is refused, and what is no directory of an engine is not made one', async () => {
  const engine = await open(dir, { logger: quietLogger().logger });
  expect(await rejection(check({ workflows: [order], tasks: [mail], dir }))).toBeInstanceOf(DirectoryLockedError);
  await engine.close();
  const nowhere = join(folder, 'nowhere');
  expect((await rejection(check({ workflows: [order], dir: nowhere }))).message).toContain(
    `no directory of an engine at ${nowhere}`,
  );
  expect(readdirSync(folder)).not.toContain('nowhere');
});

test.each([
  [{ workflows: [order] }, 'check needs runs'],
  [{ workflows: [order], dir: '' }, 'dir must be a directory'],
  [{ workflows: [order], dir: '.', ended: 1 }, 'the option ended'],
  [{ workflows: [1], journals: [] }, 'workflows[0] is not what workflow() returned'],
  [{ workflows: [order], journals: [], dri: '.' }, 'dri'],
  [{ workflows: [order], journals: [7] }, 'needs the bytes'],
])('%j cannot be meant', async (options, why) => {
  expect((await rejection(check(options as never))).message).toContain(why);
});

/** Runs the command. */
function fusee(args: readonly string[], step?: string): { code: number | null; out: string; err: string } {
  const env = { ...process.env, ...(step === undefined ? {} : { CHECK_STEP: step }) };
  const options = { encoding: 'utf8', env, timeout: 60_000 } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, 'dist/bin/fusee.js'), ...args], options);
  return { code: status, out: stdout, err: stderr };
}

test('the command says 0 when all runs of a directory fit', () => {
  const { code, out, err } = fusee(['check', flows, dir]);
  expect({ code, out }).toEqual({ code: 0, out: '2 runs checked: 2 fit\n' });
  // What the module prints does not come between.
  expect(err).toBe('loaded\n');
});

test('the command says 1 when runs differ, which ones, and where', () => {
  const files = [join(folder, 'runs/a.fjnl'), join(folder, 'runs/b.fjnl')];
  const { code, out } = fusee(['check', flows, ...files], 'charge');
  expect(code).toBe(1);
  const line = (id: string, file: string): string =>
    `^workflow 'order' ${id} \\(run \\S+\\) differs: operation 1: recorded step "pay", asked for step "charge"; ` +
    `recorded as record 2 \\(LSN \\d+\\); the code is at \\S+flows.cjs:\\d+:\\d+ \\[${file}\\]$`;
  const lines = out.trimEnd().split('\n');
  expect(lines).toHaveLength(3);
  expect(lines[0]).toMatch(new RegExp(line('a', files[0]!)));
  expect(lines[1]).toMatch(new RegExp(line('b', files[1]!)));
  expect(lines[2]).toBe('2 runs checked: 0 fit, 2 differ');
});

test('the command gives its report as JSON', () => {
  const { code, out } = fusee(['check', flows, join(folder, 'runs'), '--json'], 'charge');
  expect(code).toBe(1);
  expect(JSON.parse(out)).toMatchObject({
    checked: 2,
    failures: [
      { kind: 'differs', id: 'a', seq: 1, recorded: { kind: 'step', name: 'pay' }, asked: { name: 'charge' } },
      { kind: 'differs', id: 'b', source: join(folder, 'runs/b.fjnl'), recordedAt: { record: 2 } },
    ],
  });
});

test('the command says 2 for bad use and for what cannot be read', () => {
  const half = join(folder, 'half.fjnl');
  writeFileSync(half, readFileSync(join(folder, 'runs/a.fjnl')).subarray(0, 90));
  expect(fusee(['check', flows, half])).toMatchObject({
    code: 2,
    out: expect.stringContaining(`the exported run ${half} cannot be read at byte 90`),
  });
  const bad: [string[], string][] = [
    [[], 'a command is missing'],
    [['chekc'], "there is no command 'chekc'"],
    [['check'], 'the module is missing'],
    [['check', flows], 'there is nothing to check'],
    [['check', flows, 'nowhere'], 'there is no file nowhere'],
    [['check', flows, dir, '--all'], "Unknown option '--all'"],
    [['check', flows, __dirname], 'neither the directory of an engine'],
    [['check', join(__dirname, 'fixtures/threads/empty.cjs'), dir], 'exports no definition'],
  ];
  for (const [args, why] of bad) {
    const { code, out, err } = fusee(args);
    expect({ args, code, out }).toEqual({ args, code: 2, out: '' });
    expect(err).toContain(why);
  }
  expect(fusee(['--help'])).toMatchObject({ code: 0, out: expect.stringContaining('fusee check <module>') });
}, 120_000);

test('the command is in the package, and installed as fusee', () => {
  const place = join(folder, 'installed');
  mkdirSync(place);
  const npm = (args: readonly string[], cwd: string): string =>
    execFileSync('npm', args, { cwd, encoding: 'utf8', shell: process.platform === 'win32' });
  const [packed] = JSON.parse(npm(['pack', '--json', '--ignore-scripts', '--pack-destination', folder], root)) as [
    { filename: string },
  ];
  writeFileSync(join(place, 'package.json'), '{"private":true}');
  npm(['install', '--offline', '--no-audit', '--no-fund', join(folder, packed.filename)], place);
  const command = join(place, 'node_modules/.bin/fusee');
  expect(statSync(command).mode & 0o111).not.toBe(0);
  writeFileSync(join(place, 'flows.mjs'), "export * from './flows.cjs';\nexport { default } from './flows.cjs';\n");
  writeFileSync(join(place, 'flows.cjs'), readFileSync(flows, 'utf8').replace('../../..', 'fusee'));
  const { status, stdout, stderr } = spawnSync(command, ['check', 'flows.mjs', dir], { cwd: place, encoding: 'utf8' });
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '2 runs checked: 2 fit\n', stderr: 'loaded\n' });
}, 180_000);
