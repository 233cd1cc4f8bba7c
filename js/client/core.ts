/**
 * One open engine on one thread: the addon's engine, the pump that runs its code, the requests of its callers.
 *
 * Every call of a user ends here; {@link Engine} and handles only read their arguments and shape the answers.
 */
import { availableParallelism } from 'node:os';
import type { PayloadPlace, Payloads } from '../codec/payloads.js';
import { ClosedError, fromNative } from '../errors.js';
import {
  joinNative,
  openNative,
  primitives as loadPrimitives,
  type NativeEngine,
  type NativeOptions,
  type Primitives,
} from '../native.js';
import { inRoot } from '../worker/contexts.js';
import { watchDevelopment } from '../worker/development.js';
import type { Logger } from '../worker/host.js';
import { TaskBodies } from '../scheduler/bodies.js';
import { HELD, readScheduleNotice, warningOf, type ScheduledDefinition } from '../scheduler/schedules.js';
import type { TaskSettings } from '../scheduler/settings.js';
import { Pump, type PumpOwner } from '../worker/pump.js';
import type { WorkflowCode } from '../workflow/run.js';
import { KeepAlive } from './keep-alive.js';
import { Listeners } from './listeners.js';
import { noticeOf } from './notices.js';
import { askHere, readAnswer, target } from './asking.js';
import { closed, Requests, type Reader, type Request, type ResultTarget, type Waiting } from './requests.js';
import { readResult } from './results.js';
import { rowsOf, statusName } from './rows.js';
import { reportTo, Scalers } from './scaling.js';
import type { WorkerSettings } from '../threads/pool.js';

/** How an engine is opened, read and checked. */
export interface CoreSettings {
  readonly dir: string | null;
  readonly definitions: ReadonlyMap<string, WorkflowCode>;
  readonly tasks: TaskSettings;
  /** The schedules that code declares, packed. */
  readonly schedules: string;
  /** What these need of the module of the workers. */
  readonly scheduled: readonly ScheduledDefinition[];
  readonly shards: number;
  readonly flush: NativeOptions['flush'];
  readonly payloads: Payloads;
  readonly payloadBytesMax: number;
  readonly journalRecordsMax: number;
  readonly journalBytesMax: number;
  readonly runsMax: number;
  readonly isDev: boolean;
  readonly logger: Logger;
  /** `null`: real time. */
  readonly virtualNowMs: number | null;
  readonly random: () => number;
  /** `null`: this thread runs all code. */
  readonly group: GroupRole | null;
}

/** What an engine is among several threads. */
export type GroupRole =
  | { readonly kind: 'client'; readonly workers: WorkerSettings }
  | {
      readonly kind: 'part';
      readonly group: number;
      readonly part: number;
      readonly onCaughtUp: (stuck: number, unregistered: readonly string[]) => void;
    };

const BLOCKED = 12;
const ASK = 13;
const FAILED = 10;
const NOTICE = 11;
/** What a notice is about, where it is no end of a run. */
const STUCK = 3;
const JOURNAL_HALF = 4;
const NOTICES = 1;
const TASK = 15;
const TASK_ABORT = 16;
const TASK_NOTICE = 17;
/** What a notice about tasks is, where it is no end. */
const TASK_WARNING = 2;
const SCHEDULE = 3;
const SCALE = 4;
/** Shards of a new directory, if the options do not say. */
const SHARDS = 8;
/** Bytes of an encoded value, if the options do not say. */
export const PAYLOAD_BYTES_MAX = 4 * 1024 * 1024;

/** An open engine. */
export class EngineCore implements PumpOwner {
  readonly native: NativeEngine;
  readonly primitives: Primitives;
  readonly pump: Pump;
  readonly requests: Requests;
  readonly taskBodies: TaskBodies;
  /** What runs in place of tasks' functions, in tests. */
  readonly taskMocks = new Map<string, (input: unknown) => unknown>();
  readonly listeners: Listeners;
  readonly scalers: Scalers;
  /** Told of workers that are blocked, and of those that work again. @returns whether code of a caller goes on by it */
  onBlocked: (worker: number, isBlocked: boolean, text: string) => boolean = () => false;
  /** Called when the pump has nothing to do. */
  readonly restWatchers = new Set<() => void>();
  /** What a close does last, when everything is at rest and durable. */
  lastAct: (() => Promise<void>) | null = null;
  virtualNowMs: number | null;
  private readonly keepAlive: KeepAlive;
  private readonly stopWatching: () => void;
  private state: 'open' | 'closing' | 'closed' = 'open';
  private failure: unknown = undefined;

  constructor(readonly settings: CoreSettings) {
    this.primitives = loadPrimitives();
    this.virtualNowMs = settings.virtualNowMs;
    const { dir, definitions } = settings;
    this.native = openEngine(settings, () => this.pump.notify());
    const hasDefinitions = definitions.size + settings.tasks.definitions.size > 0;
    const isServer = settings.group !== null || (dir !== null && hasDefinitions);
    this.keepAlive = new KeepAlive(this.primitives, isServer);
    this.requests = new Requests((isAny) => this.updateBusy(isAny), this.native.firstToken());
    this.listeners = new Listeners((name, error) => this.warn('LISTENER', `a listener of '${name}' threw`, error));
    this.scalers = new Scalers(settings.tasks.scalers, {
      reportCapacity: (queue, slots) => {
        reportTo(this.native, queue, slots);
        this.pump.wake();
      },
      warn: (code, message, error) => this.warn(code, message, error),
      isOpen: () => this.state === 'open' && this.failure === undefined,
    });
    this.taskBodies = new TaskBodies(this.native, {
      definitions: settings.tasks.definitions,
      mocks: this.taskMocks,
      nowMs: () => this.nowMs(),
      payloads: settings.payloads,
      record: (value, what, place) => this.record(value, what, place),
      queueRetry: (queue) => settings.tasks.queues.get(queue)?.retry,
      wakeLater: () => this.pump.wakeLater(),
      taskInfo: (number) => this.native.taskInfo(number),
      taskParents: (number) => this.native.taskParents(number),
      taskKey: (number) => this.native.taskKey(number),
      log: (level, message, fields) => settings.logger[level](message, fields),
    });
    this.pump = new Pump(
      this.native,
      {
        definitions,
        tasks: settings.tasks,
        logger: settings.logger,
        isDev: settings.isDev,
        payloads: settings.payloads,
        payloadBytesMax: settings.payloadBytesMax,
        nowMs: () => this.nowMs(),
        random: settings.random,
      },
      this,
      this.primitives,
      settings.virtualNowMs === null,
    );
    this.stopWatching = settings.isDev
      ? watchDevelopment(this.pump.host, this.primitives, settings.logger)
      : () => undefined;
    this.pump.wake();
  }

  get isWaiting(): boolean {
    return this.requests.count > 0;
  }

  /** The engine's time, in ms since 1970. */
  nowMs(): number {
    return this.virtualNowMs ?? this.primitives.wallMs();
  }

  /** @throws ClosedError, StorageError */
  check(): void {
    this.checkFailure();
    if (this.state !== 'open') throw closed();
  }

  /** @throws StorageError */
  checkFailure(): void {
    if (this.failure !== undefined) throw this.failure as Error;
  }

  /** Asks the engine. Calls of one macrotask share one flush. */
  request<T>(send: (token: number) => void, read: Reader<T>, target: ResultTarget | null = null): Request<T> {
    this.check();
    const request = this.requests.make(send, read, target);
    this.pump.wake();
    return request;
  }

  /** The answer is not waited for any more. */
  forget(request: Waiting): void {
    this.requests.remove(request);
    if (this.state !== 'closed' && this.failure === undefined) this.native.forget(request.token);
  }

  /** Asks the code of a run. The answer is a text. */
  query(id: string, runId: string, name: string, input: string): Request<string> {
    this.check();
    if (this.settings.group !== null) {
      return this.request((token) => this.native.ask(token, id, runId, name, input), readAnswer);
    }
    let answer = '';
    const request = this.requests.prepare<string>(() => answer);
    const refuse = (error: unknown): void => {
      this.requests.remove(request);
      request.reject(error);
    };
    this.pump.queries.ask({
      ...target(this, id, runId, refuse),
      name,
      input,
      answer: (text, slot) => {
        answer = text;
        try {
          this.native.ackAt(slot, request.token);
        } catch (error) {
          refuse(fromNative(error, id));
        }
      },
    });
    this.pump.wake();
    return request;
  }

  /** Reads what {@link record} made. */
  get payloads(): Payloads {
    return this.settings.payloads;
  }

  /** Reads how a run ended. */
  readonly readResult: Reader<unknown> = (text, status, target) => readResult(this.payloads, text, status, target);

  /** Text that records a value. @throws TypeError naming the path or the codec; RangeError naming the size and its limit */
  record(value: unknown, what: string, place: PayloadPlace): string {
    return this.pump.host.record(value, what, place);
  }

  /** Text of a value that is told and not recorded. @throws TypeError naming the path; RangeError naming the size */
  encode(value: unknown, what: string): string {
    return this.pump.host.encode(value, what);
  }

  /** Listeners want to be told, or no more. */
  updateSubscription(): void {
    this.native.subscribe(this.listeners.isAny ? NOTICES : 0);
  }

  setWanted(isWanted: boolean): void {
    if (this.state !== 'closed') this.keepAlive.setWanted(isWanted);
  }

  /** Something that a person should read. */
  warn(code: string, message: string, error?: unknown): void {
    this.settings.logger.warn(`fusee: ${message}`, error === undefined ? { code } : { code, error });
    this.listeners.emit('warning', { type: 'warning', code, message });
  }

  // ── What the pump tells ──

  handleEvent(kind: number, a: number, b: number, text: string): boolean {
    if (kind === FAILED) {
      const border = text.indexOf('\u001f');
      this.handleFailure(fromNative({ code: text.slice(0, border), message: text.slice(border + 1) }));
      return true;
    }
    if (kind === TASK) return this.taskBodies.start(a, b, text);
    if (kind === TASK_ABORT) return this.taskBodies.abort(a, b, text);
    if (kind === TASK_NOTICE) {
      if (a === SCHEDULE) return this.scheduleNotice(text);
      if (a === SCALE) return this.scaleNotice(b === 1, text);
      if (a === TASK_WARNING) this.warn('TASKS', text);
      return a === TASK_WARNING;
    }
    if (kind === NOTICE) return this.notice(b, text);
    if (kind === ASK) {
      askHere(this, a, text);
      return false;
    }
    if (kind === BLOCKED) return this.onBlocked(a, b === 1, text);
    return this.requests.handle(kind, a, b, text);
  }

  get runningBodies(): number {
    return this.taskBodies.running;
  }

  get hasOutcomes(): boolean {
    return this.taskBodies.hasRows;
  }

  recordOutcomes(): boolean {
    return this.taskBodies.record();
  }

  handleCaughtUp(): void {
    const { group } = this.settings;
    if (group?.kind === 'client') return;
    const [, , , , ...unregistered] = this.native.report().split('\u001f');
    const stuck = this.pump.host.stuckCount;
    if (group === null) this.report(stuck, unregistered);
    else group.onCaughtUp(stuck, unregistered);
  }

  handleRest(): void {
    this.updateBusy(this.requests.count > 0);
    for (const watcher of [...this.restWatchers]) watcher();
  }

  handleFailure(error: unknown): void {
    if (this.failure !== undefined) return;
    this.failure = error;
    this.pump.host.bodies.hold();
    this.taskBodies.hold();
    this.requests.rejectAll(error);
    this.settings.logger.error('fusee: the engine has failed; close it and open it again', { error });
    for (const watcher of [...this.restWatchers]) watcher();
  }

  // ── Closing ──

  /** Takes nothing new, lets bodies end, makes everything durable, leaves nothing open. */
  async close(graceMs: number): Promise<void> {
    if (this.state !== 'open') return;
    this.state = 'closing';
    const { host } = this.pump;
    host.isShuttingDown = true;
    host.bodies.hold();
    this.taskBodies.hold();
    // The scheduler is the whole group's, and goes on when one worker closes.
    if (this.failure === undefined && this.settings.group?.kind !== 'part') this.native.drainTasks();
    try {
      await this.bodiesEnded(graceMs);
      this.pump.abortBodies(new ClosedError('the engine is closing'));
      this.taskBodies.abortAll(new ClosedError('the engine is closing'));
      if (this.failure === undefined) await this.settled();
      if (this.failure === undefined) await this.lastAct?.();
    } finally {
      this.release();
    }
  }

  private release(): void {
    this.state = 'closed';
    this.pump.close();
    try {
      this.native.close();
    } catch (error) {
      if (this.failure === undefined) throw fromNative(error);
    } finally {
      this.requests.rejectAll(new ClosedError('the engine was closed before the answer came'));
      this.keepAlive.close();
      this.stopWatching();
    }
  }

  /** Waits for bodies that run, but not longer than the grace. */
  private async bodiesEnded(graceMs: number): Promise<void> {
    const { monotonicMs, setImmediate, setTimeout } = this.primitives;
    const untilMs = monotonicMs() + graceMs;
    let waitMs = 0;
    while (this.failure === undefined && (this.pump.runningBodies > 0 || !this.pump.isAtRest)) {
      const leftMs = untilMs - monotonicMs();
      if (leftMs <= 0) return;
      await new Promise<void>((resolve) => {
        if (waitMs === 0) setImmediate(resolve);
        else setTimeout(resolve, Math.min(waitMs, leftMs));
      });
      // Most bodies end at once; for the others a look every 20 ms is soon enough.
      waitMs = Math.min(20, waitMs + 1);
    }
  }

  /** Everything recorded so far is durable, and whoever waits for it has been told. */
  private async settled(): Promise<void> {
    const barrier = this.requests.make(
      (token) => this.native.count(token, ''),
      () => undefined,
    );
    this.pump.wake();
    await barrier.promise.catch(() => undefined);
  }

  private updateBusy(isWaiting: boolean): void {
    this.keepAlive?.setBusy(isWaiting || (this.settings.dir === null && this.hasWorkInMemory()));
  }

  /** An engine in memory takes its work with it when the process ends. */
  private hasWorkInMemory(): boolean {
    return (
      this.virtualNowMs === null && this.pump !== undefined && (!this.pump.isAtRest || this.native.nextDueMs() >= 0)
    );
  }

  private scheduleNotice(text: string): boolean {
    const notice = readScheduleNotice(text);
    const warning = warningOf(notice);
    if (warning !== undefined) this.warn('SCHEDULE', warning);
    return this.listeners.emit('schedule', { ...notice, time: new Date(this.nowMs()) }) || warning !== undefined;
  }

  private scaleNotice(isOutside: boolean, text: string): boolean {
    const [queue, from, to] = text.split('\u001f') as [string, string, string];
    if (isOutside) this.scalers.ask(queue, Number(to));
    const event = { type: 'scale', time: new Date(this.nowMs()), queue, from: Number(from), to: Number(to) };
    return this.listeners.emit('scale', event) || isOutside;
  }

  private notice(what: number, text: string): boolean {
    const [id, runId, definition, status, ...rest] = text.split('\u001f') as [string, string, string, string];
    const payload = (rest as string[]).join('\u001f');
    if (what === JOURNAL_HALF) {
      this.warn('JOURNAL_HALF', payload);
      return true;
    }
    const type = what === STUCK ? 'stuck' : statusName(Number(status));
    if (type === 'running' || type === 'queued') return false;
    const base = { type, kind: 'workflow', id, runId, definition, time: new Date(this.nowMs()) };
    return this.listeners.emit(type, noticeOf(type, base, payload, this.payloads));
  }

  /** Says in one line what was found, and what is doubtful about the directory. */
  report(stuck: number, types: readonly string[]): void {
    for (const text of rowsOf(this.native.warnings())) this.warn('DIRECTORY', text);
    const [found = '0'] = this.native.report().split('\u001f');
    if (found === '0') return;
    const unregistered = types.map((text) => text.split(': ') as [string, string]);
    const without = unregistered.reduce((sum, [, count]) => sum + Number(count), 0);
    const parts = [`${Number(found) - without - stuck} resumed`];
    if (stuck > 0) parts.push(`${stuck} stuck`);
    if (without > 0) {
      const names = unregistered.map(([type, count]) => `'${type}' (${count})`).join(', ');
      parts.push(`${without} without a definition here: ${names}`);
    }
    const { dir, logger } = this.settings;
    inRoot(() => logger.info(`fusee: opened ${dir ?? 'an engine in memory'}: ${parts.join('; ')}`));
  }
}

function openEngine(settings: CoreSettings, notify: () => void): NativeEngine {
  const { group } = settings;
  const count = group?.kind === 'client' ? group.workers.count : 0;
  const workers = group?.kind === 'client' && count === 0 ? availableParallelism() : count;
  const options: NativeOptions = {
    dir: settings.dir,
    definitions: [...settings.definitions.keys()],
    // More than one a worker, so that a directory can have more workers later.
    shards: settings.shards === 0 && workers > SHARDS ? workers : settings.shards,
    workers,
    mayClampWorkers: count === 0,
    flush: settings.flush,
    virtualNow: settings.virtualNowMs,
    maxPayloadBytes: settings.payloadBytesMax,
    maxJournalRecords: settings.journalRecordsMax,
    maxJournalBytes: settings.journalBytesMax,
    maxRuns: settings.runsMax,
    // What the module of the workers lacks is known once they have loaded it, and refuses all.
    tasks: settings.tasks.packed + settings.schedules + (group?.kind === 'client' ? HELD : ''),
  };
  try {
    return group?.kind === 'part'
      ? joinNative(group.group, group.part, options.definitions, notify)
      : openNative(options, notify);
  } catch (error) {
    throw fromNative(error);
  }
}
