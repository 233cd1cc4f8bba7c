import { execFileSync } from 'node:child_process';
import { join, relative, resolve } from 'node:path';
import { findCycle, importGraph, relativeImports } from './support/import-cycles';

const root = resolve(__dirname, '..');

interface Snippet {
  filePath: string;
  code: string;
}

interface Report {
  ruleId: string | null;
  message: string;
}

interface Case extends Snippet {
  claim: string;
  /** The rule that must speak; undefined where none may. */
  rule: string | undefined;
}

const inWorkflow = 'js/workflow/planted.ts';
const inClient = 'js/planted.ts';

const planted = (filePath: string, code: string, rule: string | undefined): Case => ({
  claim: `${filePath}: ${code.replaceAll(/\s+/g, ' ')}`,
  filePath,
  code: `${code}\n`,
  rule,
});

const cases: Case[] = [
  planted(inWorkflow, `import * as fs from 'node:fs';\nexport const found = fs;`, 'no-restricted-imports'),
  planted(inWorkflow, `import * as fs from 'fs';\nexport const found = fs;`, 'no-restricted-imports'),
  planted(
    inWorkflow,
    `import { createHash } from 'crypto';\nexport const found = createHash;`,
    'no-restricted-imports',
  ),
  planted(inWorkflow, `import { native } from '../native';\nexport const found = native;`, 'no-restricted-imports'),
  planted(inWorkflow, `import { native } from '../native.js';\nexport const found = native;`, 'no-restricted-imports'),
  planted(
    inWorkflow,
    `import { Client } from '../client/index';\nexport const found = Client;`,
    'no-restricted-imports',
  ),
  planted(
    inWorkflow,
    `import { Worker } from '../worker/loop';\nexport const found = Worker;`,
    'no-restricted-imports',
  ),
  planted(inWorkflow, `export const found = Date.now();`, 'no-restricted-properties'),
  planted(inWorkflow, `export const found = Math.random();`, 'no-restricted-properties'),
  planted(inWorkflow, `setTimeout(() => undefined, 1);`, 'no-restricted-globals'),
  planted(inWorkflow, `setInterval(() => undefined, 1);`, 'no-restricted-globals'),
  planted(inWorkflow, `setImmediate(() => undefined);`, 'no-restricted-globals'),
  planted(inWorkflow, `queueMicrotask(() => undefined);`, 'no-restricted-globals'),
  planted(inWorkflow, `export const found = process.env;`, 'no-restricted-globals'),
  planted(inWorkflow, `export const found = performance.now();`, 'no-restricted-globals'),
  planted(inWorkflow, `export const found = crypto.randomUUID();`, 'no-restricted-globals'),
  planted(inWorkflow, `void fetch('http://127.0.0.1');`, 'no-restricted-globals'),
  planted(inWorkflow, `export const found = globalThis;`, 'no-restricted-globals'),
  planted(inWorkflow, `export const found = new Date();`, 'no-restricted-syntax'),
  planted(inWorkflow, `export const found = Date();`, 'no-restricted-syntax'),
  planted(inWorkflow, `export const found: unknown = require('./fusee.node');`, 'no-restricted-syntax'),
  planted(inWorkflow, `export const found = new Date(0);`, undefined),

  planted(inClient, `export const found: unknown = require('../fusee.linux-x64-gnu.node');`, 'no-restricted-syntax'),
  planted(inClient, `export const found: unknown = require('fusee-linux-x64-gnu');`, 'no-restricted-syntax'),
  planted(
    inClient,
    'export const found = (triple: string): unknown => require(`fusee-${triple}`);',
    'no-restricted-syntax',
  ),
  planted(
    inClient,
    `import addon from '../fusee.node';\nexport const found = addon as unknown;`,
    'no-restricted-imports',
  ),
  planted(inClient, `process.dlopen({ exports: {} }, 'library');`, 'no-restricted-syntax'),
  planted(inClient, `setTimeout(() => undefined, Date.now());`, undefined),

  planted(inClient, `Promise.resolve(1);`, '@typescript-eslint/no-floating-promises'),
  planted(
    inClient,
    `import { Readable } from 'node:stream';\nexport const found = (of: Readable): Readable => of;`,
    '@typescript-eslint/consistent-type-imports',
  ),
  planted(inClient, `export function found() {\n  return 1;\n}`, '@typescript-eslint/explicit-module-boundary-types'),
  planted(
    inClient,
    `export const found = (kind: 'a' | 'b'): void => {\n  switch (kind) {\n    case 'a':\n      break;\n  }\n};`,
    '@typescript-eslint/switch-exhaustiveness-check',
  ),
];

describe('the guards of js/', () => {
  let reports: Report[][];

  beforeAll(() => {
    const output = execFileSync(process.execPath, [join(__dirname, 'support/lint-snippets.mjs')], {
      cwd: root,
      input: JSON.stringify(cases),
      encoding: 'utf8',
    });
    reports = JSON.parse(output) as Report[][];
  }, 120_000);

  test.each(cases.map((each, index) => ({ ...each, index })))('$claim', ({ rule, index }) => {
    const rules = (reports[index] ?? []).map((report) => report.ruleId ?? report.message);
    if (rule === undefined) expect(rules).toEqual([]);
    else expect(rules).toContain(rule);
  });
});

describe('imports within js/', () => {
  test('form no cycle', () => {
    const cycle = findCycle(importGraph(join(root, 'js')));
    expect(cycle?.map((file) => relative(root, file))).toBeUndefined();
  });

  test('a planted cycle is found, with its files in order', () => {
    const graph = new Map([
      ['a', ['b']],
      ['b', ['d', 'c']],
      ['c', ['b']],
      ['d', []],
    ]);
    expect(findCycle(graph)).toEqual(['b', 'c', 'b']);
  });

  test('of types alone do not count', () => {
    const source = `
      import './effect';
      import one from './one';
      import two, { type Two } from './two.js';
      import { type Three } from './three';
      import type { Four } from './four';
      export type { Five } from './five';
      export * from './six';
      import { join } from 'node:path';
    `;
    expect(relativeImports(source)).toEqual(['./effect', './one', './two.js', './six']);
  });
});
