/**
 * `fusee/eslint`: a plugin for ESLint 9 and later that finds what code of workflows must not do, in JavaScript and TypeScript.
 *
 * Code of workflows is what is given to `workflow()`, functions that take a `WorkflowContext`, and functions of the same
 * file that those call. Functions of steps are not.
 *
 * @packageDocumentation
 */

/** The name and the version of the plugin. */
export const meta: { readonly name: 'fusee'; readonly namespace: 'fusee'; readonly version: string };

/** A rule as ESLint takes it. It has no options. */
export interface Rule {
  /** What it is about. */
  readonly meta: {
    readonly type: 'problem' | 'suggestion';
    readonly docs: { readonly description: string };
    readonly schema: [];
    readonly messages: { [id: string]: string };
  };
  /** Called by ESLint. */
  create(context: any): any;
}

/** The rules. */
export const rules: {
  /** Names of steps have a part that is written in the code; those of definitions and patches are constants. */
  'constant-names': Rule;
  /** `Date.now()`, `new Date()`, `performance`, … instead of `ctx.now()`. */
  'no-clock': Rule;
  /** `console` instead of `ctx.log`. */
  'no-console': Rule;
  /** `fetch`, `process`, `node:fs`, … outside of steps. */
  'no-effects': Rule;
  /** Operations of `ctx` that nobody waits for, also those in `forEach`. */
  'no-floating': Rule;
  /** `Math.random()`, `crypto.randomUUID()`, … instead of `ctx.random()` and `ctx.uuid()`. */
  'no-random': Rule;
  /** `setTimeout()` and its like instead of `ctx.sleep()`. */
  'no-timers': Rule;
};

/** Configurations to take over. */
export const configs: {
  /** All rules as errors; `no-console` as a warning. */
  readonly recommended: {
    readonly name: string;
    readonly plugins: { fusee: { meta: typeof meta; rules: typeof rules } };
    readonly rules: { [rule: string]: 'error' | 'warn' };
  };
};
