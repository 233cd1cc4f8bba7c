/**
 * What a worker of a group runs first: it loads the application's module, joins the group, and runs until it is told to
 * close.
 */
import { syncBuiltinESMExports } from 'node:module';
import { inspect } from 'node:util';
import threads from 'node:worker_threads';
import { encodeFailure } from '../codec.js';
import { WorkerEngine } from '../client/worker-engine.js';
import type { Logger } from '../worker/host.js';
import { readDefinitions } from '../client/options.js';
import type { WorkflowCode } from '../workflow/run.js';
import { becomeThreadOfGroup, type Boot, type FromWorker, type ThreadOfGroup, type ToWorker } from './messages.js';
import type { TaskDefinition } from '../scheduler/definition.js';
import { fingerprints, loadDefinitions } from './module.js';

const { fusee, workerData } = threads.workerData as Boot;
const { port, module: moduleUrl, part } = fusee;
const thread: ThreadOfGroup = { part, engine: undefined };

// The application reads its own, as in a worker that it had made itself.
(threads as { workerData: unknown }).workerData = workerData;
syncBuiltinESMExports();
becomeThreadOfGroup(thread);

function tell(message: FromWorker): void {
  port.postMessage(message);
}

/** Lines go where the opener's go. */
function loggerOf(): Logger {
  const write = (level: keyof Logger) => (message: string, fields?: object) => {
    try {
      tell({ kind: 'log', level, message, fields });
    } catch {
      // What cannot be copied between threads is told as a text.
      tell({ kind: 'log', level, message, fields: { text: inspect(fields) } });
    }
  };
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}

function serve(definitions: ReadonlyMap<string, WorkflowCode>, tasks: ReadonlyMap<string, TaskDefinition>): void {
  let engine: WorkerEngine | undefined;
  const handle = async (message: ToWorker): Promise<void> => {
    switch (message.kind) {
      case 'join':
        engine = new WorkerEngine(message.settings, definitions, tasks, loggerOf(), (stuck, unregistered) =>
          tell({ kind: 'caughtUp', stuck, unregistered }),
        );
        thread.engine = engine;
        tell({ kind: 'joined', incarnation: engine.incarnation });
        break;
      case 'close':
        await engine?.leave(message.graceMs);
        tell({ kind: 'closed' });
        port.close();
        break;
    }
  };
  port.on('message', (message: ToWorker) => {
    handle(message).catch((error: unknown) => tell({ kind: 'failed', error: encodeFailure(error) }));
  });
}

async function load(): Promise<void> {
  const found = await loadDefinitions(moduleUrl);
  serve(readDefinitions(found.workflows), found.tasks);
  tell({ kind: 'loaded', definitions: fingerprints(found) });
}

load().catch((error: unknown) => tell({ kind: 'failed', error: encodeFailure(error) }));
