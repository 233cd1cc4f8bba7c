/**
 * Rows as the engine writes them, made into objects.
 */
import { readAttributes, type AttributeValue } from '../attributes.js';
import { readTaskReason } from '../scheduler/rows.js';
import type { StuckOperation, StuckReport } from '../errors.js';

/** Statuses by their numbers. */
const CODES = {
  running: 0,
  completed: 1,
  failed: 2,
  cancelled: 3,
  terminated: 4,
  timedOut: 5,
  continuedAsNew: 8,
  skipped: 9,
  missed: 10,
  expired: 11,
  shed: 12,
  queued: 18,
} as const;

/** How a run stands. */
export type Status = keyof typeof CODES;

const NAMES = new Map(Object.entries(CODES).map(([name, code]) => [code as number, name as Status]));

/** A run in a list. */
export interface RunRow {
  readonly kind: 'workflow';
  readonly id: string;
  readonly runId: string;
  readonly type: string;
  readonly version: number;
  readonly status: Status;
  readonly paused: boolean;
  readonly stuck: boolean;
  readonly createdAt: Date;
  readonly startedAt: Date | undefined;
  readonly endedAt: Date | undefined;
  readonly parent: { readonly id: string; readonly runId: string } | undefined;
  readonly attributes: { readonly [name: string]: AttributeValue };
}

/** Why a run is not running. */
export type Explanation =
  | { readonly reason: 'running' | 'starting' | 'notRegistered' | 'outside' | 'queueGone' | 'draining' }
  | { readonly reason: 'blocked'; readonly by: readonly string[] }
  | { readonly reason: 'queue'; readonly queue: string; readonly behind: number; readonly queuePaused: boolean }
  | { readonly reason: 'limit'; readonly limit: string; readonly key: string | undefined; readonly short: number }
  | { readonly reason: 'ended'; readonly status: Status }
  | { readonly reason: 'timer'; readonly until: Date }
  | { readonly reason: 'retry'; readonly until: Date; readonly step: string }
  | { readonly reason: 'step'; readonly step: string }
  | { readonly reason: 'paused'; readonly step: string | undefined }
  | { readonly reason: 'waiting'; readonly for: string }
  | ({ readonly reason: 'stuck' } & StuckReport);

/** Rows of a text; none if it is empty. */
export function rowsOf(text: string): string[] {
  return text === '' ? [] : text.split('\u001e');
}

/** The name of a status. */
export function statusName(code: number): Status {
  return NAMES.get(code) ?? 'failed';
}

/** The number of a status; `undefined` if there is none of that name. */
export function statusCode(name: unknown): number | undefined {
  return Object.hasOwn(CODES, name as string) ? CODES[name as Status] : undefined;
}

/** Names of all statuses, for messages. */
export const STATUS_NAMES: readonly string[] = Object.keys(CODES);

export function readRow(text: string): RunRow {
  const field = text.split('\u001f');
  const marks = Number(field[5]);
  const parentRunId = field[10] ?? '';
  return {
    kind: 'workflow',
    id: field[0]!,
    runId: field[1]!,
    type: field[2]!,
    version: Number(field[3]),
    status: statusName(Number(field[4])),
    paused: (marks & 1) !== 0,
    stuck: (marks & 2) !== 0,
    createdAt: new Date(Number(field[6])),
    startedAt: dateOf(field[7]),
    endedAt: dateOf(field[8]),
    parent: parentRunId === '' ? undefined : { id: field[9] ?? '', runId: parentRunId },
    attributes: readAttributes(field[11] ?? ''),
  };
}

export function readExplanation(text: string): Explanation {
  const field = text.split('\u001f');
  const reason = field[0]!;
  switch (reason) {
    case 'ended':
      return { reason, status: statusName(Number(field[1])) };
    case 'timer':
      return { reason, until: new Date(Number(field[1])) };
    case 'retry':
      return { reason, until: new Date(Number(field[1])), step: field[2]! };
    case 'step':
      return { reason, step: field[1]! };
    case 'paused':
      return { reason, step: field[1] === '' ? undefined : field[1]! };
    case 'waiting':
      return { reason, for: field[1]! };
    case 'stuck':
      return { reason, ...readStuck(field.slice(1)) };
    default:
      // It waits in a queue, as a task does.
      return readTaskReason(text) as Explanation;
  }
}

/** Why a run is stuck, from the fields that say it. */
export function readStuck(field: readonly string[]): StuckReport {
  return {
    message: field[0]!,
    seq: Number(field[1]),
    recorded: operationOf(field[2], field[3]),
    asked: operationOf(field[4], field[5]),
    place: field[6] === '' ? undefined : field[6],
  };
}

function operationOf(kind: string | undefined, name: string | undefined): StuckOperation | undefined {
  return kind === undefined || kind === '' ? undefined : { kind, name: name === '' ? undefined : name };
}

function dateOf(text: string | undefined): Date | undefined {
  return text === undefined || text === '' ? undefined : new Date(Number(text));
}
