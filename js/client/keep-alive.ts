/**
 * Whether the process stays alive because of an engine.
 *
 * An engine with definitions does until it is closed, as a server does; a pure client only while it waits for an
 * answer; an engine in memory only while something is under way.
 */
import type { Primitives } from '../native.js';

/** Longest delay of a timer. It never fires to any effect. */
const FAR_AWAY_MS = 0x7fffffff;

interface Timer {
  ref(): void;
  unref(): void;
}

/** Holds the process. */
export class KeepAlive {
  private readonly timer: Timer;
  private isWanted = true;
  private isBusy = false;
  private isHolding = true;

  constructor(
    private readonly primitives: Primitives,
    /** It holds the process even while nothing is under way. */
    private readonly isServer: boolean,
  ) {
    this.timer = primitives.setInterval(() => undefined, FAR_AWAY_MS) as Timer;
    this.update();
  }

  /** Something is under way, or nothing is. */
  setBusy(isBusy: boolean): void {
    this.isBusy = isBusy;
    this.update();
  }

  /** As the user wishes: `unref` lets the process end whatever is under way. */
  setWanted(isWanted: boolean): void {
    this.isWanted = isWanted;
    this.update();
  }

  close(): void {
    this.primitives.clearInterval(this.timer);
  }

  private update(): void {
    const holds = this.isWanted && (this.isServer || this.isBusy);
    if (holds === this.isHolding) return;
    this.isHolding = holds;
    if (holds) this.timer.ref();
    else this.timer.unref();
  }
}
