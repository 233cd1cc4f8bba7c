//! What the task scheduler writes: every record of the source `Scheduler`, as values. `task_codec` has the bytes.
//!
//! Kinds 1 to 63 belong to shards and to the directory, 64 and up to the scheduler, so that both can grow. A record is
//! never cut in two by a crash; what has to happen together is therefore one record (`Batch`) or is implied by one
//! (a `Submitted` that a schedule asked for moves that schedule on).
//!
//! | kind | record | says |
//! | --- | --- | --- |
//! | 64 | `Submitted` | a task exists |
//! | 65 | `Batch` | several tasks exist, numbered one after the other, all or none |
//! | 66 | `Started` | an attempt began |
//! | 67 | `Retrying` | an attempt ended and another one follows |
//! | 68 | `Ended` | the task reached its one terminal status |
//! | 69 | `Changed` | somebody changed a task that has not started |
//! | 70 | `Revived` | somebody gave an ended task its attempts back |
//! | 71 | `QueueSet` | a queue was paused, resumed or resized while running |
//! | 72 | `LimitSet` | a limit was defined or resized while running |
//! | 73 | `SchedulesSet` | schedules exist, have other definitions or exist no more, all or none |
//! | 75 | `ScheduleMoved` | a schedule passed a time without a task |
//! | 76 | `SchedulePaused` | it was paused or resumed |
//! | 80 | `Ordered` | a task exists that a run asked for |
//! | 81 | `OrderWaits` | what a run asked for waits for room |
//! | 82 | `OrderJoined` | a task that was there stands for what a run asked for, or a run watches it |
//! | 83 | `OrderRefused` | what a run asked for cannot be, or is not wanted any more |
//! | 84 | `MessageTaken` | a message of a shard changed nothing else than what the records before it say |
//! | 85 | `RunOver` | the run that a task stands for has ended, and so has the task |
//! | 86 | `RunMade` | the run exists that a task stands for |
//! | 87 | `RunAsked` | the run that a task stands for is asked to end; implies a message |
//! | 88 | `AwaitedRun` | a run has ended that the task waits for, or there is none |
//! | 89 | `QueueBounds` | the bounds between which a queue follows its load were changed while running |
//!
//! 74 and 77 to 79 have never been written.

use super::{Caller, Origin, RunNo, Status, TaskRole};

macro_rules! coded {
    ($(#[$of:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $code:literal),* $(,)? }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$each])* $variant),* }

        impl $name {
            /// All of them, in the order of their numbers.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// The number that stands for it on disk and in the crossing to the host.
            #[must_use]
            pub fn code(self) -> u8 {
                match self { $($name::$variant => $code),* }
            }

            /// The value that a number stands for.
            #[must_use]
            pub fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some($name::$variant),)* _ => None }
            }
        }
    };
}

/// Number of a task within the directory, from 1, in the order of submission, never used twice. First in, first out
/// means in the order of this number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskNo(pub u64);

/// No task has so high a number.
const FIRST_PLACE: u64 = 1 << 63;

impl TaskNo {
    /// Stands for the task at a place of a batch, from 0, while that has no number. It is never recorded.
    #[must_use]
    pub fn in_batch(place: u32) -> TaskNo {
        TaskNo(FIRST_PLACE + u64::from(place))
    }

    /// The place, if it stands for one.
    #[must_use]
    pub fn place_in_batch(self) -> Option<usize> {
        usize::try_from(self.0.checked_sub(FIRST_PLACE)?).ok()
    }
}

impl std::fmt::Display for TaskNo {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

coded! {
    /// How important a task is. Smaller is more important.
    Class {
        /// Before all others.
        Critical = 0,
        /// Before the usual.
        High = 1,
        /// The usual.
        Normal = 2,
        /// When there is room.
        Low = 3,
    }
}

coded! {
    /// How a task ended.
    Outcome {
        /// Its function returned.
        Completed = 1,
        /// Its function threw what no retry mends.
        Failed = 2,
        /// It used up its attempts.
        Dead = 3,
        /// Somebody cancelled it.
        Cancelled = 4,
        /// What it waited for can no longer be.
        Skipped = 5,
        /// Its reserved start went by.
        Missed = 6,
        /// It had not started when its time was over.
        Expired = 7,
        /// It gave way when its queue was full.
        Shed = 8,
    }
}

coded! {
    /// What must become of a task that another one waits for.
    Condition {
        /// It completes.
        Success = 0,
        /// It ends in any way.
        Completion = 1,
        /// It fails or is dead.
        Failure = 2,
    }
}

coded! {
    /// What happens to a task that missed its reserved start.
    OnMiss {
        /// It runs late, before other work.
        RunLate = 0,
        /// It ends as missed.
        Skip = 1,
        /// It ends as failed.
        Fail = 2,
    }
}

coded! {
    /// Why an attempt ended without ending its task.
    AttemptEnd {
        /// Its function threw.
        Failed = 0,
        /// It took longer than it may.
        TimedOut = 1,
        /// Its executor was silent for too long.
        LeaseExpired = 2,
        /// The process or thread it ran in is gone.
        Lost = 3,
        /// It was cut by an orderly shutdown.
        Drained = 4,
        /// It asked to be called again later.
        Postponed = 5,
    }
}

coded! {
    /// What a schedule does when the occurrence before has not ended.
    Overlap {
        /// The new one is skipped.
        Skip = 0,
        /// Both run.
        Allow = 1,
        /// The new one starts when the one before has ended.
        Queue = 2,
        /// The new one starts if the one before completes.
        QueueOnSuccess = 3,
        /// One waits at most; a newer one takes its place.
        QueueOne = 4,
        /// The one before is cancelled.
        Replace = 5,
    }
}

/// A task that another one waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent<'a> {
    /// By its number.
    Number(TaskNo),
    /// By its key; it need not exist yet if the queue allows that.
    Key(&'a str),
    /// A workflow by its id: this run of it, or the latest one; and those that take the run's place.
    Run(&'a str, Option<RunNo>),
}

/// An edge of the dependency graph, seen from the task that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge<'a> {
    /// What it waits for.
    pub parent: Parent<'a>,
    /// What must become of that.
    pub condition: Condition,
}

/// What an attempt takes of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LimitUse<'a> {
    /// The limit's name.
    pub name: &'a str,
    /// Whose share of it, for a limit that is counted apart for each key.
    pub key: Option<&'a str>,
    /// Units.
    pub amount: u32,
}

/// A promise of a start at a time, in place of a plain delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// How late the start may be.
    pub tolerance_ms: u32,
    /// What happens when it is later.
    pub on_miss: OnMiss,
}

/// When failed attempts are followed by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all, at least 1.
    pub max_attempts: u32,
    /// Wait before the second attempt.
    pub initial_ms: u32,
    /// By how much each wait is longer than the one before, in hundredths: 200 doubles.
    pub backoff_percent: u32,
    /// Longest wait.
    pub max_ms: u32,
    /// Whether a wait is drawn between nothing and its length.
    pub has_jitter: bool,
}

impl Default for RetryPolicy {
    /// Three attempts, 1 s, doubled, at most 1 min, full jitter.
    fn default() -> Self {
        RetryPolicy { max_attempts: 3, initial_ms: 1_000, backoff_percent: 200, max_ms: 60_000, has_jitter: true }
    }
}

/// The schedule that asked for a task, and for which time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence<'a> {
    /// The schedule's name.
    pub schedule: &'a str,
    /// The time it stands for, in ms since 1970.
    pub at_ms: i64,
    /// Whether it moves the schedule on; a triggered or backfilled one does not.
    pub is_regular: bool,
}

/// A run that is to be made because a task exists, and that the task stands for. Its definition has the name of the
/// task's, its input is the task's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch<'a> {
    /// Its id. In a schedule: what the ids of its runs are made of; empty: the keys of its tasks.
    pub id: &'a str,
    /// Version of the code.
    pub version: u32,
    /// Longest life, from the time at which it may start.
    pub timeout_ms: Option<i64>,
    /// What its keys come from.
    pub key_root: [u8; 16],
}

/// Everything that a submission fixes about a task. Times are in ms since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpec<'a> {
    /// The line it stands in.
    pub queue: &'a str,
    /// The definition's name.
    pub kind: &'a str,
    /// How important it is.
    pub class: Class,
    /// Encoded input.
    pub payload: &'a [u8],
    /// A name that no other live task has.
    pub key: Option<&'a str>,
    /// Whose share of a fair queue it takes.
    pub tenant: Option<&'a str>,
    /// Tasks with the same one run one at a time in the order of submission.
    pub order_key: Option<&'a str>,
    /// Not before this time.
    pub not_before_ms: Option<i64>,
    /// Promises a start at `not_before_ms`.
    pub reserve: Option<Reserve>,
    /// Soft: it becomes more urgent as this comes near.
    pub deadline_ms: Option<i64>,
    /// It ends unrun when it has not started by then.
    pub expires_ms: Option<i64>,
    /// Expected run time.
    pub estimate_ms: Option<u32>,
    /// Longest run time of an attempt.
    pub timeout_ms: Option<u32>,
    /// In place of the queue's policy.
    pub retry: Option<RetryPolicy>,
    /// What it waits for.
    pub after: Vec<Edge<'a>>,
    /// What each attempt takes of limits.
    pub limits: Vec<LimitUse<'a>>,
    /// What a group of workers must carry to run it.
    pub labels: Vec<(&'a str, &'a str)>,
    /// Handed to its function and to listeners.
    pub tags: Vec<(&'a str, &'a str)>,
    /// The schedule that asked for it.
    pub occurrence: Option<Occurrence<'a>>,
    /// The run that it is to stand for.
    pub launch: Option<Launch<'a>>,
}

impl<'a> TaskSpec<'a> {
    /// A task with nothing but a queue, a definition and an input.
    #[must_use]
    pub fn new(queue: &'a str, kind: &'a str, payload: &'a [u8]) -> Self {
        TaskSpec {
            queue,
            kind,
            class: Class::Normal,
            payload,
            key: None,
            tenant: None,
            order_key: None,
            not_before_ms: None,
            reserve: None,
            deadline_ms: None,
            expires_ms: None,
            estimate_ms: None,
            timeout_ms: None,
            retry: None,
            after: Vec::new(),
            limits: Vec::new(),
            labels: Vec::new(),
            tags: Vec::new(),
            occurrence: None,
            launch: None,
        }
    }
}

/// What happens to a submission whose key is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DedupeMode {
    /// The task that has the key stands for it.
    #[default]
    Skip,
    /// A task that does not run yet takes its input and its time.
    Replace,
    /// As `Replace`, and the task starts when nobody submitted for a while.
    Debounce {
        /// The while.
        window_ms: u32,
        /// It starts so long after the first submission at the latest.
        max_wait_ms: Option<u32>,
    },
    /// The newest task under the key stands for all that come within this time after it was submitted, over or not.
    Throttle {
        /// The time.
        window_ms: u32,
    },
    /// While one runs, one more may wait, with the newest input.
    Rerun,
    /// It is refused.
    Error,
}

coded! {
    /// Which tasks keep a key taken.
    #[derive(Default)]
    DedupeScope {
        /// Those that do not run yet.
        Pending = 0,
        /// Those that are not over.
        #[default]
        Live = 1,
        /// Those that are remembered.
        Retained = 2,
    }
}

/// How submissions under one key are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dedupe {
    /// What happens to a later one.
    pub mode: DedupeMode,
    /// While what is it a later one.
    pub scope: DedupeScope,
}

/// A task as a run asks for it: who, with which message, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The operation of the run.
    pub caller: Caller,
    /// The message.
    pub origin: Origin,
    /// What the task is to the run.
    pub role: TaskRole,
}

/// How much a limit gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitSpec {
    /// So many units in use at a time.
    Concurrency(u32),
    /// So many units in a time, at most `burst` at once.
    Rate {
        /// Units that come back in a period.
        limit: u32,
        /// The period.
        period_ms: u32,
        /// Most that can lie ready.
        burst: u32,
    },
}

/// A change of a task that has not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Its class.
    Class(Class),
    /// The time before which it does not start.
    NotBefore(i64),
    /// Its input and that time: a later submission under its key took its place.
    Replaced {
        /// The new input.
        payload: &'a [u8],
        /// Not before this time.
        not_before_ms: Option<i64>,
    },
}

/// When a schedule is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When<'a> {
    /// At the times that a cron expression names in a time zone.
    Cron {
        /// Five fields, or six with seconds first.
        expression: &'a str,
        /// A name of the IANA time zone database.
        zone: &'a str,
    },
    /// Each time that a period has passed since `offset_ms` after 1970.
    Every {
        /// The period.
        period_ms: u64,
        /// Where the periods begin.
        offset_ms: u64,
    },
}

/// What a schedule makes up for after a time in which it could not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatchUp {
    /// Nothing.
    None,
    /// The newest of the missed times.
    Last,
    /// The newest of them, up to so many.
    UpTo(u32),
}

/// A recurring task. Times are in ms since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleSpec<'a> {
    /// When it is due.
    pub when: When<'a>,
    /// Not before this time.
    pub start_ms: Option<i64>,
    /// Not after this time.
    pub end_ms: Option<i64>,
    /// So many occurrences in all.
    pub limit: Option<u64>,
    /// Each occurrence is moved back by a time drawn from 0 to this.
    pub jitter_ms: u32,
    /// What happens when the one before has not ended.
    pub overlap: Overlap,
    /// What is made up for.
    pub catch_up: CatchUp,
    /// Whether it pauses itself when an occurrence fails or is dead.
    pub pauses_on_failure: bool,
    /// Deadline of an occurrence, from its time.
    pub deadline_after_ms: Option<u32>,
    /// Expiry of an occurrence, from its time.
    pub expires_after_ms: Option<u32>,
    /// What is submitted. Its `key` is a prefix; it has no times, no edges and no occurrence.
    pub template: TaskSpec<'a>,
}

/// A schedule that a record defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleEntry<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether code declares it: then it goes when code does not any more.
    pub is_declared: bool,
    /// Its definition.
    pub spec: ScheduleSpec<'a>,
}

/// A record of the scheduler. Times are in ms since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are named by the table above and by the types they have")]
pub enum TaskRecord<'a> {
    Submitted {
        task: TaskNo,
        time_ms: i64,
        spec: Box<TaskSpec<'a>>,
    },
    Batch {
        first: TaskNo,
        time_ms: i64,
        specs: Vec<TaskSpec<'a>>,
    },
    Started {
        task: TaskNo,
        time_ms: i64,
    },
    Retrying {
        task: TaskNo,
        time_ms: i64,
        retry_ms: i64,
        end: AttemptEnd,
        /// Whether the attempt does not count against the policy.
        is_free: bool,
        failure: &'a [u8],
    },
    Ended {
        task: TaskNo,
        time_ms: i64,
        outcome: Outcome,
        payload: &'a [u8],
    },
    Changed {
        task: TaskNo,
        time_ms: i64,
        change: Change<'a>,
    },
    Revived {
        task: TaskNo,
        time_ms: i64,
    },
    QueueSet {
        queue: &'a str,
        is_paused: bool,
        concurrency: Option<u32>,
    },
    QueueBounds {
        queue: &'a str,
        min: u32,
        max: u32,
    },
    LimitSet {
        name: &'a str,
        spec: LimitSpec,
    },
    SchedulesSet {
        time_ms: i64,
        set: Vec<ScheduleEntry<'a>>,
        removed: Vec<&'a str>,
    },
    ScheduleMoved {
        name: &'a str,
        past_ms: i64,
    },
    SchedulePaused {
        name: &'a str,
        time_ms: i64,
        is_paused: bool,
    },
    Ordered {
        task: TaskNo,
        time_ms: i64,
        order: Order,
        spec: Box<TaskSpec<'a>>,
    },
    OrderWaits {
        time_ms: i64,
        order: Order,
        dedupe: Dedupe,
        spec: Box<TaskSpec<'a>>,
    },
    OrderJoined {
        task: TaskNo,
        time_ms: i64,
        order: Order,
        /// Whether the task took the input of what was asked for.
        is_changed: bool,
    },
    OrderRefused {
        order: Order,
        time_ms: i64,
        /// For the run: a text of [`crate::scheduler`].
        why: &'a [u8],
    },
    MessageTaken {
        origin: Origin,
    },
    RunOver {
        task: TaskNo,
        time_ms: i64,
        outcome: Outcome,
        origin: Origin,
    },
    RunMade {
        task: TaskNo,
        time_ms: i64,
        caller: Caller,
        origin: Origin,
    },
    RunAsked {
        task: TaskNo,
        time_ms: i64,
    },
    AwaitedRun {
        task: TaskNo,
        time_ms: i64,
        /// Which of the runs that it waits for, from 1.
        edge: u32,
        status: Status,
        payload: &'a [u8],
        origin: Origin,
    },
}
