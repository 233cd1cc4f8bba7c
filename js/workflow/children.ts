/**
 * Other workflows, seen from a workflow: children that it starts, and those that it knows by id.
 *
 * It does not know how they run; what is asked of them is recorded here and delivered there.
 */
import { asWorkflow, checkInput, checkSignalValue, signalName } from '../definitions.js';
import { toMs } from '../duration.js';
import { OBJECT_PREFIX } from '../object-definition.js';
import { checkText, conflictPolicyCode, knownOptions, oneLine, reusePolicyCode } from '../options.js';
import { SEND_CANCEL, SEND_SIGNAL, SEND_WATCH } from './host.js';
import { EndOp } from './operations.js';
import type { Run } from './run.js';
import { enter, isOpen, never, refusalOf, refuse } from './turn.js';

const CHILD_OPTIONS = ['id', 'idReusePolicy', 'idConflictPolicy', 'version', 'timeout', 'onParentClose'];
const CLOSE_POLICIES = ['terminate', 'cancel', 'abandon'];
/** An id that is made from the parent's is not longer than this; below it, it follows from the key root alone. */
const DERIVED_ID_MAX = 200;

/** Options of a child, as users give them. */
interface GivenChild {
  readonly id?: unknown;
  readonly idReusePolicy?: unknown;
  readonly idConflictPolicy?: unknown;
  readonly version?: number;
  readonly timeout?: unknown;
  readonly onParentClose?: string;
}

/** Starts a child. @returns `undefined` if the run is stuck or over now */
export function openChild(
  run: Run,
  verb: string,
  workflow: unknown,
  input: unknown,
  options: GivenChild = {},
): EndOp | undefined {
  const definition = asWorkflow(workflow);
  const type = definition.name;
  knownOptions(options, CHILD_OPTIONS, `ctx.${verb}`);
  if (!run.host.knows(type)) {
    // What this process was given is not recorded, so an error here would not replay.
    run.host.stuck(run, `ctx.${verb} of workflow '${type}', which was not given to open(); add it there, then resume`);
    return undefined;
  }
  const checked = checkInput(definition, input);
  const id = options.id === undefined ? derivedId(run) : checkId(options.id, verb);
  const place = { kind: 'input', id, name: '', isCompared: true } as const;
  const text = run.host.record(checked, `the input of workflow '${type}'`, place);
  const flags = flagsOf(options);
  const version = options.version ?? definition.options.version ?? 1;
  const timeout = options.timeout ?? definition.options.timeout;
  const timeoutMs = timeout === undefined ? -1 : toMs(timeout);
  const seq = ++run.seq;
  const answer = run.host.verbs.openChild(run.slot, seq, flags, id, type, version, text, timeoutMs);
  if (!isOpen(run, answer, `${verb} '${type}'`)) return undefined;
  const op = new EndOp(seq, id, options.onParentClose !== 'abandon');
  run.addPending(op);
  return op;
}

function flagsOf({ onParentClose = 'terminate', idReusePolicy, idConflictPolicy }: GivenChild): number {
  const close = CLOSE_POLICIES.indexOf(onParentClose);
  if (close < 0) throw new RangeError(`onParentClose must be one of ${CLOSE_POLICIES.join(', ')}`);
  return close | (reusePolicyCode(idReusePolicy) << 2) | (conflictPolicyCode(idConflictPolicy) << 4);
}

/** A child, or another workflow. */
export class ChildHandle {
  readonly kind = 'workflow';
  readonly #run: Run;
  #end: EndOp | null;

  constructor(
    run: Run,
    /** Id of the run. */
    readonly id: string,
    /** One run of it; empty: the latest one. */
    readonly runId: string,
    end: EndOp | null,
  ) {
    this.#run = run;
    this.#end = end;
  }

  /** Waits for its end. */
  result(): Promise<unknown> {
    const run = this.#run;
    if (!enter(run, 'result')) return never();
    if (this.#end !== null) return this.#end.promise;
    const refusal = refusalOf(run);
    if (refusal !== null) return refuse(refusal);
    const seq = ++run.seq;
    if (!this.#send(seq, SEND_WATCH, '', '', `result of '${this.id}'`)) return never();
    this.#end = new EndOp(seq, this.id, false);
    run.addPending(this.#end);
    return this.#end.promise;
  }

  /** Resolves when it is recorded. */
  signal(signal: unknown, value?: unknown): Promise<void> {
    const run = this.#run;
    if (!enter(run, 'signal')) return never();
    const refusal = refusalOf(run);
    if (refusal !== null) return refuse(refusal);
    const name = signalName(signal);
    const place = { kind: 'signal', id: this.id, name } as const;
    const text = run.host.record(checkSignalValue(signal, value), `the value of signal '${name}'`, place);
    return this.#send(++run.seq, SEND_SIGNAL, name, text, `signal '${name}'`) ? Promise.resolve() : never();
  }

  /** Resolves when the request is recorded. */
  cancel(reason?: string): Promise<void> {
    const run = this.#run;
    if (!enter(run, 'cancel')) return never();
    const refusal = refusalOf(run);
    if (refusal !== null) return refuse(refusal);
    const isSent = this.#send(
      ++run.seq,
      SEND_CANCEL,
      '',
      oneLine(reason, 'the reason of a cancel'),
      `cancel of '${this.id}'`,
    );
    return isSent ? Promise.resolve() : never();
  }

  #send(seq: number, what: number, name: string, payload: string, label: string): boolean {
    const { slot, host } = this.#run;
    return isOpen(this.#run, host.verbs.openSend(slot, seq, what, this.id, this.runId, name, payload), label);
  }
}

/** The same in replay, and after a reset; different for every run of the parent's id. */
function derivedId(run: Run): string {
  const seq = run.seq + 1;
  const { keyRoot, id: of } = run.originAt(seq);
  const parent = of.startsWith(OBJECT_PREFIX) ? of.slice(OBJECT_PREFIX.length) : of;
  const id = `${parent}.${keyRoot.slice(0, 8)}.${seq}`;
  return id.length <= DERIVED_ID_MAX ? id : `${keyRoot}.${seq}`;
}

function checkId(id: unknown, verb: string): string {
  checkText(id, `the id in ctx.${verb}`);
  return id;
}
