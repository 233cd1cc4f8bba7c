/**
 * Tokens of awakeables: which run of which workflow, and the secret name by which it waits.
 */
import { checkText } from './options.js';

/** What a token says. */
export interface TokenParts {
  readonly id: string;
  readonly runId: string;
  readonly name: string;
}

/** What an awakeable is completed with, as it is recorded. */
export type AwakeableOutcome = { readonly ok: unknown } | { readonly failure: unknown };

const PREFIX = 'fusee1.';
const FIELDS = 3;

/** The text that stands for it: letters, digits, `.`, `-` and `_`. */
export function tokenOf({ id, runId, name }: TokenParts): string {
  return PREFIX + Buffer.from(JSON.stringify([id, runId, name])).toString('base64url');
}

/** @throws TypeError when it is no token */
export function readToken(token: unknown, verb: string): TokenParts {
  const fields = typeof token === 'string' && token.startsWith(PREFIX) ? fieldsOf(token.slice(PREFIX.length)) : null;
  if (fields === null) {
    throw new TypeError(`${verb} needs the token of an awakeable, as ctx.awakeable() gave it`);
  }
  const [id, runId, name] = fields;
  for (const field of fields) checkText(field, `a part of the token given to ${verb}`);
  return { id: id!, runId: runId!, name: name! };
}

function fieldsOf(text: string): string[] | null {
  try {
    const fields: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    if (!Array.isArray(fields) || fields.length !== FIELDS) return null;
    return fields.every((field) => typeof field === 'string') ? fields : null;
  } catch {
    return null;
  }
}
