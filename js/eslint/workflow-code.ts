/**
 * Which functions of a file are code of workflows: what is given to `workflow()`, functions that take a
 * `WorkflowContext`, and functions of the file that those call. Functions of steps are not.
 *
 * It does not know what is forbidden there.
 */
import type { Scope, SourceCode } from 'eslint';
import type { CallExpression, Identifier, Node } from 'estree';
import {
  bare,
  callOf,
  constantOf,
  functionAround,
  functionOf,
  isFunction,
  propertyName,
  variableOf,
  type Child,
  type FunctionNode,
} from './nodes.js';

const PACKAGE = 'fusee';
const DEFINERS = new Set(['workflow', 'task', 'signal', 'query', 'update']);

/** What is defined in a file, and by which call. */
export interface Definition {
  readonly verb: string;
  readonly call: CallExpression;
}

/** The code of workflows in one file. */
export class WorkflowCode {
  /** Calls of `workflow`, `task`, `signal`, `query` and `update`. */
  readonly definitions: Definition[] = [];
  /** What was given to `workflow()`. */
  readonly handlers = new Set<FunctionNode>();
  private readonly functions = new Set<FunctionNode>();
  private readonly contexts = new Set<Scope.Variable>();
  private readonly toVisit: FunctionNode[] = [];

  constructor(private readonly source: SourceCode) {
    for (const scope of source.scopeManager.scopes) {
      for (const variable of scope.variables) this.findDefinitions(variable);
      if (scope.type === 'function' && isFunction(scope.block)) this.findAnnotated(scope.block);
    }
    for (let next = this.toVisit.pop(); next !== undefined; next = this.toVisit.pop()) this.visitParts(next);
  }

  /** Whether a node is code of a workflow. */
  contains(node: Node): boolean {
    const around = functionAround(node);
    return around !== undefined && this.functions.has(around);
  }

  /** The verb of `ctx` that a call calls: `step` of `ctx.step(…)`. */
  verbOf(call: Node): string | undefined {
    if (call.type !== 'CallExpression') return undefined;
    const callee = bare(call.callee);
    return callee.type === 'MemberExpression' && this.isContext(callee.object) ? propertyName(callee) : undefined;
  }

  private isContext(node: Node): boolean {
    const inner = bare(node);
    if (inner.type !== 'Identifier') return false;
    const variable = variableOf(this.source, inner);
    return variable !== undefined && this.contexts.has(variable);
  }

  // ── Where it begins ──

  private findDefinitions(variable: Scope.Variable): void {
    const imported = importedName(variable);
    if (imported === undefined) return;
    for (const { identifier } of variable.references) {
      const { parent } = identifier as Child;
      const isMember = imported === '*' && parent?.type === 'MemberExpression' && parent.object === identifier;
      const verb = isMember ? propertyName(parent) : imported;
      const call = callOf(isMember ? parent : identifier);
      if (verb === undefined || call === undefined || !DEFINERS.has(verb)) continue;
      this.definitions.push({ verb, call });
      if (verb === 'workflow') this.addHandler(call.arguments[1]);
    }
  }

  private addHandler(node: Node | undefined): void {
    const handler = functionOf(this.source, node);
    if (handler === undefined) return;
    this.handlers.add(handler);
    this.add(handler, [0]);
  }

  private findAnnotated(node: FunctionNode): void {
    const places = node.params.flatMap((param, index) => (hasContextType(param) ? [index] : []));
    if (places.length > 0) this.add(node, places);
  }

  // ── What follows from it ──

  /** @param contexts which of its parameters are a context */
  private add(node: FunctionNode, contexts: readonly number[]): void {
    const variables = this.source.scopeManager.getDeclaredVariables(node);
    let isNew = !this.functions.has(node);
    for (const index of contexts) {
      const param = node.params[index];
      const variable = variables.find(({ identifiers }) => identifiers.includes(param as Identifier));
      if (variable === undefined || this.contexts.has(variable)) continue;
      this.contexts.add(variable);
      isNew = true;
    }
    this.functions.add(node);
    if (isNew) this.toVisit.push(node);
  }

  private visitParts(node: Node): void {
    for (const key of this.source.visitorKeys[node.type] ?? []) {
      const part = (node as unknown as { readonly [key: string]: Node | readonly (Node | null)[] | null })[key];
      for (const child of Array.isArray(part) ? part : [part]) if (child) this.visit(child as Node);
    }
  }

  private visit(node: Node): void {
    if (isFunction(node)) {
      // A function with a name is code of the workflow if the workflow uses it.
      if (!isNamed(node)) this.add(node, []);
      return;
    }
    if (node.type === 'Identifier') this.visitName(node);
    else if (node.type === 'CallExpression' && this.verbOf(node) === 'step') this.visitStep(node);
    else this.visitParts(node);
  }

  /** The name and the options of a step belong to the workflow; functions among them do not. */
  private visitStep({ arguments: [name, , options] }: CallExpression): void {
    if (name !== undefined) this.visit(name);
    if (options !== undefined) this.visitWithoutFunctions(options);
  }

  private visitWithoutFunctions(node: Node): void {
    if (isFunction(node) || functionOf(this.source, node) !== undefined) return;
    if (node.type === 'ObjectExpression') {
      for (const property of node.properties) {
        this.visitWithoutFunctions(property.type === 'Property' ? property.value : property.argument);
      }
    } else {
      this.visit(node);
    }
  }

  private visitName(name: Identifier): void {
    const variable = variableOf(this.source, name);
    const value = constantOf(variable);
    if (!isFunction(value) || variable?.identifiers.includes(name) === true) return;
    const call = callOf(name);
    const contexts = call?.arguments.flatMap((argument, index) => (this.isContext(argument) ? [index] : []));
    this.add(value, contexts ?? []);
  }
}

const known = new WeakMap<SourceCode, WorkflowCode>();

/** The same for all rules of a file. */
export function workflowCodeOf(source: SourceCode): WorkflowCode {
  let code = known.get(source);
  if (code === undefined) known.set(source, (code = new WorkflowCode(source)));
  return code;
}

/** What a variable is of the package; `*`: the package itself. */
function importedName(variable: Scope.Variable): string | undefined {
  const [definition] = variable.defs;
  if (definition?.type === 'ImportBinding') {
    if (definition.parent.source.value !== PACKAGE) return undefined;
    const node = definition.node as { readonly type: string; readonly imported?: { readonly name?: string } };
    return node.type === 'ImportSpecifier' ? node.imported?.name : '*';
  }
  if (definition?.type !== 'Variable') return undefined;
  const { id, init } = definition.node as { readonly id: Node; readonly init: Node | null };
  if (init === null || !isRequire(init)) return undefined;
  if (id.type !== 'ObjectPattern') return '*';
  for (const property of id.properties) {
    if (property.type !== 'Property' || property.key.type !== 'Identifier') continue;
    if (variable.identifiers.includes(property.value as Identifier)) return property.key.name;
  }
  return undefined;
}

function isRequire(node: Node): boolean {
  if (node.type !== 'CallExpression' || node.callee.type !== 'Identifier' || node.callee.name !== 'require')
    return false;
  const [from] = node.arguments;
  return from?.type === 'Literal' && from.value === PACKAGE;
}

function hasContextType(param: Node): boolean {
  const { typeAnnotation } = param as unknown as {
    readonly typeAnnotation?: { readonly typeAnnotation: { readonly typeName?: TypeName } };
  };
  const name = typeAnnotation?.typeAnnotation.typeName;
  return (name?.name ?? name?.right?.name) === 'WorkflowContext';
}

interface TypeName {
  readonly name?: string;
  readonly right?: { readonly name?: string };
}

function isNamed(node: FunctionNode): boolean {
  if (node.type === 'FunctionDeclaration') return true;
  const { parent } = node as Child;
  return parent?.type === 'VariableDeclarator' && parent.id.type === 'Identifier';
}
