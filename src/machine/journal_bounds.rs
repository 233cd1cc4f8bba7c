//! A run's journal does not grow for ever: a run that reaches a bound of its journal fails.
//!
//! A replay costs what the journal is long, and all of it is in memory. The decision is recorded as the run's end, and
//! nothing is decided when records are taken back: a run replays the same under other limits.

use super::journal::JournalSize;
use super::limits::Limits;
use super::run::RunIx;
use super::shard::{Effect, Shard, Work};
use crate::record::{Status, encode_failure};

impl Limits {
    fn is_reached(&self, size: JournalSize) -> bool {
        size.records >= self.journal_records_max || size.bytes >= self.journal_bytes_max
    }

    fn is_half_reached(&self, size: JournalSize) -> bool {
        size.records >= self.journal_records_max.div_ceil(2) || size.bytes >= self.journal_bytes_max.div_ceil(2)
    }
}

impl Shard {
    /// How long the journal of a run is.
    #[must_use]
    pub fn journal_size(&self, run: RunIx) -> JournalSize {
        self.run(run).journal.size()
    }

    /// What may be recorded.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Looks at the journal of a run after something was recorded in it.
    pub(super) fn bound_journal(&mut self, work: &mut Work<'_>, run: RunIx, before: JournalSize) {
        let size = self.journal_size(run);
        // An object has its state to lose; its code looks at how long a call has become, and leaves a long journal.
        if !self.limits.is_half_reached(size) || self.run(run).open().is_none() || self.is_object(run) {
            return;
        }
        if self.limits.is_reached(size) {
            let message = format!(
                "the journal of workflow \"{}\" has {} records and {} bytes; the limits are {} records \
                 (journalRecordsMax) and {} bytes (journalBytesMax): divide the work among child workflows",
                self.run(run).id,
                size.records,
                size.bytes,
                self.limits.journal_records_max,
                self.limits.journal_bytes_max
            );
            let failure = encode_failure("JournalLimitError", "JOURNAL_LIMIT", &message);
            self.done(work, run, Status::Failed, failure.as_bytes(), None, None);
        } else if !self.limits.is_half_reached(before) {
            work.effects.push(Effect::JournalHalf(run));
        }
    }
}
