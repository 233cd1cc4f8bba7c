//! Taking records back into memory, after an open.

use super::run::RunIx;
use super::shard::{Effect, Shard};
use crate::record::{DecodeError, Lsn, Record, RunNo, ShardId};
use std::fmt;

/// Why a record cannot be taken back into memory.
#[derive(Debug, PartialEq, Eq)]
pub enum RestoreError {
    /// Its bytes are no record.
    Decode(DecodeError),
    /// It belongs to a run that no earlier record started.
    UnknownRun(RunNo),
    /// It starts a run whose number does not follow the one before.
    Number(RunNo),
    /// It ends a run that has ended.
    EndedTwice(RunNo),
    /// The run's journal has no room for it.
    TooLong(RunNo),
    /// It names a shard that the directory does not have.
    UnknownShard(ShardId),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestoreError::Decode(error) => error.fmt(formatter),
            RestoreError::UnknownRun(run) => write!(formatter, "no record starts run {}", run.0),
            RestoreError::Number(run) => write!(formatter, "it starts run {} out of order", run.0),
            RestoreError::EndedTwice(run) => write!(formatter, "it ends run {} a second time", run.0),
            RestoreError::TooLong(run) => write!(formatter, "the journal of run {} is longer than 4 GiB", run.0),
            RestoreError::UnknownShard(shard) => write!(formatter, "there is no shard {shard}"),
        }
    }
}

impl std::error::Error for RestoreError {}

impl Shard {
    /// Takes a record back, in the order of the log. No effects: ask for them with [`Shard::restored`].
    pub fn restore(&mut self, lsn: Lsn, bytes: &[u8]) -> Result<(), RestoreError> {
        let record = Record::decode(bytes).map_err(RestoreError::Decode)?;
        let run = match (&record, record.run()) {
            (
                Record::Start { run, .. }
                | Record::SignalledStart { run, .. }
                | Record::AttributedStart { run, .. }
                | Record::Queued { run, .. }
                | Record::Forked { run, .. },
                _,
            ) if run.0 != self.next_no || run.0 == u64::MAX => {
                return Err(RestoreError::Number(*run));
            }
            (
                Record::Start { .. }
                | Record::SignalledStart { .. }
                | Record::AttributedStart { .. }
                | Record::Queued { .. }
                | Record::Forked { .. },
                _,
            )
            | (_, None) => None,
            (_, Some(no)) => Some(self.run_of(no).ok_or(RestoreError::UnknownRun(no))?),
        };
        if let Record::Continued { next, carried, .. } = &record {
            if next.0 != self.next_no || next.0 == u64::MAX {
                return Err(RestoreError::Number(*next));
            }
            super::compound::places_of(carried).map_err(RestoreError::Decode)?;
        }
        if let Record::Forked { run: next, entries } | Record::Reset { next, entries, .. } = &record {
            if next.0 != self.next_no || next.0 == u64::MAX {
                return Err(RestoreError::Number(*next));
            }
            super::copying::copied_records(entries, *next, self.count)?;
        }
        if let (
            Record::Done { run: no, .. } | Record::Continued { run: no, .. } | Record::Reset { run: no, .. },
            Some(run),
        ) = (&record, run)
            && self.run(run).open().is_none()
        {
            return Err(RestoreError::EndedTwice(*no));
        }
        if let (Some(no), Some(run)) = (record.run(), run)
            && !self.run(run).journal.has_room(bytes.len())
        {
            return Err(RestoreError::TooLong(no));
        }
        if let Some(unknown) = shards_named(&record)
            .into_iter()
            .flatten()
            .find(|shard| shard.0 >= self.count && *shard != ShardId::SCHEDULER)
        {
            return Err(RestoreError::UnknownShard(unknown));
        }
        self.apply(lsn, &record, bytes, run, None);
        Ok(())
    }

    /// The log has no more records: asks for the code of every open run. `clean` says that the last close was
    /// orderly, so that no body can have been cut off.
    pub fn restored(&mut self, clean: bool, effects: &mut Vec<Effect>) {
        let runs: Vec<RunIx> = self.by_no.values().copied().collect();
        for run in runs {
            if let Some(open) = self.open_mut(run) {
                open.is_recovered = !clean;
                // How many of them its code has taken will be known when it is back.
                open.untaken = 0;
                if !open.is_held && !open.is_queued {
                    effects.push(Effect::Load(run));
                }
            }
        }
    }
}

/// The shards that a record sends something to, or has something from.
pub(super) fn shards_named(record: &Record<'_>) -> [Option<ShardId>; 2] {
    let caller = match record {
        Record::Start { new, .. }
        | Record::SignalledStart { new, .. }
        | Record::AttributedStart { new, .. }
        | Record::Queued { new, .. }
        | Record::Continued { new, .. } => new.parent.map(|(caller, _)| caller.shard),
        Record::Watched { caller, .. } | Record::Answered { caller, .. } => Some(caller.shard),
        Record::Called { caller, .. } => caller.map(|caller| caller.shard),
        Record::StepDone { .. }
        | Record::StepFailed { .. }
        | Record::StepStarted { .. }
        | Record::Heartbeat { .. }
        | Record::TimerSet { .. }
        | Record::TimerFired { .. }
        | Record::WaitSet { .. }
        | Record::ConditionSet { .. }
        | Record::Signal { .. }
        | Record::ChildSet { .. }
        | Record::SendSet { .. }
        | Record::TaskSet { .. }
        | Record::ChildDone { .. }
        | Record::Cancel { .. }
        | Record::Resumed { .. }
        | Record::Done { .. }
        | Record::Update { .. }
        | Record::UpdateDone { .. }
        | Record::CallDone { .. }
        | Record::Patched { .. }
        | Record::Paused { .. }
        | Record::Attributes { .. }
        | Record::Activated { .. }
        | Record::Forked { .. }
        | Record::Reset { .. }
        | Record::Branched { .. }
        | Record::Received { .. } => None,
    };
    [caller, record.origin().map(|origin| origin.from)]
}
