/**
 * The bodies of steps: which may run, which run, and what is recorded of their outcomes.
 *
 * A body runs once its gate is durable (LAW-2), between turns; its outcome is recorded once (LAW-7), between turns too.
 * It does not know when turns are: the pump calls {@link Bodies.startDue} and {@link Bodies.record}.
 */
import { jsonOf, NOT_JSON, passThrough } from '../codec.js';
import type { PayloadPlace, Payloads } from '../codec/payloads.js';
import { CodecError, NonRetryableError, StepError, StepInterruptedError, TimeoutError } from '../errors.js';
import { shown } from '../options.js';
import type { StepOp } from '../workflow/operations.js';
import type { Run } from '../workflow/run.js';
import { Attempt, CALLED, OVER, PENDING, type HeartbeatSink } from './attempt.js';
import { marked } from './contexts.js';
import { StepResults, type ResultOwner, type ResultVerbs } from './results.js';
import { afterFailure, FINAL, PAUSE } from './retry.js';

/** What bodies need of the engine. */
export interface BodyVerbs extends ResultVerbs {
  /** A body is about to be called: in a worker, whose thread is watched. */
  entering?(slot: number): void;
  fail(slot: number, seq: number, lease: number, failure: string, retryDelayMs: number): number;
  heartbeat(slot: number, seq: number, lease: number, payload: string): void;
  armAttempt(slot: number, seq: number, lease: number, timeoutMs: number, heartbeatMs: number): void;
}

/** What bodies need of whoever has turns. */
export interface BodyOwner extends ResultOwner {
  readonly isDev: boolean;
  /** The attempt whose body is being called. */
  body: Attempt | null;
  readonly payloads: Payloads;
  record(value: unknown, what: string, place: PayloadPlace): string;
  /** What a run needs cannot be read here. */
  unreadable(run: Run, error: unknown): void;
  encodeFailure(error: unknown): string;
  readonly nowMs: () => number;
  readonly random: () => number;
  warn(run: Run, message: string, error?: unknown): void;
  /** What runs in place of a step's function, in tests. */
  replacement(step: StepOp): ((attempt: number) => unknown) | undefined;
  /** The engine may have events. */
  wake(): void;
  /** An outcome waits to be recorded. */
  wakeLater(): void;
}

/** So many bodies start one after the other before anything else may happen. */
const BATCH_MAX = 256;

/** Bodies of one thread. */
export class Bodies implements HeartbeatSink {
  /** Bodies whose promises are pending and whose outcomes count. */
  running = 0;
  /** Outcomes that are not recorded yet. */
  private finished: Attempt[] = [];
  private aborting: { readonly attempt: Attempt; readonly reason: unknown }[] = [];
  private gated: (StepOp | undefined)[] = [];
  private head = 0;
  private isHeld = false;
  private readonly results: StepResults;

  constructor(
    private readonly verbs: BodyVerbs,
    private readonly owner: BodyOwner,
  ) {
    this.results = new StepResults(verbs, owner, (attempt, error) => this.refuse(attempt, error));
  }

  get hasFinished(): boolean {
    return this.finished.length > 0;
  }

  /** A body waits for its gate. */
  gate(step: StepOp): void {
    this.gated.push(step);
  }

  /** Starts no more bodies. */
  hold(): void {
    this.isHeld = true;
  }

  /** Undoes {@link hold}. */
  release(): void {
    this.isHeld = false;
  }

  /** Starts bodies whose gates are durable. @returns whether any started */
  startDue(durable: number): boolean {
    if (this.isHeld) return false;
    const { gated } = this;
    let started = 0;
    while (this.head < gated.length && started < BATCH_MAX) {
      const step = gated[this.head]!;
      if (step.gate > durable) break;
      gated[this.head++] = undefined;
      if (step.isClosed) continue;
      started += 1;
      this.start(step, 1, 1, '');
    }
    if (this.head === gated.length) {
      this.gated = [];
      this.head = 0;
    } else if (this.head > 4096) {
      this.gated = gated.slice(this.head);
      this.head = 0;
    }
    return started > 0;
  }

  /** Calls the body of a step. Its gate is durable. */
  start(step: StepOp, number: number, lease: number, heartbeat: string): void {
    const attempt = new Attempt(this, step, number, lease, heartbeat);
    step.attempt = attempt;
    const { policy, run } = step;
    if (policy.timeoutMs >= 0 || policy.heartbeatMs >= 0) {
      this.verbs.armAttempt(run.slot, step.seq, lease, policy.timeoutMs, policy.heartbeatMs);
    }
    if (this.verbs.entering !== undefined) this.verbs.entering(run.slot);
    let returned: unknown;
    let isPending: boolean;
    this.owner.body = attempt;
    try {
      returned = this.call(attempt);
      isPending = isThenable(returned);
    } catch (error) {
      this.finish(attempt, true, error);
      return;
    } finally {
      this.owner.body = null;
    }
    if (isPending) this.await(attempt, returned as PromiseLike<unknown>);
    else this.finish(attempt, false, returned);
  }

  /** An attempt after the first, or the first one that a lost process may have begun. */
  startAgain(step: StepOp, number: number, lease: number, wasInterrupted: boolean, heartbeat: string): void {
    if (step.isClosed || this.isHeld) return;
    if (!wasInterrupted && number <= step.policy.retry.maxAttempts) {
      this.start(step, number, lease, heartbeat);
      return;
    }
    const cause = new StepInterruptedError(
      `step '${step.name}' of workflow ${step.run.id} was interrupted: its process ended while it ran`,
      { step: step.name },
    );
    if (wasInterrupted) this.recordFinal(step, lease, cause);
    else this.failForGood(step, lease, number - 1, cause);
  }

  /** A timer of an attempt ran out. */
  timeOut(step: StepOp, lease: number, isHeartbeat: boolean): void {
    const attempt = step.attempt as Attempt | null;
    if (attempt === null || Attempt.leaseOf(attempt) !== lease || attempt.state === OVER) return;
    const limit = isHeartbeat ? step.policy.heartbeatMs : step.policy.timeoutMs;
    const error = new TimeoutError(
      isHeartbeat
        ? `attempt ${attempt.attempt} of step '${step.name}' gave no heartbeat for ${limit} ms`
        : `attempt ${attempt.attempt} of step '${step.name}' took longer than ${limit} ms`,
      { of: isHeartbeat ? 'heartbeat' : 'attempt' },
    );
    this.lose(attempt, error);
    this.recordFailure(attempt, error);
  }

  /** Records outcomes, in the order in which bodies ended. */
  record(): void {
    const { finished } = this;
    this.finished = [];
    for (const attempt of finished) {
      if (attempt.state === OVER || attempt.step.isClosed) continue;
      attempt.state = OVER;
      if (attempt.hasFailed) {
        this.results.record();
        this.recordFailure(attempt, attempt.outcome);
      } else {
        this.recordResult(attempt);
      }
    }
    this.results.record();
  }

  /** The outcome of a step does not matter any more. Its signal aborts between turns, since code of the body follows. */
  abandon(step: StepOp, reason: unknown): void {
    step.isClosed = true;
    const attempt = step.attempt as Attempt | null;
    if (attempt === null || attempt.state === OVER) return;
    this.stopCounting(attempt);
    this.aborting.push({ attempt, reason });
  }

  /** The outcome of an attempt counts no more; its signal aborts. */
  lose(attempt: Attempt, reason: unknown): void {
    if (attempt.state === OVER) return;
    this.stopCounting(attempt);
    attempt.abort(reason);
  }

  /** Aborts the signals of bodies that count no more. @returns whether there were any */
  abortDue(): boolean {
    if (this.aborting.length === 0) return false;
    const due = this.aborting;
    this.aborting = [];
    for (const { attempt, reason } of due) attempt.abort(reason);
    return true;
  }

  /** Drops everything that waits; what runs goes on and counts no more. */
  forget(): void {
    this.gated = [];
    this.head = 0;
    this.finished = [];
    this.aborting = [];
  }

  heartbeat(attempt: Attempt, details: unknown): void {
    const { run, seq, name } = attempt.step;
    let text = '';
    try {
      if (details !== undefined) {
        const place = { kind: 'heartbeat', id: run.id, name: '' } as const;
        text = this.owner.record(details, `the heartbeat of step '${name}'`, place);
      }
    } catch (error) {
      this.owner.warn(run, `a heartbeat of step '${name}' carries what cannot be recorded`, error);
    }
    this.verbs.heartbeat(run.slot, seq, Attempt.leaseOf(attempt), text);
    this.owner.wake();
  }

  private call(attempt: Attempt): unknown {
    const { step } = attempt;
    const replacement = this.owner.replacement(step);
    const scope = step.scope!;
    if (replacement !== undefined) return scope.runInAsyncScope(replacement, undefined, attempt.attempt);
    if (this.owner.isDev) return scope.runInAsyncScope(marked, undefined, attempt, step.body, attempt);
    return scope.runInAsyncScope(step.body, undefined, attempt);
  }

  private await(attempt: Attempt, returned: PromiseLike<unknown>): void {
    this.running += 1;
    attempt.state = PENDING;
    returned.then(
      (value) => this.ended(attempt, false, value),
      (error: unknown) => this.ended(attempt, true, error),
    );
  }

  private ended(attempt: Attempt, hasFailed: boolean, outcome: unknown): void {
    if (attempt.state !== PENDING) return;
    attempt.state = CALLED;
    this.running -= 1;
    this.finish(attempt, hasFailed, outcome);
  }

  private stopCounting(attempt: Attempt): void {
    if (attempt.state === PENDING) this.running -= 1;
    attempt.state = OVER;
  }

  private finish(attempt: Attempt, hasFailed: boolean, outcome: unknown): void {
    attempt.hasFailed = hasFailed;
    attempt.outcome = outcome;
    this.finished.push(attempt);
    this.owner.wakeLater();
  }

  private recordResult(attempt: Attempt): void {
    try {
      const json = jsonOf(attempt.outcome);
      if (json !== NOT_JSON && this.owner.payloads.isPlain) {
        this.results.add(attempt, json);
        return;
      }
      const { text, value } = passThrough(attempt.outcome);
      this.results.record();
      this.results.recordOne(attempt, this.sealed(attempt, text), value);
    } catch (error) {
      this.results.record();
      this.refuse(attempt, error);
    }
  }

  private sealed({ step: { run, name } }: Attempt, text: string): string {
    const { payloads } = this.owner;
    if (payloads.isPlain) return text;
    return payloads.seal(text, `the result of step '${name}'`, { kind: 'step', id: run.id, name });
  }

  /** A result that cannot be recorded: its effect is done, another attempt would only do it again. */
  private refuse(attempt: Attempt, error: unknown): void {
    const { step } = attempt;
    const message = `the result of step '${step.name}' cannot be recorded: ${messageOf(error)}`;
    const cause = new NonRetryableError(message, { cause: error });
    this.failForGood(step, Attempt.leaseOf(attempt), attempt.attempt, cause);
  }

  private recordFailure(attempt: Attempt, error: unknown): void {
    const { step } = attempt;
    const { run, policy } = step;
    if (CodecError.is(error)) {
      // Nothing is recorded of it: with the key it is the same attempt that goes on.
      this.owner.unreadable(run, error);
      return;
    }
    const delay = this.decide(step, error, attempt.attempt);
    if (delay === FINAL) {
      this.failForGood(step, Attempt.leaseOf(attempt), attempt.attempt, error);
      return;
    }
    (step.failures ??= []).push(error);
    this.verbs.fail(run.slot, step.seq, Attempt.leaseOf(attempt), this.owner.encodeFailure(error), delay);
    // Nothing is delivered, but its journal is to be looked at: a run that waits has seen all of it.
    this.owner.ready(run);
    if (delay === PAUSE) {
      this.owner.warn(
        run,
        `step '${step.name}' of workflow ${run.id} failed ${attempt.attempt} of ${policy.retry.maxAttempts} times; ` +
          `the run is paused until it is resumed`,
        error,
      );
    }
  }

  private decide(step: StepOp, error: unknown, attempt: number): number {
    try {
      return afterFailure(step.policy.retry, error, attempt, this.owner.nowMs(), this.owner.random);
    } catch (broken) {
      this.owner.warn(step.run, `the retry options of step '${step.name}' threw; it is not tried again`, broken);
      return FINAL;
    }
  }

  /** No attempt follows. @param attempts how many were made */
  private failForGood(step: StepOp, lease: number, attempts: number, cause: unknown): void {
    const times = attempts === 1 ? '1 attempt' : `${attempts} attempts`;
    const error = new StepError(`step '${step.name}' failed after ${times}: ${messageOf(cause)}`, {
      step: step.name,
      attempts,
      history: step.failures ?? [],
      cause,
    });
    this.recordFinal(step, lease, error);
  }

  private recordFinal(step: StepOp, lease: number, error: unknown): void {
    const answer = this.verbs.fail(step.run.slot, step.seq, lease, this.owner.encodeFailure(error), FINAL);
    if (answer >= 0) this.owner.ready(step.run);
  }
}

function messageOf(error: unknown): string {
  const message = (error as { message?: unknown } | null | undefined)?.message;
  if (typeof message === 'string') return message;
  return typeof error === 'string' ? error : shown(error);
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
