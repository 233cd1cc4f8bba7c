/**
 * Rejections that nobody handles: those of a run are its own affair, all others are left to the application.
 *
 * In development only: it needs the marks.
 */
import { Run } from '../workflow/run.js';
import { Attempt } from './attempt.js';
import { currentMark } from './contexts.js';
import type { Logger, WorkerHost } from './host.js';

const watched = new Map<WorkerHost, Logger>();
let installed: { readonly process: NodeJS.Process; readonly listener: NodeJS.UnhandledRejectionListener } | undefined;

/** Watches until the function that it returns is called. */
export function watchRejections(host: WorkerHost, process: NodeJS.Process, logger: Logger): () => void {
  watched.set(host, logger);
  if (installed === undefined) {
    const listener = (reason: unknown): void => handle(process, reason);
    installed = { process, listener };
    process.on('unhandledRejection', listener);
  }
  return () => {
    watched.delete(host);
    if (watched.size > 0 || installed === undefined) return;
    installed.process.off('unhandledRejection', installed.listener);
    installed = undefined;
  };
}

function handle(process: NodeJS.Process, reason: unknown): void {
  const mark = currentMark();
  const run = mark instanceof Attempt ? mark.step.run : mark instanceof Run ? mark : undefined;
  const logger = run === undefined ? undefined : watched.get(run.host as WorkerHost);
  if (run === undefined || logger === undefined) {
    leaveToApplication(process, reason);
    return;
  }
  const where = mark instanceof Attempt ? `step '${mark.step.name}' of workflow` : 'workflow';
  logger.warn(
    `fusee: a promise of ${where} '${run.code.name}' ${run.id} was rejected and nobody handled it; ` +
      `await it, or catch what it throws`,
    { workflow: run.code.name, id: run.id, error: reason },
  );
}

/** With a listener, Node.js takes every rejection as handled. Does what it would have done without ours. */
function leaveToApplication(process: NodeJS.Process, reason: unknown): void {
  if (process.listenerCount('unhandledRejection') > 1) return;
  throw isError(reason) ? reason : Object.assign(new Error(unhandledMessage(reason)), { code: 'ERR_UNHANDLED_REJECTION' });
}

function unhandledMessage(reason: unknown): string {
  return (
    'This error originated either by throwing inside of an async function without a catch block, ' +
    `or by rejecting a promise which was not handled with .catch(). The promise rejected with the reason "${String(reason)}".`
  );
}

function isError(value: unknown): value is Error {
  return Object.prototype.toString.call(value) === '[object Error]';
}
