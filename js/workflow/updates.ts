/**
 * Updates: requests that the code of a run handles and answers, each a delivery of its own.
 *
 * A handler is called in the turn of its delivery and may use `ctx`; what it returns or throws is recorded in the turn in
 * which it settles (LAW-4). It does not know who asked, nor how an update was validated.
 */
import { NOTHING } from './operations.js';
import type { Run } from './run.js';
import { isOpen } from './turn.js';

/** What `ctx.onUpdate` was given. */
export interface UpdateHandler {
  readonly fn: (input: unknown) => unknown;
  readonly validate: ((input: unknown) => void) | undefined;
}

/** Calls the handler of an update. Call it only within a turn of this run. */
export function deliverUpdate(run: Run, number: number, text: string): void {
  const border = text.indexOf('\u001f');
  const name = text.slice(0, border);
  const handler = run.updates?.get(name);
  if (handler === undefined) {
    run.host.stuck(run, `update ${number}, '${name}', was accepted, but the code has no handler of it`);
    return;
  }
  const payload = text.slice(border + 1);
  // From a microtask: a tick that the handler queues at once would otherwise run before the end of the turn.
  void Promise.resolve().then(() => handle(run, number, name, handler, payload));
}

function handle(run: Run, number: number, name: string, handler: UpdateHandler, payload: string): void {
  if (run.isDead) return;
  let input: unknown;
  try {
    input = payload === '' ? undefined : run.read('update', name, payload);
  } catch (error) {
    run.host.unreadable(run, error);
    return;
  }
  let returned: unknown;
  try {
    returned = run.host.call(run, handler.fn, input);
  } catch (error) {
    answer(run, number, name, error, NOTHING);
    return;
  }
  if (!isThenable(returned)) {
    answer(run, number, name, NOTHING, returned);
    return;
  }
  void Promise.resolve(returned).then(
    (value) => answer(run, number, name, NOTHING, value),
    (error: unknown) => answer(run, number, name, error, NOTHING),
  );
}

/** Records how a handler settled. @param error {@link NOTHING}: it returned `value` */
function answer(run: Run, number: number, name: string, error: unknown, value: unknown): void {
  if (run.isDead) return;
  const { host } = run;
  if (host.current !== run) {
    host.outOfTurn(run, error === NOTHING ? 'return' : 'throw');
    return;
  }
  let hasFailed = error !== NOTHING;
  let text: string;
  try {
    text = hasFailed
      ? host.encodeFailure(error)
      : host.record(value, `the answer to update '${name}'`, {
          kind: 'updateAnswer',
          id: run.id,
          name: '',
        });
  } catch (refused) {
    hasFailed = true;
    text = host.encodeFailure(refused);
  }
  isOpen(run, host.verbs.answerUpdate(run.slot, number, hasFailed, text), `answer to update '${name}'`);
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
