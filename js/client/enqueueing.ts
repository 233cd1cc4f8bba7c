/**
 * Workflows that start through a queue: what a caller gives, read and packed, and the request that asks for it.
 */
import type { WorkflowDefinition } from '../definitions.js';
import { knownOptions } from '../options.js';
import { packSubmission } from '../scheduler/submission.js';
import { FIELD } from '../scheduler/packing.js';
import { TICKET_OPTIONS, TICKET_POLICY } from '../scheduler/ticket.js';
import type { EngineCore } from './core.js';
import { WorkflowHandle } from './handle.js';
import { readStart, START_OPTIONS, type Start, type StartOptions } from './starting.js';
import { readRefusal } from './tasks.js';

/** Options as callers give them: those of a start and those of a queue. */
export type EnqueueRunOptions = StartOptions & { readonly [option: string]: unknown };

/** Those of a start, without attributes: a run that waits has none yet, its code sets them. */
const RUN_OPTIONS = START_OPTIONS.filter((name) => name !== 'attributes');

/** Makes a run that starts when its queue lets it. Resolved: admitted and durable. */
export async function enqueueRun(
  core: EngineCore,
  workflow: WorkflowDefinition,
  input: unknown,
  options: EnqueueRunOptions | undefined,
): Promise<WorkflowHandle> {
  const verb = 'engine.enqueue of a workflow';
  knownOptions(options, [...RUN_OPTIONS, ...TICKET_OPTIONS], verb);
  const given = Object.entries(options ?? {});
  const ofStart = Object.fromEntries(given.filter(([name]) => RUN_OPTIONS.includes(name)));
  const ofQueue = Object.fromEntries(given.filter(([name]) => TICKET_OPTIONS.includes(name)));
  const start = await readStart(core, workflow, input, ofStart, verb);
  const ticket = { name: workflow.name, policy: TICKET_POLICY };
  const row = packSubmission(ticket, undefined, '', ofQueue, core.settings.tasks, core.nowMs(), verb);
  const runId = await core.request((token) => send(core, start, token, row), readAnswer).promise;
  return new WorkflowHandle(core, start.id, runId);
}

function send(core: EngineCore, start: Start, token: number, row: string): void {
  const { id, type, version, input, policies, timeoutMs, actor } = start;
  core.native.enqueueRun(token, id, type, version, input, policies, timeoutMs, actor, row);
}

/** The run id. @throws what it was refused for */
function readAnswer(text: string): string {
  const [what, runId = ''] = text.split(FIELD);
  if (what === 'r') throw readRefusal(text);
  return runId;
}
