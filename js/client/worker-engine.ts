/**
 * The engine of a worker of a group: it runs the code of some shards, and its calls reach the runs of all.
 */
import type { Payloads } from '../codec/payloads.js';
import { primitives } from '../native.js';
import { packMember } from '../scheduler/packing.js';
import { runsElsewhere, task, type TaskDefinition } from '../scheduler/definition.js';
import type { JoinSettings } from '../threads/messages.js';
import type { Logger } from '../worker/host.js';
import type { WorkflowCode } from '../workflow/run.js';
import { Engine } from './engine.js';

/** An engine that belongs to whoever opened the group. */
export class WorkerEngine extends Engine {
  /** @param onCaughtUp is told how many runs are stuck, and of which types there is no code, once all have come */
  constructor(
    join: JoinSettings,
    definitions: ReadonlyMap<string, WorkflowCode>,
    tasks: ReadonlyMap<string, TaskDefinition>,
    payloads: Payloads,
    logger: Logger,
    onCaughtUp: (stuck: number, unregistered: readonly string[]) => void,
  ) {
    const { group, part, payloadBytesMax, isDev } = join;
    super({
      dir: null,
      definitions,
      shards: 0,
      flush: 'auto',
      payloads,
      payloadBytesMax,
      journalRecordsMax: 0,
      journalBytesMax: 0,
      runsMax: 0,
      isDev,
      logger,
      virtualNowMs: null,
      random: Math.random.bind(primitives()),
      tasks: {
        definitions: new Map([
          ...join.tasks.map((name) => [name, task(name, runsElsewhere)] as const),
          // What the module exports runs here, whoever was given it too.
          ...tasks,
        ]),
        queues: join.taskQueues,
        rates: join.taskRates,
        scalers: new Map(),
        limits: new Set(),
        packed: '',
      },
      schedules: '',
      scheduled: [],
      group: { kind: 'part', group, part, onCaughtUp },
    });
    this.core.native.defineTasks(packMember(tasks.keys(), join.labels));
  }

  /** Number of this life of the worker. */
  get incarnation(): number {
    return this.core.native.incarnation();
  }

  /** Lets bodies end within the grace, and leaves the group. */
  leave(graceMs: number): Promise<void> {
    return this.core.close(graceMs);
  }

  /** @throws TypeError: the group is not the worker's to close */
  override close(): Promise<void> {
    return Promise.reject(
      new TypeError('the engine of a worker is closed by the thread that opened it: call close() there'),
    );
  }
}
