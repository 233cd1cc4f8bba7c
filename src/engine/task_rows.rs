//! The text of answers about tasks, queues and limits, as rows of fields; and of what a tick tells of tasks.

use super::events::{EventKind, Events, FIELD, ROW, fields};
use super::schedule_rows::translate_schedule;
use super::tasks::{status_code, submitted_row, task_id};
use crate::record::{LimitSpec, Outcome, RunNo};
use crate::runtime::{TaskCell, TaskEnd, TaskEvent, attempt_notes};
use crate::scheduler::limits::Usage;
use crate::scheduler::{AbortReason, AttemptNote, BatchRefusal, QueueView, Reason, TaskView, Warning};

/// Separates the entries of a list within a field.
const ENTRY: &str = "\u{1d}";
/// Separates the parts of an entry.
const PART: &str = "\u{1c}";

/// A task: id, type, queue, class, status, attempts, submitted, start, end, key, tenant, tags, what was said last, attempts
/// that others followed, what it failed with.
pub(super) fn task_row(task: &TaskView<'_>, said: &[u8]) -> String {
    let tags: Vec<String> = task.tags.iter().map(|(name, value)| format!("{name}{PART}{value}")).collect();
    fields(&[
        &task_id(task.task),
        task.kind,
        task.queue,
        &task.class.code().to_string(),
        &status_code(task.status).to_string(),
        &task.attempts.to_string(),
        &task.submitted_ms.to_string(),
        &optional(task.started_ms),
        &optional(task.ended_ms),
        task.key.unwrap_or_default(),
        task.tenant.unwrap_or_default(),
        &tags.join(ENTRY),
        &text(said),
        &notes(task.history),
        &text(task.failure),
    ])
}

/// One of those that a task waited for: id, type, status, what it ended with.
pub(super) fn parent_row(task: &TaskView<'_>) -> String {
    let is_completed = task.status == crate::scheduler::Status::Ended(Outcome::Completed);
    let payload = if is_completed { task.payload } else { task.failure };
    fields(&[&task_id(task.task), task.kind, &status_code(task.status).to_string(), &text(payload)])
}

/// A run that a task waited for.
pub(super) struct AwaitedRun {
    pub(super) id: String,
    pub(super) run: Option<RunNo>,
    status: crate::record::Status,
    payload: Box<[u8]>,
}

impl From<(&str, Option<RunNo>, crate::record::Status, &[u8])> for AwaitedRun {
    fn from((id, run, status, payload): (&str, Option<RunNo>, crate::record::Status, &[u8])) -> AwaitedRun {
        AwaitedRun { id: id.to_owned(), run, status, payload: payload.into() }
    }
}

impl AwaitedRun {
    /// As the row of a task; the number of its status is behind 32.
    pub(super) fn row(&self, kind: &str) -> String {
        let code = 32 + u32::from(self.status.code());
        fields(&[&self.id, kind, &code.to_string(), &text(&self.payload)])
    }
}

/// Why a task does not run: a word, and what belongs to it.
pub(super) fn reason_row(reason: &Reason, queue: &str, status: u32) -> String {
    match reason {
        Reason::Running => fields(&["running"]),
        Reason::Ended => fields(&["ended", &status.to_string()]),
        Reason::Blocked { parents, keys, order_key } => {
            let ids = parents.iter().map(|task| task_id(*task)).chain(keys.iter().map(|key| key.to_string()));
            let first = order_key.iter().map(|(_, task)| task_id(*task));
            fields(&["blocked", &ids.chain(first).collect::<Vec<_>>().join(ENTRY)])
        }
        Reason::Until { time_ms, is_retry } => {
            fields(&[if *is_retry { "retry" } else { "timer" }, &time_ms.to_string()])
        }
        Reason::Behind { tasks, .. } => fields(&["queue", queue, &tasks.to_string(), "0"]),
        Reason::Paused => fields(&["queue", queue, "0", "1"]),
        Reason::Limit { name, key, amount, available, .. } => {
            let short = u64::from(*amount).saturating_sub(*available);
            fields(&["limit", name, key.as_deref().unwrap_or_default(), &short.to_string()])
        }
        Reason::Labels { .. } => fields(&["labels"]),
        Reason::Unregistered => fields(&["notRegistered"]),
        Reason::QueueGone => fields(&["queueGone", queue]),
        Reason::Draining => fields(&["draining"]),
    }
}

/// The figures of a queue, in the order in which the SDK names them.
pub(super) fn queue_row(queue: &QueueView) -> String {
    let numbers: Vec<String> = [
        i64::from(queue.is_paused),
        i64::from(queue.capacity),
        i64::from(queue.busy),
        queue.pending.iter().sum::<u64>() as i64,
        queue.ready as i64,
        queue.retrying.iter().sum::<u64>() as i64,
        queue.dispatched as i64,
        queue.completed as i64,
        queue.failed_attempts as i64,
        queue.retried as i64,
        i64::from(queue.utilisation),
        queue.wait_mean_ms,
        queue.wait_p50_ms,
        queue.wait_p99_ms,
        queue.run_p50_ms,
        queue.run_p99_ms,
    ]
    .iter()
    .map(i64::to_string)
    .collect();
    fields(&numbers.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The use of a limit: capacity, used, available, waiting, keys.
pub(super) fn limit_row(usage: &Usage) -> String {
    let capacity = match usage.spec {
        LimitSpec::Concurrency(units) => units,
        LimitSpec::Rate { burst, .. } => burst,
    };
    fields(&[
        &capacity.to_string(),
        &usage.used.to_string(),
        &usage.available.to_string(),
        &usage.waiting.to_string(),
        &usage.keys.to_string(),
    ])
}

/// Tells JS that a notice is about the slots of a queue.
const SCALE: u32 = 4;

/// What a tick tells of tasks.
pub(super) fn translate(cell: &TaskCell, event: TaskEvent, events: &mut Events) {
    match event {
        TaskEvent::Ack(token) => events.push(EventKind::Ack, token, 0, String::new()),
        TaskEvent::Reply(token, text) => events.push(EventKind::Reply, token, 0, text),
        TaskEvent::Refuse(token, code, message) => events.push(EventKind::Refuse, token, 0, fields(&[code, &message])),
        TaskEvent::Submitted(token, answers) => {
            let rows: Vec<String> = answers.iter().map(submitted_row).collect();
            events.push(EventKind::Reply, token, 0, rows.join(&ROW.to_string()));
        }
        TaskEvent::Together(token, result) => {
            let text = match result {
                Ok(answers) => {
                    let rows: Vec<String> = answers.into_iter().map(|answer| submitted_row(&Ok(answer))).collect();
                    rows.join(&ROW.to_string())
                }
                Err(BatchRefusal { at, why }) => {
                    let place = at.map_or(String::new(), |at| at.to_string());
                    [submitted_row(&Err(why)), place].join(&FIELD.to_string())
                }
            };
            events.push(EventKind::Reply, token, 0, text);
        }
        TaskEvent::Result(token, end) => {
            let text =
                fields(&[&task_id(end.task), &end.attempts.to_string(), &text(&end.payload), &notes(&end.history)]);
            events.push(EventKind::Result, token, u32::from(end.outcome.code()), text);
        }
        TaskEvent::Dispatch { task, lease, attempt } => {
            // It may have been cancelled while its record was on its way to the disk.
            if cell.engine.task_of(lease) != Some(task) {
                return;
            }
            let Some(view) = cell.engine.task(task) else { return };
            let (serial, number) = (lease.serial.to_string(), task.to_string());
            let payload = text(view.payload);
            events.push(EventKind::Task, lease.slot, attempt, fields(&[&serial, &number, view.kind, &payload]));
        }
        TaskEvent::Abort(lease, reason) => {
            let code = match reason {
                AbortReason::TimedOut => 0,
                AbortReason::LeaseExpired => 1,
                AbortReason::Cancelled => 2,
                AbortReason::Drained => 3,
            };
            events.push(EventKind::TaskAbort, lease.slot, code, lease.serial.to_string());
        }
        TaskEvent::Ended(end) => events.push(EventKind::TaskNotice, 0, u32::from(end.outcome.code()), notice(&end)),
        TaskEvent::Retrying { task, attempt, end } => {
            let kind = cell.engine.task(task).map(|view| view.kind.to_owned()).unwrap_or_default();
            let text = fields(&[&task_id(task), &kind, &attempt.to_string(), &end.code().to_string()]);
            events.push(EventKind::TaskNotice, 1, 0, text);
        }
        TaskEvent::Schedule(event) => translate_schedule(&event, events),
        TaskEvent::Scale { queue, from, to, is_outside } => {
            let text = fields(&[&queue, &from.to_string(), &to.to_string()]);
            events.push(EventKind::TaskNotice, SCALE, u32::from(is_outside), text);
        }
        TaskEvent::Warning(warning) => {
            let message = match warning {
                Warning::NoWorkerFor { task, queue } => {
                    format!("task {} waits: no worker of queue \"{queue}\" carries its labels", task_id(task))
                }
                Warning::QueueGone { queue } => {
                    format!(
                        "tasks wait in queue \"{queue}\", which is not defined any more; add it to the option queues"
                    )
                }
                Warning::LimitGone { limit } => {
                    format!(
                        "tasks wait for limit \"{limit}\", which is not defined any more; add it to the option limits"
                    )
                }
            };
            events.push(EventKind::TaskNotice, 2, 0, message);
        }
    }
}

fn notice(end: &TaskEnd) -> String {
    fields(&[&task_id(end.task), &end.kind, &end.attempts.to_string(), &text(&end.payload), &notes(&end.history)])
}

fn notes(history: &[AttemptNote]) -> String {
    attempt_notes(history, usize::MAX)
}

fn optional(time_ms: Option<i64>) -> String {
    time_ms.map(|ms| ms.to_string()).unwrap_or_default()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
