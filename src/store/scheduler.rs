//! The scheduler in the store: parts that take the place of all parts before, and tasks, each for itself.

use super::error::{StoreError, fault};
use super::keys::{SCHEDULER, Table, part_key, task_in, task_key};
use super::read::read;
use super::sealed;
use super::tables::{Store, damaged};
use super::write::Writer;
use crate::record::{Reader, TaskNo, Writer as Bytes};
use redb::{ReadableDatabase, ReadableTableMetadata};

/// Takes a part or a task.
pub type EachValue<'a> = dyn FnMut(Option<TaskNo>, &[u8]) -> Result<(), StoreError> + 'a;

impl Store {
    /// The scheduler as the last checkpoint left it: its parts, which have no number, then its tasks in the order of theirs.
    /// An error of `each` ends it. `false`: no checkpoint has it.
    pub fn scheduler(&self, each: &mut EachValue<'_>) -> Result<bool, StoreError> {
        if !self.has_scheduler() {
            return Ok(false);
        }
        self.guarded(|| {
            let reading = self.database.begin_read().map_err(fault)?;
            let Some((parts, tasks)) = scheduler_counts(&Self::opened(&reading, Table::Meta)?)? else {
                return Ok(false);
            };
            let table = Self::opened(&reading, Table::Scheduler)?;
            for number in 0..parts {
                let bytes = read(&table, Table::Scheduler, &part_key(number))?;
                each(None, &bytes.ok_or_else(|| damaged("a part of the state of the scheduler is missing"))?)?;
            }
            let mut found = 0;
            for entry in Self::opened(&reading, Table::Tasks)?.range::<&[u8]>(..).map_err(fault)? {
                let (key, value) = entry.map_err(fault)?;
                let Some(no) = task_in(key.value()) else { return Err(damaged("a key of a task")) };
                each(Some(no), sealed::open(Table::Tasks, key.value(), value.value())?)?;
                found += 1;
            }
            if found != tasks {
                return Err(damaged(&format!("of its {tasks} tasks {found} can be found")));
            }
            Ok(true)
        })
    }
}

impl Writer<'_> {
    /// A task, in place of what was known of it; `None`: it was forgotten.
    pub fn put_task(&mut self, no: TaskNo, bytes: Option<&[u8]>) -> Result<(), StoreError> {
        match bytes {
            Some(bytes) => self.put(Table::Tasks, &task_key(no), bytes),
            None => self.take(Table::Tasks, &task_key(no)).map(drop),
        }
    }

    /// What of the scheduler is no task, in place of all that was there. After the last task.
    pub fn put_scheduler(&mut self, parts: &mut dyn Iterator<Item = &[u8]>) -> Result<(), StoreError> {
        let mut count = 0;
        for part in parts {
            self.put(Table::Scheduler, &part_key(count), part)?;
            count += 1;
        }
        let mut stale = count;
        while self.take(Table::Scheduler, &part_key(stale))? {
            stale += 1;
        }
        let tasks = self.tables[Table::Tasks].len().map_err(fault)?;
        let mut bytes = Vec::new();
        let mut out = Bytes::new(&mut bytes);
        out.number(count);
        out.number(tasks);
        self.put(Table::Meta, SCHEDULER, &bytes)
    }
}

/// How many parts and tasks there are; `None`: no checkpoint has any.
pub(super) fn scheduler_counts(
    meta: &redb::ReadOnlyTable<&'static [u8], &'static [u8]>,
) -> Result<Option<(u64, u64)>, StoreError> {
    let Some(bytes) = read(meta, Table::Meta, SCHEDULER)? else { return Ok(None) };
    let mut reader = Reader::new(&bytes);
    let counts = (|| Ok::<_, crate::record::DecodeError>((reader.number()?, reader.number()?)))();
    counts.map(Some).map_err(|_| damaged("how much there is of the scheduler cannot be read"))
}
