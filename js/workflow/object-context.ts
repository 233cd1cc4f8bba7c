/**
 * `ctx` of an exclusive handler of an object: that of a workflow, for the length of one call, with the state.
 */
import { DeterminismError, JournalLimitError } from '../errors.js';
import { Context } from './context.js';
import type { ChildHandle } from './children.js';
import type { ObjectCalls } from './objects.js';
import type { Run } from './run.js';

/** Operations of one call. A replay has to go through all of them. */
const OPERATIONS_MAX = 10_000;

/** The context of one call. */
export class ObjectContext extends Context {
  readonly #calls: ObjectCalls;
  readonly #number: number;

  constructor(run: Run, calls: ObjectCalls, number: number) {
    super(run, (verb) => {
      this.#check(verb);
      if (run.seq - calls.firstSeq < OPERATIONS_MAX) return;
      throw new JournalLimitError(
        `the call of object ${calls.id} has asked for ${OPERATIONS_MAX} operations, the most that one call may: divide the work among calls, or among workflows that it runs`,
      );
    });
    this.#calls = calls;
    this.#number = number;
  }

  /** Id of the object. */
  get id(): string {
    return this.#calls.id;
  }

  get state(): unknown {
    this.#check('state');
    return this.#calls.state;
  }

  set state(value: unknown) {
    this.#check('state');
    this.#calls.state = value;
  }

  /** A child that is not waited for outlives the call. */
  override start(definition: unknown, input?: unknown, options?: object): Promise<ChildHandle> {
    return super.start(definition, input, { onParentClose: 'abandon', ...options });
  }

  #check(verb: string): void {
    if (this.#calls.current === this.#number) return;
    throw new DeterminismError(
      `ctx.${verb} was used after the handler of object ${this.#calls.id} had ended: await what it starts`,
    );
  }
}

for (const verb of [
  'waitFor',
  'signals',
  'condition',
  'onQuery',
  'onUpdate',
  'onSignal',
  'continueAsNew',
  'patched',
  'deprecatePatch',
  'setAttributes',
]) {
  Object.defineProperty(ObjectContext.prototype, verb, {
    value(): never {
      throw new TypeError(`handlers of objects have no ctx.${verb}: an object waits for calls`);
    },
  });
}
