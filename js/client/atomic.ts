/**
 * Transactions: tasks that are taken in together or not at all.
 */
import { isThenable } from '../scheduler/checked.js';
import { FIELD, ROW } from '../scheduler/packing.js';
import { joinTransaction, type EnqueueOptions } from '../scheduler/submission.js';
import type { EngineCore } from './core.js';
import { packTask, readAdmitted, readRefusal, TaskHandle } from './tasks.js';

/** What the function of {@link atomic} calls. */
export class Transaction {
  readonly #core: EngineCore;
  readonly #rows: (string | Promise<string>)[] = [];
  readonly #handles: TaskHandle[] = [];
  #isOver = false;

  constructor(core: EngineCore) {
    this.#core = core;
  }

  /** Adds a task. Nothing has happened before the transaction is durable. */
  enqueue(definition: unknown, input?: unknown, options?: EnqueueOptions): TaskHandle {
    if (this.#isOver)
      throw new TypeError('this transaction is over; call tx.enqueue within the function of engine.atomic');
    if (options?.['dedupe'] !== undefined) {
      throw new TypeError(
        'tx.enqueue has no option dedupe: a live task of the same key stands for the one that is added',
      );
    }
    const row = packTask(this.#core, definition, input, options, this);
    if (typeof row !== 'string') {
      // It is looked at when the function has returned; until then nobody is to be told of a rejection.
      row.catch(() => undefined);
    }
    const handle = new TaskHandle(this.#core, '', options?.['key'] as string | undefined, false);
    joinTransaction(handle, this, this.#rows.length);
    this.#rows.push(row);
    this.#handles.push(handle);
    return handle;
  }

  /** Nothing is added any more. */
  close(): void {
    this.#isOver = true;
  }

  /** Resolved: all are durable. @throws why none is taken in */
  async commit(): Promise<void> {
    const rows: string[] = [];
    for (const row of this.#rows) rows.push(typeof row === 'string' ? row : await row);
    const core = this.#core;
    core.check();
    if (rows.length === 0) return;
    const request = core.request((token) => core.native.enqueueTogether(token, rows.join(ROW)), String);
    const answers = (await request.promise).split(ROW);
    const [what, , , , , at = ''] = answers[0]!.split(FIELD);
    if (what === 'r') throw refusalOf(answers[0]!, at);
    answers.forEach((row, index) => {
      const handle = this.#handles[index]!;
      handle.becomes(readAdmitted(core, row, handle.key) as TaskHandle);
    });
  }
}

function refusalOf(row: string, at: string): Error {
  const refusal = readRefusal(row);
  if (at === '') return refusal;
  refusal.message = `call ${at} of the transaction: ${refusal.message}`;
  return Object.assign(refusal, { index: Number(at) });
}

/** Takes tasks in together. `fn` adds them, synchronously. @returns what `fn` returned, once they are durable */
export async function atomic<T>(core: EngineCore, fn: (tx: Transaction) => T): Promise<T> {
  core.check();
  if (typeof fn !== 'function') throw new TypeError('engine.atomic needs a function that adds to the transaction');
  const tx = new Transaction(core);
  let result: T;
  try {
    result = fn(tx);
  } finally {
    tx.close();
  }
  if (typeof result === 'object' && result !== null && isThenable(result)) {
    Promise.resolve(result).catch(() => undefined);
    throw new TypeError('the function of engine.atomic must be synchronous; nothing was recorded');
  }
  await tx.commit();
  return result;
}
