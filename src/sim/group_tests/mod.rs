//! Tests of groups: several hosts over one log, in one thread by the draw of a seed, and on threads of their own.

mod calls;
mod histories;
mod loss;
mod rig;
mod threads;
