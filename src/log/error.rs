//! Why the log refuses or fails.

use crate::record::Lsn;
use std::fmt;
use std::io;
use std::sync::Arc;

/// A refusal or a failure of the log. Each says what happened, where, with which numbers, and what to do.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields are named by the message of each variant")]
pub enum LogError {
    /// Somebody has the directory open.
    Locked { directory: String, holder: String },
    /// Records that were acknowledged are damaged.
    Corrupt { file: String, offset: u64, from: Lsn, detail: String },
    /// A newer version wrote the directory.
    Newer { file: String, found: u32, supported: u32 },
    /// The disk is full; nothing was lost.
    Full { file: String, needed_bytes: u64 },
    /// The log failed before.
    Poisoned { reason: Arc<str> },
    /// It is closed.
    Closed,
    /// A record is larger than the log takes.
    TooLarge { bytes: usize, max_bytes: usize },
    /// The directory cannot be used, whatever is in it.
    Directory { directory: String, detail: String },
    /// What belongs to the log refuses to go with it; in its own words.
    Refused { reason: Arc<str> },
    /// The system failed.
    Io { operation: &'static str, file: String, kind: io::ErrorKind, detail: String },
}

impl LogError {
    pub(super) fn io(operation: &'static str, file: &str, error: &io::Error) -> Self {
        LogError::Io { operation, file: file.into(), kind: error.kind(), detail: error.to_string() }
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Locked { directory, holder } => write!(
                formatter,
                "directory \"{directory}\" is open already ({holder}); close it there, or open another directory"
            ),
            LogError::Corrupt { file, offset, from, detail } => write!(
                formatter,
                "{file} is damaged at offset {offset}, from record {from} on: {detail}; nothing was changed, restore a \
                 copy of the directory"
            ),
            LogError::Newer { file, found, supported } => write!(
                formatter,
                "{file} has format {found}, this version knows formats up to {supported}; nothing was changed, use the \
                 newer version"
            ),
            LogError::Full { file, needed_bytes } => write!(
                formatter,
                "the disk is full: {needed_bytes} bytes for {file}; nothing is lost, make space and it goes on by itself"
            ),
            LogError::Poisoned { reason } => write!(
                formatter,
                "the log has failed and takes nothing more ({reason}); what was acknowledged is safe, open it again"
            ),
            LogError::Closed => formatter.write_str("the log is closed"),
            LogError::TooLarge { bytes, max_bytes } => {
                write!(formatter, "a record of {bytes} bytes is over the limit of {max_bytes}")
            }
            LogError::Directory { directory, detail } => {
                write!(formatter, "directory \"{directory}\" cannot be used: {detail}")
            }
            LogError::Refused { reason } => formatter.write_str(reason),
            LogError::Io { operation, file, detail, .. } => write!(formatter, "could not {operation} {file}: {detail}"),
        }
    }
}

impl std::error::Error for LogError {}
