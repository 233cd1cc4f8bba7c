//! Reading all of it: every checksum, every chunk, every index entry against its run and back, every count.

use super::error::{StoreError, fault};
use super::head::Stored;
use super::keys::{TABLES, Table, chunk_key, count_keys, id_key, index_keys, run_in};
use super::scheduler::scheduler_counts;
use super::sealed;
use super::tables::{Store, definition, missing, read_count};
use crate::record::{RunNo, ShardId, run_id};
use redb::{ReadableDatabase, ReadableTable, ReadableTableMetadata};
use std::collections::BTreeMap;

/// What [`Store::verify`] has read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Runs that have not ended.
    pub open: u64,
    /// Runs that have.
    pub ended: u64,
    /// Tasks, over or not.
    pub tasks: u64,
    /// Bytes of values.
    pub bytes: u64,
    /// Everything that is not as it should be; empty: the store is whole.
    pub damages: Vec<String>,
}

type Opened = redb::ReadOnlyTable<&'static [u8], &'static [u8]>;

impl Store {
    /// Reads everything, from one point in time, and says all that is wrong. An error means that the tree itself could not
    /// be read on.
    pub fn verify(&self) -> Result<Verified, StoreError> {
        self.guarded(|| {
            let reading = self.database.begin_read().map_err(fault)?;
            let mut tables = Vec::with_capacity(TABLES.len());
            for table in self.tables() {
                tables.push(reading.open_table(definition(*table)).map_err(missing)?);
            }
            let mut walk = Walk {
                tables: &tables,
                verified: Verified::default(),
                expected: BTreeMap::new(),
                counts: BTreeMap::new(),
            };
            for table in self.tables() {
                walk.checksums(*table)?;
            }
            for table in [Table::Open, Table::Ended] {
                walk.runs(table)?;
            }
            walk.lengths()?;
            walk.counts()?;
            if self.has_scheduler() {
                walk.scheduler()?;
            }
            Ok(walk.verified)
        })
    }
}

struct Walk<'a> {
    tables: &'a [Opened],
    verified: Verified,
    /// Entries that the heads ask for, by table.
    expected: BTreeMap<Table, u64>,
    counts: BTreeMap<Vec<u8>, u64>,
}

impl Walk<'_> {
    fn table(&self, table: Table) -> &Opened {
        &self.tables[table as usize]
    }

    fn damage(&mut self, what: String) {
        self.verified.damages.push(what);
    }

    fn checksums(&mut self, table: Table) -> Result<(), StoreError> {
        for entry in self.tables[table as usize].iter().map_err(fault)? {
            let (key, value) = entry.map_err(fault)?;
            self.verified.bytes += value.value().len() as u64;
            if let Err(error) = sealed::open(table, key.value(), value.value()) {
                self.damage(match error {
                    StoreError::Damaged { what } => what,
                    other => other.to_string(),
                });
            }
        }
        Ok(())
    }

    fn runs(&mut self, table: Table) -> Result<(), StoreError> {
        for entry in self.tables[table as usize].iter().map_err(fault)? {
            let (key, value) = entry.map_err(fault)?;
            let (Some((shard, no)), Ok(bytes)) = (run_in(key.value()), sealed::open(table, key.value(), value.value()))
            else {
                continue;
            };
            match Stored::new(bytes) {
                Ok(stored) => self.run(table, shard, no, &stored)?,
                Err(_) => self.damage(format!("the head of run {} cannot be read", run_id(shard, no))),
            }
        }
        Ok(())
    }

    fn run(&mut self, table: Table, shard: ShardId, no: RunNo, stored: &Stored) -> Result<(), StoreError> {
        let head = stored.head();
        let name = run_id(shard, no);
        match table {
            Table::Open => self.verified.open += 1,
            _ => self.verified.ended += 1,
        }
        if head.end.is_some() != (table == Table::Ended) {
            self.damage(format!("run {name} is among the wrong runs"));
        }
        let chunks = (0..head.chunks).map(|chunk| (Table::Journals, chunk_key(shard, no, chunk)));
        let ids = [(Table::Ids, id_key(shard, head.id, no))];
        let indexes = index_keys(shard, no, &head).into_iter().flatten();
        for (table, key) in chunks.chain(ids).chain(indexes) {
            *self.expected.entry(table).or_default() += 1;
            if self.table(table).get(&key[..]).map_err(fault)?.is_none() {
                self.damage(format!("{} is missing", table.name_of(&key)));
            }
        }
        for key in head.end.into_iter().flat_map(|(status, _)| count_keys(head.kind, status)) {
            *self.counts.entry(key).or_default() += 1;
        }
        Ok(())
    }

    /// As many entries as the heads ask for, all of which are there, are all that there may be.
    fn lengths(&mut self) -> Result<(), StoreError> {
        for table in [Table::Journals, Table::Ids, Table::ByStatus, Table::ByKind, Table::ByEnd] {
            let (found, expected) =
                (self.table(table).len().map_err(fault)?, self.expected.get(&table).copied().unwrap_or(0));
            if found != expected {
                self.damage(format!("table \"{}\" has {found} entries, its runs ask for {expected}", table.name()));
            }
        }
        Ok(())
    }

    /// As many parts and tasks as the last checkpoint left.
    fn scheduler(&mut self) -> Result<(), StoreError> {
        self.verified.tasks = self.table(Table::Tasks).len().map_err(fault)?;
        let found = (self.table(Table::Scheduler).len().map_err(fault)?, self.verified.tasks);
        // Damage to the numbers themselves was found with their checksum.
        if let Ok(expected) = scheduler_counts(self.table(Table::Meta))
            && found != expected.unwrap_or_default()
        {
            self.damage(format!("of the scheduler it has {found:?} parts and tasks, {expected:?} were written"));
        }
        Ok(())
    }

    fn counts(&mut self) -> Result<(), StoreError> {
        let expected = std::mem::take(&mut self.counts);
        let found = self.table(Table::Counts).len().map_err(fault)?;
        if found != expected.len() as u64 {
            self.damage(format!("{found} counts are kept, {} are asked for", expected.len()));
        }
        for (key, count) in expected {
            let value = self.tables[Table::Counts as usize].get(&key[..]).map_err(fault)?;
            let stored = match &value {
                Some(value) => sealed::open(Table::Counts, &key, value.value())
                    .and_then(|bytes| read_count(Table::Counts, &key, bytes))
                    .ok(),
                None => None,
            };
            if stored != Some(count) {
                self.damage(format!("a count of finished runs is {stored:?}, there are {count}"));
            }
        }
        Ok(())
    }
}
