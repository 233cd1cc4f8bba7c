import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import ts from 'typescript';

/** Which files each TypeScript file under `root` needs at run time. Imports of types alone do not count. */
export function importGraph(root: string): Map<string, string[]> {
  const names = existsSync(root) ? readdirSync(root, { recursive: true, encoding: 'utf8' }) : [];
  const files = names.filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts')).map((name) => join(root, name));
  const known = new Set(files);
  return new Map(files.map((file) => [file, neighbours(file, readFileSync(file, 'utf8'), known)]));
}

function neighbours(file: string, source: string, known: Set<string>): string[] {
  const targets = relativeImports(source).map((specifier) => resolve(dirname(file), specifier.replace(/\.js$/, '')));
  return targets.flatMap((target) => [`${target}.ts`, join(target, 'index.ts')].filter((path) => known.has(path)));
}

/** What a source imports or re-exports by a relative path, leaving out what the compiler erases. */
export function relativeImports(source: string): string[] {
  const specifiers: string[] = [];
  for (const statement of ts.createSourceFile('source.ts', source, ts.ScriptTarget.ES2022).statements) {
    if (!ts.isImportDeclaration(statement) && !ts.isExportDeclaration(statement)) continue;
    const { moduleSpecifier } = statement;
    if (moduleSpecifier === undefined || !ts.isStringLiteral(moduleSpecifier) || isErased(statement)) continue;
    if (moduleSpecifier.text.startsWith('.')) specifiers.push(moduleSpecifier.text);
  }
  return specifiers;
}

function isErased(statement: ts.ImportDeclaration | ts.ExportDeclaration): boolean {
  if (ts.isExportDeclaration(statement)) return statement.isTypeOnly;
  const clause = statement.importClause;
  if (clause === undefined) return false;
  if (clause.isTypeOnly) return true;
  const named = clause.namedBindings;
  return clause.name === undefined && named !== undefined && ts.isNamedImports(named)
    ? named.elements.length > 0 && named.elements.every((element) => element.isTypeOnly)
    : false;
}

/** The first cycle found, as the files along it with the first one repeated at the end; undefined if there is none. */
export function findCycle(graph: Map<string, string[]>): string[] | undefined {
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (file: string): string[] | undefined => {
    const at = path.indexOf(file);
    if (at >= 0) return [...path.slice(at), file];
    if (done.has(file)) return undefined;
    path.push(file);
    for (const next of graph.get(file) ?? []) {
      const cycle = visit(next);
      if (cycle) return cycle;
    }
    path.pop();
    done.add(file);
    return undefined;
  };
  for (const file of graph.keys()) {
    const cycle = visit(file);
    if (cycle) return cycle;
  }
  return undefined;
}
