/**
 * Events of the engine, unpacked: numbers from one array, texts from one string.
 *
 * It knows what events about runs say; those of callers go on as they are.
 */
import { CancelledError, JournalLimitError, TerminatedError, TimeoutError } from '../errors.js';
import { CANCELLED, FAILED, TERMINATED, TIMED_OUT, type Host } from '../workflow/host.js';
import { Run, type WorkflowCode } from '../workflow/run.js';
import { codeFor, isVersioned } from '../workflow/versions.js';

const START = 1;
const WAKE = 2;
const ATTEMPT = 3;
const TIMEOUT = 4;
const ENDED = 5;
const OFFER = 14;

const EVENTS_MAX = 1024;
const NUMBERS_BEFORE = 4;
const NUMBERS_PER_EVENT = 4;

/** Who is told. */
export interface EventSink {
  handleStart(run: Run): void;
  handleWake(slot: number): void;
  handleAttempt(
    slot: number,
    seq: number,
    number: number,
    lease: number,
    wasInterrupted: boolean,
    heartbeat: string,
  ): void;
  handleTimeout(slot: number, seq: number, lease: number, isHeartbeat: boolean): void;
  handleEnded(slot: number, reason: unknown): void;
  /** An update is to be validated. */
  handleOffer(slot: number, number: number, text: string): void;
  /** Any other event. @returns whether code of a caller goes on because of it */
  handleOther(kind: number, a: number, b: number, text: string): boolean;
}

/** Fetches events. */
export class EventReader {
  /** There are more of them. */
  hasMore = false;
  private readonly heads = new Uint32Array(NUMBERS_BEFORE + NUMBERS_PER_EVENT * EVENTS_MAX);

  constructor(
    private readonly host: Host,
    private readonly definitions: ReadonlyMap<string, WorkflowCode>,
    private readonly sink: EventSink,
  ) {}

  /** Fetches what happened since the last time, and tells the sink. @returns whether a drain must come before a turn */
  fetch(verbs: { tick(heads: Uint32Array): string }): boolean {
    const { heads } = this;
    const texts = verbs.tick(heads);
    const count = heads[0]!;
    this.hasMore = heads[1] === 1;
    let needsDrain = false;
    let start = 0;
    for (let index = 0; index < count; index += 1) {
      const at = NUMBERS_BEFORE + index * NUMBERS_PER_EVENT;
      const end = heads[at + 3]!;
      const text = start === end ? '' : texts.slice(start, end);
      if (this.tell(heads[at]!, heads[at + 1]!, heads[at + 2]!, text)) needsDrain = true;
      start = end;
    }
    return needsDrain;
  }

  private tell(kind: number, a: number, b: number, text: string): boolean {
    const { sink } = this;
    switch (kind) {
      case START:
        this.start(a, text);
        return false;
      case WAKE:
        sink.handleWake(a);
        return false;
      case ATTEMPT: {
        const first = text.indexOf('\u001f');
        const second = text.indexOf('\u001f', first + 1);
        const third = text.indexOf('\u001f', second + 1);
        const isInterrupted = (Number(text.slice(first + 1, second)) & 1) === 1;
        const [number, lease] = [Number(text.slice(0, first)), Number(text.slice(second + 1, third))];
        sink.handleAttempt(a, b, number, lease, isInterrupted, text.slice(third + 1));
        return true;
      }
      case TIMEOUT: {
        const border = text.indexOf('\u001f');
        sink.handleTimeout(a, b, Number(text.slice(0, border)), text.slice(border + 1) === 'h');
        return true;
      }
      case ENDED:
        sink.handleEnded(a, reasonOfEnd(b));
        return false;
      case OFFER:
        // A copy: it may wait longer than the other texts of the fetch.
        sink.handleOffer(a, b, ownCopy(text));
        return false;
      default:
        return sink.handleOther(kind, a, b, text);
    }
  }

  private start(slot: number, text: string): void {
    this.sink.handleStart(this.runOf(slot, text));
  }

  /** The run that a start tells of. @param text id, key root, type, input */
  runOf(slot: number, text: string): Run {
    const idEnd = text.indexOf('\u001f');
    const identityEnd = text.indexOf('\u001f', idEnd + 1);
    const typeEnd = text.indexOf('\u001f', identityEnd + 1);
    const type = text.slice(identityEnd + 1, typeEnd);
    const newest = this.definitions.get(type);
    if (newest === undefined) throw new Error(`a run of '${type}' came here, which is not defined here`);
    const code = isVersioned(newest) ? codeFor(newest, this.versionOf(slot)) : newest;
    return new Run(this.host, slot, code, ownCopy(text.slice(0, identityEnd)), text.slice(typeEnd + 1));
  }

  private versionOf(slot: number): number {
    return Number(this.host.verbs.identity(slot).split('\u001f', 4)[3]);
  }
}

/** A text of its own: a slice would keep all texts of the fetch in memory for as long as the run lives. */
function ownCopy(slice: string): string {
  return ` ${slice}`.slice(1);
}

function reasonOfEnd(status: number): unknown {
  switch (status) {
    case TERMINATED:
      return new TerminatedError('the workflow was terminated', { reason: undefined });
    case TIMED_OUT:
      return new TimeoutError('the workflow took longer than its timeout', { of: 'run' });
    case FAILED:
      return new JournalLimitError('the journal of the workflow has reached its limit');
    case CANCELLED:
    default:
      return new CancelledError('the workflow goes on elsewhere, or from its start', { reason: undefined });
  }
}
