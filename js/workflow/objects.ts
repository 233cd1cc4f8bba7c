/**
 * The code of an object: calls, one after the other, on a state that is recorded with each answer.
 *
 * A replay begins behind the last answer, with the state that it has: what calls before it asked for is gone. It does not
 * know who calls, nor where the state is kept.
 */
import { decode, encode } from '../codec.js';
import { CancelledError, DeterminismError, UpdateRejectedError } from '../errors.js';
import { applyPatch } from '../json-patch.js';
import { handlerOf, OBJECT_PREFIX, type ObjectDefinition } from '../object-definition.js';
import { frozenState, openState, packState, readState, type RecordedState } from '../object-state.js';
import { compensate } from './compensation.js';
import { Continuation } from './continuing.js';
import { loggerOf, type RunLogger } from './logger.js';
import { ObjectContext } from './object-context.js';
import { StepOp } from './operations.js';
import type { Run } from './run.js';
import { isOpen, never } from './turn.js';

/** Flags of `answerCall`. */
const HAS_FAILED = 1;
const IS_ALONE = 2;
const HAS_STATE = 4;

/** An answer of `answerCall`: the journal has grown, the run should go on as a new one. */
const SHOULD_CONTINUE = 1;

/** The names of calls that are no handlers. */
const SET = '$set';
const PATCH = '$patch';
const CLEAR = '$clear';

/** A call that was handed to the code. */
interface Call {
  readonly number: number;
  readonly name: string;
  readonly payload: string;
}

/** What is asked of the state from outside. */
interface Edit {
  readonly value: unknown;
  /** The version that is meant; without one, any. */
  readonly version: number | undefined;
}

/** Begins the code of an object. What it returns never settles: an object does not end by itself. */
export function launchObject(run: Run, definition: ObjectDefinition): Promise<never> {
  const text = run.host.verbs.objectState(run.slot);
  const border = text.indexOf('\u001f');
  run.seq = Number(text.slice(0, border));
  const recorded = openState(readState(text.slice(border + 1)), (state) => run.open('state', '', state));
  run.object = new ObjectCalls(run, definition, recorded);
  return never();
}

/** What is recorded of a call that has settled. */
interface CallOutcome {
  readonly flags: number;
  readonly text: string;
  /** Empty: it is as it was. */
  readonly state: string;
  /** The state that follows, encoded. */
  readonly changed?: string;
}

/** The calls of one object whose code is in memory. */
export class ObjectCalls {
  /** Id of the object. */
  readonly id: string;
  /** Number of the call that runs; 0: none does. */
  current = 0;
  /** The last operation before it. */
  firstSeq = 0;
  private readonly waiting: Call[] = [];
  /** The state while a handler has it. */
  private draft: { value: unknown } | null = null;
  /** The encoding of a first state that was never recorded, so that a look at it is no change. */
  private firstText: string | undefined;
  private isLeaving = false;

  constructor(
    private readonly run: Run,
    private readonly definition: ObjectDefinition,
    private recorded: RecordedState,
  ) {
    this.id = run.id.slice(OBJECT_PREFIX.length + definition.name.length + 1);
  }

  /** The state, for the handler that runs. */
  get state(): unknown {
    return this.take().value;
  }

  set state(value: unknown) {
    this.take().value = value;
  }

  /** Takes a call in. Call it only within a turn of the run. */
  deliver(number: number, text: string): void {
    const border = text.indexOf('\u001f');
    const call = { number, name: text.slice(0, border), payload: text.slice(border + 1) };
    const isShared = handlerOf(this.definition.shared, call.name) !== undefined;
    if (!isShared) this.waiting.push(call);
    // From a microtask: a tick that the handler queues at once would otherwise run before the end of the turn.
    void Promise.resolve().then(() => (isShared ? this.look(call) : this.begin()));
  }

  private take(): { value: unknown } {
    if (this.draft !== null) return this.draft;
    const { text } = this.recorded;
    const value = text === undefined ? this.definition.state() : decode(text);
    if (text === undefined) this.firstText = encode(value);
    return (this.draft = { value });
  }

  /** A handler that only looks. */
  private look({ number, name, payload }: Call): void {
    if (this.run.isDead) return;
    const { shared } = this.definition;
    let flags = 0;
    let text: string;
    const { host } = this.run;
    let input: unknown;
    try {
      input = this.inputOf({ number, name, payload });
    } catch (error) {
      host.unreadable(this.run, error);
      return;
    }
    try {
      const view = sharedContext(this.id, this.recorded, this.definition, loggerOf(this.run));
      text = this.recordAnswer(name, callShared(shared, name, view, input));
    } catch (error) {
      flags = HAS_FAILED;
      text = host.encodeFailure(error);
    }
    isOpen(this.run, host.verbs.answerCall(this.run.slot, number, flags, text, ''), `answer to '${name}'`);
  }

  /** The next call, if none runs. */
  private begin(): void {
    const { run } = this;
    if (run.isDead || this.current > 0 || this.isLeaving) return;
    const call = this.waiting.shift();
    if (call === undefined) return;
    this.current = call.number;
    this.firstSeq = run.seq;
    run.steps = null;
    let input: unknown;
    try {
      input = this.inputOf(call);
    } catch (error) {
      run.host.unreadable(run, error);
      return;
    }
    let returned: unknown;
    try {
      returned = this.handle(call, input);
    } catch (error) {
      this.failed(call, error);
      return;
    }
    if (!isThenable(returned)) {
      this.end(call, false, returned);
      return;
    }
    void Promise.resolve(returned).then(
      (value) => this.end(call, false, value),
      (error: unknown) => this.failed(call, error),
    );
  }

  private inputOf({ name, payload }: Call): unknown {
    return payload === '' ? undefined : this.run.read('call', name, payload);
  }

  private recordAnswer(name: string, value: unknown): string {
    const { host, id } = this.run;
    return host.record(value, `the answer of '${name}'`, { kind: 'callAnswer', id, name: '' });
  }

  private handle({ number, name }: Call, input: unknown): unknown {
    const { run, definition } = this;
    if (name.startsWith('$')) return this.edit(name, input as Edit);
    const handler = handlerOf(definition.handlers, name);
    if (handler === undefined) throw new TypeError(`object '${definition.name}' has no handler '${name}'`);
    const context = new ObjectContext(run, this, number);
    return run.host.call(run, (given) => handler(context as never, given as never), input);
  }

  /** A change of the state from outside. @returns the version that it has then */
  private edit(name: string, { value, version }: Edit): number {
    const { definition, id, recorded } = this;
    const reject = (why: string, cause?: unknown): never => {
      throw new UpdateRejectedError(`the state of object '${definition.name}' ${id} was not changed: ${why}`, {
        update: name.slice(1),
        cause,
      });
    };
    if (version !== undefined && version !== recorded.version) {
      reject(`it is at version ${recorded.version}, not ${version}; read it again`);
    }
    switch (name) {
      case SET:
        this.state = value;
        break;
      case CLEAR:
        this.state = definition.state();
        break;
      case PATCH:
        try {
          this.state = applyPatch(this.state, value);
        } catch (error) {
          reject((error as Error).message, error);
        }
        break;
      default:
        throw new TypeError(`'${name}' is no way to change an object`);
    }
    return recorded.version + (this.changedText() === undefined ? 0 : 1);
  }

  private failed(call: Call, error: unknown): void {
    const { run } = this;
    if (run.isDead || run.undos === null || run.host.current !== run) {
      this.end(call, true, error);
      return;
    }
    void compensate(run).then(() => this.end(call, true, error));
  }

  /** Records how a handler settled, and goes on with the next call. */
  private end(call: Call, hasThrown: boolean, value: unknown): void {
    const { run } = this;
    if (run.isDead) return;
    if (run.host.current !== run) {
      run.host.outOfTurn(run, hasThrown ? 'throw' : 'return');
      return;
    }
    const { flags, text, state, changed } = this.outcome(call, hasThrown, value);
    this.dropRest();
    const answer = run.host.verbs.answerCall(run.slot, call.number, flags | IS_ALONE, text, state);
    if (!isOpen(run, answer, `answer to '${call.name}'`)) return;
    if (changed !== undefined) this.recorded = { version: this.recorded.version + 1, text: changed };
    this.draft = null;
    this.current = 0;
    run.forgetTime();
    if (answer !== SHOULD_CONTINUE) {
      this.begin();
      return;
    }
    this.isLeaving = true;
    const { version, text: kept } = this.recorded;
    run.outcome = {
      hasFailed: false,
      value: new Continuation(kept === undefined ? '' : packState(version, this.sealState(kept)), 1, -1),
    };
  }

  private outcome(call: Call, hasThrown: boolean, value: unknown): CallOutcome {
    const { host } = this.run;
    if (!hasThrown) {
      try {
        const text = this.recordAnswer(call.name, value);
        const changed = this.changedText();
        if (changed === undefined) return { flags: 0, text, state: '' };
        const state = packState(this.recorded.version + 1, this.sealState(changed));
        host.checkSize(text + state, `the answer of '${call.name}' with the state`);
        return { flags: HAS_STATE, text, state, changed };
      } catch (refused) {
        return { flags: HAS_FAILED, text: host.encodeFailure(refused), state: '' };
      }
    }
    return { flags: HAS_FAILED, text: host.encodeFailure(value), state: '' };
  }

  /** The state as it is recorded. @param text its encoding */
  private sealState(text: string): string {
    const { payloads } = this.run.host;
    if (payloads.isPlain) return text;
    const place = { kind: 'state', id: this.run.id, name: '' } as const;
    return payloads.seal(text, `the state of object '${this.definition.name}' ${this.id}`, place);
  }

  /** The state, encoded, if the handler has changed it. */
  private changedText(): string | undefined {
    if (this.draft === null) return undefined;
    const text = this.run.host.encode(this.draft.value, `the state of object '${this.definition.name}' ${this.id}`);
    return text === (this.recorded.text ?? this.firstText) ? undefined : text;
  }

  /** What the call has asked for and not waited for ends with it: nothing of it is heard of again. */
  private dropRest(): void {
    const { run } = this;
    const reason = new CancelledError(`the call of object ${run.id} has ended`, { reason: undefined });
    for (const op of run.takeAllPending()) if (op instanceof StepOp) run.host.abandon(op, reason);
    run.conditions = null;
    run.scopes = null;
    run.undos = null;
    run.cancelled = null;
    run.abort = null;
  }
}

/** What a shared handler gets as `ctx`. */
interface SharedContext {
  readonly id: string;
  readonly state: unknown;
  readonly log: RunLogger;
}

/** What a shared handler gets. The state is made when it is looked at. */
export function sharedContext(
  id: string,
  recorded: RecordedState,
  { state }: ObjectDefinition,
  log: RunLogger,
): SharedContext {
  let seen: { readonly value: unknown } | undefined;
  return Object.freeze({
    id,
    log,
    get state() {
      return (seen ??= { value: frozenState(recorded, state) }).value;
    },
  });
}

/** Calls a shared handler. @throws what it throws; DeterminismError if it is not synchronous */
export function callShared(
  shared: ObjectDefinition['shared'],
  name: string,
  context: SharedContext,
  input: unknown,
): unknown {
  const answer = shared[name]!(context as never, input as never);
  if (!isThenable(answer)) return answer;
  Promise.resolve(answer).then(undefined, () => undefined);
  throw new DeterminismError(`the shared handler '${name}' must be synchronous: it only looks at the state`);
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
