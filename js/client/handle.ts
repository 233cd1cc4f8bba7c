/**
 * A workflow, seen from outside. A handle is no promise: await `result()`.
 */
import { decode } from '../codec.js';
import { checkSignalValue, queryName, signalName } from '../definitions.js';
import { knownOptions, oneLine } from '../options.js';
import { COMPENSATION_PREFIX } from '../workflow/compensation.js';
import type { EngineCore } from './core.js';
import { checkRetry, fork, reset, retry, type ForkOptions, type ResetOptions, type RetryOptions } from './branching.js';
import { exportRun } from './exporting.js';
import { patienceOf, waitFor, type ResultOptions } from './patience.js';
import { requestUpdate, type UpdateOptions } from './updating.js';
import { HistoryReader, type HistoryRecord } from './history.js';
import { readRow, rowsOf, type RunRow } from './rows.js';

/** Records fetched at a time. */
const HISTORY_PAGE = 200;

/** A workflow. */
export class WorkflowHandle {
  readonly kind = 'workflow';
  readonly #core: EngineCore;

  constructor(
    core: EngineCore,
    /** Id of the run. */
    readonly id: string,
    /** The run that was started, or that the handle is pinned to. */
    readonly runId: string | undefined,
  ) {
    this.#core = core;
  }

  /** Waits for the end. Resolved means that the result is durable. */
  async result(options?: ResultOptions): Promise<unknown> {
    const patience = patienceOf(options, 'handle.result');
    const target = { id: this.id, runId: this.runId ?? '' };
    const request = this.#core.request(
      (token) => this.#core.native.result(token, target.id, target.runId),
      this.#core.readResult,
      target,
    );
    return waitFor(this.#core, request, patience, `the result of workflow ${this.id}`);
  }

  /** Sends a signal. Resolved: durable, and will be delivered. */
  async signal(signal: unknown, value?: unknown, options?: { dedupeId?: string; actor?: string }): Promise<void> {
    const name = signalName(signal);
    knownOptions(options, ['dedupeId', 'actor'], 'handle.signal');
    const checked = await checkSignalValue(signal, value);
    const place = { kind: 'signal', id: this.id, name } as const;
    const text = this.#core.record(checked, `the value of signal '${name}'`, place);
    const dedupeId = oneLine(options?.dedupeId, 'dedupeId');
    const actor = oneLine(options?.actor, 'actor');
    await this.#ask((token, id, runId) => this.#core.native.signal(token, id, runId, name, text, dedupeId, actor));
  }

  /** Asks a query. The answer rests on durable records only. */
  async query(query: unknown, input?: unknown, options?: ResultOptions): Promise<unknown> {
    const name = queryName(query);
    const patience = patienceOf(options, 'handle.query');
    const text = input === undefined ? '' : this.#core.encode(input, `the input of query '${name}'`);
    const request = this.#core.query(this.id, this.runId ?? '', name, text);
    return decode(await waitFor(this.#core, request, patience, `the answer to query '${name}'`));
  }

  /** Asks for an update and waits for its answer, which is durable then. */
  update(update: unknown, input?: unknown, options?: UpdateOptions): Promise<unknown> {
    return requestUpdate(this.#core, this.id, this.runId ?? '', update, input, options);
  }

  /** Asks the run to end. Resolved: the request is durable. No-op after its end. */
  async cancel(reason?: string, options?: { actor?: string }): Promise<void> {
    const [why, actor] = this.#audit(reason, options, 'cancel');
    await this.#ask((token, id, runId) => this.#core.native.cancel(token, id, runId, why, actor));
  }

  /** Ends the run at once: no code of it runs again. */
  async terminate(reason?: string, options?: { actor?: string }): Promise<void> {
    const [why, actor] = this.#audit(reason, options, 'terminate');
    await this.#ask((token, id, runId) => this.#core.native.terminate(token, id, runId, why, actor));
  }

  /** Nothing of its code goes on until `resume`. Resolved: the request is durable. */
  async pause(options?: { actor?: string }): Promise<void> {
    const [, actor] = this.#audit(undefined, options, 'pause');
    await this.#ask((token, id, runId) => this.#core.native.pause(token, id, runId, actor));
  }

  /** Ends a pause; tries a stuck run again. */
  async resume(options?: { actor?: string }): Promise<void> {
    const [, actor] = this.#audit(undefined, options, 'resume');
    await this.#ask((token, id, runId) => this.#core.native.resume(token, id, runId, actor));
  }

  /** Ends its sleeps now, as if their time had come. */
  async wake(options?: { actor?: string }): Promise<void> {
    const [, actor] = this.#audit(undefined, options, 'wake');
    await this.#ask((token, id, runId) => this.#core.native.wake(token, id, runId, actor));
  }

  /** Another run under another id, with the records before a step. */
  async fork(options: ForkOptions): Promise<WorkflowHandle> {
    const { id, runId } = await fork(this.#core, this.#target(), options);
    return new WorkflowHandle(this.#core, id, runId);
  }

  /** The id goes on as a new run with the records before a step. */
  async reset(options: ResetOptions): Promise<WorkflowHandle> {
    return new WorkflowHandle(this.#core, this.id, await reset(this.#core, this.#target(), options));
  }

  /** The id goes on as a new run from what made this one fail. */
  async retry(options: RetryOptions = {}): Promise<WorkflowHandle> {
    checkRetry(options);
    const { runId, status } = await this.describe();
    const failed = new WorkflowHandle(this.#core, this.id, runId);
    const failure = status === 'failed' ? await failed.#failure() : undefined;
    return new WorkflowHandle(this.#core, this.id, await retry(this.#core, failed.#target(), failure, options));
  }

  /** What a run that has failed failed with. @throws TypeError if it has undone steps */
  async #failure(): Promise<unknown> {
    for await (const { kind, name } of this.history()) {
      if (kind === 'stepCompleted' && name?.startsWith(COMPENSATION_PREFIX) === true) {
        throw new TypeError(
          `workflow ${this.id} has undone steps before it failed ('${name}'); reset it to the first of those instead`,
        );
      }
    }
    return this.result().catch((error: unknown) => error);
  }

  /** What is known about the run. */
  async describe(): Promise<RunRow> {
    const { id, runId } = this.#target();
    return this.#core.request((token) => this.#core.native.describe(token, id, runId), readRow).promise;
  }

  /** The records of the run, in order, up to the last durable one. */
  async *history(): AsyncIterableIterator<HistoryRecord> {
    const { id, runId } = this.#target();
    const reader = new HistoryReader(this.id, this.#core.payloads);
    for (let from = 0; ; from += HISTORY_PAGE) {
      const page = this.#core.request(
        (token) => this.#core.native.history(token, id, runId, from, HISTORY_PAGE),
        rowsOf,
      );
      const rows = await page.promise;
      yield* reader.readAll(rows);
      if (rows.length < HISTORY_PAGE) return;
    }
  }

  /** The records of the run as the bytes of a file, up to the last durable one. */
  export(options?: { toStep?: unknown }): Promise<Uint8Array> {
    const { id, runId } = this.#target();
    return exportRun(this.#core, id, runId, options);
  }

  #target(): { readonly id: string; readonly runId: string } {
    return { id: this.id, runId: this.runId ?? '' };
  }

  #ask(send: (token: number, id: string, runId: string) => void): Promise<unknown> {
    const { id, runId } = this.#target();
    return this.#core.request((token) => send(token, id, runId), nothing).promise;
  }

  #audit(reason: unknown, options: { actor?: string } | undefined, verb: string): [string, string] {
    knownOptions(options, ['actor'], `handle.${verb}`);
    return [oneLine(reason, `the reason given to handle.${verb}`), oneLine(options?.actor, 'actor')];
  }
}

function nothing(): void {
  // The answer is that there is one.
}
