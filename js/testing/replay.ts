/**
 * One exported run, replayed against the code that is here.
 */
import { asWorkflow } from '../definitions.js';
import { DeterminismError } from '../errors.js';
import { knownOptions } from '../options.js';
import { Replayer, type Replayed } from '../replay/replayer.js';
import { describeDifference } from '../replay/report.js';

/** Options of {@link replay}. */
export interface ReplayOptions {
  readonly toStep?: unknown;
  readonly workflows?: readonly unknown[];
  readonly objects?: readonly unknown[];
  readonly tasks?: readonly unknown[];
  readonly codec?: unknown;
  readonly source?: string;
}

/** How a run ended, or that it has not. */
export type ReplayOutcome =
  | { readonly status: 'completed'; readonly result: unknown }
  | { readonly status: 'open' }
  | { readonly status: string; readonly error: unknown };

/** Replays a run up to its last record. @throws DeterminismError where code and records part */
export async function replay(
  workflow: unknown,
  journal: Uint8Array,
  options: ReplayOptions = {},
): Promise<ReplayOutcome> {
  knownOptions(options, ['toStep', 'workflows', 'objects', 'tasks', 'codec', 'source'], 'replay');
  asWorkflow(workflow);
  const workflows = [...new Set([workflow, ...(options.workflows ?? [])])];
  const { objects, tasks, codec } = options;
  const replayer = new Replayer({ workflows, objects, tasks, codec }, 'replay');
  try {
    return outcomeOf(await replayer.replay({ bytes: journal, source: options.source }, options.toStep, 'replay'));
  } finally {
    await replayer.close();
  }
}

function outcomeOf(replayed: Replayed): ReplayOutcome {
  const { difference, status, result, error } = replayed;
  if (difference !== undefined) {
    throw new DeterminismError(describeDifference(replayed, difference), { report: difference });
  }
  if (status === 'completed') return { status, result };
  return status === 'open' ? { status } : { status, error };
}
