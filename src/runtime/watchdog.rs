//! A thread outside all hosts that sees when one of them is blocked, and keeps going what does not need its code.
//!
//! It looks every now and then while somebody works, and sleeps while all sleep.

use super::group::Group;
use super::places::{Place, Right};
use crate::machine::RunIx;
use crate::record::{ShardId, run_id};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A part is blocked when its thread has given no sign of life for so long, unless somebody sets another time.
const BLOCKED_AFTER: Duration = Duration::from_secs(1);

/// What the watchdog has seen of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// Number of the part, from 0.
    pub part: u16,
    /// Its life that was looked at: who has its place when this is read may be another.
    pub incarnation: u32,
    /// It is blocked now; `false`: it works again.
    pub is_blocked: bool,
    /// How long it has given no sign of life.
    pub silent: Duration,
    /// Id, run id and type of the run whose code or body it entered last, if it has entered one since it slept.
    pub entered: Option<(String, String, String)>,
}

/// The watchdog of a group.
pub(super) struct Watchdog {
    after_ms: AtomicU64,
    is_dormant: AtomicBool,
    /// It is to end; changes under the lock that it sleeps on.
    is_over: Mutex<bool>,
    kicked: Condvar,
    has_reports: AtomicBool,
    reports: Mutex<VecDeque<Blocked>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What it remembers of a part between two looks.
#[derive(Clone, Copy)]
struct Seen {
    beats: u64,
    since: Instant,
    is_blocked: bool,
}

/// How it slept.
enum Nap {
    /// Until the next look.
    Short,
    /// While nobody worked.
    Long,
    /// There will be nothing more to look at.
    Over,
}

impl Watchdog {
    pub(super) fn new() -> Watchdog {
        Watchdog {
            after_ms: AtomicU64::new(BLOCKED_AFTER.as_millis() as u64),
            is_dormant: AtomicBool::new(false),
            is_over: Mutex::new(false),
            kicked: Condvar::new(),
            has_reports: AtomicBool::new(false),
            reports: Mutex::new(VecDeque::new()),
            thread: Mutex::new(None),
        }
    }

    /// Somebody works again.
    pub(super) fn stir(&self) {
        // With the one in `nap`: either this sees that it sleeps, or it sees who works.
        fence(Ordering::SeqCst);
        if self.is_dormant.load(Ordering::Relaxed) {
            let _is_over = self.is_over.lock();
            self.is_dormant.store(false, Ordering::Relaxed);
            self.kicked.notify_all();
        }
    }

    fn after(&self) -> Duration {
        Duration::from_millis(self.after_ms.load(Ordering::Relaxed).max(1))
    }

    /// Sleeps until the next look.
    fn nap(&self, works_anybody: impl Fn() -> bool) -> Nap {
        let mut has_slept = false;
        // Without the lock: whoever asks may be the last to hold the group, whose end takes it.
        if !works_anybody() {
            self.is_dormant.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            if works_anybody() {
                self.is_dormant.store(false, Ordering::Relaxed);
            }
        }
        let mut is_over = self.is_over.lock();
        while self.is_dormant.load(Ordering::Relaxed) && !*is_over {
            has_slept = true;
            self.kicked.wait(&mut is_over);
        }
        if !*is_over {
            let period = (self.after() / 4).max(Duration::from_millis(5));
            let _timeout = self.kicked.wait_for(&mut is_over, period);
        }
        match (*is_over, has_slept) {
            (true, _) => Nap::Over,
            (false, true) => Nap::Long,
            (false, false) => Nap::Short,
        }
    }

    fn report(&self, blocked: Blocked) {
        self.reports.lock().push_back(blocked);
        self.has_reports.store(true, Ordering::Release);
    }

    pub(super) fn end(&self) {
        *self.is_over.lock() = true;
        self.kicked.notify_all();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            // It catches its own panics.
            drop(thread.join());
        }
    }
}

impl Group {
    /// Watches over the parts from now on; a part is blocked when its thread has given no sign of life for `after`.
    pub fn watch_parts(self: &Arc<Self>, after: Option<Duration>) {
        let watchdog = &self.parts.watchdog;
        if let Some(after) = after {
            watchdog.after_ms.store(u64::try_from(after.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        let mut thread = watchdog.thread.lock();
        if thread.is_some() || *watchdog.is_over.lock() {
            return;
        }
        let (group, watchdog) = (Arc::downgrade(self), Arc::clone(watchdog));
        let watch = move || {
            // Without it nothing is lost but its reports.
            drop(catch_unwind(AssertUnwindSafe(|| run(&group, &watchdog))));
        };
        let spawned = super::threads::start("fusee-watch", Box::new(watch));
        // Where there is no thread to be had, blocked parts are not seen; everything else works.
        *thread = spawned.ok();
    }

    pub(super) fn end_watch(&self) {
        self.parts.watchdog.end();
    }

    /// Whether the watchdog has something to report.
    #[must_use]
    pub fn has_blocked_reports(&self) -> bool {
        self.parts.watchdog.has_reports.load(Ordering::Acquire)
    }

    /// What the watchdog has seen since it was asked last.
    pub fn take_blocked_reports(&self) -> Vec<Blocked> {
        let watchdog = &self.parts.watchdog;
        let mut reports = watchdog.reports.lock();
        watchdog.has_reports.store(false, Ordering::Release);
        reports.drain(..).collect()
    }

    /// Parts that are blocked now, by number.
    #[must_use]
    pub fn blocked_parts(&self) -> Vec<u16> {
        let is_blocked = |part: &u16| self.places.pulse(place_of(*part)).is_blocked.load(Ordering::Acquire);
        (0..self.workers()).filter(is_blocked).collect()
    }

    /// Parts that are not there now, by number.
    #[must_use]
    pub fn absent_parts(&self) -> Vec<u16> {
        (0..self.workers()).filter(|part| self.places.right(place_of(*part)).is_none()).collect()
    }

    /// A part says that it is about to run code of a run, or a body of it.
    pub fn entered(&self, right: Right, shard: ShardId, run: RunIx) {
        if !self.is_present(right) {
            return;
        }
        self.places.pulse(right.place).enter(shard, run);
    }

    /// The run whose code or body a part entered last, unless it has slept since.
    pub(super) fn entered_by(&self, place: Place) -> Option<(ShardId, RunIx)> {
        // Runs that are replayed for a query alone are in none of the shards.
        self.places.pulse(place).entered().filter(|(shard, _)| shard.0 < self.shard_count())
    }

    /// Somebody works, or is believed to be blocked and has to be looked at again.
    fn works_anybody(&self) -> bool {
        let is_blocked = |place: Place| self.places.pulse(place).is_blocked.load(Ordering::Acquire);
        (0..self.workers()).map(place_of).any(|place| self.works(place) || is_blocked(place))
    }

    fn works(&self, place: Place) -> bool {
        self.places.right(place).is_some() && !self.places.is_asleep(place)
    }

    /// Looks after one part.
    fn look(&self, part: u16, seen: &mut Seen, after: Duration) {
        let place = place_of(part);
        let pulse = self.places.pulse(place);
        // Before the beats, which a life that begins moves on: a new one is never reported for the silence of the former.
        let incarnation = self.places.right(place).map_or(0, |right| right.incarnation);
        let beats = pulse.beats.load(Ordering::Relaxed);
        let now = Instant::now();
        let silent = now - seen.since;
        if beats != seen.beats || !self.works(place) {
            if seen.is_blocked {
                pulse.is_blocked.store(false, Ordering::Release);
                self.parts.watchdog.report(Blocked { part, incarnation, is_blocked: false, silent, entered: None });
                self.places.wake(Place::OPENER);
            }
            *seen = Seen { beats, since: now, is_blocked: false };
            return;
        }
        if silent < after {
            return;
        }
        if !seen.is_blocked {
            seen.is_blocked = true;
            pulse.is_blocked.store(true, Ordering::Release);
            let entered = self.entered_by(place).and_then(|(shard, run)| self.name_of(shard, run));
            self.parts.watchdog.report(Blocked { part, incarnation, is_blocked: true, silent, entered });
            self.places.wake(Place::OPENER);
        }
        self.stand_in(place);
    }

    /// Does for a part that is blocked what needs none of its code: time limits of its runs, and the disk for what it
    /// has recorded.
    fn stand_in(&self, place: Place) {
        for shard in (0..self.shard_count()).map(ShardId) {
            if self.holder(shard).place == place {
                self.handle_due(shard);
            }
        }
        if self.durable() < self.last() {
            self.flusher.kick();
        }
    }

    fn name_of(&self, shard: ShardId, run: RunIx) -> Option<(String, String, String)> {
        self.with(shard, |cell, _| {
            let view = (run.0 < cell.shard.run_count()).then(|| cell.shard.view(run))?;
            Some((view.id.to_owned(), run_id(shard, view.no), view.kind.to_owned()))
        })
    }
}

fn place_of(part: u16) -> Place {
    Place((part + 1) as u8)
}

fn run(group: &Weak<Group>, watchdog: &Watchdog) {
    let mut seen: Vec<Seen> = Vec::new();
    let works_anybody = || group.upgrade().is_some_and(|group| group.works_anybody());
    loop {
        match watchdog.nap(works_anybody) {
            Nap::Short => {}
            // What was seen before says nothing about who works now.
            Nap::Long => seen.iter_mut().for_each(|seen| seen.since = Instant::now()),
            Nap::Over => return,
        }
        let Some(group) = group.upgrade() else { return };
        let after = watchdog.after();
        for part in 0..group.workers() {
            if seen.len() <= usize::from(part) {
                seen.push(Seen { beats: 0, since: Instant::now(), is_blocked: false });
            }
            group.look(part, &mut seen[usize::from(part)], after);
        }
    }
}
