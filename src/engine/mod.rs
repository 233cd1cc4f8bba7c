//! The Rust API: an engine whose workflow code runs in a host language's event loop.
//!
//! The host calls [`ForeignEngine::tick`] when it is notified or when something falls due, runs what it is told to, and
//! says through the verbs what its code asks for and how step bodies ended. It knows no JS.

mod commands;
mod config;
mod error;
mod events;
mod foreign;
mod host;
mod keys;
mod reads;
mod rewind;
mod rows;
mod tick;

#[cfg(test)]
mod tests;

pub use commands::StartRequest;
pub use config::{Config, Durability};
pub use error::{EngineError, ErrorCode};
pub use events::{Event, EventKind, Events, FIELD, ROW};
pub use foreign::{ForeignEngine, Run};
pub use host::{Completed, Slot, StepAnswer};
pub use keys::idempotency_key;
pub use rewind::{Past, PastEnd};

pub use crate::log::MemoryStorage;
pub use crate::machine::{Delivery, DeliveryKind, Explanation, Filter, Halt, Marks, StepMode};
pub use crate::record::{
    ChildSpec, IdConflict, IdReuse, Lsn, ParentClose, Retry, RunNo, Sending, Seq, ShardId, Status,
};
pub use crate::runtime::{Clock, FlushMode, Relay, Token};
