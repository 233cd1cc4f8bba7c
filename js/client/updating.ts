/**
 * Updates as callers ask for them, and starts that bring a message with them.
 */
import { decodeFailure } from '../codec.js';
import type { PayloadPlace } from '../codec/payloads.js';
import { checkSignalValue, checkUpdateInput, signalName, updateName } from '../definitions.js';
import { fromNative } from '../errors.js';
import { randomId } from '../ids.js';
import { checkText, knownOptions, oneLine } from '../options.js';
import { COMPLETED } from '../workflow/host.js';
import type { EngineCore } from './core.js';
import { patienceOf, waitFor, type ResultOptions } from './patience.js';
import type { Request } from './requests.js';
import { readStart, runIdOf, START_OPTIONS, type Start, type StartOptions } from './starting.js';

/** Options of `handle.update`. */
export interface UpdateOptions extends ResultOptions {
  readonly id?: unknown;
  readonly actor?: unknown;
}

/** Bits of `startWith`. */
const WITH_SIGNAL = 0;
const WITH_UPDATE = 1;

/** Asks for an update and waits for its answer. */
export async function requestUpdate(
  core: EngineCore,
  id: string,
  runId: string,
  update: unknown,
  input: unknown,
  options: UpdateOptions | undefined,
): Promise<unknown> {
  const name = updateName(update);
  knownOptions(options, ['id', 'actor', 'timeout', 'signal'], 'handle.update');
  const patience = patienceOf({ timeout: options?.timeout, signal: options?.signal }, 'handle.update');
  const updateId = readUpdateId(options?.id, 'the option id of handle.update');
  const actor = oneLine(options?.actor, 'actor');
  const checked = await checkUpdateInput(update, input);
  const text = core.record(checked, `the argument of update '${name}'`, { kind: 'update', id, name });
  const send = (token: number): void => core.native.update(token, id, runId, name, updateId, text, actor);
  const place = { kind: 'updateAnswer', id, name: '' } as const;
  const request = core.request(send, (answer, status) => readAnswer(core, place, answer, status));
  request.again = send;
  return waitFor(core, request, patience, `the answer to update '${name}'`);
}

/** What `engine.signalWithStart` is given. */
export interface SignalWithStart extends StartOptions {
  readonly input?: unknown;
  readonly signal?: unknown;
  readonly value?: unknown;
  readonly dedupeId?: unknown;
}

/** What `engine.updateWithStart` is given. */
export interface UpdateWithStart extends StartOptions {
  readonly input?: unknown;
  readonly update?: unknown;
  readonly value?: unknown;
  readonly updateId?: unknown;
}

/** Starts a workflow with a signal, or signals the run that has its id. Resolves with the start and the run id. */
export async function requestSignalWithStart(
  core: EngineCore,
  workflow: unknown,
  given: SignalWithStart,
): Promise<{ readonly start: Start; readonly runId: string }> {
  knownOptions(given, [...START_OPTIONS, 'input', 'signal', 'value', 'dedupeId'], 'engine.signalWithStart');
  const { signal, value, dedupeId, input, ...options } = given;
  const name = signalName(signal);
  const start = await readJoined(core, workflow, input, options, 'engine.signalWithStart');
  const place = { kind: 'signal', id: start.id, name } as const;
  const text = core.record(await checkSignalValue(signal, value), `the value of signal '${name}'`, place);
  const dedupe = oneLine(dedupeId, 'dedupeId');
  const send = (token: number): void => sendWith(core, token, start, WITH_SIGNAL, name, text, dedupe, 0);
  return { start, runId: await core.request(send, runIdOf).promise };
}

/** Starts a workflow, unless its id has a run, and offers it an update. */
export async function requestUpdateWithStart(
  core: EngineCore,
  workflow: unknown,
  given: UpdateWithStart,
): Promise<{ readonly start: Start; readonly runId: string; readonly answer: Promise<unknown> }> {
  knownOptions(given, [...START_OPTIONS, 'input', 'update', 'value', 'updateId'], 'engine.updateWithStart');
  const { update, value, updateId, input, ...options } = given;
  const name = updateName(update);
  const start = await readJoined(core, workflow, input, options, 'engine.updateWithStart');
  const checked = await checkUpdateInput(update, value);
  const text = core.record(checked, `the argument of update '${name}'`, { kind: 'update', id: start.id, name });
  const id = readUpdateId(updateId, 'updateId');
  core.check();
  const place = { kind: 'updateAnswer', id: start.id, name: '' } as const;
  const answer: Request<unknown> = core.requests.prepare((given, status) => readAnswer(core, place, given, status));
  answer.again = (token) => core.native.update(token, start.id, '', name, id, text, start.actor);
  // It may be refused before anybody has it in hand.
  answer.promise.catch(() => undefined);
  const request = core.request(
    (token) => sendWith(core, token, start, WITH_UPDATE, name, text, id, answer.token),
    runIdOf,
  );
  try {
    return { start, runId: await request.promise, answer: answer.promise };
  } catch (error) {
    core.requests.remove(answer);
    answer.reject(fromNative(error));
    throw error;
  }
}

/** A message goes to the run that has the id, whatever its input was, unless the policy says otherwise. */
async function readJoined(
  core: EngineCore,
  workflow: unknown,
  input: unknown,
  options: StartOptions,
  verb: string,
): Promise<Start> {
  if (options.id === undefined) throw new TypeError(`${verb} needs the option id: it says which run is meant`);
  return readStart(core, workflow, input, { idConflictPolicy: 'useExisting', ...options }, verb);
}

function sendWith(
  core: EngineCore,
  token: number,
  start: Start,
  what: number,
  name: string,
  text: string,
  messageId: string,
  answerToken: number,
): void {
  const { id, type, version, input, policies, timeoutMs, actor, attributes } = start;
  core.native.startWith(
    token,
    id,
    type,
    version,
    input,
    policies,
    timeoutMs,
    actor,
    what,
    name,
    text,
    messageId,
    answerToken,
    attributes,
  );
}

function readUpdateId(id: unknown, what: string): string {
  if (id === undefined) return randomId();
  checkText(id, what);
  return id;
}

/** What a handler returned. @throws what it threw, or why the update was not taken */
export function readAnswer(core: EngineCore, place: PayloadPlace, text: string, status: number): unknown {
  if (status === COMPLETED) return core.payloads.read(text, place);
  throw decodeFailure(text);
}
