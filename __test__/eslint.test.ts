/** `fusee/eslint`: what is code of a workflow, what is found there, what it is told, and what is left alone. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Linter } from 'eslint';
import { parser } from 'typescript-eslint';
import { configs, meta, rules } from 'fusee/eslint';
import { version } from '../package.json';

const root = resolve(__dirname, '..');

/** Rules that spoke, with what they said. */
function lint(code: string, isTypeScript = false): { rule: string; message: string; line: number }[] {
  const linter = new Linter();
  const messages = linter.verify(
    code,
    [
      {
        ...(configs.recommended as Linter.Config),
        files: ['**/*'],
        languageOptions: isTypeScript ? { parser: parser as Linter.Parser } : {},
      },
    ],
    'workflows.mjs',
  );
  return messages.map(({ ruleId, message, line }) => ({
    rule: String(ruleId ?? message).replace('fusee/', ''),
    message,
    line,
  }));
}

const inWorkflow = (code: string, before = ''): string =>
  `import { workflow } from 'fusee';\n${before}\nexport const one = workflow('one', async (ctx, input) => {\n${code}\n});\n`;

const rulesIn = (code: string, before = ''): string[] => lint(inWorkflow(code, before)).map(({ rule }) => rule);

describe('in the code of a workflow', () => {
  test.each([
    ['no-clock', 'return Date.now();', ''],
    ['no-clock', 'return new Date();', ''],
    ['no-clock', 'return Date();', ''],
    ['no-clock', 'return globalThis.Date.now();', ''],
    ['no-clock', `return Date['now']();`, ''],
    ['no-clock', 'return performance.now();', ''],
    ['no-clock', 'return process.hrtime.bigint();', ''],
    ['no-clock', 'return Temporal.Now.instant();', ''],
    ['no-clock', 'const { now } = input; return [1].map(() => Date.now() - now);', ''],
    ['no-clock', 'const clock = Date.now; return clock();', ''],
    ['no-random', 'return Math.random();', ''],
    ['no-random', 'return crypto.randomUUID();', ''],
    ['no-random', 'return randomUUID();', `import { randomUUID } from 'node:crypto';`],
    ['no-random', 'return bytes(8);', `import { randomBytes as bytes } from 'crypto';`],
    ['no-random', 'return c.randomInt(3);', `import * as c from 'node:crypto';`],
    ['no-random', 'return crypto.randomInt(3);', `const crypto = require('node:crypto');`],
    ['no-timers', 'setTimeout(() => undefined, 5);', ''],
    ['no-timers', 'setImmediate(input);', ''],
    ['no-timers', 'queueMicrotask(input);', ''],
    ['no-timers', 'process.nextTick(input);', ''],
    ['no-timers', 'await setTimeout(5);', `import { setTimeout } from 'node:timers/promises';`],
    ['no-timers', 'return AbortSignal.timeout(5);', ''],
    ['no-effects', 'await fetch(input);', ''],
    ['no-effects', 'return process.env.HOME;', ''],
    ['no-effects', 'return env.HOME;', `import { env } from 'node:process';`],
    ['no-effects', 'return readFileSync(input);', `import { readFileSync } from 'node:fs';`],
    ['no-effects', 'return await fs.readFile(input);', `import fs from 'fs/promises';`],
    ['no-effects', 'return os.cpus().length;', `const os = require('os');`],
    ['no-effects', 'return read(input);', `const { readFileSync: read } = require('node:fs');`],
    ['no-effects', `return await import('./other.mjs');`, ''],
    ['no-console', `console.log('here');`, ''],
    ['no-floating', `ctx.step('a', () => 1);`, ''],
    ['no-floating', 'ctx.sleep(5);', ''],
    ['no-floating', 'input && ctx.run(input);', ''],
    ['no-floating', 'input ? ctx.sleep(1) : undefined;', ''],
    ['no-floating', `ctx?.step('a', () => 1);`, ''],
    ['no-floating', `ctx.step('a', () => 1).catch(() => undefined);`, ''],
    ['no-floating', `Promise.all([ctx.step('a', () => 1), 2]);`, ''],
    ['no-floating', `input.forEach(async (x) => { await ctx.step('a', () => x); });`, ''],
    ['no-floating', `input.forEach((x) => ctx.step('a', () => x));`, ''],
    ['constant-names', 'await ctx.step(input.name, () => 1);', ''],
    ['constant-names', 'await ctx.step(`${input}`, () => 1);', ''],
    ['constant-names', 'const name = await ctx.waitFor(s); await ctx.step(name, () => 1);', 'const s = 1;'],
    ['constant-names', 'const row = await ctx.waitFor(s); await ctx.step(row.name, () => 1);', 'const s = 1;'],
    ['constant-names', 'return ctx.patched(`fix-${input}`);', ''],
  ])('%s finds %s %s', (rule, code, before) => {
    expect(rulesIn(code, before)).toEqual([rule]);
  });

  test.each([
    ['the time of the context', 'return [ctx.now(), new Date(ctx.now()), Date.parse(input), Date.UTC(2025)];', ''],
    [
      'the functions of steps',
      `return ctx.step('a', () => [Date.now(), Math.random(), fetch(input), process.env]);`,
      '',
    ],
    ['a named function that only steps call', `const body = () => Date.now(); return ctx.step('a', body);`, ''],
    ['the same declared', `return ctx.step('a', body); async function body() { return fetch('x'); }`, ''],
    [
      'what undoes a step',
      `await ctx.step('a', () => 1, { compensate: () => fetch(input), retry: { shouldRetry: () => Date.now() > 1 } });`,
      '',
    ],
    [
      'pure parts of the platform',
      'return [createHash("sha256"), join("a"), Math.max(1)];',
      `import { createHash } from 'node:crypto';\nimport { join } from 'node:path';`,
    ],
    [
      'names that the code declares itself',
      'const Date = input; const fetch = input; return [Date.now(), fetch()];',
      '',
    ],
    [
      'operations that are kept',
      `const a = ctx.step('a', () => 1); const all = [ctx.sleep(1)]; return Promise.all([a, ...all]);`,
      '',
    ],
    ['operations that nobody shall wait for', `void ctx.step('a', () => 1);`, ''],
    ['verbs that give no promise', `ctx.onQuery(input, () => 1); ctx.log.info('x'); ctx.setAttributes({});`, ''],
    [
      'loops without promises',
      `input.forEach((x) => input.push(x)); await Promise.all(input.map((x) => ctx.step('a', () => x)));`,
      '',
    ],
    [
      'names with a written part',
      'await ctx.step(`charge ${input}`, () => 1); await ctx.step("a" + input, () => 1); await ctx.step(input ? "a" : "b", () => 1);',
      '',
    ],
    [
      'names of constants',
      'await ctx.step(NAME, () => 1); await ctx.step(Names.a, () => 1); await ctx.step(other, () => 1);',
      `import { other } from './names.mjs';\nconst NAME = 'a';\nconst Names = { a: 'a' };`,
    ],
    [
      'names that a helper is given',
      'await twice(ctx, "a");',
      `async function twice(ctx, name) { await ctx.step(name, () => 1); await ctx.step(name, () => 1); }`,
    ],
  ])('%s are left alone', (_, code, before) => {
    expect(lint(inWorkflow(code, before))).toEqual([]);
  });
});

describe('what is code of a workflow', () => {
  const twoRules = ['no-clock', 'no-floating'];

  test.each([
    [
      'under another name',
      `import { workflow as define } from 'fusee'; define('a', (c) => { Date.now(); c.sleep(1); });`,
    ],
    [
      'of the whole package',
      `import * as fusee from 'fusee'; fusee.workflow('a', (c) => { Date.now(); c.sleep(1); });`,
    ],
    ['by require', `const { workflow } = require('fusee'); workflow('a', (c) => { Date.now(); c.sleep(1); });`],
    ['by require of the whole', `const f = require('fusee'); f.workflow('a', (c) => { Date.now(); c.sleep(1); });`],
    [
      'a function with a name',
      `import { workflow } from 'fusee'; workflow('a', run); function run(c) { Date.now(); c.sleep(1); }`,
    ],
    [
      'a constant function',
      `import { workflow } from 'fusee'; const run = (c) => { Date.now(); c.sleep(1); }; workflow('a', run);`,
    ],
    [
      'what it calls',
      `import { workflow } from 'fusee'; workflow('a', (ctx) => help(1, ctx)); function help(n, c) { Date.now(); c.sleep(1); }`,
    ],
    [
      'what that calls',
      `import { workflow } from 'fusee'; workflow('a', (ctx) => a(ctx)); const a = (ctx) => b(ctx); const b = (c) => { Date.now(); c.sleep(1); };`,
    ],
    [
      'what it calls by name',
      `import { workflow } from 'fusee'; workflow('a', (ctx) => { ctx.sleep(1); return [1].map(stamp); }); const stamp = () => Date.now();`,
    ],
  ])('%s', (_, code) => {
    expect(
      lint(code)
        .map(({ rule }) => rule)
        .sort(),
    ).toEqual(twoRules);
  });

  test('a function that takes a WorkflowContext', () => {
    const code = `
      import type * as fusee from 'fusee';
      import type { WorkflowContext } from 'fusee';
      export async function help(n: number, ctx: WorkflowContext<string>) { ctx.sleep(n as number); return Date.now()!; }
      export const other = (ctx: fusee.WorkflowContext): number => Math.random();
      export const clock = (): Date => new Date();
      enum Names { A = 'a' }
      export const named = (ctx: WorkflowContext) => ctx.step(Names.A as string, () => Date.now());
    `;
    expect(
      lint(code, true)
        .map(({ rule }) => rule)
        .sort(),
    ).toEqual(['no-clock', 'no-floating', 'no-random']);
  });

  test.each([
    [
      'tasks',
      `import { task } from 'fusee'; task('a', async () => { setTimeout(f, Date.now()); console.log(await fetch('x')); }); const f = 1;`,
    ],
    [
      'functions of others',
      `import { workflow } from 'temporal'; workflow('a', (ctx) => { Date.now(); ctx.sleep(1); });`,
    ],
    [
      'everything else',
      `import { open } from 'fusee'; const e = await open('./d'); setTimeout(() => e.close(), Math.random());`,
    ],
  ])('not %s', (_, code) => {
    expect(lint(code)).toEqual([]);
  });

  test('the names of definitions are constants', () => {
    const code = `
      import { signal, task, workflow } from 'fusee';
      const NAME = 'x';
      export const [a, b, c] = [workflow(NAME, () => 1), task(\`a-\${NAME}\`, () => 1), signal('s')];
      export const make = (name) => task(name, () => 1);
      export const d = signal(process.env.NAME);
    `;
    expect(lint(code)).toEqual([expect.objectContaining({ rule: 'constant-names', line: 6 })]);
  });
});

test('a message names what was found and the remedy', () => {
  const found = lint(
    inWorkflow(
      `Date.now(); Math.random(); setTimeout(input); process.env.A; console.log(1); ctx.sleep(1);\nawait ctx.step(input, () => 1);`,
    ),
  );
  const messages = Object.fromEntries(found.map(({ rule, message }) => [rule, message]));
  expect(messages).toEqual({
    'no-clock': expect.stringMatching(/^Date\.now\(\) .*ctx\.now\(\)/),
    'no-random': expect.stringMatching(/^Math\.random\(\) .*ctx\.random\(\)/),
    'no-timers': expect.stringMatching(/^setTimeout\(\) .*ctx\.sleep\(\)/),
    'no-effects': expect.stringMatching(/^process\.env\.A .*step/),
    'no-console': expect.stringMatching(/^console\.log\(\) .*ctx\.log/),
    'no-floating': expect.stringMatching(/ctx\.sleep\(\).*Await it/),
    'constant-names': expect.stringMatching(/name of a step.*written here/),
  });
});

test('the plugin says its name and version, and recommends every rule', () => {
  expect(meta).toEqual({ name: 'fusee', namespace: 'fusee', version });
  expect(Object.keys(configs.recommended.rules)).toEqual(Object.keys(rules).map((name) => `fusee/${name}`));
});

test('the examples of this package have nothing to be found', () => {
  const examples = readdirSync(join(root, 'examples'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.mjs'),
  );
  const found = examples.flatMap((name) =>
    lint(readFileSync(join(root, 'examples', name), 'utf8')).map(({ line, message }) => `${name}:${line} ${message}`),
  );
  expect(found).toEqual([]);
  expect(examples.length).toBeGreaterThan(4);
});
