//! Introduces machine and scheduler to the log and the run store: shards and tasks behind their locks, what waits for the
//! disk, messages between shards and scheduler, timers, the flusher; threads that share it all, and who of them runs which
//! code.
//!
//! The only module that reads clocks and starts threads. It does not know JS, nor the shape of the public API.
//!
//! * Lock order: shard, scheduler, log. One shard's lock at a time: messages are applied after the sender's lock is released.
//! * No lock but the log's device lock is held over a flush.
//! * Everything that leaves the process is released in [`held`], by LSN, and nowhere else.

mod backup;
mod cell;
mod checkpoint;
mod checkpointer;
mod clock;
mod flusher;
mod gauge;
mod ghosts;
mod group;
mod held;
mod loading;
mod offers;
mod opening;
mod orders;
mod outputs;
mod parts;
mod past;
mod places;
mod resend;
mod saved_tasks;
mod store_files;
mod tasks;
mod threads;
mod watchdog;

pub use crate::store::Page as StorePage;
pub use backup::Done;
pub use cell::{HostEvent, Output, Question, ShardCell, Token};
pub use checkpointer::{CheckpointError, CheckpointOptions};
pub use clock::Clock;
pub use flusher::FlushMode;
pub use group::Group;
pub use held::Held;
pub use offers::{Accepted, Offer, Offers};
pub use opening::{GroupError, GroupOptions, Opened, Relay};
pub use orders::attempt_notes;
pub use outputs::Outputs;
pub use past::{PastPlace, Recalled};
pub use places::{Place, Right};
pub use tasks::{DeclaredSchedules, TaskCell, TaskEnd, TaskEvent, TaskWork, specs_of};
pub use watchdog::Blocked;
