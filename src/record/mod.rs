//! Bytes and values: identifiers, varints, every record ever written.
//!
//! Pure. Knows nothing of files, of time, or of what a run does with a record. Decoding never panics and never
//! allocates more than the input it was given is long.

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod attributes;
mod decode;
mod encode;
mod failure;
pub mod frame;
#[cfg(test)]
mod golden;
mod ids;
mod journal_file;
mod records;
mod task_codec;
#[cfg(test)]
mod task_golden;
mod tasks;
mod varint;

pub use attributes::{
    Attribute, AttributeEntry, TEXTS_MAX, attributes_in, check_attributes, merge_attributes, write_attribute,
};
pub(crate) use decode::{code, flag, read_caller, small};
pub use encode::renumbered;
pub(crate) use encode::write_caller;
pub use failure::{encode_failure, encode_step_failure};
pub use ids::{Lsn, RunNo, Seq, ShardId, Source, parse_run_id, run_id, shard_of};
pub use journal_file::{Cut, JOURNAL_FILE_FORMAT, JournalFault, JournalFile, JournalFileWriter, JournalWrong};
pub use records::{
    CallSpec, Caller, ChildSpec, FIELDS_BYTES_MAX, IdConflict, IdReuse, NewRun, NewSignal, Numbered, Origin,
    ParentClose, Record, Retry, Sending, Status, TEXT_BYTES_MAX, TaskRole,
};
pub use task_codec::{
    decode_order, decode_schedule, decode_spec, encode_batch, encode_order, encode_ordered, encode_schedule,
    encode_spec, encode_submitted,
};
pub(crate) use task_codec::{read_bounds, read_limit, read_order, write_bounds, write_limit, write_order};
pub use tasks::{
    AttemptEnd, CatchUp, Change, Class, Condition, Dedupe, DedupeMode, DedupeScope, Edge, Launch, LimitSpec, LimitUse,
    Occurrence, OnMiss, Order, Outcome, Overlap, Parent, Reserve, RetryPolicy, ScheduleEntry, ScheduleSpec, TaskNo,
    TaskRecord, TaskSpec, When,
};
pub use varint::{DecodeError, Reader, Writer};
