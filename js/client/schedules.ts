/**
 * Schedules as users have them: made, changed, paused, triggered, backfilled, previewed, listed.
 */
import { toTimeMs } from '../duration.js';
import { fromNative, WorkflowAlreadyStartedError } from '../errors.js';
import { checkText, knownOptions } from '../options.js';
import { FIELD } from '../scheduler/packing.js';
import {
  packSchedule,
  readScheduleRow,
  readTimes,
  readTiming,
  type ScheduleRow,
  type Timing,
} from '../scheduler/schedules.js';
import { readCount } from '../scheduler/settings.js';
import type { EngineCore } from './core.js';
import { WorkflowHandle } from './handle.js';
import { isStartable } from './options.js';
import { rowsOf } from './rows.js';
import { readAdmitted, TaskHandle } from './tasks.js';

/** Times that a preview shows if nobody says how many. */
const PREVIEW = 10;
const PREVIEW_MAX = 10_000;

/** `engine.schedules`. Changes are durable when their promise resolves. */
export class ScheduleControl {
  readonly #core: EngineCore;

  constructor(core: EngineCore) {
    this.#core = core;
  }

  /** Makes a schedule or changes it. What was made already is not made again; a paused one stays paused. */
  async upsert(name: string, spec: unknown): Promise<void> {
    const core = this.#core;
    core.check();
    const { tasks, definitions } = core.settings;
    const settings = { tasks, hasWorkflow: (type: string) => isStartable(definitions, type) };
    const read = packSchedule(name, spec, settings, (value, what, place) => core.record(value, what, place));
    const packed = typeof read === 'string' ? read : await read;
    await this.#ask(name, (native, token) => native.setSchedule(token, name, packed));
  }

  /** Ends a schedule; the tasks that it made go on. @returns `false`: there was none */
  async remove(name: string): Promise<boolean> {
    return (await this.#ask(name, (native, token) => native.removeSchedule(token, name))) === '1';
  }

  /** Its times make no tasks until `resume`, also over restarts. */
  async pause(name: string): Promise<void> {
    await this.#ask(name, (native, token) => native.pauseSchedule(token, name, 1));
  }

  /** Goes on with the next time; `catchUp` decides about those in between. */
  async resume(name: string): Promise<void> {
    await this.#ask(name, (native, token) => native.pauseSchedule(token, name, 0));
  }

  /** Makes its task or its run now, beside the plan. */
  async trigger(name: string): Promise<TaskHandle | WorkflowHandle> {
    const core = this.#core;
    const text = await this.#ask(name, (native, token) => native.triggerSchedule(token, name));
    const admitted = readAdmitted(core, text, undefined);
    if (admitted instanceof Error) throw admitted;
    return this.#made(admitted);
  }

  /** The run that a task stands for, or the task. @throws WorkflowAlreadyStartedError */
  async #made(task: TaskHandle): Promise<TaskHandle | WorkflowHandle> {
    const core = this.#core;
    const text = core.request((token) => core.native.runOfTask(token, task.id.slice(2)), String);
    const [id, runId] = (await text.promise).split(FIELD) as [string, string];
    return id === '' ? task : new WorkflowHandle(core, id, runId);
  }

  /** All schedules, by name. */
  async list(): Promise<ScheduleRow[]> {
    const core = this.#core;
    const text = core.request((token) => core.native.listSchedules(token, ''), rowsOf);
    return (await text.promise).map(readScheduleRow);
  }

  /** One schedule. */
  async describe(name: string): Promise<ScheduleRow> {
    return readScheduleRow(await this.#ask(name, (native, token) => native.listSchedules(token, name)));
  }

  /** The next times, of a schedule or of a plan that belongs to none. */
  async preview(of: unknown, count: number = PREVIEW): Promise<Date[]> {
    const most = readCount(count, 'the count of a preview', 0);
    if (most > PREVIEW_MAX) throw new RangeError(`a preview shows at most ${PREVIEW_MAX} times`);
    if (typeof of === 'string') {
      return readTimes(await this.#ask(of, (native, token) => native.previewSchedule(token, of, most)));
    }
    knownOptions(of, ['cron', 'every', 'timezone', 'start', 'end', 'limit'], 'schedules.preview');
    return this.#plan(readTiming(of, 'the plan'), most);
  }

  #plan({ packed, startMs, endMs, limit }: Timing, count: number): Date[] {
    const core = this.#core;
    core.check();
    const afterMs = Math.max(core.nowMs(), (startMs ?? -Infinity) - 1);
    try {
      const times = readTimes(core.native.previewPlan(packed, afterMs, Math.min(count, limit ?? count)));
      return endMs === undefined ? times : times.filter((time) => time.getTime() <= endMs);
    } catch (error) {
      throw fromNative(error);
    }
  }

  /** Makes the tasks or runs of the times in between that have passed, in one record. @returns their handles */
  async backfill(
    name: string,
    range: { readonly from?: unknown; readonly to?: unknown },
  ): Promise<(TaskHandle | WorkflowHandle)[]> {
    knownOptions(range, ['from', 'to'], 'schedules.backfill');
    const [fromMs, toMs] = [toTimeMs(range.from), toTimeMs(range.to)];
    if (fromMs > toMs) throw new RangeError('the range of a backfill begins after it ends');
    const core = this.#core;
    const text = await this.#ask(name, (native, token) => native.backfillSchedule(token, name, fromMs, toMs));
    if (text === '') return [];
    const tasks = text.split(FIELD).map((id) => new TaskHandle(core, id, undefined, false));
    const made = await Promise.allSettled(tasks.map((task) => this.#made(task)));
    return made.flatMap((one) => {
      if (one.status === 'fulfilled') return [one.value];
      // There was a run of that time already.
      if (WorkflowAlreadyStartedError.is(one.reason)) return [];
      throw one.reason;
    });
  }

  async #ask(name: unknown, send: (native: EngineCore['native'], token: number) => void): Promise<string> {
    checkText(name, 'the name of a schedule');
    const core = this.#core;
    return core.request((token) => send(core.native, token), String).promise;
  }
}
