/**
 * Undoing steps when a run fails or is cancelled: the last one first, each by a step of its own.
 *
 * Nothing about it is recorded but those steps: which are due follows from the results that were delivered.
 */
import { LATER } from './host.js';
import { StepOp } from './operations.js';
import type { Run } from './run.js';
import { Scopes } from './scopes.js';
import { StepNames } from './step-names.js';
import { isOpen, never } from './turn.js';

/** A step that is to be undone, and its result. */
export interface Undo {
  readonly step: StepOp;
  readonly result: unknown;
}

/** How the names of compensations begin. */
export const COMPENSATION_PREFIX = 'compensate ';
/** A name has 256 bytes, and a UTF-16 unit takes 1 to 3 of them. */
const NAME_MAX = 80;

/**
 * Undoes what is due, one after the other. One that fails for good does not keep the others from being tried. Begins in the
 * turn in which the function ended; resolves in the turn in which the last one did.
 */
export async function compensate(run: Run): Promise<void> {
  for (let due = run.undos?.pop(); due !== undefined; due = run.undos?.pop()) {
    const { name } = due.step;
    try {
      await openCompensation(run, due);
    } catch (error) {
      if (!run.isReplaying) {
        const message = `the compensation of step '${name}' of workflow ${run.id} failed; the others are tried`;
        run.host.log(run, 'error', message, { error });
      }
    }
  }
}

function openCompensation(run: Run, { step, result }: Undo): Promise<unknown> {
  const { host } = run;
  const undo = step.policy.compensate!;
  const name = COMPENSATION_PREFIX + (step.name.length > NAME_MAX ? step.name.slice(0, NAME_MAX) : step.name);
  const seq = ++run.seq;
  const nth = (run.steps ??= new StepNames()).add(name);
  const answer = host.verbs.openStep(run.slot, seq, name, 0);
  if (!isOpen(run, answer, `step '${name}'`)) return never();
  const body = (context: never): unknown => undo(result as never, context);
  const op = new StepOp(run, seq, name, nth, body, { ...step.policy, flags: 0, compensate: undefined });
  run.addPendingTo(op, null);
  // A cancel is why it runs, or comes too late.
  (run.scopes ??= new Scopes(run)).shield(op);
  if (answer >= 0 || answer === LATER) {
    op.scope = host.captureContext();
    if (answer >= 0) {
      op.gate = answer;
      host.gate(op);
    }
  }
  return op.promise;
}
