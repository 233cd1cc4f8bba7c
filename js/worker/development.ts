/**
 * What is watched in development: whose code runs, rejections that nobody handles, clocks and chance in workflows.
 */
import type { Primitives } from '../native.js';
import { releaseMarks, useMarks } from './contexts.js';
import type { Logger, WorkerHost } from './host.js';
import { watchRejections } from './rejections.js';
import { setTraps } from './traps.js';

/** Watches until the function that it returns is called. */
export function watchDevelopment(host: WorkerHost, primitives: Primitives, logger: Logger): () => void {
  useMarks();
  const stopRejections = watchRejections(host, primitives.process, logger);
  const removeTraps = setTraps(logger);
  return () => {
    removeTraps();
    stopRejections();
    releaseMarks();
  };
}
