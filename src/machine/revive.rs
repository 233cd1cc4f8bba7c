//! A run that has ended, or that was exported, brought back by itself to be looked at: its code replays, and nothing
//! comes of it.

use super::limits::Limits;
use super::run::RunIx;
use super::shard::Shard;
use crate::record::{Lsn, Numbered, Record, Seq, ShardId};

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
        self.run(run).end()?;
        Shard::of_journal(self.id, self.count, self.limits, &mut self.history(run))
    }

    /// A shard, one of `count`, with the run of these records alone, as it was before it ended, its code not in memory.
    /// The records are those of a journal from its start on; `None`: there is none.
    #[must_use]
    pub fn of_journal<'a>(
        id: ShardId,
        count: u16,
        limits: Limits,
        records: &mut dyn Iterator<Item = Numbered<'a>>,
    ) -> Option<Shard> {
        let mut shard = Shard::new(id, count);
        // What is asked for behind the last record must not end it a second time.
        shard.set_limits(Limits { journal_records_max: usize::MAX, journal_bytes_max: usize::MAX, ..limits });
        let (mut revived, mut bytes) = (None, Vec::new());
        for entry in records {
            if matches!(entry.record, Record::Done { .. }) {
                continue;
            }
            bytes.clear();
            entry.record.encode(&mut bytes);
            shard.last = entry.lsn;
            revived = shard.apply_simple(entry.lsn, &entry.record, &bytes, revived, &mut None);
        }
        let open = shard.open_mut(revived?)?;
        // Also a first turn is a replay: no body may run.
        open.is_recovered = true;
        // Nobody is going to resume it, and a replay is no going on.
        open.is_held = false;
        Some(shard)
    }

    /// The first record that tells of an operation: its place in the journal, from 0, and its number.
    #[must_use]
    pub fn first_of(&self, run: RunIx, seq: Seq) -> Option<(usize, Lsn)> {
        let place = self.history(run).enumerate().find(|(_, entry)| entry.record.operation() == Some(seq));
        place.map(|(place, entry)| (place, entry.lsn))
    }

    /// The number that a record gets which nobody keeps.
    #[must_use]
    pub fn next_lsn(&self) -> Lsn {
        Lsn(self.last.0 + 1)
    }
}
