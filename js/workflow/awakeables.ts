/**
 * Awakeables: a promise that somebody outside settles, once, with a token.
 *
 * One is a wait for a signal that nobody else can name, so it is recorded, replayed and cancelled as waits are.
 */
import { AWAKEABLE_PREFIX } from '../definitions.js';
import { TimeoutError } from '../errors.js';
import { tokenOf, type AwakeableOutcome } from '../tokens.js';
import { WaitOp } from './operations.js';
import type { Run } from './run.js';
import { isOpen, never, refusalOf, refuse } from './turn.js';

/** No step has this name, so that no key that a step gives away is the secret of an awakeable. */
const SECRET = '\u0001awakeable';

/** What `ctx.awakeable()` gives. */
export interface Awakeable {
  readonly token: string;
  readonly promise: Promise<unknown>;
}

class AwakeableOp extends WaitOp {
  constructor(
    seq: number,
    name: string,
    private readonly id: string,
  ) {
    super(seq, name, undefined, false);
  }

  override take(value: unknown): void {
    const outcome = value as AwakeableOutcome;
    if ('failure' in outcome) this.reject(outcome.failure);
    else this.resolve(outcome.ok);
  }

  override expire(): void {
    const message = `an awakeable of workflow ${this.id} was not completed within its timeout`;
    this.reject(new TimeoutError(message, { of: 'wait' }));
  }
}

/** Opens one. Call it only in a turn of the run. @param timeoutMs -1: it never expires */
export function openAwakeable(run: Run, timeoutMs: number): Awakeable {
  const refusal = refusalOf(run);
  if (refusal !== null) return { token: '', promise: refuse(refusal) };
  const seq = ++run.seq;
  const name = `${AWAKEABLE_PREFIX}${run.host.idempotencyKey(run, seq, SECRET, seq)}`;
  const answer = run.host.verbs.openWait(run.slot, seq, name, timeoutMs);
  if (!isOpen(run, answer, 'awakeable')) return { token: '', promise: never() };
  const op = new AwakeableOp(seq, name, run.id);
  run.addPending(op);
  return { token: tokenOf({ id: run.id, runId: run.runId, name }), promise: op.promise };
}
