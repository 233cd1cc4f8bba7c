/**
 * Completing an awakeable from outside, with nothing but its token.
 */
import { knownOptions, oneLine } from '../options.js';
import { readToken, type AwakeableOutcome } from '../tokens.js';
import type { EngineCore } from './core.js';

/** Options of `engine.complete` and `engine.fail`. */
export interface CompleteOptions {
  readonly actor?: string;
}

/** Records an outcome. @returns whether it was the first */
export async function completeAwakeable(
  core: EngineCore,
  token: unknown,
  outcome: AwakeableOutcome,
  options: CompleteOptions | undefined,
  verb: 'engine.complete' | 'engine.fail',
): Promise<boolean> {
  const { id, runId, name } = readToken(token, verb);
  knownOptions(options, ['actor'], verb);
  const actor = oneLine(options?.actor, 'actor');
  const text = core.record(outcome, `what ${verb} is given`, { kind: 'signal', id, name });
  const request = core.request(
    (answer) => core.native.completeAwakeable(answer, id, runId, name, text, actor),
    (reply) => reply === '1',
  );
  return request.promise;
}
