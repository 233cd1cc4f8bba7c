//! Updates: requests to a run's code that it answers. An accepted one is an entry of the journal like any other
//! delivery; the answer is recorded once. What a validator refuses never comes here.

use super::code::Halt;
use super::commands::{Refusal, Target};
use super::journal::Journal;
use super::limits::{check_actor, check_text};
use super::run::RunIx;
use super::shard::{Effect, Shard, Work};
use super::stuck::Stuck;
use crate::record::{Lsn, Record, Seq};
use std::collections::{BTreeMap, BTreeSet};

/// Updates of one run that have no answer yet.
const UNANSWERED_MAX: usize = 1_000;

/// The updates of a run, by the records alone. It outlives the run's end, so that a repeated update finds its answer.
#[derive(Debug, Default)]
pub(crate) struct UpdateBook {
    by_id: BTreeMap<Box<str>, u32>,
    /// By number less one: behind the position of the answer in the journal; 0: there is none.
    answers: Vec<u32>,
    unanswered: usize,
}

/// The updates that a run's code has been handed in this life.
#[derive(Debug, Default)]
pub(crate) struct HandedUpdates {
    /// The highest number.
    last: u32,
    /// Those that it has not answered.
    unanswered: BTreeSet<u32>,
}

/// An answer, and the record that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdateAnswer<'a> {
    /// What the handler threw, not what it returned.
    pub is_failure: bool,
    /// Encoded.
    pub payload: &'a [u8],
    /// The record.
    pub lsn: Lsn,
}

/// What is known of an update by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownUpdate {
    /// It was accepted by this run, under this number.
    Accepted(RunIx, u32),
    /// It was not; this run would take it.
    New(RunIx),
}

/// What has been asked of a run, not yet accepted.
#[derive(Clone, Copy, Debug)]
pub struct NewUpdate<'a> {
    /// Name of the update.
    pub name: &'a str,
    /// Names this one request: a second one is the first one again.
    pub id: &'a str,
    /// Encoded argument.
    pub payload: &'a [u8],
    /// Who asks.
    pub actor: Option<&'a str>,
}

impl UpdateBook {
    /// The updates that a journal tells of.
    pub(super) fn of(journal: &Journal) -> Option<Box<UpdateBook>> {
        let mut book = UpdateBook::default();
        for (position, entry) in journal.entries() {
            match entry.record {
                Record::Update { id, number, .. } => book.add(id, number),
                Record::UpdateDone { number, .. } => book.answer(number, position + 1),
                _ => {}
            }
        }
        (!book.answers.is_empty()).then(|| Box::new(book))
    }

    fn add(&mut self, id: &str, number: u32) {
        if number as usize == self.answers.len() + 1 {
            self.by_id.insert(id.into(), number);
            self.answers.push(0);
            self.unanswered += 1;
        }
    }

    fn answer(&mut self, number: u32, end: u32) {
        if let Some(answer) = self.position_mut(number).filter(|answer| **answer == 0) {
            *answer = end;
            self.unanswered -= 1;
        }
    }

    fn position_mut(&mut self, number: u32) -> Option<&mut u32> {
        self.answers.get_mut((number as usize).checked_sub(1)?)
    }

    fn is_answered(&self, number: u32) -> bool {
        (number as usize).checked_sub(1).and_then(|index| self.answers.get(index)).is_some_and(|answer| *answer > 0)
    }
}

impl HandedUpdates {
    /// The code is handed an update.
    pub(super) fn hand(&mut self, number: u32) {
        self.last = number;
        self.unanswered.insert(number);
    }

    pub(super) fn owes(&self, number: u32) -> bool {
        self.unanswered.contains(&number)
    }
}

impl Shard {
    /// Whether an update is known, and by which run; if not, which run is asked.
    pub fn find_update(&self, target: Target<'_>, id: &str) -> Result<KnownUpdate, Refusal> {
        let run = self.find(target)?;
        for run in [run, self.last_of_chain(run)] {
            let known = self.run(run).updates.as_ref().and_then(|book| book.by_id.get(id));
            if let Some(number) = known {
                return Ok(KnownUpdate::Accepted(run, *number));
            }
        }
        Ok(KnownUpdate::New(self.live(target)?))
    }

    /// Whether an update may be recorded.
    pub fn check_update(&self, update: &NewUpdate<'_>) -> Result<(), Refusal> {
        let check = || {
            check_text("the name of an update", update.name)?;
            check_text("the id of an update", update.id)?;
            check_actor(update.actor)?;
            self.limits.check_payload("the argument of the update", update.payload)
        };
        check().map_err(Refusal::BadInput)
    }

    /// Whether a run takes another update now.
    pub fn admits_update(&self, run: RunIx, offered: usize) -> Result<(), Refusal> {
        let open = self.run(run).updates.as_ref().map_or(0, |book| book.unanswered) + offered;
        if open < UNANSWERED_MAX {
            return Ok(());
        }
        Err(Refusal::Busy(format!(
            "workflow \"{}\" has {UNANSWERED_MAX} updates that it has not answered; ask again when some are",
            self.run(run).id
        )))
    }

    /// Records an update that the run's code has validated. `None`: the code has not seen everything that is recorded, or
    /// is not here: what it validated may not hold any more.
    pub fn accept_update(&mut self, work: &mut Work<'_>, run: RunIx, update: NewUpdate<'_>) -> Option<u32> {
        let is_waiting = self.run(run).open().is_some_and(super::run::OpenRun::is_waiting);
        if !is_waiting || !self.has_seen_all(run) {
            return None;
        }
        let number = self.run(run).updates.as_ref().map_or(0, |book| book.answers.len()) as u32 + 1;
        let NewUpdate { name, id, payload, actor } = update;
        let no = self.run(run).no;
        let record = Record::Update { run: no, number, time_ms: work.now_ms, name, id, payload, actor };
        self.commit(work, Some(run), &record);
        Some(number)
    }

    /// The code answers an update that it was handed. In a replay the recorded answer stands.
    pub fn answer_update(
        &mut self,
        work: &mut Work<'_>,
        run: RunIx,
        number: u32,
        is_failure: bool,
        payload: &[u8],
    ) -> Result<(), Halt> {
        let open = self.open_mut(run).ok_or(Halt::Dead)?;
        if !open.is_in_turn() {
            return Err(Halt::Dead);
        }
        if !open.updates.as_mut().is_some_and(|updates| updates.unanswered.remove(&number)) {
            return Err(Halt::Dead);
        }
        if self.run(run).updates.as_ref().is_some_and(|book| book.is_answered(number)) {
            return Ok(());
        }
        let refused = self.limits.check_payload("the answer to the update", payload).err().map(|why| {
            let message = format!("{why} (workflow \"{}\")", self.run(run).id);
            crate::record::encode_failure("NonRetryableError", "NON_RETRYABLE", &message)
        });
        let (is_failure, payload) = refused.as_ref().map_or((is_failure, payload), |text| (true, text.as_bytes()));
        let record = Record::UpdateDone { run: self.run(run).no, number, time_ms: work.now_ms, is_failure, payload };
        self.commit(work, Some(run), &record);
        if self.run(run).open().is_some() { Ok(()) } else { Err(Halt::Dead) }
    }

    /// The answer to an update, if it is recorded and its run's journal is still kept.
    #[must_use]
    pub fn update_answer(&self, run: RunIx, number: u32) -> Option<UpdateAnswer<'_>> {
        let target = self.run(run);
        let answer = match &target.calls {
            Some(calls) => calls.answer(number)?,
            None => *target.updates.as_ref()?.answers.get((number as usize).checked_sub(1)?)?,
        };
        if answer == 0 || answer > target.journal.end() {
            return None;
        }
        let (entry, _) = target.journal.read(answer - 1);
        match entry.record {
            Record::UpdateDone { is_failure, payload, .. } | Record::CallDone { is_failure, payload, .. } => {
                Some(UpdateAnswer { is_failure, payload, lsn: entry.lsn })
            }
            _ => None,
        }
    }

    /// The name of the update, or of the call, that was delivered last.
    #[must_use]
    pub fn delivered_update(&self, run: RunIx) -> Option<&str> {
        let target = self.run(run);
        match target.journal.read(target.open()?.delivered).0.record {
            Record::Update { name, .. } | Record::Called { name, .. } => Some(name),
            _ => None,
        }
    }

    pub(super) fn update_accepted(&mut self, run: RunIx, id: &str, number: u32) {
        self.metrics.updates += 1;
        self.run_mut(run).updates.get_or_insert_default().add(id, number);
    }

    pub(super) fn update_answered(
        &mut self,
        run: RunIx,
        number: u32,
        position: Option<u32>,
        effects: &mut Option<&mut Vec<Effect>>,
    ) {
        if let (Some(book), Some(position)) = (&mut self.run_mut(run).updates, position) {
            book.answer(number, position + 1);
        }
        if let Some(effects) = effects {
            effects.push(Effect::UpdateAnswered { run, number });
        }
    }

    /// An answer that is recorded and that the code, about to end, has not given in this life.
    pub(super) fn owed_update(&self, run: RunIx) -> Option<u32> {
        let target = self.run(run);
        let (open, book) = (target.open()?, target.updates.as_ref()?);
        let handed = open.updates.as_deref();
        (1..=book.answers.len() as u32).find(|number| {
            let is_owed = handed.is_none_or(|handed| *number > handed.last || handed.owes(*number));
            is_owed && book.is_answered(*number)
        })
    }

    /// The code has come to rest, or has ended, without an answer that is recorded.
    pub(super) fn unanswered(&mut self, work: &mut Work<'_>, run: RunIx, number: u32) -> Halt {
        let seq = Seq(self.run(run).open().map_or(0, |open| open.asked));
        let message = format!(
            "after operation {}: recorded an answer to update {number} of the run, but the code has not given one",
            seq.0
        );
        self.stick(work, run, Stuck { message, seq, recorded: None, asked: None, place: String::new() });
        Halt::Mismatch
    }
}
