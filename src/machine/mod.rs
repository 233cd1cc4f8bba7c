//! The deterministic state of a shard: its runs, their journals and open operations, its timers and its outbox.
//!
//! Pure: a verb takes the time and an input, appends records through a [`Sink`] that hands out their numbers, and
//! leaves [`Effect`]s for whoever drives it. It never reads a clock, a file or chance, never waits and never calls
//! back. What a record does to the state is written once, in `apply`, for live work and for recovery alike.
//!
//! **The journal decides.** Everything from outside (a step's result, a fired timer, a signal, a child's end, a
//! cancel) is recorded on arrival and handed to the code in the order of the records, one at a time. So the code's
//! state is a function of its journal, and a replay is the same walk over the same entries.
//!
//! It does not know where records go, which thread runs the code, or what a payload means.

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod admission;
mod apply;
mod attempts;
mod attributes;
mod awakeables;
mod branching;
mod calls;
mod checkpoint;
mod code;
mod commands;
mod compound;
mod continuing;
mod copying;
mod filter;
mod handover;
mod index;
mod journal;
mod journal_bounds;
mod limits;
mod message_codec;
mod messages;
mod ops;
mod patches;
mod pausing;
mod restore;
mod revive;
mod run;
mod shard;
mod stuck;
mod timers;
mod updates;
mod views;
mod waking;
mod walk;

#[cfg(test)]
mod tests;

pub use admission::Enqueued;
pub use attempts::Attempt;
pub use attributes::{check_attributes_kept, check_attributes_set};
pub use branching::{Border, Branch};
pub use calls::{CallAnswer, OBJECT_PREFIX};
pub use checkpoint::{EndedRun, Missing, SavedName, SavedRecords, SavedRun};
pub use code::{Halt, OpenedStep, StepMode, TimerMode};
pub use commands::{Refusal, StartCommand, Started, Target};
pub use continuing::NextRun;
pub use copying::{CopiedRun, copied_names};
pub use filter::{EndedHint, Filter, Test, Value};
pub use journal::JournalSize;
pub use limits::{Limits, check_actor, check_text};
pub use messages::{Body, Message, Outbox, OwnedChild, OwnedLaunch};
pub use restore::RestoreError;
pub use revive::REVIVED;
pub use run::RunIx;
pub use shard::{Effect, Metrics, Shard, Sink, Work};
pub use stuck::{Described, Stuck};
pub use updates::{KnownUpdate, NewUpdate, UpdateAnswer};
pub use views::{Explanation, Marks, RunView};
pub use walk::{Delivery, DeliveryKind};
