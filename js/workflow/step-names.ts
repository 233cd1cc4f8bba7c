/**
 * Which call of its name a step is, for its idempotency key (LAW-7): the n-th call of that name, from 1.
 *
 * Counting is put off until a key is asked for: most steps never do. Names go into a short list first and into a map of
 * counts once a run has many steps, so that long runs cost neither a scan nor a name a step.
 */

const LISTED_MAX = 64;

/** The names of a run's steps, in call order. */
export class StepNames {
  /** The first name by itself: most runs that wait have one step behind them. */
  private first: string | null = null;
  private names: string[] | null = null;
  private counts: Map<string, number> | null = null;

  /** Notes a call. @returns a number for {@link nth}: a place in the list as `-1 - place`, or the count itself */
  add(name: string): number {
    if (this.first === null) {
      this.first = name;
      return -1;
    }
    if (this.counts === null) {
      this.names ??= [this.first];
      if (this.names.length < LISTED_MAX) return -this.names.push(name);
      this.counts = new Map();
      for (const listed of this.names) this.counts.set(listed, (this.counts.get(listed) ?? 0) + 1);
    }
    const count = (this.counts.get(name) ?? 0) + 1;
    this.counts.set(name, count);
    return count;
  }

  /** Which call of its name it was, from 1. @param noted what {@link add} answered */
  nth(noted: number): number {
    if (noted > 0) return noted;
    if (noted === -1) return 1;
    const names = this.names!;
    const place = -noted - 1;
    const name = names[place];
    let count = 0;
    for (let index = 0; index <= place; index += 1) if (names[index] === name) count += 1;
    return count;
  }
}
