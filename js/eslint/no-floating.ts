/**
 * Operations that nobody waits for. A run ends when its function returns: what it has not awaited may never happen.
 */
import type { Rule } from 'eslint';
import type { CallExpression, Node } from 'estree';
import { bare, isFunction, propertyName } from './nodes.js';
import { workflowCodeOf, type WorkflowCode } from './workflow-code.js';

/** Verbs of `ctx` that give a promise. */
const OPERATIONS = new Set(['step', 'sleep', 'sleepUntil', 'waitFor', 'condition', 'run', 'start', 'enqueue', 'scope']);
const CHAINS = new Set(['then', 'catch', 'finally']);
const COMBINATORS = new Set(['all', 'allSettled', 'any', 'race']);

export const noFloating: Rule.RuleModule = {
  meta: {
    type: 'problem',
    docs: { description: 'Operations of ctx are awaited, returned or kept' },
    schema: [],
    messages: {
      floating:
        'Nobody waits for {{ what }}: the run may end before it has happened. Await it, return it, or keep its promise and await that.',
      forEach:
        'forEach() does not wait for what its function returns. Use for (… of …) with await, or await Promise.all(… .map(…)).',
    },
  },
  create(context) {
    const code = workflowCodeOf(context.sourceCode);
    return {
      ExpressionStatement({ expression }): void {
        if (!code.contains(expression)) return;
        for (const { node, what } of floatingIn(code, expression)) {
          context.report({ node, messageId: 'floating', data: { what } });
        }
      },
      CallExpression(node): void {
        const [callback] = node.arguments;
        if (propertyName(node.callee) !== 'forEach' || !isFunction(callback) || !code.contains(node)) return;
        const isDropped = callback.async === true || floatingIn(code, callback.body).length > 0;
        if (isDropped) context.report({ node, messageId: 'forEach' });
      },
    };
  },
};

interface Floating {
  readonly node: Node;
  readonly what: string;
}

/** Operations whose promises are the value of an expression. */
function floatingIn(code: WorkflowCode, expression: Node): Floating[] {
  const node = bare(expression);
  switch (node.type) {
    case 'LogicalExpression':
      return floatingIn(code, node.right);
    case 'ConditionalExpression':
      return [...floatingIn(code, node.consequent), ...floatingIn(code, node.alternate)];
    case 'SequenceExpression':
      return node.expressions.flatMap((part) => floatingIn(code, part));
    case 'ArrayExpression':
      return node.elements.flatMap((part) => (part === null ? [] : floatingIn(code, part)));
    case 'CallExpression':
      return floatingCall(code, node);
    default:
      return [];
  }
}

function floatingCall(code: WorkflowCode, node: CallExpression): Floating[] {
  const verb = code.verbOf(node);
  if (verb !== undefined) return OPERATIONS.has(verb) ? [{ node, what: `ctx.${verb}()` }] : [];
  const callee = bare(node.callee);
  if (callee.type !== 'MemberExpression') return [];
  const name = propertyName(callee) ?? '';
  if (CHAINS.has(name)) return floatingIn(code, callee.object);
  const { object } = callee;
  if (object.type !== 'Identifier' || object.name !== 'Promise' || !COMBINATORS.has(name)) return [];
  return node.arguments.some((argument) => floatingIn(code, argument).length > 0)
    ? [{ node, what: `Promise.${name}()` }]
    : [];
}
