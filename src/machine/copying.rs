//! Runs whose journals begin with copies of another run's records: what is copied, and what becomes of what it implied.
//!
//! A copy has the number of another run, or 0, and what it says was done when that one was recorded. What is still
//! awaited goes along in one of two ways. A run that takes the place of one that was alive adopts its children, tasks and
//! watches: their callers are the run that asked, and their answers come by it. Any other copy asks anew, as itself.

use super::messages::{Body, OwnedChild};
use super::restore::{RestoreError, shards_named};
use super::run::{RunIx, RunState};
use super::shard::{Effect, Shard};
use crate::record::{
    Caller, ChildSpec, DecodeError, IdConflict, Lsn, ParentClose, Reader, Record, RunNo, Sending, Seq, ShardId, Writer,
    renumbered,
};
use std::collections::BTreeSet;

/// Stands for the run of a copy where that is of no interest: no run has this number.
pub(super) const NOBODY: RunNo = RunNo(0);

/// The length before an entry, and what a number may take more than the one in its place.
const HEAD_BYTES_MAX: usize = 16;

/// Records for a run that has no number yet.
#[derive(Debug, Default)]
pub struct CopiedRun {
    pub(super) id: Box<str>,
    /// Each with whether it is the run's own: a `Start`, or something that is asked for anew.
    pub(super) records: Vec<(bool, Vec<u8>)>,
}

impl CopiedRun {
    /// Adds a record that has the number of the run that it is copied from, or [`NOBODY`].
    pub(super) fn push(&mut self, record: &Record<'_>, is_own: bool) {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        self.records.push((is_own, bytes));
    }

    /// Whose the copies were is of no use where they are, and may be the number of another run there.
    pub(super) fn disown(&mut self) {
        for (_, record) in self.records.iter_mut().filter(|(is_own, _)| !is_own) {
            *record = renumbered(record, NOBODY);
        }
    }

    /// Bytes that the entries take at most.
    pub(super) fn bytes(&self) -> usize {
        self.records.iter().map(|(_, record)| record.len() + HEAD_BYTES_MAX).sum()
    }

    /// As `Forked` and `Reset` have them, for the run with this number.
    pub(super) fn entries(&self, no: RunNo) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut out = Writer::new(&mut bytes);
        for (is_own, record) in &self.records {
            if *is_own { out.bytes(&renumbered(record, no)) } else { out.bytes(record) }
        }
        bytes
    }
}

/// The records in `entries`, if they can be the journal of the run `no` in a directory with so many shards.
pub(super) fn copied_records(entries: &[u8], no: RunNo, shards: u16) -> Result<Vec<&[u8]>, RestoreError> {
    let mut reader = Reader::new(entries);
    let mut records = Vec::new();
    while !reader.rest().is_empty() {
        let bytes = reader.bytes().map_err(RestoreError::Decode)?;
        let record = Record::decode(bytes).map_err(RestoreError::Decode)?;
        let is_start = matches!(record, Record::Start { run, origin: None, .. } if run == no);
        if is_start != records.is_empty() || !(is_start || is_copied(&record)) {
            return Err(RestoreError::Number(record.run().unwrap_or(no)));
        }
        let is_unknown = |shard: &ShardId| shard.0 >= shards && *shard != ShardId::SCHEDULER;
        if let Some(unknown) = shards_named(&record).into_iter().flatten().find(is_unknown) {
            return Err(RestoreError::UnknownShard(unknown));
        }
        records.push(bytes);
    }
    if records.is_empty() { Err(RestoreError::Decode(DecodeError::Short)) } else { Ok(records) }
}

/// The type and the id of the run that has these entries.
#[must_use]
pub fn copied_names(entries: &[u8]) -> Option<(&str, &str)> {
    match Record::decode(Reader::new(entries).bytes().ok()?).ok()? {
        Record::Start { new, .. } => Some((new.kind, new.id)),
        _ => None,
    }
}

/// Whether copies of it are made. A pause is no part of what a run has come to, and whoever waits for its end is known
/// without a record.
pub(super) fn is_copied(record: &Record<'_>) -> bool {
    match record {
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
        | Record::Update { .. }
        | Record::UpdateDone { .. }
        | Record::Patched { .. }
        | Record::Attributes { .. }
        | Record::Activated { .. }
        | Record::Branched { .. } => true,
        Record::Start { .. }
        | Record::Called { .. }
        | Record::CallDone { .. }
        | Record::Paused { .. }
        | Record::Done { .. }
        | Record::Watched { .. }
        | Record::Answered { .. }
        | Record::Received { .. }
        | Record::SignalledStart { .. }
        | Record::AttributedStart { .. }
        | Record::Queued { .. }
        | Record::Continued { .. }
        | Record::Forked { .. }
        | Record::Reset { .. } => false,
    }
}

/// The operation that waits for somebody else's end, if the record opens one.
pub(super) fn awaits(record: &Record<'_>) -> Option<Seq> {
    match *record {
        Record::ChildSet { seq, .. }
        | Record::TaskSet { seq, .. }
        | Record::SendSet { seq, what: Sending::Watch | Sending::WatchTask(_) | Sending::Call(_), .. } => Some(seq),
        _ => None,
    }
}

impl Shard {
    /// Makes a run of copied records, which the caller has looked through.
    pub(super) fn apply_copies(
        &mut self,
        lsn: Lsn,
        no: RunNo,
        entries: &[u8],
        effects: &mut Option<&mut Vec<Effect>>,
    ) -> RunIx {
        let mut run = None;
        for bytes in copied_records(entries, no, self.count).unwrap_or_default() {
            if let Ok(record) = Record::decode(bytes) {
                run = self.apply_simple(lsn, &record, bytes, run, effects);
            }
        }
        run.expect("the first of the records is a start")
    }

    /// What a run that ends leaves to the copy that takes its place is not closed with it.
    pub(super) fn leave_to_copy(&mut self, run: RunIx, next: RunNo, entries: &[u8]) {
        let mut left = BTreeSet::new();
        for bytes in copied_records(entries, next, self.count).unwrap_or_default() {
            left.extend(Record::decode(bytes).ok().as_ref().and_then(awaits));
        }
        if let Some(open) = self.open_mut(run) {
            open.children.retain(|child| !left.contains(&child.caller.seq));
            open.orders.retain(|order| !left.contains(&order.seq));
        }
    }

    /// What is said where a child is to be. A copy that asks anew takes the child that is alive, whatever it was started
    /// with; one that does not end with whoever asked for it is only waited for.
    pub(super) fn child_message(&self, parent: RunIx, lsn: Lsn, caller: Caller, child: &ChildSpec<'_>) -> Body {
        let asks_anew = self.run(parent).journal.read(0).0.lsn == lsn;
        if asks_anew && child.parent_close == ParentClose::Abandon {
            return Body::Watch { id: child.id.into(), target: None, caller };
        }
        let conflict = if asks_anew { IdConflict::UseExisting } else { child.conflict };
        Body::Start { caller, child: OwnedChild { conflict, ..OwnedChild::from(child) } }
    }

    /// The open run that an answer to `caller` is for: that run, or the copy in its place that has adopted what it
    /// waited for.
    pub(super) fn answered_run(&self, caller: Caller) -> Option<RunIx> {
        let asked = self.run_of(caller.run)?;
        let run = self.last_of_chain(asked);
        self.run(run).open()?;
        let has_adopted = || {
            let entries = &mut self.run(run).journal.entries();
            entries
                .any(|(_, entry)| awaits(&entry.record) == Some(caller.seq) && entry.record.run() == Some(caller.run))
        };
        (run == asked || has_adopted()).then_some(run)
    }

    /// Who asked for the child, or the task, that an operation of a run waits for: a run of before, if it was adopted.
    pub(super) fn caller_of(&self, run: RunIx, seq: Seq) -> Caller {
        let target = self.run(run);
        let has_copies = target.open().is_some_and(|open| !open.borders.is_empty());
        let mut asked_by = has_copies.then(|| target.journal.entries()).into_iter().flatten();
        let found = asked_by.find(|(_, entry)| awaits(&entry.record) == Some(seq));
        let run = found.and_then(|(_, entry)| entry.record.run()).unwrap_or(target.no);
        Caller { shard: self.id, run, seq }
    }

    /// The position, or the one behind the borders that are noted there: they are no part of what the code has done.
    pub(super) fn behind_borders(&self, run: RunIx, position: u32) -> u32 {
        let journal = &self.run(run).journal;
        let mut entries = journal.entries_from(position);
        let other = entries.find(|(_, entry)| !matches!(entry.record, Record::Branched { .. }));
        other.map_or_else(|| journal.end(), |(position, _)| position)
    }

    /// What the keys of an operation come from.
    #[must_use]
    pub fn key_root_at(&self, run: RunIx, seq: Seq) -> [u8; 16] {
        let target = self.run(run);
        let borders = target.open().map_or(&[][..], |open| &open.borders);
        borders.iter().rev().find(|(from, _)| *from <= seq).map_or(target.key_root, |(_, key_root)| *key_root)
    }

    /// Where a run goes on by itself after what it has copied: the first operation of its own, what the keys come from
    /// from there on, the id of the workflow that it was copied from. The oldest first.
    pub fn borders(&self, run: RunIx) -> impl Iterator<Item = (Seq, [u8; 16], &str)> {
        let target = self.run(run);
        let has_any = matches!(&target.state, RunState::Open(open) if !open.borders.is_empty());
        let entries = has_any.then(|| target.journal.entries()).into_iter().flatten();
        entries.filter_map(|(_, entry)| match entry.record {
            Record::Branched { seq, id, key_root, .. } => Some((seq, key_root, id)),
            _ => None,
        })
    }
}
