/**
 * The options of `open`, read and checked.
 */
import * as path from 'node:path';
import { readCodecs } from '../codec/chain.js';
import { isWorkflow, type WorkflowDefinition } from '../definitions.js';
import { isObject, type ObjectDefinition } from '../object-definition.js';
import { primitives } from '../native.js';
import { knownOptions, shown } from '../options.js';
import { packDeclared, type ScheduledDefinition } from '../scheduler/schedules.js';
import { readTasks, type GivenTasks } from '../scheduler/settings.js';
import type { Logger } from '../worker/host.js';
import type { WorkflowCode } from '../workflow/run.js';
import type { VersionedCode } from '../workflow/versions.js';
import { PAYLOAD_BYTES_MAX, type CoreSettings } from './core.js';
import { readWorkerOptions } from '../threads/options.js';

/** Options of `open`. */
export interface OpenOptions extends GivenTasks {
  readonly schedules?: unknown;
  readonly dir?: string;
  readonly workflows?: readonly unknown[];
  readonly objects?: readonly unknown[];
  readonly shards?: number;
  readonly flush?: CoreSettings['flush'];
  readonly codec?: unknown;
  readonly payloadBytesMax?: number;
  readonly journalRecordsMax?: number;
  readonly journalBytesMax?: number;
  readonly runsMax?: number;
  readonly dev?: boolean;
  readonly logger?: Logger;
  readonly workers?: unknown;
}

const OPTIONS = [
  'dir',
  'workflows',
  'objects',
  'tasks',
  'queues',
  'limits',
  'schedules',
  'shards',
  'flush',
  'codec',
  'payloadBytesMax',
  'journalRecordsMax',
  'journalBytesMax',
  'runsMax',
  'dev',
  'logger',
  'workers',
];
const FLUSH_MODES = ['auto', 'inline', 'pipeline', 'background'];
const LEVELS = ['debug', 'info', 'warn', 'error'] as const;
const MEMORY = ':memory:';
const chance = Math.random;

/** @param verb as messages name it @throws TypeError, RangeError */
export function readOptions(
  directory: unknown,
  options: OpenOptions,
  verb: string,
  random: () => number = chance,
): CoreSettings {
  knownOptions(options, OPTIONS, verb);
  const dir = directory ?? options.dir;
  if (typeof dir !== 'string' || dir === '') {
    throw new TypeError(`${verb} needs a directory, or '${MEMORY}'`);
  }
  const { flush = 'auto', logger = defaultLogger() } = options;
  if (!FLUSH_MODES.includes(flush)) throw new RangeError(`flush must be one of ${FLUSH_MODES.join(', ')}`);
  for (const level of LEVELS) {
    if (typeof logger[level] !== 'function') throw new TypeError(`the logger has no function '${level}'`);
  }
  const tasks = readTasks(options, random);
  const definitions = readDefinitions(options.workflows ?? [], options.objects ?? []);
  const hasWorkflow = (name: string): boolean => isStartable(definitions, name);
  // Those of workers are not known before they have loaded their module.
  const scheduled: ScheduledDefinition[] = [];
  const ofWorkers = options.workers === undefined ? undefined : scheduled;
  const payloads = readCodecs(options.codec);
  return {
    dir: dir === MEMORY ? null : path.resolve(dir),
    definitions,
    tasks,
    schedules: packDeclared(options.schedules, { tasks, hasWorkflow, ofWorkers }, (value, what, place) =>
      payloads.record(value, what, place),
    ),
    scheduled,
    shards: wholeNumber(options.shards, 'shards', 0),
    flush,
    payloads,
    payloadBytesMax: wholeNumber(options.payloadBytesMax, 'payloadBytesMax', PAYLOAD_BYTES_MAX),
    journalRecordsMax: wholeNumber(options.journalRecordsMax, 'journalRecordsMax', 0),
    journalBytesMax: wholeNumber(options.journalBytesMax, 'journalBytesMax', 0),
    runsMax: wholeNumber(options.runsMax, 'runsMax', 0),
    isDev: options.dev ?? primitives().process.env['NODE_ENV'] !== 'production',
    logger,
    virtualNowMs: null,
    random,
    group: readWorkers(options),
  };
}

function readWorkers({ workers, workflows, objects }: OpenOptions): CoreSettings['group'] {
  if (workers === undefined) return null;
  if (objects !== undefined) {
    throw new TypeError(
      'objects are those that workers.module exports: leave out the option objects, or the option workers',
    );
  }
  if (workflows !== undefined) {
    throw new TypeError(
      'workflows are those that workers.module exports: leave out the option workflows, or the option workers',
    );
  }
  return { kind: 'client', workers: readWorkerOptions(workers) };
}

/** Definitions by name, all versions of one together. @throws TypeError */
export function readDefinitions(workflows: unknown, objects: unknown): ReadonlyMap<string, WorkflowCode> {
  if (!Array.isArray(workflows)) throw new TypeError('workflows must be an array of what workflow() returned');
  const byName = new Map<string, Map<number, WorkflowDefinition>>();
  workflows.forEach((definition: unknown, index) => {
    if (!isWorkflow(definition)) throw new TypeError(`workflows[${index}] is not what workflow() returned`);
    const { name, options } = definition;
    const version = options.version ?? 1;
    const versions = byName.get(name) ?? new Map<number, WorkflowDefinition>();
    const before = versions.get(version);
    if (before !== undefined && before !== definition) {
      throw new TypeError(`there are two workflows named '${name}' of version ${version}`);
    }
    byName.set(name, versions.set(version, definition));
  });
  const code = new Map([...byName].map(([name, versions]) => [name, codeOf(versions)]));
  if (!Array.isArray(objects)) throw new TypeError('objects must be an array of what object() returned');
  objects.forEach((definition: unknown, index) => {
    if (!isObject(definition)) throw new TypeError(`objects[${index}] is not what object() returned`);
    const before = code.get(definition.name);
    if (before !== undefined && before.object !== definition) {
      throw new TypeError(`there are two definitions named '${definition.name}', and one is an object`);
    }
    code.set(definition.name, codeOfObject(definition));
  });
  return code;
}

/** Whether there is a workflow of this name. */
export function isStartable(definitions: ReadonlyMap<string, WorkflowCode>, name: string): boolean {
  const code = definitions.get(name);
  return code !== undefined && code.object === undefined;
}

/** An object is a run whose code is its calls. */
export function codeOfObject(object: ObjectDefinition): WorkflowCode {
  return { name: object.name, handler: notCalled, object };
}

function notCalled(): never {
  throw new Error('an object has handlers, and no function of its own');
}

/** The newest version, with the others if there are any. */
function codeOf(versions: ReadonlyMap<number, WorkflowDefinition>): WorkflowCode {
  const newest = versions.get(Math.max(...versions.keys()))!;
  if (versions.size === 1) return newest;
  const code: WorkflowDefinition & VersionedCode = { ...newest, versions };
  return code;
}

function wholeNumber(value: unknown, name: string, byDefault: number): number {
  if (value === undefined) return byDefault;
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 1) {
    throw new RangeError(`${name} must be a whole number from 1, not ${shown(value)}`);
  }
  return value;
}

/** Lines go to the console, as it is when they are written. */
function defaultLogger(): Logger {
  const write = (level: (typeof LEVELS)[number]) => (message: string, fields?: object) => {
    const { console } = globalThis;
    if (fields === undefined) console[level](message);
    else console[level](message, fields);
  };
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}
