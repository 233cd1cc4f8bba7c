/**
 * Rejections that nobody handles: those of a run are its own affair, all others are left to the application.
 *
 * In development only: it needs the marks. A listener of 'unhandledRejection' would change what Node.js does with the
 * application's own rejections, so the event is looked at on its way to listeners instead, and goes on to them as it
 * came unless it belongs to a run.
 */
import { Run } from '../workflow/run.js';
import { Attempt } from './attempt.js';
import { currentMark } from './contexts.js';
import type { Logger, WorkerHost } from './host.js';

type Emit = (this: NodeJS.Process, event: string | symbol, ...args: unknown[]) => boolean;

const watched = new Map<WorkerHost, Logger>();
let remove: (() => void) | undefined;

/** Watches until the function that it returns is called. */
export function watchRejections(host: WorkerHost, process: NodeJS.Process, logger: Logger): () => void {
  watched.set(host, logger);
  remove ??= intercept(process);
  return () => {
    watched.delete(host);
    if (watched.size > 0) return;
    remove?.();
    remove = undefined;
  };
}

/** Looks at what the process emits. @returns what undoes it */
function intercept(process: NodeJS.Process): () => void {
  const owner = process as unknown as { emit: Emit };
  const isOwn = Object.prototype.hasOwnProperty.call(process, 'emit');
  const original = owner.emit;
  const emit: Emit = function emit(event, ...args) {
    if (event === 'unhandledRejection' && isOfRun(args[0])) return true;
    return Reflect.apply(original, this, [event, ...args]);
  };
  owner.emit = emit;
  return () => {
    // Whoever wrapped it meanwhile calls ours, which does nothing more without engines.
    if (owner.emit !== emit) return;
    if (isOwn) owner.emit = original;
    else delete (owner as { emit?: Emit }).emit;
  };
}

/** Whether a rejection belongs to a run; then it has been reported. Node.js restores the context of the promise. */
function isOfRun(reason: unknown): boolean {
  const mark = currentMark();
  const run = mark instanceof Attempt ? mark.step.run : mark instanceof Run ? mark : undefined;
  const logger = run === undefined ? undefined : watched.get(run.host as WorkerHost);
  if (run === undefined || logger === undefined) return false;
  const where = mark instanceof Attempt ? `step '${mark.step.name}' of workflow` : 'workflow';
  logger.warn(
    `fusee: a promise of ${where} '${run.code.name}' ${run.id} was rejected and nobody handled it; ` +
      `await it, or catch what it throws`,
    { workflow: run.code.name, id: run.id, error: reason },
  );
  return true;
}
