/**
 * All entries of the package, as they are built into one file by js/build-js.cjs.
 */
export * as index from './index.js';
export * as testing from './testing.js';
export { bootstrap } from './threads/bootstrap.js';
export { command } from './bin/fusee.js';
