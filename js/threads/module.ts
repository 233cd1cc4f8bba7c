/**
 * The module that workers run: loaded, and the definitions found among what it exports.
 */
import { createHash } from 'node:crypto';
import { isWorkflow, type WorkflowDefinition } from '../definitions.js';
import { isTask, type TaskDefinition } from '../scheduler/definition.js';
import type { Found } from './messages.js';

/** What a module is to run. */
export interface Definitions {
  readonly workflows: readonly WorkflowDefinition[];
  /** By name: for workflows that ask for them. */
  readonly tasks: ReadonlyMap<string, TaskDefinition>;
}

/** Loads a module, whatever its kind. @throws what it throws; TypeError where it exports no workflow */
export async function loadDefinitions(url: string): Promise<Definitions> {
  const values = exportedBy((await import(url)) as object);
  const workflows = values.filter(isWorkflow);
  if (workflows.length === 0) {
    throw new TypeError(
      `the module ${url} exports no definition: export what workflow() returns, or name another module in workers.module`,
    );
  }
  return { workflows, tasks: new Map(values.filter(isTask).map((task) => [task.name, task])) };
}

/** Every exported value, once; those of a default export too, as modules of CommonJS have it. */
function exportedBy(module: object): readonly unknown[] {
  const byDefault = (module as { default?: unknown }).default;
  const more = typeof byDefault === 'object' && byDefault !== null ? byDefault : {};
  return [...new Set<unknown>([module, more].flatMap((of) => Object.values(of) as unknown[]))];
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
