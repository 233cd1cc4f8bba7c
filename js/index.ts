/**
 * `fusee`: what users import. Its types are in index.d.ts.
 */
import { Engine } from './client/engine.js';
import { readOptions, type OpenOptions } from './client/options.js';
import { threadOfGroup } from './threads/messages.js';
import { openGroup } from './threads/open.js';

export { query, signal, update, workflow } from './definitions.js';
export { object } from './object-definition.js';
export { task } from './scheduler/definition.js';
export { onComplete, onFailure, onSuccess } from './scheduler/submission.js';
export { aes256gcm } from './codec/aes256gcm.js';
export { compression } from './codec/compression.js';
export { duration } from './duration.js';
export {
  BusyError,
  CancelledError,
  ChildWorkflowError,
  ClosedError,
  CodecError,
  DeterminismError,
  DirectoryLockedError,
  FuseeError,
  JournalFileError,
  JournalLimitError,
  LogCorruptError,
  NonRetryableError,
  QueueFullError,
  ReservationError,
  RetryableError,
  RunNotFoundError,
  StepError,
  StepInterruptedError,
  StorageError,
  StorageFullError,
  TaskError,
  TerminatedError,
  TimeoutError,
  UnknownDefinitionError,
  UpdateRejectedError,
  WorkflowAlreadyStartedError,
  WorkflowFailedError,
} from './errors.js';

/** Opens a directory, or `':memory:'`, and resumes what was under way. */
export function open(directory: string | OpenOptions, options?: OpenOptions): Promise<Engine> {
  return new Promise((resolve) => {
    if (threadOfGroup() !== undefined) {
      throw new TypeError(
        'open() was called in one of the workers of an engine: the module that they load opens it itself. ' +
          "Guard the call with `if (isMainThread)` of 'node:worker_threads', or give the workers a module of their own",
      );
    }
    const isByOptions = typeof directory === 'object' && directory !== null;
    const given = (isByOptions ? directory : options) ?? {};
    const settings = readOptions(isByOptions ? undefined : directory, given, 'open');
    const { group } = settings;
    resolve(group?.kind === 'client' ? openGroup(settings, group.workers) : new Engine(settings));
  });
}

/** The engine of the worker that this runs in. @throws TypeError elsewhere */
export function workerEngine(): Engine {
  const engine = threadOfGroup()?.engine;
  if (engine === undefined) {
    throw new TypeError('workerEngine() is for code that runs in a worker of an engine, once the worker has joined it');
  }
  return engine as Engine;
}
