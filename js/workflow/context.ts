/**
 * `ctx`: what a workflow's function sees.
 *
 * Every verb belongs to a turn of its own run (LAW-4); an operation is its number, its kind and its name (LAW-5). It
 * does not know how anything is recorded or resolved.
 */
import { packAttributes } from '../attributes.js';
import { asWorkflow, queryName, signalName, updateName } from '../definitions.js';
import { toMs, toTimeMs } from '../duration.js';
import { DeterminismError } from '../errors.js';
import { checkText, knownOptions } from '../options.js';
import { openAwakeable, type Awakeable } from './awakeables.js';
import { ChildHandle, openChild } from './children.js';
import { continuationOf } from './continuing.js';
import { LATER, TIMER_ABSOLUTE } from './host.js';
import { loggerOf, type RunLogger } from './logger.js';
import { objectClient } from './object-calls.js';
import { ConditionOp, Op, StepOp, WaitOp } from './operations.js';
import { RandomStream } from './random.js';
import type { Run } from './run.js';
import { openScope, type ScopeHandle } from './scopes.js';
import { followSignals, openWait, SignalIterator } from './signals.js';
import { enqueueTask, isTaskCode, runTask, type TaskRef } from './tasks.js';
import { StepNames } from './step-names.js';
import { DEFAULT_POLICY, stepPolicy } from './step-options.js';
import { enter, isOpen, never, refusalOf, refuse } from './turn.js';

/** What is told about a run. */
export interface RunInfo {
  readonly id: string;
  readonly runId: string;
  readonly type: string;
  readonly attempt: number;
  readonly version: number;
  readonly replaying: boolean;
  readonly startedAt: Date;
  readonly shuttingDown: boolean;
  readonly tags: { readonly [name: string]: string };
}

/** The context of one run. */
export class Context {
  readonly #run: Run;
  /** Throws where it may not be used any more. */
  readonly #guard: ((verb: string) => void) | undefined;
  /** Made when something of it is asked for. */
  #more: { streams?: Map<string, RandomStream>; info?: RunInfo; log?: RunLogger } | null = null;

  constructor(run: Run, guard?: (verb: string) => void) {
    this.#run = run;
    this.#guard = guard;
  }

  step(name: string, fn: (step: never) => unknown, options?: object): Promise<unknown> {
    const run = this.#run;
    if (!this.#enter('step')) return never();
    const refusal = refusalOf(run);
    if (refusal !== null) return refuse(refusal);
    checkName(name, 'step');
    if (typeof fn !== 'function') throw new TypeError(`ctx.step('${name}') needs a function as its second argument`);
    const policy = options === undefined ? DEFAULT_POLICY : stepPolicy(options);
    const seq = ++run.seq;
    const nth = (run.steps ??= new StepNames()).add(name);
    const answer = run.host.verbs.openStep(run.slot, seq, name, policy.flags);
    if (!isOpen(run, answer, `step '${name}'`)) return never();
    const op = new StepOp(run, seq, name, nth, fn, policy);
    run.addPending(op);
    if (answer >= 0 || answer === LATER) {
      op.scope = run.host.captureContext();
      if (answer >= 0) {
        op.gate = answer;
        run.host.gate(op);
      }
    }
    return op.promise;
  }

  sleep(duration: unknown): Promise<unknown> {
    return this.#timer('sleep', 0, duration, toMs);
  }

  sleepUntil(time: unknown): Promise<unknown> {
    return this.#timer('sleepUntil', TIMER_ABSOLUTE, time, toTimeMs);
  }

  waitFor(signal: unknown, options?: { timeout?: unknown; orElse?: unknown }): Promise<unknown> {
    const run = this.#run;
    if (!this.#enter('waitFor')) return never();
    const refusal = refusalOf(run);
    if (refusal !== null) return refuse(refusal);
    const name = signalName(signal);
    knownOptions(options, ['timeout', 'orElse'], 'ctx.waitFor');
    const timeoutMs = options?.timeout === undefined ? -1 : toMs(options.timeout);
    const wait = openWait(run, name, timeoutMs, options?.orElse, false);
    return wait instanceof WaitOp ? wait.promise : wait;
  }

  signals(signal: unknown): AsyncIterableIterator<unknown> {
    return new SignalIterator(this.#run, signalName(signal));
  }

  awakeable(options?: { timeout?: unknown }): Awakeable {
    const run = this.#run;
    if (!this.#enter('awakeable')) return { token: '', promise: never() };
    knownOptions(options, ['timeout'], 'ctx.awakeable');
    return openAwakeable(run, options?.timeout === undefined ? -1 : toMs(options.timeout));
  }

  condition(predicate: () => boolean, options?: { timeout?: unknown }): Promise<unknown> {
    const run = this.#run;
    if (!this.#enter('condition')) return never();
    const refusal = refusalOf(run);
    if (refusal !== null) return refuse(refusal);
    if (typeof predicate !== 'function') throw new TypeError('ctx.condition needs a function');
    knownOptions(options, ['timeout'], 'ctx.condition');
    const isTimed = options?.timeout !== undefined;
    const timeoutMs = isTimed ? toMs(options.timeout) : -1;
    const seq = ++run.seq;
    const answer = run.host.verbs.openCondition(run.slot, seq, timeoutMs);
    if (!isOpen(run, answer, 'condition')) return never();
    const op = new ConditionOp(seq, predicate, isTimed);
    run.addPending(op);
    (run.conditions ??= []).push(op);
    return op.promise;
  }

  onQuery(query: unknown, fn: (input: unknown) => unknown): void {
    const run = this.#run;
    if (!this.#enter('onQuery')) return;
    const name = queryName(query);
    if (typeof fn !== 'function') throw new TypeError(`ctx.onQuery('${name}') needs a function as its second argument`);
    (run.queries ??= new Map()).set(name, fn);
  }

  onUpdate(update: unknown, fn: (input: unknown) => unknown, options?: { validate?: (input: unknown) => void }): void {
    const run = this.#run;
    if (!this.#enter('onUpdate')) return;
    const name = updateName(update);
    if (typeof fn !== 'function')
      throw new TypeError(`ctx.onUpdate('${name}') needs a function as its second argument`);
    knownOptions(options, ['validate'], 'ctx.onUpdate');
    const validate = options?.validate;
    if (validate !== undefined && typeof validate !== 'function') {
      throw new TypeError(`the option validate of ctx.onUpdate('${name}') must be a function`);
    }
    (run.updates ??= new Map()).set(name, { fn, validate });
  }

  onSignal(signal: unknown, fn: (value: unknown) => unknown): void {
    const run = this.#run;
    if (!this.#enter('onSignal')) return;
    const name = signalName(signal);
    if (typeof fn !== 'function')
      throw new TypeError(`ctx.onSignal('${name}') needs a function as its second argument`);
    followSignals(run, name, fn);
  }

  run(definition: unknown, input?: unknown, options?: object): Promise<unknown> {
    const run = this.#run;
    if (!this.#enter('run')) return never();
    const refusal = refusalOf(run);
    if (refusal !== null) return refuse(refusal);
    if (isTaskCode(definition)) return runTask(run, definition, input, options);
    return openChild(run, 'run', definition, input, options)?.promise ?? never();
  }

  enqueue(task: unknown, input?: unknown, options?: object): Promise<TaskRef> {
    const run = this.#run;
    if (!this.#enter('enqueue')) return never();
    const refusal = refusalOf(run);
    if (refusal !== null) return refuse(refusal);
    return enqueueTask(run, task, input, options);
  }

  start(definition: unknown, input?: unknown, options?: object): Promise<ChildHandle> {
    const run = this.#run;
    if (!this.#enter('start')) return never();
    const refusal = refusalOf(run);
    if (refusal !== null) return refuse(refusal);
    const op = openChild(run, 'start', definition, input, options);
    return op === undefined ? never() : Promise.resolve(new ChildHandle(run, op.id, '', op));
  }

  object(definition: unknown, id: unknown): ReturnType<typeof objectClient> {
    return objectClient(this.#run, (verb) => this.#enter(verb), definition, id);
  }

  handle(definition: unknown, id: string, options?: { runId?: string }): ChildHandle {
    asWorkflow(definition);
    checkName(id, 'handle');
    knownOptions(options, ['runId'], 'ctx.handle');
    return new ChildHandle(this.#run, id, options?.runId ?? '', null);
  }

  now(): number {
    return this.#enter('now') ? this.#run.now : 0;
  }

  random(name = ''): number {
    return this.#enter('random') ? this.#stream(`random:${name}`).nextNumber() : 0;
  }

  uuid(): string {
    return this.#enter('uuid') ? this.#stream('uuid').nextUuid() : '';
  }

  scope(fn: (scope: ScopeHandle) => unknown, options?: object): Promise<unknown> {
    return openScope(this.#run, fn, options);
  }

  continueAsNew(input?: unknown, options?: object): never {
    const run = this.#run;
    if (this.#enter('continueAsNew')) throw continuationOf(run, input, options) as unknown as Error;
    // The run is stuck: the code that called goes on no more, whatever it catches.
    throw new DeterminismError(`ctx.continueAsNew was called out of turn in workflow ${run.id}`);
  }

  setAttributes(attributes: unknown): void {
    const run = this.#run;
    if (!this.#enter('setAttributes')) return;
    const text = packAttributes(attributes ?? null, 'the argument of ctx.setAttributes');
    if (text === '') return;
    isOpen(run, run.host.verbs.setAttributes(run.slot, ++run.seq, text), 'setAttributes');
  }

  patched(id: string): boolean {
    const run = this.#run;
    if (!this.#enter('patched')) return false;
    checkText(id, 'the id given to ctx.patched');
    const known = run.patches?.get(id);
    if (known !== undefined) return known;
    const answer = run.host.verbs.patched(run.slot, id);
    if (!isOpen(run, answer, `patched '${id}'`)) return false;
    // What it is first holds for the whole run, also where old records end.
    (run.patches ??= new Map()).set(id, answer === 1);
    return answer === 1;
  }

  deprecatePatch(id: string): void {
    this.patched(id);
  }

  get version(): number {
    return this.#run.version;
  }

  get signal(): AbortSignal {
    const run = this.#run;
    if (run.abort === null) {
      run.abort = new AbortController();
      if (run.cancelled !== null) run.abort.abort(run.cancelled);
    }
    return run.abort.signal;
  }

  get log(): RunLogger {
    return ((this.#more ??= {}).log ??= loggerOf(this.#run));
  }

  get info(): RunInfo {
    return ((this.#more ??= {}).info ??= infoOf(this.#run, 1));
  }

  #enter(verb: string): boolean {
    if (!enter(this.#run, verb)) return false;
    this.#guard?.(verb);
    return true;
  }

  #timer(verb: string, flags: number, value: unknown, read: (value: never) => number): Promise<unknown> {
    const run = this.#run;
    if (!this.#enter(verb)) return never();
    const refusal = refusalOf(run);
    if (refusal !== null) return refuse(refusal);
    const ms = read(value as never);
    const seq = ++run.seq;
    if (!isOpen(run, run.host.verbs.openTimer(run.slot, seq, ms, flags), verb)) return never();
    const op = new Op(seq);
    run.addPending(op);
    return op.promise;
  }

  #stream(name: string): RandomStream {
    const streams = ((this.#more ??= {}).streams ??= new Map<string, RandomStream>());
    const run = this.#run;
    // Chance belongs to the operation that may come of it.
    const seed = `${run.originAt(run.seq + 1).keyRoot}/${name}`;
    let stream = streams.get(seed);
    if (stream === undefined) {
      stream = new RandomStream(seed);
      streams.set(seed, stream);
    }
    return stream;
  }
}

function checkName(name: unknown, verb: 'step' | 'handle'): asserts name is string {
  if (typeof name !== 'string' || name === '') throw new TypeError(`ctx.${verb} needs a name that is not empty`);
  // A text that is put together costs more than the check.
  checkText(name, verb === 'step' ? 'the name given to ctx.step' : 'the name given to ctx.handle');
}

/** What `ctx.info` and the `info` of a step are. */
export function infoOf(run: Run, attempt: number): RunInfo {
  return {
    id: run.id,
    runId: run.runId,
    type: run.code.name,
    attempt,
    version: run.version,
    get replaying() {
      return run.isReplaying;
    },
    startedAt: new Date(run.startedAtMs),
    get shuttingDown() {
      return run.host.isShuttingDown;
    },
    tags: {},
  };
}
