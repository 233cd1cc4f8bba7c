//! The task scheduler: queues, their order, attempts, limits, dependencies, schedules.
//!
//! Pure and without input or output of its own: `handle_*` takes an event and the time, `poll_*` yields what is to be
//! recorded and what is to be done. It never reads a clock, a file or chance, never waits and never calls back; its
//! random numbers come from a seed. `docs/scheduler.md` says who holds what and what each step costs.
//!
//! It does not know where records go, which thread runs a function, or what a payload means.

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod attempts;
mod batch;
mod chance;
mod changes;
mod config;
mod cron;
mod dedupe;
mod dependencies;
mod derive;
mod dispatch;
mod engine;
mod fair;
mod head;
mod histogram;
mod lane;
mod launches;
mod learn;
mod life;
pub mod limits;
mod members;
mod metrics;
mod order;
mod orders;
mod output;
mod promises;
mod queue;
mod reserve;
mod restore;
mod retry;
mod run_edges;
mod saved;
mod saving;
mod scaling;
mod schedules;
mod submit;
mod task;
mod tickets;
mod timers;
mod verbs;
mod views;
mod waiting;
mod workers;

pub use crate::record::{Dedupe, DedupeMode, DedupeScope};
pub use attempts::Failure;
pub use config::{Bounds, Config, ConfigError, OnFull, QueueConfig, UnknownKey};
pub use cron::{CronError, CronField, CronProblem, TimingError};
pub use engine::{Engine, Totals};
pub use launches::LaunchOrder;
pub use members::{Member, MemberNo};
pub use order::{ClassOrder, LINES, OrderConfig, RELIEF_PASSES, RELIEF_WAIT_MS};
pub use orders::{OrderAnswer, OrderEnd};
pub use output::{
    AbortReason, Answer, BatchRefusal, Lease, Output, Refusal, Status, StepTicket, Submitted, SubmitterNo, Warning,
};
pub use restore::RestoreError;
pub use scaling::ScaleConfig;
pub use schedules::{
    FireTime, GRACE_MS, QUEUED_MAX, Reconciled, ScheduleError, ScheduleEvent, ScheduleProblem, ScheduleSkip,
    ScheduleView, TIMES_MAX, times_of,
};
pub use task::AttemptNote;
pub use views::{QueueView, Reason, TaskView};

#[cfg(test)]
mod tests;
