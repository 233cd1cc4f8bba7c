/**
 * Chance that a replay repeats: streams of numbers that follow from the run's key root and a name.
 *
 * Not for secrets: whoever knows the run knows the numbers.
 */

/** A stream of numbers (sfc32, seeded by a 128-bit hash of a text). */
export class RandomStream {
  private a: number;
  private b: number;
  private c: number;
  private counter: number;

  constructor(seed: string) {
    let h1 = 1779033703;
    let h2 = 3144134277;
    let h3 = 1013904242;
    let h4 = 2773480762;
    for (let index = 0; index < seed.length; index += 1) {
      const unit = seed.charCodeAt(index);
      h1 = h2 ^ Math.imul(h1 ^ unit, 597399067);
      h2 = h3 ^ Math.imul(h2 ^ unit, 2869860233);
      h3 = h4 ^ Math.imul(h3 ^ unit, 951274213);
      h4 = h1 ^ Math.imul(h4 ^ unit, 2716044179);
    }
    this.a = Math.imul(h3 ^ (h1 >>> 18), 597399067) | 0;
    this.b = Math.imul(h4 ^ (h2 >>> 22), 2869860233) | 0;
    this.c = Math.imul(h1 ^ (h3 >>> 17), 951274213) | 0;
    this.counter = Math.imul(h2 ^ (h4 >>> 19), 2716044179) | 0;
    for (let round = 0; round < 15; round += 1) this.nextWord();
  }

  /** 32 bits. */
  nextWord(): number {
    const sum = (((this.a + this.b) | 0) + this.counter) | 0;
    this.counter = (this.counter + 1) | 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) | 0;
    this.c = (this.c << 21) | (this.c >>> 11);
    this.c = (this.c + sum) | 0;
    return sum >>> 0;
  }

  /** A number in [0, 1) with 53 bits. */
  nextNumber(): number {
    const high = this.nextWord() >>> 5;
    const low = this.nextWord() >>> 6;
    return (high * 67108864 + low) / 9007199254740992;
  }

  /** A UUID of version 4. */
  nextUuid(): string {
    const a = hex(this.nextWord());
    const b = hex(this.nextWord());
    const c = hex(((this.nextWord() & 0x3fffffff) | 0x80000000) >>> 0);
    const d = hex(this.nextWord());
    return `${a}-${b.slice(0, 4)}-4${b.slice(5)}-${c.slice(0, 4)}-${c.slice(4)}${d}`;
  }
}

function hex(word: number): string {
  return word.toString(16).padStart(8, '0');
}
