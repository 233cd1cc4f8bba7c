/**
 * Figures of an engine, as an object and in the text format of Prometheus.
 */
import type { EngineCore } from './core.js';
import { rowsOf } from './rows.js';
import { QueueControl } from './tasks.js';

/** How a figure is told: what kind it is, what it means, and by what it is multiplied to be in base units. */
interface Family {
  readonly name: string;
  readonly kind: 'counter' | 'gauge';
  readonly help: string;
  readonly factor?: number;
}

const US = 1e-6;
const MS = 1e-3;

/** Of the log, by their names in `metrics()`. */
const OF_THE_LOG: Readonly<Record<string, Family>> = {
  'log.last_lsn': { name: 'log_last_lsn', kind: 'gauge', help: 'Number of the newest record.' },
  'log.durable_lsn': { name: 'log_durable_lsn', kind: 'gauge', help: 'Number of the newest record on the disk.' },
  'log.flushes': { name: 'log_flushes_total', kind: 'counter', help: 'Flushes of the log.' },
  'log.flush_average_us': {
    name: 'log_flush_average_seconds',
    kind: 'gauge',
    help: 'Moving average of the time of a flush.',
    factor: US,
  },
};

/** Of a shard, by what follows its number there. */
const OF_SHARDS: Readonly<Record<string, Family>> = {
  open_runs: { name: 'open_runs', kind: 'gauge', help: 'Runs that have not ended.' },
  unacknowledged_messages: {
    name: 'unacknowledged_messages',
    kind: 'gauge',
    help: 'Messages to other shards without a receipt.',
  },
  records: { name: 'records_total', kind: 'counter', help: 'Records appended.' },
  runs_started: { name: 'runs_started_total', kind: 'counter', help: 'Runs started.' },
  runs_completed: { name: 'runs_completed_total', kind: 'counter', help: 'Runs completed.' },
  runs_ended_otherwise: {
    name: 'runs_ended_otherwise_total',
    kind: 'counter',
    help: 'Runs that ended in another way.',
  },
  steps_done: { name: 'steps_done_total', kind: 'counter', help: 'Steps that have a result.' },
  attempts_failed: { name: 'attempts_failed_total', kind: 'counter', help: 'Attempts of steps that failed.' },
  signals: { name: 'signals_total', kind: 'counter', help: 'Signals received.' },
  timers_fired: { name: 'timers_fired_total', kind: 'counter', help: 'Timers fired.' },
  messages_sent: { name: 'messages_sent_total', kind: 'counter', help: 'Messages sent to other shards.' },
  deliveries: { name: 'deliveries_total', kind: 'counter', help: 'Records handed to code, replays included.' },
};

/** Of a queue, by their names in `stats()`. */
const OF_QUEUES: Readonly<Record<string, Family>> = {
  paused: { name: 'queue_paused', kind: 'gauge', help: 'Whether the queue is paused: 1 or 0.' },
  concurrency: { name: 'queue_concurrency', kind: 'gauge', help: 'Attempts at the same time.' },
  running: { name: 'queue_running_tasks', kind: 'gauge', help: 'Attempts that run.' },
  pending: { name: 'queue_pending_tasks', kind: 'gauge', help: 'Tasks accepted, not running, not ended.' },
  ready: { name: 'queue_ready_tasks', kind: 'gauge', help: 'Pending tasks that could run.' },
  retrying: { name: 'queue_retrying_tasks', kind: 'gauge', help: 'Pending tasks that wait for another attempt.' },
  dispatched: { name: 'queue_attempts_total', kind: 'counter', help: 'Attempts that began.' },
  completed: { name: 'queue_completed_total', kind: 'counter', help: 'Tasks that completed.' },
  failedAttempts: { name: 'queue_failed_attempts_total', kind: 'counter', help: 'Attempts that did not complete.' },
  retried: { name: 'queue_retried_attempts_total', kind: 'counter', help: 'Attempts that another one followed.' },
  utilisation: { name: 'queue_utilisation_ratio', kind: 'gauge', help: 'Part of the concurrency in use.' },
  waitMean: { name: 'queue_wait_mean_seconds', kind: 'gauge', help: 'Mean wait for a first attempt.', factor: MS },
  waitP50: { name: 'queue_wait_p50_seconds', kind: 'gauge', help: 'Median wait for a first attempt.', factor: MS },
  waitP99: { name: 'queue_wait_p99_seconds', kind: 'gauge', help: '99th percentile of that wait.', factor: MS },
  runP50: { name: 'queue_run_p50_seconds', kind: 'gauge', help: 'Median run of completed tasks.', factor: MS },
  runP99: { name: 'queue_run_p99_seconds', kind: 'gauge', help: '99th percentile of those runs.', factor: MS },
};

/** Figures of the log and of each shard, by name. */
export function metricsOf(core: EngineCore): Record<string, number> {
  const rows = rowsOf(core.native.metrics()).map((row) => row.split('\u001f') as [string, string]);
  return Object.fromEntries(rows.map(([name, value]) => [name, Number(value)]));
}

/** The same, and those of the queues, in the text format of Prometheus. */
export async function metricsText(core: EngineCore): Promise<string> {
  const page = new Page();
  for (const [name, value] of Object.entries(metricsOf(core))) {
    const [, shard, rest] = /^shard\.(\d+)\.(.+)$/.exec(name) ?? [];
    if (shard === undefined || rest === undefined) page.add(OF_THE_LOG[name], '', value);
    else page.add(OF_SHARDS[rest], `{shard="${shard}"}`, value);
  }
  for (const queue of core.settings.tasks.queues.keys()) {
    const stats = (await new QueueControl(core, queue).stats()) as Readonly<Record<string, number | boolean>>;
    for (const [name, value] of Object.entries(stats)) page.add(OF_QUEUES[name], `{queue="${escaped(queue)}"}`, value);
  }
  return page.text();
}

/** Lines by family: all of one stand together, behind what it is. */
class Page {
  private readonly lines = new Map<Family, string[]>();

  add(family: Family | undefined, labels: string, value: number | boolean): void {
    if (family === undefined) return;
    const line = `fusee_${family.name}${labels} ${Number(value) * (family.factor ?? 1)}\n`;
    const lines = this.lines.get(family);
    if (lines === undefined) this.lines.set(family, [line]);
    else lines.push(line);
  }

  text(): string {
    const told = ([{ name, kind, help }, lines]: [Family, string[]]): string =>
      `# HELP fusee_${name} ${help}\n# TYPE fusee_${name} ${kind}\n${lines.join('')}`;
    return [...this.lines].map(told).join('');
  }
}

/** A value of a label: names of queues may hold anything but control characters. */
function escaped(text: string): string {
  return text.replace(/["\\]/g, '\\$&');
}
