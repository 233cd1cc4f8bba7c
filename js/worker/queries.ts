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
  readonly slot: number;
  readonly name: string;
  /** Encoded. */
  readonly input: string;
  /** The answer, encoded. Not to be shown before the run's records are durable. */
  answer(text: string): void;
  refuse(error: unknown): void;
  /** The run has gone before it could be asked. */
  miss(): void;
}

/** Queries that wait. */
export class Queries {
  private waiting: { readonly query: Query; run: Run | null }[] = [];

  constructor(
    private readonly verbs: { replaying(slot: number): number },
    private readonly host: WorkerHost,
  ) {}

  ask(query: Query): void {
    this.waiting.push({ query, run: null });
  }

  /** Answers those whose runs are at rest. Call it between turns. @returns whether any was answered */
  answerDue(runs: ReadonlyMap<number, Run>): boolean {
    if (this.waiting.length === 0) return false;
    const due = this.waiting;
    this.waiting = [];
    let hasAnswered = false;
    for (const entry of due) {
      const run = runs.get(entry.query.slot);
      if (run === undefined ? entry.run !== null : entry.run !== null && entry.run !== run) {
        entry.query.miss();
      } else if (run === undefined || !run.isLaunched || this.verbs.replaying(run.slot) === 1) {
        entry.run = run ?? null;
        this.waiting.push(entry);
        continue;
      } else {
        this.answer(run, entry.query);
      }
      hasAnswered = true;
    }
    return hasAnswered;
  }

  forget(): void {
    const { waiting } = this;
    this.waiting = [];
    for (const { query } of waiting) query.miss();
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
    query.answer(text);
  }
}
