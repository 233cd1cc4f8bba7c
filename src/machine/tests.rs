//! Tests of the machine, by subject: given records and verbs, when something happens, then records, deliveries, effects.

mod admission;
mod awakeables;
mod branching;
mod checkpoint;
mod children;
mod continuing;
mod hostile;
mod journal;
mod limits;
mod objects;
mod pausing;
mod restore;
mod revive;
mod search;
mod signals;
mod starts;
mod steps;
mod stuck;
mod timers;
mod updates;
mod world;
