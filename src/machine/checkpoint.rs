//! What a checkpoint takes of a shard, and how a shard comes back from it and the records behind it.
//!
//! A shard knows which of its runs have changed since the last checkpoint. A checkpoint has a position in the log: it
//! takes the shard's own state at once, and the runs in as many goes as it likes, each up to that position. Runs that
//! have ended and are stored may be forgotten ([`Shard::forget`]) and come back when they are asked for
//! ([`Shard::recall`]).

use super::admission::Ticket;
use super::journal::Journal;
use super::message_codec;
use super::restore::{RestoreError, shards_named};
use super::run::{End, Given, Run, RunIx, RunState};
use super::shard::Shard;
use super::views::{Marks, RunView};
use crate::record::{
    Caller, DecodeError, Lsn, ParentClose, Reader, Record, RunNo, ShardId, Status, Writer, check_attributes,
};
use std::sync::Arc;

/// What of a run is in the store.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Saved {
    /// The journal up to this position.
    pub(crate) end: u32,
    /// In so many chunks.
    pub(crate) chunks: u32,
    /// All of it, and how it ended: nothing about it changes any more.
    pub(crate) is_ended: bool,
    /// It has changed since that checkpoint began, counted from 1.
    pub(crate) changed_in: u64,
}

/// Records of a run for the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedRecords<'a> {
    /// There are no new ones.
    None,
    /// They follow on what is stored.
    More(&'a [u8]),
    /// They are all of them: the run has ended.
    All(&'a [u8]),
}

/// What a run is known by. Times are in ms since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedName<'a> {
    /// Its number.
    pub no: RunNo,
    /// The workflow id.
    pub id: &'a str,
    /// The definition's name.
    pub kind: &'a str,
    /// When it started.
    pub created_ms: i64,
    /// Its place among the runs of the shard by start.
    pub order_ms: i64,
}

/// A run as a checkpoint takes it.
#[derive(Clone, Debug)]
pub struct SavedRun<'a> {
    /// What it is known by.
    pub name: SavedName<'a>,
    /// How it ended, and when.
    pub end: Option<(Status, i64)>,
    /// Chunks of its journal that are stored already.
    pub chunks: u32,
    /// Everything else about it: see [`EndedRun::decode`].
    pub body: Vec<u8>,
    /// Its records.
    pub records: SavedRecords<'a>,
    /// Where its journal is stored up to, once this is.
    pub stored_to: u32,
}

/// A finished run as it was stored, beside what it is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedRun {
    version: u32,
    key_root: [u8; 16],
    started_ms: i64,
    deadline_ms: Option<i64>,
    parent: Option<(Caller, ParentClose)>,
    attributes: Box<[u8]>,
    last: Lsn,
    status: Status,
    time_ms: i64,
    end: Lsn,
    payload: Box<[u8]>,
    continued: Option<RunNo>,
}

/// A finished run that is wanted and not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The latest one of the id, if there is any.
    Latest,
    /// A certain one.
    Run(RunNo),
}

impl Shard {
    /// Notes that a run has changed.
    pub(super) fn touch(&mut self, run: RunIx) {
        let round = self.round;
        let saved = &mut self.run_mut(run).saved;
        if saved.changed_in != round && !saved.is_ended {
            saved.changed_in = round;
            self.changed.push(run);
        }
    }

    /// Begins a checkpoint: the runs that have changed since the one before began. What changes from now on belongs to
    /// the next one.
    pub fn take_changed(&mut self) -> Vec<RunIx> {
        self.round += 1;
        std::mem::take(&mut self.changed)
    }

    /// Whether nothing but the shard's position has changed since the last checkpoint began.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.changed.is_empty() && self.metrics.records == self.records_saved
    }

    /// The checkpoint was not stored: its runs belong to the next one.
    pub fn give_back(&mut self, runs: &[RunIx]) {
        for run in runs {
            self.touch(*run);
        }
        self.records_saved = u64::MAX;
    }

    /// The shard's own state: everything that is not in its runs. `position`: the newest record of any source; every
    /// record of the shard up to there is in the state, and none behind it.
    pub fn save_state(&mut self, position: Lsn) -> Vec<u8> {
        self.records_saved = self.metrics.records;
        let mut bytes = Vec::new();
        let mut out = Writer::new(&mut bytes);
        out.number(position.0);
        out.number(self.last.0);
        out.number(self.next_no);
        out.signed(self.newest_ms);
        out.number(self.applied.len() as u64);
        for (sender, number) in &self.applied {
            out.number(u64::from(sender.0));
            out.number(*number);
        }
        self.outbox.encode(&mut out);
        bytes
    }

    /// A run as it was when the newest record was `position`. `None`: it did not exist yet, or is stored as ended.
    #[must_use]
    pub fn save_run(&self, run: RunIx, position: Lsn) -> Option<SavedRun<'_>> {
        let target = self.run(run);
        if target.saved.is_ended || target.no.0 == 0 {
            return None;
        }
        let end = target.end().filter(|end| end.lsn <= position);
        let stored_to = match end {
            Some(_) => target.journal.end(),
            None => target.journal.end_at(target.saved.end, position),
        };
        if stored_to == 0 {
            return None;
        }
        let records = match end {
            Some(_) => SavedRecords::All(target.journal.bytes(0, stored_to)),
            None if stored_to == target.saved.end => SavedRecords::None,
            None => SavedRecords::More(target.journal.bytes(target.saved.end, stored_to)),
        };
        Some(SavedRun {
            name: SavedName {
                no: target.no,
                id: &target.id,
                kind: &target.kind,
                created_ms: target.created_ms,
                order_ms: target.order_ms,
            },
            end: end.map(|end| (end.status, end.time_ms)),
            chunks: target.saved.chunks,
            body: end.map_or_else(|| encode_open(target), |end| encode_ended(target, end)),
            records,
            stored_to,
        })
    }

    /// Bytes that [`Shard::save_run`] would copy, about.
    #[must_use]
    pub fn unsaved_bytes(&self, run: RunIx) -> usize {
        let target = self.run(run);
        let from = if target.end().is_some() { 0 } else { target.saved.end };
        (target.journal.end() - from) as usize + target.end().map_or(0, |end| end.payload.len()) + target.id.len()
    }

    /// A run is stored up to a position of its journal, in so many chunks; with `is_ended` for good.
    pub fn saved(&mut self, run: RunIx, stored_to: u32, chunks: u32, is_ended: bool) {
        let target = self.run_mut(run);
        target.saved.end = stored_to;
        target.saved.chunks = chunks;
        if is_ended {
            target.saved.is_ended = true;
            target.given = None;
        }
    }

    /// A run that is stored as ended stays in memory for good, its journal as long as newer ones leave room for it.
    pub fn keep_stored(&mut self, run: RunIx) {
        self.keep_journal(run);
    }

    /// A run that is stored as ended stays in memory until [`Shard::forget_oldest`] takes it out.
    pub fn note_ended(&mut self, run: RunIx) {
        let target = self.run(run);
        let entry = (target.no, target.journal.end());
        self.ended_journal_bytes += entry.1 as usize;
        self.ended_journals.push_back(entry);
    }

    pub(super) fn next_ended(&mut self) -> Option<RunNo> {
        let (no, bytes) = self.ended_journals.pop_front()?;
        self.ended_journal_bytes -= bytes as usize;
        Some(no)
    }

    /// Whether more than so many finished runs that are stored, or more bytes of their journals, are in memory.
    #[must_use]
    pub fn has_too_many_ended(&self, runs_max: usize, bytes_max: usize) -> bool {
        self.ended_journals.len() > runs_max || self.ended_journal_bytes > bytes_max
    }

    /// Takes the finished runs that are stored and have been in memory longest out of it, until that is so no more. One of
    /// which somebody holds the index stays.
    pub fn forget_oldest(&mut self, runs_max: usize, bytes_max: usize, is_held: &dyn Fn(RunIx) -> bool) {
        for _ in 0..self.ended_journals.len() {
            if !self.has_too_many_ended(runs_max, bytes_max) {
                return;
            }
            let Some(run) = self.next_ended().and_then(|no| self.run_of(no)) else { continue };
            if is_held(run) {
                self.note_ended(run);
            } else {
                self.forget(run);
            }
        }
    }

    /// The run that has to be in memory before a verb on `target` can find what it is about, and is not: the latest one of
    /// an id, a certain one, or the next one of those that took its place.
    #[must_use]
    pub fn missing(&self, id: Option<&str>, no: Option<RunNo>) -> Option<Missing> {
        if id.is_some_and(|id| self.latest_of(id).is_none()) {
            return Some(Missing::Latest);
        }
        let mut no = no?;
        while let Some(run) = self.run_of(no) {
            no = self.run(run).end()?.continued?;
        }
        Some(Missing::Run(no))
    }

    /// Whether a run is stored as ended.
    #[must_use]
    pub fn is_stored(&self, run: RunIx) -> bool {
        self.run(run).saved.is_ended
    }

    /// Runs that have ended and are in memory.
    #[must_use]
    pub fn ended_count(&self) -> usize {
        self.by_no.len() - self.open_count
    }

    /// Journals of ended runs stay in memory until they are stored.
    pub fn keep_ended_journals(&mut self) {
        self.has_store = true;
    }

    /// Takes a finished run that is stored out of memory. Nobody may hold its index. `false`: it is not stored.
    pub fn forget(&mut self, run: RunIx) -> bool {
        let target = self.run(run);
        if !target.saved.is_ended {
            return false;
        }
        let was_changed = target.saved.changed_in == self.round;
        let gone = std::mem::replace(self.run_mut(run), Run::vacant());
        if self.by_id.get(&gone.id) == Some(&run) {
            self.by_id.remove(&gone.id);
        }
        self.by_no.remove(&gone.no);
        if let Some(end) = gone.end() {
            self.index.remove_ended(gone.no, &gone.kind, end.status, &gone.attributes);
        }
        if was_changed {
            self.changed.retain(|changed| *changed != run);
        }
        self.vacant.push(run);
        true
    }

    /// The run with a number, if it is in memory.
    #[must_use]
    pub fn known(&self, no: RunNo) -> Option<RunIx> {
        self.run_of(no)
    }

    /// The newest run of an id, if it is in memory.
    #[must_use]
    pub fn known_id(&self, id: &str) -> Option<RunIx> {
        self.latest_of(id)
    }

    /// Takes a finished run back into memory, the latest one of its id before any other; `journal` may be left out.
    pub fn recall(&mut self, name: SavedName<'_>, ended: EndedRun, journal: &[u8]) -> RunIx {
        let SavedName { no, id, kind, created_ms, order_ms } = name;
        let EndedRun { status, time_ms, end: lsn, payload, continued, .. } = ended;
        let journal = Journal::of(journal);
        self.index.add_ended(no, kind, status, &ended.attributes);
        let run = self.place(Run {
            no,
            id: id.into(),
            kind: kind.into(),
            version: ended.version,
            key_root: ended.key_root,
            created_ms,
            started_ms: ended.started_ms,
            order_ms,
            attributes: ended.attributes,
            deadline_ms: ended.deadline_ms,
            parent: ended.parent,
            last: ended.last,
            given: None,
            updates: super::updates::UpdateBook::of(&journal),
            calls: None,
            journal,
            state: RunState::Ended(End { status, time_ms, lsn, payload, continued }),
            saved: Saved { is_ended: true, ..Saved::default() },
        });
        self.note_latest(run);
        run
    }

    /// A run in memory is the latest one of its id, unless there is a later one in memory.
    pub fn note_latest(&mut self, run: RunIx) {
        let Run { id, no, .. } = self.run(run);
        let is_latest = self.latest_of(id).is_none_or(|latest| self.run(latest).no < *no);
        if is_latest {
            let id = id.clone();
            self.by_id.insert(id, run);
        }
    }

    /// Takes an open run back, before [`Shard::restore_state`], in the order of the numbers.
    pub fn restore_run(
        &mut self,
        name: SavedName<'_>,
        chunks: u32,
        body: &[u8],
        journal: &[u8],
    ) -> Result<(), RestoreError> {
        let mut given = decode_open(self.count, body)?;
        let entries = checked(self.count, name.no, journal)?;
        let start = entries.first().map(|(lsn, _)| *lsn);
        let mut run = None;
        for (lsn, bytes) in entries {
            // What it has from its start on it has got once everything that was recorded with that was done.
            if let (Some(run), true) = (run, Some(lsn) > start)
                && let Some(given) = given.take()
            {
                self.give(run, given);
            }
            let record = Record::decode(bytes).map_err(RestoreError::Decode)?;
            // A journal holds only parts of records, and parts of one record have one number.
            run = self.apply_simple(lsn, &record, bytes, run, &mut None);
        }
        if let Some(run) = run {
            if let Some(given) = given {
                self.give(run, given);
            }
            self.run_mut(run).order_ms = name.order_ms;
            let end = self.run(run).journal.end();
            self.saved(run, end, chunks, false);
        }
        Ok(())
    }

    /// Passes a record of a run that cannot be read back. `false`: it implies messages, and cannot be passed.
    pub fn pass_over(&mut self, lsn: Lsn, record: &Record<'_>) -> bool {
        if implies_messages(record) {
            return false;
        }
        self.last = lsn;
        if let Some(origin) = record.origin() {
            self.applied.insert(origin.from, origin.number);
        }
        true
    }

    /// Takes the shard's own state back, behind its open runs. Returns the position: only records behind it follow.
    pub fn restore_state(&mut self, state: &[u8]) -> Result<Lsn, DecodeError> {
        let mut reader = Reader::new(state);
        let position = Lsn(reader.number()?);
        self.last = Lsn(reader.number()?);
        self.next_no = reader.number()?;
        self.newest_ms = reader.signed()?;
        self.applied.clear();
        for _ in 0..reader.number()? {
            let sender = u16::try_from(reader.number()?).map_err(|_| DecodeError::Number)?;
            self.applied.insert(ShardId(sender), reader.number()?);
        }
        self.outbox = super::messages::Outbox::decode(&mut reader)?;
        reader.end()?;
        // The runs are as they are stored, and the counters count from here.
        self.metrics = super::shard::Metrics::default();
        self.records_saved = 0;
        self.take_changed();
        Ok(position)
    }
}

/// The records of an open run, if that is what they are.
fn checked(shards: u16, no: RunNo, journal: &[u8]) -> Result<Vec<(Lsn, &[u8])>, RestoreError> {
    let mut entries = Vec::new();
    let mut reader = Reader::new(journal);
    let mut before = Lsn::NONE;
    while !reader.rest().is_empty() {
        let entry = (|| {
            let length = reader.number()?;
            let lsn = Lsn(reader.number()?);
            let bytes = reader.raw(usize::try_from(length).map_err(|_| DecodeError::Short)?)?;
            Ok((lsn, bytes, Record::decode(bytes)?))
        })();
        let (lsn, bytes, record) = entry.map_err(RestoreError::Decode)?;
        let is_start = matches!(record, Record::Start { .. });
        // Copies have the number of the run that they were copied from.
        let is_its = record.run() == Some(no) || (!is_start && super::copying::is_copied(&record));
        if !is_its || is_start != entries.is_empty() || lsn < before || no.0 == 0 || is_compound(&record) {
            return Err(RestoreError::UnknownRun(record.run().unwrap_or_default()));
        }
        if matches!(record, Record::Done { .. }) {
            return Err(RestoreError::EndedTwice(no));
        }
        let is_unknown = |shard: &ShardId| shard.0 >= shards && *shard != ShardId::SCHEDULER;
        if let Some(unknown) = shards_named(&record).into_iter().flatten().find(is_unknown) {
            return Err(RestoreError::UnknownShard(unknown));
        }
        before = lsn;
        entries.push((lsn, bytes));
    }
    if entries.is_empty() { Err(RestoreError::UnknownRun(no)) } else { Ok(entries) }
}

/// Whether it says several things: journals have those one by one.
fn is_compound(record: &Record<'_>) -> bool {
    matches!(
        record,
        Record::SignalledStart { .. }
            | Record::AttributedStart { .. }
            | Record::Queued { .. }
            | Record::Continued { .. }
            | Record::Forked { .. }
            | Record::Reset { .. }
    )
}

/// Whether what a record does may be to send something.
fn implies_messages(record: &Record<'_>) -> bool {
    match record {
        Record::ChildSet { .. }
        | Record::SendSet { .. }
        | Record::TaskSet { .. }
        | Record::Done { .. }
        | Record::Watched { .. }
        | Record::Answered { .. }
        | Record::Called { caller: Some(_), .. }
        | Record::CallDone { .. }
        | Record::Queued { .. }
        | Record::Continued { .. }
        | Record::Forked { .. }
        | Record::Reset { .. } => true,
        Record::Start { .. }
        | Record::Called { caller: None, .. }
        | Record::SignalledStart { .. }
        | Record::AttributedStart { .. }
        | Record::StepDone { .. }
        | Record::StepFailed { .. }
        | Record::StepStarted { .. }
        | Record::Heartbeat { .. }
        | Record::TimerSet { .. }
        | Record::TimerFired { .. }
        | Record::WaitSet { .. }
        | Record::ConditionSet { .. }
        | Record::Signal { .. }
        | Record::ChildDone { .. }
        | Record::Cancel { .. }
        | Record::Resumed { .. }
        | Record::Received { .. }
        | Record::Update { .. }
        | Record::UpdateDone { .. }
        | Record::Patched { .. }
        | Record::Paused { .. }
        | Record::Attributes { .. }
        | Record::Activated { .. }
        | Record::Branched { .. } => false,
    }
}

/// Of a run that has not ended: what it was given. Everything else its journal says.
fn encode_open(run: &Run) -> Vec<u8> {
    let mut bytes = Vec::new();
    Writer::new(&mut bytes).option(run.given.as_deref(), |out, given| {
        out.number(given.watchers.len() as u64);
        for caller in &given.watchers {
            message_codec::write_caller(out, *caller);
        }
        out.option(given.ticket.as_deref(), |out, ticket| ticket.encode(out));
    });
    bytes
}

fn decode_open(shards: u16, body: &[u8]) -> Result<Option<Given>, RestoreError> {
    let mut reader = Reader::new(body);
    let given = reader
        .option(|reader| {
            let watchers =
                (0..reader.number()?).map(|_| message_codec::read_caller(reader)).collect::<Result<_, _>>()?;
            Ok(Given { watchers, ticket: reader.option(Ticket::decode)?.map(Arc::new) })
        })
        .and_then(|given| reader.end().map(|()| given))
        .map_err(RestoreError::Decode)?;
    let given: Option<Given> = given;
    match given.iter().flat_map(|given| &given.watchers).find(|caller| caller.shard.0 >= shards) {
        Some(caller) => Err(RestoreError::UnknownShard(caller.shard)),
        None => Ok(given),
    }
}

fn encode_ended(run: &Run, end: &End) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = Writer::new(&mut bytes);
    out.number(u64::from(run.version));
    out.raw(&run.key_root);
    out.signed(run.started_ms);
    out.option(run.deadline_ms, Writer::signed);
    out.option(run.parent, |out, (caller, close)| {
        message_codec::write_caller(out, caller);
        out.byte(close.code());
    });
    out.bytes(&run.attributes);
    out.number(run.last.0);
    out.byte(end.status.code());
    out.signed(end.time_ms);
    out.number(end.lsn.0);
    out.bytes(&end.payload);
    out.option(end.continued, |out, next| out.number(next.0));
    bytes
}

impl EndedRun {
    /// The run, seen from outside.
    #[must_use]
    pub fn view<'a>(&'a self, name: &SavedName<'a>) -> RunView<'a> {
        RunView {
            no: name.no,
            id: name.id,
            kind: name.kind,
            version: self.version,
            key_root: self.key_root,
            status: Some(self.status),
            marks: Marks::default(),
            created_ms: name.created_ms,
            started_ms: Some(self.started_ms),
            order_ms: name.order_ms,
            attributes: &self.attributes,
            ended_ms: Some(self.time_ms),
            parent: self.parent.map(|(caller, _)| caller),
            last: self.last,
            payload: &self.payload,
        }
    }

    /// Reads what [`Shard::save_run`] wrote about a run that had ended.
    pub fn decode(body: &[u8]) -> Result<EndedRun, DecodeError> {
        let mut reader = Reader::new(body);
        let version = u32::try_from(reader.number()?).map_err(|_| DecodeError::Number)?;
        let mut key_root = [0; 16];
        key_root.copy_from_slice(reader.raw(16)?);
        let ended = EndedRun {
            version,
            key_root,
            started_ms: reader.signed()?,
            deadline_ms: reader.option(Reader::signed)?,
            parent: reader.option(|reader| {
                Ok((message_codec::read_caller(reader)?, message_codec::read_code(reader, ParentClose::from_code)?))
            })?,
            attributes: reader.bytes()?.into(),
            last: Lsn(reader.number()?),
            status: message_codec::read_code(&mut reader, Status::from_code)?,
            time_ms: reader.signed()?,
            end: Lsn(reader.number()?),
            payload: reader.bytes()?.into(),
            continued: reader.option(|reader| reader.number().map(RunNo))?,
        };
        reader.end()?;
        check_attributes(&ended.attributes)?;
        Ok(ended)
    }
}

impl Run {
    /// What is in the place of a run that was forgotten, until another one gets it.
    fn vacant() -> Run {
        Run {
            no: RunNo(0),
            id: "".into(),
            kind: "".into(),
            version: 0,
            key_root: [0; 16],
            created_ms: 0,
            started_ms: 0,
            order_ms: 0,
            attributes: Box::default(),
            deadline_ms: None,
            parent: None,
            last: Lsn::NONE,
            given: None,
            updates: None,
            calls: None,
            journal: Journal::default(),
            state: RunState::Ended(End {
                status: Status::NotFound,
                time_ms: 0,
                lsn: Lsn::NONE,
                payload: [].into(),
                continued: None,
            }),
            saved: Saved { is_ended: true, ..Saved::default() },
        }
    }
}
