'use strict';

/** @type {import('jest').Config} */
module.exports = {
  testEnvironment: 'node',
  testMatch: ['<rootDir>/__test__/**/*.test.ts'],
  testPathIgnorePatterns: ['<rootDir>/__test__/types/', '<rootDir>/__test__/fixtures/'],
  modulePathIgnorePatterns: ['<rootDir>/target/', '<rootDir>/dist/'],
  moduleNameMapper: {
    '^fusee$': '<rootDir>/js/index.ts',
    '^fusee/(testing|eslint)$': '<rootDir>/js/$1.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
        module: { type: 'commonjs' },
        sourceMaps: 'inline',
      },
    ],
  },
  // Only a test that hangs may run into it, on the slowest machine.
  testTimeout: 300_000,
  maxWorkers: 2,
};
