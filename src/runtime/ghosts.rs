//! Runs that have ended and were brought back to be asked something. Each has a shard of its own, whose records and
//! effects go nowhere.

use super::cell::ShardCell;
use super::places::Right;
use crate::machine::{Effect, Shard, Sink, Work};
use crate::record::{Lsn, ShardId};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Shards of a directory have smaller numbers.
const FIRST: u16 = 1 << 12;

/// So many may be looked at at the same time.
const GHOSTS_MAX: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Ghosts {
    cells: Mutex<BTreeMap<u16, ShardCell>>,
}

/// Takes records that nobody keeps.
struct Void(Lsn);

impl Sink for Void {
    fn append(&mut self, _: &[u8]) -> Lsn {
        let lsn = self.0;
        self.0 = Lsn(lsn.0 + 1);
        lsn
    }
}

impl Ghosts {
    /// `None`: too many are looked at.
    pub(super) fn add(&self, shard: Shard, holder: Right) -> Option<ShardId> {
        let mut cells = self.cells.lock();
        if cells.len() >= GHOSTS_MAX {
            return None;
        }
        let number = (FIRST..u16::MAX).find(|number| !cells.contains_key(number))?;
        // Nobody waits for answers of it.
        let mut cell = ShardCell::new(shard, 0);
        cell.holder = holder;
        cells.insert(number, cell);
        Some(ShardId(number))
    }

    pub(super) fn remove(&self, shard: ShardId) {
        self.cells.lock().remove(&shard.0);
    }

    pub(super) fn remove_of(&self, holder: Right) {
        self.cells.lock().retain(|_, cell| cell.holder != holder);
    }

    pub(super) fn has(shard: ShardId) -> bool {
        shard.0 >= FIRST
    }

    /// Work on a ghost. It exists as long as its slot does.
    pub(super) fn with<R>(
        &self,
        shard: ShardId,
        now_ms: i64,
        work: impl FnOnce(&mut ShardCell, &mut Work<'_>) -> R,
    ) -> R {
        let mut cells = self.cells.lock();
        let cell = cells.get_mut(&shard.0).expect("a ghost exists as long as its slot does");
        let mut void = Void(cell.shard.next_lsn());
        let mut effects: Vec<Effect> = Vec::new();
        work(cell, &mut Work { now_ms, log: &mut void, effects: &mut effects })
    }
}
