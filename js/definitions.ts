/**
 * Definitions: workflows, and the messages that they take. Importable anywhere, they need no engine.
 *
 * They are told apart by `kind`, not by class, so that those of another installed copy are understood.
 */
import { toMs } from './duration.js';
import { knownOptions, shown, TEXT_BYTES_MAX } from './options.js';

/** The part of Standard Schema v1 that is used here. */
export interface Schema {
  readonly '~standard': { readonly validate: (value: unknown) => unknown };
}

/** Options of a workflow. */
export interface WorkflowOptions {
  /** Checks and converts the input, once, before the start is recorded. */
  readonly input?: Schema;
  /** Version of the code. Default 1. */
  readonly version?: number;
  /** Longest life of a run. */
  readonly timeout?: unknown;
  /** What becomes of a run whose records its code does not fit. */
  readonly onMismatch?: unknown;
}

/** What {@link workflow} returns. */
export interface WorkflowDefinition {
  readonly kind: 'workflow';
  readonly name: string;
  readonly handler: (ctx: never, input: never) => unknown;
  readonly options: WorkflowOptions;
}

/** What {@link signal}, {@link query} and {@link update} return. */
export interface MessageDefinition<Kind extends string> {
  readonly kind: Kind;
  readonly name: string;
  readonly schema: Schema | undefined;
}

const WORKFLOW_OPTIONS = ['input', 'version', 'timeout', 'onMismatch'];
const MISMATCH_POLICIES = ['stuck', 'retry', 'fail'];

/** Defines a workflow. @throws TypeError, RangeError on what cannot be meant */
export function workflow(
  name: string,
  handler: (ctx: never, input: never) => unknown,
  options: WorkflowOptions = {},
): WorkflowDefinition {
  checkName(name, 'a workflow');
  if (typeof handler !== 'function') throw new TypeError(`workflow '${name}' needs a function as its second argument`);
  knownOptions(options, WORKFLOW_OPTIONS, `workflow '${name}'`);
  const { input, version = 1, timeout, onMismatch } = options;
  checkSchema(input, `the option input of workflow '${name}'`);
  if (!Number.isInteger(version) || version < 0 || version > 0xffffffff) {
    throw new RangeError(`the version of workflow '${name}' must be a whole number, not ${shown(version)}`);
  }
  if (timeout !== undefined) toMs(timeout);
  if (onMismatch !== undefined && !MISMATCH_POLICIES.includes(onMismatch as string)) {
    throw new RangeError(`onMismatch of workflow '${name}' must be one of ${MISMATCH_POLICIES.join(', ')}`);
  }
  return Object.freeze({ kind: 'workflow', name, handler, options: Object.freeze({ ...options }) });
}

/** How the names begin under which awakeables are completed. */
export const AWAKEABLE_PREFIX = 'awakeable:';

/** Defines a signal; with a schema, its value is checked where it is sent. */
export function signal(name: string, schema?: Schema): MessageDefinition<'signal'> {
  checkName(name, 'a signal');
  if (name.startsWith(AWAKEABLE_PREFIX)) {
    throw new TypeError(`the name of a signal must not begin with '${AWAKEABLE_PREFIX}', as those of awakeables do`);
  }
  checkSchema(schema, `the schema of signal '${name}'`);
  return Object.freeze({ kind: 'signal', name, schema });
}

/** Defines a query. */
export function query(name: string): MessageDefinition<'query'> {
  checkName(name, 'a query');
  return Object.freeze({ kind: 'query', name, schema: undefined });
}

/** Defines an update; with a schema, its argument is checked where it is asked for. */
export function update(name: string, input?: Schema, output?: Schema): MessageDefinition<'update'> {
  checkName(name, 'an update');
  checkSchema(input, `the schema of update '${name}'`);
  checkSchema(output, `the schema of the answer of update '${name}'`);
  return Object.freeze({ kind: 'update', name, schema: input });
}

/** Whether a value is what {@link workflow} returns. */
export function isWorkflow(value: unknown): value is WorkflowDefinition {
  const given = value as Partial<WorkflowDefinition> | null | undefined;
  return (
    typeof value === 'object' &&
    given?.kind === 'workflow' &&
    typeof given.name === 'string' &&
    typeof given.handler === 'function'
  );
}

/** @throws TypeError */
export function asWorkflow(value: unknown): WorkflowDefinition {
  if (!isWorkflow(value))
    throw new TypeError(`a workflow is needed here, as workflow() returns it, not ${shown(value)}`);
  return value;
}

/** @throws TypeError */
export function signalName(value: unknown): string {
  return asMessage(value, 'signal').name;
}

/** @throws TypeError */
export function queryName(value: unknown): string {
  return asMessage(value, 'query').name;
}

/** @throws TypeError */
export function updateName(value: unknown): string {
  return asMessage(value, 'update').name;
}

/** The argument as the handler gets it. A promise, where its schema answers with one. @throws TypeError */
export function checkUpdateInput(definition: unknown, input: unknown): unknown {
  const { name, schema } = asMessage(definition, 'update');
  return parse(schema, input, `the argument of update '${name}'`);
}

/** The input as the workflow gets it. A promise, where its schema answers with one. @throws TypeError */
export function checkInput(definition: WorkflowDefinition, input: unknown): unknown {
  return parse(definition.options.input, input, `the input of workflow '${definition.name}'`);
}

/** The value as the workflow gets it. A promise, where its schema answers with one. @throws TypeError */
export function checkSignalValue(definition: unknown, value: unknown): unknown {
  const { name, schema } = asMessage(definition, 'signal');
  return parse(schema, value, `the value of signal '${name}'`);
}

function asMessage<Kind extends string>(value: unknown, kind: Kind): MessageDefinition<Kind> {
  const given = value as Partial<MessageDefinition<Kind>> | null | undefined;
  if (typeof value !== 'object' || given?.kind !== kind || typeof given.name !== 'string') {
    throw new TypeError(
      `${kind === 'update' ? 'an' : 'a'} ${kind} is needed here, as ${kind}() returns it, not ${shown(value)}`,
    );
  }
  return value as MessageDefinition<Kind>;
}

/** What a schema answers. */
interface SchemaResult {
  readonly value?: unknown;
  readonly issues?: readonly { readonly message: string; readonly path?: readonly unknown[] }[];
}

function parse(schema: Schema | undefined, value: unknown, what: string): unknown {
  if (schema === undefined) return value;
  const result = schema['~standard'].validate(value) as SchemaResult | PromiseLike<SchemaResult>;
  return 'then' in result && typeof result.then === 'function'
    ? Promise.resolve(result).then((answer) => parsed(answer, what))
    : parsed(result as SchemaResult, what);
}

function parsed(result: SchemaResult, what: string): unknown {
  if (result.issues === undefined) return result.value;
  const issues = result.issues.map(({ message, path }) => `${pathOf(path)}${message}`);
  throw new TypeError(`${what} is refused by its schema: ${issues.join('; ')}`);
}

function pathOf(path: readonly unknown[] | undefined): string {
  if (path === undefined || path.length === 0) return '';
  const keys = path.map((part) => String(typeof part === 'object' && part !== null && 'key' in part ? part.key : part));
  return `${keys.join('.')}: `;
}

function checkSchema(schema: Schema | undefined, what: string): void {
  if (schema === undefined) return;
  const standard = (schema as Partial<Schema> | null)?.['~standard'];
  if (typeof standard?.validate !== 'function') throw new TypeError(`${what} must be a Standard Schema`);
}

function checkName(name: unknown, what: string): void {
  if (typeof name !== 'string' || name === '') throw new TypeError(`${what} needs a name that is not empty`);
  // eslint-disable-next-line no-control-regex -- control characters are what it looks for
  if (/[\u0000-\u001f]/.test(name)) throw new TypeError(`the name of ${what} must not contain control characters`);
  if (Buffer.byteLength(name) > TEXT_BYTES_MAX)
    throw new TypeError(`the name of ${what} is longer than ${TEXT_BYTES_MAX} bytes`);
}
