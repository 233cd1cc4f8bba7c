/**
 * Runs that have deliveries, in the order in which they got them.
 */
import type { Run } from '../workflow/run.js';

/** Places in front that are given up at once. */
const WASTE_MAX = 4096;

/** First in, first out; each run is in it once. */
export class ReadyQueue {
  private runs: (Run | undefined)[] = [undefined];
  /** There is always a place in front, for a run whose turn is put off. */
  private head = 1;

  /** Adds a run, unless it is there. */
  push(run: Run): void {
    if (run.isReady || run.isDead) return;
    run.isReady = true;
    this.runs.push(run);
  }

  /** Takes the first one. */
  shift(): Run | undefined {
    const run = this.runs[this.head];
    if (run === undefined) return undefined;
    this.runs[this.head] = undefined;
    this.head += 1;
    run.isReady = false;
    if (this.head === this.runs.length) {
      this.runs.length = 1;
      this.head = 1;
    } else if (this.head > WASTE_MAX) {
      this.runs = this.runs.slice(this.head - 1);
      this.head = 1;
    }
    return run;
  }

  /** Puts back in front what {@link shift} gave last. */
  unshift(run: Run): void {
    run.isReady = true;
    this.head -= 1;
    this.runs[this.head] = run;
    if (this.head === 0) {
      this.runs.unshift(undefined);
      this.head = 1;
    }
  }

  clear(): void {
    this.runs = [undefined];
    this.head = 1;
  }
}
