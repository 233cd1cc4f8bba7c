/**
 * Going on from an earlier place: the places that callers give, and the request for the run that begins there.
 */
import { ChildWorkflowError, StepError, TaskError, WorkflowFailedError } from '../errors.js';
import { randomId } from '../ids.js';
import { checkText, knownOptions, oneLine, shown } from '../options.js';
import type { EngineCore } from './core.js';
import { checkId, readVersion } from './starting.js';

/** Options of `handle.fork`, as callers give them. */
export interface ForkOptions {
  readonly toStep?: unknown;
  readonly id?: unknown;
  readonly version?: unknown;
  readonly actor?: unknown;
}

/** Options of `handle.reset`, as callers give them. */
export interface ResetOptions {
  readonly toStep?: unknown;
  readonly reapplySignals?: unknown;
  readonly version?: unknown;
  readonly freshKeys?: unknown;
  readonly actor?: unknown;
}

/** Options of `handle.retry`, as callers give them. */
export interface RetryOptions {
  readonly version?: unknown;
  readonly actor?: unknown;
}

interface Target {
  readonly id: string;
  readonly runId: string;
}

/** The first operation that is not taken over, as it crosses. */
interface Border {
  readonly kind: number;
  readonly name: string;
  readonly seq: number;
}

const STEP = 0;
const OPERATION = 1;
const FAILED_STEP = 2;
const FAILED_CHILD = 3;
const END: Border = { kind: 4, name: '', seq: 0 };

const REAPPLIES_SIGNALS = 1;
const FRESH_KEYS = 2;
const HAS_VERSION = 4;
const SEQ_MAX = 0xffffffff;

/** Another run under another id. @returns both ids */
export async function fork(core: EngineCore, target: Target, options: ForkOptions): Promise<Target> {
  needOptions(options, ['toStep', 'id', 'version', 'actor'], 'fork');
  const id = options.id === undefined ? randomId() : checkId(options.id);
  checkText(id, 'the id of a fork');
  const runId = await branch(core, target, id, borderOf(options.toStep, 'fork'), FRESH_KEYS, options);
  return { id, runId };
}

/** The same id from before a step. @returns the id of the new run */
export async function reset(core: EngineCore, target: Target, options: ResetOptions): Promise<string> {
  needOptions(options, ['toStep', 'reapplySignals', 'version', 'freshKeys', 'actor'], 'reset');
  const flags =
    (isSet(options.reapplySignals, true, 'reapplySignals') ? REAPPLIES_SIGNALS : 0) |
    (isSet(options.freshKeys, false, 'freshKeys') ? FRESH_KEYS : 0);
  return branch(core, target, '', borderOf(options.toStep, 'reset'), flags, options);
}

/** The same id from what made the run fail. @param failure of the run; `undefined`: it has not failed */
export function retry(core: EngineCore, target: Target, failure: unknown, options: RetryOptions): Promise<string> {
  return branch(core, target, '', failure === undefined ? END : borderOfFailure(failure), REAPPLIES_SIGNALS, options);
}

/** @throws TypeError */
export function checkRetry(options: unknown): void {
  knownOptions(options, ['version', 'actor'], 'handle.retry');
}

function branch(
  core: EngineCore,
  { id, runId }: Target,
  to: string,
  { kind, name, seq }: Border,
  flags: number,
  { version, actor }: RetryOptions,
): Promise<string> {
  const code = version === undefined ? 0 : readVersion(version);
  const all = version === undefined ? flags : flags | HAS_VERSION;
  const who = oneLine(actor, 'actor');
  return core.request(
    (token) => core.native.branch(token, id, runId, to, kind, name, seq, all, code, who),
    (text) => text,
  ).promise;
}

function needOptions(options: unknown, names: readonly string[], verb: string): void {
  if (options === undefined) throw new TypeError(`handle.${verb} needs { toStep }`);
  knownOptions(options, names, `handle.${verb}`);
}

function borderOf(toStep: unknown, verb: string): Border {
  const what = `toStep of handle.${verb}`;
  if (typeof toStep === 'string') {
    checkText(toStep, what);
    return { kind: STEP, name: toStep, seq: 0 };
  }
  if (typeof toStep !== 'number') {
    throw new TypeError(`${what} must be the name of a step or its number in the history, not ${shown(toStep)}`);
  }
  if (!Number.isInteger(toStep) || toStep < 1 || toStep > SEQ_MAX) {
    throw new RangeError(`${what} must be a whole number from 1, as seq in the history, not ${toStep}`);
  }
  return { kind: OPERATION, name: '', seq: toStep };
}

/** What failed is told by the error that the run failed with; an error of its own code leaves everything as it is. */
function borderOfFailure(failure: unknown): Border {
  let error: unknown = WorkflowFailedError.is(failure) ? failure.cause : failure;
  for (let depth = 0; error instanceof Error && depth < 16; depth += 1) {
    if (StepError.is(error)) return { kind: FAILED_STEP, name: error.step, seq: 0 };
    if (ChildWorkflowError.is(error) || TaskError.is(error)) return { kind: FAILED_CHILD, name: '', seq: 0 };
    error = error.cause;
  }
  return END;
}

function isSet(value: unknown, byDefault: boolean, name: string): boolean {
  if (value !== undefined && typeof value !== 'boolean') {
    throw new TypeError(`${name} must be true or false, not ${shown(value)}`);
  }
  return value ?? byDefault;
}
