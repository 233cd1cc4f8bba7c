/**
 * Queues that get their slots from outside: asks those who provide them, and says what there is.
 */
import { fromNative } from '../errors.js';
import { shown } from '../options.js';
import type { Scaler } from '../scheduler/scaling.js';
import { inRoot } from '../worker/contexts.js';

/** What is asked of the engine. */
export interface Reports {
  readonly reportCapacity: (queue: string, slots: number) => void;
  readonly warn: (code: string, message: string, error?: unknown) => void;
  /** Whether there is still somebody to tell. */
  readonly isOpen: () => boolean;
}

/** Who provides slots. Asks are numbered: only an answer to a newer one than the last that counted counts. */
export class Scalers {
  readonly #asked = new Map<string, number>();
  readonly #counted = new Map<string, number>();

  constructor(
    private readonly scalers: ReadonlyMap<string, Scaler>,
    private readonly reports: Reports,
  ) {}

  /** Asks who provides the slots of a queue. */
  ask(queue: string, desired: number): void {
    const scaler = this.scalers.get(queue);
    if (scaler === undefined) return;
    const number = (this.#asked.get(queue) ?? 0) + 1;
    this.#asked.set(queue, number);
    void this.#answered(queue, number, () => inRoot(scaler, queue, desired));
  }

  /** Slots that are there whatever was asked: answers to what was asked until now come too late. */
  report(queue: string, slots: number): void {
    this.#counted.set(queue, this.#asked.get(queue) ?? 0);
    this.reports.reportCapacity(queue, slots);
  }

  async #answered(queue: string, number: number, answer: () => unknown): Promise<void> {
    try {
      const slots = await answer();
      if (slots === undefined || !this.reports.isOpen()) return;
      if (typeof slots !== 'number' || !Number.isInteger(slots) || slots < 0 || slots > 0xffffffff) {
        throw new RangeError(`it must answer a whole number of slots or undefined, not ${shown(slots)}`);
      }
      if (number <= (this.#counted.get(queue) ?? 0)) return;
      this.#counted.set(queue, number);
      this.reports.reportCapacity(queue, slots);
    } catch (error) {
      this.reports.warn('SCALER', `the scaler of queue '${queue}' failed: ${(error as Error)?.message}`, error);
    }
  }
}

/** Says what there is. @throws the error of the engine */
export function reportTo(
  native: { reportCapacity: (queue: string, slots: number) => void },
  queue: string,
  slots: number,
): void {
  try {
    native.reportCapacity(queue, slots);
  } catch (error) {
    throw fromNative(error);
  }
}
