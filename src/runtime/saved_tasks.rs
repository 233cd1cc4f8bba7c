//! The scheduler in checkpoints. Its lock is held for the cut, and for one slice of tasks at a time.
//!
//! What it is besides the engine goes into a part of its own, the first one: its position, and what it has said to shards
//! that they have not acknowledged.

use super::tasks::{TaskCell, Tasks};
use crate::log::LogError;
use crate::machine::Outbox;
use crate::record::{DecodeError, Lsn, Reader, TaskNo, Writer};
use crate::scheduler::RestoreError;
use crate::store::{Store, StoreError};

/// In messages about damage.
const STATE: &str = "the state of the scheduler";

/// The scheduler's share of a checkpoint that is being made, but for its tasks.
pub(super) struct BegunTasks {
    /// All its records up to here are in it.
    pub(super) position: Lsn,
    /// The newest of them.
    last: Lsn,
    own: Vec<u8>,
    head: Vec<Vec<u8>>,
}

impl BegunTasks {
    /// What the store keeps beside the tasks.
    pub(super) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&self.own).chain(&self.head).map(Vec::as_slice)
    }
}

/// What may be in the store as it is.
pub(super) type SavedTask = (TaskNo, Option<Box<[u8]>>);

impl Tasks {
    /// Whether the last checkpoint has all records.
    pub(super) fn is_unchanged(&self) -> bool {
        let cell = self.cell.lock();
        cell.last == cell.saved
    }

    /// Begins a checkpoint; `position` says the newest record of any source. One that was begun before is given up.
    pub(super) fn begin_checkpoint(&self, position: impl FnOnce() -> Lsn) -> Result<BegunTasks, LogError> {
        let mut cell = self.cell.lock();
        let position = position();
        if cell.last > position {
            // What a log that fails did not take is in the state and must not be in the store.
            return Err(LogError::Closed);
        }
        let own = cell.encode(position);
        Ok(BegunTasks { position, last: cell.last, own, head: cell.engine.begin_checkpoint() })
    }

    /// Takes tasks of the checkpoint that was begun, about so many bytes of them. `false`: there are no more.
    pub(super) fn save(&self, bytes_max: usize, saved: &mut Vec<SavedTask>) -> bool {
        let put = &mut |no: TaskNo, bytes: Option<&[u8]>| saved.push((no, bytes.map(Into::into)));
        self.cell.lock().engine.save_tasks(bytes_max, put)
    }

    /// The checkpoint is stored.
    pub(super) fn keep_checkpoint(&self, begun: &BegunTasks) {
        let mut cell = self.cell.lock();
        cell.engine.keep_checkpoint();
        cell.saved = begun.last;
    }

    /// It is not: what was in it belongs to the next one.
    pub(super) fn give_up_checkpoint(&self) {
        self.cell.lock().engine.give_up_checkpoint();
    }

    /// Takes the scheduler back as a store has it, before [`Tasks::restore`]. Returns its position: only records behind it
    /// follow. `None`: it is not there.
    pub(super) fn load(&mut self, store: &Store) -> Result<Option<Lsn>, StoreError> {
        let cell = self.cell.get_mut();
        let mut position = None;
        let damaged = |what: &str, error: RestoreError| StoreError::Damaged { what: format!("{what}: {error}") };
        let is_there = store.scheduler(&mut |no, bytes| match (no, position) {
            (Some(no), _) => cell.engine.restore_task(bytes).map_err(|error| damaged(&format!("task t-{no}"), error)),
            (None, Some(_)) => cell.engine.restore_head(bytes).map_err(|error| damaged(STATE, error)),
            (None, None) => {
                position = Some(cell.decode(bytes).map_err(|error| damaged(STATE, RestoreError::Decode(error)))?);
                Ok(())
            }
        })?;
        if !is_there {
            return Ok(None);
        }
        cell.engine.restore_links().map_err(|error| damaged("what tasks are to each other", error))?;
        // Whoever was to be told was told, or the outbox has it.
        while cell.engine.poll_output().is_some() {}
        Ok(position)
    }
}

impl TaskCell {
    fn encode(&self, position: Lsn) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut out = Writer::new(&mut bytes);
        out.number(position.0);
        out.number(self.last.0);
        self.outbox.encode(&mut out);
        bytes
    }

    fn decode(&mut self, bytes: &[u8]) -> Result<Lsn, DecodeError> {
        let mut reader = Reader::new(bytes);
        let position = Lsn(reader.number()?);
        self.last = Lsn(reader.number()?);
        self.saved = self.last;
        self.outbox = Outbox::decode(&mut reader)?;
        reader.end()?;
        Ok(position)
    }
}
