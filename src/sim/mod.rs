//! The simulator: the whole engine over a disk, a clock and a host that one number decides about.
//!
//! A seed makes workflow programs, clients, crashes at any moment and in any call to the disk, failing calls, and a
//! calm end in which everything must finish. In half of the seeds the code runs on several simulated threads of a group,
//! which die, are seized and go on without knowing it, come back, and take over from one another; any of them works next. [`oracle`] says what must be true all the time. A seed is one thread and
//! reads no clock and no chance of its own: the same seed does the same again.
//!
//! Damage to what was synced is done to copies of the directory, which have to be refused or to hold everything that a
//! later frame vouches for.
//!
//! `cargo test sim` runs a sample, `cargo run --release --features sim --bin sim -- --seeds 20000` a full round;
//! `FUSEE_SEED=n` runs one seed and prints what happened.

mod bodies;
mod calm;
mod clients;
mod climate;
mod code;
mod crashes;
mod disk;
mod host;
mod journal;
mod oracle;
mod process;
mod program;
mod rng;
mod world;

#[cfg(test)]
mod backup_tests;
#[cfg(test)]
mod checkpoint_task_tests;
#[cfg(test)]
mod checkpoint_tests;
#[cfg(test)]
mod group_tests;
#[cfg(test)]
mod log_tests;
#[cfg(test)]
mod tests;

pub use disk::{Faults, SimDisk};
pub use rng::Rng;
pub use world::Report;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs one seed. The error says which law was broken and how.
pub fn run_seed(seed: u64) -> Result<Report, String> {
    run(&mut world::World::new(seed, false))
}

/// The same, with everything that happened.
pub fn trace_seed(seed: u64) -> (Result<Report, String>, Vec<String>) {
    let mut world = world::World::new(seed, true);
    let result = run(&mut world);
    (result, world.take_trace())
}

fn run(world: &mut world::World) -> Result<Report, String> {
    catch_unwind(AssertUnwindSafe(|| world.run())).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        Err(format!(
            "LAW-11: a panic: {}",
            text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("of unknown kind")
        ))
    })
}
