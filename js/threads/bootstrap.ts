/**
 * What a worker of a group runs first: it loads the application's module, joins the group, and runs until it is told to
 * close.
 */
import { syncBuiltinESMExports } from 'node:module';
import { inspect } from 'node:util';
import threads, { type MessagePort } from 'node:worker_threads';
import { codecsOf } from '../codec/chain.js';
import { encodeFailure } from '../codec.js';
import type { Codec } from '../codec/payloads.js';
import { WorkerEngine } from '../client/worker-engine.js';
import type { Logger } from '../worker/host.js';
import { readDefinitions } from '../client/options.js';
import type { WorkflowCode } from '../workflow/run.js';
import { becomeThreadOfGroup, type Boot, type FromWorker, type ThreadOfGroup, type ToWorker } from './messages.js';
import type { TaskDefinition } from '../scheduler/definition.js';
import { differenceOf, fingerprints, loadDefinitions } from './module.js';

/** Runs the worker that this thread is. */
export function bootstrap(): void {
  const { fusee, workerData } = threads.workerData as Boot;
  // The application reads its own, as in a worker that it had made itself.
  (threads as { workerData: unknown }).workerData = workerData;
  syncBuiltinESMExports();
  const thread: ThreadOfGroup = { part: fusee.part, engine: undefined };
  becomeThreadOfGroup(thread);
  const { port } = fusee;
  sayWhenEnding(port);
  load(thread, fusee).catch((error: unknown) => fail(port, error));
}

/** Of an error that nobody caught, the platform tells the opener itself. */
function sayWhenEnding(port: MessagePort): void {
  let isError = false;
  process.on('uncaughtExceptionMonitor', () => {
    isError = true;
  });
  process.on('exit', (exitCode) => {
    if (!isError) tell(port, { kind: 'ending', exitCode });
  });
}

function tell(port: MessagePort, message: FromWorker): void {
  port.postMessage(message);
}

function fail(port: MessagePort, error: unknown): void {
  tell(port, { kind: 'failed', error: encodeFailure(error) });
}

/** Lines go where the opener's go. */
function loggerOf(port: MessagePort): Logger {
  const write = (level: keyof Logger) => (message: string, fields?: object) => {
    try {
      tell(port, { kind: 'log', level, message, fields });
    } catch {
      // What cannot be copied between threads is told as a text.
      tell(port, { kind: 'log', level, message, fields: { text: inspect(fields) } });
    }
  };
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}

async function load(thread: ThreadOfGroup, { port, module, known }: Boot['fusee']): Promise<void> {
  const found = await loadDefinitions(module);
  const handle = serve(thread, port, readDefinitions(found.workflows, found.objects), found.tasks, found.codecs);
  const definitions = fingerprints(found);
  tell(port, { kind: 'loaded', definitions });
  if (known !== undefined && differenceOf(known.definitions, definitions) === undefined) {
    await handle({ kind: 'join', settings: known.settings });
  }
}

function serve(
  thread: ThreadOfGroup,
  port: MessagePort,
  definitions: ReadonlyMap<string, WorkflowCode>,
  tasks: ReadonlyMap<string, TaskDefinition>,
  codecs: readonly Codec[],
): (message: ToWorker) => Promise<void> {
  let engine: WorkerEngine | undefined;
  const handle = async (message: ToWorker): Promise<void> => {
    switch (message.kind) {
      case 'join': {
        const payloads = codecsOf(message.settings.codecs, codecs);
        engine = new WorkerEngine(
          message.settings,
          definitions,
          tasks,
          payloads,
          loggerOf(port),
          (stuck, unregistered) => tell(port, { kind: 'caughtUp', stuck, unregistered }),
        );
        thread.engine = engine;
        tell(port, { kind: 'joined', incarnation: engine.incarnation });
        break;
      }
      case 'close':
        await engine?.leave(message.graceMs);
        tell(port, { kind: 'closed' });
        port.close();
        break;
    }
  };
  port.on('message', (message: ToWorker) => {
    handle(message).catch((error: unknown) => fail(port, error));
  });
  return handle;
}
