//! The shared log: one append-only sequence of segment files for everything in a directory.
//!
//! With `store`, the only module that opens files. It does not know what a record means, starts no thread and reads no
//! clock.
//!
//! * Appending takes a number and copies bytes; [`Log::flush`] makes everything appended so far durable with one write
//!   a group of frames. One flush is in flight; what arrives meanwhile goes into the next.
//! * After a write or flush of unknown extent the log is poisoned: nothing more is appended or acknowledged, and a failed
//!   flush is never tried again on the same file. A full disk that has written nothing is no poison.
//! * Each open writes a segment of its own, with an epoch of its own. Recovery tells a torn tail from damage by the
//!   watermark in later frames and in the segment's header, and copies what lies past the last watermark before anything
//!   rests on it.
//! * On a full disk the reserve becomes a segment for what is urgent; while it is gone the log takes nothing else.
//!
//! Planted bugs, to test the tests: `RUSTFLAGS='--cfg fusee_mutant="flush_skipped"'`, likewise `watermark_frozen`,
//! `tail_not_copied`, `tail_not_cut`, `failed_flush_retried`, `segment_named_early`, `truncation_undetected`,
//! `trim_unsynced`.

mod appender;
mod device;
mod direct_file;
mod error;
mod file_storage;
mod gone;
mod memory_storage;
mod read_only;
mod recovery;
mod reserve;
mod segment;
mod storage;
mod system;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod tests;

pub use appender::{GoesOn, Kick, Log, LogOptions, LogState, copy_file};
pub use error::LogError;
pub use file_storage::FileStorage;
pub use memory_storage::MemoryStorage;
pub use read_only::ReadOnlyStorage;
pub use recovery::{Found, Opened};
pub use storage::{LockGuard, Storage, StorageFile};
