//! Durable execution at the speed of the disk, in process.
//!
//! The modules stand in dependency order; `ARCHITECTURE.md` has the table of who may use whom, and
//! `tests/architecture.rs` holds the code to it.

pub mod engine;
pub mod log;
pub mod machine;
// The macro registers nothing in a test build, which would leave the whole module unused there.
#[cfg(all(feature = "node", not(test)))]
mod node;
pub mod record;
pub mod runtime;
pub mod scheduler;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
pub mod store;
