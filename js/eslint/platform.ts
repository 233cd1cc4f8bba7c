/**
 * What of the platform gives another answer in a replay, or has an effect each time: by the way that leads to it.
 */
import { builtinModules } from 'node:module';
import type { Scope, SourceCode } from 'eslint';
import type { Identifier, Node } from 'estree';
import { propertyName, variableOf, type Child } from './nodes.js';
import { workflowCodeOf } from './workflow-code.js';

/** What is wrong with a use. */
export type Kind = 'clock' | 'random' | 'timer' | 'effect' | 'console';

/** A use of the platform in the code of a workflow. */
export interface Use {
  readonly kind: Kind;
  readonly node: Node;
  /** As a reader knows it: `Date.now()`. */
  readonly what: string;
}

/** Ways and what they lead to; the first that fits. A way goes on with `.`, or ends. */
const WAYS: readonly (readonly [RegExp, Kind])[] = [
  [/^Date\.now$/, 'clock'],
  [/^(perf_hooks\.)?performance\b/, 'clock'],
  [/^process\.(hrtime|uptime)\b/, 'clock'],
  [/^Temporal\.Now\b/, 'clock'],
  [/^Math\.random$/, 'random'],
  [/^crypto\.((webcrypto|subtle|default)\.)*(random|getRandomValues|generate|pseudoRandom)/, 'random'],
  [/^(setTimeout|setInterval|setImmediate|queueMicrotask|requestAnimationFrame)$/, 'timer'],
  [/^process\.nextTick$/, 'timer'],
  [/^scheduler\.(wait|yield)$/, 'timer'],
  [/^AbortSignal\.timeout$/, 'timer'],
  [/^timers(\/promises)?\b/, 'timer'],
  [/^(fetch|XMLHttpRequest|WebSocket|EventSource|localStorage|sessionStorage|navigator)\b/, 'effect'],
  [/^process\b/, 'effect'],
  [
    /^(fs|fs\/promises|child_process|cluster|dgram|dns|dns\/promises|http|http2|https|inspector|net|os|readline|readline\/promises|repl|sqlite|tls|v8|wasi|worker_threads)(\.|$)/,
    'effect',
  ],
  [/^console\./, 'console'],
];

const GLOBAL_OBJECTS = new Set(['globalThis', 'global', 'window', 'self']);
const MODULES = new Set(builtinModules);

const known = new WeakMap<SourceCode, readonly Use[]>();

/** All uses in the code of workflows of a file. */
export function usesOf(source: SourceCode): readonly Use[] {
  let uses = known.get(source);
  if (uses === undefined) known.set(source, (uses = [...findUses(source)]));
  return uses;
}

function* findUses(source: SourceCode): Generator<Use> {
  const code = workflowCodeOf(source);
  for (const scope of source.scopeManager.scopes) {
    for (const reference of scope.references) {
      const name = reference.identifier;
      if ((reference as { readonly isTypeReference?: boolean }).isTypeReference === true || !code.contains(name))
        continue;
      const use = useOf(source, name);
      if (use !== undefined) yield use;
    }
  }
}

function useOf(source: SourceCode, name: Identifier): Use | undefined {
  const root = rootOf(variableOf(source, name), name.name);
  if (root === undefined) return undefined;
  const steps = root.split('.');
  let node = name as Child;
  for (let { parent } = node; parent?.type === 'MemberExpression' && parent.object === node; { parent } = node) {
    const property = propertyName(parent);
    if (property === undefined) break;
    steps.push(property);
    node = parent;
  }
  if (steps.length > 1 && GLOBAL_OBJECTS.has(steps[0]!)) steps.shift();
  const way = steps.filter((step) => step !== 'default' && step !== '').join('.');
  if (way === 'Date') return clockOfDate(node);
  const kind = WAYS.find(([pattern]) => pattern.test(way))?.[1];
  const isCalled = node.parent?.type === 'CallExpression' && node.parent.callee === node;
  return kind === undefined ? undefined : { kind, node, what: isCalled ? `${way}()` : way };
}

/** `new Date()` and `Date()` read the clock, `new Date(ms)` does not. */
function clockOfDate(node: Child): Use | undefined {
  const { parent } = node;
  if (parent?.type === 'CallExpression' && parent.callee === node)
    return { kind: 'clock', node: parent, what: 'Date()' };
  if (parent?.type !== 'NewExpression' || parent.callee !== node || parent.arguments.length > 0) return undefined;
  return { kind: 'clock', node: parent, what: 'new Date()' };
}

/** The beginning of the way: a global name, or a module of Node.js and what was imported of it. */
function rootOf(variable: Scope.Variable | undefined, name: string): string | undefined {
  const definition = variable?.defs[0];
  if (definition === undefined) return name;
  if (definition.type === 'ImportBinding') {
    const node = definition.node as { readonly type: string; readonly imported?: { readonly name?: string } };
    const imported = node.type === 'ImportSpecifier' ? (node.imported?.name ?? '') : '';
    return moduleWay(definition.parent.source.value, imported);
  }
  if (definition.type !== 'Variable') return undefined;
  const { id, init } = definition.node as { readonly id: Node; readonly init: Node | null };
  if (init?.type !== 'CallExpression' || init.callee.type !== 'Identifier' || init.callee.name !== 'require') {
    return undefined;
  }
  const [from] = init.arguments;
  if (from?.type !== 'Literal') return undefined;
  if (id.type !== 'ObjectPattern') return moduleWay(from.value, '');
  for (const property of id.properties) {
    if (property.type === 'Property' && variable!.identifiers.includes(property.value as Identifier)) {
      return moduleWay(from.value, property.key.type === 'Identifier' ? property.key.name : '');
    }
  }
  return undefined;
}

function moduleWay(from: unknown, imported: string): string | undefined {
  if (typeof from !== 'string') return undefined;
  const name = from.replace(/^node:/, '');
  return MODULES.has(name) || from.startsWith('node:') ? `${name}.${imported}` : undefined;
}
