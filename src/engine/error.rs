//! What a verb of the engine refuses, with a stable code.

use crate::log::LogError;
use crate::machine::Refusal;
use crate::runtime::GroupError;
use crate::store::StoreError;
use std::fmt;

/// Stable codes; each has one class in the SDK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// The log failed; nothing is recorded any more. Reopen.
    Storage,
    /// The disk is full. Nothing is lost, and it goes on by itself once there is space.
    StorageFull,
    /// Records that were acknowledged are damaged.
    LogCorrupt,
    /// Somebody else has the directory open.
    Locked,
    /// The directory was written by a newer version.
    NewerFormat,
    /// The engine is closed.
    Closed,
    /// There is no such run, or it has ended and takes nothing any more.
    NotFound,
    /// The id policies refuse the start.
    AlreadyStarted,
    /// A bound is reached.
    Busy,
    /// The run's type has no definition here.
    Unregistered,
    /// The bytes of an exported run cannot be read. The message has the offset before it.
    JournalFile,
    /// The caller gave something that cannot be.
    BadInput,
}

impl ErrorCode {
    /// Its text in the crossing to the host.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            ErrorCode::Storage => "STORAGE",
            ErrorCode::StorageFull => "STORAGE_FULL",
            ErrorCode::LogCorrupt => "LOG_CORRUPT",
            ErrorCode::Locked => "LOCKED",
            ErrorCode::NewerFormat => "NEWER_FORMAT",
            ErrorCode::Closed => "CLOSED",
            ErrorCode::NotFound => "NOT_FOUND",
            ErrorCode::AlreadyStarted => "ALREADY_STARTED",
            ErrorCode::Busy => "BUSY",
            ErrorCode::Unregistered => "UNREGISTERED",
            ErrorCode::JournalFile => "JOURNAL_FILE",
            ErrorCode::BadInput => "BAD_INPUT",
        }
    }
}

/// A refusal: its code, and a text that says what happened, to which id, with which numbers, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineError {
    /// Its stable code.
    pub code: ErrorCode,
    /// What happened and what to do.
    pub message: String,
}

impl EngineError {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        EngineError { code, message: message.into() }
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for EngineError {}

impl From<Refusal> for EngineError {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal {
            Refusal::NotFound(_) | Refusal::Ended(..) => ErrorCode::NotFound,
            Refusal::AlreadyStarted(_) => ErrorCode::AlreadyStarted,
            Refusal::Busy(_) => ErrorCode::Busy,
            Refusal::BadInput(_) => ErrorCode::BadInput,
        };
        EngineError::new(code, refusal.to_string())
    }
}

impl From<GroupError> for EngineError {
    fn from(error: GroupError) -> Self {
        match error {
            GroupError::Log(error) => error.into(),
            GroupError::Store(ref reason) => EngineError::new(store_code(reason), error.to_string()),
            GroupError::Record(..) | GroupError::UnfinishedCopy => {
                EngineError::new(ErrorCode::LogCorrupt, error.to_string())
            }
            GroupError::Shards(text) => EngineError::new(ErrorCode::BadInput, text),
            GroupError::Tasks(error) => EngineError::new(ErrorCode::BadInput, error.to_string()),
            GroupError::Schedule(error) => EngineError::new(ErrorCode::BadInput, error.to_string()),
        }
    }
}

impl From<LogError> for EngineError {
    fn from(error: LogError) -> Self {
        let code = match error {
            LogError::Locked { .. } => ErrorCode::Locked,
            LogError::Corrupt { .. } => ErrorCode::LogCorrupt,
            LogError::Newer { .. } => ErrorCode::NewerFormat,
            LogError::Full { .. } => ErrorCode::StorageFull,
            LogError::Closed => ErrorCode::Closed,
            LogError::TooLarge { .. } => ErrorCode::BadInput,
            _ => ErrorCode::Storage,
        };
        EngineError::new(code, error.to_string())
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        EngineError::new(store_code(&error), error.to_string())
    }
}

fn store_code(error: &StoreError) -> ErrorCode {
    match error {
        StoreError::Damaged { .. } | StoreError::Foreign { .. } => ErrorCode::LogCorrupt,
        StoreError::Newer { .. } => ErrorCode::NewerFormat,
        StoreError::Full { .. } => ErrorCode::StorageFull,
        StoreError::Io { .. } => ErrorCode::Storage,
    }
}

pub(super) fn bad_input(text: String) -> EngineError {
    EngineError::new(ErrorCode::BadInput, text)
}
