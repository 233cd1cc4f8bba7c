/**
 * `fusee/testing`: the real engine in memory, under a clock that moves only when it is told to, and a test that crashes
 * a workflow everywhere.
 */
export { crashEverywhere } from './testing/crashes.js';
export { check } from './replay/check.js';
export { replay } from './testing/replay.js';
export { testEngine, TestEngine } from './testing/engine.js';
export type { TestOptions } from './testing/engine.js';
