/**
 * What a queue can be told about a run that waits in it. What belongs to attempts, keys and threads is for tasks.
 */
import type { TaskPolicy } from './definition.js';

/** Options of a workflow that is enqueued, besides those of its start. */
export const TICKET_OPTIONS = [
  'queue',
  'priority',
  'delay',
  'runAt',
  'deadline',
  'expires',
  'reserve',
  'tenant',
  'orderKey',
  'after',
  'limits',
  'durationHint',
];

/** What a workflow has in place of the options of a task. */
export const TICKET_POLICY: TaskPolicy = {
  queue: 'default',
  retry: undefined,
  timeoutMs: undefined,
  limits: [],
  priority: 2,
  estimateMs: undefined,
};
