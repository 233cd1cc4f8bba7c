/**
 * One attempt of a step: what its function gets, and whether its outcome still counts.
 */
import { decode } from '../codec.js';
import { infoOf, type RunInfo } from '../workflow/context.js';
import type { StepOp } from '../workflow/operations.js';

/** Where heartbeats go. */
export interface HeartbeatSink {
  heartbeat(attempt: Attempt, details: unknown): void;
}

/** What the function of a step gets. */
export class Attempt {
  /** Its outcome counts no more: it is there, or came too late. */
  isOver = false;
  /** Its promise is pending, and its outcome counts. */
  isPending = false;
  hasFailed = false;
  outcome: unknown = undefined;
  private controller: AbortController | null = null;
  private abortReason: unknown = undefined;
  private isAborted = false;

  constructor(
    private readonly sink: HeartbeatSink,
    /** The step. */
    readonly step: StepOp,
    /** From 1. */
    readonly attempt: number,
    private readonly details: string,
  ) {}

  /** The same for all attempts, over crashes and replays. */
  get idempotencyKey(): string {
    const { run, name, nth } = this.step;
    return run.host.idempotencyKey(run, name, run.steps!.nth(nth));
  }

  /** Aborts on timeout, cancellation and shutdown. */
  get signal(): AbortSignal {
    if (this.controller === null) {
      this.controller = new AbortController();
      if (this.isAborted) this.controller.abort(this.abortReason);
    }
    return this.controller.signal;
  }

  /** What the last heartbeat of an earlier attempt said. */
  get lastHeartbeat(): unknown {
    return this.details === '' ? undefined : decode(this.details);
  }

  /** About the run. */
  get info(): RunInfo {
    return infoOf(this.step.run, this.attempt);
  }

  /** Says that the attempt is alive. Never blocks, never throws. */
  heartbeat(details?: unknown): void {
    if (!this.isOver) this.sink.heartbeat(this, details);
  }

  /** Aborts the signal, whoever asks for it now or later. */
  abort(reason: unknown): void {
    if (this.isAborted) return;
    this.isAborted = true;
    this.abortReason = reason;
    this.controller?.abort(reason);
  }
}
