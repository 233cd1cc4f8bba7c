//! The task scheduler: queues, their order, attempts, limits, dependencies, schedules.
//!
//! Pure and without input or output of its own: `handle_*` takes an event and the time, `poll_*` yields what is to be
//! recorded and what is to be done. It never reads a clock, a file or chance, never waits and never calls back; its
//! random numbers come from a seed. `docs/scheduler.md` says who holds what and what each step costs.
//!
//! It does not know where records go, which thread runs a function, or what a payload means.

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod limits;
