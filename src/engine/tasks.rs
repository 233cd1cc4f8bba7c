//! Tasks: what clients ask of them, and what their functions say.

use super::error::{EngineError, ErrorCode, bad_input};
use super::events::{ROW, fields};
use super::foreign::ForeignEngine;
use super::host::Slot;
use super::keys::task_key;
use super::task_rows::{AwaitedRun, limit_row, parent_row, queue_row, reason_row, task_row};
use crate::machine::{Halt, Limits, Target};
use crate::record::{
    Class, FIELDS_BYTES_MAX, LimitSpec, Parent, Seq, TEXT_BYTES_MAX, TaskNo, TaskRole, TaskSpec, encode_failure,
};
use crate::runtime::{TaskCell, TaskEvent, TaskWork, Token};
use crate::scheduler::{BatchRefusal, Dedupe, Failure, Lease, Member, MemberNo, Refusal, Status, TaskView};

/// What the fields of a task take besides their texts, at most.
const FIELDS_BYTES: usize = 512;

/// So many tasks are taken in together at most: the scheduler's lock is held meanwhile.
const TOGETHER_MAX: usize = 1_000;

/// Bytes of a list's entry besides its texts.
const ENTRY_BYTES: usize = 16;

/// How an attempt went, or what it says while it runs.
#[derive(Clone, Copy, Debug)]
pub enum TaskOutcome<'a> {
    /// Its function returned.
    Completed(&'a [u8]),
    /// It threw. Another attempt may do better, not before so many ms.
    Failed {
        /// What it threw.
        thrown: &'a [u8],
        /// The shortest wait that it asks for.
        after_ms: Option<i64>,
    },
    /// It threw what no retry mends.
    FailedForGood(&'a [u8]),
    /// It asks to be called again, not before this time in ms since 1970, and does not count.
    Postponed(i64),
    /// It lives; the details are for the next attempt.
    Heartbeat(Option<&'a [u8]>),
    /// How far it is.
    Progress(&'a [u8]),
}

/// Which tasks: all conditions must hold.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    /// One of these definitions; empty: any.
    pub kinds: Vec<String>,
    /// Bits of statuses, see [`status_code`]; 0: any.
    pub status_mask: u32,
    /// In this queue.
    pub queue: Option<String>,
    /// Of this tenant.
    pub tenant: Option<String>,
    /// With a key that begins so.
    pub key_prefix: String,
    /// With all of these tags.
    pub tags: Vec<(String, String)>,
}

impl TaskFilter {
    pub(super) fn admits(&self, task: &TaskView<'_>) -> bool {
        !task.stands_for_run()
            && (self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == task.kind))
            && (self.status_mask == 0 || self.status_mask >> status_code(task.status) & 1 == 1)
            && self.queue.as_deref().is_none_or(|queue| queue == task.queue)
            && (self.tenant.is_none() || self.tenant.as_deref() == task.tenant)
            && (self.key_prefix.is_empty() || task.key.is_some_and(|key| key.starts_with(&self.key_prefix)))
            && self.tags.iter().all(|(name, value)| {
                task.tags.iter().any(|(other, of_other)| **other == **name && **of_other == **value)
            })
    }
}

/// The number of a status in the crossing: 1 to 8 for ends, as [`Outcome`] has them, and those before from 16 on.
#[must_use]
pub fn status_code(status: Status) -> u32 {
    match status {
        Status::Ended(outcome) => u32::from(outcome.code()),
        Status::Blocked => 16,
        Status::Scheduled => 17,
        Status::Queued => 18,
        Status::Running => 19,
        Status::Retrying => 20,
    }
}

/// The id of a task, as callers have it.
#[must_use]
pub fn task_id(task: TaskNo) -> String {
    format!("t-{task}")
}

/// The number of a task's id; `None`: it is none, but perhaps a key.
#[must_use]
pub fn parse_task_id(text: &str) -> Option<TaskNo> {
    let digits = text.strip_prefix("t-")?;
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    if is_plain { digits.parse().ok().map(TaskNo) } else { None }
}

impl ForeignEngine {
    /// Submits tasks, each for itself. `token` gets a row for each, in order, once all are decided and that is durable:
    /// what became of it and its number, or `r`, a code and why it is refused.
    pub fn enqueue(&mut self, token: Token, submissions: &[(TaskSpec<'_>, Dedupe)]) -> Result<(), EngineError> {
        self.check_open()?;
        self.group.admits()?;
        submissions.iter().try_for_each(|(spec, _)| self.check_spec(spec)).map_err(bad_input)?;
        let unknown: Vec<Option<&str>> = submissions.iter().map(|(spec, _)| self.unknown_run(spec)).collect();
        self.group.with_tasks(|cell, work| {
            let checked = submissions.iter().zip(&unknown);
            cell.decide(work, token, checked, |engine, now_ms, ((spec, dedupe), unknown)| match unknown {
                Some(id) => Err(Refusal::UnknownRun((*id).into())),
                None => engine.handle_submit(now_ms, spec, *dedupe),
            });
        });
        Ok(())
    }

    /// Submits tasks, all or none, in one record. An edge to [`TaskNo::in_batch`] leads to one of them. `token` gets a row for
    /// each, in order, as of [`ForeignEngine::enqueue`], once that is durable; or one row of a refusal, whose last field is
    /// the place of the one at fault, from 0, if it is one's.
    pub fn enqueue_together(&mut self, token: Token, specs: &[TaskSpec<'_>]) -> Result<(), EngineError> {
        self.check_open()?;
        self.group.admits()?;
        if specs.len() > TOGETHER_MAX {
            return Err(bad_input(format!(
                "{} tasks cannot be taken in together; the limit is {TOGETHER_MAX}",
                specs.len()
            )));
        }
        for (at, spec) in specs.iter().enumerate() {
            self.check_spec(spec).map_err(|what| bad_input(format!("call {at} of the transaction: {what}")))?;
        }
        let (bytes, max) = (specs.iter().map(record_bytes).sum::<usize>(), self.config.log.record_bytes_max);
        if bytes > max {
            return Err(bad_input(format!(
                "the {} tasks of the transaction take {bytes} bytes together; the limit is {max}: put what is large \
                 elsewhere, and what names it into their inputs",
                specs.len()
            )));
        }
        let unknown = specs.iter().enumerate().find_map(|(at, spec)| Some((at, self.unknown_run(spec)?)));
        self.group.with_tasks(|cell, work| match unknown {
            Some((at, id)) => {
                let refusal = BatchRefusal { at: Some(at), why: Refusal::UnknownRun(id.into()) };
                cell.tell(work, token, TaskEvent::Together(token, Err(refusal)));
            }
            None => cell.submit_together(work, token, specs),
        });
        Ok(())
    }

    /// The first workflow that a task would wait for and that there is none of.
    pub(super) fn unknown_run<'a>(&self, spec: &TaskSpec<'a>) -> Option<&'a str> {
        spec.after.iter().find_map(|edge| match edge.parent {
            Parent::Run(id, run) => {
                let shard = self.group.shard_of(id);
                let is_there = self.group.with(shard, |cell, _| cell.shard.find(Target { id, run }).is_ok());
                (!is_there).then_some(id)
            }
            Parent::Number(_) | Parent::Key(_) => None,
        })
    }

    /// The code of a run asks for a task, which is as important as the run if `inherits_class`. Its end, or for a detached one that it exists, is delivered to this operation.
    pub fn open_task(
        &mut self,
        slot: Slot,
        seq: Seq,
        role: TaskRole,
        dedupe: Dedupe,
        spec: &TaskSpec<'_>,
        inherits_class: bool,
    ) -> Result<(), Halt> {
        // It may get a tenant from its run.
        let checked = self.config.limits().and_then(|limits| check_spec(&limits, spec, TEXT_BYTES_MAX));
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, work| {
            cell.shard.open_task(work, run, seq, role, dedupe, spec, inherits_class, checked)
        })?
    }

    fn check_spec(&self, spec: &TaskSpec<'_>) -> Result<(), String> {
        check_spec(&self.config.limits()?, spec, 0)
    }

    /// What attempts say, in order. Under a lease that is not the current one it changes nothing.
    pub fn task_outcomes<'a>(&mut self, outcomes: impl Iterator<Item = (Lease, TaskOutcome<'a>)>) {
        let bytes_max = self.config.payload_bytes_max;
        self.group.with_tasks(|cell, work| {
            for (lease, outcome) in outcomes {
                tell_outcome(cell, work.now_ms, lease, outcome, bytes_max);
            }
        });
        self.group.appended();
    }

    /// `token` gets the outcome and what belongs to it once the task has ended and that is durable.
    pub fn task_result(&mut self, token: Token, task: &str) -> Result<(), EngineError> {
        self.of_task(token, task, |cell, work, number| {
            cell.await_end(work, number, token);
        })
    }

    /// `token` gets the task's row.
    pub fn describe_task(&mut self, token: Token, task: &str) -> Result<(), EngineError> {
        self.of_task(token, task, |cell, work, number| {
            let row = cell.engine.task(number).map(|view| task_row(&view, cell.progress(number))).unwrap_or_default();
            cell.tell(work, token, TaskEvent::Reply(token, row));
        })
    }

    /// `token` gets why the task does not run.
    pub fn explain_task(&mut self, token: Token, task: &str) -> Result<(), EngineError> {
        self.of_task(token, task, |cell, work, number| {
            let view = cell.engine.task(number);
            let (queue, code) = view.map(|view| (view.queue.to_owned(), status_code(view.status))).unwrap_or_default();
            let row = cell.engine.explain(number).map(|reason| reason_row(&reason, &queue, code)).unwrap_or_default();
            cell.tell(work, token, TaskEvent::Reply(token, row));
        })
    }

    /// Cancels a task at once; `token` is acknowledged once that is durable. No-op for one that has ended.
    pub fn cancel_task(&mut self, token: Token, task: &str, reason: &str) -> Result<(), EngineError> {
        self.group.admits_urgent(reason.len() + FIELDS_BYTES)?;
        let reason = cut(reason);
        self.of_task(token, task, |cell, work, number| {
            cell.engine.handle_cancel(work.now_ms, number, reason.as_bytes());
            cell.tell(work, token, TaskEvent::Ack(token));
        })?;
        self.group.hurry();
        Ok(())
    }

    /// Gives a task that ended, other than completed, its attempts back; `token` gets whether it was such a one.
    pub fn retry_task(&mut self, token: Token, task: &str) -> Result<(), EngineError> {
        self.group.admits()?;
        self.of_task(token, task, |cell, work, number| {
            let event = match cell.engine.handle_revive(work.now_ms, number) {
                Ok(is_revived) => TaskEvent::Reply(token, u8::from(is_revived).to_string()),
                Err(refusal) => refused(token, &refusal),
            };
            cell.tell(work, token, event);
        })
    }

    /// Changes the class of a task; `token` gets whether it is one that has not ended.
    pub fn reprioritize_task(&mut self, token: Token, task: &str, class: Class) -> Result<(), EngineError> {
        self.group.admits()?;
        self.of_task(token, task, |cell, work, number| {
            let is_live = cell.engine.handle_reprioritize(work.now_ms, number, class);
            cell.tell(work, token, TaskEvent::Reply(token, u8::from(is_live).to_string()));
        })
    }

    /// `token` gets rows of the tasks with greater numbers than `after` that the filter admits, by number, at most
    /// `limit`.
    pub fn list_tasks(
        &mut self,
        token: Token,
        filter: &TaskFilter,
        after: u64,
        limit: usize,
    ) -> Result<(), EngineError> {
        self.check_open()?;
        self.group.with_tasks(|cell, work| {
            let found = cell.engine.tasks_after(TaskNo(after)).filter(|view| filter.admits(view)).take(limit);
            let rows: Vec<String> = found.map(|view| task_row(&view, cell.progress(view.task))).collect();
            cell.tell(work, token, TaskEvent::Reply(token, rows.join(&ROW.to_string())));
        });
        Ok(())
    }

    /// `token` gets the number of tasks that the filter admits.
    pub fn count_tasks(&mut self, token: Token, filter: &TaskFilter) -> Result<(), EngineError> {
        self.check_open()?;
        self.group.with_tasks(|cell, work| {
            let count = cell.engine.tasks_after(TaskNo(0)).filter(|view| filter.admits(view)).count();
            cell.tell(work, token, TaskEvent::Reply(token, count.to_string()));
        });
        Ok(())
    }

    /// Pauses a queue or lets it go on; `token` is acknowledged once that is durable.
    pub fn pause_queue(&mut self, token: Token, queue: &str, is_paused: bool) -> Result<(), EngineError> {
        self.of_queue(token, |cell, now_ms| cell.engine.handle_pause(now_ms, queue, is_paused))
    }

    /// Changes the slots of a queue; `token` is acknowledged once that is durable.
    pub fn resize_queue(&mut self, token: Token, queue: &str, concurrency: u32) -> Result<(), EngineError> {
        self.of_queue(token, |cell, now_ms| cell.engine.handle_concurrency(now_ms, queue, concurrency))
    }

    /// Changes the bounds of a queue that follows its load; `token` is acknowledged once that is durable.
    pub fn bound_queue(&mut self, token: Token, queue: &str, min: u32, max: u32) -> Result<(), EngineError> {
        self.of_queue(token, |cell, now_ms| cell.engine.handle_bounds(now_ms, queue, min, max))
    }

    /// Says how many slots somebody outside provides for a queue that asks for them. At once, and gone with the engine.
    pub fn report_capacity(&mut self, queue: &str, slots: u32) -> Result<(), EngineError> {
        self.check_open()?;
        let said = self.group.with_tasks(|cell, work| cell.engine.handle_workers(work.now_ms, queue, &[], slots));
        said.map_err(|refusal| EngineError::new(ErrorCode::BadInput, refusal.to_string()))
    }

    /// Defines or resizes a limit; `token` is acknowledged once that is durable.
    pub fn set_limit(&mut self, token: Token, name: &str, spec: LimitSpec) -> Result<(), EngineError> {
        self.of_queue(token, |cell, now_ms| cell.engine.handle_limit(now_ms, name, spec))
    }

    /// `token` gets the figures of a queue.
    pub fn queue_stats(&mut self, token: Token, queue: &str) -> Result<(), EngineError> {
        self.check_open()?;
        self.group.with_tasks(|cell, work| {
            let event = match cell.engine.handle_snapshot(work.now_ms, queue) {
                Some(view) => TaskEvent::Reply(token, queue_row(&view)),
                None => refused(token, &Refusal::UnknownQueue(queue.into())),
            };
            cell.tell(work, token, event);
        });
        Ok(())
    }

    /// `token` gets the use of a limit, or of one key of it.
    pub fn limit_usage(&mut self, token: Token, name: &str, key: Option<&str>) -> Result<(), EngineError> {
        self.check_open()?;
        self.group.with_tasks(|cell, work| {
            let event = match cell.engine.limit_usage(name, key) {
                Some(usage) => TaskEvent::Reply(token, limit_row(&usage)),
                None => {
                    TaskEvent::Refuse(token, ErrorCode::BadInput.text(), format!("limit \"{name}\" is not defined"))
                }
            };
            cell.tell(work, token, event);
        });
        Ok(())
    }

    /// The row of a task whose attempt runs, and what the last heartbeat carried, as the last field: for its function.
    #[must_use]
    pub fn task_info(&self, task: TaskNo) -> String {
        self.group.with_tasks(|cell, _| {
            let row = cell.engine.task(task).map(|view| task_row(&view, cell.last_heartbeat(task)));
            row.unwrap_or_default()
        })
    }

    /// Rows of those that a task waited for, tasks first: id, type, status, what they ended with.
    #[must_use]
    pub fn task_parents(&self, task: TaskNo) -> String {
        let (mut rows, runs) = self.group.with_tasks(|cell, _| {
            let parents = cell.engine.task(task).map(|view| view.parents.to_vec()).unwrap_or_default();
            let known = parents.iter().filter_map(|parent| cell.engine.task(*parent));
            let rows: Vec<String> = known.map(|view| parent_row(&view)).collect();
            let runs: Vec<AwaitedRun> = cell.engine.awaited_runs(task).map(AwaitedRun::from).collect();
            (rows, runs)
        });
        rows.extend(runs.into_iter().map(|of| {
            let kind = self.group.with(self.group.shard_of(&of.id), |cell, _| {
                let found = cell.shard.find(Target { id: &of.id, run: of.run });
                found.map_or(String::new(), |run| cell.shard.view(run).kind.to_owned())
            });
            of.row(&kind)
        }));
        rows.join(&ROW.to_string())
    }

    /// The key that all attempts of a task share, and no other task has, of any directory.
    #[must_use]
    pub fn task_key(&self, task: TaskNo) -> String {
        task_key(self.store_id, task)
    }

    /// This thread has the code of these definitions from now on, and carries these labels.
    pub fn define_tasks(&self, member: Member) {
        let no = MemberNo(self.right.place.0);
        self.group.with_tasks(|cell, work| cell.engine.handle_member(work.now_ms, no, member));
    }

    /// No attempt starts and no task is accepted from now on.
    pub fn drain_tasks(&mut self) {
        self.group.with_tasks(|cell, work| cell.engine.handle_drain(work.now_ms));
    }

    fn of_queue(
        &mut self,
        token: Token,
        act: impl FnOnce(&mut TaskCell, i64) -> Result<(), Refusal>,
    ) -> Result<(), EngineError> {
        self.check_open()?;
        self.group.admits()?;
        self.group.with_tasks(|cell, work| {
            let event = match act(cell, work.now_ms) {
                Ok(()) => TaskEvent::Ack(token),
                Err(refusal) => refused(token, &refusal),
            };
            cell.tell(work, token, event);
        });
        Ok(())
    }

    /// Finds a task by its id or key. That there is none is told once it is sure.
    fn of_task(
        &mut self,
        token: Token,
        task: &str,
        act: impl FnOnce(&mut TaskCell, &mut TaskWork<'_>, TaskNo),
    ) -> Result<(), EngineError> {
        self.check_open()?;
        self.group.with_tasks(|cell, work| {
            let view = match parse_task_id(task) {
                Some(number) => cell.engine.task(number),
                None => cell.engine.task_by_key(task),
            };
            // What stands for a run is reached by the run.
            match view.filter(|view| !view.stands_for_run()).map(|view| view.task) {
                Some(number) => act(cell, work, number),
                None => {
                    let text = format!("there is no task \"{task}\", by id or key, or it is not remembered any more");
                    cell.tell(work, token, TaskEvent::Refuse(token, ErrorCode::NotFound.text(), text));
                }
            }
        });
        Ok(())
    }
}

/// Whether the log takes the task. `more_bytes`: what else its record holds.
pub(super) fn check_spec(limits: &Limits, spec: &TaskSpec<'_>, more_bytes: usize) -> Result<(), String> {
    limits.check_payload("the input of a task", spec.payload)?;
    if spec.key.is_some_and(|key| parse_task_id(key).is_some()) {
        return Err("a key cannot look like the id of a task (t-1, t-2 …)".into());
    }
    let bytes = fields_bytes(spec) + more_bytes;
    if bytes > FIELDS_BYTES_MAX {
        return Err(format!(
            "the names, keys, tags and lists of a task take {bytes} bytes; the limit is {FIELDS_BYTES_MAX}: put what is \
             large into its input"
        ));
    }
    Ok(())
}

fn tell_outcome(cell: &mut TaskCell, now_ms: i64, lease: Lease, outcome: TaskOutcome<'_>, bytes_max: usize) {
    let too_large = |bytes: &[u8]| {
        (bytes.len() > bytes_max).then(|| {
            let what = format!("what the task gave takes {} bytes; the limit is {bytes_max} bytes", bytes.len());
            encode_failure("NonRetryableError", "NON_RETRYABLE", &what)
        })
    };
    match outcome {
        TaskOutcome::Completed(output) => match too_large(output) {
            None => cell.engine.handle_completed(now_ms, lease, output),
            Some(failure) => cell.engine.handle_failed(now_ms, lease, Failure::Permanent, failure.as_bytes()),
        },
        TaskOutcome::Failed { thrown, after_ms } => {
            let short = too_large(thrown);
            let thrown = short.as_ref().map_or(thrown, String::as_bytes);
            cell.engine.handle_failed(now_ms, lease, Failure::Retryable { after_ms }, thrown)
        }
        TaskOutcome::FailedForGood(thrown) => {
            let short = too_large(thrown);
            let thrown = short.as_ref().map_or(thrown, String::as_bytes);
            cell.engine.handle_failed(now_ms, lease, Failure::Permanent, thrown)
        }
        TaskOutcome::Postponed(until_ms) => cell.engine.handle_postponed(now_ms, lease, until_ms),
        TaskOutcome::Heartbeat(details) => cell.heartbeat(now_ms, lease, details),
        TaskOutcome::Progress(progress) => cell.set_progress(lease, progress),
    };
}

fn refused(token: Token, refusal: &Refusal) -> TaskEvent {
    TaskEvent::Refuse(token, verb_code(refusal), refusal.to_string())
}

/// The code of a refusal of anything but a submission.
pub(super) fn verb_code(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Full { .. } | Refusal::Reserved { .. } => ErrorCode::Busy.text(),
        Refusal::Closed
        | Refusal::KeyInUse { .. }
        | Refusal::UnknownQueue(_)
        | Refusal::Limit(_)
        | Refusal::Invalid(_)
        | Refusal::UnknownParent(_)
        | Refusal::UnknownKey(_)
        | Refusal::UnknownRun(_)
        | Refusal::Cycle(_)
        | Refusal::DuplicateKey(_) => refusal.code(),
    }
}

/// What a row says of a submission: what became of it and the task's number, or `r`, a code and why.
pub(super) fn submitted_row(result: &Result<crate::scheduler::Answer, Refusal>) -> String {
    use crate::scheduler::Answer;
    match result {
        Ok(Answer::New(task)) => fields(&["n", &task.to_string()]),
        Ok(Answer::Existing(task)) => fields(&["e", &task.to_string()]),
        Ok(Answer::Changed(task)) => fields(&["c", &task.to_string()]),
        Err(refusal) => {
            let (queue, number) = refusal.about();
            fields(&["r", refusal.code(), &refusal.to_string(), queue, &number.to_string()])
        }
    }
}

/// A reason is recorded up to this length.
pub(super) fn cut(reason: &str) -> &str {
    const BYTES_MAX: usize = 1_024;
    let end = (0..=BYTES_MAX.min(reason.len())).rev().find(|at| reason.is_char_boundary(*at)).unwrap_or(0);
    &reason[..end]
}

/// What a task takes in a record, at most.
fn record_bytes(spec: &TaskSpec<'_>) -> usize {
    spec.payload.len() + fields_bytes(spec)
}

/// What the fields of a task take in its record, besides its input, at most.
pub(super) fn fields_bytes(spec: &TaskSpec<'_>) -> usize {
    let texts = [Some(spec.queue), Some(spec.kind), spec.key, spec.tenant, spec.order_key];
    let text_bytes: usize = texts.into_iter().flatten().map(str::len).sum();
    let limit_bytes: usize =
        spec.limits.iter().map(|of| ENTRY_BYTES + of.name.len() + of.key.map_or(0, str::len)).sum();
    let pairs = spec.labels.iter().chain(&spec.tags);
    let pair_bytes: usize = pairs.map(|(name, value)| ENTRY_BYTES + name.len() + value.len()).sum();
    let edge_bytes: usize = spec
        .after
        .iter()
        .map(|edge| match edge.parent {
            Parent::Key(key) | Parent::Run(key, _) => ENTRY_BYTES + key.len(),
            Parent::Number(_) => ENTRY_BYTES,
        })
        .sum();
    FIELDS_BYTES + text_bytes + limit_bytes + pair_bytes + edge_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_id_in_its_one_form_is_an_id() {
        assert_eq!(parse_task_id(&task_id(TaskNo(42))), Some(TaskNo(42)));
        for text in ["t-", "t-0", "t-01", "t-1x", "1", "order:1", "t-99999999999999999999999"] {
            assert_eq!(parse_task_id(text), None, "{text}");
        }
    }

    #[test]
    fn a_reason_is_cut_between_characters() {
        let reason = "ä".repeat(1_000);
        assert_eq!(cut(&reason).len(), 1_024);
        assert_eq!(cut("short"), "short");
    }
}
