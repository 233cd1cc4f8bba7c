/**
 * `ctx.continueAsNew`: what it throws, and how a run ends with it.
 *
 * It does not know how the next run comes to be: that is one record of the engine.
 */
import { asWorkflow, checkInput } from '../definitions.js';
import { toMs } from '../duration.js';
import { knownOptions, shown } from '../options.js';
import type { Run } from './run.js';

/** Thrown by `ctx.continueAsNew`: the function's end, if nothing catches it. No error of users. */
export class Continuation {
  constructor(
    /** Encoded. */
    readonly input: string,
    readonly version: number,
    readonly timeoutMs: number,
  ) {}
}

/** Reads what `ctx.continueAsNew` is given. @throws TypeError, RangeError on what cannot be meant */
export function continuationOf(run: Run, input: unknown, options: unknown): Continuation {
  knownOptions(options, ['version', 'timeout'], 'ctx.continueAsNew');
  const given = (options ?? {}) as { readonly version?: unknown; readonly timeout?: unknown };
  const definition = asWorkflow(run.code);
  const version = given.version ?? definition.options.version ?? 1;
  if (typeof version !== 'number' || !Number.isInteger(version) || version < 0 || version > 0xffffffff) {
    throw new RangeError(`the version given to ctx.continueAsNew must be a whole number, not ${shown(version)}`);
  }
  const timeout = given.timeout ?? definition.options.timeout;
  const checked = checkInput(definition, input);
  if (typeof (checked as { then?: unknown } | null | undefined)?.then === 'function') {
    (checked as Promise<unknown>).then(undefined, () => undefined);
    throw new TypeError('ctx.continueAsNew cannot await the schema of the input: make it answer at once');
  }
  const text = run.host.record(checked, `the input of workflow '${definition.name}'`, {
    kind: 'input',
    id: run.id,
    name: '',
  });
  return new Continuation(text, version, timeout === undefined ? -1 : toMs(timeout));
}
