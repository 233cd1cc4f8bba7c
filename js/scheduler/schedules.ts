/**
 * Schedules as they are given, packed for the crossing, and their rows made into objects.
 *
 * The other end is src/node/schedules.rs and src/engine/schedule_rows.rs.
 */
import type { PayloadPlace } from '../codec/payloads.js';
import { checkInput, isWorkflow, type WorkflowDefinition } from '../definitions.js';
import { toMs, toTimeMs } from '../duration.js';
import { checkText, knownOptions, shown } from '../options.js';
import { checkSchema, isThenable } from './checked.js';
import { isTask, lengthMs, runsElsewhere, type TaskDefinition } from './definition.js';
import { FIELD, PART, ROW } from './packing.js';
import { readCount, type TaskSettings } from './settings.js';
import { ENQUEUE_OPTIONS, packSubmission, type EnqueueOptions } from './submission.js';
import { TICKET_OPTIONS, TICKET_POLICY } from './ticket.js';

/** What packing a schedule needs to know of the engine. */
export interface ScheduleSettings {
  readonly tasks: Pick<TaskSettings, 'definitions' | 'rates'>;
  /** Whether a workflow of this name may run. */
  readonly hasWorkflow: (name: string) => boolean;
  /** Gets what is to be among the definitions of the workers, which are not known yet. */
  readonly ofWorkers?: ScheduledDefinition[] | undefined;
}

/** What a declared schedule needs of the module of the workers. */
export interface ScheduledDefinition {
  readonly schedule: string;
  readonly kind: 'task' | 'workflow';
  readonly name: string;
}

const TIMING = ['cron', 'every', 'timezone', 'start', 'end', 'limit'];
const OPTIONS = [...TIMING, 'run', 'input', 'options', 'jitter', 'overlap', 'catchUp', 'pauseOnFailure'];
const OVERLAPS = ['skip', 'allow', 'queueAll', 'queueOnSuccess', 'queue', 'cancelOther'];
/** Of the rest of its tasks and runs the schedule itself decides. */
const isLeft = (name: string): boolean => !['key', 'dedupe', 'delay', 'runAt', 'reserve', 'after'].includes(name);
const TASK_OPTIONS = ENQUEUE_OPTIONS.filter(isLeft);
const RUN_OPTIONS = ['id', 'version', 'timeout', ...TICKET_OPTIONS.filter(isLeft)];
/** Stands for the time in the ids of runs. */
const TIME = '{time}';

/** A plan, read. */
export interface Timing {
  readonly packed: string;
  readonly startMs: number | undefined;
  readonly endMs: number | undefined;
  readonly limit: number | undefined;
}

/** A schedule in a list. */
export interface ScheduleRow {
  readonly name: string;
  readonly run: string;
  readonly kind: 'task' | 'workflow';
  readonly queue: string;
  readonly declared: boolean;
  readonly paused: boolean;
  readonly nextAt: Date | undefined;
  readonly lastAt: Date | undefined;
  readonly lastId: string | undefined;
  readonly fires: number;
  readonly active: number;
  readonly cron: string | undefined;
  readonly timezone: string | undefined;
  readonly every: number | undefined;
  readonly overlap: string;
  readonly catchUp: string | number;
  readonly broken: string | undefined;
}

/** Reads when a schedule fires. @throws TypeError, RangeError */
export function readTiming(given: unknown, what: string): Timing {
  const { cron, every, timezone, start, end, limit } = (given ?? {}) as { readonly [option: string]: unknown };
  if ((cron === undefined) === (every === undefined)) throw new TypeError(`${what} needs either cron or every`);
  const startMs = start === undefined ? undefined : toTimeMs(start);
  let packed: string;
  if (cron === undefined) {
    if (timezone !== undefined) throw new TypeError(`${what}: timezone is for cron; every counts real time`);
    const periodMs = toMs(every);
    if (periodMs < 1) throw new RangeError(`${what}: every must be 1 ms or more`);
    const offsetMs = startMs === undefined ? 0 : ((startMs % periodMs) + periodMs) % periodMs;
    packed = ['e', periodMs, offsetMs].join(PART);
  } else {
    if (typeof cron !== 'string') throw new TypeError(`${what}: cron must be a text, not ${shown(cron)}`);
    if (cron !== '') checkText(cron, `the cron expression of ${what}`);
    const zone = timezone ?? 'UTC';
    checkText(zone, `the timezone of ${what}`);
    packed = ['c', cron, zone].join(PART);
  }
  return {
    packed,
    startMs,
    endMs: end === undefined ? undefined : toTimeMs(end),
    limit: limit === undefined ? undefined : readCount(limit, `limit of ${what}`, 1),
  };
}

/**
 * Packs the schedules that code declares, as rows that follow those of the other options.
 * @throws TypeError, RangeError
 */
export function packDeclared(
  given: unknown,
  settings: ScheduleSettings,
  record: (value: unknown, what: string, place: PayloadPlace) => string,
): string {
  if (given === undefined) return '';
  if (typeof given !== 'object' || given === null) throw new TypeError('schedules must be an object, by name');
  const rows = Object.entries(given).map(([name, spec]) => {
    const packed = packSchedule(name, spec, settings, record);
    if (typeof packed === 'string') return `${ROW}d${FIELD}${name}${FIELD}${packed}`;
    packed.catch(() => undefined);
    throw new TypeError(
      `the input of schedule '${name}' is checked by an asynchronous schema: make it with engine.schedules.upsert()`,
    );
  });
  return [`${ROW}S`, ...rows].join('');
}

/**
 * Packs a schedule. `record` gives the text that records its input.
 * @throws TypeError, RangeError
 */
export function packSchedule(
  name: string,
  given: unknown,
  settings: ScheduleSettings,
  record: (value: unknown, what: string, place: PayloadPlace) => string,
): string | Promise<string> {
  const what = `schedule '${name}'`;
  checkText(name, 'the name of a schedule');
  if (typeof given !== 'object' || given === null) throw new TypeError(`${what} must be an object`);
  knownOptions(given, OPTIONS, what);
  const { run, input } = given as { run?: unknown; input?: unknown };
  const definition = asRunnable(run, name, settings);
  const head = packHead(given, what);
  const inputName = `the input of ${what}`;
  const packTask = isWorkflow(definition)
    ? packRun(definition, given, what, settings)
    : (value: unknown, payload: string) =>
        packSubmission(definition, value, payload, taskOptions(given, what, TASK_OPTIONS), settings.tasks, 0);
  // The ids of the runs that it will start are not known.
  const kind = isWorkflow(definition) ? 'input' : 'task';
  const place = { kind, id: '', name: definition.name, isCompared: true } as const;
  const pack = (value: unknown): string => head + FIELD + packTask(value, record(value, inputName, place));
  const checked = isWorkflow(definition)
    ? checkInput(definition, input)
    : checkSchema(definition.options.input, input, inputName);
  return isThenable(checked) ? Promise.resolve(checked).then(pack) : pack(checked);
}

/** The task that stands for each run, and what the run has besides. */
function packRun(
  definition: WorkflowDefinition,
  given: object,
  what: string,
  settings: ScheduleSettings,
): (value: unknown, payload: string) => string {
  const { id, version = definition.options.version ?? 1, timeout, ...own } = taskOptions(given, what, RUN_OPTIONS);
  if (typeof version !== 'number' || !Number.isInteger(version) || version < 0 || version > 0xffffffff) {
    throw new RangeError(`version of ${what} must be a whole number, not ${shown(version)}`);
  }
  if (id !== undefined) checkText(id, `the id of ${what}`);
  if (id !== undefined && !id.includes(TIME)) {
    throw new TypeError(
      `each run of ${what} needs an id of its own: put '${TIME}' into the option id, not ${shown(id)}`,
    );
  }
  const longest = timeout ?? definition.options.timeout;
  const run = [version, longest === undefined ? '' : toMs(longest), id ?? ''].join(PART);
  const ticket = { name: definition.name, policy: TICKET_POLICY };
  return (value, payload) => `${packSubmission(ticket, value, payload, own, settings.tasks, 0)}${FIELD}W${run}`;
}

/** @throws TypeError: a declared schedule runs what the workers do not export */
export function checkScheduled(
  needed: readonly ScheduledDefinition[],
  found: readonly { readonly kind: string; readonly name: string }[],
): void {
  for (const { schedule, kind, name } of needed) {
    if (found.some((one) => one.kind === kind && one.name === name)) continue;
    const [does, own] = kind === 'task' ? ['runs', ', nor among the option tasks'] : ['starts', ''];
    throw new TypeError(
      `schedule '${schedule}' ${does} ${kind} '${name}', which is not among what workers.module exports${own}`,
    );
  }
}

function asRunnable(
  run: unknown,
  name: string,
  { tasks: { definitions }, hasWorkflow, ofWorkers }: ScheduleSettings,
): TaskDefinition | WorkflowDefinition {
  const what = `schedule '${name}'`;
  if (isWorkflow(run)) {
    if (ofWorkers !== undefined) ofWorkers.push({ schedule: name, kind: 'workflow', name: run.name });
    else if (!hasWorkflow(run.name)) {
      throw new TypeError(`${what} starts workflow '${run.name}', which is not among the option workflows`);
    }
    return run;
  }
  if (!isTask(run)) throw new TypeError(`${what} needs a task or a workflow as run, not ${shown(run)}`);
  const known = definitions.get(run.name);
  if (known === undefined && ofWorkers !== undefined) {
    ofWorkers.push({ schedule: name, kind: 'task', name: run.name });
    return run;
  }
  if (known !== run && known?.handler !== runsElsewhere) {
    throw new TypeError(`${what} runs task '${run.name}', which is not among the option tasks`);
  }
  return run;
}

function packHead(given: object, what: string): string {
  const {
    jitter = 0,
    overlap = 'skip',
    catchUp = 'last',
    pauseOnFailure = false,
  } = given as {
    readonly [option: string]: unknown;
  };
  const { packed, startMs, endMs, limit } = readTiming(given, what);
  const code = OVERLAPS.indexOf(overlap as string);
  if (code < 0) throw new RangeError(`overlap of ${what} must be one of ${OVERLAPS.join(', ')}, not ${shown(overlap)}`);
  if (typeof pauseOnFailure !== 'boolean') throw new TypeError(`pauseOnFailure of ${what} must be true or false`);
  const { deadline, expires } = ownOptions(given);
  return [
    packed,
    startMs ?? '',
    endMs ?? '',
    limit ?? '',
    lengthMs(jitter),
    code,
    catchUp === 'none' || catchUp === 'last' ? catchUp : readCount(catchUp, `catchUp of ${what}`, 1),
    pauseOnFailure ? 1 : 0,
    fromItsTime(deadline, `deadline of ${what}`),
    fromItsTime(expires, `expires of ${what}`),
  ].join(FIELD);
}

function fromItsTime(length: unknown, what: string): number | '' {
  if (length === undefined) return '';
  if (Object.prototype.toString.call(length) === '[object Date]') {
    throw new TypeError(`${what} counts from each of its times: give a duration, not a Date`);
  }
  return lengthMs(length);
}

function ownOptions(given: object): EnqueueOptions {
  return ((given as { options?: unknown }).options ?? {}) as EnqueueOptions;
}

/** What is left for each task, without what the schedule decides. */
function taskOptions(given: object, what: string, known: readonly string[]): EnqueueOptions {
  const own = ownOptions(given);
  knownOptions(own, known, `options of ${what}`);
  return { ...own, deadline: undefined, expires: undefined };
}

/** Reads a row of src/engine/schedule_rows.rs. */
export function readScheduleRow(text: string): ScheduleRow {
  const field = text.split(FIELD) as [string, string, string, ...string[]];
  const [name, run, queue, declared, paused, next, , last, lastId, fires, active, cron, zone, period] = field;
  const catchUp = field[15]!;
  return {
    name,
    run,
    kind: field[17] === '1' ? 'workflow' : 'task',
    queue,
    declared: declared === '1',
    paused: paused === '1',
    nextAt: dateOf(next),
    lastAt: dateOf(last),
    lastId: textOf(lastId),
    fires: Number(fires),
    active: Number(active),
    cron: textOf(cron),
    timezone: textOf(zone),
    every: period === '' ? undefined : Number(period),
    overlap: OVERLAPS[Number(field[14])]!,
    catchUp: catchUp === 'none' || catchUp === 'last' ? catchUp : Number(catchUp),
    broken: textOf(field[16]),
  };
}

/** Behind packed schedules: they count only once they are declared again. */
export const HELD = `${ROW}h`;

/** Times, as the engine lists them. */
export function readTimes(text: string): Date[] {
  return text === '' ? [] : text.split(FIELD).map((time) => new Date(Number(time)));
}

/** What a schedule did that no task shows. */
export interface ScheduleNotice {
  readonly type: 'schedule';
  readonly schedule: string;
  readonly what: string;
  readonly at: Date | undefined;
  readonly until: Date | undefined;
  readonly reason: string | undefined;
  readonly taskId: string | undefined;
  readonly workflowId: string | undefined;
}

/** Reads a notice of src/engine/schedule_rows.rs. */
export function readScheduleNotice(text: string): ScheduleNotice {
  const [schedule, what, first, last, reason, task, run] = text.split(FIELD) as [string, string, ...string[]];
  return {
    type: 'schedule',
    schedule,
    what,
    at: dateOf(first),
    until: dateOf(last),
    reason: textOf(reason),
    taskId: run === '' ? textOf(task) : undefined,
    workflowId: textOf(run),
  };
}

/** What somebody should read of a notice; `undefined`: it goes as it is meant to. */
export function warningOf({ schedule, what, at, reason, taskId, workflowId }: ScheduleNotice): string | undefined {
  switch (what) {
    case 'refused':
      return `schedule '${schedule}' made no task for ${at?.toISOString()}: ${reason}`;
    case 'paused':
      return `schedule '${schedule}' has paused itself because ${workflowId === undefined ? `task ${taskId}` : `workflow ${workflowId}`} failed; resume it with engine.schedules.resume()`;
    case 'broken':
      return `schedule '${schedule}' does nothing until it is defined anew: ${reason}`;
    default:
      return undefined;
  }
}

function textOf(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

function dateOf(text: string | undefined): Date | undefined {
  return text === undefined || text === '' ? undefined : new Date(Number(text));
}
