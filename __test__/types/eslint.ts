/** The plugin fits where ESLint takes plugins. Compiled, never run. */
import type { ESLint, Linter } from 'eslint';
import { configs, meta, rules } from 'fusee/eslint';

export const plugin: ESLint.Plugin = { meta, rules };
export const config: Linter.Config[] = [
  configs.recommended,
  { plugins: { fusee: { meta, rules } }, rules: { 'fusee/no-floating': 'error' } },
];
// @ts-expect-error there is no such rule
export const none = rules['no-such-rule'];
