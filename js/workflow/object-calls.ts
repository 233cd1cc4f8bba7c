/**
 * Objects, seen from a workflow: calls whose answers are delivered like the ends of children.
 */
import { decodeFailure } from '../codec.js';
import { BusyError, RunNotFoundError } from '../errors.js';
import { asObject, methodsOf, objectRunId, type ObjectDefinition } from '../object-definition.js';
import { knownOptions } from '../options.js';
import { COMPLETED, FAILED, REFUSED, SEND_CALL } from './host.js';
import { CallOp } from './operations.js';
import type { Run } from './run.js';
import { isOpen, never, refusalOf, refuse } from './turn.js';

/** The methods of an object. @param enter whether the run may ask for something now */
export function objectClient(
  run: Run,
  enter: (verb: string) => boolean,
  object: unknown,
  id: unknown,
): { readonly [name: string]: (input?: unknown, options?: unknown) => Promise<unknown> } {
  const definition = asObject(object);
  const runId = objectRunId(definition, id);
  return methodsOf(definition, (name, input, options) => {
    if (!enter(name)) return never();
    const refusal = refusalOf(run);
    if (refusal !== null) return refuse(refusal);
    knownOptions(options, [], `ctx.object('${definition.name}').${name}`);
    return call(run, definition, runId, name, input);
  });
}

function call(run: Run, { name: type }: ObjectDefinition, id: string, name: string, input: unknown): Promise<unknown> {
  if (!run.host.knows(type)) {
    // What this process was given is not recorded, so an error here would not replay.
    run.host.stuck(run, `a call of object '${type}', which was not given to open(); add it there, then resume`);
    return never();
  }
  const what = `the input of '${name}' of object '${type}'`;
  const text = input === undefined ? '' : run.host.record(input, what, { kind: 'call', id, name });
  const seq = ++run.seq;
  const answer = run.host.verbs.openSend(run.slot, seq, SEND_CALL, id, '', `${type}\u001f${name}`, text);
  if (!isOpen(run, answer, `call of '${name}' of '${id}'`)) return never();
  const op = new CallOp(seq, id);
  run.addPending(op);
  return op.promise;
}

/** Settles a call by the answer that was delivered. */
export function settleCall(run: Run, op: CallOp, status: number, payload: string): void {
  switch (status) {
    case COMPLETED:
      op.resolve(run.read('callAnswer', '', payload, op.id));
      break;
    case FAILED:
      op.reject(decodeFailure(payload));
      break;
    case REFUSED:
      op.reject(new BusyError(payload));
      break;
    default:
      op.reject(new RunNotFoundError(payload, { id: op.id }));
  }
}
