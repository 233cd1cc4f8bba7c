//! Records that say several things at once, so that no crash can come between them. Each is taken apart into ordinary
//! records with its LSN: journals, walks and histories know only those.

use super::admission::{Enqueued, Ticket};
use super::run::{Given, RunIx, RunState};
use super::shard::{Effect, Shard};
use crate::record::{Caller, DecodeError, Lsn, NewSignal, Numbered, Reader, Record, RunNo, Status, Writer};
use std::sync::Arc;

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
            Record::Queued { run: no, time_ms, new, timeout_ms, order, task } => {
                let start = Record::Start { run: no, time_ms, new, origin: task.map(|(_, origin)| origin) };
                // Nobody loads its code yet.
                let run = self.apply_part(lsn, &start, None, &mut None).expect("a start makes a run");
                self.apply_queued(run, lsn, Enqueued { order, timeout_ms }, task.map(|(task, _)| task), effects);
                true
            }
            Record::AttributedStart { run: no, time_ms, new, set, signal } => {
                let start = Record::Start { run: no, time_ms, new, origin: None };
                let run = self.apply_part(lsn, &start, None, effects);
                let attributes = Record::Attributes { run: no, seq: None, time_ms, set };
                self.apply_part(lsn, &attributes, run, effects);
                if let Some(NewSignal { name, payload, dedupe }) = signal {
                    let (actor, origin) = (new.actor, None);
                    let signal = Record::Signal { run: no, time_ms, name, payload, dedupe, actor, origin };
                    self.apply_part(lsn, &signal, run, effects);
                }
                true
            }
            Record::Continued { run: no, time_ms, next, new, carried } => {
                let old = run.expect("the caller found the run of the record");
                let carried = self.carried_records(old, next, carried);
                let attributes = self.run(old).attributes.clone();
                // Whoever waits for the end waits for the end of the next one.
                let (watchers, ticket) = self.leave_place(old);
                let (status, payload) = (Status::ContinuedAsNew, b"");
                let done = Record::Done { run: no, time_ms, status, payload, actor: None, origin: None };
                self.apply_part(lsn, &done, Some(old), effects);
                let start = Record::Start { run: next, time_ms, new, origin: None };
                let run = self.apply_part(lsn, &start, None, effects).expect("a start makes a run");
                self.take_place(old, run, watchers, ticket);
                if !attributes.is_empty() {
                    let carried = Record::Attributes { run: next, seq: None, time_ms, set: &attributes };
                    self.apply_part(lsn, &carried, Some(run), effects);
                }
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
                let (watchers, ticket) = self.leave_place(old);
                let (status, payload) = (Status::Terminated, reason.as_bytes());
                let done = Record::Done { run: no, time_ms, status, payload, actor, origin: None };
                self.apply_part(lsn, &done, Some(old), effects);
                let run = self.apply_copies(lsn, next, entries, effects);
                self.take_place(old, run, watchers, ticket);
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
            | Record::Called { .. }
            | Record::CallDone { .. }
            | Record::Patched { .. }
            | Record::Attributes { .. }
            | Record::Activated { .. }
            | Record::Paused { .. }
            | Record::Branched { .. } => false,
        }
    }

    /// What a run has that is not to end with it.
    fn leave_place(&mut self, old: RunIx) -> (Vec<Caller>, Option<Arc<Ticket>>) {
        if let Some(calls) = &mut self.run_mut(old).calls {
            // They are told by the run that takes the calls along.
            calls.leave_callers();
        }
        let open = self.open_mut(old);
        open.map(|open| (std::mem::take(&mut open.watchers), open.ticket.take())).unwrap_or_default()
    }

    /// A run goes on for one that has ended, and for those who waited for its end.
    fn take_place(&mut self, old: RunIx, run: RunIx, watchers: Vec<Caller>, ticket: Option<Arc<Ticket>>) {
        // The task stands for all of them, one after the other.
        self.give(run, Given { watchers, ticket });
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
    /// and a request to end; of an object calls that nobody has answered, and answers that are kept.
    pub(super) fn places_to_carry(&self, run: RunIx) -> Vec<u8> {
        let target = self.run(run);
        let (mut bytes, mut last) = (Vec::new(), 0);
        let Some(open) = target.open() else { return bytes };
        let remembered = self.calls_to_remember(run);
        let is_answered = |number| target.calls.as_ref().is_some_and(|book| book.is_answered(number));
        let mut writer = Writer::new(&mut bytes);
        for (place, (position, entry)) in target.journal.entries().enumerate() {
            let is_unseen = position >= open.cursor;
            let is_carried = match entry.record {
                Record::Signal { .. } => is_unseen || open.buffered.contains(&position),
                Record::Cancel { .. } => is_unseen,
                Record::Called { number, .. } => !is_answered(number) || remembered.binary_search(&number).is_ok(),
                Record::CallDone { number, .. } => remembered.binary_search(&number).is_ok(),
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
        Record::Called { number, time_ms, name, id, payload, caller, actor, .. } => {
            Some(Record::Called { run: to, number, time_ms, name, id, payload, caller, actor, origin: None })
        }
        // The state goes along as the input.
        Record::CallDone { number, time_ms, is_failure, payload, .. } => {
            Some(Record::CallDone { run: to, number, time_ms, seq: None, is_failure, payload, state: None })
        }
        _ => None,
    }
}
