/**
 * Tasks, seen from a workflow: those that it asks for, awaited or not.
 *
 * What is asked for is recorded here and carried to the scheduler from there, once, whatever crashes. It does not know how
 * tasks are queued or run, nor how their options are written.
 */
import { CodecError } from '../errors.js';
import { oneLine, shown } from '../options.js';
import { SEND_CANCEL_TASK, SEND_WATCH_TASK } from './host.js';
import { TaskOp } from './operations.js';
import type { Run } from './run.js';
import { enter, isOpen, never, refusalOf, refuse } from './turn.js';

/** What a task is to the run that asks for it, by the numbers of the records. */
const AWAITED = 0;
const AWAITED_LOOSELY = 1;
const DETACHED = 2;

/** What `task()` returns, as far as it matters here. */
export interface TaskCode {
  readonly kind: 'task';
  readonly name: string;
}

/** Whether a definition is that of a task. */
export function isTaskCode(value: unknown): value is TaskCode {
  const given = value as Partial<TaskCode> | null | undefined;
  return typeof value === 'object' && given?.kind === 'task' && typeof given.name === 'string';
}

/** Asks for a task and waits for its end. */
export function runTask(run: Run, task: TaskCode, input: unknown, options: object | undefined): Promise<unknown> {
  const { onParentClose = 'cancel', ...rest } = (options ?? {}) as { onParentClose?: unknown };
  if (onParentClose !== 'cancel' && onParentClose !== 'abandon') {
    throw new RangeError(`onParentClose of a task must be cancel or abandon, not ${shown(onParentClose)}`);
  }
  const isBound = onParentClose === 'cancel';
  return openTask(run, 'run', task, input, rest, isBound ? AWAITED : AWAITED_LOOSELY)?.promise ?? never();
}

/** Asks for a task, and waits only until it is accepted. */
export function enqueueTask(run: Run, task: unknown, input: unknown, options: object | undefined): Promise<TaskRef> {
  if (!isTaskCode(task)) throw new TypeError(`a task is needed here, as task() returns it, not ${shown(task)}`);
  const op = openTask(run, 'enqueue', task, input, options ?? {}, DETACHED);
  if (op === undefined) return never();
  const key = (options as { key?: string } | undefined)?.key;
  const ref = op.promise.then((text) => new TaskRef(run, text as string, key));
  // As for every operation: a rejection that nobody looks at harms nobody.
  ref.then(undefined, () => undefined);
  return ref;
}

/** @returns `undefined` if the run is stuck or over now */
function openTask(
  run: Run,
  verb: string,
  task: TaskCode,
  input: unknown,
  options: object,
  role: number,
): TaskOp | undefined {
  const { host } = run;
  if (!host.tasks.knows(task.name)) {
    // What this process was given is not recorded, so an error here would not replay.
    host.stuck(run, `ctx.${verb} of task '${task.name}', which was not given to open(); add it to tasks, then resume`);
    return undefined;
  }
  const row = host.tasks.pack(task.name, input, options, run.now, `ctx.${verb}`);
  const seq = ++run.seq;
  if (!isOpen(run, host.verbs.openTask(run.slot, seq, role, row), `${verb} '${task.name}'`)) return undefined;
  const op = new TaskOp(seq, task.name, role !== DETACHED, role === AWAITED);
  run.addPending(op);
  return op;
}

/** What the end of a task, or that it exists, is for the code. @throws TaskError, CancelledError, what it was refused for */
export function settleTask(run: Run, op: TaskOp, status: number, payload: string): void {
  let value: unknown;
  try {
    value = run.host.tasks.read(status, payload, op.name);
  } catch (error) {
    if (CodecError.is(error)) throw error;
    op.reject(error);
    return;
  }
  op.resolve(value);
}

/** A task that the workflow enqueued. */
export class TaskRef {
  readonly kind = 'task';
  readonly #run: Run;
  #end: TaskOp | null = null;
  /** Id of the task. */
  readonly id: string;
  /** The key was taken, and this is the task that was there. */
  readonly duplicate: boolean;

  constructor(
    run: Run,
    /** What became of it: a letter, and its id. */
    text: string,
    readonly key: string | undefined,
  ) {
    this.#run = run;
    this.id = text.slice(2);
    this.duplicate = !text.startsWith('n');
  }

  /** Waits for its end. */
  result(): Promise<unknown> {
    const run = this.#run;
    if (!enter(run, 'result')) return never();
    if (this.#end !== null) return this.#end.promise;
    const refusal = refusalOf(run);
    if (refusal !== null) return refuse(refusal);
    const seq = ++run.seq;
    const answer = run.host.verbs.openSend(run.slot, seq, SEND_WATCH_TASK, this.id, '', '', '');
    if (!isOpen(run, answer, `result of task '${this.id}'`)) return never();
    this.#end = new TaskOp(seq, this.id, true, false);
    run.addPending(this.#end);
    return this.#end.promise;
  }

  /** Resolves when the request is recorded. */
  cancel(reason?: string): Promise<void> {
    const run = this.#run;
    if (!enter(run, 'cancel')) return never();
    const refusal = refusalOf(run);
    if (refusal !== null) return refuse(refusal);
    const why = oneLine(reason, 'the reason of a cancel');
    const answer = run.host.verbs.openSend(run.slot, ++run.seq, SEND_CANCEL_TASK, this.id, '', '', why);
    return isOpen(run, answer, `cancel of task '${this.id}'`) ? Promise.resolve() : never();
  }
}
