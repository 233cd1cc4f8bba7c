/**
 * `fusee`: what users import. Its types are in index.d.ts.
 */
import { Engine } from './client/engine.js';
import { readOptions, type OpenOptions } from './client/options.js';

export { query, signal, update, workflow } from './definitions.js';
export { task } from './scheduler/definition.js';
export { onComplete, onFailure, onSuccess } from './scheduler/submission.js';
export { duration } from './duration.js';
export {
  BusyError,
  CancelledError,
  ChildWorkflowError,
  ClosedError,
  DeterminismError,
  DirectoryLockedError,
  FuseeError,
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
    const isByOptions = typeof directory === 'object' && directory !== null;
    const given = (isByOptions ? directory : options) ?? {};
    resolve(new Engine(readOptions(isByOptions ? undefined : directory, given, 'open')));
  });
}
