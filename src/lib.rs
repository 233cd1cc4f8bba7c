//! Durable execution at the speed of the disk, in process.
//!
//! The modules stand in dependency order; `ARCHITECTURE.md` has the table of who may use whom, and
//! `tests/architecture.rs` holds the code to it.

pub mod engine;
pub mod log;
pub mod machine;
#[cfg(feature = "node")]
mod node;
pub mod record;
pub mod runtime;
