//! A run that has ended, brought back by itself to be looked at: its code replays, and nothing comes of it.

use super::limits::Limits;
use super::run::RunIx;
use super::shard::Shard;
use crate::record::{Lsn, Record, ShardId};

/// The one run of a shard that was made for it.
pub const REVIVED: RunIx = RunIx(0);

impl Shard {
    /// Number of the shard.
    #[must_use]
    pub fn id(&self) -> ShardId {
        self.id
    }

    /// A shard with this run alone, as it was before it ended, its code not in memory. `None`: it has not ended, or its
    /// journal is not kept any more.
    #[must_use]
    pub fn revived(&self, run: RunIx) -> Option<Shard> {
        let target = self.run(run);
        target.end()?;
        let mut shard = Shard::new(self.id, self.count);
        // What is asked for behind the last record must not end it a second time.
        shard.set_limits(Limits { journal_records_max: usize::MAX, journal_bytes_max: usize::MAX, ..self.limits });
        let mut revived = None;
        for (_, entry) in target.journal.entries() {
            if matches!(entry.record, Record::Done { .. }) {
                continue;
            }
            let mut bytes = Vec::new();
            entry.record.encode(&mut bytes);
            shard.last = entry.lsn;
            revived = shard.apply_simple(entry.lsn, &entry.record, &bytes, revived, &mut None);
        }
        let open = shard.open_mut(revived?)?;
        // Also a first turn is a replay: no body may run.
        open.is_recovered = true;
        Some(shard)
    }

    /// The number that a record gets which nobody keeps.
    #[must_use]
    pub fn next_lsn(&self) -> Lsn {
        Lsn(self.last.0 + 1)
    }
}
