/**
 * Ends of runs as callers see them.
 */
import { decodeFailure } from '../codec.js';
import type { Payloads } from '../codec/payloads.js';
import { CancelledError, TerminatedError, TimeoutError, WorkflowFailedError } from '../errors.js';
import { CANCELLED, COMPLETED, EXPIRED, MISSED, SHED, SKIPPED, TERMINATED, TIMED_OUT } from '../workflow/host.js';
import type { ResultTarget } from './requests.js';
import { statusName } from './rows.js';

/** What a run resolved with. @throws what stands for another end */
export function readResult(payloads: Payloads, text: string, status: number, target: ResultTarget): unknown {
  if (status === COMPLETED) return payloads.read(text, { kind: 'result', id: target.id, name: '' });
  throw errorOfEnd(target, status, text);
}

/** What stands for an end that was not `completed`. */
export function errorOfEnd(target: ResultTarget, status: number, text: string): Error {
  const { id, runId } = target;
  switch (status) {
    case CANCELLED: {
      const error = text === '' ? undefined : decodeFailure(text);
      return CancelledError.is(error) ? error : new CancelledError(`workflow ${id} was cancelled`, { cause: error });
    }
    case TERMINATED:
      return new TerminatedError(`workflow ${id} was terminated${text === '' ? '' : `: ${text}`}`, {
        reason: text === '' ? undefined : text,
      });
    case TIMED_OUT:
      return new TimeoutError(`workflow ${id} took longer than its timeout`, { of: 'run' });
    case SKIPPED:
    case MISSED:
    case EXPIRED:
    case SHED: {
      const ended = statusName(status) as 'skipped';
      const why = text === '' ? '' : `: ${text}`;
      return new WorkflowFailedError(`workflow ${id} is ${ended} and never started${why}`, {
        id,
        runId,
        status: ended,
      });
    }
    default: {
      const cause = decodeFailure(text);
      const message = (cause as { message?: unknown } | null | undefined)?.message;
      const why = typeof message === 'string' && message !== '' ? `: ${message}` : '';
      return new WorkflowFailedError(`workflow ${id} failed${why}`, { id, runId, cause });
    }
  }
}
