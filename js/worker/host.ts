/**
 * What runs on this thread get from their surroundings: whose turn it is, and what happens to code that breaks a rule.
 *
 * The pump sets {@link WorkerHost.current}; everything that a run asks for is refused unless it is its turn (LAW-4).
 */
import { encode, encodeFailure } from '../codec.js';
import type { PayloadPlace, Payloads } from '../codec/payloads.js';
import { CancelledError, CodecError, DeterminismError } from '../errors.js';
import { Context } from '../workflow/context.js';
import { launchObject } from '../workflow/objects.js';
import { tasksForWorkflows } from '../scheduler/for-workflows.js';
import type { TaskSettings } from '../scheduler/settings.js';
import type { Host, LogLevel, StepScope, TaskHost, Verbs } from '../workflow/host.js';
import type { StepOp } from '../workflow/operations.js';
import { atPlace, placeOf } from '../workflow/place.js';
import type { Run, WorkflowCode } from '../workflow/run.js';
import { Attempt } from './attempt.js';
import { Bodies, type BodyOwner, type BodyVerbs } from './bodies.js';
import type { TickWatch } from './tick-watch.js';
import { captureContext, currentMark, currentScope, inRoot, inScope, marked } from './contexts.js';

/** What the host needs of the engine. */
export interface HostVerbs extends Verbs, BodyVerbs {
  stuck(slot: number, message: string, place: string): void;
  stuckAt(slot: number, place: string): void;
  failStuck(slot: number, failure: string): number;
  retryStuck(slot: number): number;
  mismatch(slot: number): string;
  idempotencyKey(keyRoot: string, name: string, nth: number): string;
}

/** Where lines go. */
export interface Logger {
  debug(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
}

/** How runs are run here. */
export interface HostSettings {
  readonly definitions: ReadonlyMap<string, WorkflowCode>;
  readonly tasks: TaskSettings;
  readonly logger: Logger;
  readonly isDev: boolean;
  readonly payloads: Payloads;
  readonly payloadBytesMax: number;
  readonly nowMs: () => number;
  readonly random: () => number;
}

/** What the host asks of the pump. */
export interface TurnOwner {
  /** A run has deliveries. */
  ready(run: Run): void;
  /** A run has one delivery, which was taken. */
  readyTaken(run: Run): void;
  /** Its code goes on no more. */
  drop(run: Run): void;
  /** Something is to be done, and the engine may have events. */
  wake(): void;
  /** Something is to be done. */
  wakeLater(): void;
}

/** The host of one engine on one thread. */
export class WorkerHost implements Host, BodyOwner {
  current: Run | null = null;
  body: Attempt | null = null;
  isShuttingDown = false;
  /** Runs that got stuck so far. */
  stuckCount = 0;
  /** What is being called between turns, as messages name it: a query's handler, a condition's predicate. */
  asking: string | null = null;
  readonly isDev: boolean;
  readonly payloads: Payloads;
  readonly bodies: Bodies;
  readonly tasks: TaskHost;
  readonly nowMs: () => number;
  readonly random: () => number;
  private readonly unread = new WeakMap<Run, CodecError>();
  /** What runs in place of steps' functions: by workflow, by step. */
  readonly stepMocks = new Map<string, Map<string, (attempt: number) => unknown>>();
  /** What runs in place of workflows' functions. */
  readonly workflowMocks = new Map<string, (input: unknown) => unknown>();

  constructor(
    readonly verbs: HostVerbs,
    private readonly settings: HostSettings,
    private readonly turns: TurnOwner,
    private readonly watch: TickWatch,
  ) {
    this.isDev = settings.isDev;
    this.payloads = settings.payloads;
    this.nowMs = settings.nowMs;
    this.random = settings.random;
    this.bodies = new Bodies(verbs, this);
    this.tasks = tasksForWorkflows(settings.tasks, settings.payloads, (value, what, place) =>
      this.record(value, what, place),
    );
  }

  encode(value: unknown, what: string): string {
    let text: string;
    try {
      text = encode(value);
    } catch (error) {
      throw new TypeError(`${what} cannot be recorded: ${(error as Error).message}`, { cause: error });
    }
    this.checkSize(text, what);
    return text;
  }

  record(value: unknown, what: string, place: PayloadPlace): string {
    const text = this.payloads.record(value, what, place);
    this.checkSize(text, what);
    return text;
  }

  encodeFailure(error: unknown): string {
    return encodeFailure(error);
  }

  checkSize(text: string, what: string): void {
    if (this.isSmall(text)) return;
    const { payloadBytesMax } = this.settings;
    const bytes = Buffer.byteLength(text);
    if (bytes > payloadBytesMax) {
      throw new RangeError(`${what} takes ${bytes} bytes; the limit is ${payloadBytesMax} (payloadBytesMax)`);
    }
  }

  isSmall(text: string): boolean {
    // A UTF-16 unit takes 1 to 3 bytes.
    return text.length * 3 <= this.settings.payloadBytesMax;
  }

  launch(run: Run): unknown {
    const { code } = run;
    const text = run.input;
    run.input = null;
    let input: unknown;
    try {
      if (code.object !== undefined) return launchObject(run, code.object);
      input = text === null || text === '' ? undefined : run.read('input', '', text);
    } catch (error) {
      if (CodecError.is(error)) this.unreadable(run, error);
      throw error;
    }
    const mock = this.workflowMocks.get(code.name);
    if (mock !== undefined) return inRoot(mock, input);
    const context = new Context(run);
    return this.isDev ? inRoot(callMarked, run, code, context, input) : inRoot(code.handler as Handler, context, input);
  }

  call(run: Run, fn: (argument: unknown) => unknown, argument: unknown): unknown {
    return this.isDev ? inRoot(marked as typeof callOne, run, fn, argument) : inRoot(fn, argument);
  }

  gate(step: StepOp): void {
    this.bodies.gate(step);
  }

  abandon(step: StepOp, reason: unknown): void {
    this.bodies.abandon(step, reason);
  }

  captureContext(): StepScope {
    this.watch.takeId();
    return captureContext();
  }

  inScope<Argument>(scope: object, fn: (argument: Argument) => unknown, argument: Argument): unknown {
    return inScope(scope, fn, argument);
  }

  currentScope(): object | undefined {
    return currentScope();
  }

  isOutside(): boolean {
    return this.asking !== null || currentMark() instanceof Attempt;
  }

  outOfTurn(run: Run, verb: string): void {
    const mark = currentMark();
    const body = this.body ?? (mark instanceof Attempt ? mark : null);
    if (body !== null) {
      throw new DeterminismError(
        `ctx.${verb} was called inside the function of step '${body.step.name}' of workflow ${run.id}; ` +
          `a step's function has no ctx: call it before or after the step, or use the function's own argument`,
      );
    }
    if (this.asking !== null) {
      throw new DeterminismError(
        `ctx.${verb} was called inside ${this.asking} of workflow ${run.id}, which must only look`,
      );
    }
    const isCall = verb !== 'return' && verb !== 'throw';
    this.stuck(run, foreignAwait(run, verb), isCall ? new Error(verb) : run.lastUse);
  }

  stuck(run: Run, message: string, at: Error | null = run.lastUse): void {
    if (run.isDead) return;
    this.verbs.stuck(run.slot, message, placeIn(at));
    this.reportStuck(run, message);
  }

  unreadable(run: Run, error: unknown): void {
    if (run.isDead) return;
    const message = `what was recorded cannot be read: ${String(error)}`;
    this.verbs.stuck(run.slot, message, '');
    if (CodecError.is(error)) this.unread.set(run, error);
    this.reportStuck(run, message);
  }

  /** Why a run that is stuck cannot be read, where that is why. */
  whyUnread(run: Run): Error | undefined {
    return this.unread.get(run);
  }

  mismatch(run: Run, verb: string): void {
    if (run.isDead) return;
    this.verbs.stuckAt(run.slot, placeIn(run.lastUse));
    this.reportStuck(run, `${this.verbs.mismatch(run.slot)} (${verb}${atPlace(run.lastUse)})`);
  }

  gone(run: Run): void {
    run.kill(new CancelledError(`workflow ${run.id} has ended`, { reason: undefined }));
    this.halt(run);
  }

  knows(type: string): boolean {
    return this.settings.definitions.has(type);
  }

  idempotencyKey(run: Run, seq: number, name: string, nth: number): string {
    return this.verbs.idempotencyKey(run.originAt(seq).keyRoot, name, nth);
  }

  log(run: Run, level: LogLevel, message: string, fields: object | undefined): void {
    this.settings.logger[level](message, { ...fields, workflow: run.code.name, id: run.id, runId: run.runId });
  }

  warn(run: Run, message: string, error?: unknown): void {
    this.log(run, 'warn', message, error === undefined ? undefined : { error });
  }

  replacement(step: StepOp): ((attempt: number) => unknown) | undefined {
    if (this.stepMocks.size === 0) return undefined;
    return this.stepMocks.get(step.run.code.name)?.get(step.name);
  }

  ready(run: Run): void {
    this.turns.ready(run);
  }

  readyTaken(run: Run): void {
    this.turns.readyTaken(run);
  }

  wake(): void {
    this.turns.wake();
  }

  wakeLater(): void {
    this.turns.wakeLater();
  }

  /** A run's code breaks a rule, and the engine knows it. */
  private reportStuck(run: Run, message: string): void {
    const { id, code } = run;
    this.halt(run);
    // Whoever asks is told.
    if (run.isRevived) return;
    // The code is not to blame for what cannot be read, and the run can go on once it can be.
    const isRead = !this.unread.has(run);
    if (isRead && code.options?.onMismatch === 'fail') {
      this.verbs.failStuck(run.slot, encodeFailure(new DeterminismError(message)));
      this.settings.logger.warn(`fusee: workflow '${code.name}' ${id} has failed, as its onMismatch says: ${message}`, {
        workflow: code.name,
        id,
      });
      return;
    }
    this.stuckCount += 1;
    const isTriedAgain = code.options?.onMismatch === 'retry';
    if (isTriedAgain) this.verbs.retryStuck(run.slot);
    this.settings.logger.warn(
      `fusee: workflow '${code.name}' ${id} is stuck: ${message}. Other runs go on. ` +
        (isTriedAgain
          ? `It will be tried again, as its onMismatch says`
          : isRead
            ? `Mend the code, then call handle.resume()`
            : `Open with a codec that can read it`),
      { workflow: code.name, id },
    );
  }

  /** Its code goes on no more; bodies that run may still end. */
  private halt(run: Run): void {
    run.isDead = true;
    run.conditions = null;
    if (this.current === run) this.current = null;
    this.turns.drop(run);
  }
}

declare function callOne(run: Run, fn: (argument: unknown) => unknown, argument: unknown): unknown;

type Handler = (context: Context, input: unknown) => unknown;

function callMarked(run: Run, code: WorkflowCode, context: Context, input: unknown): unknown {
  return marked(run, code.handler as Handler, context, input);
}

/** `file:line:column`, or nothing where it is not known. */
function placeIn(trace: Error | null): string {
  return trace === null ? '' : (placeOf(trace) ?? '');
}

/** What to say of code that awaited something that `ctx` did not give. */
function foreignAwait(run: Run, verb: string): string {
  const last =
    run.lastUse === null ? '' : `; its last call in turn was ctx.${run.lastUse.message}${atPlace(run.lastUse)}`;
  const what =
    verb === 'return' || verb === 'throw'
      ? `its function ended (${verb}) out of turn`
      : `ctx.${verb} was called out of turn${atPlace(new Error(verb))}`;
  return (
    `${what}: before it the code awaited something that does not come from ctx ` +
    `(a timer, a request, a promise of its own), or used ctx in the function of a step${last}`
  );
}
