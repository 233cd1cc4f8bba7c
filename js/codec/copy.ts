/**
 * Copies of values that JSON has a word for: what a reader of their text would get, without the reading.
 */
import { isPlain } from './kinds.js';

/** What stands for the copy of a value of which JSON would lose something. */
export const NOT_JSON: unique symbol = Symbol('not JSON');

/** Values nested deeper than this are left to whoever counts more carefully. */
const DEPTH_MAX = 32;

/** A copy with nothing but fields: `JSON.stringify` of it and `JSON.parse` of that give the same. */
export function copyJson(value: unknown, depth = 0): unknown {
  if (typeof value !== 'object' || value === null) return isWord(value) ? value : NOT_JSON;
  if (depth > DEPTH_MAX || 'toJSON' in value) return NOT_JSON;
  if (Array.isArray(value)) return copyArray(value, depth);
  if (!isPlain(value) || '$' in value) return NOT_JSON;
  // Getters are called here, once: what is written and what is given back cannot differ.
  const copy = { ...value } as { [name: string]: unknown };
  // Unlike a list of its keys, this costs no memory.
  for (const name in copy) {
    if (!Object.hasOwn(copy, name)) continue;
    const field = copy[name];
    if (isWord(field)) continue;
    const copied = copyJson(field, depth + 1);
    if (copied === NOT_JSON || name === '__proto__') return NOT_JSON;
    copy[name] = copied;
  }
  return Object.getOwnPropertySymbols(copy).length === 0 ? copy : NOT_JSON;
}

function copyArray(value: readonly unknown[], depth: number): unknown {
  // Neither holes nor fields beside the items.
  if (Object.keys(value).length !== value.length) return NOT_JSON;
  const copy: unknown[] = [];
  for (let index = 0; index < value.length; index += 1) {
    const copied = copyJson(value[index], depth + 1);
    if (copied === NOT_JSON) return NOT_JSON;
    copy.push(copied);
  }
  return copy;
}

function isWord(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value) && !Object.is(value, -0);
  return typeof value === 'string' || typeof value === 'boolean' || value === null;
}
