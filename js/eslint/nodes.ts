/**
 * Small questions about a syntax tree, asked by all rules.
 */
import type { Scope, SourceCode } from 'eslint';
import type { CallExpression, Expression, Function as FunctionNode, Identifier, Node } from 'estree';

/** A node as the parser gives it: it knows what it is a part of. */
export type Child = Node & { readonly parent?: Child };

export type { FunctionNode };

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);
/** What a parser of TypeScript wraps around an expression without changing its value. */
const WRAPPERS = new Set([
  'TSAsExpression',
  'TSNonNullExpression',
  'TSSatisfiesExpression',
  'TSTypeAssertion',
  'ChainExpression',
]);

export function isFunction(node: Node | null | undefined): node is FunctionNode {
  return node !== null && node !== undefined && FUNCTIONS.has(node.type);
}

/** The expression that gives the value. */
export function bare(node: Node): Node {
  let inner = node;
  while (WRAPPERS.has(inner.type)) inner = (inner as unknown as { readonly expression: Expression }).expression;
  return inner;
}

/** The function whose code a node is. */
export function functionAround(node: Node): FunctionNode | undefined {
  for (let at = (node as Child).parent; at !== undefined && at !== null; at = at.parent) if (isFunction(at)) return at;
  return undefined;
}

/** What a name means where it stands; nothing if nobody declares it. */
export function variableOf(source: SourceCode, name: Identifier): Scope.Variable | undefined {
  for (let scope: Scope.Scope | null = source.getScope(name); scope !== null; scope = scope.upper) {
    const variable = scope.set.get(name.name);
    if (variable !== undefined) return variable;
  }
  return undefined;
}

/** The value that a name is given once and for all. */
export function constantOf(variable: Scope.Variable | undefined): Node | undefined {
  const definition = variable?.defs[0];
  if (definition?.type === 'FunctionName') return definition.node;
  if (definition?.type !== 'Variable' || definition.parent.kind !== 'const') return undefined;
  const { id, init } = definition.node as { readonly id: Node; readonly init: Node | null };
  return id.type === 'Identifier' && init !== null ? bare(init) : undefined;
}

/** The function that an expression is, or names. */
export function functionOf(source: SourceCode, node: Node | undefined): FunctionNode | undefined {
  if (node === undefined) return undefined;
  const inner = bare(node);
  if (isFunction(inner)) return inner;
  if (inner.type !== 'Identifier') return undefined;
  const value = constantOf(variableOf(source, inner));
  return isFunction(value) ? value : undefined;
}

/** Name of a property that is written in the code: `a.b`, `a['b']`. */
export function propertyName(node: Node): string | undefined {
  if (node.type !== 'MemberExpression') return undefined;
  const { property, computed } = node;
  if (!computed) return property.type === 'Identifier' ? property.name : undefined;
  return property.type === 'Literal' && typeof property.value === 'string' ? property.value : undefined;
}

/** The call whose function a node is. */
export function callOf(callee: Node): CallExpression | undefined {
  let node = callee as Child;
  while (node.parent !== undefined && WRAPPERS.has(node.parent.type)) node = node.parent;
  const { parent } = node;
  return parent?.type === 'CallExpression' && parent.callee === node ? parent : undefined;
}
