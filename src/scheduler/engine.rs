//! The engine: what it holds, and what every call does before and after its own work.
//!
//! A call brings the time forward, fires what is due, does its work, and then settles: skips whom a parent failed, lets in
//! who waited for room, and fills the free slots. So a call that only reads dispatches too, if the time it brings made
//! something ready.

use super::attempts::Attempts;
use super::chance::Chance;
use super::config::{Config, ConfigError, QueueConfig};
use super::limits::{Group, Limits};
use super::members::{Member, MemberNo, Members};
use super::orders::Orders;
use super::output::{Output, Status, Warning};
use super::queue::Queue;
use super::saving::Saving;
use super::schedules::Schedules;
use super::task::{Dependent, QueueIx, State, Table, TaskIx};
use super::timers::{Timer, TimerNo, Timers};
use super::waiting::Waiting;
use crate::record::{AttemptEnd, Class, LimitSpec, Outcome, TaskNo, TaskRecord};
use std::collections::{BTreeMap, VecDeque};

/// The task scheduler of a directory.
///
/// * Events come in by `handle_*`, each with the time in ms since 1970. Time that runs backwards is taken as standing still.
/// * After each of them, [`Engine::poll_record`] yields what is to be appended to the log, in order, and
///   [`Engine::poll_output`] what is to be done once that is durable.
/// * [`Engine::next_wake_ms`] says when [`Engine::handle_time`] is due if nothing else happens.
/// * After a restart, [`Engine::restore`] takes the records back one by one, then [`Engine::recover`] goes on.
#[derive(Debug)]
pub struct Engine {
    pub(super) config: Config,
    pub(super) now_ms: i64,
    pub(super) is_restoring: bool,
    pub(super) is_draining: bool,
    pub(super) tasks: Table,
    pub(super) next_number: u64,
    pub(super) queues: Vec<Queue>,
    pub(super) queue_names: BTreeMap<Box<str>, QueueIx>,
    /// The newest task that was given each key, as long as it is known.
    pub(super) keys: BTreeMap<Box<str>, TaskIx>,
    /// Who waits for a key that no task has.
    pub(super) awaited: BTreeMap<Box<str>, Vec<Dependent>>,
    /// Tasks of an order key that are not over; the first may run.
    pub(super) order_lines: BTreeMap<Box<str>, BTreeMap<u64, TaskIx>>,
    /// Places in them that were given.
    pub(super) order_places: u64,
    pub(super) attempts: Attempts,
    pub(super) members: Members,
    pub(super) limits: Limits,
    pub(super) timers: Timers,
    pub(super) chance: Chance,
    /// Accepted, not running, not over, by class.
    pub(super) pending: [u64; 4],
    /// Tasks that are over and still remembered, by their places.
    pub(super) ended: BTreeMap<u64, TaskIx>,
    /// Places among the ended that were given.
    pub(super) ended_places: u64,
    /// Tasks that wait for what can no longer be, in which of their lives, and why.
    pub(super) doomed: VecDeque<(TaskIx, TaskNo, u32, String)>,
    dirty: Vec<QueueIx>,
    pub(super) waiting: Waiting,
    pub(super) orders: Orders,
    pub(super) schedules: Schedules,
    /// Limits that somebody set while it ran.
    pub(super) limits_set: BTreeMap<Box<str>, LimitSpec>,
    pub(super) saving: Saving,
    pub(super) totals: Totals,
    pub(super) records: Records,
    pub(super) outputs: VecDeque<Output>,
}

/// Counts since the engine was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say what is counted")]
pub struct Totals {
    pub submitted: u64,
    pub dispatched: u64,
    /// By outcome, from completed to shed.
    pub ended: [u64; 8],
    pub retried: u64,
    pub timed_out: u64,
    pub leases_expired: u64,
    pub lost: u64,
    /// Completions under a lease that was not the current one.
    pub stale: u64,
    pub refused: u64,
}

/// Encoded records that were not polled yet.
#[derive(Debug, Default)]
pub(super) struct Records {
    bytes: Vec<u8>,
    ends: VecDeque<usize>,
    read: usize,
}

impl Records {
    pub(super) fn write(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        if self.ends.is_empty() {
            self.bytes.clear();
            self.read = 0;
        }
        encode(&mut self.bytes);
        self.ends.push_back(self.bytes.len());
    }

    fn poll(&mut self) -> Option<&[u8]> {
        let end = self.ends.pop_front()?;
        let start = std::mem::replace(&mut self.read, end);
        Some(&self.bytes[start..end])
    }
}

impl Engine {
    /// An engine without tasks.
    pub fn new(config: Config) -> Result<Engine, ConfigError> {
        config.check()?;
        let mut engine = Engine {
            now_ms: i64::MIN,
            is_restoring: false,
            is_draining: false,
            tasks: Table::default(),
            next_number: 1,
            queues: Vec::new(),
            queue_names: BTreeMap::new(),
            keys: BTreeMap::new(),
            awaited: BTreeMap::new(),
            order_lines: BTreeMap::new(),
            order_places: 0,
            attempts: Attempts::new(config.epoch),
            members: Members::default(),
            limits: Limits::default(),
            timers: Timers::default(),
            chance: Chance::new(config.seed),
            pending: [0; 4],
            ended: BTreeMap::new(),
            ended_places: 0,
            doomed: VecDeque::new(),
            dirty: Vec::new(),
            waiting: Waiting::default(),
            orders: Orders::default(),
            schedules: Schedules::default(),
            limits_set: BTreeMap::new(),
            saving: Saving::default(),
            totals: Totals::default(),
            records: Records::default(),
            outputs: VecDeque::new(),
            config,
        };
        engine.define_limits();
        if let Some(kinds) = engine.config.kinds.take() {
            engine.set_member(MemberNo(0), Member { kinds, labels: Vec::new() });
        }
        let queues = std::mem::take(&mut engine.config.queues);
        for (name, queue) in queues {
            engine.add_queue(&name, queue, true);
        }
        Ok(engine)
    }

    /// Only time passed.
    pub fn handle_time(&mut self, now_ms: i64) {
        self.begin(now_ms);
        self.settle();
    }

    /// When [`Engine::handle_time`] is due if nothing else happens. It may be early, never late.
    #[must_use]
    pub fn next_wake_ms(&self) -> Option<i64> {
        self.timers.next_due_ms().into_iter().chain(self.limits.next_refill_ms()).min()
    }

    /// The next record for the log.
    pub fn poll_record(&mut self) -> Option<&[u8]> {
        self.records.poll()
    }

    /// The next thing to do or to tell.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Counts since the engine was made.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    pub(super) fn add_queue(&mut self, name: &str, config: QueueConfig, is_defined: bool) -> QueueIx {
        let ix = QueueIx(u16::try_from(self.queues.len()).expect("there are fewer than 65,536 queues"));
        self.queues.push(Queue::new(name, config, is_defined, self.config.window_ms));
        self.queue_names.insert(name.into(), ix);
        self.suspend_if_idle(ix);
        ix
    }

    pub(super) fn queue(&self, ix: QueueIx) -> &Queue {
        &self.queues[usize::from(ix.0)]
    }

    pub(super) fn queue_mut(&mut self, ix: QueueIx) -> &mut Queue {
        &mut self.queues[usize::from(ix.0)]
    }

    /// Brings the time forward and fires what is due.
    pub(super) fn begin(&mut self, now_ms: i64) {
        self.now_ms = self.now_ms.max(now_ms);
        self.fire_due();
        if self.timers.is_littered() {
            let mut timers = std::mem::take(&mut self.timers);
            timers.sweep(|number, timer| self.is_kept(number, timer));
            self.timers = timers;
        }
    }

    fn fire_due(&mut self) {
        while let Some((due_ms, number, timer)) = self.timers.pop_due(self.now_ms) {
            if self.is_kept(number, timer) {
                self.fire(due_ms, timer);
            } else {
                self.timers.was_cleared();
            }
        }
        if self.limits.next_refill_ms().is_some_and(|due_ms| due_ms <= self.now_ms) {
            self.limits.handle_time(self.now_ms);
        }
    }

    /// Skips, lets in and dispatches until nothing more can be done at this time.
    pub(super) fn settle(&mut self) {
        loop {
            // What was just set can be due already: a retry at once, an expiry in the past.
            self.fire_due();
            self.tend_schedules();
            self.skip_doomed();
            self.heed_limits();
            if let Some(queue) = self.dirty.pop() {
                self.queue_mut(queue).is_dirty = false;
                self.fill_slots(queue);
            } else if self.doomed.is_empty() && self.schedules.due.is_empty() && !self.let_in() && !self.feed_starved()
            {
                break;
            }
        }
    }

    /// Says that a queue may have both a task and a slot for it.
    pub(super) fn mark_dirty(&mut self, ix: QueueIx) {
        let queue = &mut self.queues[usize::from(ix.0)];
        if !queue.is_dirty {
            queue.is_dirty = true;
            self.dirty.push(ix);
        }
    }

    /// Says so of all queues, in their order.
    pub(super) fn mark_all_dirty(&mut self) {
        self.dirty.clear();
        self.queues.iter_mut().for_each(|queue| queue.is_dirty = false);
        (0..self.queues.len()).for_each(|at| self.mark_dirty(QueueIx(at as u16)));
    }

    /// Whether the timer is the one that its owner waits for.
    fn is_kept(&self, number: TimerNo, timer: Timer) -> bool {
        let task = |ix: TaskIx| self.tasks.get(ix);
        let more = |ix: TaskIx| task(ix).and_then(|task| task.more.as_ref());
        let attempt = |ix: TaskIx| match task(ix).map(|task| task.state) {
            Some(State::Running { attempt: Some(attempt), .. }) => Some(self.attempts.at(attempt)),
            _ => None,
        };
        match timer {
            Timer::Wake(ix) => task(ix).is_some_and(|task| task.wake == number),
            Timer::Expire(ix) => more(ix).is_some_and(|more| more.expire == number),
            Timer::Await(ix) => more(ix).is_some_and(|more| more.await_timer == number),
            Timer::Hold(ix) => more(ix).and_then(|more| more.reserve).is_some_and(|booked| booked.hold == number),
            Timer::Miss(ix) => more(ix).and_then(|more| more.reserve).is_some_and(|booked| booked.miss == number),
            Timer::Timeout(ix) => attempt(ix).is_some_and(|attempt| attempt.timeout == number),
            Timer::Lease(ix) => attempt(ix).is_some_and(|attempt| attempt.lease_end == number),
            Timer::Schedule(ix) => self.schedules.keeps_timer(ix, number),
        }
    }

    fn fire(&mut self, due_ms: i64, timer: Timer) {
        match timer {
            Timer::Wake(ix) => self.woke(ix, due_ms),
            Timer::Expire(ix) => self.end(ix, Outcome::Expired, b""),
            Timer::Await(ix) => self.stop_awaiting(ix),
            Timer::Hold(ix) => self.hold_or_wait(ix),
            Timer::Miss(ix) => self.missed(ix),
            Timer::Schedule(ix) => self.schedules.woke(ix),
            Timer::Timeout(ix) => self.attempt_over(ix, AttemptEnd::TimedOut),
            Timer::Lease(ix) => self.attempt_over(ix, AttemptEnd::LeaseExpired),
        }
    }

    /// Whether a queue can use what limits give it; see [`Limits::suspend`].
    pub(super) fn suspend_if_idle(&mut self, ix: QueueIx) {
        let queue = self.queue(ix);
        let is_idle = queue.is_paused || self.is_draining || queue.workers.capacity == 0;
        self.limits.suspend(Group(u32::from(ix.0)), is_idle, self.now_ms);
    }

    pub(super) fn tell(&mut self, ix: TaskIx, end: Option<AttemptEnd>) {
        if self.is_restoring {
            return;
        }
        let task = &self.tasks[ix];
        let status = status_of(&task.state);
        let is_always = matches!(status, Status::Retrying | Status::Ended(_));
        if is_always || self.config.tells_all {
            let (task, attempt) = (task.number, task.attempts);
            self.outputs.push_back(Output::Changed { task, status, attempt, time_ms: self.now_ms, end });
        }
    }

    pub(super) fn warn(&mut self, warning: Warning) {
        self.outputs.push_back(Output::Warning(warning));
    }

    /// Writes a record unless it is the one being taken back.
    pub(super) fn record(&mut self, record: &TaskRecord<'_>) {
        debug_assert!(!self.is_restoring, "nothing is decided while records are taken back");
        self.records.write(|bytes| record.encode(bytes));
    }

    /// Counts a task as pending, or as not.
    pub(super) fn count_pending(&mut self, queue: QueueIx, class: Class, is_more: bool) {
        let at = usize::from(class.code());
        let of_queue = &mut self.queues[usize::from(queue.0)].pending[at];
        if is_more {
            *of_queue += 1;
            self.pending[at] += 1;
        } else {
            *of_queue -= 1;
            self.pending[at] -= 1;
            self.waiting.has_room = true;
        }
    }
}

/// A task's status, as it is told.
pub(super) fn status_of(state: &State) -> Status {
    match state {
        State::Blocked => Status::Blocked,
        State::Scheduled => Status::Scheduled,
        State::Ready(_) => Status::Queued,
        State::Running { .. } => Status::Running,
        State::Retrying => Status::Retrying,
        State::Ended { outcome, .. } => Status::Ended(*outcome),
    }
}
