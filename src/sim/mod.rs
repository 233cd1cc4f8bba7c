//! The simulator: the real engine, its log in memory, scripted workflows, crashes at any moment, all from one seed.
//!
//! Oracles, by law of `design.md`:
//!
//! * LAW-1: what was acknowledged (a start, a signal, a result) is there after every crash, and a result never changes.
//! * LAW-2: when a body ran, what its code had seen by then is what every later replay shows it at that place.
//! * LAW-3: a child's end reaches its parent although either side may have crashed in between.
//! * LAW-8: nothing that waits is without a reason, and once the crashes stop everything ends.
//!
//! A failing seed is printed; `FUSEE_SEED=n` runs it alone.

mod chance;
mod host;
mod script;

pub use chance::Chance;
pub use host::{Report, Simulation};
