/**
 * Questions to the code of runs. Those to code that another thread has are sent as texts, answered there, and read here.
 */
import { decodeFailure, encodeFailure } from '../codec.js';
import { fromNative, RunNotFoundError } from '../errors.js';
import type { Query } from '../worker/queries.js';
import type { EngineCore } from './core.js';

const ANSWER = '1';
const REFUSAL = '0';

/** The answer of another thread. @throws what its code threw */
export function readAnswer(text: string): string {
  if (text.startsWith(ANSWER)) return text.slice(1);
  throw decodeFailure(text.slice(1));
}

/** Asks the code of a run that is here, for another thread. @param token of the answer */
export function askHere(core: EngineCore, token: number, text: string): void {
  const nameEnd = text.indexOf('\u001f');
  const idEnd = text.indexOf('\u001f', nameEnd + 1);
  const runIdEnd = text.indexOf('\u001f', idEnd + 1);
  const answer = (kind: string, body: string): void => {
    core.native.answer(token, kind + body);
    core.pump.wake();
  };
  core.pump.queries.ask({
    ...target(core, text.slice(nameEnd + 1, idEnd), text.slice(idEnd + 1, runIdEnd), (error) =>
      answer(REFUSAL, encodeFailure(error)),
    ),
    name: text.slice(0, nameEnd),
    input: text.slice(runIdEnd + 1),
    answer: (body) => answer(ANSWER, body),
  });
}

/** How a query finds its run, one that has ended too, and what becomes of it without one. */
export function target(
  core: EngineCore,
  id: string,
  runId: string,
  refuse: (error: unknown) => void,
): Pick<Query, 'findSlot' | 'refuse' | 'miss' | 'release'> {
  let isRevived = false;
  return {
    findSlot: () => {
      try {
        return core.native.querySlot(id, runId);
      } catch (error) {
        if ((error as { code?: unknown }).code !== 'NOT_FOUND') throw fromNative(error, id);
      }
      try {
        const slot = core.pump.revive(core.native.revive(id, runId));
        isRevived = true;
        return slot;
      } catch (error) {
        throw fromNative(error, id);
      }
    },
    refuse,
    miss: () => {
      const why = isRevived
        ? 'has ended, and its code does not fit its records any more'
        : 'has ended, or is stuck, and answers no queries';
      refuse(new RunNotFoundError(`workflow ${id} ${why}`, { id }));
    },
    release: (slot) => core.pump.lay(slot),
  };
}
