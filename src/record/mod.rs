//! Bytes and values: identifiers, varints, every record ever written.
//!
//! Pure. Knows nothing of files, of time, or of what a run does with a record. Decoding never panics and never
//! allocates more than the input it was given is long.

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod ids;
mod varint;

pub use ids::{Lsn, RunNo, Seq, ShardId, Source};
pub use varint::{DecodeError, Reader, Writer};
