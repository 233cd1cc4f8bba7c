//! Objects: runs whose code answers calls, and whose state is recorded with the answers.
//!
//! A call is recorded when it arrives; the code runs those that may change the state one after the other. The record of
//! an answer has the state too, so that nothing before it is needed any more: a replay begins behind the last one. Calls
//! that nobody has answered, and answers by which a repeated request is known, go along when the run continues as new.

use super::code::Halt;
use super::commands::{Refusal, Target};
use super::journal::JournalSize;
use super::limits::{check_actor, check_text};
use super::messages::Body;
use super::run::RunIx;
use super::shard::{Effect, Shard, Work};
use super::updates::NewUpdate;
use crate::record::{CallSpec, Caller, Lsn, NewRun, Origin, Record, Seq, Status, encode_failure};
use std::collections::BTreeMap;

/// How the ids of objects' runs begin: `object:`, the name of the definition, `:`, the id of the object.
pub const OBJECT_PREFIX: &str = "object:";

/// Calls of one object that have no answer yet.
const WAITING_MAX: usize = 10_000;

/// Answers that go along, by which a repeated request is known: at most so many, and so many bytes with their calls.
const REMEMBERED_MAX: usize = 256;
const REMEMBERED_BYTES_MAX: usize = 32 << 10;

/// A journal that has grown by so much, and has doubled, is left for a new one.
const GROWTH_RECORDS: usize = 512;
const GROWTH_BYTES: usize = 256 << 10;

/// An answer of an object's code to a call that it was handed.
#[derive(Clone, Copy, Debug)]
pub struct CallAnswer<'a> {
    /// The call.
    pub number: u32,
    /// What the handler threw, not what it returned.
    pub is_failure: bool,
    /// Encoded.
    pub payload: &'a [u8],
    /// The encoded state, if it has changed.
    pub state: Option<&'a [u8]>,
    /// The handler was one of those that run one after the other.
    pub is_alone: bool,
}

/// The calls of an object, by the records of its run alone.
#[derive(Debug, Default)]
pub(crate) struct CallBook {
    by_id: BTreeMap<Box<str>, u32>,
    /// By their numbers, which rise.
    calls: Vec<Call>,
    waiting: usize,
    /// The answer behind which a replay begins.
    base: Option<u32>,
    /// The answer that has the state.
    state: Option<u32>,
    /// What the journal began with.
    begun: JournalSize,
}

#[derive(Debug)]
struct Call {
    number: u32,
    /// Behind the position of its answer; 0: there is none.
    answer: u32,
    caller: Option<Caller>,
}

impl CallBook {
    fn find(&self, number: u32) -> Option<&Call> {
        self.calls.binary_search_by_key(&number, |call| call.number).ok().map(|index| &self.calls[index])
    }

    pub(super) fn is_answered(&self, number: u32) -> bool {
        self.find(number).is_some_and(|call| call.answer > 0)
    }

    /// Behind the position of the answer to a call.
    pub(super) fn answer(&self, number: u32) -> Option<u32> {
        self.find(number).map(|call| call.answer).filter(|answer| *answer > 0)
    }

    fn add(&mut self, number: u32, id: Option<&str>, caller: Option<Caller>) {
        if self.calls.last().is_none_or(|last| last.number < number) {
            self.by_id.extend(id.map(|id| (id.into(), number)));
            self.calls.push(Call { number, answer: 0, caller });
            self.waiting += 1;
        }
    }

    /// Notes an answer. Who waits for it, if it was not answered before.
    fn settle(&mut self, number: u32, end: u32) -> Option<Caller> {
        let index = self.calls.binary_search_by_key(&number, |call| call.number).ok()?;
        let call = &mut self.calls[index];
        if call.answer > 0 {
            return None;
        }
        call.answer = end;
        self.waiting -= 1;
        call.caller.take()
    }

    /// Those who wait for answers, which come from elsewhere now.
    pub(super) fn leave_callers(&mut self) -> Vec<Caller> {
        self.calls.iter_mut().filter_map(|call| call.caller.take()).collect()
    }
}

impl Shard {
    /// Whether a run is an object.
    #[must_use]
    pub fn is_object(&self, run: RunIx) -> bool {
        self.run(run).id.starts_with(OBJECT_PREFIX)
    }

    /// Whether a run is an object that nobody has called since it answered last.
    pub(super) fn is_idle_object(&self, run: RunIx) -> bool {
        self.is_object(run) && self.run(run).calls.as_ref().is_none_or(|book| book.waiting == 0)
    }

    /// Records a call, and the object if there is none: `new` says what it is then. A second call of the same id is the
    /// first one again. Returns the run and the number of the call.
    pub fn call_object(
        &mut self,
        work: &mut Work<'_>,
        new: NewRun<'_>,
        call: NewUpdate<'_>,
    ) -> Result<(RunIx, u32), Refusal> {
        self.check_call(&call).map_err(Refusal::BadInput)?;
        check_text("the id of a call", call.id).map_err(Refusal::BadInput)?;
        let run = self.object(work, new)?;
        if let Some(number) = self.run(run).calls.as_ref().and_then(|book| book.by_id.get(call.id)) {
            return Ok((run, *number));
        }
        if let Some(stuck) = self.stuck(run) {
            let message = format!("object \"{}\" is stuck and takes no calls: {}", self.run(run).id, stuck.message);
            return Err(Refusal::NotFound(message));
        }
        self.admits_call(run)?;
        let NewUpdate { name, id, payload, actor } = call;
        let number = self.next_call(run);
        let (no, time_ms) = (self.run(run).no, work.now_ms);
        let (caller, origin) = (None, None);
        let record = Record::Called { run: no, number, time_ms, name, id: Some(id), payload, caller, actor, origin };
        self.commit(work, Some(run), &record);
        Ok((run, number))
    }

    fn check_call(&self, call: &NewUpdate<'_>) -> Result<(), String> {
        check_text("the name of a handler", call.name)?;
        check_actor(call.actor)?;
        self.limits.check_payload("the input of the call", call.payload)
    }

    /// A run calls an object: the call is recorded, or the caller is answered why not.
    pub(super) fn called_by_run(
        &mut self,
        work: &mut Work<'_>,
        id: &str,
        spec: &CallSpec<'_>,
        caller: Caller,
        origin: Origin,
    ) {
        let CallSpec { kind, key_root, name, payload } = *spec;
        let new = NewRun { id, kind, version: 1, key_root, deadline_ms: None, parent: None, input: b"", actor: None };
        let run = match self.object(work, new).and_then(|run| self.admits_call(run).map(|()| run)) {
            Ok(run) => run,
            Err(refusal) => return self.answered(work, caller, Status::Refused, &refusal.to_string(), origin),
        };
        let record = Record::Called {
            run: self.run(run).no,
            number: self.next_call(run),
            time_ms: work.now_ms,
            name,
            id: None,
            payload,
            caller: Some(caller),
            actor: None,
            origin: Some(origin),
        };
        self.commit(work, Some(run), &record);
    }

    /// The run of an object that is alive, or a new one.
    fn object(&mut self, work: &mut Work<'_>, new: NewRun<'_>) -> Result<RunIx, Refusal> {
        self.limits.check_start(&new).map_err(Refusal::BadInput)?;
        if let Some(run) = self.latest_of(new.id).filter(|run| self.run(*run).open().is_some()) {
            return Ok(run);
        }
        let (run, time_ms) = (self.next_run_no(), work.now_ms);
        self.commit(work, None, &Record::Start { run, time_ms, new, origin: None });
        Ok(self.latest_of(new.id).expect("the start that was just applied made it"))
    }

    fn admits_call(&self, run: RunIx) -> Result<(), Refusal> {
        if self.run(run).calls.as_ref().map_or(0, |book| book.waiting) < WAITING_MAX {
            return Ok(());
        }
        let id = &self.run(run).id;
        Err(Refusal::Busy(format!(
            "object \"{id}\" has {WAITING_MAX} calls that wait; call again when some are answered"
        )))
    }

    fn next_call(&self, run: RunIx) -> u32 {
        self.run(run).calls.as_ref().and_then(|book| book.calls.last()).map_or(0, |call| call.number) + 1
    }

    /// The code answers a call that it was handed, and says what the state is now if that has changed. With `is_alone`
    /// what it waits for is withdrawn: the next call begins anew. Returns whether the run should continue as new.
    pub fn answer_call(&mut self, work: &mut Work<'_>, run: RunIx, answer: CallAnswer<'_>) -> Result<bool, Halt> {
        let CallAnswer { number, is_failure, payload, state, is_alone } = answer;
        let open = self.open_mut(run).ok_or(Halt::Dead)?;
        let (asked, turn_ms) = (open.asked, open.turn_ms);
        let is_known = self.run(run).calls.as_ref().and_then(|book| book.find(number)).is_some_and(|c| c.answer == 0);
        if !self.run(run).open().is_some_and(super::run::OpenRun::is_in_turn) || !is_known {
            return Err(Halt::Dead);
        }
        if is_alone {
            self.withdraw_all(run);
        }
        let bytes = payload.len() + state.map_or(0, <[u8]>::len);
        let refused = (bytes > self.limits.payload_bytes_max).then(|| {
            let (max, id) = (self.limits.payload_bytes_max, &self.run(run).id);
            let message = format!("the answer and the state of object \"{id}\" take {bytes} bytes; the limit is {max}");
            encode_failure("NonRetryableError", "NON_RETRYABLE", &message)
        });
        let (is_failure, payload, state) = match &refused {
            Some(failure) => (true, failure.as_bytes(), None),
            None => (is_failure, payload, state),
        };
        // The next call begins in the turn of this record, live and in replay.
        let time_ms = turn_ms.max(work.now_ms);
        let (no, seq) = (self.run(run).no, is_alone.then_some(Seq(asked)));
        self.commit(work, Some(run), &Record::CallDone { run: no, number, time_ms, seq, is_failure, payload, state });
        let open = self.open_mut(run).ok_or(Halt::Dead)?;
        if is_alone {
            open.turn_ms = time_ms;
        }
        Ok(is_alone && self.has_outgrown(run))
    }

    fn withdraw_all(&mut self, run: RunIx) {
        let Some(open) = self.open_mut(run) else { return };
        open.shielded.clear();
        let ops = std::mem::take(&mut open.ops);
        for (seq, op) in ops.iter() {
            self.disarm(run, seq, op);
        }
    }

    fn has_outgrown(&self, run: RunIx) -> bool {
        let (now, limits) = (self.journal_size(run), &self.limits);
        let begun = self.run(run).calls.as_ref().map_or_else(JournalSize::default, |book| book.begun);
        let records = GROWTH_RECORDS.min(limits.journal_records_max / 4).max(begun.records);
        let bytes = GROWTH_BYTES.min(limits.journal_bytes_max / 4).max(begun.bytes);
        now.records - begun.records >= records || now.bytes - begun.bytes >= bytes
    }

    pub(super) fn call_recorded(&mut self, run: RunIx, number: u32, id: Option<&str>, caller: Option<Caller>) {
        let size = self.journal_size(run);
        let book = self.run_mut(run).calls.get_or_insert_default();
        book.add(number, id, caller);
        if book.base.is_none() {
            book.begun = size;
        }
    }

    pub(super) fn call_done(
        &mut self,
        run: RunIx,
        lsn: Lsn,
        record: &Record<'_>,
        position: Option<u32>,
        effects: &mut Option<&mut Vec<Effect>>,
    ) {
        let (Record::CallDone { number, seq, is_failure, payload, state, .. }, Some(position)) = (record, position)
        else {
            return;
        };
        let size = self.journal_size(run);
        let book = self.run_mut(run).calls.get_or_insert_default();
        let caller = book.settle(*number, position + 1);
        if state.is_some() {
            book.state = Some(position);
        }
        if seq.is_some() {
            book.base = Some(position);
            self.end_of_call(run, lsn, effects);
        } else if book.base.is_none() {
            book.begun = size;
        }
        if let Some(caller) = caller {
            let status = if *is_failure { Status::Failed } else { Status::Completed };
            self.answer(caller, lsn, status, (*payload).into(), effects);
        }
        if let Some(effects) = effects {
            effects.push(Effect::UpdateAnswered { run, number: *number });
        }
    }

    /// What a call has asked for and not waited for does not outlive it.
    fn end_of_call(&mut self, run: RunIx, lsn: Lsn, effects: &mut Option<&mut Vec<Effect>>) {
        let Some(open) = self.open_mut(run) else { return };
        open.paused.clear();
        open.is_cancelled = false;
        let (children, orders) = (std::mem::take(&mut open.children), std::mem::take(&mut open.orders));
        self.close_dependents(lsn, &children, &orders, effects);
    }

    /// Those who wait for calls that the object's run will not answer.
    pub(super) fn lose_calls(&mut self, run: RunIx, lsn: Lsn, effects: &mut Option<&mut Vec<Effect>>) {
        let Some(book) = &mut self.run_mut(run).calls else { return };
        let callers = book.leave_callers();
        for caller in callers {
            let message = format!("object \"{}\" has ended and does not answer the call", self.run(run).id);
            self.answer(caller, lsn, Status::NotFound, message.into_bytes().into(), effects);
        }
    }

    /// What a replay of an object begins with: the last operation that was asked for, and the encoded state; empty: as
    /// it is at first.
    #[must_use]
    pub fn object_state(&self, run: RunIx) -> (Seq, &[u8]) {
        let target = self.run(run);
        let book = target.calls.as_ref();
        let done = |position: Option<u32>| position.map(|position| target.journal.read(position).0.record);
        let seq = match done(book.and_then(|book| book.base)) {
            Some(Record::CallDone { seq: Some(seq), .. }) => seq,
            _ => Seq(0),
        };
        match done(book.and_then(|book| book.state)) {
            Some(Record::CallDone { state: Some(state), .. }) => (seq, state),
            _ => (seq, self.input(run)),
        }
    }

    /// The run of an object, if it exists.
    pub fn find_object(&self, id: &str) -> Result<RunIx, Refusal> {
        self.live(Target { id, run: None })
    }

    /// Where a replay of an object begins: the position of the answer, the last operation before it, its time.
    pub(super) fn replay_base(&self, run: RunIx) -> Option<(u32, u32, i64)> {
        let position = self.run(run).calls.as_ref()?.base?;
        match self.run(run).journal.read(position).0.record {
            Record::CallDone { seq: Some(seq), time_ms, .. } => Some((position, seq.0, time_ms)),
            _ => None,
        }
    }

    /// Numbers of answered calls that a run which continues as new takes along.
    pub(super) fn calls_to_remember(&self, run: RunIx) -> Vec<u32> {
        let target = self.run(run);
        let Some(book) = &target.calls else { return Vec::new() };
        let (mut numbers, mut bytes) = (Vec::new(), 0);
        for call in book.calls.iter().rev().filter(|call| call.answer > 0) {
            let Record::CallDone { payload, .. } = target.journal.read(call.answer - 1).0.record else { continue };
            bytes += payload.len() + 64;
            if numbers.len() == REMEMBERED_MAX || bytes > REMEMBERED_BYTES_MAX {
                break;
            }
            numbers.push(call.number);
        }
        numbers.sort_unstable();
        numbers
    }
}

/// A message that calls an object.
pub(super) fn call_body(id: &str, spec: &CallSpec<'_>, caller: Caller) -> Body {
    let CallSpec { kind, key_root, name, payload } = *spec;
    Body::Call { id: id.into(), kind: kind.into(), key_root, name: name.into(), payload: payload.into(), caller }
}
