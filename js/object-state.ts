/**
 * The state of an object as it is recorded: how often it was changed, and its value.
 */
import { decode } from './codec.js';

const SEPARATOR = '\u001f';

/** A recorded state. */
export interface RecordedState {
  /** How often it was changed. */
  readonly version: number;
  /** Encoded; `undefined`: it is as it is at first. */
  readonly text: string | undefined;
}

/** The text that the engine keeps. */
export function packState(version: number, text: string): string {
  return `${version}${SEPARATOR}${text}`;
}

/** @param packed what {@link packState} made; empty: nothing was recorded yet */
export function readState(packed: string): RecordedState {
  if (packed === '') return { version: 0, text: undefined };
  const border = packed.indexOf(SEPARATOR);
  return { version: Number(packed.slice(0, border)), text: packed.slice(border + 1) };
}

/** A state whose text is that of its value, whatever codecs made of it. @param open undoes that */
export function openState({ version, text }: RecordedState, open: (text: string) => string): RecordedState {
  return { version, text: text === undefined ? undefined : open(text) };
}

/** The value, for somebody who must not change it. */
export function frozenState({ text }: RecordedState, first: () => unknown): unknown {
  return deepFreeze(text === undefined ? first() : decode(text));
}

/** Plain objects and arrays; what else there is has methods that change it, and is a copy. */
function deepFreeze(value: unknown, seen = new Set<object>()): unknown {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || seen.has(value)) return value;
  seen.add(value);
  for (const field of Object.values(value)) deepFreeze(field, seen);
  return Object.freeze(value);
}
