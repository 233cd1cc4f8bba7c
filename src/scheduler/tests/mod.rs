//! Tests of the engine, by subject.

mod attempts;
mod bounds;
mod checkpoints;
mod dedupe;
mod dependencies;
mod fair;
mod history;
mod invariants;
mod launches;
mod limits;
mod members;
mod order;
mod ordered;
mod orders;
mod recovery;
mod reference;
mod reference_limits;
mod reserved;
mod scaling;
mod schedules;
mod simulation;
mod store;
mod tickets;
mod views;
mod workers;
mod world;
