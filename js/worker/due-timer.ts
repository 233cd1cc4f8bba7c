/**
 * One timer of the event loop, for what falls due next in the engine. An idle engine makes no wake-ups.
 */
import type { Primitives } from '../native.js';

/** It is looked at again after this, since clocks may jump. */
const WAIT_MAX_MS = 60_000;

/** A timer that is set anew only when it would fire too late. It does not hold the process. */
export class DueTimer {
  private timer: unknown = undefined;
  private atMs = 0;

  constructor(
    private readonly primitives: Primitives,
    private readonly onDue: () => void,
  ) {}

  /** @param dueMs from now; below 0: nothing falls due */
  set(dueMs: number): void {
    if (dueMs < 0) {
      this.clear();
      return;
    }
    const waitMs = Math.min(Math.ceil(dueMs), WAIT_MAX_MS);
    const atMs = this.primitives.monotonicMs() + waitMs;
    // One that fires too early only looks.
    if (this.timer !== undefined && this.atMs <= atMs + 1) return;
    this.clear();
    this.atMs = atMs;
    this.timer = this.primitives.setTimeout(this.fire, waitMs);
    (this.timer as { unref?: () => void }).unref?.();
  }

  clear(): void {
    if (this.timer === undefined) return;
    this.primitives.clearTimeout(this.timer);
    this.timer = undefined;
  }

  private readonly fire = (): void => {
    this.timer = undefined;
    this.onDue();
  };
}
