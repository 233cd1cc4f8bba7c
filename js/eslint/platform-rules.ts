/**
 * Rules about the platform: one a kind of use, each with its remedy.
 */
import type { Rule } from 'eslint';
import { usesOf, type Kind } from './platform.js';
import { workflowCodeOf } from './workflow-code.js';

export const noClock = ruleOf(
  'clock',
  'Code of workflows takes the time from ctx.now()',
  '{{ what }} gives another time in each replay: use ctx.now(), or read the clock in a step.',
);

export const noRandom = ruleOf(
  'random',
  'Code of workflows takes chance from ctx.random() and ctx.uuid()',
  '{{ what }} gives something else in each replay: use ctx.random() or ctx.uuid(), or draw in a step.',
);

export const noTimers = ruleOf(
  'timer',
  'Code of workflows waits with ctx.sleep()',
  '{{ what }} is forgotten by a crash, and awaiting it leaves the run stuck: use ctx.sleep() or a timeout of what you wait for.',
);

export const noConsole = ruleOf(
  'console',
  'Code of workflows writes lines with ctx.log',
  '{{ what }} writes its line again in each replay: use ctx.log, which is silent then.',
);

export const noEffects = ruleOf(
  'effect',
  'Code of workflows reaches the outside through steps and its input',
  '{{ what }} is outside of the workflow: it may differ, and happens again, in each replay. Use it in a step, or take it as input.',
);

function ruleOf(kind: Kind, description: string, message: string): Rule.RuleModule {
  return {
    meta: { type: 'problem', docs: { description }, schema: [], messages: { [kind]: message } },
    create(context) {
      const { sourceCode } = context;
      return {
        Program(): void {
          for (const { kind: found, node, what } of usesOf(sourceCode)) {
            if (found === kind) context.report({ node, messageId: kind, data: { what } });
          }
        },
        ImportExpression(node): void {
          if (kind !== 'effect' || !workflowCodeOf(sourceCode).contains(node)) return;
          context.report({ node, messageId: kind, data: { what: 'import()' } });
        },
      };
    },
  };
}
