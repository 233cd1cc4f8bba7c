/**
 * Exported runs replayed against the code that is here: no step runs, nothing is recorded.
 *
 * The code is called on this thread, as in any replay: breakpoints stop in it.
 */
import { EngineCore } from '../client/core.js';
import { readCut } from '../client/exporting.js';
import { readOptions } from '../client/options.js';
import { errorOfEnd } from '../client/results.js';
import { readStuck, statusName } from '../client/rows.js';
import { decodeFailure } from '../codec.js';
import { CodecError, fromNative, JournalFileError, JournalLimitError, type StuckReport } from '../errors.js';
import { Continuation } from '../workflow/continuing.js';
import { CANCELLED, COMPLETED, CONTINUED_AS_NEW, FAILED } from '../workflow/host.js';
import type { Run } from '../workflow/run.js';

const FIELD = '\u001f';
const ROW = '\u001e';
/** The run has not ended. */
const OPEN = 0;

/** Code to replay against. */
export interface Code {
  readonly workflows: readonly unknown[];
  readonly objects?: readonly unknown[] | undefined;
  readonly tasks?: readonly unknown[] | undefined;
  readonly codec?: unknown;
}

/** An exported run. */
export interface Exported {
  readonly bytes: Uint8Array;
  /** What messages call it. */
  readonly source: string | undefined;
}

/** The record at which code and records part. */
export interface RecordPlace {
  /** Its place among the records of the run, from 1. */
  readonly record: number;
  /** Its number in the log. */
  readonly lsn: string;
}

/** Where code and records part. */
export interface Difference extends StuckReport {
  /** `undefined`: where nothing is recorded. */
  readonly recordedAt: RecordPlace | undefined;
}

/** What a replay came to. */
export interface Replayed {
  readonly id: string;
  readonly runId: string;
  readonly type: string;
  readonly version: number;
  readonly records: number;
  /** `undefined`: the code does what is recorded. */
  readonly difference: Difference | undefined;
  /** How the run ended, by its records; `open` if they do not say, and the code is not at its end either. */
  readonly status: string;
  readonly result: unknown;
  readonly error: unknown;
}

/** How a run stands: status and payload. */
interface Standing {
  readonly status: number;
  readonly payload: string;
}

/** Replays runs, one after the other. */
export class Replayer {
  private readonly core: EngineCore;

  constructor({ workflows, objects = [], tasks = [], codec }: Code, verb: string) {
    const options = { workflows, objects, tasks, codec, shards: 1, dev: true, logger: SILENT };
    this.core = new EngineCore({ ...readOptions(':memory:', options, verb, () => 0), virtualNowMs: 0 });
  }

  /** @throws JournalFileError, UnknownDefinitionError, TypeError where there is nothing to be cut before */
  async replay({ bytes, source }: Exported, toStep: unknown, verb: string): Promise<Replayed> {
    const { native, pump } = this.core;
    const { step, operation } = readCut(toStep, verb);
    if (!(bytes instanceof Uint8Array) && !isBytes(bytes)) {
      throw new TypeError(`${verb} needs the bytes that handle.export() gave, as a Uint8Array`);
    }
    let text: string;
    try {
      text = native.openJournal(bytes, step, operation);
    } catch (error) {
      throw journalError(error, source);
    }
    const [head, payload, start] = split(text, ROW, 3) as [string, string, string];
    const [slot, runId, status, records] = head.split(FIELD) as [string, string, string, string];
    const run = pump.replay(`${slot}${FIELD}${start}`);
    try {
      await this.atRest();
      const unread = pump.host.whyUnread(run);
      if (unread !== undefined) throw unread;
      const recorded = { status: Number(status), payload };
      const identity = { id: run.id, runId, type: run.code.name, version: run.version, records: Number(records) };
      const difference = this.differenceOf(run, recorded);
      return { ...identity, difference, ...this.endOf(run, recorded, runId) };
    } catch (error) {
      if (CodecError.is(error)) throw error;
      // Checksums hold, and what is recorded is no value all the same: somebody made it so.
      throw unreadable(source, bytes.length, `how the run ended is no value: ${(error as Error).message}`);
    } finally {
      pump.lay(run.slot);
    }
  }

  close(): Promise<void> {
    return this.core.close(0);
  }

  /** Nothing of the code can go on. */
  private atRest(): Promise<void> {
    const { core } = this;
    core.pump.wake();
    return new Promise((resolve) => {
      const watcher = (): void => {
        if (!core.pump.isAtRest) return;
        core.restWatchers.delete(watcher);
        resolve();
      };
      core.restWatchers.add(watcher);
    });
  }

  private differenceOf(run: Run, recorded: Standing): Difference | undefined {
    const misfit = this.core.native.misfit(run.slot);
    if (misfit !== '') {
      const field = misfit.split(FIELD);
      const [place = '', lsn = ''] = field.slice(7);
      const recordedAt = place === '' ? undefined : { record: Number(place) + 1, lsn };
      return { ...readStuck(field), recordedAt };
    }
    if (!isOfItsCode(recorded)) return undefined;
    const own = this.ownEnd(run);
    const [then, now] = [shownEnd(run, recorded), own === undefined ? 'does not end' : shownEnd(run, own)];
    if (then === now) return undefined;
    return {
      message: `at its end: recorded that it ${then}, but the code ${now}`,
      seq: run.seq,
      recorded: { kind: 'end', name: then },
      asked: { kind: 'end', name: now },
      place: undefined,
      recordedAt: undefined,
    };
  }

  /** How the code has ended, if it has. */
  private ownEnd(run: Run): Standing | undefined {
    const { outcome } = run;
    if (outcome === null) return undefined;
    if (outcome.value instanceof Continuation) return { status: CONTINUED_AS_NEW, payload: '' };
    return this.core.pump.endOf(run, outcome);
  }

  private endOf(run: Run, recorded: Standing, runId: string): Pick<Replayed, 'status' | 'result' | 'error'> {
    const { status, payload } = recorded.status === OPEN ? (this.ownEnd(run) ?? recorded) : recorded;
    if (status === OPEN) return { status: 'open', result: undefined, error: undefined };
    const name = statusName(status);
    if (status === CONTINUED_AS_NEW) return { status: name, result: undefined, error: undefined };
    if (status === COMPLETED) return { status: name, result: run.read('result', '', payload), error: undefined };
    return { status: name, result: undefined, error: errorOfEnd({ id: run.id, runId }, status, payload) };
  }
}

/** What was said while the bytes of a run were read, with the name that they go by. */
export function journalError(error: unknown, source: string | undefined): Error {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  if (code !== 'JOURNAL_FILE' || typeof message !== 'string') return fromNative(error);
  const [offset, what] = message.split(FIELD) as [string, string];
  return unreadable(source, Number(offset), what);
}

function unreadable(source: string | undefined, offset: number, what: string): JournalFileError {
  const name = source === undefined ? 'the exported run' : `the exported run ${source}`;
  return new JournalFileError(`${name} cannot be read at byte ${offset}: ${what}`, { source, offset });
}

/** Lines of runs that are replayed are nobody's business. */
const SILENT = { debug: ignore, info: ignore, warn: ignore, error: ignore };

function ignore(): void {
  // Nobody reads it.
}

/** Also of another realm. */
function isBytes(value: unknown): boolean {
  return Object.prototype.toString.call(value) === '[object Uint8Array]';
}

/** Whether the function of the run came to this end, and not somebody outside. */
function isOfItsCode({ status, payload }: Standing): boolean {
  if (status === FAILED || status === CANCELLED) return !(decodeFailure(payload) instanceof JournalLimitError);
  return status === COMPLETED || status === CONTINUED_AS_NEW;
}

/** An end in words. Stacks of errors are no part of it: another life has another one. */
function shownEnd(run: Run, { status, payload }: Standing): string {
  if (status === CONTINUED_AS_NEW) return 'went on as a new run';
  if (status === COMPLETED) return `completed with ${run.open('result', '', payload)}`;
  const error = decodeFailure(payload);
  const said = error instanceof Error ? `${error.name}: ${error.message}` : payload;
  return `${status === CANCELLED ? 'was cancelled' : 'failed'} with ${said}`;
}

/** At most so many parts; the last one may have the separator in it. */
function split(text: string, separator: string, parts: number): string[] {
  const found: string[] = [];
  let rest = text;
  while (found.length < parts - 1) {
    const border = rest.indexOf(separator);
    found.push(rest.slice(0, border));
    rest = rest.slice(border + 1);
  }
  return [...found, rest];
}
