/**
 * The gate that every verb of `ctx` passes: it must be the turn of its own run (LAW-4).
 */
import { DEAD, MISMATCH } from './host.js';
import { Op } from './operations.js';
import type { Run } from './run.js';

/**
 * Whether a verb may go on. If not, the run is stuck or over, and what the verb returns is awaited for ever.
 * @throws when the caller is no code of the workflow: the body of a step, a query, a predicate
 */
export function enter(run: Run, verb: string): boolean {
  const host = run.host;
  if (host.current !== run || (host.isDev && host.isOutside())) {
    if (!run.isDead) host.outOfTurn(run, verb);
    return false;
  }
  if (host.isDev) run.lastUse = new Error(verb);
  return true;
}

/** Whether an operation is open now; if not, the run is stuck or over. @param what as messages name it */
export function isOpen(run: Run, answer: number, what: string): boolean {
  if (answer === MISMATCH) {
    run.host.mismatch(run, what);
    return false;
  }
  if (answer === DEAD) {
    run.host.gone(run);
    return false;
  }
  return true;
}

/** A promise that nothing settles: the code that awaits it goes on no more, and cannot notice. */
export function never<T>(): Promise<T> {
  return new Promise<T>(() => undefined);
}

/** Why the code may ask for nothing here, after a cancel; `null`: it may. */
export function refusalOf(run: Run): Error | null {
  return run.scopes === null ? run.cancelled : run.scopes.refusal;
}

/** Says no to an operation. */
export function refuse<T>(reason: Error): Promise<T> {
  const op = new Op(0);
  op.reject(reason);
  return op.promise as Promise<T>;
}
