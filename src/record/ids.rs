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

/// The shard of a workflow id: FNV-1a over its bytes, modulo the directory's shard count. Part of the format.
#[must_use]
pub fn shard_of(workflow_id: &str, shard_count: u16) -> ShardId {
    let hash = workflow_id
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    ShardId(((hash >> 17) % u64::from(shard_count.max(1))) as u16)
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
