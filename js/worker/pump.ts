/**
 * The turn loop of one engine on one thread.
 *
 * Between turns, in this order: outcomes of bodies are recorded; the next run that has a delivery gets it and has its
 * turn; queries are answered; bodies whose gates are durable start; events are fetched; the disk is asked for. A turn
 * ends when the microtask queue has drained: that is observed by a `nextTick` queued from a microtask, which runs after
 * the whole drain. There is one run per drain, and no turn in a drain in which bodies started or callers were answered
 * (LAW-4).
 */
import type { Primitives } from '../native.js';
import { CANCELLED, COMPLETED, DEAD, FAILED, MISMATCH } from '../workflow/host.js';
import { CancelledError, CodecError } from '../errors.js';
import { Continuation } from '../workflow/continuing.js';
import type { ConditionOp } from '../workflow/operations.js';
import { StepOp } from '../workflow/operations.js';
import { atPlace } from '../workflow/place.js';
import type { Outcome, Run } from '../workflow/run.js';
import type { Attempt } from './attempt.js';
import type { Bodies } from './bodies.js';
import { DueTimer } from './due-timer.js';
import { EventReader, type EventSink } from './events.js';
import { WorkerHost, type HostSettings, type HostVerbs, type TurnOwner } from './host.js';
import { Offers, type OfferVerbs } from './offers.js';
import { Queries } from './queries.js';
import { ReadyQueue } from './ready-queue.js';
import { enter, leave, type TurnTaker } from './thread.js';
import { TickWatch } from './tick-watch.js';

/** What the pump needs of the engine. */
export interface PumpVerbs extends HostVerbs, OfferVerbs {
  quiescent(slot: number): number;
  finish(slot: number, status: number, payload: string): number;
  /** Lets go of a run that was revived. */
  lay(slot: number): void;
  continueAsNew(slot: number, version: number, timeoutMs: number, input: string): number;
  idle(): number;
  tick(heads: Uint32Array): string;
  nextDueMs(): number;
  ackAt(slot: number, token: number): void;
}

/** Whoever has business with the engine beside its runs. */
export interface PumpOwner {
  /** Bodies of its own that run. */
  readonly runningBodies: number;
  /** Outcomes of its own bodies wait to be recorded. */
  readonly hasOutcomes: boolean;
  /** Records them. @returns whether there were any */
  recordOutcomes(): boolean;
  /** An answer, a notice. @returns whether code of a caller goes on because of it */
  handleEvent(kind: number, a: number, b: number, text: string): boolean;
  /** All that was under way at the open has gone as far as it can at once. */
  handleCaughtUp(): void;
  /** The pump has nothing to do. */
  handleRest(): void;
  /** The engine or the pump is broken. */
  handleFailure(error: unknown): void;
}

/** Other work of the event loop waits no longer than about this. */
const YIELD_AFTER_MS = 0.5;
/** So many turns between two looks at the clock. */
const TURNS_PER_LOOK = 16;
/** So many deliveries one run gets before the next one has its turn. */
const DELIVERIES_IN_A_ROW = 32;

const DRAINED = Promise.resolve();

/** The turn loop. */
export class Pump implements TurnTaker, TurnOwner, EventSink {
  /** Has no more turns. */
  isClosed = false;
  readonly host: WorkerHost;
  readonly queries: Queries;
  private readonly offers: Offers;
  private readonly bodies: Bodies;
  private readonly runs = new Map<number, Run>();
  private readonly events: EventReader;
  private readonly readyRuns = new ReadyQueue();
  private durable = 0;
  private turnOf: Run | null = null;
  /** The run whose turn has ended, while others go on before anything follows it. */
  private turnEnded: Run | null = null;
  private readonly watch = new TickWatch();
  private inARow = 0;
  private turnsToLook = TURNS_PER_LOOK;
  private lastYieldMs = 0;
  /** Something happened since events were fetched last. */
  private isStirred = false;
  private hasCaughtUp = false;
  private isActive = false;
  private isScheduled = false;
  private readonly dueTimer: DueTimer;
  /** For tests: it stops for good when this record is durable, before anything goes on because of it. */
  haltAt = Infinity;

  constructor(
    private readonly verbs: PumpVerbs,
    settings: HostSettings,
    private readonly owner: PumpOwner,
    private readonly primitives: Primitives,
    /** Time moves by itself: due timers need a timer of the event loop. */
    private readonly hasRealClock: boolean,
  ) {
    this.host = new WorkerHost(verbs, settings, this, this.watch);
    this.bodies = this.host.bodies;
    this.dueTimer = new DueTimer(primitives, this.notify);
    this.queries = new Queries(verbs, this.host);
    this.offers = new Offers(verbs, this.host);
    this.events = new EventReader(this.host, settings.definitions, this);
  }

  /** Nothing can go on without a timer, a body, or someone outside. */
  get isAtRest(): boolean {
    return (
      !this.isActive && !this.isScheduled && !this.isStirred && !this.bodies.hasFinished && !this.owner.hasOutcomes
    );
  }

  /** Whether it has stopped at {@link haltAt}. */
  get isHalted(): boolean {
    return this.durable >= this.haltAt;
  }

  /** Bodies whose promises are pending. */
  get runningBodies(): number {
    return this.bodies.running + this.owner.runningBodies;
  }

  /** Something is to be done. Calls of one macrotask share one pass, and so one flush. */
  wake(): void {
    this.isStirred = true;
    this.wakeLater();
  }

  /** The same where nothing happened but what this thread knows. */
  wakeLater(): void {
    if (this.isActive || this.isScheduled || this.isClosed) return;
    this.isScheduled = true;
    this.primitives.setImmediate(this.takeTurns);
  }

  /** The engine has news. Called from a place of its own. */
  readonly notify = (): void => {
    this.isStirred = true;
    if (this.isActive || this.isScheduled || this.isClosed) return;
    this.isScheduled = true;
    this.takeTurns();
  };

  readonly takeTurns = (): void => {
    if (this.isHalted) this.isScheduled = false;
    if (this.isClosed || this.isActive || this.isHalted || !enter(this)) return;
    this.isScheduled = false;
    this.isActive = true;
    this.lastYieldMs = this.primitives.monotonicMs();
    this.turnsToLook = TURNS_PER_LOOK;
    this.primitives.nextTick(this.goOn);
  };

  ready(run: Run): void {
    run.hasNews = true;
    this.readyRuns.push(run);
  }

  readyTaken(run: Run): void {
    this.readyRuns.push(run);
  }

  drop(run: Run): void {
    if (this.runs.get(run.slot) === run) this.runs.delete(run.slot);
  }

  /** Has no more turns. Everything that waits goes on waiting. */
  close(): void {
    this.isClosed = true;
    this.dueTimer.clear();
    this.forgetRuns();
    this.isActive = false;
    TickWatch.unhook();
    leave(this, this.primitives.nextTick);
  }

  /** Has the code of a run that has ended replay, to be asked. @param text slot, id, key root, type, input @returns the slot */
  revive(text: string): number {
    return this.replay(text).slot;
  }

  /** Has the code of a run replay, and nothing comes of it. @param text slot, id, key root, type, input */
  replay(text: string): Run {
    const border = text.indexOf('\u001f');
    const run = this.events.runOf(Number(text.slice(0, border)), text.slice(border + 1));
    run.isRevived = true;
    this.handleStart(run);
    // The pass that asks for it goes on to its turns.
    this.isStirred = true;
    return run;
  }

  /** A revived run has been asked. */
  lay(slot: number): void {
    const run = this.runs.get(slot);
    if (run?.isRevived !== true) return;
    this.drop(run);
    run.kill(undefined);
    this.verbs.lay(slot);
  }

  /** Takes the events of this life that wait to be fetched. */
  drainEvents(): void {
    while (this.events.hasMore) this.events.fetch(this.verbs);
  }

  /** Drops the code of all runs: they come anew, or never. */
  forgetRuns(): void {
    for (const run of this.runs.values()) {
      run.isDead = true;
      for (const op of run.takeAllPending()) if (op instanceof StepOp) this.bodies.abandon(op, undefined);
    }
    this.runs.clear();
    this.readyRuns.clear();
    this.durable = 0;
    this.haltAt = Infinity;
    this.host.current = null;
    this.bodies.forget();
    this.queries.forget();
    this.offers.forget();
  }

  /** Aborts the signals of all attempts that run. Their outcomes count no more: they cost no attempt. */
  abortBodies(reason: unknown): void {
    for (const run of this.runs.values()) {
      for (const op of run.allPending()) {
        const attempt = op instanceof StepOp ? (op.attempt as Attempt | null) : null;
        if (attempt !== null) this.bodies.lose(attempt, reason);
      }
    }
  }

  // ── Events about runs ──

  handleStart(run: Run): void {
    this.runs.set(run.slot, run);
    this.ready(run);
  }

  handleWake(slot: number): void {
    const run = this.runs.get(slot);
    if (run !== undefined) this.ready(run);
  }

  handleAttempt(
    slot: number,
    seq: number,
    number: number,
    lease: number,
    wasInterrupted: boolean,
    heartbeat: string,
  ): void {
    const step = this.stepOf(slot, seq);
    if (step !== undefined) this.bodies.startAgain(step, number, lease, wasInterrupted, heartbeat);
  }

  handleTimeout(slot: number, seq: number, lease: number, isHeartbeat: boolean): void {
    const step = this.stepOf(slot, seq);
    if (step !== undefined) this.bodies.timeOut(step, lease, isHeartbeat);
  }

  handleEnded(slot: number, reason: unknown): void {
    const run = this.runs.get(slot);
    if (run === undefined) return;
    this.drop(run);
    run.kill(reason);
  }

  handleOffer(slot: number, number: number, text: string): void {
    this.offers.add(slot, number, text);
  }

  handleOther(kind: number, a: number, b: number, text: string): boolean {
    return this.owner.handleEvent(kind, a, b, text);
  }

  // ── The loop ──

  private readonly goOn = (): void => {
    try {
      this.pass();
    } catch (error) {
      this.fail(error);
    }
  };

  /** Bodies or callers go on now, until the microtask queue has drained. */
  private letOthersGoOn(): void {
    void DRAINED.then(this.armEndOfOthers);
  }

  private readonly armEndOfOthers = (): void => {
    this.watch.takeTick();
    this.primitives.nextTick(this.endOfOthers);
  };

  private readonly endOfOthers = (): void => {
    if (this.watch.isUndisturbed) this.goOn();
    else this.waitForOthers(null);
  };

  /**
   * A drain is not enough: ticks of others may wait, and what they resolve would go on within a turn that begins now.
   * They are all through in the next macrotask. @param run whose turn has just ended
   */
  private waitForOthers(run: Run | null): void {
    this.turnEnded = run;
    this.primitives.setImmediate(this.goOnAfterOthers);
  }

  private readonly goOnAfterOthers = (): void => {
    this.lastYieldMs = this.primitives.monotonicMs();
    const run = this.turnEnded;
    this.turnEnded = null;
    if (run === null) this.goOn();
    else this.goOnBehind(run);
  };

  private readonly armEndOfTurn = (): void => {
    this.watch.takeTick();
    this.primitives.nextTick(this.endOfTurn);
  };

  private pass(): void {
    while (!this.isClosed) {
      if (this.bodies.hasFinished) this.bodies.record();
      const run = this.readyRuns.shift();
      if (run !== undefined) {
        if (--this.turnsToLook <= 0 && this.yieldIfLate(run)) return;
        if (this.deliver(run)) return;
        continue;
      }
      this.watch.begin();
      const hasAborted = this.bodies.abortDue();
      if (this.bodies.startDue(this.durable) || hasAborted) {
        this.letOthersGoOn();
        return;
      }
      if (this.owner.recordOutcomes()) this.isStirred = true;
      if (this.isStirred) {
        if (this.fetchEvents()) return;
        continue;
      }
      if (!this.hasCaughtUp) {
        this.hasCaughtUp = true;
        this.owner.handleCaughtUp();
      }
      if (this.queries.answerDue(this.runs) || this.offers.decideDue(this.runs)) {
        this.isStirred = true;
        continue;
      }
      if (!this.flush()) break;
      if (this.yieldIfLate(undefined)) return;
    }
    this.rest();
  }

  /** @returns whether the next pass comes after a drain */
  private fetchEvents(): boolean {
    this.isStirred = false;
    this.watch.begin();
    const needsDrain = this.events.fetch(this.verbs);
    if (this.events.hasMore) this.isStirred = true;
    if (!needsDrain || this.isClosed) return false;
    this.letOthersGoOn();
    return true;
  }

  /** Asks for the disk, unless there are events. @returns whether something can go on because of it */
  private flush(): boolean {
    const answer = this.verbs.idle();
    if (answer % 2 === 1) this.isStirred = true;
    const durable = Math.floor(answer / 2);
    if (durable <= this.durable) return this.isStirred;
    this.durable = durable;
    return !this.isHalted;
  }

  private rest(): void {
    this.isActive = false;
    if (this.isClosed) return;
    if (this.hasRealClock) this.dueTimer.set(this.verbs.nextDueMs());
    leave(this, this.primitives.nextTick);
    this.owner.handleRest();
  }

  /** Lets other work of the event loop happen, if it has waited long enough. @param run whose turn is put off */
  private yieldIfLate(run: Run | undefined): boolean {
    this.turnsToLook = TURNS_PER_LOOK;
    if (this.primitives.monotonicMs() - this.lastYieldMs < YIELD_AFTER_MS) return false;
    if (run !== undefined) this.readyRuns.unshift(run);
    this.isActive = false;
    this.isScheduled = true;
    leave(this, this.primitives.nextTick);
    this.primitives.setImmediate(this.takeTurns);
    return true;
  }

  /** Gives a run its next delivery, if there is one. @returns whether its turn has begun */
  private deliver(run: Run): boolean {
    if (run.isDead) return false;
    if (run.taken > 0) {
      this.beginTurn(run);
      run.deliverTaken();
      return true;
    }
    const delivery = this.verbs.quiescent(run.slot);
    if (delivery > 0) {
      run.hasNews = (delivery & 16) === 0;
      this.beginTurn(run);
      try {
        run.deliver(delivery & 15, Math.floor(delivery / 32));
      } catch (error) {
        if (CodecError.is(error)) this.host.unreadable(run, error);
        else this.host.stuck(run, `what was recorded cannot be read: ${String(error)}`);
      }
      return true;
    }
    if (delivery === MISMATCH) this.host.mismatch(run, 'end of a turn');
    else if (delivery === DEAD) this.host.gone(run);
    else if (run.isLaunched && run.waitsOutside) this.host.stuck(run, waitsOutside(run));
    return false;
  }

  private beginTurn(run: Run): void {
    this.host.current = run;
    this.turnOf = run;
    this.watch.begin();
    void DRAINED.then(this.armEndOfTurn);
  }

  private readonly endOfTurn = (): void => {
    const run = this.turnOf;
    this.turnOf = null;
    this.host.current = null;
    if (run === null || this.isClosed) return;
    if (this.watch.isUndisturbed) this.goOnBehind(run);
    else this.waitForOthers(run);
  };

  private goOnBehind(run: Run): void {
    try {
      if (!this.isClosed && !run.isDead && this.follows(run)) return;
      this.inARow = 0;
      this.pass();
    } catch (error) {
      this.fail(error);
    }
  }

  /** What follows a turn of a run: its end, a condition that holds, the next delivery. @returns whether a turn began */
  private follows(run: Run): boolean {
    if (run.outcome !== null) {
      this.finish(run);
      return false;
    }
    if (run.conditions !== null) {
      const holding = this.findHolding(run);
      if (holding !== null) {
        this.beginTurn(run);
        run.hold(holding.op, holding.error);
        return true;
      }
    }
    if (!run.hasNews && run.taken === 0 && !run.waitsOutside) return false;
    this.inARow += 1;
    if (this.inARow >= DELIVERIES_IN_A_ROW || --this.turnsToLook <= 0 || this.bodies.hasFinished) {
      this.ready(run);
      return false;
    }
    return this.deliver(run);
  }

  private findHolding(run: Run): { readonly op: ConditionOp; readonly error: unknown } | null {
    this.host.asking = 'a condition';
    try {
      return run.findHolding();
    } finally {
      this.host.asking = null;
    }
  }

  private finish(run: Run): void {
    if (run.isRevived) return;
    const answer = this.recordEnd(run, run.outcome!);
    if (answer === MISMATCH) {
      this.host.mismatch(run, 'end of the function');
      return;
    }
    this.drop(run);
    run.isDead = true;
    run.conditions = null;
    if (run.pendingCount > 0) this.abandonRest(run);
  }

  private recordEnd(run: Run, outcome: Outcome): number {
    const { value } = outcome;
    if (value instanceof Continuation) {
      return this.verbs.continueAsNew(run.slot, value.version, value.timeoutMs, value.input);
    }
    const { status, payload } = this.endOf(run, outcome);
    return this.verbs.finish(run.slot, status, payload);
  }

  /** What is recorded of the end of a function that does not go on as a new run. */
  endOf(run: Run, { hasFailed, value }: Outcome): { readonly status: number; readonly payload: string } {
    let status = hasFailed ? FAILED : COMPLETED;
    let payload: string;
    if (hasFailed) {
      if (run.cancelled !== null && CancelledError.is(value)) status = CANCELLED;
      payload = this.host.encodeFailure(value);
    } else {
      try {
        const place = { kind: 'result', id: run.id, name: '' } as const;
        payload = this.host.record(value, `the result of workflow '${run.code.name}'`, place);
      } catch (error) {
        status = FAILED;
        payload = this.host.encodeFailure(error);
      }
    }
    return { status, payload };
  }

  /** Bodies of steps that nobody waited for do not outlive their run. */
  private abandonRest(run: Run): void {
    const reason = new CancelledError(`workflow ${run.id} has ended`, { reason: undefined });
    for (const op of run.takeAllPending()) if (op instanceof StepOp) this.bodies.abandon(op, reason);
  }

  private stepOf(slot: number, seq: number): StepOp | undefined {
    const op = this.runs.get(slot)?.findPending(seq);
    return op instanceof StepOp ? op : undefined;
  }

  private fail(error: unknown): void {
    this.close();
    this.owner.handleFailure(error);
  }
}

/** What to say of code that has come to rest and waits for nothing that could be delivered (LAW-8). */
function waitsOutside(run: Run): string {
  const last = run.lastUse === null ? '' : `; its last call was ctx.${run.lastUse.message}${atPlace(run.lastUse)}`;
  return `it awaits something that does not come from ctx (a timer, a request, a promise of its own)${last}`;
}
