/**
 * Objects, seen from outside: calls of their handlers, and their state.
 */
import { decode } from '../codec.js';
import { fromNative, FuseeError, RunNotFoundError, UnknownDefinitionError } from '../errors.js';
import { randomId } from '../ids.js';
import { checkPatch } from '../json-patch.js';
import { asObject, handlerOf, methodsOf, objectRunId, type ObjectDefinition } from '../object-definition.js';
import { openState, readState, type RecordedState } from '../object-state.js';
import { checkText, knownOptions, oneLine, shown } from '../options.js';
import type { RunLogger } from '../workflow/logger.js';
import { callShared, sharedContext } from '../workflow/objects.js';
import type { EngineCore } from './core.js';
import { patienceOf, waitFor, type Patience } from './patience.js';
import { readAnswer } from './updating.js';

/** Options of a call. */
export interface CallOptions {
  readonly id?: unknown;
  readonly timeout?: unknown;
  readonly signal?: AbortSignal;
  readonly actor?: unknown;
}

/** Options of a change of a state. */
export interface EditOptions {
  readonly version?: unknown;
  readonly id?: unknown;
  readonly actor?: unknown;
}

/** A state and how often it was changed. */
export interface ObjectState {
  readonly state: unknown;
  readonly version: number;
}

/** An object that is meant. */
interface Target {
  readonly definition: ObjectDefinition;
  readonly id: string;
  /** Id of the run that it is. */
  readonly runId: string;
}

/** The methods of an object. */
export function objectClient(
  core: EngineCore,
  object: unknown,
  id: unknown,
): { readonly [name: string]: (input?: unknown, options?: unknown) => Promise<unknown> } {
  const target = targetOf(core, object, id);
  return methodsOf(target.definition, async (name, input, options) => {
    const verb = `'${name}' of object '${target.definition.name}'`;
    knownOptions(options, ['id', 'timeout', 'signal', 'actor'], verb);
    const { id: callId, actor, ...waiting } = (options ?? {}) as CallOptions;
    const patience = patienceOf(waiting, verb);
    if (handlerOf(target.definition.shared, name) === undefined) {
      return call(core, target, name, input, readCallId(callId, verb), oneLine(actor, 'actor'), patience);
    }
    const context = sharedContext(
      target.id,
      await read(core, target, patience),
      target.definition,
      loggerOf(core, target),
    );
    return callShared(target.definition.shared, name, context, input);
  });
}

/** States of objects, read and changed from outside. */
export class ObjectControl {
  readonly #core: EngineCore;

  constructor(core: EngineCore) {
    this.#core = core;
  }

  /** The state as it is recorded; `undefined`: the object does not exist. */
  async get(object: unknown, id: unknown): Promise<ObjectState | undefined> {
    const target = targetOf(this.#core, object, id);
    const recorded = await readIfAny(this.#core, target, NO_PATIENCE);
    if (recorded === undefined) return undefined;
    const { version, text } = recorded;
    return { state: text === undefined ? target.definition.state() : decode(text), version };
  }

  /** Puts another state in its place. @returns its version */
  set(object: unknown, id: unknown, state: unknown, options?: EditOptions): Promise<number> {
    return this.#edit('set', object, id, state, options);
  }

  /** Changes it by a JSON Patch. @returns its version */
  async patch(object: unknown, id: unknown, patch: unknown, options?: EditOptions): Promise<number> {
    checkPatch(patch);
    return this.#edit('patch', object, id, patch, options);
  }

  /** Makes it what it is at first. @returns its version */
  clear(object: unknown, id: unknown, options?: EditOptions): Promise<number> {
    return this.#edit('clear', object, id, undefined, options);
  }

  /** Ends an object: its state is gone, and calls that wait get no answer. @returns whether there was one */
  async delete(object: unknown, id: unknown, options?: { readonly actor?: unknown }): Promise<boolean> {
    const target = targetOf(this.#core, object, id);
    knownOptions(options, ['actor'], 'objects.delete');
    const actor = oneLine(options?.actor, 'actor');
    const { native } = this.#core;
    const answer = this.#core.request((token) => native.deleteObject(token, target.runId, actor), String);
    return (await answer.promise) === '1';
  }

  async #edit(
    verb: string,
    object: unknown,
    id: unknown,
    value: unknown,
    options: EditOptions | undefined,
  ): Promise<number> {
    const target = targetOf(this.#core, object, id);
    const what = `objects.${verb}`;
    knownOptions(options, ['version', 'id', 'actor'], what);
    const { version, id: callId, actor } = options ?? {};
    if (version !== undefined && (typeof version !== 'number' || !Number.isSafeInteger(version) || version < 0)) {
      throw new RangeError(`the option version of ${what} must be a whole number from 0, not ${shown(version)}`);
    }
    const edit = { value, version };
    const named = [readCallId(callId, what), oneLine(actor, 'actor')] as const;
    return (await call(this.#core, target, `$${verb}`, edit, ...named, NO_PATIENCE)) as number;
  }
}

const NO_PATIENCE: Patience = { timeoutMs: -1, signal: undefined };

/** @throws TypeError, UnknownDefinitionError */
function targetOf(core: EngineCore, object: unknown, id: unknown): Target {
  core.check();
  const definition = asObject(object);
  const { name } = definition;
  if (core.settings.definitions.get(name)?.object === undefined) {
    throw new UnknownDefinitionError(`object '${name}' was not given to open(); add it to the option objects`, {
      type: name,
    });
  }
  const runId = objectRunId(definition, id);
  return { definition, id: id as string, runId };
}

function call(
  core: EngineCore,
  { definition, runId }: Target,
  name: string,
  input: unknown,
  callId: string,
  actor: string,
  patience: Patience,
): Promise<unknown> {
  const what = `the input of '${name}' of object '${definition.name}'`;
  const text = input === undefined ? '' : core.record(input, what, { kind: 'call', id: runId, name });
  const send = (token: number): void =>
    core.native.callObject(token, runId, definition.name, name, callId, text, actor);
  const place = { kind: 'callAnswer', id: runId, name: '' } as const;
  const request = core.request(send, (answer, status) => readAnswer(core, place, answer, status));
  request.again = send;
  return waitFor(core, request, patience, `the answer of '${name}' of object '${definition.name}'`);
}

async function read(core: EngineCore, target: Target, patience: Patience): Promise<RecordedState> {
  return (await readIfAny(core, target, patience)) ?? { version: 0, text: undefined };
}

async function readIfAny(core: EngineCore, target: Target, patience: Patience): Promise<RecordedState | undefined> {
  const { runId: id, definition } = target;
  const request = core.request(
    (token) => core.native.readObject(token, id),
    (text) => openState(readState(text), (state) => core.payloads.open(state, { kind: 'state', id, name: '' })),
  );
  try {
    return await waitFor(core, request, patience, `the state of object '${definition.name}'`);
  } catch (error) {
    if (RunNotFoundError.is(error)) return undefined;
    throw FuseeError.is(error) ? error : fromNative(error, target.runId);
  }
}

function readCallId(id: unknown, verb: string): string {
  if (id === undefined) return randomId();
  checkText(id, `the option id of ${verb}`);
  return id;
}

function loggerOf(core: EngineCore, { definition, id }: Target): RunLogger {
  const write = (level: keyof RunLogger) => (message: string, fields?: object) =>
    core.settings.logger[level](message, { ...fields, object: definition.name, id });
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}
