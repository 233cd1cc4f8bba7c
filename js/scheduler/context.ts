/**
 * What the function of a task gets about its attempt.
 */
import type { PayloadPlace, Payloads } from '../codec/payloads.js';
import { CodecError } from '../errors.js';
import type { RunLogger } from '../workflow/logger.js';
import type { TaskDefinition } from './definition.js';
import { readParents, readTaskRow, type ParentResult, type TaskRow } from './rows.js';
import { fromNow } from './settings.js';

/** What a context needs of its surroundings. */
export interface TaskContextOwner {
  readonly nowMs: () => number;
  readonly payloads: Payloads;
  record(value: unknown, what: string, place: PayloadPlace): string;
  taskInfo(number: string): string;
  taskParents(number: string): string;
  taskKey(number: string): string;
  log(level: 'debug' | 'info' | 'warn' | 'error', message: string, fields: object): void;
}

/** About the task. */
export interface TaskInfo {
  readonly id: string;
  readonly type: string;
  readonly attempt: number;
  readonly tags: { readonly [name: string]: string };
}

/** Thrown by `ctx.postpone`. */
export class Postponed {
  constructor(readonly untilMs: number) {}
}

/** The context of one attempt. */
export class TaskContext {
  readonly #owner: TaskContextOwner;
  readonly #number: string;
  readonly #definition: TaskDefinition;
  readonly #say: (letter: 'h' | 'g', payload: string) => void;
  #controller: AbortController | undefined;
  #aborted: { readonly reason: unknown } | undefined;

  constructor(
    owner: TaskContextOwner,
    definition: TaskDefinition,
    number: string,
    /** Number of this attempt, from 1. */
    readonly attempt: number,
    say: (letter: 'h' | 'g', payload: string) => void,
  ) {
    this.#owner = owner;
    this.#definition = definition;
    this.#number = number;
    this.#say = say;
  }

  /** @internal */
  get definition(): TaskDefinition {
    return this.#definition;
  }

  /** The queue that the task is in. @internal */
  get queue(): string {
    return this.#row().queue;
  }

  /** The same for all attempts, over crashes. */
  get idempotencyKey(): string {
    return this.#owner.taskKey(this.#number);
  }

  /** Aborts on timeout, cancellation and shutdown. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted.reason);
    }
    return this.#controller.signal;
  }

  get info(): TaskInfo {
    const owner = this.#owner;
    const number = this.#number;
    return {
      id: `t-${number}`,
      type: this.#definition.name,
      attempt: this.attempt,
      get tags() {
        return readTaskRow(owner.payloads, owner.taskInfo(number)).tags;
      },
    };
  }

  /** What the last heartbeat of an earlier attempt said. */
  get lastHeartbeat(): unknown {
    const { progress } = this.#row();
    if (CodecError.is(progress)) throw progress;
    return progress;
  }

  /** The tasks in `after`, with what they ended with. */
  get parents(): readonly ParentResult[] {
    return readParents(this.#owner.payloads, this.#owner.taskParents(this.#number));
  }

  /** Says that the attempt is alive. Never blocks. */
  heartbeat(details?: unknown): void {
    this.#say('h', details === undefined ? '' : this.#record(details, 'the details of a heartbeat'));
  }

  /** Says how far the attempt is. */
  progress(value: unknown): void {
    this.#say('g', this.#record(value, 'the progress of a task'));
  }

  /** Ends this attempt and asks for another one later, without counting it. */
  postpone(until: unknown): never {
    // eslint-disable-next-line @typescript-eslint/only-throw-error -- it is no failure
    throw new Postponed(fromNow(until, this.#owner.nowMs()));
  }

  get log(): RunLogger {
    const write = (level: 'debug' | 'info' | 'warn' | 'error') => (message: string, fields?: object) => {
      this.#owner.log(level, message, {
        ...fields,
        task: this.#definition.name,
        id: `t-${this.#number}`,
        attempt: this.attempt,
      });
    };
    return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
  }

  #row(): TaskRow {
    return readTaskRow(this.#owner.payloads, this.#owner.taskInfo(this.#number));
  }

  #record(value: unknown, what: string): string {
    return this.#owner.record(value, what, { kind: 'taskProgress', id: '', name: this.#definition.name });
  }

  /** @internal */
  abort(reason: unknown): void {
    this.#aborted ??= { reason };
    this.#controller?.abort(reason);
  }
}
