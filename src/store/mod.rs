//! The run store: what checkpoints keep of the runs of a directory, in one file.
//!
//! A checkpoint is one transaction: a chunk of journal for each run that changed, heads, indexes of finished runs, the
//! tasks that changed, and the state of each shard and of the scheduler with its position in the log. So what is in the store is always one point in time.
//!
//! It does not know what a record or a head says, beyond the id, type, status and times that it keeps indexes of. It
//! starts no thread, reads no clock, and opens its file through [`StoreFile`] alone.
//!
//! * Every value has a CRC32C over its table, its key and itself. Damage is found when the value is read, and named by
//!   the run that it hits; [`Store::verify`] reads everything. There is no second copy of anything.
//! * The tree underneath is that of redb (`docs/decisions/0015-run-store.md`); none of its types leaves this module, and
//!   no panic of it does.
//! * After an I/O error the store takes nothing more. It can be opened again unless a sync has failed: see
//!   [`Store::trouble`].

mod error;
mod file;
mod head;
mod keys;
mod probe;
mod read;
mod scheduler;
mod sealed;
mod tables;
mod tree;
mod verify;
mod write;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod tests;

pub use error::StoreError;
pub use file::{StoreFile, Trouble};
pub use head::{Head, Stored};
pub use read::{FoundRun, Page, Place, Query};
pub use scheduler::EachValue;
pub use tables::{FORMAT, Identity, Store};
pub use verify::Verified;
pub use write::{Chunk, RunWrite, Writer};
