/**
 * Opening an engine whose code runs on several threads.
 */
import { Engine } from '../client/engine.js';
import type { CoreSettings } from '../client/core.js';
import type { WorkflowCode } from '../workflow/run.js';
import { Pool, type Lost, type WorkerSettings } from './pool.js';

/** The engine of the thread that opened the group: a client of its workers. */
class GroupEngine extends Engine {
  private readonly pool: Pool;
  private closingAll: Promise<void> | undefined;

  constructor(
    settings: CoreSettings,
    workers: WorkerSettings,
    private readonly types: Map<string, WorkflowCode>,
  ) {
    super({ ...settings, definitions: types });
    const { core } = this;
    const { native, primitives } = core;
    native.watchParts(workers.blockedAfterMs);
    const join = {
      group: native.publish(),
      payloadBytesMax: settings.payloadBytesMax,
      isDev: settings.isDev,
      tasks: [...settings.tasks.definitions.keys()],
      taskRates: settings.tasks.rates,
    };
    this.pool = new Pool(workers, native.workers(), join, {
      primitives,
      logger: settings.logger,
      lose: (worker, incarnation) => native.lose(worker, incarnation),
      spread: (worker) => native.spread(worker),
      handleLost: (lost) => this.handleLost(lost),
      handleCaughtUp: (stuck, unregistered) => core.report(stuck, unregistered),
    });
    core.onBlocked = (worker, isBlocked, text) => this.handleBlocked(worker, isBlocked, text);
  }

  /** Has the workers join. @throws what hinders any of them; nothing is left open then */
  async startWorkers(): Promise<void> {
    try {
      const names = await this.pool.start();
      // Their code is in the workers alone.
      for (const name of names) this.types.set(name, { name, handler: notHere });
      this.core.native.define(names);
    } catch (error) {
      await this.close({ grace: 0 });
      throw error;
    }
  }

  protected override closeCore(graceMs: number): Promise<void> {
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

  private handleBlocked(worker: number, isBlocked: boolean, text: string): boolean {
    const { core } = this;
    const [silentMs = '0', id = '', runId = '', definition = ''] = text.split('\u001f');
    const run = id === '' ? undefined : { id, runId, definition };
    if (isBlocked) {
      const where = run === undefined ? '' : `; it entered workflow '${definition}' ${id} last`;
      core.settings.logger.warn(`fusee: worker ${worker} is blocked for ${silentMs} ms${where}`, { worker });
    }
    const base = { type: 'workerBlocked', time: new Date(core.nowMs()), worker };
    const told = core.listeners.emit('workerBlocked', { ...base, isBlocked, silentMs: Number(silentMs), run });
    if (isBlocked) this.pool.handleBlocked(worker);
    return told;
  }
}

/** Opens a directory, and the threads that run its code. */
export async function openGroup(settings: CoreSettings, workers: WorkerSettings): Promise<Engine> {
  const engine = new GroupEngine(settings, workers, new Map());
  await engine.startWorkers();
  return engine;
}

function messageOf(error: unknown): string {
  return String((error as { message?: unknown } | null | undefined)?.message ?? error);
}

function notHere(): never {
  throw new Error('the code of this workflow runs in the workers');
}
