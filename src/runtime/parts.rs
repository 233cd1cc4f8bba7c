//! Several threads of one group: who may run the code of which shard, and who sleeps until when.
//!
//! The group owns the shards. A part holds the right to run the code of some; the right names the part and its
//! incarnation and stands in the shard, behind its lock. Everything else may be done from any thread.

use super::cell::ShardCell;
use super::group::Group;
use super::places::{Notify, Place, Right};
use super::watchdog::Watchdog;
use crate::log::LogState;
use crate::machine::Work;
use crate::record::{Lsn, ShardId};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// A place is named by 8 bits of a token.
pub(super) const WORKERS_MAX: u16 = 128;

/// The parts of a group.
pub(super) struct Parts {
    workers: u16,
    /// By shard: the place that is to run its code, when it is there.
    assigned: Vec<AtomicU8>,
    /// Rises whenever a right changes hands.
    version: AtomicU64,
    /// One coming or going at a time. Taken before any shard's lock.
    membership: Mutex<()>,
    pub(super) watchdog: Arc<Watchdog>,
}

impl Parts {
    pub(super) fn new(shards: u16, workers: u16) -> Parts {
        Parts {
            workers,
            assigned: (0..shards).map(|shard| AtomicU8::new(home(shard, workers).0)).collect(),
            version: AtomicU64::new(0),
            membership: Mutex::new(()),
            watchdog: Arc::new(Watchdog::new()),
        }
    }
}

/// The place that runs a shard's code unless it was moved.
fn home(shard: u16, workers: u16) -> Place {
    if workers == 0 { Place::OPENER } else { Place((shard % workers + 1) as u8) }
}

impl Group {
    /// Threads that run code, besides whoever opened the group; 0: that one runs it.
    #[must_use]
    pub fn workers(&self) -> u16 {
        self.parts.workers
    }

    pub(super) fn is_shared(&self) -> bool {
        self.parts.workers > 0
    }

    /// Rises whenever a right changes hands.
    #[must_use]
    pub fn rights_version(&self) -> u64 {
        self.parts.version.load(Ordering::Acquire)
    }

    /// Who may run the code of a shard now.
    #[must_use]
    pub fn holder(&self, shard: ShardId) -> Right {
        Right::unpack(self.gauges[usize::from(shard.0)].holder.load(Ordering::Acquire))
    }

    /// How often the right to run the code of a shard has changed hands.
    #[must_use]
    pub fn handovers(&self, shard: ShardId) -> u32 {
        self.gauges[usize::from(shard.0)].handovers.load(Ordering::Acquire)
    }

    /// Whether a life of a place goes on.
    #[must_use]
    pub fn is_present(&self, right: Right) -> bool {
        self.places.is_present(right)
    }

    /// [`Group::with`] for a client, unless its life is over: whoever has its place now chooses the same tokens. Under the
    /// lock, since a life that ends is forgotten by each shard under its lock, after it is over.
    pub fn with_present<R>(
        &self,
        right: Right,
        shard: ShardId,
        work: impl FnOnce(&mut ShardCell, &mut Work<'_>) -> R,
    ) -> Option<R> {
        self.with(shard, |cell, context| self.is_present(right).then(|| work(cell, context)))
    }

    /// Whoever opened the group takes its place, with all shards if there are no workers. `notify` may be called from any
    /// thread, without a shard's lock held, once until the next tick.
    pub fn enter_opener(&self, notify: Notify) -> Right {
        let _alone = self.parts.membership.lock();
        let right = self.places.enter(Place::OPENER, notify).expect("a group is opened once");
        self.take_home(right);
        right
    }

    /// A thread comes to run the code of the shards that are the part's by number, from 0: also of those that others held
    /// in its absence. `Err`: there is no such part, or another thread is it.
    pub fn enter_part(&self, part: u16, notify: Notify) -> Result<Right, String> {
        let workers = self.parts.workers;
        if part >= workers {
            return Err(format!("there is no worker {part}; the group has {workers}, counted from 0"));
        }
        let _alone = self.parts.membership.lock();
        let place = Place((part + 1) as u8);
        let right =
            self.places.enter(place, notify).ok_or_else(|| format!("worker {part} of the group is there already"))?;
        self.take_home(right);
        Ok(right)
    }

    fn take_home(&self, right: Right) {
        for shard in 0..self.shard_count() {
            let assigned = &self.parts.assigned[usize::from(shard)];
            let is_home = home(shard, self.parts.workers) == right.place;
            if is_home || assigned.load(Ordering::Acquire) == right.place.0 {
                assigned.store(right.place.0, Ordering::Release);
                self.give(ShardId(shard), right);
            }
        }
    }

    /// A thread is gone, or is treated as if it were: what it may still do is refused from now on and changes nothing.
    /// Its shards have no code until somebody enters in its place or [`Group::spread`] gives them to others. Nobody
    /// there waits for an answer any more. `false`: that life was over.
    pub fn leave(&self, right: Right) -> bool {
        let _alone = self.parts.membership.lock();
        if !self.places.leave(right) {
            return false;
        }
        if let Some((shard, run)) = self.entered_by(right.place) {
            self.visit(shard, |cell, work| cell.shard.lose_thread_in(work, run));
        }
        for shard in 0..self.shard_count() {
            self.visit(ShardId(shard), |cell, work| {
                if cell.holder == right {
                    cell.change_holder(Right::NOBODY, work.effects);
                }
                cell.forget_place(right.place);
            });
        }
        self.with_tasks(|cell, work| {
            cell.forget_place(work.now_ms, right.place);
            cell.commit(work);
            cell.drop_mail(right.place);
        });
        self.parts.version.fetch_add(1, Ordering::AcqRel);
        // Nobody else may have reason to write what it appended, and others wait for it.
        self.flusher.kick();
        self.places.wake_all();
        true
    }

    /// The place of a part; `None`: the group has none of that number.
    pub(crate) fn place_of_part(&self, part: u16) -> Option<Place> {
        (usize::from(part) + 1 < self.places.len()).then(|| Place((part + 1) as u8))
    }

    /// Gives the shards of a part that is not there to those that are, in turn. Returns how many shards moved.
    pub fn spread(&self, part: u16) -> usize {
        let _alone = self.parts.membership.lock();
        let Some(absent) = self.place_of_part(part) else { return 0 };
        let present: Vec<Right> = (1..self.places.len()).filter_map(|n| self.places.right(Place(n as u8))).collect();
        if present.is_empty() || self.places.right(absent).is_some() {
            return 0;
        }
        let mut moved = 0;
        for shard in 0..self.shard_count() {
            let assigned = &self.parts.assigned[usize::from(shard)];
            if assigned.load(Ordering::Acquire) == absent.0 {
                let right = present[moved % present.len()];
                assigned.store(right.place.0, Ordering::Release);
                self.give(ShardId(shard), right);
                moved += 1;
            }
        }
        moved
    }

    fn give(&self, shard: ShardId, right: Right) {
        let former = self.visit(shard, |cell, work| {
            let former = cell.holder;
            cell.change_holder(right, work.effects);
            former
        });
        self.gauges[usize::from(shard.0)].stir();
        self.parts.version.fetch_add(1, Ordering::AcqRel);
        if !cfg!(fusee_mutant = "handover_unannounced") {
            self.places.wake(former.place);
            self.places.wake(right.place);
        }
    }

    /// Has everybody woken who waits for the disk, whoever drives it, and a checkpoint made where the log has grown.
    pub(super) fn watch_progress(&self) {
        let (log, places, keeper) = (Arc::downgrade(&self.log), Arc::clone(&self.places), self.keeper.clone());
        self.log.on_progress(Box::new(move || {
            let Some(log) = log.upgrade() else { return };
            if let Some(keeper) = &keeper {
                keeper.appended(log.appended_bytes());
            }
            match log.state() {
                LogState::Healthy => places.progress(log.durable()),
                LogState::Full(_) | LogState::Poisoned(_) | LogState::Closed => places.wake_all(),
            }
        }));
    }

    /// A place works now.
    pub fn awake(&self, right: Right) {
        self.places.disarm(right);
        if self.is_shared() && self.is_present(right) {
            self.places.pulse(right.place).beats.fetch_add(1, Ordering::Relaxed);
            self.parts.watchdog.stir();
        }
    }

    /// A place has nothing else to do: what it waits for is written, here or on the log's thread, by flush mode. Returns
    /// what is durable; the place is woken when there is more for it. To be followed by a look at what it is woken for.
    pub fn rest(&self, right: Right) -> Lsn {
        let durable = if !self.is_shared() || self.waits_for_disk(right) || self.is_full() {
            self.flusher.idle()
        } else {
            self.durable()
        };
        let is_poisoned = matches!(self.log_state(), LogState::Poisoned(_));
        // Nobody else has anything for it, but for a copy that is being made.
        let is_alone = !self.is_shared() && self.copies.load(Ordering::SeqCst) == 0;
        if is_alone && (durable >= self.last() || is_poisoned) {
            return durable;
        }
        if !self.places.arm(right) {
            return durable;
        }
        self.want(right, durable);
        // What became durable before it was armed woke nobody.
        let now = self.durable();
        if now > durable {
            self.places.disarm(right);
        }
        now
    }

    fn want(&self, right: Right, durable: Lsn) {
        if !self.is_shared() {
            return self.places.want(right.place, 0);
        }
        for gauge in &self.gauges {
            let is_own = gauge.holder.load(Ordering::Acquire) == right.pack();
            if is_own {
                if gauge.last.load(Ordering::Acquire) > durable.0 {
                    self.places.want(right.place, durable.0 + 1);
                }
                // What is held back may rest on records of other shards.
                self.places.want(right.place, gauge.wanted.load(Ordering::SeqCst));
            }
            self.places.want(right.place, gauge.answers[right.place.index()].load(Ordering::SeqCst));
        }
        self.places.want(right.place, self.tasks_wanted(right.place));
    }

    /// Something that is not durable concerns a place: a record of its shards, an answer to it.
    fn waits_for_disk(&self, right: Right) -> bool {
        let durable = self.durable().0;
        // Also where nobody waits for a record of the scheduler, or somebody who sleeps: nothing else would have it written.
        let waits_for_tasks = self.tasks_last() > durable;
        waits_for_tasks
            || self.gauges.iter().any(|gauge| {
                let answer = gauge.answers[right.place.index()].load(Ordering::Acquire);
                let is_own = gauge.holder.load(Ordering::Acquire) == right.pack();
                (answer != u64::MAX && answer > durable) || (is_own && gauge.last.load(Ordering::Acquire) > durable)
            })
    }

    fn is_full(&self) -> bool {
        matches!(self.log_state(), LogState::Full(_))
    }
}
