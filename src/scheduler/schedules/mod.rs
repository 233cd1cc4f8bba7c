//! Schedules: definitions of recurring tasks, how far each has come, and which of its tasks are not over.
//!
//! A schedule moves on by records alone: a `Submitted` that names an occurrence, or a `ScheduleMoved` for a time without a
//! task. So the task and the step past its time are one record, and no crash makes it twice. `fire` decides what is made
//! at which time, `verbs` has what somebody asks for, `apply` what the records do.

mod apply;
mod due;
mod error;
mod fire;
mod overlap;
mod saved;
mod verbs;
mod views;

pub use error::{ScheduleError, ScheduleProblem};
pub use verbs::Reconciled;
pub use views::{FireTime, ScheduleView, times_of};

use super::cron::{Timing, TimingError, Zones};
use super::output::Refusal;
use super::task::QueueIx;
use super::timers::TimerNo;
use crate::record::{Class, Outcome, ScheduleSpec, TaskNo, decode_schedule};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A time is missed when the engine came to it later than this.
pub const GRACE_MS: i64 = 10_000;

/// So many occurrences of a schedule are not over at most when each waits for those before it.
pub const QUEUED_MAX: usize = 100;

/// So many missed times are made up for at most, and so many are backfilled at once.
pub const TIMES_MAX: u32 = 1_000;

/// A schedule's place in the table, as long as it exists or has tasks that are not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ScheduleIx(u32);

/// What a schedule did that no task shows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say what they are; times are in ms since 1970")]
pub enum ScheduleEvent {
    /// A time passed without a task.
    Skipped { schedule: Arc<str>, at_ms: i64, why: ScheduleSkip },
    /// Times passed while it could not run, and are not made up for.
    Missed { schedule: Arc<str>, first_ms: i64, last_ms: i64 },
    /// The scheduler did not take the task of a time.
    Refused { schedule: Arc<str>, at_ms: i64, refusal: Refusal },
    /// It paused itself because this task failed, or the run with this id, for which it stands.
    Paused { schedule: Arc<str>, task: TaskNo, run: Option<Box<str>> },
    /// Its stored definition says no times in this release. It does nothing until it is defined anew.
    Broken { schedule: Arc<str>, error: TimingError },
}

/// Why a time passed without a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleSkip {
    /// The one before is not over.
    Overlap,
    /// The one before did not complete, and this one waits for that.
    AfterFailure,
    /// [`QUEUED_MAX`] of them are not over already.
    TooManyWait,
    /// Its task, or a run with the id of its run, exists already.
    Exists,
}

/// All schedules of a directory.
#[derive(Debug, Default)]
pub(super) struct Schedules {
    slots: Vec<Option<Schedule>>,
    free: Vec<ScheduleIx>,
    names: BTreeMap<Arc<str>, ScheduleIx>,
    zones: Zones,
    /// To be looked at before the call ends.
    pub(super) due: BTreeSet<ScheduleIx>,
    /// Whose next task waits for room, and where.
    starved: BTreeMap<ScheduleIx, (QueueIx, Class)>,
    events: VecDeque<ScheduleEvent>,
    /// Nothing fires until those that code declares are known.
    pub(super) are_held: bool,
}

/// A schedule. One that was removed stays as long as its tasks do.
#[derive(Debug)]
struct Schedule {
    name: Arc<str>,
    definition: Option<Definition>,
    timer: TimerNo,
    is_paused: bool,
    /// Whose failure it has to pause for.
    must_pause: Option<TaskNo>,
    /// All times up to this one are settled.
    past_ms: i64,
    /// Regular occurrences so far.
    fired: u64,
    /// The newest regular one, and its time.
    last: Option<(TaskNo, i64)>,
    /// How the one that ended last ended.
    last_outcome: Option<Outcome>,
    /// Its tasks that are not over.
    live: BTreeSet<TaskNo>,
}

#[derive(Debug)]
struct Definition {
    bytes: Arc<[u8]>,
    is_declared: bool,
    timing: Result<Timing, TimingError>,
}

impl Definition {
    fn spec(&self) -> ScheduleSpec<'_> {
        decode_schedule(&self.bytes).expect("a definition is kept as it was encoded")
    }
}

impl Schedules {
    fn get(&self, ix: ScheduleIx) -> Option<&Schedule> {
        self.slots.get(ix.0 as usize)?.as_ref()
    }

    fn get_mut(&mut self, ix: ScheduleIx) -> Option<&mut Schedule> {
        self.slots.get_mut(ix.0 as usize)?.as_mut()
    }

    /// A schedule that is defined.
    fn find(&self, name: &str) -> Option<(ScheduleIx, &Schedule)> {
        let ix = *self.names.get(name)?;
        let schedule = self.get(ix).filter(|schedule| schedule.definition.is_some())?;
        Some((ix, schedule))
    }

    fn find_or_add(&mut self, name: &str) -> ScheduleIx {
        if let Some(ix) = self.names.get(name) {
            return *ix;
        }
        let name: Arc<str> = name.into();
        let schedule = Schedule {
            name: Arc::clone(&name),
            definition: None,
            timer: TimerNo::NONE,
            is_paused: false,
            must_pause: None,
            past_ms: i64::MIN,
            fired: 0,
            last: None,
            last_outcome: None,
            live: BTreeSet::new(),
        };
        let ix = match self.free.pop() {
            Some(ix) => {
                self.slots[ix.0 as usize] = Some(schedule);
                ix
            }
            None => {
                self.slots.push(Some(schedule));
                ScheduleIx(self.slots.len() as u32 - 1)
            }
        };
        self.names.insert(name, ix);
        ix
    }

    /// Forgets a schedule that is not defined and has no tasks.
    fn forget_if_over(&mut self, ix: ScheduleIx) {
        let is_over = self.get(ix).is_some_and(|schedule| schedule.definition.is_none() && schedule.live.is_empty());
        if is_over && let Some(schedule) = self.slots[ix.0 as usize].take() {
            self.names.remove(&schedule.name);
            self.due.remove(&ix);
            self.starved.remove(&ix);
            self.free.push(ix);
        }
    }

    fn all(&self) -> impl Iterator<Item = ScheduleIx> {
        (0..self.slots.len() as u32).map(ScheduleIx).filter(|ix| self.get(*ix).is_some())
    }

    /// Has all of them looked at.
    pub(super) fn mark_all(&mut self) {
        let all: Vec<ScheduleIx> = self.all().collect();
        self.due.extend(all);
    }

    /// Numbers them in the order of their names, and forgets when they were to be looked at.
    pub(super) fn renumber(&mut self) {
        let mut slots = std::mem::take(&mut self.slots);
        self.free.clear();
        self.due.clear();
        for ix in self.names.values_mut() {
            let mut schedule = slots[ix.0 as usize].take();
            if let Some(schedule) = schedule.as_mut() {
                schedule.timer = TimerNo::NONE;
            }
            *ix = ScheduleIx(self.slots.len() as u32);
            self.slots.push(schedule);
        }
    }

    /// Whether a timer is the one that a schedule waits for.
    pub(super) fn keeps_timer(&self, ix: ScheduleIx, number: TimerNo) -> bool {
        self.get(ix).is_some_and(|schedule| schedule.timer == number)
    }

    /// Its timer came up.
    pub(super) fn woke(&mut self, ix: ScheduleIx) {
        if let Some(schedule) = self.get_mut(ix) {
            schedule.timer = TimerNo::NONE;
            self.due.insert(ix);
        }
    }
}
