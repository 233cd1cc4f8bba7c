//! Named limits that tasks and steps share: how many at a time, or how many in a time, in all or for each key.
//!
//! A [`Claim`] names everything that one attempt takes. It is taken whole or not at all; whoever cannot take it waits
//! at the first limit that is short, and holds nothing meanwhile. When units come back, one waiter of each group (a
//! queue, or the steps) is woken and competes for a slot of its own; it holds nothing until it takes.
//!
//! **Nobody starves.** Whoever has seen [`BYPASSES_MAX`] others take from the limit it waits at is *protected*: from then
//! on nobody takes from any limit of its claim before it, save those protected earlier. So a large request is passed by
//! at most that many takes of others, then the units that come back are kept for it, and the order in which claims
//! became protected is one order over all limits, so two of them cannot wait for each other.
//!
//! Only limits that can be met protect: not those of a queue that is paused or has no workers, nor a request for more
//! than the limit was shrunk to.

mod bucket;
mod machine;
#[cfg(test)]
mod tests;

pub use machine::{BYPASSES_MAX, Claim, ClaimIx, Group, LimitError, LimitIx, Limits, Usage, Want};
