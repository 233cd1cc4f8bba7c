//! Tests of the machine, by subject: given records and verbs, when something happens, then records, deliveries, effects.

mod checkpoint;
mod children;
mod journal;
mod limits;
mod restore;
mod signals;
mod starts;
mod steps;
mod stuck;
mod timers;
mod world;
