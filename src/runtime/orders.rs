//! Messages between shards and the scheduler: applied there once each, in order, answered by messages back.
//!
//! The scheduler is one more sender and one more receiver. What a run is told of a task becomes part of its journal; the
//! texts for that are made here.

use super::tasks::{TaskCell, TaskWork};
use crate::machine::{Body, Message, OwnedLaunch};
use crate::record::{
    Caller, Order, Origin, Outcome, RunNo, Seq, ShardId, Status, TaskNo, TaskRole, decode_order, shard_of,
};
use crate::scheduler::{Answer, AttemptNote, LaunchOrder, OrderAnswer, OrderEnd};

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receipt {
    /// It has a record.
    Taken,
    /// An earlier one is missing: this number.
    Missing(u64),
    /// It stays with its sender until the next opening.
    Left,
}

impl TaskCell {
    /// Applies a message of a shard, or knows it again.
    pub(super) fn receive(&mut self, work: &mut TaskWork<'_>, message: &Message) -> Receipt {
        let taken = self.engine.taken_from(message.from);
        if message.number > taken {
            if !self.engine.takes_messages() {
                return Receipt::Left;
            }
            if message.number != taken + 1 {
                return Receipt::Missing(taken + 1);
            }
            let origin = Origin { from: message.from, number: message.number };
            self.apply(work.now_ms, &message.body, origin);
            self.commit(work);
        }
        self.receipts.hold(self.last(), (message.from, message.number));
        Receipt::Taken
    }

    fn apply(&mut self, now_ms: i64, body: &Body, origin: Origin) {
        match body {
            Body::Order { caller, role, order: bytes } => {
                let order = Order { caller: *caller, origin, role: *role };
                match decode_order(bytes) {
                    Ok((dedupe, spec)) => self.engine.handle_order(now_ms, &order, dedupe, &spec),
                    Err(error) => self.engine.handle_unreadable(now_ms, &order, &error.to_string()),
                }
            }
            Body::CancelOrder { caller } => self.engine.handle_order_cancelled(now_ms, *caller, origin),
            Body::CancelTask { task, reason } => {
                self.engine.handle_cancel_by_run(now_ms, *task, reason.as_bytes(), origin);
            }
            Body::WatchTask { task, caller } => {
                let order = Order { caller: *caller, origin, role: TaskRole::AwaitedLoosely };
                self.engine.handle_watch(now_ms, &order, *task);
            }
            Body::RunOver { caller, outcome } => self.engine.handle_run_over(now_ms, *caller, *outcome, origin),
            Body::Made { task, caller } => {
                self.engine.handle_run_made(now_ms, *task, *caller, origin);
                self.run_decided(*task);
            }
            Body::Ended { run, seq: Seq(edge), status, payload } if *edge > 0 => {
                self.engine.handle_awaited_run(now_ms, TaskNo(run.0), *edge, *status, payload, origin);
            }
            Body::Ended { run, payload, .. } => {
                let task = TaskNo(run.0);
                self.engine.handle_run_refused(now_ms, task, payload, origin);
                self.run_decided(task);
            }
            Body::Launch { .. }
            | Body::Admitted { .. }
            | Body::Activate { .. }
            | Body::NeverLetIn { .. }
            | Body::Start { .. }
            | Body::Signal { .. }
            | Body::Call { .. }
            | Body::Cancel { .. }
            | Body::Close { .. }
            | Body::Watch { .. } => unreachable!("it is for shards only"),
        }
    }

    /// Has a shard make a run.
    pub(super) fn launch(&mut self, order: LaunchOrder) -> Message {
        let LaunchOrder { task, id, kind, version, timeout_ms, key_root, input, order } = order;
        let (lsn, shard) = (self.last(), shard_of(&id, self.shards));
        let run = OwnedLaunch { id, kind, version, key_root, timeout_ms, input };
        self.outbox.post(ShardId::SCHEDULER, shard, lsn, Body::Launch { task, run, order })
    }

    /// Asks a run to end.
    pub(super) fn end_run(&mut self, id: Box<str>, run: Caller) -> Message {
        let reason = "a later occurrence of its schedule took its place".into();
        let lsn = self.last();
        self.outbox.post(ShardId::SCHEDULER, run.shard, lsn, Body::Cancel { id, target: Some(run.run), reason })
    }

    /// Has a shard say how a run ends. The answer names the task and which of its runs it was.
    pub(super) fn watch_run(&mut self, task: TaskNo, edge: u32, id: Box<str>, target: Option<RunNo>) -> Message {
        let (lsn, shard) = (self.last(), shard_of(&id, self.shards));
        let caller = Caller { shard: ShardId::SCHEDULER, run: RunNo(task.0), seq: Seq(edge) };
        self.outbox.post(ShardId::SCHEDULER, shard, lsn, Body::Watch { id, target, caller })
    }

    /// Says to a run what became of what it asked for.
    pub(super) fn tell_run(&mut self, caller: Caller, answer: OrderAnswer) -> Message {
        let body = if caller.seq == Seq(0) {
            told_of_itself(caller.run, answer)
        } else {
            let (status, payload) = told(answer);
            Body::Ended { run: caller.run, seq: caller.seq, status, payload }
        };
        let lsn = self.last();
        self.outbox.post(ShardId::SCHEDULER, caller.shard, lsn, body)
    }
}

/// What a run is told of the task that stands for itself.
fn told_of_itself(run: RunNo, answer: OrderAnswer) -> Body {
    match answer {
        OrderAnswer::Exists(_) => Body::Admitted { run },
        OrderAnswer::MayStart => Body::Activate { run },
        OrderAnswer::Refused(payload) => Body::NeverLetIn { run, status: Status::Refused, payload },
        OrderAnswer::Ended(end) => {
            let status = match end.outcome {
                Outcome::Completed | Outcome::Failed | Outcome::Dead => Status::Failed,
                Outcome::Cancelled => Status::Cancelled,
                Outcome::Skipped => Status::Skipped,
                Outcome::Missed => Status::Missed,
                Outcome::Expired => Status::Expired,
                Outcome::Shed => Status::Shed,
            };
            Body::NeverLetIn { run, status, payload: end.payload }
        }
    }
}

/// An answer as the journal of a run has it. What a task returned stands for itself; other ends are texts of lines.
fn told(answer: OrderAnswer) -> (Status, Box<[u8]>) {
    match answer {
        OrderAnswer::Exists(answer) => (Status::Completed, exists_text(answer).into_bytes().into()),
        // It is said to none of its operations.
        OrderAnswer::MayStart => (Status::Completed, Box::default()),
        OrderAnswer::Refused(why) => (Status::Refused, why),
        OrderAnswer::Ended(end) if end.outcome == Outcome::Completed => (Status::Completed, end.payload),
        OrderAnswer::Ended(end) => {
            let status = if end.outcome == Outcome::Cancelled { Status::Cancelled } else { Status::Failed };
            (status, end_text(&end).into_bytes().into())
        }
    }
}

/// The number of the outcome, the task's id, its attempts, what it ended with, the attempts that others followed.
fn end_text(end: &OrderEnd) -> String {
    let (code, attempts) = (end.outcome.code().to_string(), end.attempts.to_string());
    let (id, history) = (format!("t-{}", end.task), attempt_notes(&end.history, HISTORY_ERROR_BYTES_MAX));
    [code.as_str(), &id, &attempts, &String::from_utf8_lossy(&end.payload), &history].join("\n")
}

/// In a journal the errors of attempts that others followed are kept up to this size each.
const HISTORY_ERROR_BYTES_MAX: usize = 1_024;

/// A value of the host: what became of it, and the id of the task.
fn exists_text(answer: Answer) -> String {
    let letter = match answer {
        Answer::New(_) => 'n',
        Answer::Existing(_) => 'e',
        Answer::Changed(_) => 'c',
    };
    format!("\"{letter} t-{}\"", answer.task())
}

/// Attempts for the host: number, start, end, why, what was thrown if that is not longer.
#[must_use]
pub fn attempt_notes(history: &[AttemptNote], error_bytes_max: usize) -> String {
    let note = |note: &AttemptNote| {
        let (attempt, code) = (note.attempt.to_string(), note.end.code().to_string());
        let times = (note.started_ms.to_string(), note.ended_ms.to_string());
        let failure = if note.failure.len() <= error_bytes_max { &note.failure[..] } else { b"" };
        [&*attempt, &times.0, &times.1, &code, &String::from_utf8_lossy(failure)].join("\u{1c}")
    };
    history.iter().map(note).collect::<Vec<_>>().join("\u{1d}")
}
