/**
 * Updates that are offered to the code of a run: validated between turns, then accepted or refused.
 *
 * A validator is called when its run has replayed, has seen everything and is at rest, synchronously and with `ctx`
 * closed. What it refuses leaves no record; what it lets pass is recorded as the run's next delivery.
 */
import { DeterminismError, UpdateRejectedError } from '../errors.js';
import { LATER } from '../workflow/host.js';
import type { Run } from '../workflow/run.js';
import type { WorkerHost } from './host.js';

/** What offers need of the engine. */
export interface OfferVerbs {
  replaying(slot: number): number;
  acceptUpdate(slot: number, offer: number): number;
  refuseUpdate(slot: number, offer: number, failure: string): number;
}

interface Offer {
  readonly slot: number;
  readonly number: number;
  readonly name: string;
  readonly payload: string;
}

/** Updates that wait for their runs to look at them. */
export class Offers {
  private waiting: Offer[] = [];

  constructor(
    private readonly verbs: OfferVerbs,
    private readonly host: WorkerHost,
  ) {}

  /** @param text name and payload, as the engine writes them */
  add(slot: number, number: number, text: string): void {
    const border = text.indexOf('\u001f');
    this.waiting.push({ slot, number, name: text.slice(0, border), payload: text.slice(border + 1) });
  }

  /** Decides on those whose runs are at rest. Call it between turns, with all events fetched. @returns whether any was */
  decideDue(runs: ReadonlyMap<number, Run>): boolean {
    if (this.waiting.length === 0) return false;
    const due = this.waiting;
    this.waiting = due.filter((offer) => !this.tryToDecide(offer, runs.get(offer.slot)));
    return this.waiting.length < due.length;
  }

  forget(): void {
    this.waiting = [];
  }

  /** @returns whether nothing is left to do here: a run that goes takes its offers with it, the engine has them */
  private tryToDecide(offer: Offer, run: Run | undefined): boolean {
    if (run === undefined || run.isDead) return true;
    if (!run.isLaunched || run.taken > 0 || this.verbs.replaying(run.slot) === 1) return false;
    const refusal = this.validate(run, offer);
    if (refusal !== null) {
      this.verbs.refuseUpdate(offer.slot, offer.number, this.host.encodeFailure(refusal));
      return true;
    }
    return this.verbs.acceptUpdate(offer.slot, offer.number) !== LATER;
  }

  /** @returns why the run does not take it; `null`: it does */
  private validate(run: Run, { name, payload }: Offer): unknown {
    const handler = run.updates?.get(name);
    if (handler === undefined) {
      const known = run.updates === null ? 'it has none' : `it has ${[...run.updates.keys()].join(', ')}`;
      return new TypeError(`workflow ${run.id} has no handler of update '${name}'; ${known}`);
    }
    if (handler.validate === undefined) return null;
    let input: unknown;
    try {
      input = payload === '' ? undefined : run.read('update', name, payload);
    } catch (error) {
      return error;
    }
    this.host.asking = `the validator of update '${name}'`;
    try {
      const { validate } = handler;
      const answer = validate(input) as unknown;
      if (typeof (answer as { then?: unknown } | null | undefined)?.then !== 'function') return null;
      (answer as Promise<unknown>).then(undefined, () => undefined);
      return new DeterminismError(`the validator of update '${name}' of workflow ${run.id} must be synchronous`);
    } catch (error) {
      const message = (error as { message?: unknown } | null | undefined)?.message;
      const why = typeof message === 'string' && message !== '' ? `: ${message}` : '';
      return new UpdateRejectedError(`update '${name}' was refused by workflow ${run.id}${why}`, {
        update: name,
        cause: error,
      });
    } finally {
      this.host.asking = null;
    }
  }
}
