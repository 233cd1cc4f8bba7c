/**
 * What the opener of a group and its workers tell one another, on a channel of their own: the application's messages
 * are not ours to read.
 */
import type { MessagePort } from 'node:worker_threads';
import type { CodecSpec } from '../codec/chain.js';
import type { QueueSettings } from '../scheduler/packing.js';

/** What a worker gets beside the application's own `workerData`. */
export interface Boot {
  readonly fusee: {
    readonly port: MessagePort;
    /** URL of the module whose exports are run. */
    readonly module: string;
    readonly part: number;
    /** Of a replacement: one that exports what its group does joins without being asked, since its runs wait for it. */
    readonly known: { readonly definitions: readonly Found[]; readonly settings: JoinSettings } | undefined;
  };
  readonly workerData: unknown;
}

/** One definition as its worker found it. */
export interface Found {
  readonly kind: 'workflow' | 'object' | 'task';
  readonly name: string;
  /** Changes with the code. */
  readonly fingerprint: string;
  /** Of a task: its queue, and the limits that it uses. */
  readonly queue: string;
  readonly limits: readonly string[];
}

/** How a worker's engine is opened. */
export interface JoinSettings {
  readonly group: number;
  readonly part: number;
  /** What it makes the codecs of the opener of. */
  readonly codecs: readonly CodecSpec[];
  readonly payloadBytesMax: number;
  readonly isDev: boolean;
  /** Names of the tasks that the opener was given. */
  readonly tasks: readonly string[];
  readonly taskQueues: ReadonlyMap<string, QueueSettings>;
  /** What the worker carries: names and values, packed. */
  readonly labels: readonly string[];
  /** Queues whose starts are limited, by the limit that does it. */
  readonly taskRates: ReadonlyMap<string, string>;
}

/** From the opener to a worker. */
export type ToWorker =
  { readonly kind: 'join'; readonly settings: JoinSettings } | { readonly kind: 'close'; readonly graceMs: number };

/** From a worker to the opener. */
export type FromWorker =
  | { readonly kind: 'loaded'; readonly definitions: readonly Found[] }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'joined'; readonly incarnation: number }
  /** Its thread is told to end, by itself: what it leaves behind need not wait until it has. */
  | { readonly kind: 'ending'; readonly exitCode: number }
  | { readonly kind: 'caughtUp'; readonly stuck: number; readonly unregistered: readonly string[] }
  | {
      readonly kind: 'log';
      readonly level: 'debug' | 'info' | 'warn' | 'error';
      readonly message: string;
      readonly fields: unknown;
    }
  | { readonly kind: 'closed' };

/** The worker that a thread is, where it is one. Under a name that all copies of the package know. */
export interface ThreadOfGroup {
  readonly part: number;
  engine: unknown;
}

const THREAD = Symbol.for('fusee.worker');

/** What this thread is in a group; `undefined`: it is no worker of one. */
export function threadOfGroup(): ThreadOfGroup | undefined {
  return (globalThis as { [THREAD]?: ThreadOfGroup })[THREAD];
}

/** This thread is a worker of a group from now on. */
export function becomeThreadOfGroup(thread: ThreadOfGroup): void {
  Object.defineProperty(globalThis, THREAD, { value: thread });
}
