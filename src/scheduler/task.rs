//! A task in memory, and the table of them.

use super::launches::OwnLaunch;
use super::limits::ClaimIx;
use super::order::Latest;
use super::run_edges::RunEdge;
use super::timers::TimerNo;
use crate::record::{AttemptEnd, Caller, Class, Condition, OnMiss, Outcome, RetryPolicy, TaskNo};
use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

/// A task's place in the table, as long as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TaskIx(pub(super) u32);

/// A queue, as long as the engine lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueueIx(pub(super) u16);

/// A definition's name within a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KindIx(pub(super) u16);

/// An attempt's place in the table of attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AttemptIx(pub(super) u32);

/// Where a task is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Waits for other tasks.
    Blocked,
    /// Waits for a time, before its first attempt.
    Scheduled,
    /// Could run.
    Ready(Place),
    /// An attempt runs; `None`: it ran when the log ended.
    Running { started_ms: i64, attempt: Option<AttemptIx> },
    /// Waits for a time, before another attempt.
    Retrying,
    /// Over; `place`: the how manieth that ended, for who is forgotten first.
    Ended { outcome: Outcome, time_ms: i64, place: u64 },
}

/// Where a ready task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the plain line of its class.
    Plain,
    /// In the line of its class that goes by latest start.
    Deadline { order_ms: i64, latest: Latest },
    /// In the fair line of its class.
    Fair { tag: u64 },
    /// Its reserved start has come.
    Due,
    /// Waits at a limit.
    Limit,
    /// Waits for a worker with its labels.
    Labels,
}

/// A task.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) number: TaskNo,
    pub(super) queue: QueueIx,
    pub(super) kind: KindIx,
    pub(super) class: Class,
    pub(super) mark: Mark,
    pub(super) state: State,
    pub(super) submitted_ms: i64,
    /// When it could first have run.
    pub(super) eligible_ms: Option<i64>,
    /// Attempts that began.
    pub(super) attempts: u32,
    /// Those among them that do not count against its policy.
    pub(super) free_attempts: u32,
    /// Attempts that were cut by a crash.
    pub(super) losses: u32,
    /// How often it was given its attempts back.
    pub(super) revivals: u32,
    /// What it still waits for before it is eligible.
    pub(super) unmet: u32,
    pub(super) wake: TimerNo,
    /// Its input; of a completed task its output.
    pub(super) payload: Box<[u8]>,
    pub(super) more: Option<Box<More>>,
}

/// What most tasks do not have.
#[derive(Debug, Default)]
pub(super) struct More {
    pub(super) key: Option<Box<str>>,
    pub(super) tenant: Option<Box<str>>,
    pub(super) order_key: Option<Box<str>>,
    /// Its place in the line of that key.
    pub(super) order_place: u64,
    pub(super) not_before_ms: Option<i64>,
    pub(super) reserve: Option<Booked>,
    pub(super) deadline_ms: Option<i64>,
    pub(super) expires_ms: Option<i64>,
    pub(super) expire: TimerNo,
    pub(super) estimate_ms: Option<u32>,
    pub(super) timeout_ms: Option<u32>,
    pub(super) retry: Option<RetryPolicy>,
    /// Tasks that wait for this one; an entry counts only while its number is in its place.
    pub(super) dependents: Vec<Dependent>,
    /// Parents by number, for whoever hands their results on.
    pub(super) parents: Vec<TaskNo>,
    /// The run that it stands for.
    pub(super) run: Option<Caller>,
    /// The run that it is or was to stand for.
    pub(super) launch: Option<OwnLaunch>,
    /// Runs that are told of its end.
    pub(super) watchers: Vec<Caller>,
    /// Of those that it waits or waited for in this life of its own.
    pub(super) edges: Vec<OwnEdge>,
    /// Runs of workflows that it waits or waited for, in the order in which they were named.
    pub(super) runs: Vec<RunEdge>,
    /// Keys that no task has yet, and what must become of whoever takes them.
    pub(super) awaits: Vec<(Box<str>, Condition)>,
    pub(super) await_timer: TimerNo,
    /// What each attempt takes of limits: name, key, amount.
    pub(super) limits: Box<[OwnUse]>,
    pub(super) claim: Option<ClaimIx>,
    pub(super) labels: Box<[(Box<str>, Box<str>)]>,
    pub(super) tags: Box<[(Box<str>, Box<str>)]>,
    pub(super) occurrence: Option<OwnOccurrence>,
    /// The tag it had in a fair line before it went to wait at a limit.
    pub(super) fair_tag: Option<u64>,
    /// When its next attempt is due.
    pub(super) retry_ms: Option<i64>,
    pub(super) history: Vec<AttemptNote>,
    /// What it ended with, if not completed.
    pub(super) failure: Box<[u8]>,
}

/// The schedule that asked for a task, for which time, and whether it moved the schedule on.
#[derive(Debug)]
pub(super) struct OwnOccurrence {
    pub(super) schedule: Box<str>,
    pub(super) at_ms: i64,
    pub(super) is_regular: bool,
}

/// A parent, which of its lives is waited for, and what must become of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnEdge {
    pub(super) parent: TaskNo,
    pub(super) revivals: u32,
    pub(super) condition: Condition,
}

/// What a checkpoint knows of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mark {
    /// It is stored as it is.
    #[default]
    Stored,
    /// It has changed since the last checkpoint began.
    Touched,
    /// It belongs to the checkpoint that is being made, and has not changed since that began.
    InCut,
}

/// What an attempt takes of a limit: name, key, amount.
pub(super) type OwnUse = (Box<str>, Option<Box<str>>, u32);

/// A reserved start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Booked {
    pub(super) at_ms: i64,
    pub(super) tolerance_ms: i64,
    pub(super) on_miss: OnMiss,
    pub(super) end_ms: i64,
    pub(super) hold: TimerNo,
    pub(super) miss: TimerNo,
}

/// A task that waits for another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dependent {
    pub(super) task: TaskIx,
    pub(super) number: TaskNo,
    /// In which of its lives: one that ended and was revived waits for nobody from before.
    pub(super) revivals: u32,
    pub(super) condition: Condition,
}

/// An attempt that did not end its task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptNote {
    /// Counted from 1.
    pub attempt: u32,
    /// When it began, in ms since 1970.
    pub started_ms: i64,
    /// When it ended, in ms since 1970.
    pub ended_ms: i64,
    /// Why.
    pub end: AttemptEnd,
    /// What its function threw, encoded.
    pub failure: Box<[u8]>,
}

/// Of so many attempts a task keeps a note, the newest.
pub(super) const HISTORY_MAX: usize = 16;

impl Task {
    pub(super) fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended { .. })
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    /// Accepted, not running, not over.
    pub(super) fn is_pending(&self) -> bool {
        !self.is_ended() && !self.is_running()
    }

    /// Attempts that count against its policy.
    pub(super) fn counted_attempts(&self) -> u32 {
        self.attempts.saturating_sub(self.free_attempts)
    }

    pub(super) fn more_mut(&mut self) -> &mut More {
        self.more.get_or_insert_with(Box::default)
    }

    /// The tag that it kept is of another class, time or life.
    pub(super) fn forget_share(&mut self) {
        if let Some(more) = &mut self.more {
            more.fair_tag = None;
        }
    }

    pub(super) fn reserve(&self) -> Option<&Booked> {
        self.more.as_ref()?.reserve.as_ref()
    }

    pub(super) fn key(&self) -> Option<&str> {
        self.more.as_ref()?.key.as_deref()
    }

    pub(super) fn claim(&self) -> Option<ClaimIx> {
        self.more.as_ref()?.claim
    }

    pub(super) fn tenant(&self) -> Option<&str> {
        self.more.as_ref()?.tenant.as_deref()
    }

    pub(super) fn labels(&self) -> &[(Box<str>, Box<str>)] {
        self.more.as_ref().map_or(&[], |more| &more.labels)
    }
}

/// All tasks that are known: those not over, and those over that are still remembered.
#[derive(Debug, Default)]
pub(super) struct Table {
    tasks: Vec<Option<Task>>,
    free: Vec<TaskIx>,
    /// 256 numbers a page; a page goes when the last of its tasks does.
    pages: BTreeMap<u64, Page>,
}

#[derive(Debug)]
struct Page {
    places: Box<[u32; 256]>,
    used: u32,
}

const EMPTY: u32 = u32::MAX;

impl Table {
    pub(super) fn insert(&mut self, task: Task) -> TaskIx {
        let number = task.number.0;
        let ix = match self.free.pop() {
            Some(ix) => {
                self.tasks[ix.0 as usize] = Some(task);
                ix
            }
            None => {
                self.tasks.push(Some(task));
                TaskIx(self.tasks.len() as u32 - 1)
            }
        };
        let page = self.pages.entry(number >> 8).or_insert_with(|| Page { places: Box::new([EMPTY; 256]), used: 0 });
        page.places[(number & 255) as usize] = ix.0;
        page.used += 1;
        ix
    }

    pub(super) fn remove(&mut self, ix: TaskIx) -> Task {
        let task = self.tasks[ix.0 as usize].take().expect("a task is removed once");
        self.free.push(ix);
        let number = task.number.0;
        let page = self.pages.get_mut(&(number >> 8)).expect("a known task has a page");
        page.places[(number & 255) as usize] = EMPTY;
        page.used -= 1;
        if page.used == 0 {
            self.pages.remove(&(number >> 8));
        }
        task
    }

    pub(super) fn find(&self, number: TaskNo) -> Option<TaskIx> {
        let place = self.pages.get(&(number.0 >> 8))?.places[(number.0 & 255) as usize];
        (place != EMPTY).then_some(TaskIx(place))
    }

    /// The task in a place, if it is still the one with that number.
    pub(super) fn same(&self, ix: TaskIx, number: TaskNo) -> bool {
        self.tasks.get(ix.0 as usize).and_then(Option::as_ref).is_some_and(|task| task.number == number)
    }

    pub(super) fn get(&self, ix: TaskIx) -> Option<&Task> {
        self.tasks.get(ix.0 as usize)?.as_ref()
    }

    /// All with a number above `after`, in the order of numbers.
    pub(super) fn iter_after(&self, after: TaskNo) -> impl Iterator<Item = (TaskIx, &Task)> {
        let first = after.0.saturating_add(1);
        self.pages
            .range(first >> 8..)
            .flat_map(|(page, of)| {
                of.places.iter().enumerate().map(move |(at, place)| ((page << 8) + at as u64, *place))
            })
            .filter(move |(number, place)| *place != EMPTY && *number >= first)
            .map(|(_, place)| (TaskIx(place), &self[TaskIx(place)]))
    }
}

impl Index<TaskIx> for Table {
    type Output = Task;

    fn index(&self, ix: TaskIx) -> &Task {
        self.tasks[ix.0 as usize].as_ref().expect("an index is kept only while its task is known")
    }
}

impl IndexMut<TaskIx> for Table {
    fn index_mut(&mut self, ix: TaskIx) -> &mut Task {
        self.tasks[ix.0 as usize].as_mut().expect("an index is kept only while its task is known")
    }
}
