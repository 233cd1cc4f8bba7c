//! What other threads and ticks look at of a shard without its lock.

use super::cell::ShardCell;
use super::places::{Place, Places, Right};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Published whenever work on the shard ends.
#[repr(align(128))]
pub(super) struct Gauge {
    /// It has events, loads or releasable outputs that a tick has not seen.
    pub(super) is_dirty: AtomicBool,
    /// The LSN that the first output for its code waits for; `u64::MAX`: none.
    pub(super) wanted: AtomicU64,
    /// When something falls due, in ms since 1970; `i64::MAX`: never.
    pub(super) due_ms: AtomicI64,
    pub(super) open_runs: AtomicUsize,
    /// Its newest record.
    pub(super) last: AtomicU64,
    /// Who may run its code; the truth is in the cell.
    pub(super) holder: AtomicU64,
    /// How often that has changed.
    pub(super) handovers: AtomicU32,
    /// How many look for finished runs of it: none leaves memory as long.
    pub(super) pins: Arc<AtomicU32>,
    /// By place: what the first answer for it waits for; `u64::MAX`: there is none.
    pub(super) answers: Box<[AtomicU64]>,
}

/// Something is held back that was not, for the code of a shard or for who asked it.
#[derive(Clone, Copy, Default)]
pub(super) struct News {
    pub(super) for_holder: bool,
    pub(super) for_askers: bool,
}

impl Gauge {
    pub(super) fn new(places: usize) -> Self {
        Gauge {
            is_dirty: AtomicBool::new(true),
            wanted: AtomicU64::new(u64::MAX),
            due_ms: AtomicI64::new(i64::MAX),
            open_runs: AtomicUsize::new(0),
            last: AtomicU64::new(0),
            holder: AtomicU64::new(Right::NOBODY.pack()),
            handovers: AtomicU32::new(0),
            pins: Arc::new(AtomicU32::new(0)),
            answers: (0..places).map(|_| AtomicU64::new(u64::MAX)).collect(),
        }
    }

    /// A tick is to visit it.
    pub(super) fn stir(&self) {
        self.is_dirty.store(true, Ordering::Release);
    }

    /// Returns who waits for something else than before.
    pub(super) fn read(&self, cell: &ShardCell, is_changed: bool, places: &Places) -> News {
        if is_changed {
            self.is_dirty.store(true, Ordering::Release);
        }
        let mut news = News::default();
        let wanted = cell.held.first().map_or(u64::MAX, |lsn| lsn.0);
        if self.wanted.load(Ordering::Relaxed) != wanted {
            self.wanted.store(wanted, Ordering::SeqCst);
            places.want(cell.holder.place, wanted);
            news.for_holder = wanted != u64::MAX;
        }
        let due_ms = [cell.shard.next_due_ms(), cell.resends.due_ms()].into_iter().flatten().min();
        self.due_ms.store(due_ms.unwrap_or(i64::MAX), Ordering::Release);
        self.open_runs.store(cell.shard.open_count(), Ordering::Relaxed);
        self.last.store(cell.shard.last().0, Ordering::Release);
        self.holder.store(cell.holder.pack(), Ordering::Release);
        self.handovers.store(cell.handovers, Ordering::Release);
        for (index, (answer, first)) in self.answers.iter().zip(cell.held.first_by_place()).enumerate() {
            let first = first.map_or(u64::MAX, |lsn| lsn.0);
            // Most work leaves them as they are, and other threads read them.
            if answer.load(Ordering::Relaxed) != first {
                answer.store(first, Ordering::SeqCst);
                places.want(Place(index as u8), first);
                news.for_askers |= first != u64::MAX;
            }
        }
        news
    }
}
