//! A store of checkpoints that the test plays, and the restart from it.

use super::world::World;
use crate::record::TaskNo;
use crate::scheduler::{Config, Engine};
use std::collections::BTreeMap;

/// What is stored, and what is on its way there.
#[derive(Debug, Default)]
pub(super) struct Store {
    pub(super) stored: Option<Checkpoint>,
    making: Option<Checkpoint>,
}

/// A checkpoint as a whole: what was stored before, and what came on top.
#[derive(Clone, Debug, Default)]
pub(super) struct Checkpoint {
    /// So many records are in it.
    pub(super) records: usize,
    pub(super) head: Vec<Vec<u8>>,
    pub(super) tasks: BTreeMap<TaskNo, Vec<u8>>,
}

impl Store {
    pub(super) fn of(stored: Option<Checkpoint>) -> Store {
        Store { stored, making: None }
    }

    /// So many records are in what is stored.
    pub(super) fn records(&self) -> usize {
        self.stored.as_ref().map_or(0, |stored| stored.records)
    }

    /// An engine that took back what is stored and the records behind it. What was on its way is lost.
    pub(super) fn restored(&mut self, config: &Config, records: &[Vec<u8>]) -> Engine {
        self.making = None;
        let mut engine = Engine::new(config.clone()).unwrap();
        if let Some(stored) = &self.stored {
            stored.head.iter().for_each(|part| engine.restore_head(part).unwrap());
            stored.tasks.values().for_each(|task| engine.restore_task(task).unwrap());
            engine.restore_links().unwrap();
        }
        records[self.records()..].iter().for_each(|record| engine.restore(record).unwrap());
        engine
    }
}

impl World {
    pub(super) fn begin_checkpoint(&mut self) {
        let before = self.store.stored.clone().unwrap_or_default();
        let head = self.engine.begin_checkpoint();
        self.store.making = Some(Checkpoint { records: self.records.len(), head, ..before });
    }

    /// Writes so many bytes of tasks; after the last of them the checkpoint is stored, and this is `true`.
    pub(super) fn save_tasks(&mut self, bytes_max: usize) -> bool {
        let Some(making) = self.store.making.as_mut() else { return false };
        let has_more = self.engine.save_tasks(bytes_max, &mut |task, bytes| match bytes {
            Some(bytes) => drop(making.tasks.insert(task, bytes.to_vec())),
            None => drop(making.tasks.remove(&task)),
        });
        if !has_more {
            self.engine.keep_checkpoint();
            self.store.stored = self.store.making.take();
        }
        !has_more
    }

    pub(super) fn give_up_checkpoint(&mut self) {
        if self.store.making.take().is_some() {
            self.engine.give_up_checkpoint();
        }
    }
}
