/**
 * `fusee/eslint`: rules for the code of workflows, as a plugin of a flat configuration. Its types are in eslint.d.ts.
 */
import * as fs from 'node:fs';
import * as path from 'node:path';
import { constantNames } from './eslint/constant-names.js';
import { noFloating } from './eslint/no-floating.js';
import { noClock, noConsole, noEffects, noRandom, noTimers } from './eslint/platform-rules.js';

const { version } = JSON.parse(fs.readFileSync(path.join(__dirname, '../package.json'), 'utf8')) as { version: string };

export const meta = { name: 'fusee', namespace: 'fusee', version };

export const rules = {
  'constant-names': constantNames,
  'no-clock': noClock,
  'no-console': noConsole,
  'no-effects': noEffects,
  'no-floating': noFloating,
  'no-random': noRandom,
  'no-timers': noTimers,
};

/** What is only untidy in a replay; everything else may leave a run stuck. */
const UNTIDY = new Set(['no-console']);

export const configs = {
  recommended: {
    name: 'fusee/recommended',
    plugins: { fusee: { meta, rules } },
    rules: Object.fromEntries(
      Object.keys(rules).map((name) => [`fusee/${name}`, UNTIDY.has(name) ? 'warn' : 'error'] as const),
    ),
  },
};
