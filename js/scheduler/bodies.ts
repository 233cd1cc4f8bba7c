/**
 * The functions of tasks that run on this thread: started when their dispatch has come, told of in batches.
 *
 * It does not know turns: whoever has them calls {@link TaskBodies.record} between two of them.
 */
import { encodeFailure } from '../codec.js';
import type { Payloads } from '../codec/payloads.js';
import { CancelledError, ClosedError, CodecError, NonRetryableError, TimeoutError } from '../errors.js';
import { afterFailure, FINAL } from '../worker/retry.js';
import { inRoot } from '../worker/contexts.js';
import { TaskContext, Postponed, type TaskContextOwner } from './context.js';
import { TASK_RETRY, type TaskDefinition } from './definition.js';
import type { RetryPolicy } from '../workflow/step-options.js';
import { FIELD, ROW } from './packing.js';
import { TASK_RESULT } from './rows.js';

/** What bodies of tasks need of the engine. */
export interface TaskBodyVerbs {
  taskOutcomes(rows: string): void;
}

/** What bodies of tasks need of their surroundings. */
export interface TaskBodyOwner extends TaskContextOwner {
  readonly definitions: ReadonlyMap<string, TaskDefinition>;
  readonly mocks: ReadonlyMap<string, (input: unknown) => unknown>;
  /** What the queue of that name says of retries. */
  queueRetry(queue: string): RetryPolicy | undefined;
  /** Outcomes wait to be recorded. */
  wakeLater(): void;
}

/** A task whose payloads cannot be read is looked at again after this. */
const UNREADABLE_WAIT_MS = 60_000;

const REASONS = ['it took longer than its timeout', 'it gave no heartbeat for too long', 'it was cancelled'];

/** Bodies of tasks of one thread. */
export class TaskBodies {
  private readonly attempts = new Map<string, TaskContext>();
  private rows: string[] = [];
  private isHeld = false;

  constructor(
    private readonly verbs: TaskBodyVerbs,
    private readonly owner: TaskBodyOwner,
  ) {}

  get running(): number {
    return this.attempts.size;
  }

  get hasRows(): boolean {
    return this.rows.length > 0;
  }

  /** Starts no more bodies. What was dispatched is as if the process had ended in order. */
  hold(): void {
    this.isHeld = true;
  }

  /** Undoes {@link hold}, for another life; what ran counts no more. */
  restart(): void {
    this.abortAll(new CancelledError('the engine crashed'));
    this.rows = [];
    this.isHeld = false;
  }

  /** An attempt may run. @returns whether its body was called */
  start(slot: number, attempt: number, text: string): boolean {
    if (this.isHeld) return false;
    const [serial, number, type, payload] = text.split(FIELD) as [string, string, string, string];
    const lease = slot + FIELD + serial;
    const definition = this.owner.definitions.get(type);
    if (definition === undefined) throw new Error(`a task of '${type}' came here, which is not defined here`);
    const context = new TaskContext(this.owner, definition, number, attempt, (letter, said) =>
      this.say(lease, letter, said),
    );
    this.attempts.set(lease, context);
    let returned: unknown;
    try {
      returned = inRoot(callBody, this.owner, definition, context, payload);
    } catch (error) {
      this.failed(lease, context, error);
      return true;
    }
    if (typeof (returned as { then?: unknown } | null | undefined)?.then !== 'function') {
      this.completed(lease, context, returned);
      return true;
    }
    (returned as PromiseLike<unknown>).then(
      (value) => this.completed(lease, context, value),
      (error: unknown) => this.failed(lease, context, error),
    );
    return true;
  }

  /** An attempt counts no more. @returns whether code of it may go on because of that */
  abort(slot: number, reason: number, serial: string): boolean {
    const lease = slot + FIELD + serial;
    const context = this.attempts.get(lease);
    if (context === undefined) return false;
    this.attempts.delete(lease);
    const message = `task ${context.info.id} is aborted: ${REASONS[reason] ?? 'the engine shuts down'}`;
    context.abort(
      reason === 0
        ? new TimeoutError(message, { of: 'attempt' })
        : reason === 1
          ? new TimeoutError(message, { of: 'heartbeat' })
          : reason === 2
            ? new CancelledError(message)
            : new ClosedError(message),
    );
    return true;
  }

  /** Aborts all; their outcomes count no more. */
  abortAll(reason: unknown): void {
    const running = [...this.attempts.values()];
    this.attempts.clear();
    for (const context of running) context.abort(reason);
  }

  /** Tells the engine what attempts said since the last time, in one crossing. @returns whether there was anything */
  record(): boolean {
    if (this.rows.length === 0) return false;
    const { rows } = this;
    this.rows = [];
    this.verbs.taskOutcomes(rows.join(ROW));
    return true;
  }

  private completed(lease: string, context: TaskContext, value: unknown): void {
    if (this.attempts.get(lease) !== context) return;
    let payload: string;
    try {
      payload = this.owner.record(value, `the result of task '${context.definition.name}'`, TASK_RESULT);
    } catch (error) {
      // Its effect is done: another attempt would only do it again.
      this.end(lease, 'p', '', encodeFailure(new NonRetryableError((error as Error).message, { cause: error })));
      return;
    }
    this.end(lease, 'c', '', payload);
  }

  private failed(lease: string, context: TaskContext, error: unknown): void {
    if (this.attempts.get(lease) !== context) return;
    if (error instanceof Postponed) {
      this.end(lease, 'w', error.untilMs, '');
      return;
    }
    if (CodecError.is(error)) {
      // It is not the task that is wrong: it costs no attempt, and goes on where the key is.
      this.end(lease, 'w', this.owner.nowMs() + UNREADABLE_WAIT_MS, '');
      const { id, type } = context.info;
      this.owner.log('warn', `fusee: task '${type}' ${id} waits for a codec that can read: ${error.message}`, {
        id,
        error,
      });
      return;
    }
    const policy = context.definition.policy.retry ?? this.owner.queueRetry(context.queue) ?? TASK_RETRY;
    let waitMs: number;
    try {
      // The policy's count and wait are the engine's to judge; here it is whether the error may be tried again.
      waitMs = afterFailure({ ...policy, maxAttempts: Infinity, initialMs: 0 }, error, 1, this.owner.nowMs(), () => 0);
    } catch {
      waitMs = FINAL;
    }
    const thrown = encodeFailure(error);
    if (waitMs === FINAL) this.end(lease, 'p', '', thrown);
    else this.end(lease, 'f', waitMs > 0 ? waitMs : '', thrown);
  }

  private end(lease: string, letter: string, value: string | number, payload: string): void {
    this.attempts.delete(lease);
    this.rows.push(lease + FIELD + letter + FIELD + value + FIELD + payload);
    this.owner.wakeLater();
  }

  private say(lease: string, letter: 'h' | 'g', payload: string): void {
    if (!this.attempts.has(lease)) return;
    this.rows.push(lease + FIELD + letter + FIELD + FIELD + payload);
    this.owner.wakeLater();
  }
}

function callBody(
  { mocks, payloads }: { readonly mocks: TaskBodyOwner['mocks']; readonly payloads: Payloads },
  definition: TaskDefinition,
  context: TaskContext,
  payload: string,
): unknown {
  const { name } = definition;
  const input: unknown = payloads.read(payload, { kind: 'task', id: '', name });
  const mock = mocks.get(name);
  return mock === undefined ? definition.handler(context as never, input as never) : mock(input);
}
