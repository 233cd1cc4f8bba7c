/**
 * The workers of a group, seen from the thread that opened it: started, compared, watched, replaced, closed.
 */
import * as path from 'node:path';
import {
  MessageChannel,
  receiveMessageOnPort,
  Worker,
  type MessagePort,
  type ResourceLimits,
} from 'node:worker_threads';
import { decodeFailure } from '../codec.js';
import { ClosedError } from '../errors.js';
import type { Logger } from '../worker/host.js';
import type { Primitives } from '../native.js';
import type { Boot, Found, FromWorker, JoinSettings, ToWorker } from './messages.js';
import { differenceOf } from './module.js';

/** The option `workers` of `open`, read and checked. */
export interface WorkerSettings {
  /** 0: as many as there are cores, and not more than shards. */
  readonly count: number;
  /** URL of the module. */
  readonly module: string;
  /** What its threads carry: names and values, packed. */
  readonly labels: readonly string[];
  readonly workerData: unknown;
  readonly execArgv: readonly string[] | undefined;
  readonly resourceLimits: ResourceLimits | undefined;
  readonly blockedAfterMs: number;
  readonly onBlocked: 'report' | 'replace';
}

/** A worker has ended although nobody closed it. */
export interface Lost {
  readonly worker: number;
  readonly exitCode: number;
  /** What it threw last, if something. */
  readonly error: unknown;
  /** Wait until its replacement is started. */
  readonly restartInMs: number;
  /** Shards that others run meanwhile. */
  readonly movedShards: number;
}

/** The replacement of a lost worker runs, and its runs have come as far as they can at once. */
export interface Replaced {
  readonly worker: number;
  /** From the loss, as it was seen, until the replacement had joined. */
  readonly lostForMs: number;
  /** From there until its runs had been replayed. */
  readonly replayMs: number;
}

/** What the pool needs of the engine. */
export interface PoolOwner {
  readonly primitives: Primitives;
  readonly logger: Logger;
  lose(worker: number, incarnation: number): boolean;
  /** @throws TypeError: the definitions that the workers export and the options do not go together */
  checkDefinitions(definitions: readonly Found[]): void;
  spread(worker: number): number;
  handleLost(lost: Lost): void;
  handleReplaced(replaced: Replaced): void;
  /** All workers have come as far as they can at once, for the first time. */
  handleCaughtUp(stuck: number, unregistered: readonly string[]): void;
}

/** A worker that lives for so long was not ill. */
const HEALTHY_MS = 10_000;
/** Replacements after the first one wait, with waits that double. */
const RESTART_FIRST_MS = 100;
const RESTART_MAX_MS = 10_000;
/** From so many deaths in a row on, others run the shards meanwhile. */
const DEATHS_TO_SPREAD = 3;
/** Beyond the grace, for the rest of a close. */
const CLOSE_MARGIN_MS = 2_000;

interface Member {
  readonly part: number;
  worker: Worker | undefined;
  port: MessagePort | undefined;
  incarnation: number;
  bornMs: number;
  /** Since when its place is empty, or was until it joined; `undefined`: it is not told yet that it was filled. */
  lostMs: number | undefined;
  joinedMs: number;
  deaths: number;
  /** It was started with what it is to be. */
  joinsItself: boolean;
  error: unknown;
  timer: unknown;
}

/** @throws TypeError: what the application gives to its threads cannot be copied to them */
function newThread(settings: WorkerSettings, boot: Boot, port: MessagePort): Worker {
  const { execArgv, resourceLimits } = settings;
  try {
    return new Worker(path.join(__dirname, 'bootstrap.js'), {
      workerData: boot,
      transferList: [port],
      name: `fusee-${boot.fusee.part}`,
      ...(execArgv === undefined ? {} : { execArgv: [...execArgv] }),
      ...(resourceLimits === undefined ? {} : { resourceLimits }),
    });
  } catch (error) {
    if ((error as { name?: unknown }).name !== 'DataCloneError') throw error;
    const why = (error as { message: string }).message;
    throw new TypeError(`workers.workerData cannot be copied to a thread: ${why}`, { cause: error });
  }
}

/** The workers. */
export class Pool {
  private readonly members: Member[];
  private definitions: readonly Found[] | undefined;
  private isClosing = false;
  private readonly stuck: number[] = [];
  private readonly unregistered: string[] = [];

  constructor(
    private readonly settings: WorkerSettings,
    count: number,
    private readonly join: Omit<JoinSettings, 'part'>,
    private readonly owner: PoolOwner,
  ) {
    this.members = Array.from({ length: count }, (_, part) => ({
      part,
      worker: undefined,
      port: undefined,
      incarnation: 0,
      bornMs: 0,
      lostMs: undefined,
      joinedMs: 0,
      deaths: 0,
      joinsItself: false,
      error: undefined,
      timer: undefined,
    }));
  }

  /** Starts all. Resolves with what they define, once all have joined. @throws what hinders any of them */
  async start(): Promise<readonly Found[]> {
    await Promise.all(this.members.map((member) => this.spawn(member)));
    return this.definitions ?? [];
  }

  /** A worker is blocked, in that incarnation of it: one that has its place by now may be well. */
  handleBlocked(part: number, incarnation: number): void {
    const member = this.members[part];
    if (this.settings.onBlocked !== 'replace' || member?.worker === undefined) return;
    if (member.incarnation !== incarnation) return;
    const { worker } = member;
    member.error = new Error('its thread was blocked, and it was replaced (workers.onBlocked)');
    // One that never comes back from a call of the system does not end by this: its place is taken all the same.
    void worker.terminate();
    this.handleExit(member, worker, 1);
  }

  /** Closes all, and ends their threads. */
  async close(graceMs: number): Promise<void> {
    this.isClosing = true;
    await Promise.all(this.members.map((member) => this.closeOne(member, graceMs)));
  }

  private async closeOne(member: Member, graceMs: number): Promise<void> {
    const { worker, port } = member;
    this.owner.primitives.clearTimeout(member.timer);
    if (worker === undefined || port === undefined) return;
    await new Promise<void>((resolve) => {
      const timer = this.owner.primitives.setTimeout(resolve, Math.min(graceMs + CLOSE_MARGIN_MS, 0x7fffffff));
      const end = (): void => {
        this.owner.primitives.clearTimeout(timer);
        resolve();
      };
      worker.once('exit', end);
      port.on('message', ({ kind }: FromWorker) => {
        if (kind === 'closed') end();
      });
      port.on('close', end);
      this.tell(member, { kind: 'close', graceMs });
    });
    // First, since a thread that sits in a call of the system does not end by being terminated.
    this.owner.lose(member.part, member.incarnation);
    if (await this.hasEnded(worker)) return;
    const { logger } = this.owner;
    const text = `fusee: worker ${member.part} does not end: its thread is in a call that cannot be interrupted`;
    logger.warn(`${text}; what it still does changes nothing`, { worker: member.part });
  }

  /** Terminates a thread. `false`: it has not ended in time. */
  private hasEnded(worker: Worker): Promise<boolean> {
    const { primitives } = this.owner;
    return new Promise((resolve) => {
      const timer = primitives.setTimeout(() => {
        resolve(false);
      }, CLOSE_MARGIN_MS);
      const end = (): void => {
        primitives.clearTimeout(timer);
        resolve(true);
      };
      worker.terminate().then(end, end);
    });
  }

  private tell(member: Member, message: ToWorker): void {
    member.port?.postMessage(message);
  }

  /** Starts one worker. Resolves when it has joined. */
  private spawn(member: Member): Promise<void> {
    const { settings, owner } = this;
    const { port1: port, port2 } = new MessageChannel();
    const known = this.known(member);
    member.joinsItself = known !== undefined;
    const boot: Boot = {
      fusee: { port: port2, module: settings.module, part: member.part, known },
      workerData: settings.workerData,
    };
    return new Promise<void>((resolve, reject) => {
      member.error = undefined;
      member.incarnation = 0;
      member.bornMs = owner.primitives.monotonicMs();
      const worker = this.startThread(member, boot, port2);
      member.worker = worker;
      member.port = port;
      const hear = (message: FromWorker): void => {
        if (member.worker === worker) this.handle(member, message, resolve, reject);
      };
      port.on('message', hear);
      // The engine says whether the process stays alive.
      port.unref();
      worker.unref();
      worker.on('error', (error) => {
        member.error = error;
        reject(this.failure(member, error));
        if (member.worker === worker && member.incarnation !== 0) end(1);
      });
      const end = (code: number): void => {
        // The end of a thread may be told before what it said last, which says why it ended.
        for (let last = receiveMessageOnPort(port); last !== undefined; last = receiveMessageOnPort(port)) {
          hear(last.message as FromWorker);
        }
        reject(this.failure(member, member.error ?? new Error(`it ended with code ${code} before it had joined`)));
        this.handleExit(member, worker, code);
      };
      worker.on('exit', end);
    });
  }

  /** What a worker joins by without being asked: all but the first, to whose definitions the others' are compared. */
  private known({ part }: Member): Boot['fusee']['known'] {
    const { definitions } = this;
    return definitions && { definitions, settings: { ...this.join, part } };
  }

  /** @throws what the platform refuses; a replacement is tried again then */
  private startThread(member: Member, boot: Boot, port: MessagePort): Worker {
    try {
      return newThread(this.settings, boot, port);
    } catch (error) {
      port.close();
      member.error = error;
      this.replace(member, 1);
      throw error;
    }
  }

  private failure(member: Member, error: unknown): Error {
    if (this.isClosing) return new ClosedError('the engine was closed while its workers started');
    const why = (error as { message?: unknown } | null | undefined)?.message;
    const text = `worker ${member.part} could not load ${this.settings.module}: ${String(why ?? error)}`;
    return error instanceof TypeError ? new TypeError(text, { cause: error }) : new Error(text, { cause: error });
  }

  private handle(member: Member, message: FromWorker, resolve: () => void, reject: (error: unknown) => void): void {
    switch (message.kind) {
      case 'loaded': {
        this.definitions ??= message.definitions;
        const difference = differenceOf(this.definitions, message.definitions);
        if (difference !== undefined) {
          const text = `the workers have different code: ${difference}; a module must export the same in every thread`;
          member.error = new TypeError(text);
          reject(member.error);
          void member.worker?.terminate();
          return;
        }
        try {
          this.owner.checkDefinitions(message.definitions);
        } catch (error) {
          member.error = error;
          reject(this.failure(member, error));
          void member.worker?.terminate();
          return;
        }
        if (!member.joinsItself) this.tell(member, { kind: 'join', settings: { ...this.join, part: member.part } });
        return;
      }
      case 'failed':
        member.error = decodeFailure(message.error as string);
        reject(this.failure(member, member.error));
        void member.worker?.terminate();
        return;
      case 'joined':
        member.incarnation = message.incarnation;
        member.joinedMs = this.owner.primitives.monotonicMs();
        resolve();
        return;
      case 'ending':
        if (member.worker !== undefined && member.incarnation !== 0)
          this.handleExit(member, member.worker, message.exitCode);
        return;
      case 'caughtUp':
        this.tellReplaced(member);
        if (this.stuck[member.part] !== undefined) return;
        this.stuck[member.part] = message.stuck;
        this.unregistered.push(...message.unregistered);
        if (Object.keys(this.stuck).length === this.members.length) {
          const stuck = this.stuck.reduce((sum, count) => sum + count, 0);
          this.owner.handleCaughtUp(stuck, this.unregistered);
        }
        return;
      case 'log':
        this.owner.logger[message.level](message.message, message.fields as object | undefined);
        return;
      case 'closed':
        return;
    }
  }

  private tellReplaced(member: Member): void {
    const { part: worker, lostMs, joinedMs } = member;
    if (lostMs === undefined) return;
    member.lostMs = undefined;
    const replayMs = this.owner.primitives.monotonicMs() - joinedMs;
    this.owner.handleReplaced({ worker, lostForMs: joinedMs - lostMs, replayMs });
  }

  private handleExit(member: Member, worker: Worker, exitCode: number): void {
    if (member.worker !== worker) return;
    member.worker = undefined;
    member.port?.close();
    member.port = undefined;
    if (member.incarnation !== 0) this.owner.lose(member.part, member.incarnation);
    this.replace(member, exitCode);
  }

  private replace(member: Member, exitCode: number): void {
    const { owner } = this;
    const hadJoined = member.incarnation !== 0;
    // One that never joined failed the open, unless it is a replacement.
    if (this.isClosing || (!hadJoined && member.deaths === 0)) return;
    const nowMs = owner.primitives.monotonicMs();
    member.lostMs ??= nowMs;
    const livedMs = nowMs - member.bornMs;
    member.deaths = livedMs > HEALTHY_MS ? 1 : member.deaths + 1;
    const restartInMs = member.deaths === 1 ? 0 : Math.min(RESTART_FIRST_MS * 2 ** (member.deaths - 2), RESTART_MAX_MS);
    const movedShards = member.deaths >= DEATHS_TO_SPREAD ? owner.spread(member.part) : 0;
    owner.handleLost({ worker: member.part, exitCode, error: member.error, restartInMs, movedShards });
    const restart = (): void => {
      if (this.isClosing) return;
      // Why it fails is told when it has ended, or could not be started.
      this.spawn(member).catch(() => undefined);
    };
    if (restartInMs === 0) restart();
    else member.timer = owner.primitives.setTimeout(restart, restartInMs);
  }
}
