/**
 * Results of steps as a replay reads them: many at a time, in the order of their records.
 */

/** A result that is read when it is its turn. */
export class Unread {
  constructor(readonly text: string) {}
}

/** Some results of one run. */
export class ReplayedResults {
  private next = 1;
  private readonly seqs: readonly number[];

  /** @param list the numbers of the steps, and then their results */
  constructor(private readonly list: readonly unknown[]) {
    this.seqs = list[0] as readonly number[];
  }

  /** Goes on to the result of a step. Those of steps that nobody waits for are passed over. */
  find(seq: number): boolean {
    while (this.next < this.list.length && this.seqs[this.next - 1] !== seq) this.next += 1;
    return this.next < this.list.length;
  }

  /** Takes what {@link find} found. */
  take(): unknown {
    const value = this.list[this.next];
    this.next += 1;
    return value;
  }
}
