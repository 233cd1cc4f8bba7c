/**
 * Whether the code that is here fits what is recorded: many runs, replayed one after the other.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import * as path from 'node:path';
import { bytesOf } from '../client/exporting.js';
import { readRow, rowsOf, type RunRow } from '../client/rows.js';
import { CodecError, DeterminismError, fromNative, JournalFileError, UnknownDefinitionError } from '../errors.js';
import { lookNative } from '../native.js';
import { knownOptions } from '../options.js';
import { Replayer, type Code, type Difference } from './replayer.js';
import { describeDifference } from './report.js';

/** Options of {@link check}. */
export interface CheckOptions {
  readonly workflows?: readonly unknown[];
  readonly objects?: readonly unknown[];
  readonly tasks?: readonly unknown[];
  readonly dir?: string;
  readonly codec?: unknown;
  readonly ended?: boolean;
  readonly journals?: Iterable<GivenJournal> | AsyncIterable<GivenJournal>;
}

/** An exported run: its bytes, those with a name, or the name of its file. */
export type GivenJournal = Uint8Array | string | { readonly bytes: Uint8Array; readonly source: string };

/** A run that does not fit, or that says nothing. */
export interface CheckFailure {
  /** `undefinedType`: its type has no code here. `unreadable`: its bytes are no exported run, or need another codec. */
  readonly kind: 'differs' | 'undefinedType' | 'unreadable';
  /** `undefined`: the bytes do not say. */
  readonly id: string | undefined;
  readonly runId: string | undefined;
  readonly type: string | undefined;
  /** The directory or the file. */
  readonly source: string | undefined;
  readonly error: Error;
  /** Where code and records part, of a run that differs. */
  readonly difference: Difference | undefined;
}

/** What {@link check} found. */
export interface CheckReport {
  readonly checked: number;
  readonly failures: readonly CheckFailure[];
}

const OPTIONS = ['workflows', 'objects', 'tasks', 'codec', 'dir', 'ended', 'journals'];

/** Replays many runs. Does not throw for one. */
export async function check(options: CheckOptions): Promise<CheckReport> {
  knownOptions(options, OPTIONS, 'check');
  const { workflows = [], objects, tasks, codec, dir, ended = false, journals } = options ?? {};
  if (dir === undefined && journals === undefined) {
    throw new TypeError('check needs runs: the option dir, or the option journals');
  }
  if (dir !== undefined && (typeof dir !== 'string' || dir === '')) throw new TypeError('dir must be a directory');
  if (typeof ended !== 'boolean') throw new TypeError('the option ended of check must be true or false');
  const checker = new Checker({ workflows, objects, tasks, codec });
  try {
    if (dir !== undefined) await checker.directory(dir, ended);
    for await (const given of journals ?? []) await checker.journal(given);
    return checker.report();
  } finally {
    await checker.close();
  }
}

/** Whether it is the directory of an engine. */
export function isEngineDirectory(place: string): boolean {
  return existsSync(place) && statSync(place).isDirectory() && readdirSync(place).some((name) => name.endsWith('.log'));
}

class Checker {
  private readonly replayer: Replayer;
  private checked = 0;
  private readonly failures: CheckFailure[] = [];

  constructor(code: Code) {
    this.replayer = new Replayer(code, 'check');
  }

  report(): CheckReport {
    const { checked, failures } = this;
    return { checked, failures };
  }

  close(): Promise<void> {
    return this.replayer.close();
  }

  /** The runs of a directory that have not ended, or all whose records are kept. It is locked meanwhile. */
  async directory(dir: string, withEnded: boolean): Promise<void> {
    const place = path.resolve(dir);
    if (!isEngineDirectory(place)) {
      throw new TypeError(`there is no directory of an engine at ${place}`);
    }
    const look = looked(() => lookNative(place));
    try {
      const rows = rowsOf(look.runs()).map(readRow);
      for (const row of rows.filter(({ status }) => withEnded || status === 'running')) {
        const bytes = bytesOf(looked(() => look.journal(row.id, row.runId)));
        await this.one(bytes, place, row);
      }
    } finally {
      look.close();
    }
  }

  /** An exported run. */
  async journal(given: GivenJournal): Promise<void> {
    if (typeof given === 'string') await this.one(readFileSync(given), given, undefined);
    else if (given instanceof Uint8Array) await this.one(given, undefined, undefined);
    else await this.one(given.bytes, given.source, undefined);
  }

  private async one(bytes: Uint8Array, source: string | undefined, row: RunRow | undefined): Promise<void> {
    this.checked += 1;
    try {
      const replayed = await this.replayer.replay({ bytes, source }, undefined, 'check');
      const { id, runId, type, difference } = replayed;
      if (difference === undefined) return;
      const error = new DeterminismError(describeDifference(replayed, difference), { report: difference });
      this.failures.push({ kind: 'differs', id, runId, type, source, error, difference });
    } catch (error) {
      const kind = kindOf(error);
      if (kind === undefined) throw error;
      const { id, runId, type } = row ?? NOTHING_KNOWN;
      this.failures.push({ kind, id, runId, type, source, error: error as Error, difference: undefined });
    }
  }
}

const NOTHING_KNOWN = { id: undefined, runId: undefined, type: undefined };

/** What an error says of the run that was to be replayed; `undefined`: nothing. */
function kindOf(error: unknown): CheckFailure['kind'] | undefined {
  if (UnknownDefinitionError.is(error)) return 'undefinedType';
  return JournalFileError.is(error) || CodecError.is(error) ? 'unreadable' : undefined;
}

function looked<T>(fn: () => T): T {
  try {
    return fn();
  } catch (error) {
    throw fromNative(error);
  }
}
