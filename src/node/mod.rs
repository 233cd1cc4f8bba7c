//! The addon: converts, calls the engine, converts. The only module that knows JS.
//!
//! An engine is a plain object of functions made from closures (methods of classes cost several times as much a call).
//! Only numbers, codes and texts cross; objects and classes are built in JS. Every entry catches panics. Waking the host
//! is one threadsafe function, called once until the host ticks.

mod attribute_texts;
mod branching;
mod client;
mod code;
#[cfg(feature = "count-bytes")]
mod count_bytes;
mod export;
mod fault;
mod groups;
mod heads;
mod items;
mod journals;
mod objects;
mod open;
mod schedules;
mod task_texts;
mod tasks;
mod updates;
