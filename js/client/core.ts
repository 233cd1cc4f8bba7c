/**
 * One open engine on one thread: the addon's engine, the pump that runs its code, the requests of its callers.
 *
 * Every call of a user ends here; {@link Engine} and handles only read their arguments and shape the answers.
 */
import { encode as encodeValue } from '../codec.js';
import { ClosedError, fromNative, RunNotFoundError } from '../errors.js';
import {
  openNative,
  primitives as loadPrimitives,
  type NativeEngine,
  type NativeOptions,
  type Primitives,
} from '../native.js';
import { inRoot } from '../worker/contexts.js';
import { watchDevelopment } from '../worker/development.js';
import type { Logger } from '../worker/host.js';
import { Pump, type PumpOwner } from '../worker/pump.js';
import type { WorkflowCode } from '../workflow/run.js';
import { KeepAlive } from './keep-alive.js';
import { Listeners } from './listeners.js';
import { noticeOf } from './notices.js';
import { closed, Requests, type Reader, type Request, type ResultTarget, type Waiting } from './requests.js';
import { rowsOf, statusName } from './rows.js';

/** How an engine is opened, read and checked. */
export interface CoreSettings {
  readonly dir: string | null;
  readonly definitions: ReadonlyMap<string, WorkflowCode>;
  readonly shards: number;
  readonly flush: NativeOptions['flush'];
  readonly payloadBytesMax: number;
  readonly journalRecordsMax: number;
  readonly journalBytesMax: number;
  readonly runsMax: number;
  readonly isDev: boolean;
  readonly logger: Logger;
  /** `null`: real time. */
  readonly virtualNowMs: number | null;
  readonly random: () => number;
}

const FAILED = 10;
const NOTICE = 11;
/** What a notice is about, where it is no end of a run. */
const STUCK = 3;
const JOURNAL_HALF = 4;
const NOTICES = 1;
/** Bytes of an encoded value, if the options do not say. */
export const PAYLOAD_BYTES_MAX = 4 * 1024 * 1024;

/** An open engine. */
export class EngineCore implements PumpOwner {
  readonly native: NativeEngine;
  readonly primitives: Primitives;
  readonly pump: Pump;
  readonly requests: Requests;
  readonly listeners: Listeners;
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
    this.keepAlive = new KeepAlive(this.primitives, dir !== null && definitions.size > 0);
    this.requests = new Requests((isAny) => this.updateBusy(isAny));
    this.listeners = new Listeners((name, error) => this.warn('LISTENER', `a listener of '${name}' threw`, error));
    this.pump = new Pump(
      this.native,
      {
        definitions,
        logger: settings.logger,
        isDev: settings.isDev,
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
    let answer = '';
    const request = this.requests.prepare<string>(() => answer);
    const refuse = (error: unknown): void => {
      this.requests.remove(request);
      request.reject(error);
    };
    this.pump.queries.ask({
      name,
      input,
      findSlot: () => {
        try {
          return this.native.querySlot(id, runId);
        } catch (error) {
          throw fromNative(error, id);
        }
      },
      answer: (text, slot) => {
        answer = text;
        try {
          this.native.ackAt(slot, request.token);
        } catch (error) {
          refuse(fromNative(error, id));
        }
      },
      refuse,
      miss: () => refuse(new RunNotFoundError(`workflow ${id} has ended, or is stuck, and answers no queries`, { id })),
    });
    this.pump.wake();
    return request;
  }

  /** Text that records a value. @throws TypeError naming the path; RangeError naming the size and its limit */
  encode(value: unknown, what: string): string {
    let text: string;
    try {
      text = encodeValue(value);
    } catch (error) {
      throw new TypeError(`${what} cannot be recorded: ${(error as Error).message}`, { cause: error });
    }
    this.pump.host.checkSize(text, what);
    return text;
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
    if (kind === NOTICE) return this.notice(b, text);
    return this.requests.handle(kind, a, b, text);
  }

  handleCaughtUp(): void {
    this.report();
  }

  handleRest(): void {
    this.updateBusy(this.requests.count > 0);
    for (const watcher of [...this.restWatchers]) watcher();
  }

  handleFailure(error: unknown): void {
    if (this.failure !== undefined) return;
    this.failure = error;
    this.pump.host.bodies.hold();
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
    try {
      await this.bodiesEnded(graceMs);
      this.pump.abortBodies(new ClosedError('the engine is closing'));
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
      (token) => this.native.count(token, '', 0, '', '', -1, -1),
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

  private notice(what: number, text: string): boolean {
    const [id, runId, definition, status, ...rest] = text.split('\u001f') as [string, string, string, string];
    const payload = (rest as string[]).join('\u001f');
    if (what === JOURNAL_HALF) {
      this.warn('JOURNAL_HALF', payload);
      return true;
    }
    const type = what === STUCK ? 'stuck' : statusName(Number(status));
    if (type === 'running') return false;
    const base = { type, kind: 'workflow', id, runId, definition, time: new Date(this.nowMs()) };
    return this.listeners.emit(type, noticeOf(type, base, payload));
  }

  /** Says in one line what was found, and what is doubtful about the directory. */
  private report(): void {
    for (const text of rowsOf(this.native.warnings())) this.warn('DIRECTORY', text);
    const [found = '0', , , , ...types] = this.native.report().split('\u001f');
    if (found === '0') return;
    const unregistered = types.map((text) => text.split(': ') as [string, string]);
    const without = unregistered.reduce((sum, [, count]) => sum + Number(count), 0);
    const stuck = this.pump.host.stuckCount;
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
  const options: NativeOptions = {
    dir: settings.dir,
    definitions: [...settings.definitions.keys()],
    shards: settings.shards,
    flush: settings.flush,
    virtualNow: settings.virtualNowMs,
    maxPayloadBytes: settings.payloadBytesMax,
    maxJournalRecords: settings.journalRecordsMax,
    maxJournalBytes: settings.journalBytesMax,
    maxRuns: settings.runsMax,
  };
  try {
    return openNative(options, notify);
  } catch (error) {
    throw fromNative(error);
  }
}
