/**
 * One attempt of a step: what its function gets, and whether its outcome still counts.
 */
import { infoOf, type RunInfo } from '../workflow/context.js';
import type { StepOp } from '../workflow/operations.js';

/** Its body is being called, or has ended and waits to be recorded. */
export const CALLED = 0;
/** The promise of its body is pending. */
export const PENDING = 1;
/** Its outcome counts no more: it is recorded, or came too late. */
export const OVER = 2;

/** What few attempts have. */
interface Rare {
  controller?: AbortController;
  abortReason?: unknown;
  isAborted?: boolean;
  /** What the last heartbeat of an earlier attempt said, encoded. */
  heartbeat?: string;
  /** How far the lease is ahead of the attempt's number: after a pause. */
  pastLeases?: number;
}

/** Where heartbeats go. */
export interface HeartbeatSink {
  heartbeat(attempt: Attempt, details: unknown): void;
}

/** What the function of a step gets. There is one a step, so it is kept small. */
export class Attempt {
  state: typeof CALLED | typeof PENDING | typeof OVER = CALLED;
  hasFailed = false;
  outcome: unknown = undefined;
  private rare: Rare | null = null;

  constructor(
    private readonly sink: HeartbeatSink,
    /** The step. */
    readonly step: StepOp,
    /** From 1; after a pause from 1 again. */
    readonly attempt: number,
    lease: number,
    heartbeat: string,
  ) {
    if (heartbeat !== '') this.rare = { heartbeat };
    if (lease !== attempt) (this.rare ??= {}).pastLeases = lease - attempt;
  }

  /** What its outcome is told under: no other attempt of the step has it (LAW-7). */
  static leaseOf(attempt: Attempt): number {
    return attempt.attempt + (attempt.rare?.pastLeases ?? 0);
  }

  /** The same for all attempts, over crashes and replays. */
  get idempotencyKey(): string {
    const { run, seq, name, nth } = this.step;
    return run.host.idempotencyKey(run, seq, name, run.steps!.nth(nth));
  }

  /** Aborts on timeout, cancellation and shutdown. */
  get signal(): AbortSignal {
    const rare = (this.rare ??= {});
    if (rare.controller === undefined) {
      rare.controller = new AbortController();
      if (rare.isAborted === true) rare.controller.abort(rare.abortReason);
    }
    return rare.controller.signal;
  }

  /** What the last heartbeat of an earlier attempt said. */
  get lastHeartbeat(): unknown {
    const text = this.rare?.heartbeat;
    return text === undefined ? undefined : this.step.run.read('heartbeat', '', text);
  }

  /** About the run. */
  get info(): RunInfo {
    return infoOf(this.step.run, this.attempt);
  }

  /** Says that the attempt is alive. Never blocks, never throws. */
  heartbeat(details?: unknown): void {
    if (this.state !== OVER) this.sink.heartbeat(this, details);
  }

  /** Aborts the signal, whoever asks for it now or later. */
  abort(reason: unknown): void {
    const rare = (this.rare ??= {});
    if (rare.isAborted === true) return;
    rare.isAborted = true;
    rare.abortReason = reason;
    rare.controller?.abort(reason);
  }
}
