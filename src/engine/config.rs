//! How an engine is opened.

use crate::log::{FileStorage, LogOptions, MemoryStorage, ReadOnlyStorage, Storage};
use crate::machine::Limits;
use crate::record::FIELDS_BYTES_MAX;
use crate::runtime::{CheckpointOptions, Clock, DeclaredSchedules, FlushMode, Relay};
use std::path::PathBuf;
use std::sync::Arc;

/// Where records are kept.
#[derive(Clone)]
pub enum Durability {
    /// In memory. [`crate::engine::ForeignEngine::crash`] loses what was not flushed, as a killed process would.
    Memory(MemoryStorage),
    /// In a directory, made if it is not there.
    Local(PathBuf),
    /// In a directory that is there, is looked at and stays as it is: what is recorded goes into memory.
    ReadOnly(PathBuf),
    /// Wherever the storage keeps them.
    Custom(Arc<dyn Storage>),
}

/// Largest bound of a journal: positions in one are numbers of 32 bits, and the record that reaches the bound comes on
/// top of it.
const JOURNAL_BYTES_CEILING: usize = 1 << 30;

/// Smallest bound of a journal in records.
const JOURNAL_RECORDS_MIN: usize = 10;

/// How an engine is opened.
#[derive(Clone)]
pub struct Config {
    /// Where records are kept.
    pub durability: Durability,
    /// Shards of a new directory; an existing one keeps its own count. Default 8.
    pub shards: u16,
    /// Threads that run the code of the shards: see [`crate::engine::ForeignEngine::join`]. Default 0: the one that opens
    /// runs it.
    pub workers: u16,
    /// With fewer shards than workers there are only so many workers, instead of an error.
    pub may_clamp_workers: bool,
    /// How the log is laid out.
    pub log: LogOptions,
    /// Where the log is written; `None`: `FUSEE_FLUSH` if it is set, else chosen from the cores.
    pub flush: Option<FlushMode>,
    /// Where the time comes from.
    pub clock: Clock,
    /// Definitions that have code here.
    pub definitions: Vec<String>,
    /// Largest encoded value, in bytes. Default 4 MiB.
    pub payload_bytes_max: usize,
    /// Records in the journal of a run; at so many it fails. Default 50,000.
    pub journal_records_max: usize,
    /// Bytes in the journal of a run; at so many it fails. Default 50 MiB, 1 GiB at most.
    pub journal_bytes_max: usize,
    /// Runs that may be open before starts are refused. Default 1,000,000.
    pub open_runs_max: usize,
    /// Carries messages to shards of other processes. Default none.
    pub relay: Option<Arc<dyn Relay>>,
    /// Queues and limits of tasks, and the definitions that have code here. Default: none of them.
    pub tasks: crate::scheduler::Config,
    /// The schedules that code declares, as [`crate::engine::encode_schedule`] writes them. Those declared before and
    /// not now go. `None`: all stay as they are.
    pub schedules: Option<DeclaredSchedules>,
    /// They are checked at the open, and count from [`crate::engine::ForeignEngine::declare_schedules`] on; until then no
    /// schedule does anything, so that an open can still be refused that records none. Default `false`.
    pub holds_schedules: bool,
    /// When checkpoints are made, so that the log is trimmed; `None`: none are, and the log keeps everything. A run store
    /// that is there is read all the same. Default none.
    pub checkpoints: Option<CheckpointOptions>,
}

impl Config {
    /// The defaults, for a place to keep records.
    #[must_use]
    pub fn new(durability: Durability) -> Self {
        Config {
            durability,
            shards: 8,
            workers: 0,
            may_clamp_workers: false,
            log: LogOptions::default(),
            flush: None,
            clock: Clock::System,
            definitions: Vec::new(),
            payload_bytes_max: Limits::default().payload_bytes_max,
            journal_records_max: Limits::default().journal_records_max,
            journal_bytes_max: Limits::default().journal_bytes_max,
            open_runs_max: 1_000_000,
            relay: None,
            tasks: crate::scheduler::Config::default(),
            schedules: None,
            holds_schedules: false,
            checkpoints: None,
        }
    }

    /// What may be recorded, such that the log takes every record.
    pub(super) fn limits(&self) -> Result<Limits, String> {
        let payload_bytes_max = self.payload_bytes_max;
        let max = self.log.record_bytes_max.saturating_sub(FIELDS_BYTES_MAX);
        if payload_bytes_max > max {
            return Err(format!(
                "payload_bytes_max is {payload_bytes_max}; with records of at most {} bytes it can be up to {max}",
                self.log.record_bytes_max
            ));
        }
        let (journal_records_max, journal_bytes_max) = (self.journal_records_max, self.journal_bytes_max);
        if journal_bytes_max > JOURNAL_BYTES_CEILING {
            return Err(format!(
                "journal_bytes_max is {journal_bytes_max}; it can be up to {JOURNAL_BYTES_CEILING}, since a journal is \
                 kept in memory as a whole"
            ));
        }
        if journal_records_max < JOURNAL_RECORDS_MIN {
            return Err(format!(
                "journal_records_max is {journal_records_max}; a run needs at least {JOURNAL_RECORDS_MIN}"
            ));
        }
        Ok(Limits { payload_bytes_max, journal_records_max, journal_bytes_max })
    }

    pub(super) fn storage(&self) -> Result<Arc<dyn Storage>, crate::log::LogError> {
        Ok(match &self.durability {
            Durability::Memory(memory) => Arc::new(memory.clone()),
            Durability::Local(path) => Arc::new(FileStorage::open(path)?),
            Durability::ReadOnly(path) => Arc::new(ReadOnlyStorage::over(Arc::new(FileStorage::open(path)?))),
            Durability::Custom(storage) => Arc::clone(storage),
        })
    }

    /// The flush mode: the environment's word, then the option's.
    pub(super) fn flush_mode(&self) -> Result<Option<FlushMode>, String> {
        match std::env::var("FUSEE_FLUSH").as_deref() {
            Ok("inline") => Ok(Some(FlushMode::Inline)),
            Ok("pipeline") => Ok(Some(FlushMode::Pipeline)),
            Ok("background") => Ok(Some(FlushMode::Background)),
            Ok("auto" | "") | Err(_) => Ok(self.flush),
            Ok(other) => Err(format!("FUSEE_FLUSH is \"{other}\"; it can be inline, pipeline, background or auto")),
        }
    }
}
