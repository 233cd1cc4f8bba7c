/**
 * What listeners get about a run that ended or got stuck.
 */
import { decodeFailure } from '../codec.js';
import type { Payloads } from '../codec/payloads.js';
import { CodecError, DeterminismError } from '../errors.js';
import type { EventName } from './listeners.js';
import { readStuck } from './rows.js';

/** The event, with what its kind adds. */
export function noticeOf(name: EventName, base: { readonly id: string }, payload: string, payloads: Payloads): object {
  switch (name) {
    case 'completed':
      return { ...base, ...resultOf(base.id, payload, payloads) };
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

/** A result that cannot be read is no end of another kind: why is told beside it. */
function resultOf(id: string, payload: string, payloads: Payloads): object {
  try {
    return { result: payloads.read(payload, { kind: 'result', id, name: '' }) };
  } catch (error) {
    if (!CodecError.is(error)) throw error;
    return { result: undefined, unreadable: error };
  }
}
