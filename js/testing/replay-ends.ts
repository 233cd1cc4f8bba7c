/**
 * Whether runs that have ended come to the same end again: each is replayed from its records, without effects.
 */
import { rowsOf } from '../client/rows.js';
import { decodeFailure } from '../codec.js';
import { DeterminismError, JournalLimitError } from '../errors.js';
import { COMPLETED, CONTINUED_AS_NEW, TERMINATED, TIMED_OUT } from '../workflow/host.js';
import type { EngineCore } from '../client/core.js';

/** A test that ends more runs than this has the others believed. */
const RUNS_MAX = 200;
const FIELD = '\u001f';

/** An engine that can go back. */
export interface Rewindable {
  past(): number;
  rewind(records: number, nowMs: number): Promise<void>;
  timeOf(lsn: number): number;
}

/**
 * Replays the runs whose own code ended them. @param mocked types whose replay would say nothing
 * @throws DeterminismError that names the runs that do not come to the same end
 */
export async function replayEnds(core: EngineCore, engine: Rewindable, mocked: ReadonlySet<string>): Promise<void> {
  const { native } = core;
  engine.past();
  const differences: string[] = [];
  let replayed = 0;
  for (const [index, row] of rowsOf(native.pastEnds()).entries()) {
    const [records, type, id, ...end] = row.split(FIELD) as [string, string, string, string];
    const place = { kind: 'result', id, name: '' } as const;
    const open = (text: string): string => core.payloads.open(text, place);
    const recorded = endOf(end.join(FIELD), open);
    if (mocked.has(type) || recorded.isLimit) continue;
    const code = core.settings.definitions.get(type);
    // An object goes on as a new run when its journal has grown, and does not end by itself.
    if (code === undefined || code.object !== undefined) continue;
    if (replayed === RUNS_MAX) break;
    replayed += 1;
    await engine.rewind(Number(records), engine.timeOf(Number(records)));
    const { status, text, stuck } = endOf(native.standing(index), open);
    if (status === recorded.status && text === recorded.text) continue;
    // Its parent, which goes on beside it, was quicker to end than the run itself.
    if (status === TERMINATED || status === TIMED_OUT) continue;
    const now = status === 0 ? (stuck === '' ? 'it does not end' : stuck) : `it ended with ${text}`;
    differences.push(`workflow '${type}' ${id} ended with ${recorded.text}; in a replay ${now}`);
  }
  if (differences.length === 0) return;
  throw new DeterminismError(
    `${differences.length} of ${replayed} runs do not replay to the same end: ${differences.join('. ')}. ` +
      `Take time and chance from ctx, and do effects in steps`,
  );
}

/** How a run stands. Stacks of errors are no part of how it ended: another life has another one. */
function endOf(
  text: string,
  open: (text: string) => string,
): { status: number; text: string; stuck: string; isLimit: boolean } {
  const border = text.indexOf(FIELD);
  const [status, payload] = [Number(text.slice(0, border)), text.slice(border + 1)];
  if (status === 0) return { status, text: '', stuck: payload, isLimit: false };
  if (status === COMPLETED) return { status, text: open(payload), stuck: '', isLimit: false };
  if (status === TERMINATED || status === TIMED_OUT || status === CONTINUED_AS_NEW) {
    return { status, text: payload, stuck: '', isLimit: false };
  }
  const error = decodeFailure(payload);
  const said = error instanceof Error ? `${error.name}: ${error.message}` : payload;
  return { status, text: said, stuck: '', isLimit: error instanceof JournalLimitError };
}
