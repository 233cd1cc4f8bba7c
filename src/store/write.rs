//! A checkpoint: everything in one transaction, or nothing.

use super::error::{StoreError, fault};
use super::head::{self, Head, Stored};
use super::keys::{COMMITS, IDENTITY, Table, chunk_key, count_keys, id_key, index_keys, run_key, shard_key};
use super::sealed;
use super::tables::{Store, encode, encode_count, read_count};
use super::tree::OpenTables;
use crate::record::{RunNo, ShardId};
use redb::ReadableTable;
use std::collections::BTreeMap;

/// What becomes of a run's journal.
#[derive(Clone, Copy, Debug)]
pub enum Chunk<'a> {
    /// Nothing: it has not grown.
    Keep,
    /// These records follow on the chunks that are there.
    Append(&'a [u8]),
    /// These records are all of it.
    Whole(&'a [u8]),
}

/// A run as a checkpoint leaves it. `head.chunks` says how many chunks are there before.
#[derive(Clone, Copy, Debug)]
pub struct RunWrite<'a> {
    /// Its shard.
    pub shard: ShardId,
    /// Its number.
    pub no: RunNo,
    /// What it is.
    pub head: Head<'a>,
    /// Its records.
    pub chunk: Chunk<'a>,
}

/// Largest chunk of a whole journal; readers put them together again.
const CHUNK_BYTES_MAX: usize = 256 << 10;

/// Writes the parts of one checkpoint.
pub struct Writer<'txn> {
    pub(super) tables: OpenTables<'txn>,
    counts: BTreeMap<Vec<u8>, i64>,
}

impl Store {
    /// Does `work` in one transaction. Durable on return, and with it everything that `work` wrote; after an error nothing
    /// of it is there.
    pub fn checkpoint<T, E: From<StoreError>>(
        &self,
        work: impl FnOnce(&mut Writer<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut outcome = None;
        let committed = self.guarded(|| {
            let writing = self.database.begin()?;
            let mut writer = Writer { tables: writing.open_tables()?, counts: BTreeMap::new() };
            match work(&mut writer) {
                Ok(done) => {
                    if !self.has_scheduler() {
                        writer.put(Table::Meta, IDENTITY, &encode(self.identity()))?;
                    }
                    writer.finish()?;
                    drop(writer);
                    outcome = Some(Ok(done));
                    writing.commit()
                }
                Err(error) => {
                    drop(writer);
                    outcome = Some(Err(error));
                    writing.abort()
                }
            }
        });
        match (outcome, committed) {
            (Some(Err(error)), _) => Err(error),
            (_, Err(error)) => Err(error.into()),
            (Some(done), Ok(())) => done,
            (None, Ok(())) => unreachable!("work was done, or opening the tables failed"),
        }
    }
}

impl Writer<'_> {
    pub(super) fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let value = sealed::seal(table, key, value);
        self.tables[table].insert(key, &value[..]).map_err(fault)?;
        Ok(())
    }

    pub(super) fn take(&mut self, table: Table, key: &[u8]) -> Result<bool, StoreError> {
        Ok(self.tables[table].remove(key).map_err(fault)?.is_some())
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(value) = self.tables[table].get(key).map_err(fault)? else { return Ok(None) };
        sealed::open(table, key, value.value()).map(|bytes| Some(bytes.to_vec()))
    }

    /// The state of a shard, in place of the one before.
    pub fn put_shard(&mut self, shard: ShardId, state: &[u8]) -> Result<(), StoreError> {
        self.put(Table::Shards, &shard_key(shard), state)
    }

    /// A run, in place of what was known of it. Returns how many chunks its journal has now.
    pub fn put_run(&mut self, run: &RunWrite<'_>) -> Result<u32, StoreError> {
        let RunWrite { shard, no, head, chunk } = *run;
        let before = head.chunks;
        let chunks = match chunk {
            Chunk::Keep => before,
            Chunk::Append(bytes) => {
                self.put(Table::Journals, &chunk_key(shard, no, before), bytes)?;
                before + 1
            }
            Chunk::Whole(bytes) => {
                let mut chunks = 0;
                for part in bytes.chunks(CHUNK_BYTES_MAX) {
                    self.put(Table::Journals, &chunk_key(shard, no, chunks), part)?;
                    chunks += 1;
                }
                // One more may be there from a commit that was reported as failed and is seen all the same.
                for stale in chunks..=before {
                    self.take(Table::Journals, &chunk_key(shard, no, stale))?;
                }
                chunks
            }
        };
        let key = run_key(shard, no);
        let head = Head { chunks, ..head };
        let encoded = head::encode(&head);
        match index_keys(shard, no, &head) {
            None => self.put(Table::Open, &key, &encoded)?,
            Some(entries) => {
                self.take(Table::Open, &key)?;
                let is_known = self.tables[Table::Ended].get(&key[..]).map_err(fault)?.is_some();
                self.put(Table::Ended, &key, &encoded)?;
                if !is_known {
                    for (table, key) in entries {
                        self.put(table, &key, &[])?;
                    }
                    self.count(&head, 1);
                }
            }
        }
        self.put(Table::Ids, &id_key(shard, head.id, no), &[])?;
        Ok(chunks)
    }

    /// Takes a finished run away. `false`: there is none.
    pub fn remove_run(&mut self, shard: ShardId, no: RunNo) -> Result<bool, StoreError> {
        let key = run_key(shard, no);
        let Some(bytes) = self.get(Table::Ended, &key)? else { return Ok(false) };
        let stored = Stored::new(&bytes).map_err(|_| StoreError::damaged_run(shard, no, "the head"))?;
        let head = stored.head();
        self.take(Table::Ended, &key)?;
        self.take(Table::Ids, &id_key(shard, head.id, no))?;
        for chunk in 0..head.chunks {
            self.take(Table::Journals, &chunk_key(shard, no, chunk))?;
        }
        for (table, key) in index_keys(shard, no, &head).into_iter().flatten() {
            self.take(table, &key)?;
        }
        self.count(&head, -1);
        Ok(true)
    }

    fn count(&mut self, head: &Head<'_>, by: i64) {
        let Some((status, _)) = head.end else { return };
        for key in count_keys(head.kind, status) {
            *self.counts.entry(key).or_default() += by;
        }
    }

    fn finish(&mut self) -> Result<(), StoreError> {
        for (key, by) in std::mem::take(&mut self.counts) {
            let before =
                self.get(Table::Counts, &key)?.map_or(Ok(0), |bytes| read_count(Table::Counts, &key, &bytes))?;
            match before.saturating_add_signed(by) {
                0 => drop(self.take(Table::Counts, &key)?),
                count => self.put(Table::Counts, &key, &encode_count(count))?,
            }
        }
        let commits =
            self.get(Table::Meta, COMMITS)?.map_or(Ok(0), |bytes| read_count(Table::Meta, COMMITS, &bytes))?;
        self.put(Table::Meta, COMMITS, &encode_count(commits + 1))
    }
}
