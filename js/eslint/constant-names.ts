/**
 * Names under which things are recorded. Histories, `mockStep` and `reset({ toStep })` find a step by its name, and a
 * definition with another name is another definition: code says them, data does not.
 */
import type { Rule, SourceCode } from 'eslint';
import type { Node } from 'estree';
import { bare, constantOf, functionAround, variableOf } from './nodes.js';
import { workflowCodeOf, type WorkflowCode } from './workflow-code.js';

/** Verbs of `ctx` whose name may end in data. */
const LABELS = new Set(['step']);
/** Verbs of `ctx` whose name is compared as a whole. */
const IDENTITIES = new Set(['patched', 'deprecatePatch']);

export const constantNames: Rule.RuleModule = {
  meta: {
    type: 'suggestion',
    docs: { description: 'Names of steps, patches and definitions are written in the code' },
    schema: [],
    messages: {
      label:
        'The name of a step is how its records are found: let it have a part that is written here, as in `charge ${id}`.',
      identity: 'The name given to {{ verb }} is recorded and must stay the same: write it as a constant text.',
    },
  },
  create(context) {
    const { sourceCode } = context;
    const code = workflowCodeOf(sourceCode);
    const check = (verb: string, name: Node | undefined, isLabel: boolean): void => {
      if (name === undefined || name.type === 'SpreadElement') return;
      if (hasText(sourceCode, code, name, isLabel)) return;
      context.report({ node: name, messageId: isLabel ? 'label' : 'identity', data: { verb } });
    };
    return {
      Program(): void {
        for (const { verb, call } of code.definitions) check(`${verb}()`, call.arguments[0], false);
      },
      CallExpression(node): void {
        const verb = code.verbOf(node);
        if (verb === undefined || !code.contains(node)) return;
        if (LABELS.has(verb)) check(`ctx.${verb}()`, node.arguments[0], true);
        else if (IDENTITIES.has(verb)) check(`ctx.${verb}()`, node.arguments[0], false);
      },
    };
  },
};

/** Whether a text is written in the code; of a label, a part of it. */
function hasText(source: SourceCode, code: WorkflowCode, expression: Node, isLabel: boolean): boolean {
  const node = bare(expression);
  const has = (part: Node): boolean => hasText(source, code, part, isLabel);
  switch (node.type) {
    case 'Literal':
      return typeof node.value === 'string' && node.value.trim() !== '';
    case 'TemplateLiteral': {
      const isWritten = node.quasis.some(({ value }) => /[\p{L}\p{N}]/u.test(value.raw));
      return isLabel ? isWritten || node.expressions.some(has) : node.expressions.every(has);
    }
    case 'BinaryExpression':
      if (node.operator !== '+') return false;
      return isLabel ? has(node.left) || has(node.right) : has(node.left) && has(node.right);
    case 'ConditionalExpression':
      return has(node.consequent) && has(node.alternate);
    case 'MemberExpression':
      return !node.computed && isWritten(source, code, node.object, () => false);
    case 'Identifier':
      return isWritten(source, code, node, has);
    default:
      return false;
  }
}

/** Whether what a name stands for is written somewhere, or chosen by whoever calls a function that is no workflow. */
function isWritten(source: SourceCode, code: WorkflowCode, name: Node, has: (value: Node) => boolean): boolean {
  if (name.type !== 'Identifier') return false;
  const variable = variableOf(source, name);
  const definition = variable?.defs[0];
  if (definition === undefined) return false;
  // The scope manager of TypeScript says 'TSEnumName' of an enum.
  if (definition.type === 'ImportBinding' || (definition.type as string) === 'TSEnumName') return true;
  if (definition.type === 'Parameter') {
    const around = functionAround(definition.name);
    return around === undefined || !code.handlers.has(around);
  }
  const value = constantOf(variable);
  return value !== undefined && (value.type === 'ObjectExpression' || has(value));
}
