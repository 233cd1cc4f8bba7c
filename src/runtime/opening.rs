//! What opening a directory takes and gives: options, what was found, why it cannot be, and the record that begins it.

use super::backup::UNFINISHED_COPY;
use super::checkpointer::CheckpointOptions;
use super::clock::Clock;
use super::flusher::FlushMode;
use super::store_files::STORE_NAME;
use super::tasks::DeclaredSchedules;
use crate::log::{LogError, LogOptions, Storage};
use crate::machine::{Limits, Message};
use crate::record::{Lsn, ShardId};
use crate::store::StoreError;
use std::fmt;
use std::sync::Arc;

/// How a directory is opened.
pub struct GroupOptions {
    /// Where the log lives.
    pub storage: Arc<dyn Storage>,
    /// How the log is laid out.
    pub log: LogOptions,
    /// Shards of a new directory. An existing one keeps its own count.
    pub shards: u16,
    /// Threads that run the code of its shards, besides whoever opens it; 0: the opener runs it itself.
    pub workers: u16,
    /// With fewer shards than workers there are only so many workers, instead of an error.
    pub may_clamp_workers: bool,
    /// Where the time comes from.
    pub clock: Clock,
    /// Where the log is written; `None`: chosen from the cores.
    pub flush: Option<FlushMode>,
    /// The storage needs no waiting: it is memory.
    pub is_memory: bool,
    /// How large is what may be recorded.
    pub limits: Limits,
    /// Carries messages to shards of other processes.
    pub relay: Option<Arc<dyn Relay>>,
    /// Queues and limits of tasks.
    pub tasks: crate::scheduler::Config,
    /// The schedules that code declares. `None`: those there are stay as they are.
    pub schedules: Option<DeclaredSchedules>,
    /// They are checked and wait for [`crate::scheduler::Engine::handle_reconcile`]; until then no schedule does anything.
    pub holds_schedules: bool,
    /// When checkpoints are made; `None`: none are. A run store that is there is read all the same.
    pub checkpoints: Option<CheckpointOptions>,
}

/// Carries messages to shards that are not in this process. May drop and repeat them, never reorder those of one
/// sender to one receiver.
pub trait Relay: Send + Sync {
    /// Whether a shard is elsewhere.
    fn is_remote(&self, shard: ShardId) -> bool;
    /// Takes a message whose sender's record is durable.
    fn send(&self, message: &Message);
    /// Takes word that a message from a shard elsewhere, and every earlier one of that sender to that receiver, has a
    /// durable record here: for [`Group::acknowledge`] there.
    fn acknowledge(&self, sender: ShardId, receiver: ShardId, number: u64);
}

/// What opening found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Opened {
    /// The directory was new.
    pub is_new: bool,
    /// The last close was orderly.
    pub is_clean: bool,
    /// Records read from the log and applied: those that the run store did not have.
    pub records: u64,
    /// The newest record.
    pub last: Lsn,
    /// Bytes of an unfinished write that were put aside.
    pub torn_bytes: u64,
    /// Runs that have not ended.
    pub open_runs: usize,
}

/// Why a directory cannot be opened.
#[derive(Debug)]
pub enum GroupError {
    /// The log's own reason.
    Log(LogError),
    /// A record cannot be understood.
    Record(Lsn, String),
    /// The run store cannot be read, or is not the one of this log.
    Store(StoreError),
    /// The directory belongs to another shard count, or the count is out of range.
    Shards(String),
    /// It is a copy that was not finished.
    UnfinishedCopy,
    /// Queues or limits are defined as they cannot be.
    Tasks(crate::scheduler::ConfigError),
    /// A declared schedule is refused, and with it all of them.
    Schedule(crate::scheduler::ScheduleError),
}

impl fmt::Display for GroupError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupError::Log(error) => error.fmt(formatter),
            GroupError::Store(error) => write!(formatter, "file \"{STORE_NAME}\": {error}"),
            GroupError::Record(lsn, text) => write!(formatter, "record {lsn} cannot be understood: {text}"),
            GroupError::UnfinishedCopy => write!(
                formatter,
                "the directory is a copy that was not finished, as its file \"{UNFINISHED_COPY}\" says; nothing was changed, \
                 make another copy with engine.backup, or open one that is whole"
            ),
            GroupError::Shards(text) => formatter.write_str(text),
            GroupError::Tasks(error) => error.fmt(formatter),
            GroupError::Schedule(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for GroupError {}

impl From<LogError> for GroupError {
    fn from(error: LogError) -> Self {
        GroupError::Log(error)
    }
}

/// A directory has at most so many shards.
pub(super) const SHARDS_MAX: u16 = 1_024;

/// The first record of a directory: its shard count, as a record of the scheduler's source.
pub(super) fn settings(shard_count: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = crate::record::Writer::new(&mut bytes);
    writer.byte(SETTINGS);
    writer.number(u64::from(shard_count));
    bytes
}

pub(super) fn read_settings(bytes: &[u8]) -> Result<u16, String> {
    let mut reader = crate::record::Reader::new(bytes);
    let count = (|| {
        let kind = reader.byte()?;
        let count = reader.number()?;
        Ok::<_, crate::record::DecodeError>((kind, count))
    })()
    .map_err(|error| error.to_string())?;
    match count {
        (SETTINGS, count) if (1..=u64::from(SHARDS_MAX)).contains(&count) => Ok(count as u16),
        (kind, count) => Err(format!("settings of kind {kind} with {count} shards")),
    }
}

/// Kind of the settings record.
pub(super) const SETTINGS: u8 = 1;
