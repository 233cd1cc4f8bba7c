//! The Rust API: an engine whose workflow code runs in a host language's event loop.
//!
//! The host calls [`ForeignEngine::tick`] when it is notified or when something falls due, runs what it is told to, and
//! says through the verbs what its code asks for and how step bodies ended. It knows no JS.

mod awakeables;
mod backup;
mod branching;
mod commands;
mod config;
mod enqueue;
mod error;
mod events;
mod foreign;
mod host;
mod journals;
mod keys;
mod objects;
mod parts;
mod reads;
mod revive;
mod rewind;
mod rows;
mod schedule_rows;
mod schedules;
mod task_changes;
mod task_rows;
mod tasks;
mod tick;
mod updates;

#[cfg(test)]
mod enqueue_tests;
#[cfg(test)]
mod task_tests;
#[cfg(test)]
mod tests;

pub use branching::BranchRequest;
pub use commands::{StartRequest, StartWith};
pub use config::{Config, Durability};
pub use error::{EngineError, ErrorCode};
pub use events::{Event, EventKind, Events, FIELD, PART, ROW, TEXT};
pub use foreign::{ForeignEngine, Run};
pub use host::{Completed, Slot, StepAnswer};
pub use keys::idempotency_key;
pub use parts::Joinable;
pub use rewind::{Past, PastEnd};
pub use task_changes::TaskChange;
pub use tasks::{TaskFilter, TaskOutcome, parse_task_id, status_code, task_id};

pub use crate::log::MemoryStorage;
pub use crate::machine::{
    Border, CallAnswer, Delivery, DeliveryKind, Explanation, Filter, Halt, Marks, NewUpdate, StepMode, Test, TimerMode,
    Value,
};
pub use crate::record::{
    Attribute, CallSpec, ChildSpec, Cut, IdConflict, IdReuse, Lsn, NewSignal, ParentClose, Retry, RunNo, Sending, Seq,
    ShardId, Status, TEXTS_MAX, TaskRole, write_attribute,
};
pub use crate::record::{
    CatchUp, Class, Condition, Edge, Launch, LimitSpec, LimitUse, OnMiss, Overlap, Parent, Reserve, RetryPolicy,
    ScheduleSpec, TaskNo, TaskSpec, When, encode_schedule,
};
pub use crate::runtime::{Accepted, CheckpointOptions, Clock, DeclaredSchedules, FlushMode, Place, Relay, Token};
pub use crate::scheduler::{
    Bounds, Config as TaskConfig, Dedupe, DedupeMode, DedupeScope, Lease, Member, OnFull, QueueConfig, ScaleConfig,
    UnknownKey,
};
