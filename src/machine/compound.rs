//! Records that say several things at once, so that no crash can come between them. Each is taken apart into ordinary
//! records with its LSN: journals, walks and histories know only those.

use super::run::{RunIx, RunState};
use super::shard::{Effect, Shard};
use crate::record::{Caller, DecodeError, Lsn, Numbered, Reader, Record, RunNo, Status, Writer};

impl Shard {
    /// Does to the state what a record says, if it is one of several things.
    pub(super) fn apply_compound(
        &mut self,
        lsn: Lsn,
        record: &Record<'_>,
        run: Option<RunIx>,
        effects: &mut Option<&mut Vec<Effect>>,
    ) -> bool {
        match *record {
            Record::SignalledStart { run: no, time_ms, new, signal } => {
                let start = Record::Start { run: no, time_ms, new, origin: None };
                let run = self.apply_part(lsn, &start, None, effects);
                let signal = Record::Signal {
                    run: no,
                    time_ms,
                    name: signal.name,
                    payload: signal.payload,
                    dedupe: signal.dedupe,
                    actor: new.actor,
                    origin: None,
                };
                self.apply_part(lsn, &signal, run, effects);
                true
            }
            Record::Continued { run: no, time_ms, next, new, carried } => {
                let old = run.expect("the caller found the run of the record");
                let carried = self.carried_records(old, next, carried);
                // Whoever waits for the end waits for the end of the next one.
                let watchers = self.open_mut(old).map(|open| std::mem::take(&mut open.watchers)).unwrap_or_default();
                let (status, payload) = (Status::ContinuedAsNew, b"");
                let done = Record::Done { run: no, time_ms, status, payload, actor: None, origin: None };
                self.apply_part(lsn, &done, Some(old), effects);
                let start = Record::Start { run: next, time_ms, new, origin: None };
                let run = self.apply_part(lsn, &start, None, effects).expect("a start makes a run");
                self.take_place(old, run, watchers);
                for bytes in carried {
                    if let Ok(record) = Record::decode(&bytes) {
                        self.apply_part(lsn, &record, Some(run), effects);
                    }
                }
                true
            }
            Record::Forked { run: no, entries } => {
                self.apply_copies(lsn, no, entries, effects);
                true
            }
            Record::Reset { run: no, time_ms, next, reason, actor, entries } => {
                let old = run.expect("the caller found the run of the record");
                self.leave_to_copy(old, next, entries);
                let watchers = self.open_mut(old).map(|open| std::mem::take(&mut open.watchers)).unwrap_or_default();
                let (status, payload) = (Status::Terminated, reason.as_bytes());
                let done = Record::Done { run: no, time_ms, status, payload, actor, origin: None };
                self.apply_part(lsn, &done, Some(old), effects);
                let run = self.apply_copies(lsn, next, entries, effects);
                self.take_place(old, run, watchers);
                true
            }
            Record::Start { .. }
            | Record::StepDone { .. }
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
            | Record::Watched { .. }
            | Record::Answered { .. }
            | Record::Received { .. }
            | Record::Update { .. }
            | Record::UpdateDone { .. }
            | Record::Patched { .. }
            | Record::Paused { .. }
            | Record::Branched { .. } => false,
        }
    }

    /// A run goes on for one that has ended, and for those who waited for its end.
    fn take_place(&mut self, old: RunIx, run: RunIx, watchers: Vec<Caller>) {
        self.inherit(run, watchers);
        let next = self.run(run).no;
        if let RunState::Ended(end) = &mut self.run_mut(old).state {
            end.continued = Some(next);
        }
    }

    fn apply_part(
        &mut self,
        lsn: Lsn,
        record: &Record<'_>,
        run: Option<RunIx>,
        effects: &mut Option<&mut Vec<Effect>>,
    ) -> Option<RunIx> {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        self.apply_simple(lsn, record, &bytes, run, effects)
    }

    /// The places of what a run's code has not been handed and the next run takes over: signals that nobody has taken,
    /// and a request to end.
    pub(super) fn places_to_carry(&self, run: RunIx) -> Vec<u8> {
        let target = self.run(run);
        let (mut bytes, mut last) = (Vec::new(), 0);
        let Some(open) = target.open() else { return bytes };
        let mut writer = Writer::new(&mut bytes);
        for (place, (position, entry)) in target.journal.entries().enumerate() {
            let is_unseen = position >= open.cursor;
            let is_carried = match entry.record {
                Record::Signal { .. } => is_unseen || open.buffered.contains(&position),
                Record::Cancel { .. } => is_unseen,
                _ => false,
            };
            if is_carried {
                writer.number((place - last) as u64);
                last = place;
            }
        }
        bytes
    }

    /// The records at these places, as the next run has them.
    fn carried_records(&self, run: RunIx, next: RunNo, places: &[u8]) -> Vec<Vec<u8>> {
        let mut carried = Vec::new();
        let Ok(mut places) = places_of(places) else { return carried };
        places.reverse();
        for (place, (_, entry)) in self.run(run).journal.entries().enumerate() {
            if places.last() != Some(&place) {
                continue;
            }
            places.pop();
            if let Some(record) = moved(&entry, next) {
                let mut bytes = Vec::new();
                record.encode(&mut bytes);
                carried.push(bytes);
            }
        }
        carried
    }
}

/// Places, each written as its distance from the one before.
pub(super) fn places_of(bytes: &[u8]) -> Result<Vec<usize>, DecodeError> {
    let mut reader = Reader::new(bytes);
    let (mut places, mut last) = (Vec::new(), 0usize);
    while !reader.rest().is_empty() {
        let distance = usize::try_from(reader.number()?).map_err(|_| DecodeError::Number)?;
        last = last.checked_add(distance).ok_or(DecodeError::Number)?;
        places.push(last);
    }
    Ok(places)
}

/// A message to a run, as a message to the run that takes its place. It has come: no receipt goes out for it again.
fn moved<'a>(entry: &Numbered<'a>, to: RunNo) -> Option<Record<'a>> {
    match entry.record {
        Record::Signal { time_ms, name, payload, dedupe, actor, .. } => {
            Some(Record::Signal { run: to, time_ms, name, payload, dedupe, actor, origin: None })
        }
        Record::Cancel { time_ms, reason, actor, .. } => {
            Some(Record::Cancel { run: to, time_ms, reason, actor, origin: None })
        }
        _ => None,
    }
}
