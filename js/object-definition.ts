/**
 * Definitions of objects: state under an id, and handlers on it. Importable anywhere, they need no engine.
 */
import { checkText, knownOptions, shown } from './options.js';

/** Handlers by name. */
export type Handlers = { readonly [name: string]: (ctx: never, input: never) => unknown };

/** What {@link object} returns. */
export interface ObjectDefinition {
  readonly kind: 'object';
  readonly name: string;
  /** Makes the first state. */
  readonly state: () => unknown;
  /** Run one at a time per id, and may change the state. */
  readonly handlers: Handlers;
  /** Look at the state and change nothing. */
  readonly shared: Handlers;
}

/** How the ids of objects' runs begin, as the engine has it. */
export const OBJECT_PREFIX = 'object:';

/** Defines a durable object. @throws TypeError on what cannot be meant */
export function object(name: string, definition: object): ObjectDefinition {
  checkText(name, 'the name of an object');
  if (name.includes(':')) throw new TypeError(`the name of object '${name}' must not contain ':'`);
  const what = `object '${name}'`;
  knownOptions(definition, ['state', 'handlers', 'shared'], what);
  const { state, handlers, shared = {} } = (definition ?? {}) as Partial<ObjectDefinition>;
  if (typeof state !== 'function') throw new TypeError(`${what} needs a function 'state' that makes its first state`);
  const all = [...checkHandlers(handlers, `the handlers of ${what}`), ...checkHandlers(shared, `shared of ${what}`)];
  const twice = all.find((handler, index) => all.indexOf(handler) !== index);
  if (twice !== undefined) throw new TypeError(`${what} has '${twice}' both in handlers and in shared`);
  return Object.freeze({
    kind: 'object',
    name,
    state,
    handlers: Object.freeze({ ...handlers }),
    shared: Object.freeze({ ...shared }),
  });
}

function checkHandlers(handlers: unknown, what: string): string[] {
  if (typeof handlers !== 'object' || handlers === null) {
    throw new TypeError(`${what} must be an object of functions, not ${shown(handlers)}`);
  }
  for (const [name, fn] of Object.entries(handlers)) {
    checkText(name, `a name in ${what}`);
    if (typeof fn !== 'function') throw new TypeError(`'${name}' in ${what} must be a function, not ${shown(fn)}`);
    if (name === 'then') throw new TypeError(`${what} must not have 'then': its client would be taken for a promise`);
    if (name.startsWith('$')) throw new TypeError(`'${name}' in ${what} must not begin with '$', as verbs of fusee do`);
  }
  return Object.keys(handlers);
}

/** Whether a value is what {@link object} returns. */
export function isObject(value: unknown): value is ObjectDefinition {
  const given = value as Partial<ObjectDefinition> | null | undefined;
  return (
    typeof value === 'object' &&
    given?.kind === 'object' &&
    typeof given.name === 'string' &&
    typeof given.state === 'function' &&
    typeof given.handlers === 'object' &&
    typeof given.shared === 'object'
  );
}

/** @throws TypeError */
export function asObject(value: unknown): ObjectDefinition {
  if (!isObject(value)) throw new TypeError(`an object is needed here, as object() returns it, not ${shown(value)}`);
  return value;
}

/** A handler, if there is one of this name. */
export function handlerOf(handlers: Handlers, name: string): ((ctx: never, input: never) => unknown) | undefined {
  return Object.prototype.hasOwnProperty.call(handlers, name) ? handlers[name] : undefined;
}

/** The id of the run that an object is. @throws TypeError */
export function objectRunId({ name }: ObjectDefinition, id: unknown): string {
  checkText(id, `the id of object '${name}'`);
  const runId = `${OBJECT_PREFIX}${name}:${id}`;
  checkText(runId, `the id of object '${name}', with 'object:', that name and ':' before it,`);
  return runId;
}

/** One method for each handler. */
export function methodsOf(
  { handlers, shared }: ObjectDefinition,
  call: (name: string, input: unknown, options: unknown) => Promise<unknown>,
): { readonly [name: string]: (input?: unknown, options?: unknown) => Promise<unknown> } {
  const methods = Object.create(null) as { [name: string]: (input?: unknown, options?: unknown) => Promise<unknown> };
  for (const name of [...Object.keys(handlers), ...Object.keys(shared)]) {
    methods[name] = (input, options) => call(name, input, options);
  }
  return Object.freeze(methods);
}
