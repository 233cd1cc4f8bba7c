/**
 * Queries: questions to the code of a run, answered between turns.
 *
 * A handler is called when its run has replayed and is at rest, synchronously and with `ctx` closed; what it answers
 * rests on durable records only (LAW-1).
 */
import { decode } from '../codec.js';
import { DeterminismError } from '../errors.js';
import type { Run } from '../workflow/run.js';
import type { WorkerHost } from './host.js';

/** Someone who asks. */
export interface Query {
  readonly name: string;
  /** Encoded. */
  readonly input: string;
  /** The slot of the run that is asked. @throws when there is no such run, or no code of it here */
  findSlot(): number;
  /** The answer, encoded. Not to be shown before the run's records are durable. */
  answer(text: string, slot: number): void;
  refuse(error: unknown): void;
  /** The run has gone, or got stuck, before it could be asked. */
  miss(): void;
  /** Nothing more is asked of the slot. */
  release(slot: number): void;
}

interface Entry {
  readonly query: Query;
  slot: number;
  run: Run | null;
}

const NO_SLOT = -1;

/** Queries that wait. */
export class Queries {
  private waiting: Entry[] = [];

  constructor(
    private readonly verbs: { replaying(slot: number): number; mismatch(slot: number): string },
    private readonly host: WorkerHost,
  ) {}

  ask(query: Query): void {
    this.waiting.push({ query, slot: NO_SLOT, run: null });
  }

  /** Answers those whose runs are at rest. Call it between turns, with all events fetched. @returns whether any was */
  answerDue(runs: ReadonlyMap<number, Run>): boolean {
    if (this.waiting.length === 0) return false;
    const due = this.waiting;
    this.waiting = due.filter((entry) => !this.tryToAnswer(entry, runs));
    return this.waiting.length < due.length;
  }

  forget(): void {
    const { waiting } = this;
    this.waiting = [];
    for (const { query } of waiting) query.miss();
  }

  /** @returns whether it need not be asked again */
  private tryToAnswer(entry: Entry, runs: ReadonlyMap<number, Run>): boolean {
    const { query } = entry;
    try {
      if (entry.slot === NO_SLOT) entry.slot = query.findSlot();
    } catch (error) {
      query.refuse(error);
      return true;
    }
    const run = runs.get(entry.slot);
    const hasGone =
      run === undefined ? entry.run !== null || this.isStuck(entry.slot) : entry.run !== null && entry.run !== run;
    if (hasGone) {
      query.release(entry.slot);
      query.miss();
      return true;
    }
    const isOver = run?.isRevived === true && run.outcome !== null;
    if (run === undefined || !run.isLaunched || (!isOver && this.verbs.replaying(run.slot) === 1)) {
      entry.run = run ?? null;
      return false;
    }
    this.answer(run, query);
    query.release(entry.slot);
    return true;
  }

  private isStuck(slot: number): boolean {
    return this.verbs.mismatch(slot) !== '';
  }

  private answer(run: Run, query: Query): void {
    const handler = run.queries?.get(query.name);
    if (handler === undefined) {
      const known = run.queries === null ? 'it has none' : `it has ${[...run.queries.keys()].join(', ')}`;
      query.refuse(new TypeError(`workflow ${run.id} has no handler of query '${query.name}'; ${known}`));
      return;
    }
    let text: string;
    this.host.asking = `the handler of query '${query.name}'`;
    try {
      const answer = handler(query.input === '' ? undefined : decode(query.input));
      if (typeof (answer as { then?: unknown } | null | undefined)?.then === 'function') {
        (answer as Promise<unknown>).then(undefined, () => undefined);
        throw new DeterminismError(`the handler of query '${query.name}' of workflow ${run.id} must be synchronous`);
      }
      text = this.host.encode(answer, `the answer to query '${query.name}'`);
    } catch (error) {
      query.refuse(error);
      return;
    } finally {
      this.host.asking = null;
    }
    query.answer(text, run.slot);
  }
}
