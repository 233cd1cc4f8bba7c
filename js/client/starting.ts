/**
 * Starting a workflow: what a caller gives, read and checked, and the requests that ask for it.
 */
import { packAttributes } from '../attributes.js';
import { asWorkflow, checkInput } from '../definitions.js';
import { toMs } from '../duration.js';
import { fromNative, UnknownDefinitionError } from '../errors.js';
import { randomId } from '../ids.js';
import { conflictPolicyCode, knownOptions, oneLine, reusePolicyCode } from '../options.js';
import type { EngineCore } from './core.js';
import type { Reader, Request, ResultTarget } from './requests.js';

/** Options of a start, as callers give them. */
export interface StartOptions {
  readonly id?: unknown;
  readonly idReusePolicy?: unknown;
  readonly idConflictPolicy?: unknown;
  readonly version?: unknown;
  readonly timeout?: unknown;
  readonly attributes?: unknown;
  readonly actor?: unknown;
}

/** What a start can be told. */
export const START_OPTIONS = ['id', 'idReusePolicy', 'idConflictPolicy', 'version', 'timeout', 'attributes', 'actor'];

/** In place of a token. */
const NOBODY = 0;
/** There are at most so many. */
const SHARDS = 2 ** 16;

/** A start, ready to be asked for. */
export interface Start {
  readonly id: string;
  readonly type: string;
  readonly version: number;
  readonly policies: number;
  readonly timeoutMs: number;
  readonly attributes: string;
  readonly actor: string;
  readonly input: string;
}

/** Reads what a caller gives. A promise, where the schema of the input answers with one. */
export function readStart(
  core: EngineCore,
  workflow: unknown,
  input: unknown,
  options: StartOptions | undefined,
  verb: string,
): Start | Promise<Start> {
  core.check();
  const definition = asWorkflow(workflow);
  const type = definition.name;
  knownOptions(options, START_OPTIONS, verb);
  const code = core.settings.definitions.get(type);
  if (code === undefined || code.object !== undefined) {
    throw new UnknownDefinitionError(`workflow '${type}' was not given to open(); add it to the option workflows`, {
      type,
    });
  }
  const timeout = options?.timeout ?? definition.options.timeout;
  const start = {
    id: options?.id === undefined ? randomId() : checkId(options.id),
    type,
    version: readVersion(options?.version ?? definition.options.version ?? 1),
    policies: (reusePolicyCode(options?.idReusePolicy) << 2) | (conflictPolicyCode(options?.idConflictPolicy) << 4),
    timeoutMs: timeout === undefined ? -1 : toMs(timeout),
    attributes: packAttributes(options?.attributes, `the option attributes of ${verb}`),
    actor: oneLine(options?.actor, 'actor'),
    input: '',
  };
  const what = `the input of workflow '${type}'`;
  const withInput = (value: unknown): Start => {
    start.input = core.record(value, what, { kind: 'input', id: start.id, name: '', isCompared: true });
    return start;
  };
  const checked: unknown = checkInput(definition, input);
  return isThenable(checked) ? Promise.resolve(checked).then(withInput) : withInput(checked);
}

/** Asks for a start. Resolves with the run id once it is durable. */
export function requestStart(core: EngineCore, start: Start): Request<string> {
  return core.request((token) => send(core, start, token, 0), runIdOf);
}

/** Asks for a start and for the result of the run. Nobody waits for the start itself. */
export function requestResult<T>(core: EngineCore, start: Start, read: Reader<T>): Request<T> {
  core.check();
  const target = new StartedRun(start.id);
  const result = core.requests.prepare(read, target);
  try {
    target.run = send(core, start, NOBODY, result.token);
  } catch (error) {
    core.requests.remove(result);
    result.reject(fromNative(error));
  }
  core.pump.wake();
  return result;
}

/** A run that was started for its result. */
class StartedRun implements ResultTarget {
  /** As the addon answered: its number times 2^16, plus its shard. */
  run = -1;
  lost: Error | undefined = undefined;

  constructor(readonly id: string) {}

  get runId(): string {
    return this.run < 0 ? '' : `${this.run % SHARDS}-${Math.floor(this.run / SHARDS)}`;
  }
}

function send(core: EngineCore, start: Start, token: number, resultToken: number): number {
  const { id, type, version, input, policies, timeoutMs, actor, attributes } = start;
  const { native } = core;
  return attributes === ''
    ? native.start(token, resultToken, id, type, version, input, policies, timeoutMs, actor)
    : native.start(token, resultToken, id, type, version, input, policies, timeoutMs, actor, attributes);
}

/** A reply says which run has the id, and whether it was there before. */
export function runIdOf(reply: string): string {
  return reply.slice(0, reply.indexOf('\u001f'));
}

/** @throws RangeError */
export function readVersion(version: unknown): number {
  if (typeof version !== 'number' || !Number.isInteger(version) || version < 0 || version > 0xffffffff) {
    throw new RangeError(`version must be a whole number, not ${String(version)}`);
  }
  return version;
}

/** @throws TypeError */
export function checkId(id: unknown): string {
  if (typeof id !== 'string' || id === '') throw new TypeError('an id must be a text that is not empty');
  return id;
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
