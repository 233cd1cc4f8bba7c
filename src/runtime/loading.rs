//! Taking everything back at an open: from the run store what the last checkpoint has, from the log what is behind it.

use super::opening::{GroupError, SETTINGS, read_settings};
use super::past::recall_for_record;
use super::store_files;
use super::tasks::Tasks;
use crate::log::{Found, LogError, Storage};
use crate::machine::{EndedRun, RestoreError, SavedName, Shard};
use crate::record::{Lsn, Record, RunNo, ShardId, Source, run_id};
use crate::store::{FoundRun, Head, Store, StoreError};
use std::collections::BTreeSet;

/// Why a record is not applied.
enum Fault {
    /// It cannot be understood.
    Record(String),
    /// What it is about could not be read from the store, though nothing says that it is damaged.
    Store(StoreError),
}

impl From<String> for Fault {
    fn from(text: String) -> Self {
        Fault::Record(text)
    }
}

/// What has been read so far.
pub(super) struct Loading<'a> {
    storage: &'a dyn Storage,
    tasks: &'a mut Tasks,
    /// Checkpoints will be made: what has ended stays until it is in one, and what is in one comes back when it is asked for.
    keeps_ended: bool,
    pub(super) store: Option<Store>,
    pub(super) machines: Vec<Shard>,
    /// Of each shard: its records up to here are in the store.
    positions: Vec<Lsn>,
    /// The same of the scheduler.
    tasks_position: Lsn,
    /// Runs that cannot be read back.
    damaged: BTreeSet<(ShardId, RunNo)>,
    /// Records applied, and their bytes.
    pub(super) records: u64,
    pub(super) bytes: u64,
    pub(super) warnings: Vec<String>,
    pub(super) fault: Option<GroupError>,
}

impl<'a> Loading<'a> {
    pub(super) fn new(storage: &'a dyn Storage, tasks: &'a mut Tasks, keeps_ended: bool) -> Self {
        Loading {
            storage,
            tasks,
            keeps_ended,
            store: None,
            machines: Vec::new(),
            positions: Vec::new(),
            tasks_position: Lsn::NONE,
            damaged: BTreeSet::new(),
            records: 0,
            bytes: 0,
            warnings: Vec::new(),
            fault: None,
        }
    }

    /// Before a record is read: the store, if there is one. Answers with what it knows was durable.
    pub(super) fn begin(&mut self, found: Found) -> Result<Lsn, LogError> {
        self.restore(found).map_err(|error| {
            let reason = error.to_string().into();
            self.fault = Some(GroupError::Store(error));
            LogError::Refused { reason }
        })
    }

    fn restore(&mut self, found: Found) -> Result<Lsn, StoreError> {
        if !store_files::is_there(self.storage)? {
            if found.first > Lsn(1) {
                let detail = format!("it is missing, and the log begins with record {}", found.first);
                return Err(StoreError::Foreign { detail });
            }
            return Ok(Lsn::NONE);
        }
        if found.is_new {
            return Err(StoreError::Foreign { detail: "there is no log".into() });
        }
        let store = store_files::look(self.storage, &found.store_id)?;
        self.make_machines(store.identity().shards);
        for index in 0..self.machines.len() {
            self.shard(&store, index)?;
            reaches(&format_args!("shard {index}"), self.positions[index], found.first)?;
        }
        if let Some(position) = self.tasks.load(&store)? {
            self.tasks_position = position;
        }
        if store.has_scheduler() {
            reaches(&"the scheduler", self.tasks_position, found.first)?;
        }
        self.store = Some(store);
        Ok(self.positions.iter().copied().max().unwrap_or_default().max(self.tasks_position))
    }

    fn make_machines(&mut self, count: u16) {
        self.tasks.set_shards(count);
        self.machines = (0..count).map(|id| Shard::new(ShardId(id), count)).collect();
        self.positions = vec![Lsn::NONE; usize::from(count)];
        if self.keeps_ended {
            self.machines.iter_mut().for_each(Shard::keep_ended_journals);
        }
    }

    fn shard(&mut self, store: &Store, index: usize) -> Result<(), StoreError> {
        let id = ShardId(index as u16);
        let Some(state) = store.shard(id)? else { return Ok(()) };
        let Loading { machines, damaged, warnings, keeps_ended, .. } = self;
        let machine = &mut machines[index];
        let mut rests = |no: RunNo, what: String| {
            damaged.insert((id, no));
            warnings.push(format!(
                "run {} is damaged in the run store and is left out, all others go on; restore a copy of the directory to \
                 have it back: {what}",
                run_id(id, no)
            ));
        };
        let mut unread = None;
        store.open_runs(id, &mut |run| {
            let no = run.no;
            unread = unread.take().or_else(|| unread_of(&run));
            if let Err(what) = restore_open(machine, run) {
                rests(no, what);
            }
        })?;
        let mut lost_histories = Vec::new();
        if !*keeps_ended {
            store.ended_runs(id, &mut |run| {
                let no = run.no;
                unread = unread.take().or_else(|| unread_of(&run));
                match recall_ended(machine, run) {
                    Ok(None) => {}
                    Ok(Some(error)) => lost_histories.push(format!("run {} has no history: {error}", run_id(id, no))),
                    Err(what) => rests(no, what),
                }
            })?;
        }
        if let Some(error) = unread {
            return Err(error);
        }
        warnings.append(&mut lost_histories);
        self.positions[index] = machine
            .restore_state(&state)
            .map_err(|error| StoreError::Damaged { what: format!("the state of shard {id}: {error}") })?;
        Ok(())
    }

    /// The next record of the log.
    pub(super) fn record(&mut self, lsn: Lsn, source: Source, bytes: &[u8]) {
        if self.fault.is_some() {
            return;
        }
        let result = match source {
            Source::Scheduler if lsn <= self.tasks_position => return,
            Source::Scheduler if bytes.first() != Some(&SETTINGS) => {
                self.tasks.restore(lsn, bytes).map_err(|error| error.to_string().into())
            }
            Source::Scheduler => self.settings(bytes).map_err(Fault::Record),
            Source::Shard(id) if self.positions.get(usize::from(id.0)).is_some_and(|position| lsn <= *position) => {
                return;
            }
            Source::Shard(id) => self.of_shard(lsn, id, bytes),
        };
        self.records += 1;
        self.bytes += bytes.len() as u64;
        self.fault = result.err().map(|fault| match fault {
            Fault::Record(text) => GroupError::Record(lsn, text),
            Fault::Store(error) => GroupError::Store(error),
        });
    }

    fn settings(&mut self, bytes: &[u8]) -> Result<(), String> {
        let count = read_settings(bytes)?;
        if self.machines.is_empty() {
            self.make_machines(count);
        } else if self.machines.len() != usize::from(count) {
            return Err(format!("it says {count} shards, the run store has {}", self.machines.len()));
        }
        Ok(())
    }

    fn of_shard(&mut self, lsn: Lsn, id: ShardId, bytes: &[u8]) -> Result<(), Fault> {
        let count = self.machines.len();
        let Some(machine) = self.machines.get_mut(usize::from(id.0)) else {
            return Err(format!("it belongs to shard {id} of {count}").into());
        };
        if !self.damaged.is_empty()
            && let Ok(record) = Record::decode(bytes)
            && let Some(no) = record.run()
            && machine.known(no).is_none()
            && self.damaged.contains(&(id, no))
        {
            return if machine.pass_over(lsn, &record) {
                Ok(())
            } else {
                Err(format!(
                    "it has run {} send messages, and what that run was is damaged in the run store: restore a copy of the \
                     directory",
                    run_id(id, no)
                )
                .into())
            };
        }
        match machine.restore(lsn, bytes) {
            Err(RestoreError::UnknownRun(no)) if self.keeps_ended => self.of_finished(lsn, id, no, bytes),
            restored => restored.map_err(|error| error.to_string().into()),
        }
    }

    /// A record about a run that has ended and is stored.
    fn of_finished(&mut self, lsn: Lsn, id: ShardId, no: RunNo, bytes: &[u8]) -> Result<(), Fault> {
        let Loading { store, machines, warnings, damaged, .. } = self;
        let machine = &mut machines[usize::from(id.0)];
        if let Some(store) = store {
            let mut lost =
                |error: &StoreError| warnings.push(format!("run {} has no history: {error}", run_id(id, no)));
            match recall_for_record(store, machine, id, no, &mut lost) {
                Ok(_) => {}
                Err(error @ StoreError::Damaged { .. }) => {
                    damaged.insert((id, no));
                    warnings.push(format!(
                        "run {} is damaged in the run store and a record about it is passed over, all others go on; \
                         restore a copy of the directory to have it back: {error}",
                        run_id(id, no)
                    ));
                    return self.of_shard(lsn, id, bytes);
                }
                Err(error) => return Err(Fault::Store(error)),
            }
        }
        machine.restore(lsn, bytes).map_err(|error| error.to_string().into())
    }
}

/// Whether the log has all that comes behind a position.
fn reaches(whose: &dyn std::fmt::Display, position: Lsn, first: Lsn) -> Result<(), StoreError> {
    if first <= position.next() {
        return Ok(());
    }
    let detail = format!("it has {whose} up to record {position}, the log begins with record {first}");
    Err(StoreError::Foreign { detail })
}

/// What of a run could not be read though nothing says that it is damaged: the next open may read it.
fn unread_of(run: &FoundRun) -> Option<StoreError> {
    let errors = [run.head.as_ref().err(), run.journal.as_ref().err()];
    errors.into_iter().flatten().find(|error| !matches!(error, StoreError::Damaged { .. })).cloned()
}

pub(super) fn name_of<'a>(no: RunNo, head: &Head<'a>) -> SavedName<'a> {
    let Head { id, kind, created_ms, order_ms, .. } = *head;
    SavedName { no, id, kind, created_ms, order_ms }
}

fn restore_open(machine: &mut Shard, run: FoundRun) -> Result<(), String> {
    let stored = run.head.map_err(|error| error.to_string())?;
    let head = stored.head();
    let of = |error: &dyn std::fmt::Display| format!("workflow \"{}\": {error}", head.id);
    let journal = run.journal.map_err(|error| of(&error))?;
    machine.restore_run(name_of(run.no, &head), head.chunks, head.body, &journal).map_err(|error| of(&error))
}

/// A run that has ended is known by its head; without its journal, and then why is told, it only has no history any more.
fn recall_ended(machine: &mut Shard, run: FoundRun) -> Result<Option<StoreError>, String> {
    let stored = run.head.map_err(|error| error.to_string())?;
    let head = stored.head();
    let ended = EndedRun::decode(head.body).map_err(|error| format!("workflow \"{}\": {error}", head.id))?;
    let (journal, lost) = match run.journal {
        Ok(journal) => (journal, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let place = machine.recall(name_of(run.no, &head), ended, &journal);
    machine.keep_stored(place);
    Ok(lost)
}
