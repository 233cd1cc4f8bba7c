//! Numbers that name things, each its own type so that the compiler tells them apart.

use std::fmt;

/// Number of a record in the log: one counter over all sources, from 1. [`Lsn::NONE`] is before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// Before the first record.
    pub const NONE: Lsn = Lsn(0);

    /// The number after this one.
    #[must_use]
    pub fn next(self) -> Lsn {
        Lsn(self.0 + 1)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A shard of the directory, `hash(workflow id) mod count`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u16);

impl ShardId {
    /// Stands for the task scheduler as the sender or the receiver of a message. No directory has so many shards.
    pub const SCHEDULER: ShardId = ShardId(u16::MAX);
}

impl fmt::Display for ShardId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Number of a run within its shard, from 1, never used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunNo(pub u64);

/// Number of an operation within its run, in the order of the calls, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u32);

/// Whose record it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The task scheduler of the directory.
    Scheduler,
    /// A shard.
    Shard(ShardId),
}

impl Source {
    /// The number that stands for it on disk.
    #[must_use]
    pub fn to_code(self) -> u64 {
        match self {
            Source::Scheduler => 0,
            Source::Shard(shard) => u64::from(shard.0) + 1,
        }
    }

    /// The source that a number on disk stands for, if there is one.
    #[must_use]
    pub fn from_code(code: u64) -> Option<Source> {
        match code {
            0 => Some(Source::Scheduler),
            shard => u16::try_from(shard - 1).ok().map(|shard| Source::Shard(ShardId(shard))),
        }
    }
}

/// The shard of a workflow id: FNV-1a over its bytes, its bits mixed, modulo the directory's shard count. Part of the
/// format.
///
/// FNV-1a alone leaves the last byte of a text in a few of the bits: `id0` to `id9` would be one shard's.
#[must_use]
pub fn shard_of(workflow_id: &str, shard_count: u16) -> ShardId {
    let mut hash = workflow_id
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    ShardId((hash % u64::from(shard_count.max(1))) as u16)
}

/// The text by which a run is known outside: its shard and its number there. Unique within a directory.
#[must_use]
pub fn run_id(shard: ShardId, run: RunNo) -> String {
    format!("{}-{}", shard.0, run.0)
}

/// Reads what [`run_id`] wrote.
#[must_use]
pub fn parse_run_id(text: &str) -> Option<(ShardId, RunNo)> {
    let (shard, run) = text.split_once('-')?;
    Some((ShardId(shard.parse().ok()?), RunNo(run.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_differ_in_their_last_letters_are_spread_evenly_over_the_shards() {
        for count in [2_u16, 3, 4, 7, 8, 16] {
            for (prefix, ids) in [("", 800_usize), ("id", 800), ("order-2026-", 800), ("run-", 64)] {
                let mut per_shard = vec![0_usize; usize::from(count)];
                for n in 0..ids {
                    per_shard[usize::from(shard_of(&format!("{prefix}{n}"), count).0)] += 1;
                }
                // Far outside of what chance does, far inside of what one hot thread is.
                let fair = ids / usize::from(count);
                let most = per_shard.iter().max().unwrap();
                assert!(*most < fair * 2 + 4, "{prefix}0 to {prefix}{ids} over {count}: {per_shard:?}");
                let few = (0..10).map(|n| shard_of(&format!("{prefix}{n}"), count));
                assert!(few.collect::<std::collections::BTreeSet<_>>().len() > 1, "ten of {prefix}n over {count}");
            }
        }
    }

    #[test]
    fn the_shard_of_an_id_is_part_of_the_format() {
        let shards: Vec<u16> =
            ["", "a", "id1", "order-2026-000017", "\u{e9}t\u{e9}"].map(|id| shard_of(id, 1_024).0).into();
        assert_eq!(shards, [155, 248, 218, 367, 22]);
    }
}
