//! Tables and their keys. Numbers in keys have their high byte first, so that the order of the bytes is that of the
//! numbers; part of the format.
//!
//! | table | key | value |
//! | --- | --- | --- |
//! | meta | a name | the directory's identity; the number of commits; how much there is of the scheduler |
//! | shards | shard | its state |
//! | open | shard, run | head of a run that has not ended |
//! | ended | shard, run | head of a run that has |
//! | journals | shard, run, chunk | records |
//! | ids | shard, id, 0, run | – |
//! | by status | status, start, shard, run | – |
//! | by type | type, 0, status, start, shard, run | – |
//! | by end | status, end, shard, run | – |
//! | counts | what is counted | how many |
//! | scheduler | part | what of the scheduler is no task; since format 2 |
//! | tasks | task | a task; since format 2 |

use super::head::Head;
use crate::record::{RunNo, ShardId, TaskNo, run_id};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Table {
    Meta,
    Shards,
    Open,
    Ended,
    Journals,
    Ids,
    ByStatus,
    ByKind,
    ByEnd,
    Counts,
    Scheduler,
    Tasks,
}

/// In the order of their numbers, which are part of the format.
pub(super) const TABLES: [Table; 12] = [
    Table::Meta,
    Table::Shards,
    Table::Open,
    Table::Ended,
    Table::Journals,
    Table::Ids,
    Table::ByStatus,
    Table::ByKind,
    Table::ByEnd,
    Table::Counts,
    Table::Scheduler,
    Table::Tasks,
];

/// So many of them has a store of format 1.
pub(super) const TABLES_OF_FORMAT_1: usize = 10;

impl Table {
    pub(super) fn number(self) -> u8 {
        self as u8
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Table::Meta => "meta",
            Table::Shards => "shards",
            Table::Open => "open",
            Table::Ended => "ended",
            Table::Journals => "journals",
            Table::Ids => "ids",
            Table::ByStatus => "by status",
            Table::ByKind => "by type",
            Table::ByEnd => "by end",
            Table::Counts => "counts",
            Table::Scheduler => "scheduler",
            Table::Tasks => "tasks",
        }
    }

    /// What is stored under a key, for messages.
    pub(super) fn name_of(self, key: &[u8]) -> String {
        let run =
            |key: &[u8]| run_in(key).map_or_else(|| "a run".into(), |(shard, no)| format!("run {}", run_id(shard, no)));
        match self {
            Table::Meta => "the description of the store".into(),
            Table::Shards => match key {
                [high, low] => format!("the state of shard {}", u16::from(*high) << 8 | u16::from(*low)),
                _ => "the state of a shard".into(),
            },
            Table::Open | Table::Ended => format!("the head of {}", run(key)),
            Table::Journals => format!("the journal of {}", run(key)),
            Table::Ids | Table::ByStatus | Table::ByKind | Table::ByEnd => {
                let at = key.len().saturating_sub(RUN_BYTES);
                match self {
                    Table::Ids => "an entry of the index by id".into(),
                    _ => format!("the index entry of {}", run(&key[at..])),
                }
            }
            Table::Counts => "a count of finished runs".into(),
            Table::Scheduler => "the state of the scheduler".into(),
            Table::Tasks => task_in(key).map_or_else(|| "a task".into(), |no| format!("task t-{no}")),
        }
    }
}

pub(super) const IDENTITY: &[u8] = b"identity";
pub(super) const COMMITS: &[u8] = b"commits";
pub(super) const SCHEDULER: &[u8] = b"scheduler";

/// Shard and run at the end of a key.
pub(super) const RUN_BYTES: usize = 10;

/// A number in bytes of the same order.
fn ordered(value: u64) -> [u8; 8] {
    std::array::from_fn(|index| (value >> (56 - 8 * index)) as u8)
}

fn number_of(bytes: [u8; 8]) -> u64 {
    bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// A time in bytes of the same order.
fn ordered_ms(time_ms: i64) -> [u8; 8] {
    ordered((time_ms as u64) ^ (1 << 63))
}

pub(super) fn shard_key(shard: ShardId) -> [u8; 2] {
    [(shard.0 >> 8) as u8, shard.0 as u8]
}

pub(super) fn run_key(shard: ShardId, no: RunNo) -> [u8; RUN_BYTES] {
    let mut key = [0; RUN_BYTES];
    key[..2].copy_from_slice(&shard_key(shard));
    key[2..].copy_from_slice(&ordered(no.0));
    key
}

/// The run that bytes begin with.
pub(super) fn run_in(key: &[u8]) -> Option<(ShardId, RunNo)> {
    let (shard, rest) = key.split_first_chunk::<2>()?;
    let (no, _) = rest.split_first_chunk::<8>()?;
    Some((ShardId(u16::from(shard[0]) << 8 | u16::from(shard[1])), RunNo(number_of(*no))))
}

/// The run that bytes end with.
pub(super) fn run_at_end(key: &[u8]) -> Option<(ShardId, RunNo)> {
    run_in(key.get(key.len().checked_sub(RUN_BYTES)?..)?)
}

pub(super) fn chunk_key(shard: ShardId, no: RunNo, chunk: u32) -> Vec<u8> {
    let high_first = (0..4).map(|index| (chunk >> (24 - 8 * index)) as u8);
    run_key(shard, no).into_iter().chain(high_first).collect()
}

/// Begins the keys of all runs of an id.
pub(super) fn id_prefix(shard: ShardId, id: &str) -> Vec<u8> {
    [&shard_key(shard)[..], id.as_bytes(), &[0]].concat()
}

pub(super) fn id_key(shard: ShardId, id: &str, no: RunNo) -> Vec<u8> {
    [&id_prefix(shard, id)[..], &ordered(no.0)].concat()
}

/// The run number that a key of the index by id ends with.
pub(super) fn no_at_end(key: &[u8]) -> Option<RunNo> {
    key.last_chunk::<8>().map(|bytes| RunNo(number_of(*bytes)))
}

/// Start, shard and run: the order in which runs are listed.
pub(super) fn list_key(order_ms: i64, shard: ShardId, no: RunNo) -> [u8; 8 + RUN_BYTES] {
    let mut key = [0; 8 + RUN_BYTES];
    key[..8].copy_from_slice(&ordered_ms(order_ms));
    key[8..].copy_from_slice(&run_key(shard, no));
    key
}

/// Begins the keys of all finished runs of a status, in the indexes by status and by end.
pub(super) fn status_prefix(status: u8) -> Vec<u8> {
    vec![status]
}

/// Begins the keys of all finished runs of a type and a status.
pub(super) fn kind_prefix(kind: &str, status: u8) -> Vec<u8> {
    [kind.as_bytes(), &[0, status]].concat()
}

pub(super) fn end_key(status: u8, ended_ms: i64, shard: ShardId, no: RunNo) -> Vec<u8> {
    [&[status][..], &ordered_ms(ended_ms), &run_key(shard, no)].concat()
}

/// The time in a key of the index by end.
pub(super) fn ended_ms_in(key: &[u8]) -> Option<i64> {
    let bytes = key.get(1..)?.first_chunk::<8>()?;
    Some((number_of(*bytes) ^ (1 << 63)) as i64)
}

pub(super) fn part_key(part: u64) -> [u8; 8] {
    ordered(part)
}

pub(super) fn task_key(no: TaskNo) -> [u8; 8] {
    ordered(no.0)
}

pub(super) fn task_in(key: &[u8]) -> Option<TaskNo> {
    Some(TaskNo(number_of(key.try_into().ok()?)))
}

/// The index entries of a finished run.
pub(super) fn index_keys(shard: ShardId, no: RunNo, head: &Head<'_>) -> Option<[(Table, Vec<u8>); 3]> {
    let (status, ended_ms) = head.end?;
    let started = list_key(head.order_ms, shard, no);
    Some([
        (Table::ByStatus, [&status_prefix(status)[..], &started].concat()),
        (Table::ByKind, [&kind_prefix(head.kind, status)[..], &started].concat()),
        (Table::ByEnd, end_key(status, ended_ms, shard, no)),
    ])
}

/// What is counted of a finished run: those of its status, and those of its type and status.
pub(super) fn count_keys(kind: &str, status: u8) -> [Vec<u8>; 2] {
    [[&[0][..], &status_prefix(status)].concat(), [&[1][..], &kind_prefix(kind, status)].concat()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_order_of_what_they_say() {
        let times = [i64::MIN, -5, -1, 0, 1, 1_700_000_000_000, i64::MAX];
        let keys: Vec<_> = times.iter().map(|ms| list_key(*ms, ShardId(3), RunNo(1))).collect();
        assert!(keys.is_sorted() && keys.windows(2).all(|pair| pair[0] != pair[1]));
        for ms in times {
            assert_eq!(ended_ms_in(&end_key(1, ms, ShardId(3), RunNo(1))), Some(ms));
        }
        assert!(run_key(ShardId(1), RunNo(u64::MAX)) < run_key(ShardId(2), RunNo(0)));
        assert!(run_key(ShardId(1), RunNo(255)) < run_key(ShardId(1), RunNo(256)));
        assert_eq!(run_at_end(&list_key(7, ShardId(700), RunNo(1 << 40))), Some((ShardId(700), RunNo(1 << 40))));
        assert!(id_key(ShardId(0), "a", RunNo(9)) < id_prefix(ShardId(0), "aa"));
    }
}
