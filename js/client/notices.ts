/**
 * What listeners get about a run that ended or got stuck.
 */
import { decode, decodeFailure } from '../codec.js';
import { DeterminismError } from '../errors.js';
import type { EventName } from './listeners.js';
import { readStuck } from './rows.js';

/** The event, with what its kind adds. */
export function noticeOf(name: EventName, base: object, payload: string): object {
  switch (name) {
    case 'completed':
      return { ...base, result: decode(payload) };
    case 'failed':
      return { ...base, error: decodeFailure(payload) };
    case 'cancelled':
      return { ...base, reason: (decodeFailure(payload) as { reason?: unknown } | undefined)?.reason };
    case 'terminated':
      return { ...base, reason: payload === '' ? undefined : payload };
    case 'stuck': {
      const report = readStuck(payload.split('\u001f'));
      return { ...base, error: new DeterminismError(report.message, { report }) };
    }
    case 'skipped':
    case 'missed':
    case 'expired':
    case 'shed':
      return { ...base, reason: payload === '' ? undefined : payload };
    case 'timedOut':
    case 'continuedAsNew':
    case 'schedule':
    case 'scale':
    case 'warning':
    case 'workerLost':
    case 'workerReplaced':
    case 'workerBlocked':
      return base;
  }
}
