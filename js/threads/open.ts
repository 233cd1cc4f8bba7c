/**
 * Opening an engine whose code runs on several threads.
 */
import { Engine } from '../client/engine.js';
import type { CoreSettings } from '../client/core.js';
import { specsOf } from '../codec/chain.js';
import { codeOfObject } from '../client/options.js';
import { object } from '../object-definition.js';
import { runsElsewhere, task, type TaskDefinition } from '../scheduler/definition.js';
import { packMember } from '../scheduler/packing.js';
import { checkScheduled } from '../scheduler/schedules.js';
import { checkNeeds } from '../scheduler/settings.js';
import type { WorkflowCode } from '../workflow/run.js';
import { Pool, type Lost, type Replaced, type WorkerSettings } from './pool.js';

/** The engine of the thread that opened the group: a client of its workers. */
class GroupEngine extends Engine {
  private readonly pool: Pool;
  private readonly declares: boolean;
  private closingAll: Promise<void> | undefined;

  constructor(
    settings: CoreSettings,
    workers: WorkerSettings,
    private readonly types: Map<string, WorkflowCode>,
    private readonly taskTypes: Map<string, TaskDefinition>,
  ) {
    super({ ...settings, definitions: types, tasks: { ...settings.tasks, definitions: taskTypes } });
    this.declares = settings.schedules !== '';
    const { core } = this;
    const { native, primitives } = core;
    native.watchParts(workers.blockedAfterMs);
    const join = {
      group: native.publish(),
      codecs: specsOf(settings.payloads),
      payloadBytesMax: settings.payloadBytesMax,
      isDev: settings.isDev,
      tasks: [...settings.tasks.definitions.keys()],
      taskRates: settings.tasks.rates,
      taskQueues: settings.tasks.queues,
      labels: workers.labels,
    };
    this.pool = new Pool(workers, native.workers(), join, {
      primitives,
      logger: settings.logger,
      lose: (worker, incarnation) => native.lose(worker, incarnation),
      spread: (worker) => native.spread(worker),
      checkDefinitions: (definitions) => {
        for (const found of definitions) if (found.kind === 'task') checkNeeds(found, settings.tasks);
        checkScheduled(settings.scheduled, definitions);
      },
      handleLost: (lost) => this.handleLost(lost),
      handleReplaced: (replaced) => this.handleReplaced(replaced),
      handleCaughtUp: (stuck, unregistered) => core.report(stuck, unregistered),
    });
    core.onBlocked = (worker, isBlocked, text) => this.handleBlocked(worker, isBlocked, text);
  }

  /** Has the workers join. @throws what hinders any of them; nothing is left open then */
  async startWorkers(): Promise<void> {
    try {
      const found = await this.pool.start();
      const namesOf = (kind: 'workflow' | 'object' | 'task'): string[] =>
        found.filter((one) => one.kind === kind).map(({ name }) => name);
      // Their code is in the workers alone.
      for (const name of namesOf('workflow')) this.types.set(name, { name, handler: notHere });
      for (const name of namesOf('object')) this.types.set(name, codeOfObject(object(name, ELSEWHERE)));
      this.core.native.define([...namesOf('workflow'), ...namesOf('object')]);
      this.shareOut(namesOf('task'));
      const { core } = this;
      if (this.declares) await core.request((token) => core.native.declareSchedules(token), String).promise;
    } catch (error) {
      await this.close({ grace: 0 });
      throw error;
    }
  }

  /** Tasks that the workers export run there, the others of the option `tasks` here. */
  private shareOut(exported: readonly string[]): void {
    const own = [...this.taskTypes.keys()].filter((name) => !exported.includes(name));
    for (const name of exported) {
      if (!this.taskTypes.has(name)) this.taskTypes.set(name, task(name, runsElsewhere));
    }
    this.core.native.defineTasks(packMember(own, []));
  }

  protected override closeCore(graceMs: number): Promise<void> {
    // No attempt begins on any thread, and what a worker leaves behind has cost nothing.
    if (this.closingAll === undefined) this.core.native.drainTasks();
    this.closingAll ??= this.pool.close(graceMs).then(() => super.closeCore(graceMs));
    return this.closingAll;
  }

  private handleLost({ worker, exitCode, error, restartInMs, movedShards }: Lost): void {
    const { core } = this;
    const why = error === undefined ? `with code ${exitCode}` : `by ${messageOf(error)}`;
    const next = restartInMs === 0 ? 'at once' : `in ${restartInMs} ms`;
    const meanwhile = movedShards === 0 ? '' : `; meanwhile others run its ${movedShards} shards`;
    core.settings.logger.warn(`fusee: worker ${worker} ended ${why}; it is replaced ${next}${meanwhile}`, { error });
    core.listeners.emit('workerLost', {
      type: 'workerLost',
      time: new Date(core.nowMs()),
      worker,
      exitCode,
      error,
      restartInMs,
      movedShards,
    });
  }

  private handleReplaced(replaced: Replaced): void {
    const { listeners } = this.core;
    listeners.emit('workerReplaced', { type: 'workerReplaced', time: new Date(this.core.nowMs()), ...replaced });
  }

  private handleBlocked(worker: number, isBlocked: boolean, text: string): boolean {
    const { core } = this;
    const [silentMs = '0', incarnation = '0', id = '', runId = '', definition = ''] = text.split('\u001f');
    const run = id === '' ? undefined : { id, runId, definition };
    if (isBlocked) {
      const where = run === undefined ? '' : `; it entered workflow '${definition}' ${id} last`;
      core.settings.logger.warn(`fusee: worker ${worker} is blocked for ${silentMs} ms${where}`, { worker });
    }
    const base = { type: 'workerBlocked', time: new Date(core.nowMs()), worker };
    const told = core.listeners.emit('workerBlocked', { ...base, isBlocked, silentMs: Number(silentMs), run });
    if (isBlocked) this.pool.handleBlocked(worker, Number(incarnation));
    return told;
  }
}

/** Opens a directory, and the threads that run its code. */
export async function openGroup(settings: CoreSettings, workers: WorkerSettings): Promise<Engine> {
  const engine = new GroupEngine(settings, workers, new Map(), new Map(settings.tasks.definitions));
  await engine.startWorkers();
  return engine;
}

function messageOf(error: unknown): string {
  return String((error as { message?: unknown } | null | undefined)?.message ?? error);
}

function notHere(): never {
  throw new Error('the code of this workflow runs in the workers');
}

const ELSEWHERE = { state: notHere, handlers: {} };
