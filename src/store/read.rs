//! Finding runs: by number, by id, in the order of their starts, by the time of their end.

use super::error::{StoreError, fault};
use super::head::Stored;
use super::keys::{
    RUN_BYTES, Table, chunk_key, count_keys, ended_ms_in, id_prefix, kind_prefix, list_key, no_at_end, run_at_end,
    run_in, run_key, shard_key, status_prefix,
};
use super::sealed;
use super::tables::{Store, damaged, definition, missing, read_count};
use crate::record::{RunNo, ShardId};
use redb::{AccessGuard, ReadTransaction, ReadableDatabase};
use std::ops::Bound;

/// A run's shard and number.
pub type Place = (ShardId, RunNo);

/// Which finished runs are wanted, in the order of their starts.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// Names of definitions; empty: any.
    pub kinds: &'a [String],
    /// Numbers of statuses.
    pub statuses: &'a [u8],
    /// Started at this time or later, in ms since 1970.
    pub from_ms: i64,
    /// Started before this time; `None`: whenever.
    pub before_ms: Option<i64>,
    /// Behind this run, by start, shard and number.
    pub after: Option<(i64, ShardId, RunNo)>,
    /// The other way round.
    pub is_newest_first: bool,
}

/// Whether more is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// The next one, please.
    More,
    /// That is enough.
    Enough,
}

/// A run, or what of it is damaged.
#[derive(Debug)]
pub struct FoundRun {
    /// Its number.
    pub no: RunNo,
    /// What it is.
    pub head: Result<Stored, StoreError>,
    /// Its records.
    pub journal: Result<Vec<u8>, StoreError>,
}

type Opened = redb::ReadOnlyTable<&'static [u8], &'static [u8]>;

/// One sorted list of index entries that have a prefix in common.
struct Lane<'a> {
    prefix: usize,
    range: redb::Range<'a, &'static [u8], &'static [u8]>,
    next: Option<Vec<u8>>,
}

impl Store {
    pub(super) fn opened(reading: &ReadTransaction, table: Table) -> Result<Opened, StoreError> {
        reading.open_table(definition(table)).map_err(missing)
    }

    pub(super) fn value(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.guarded(|| {
            let reading = self.database.begin_read().map_err(fault)?;
            read(&Self::opened(&reading, table)?, table, key)
        })
    }

    /// The state of a shard, if a checkpoint has been made.
    pub fn shard(&self, shard: ShardId) -> Result<Option<Vec<u8>>, StoreError> {
        self.value(Table::Shards, &shard_key(shard))
    }

    /// The newest run of an id.
    pub fn latest(&self, shard: ShardId, id: &str) -> Result<Option<RunNo>, StoreError> {
        self.guarded(|| {
            let reading = self.database.begin_read().map_err(fault)?;
            let table = Self::opened(&reading, Table::Ids)?;
            let from = id_prefix(shard, id);
            let to = [&from[..], &[0xff; 9]].concat();
            let Some(last) = table.range(&from[..]..&to[..]).map_err(fault)?.next_back() else { return Ok(None) };
            let (key, value) = last.map_err(fault)?;
            sealed::open(Table::Ids, key.value(), value.value())?;
            Ok(no_at_end(key.value()))
        })
    }

    /// The head of a run, ended or not.
    pub fn head(&self, shard: ShardId, no: RunNo) -> Result<Option<Stored>, StoreError> {
        self.guarded(|| {
            let reading = self.database.begin_read().map_err(fault)?;
            let key = run_key(shard, no);
            for table in [Table::Ended, Table::Open] {
                if let Some(bytes) = read(&Self::opened(&reading, table)?, table, &key)? {
                    return stored(shard, no, &bytes).map(Some);
                }
            }
            Ok(None)
        })
    }

    /// The head of a run and its journal, from one point in time.
    pub fn run(&self, shard: ShardId, no: RunNo) -> Result<Option<(Stored, Vec<u8>)>, StoreError> {
        self.guarded(|| {
            let reading = self.database.begin_read().map_err(fault)?;
            let key = run_key(shard, no);
            for table in [Table::Ended, Table::Open] {
                if let Some(bytes) = read(&Self::opened(&reading, table)?, table, &key)? {
                    let stored = stored(shard, no, &bytes)?;
                    let journal = journal(&Self::opened(&reading, Table::Journals)?, shard, no, stored.head().chunks)?;
                    return Ok(Some((stored, journal)));
                }
            }
            Ok(None)
        })
    }

    /// Every run of a shard that has not ended, in the order of the numbers: its head and its journal, or what is damaged.
    pub fn open_runs(&self, shard: ShardId, each: &mut dyn FnMut(FoundRun)) -> Result<(), StoreError> {
        self.runs(Table::Open, shard, each)
    }

    /// The same of those that have.
    pub fn ended_runs(&self, shard: ShardId, each: &mut dyn FnMut(FoundRun)) -> Result<(), StoreError> {
        self.runs(Table::Ended, shard, each)
    }

    fn runs(&self, table: Table, shard: ShardId, each: &mut dyn FnMut(FoundRun)) -> Result<(), StoreError> {
        self.guarded(|| {
            let reading = self.database.begin_read().map_err(fault)?;
            let journals = Self::opened(&reading, Table::Journals)?;
            let (from, to) = (run_key(shard, RunNo(0)), run_key(shard, RunNo(u64::MAX)));
            for entry in Self::opened(&reading, table)?.range(&from[..]..=&to[..]).map_err(fault)? {
                let (key, value) = entry.map_err(fault)?;
                let Some((_, no)) = run_in(key.value()) else { return Err(damaged("a key of a run")) };
                let head = sealed::open(table, key.value(), value.value()).and_then(|bytes| stored(shard, no, bytes));
                let records = match &head {
                    Ok(head) => journal(&journals, shard, no, head.head().chunks),
                    Err(error) => Err(error.clone()),
                };
                each(FoundRun { no, head, journal: records });
            }
            Ok(())
        })
    }

    /// Finished runs in the order of their starts, until `each` has enough. What is damaged is told and passed.
    pub fn finished(
        &self,
        query: &Query<'_>,
        each: &mut dyn FnMut(Place, Result<Stored, StoreError>) -> Page,
    ) -> Result<(), StoreError> {
        self.guarded(|| {
            let reading = self.database.begin_read().map_err(fault)?;
            let table = if query.kinds.is_empty() { Table::ByStatus } else { Table::ByKind };
            let (index, heads) = (Self::opened(&reading, table)?, Self::opened(&reading, Table::Ended)?);
            let mut lanes = Vec::new();
            for prefix in prefixes(query) {
                let (from, to) = bounds(&prefix, query);

                if is_empty(&from, &to) {
                    continue;
                }
                let range = index.range::<&[u8]>((borrowed(&from), borrowed(&to))).map_err(fault)?;
                let mut lane = Lane { prefix: prefix.len(), range, next: None };
                lane.advance(table, query.is_newest_first)?;
                lanes.push(lane);
            }
            while let Some(lane) = first(&mut lanes, query.is_newest_first) {
                let Some((shard, no)) = lane.next.as_deref().and_then(run_at_end) else {
                    return Err(damaged("an index entry names no run"));
                };
                let head = match read(&heads, Table::Ended, &run_key(shard, no)) {
                    Ok(Some(bytes)) => stored(shard, no, &bytes),
                    Ok(None) => Err(StoreError::damaged_run(shard, no, "the missing head")),
                    Err(error) => Err(error),
                };
                if each((shard, no), head) == Page::Enough {
                    return Ok(());
                }
                lane.advance(table, query.is_newest_first)?;
            }
            Ok(())
        })
    }

    /// How many finished runs there are of these types (none given: of any) and statuses. Reads no runs.
    pub fn count(&self, kinds: &[String], statuses: &[u8]) -> Result<u64, StoreError> {
        self.guarded(|| {
            let reading = self.database.begin_read().map_err(fault)?;
            let counts = Self::opened(&reading, Table::Counts)?;
            let mut sum = 0;
            for status in statuses {
                let keys: Vec<Vec<u8>> = match kinds {
                    [] => count_keys("", *status).into_iter().take(1).collect(),
                    kinds => {
                        kinds.iter().filter_map(|kind| count_keys(kind, *status).into_iter().next_back()).collect()
                    }
                };
                for key in keys {
                    if let Some(bytes) = read(&counts, Table::Counts, &key)? {
                        sum += read_count(Table::Counts, &key, &bytes)?;
                    }
                }
            }
            Ok(sum)
        })
    }

    /// Runs of a status that ended longest ago, each with the time: at most `limit` of them, and only those that ended
    /// before a time.
    pub fn ended_before(&self, status: u8, before_ms: i64, limit: usize) -> Result<Vec<(i64, Place)>, StoreError> {
        self.guarded(|| {
            let reading = self.database.begin_read().map_err(fault)?;
            let from = status_prefix(status);
            let to = [&from[..], &[0xff; 8 + RUN_BYTES + 1]].concat();
            let mut found = Vec::new();
            for entry in Self::opened(&reading, Table::ByEnd)?.range(&from[..]..&to[..]).map_err(fault)? {
                let (key, value) = entry.map_err(fault)?;
                sealed::open(Table::ByEnd, key.value(), value.value())?;
                let (Some(ended_ms), Some(place)) = (ended_ms_in(key.value()), run_at_end(key.value())) else {
                    return Err(damaged("an index entry names no run"));
                };
                if ended_ms >= before_ms || found.len() >= limit {
                    break;
                }
                found.push((ended_ms, place));
            }
            Ok(found)
        })
    }
}

pub(super) fn read(table: &Opened, number: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
    let value: Option<AccessGuard<'_, &[u8]>> = table.get(key).map_err(fault)?;
    let Some(value) = value else { return Ok(None) };
    sealed::open(number, key, value.value()).map(|bytes| Some(bytes.to_vec()))
}

fn stored(shard: ShardId, no: RunNo, bytes: &[u8]) -> Result<Stored, StoreError> {
    Stored::new(bytes).map_err(|_| StoreError::damaged_run(shard, no, "the head"))
}

pub(super) fn journal(table: &Opened, shard: ShardId, no: RunNo, chunks: u32) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    for chunk in 0..chunks {
        let key = chunk_key(shard, no, chunk);
        let part = read(table, Table::Journals, &key)?
            .ok_or_else(|| StoreError::damaged_run(shard, no, &format!("part {chunk} of the journal")))?;
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

fn prefixes(query: &Query<'_>) -> Vec<Vec<u8>> {
    let of_status = |status: &u8| match query.kinds {
        [] => vec![status_prefix(*status)],
        kinds => kinds.iter().map(|kind| kind_prefix(kind, *status)).collect(),
    };
    query.statuses.iter().flat_map(of_status).collect()
}

/// Where the entries under a prefix that a query wants begin and end.
fn bounds(prefix: &[u8], query: &Query<'_>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let at = |order_ms, shard, no| [prefix, &list_key(order_ms, shard, no)].concat();
    let first_of = |ms| at(ms, ShardId(0), RunNo(0));
    let mut from = Bound::Included(first_of(query.from_ms));
    let mut to = match query.before_ms {
        Some(before_ms) => Bound::Excluded(first_of(before_ms)),
        None => Bound::Included(at(i64::MAX, ShardId(u16::MAX), RunNo(u64::MAX))),
    };
    if let Some((order_ms, shard, no)) = query.after {
        let after = at(order_ms, shard, no);
        let key = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Included(key) | Bound::Excluded(key) => key.clone(),
            Bound::Unbounded => Vec::new(),
        };
        if query.is_newest_first && after <= key(&to) {
            to = Bound::Excluded(after);
        } else if !query.is_newest_first && after >= key(&from) {
            from = Bound::Excluded(after);
        }
    }
    (from, to)
}

fn is_empty(from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) -> bool {
    match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => from >= to,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
    }
}

fn borrowed(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(&key[..]),
        Bound::Excluded(key) => Bound::Excluded(&key[..]),
        Bound::Unbounded => Bound::Unbounded,
    }
}

impl Lane<'_> {
    fn advance(&mut self, table: Table, is_newest_first: bool) -> Result<(), StoreError> {
        let entry = if is_newest_first { self.range.next_back() } else { self.range.next() };
        self.next = match entry {
            None => None,
            Some(entry) => {
                let (key, value) = entry.map_err(fault)?;
                sealed::open(table, key.value(), value.value())?;
                Some(key.value().get(self.prefix..).unwrap_or_default().to_vec())
            }
        };
        Ok(())
    }
}

/// The lane whose next run comes first.
fn first<'l, 'a>(lanes: &'l mut [Lane<'a>], is_newest_first: bool) -> Option<&'l mut Lane<'a>> {
    let waiting = lanes.iter_mut().filter(|lane| lane.next.is_some());
    if is_newest_first {
        waiting.max_by(|a, b| a.next.cmp(&b.next))
    } else {
        waiting.min_by(|a, b| a.next.cmp(&b.next))
    }
}
