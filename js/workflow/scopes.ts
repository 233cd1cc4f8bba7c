/**
 * Groups of operations: cancelled together, given a time limit, or shielded from a cancel of the run.
 *
 * A group is entered by a call and left by nobody: whatever is asked for in what follows from that call belongs to it, as
 * the async context says. Cancelling is part of the code, so nothing of it is recorded but what it asks for.
 */
import { CancelledError, TimeoutError } from '../errors.js';
import { toMs } from '../duration.js';
import { knownOptions } from '../options.js';
import { SEND_CANCEL_CHILD, SEND_CANCEL_ORDER, TIMER_LIMIT } from './host.js';
import { ConditionOp, EndOp, Op, StepOp, TaskOp } from './operations.js';
import type { Run } from './run.js';
import { enter, isOpen, never, refuse } from './turn.js';

/** One group. */
export class Scope {
  /** Why nothing more of it goes on. */
  cancelled: Error | null = null;
  readonly children = new Set<Scope>();
  /** What was asked for in it, ended or not. */
  ops: Op[] = [];
  abort: AbortController | null = null;
  private prunedAt = 16;

  constructor(
    readonly run: Run,
    readonly parent: Scope | null,
    /** A cancel from outside it leaves it alone. */
    readonly isShielded: boolean,
  ) {}

  /** A cancel of the run does not reach it. */
  get isProtected(): boolean {
    return this.isShielded || (this.parent !== null && this.parent.isProtected);
  }

  add(op: Op): void {
    this.ops.push(op);
    if (this.ops.length < this.prunedAt) return;
    this.ops = this.ops.filter((other) => this.run.findPending(other.seq) === other);
    this.prunedAt = 2 * this.ops.length + 16;
  }

  /** Nothing more of it may be asked for, nor of the groups in it that are not shielded. Collects what is open. */
  close(error: Error, open: Op[]): void {
    if (this.cancelled !== null) return;
    this.cancelled = error;
    for (const op of this.ops) if (this.run.findPending(op.seq) === op) open.push(op);
    for (const child of this.children) if (!child.isShielded) child.close(error, open);
    const { abort } = this;
    // From a microtask, like everything that lets code go on: see the start.
    if (abort !== null) void Promise.resolve().then(() => abort.abort(error));
  }
}

/** The groups of one run. */
export class Scopes {
  readonly roots = new Set<Scope>();
  /** Open operations that a cancel of the run leaves alone. */
  readonly shielded = new Set<Op>();
  private prunedAt = 16;

  constructor(private readonly run: Run) {}

  /** The group that the caller belongs to. */
  get current(): Scope | null {
    const scope = this.run.host.currentScope();
    return scope instanceof Scope && scope.run === this.run ? scope : null;
  }

  /** Why the caller may ask for nothing; `null`: it may. */
  get refusal(): Error | null {
    for (let scope = this.current; scope !== null; scope = scope.parent) {
      if (scope.cancelled !== null) return scope.cancelled;
      if (scope.isShielded) return null;
    }
    return this.run.cancelled;
  }

  /** An operation was opened in a group. */
  adopt(op: Op, scope: Scope | null): void {
    if (scope === null) return;
    scope.add(op);
    if (scope.isProtected) this.shield(op);
  }

  /** A cancel of the run leaves the operation alone. */
  shield(op: Op): void {
    this.shielded.add(op);
    if (this.shielded.size > this.prunedAt) this.prune();
    this.run.host.verbs.shield(this.run.slot, op.seq);
  }

  private prune(): void {
    for (const op of this.shielded) if (this.run.findPending(op.seq) !== op) this.shielded.delete(op);
    this.prunedAt = 2 * this.shielded.size + 16;
  }

  /** The run was cancelled: groups that are not shielded go with it. What is open is the run's to settle. */
  closeAll(error: Error): void {
    for (const scope of this.roots) if (!scope.isShielded) scope.close(error, []);
  }
}

/** What the function of a group gets. */
export class ScopeHandle {
  readonly #scope: Scope;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  get signal(): AbortSignal {
    const scope = this.#scope;
    if (scope.abort === null) {
      scope.abort = new AbortController();
      const reason = scope.cancelled ?? (scope.isProtected ? null : scope.run.cancelled);
      if (reason !== null) scope.abort.abort(reason);
    }
    return scope.abort.signal;
  }

  cancel(reason?: unknown): void {
    const scope = this.#scope;
    const { run } = scope;
    if (!enter(run, 'scope.cancel')) return;
    const why = typeof reason === 'string' && reason !== '' ? reason : undefined;
    const message = `a scope of workflow ${run.id} was cancelled${why === undefined ? '' : `: ${why}`}`;
    cancelScope(
      scope,
      new CancelledError(message, { reason: why, ...(why === undefined && reason !== undefined && { cause: reason }) }),
    );
  }
}

/** Runs a function as a group. */
export function openScope(run: Run, fn: (scope: ScopeHandle) => unknown, options: unknown): Promise<unknown> {
  if (!enter(run, 'scope')) return never();
  if (typeof fn !== 'function') throw new TypeError('ctx.scope needs a function');
  knownOptions(options, ['cancellable', 'timeout'], 'ctx.scope');
  const { cancellable, timeout } = (options ?? {}) as { readonly cancellable?: unknown; readonly timeout?: unknown };
  const timeoutMs = timeout === undefined ? -1 : toMs(timeout);
  const scopes = (run.scopes ??= new Scopes(run));
  const isShielded = cancellable === false;
  const refusal = isShielded ? null : scopes.refusal;
  if (refusal !== null) return refuse(refusal);
  const parent = scopes.current;
  const scope = new Scope(run, parent, isShielded);
  const siblings = parent === null ? scopes.roots : parent.children;
  siblings.add(scope);
  const timer = timeoutMs < 0 ? null : limit(scope, timeoutMs);
  if (run.isDead) return never();
  const end = (): void => {
    siblings.delete(scope);
    if (timer !== null && run.host.current === run && run.takePending(timer.seq) !== undefined) {
      run.host.verbs.withdraw(run.slot, timer.seq);
    }
  };
  const returned = new Promise((resolve) => {
    resolve(run.host.inScope(scope, fn, new ScopeHandle(scope)));
  });
  const settled = returned.finally(end);
  // A group that nobody looks at harms nobody, as an operation does not.
  settled.then(undefined, () => undefined);
  return settled;
}

/** The time limit of a group: a timer that belongs to it. */
function limit(scope: Scope, timeoutMs: number): Op | null {
  const { run } = scope;
  const seq = ++run.seq;
  if (!isOpen(run, run.host.verbs.openTimer(run.slot, seq, timeoutMs, TIMER_LIMIT), 'scope')) return null;
  const op = new Op(seq);
  run.addPendingTo(op, scope);
  const message = `a scope of workflow ${run.id} took longer than its ${timeoutMs} ms`;
  op.promise.then(
    () => cancelScope(scope, new TimeoutError(message, { of: 'scope' })),
    () => undefined,
  );
  return op;
}

/** Ends everything of a group that waits. Call it only within a turn of its run. */
function cancelScope(scope: Scope, error: Error): void {
  const { run } = scope;
  const open: Op[] = [];
  scope.close(error, open);
  for (const op of open.sort((a, b) => a.seq - b.seq)) {
    run.takePending(op.seq);
    run.host.verbs.withdraw(run.slot, op.seq);
    giveUp(run, op, error);
  }
}

/** Settles an operation that was withdrawn. Its body and its child are told. */
export function giveUp(run: Run, op: Op, error: Error): void {
  if (op instanceof StepOp) run.host.abandon(op, error);
  else if (op instanceof ConditionOp) run.dropCondition(op);
  else if (op instanceof EndOp && op.isChild) cancelChild(run, op);
  else if (op instanceof TaskOp && op.isBound) cancelTask(run, op);
  op.reject(error);
}

/** Ends the task that this operation asked for. */
function cancelTask(run: Run, { name, seq: order }: TaskOp): void {
  const seq = ++run.seq;
  isOpen(
    run,
    run.host.verbs.openSend(run.slot, seq, SEND_CANCEL_ORDER, name, '', '', String(order)),
    `cancel of task '${name}'`,
  );
}

/** Asks a child to end: the one that this operation started, and no other run of its id. */
function cancelChild(run: Run, { id, seq: child }: EndOp): void {
  const seq = ++run.seq;
  isOpen(
    run,
    run.host.verbs.openSend(run.slot, seq, SEND_CANCEL_CHILD, id, '', '', String(child)),
    `cancel of '${id}'`,
  );
}
