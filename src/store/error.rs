//! Why the store refuses or fails.

use crate::record::{RunNo, ShardId, run_id};
use std::fmt;

/// A refusal or a failure of the store. Each says what happened, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are named by the message of each variant")]
pub enum StoreError {
    /// Something in it is damaged; what.
    Damaged { what: String },
    /// A newer version wrote it.
    Newer { found: u32, supported: u32 },
    /// It belongs to another directory.
    Foreign { detail: String },
    /// The disk is full.
    Full { detail: String },
    /// The system failed.
    Io { detail: String },
}

impl StoreError {
    pub(super) fn damaged_run(shard: ShardId, no: RunNo, what: &str) -> Self {
        StoreError::Damaged { what: format!("{what} of run {}", run_id(shard, no)) }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Damaged { what } => {
                write!(
                    formatter,
                    "the run store is damaged: {what}; nothing was changed, restore a copy of the directory"
                )
            }
            StoreError::Newer { found, supported } => write!(
                formatter,
                "the run store has format {found}, this version knows formats up to {supported}; nothing was changed, use \
                 the newer version"
            ),
            StoreError::Foreign { detail } => write!(
                formatter,
                "the run store does not belong to the log beside it: {detail}; nothing was changed, restore both from one \
                 copy"
            ),
            StoreError::Full { detail } => {
                write!(formatter, "the disk is full, the run store could not be written: {detail}")
            }
            StoreError::Io { detail } => write!(formatter, "the run store failed: {detail}"),
        }
    }
}

impl std::error::Error for StoreError {}

/// What redb says, in our words.
pub(super) fn fault(error: impl Into<redb::Error>) -> StoreError {
    match error.into() {
        redb::Error::Corrupted(detail) => StoreError::Damaged { what: detail },
        redb::Error::Io(error) if is_full(&error) => StoreError::Full { detail: error.to_string() },
        // The file ends before what it says is in it.
        redb::Error::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            StoreError::Damaged { what: error.to_string() }
        }
        redb::Error::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            StoreError::Damaged { what: error.to_string() }
        }
        other => StoreError::Io { detail: other.to_string() },
    }
}

pub(super) fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
}

/// The tree trusts what it reads and may panic over a damaged file: that is an error like any other.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic of unknown kind");
        Err(StoreError::Damaged { what: format!("its tree is not whole ({text})") })
    })
}
