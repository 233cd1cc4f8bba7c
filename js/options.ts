/**
 * Options that several verbs share: which ones there are, and the numbers that stand for policies.
 */

const REUSE_POLICIES = ['allowDuplicate', 'allowDuplicateFailedOnly', 'rejectDuplicate'];
const CONFLICT_POLICIES = [undefined, 'fail', 'useExisting', 'terminateExisting'];

/** An option that would be ignored is worse than one that is refused. @throws TypeError */
export function knownOptions(options: unknown, names: readonly string[], verb: string): void {
  if (options === undefined) return;
  if (typeof options !== 'object' || options === null) throw new TypeError(`the options of ${verb} must be an object`);
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || names.includes(name)) continue;
    if (names.length === 0) throw new TypeError(`${verb} has no option '${name}'; it has none`);
    const near = nearest(name, names);
    const meant = near === undefined ? '' : `did you mean '${near}'? `;
    throw new TypeError(`${verb} has no option '${name}'; ${meant}it has ${names.join(', ')}`);
  }
}

/** The known name that a misspelt one stands for, as far as one can tell. */
export function nearest(name: string, names: readonly string[]): string | undefined {
  const given = name.toLowerCase();
  // Of a name of three letters one may be wrong, of one of nine three.
  let [best, least] = [undefined as string | undefined, Math.max(1, Math.floor(given.length / 3)) + 1];
  for (const known of names) {
    const text = known.toLowerCase();
    const isPart = given.length > 2 && text.length > 2 && (text.includes(given) || given.includes(text));
    const edits = isPart ? 1 : editsBetween(given, text);
    if (edits < least) [best, least] = [known, edits];
  }
  return best;
}

/** Letters to put in, take out or change to make one text of another (Levenshtein). */
function editsBetween(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const change = row[j - 1]! + (one[i - 1] === other[j - 1] ? 0 : 1);
      next.push(Math.min(change, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[other.length]!;
}

/** @throws RangeError */
export function reusePolicyCode(policy: unknown): number {
  if (policy === undefined) return 0;
  const code = REUSE_POLICIES.indexOf(policy as string);
  if (code < 0) throw new RangeError(`idReusePolicy must be one of ${REUSE_POLICIES.join(', ')}`);
  return code;
}

/** @throws RangeError */
export function conflictPolicyCode(policy: unknown): number {
  const code = CONFLICT_POLICIES.indexOf(policy as string);
  if (code < 0) throw new RangeError(`idConflictPolicy must be one of ${CONFLICT_POLICIES.slice(1).join(', ')}`);
  return code;
}

/**
 * A text that may be left out, without control characters: they separate fields where texts cross.
 * @throws TypeError
 */
export function oneLine(text: unknown, what: string): string {
  if (text === undefined) return '';
  if (typeof text !== 'string') throw new TypeError(`${what} must be a text, not ${shown(text)}`);
  // eslint-disable-next-line no-control-regex -- control characters are what it looks for
  return text.replace(/[\u0000-\u001f]+/g, ' ');
}

/** Longest name, id or key, in bytes. */
export const TEXT_BYTES_MAX = 256;

/**
 * A text that names something: not empty, not long, without the characters that separate fields where texts cross.
 * @throws TypeError
 */
export function checkText(text: unknown, what: string): asserts text is string {
  if (typeof text !== 'string' || text === '') throw new TypeError(`${what} must be a text that is not empty`);
  // eslint-disable-next-line no-control-regex -- control characters are what it looks for
  if (/[\u0000-\u001f]/.test(text)) throw new TypeError(`${what} must not contain control characters`);
  // A UTF-16 unit takes 1 to 3 bytes.
  if (text.length * 3 <= TEXT_BYTES_MAX) return;
  const bytes = Buffer.byteLength(text);
  if (bytes > TEXT_BYTES_MAX) throw new TypeError(`${what} takes ${bytes} bytes; the limit is ${TEXT_BYTES_MAX}`);
}

/** A value that was not meant, as messages show it. */
export function shown(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return `'${value}'`;
    case 'object':
      return value === null ? 'null' : Array.isArray(value) ? 'an array' : 'an object';
    case 'function':
      return 'a function';
    case 'undefined':
    case 'number':
    case 'bigint':
    case 'boolean':
    case 'symbol':
      return String(value);
  }
}
