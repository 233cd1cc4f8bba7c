/** The declarations of the entries are written by hand: what they promise must be there, and nothing else. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import * as fusee from 'fusee';
import * as eslint from 'fusee/eslint';
import * as testing from 'fusee/testing';
import { ChildHandle } from '../js/workflow/children';
import { Context } from '../js/workflow/context';
import { Attempt } from '../js/worker/attempt';
import { engineOf } from './support/engines';

interface Declared {
  /** Names that exist at run time. */
  readonly values: Set<string>;
  /** Members of interfaces. */
  readonly members: Map<string, Set<string>>;
}

function declared(file: string): Declared {
  const source = ts.createSourceFile(file, readFileSync(join(__dirname, '..', file), 'utf8'), ts.ScriptTarget.ES2022);
  const values = new Set<string>();
  const members = new Map<string, Set<string>>();
  for (const statement of source.statements) {
    const isExported =
      ts.canHaveModifiers(statement) &&
      ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
    if (isExported && (ts.isFunctionDeclaration(statement) || ts.isClassDeclaration(statement)))
      values.add(statement.name!.text);
    if (isExported && ts.isVariableStatement(statement)) {
      for (const { name } of statement.declarationList.declarations) if (ts.isIdentifier(name)) values.add(name.text);
    }
    if (ts.isInterfaceDeclaration(statement)) {
      const names = statement.members.map(({ name }) => (name !== undefined && ts.isIdentifier(name) ? name.text : ''));
      members.set(statement.name.text, new Set(names.filter((name) => name !== '')));
    }
  }
  return { values, members };
}

const publicNames = (object: object): string[] =>
  Object.getOwnPropertyNames(object).filter((name) => name !== 'constructor' && name !== 'then');

test('the package exports what its declarations say', () => {
  expect(Object.keys(fusee).sort()).toEqual([...declared('index.d.ts').values].sort());
  expect(
    Object.keys(testing)
      .filter((name) => name !== 'TestEngine')
      .sort(),
  ).toEqual([...declared('testing.d.ts').values].sort());
  expect(Object.keys(eslint).sort()).toEqual([...declared('eslint.d.ts').values].sort());
});

test('no name is declared twice, but overloads of functions', () => {
  for (const file of ['index.d.ts', 'testing.d.ts', 'eslint.d.ts']) {
    const text = readFileSync(join(__dirname, '..', file), 'utf8');
    const names = [...text.matchAll(/^(?:export )?(?:declare )?(?:abstract )?(?:interface|class|type) (\w+)/gm)].map(
      ([, name]) => name,
    );
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
  }
});

test('engines, handles and contexts have the members that are declared', async () => {
  const { members } = declared('index.d.ts');
  const engine = await engineOf([]);
  const handle = engine.handle('x');
  const has = (name: string, object: object): void => {
    for (const member of members.get(name)!)
      expect({ name, member, has: member in object }).toEqual({ name, member, has: true });
  };
  has('Engine', engine);
  has('WorkflowHandle', handle);
  has('WorkflowContext', Context.prototype);
  for (const member of declared('testing.d.ts').members.get('TestEngine')!) expect(member in engine).toBe(true);
  // Nothing is public by accident.
  const context = publicNames(Context.prototype);
  expect(context.filter((name) => !members.get('WorkflowContext')!.has(name))).toEqual([]);
  const child = publicNames(ChildHandle.prototype);
  expect(child.filter((name) => !members.get('ChildHandle')!.has(name))).toEqual([]);
  const step = publicNames(Attempt.prototype).filter((name) => !members.get('StepContext')!.has(name));
  expect(step).toEqual(['abort']);
});
