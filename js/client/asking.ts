/**
 * Questions to the code of a run that another thread has: sent as texts, answered there, and read here.
 */
import { decodeFailure, encodeFailure } from '../codec.js';
import { RunNotFoundError } from '../errors.js';
import type { EngineCore } from './core.js';

const ANSWER = '1';
const REFUSAL = '0';

/** The answer of another thread. @throws what its code threw */
export function readAnswer(text: string): string {
  if (text.startsWith(ANSWER)) return text.slice(1);
  throw decodeFailure(text.slice(1));
}

/** Asks the code of a run that is here, for another thread. @param token of the answer */
export function askHere(core: EngineCore, token: number, slot: number, text: string): void {
  const border = text.indexOf('\u001f');
  const answer = (kind: string, body: string): void => {
    core.native.answer(token, kind + body);
    core.pump.wake();
  };
  const refuse = (error: unknown): void => answer(REFUSAL, encodeFailure(error));
  core.pump.queries.ask({
    name: text.slice(0, border),
    input: text.slice(border + 1),
    findSlot: () => slot,
    answer: (body) => answer(ANSWER, body),
    refuse,
    miss: () => refuse(new RunNotFoundError('the workflow has ended, or is stuck, and answers no queries', {})),
  });
}
