/**
 * Tasks for workflow code: what it asks for, packed; what it is told, read. Without a clock: the time is an argument.
 */
import { decode } from '../codec.js';
import type { PayloadPlace, Payloads } from '../codec/payloads.js';
import {
  fromNative,
  NonRetryableError,
  QueueFullError,
  ReservationError,
  RunNotFoundError,
  UnknownDefinitionError,
} from '../errors.js';
import { CANCELLED, COMPLETED, NOT_FOUND, REFUSED, type TaskHost } from '../workflow/host.js';
import { checkSchema, isThenable } from './checked.js';
import { runsElsewhere } from './definition.js';
import { readTaskResult, TASK_RESULT } from './rows.js';
import { FIELD } from './packing.js';
import type { TaskSettings } from './settings.js';
import { knownOptions } from '../options.js';
import { ENQUEUE_OPTIONS, packSubmission } from './submission.js';

/** What workflow code is given of tasks. @param record text of a value; throws where it has none */
export function tasksForWorkflows(
  settings: TaskSettings,
  payloads: Payloads,
  record: (value: unknown, what: string, place: PayloadPlace) => string,
): TaskHost {
  const { definitions } = settings;
  return {
    knows: (name) => definitions.has(name) && definitions.get(name)?.handler !== runsElsewhere,
    pack(name, input, options, nowMs, verb) {
      const definition = definitions.get(name);
      if (definition === undefined) throw new UnknownDefinitionError(`task '${name}' is not known`, { type: name });
      const what = `the input of task '${name}'`;
      const checked = checkSchema(definition.options.input, input, what);
      if (isThenable(checked)) throw new TypeError(`the schema of task '${name}' must answer at once in a workflow`);
      // It reads this one itself, and takes it out.
      knownOptions(options, verb === 'ctx.run' ? [...ENQUEUE_OPTIONS, 'onParentClose'] : ENQUEUE_OPTIONS, verb);
      const own = { ...options } as { readonly priority?: unknown };
      const text = record(checked, what, { kind: 'task', id: '', name });
      const row = packSubmission(definition, checked, text, own, settings, nowMs, verb);
      // Where nothing says how important it is, it is as important as the run that waits for it.
      const isByRun = own.priority === undefined && definition.options.priority === undefined;
      return isByRun ? `${row}${FIELD}i` : row;
    },
    read: (status, payload, name) => readAnswer(payloads, status, payload, name),
  };
}

/** A value, or an error: what a run is told of a task. @throws TaskError, CancelledError, what it was refused for */
function readAnswer(payloads: Payloads, status: number, payload: string, name: string): unknown {
  if (status === COMPLETED) return payloads.read(payload, TASK_RESULT);
  const lines = payload.split('\n');
  if (status === REFUSED || status === NOT_FOUND) throw refusalOf(lines, name);
  if (lines.length < 5) throw decodeOwn(payload);
  const [code, id, attempts] = lines as [string, string, string];
  const [thrown, history] = [lines.slice(3, -1).join('\n'), lines[lines.length - 1]!];
  const outcome = status === CANCELLED ? CANCELLED_TASK : Number(code);
  return readTaskResult(payloads, [id, attempts, thrown, history].join(FIELD), outcome);
}

/** The outcome of a cancelled task. */
const CANCELLED_TASK = 4;

function refusalOf([code = '', message = '', queue = '', number = '']: readonly string[], name: string): Error {
  const text = `task '${name}' is refused: ${message}`;
  switch (code) {
    case 'QUEUE_FULL':
      return new QueueFullError(text, { queue, maxPending: Number(number) });
    case 'RESERVATION':
      return new ReservationError(text, { queue, at: new Date(Number(number)) });
    case 'NOT_FOUND':
      return new RunNotFoundError(message, { id: name });
    default:
      return fromNative({ code: code === '' ? 'BAD_INPUT' : code, message: text });
  }
}

/** What the engine says where an end was too large to be recorded. */
function decodeOwn(payload: string): Error {
  try {
    return decode(payload) as Error;
  } catch {
    return new NonRetryableError(payload);
  }
}
