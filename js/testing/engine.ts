/**
 * The real engine in memory, under a clock that moves only when it is told to.
 */
import { Engine } from '../client/engine.js';
import { readOptions, type OpenOptions } from '../client/options.js';
import { asWorkflow } from '../definitions.js';
import { toMs, toTimeMs } from '../duration.js';
import { StorageError } from '../errors.js';
import { knownOptions } from '../options.js';
import { replayEnds } from './replay-ends.js';
import { isTask } from '../scheduler/definition.js';
import { RandomStream } from '../workflow/random.js';

/** Options of {@link testEngine}. */
export interface TestOptions extends Omit<OpenOptions, 'dir' | 'shards' | 'flush' | 'workers'> {
  /** Where the clock stands at first. Default: 2025-01-01T00:00:00Z, so that tests repeat. */
  readonly now?: unknown;
  /** Seed of everything left to chance. Default 1. */
  readonly seed?: number;
  /** At `close`, replays runs that ended and throws on a difference. Default `true`. */
  readonly replayOnClose?: boolean;
}

const OPTIONS = [
  'workflows',
  'objects',
  'tasks',
  'queues',
  'limits',
  'schedules',
  'codec',
  'payloadBytesMax',
  'journalRecordsMax',
  'journalBytesMax',
  'runsMax',
  'dev',
  'logger',
  'now',
  'seed',
  'replayOnClose',
];
const FIRST_TIME_MS = Date.UTC(2025, 0, 1);
/** Bodies that run get so much real time before the clock moves on without them. */
const BODIES_MAX_MS = 50;
/** A result that only timers can bring is given up after so much real time without a call of `advance`. */
const STANDSTILL_MS = 1000;

/** Opens an engine in memory under a virtual clock. */
export function testEngine(options: TestOptions = {}): Promise<TestEngine> {
  return new Promise((resolve) => {
    resolve(new TestEngine(options));
  });
}

/** An engine whose clock moves only by {@link TestEngine.advance}. */
export class TestEngine extends Engine {
  private readonly firstMs: number;
  /** Someone moves the clock or waits for rest: no result is given up. */
  private busy = 0;
  private standstill: unknown = undefined;
  /** When the clock was moved: after which record, to which time. @internal */
  readonly moves: { readonly lsn: number; readonly nowMs: number }[] = [];
  /** Bodies that the clock has moved on without. */
  private hanging = 0;
  /** Types whose function was replaced at some time: a replay of theirs says nothing. */
  private readonly mocked = new Set<string>();
  /** Mocks that nothing has called, by what they stand for. */
  private readonly unused = new Map<object, string>();

  constructor(options: TestOptions) {
    const { now, seed = 1, replayOnClose = true, ...rest } = options;
    knownOptions(options, OPTIONS, 'testEngine');
    const chance = new RandomStream(`test:${seed}`);
    const firstMs = now === undefined ? FIRST_TIME_MS : toTimeMs(now);
    super({
      ...readOptions(':memory:', rest, 'testEngine', () => chance.nextNumber()),
      virtualNowMs: firstMs,
    });
    this.firstMs = firstMs;
    this.core.restWatchers.add(() => this.watchStandstill());
    if (replayOnClose) this.core.lastAct = () => replayEnds(this.core, this, this.mocked);
  }

  /** Time of the virtual clock, in milliseconds since 1970. */
  now(): number {
    return this.core.nowMs();
  }

  /** Moves the clock, firing what falls due in its order, and waits until the engine is idle again. */
  async advance(by: unknown): Promise<void> {
    const byMs = toMs(by);
    await this.whileBusy(async () => {
      await this.settle();
      const untilMs = this.now() + byMs;
      for (let dueMs = this.nextDue(); dueMs >= 0 && dueMs <= untilMs; dueMs = this.nextDue()) {
        await this.moveTo(Math.max(dueMs, this.now()));
      }
      await this.moveTo(untilMs);
    });
  }

  /** Waits until nothing can go on without the clock or someone outside. */
  async idle(): Promise<void> {
    await this.whileBusy(async () => {
      do await this.round();
      while (!this.core.pump.isAtRest || this.core.pump.runningBodies > 0);
    });
  }

  /** Runs `fn` in place of a step's function, for runs of this workflow from now on. @returns what undoes it */
  mockStep(workflow: unknown, step: string, fn: (attempt: number) => unknown): () => void {
    const { stepMocks } = this.core.pump.host;
    const { name } = asWorkflow(workflow);
    if (typeof fn !== 'function') throw new TypeError('mockStep needs a function');
    const mocks = stepMocks.get(name) ?? new Map<string, (attempt: number) => unknown>();
    const noted = this.noted(`step '${step}' of workflow '${name}'`, fn);
    stepMocks.set(name, mocks.set(step, noted));
    return () => {
      this.unused.delete(noted);
      if (mocks.get(step) === noted) mocks.delete(step);
    };
  }

  /** Runs `fn` in place of a workflow's or task's function, from now on. @returns what undoes it */
  mock(workflow: unknown, fn: (input: unknown) => unknown): () => void {
    if (isTask(workflow)) return this.mockTask(workflow.name, fn);
    const { workflowMocks } = this.core.pump.host;
    const { name } = asWorkflow(workflow);
    if (typeof fn !== 'function') throw new TypeError('mock needs a function');
    const noted = this.noted(`workflow '${name}'`, fn);
    workflowMocks.set(name, noted);
    this.mocked.add(name);
    return () => {
      this.unused.delete(noted);
      if (workflowMocks.get(name) === noted) workflowMocks.delete(name);
    };
  }

  private mockTask(name: string, fn: (input: unknown) => unknown): () => void {
    const { taskMocks } = this.core;
    if (typeof fn !== 'function') throw new TypeError('mock needs a function');
    const noted = this.noted(`task '${name}'`, fn);
    taskMocks.set(name, noted);
    return () => {
      this.unused.delete(noted);
      if (taskMocks.get(name) === noted) taskMocks.delete(name);
    };
  }

  /** A mock of which one can tell whether it was called. */
  private noted<Given>(what: string, fn: (given: Given) => unknown): (given: Given) => unknown {
    const noted = (given: Given): unknown => {
      this.unused.delete(noted);
      return fn(given);
    };
    this.unused.set(noted, what);
    return noted;
  }

  /** A name that is misspelt, or has changed in the code, would go unseen. */
  private warnOfUnused(): void {
    for (const what of this.unused.values()) {
      this.core.settings.logger.warn(`fusee: the mock of ${what} was never called; is that its name?`, {
        code: 'UNUSED_MOCK',
      });
    }
    this.unused.clear();
  }

  /** Loses everything that was not durable, as `kill -9` would, and opens again. Handles stay good. */
  async crash(): Promise<void> {
    this.core.check();
    await this.whileBusy(async () => {
      this.core.pump.drainEvents();
      this.core.native.crash();
      this.core.taskBodies.restart();
      this.afterCrash();
      await this.settle();
    });
  }

  /** Where the clock stood when a record was made. @internal */
  timeOf(lsn: number): number {
    return this.moves.findLast((move) => move.lsn < lsn)?.nowMs ?? this.firstMs;
  }

  /** Ends this life and remembers its records. @returns how many there are @internal */
  past(): number {
    this.core.pump.drainEvents();
    this.core.pump.host.bodies.hold();
    this.core.taskBodies.hold();
    const count = this.core.native.past();
    this.core.pump.forgetRuns();
    this.core.requests.rejectAll(new StorageError('the engine went back to its past'));
    return count;
  }

  /** The last record that is durable. @internal */
  get durable(): number {
    return this.core.native.durable();
  }

  /** Everything stops when a record is durable, before anything goes on because of it. @internal */
  haltAt(lsn: number): void {
    this.core.pump.haltAt = lsn;
  }

  /** @internal */
  get isHalted(): boolean {
    return this.core.pump.isHalted;
  }

  /** @internal */
  get hasRunningBodies(): boolean {
    return this.core.pump.runningBodies > 0;
  }

  /**
   * Loses all but so many records, as a kill right after the last of them would, and opens again.
   * @returns how many signals whose dedupe ids begin with `prefix` are left @internal
   */
  async crashTo(records: number, prefix: string): Promise<number> {
    const { native, pump } = this.core;
    this.core.check();
    pump.drainEvents();
    native.past();
    const signals = native.pastSignals(records, prefix);
    await this.whileBusy(async () => {
      native.rewind(records, this.now());
      this.afterCrash();
      await this.settle();
    });
    return signals;
  }

  /** Opens with the first records of the past and replays; no body runs, no time passes. @internal */
  async rewind(count: number, nowMs: number): Promise<void> {
    await this.whileBusy(async () => {
      this.core.pump.drainEvents();
      this.core.virtualNowMs = nowMs;
      this.core.native.rewind(count, nowMs);
      this.afterCrash();
      await this.settle();
    });
  }

  override close(options?: { grace?: unknown }): Promise<void> {
    this.stopStandstill();
    this.warnOfUnused();
    return super.close(options ?? { grace: BODIES_MAX_MS });
  }

  /** Runs come anew; whoever waits for the end of one goes on waiting. */
  protected afterCrash(): void {
    const { native, pump, requests } = this.core;
    pump.forgetRuns();
    this.hanging = 0;
    for (const request of requests.all()) {
      const { target } = request;
      try {
        if (request.again !== undefined) {
          request.again(request.token);
          continue;
        }
        if (target !== null && target.isTask === true) {
          native.taskResult(request.token, target.id);
          continue;
        }
        const lost = new StorageError('the engine crashed before the answer was durable');
        if (target === null || target.runId === '') throw lost;
        if ('lost' in target) target.lost = lost;
        native.result(request.token, target.id, target.runId);
      } catch (error) {
        requests.remove(request);
        request.reject(error);
      }
    }
    this.core.updateSubscription();
    pump.wake();
  }

  /** @internal */
  async moveTo(nowMs: number): Promise<void> {
    this.moves.push({ lsn: this.core.native.durable(), nowMs });
    this.core.virtualNowMs = nowMs;
    this.core.native.setNow(nowMs);
    this.core.pump.wake();
    await this.settle();
  }

  /** Waits for turns and flushes, and a little for bodies. @internal */
  async settle(): Promise<void> {
    const { pump, primitives } = this.core;
    const untilMs = primitives.monotonicMs() + BODIES_MAX_MS;
    for (;;) {
      await this.round();
      if (pump.isHalted) break;
      if (!pump.isAtRest) continue;
      this.hanging = Math.min(this.hanging, pump.runningBodies);
      if (pump.runningBodies === this.hanging) return;
      if (primitives.monotonicMs() > untilMs) break;
    }
    this.hanging = pump.runningBodies;
  }

  /** One round of the event loop. */
  private async round(): Promise<void> {
    this.core.checkFailure();
    await new Promise<void>((resolve) => this.core.primitives.setImmediate(resolve));
  }

  /** When something falls due, in ms since 1970; below 0: never. @internal */
  nextDue(): number {
    this.core.check();
    return this.core.native.nextDueAt();
  }

  private async whileBusy(fn: () => Promise<void>): Promise<void> {
    this.busy += 1;
    this.stopStandstill();
    try {
      await fn();
    } finally {
      this.busy -= 1;
      if (this.busy === 0) this.watchStandstill();
    }
  }

  /** Someone waits for a result, and only the clock could bring it. */
  private watchStandstill(): void {
    const { pump, requests, primitives } = this.core;
    this.stopStandstill();
    if (this.busy > 0 || !pump.isAtRest || pump.runningBodies > 0 || pump.isClosed) return;
    if (!requests.all().some((request) => request.target !== null) || this.nextDue() < 0) return;
    this.standstill = primitives.setTimeout(() => this.giveUp(), STANDSTILL_MS);
  }

  private stopStandstill(): void {
    if (this.standstill === undefined) return;
    this.core.primitives.clearTimeout(this.standstill);
    this.standstill = undefined;
  }

  private giveUp(): void {
    this.standstill = undefined;
    const { pump, requests } = this.core;
    if (this.busy > 0 || !pump.isAtRest || pump.runningBodies > 0 || pump.isClosed) return;
    const dueInMs = this.nextDue() - this.now();
    for (const request of requests.all()) {
      if (request.target === null) continue;
      this.core.forget(request);
      request.reject(
        new Error(
          `nothing goes on before the clock moves: ${request.target.isTask === true ? 'task' : 'workflow'} ${request.target.id} has not ended, ` +
            `and the next timer is due in ${dueInMs} ms; call advance()`,
        ),
      );
    }
  }
}
