//! What can be seen of a shard's runs.

use super::ops::{Op, StepPhase};
use super::run::{Code, RunIx};
use super::shard::Shard;
use super::stuck::Stuck;
use crate::record::{Caller, Lsn, Numbered, RunNo, Seq, Status};

/// Marks beside a status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Somebody has paused the run, or a step waits for somebody to resume it.
    pub is_paused: bool,
    /// The code asked for something else than was recorded, or broke a rule.
    pub is_stuck: bool,
    /// It waits until the scheduler lets it start. In place of `running`, and no mark of its own.
    pub is_queued: bool,
}

/// A run, seen from outside. Times are in ms since 1970.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names say what they are")]
pub struct RunView<'a> {
    pub no: RunNo,
    pub id: &'a str,
    pub kind: &'a str,
    pub version: u32,
    pub key_root: [u8; 16],
    /// `None`: it has not ended.
    pub status: Option<Status>,
    pub marks: Marks,
    pub created_ms: i64,
    /// `None`: its code could not run yet.
    pub started_ms: Option<i64>,
    /// Its place among the runs of the shard by start.
    pub order_ms: i64,
    /// Search attributes, in their writing.
    pub attributes: &'a [u8],
    pub ended_ms: Option<i64>,
    pub parent: Option<Caller>,
    /// Its newest record.
    pub last: Lsn,
    /// How it ended; empty while it has not.
    pub payload: &'a [u8],
}

/// A run that waits to be let in, where statuses are numbers.
pub(super) const QUEUED: u8 = 18;

impl RunView<'_> {
    /// The number of its status in the crossing to the host: of its end, 0 while it runs, 18 while it is queued.
    #[must_use]
    pub fn status_code(&self) -> u8 {
        match self.status {
            Some(status) => status.code(),
            None if self.marks.is_queued => QUEUED,
            None => 0,
        }
    }
}

/// Why a run is not running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Explanation {
    /// It has ended, and how.
    Ended(Status),
    /// Its code asked for something else than was recorded, or broke a rule.
    Stuck(Box<Stuck>),
    /// No host has its code: its type has no definition here, or it is being loaded.
    Absent,
    /// It is in a turn, or has a delivery before it.
    Running,
    /// The body of this step waits for its gate or runs.
    Step(String),
    /// It waits until the scheduler lets it start: the operation under which that knows it.
    Queued(Caller),
    /// It sleeps until this time in ms since 1970.
    Timer(i64),
    /// This step failed and runs again at this time in ms since 1970.
    Retry(String, i64),
    /// This step waits for somebody to resume the run; empty: all of it does.
    Paused(String),
    /// It waits for this.
    Waiting(String),
    /// It waits for nothing that could come through its context.
    Outside,
}

impl Shard {
    /// A run, seen from outside.
    #[must_use]
    pub fn view(&self, run: RunIx) -> RunView<'_> {
        let run = self.run(run);
        let end = run.end();
        RunView {
            no: run.no,
            id: &run.id,
            kind: &run.kind,
            version: run.version,
            key_root: run.key_root,
            status: end.map(|end| end.status),
            marks: Marks {
                is_paused: run.open().is_some_and(|open| open.is_held || !open.paused.is_empty()),
                is_stuck: run.open().is_some_and(super::run::OpenRun::is_stuck),
                is_queued: run.open().is_some_and(|open| open.is_queued),
            },
            created_ms: run.created_ms,
            started_ms: run.open().is_none_or(|open| !open.is_queued).then_some(run.started_ms),
            order_ms: run.order_ms,
            attributes: &run.attributes,
            ended_ms: end.map(|end| end.time_ms),
            parent: run.parent.map(|(caller, _)| caller),
            last: run.last,
            payload: end.map_or(b"", |end| &end.payload),
        }
    }

    /// The encoded input of a run; empty if its journal is not kept any more.
    #[must_use]
    pub fn input(&self, run: RunIx) -> &[u8] {
        match self.run(run).journal.entries().next().map(|(_, entry)| entry.record) {
            Some(crate::record::Record::Start { new, .. }) => new.input,
            _ => b"",
        }
    }

    /// All runs that the shard knows, the oldest first.
    pub fn views(&self) -> impl DoubleEndedIterator<Item = (RunIx, RunView<'_>)> {
        self.by_no.values().map(|run| (*run, self.view(*run)))
    }

    /// How a run ended, its payload, and the record that says so.
    #[must_use]
    pub fn outcome(&self, run: RunIx) -> Option<(Status, &[u8], Lsn)> {
        self.run(run).end().map(|end| (end.status, &*end.payload, end.lsn))
    }

    /// The records of a run, in order. Empty for a run that ended so long ago that its journal is not kept.
    pub fn history(&self, run: RunIx) -> impl Iterator<Item = Numbered<'_>> {
        self.run(run).journal.entries().map(|(_, entry)| entry)
    }

    /// Why a run is not running.
    #[must_use]
    pub fn explain(&self, run: RunIx) -> Explanation {
        let target = self.run(run);
        let Some(open) = target.open() else {
            return Explanation::Ended(target.end().map_or(Status::Completed, |end| end.status));
        };
        match &open.code {
            Code::Stuck(stuck) => return Explanation::Stuck(stuck.clone()),
            Code::Absent if open.is_held => return Explanation::Paused(String::new()),
            Code::Absent if open.is_queued => {
                return self.ticket(run).map_or(Explanation::Absent, Explanation::Queued);
            }
            Code::Absent => return Explanation::Absent,
            Code::InTurn => return Explanation::Running,
            Code::InLastTurn if self.is_idle_object(run) => {}
            Code::InLastTurn if open.ops.is_empty() => return Explanation::Running,
            Code::Idle | Code::InLastTurn if open.cursor < target.journal.end() => return Explanation::Running,
            Code::Idle | Code::InLastTurn => {}
        }
        let reasons = open.ops.iter().map(|(_, op)| match op {
            Op::Step(step) => match step.phase {
                StepPhase::Backoff(at_ms) => Explanation::Retry(step.name.to_string(), at_ms),
                StepPhase::Paused => Explanation::Paused(step.name.to_string()),
                StepPhase::Replayed | StepPhase::Running | StepPhase::Settled => {
                    Explanation::Step(step.name.to_string())
                }
            },
            Op::Timer { due_ms } => Explanation::Timer(*due_ms),
            Op::Wait { name, .. } => Explanation::Waiting(format!("signal \"{name}\"")),
            Op::Condition { .. } => Explanation::Waiting("a condition".into()),
            Op::Child => Explanation::Waiting("another workflow, a task, or an object".into()),
        });
        // What somebody has to act on says more than what runs, and that more than what waits.
        let nothing =
            if self.is_idle_object(run) { Explanation::Waiting("a call".into()) } else { Explanation::Outside };
        reasons.min_by_key(rank).unwrap_or(nothing)
    }

    /// Law 8: every open run has a reason to be woken, or is exempt. Returns the runs that have none, with the place.
    #[must_use]
    pub fn orphans(&self) -> Vec<(RunIx, Seq)> {
        let mut orphans = Vec::new();
        for run in self.by_no.values().copied() {
            let target = self.run(run);
            let Some(open) = target.open() else { continue };
            if !open.is_waiting() || open.cursor < target.journal.end() || open.is_replaying() {
                continue;
            }
            if open.ops.is_empty() && matches!(open.code, Code::Idle) && !self.is_idle_object(run) {
                orphans.push((run, Seq(0)));
            }
            for (seq, op) in open.ops.iter() {
                let is_alive = match op {
                    Op::Step(step) => match step.phase {
                        StepPhase::Backoff(at_ms) => self.timers.is_set(at_ms, run, seq),
                        StepPhase::Running | StepPhase::Paused => true,
                        StepPhase::Replayed | StepPhase::Settled => false,
                    },
                    Op::Timer { .. } | Op::Wait { .. } | Op::Condition { .. } | Op::Child => {
                        op.due_ms().is_none_or(|due_ms| self.timers.is_set(due_ms, run, seq))
                    }
                };
                if !is_alive {
                    orphans.push((run, seq));
                }
            }
        }
        orphans
    }

    /// Messages that their receivers have not acknowledged.
    #[must_use]
    pub fn unacknowledged_count(&self) -> usize {
        self.outbox.count()
    }

    /// The ids in use or used, in their order, each with its latest run.
    pub fn latest_runs(&self) -> impl Iterator<Item = (&str, RunIx)> {
        self.ids()
    }
}

fn rank(reason: &Explanation) -> u8 {
    match reason {
        Explanation::Paused(_) => 0,
        Explanation::Step(_) => 1,
        Explanation::Retry(..) => 2,
        Explanation::Waiting(_) => 3,
        Explanation::Timer(_) => 4,
        Explanation::Ended(_)
        | Explanation::Stuck(_)
        | Explanation::Absent
        | Explanation::Running
        | Explanation::Queued(_)
        | Explanation::Outside => 5,
    }
}
