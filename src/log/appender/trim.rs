//! Trimming: whole segments that nobody needs any more are removed, the oldest first.

use super::{Log, POISONED};
use crate::log::LogError;
use crate::log::segment::segment_name;
use crate::record::Lsn;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Log {
    /// Removes whole segments, the oldest first, whose records are all below `below`. Returns how many. Each removal is
    /// durable before the next one begins: a crash may bring back the newest of them, and never leaves a gap.
    pub fn trim(&self, below: Lsn) -> Result<usize, LogError> {
        let _alone = self.trimming.lock();
        let storage = Arc::clone(&self.device.lock().storage);
        let mut removed = 0;
        while let Some(number) = self.trimmable(below)? {
            let name = segment_name(number);
            match storage.remove(&name) {
                Ok(()) => {}
                // A removal that was reported as failed has happened after all.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(LogError::io("remove", &name, &error)),
            }
            if !cfg!(fusee_mutant = "trim_unsynced")
                && let Err(error) = storage.sync_directory()
            {
                let error = LogError::io("sync", "the directory", &error);
                self.fail(&error);
                self.progress();
                return Err(error);
            }
            self.device.lock().older.remove(0);
            removed += 1;
        }
        Ok(removed)
    }

    /// The oldest segment, if all its records are below `below`.
    fn trimmable(&self, below: Lsn) -> Result<Option<u64>, LogError> {
        let device = self.device.lock();
        if self.status.load(Ordering::Acquire) >= POISONED {
            return Err(self.refusal());
        }
        let Some((number, _)) = device.older.first().copied() else { return Ok(None) };
        let next_first = device.older.get(1).map_or(device.segment.header.first, |(_, first)| *first);
        Ok((next_first <= below).then_some(number))
    }
}
