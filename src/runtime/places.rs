//! The participants of a group: who is asleep, who has to be woken for what, who is how alive.
//!
//! A thread that changes something publishes it and then looks whether its reader sleeps; a reader says that it sleeps
//! and then looks whether there is something. Between the two stands a fence, so that one of them sees the other.

use super::cell::Token;
use super::watchdog::Watchdog;
use crate::machine::RunIx;
use crate::record::{Lsn, ShardId};
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

/// A participant of a group. 0 is whoever opened it; the parts that run code are those from 1 on, unless there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(pub u8);

/// The upper bits of a token name the place that asked.
const TOKEN_BITS: u32 = 24;

impl Place {
    /// Whoever opened the group.
    pub const OPENER: Place = Place(0);

    /// The place that chose a token.
    #[must_use]
    pub fn of(token: Token) -> Place {
        Place((token >> TOKEN_BITS) as u8)
    }

    /// Tokens of the place are this one and those after it, 2^24 of them.
    #[must_use]
    pub fn first_token(self) -> Token {
        u32::from(self.0) << TOKEN_BITS
    }

    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The right to run the code of a shard: of a place in one of its lives, which is its incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    /// Whose it is.
    pub place: Place,
    /// Number of the life, from 1; 0: nobody's.
    pub incarnation: u32,
}

impl Right {
    /// Nobody runs the code.
    pub const NOBODY: Right = Right { place: Place(0), incarnation: 0 };

    pub(super) fn pack(self) -> u64 {
        u64::from(self.place.0) << 32 | u64::from(self.incarnation)
    }

    pub(super) fn unpack(packed: u64) -> Right {
        Right { place: Place((packed >> 32) as u8), incarnation: packed as u32 }
    }
}

/// Called from any thread, without a shard's lock.
pub(super) type Notify = Arc<dyn Fn() + Send + Sync>;

/// One participant, on cache lines of its own.
#[repr(align(128))]
pub(super) struct Participant {
    /// The life that has nothing to do and waits to be woken; 0: it works. A life that is over changes nothing here.
    sleeper: AtomicU32,
    /// It wants to be woken once this is durable; `u64::MAX`: for nothing of the kind.
    wants: AtomicU64,
    /// Its present life; 0: it is not there.
    incarnation: AtomicU32,
    notify: RwLock<Option<Notify>>,
    /// What it says about itself while it works.
    pub(super) pulse: Pulse,
}

/// Signs of life, written by one thread and read by the watchdog.
#[repr(align(128))]
pub(super) struct Pulse {
    pub(super) beats: AtomicU64,
    /// The run whose code or body it entered last since it has worked: shard, and index in it.
    entered: AtomicU64,
    /// The watchdog has found it blocked.
    pub(super) is_blocked: AtomicBool,
}

/// What `entered` is while no run was entered.
const NO_RUN: u64 = u64::MAX;

impl Pulse {
    /// It is about to run code of a run, or a body of it.
    pub(super) fn enter(&self, shard: ShardId, run: RunIx) {
        self.entered.store(u64::from(shard.0) << 32 | u64::from(run.0), Ordering::Relaxed);
        self.beats.store(self.beats.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// The run whose code or body it entered last, unless it sleeps or has done so since.
    pub(super) fn entered(&self) -> Option<(ShardId, RunIx)> {
        let entered = self.entered.load(Ordering::Relaxed);
        (entered != NO_RUN).then_some((ShardId((entered >> 32) as u16), RunIx(entered as u32)))
    }
}

/// All participants.
pub(super) struct Places {
    list: Vec<Participant>,
    lives: AtomicU32,
    /// Somebody who was woken works, or should.
    watchdog: Arc<Watchdog>,
}

impl Places {
    pub(super) fn new(count: usize, watchdog: Arc<Watchdog>) -> Places {
        let participant = || Participant {
            sleeper: AtomicU32::new(0),
            wants: AtomicU64::new(u64::MAX),
            incarnation: AtomicU32::new(0),
            notify: RwLock::new(None),
            pulse: Pulse {
                beats: AtomicU64::new(0),
                entered: AtomicU64::new(NO_RUN),
                is_blocked: AtomicBool::new(false),
            },
        };
        let list = std::iter::repeat_with(participant).take(count).collect();
        Places { list, lives: AtomicU32::new(0), watchdog }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn pulse(&self, place: Place) -> &Pulse {
        &self.list[place.index()].pulse
    }

    /// Begins a life. `None`: the place has one.
    pub(super) fn enter(&self, place: Place, notify: Notify) -> Option<Right> {
        let participant = &self.list[place.index()];
        let mut slot = participant.notify.write();
        if participant.incarnation.load(Ordering::Acquire) != 0 {
            return None;
        }
        let incarnation = self.lives.fetch_add(1, Ordering::AcqRel) + 1;
        *slot = Some(notify);
        participant.sleeper.store(0, Ordering::Release);
        participant.pulse.is_blocked.store(false, Ordering::Release);
        participant.pulse.entered.store(NO_RUN, Ordering::Release);
        participant.pulse.beats.fetch_add(1, Ordering::AcqRel);
        participant.incarnation.store(incarnation, Ordering::Release);
        Some(Right { place, incarnation })
    }

    /// Ends a life. `false`: it has ended already.
    pub(super) fn leave(&self, right: Right) -> bool {
        let participant = &self.list[right.place.index()];
        let mut slot = participant.notify.write();
        let has_left =
            participant.incarnation.compare_exchange(right.incarnation, 0, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if has_left {
            *slot = None;
        }
        has_left
    }

    /// The present life of a place.
    pub(super) fn right(&self, place: Place) -> Option<Right> {
        let incarnation = self.list.get(place.index())?.incarnation.load(Ordering::Acquire);
        (incarnation != 0).then_some(Right { place, incarnation })
    }

    /// Whether a life goes on.
    pub(super) fn is_present(&self, right: Right) -> bool {
        self.list[right.place.index()].incarnation.load(Ordering::Acquire) == right.incarnation
    }

    /// It works now and needs no waking.
    pub(super) fn disarm(&self, right: Right) {
        let sleeper = &self.list[right.place.index()].sleeper;
        if sleeper.load(Ordering::Acquire) == right.incarnation {
            // Whoever has the place now may sleep in it.
            let _other = sleeper.compare_exchange(right.incarnation, 0, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// Whether the life of a place that goes on waits to be woken.
    pub(super) fn is_asleep(&self, place: Place) -> bool {
        self.list[place.index()].sleeper.load(Ordering::Acquire) != 0
    }

    /// It is about to sleep. To be followed by a look at everything that it would have been woken for. `false`: its life
    /// is over, nobody will wake it.
    pub(super) fn arm(&self, right: Right) -> bool {
        let participant = &self.list[right.place.index()];
        // While it is read, nobody comes or goes.
        let _slot = participant.notify.read();
        if participant.incarnation.load(Ordering::Acquire) != right.incarnation {
            return false;
        }
        participant.wants.store(u64::MAX, Ordering::SeqCst);
        participant.pulse.entered.store(NO_RUN, Ordering::Relaxed);
        participant.sleeper.store(right.incarnation, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        true
    }

    /// It wants to be woken once this is durable, if not for something before it.
    pub(super) fn want(&self, place: Place, lsn: u64) {
        self.list[place.index()].wants.fetch_min(lsn, Ordering::SeqCst);
    }

    /// There is something for a place: wakes it if it sleeps. What there is must have been published.
    pub(super) fn wake(&self, place: Place) {
        fence(Ordering::SeqCst);
        if let Some(participant) = self.list.get(place.index()) {
            self.rouse(participant);
        }
    }

    /// More is durable: wakes who waits for it.
    pub(super) fn progress(&self, durable: Lsn) {
        fence(Ordering::SeqCst);
        for participant in &self.list {
            if participant.wants.load(Ordering::SeqCst) <= durable.0 {
                self.rouse(participant);
            }
        }
    }

    /// Wakes everybody who sleeps.
    pub(super) fn wake_all(&self) {
        fence(Ordering::SeqCst);
        for participant in &self.list {
            self.rouse(participant);
        }
    }

    fn rouse(&self, participant: &Participant) {
        // A look before the swap: a place that works gets no cache line taken away.
        if participant.sleeper.load(Ordering::SeqCst) != 0 && participant.sleeper.swap(0, Ordering::AcqRel) != 0 {
            let notify = participant.notify.read().clone();
            if let Some(notify) = notify {
                notify();
            }
            self.watchdog.stir();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn a_sleeper_is_woken_once_and_only_for_what_it_wants() {
        let places = Places::new(2, Arc::new(Watchdog::new()));
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let count_up = move || {
            counted.fetch_add(1, Ordering::Relaxed);
        };
        let right = places.enter(Place(1), Arc::new(count_up)).unwrap();
        assert!(places.enter(Place(1), Arc::new(|| {})).is_none(), "the place is taken");
        places.wake(Place(1));
        assert_eq!(count.load(Ordering::Relaxed), 0, "it does not sleep");
        assert!(places.arm(right));
        places.want(Place(1), 9);
        places.progress(Lsn(8));
        assert_eq!(count.load(Ordering::Relaxed), 0, "that is not durable");
        places.progress(Lsn(9));
        places.progress(Lsn(10));
        places.wake(Place(1));
        assert_eq!(count.load(Ordering::Relaxed), 1, "once until it sleeps again");
        assert!(places.leave(right) && !places.leave(right));
        assert!(!places.arm(right), "its life is over");
        places.wake_all();
        assert_eq!(count.load(Ordering::Relaxed), 1, "nobody is there");
        let counted = Arc::clone(&count);
        let count_ten = move || {
            counted.fetch_add(10, Ordering::Relaxed);
        };
        let next = places.enter(Place(1), Arc::new(count_ten)).unwrap();
        assert!(next.incarnation > right.incarnation);
        assert!(places.arm(next));
        places.disarm(right);
        places.wake(Place(1));
        assert_eq!(count.load(Ordering::Relaxed), 11, "a life that is over wakes nobody up");
    }

    #[test]
    fn tokens_name_their_place() {
        for place in [Place(0), Place(1), Place(255)] {
            assert_eq!(Place::of(place.first_token()), place);
            assert_eq!(Place::of(place.first_token() + 0xff_ffff), place);
        }
    }
}
