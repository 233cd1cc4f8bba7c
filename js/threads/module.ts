/**
 * The module that workers run: loaded, and the definitions found among what it exports.
 */
import { createHash } from 'node:crypto';
import { isCodec } from '../codec/chain.js';
import type { Codec } from '../codec/payloads.js';
import { isWorkflow, type WorkflowDefinition } from '../definitions.js';
import { isObject, type ObjectDefinition } from '../object-definition.js';
import { isTask, type TaskDefinition } from '../scheduler/definition.js';
import { readTaskDefinitions } from '../scheduler/settings.js';
import type { Found } from './messages.js';

/** What a module is to run. */
export interface Definitions {
  readonly workflows: readonly WorkflowDefinition[];
  readonly objects: readonly ObjectDefinition[];
  /** By name. */
  readonly tasks: ReadonlyMap<string, TaskDefinition>;
  /** One of each name. */
  readonly codecs: readonly Codec[];
}

/** Loads a module, whatever its kind. @throws what it throws; TypeError where it exports no definition */
export async function loadDefinitions(url: string): Promise<Definitions> {
  const values = exportedBy((await import(url)) as object);
  const workflows = values.filter(isWorkflow);
  const objects = values.filter(isObject);
  const tasks = values.filter(isTask);
  if (workflows.length + objects.length + tasks.length === 0) {
    throw new TypeError(
      `the module ${url} exports no definition: export what workflow(), object() or task() returns, or name another module in workers.module`,
    );
  }
  return { workflows, objects, tasks: readTaskDefinitions(tasks, 'the exported tasks'), codecs: codecsOf(values) };
}

/** Codecs, and those in exported arrays of them. */
function codecsOf(values: readonly unknown[]): readonly Codec[] {
  const codecs = values.flat().filter(isCodec);
  return codecs.filter(({ name }, index) => codecs.findIndex((other) => other.name === name) === index);
}

/** Every exported value, once; those of a default export too, as modules of CommonJS have it. */
function exportedBy(module: object): readonly unknown[] {
  const byDefault = (module as { default?: unknown }).default;
  const more = typeof byDefault === 'object' && byDefault !== null ? byDefault : {};
  return [...new Set<unknown>([module, more].flatMap((of) => Object.values(of) as unknown[]))];
}

/** What tells the code of a name from other code of that name: of a workflow all its versions. */
export function fingerprints({ workflows: definitions, objects, tasks }: Definitions): Found[] {
  const texts = new Map<string, string[]>();
  for (const { name, handler, options } of definitions) {
    const { version = 1, timeout } = options;
    const text = `${version}\n${JSON.stringify(timeout) ?? ''}\n${handler.toString()}`;
    texts.set(name, [...(texts.get(name) ?? []), text]);
  }
  const found = [...texts].map(([name, versions]): Found => {
    return { kind: 'workflow', name, fingerprint: digest(versions.sort()), queue: '', limits: [] };
  });
  for (const { name, state, handlers, shared } of objects) {
    const texts = Object.entries({ ...handlers, ...shared }).map(([handler, fn]) => `${handler}\n${fn.toString()}`);
    const fingerprint = digest([state.toString(), ...texts]);
    found.push({ kind: 'object', name, fingerprint, queue: '', limits: [] });
  }
  for (const { name, handler, policy } of tasks.values()) {
    const fingerprint = digest([handler.toString(), policy.queue]);
    found.push({ kind: 'task', name, fingerprint, queue: policy.queue, limits: policy.limits.map((use) => use.name) });
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

function digest(texts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(texts)).digest('hex');
}

/** In what the code of one worker differs from another's; `undefined`: in nothing. */
export function differenceOf(one: readonly Found[], other: readonly Found[]): string | undefined {
  const [first, second] = [one, other].map(
    (list) => new Map(list.map((of) => [`${of.kind} '${of.name}'`, of.fingerprint])),
  );
  for (const name of new Set([...first!.keys(), ...second!.keys()])) {
    if (!second!.has(name) || !first!.has(name)) return `only one of them exports ${name}`;
    if (first!.get(name) !== second!.get(name)) return `${name} is not the same in both`;
  }
  return undefined;
}
