/**
 * The module that workers run: loaded, and the definitions found among what it exports.
 */
import { createHash } from 'node:crypto';
import { isWorkflow, type WorkflowDefinition } from '../definitions.js';
import { isTask, type TaskDefinition } from '../scheduler/definition.js';
import type { Found } from './messages.js';

/** Loads a module, whatever its kind. @throws what it throws; TypeError where it exports no definition */
export async function loadDefinitions(url: string): Promise<readonly WorkflowDefinition[]> {
  const found = definitionsIn((await import(url)) as object);
  if (found.length === 0) {
    throw new TypeError(
      `the module ${url} exports no definition: export what workflow() returns, or name another module in workers.module`,
    );
  }
  return found;
}

/** The tasks that a module exports, by name: for workflows that ask for them. */
export async function loadTasks(url: string): Promise<ReadonlyMap<string, TaskDefinition>> {
  const exported = (await import(url)) as { default?: unknown };
  const byDefault = exported.default;
  const more = typeof byDefault === 'object' && byDefault !== null ? Object.values(byDefault) : [];
  const tasks = [...Object.values(exported), ...(more as unknown[])].filter(isTask);
  return new Map(tasks.map((task) => [task.name, task]));
}

/** Every exported definition, once; those of a default export too, as modules of CommonJS have it. */
function definitionsIn(exported: object): readonly WorkflowDefinition[] {
  const byDefault = (exported as { default?: unknown }).default;
  const more = typeof byDefault === 'object' && byDefault !== null && !isWorkflow(byDefault) ? byDefault : {};
  const values: unknown[] = [...(Object.values(exported) as unknown[]), ...(Object.values(more) as unknown[])];
  return [...new Set(values.filter(isWorkflow))];
}

/** What tells the code of a name from other code of that name: all its versions. */
export function fingerprints(definitions: readonly WorkflowDefinition[]): Found[] {
  const texts = new Map<string, string[]>();
  for (const { name, handler, options } of definitions) {
    const { version = 1, timeout } = options;
    const text = `${version}\n${JSON.stringify(timeout) ?? ''}\n${handler.toString()}`;
    texts.set(name, [...(texts.get(name) ?? []), text]);
  }
  const found = [...texts].map(([name, versions]) => {
    const fingerprint = createHash('sha256').update(JSON.stringify(versions.sort())).digest('hex');
    return { name, fingerprint };
  });
  return found.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

/** In what the code of one worker differs from another's; `undefined`: in nothing. */
export function differenceOf(one: readonly Found[], other: readonly Found[]): string | undefined {
  const [first, second] = [one, other].map((list) => new Map(list.map((found) => [found.name, found.fingerprint])));
  for (const name of new Set([...first!.keys(), ...second!.keys()])) {
    if (!second!.has(name) || !first!.has(name)) return `only one of them exports workflow '${name}'`;
    if (first!.get(name) !== second!.get(name)) return `workflow '${name}' is not the same in both`;
  }
  return undefined;
}
