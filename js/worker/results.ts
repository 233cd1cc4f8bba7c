/**
 * Results of steps on their way to the engine: those that are there at the same time cross as one text.
 *
 * It does not know when results are recorded: {@link Bodies} collects them and says when.
 */
import { valueOf } from '../codec.js';
import type { StepOp } from '../workflow/operations.js';
import type { Run } from '../workflow/run.js';
import { Attempt } from './attempt.js';

/** What it needs of the engine. */
export interface ResultVerbs {
  complete(slot: number, seq: number, lease: number, payload: string, takes: number): number;
  /**
   * The same for many. @param rows slot, seq, lease, takes; the answer takes the place of the slot: 0 recorded, 1 taken,
   * 2 nothing has changed @param payloads a JSON array
   */
  completeAll(rows: Uint32Array, count: number, payloads: string): number;
}

/** What it needs of whoever runs bodies. */
export interface ResultOwner {
  /** @throws RangeError naming the size and its limit */
  checkSize(text: string, what: string): void;
  /** Whether a text is surely within the limit of a value. */
  isSmall(text: string): boolean;
  /** A run has a delivery. */
  ready(run: Run): void;
  /** A run has one delivery, which was taken. */
  readyTaken(run: Run): void;
}

/** Answers: the result is the run's next delivery, and was taken; or the attempt counts no more. */
const TAKEN = 1;
const DEAD = 2;

const NUMBERS_PER_ROW = 4;
/** So many cross at a time. */
const RESULTS_MAX = 256;

/** Results that wait to be recorded. */
export class StepResults {
  private readonly rows = new Uint32Array(NUMBERS_PER_ROW * RESULTS_MAX);
  private readonly attempts: Attempt[] = [];
  private readonly jsons: unknown[] = [];

  /** @param refuse is told of results that cannot be recorded */
  constructor(
    private readonly verbs: ResultVerbs,
    private readonly owner: ResultOwner,
    private readonly refuse: (attempt: Attempt, error: unknown) => void,
  ) {}

  /** Adds a result. @param json what its text is made of, see {@link jsonOf} */
  add(attempt: Attempt, json: unknown): void {
    this.attempts.push(attempt);
    if (this.jsons.push(json) === RESULTS_MAX) this.record();
  }

  /** Records what was added, in that order. */
  record(): void {
    const { attempts, jsons } = this;
    if (attempts.length === 0) return;
    const texts = attempts.length === 1 ? '' : JSON.stringify(jsons);
    if (attempts.length > 1 && this.owner.isSmall(texts)) {
      this.recordAll(texts);
    } else {
      for (const [index, attempt] of attempts.entries()) {
        this.recordOne(attempt, JSON.stringify(jsons[index]), valueOf(jsons[index]));
      }
    }
    attempts.length = 0;
    jsons.length = 0;
  }

  /** Records one result, before what is added later. @param value what the code gets (LAW-6) */
  recordOne(attempt: Attempt, text: string, value: unknown): void {
    const { run, seq, name } = attempt.step;
    try {
      this.owner.checkSize(text, `the result of step '${name}'`);
    } catch (error) {
      this.refuse(attempt, error);
      return;
    }
    const takes = run.taken === 0 ? 1 : 0;
    const answer = this.verbs.complete(run.slot, seq, Attempt.leaseOf(attempt), text, takes);
    if (answer >= 0) this.recorded(attempt.step, value, answer === TAKEN);
  }

  private recordAll(texts: string): void {
    const { attempts, rows } = this;
    const count = attempts.length;
    for (let index = 0; index < count; index += 1) {
      const attempt = attempts[index]!;
      const { run, seq } = attempt.step;
      const at = NUMBERS_PER_ROW * index;
      rows[at] = run.slot;
      rows[at + 1] = seq;
      rows[at + 2] = Attempt.leaseOf(attempt);
      rows[at + 3] = run.taken === 0 ? 1 : 0;
      // As far as those behind it are concerned: a run takes one at a time.
      if (run.taken === 0) run.taken = seq;
    }
    this.verbs.completeAll(rows, count, texts);
    for (let index = 0; index < count; index += 1) {
      const { step } = attempts[index]!;
      const answer = rows[NUMBERS_PER_ROW * index]!;
      if (answer !== TAKEN && step.run.taken === step.seq) step.run.taken = 0;
      if (answer !== DEAD) this.recorded(step, valueOf(this.jsons[index]), answer === TAKEN);
    }
  }

  private recorded(step: StepOp, value: unknown, isTaken: boolean): void {
    const { run } = step;
    step.result = value;
    if (isTaken) {
      run.taken = step.seq;
      this.owner.readyTaken(run);
    } else {
      this.owner.ready(run);
    }
  }
}
