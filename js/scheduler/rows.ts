/**
 * Rows about tasks and queues as the engine writes them, made into objects.
 */
import { decode } from '../codec.js';
import type { PayloadPlace, Payloads } from '../codec/payloads.js';
import { CancelledError, CodecError, TaskError } from '../errors.js';
import { PRIORITIES } from './definition.js';
import { ENTRY, FIELD, PART, ROW } from './packing.js';

/** Ends by their numbers, then the statuses before from 16 on. */
const ENDS = ['', 'completed', 'failed', 'dead', 'cancelled', 'skipped', 'missed', 'expired', 'shed'];
const OPEN = ['blocked', 'scheduled', 'queued', 'running', 'retrying'];
const ATTEMPT_ENDS = ['failed', 'timedOut', 'silent', 'lost', 'drained', 'postponed'];

/** Where results of tasks belong: who reads one may know neither its id nor its type. */
export const TASK_RESULT: PayloadPlace = { kind: 'taskResult', id: '', name: '' };

/** One attempt that others followed. */
export interface AttemptRecord {
  readonly attempt: number;
  readonly startedAt: Date;
  readonly endedAt: Date;
  readonly outcome: string;
  readonly error: unknown;
}

/** A task in a list. */
export interface TaskRow {
  readonly kind: 'task';
  readonly id: string;
  readonly type: string;
  readonly queue: string;
  readonly priority: string;
  readonly status: string;
  readonly attempts: number;
  readonly createdAt: Date;
  readonly startedAt: Date | undefined;
  readonly endedAt: Date | undefined;
  readonly key: string | undefined;
  readonly tenant: string | undefined;
  readonly tags: { readonly [name: string]: string };
  readonly progress: unknown;
  readonly history: readonly AttemptRecord[];
  readonly error: unknown;
}

/** How a task or run that another one waited for ended. */
export interface ParentResult {
  readonly id: string;
  readonly type: string;
  readonly status: string;
  readonly result?: unknown;
  readonly error?: unknown;
}

/** Added to the number of the status of a run. */
const RUN_END = 32;
const RUN_ENDS = 'failed completed failed cancelled terminated timedOut failed failed continuedAsNew'
  .split(' ')
  .concat('skipped missed expired shed'.split(' '));

/** The name of a status. */
export function taskStatus(code: number): string {
  return (code >= 16 ? OPEN[code - 16] : ENDS[code]) ?? 'failed';
}

/** The number of a status; `undefined` if there is none of that name. */
export function taskStatusCode(name: unknown): number | undefined {
  const end = ENDS.indexOf(name as string);
  if (end > 0) return end;
  const open = OPEN.indexOf(name as string);
  return open < 0 ? undefined : 16 + open;
}

export function readTaskRow(payloads: Payloads, text: string): TaskRow {
  const field = text.split(FIELD);
  const tags = listOf(field[11]).map((tag) => tag.split(PART) as [string, string]);
  return {
    kind: 'task',
    id: field[0]!,
    type: field[1]!,
    queue: field[2]!,
    priority: PRIORITIES[Number(field[3])]!,
    status: taskStatus(Number(field[4])),
    attempts: Number(field[5]),
    createdAt: new Date(Number(field[6])),
    startedAt: dateOf(field[7]),
    endedAt: dateOf(field[8]),
    key: field[9] === '' ? undefined : field[9],
    tenant: field[10] === '' ? undefined : field[10],
    tags: Object.fromEntries(tags),
    progress: readShown(payloads, field[12], { kind: 'taskProgress', id: '', name: field[1]! }),
    history: readHistory(field[13]),
    error: valueOf(field[14]),
  };
}

/** What a task returned. @throws TaskError, CancelledError for another end */
export function readTaskResult(payloads: Payloads, text: string, code: number): unknown {
  const [id, attempts, payload, history] = text.split(FIELD) as [string, string, string, string];
  if (code === 1) return payloads.read(payload, TASK_RESULT);
  const status = taskStatus(code);
  if (status === 'cancelled') {
    const reason = payload === '' ? undefined : payload;
    throw new CancelledError(`task ${id} was cancelled${reason === undefined ? '' : `: ${reason}`}`, { reason });
  }
  const cause = valueOf(payload);
  const message = (cause as { message?: unknown } | null | undefined)?.message;
  const why = typeof message === 'string' && message !== '' ? `: ${message}` : '';
  const times = attempts === '1' ? '1 attempt' : `${attempts} attempts`;
  throw new TaskError(`task ${id} is ${status} after ${times}${why}`, {
    id,
    status,
    attempts: Number(attempts),
    history: readHistory(history),
    cause,
  });
}

export function readParents(payloads: Payloads, text: string): readonly ParentResult[] {
  return (text === '' ? [] : text.split(ROW)).map((row) => {
    const [id, type, code, payload] = row.split(FIELD) as [string, string, string, string];
    const status = Number(code) > RUN_END ? RUN_ENDS[Number(code) - RUN_END]! : taskStatus(Number(code));
    const base = { id, type, status };
    return status === 'completed'
      ? { ...base, result: resultOf(payloads, payload) }
      : { ...base, error: valueOf(payload) };
  });
}

/** Use of a limit. */
export function readUsage(text: string): object {
  const [capacity, used, available, waiting, keys] = text.split(FIELD).map(Number);
  return { capacity, used, available, waiting, keys };
}

/** Why a task does not run. */
export function readTaskReason(text: string): object {
  const [reason, ...field] = text.split(FIELD) as [string, ...string[]];
  switch (reason) {
    case 'ended':
      return { reason, status: taskStatus(Number(field[0])) };
    case 'timer':
    case 'retry':
      return { reason, until: new Date(Number(field[0])) };
    case 'blocked':
      return { reason, by: listOf(field[0]) };
    case 'queue':
      return { reason, queue: field[0], behind: Number(field[1]), queuePaused: field[2] === '1' };
    case 'limit':
      return { reason, limit: field[0], key: field[1] === '' ? undefined : field[1], short: Number(field[2]) };
    default:
      return { reason };
  }
}

function readHistory(text: string | undefined): readonly AttemptRecord[] {
  return listOf(text).map((entry) => {
    const [attempt, started, ended, code, error] = entry.split(PART) as [string, string, string, string, string];
    return {
      attempt: Number(attempt),
      startedAt: new Date(Number(started)),
      endedAt: new Date(Number(ended)),
      outcome: ATTEMPT_ENDS[Number(code)] ?? 'failed',
      error: valueOf(error),
    };
  });
}

function listOf(text: string | undefined): string[] {
  return text === undefined || text === '' ? [] : text.split(ENTRY);
}

function dateOf(text: string | undefined): Date | undefined {
  return text === undefined || text === '' ? undefined : new Date(Number(text));
}

/** @throws CodecError */
function resultOf(payloads: Payloads, text: string): unknown {
  return text === '' ? undefined : payloads.read(text, TASK_RESULT);
}

/** For people: what cannot be read is shown as why. */
function readShown(payloads: Payloads, text: string | undefined, place: PayloadPlace): unknown {
  if (text === undefined || text === '') return undefined;
  try {
    return payloads.read(text, place);
  } catch (error) {
    return CodecError.is(error) ? error : new Error(text);
  }
}

/** What the engine says by itself is a text that is no value: it stands for an error. */
function valueOf(text: string | undefined): unknown {
  if (text === undefined || text === '') return undefined;
  try {
    return decode(text);
  } catch {
    return new Error(text);
  }
}
