//! Runs that begin with what another one has recorded before a place: forks of it, and those that take its place.
//!
//! What comes before the place is copied: the records up to the first one of its operation or of a later one. From behind
//! it goes along what came for operations before the place, since it would come again: results of steps that ran beside
//! it, ends of children and tasks, timers. Signals go along where that is asked for. So the copy is what the journal would
//! be if the operations from the place on had not been asked for, and it replays as that.

use super::commands::{Refusal, Target};
use super::copying::{CopiedRun, NOBODY, awaits, is_copied};
use super::limits::{check_actor, check_text};
use super::ops::Op;
use super::run::RunIx;
use super::shard::{Shard, Work};
use super::stuck::Operation;
use crate::record::{NewRun, Record, Seq, Status, run_id};
use std::collections::BTreeSet;

/// The first operation that is not taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Border<'a> {
    /// The first call of a step of this name.
    Step(&'a str),
    /// The operation with this number.
    Operation(u32),
    /// The step of this name that failed last; the run has failed.
    FailedStep(&'a str),
    /// The child, task or other workflow that ended last without a result; the run has failed.
    FailedChild,
    /// None: all is taken over but the end; the run has failed.
    End,
}

/// What a run takes over of another one, and what is new about it.
#[derive(Clone, Copy, Debug)]
pub struct Branch<'a> {
    /// Up to where.
    pub border: Border<'a>,
    /// Signals that came later go along.
    pub reapplies_signals: bool,
    /// Version of the code, if it is another one.
    pub version: Option<u32>,
    /// What the keys of operations from the border on come from, if from something else.
    pub key_root: Option<[u8; 16]>,
    /// Who asks.
    pub actor: Option<&'a str>,
}

impl Shard {
    /// The records with which a fork of a run begins, under an id of its own.
    pub fn copy_for_fork(
        &self,
        now_ms: i64,
        target: Target<'_>,
        id: &str,
        branch: &Branch<'_>,
    ) -> Result<CopiedRun, Refusal> {
        check_text("the id of a fork", id).map_err(Refusal::BadInput)?;
        let source = self.find_last(target)?;
        self.copy(now_ms, source, id, branch, true)
    }

    /// Begins a run with copied records, in one record. Its id must not have been used.
    pub fn fork(&mut self, work: &mut Work<'_>, copied: &CopiedRun) -> Result<RunIx, Refusal> {
        if self.latest_of(&copied.id).is_some() {
            return Err(Refusal::AlreadyStarted(format!(
                "there is a workflow \"{}\" already; give the fork another id, or none",
                copied.id
            )));
        }
        Ok(self.begin_copy(work, copied))
    }

    fn begin_copy(&mut self, work: &mut Work<'_>, copied: &CopiedRun) -> RunIx {
        let run = self.next_run_no();
        self.commit(work, None, &Record::Forked { run, entries: &copied.entries(run) });
        self.run_of(run).expect("the record that was just applied made it")
    }

    /// The id goes on from before a place: a run that has not ended ends, and a new one takes its place.
    pub fn reset(&mut self, work: &mut Work<'_>, target: Target<'_>, branch: &Branch<'_>) -> Result<RunIx, Refusal> {
        let run = self.find_last(target)?;
        if self.latest_of(target.id) != Some(run) {
            return Err(Refusal::BadInput(format!(
                "run {} of workflow \"{}\" is not its latest one: reset that, by a handle without a run id, or fork this one",
                run_id(self.id, self.run(run).no),
                target.id
            )));
        }
        let is_open = self.run(run).open().is_some();
        let copied = self.copy(work.now_ms, run, target.id, branch, !is_open)?;
        if !is_open {
            return Ok(self.begin_copy(work, &copied));
        }
        let (no, next, actor) = (self.run(run).no, self.next_run_no(), branch.actor);
        let reason = match branch.border {
            Border::Step(name) => format!("reset to step \"{name}\""),
            Border::Operation(number) => format!("reset to operation {number}"),
            Border::FailedStep(_) | Border::FailedChild | Border::End => "reset".into(),
        };
        let entries = copied.entries(next);
        let record = Record::Reset { run: no, time_ms: work.now_ms, next, reason: &reason, actor, entries: &entries };
        self.commit(work, Some(run), &record);
        Ok(self.run_of(next).expect("the record that was just applied made it"))
    }

    /// With `asks_anew` the copy asks by itself for what is still awaited.
    fn copy(
        &self,
        now_ms: i64,
        run: RunIx,
        id: &str,
        branch: &Branch<'_>,
        asks_anew: bool,
    ) -> Result<CopiedRun, Refusal> {
        check_actor(branch.actor).map_err(Refusal::BadInput)?;
        let source = self.run(run);
        if self.is_object(run) {
            return Err(Refusal::BadInput(format!(
                "\"{}\" is an object, and those are not reset or forked",
                source.id
            )));
        }
        let Record::Start { time_ms, new, .. } = self.start_of(run)? else {
            unreachable!("a journal begins with a start");
        };
        let border = self.border(run, branch.border)?;
        let mut copied = CopiedRun { id: id.into(), records: Vec::new() };
        let mut kept = self.kept(run, border, branch.reapplies_signals);
        let begun_ms = kept.iter().filter_map(branched_ms).max().unwrap_or(source.started_ms);
        let of = run_id(self.id, source.no);
        let borders = self.new_borders(now_ms, run, &of, border, branch, &mut kept);
        let answered: BTreeSet<Seq> = kept.iter().filter_map(answer_to).collect();
        let new = NewRun {
            id,
            version: branch.version.unwrap_or(new.version),
            // A run that ended has told whoever started it, and a fork was started by nobody.
            parent: new.parent.filter(|_| !asks_anew),
            // As much time as it had.
            deadline_ms: source.deadline_ms.map(|due_ms| now_ms.saturating_add(due_ms.saturating_sub(begun_ms))),
            ..new
        };
        copied.push(&Record::Start { run: NOBODY, time_ms, new, origin: None }, true);
        for record in borders.iter().chain(&kept) {
            copied.push(record, asks_anew && awaits(record).is_some_and(|seq| !answered.contains(&seq)));
        }
        if asks_anew {
            copied.disown();
        }
        let (bytes, max) = (copied.bytes(), self.limits.payload_bytes_max);
        if bytes > max {
            return Err(Refusal::BadInput(format!(
                "what workflow \"{}\" has recorded before that place takes {bytes} bytes; the limit is {max} bytes \
                 (payloadBytesMax): go back to an earlier step",
                source.id
            )));
        }
        Ok(copied)
    }

    fn start_of(&self, run: RunIx) -> Result<Record<'_>, Refusal> {
        let source = self.run(run);
        if source.journal.end() == 0 {
            return Err(Refusal::NotFound(format!(
                "workflow \"{}\" has ended and its history is not kept any more: nothing can be taken over; start it again",
                source.id
            )));
        }
        Ok(source.journal.read(0).0.record)
    }

    /// The records that go along, in their order, the start aside.
    fn kept(&self, run: RunIx, border: Seq, reapplies_signals: bool) -> Vec<Record<'_>> {
        let entries = self.run(run).journal.entries().skip(1).map(|(_, entry)| entry.record);
        let mut is_behind = false;
        entries
            .filter(|record| {
                is_behind |= record.operation().is_some_and(|seq| seq >= border);
                let is_taken = if is_behind { goes_along(record, border, reapplies_signals) } else { true };
                is_taken && is_copied(record)
            })
            .collect()
    }

    fn border(&self, run: RunIx, border: Border<'_>) -> Result<Seq, Refusal> {
        let source = self.run(run);
        if matches!(border, Border::FailedStep(_) | Border::FailedChild | Border::End) {
            let status = source.end().map(|end| end.status);
            if status != Some(Status::Failed) {
                return Err(Refusal::BadInput(format!(
                    "workflow \"{}\" has not failed ({}): there is nothing to try again; use reset",
                    source.id,
                    status.map_or("running", super::commands::word)
                )));
            }
        }
        let records = || source.journal.entries().map(|(_, entry)| entry.record);
        let asked = source.open().map_or(0, |open| open.asked);
        // A place that it was copied up to was one of the run before.
        let of_border = |record: Record<'_>| match record {
            Record::Branched { seq, .. } => Some(seq),
            other => other.operation(),
        };
        let newest = records().filter_map(of_border).max().map_or(0, |seq| seq.0).max(asked);
        let found = match border {
            Border::Step(name) => {
                let recorded = records().filter_map(|record| match Operation::of(&record) {
                    Some((seq, Operation::Step(step))) if step == name => Some(seq),
                    _ => None,
                });
                let open = source.open().into_iter().flat_map(|open| open.ops.iter());
                let running = open.filter(|(_, op)| matches!(op, Op::Step(step) if *step.name == *name));
                recorded.chain(running.map(|(seq, _)| seq)).min().ok_or_else(|| format!("step \"{name}\""))
            }
            Border::Operation(number) if number >= 1 && number <= newest => Ok(Seq(number)),
            Border::Operation(number) => Err(format!("operation {number} (the newest is {newest})")),
            Border::FailedStep(name) => Ok(records()
                .filter_map(|record| match record {
                    Record::StepDone { seq, name: step, is_failure: true, .. } if step == name => Some(seq),
                    _ => None,
                })
                .last()
                .unwrap_or(Seq(newest + 1))),
            Border::FailedChild => Ok(records()
                .filter_map(|record| match record {
                    Record::ChildDone { seq, status, .. } if status != Status::Completed => Some(seq),
                    _ => None,
                })
                .last()
                .unwrap_or(Seq(newest + 1))),
            Border::End => Ok(Seq(newest + 1)),
        };
        found.map_err(|what| {
            Refusal::BadInput(format!(
                "run {} of workflow \"{}\" has no {what}; handle.history() shows what it has. Steps before a continueAsNew \
                 belong to an earlier run",
                run_id(self.id, source.no),
                source.id
            ))
        })
    }

    /// The borders of the copy, in the order of their operations: those that the run has itself, which leave `kept`, and
    /// the new one. Keys and ids of operations before the new one stay what they were.
    fn new_borders<'a>(
        &'a self,
        now_ms: i64,
        run: RunIx,
        of: &'a str,
        border: Seq,
        branch: &Branch<'a>,
        kept: &mut Vec<Record<'a>>,
    ) -> Vec<Record<'a>> {
        let source = self.run(run);
        let (mut key_root, mut workflow) = (source.key_root, &*source.id);
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        kept.retain(|record| {
            let Record::Branched { seq, key_root: root, id, .. } = *record else { return true };
            if seq < border {
                key_root = root;
                before.push(*record);
            } else {
                if behind.is_empty() {
                    workflow = id;
                }
                behind.push(*record);
            }
            false
        });
        let new = Record::Branched {
            run: source.no,
            time_ms: now_ms,
            seq: border,
            id: workflow,
            source: of,
            key_root: branch.key_root.unwrap_or(key_root),
            actor: branch.actor,
        };
        before.push(new);
        if branch.key_root.is_none() {
            before.extend(behind);
        }
        before
    }
}

/// When the run was copied, if that is what the record says.
fn branched_ms(record: &Record<'_>) -> Option<i64> {
    match *record {
        Record::Branched { time_ms, .. } => Some(time_ms),
        _ => None,
    }
}

/// Whether something that was recorded behind the border came for what stands before it.
fn goes_along(record: &Record<'_>, border: Seq, reapplies_signals: bool) -> bool {
    match *record {
        Record::StepDone { seq, .. } | Record::TimerFired { seq, .. } | Record::ChildDone { seq, .. } => seq < border,
        Record::Signal { .. } => reapplies_signals,
        _ => false,
    }
}

/// The operation whose other side has ended.
fn answer_to(record: &Record<'_>) -> Option<Seq> {
    match *record {
        Record::ChildDone { seq, .. } => Some(seq),
        _ => None,
    }
}
