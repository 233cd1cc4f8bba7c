/**
 * What the keys, the chance and the derived ids of a run follow from: one key root and its id, unless it begins with copies
 * of another run's records. Then the operations before a border follow from what they did there, so that they replay.
 */

/** What an operation's keys and ids are made of. */
export interface Origin {
  readonly keyRoot: string;
  readonly id: string;
}

/** Between the fields of `keyRoots`. */
const SEPARATOR = '\u001e';

/** Ids of the runs that a run comes from, beside its own. @param keyRoots as {@link originOf} gets them */
export function idsOf(keyRoots: string): string[] {
  return keyRoots.split(SEPARATOR).filter((_, index) => index > 0 && index % 3 === 0);
}

/**
 * @param id of the run
 * @param keyRoots its key root; then, for each border in order, the first operation behind it, the key root from there on,
 *   the id before it
 */
export function originOf(id: string, keyRoots: string, seq: number): Origin {
  if (!keyRoots.includes(SEPARATOR)) return { keyRoot: keyRoots, id };
  const [first, ...fields] = keyRoots.split(SEPARATOR) as [string, ...string[]];
  let keyRoot = first;
  let idBefore: string | undefined;
  for (let index = 0; index < fields.length; index += 3) {
    if (Number(fields[index]) <= seq) keyRoot = fields[index + 1]!;
    else idBefore ??= fields[index + 2]!;
  }
  return { keyRoot, id: idBefore ?? id };
}
