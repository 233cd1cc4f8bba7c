/**
 * What is said of runs that their code does not fit.
 */
import type { Difference, Replayed } from './replayer.js';

/** Run and place in one sentence: what is recorded and where, what is asked for and where. */
export function describeDifference({ type, id, runId }: Replayed, difference: Difference): string {
  const { message, place, recordedAt } = difference;
  const inJournal = recordedAt === undefined ? '' : `; recorded as record ${recordedAt.record} (LSN ${recordedAt.lsn})`;
  const inCode = place === undefined ? '' : `; the code is at ${place}`;
  return `workflow '${type}' ${id} (run ${runId}) differs: ${message}${inJournal}${inCode}`;
}
