// Lints for js/, and the guards that keep its rooms apart. __test__/guards.test.ts plants a violation of each guard.

import { builtinModules } from 'node:module';
import eslint from '@eslint/js';
import tseslint from 'typescript-eslint';

const nodeBuiltins = {
  paths: builtinModules.map((name) => ({ name, message: 'Workflow code must replay: nothing of the platform here.' })),
  patterns: [{ group: ['node:*'], message: 'Workflow code must replay: nothing of the platform here.' }],
};

const addonImports = [
  { regex: '\\.node$', message: 'Only js/native.ts loads the addon.' },
  { regex: '^fusee-', message: 'Only js/native.ts loads the addon.' },
];

const addonCalls = [
  {
    selector: 'CallExpression > Literal[value=/\\.node$/]',
    message: 'Only js/native.ts loads the addon.',
  },
  {
    selector: 'CallExpression[callee.property.name="dlopen"]',
    message: 'Only js/native.ts loads the addon.',
  },
  {
    selector:
      'CallExpression[callee.name="require"] > :matches(Literal[value=/^fusee-/], TemplateLiteral[quasis.0.value.raw=/^fusee-/])',
    message: 'Only js/native.ts loads the addon.',
  },
];

const clocksWithoutName = [
  {
    selector: 'NewExpression[callee.name="Date"][arguments.length=0]',
    message: 'The time of a workflow is ctx.now(); new Date() reads the clock.',
  },
  {
    selector: 'CallExpression[callee.name="Date"]',
    message: 'The time of a workflow is ctx.now(); Date() reads the clock.',
  },
];

const timersAndPlatform = [
  ['setTimeout', 'A timer of a workflow is ctx.sleep().'],
  ['setInterval', 'A timer of a workflow is ctx.sleep().'],
  ['setImmediate', 'The end of a turn is observed outside workflow code.'],
  ['queueMicrotask', 'The end of a turn is observed outside workflow code.'],
  ['process', 'Workflow code must replay anywhere.'],
  ['performance', 'The time of a workflow is ctx.now().'],
  ['crypto', 'Randomness of a workflow is ctx.random() and ctx.uuid().'],
  ['fetch', 'Outside effects belong in a step.'],
  ['globalThis', 'It hides what the other guards look for.'],
].map(([name, message]) => ({ name, message }));

export default tseslint.config(
  {
    ignores: ['target/', 'dist/', 'coverage/', 'fuzz/', '__test__/fixtures/', '*.d.ts'],
  },
  {
    linterOptions: { reportUnusedDisableDirectives: 'error' },
  },
  eslint.configs.recommended,
  {
    files: ['**/*.{js,cjs,mjs}'],
    languageOptions: {
      globals: Object.fromEntries(
        ['process', 'console', 'Buffer', 'URL', 'performance', 'setTimeout', 'setImmediate', 'clearTimeout'].map(
          (name) => [name, 'readonly'],
        ),
      ),
    },
  },
  {
    files: ['**/*.cjs'],
    languageOptions: {
      sourceType: 'commonjs',
      globals: { require: 'readonly', module: 'writable', __dirname: 'readonly' },
    },
  },
  {
    // Tests and type tests: syntax and slips only. What they say about types is the compiler's to judge.
    files: ['__test__/**/*.ts', 'examples/**/*.ts', 'bench/**/*.ts'],
    extends: [tseslint.configs.base],
    rules: { 'no-undef': 'off', 'no-unused-vars': 'off', 'no-redeclare': 'off' },
  },
  {
    files: ['__test__/types/**/*.ts'],
    rules: { 'no-unreachable': 'off' },
  },
  {
    files: ['js/**/*.ts'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      // The compiler's noUnused* say it already.
      '@typescript-eslint/no-unused-vars': 'off',
      eqeqeq: ['error', 'always'],
      'no-console': 'error',
    },
  },
  {
    // Kinds of syntax are others' union: who looks at a few of them says what becomes of the rest.
    files: ['js/eslint/**/*.ts'],
    rules: {
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
    },
  },
  {
    files: ['js/native.ts'],
    rules: { '@typescript-eslint/no-require-imports': 'off' },
  },
  {
    files: ['js/**/*.ts'],
    ignores: ['js/native.ts'],
    rules: {
      'no-restricted-imports': ['error', { patterns: addonImports }],
      'no-restricted-syntax': ['error', ...addonCalls],
    },
  },
  {
    // Replay-safe code. A rule that is set again replaces the one above, so the guard of the addon is repeated here.
    files: ['js/workflow/**/*.ts', 'js/workflow.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          paths: nodeBuiltins.paths,
          patterns: [
            ...nodeBuiltins.patterns,
            ...addonImports,
            {
              regex: '^\\.{1,2}/(.*/)?native(\\.js)?$',
              message: 'Workflow code does not know the addon.',
            },
            {
              regex: '^\\.{1,2}/(.*/)?(client|worker|scheduler|testing)(/.*|\\.js)?$',
              message: 'Workflow code does not know who runs it.',
            },
          ],
        },
      ],
      'no-restricted-properties': [
        'error',
        { object: 'Date', property: 'now', message: 'The time of a workflow is ctx.now().' },
        { object: 'Math', property: 'random', message: 'Randomness of a workflow is ctx.random().' },
      ],
      'no-restricted-globals': ['error', ...timersAndPlatform],
      'no-restricted-syntax': ['error', ...addonCalls, ...clocksWithoutName],
    },
  },
);
