//! What the engine says: what to do, what changed, and why it refuses.

use super::launches::LaunchOrder;
use super::limits::LimitError;
use super::members::MemberNo;
use super::orders::OrderAnswer;
use crate::record::{AttemptEnd, Caller, Outcome, RunNo, TaskNo};
use std::fmt;

/// The right to end one attempt. Under any other one nothing changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lease {
    /// Where the attempt stands among those that run.
    pub slot: u32,
    /// Never used twice: the number of the opening in the upper 16 bits, a counter below.
    pub serial: u64,
}

/// A submission that waits for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubmitterNo(pub u64);

/// A step that waits for limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepTicket(pub u64);

/// What became of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A new task.
    New(TaskNo),
    /// Its key belongs to this one, which stands for it.
    Existing(TaskNo),
    /// Its key belongs to this one, which took its input.
    Changed(TaskNo),
}

impl Answer {
    /// The task, whichever it is.
    #[must_use]
    pub fn task(self) -> TaskNo {
        match self {
            Answer::New(task) | Answer::Existing(task) | Answer::Changed(task) => task,
        }
    }
}

/// What a submission comes back with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted<T> {
    /// It was decided.
    Now(T),
    /// It waits for room: an [`Output::Admitted`] with this number follows.
    Waits(SubmitterNo),
}

/// Why a submission is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the text of each says what it is")]
pub enum Refusal {
    Closed,
    UnknownQueue(Box<str>),
    Limit(LimitError),
    /// What is wrong with the description.
    Invalid(&'static str),
    UnknownParent(TaskNo),
    UnknownKey(Box<str>),
    UnknownRun(Box<str>),
    /// The tasks or keys along the cycle.
    Cycle(Vec<Box<str>>),
    DuplicateKey(Box<str>),
    KeyInUse {
        key: Box<str>,
        task: TaskNo,
    },
    Reserved {
        queue: Box<str>,
        at_ms: i64,
        limit: u32,
    },
    Full {
        queue: Box<str>,
        pending: u64,
        bound: u32,
    },
}

impl Refusal {
    /// The code by which the host finds the class of it.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::Closed => "CLOSED",
            Refusal::KeyInUse { .. } => "BUSY",
            Refusal::Full { .. } => "QUEUE_FULL",
            Refusal::Reserved { .. } => "RESERVATION",
            Refusal::UnknownRun(_) => "NOT_FOUND",
            Refusal::UnknownQueue(_)
            | Refusal::Limit(_)
            | Refusal::Invalid(_)
            | Refusal::UnknownParent(_)
            | Refusal::UnknownKey(_)
            | Refusal::Cycle(_)
            | Refusal::DuplicateKey(_) => "BAD_INPUT",
        }
    }

    /// The queue that it is about, and the bound or the time in ms since 1970; empty and 0: about none.
    #[must_use]
    pub fn about(&self) -> (&str, i64) {
        match self {
            Refusal::Full { queue, bound, .. } => (queue, i64::from(*bound)),
            Refusal::Reserved { queue, at_ms, .. } => (queue, *at_ms),
            _ => ("", 0),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Closed => formatter.write_str("the scheduler is shutting down and takes no new tasks"),
            Refusal::UnknownQueue(queue) => write!(formatter, "queue \"{queue}\" is not defined"),
            Refusal::Limit(error) => error.fmt(formatter),
            Refusal::Invalid(what) => formatter.write_str(what),
            Refusal::UnknownParent(task) => write!(formatter, "task {task}, which it waits for, is not known"),
            Refusal::UnknownKey(key) => write!(formatter, "no task has the key \"{key}\", which it waits for"),
            Refusal::UnknownRun(id) => write!(formatter, "there is no workflow \"{id}\", which it waits for"),
            Refusal::Cycle(path) => write!(formatter, "it would wait for itself: {}", path.join(" → ")),
            Refusal::DuplicateKey(key) => write!(formatter, "two tasks of one batch have the key \"{key}\""),
            Refusal::KeyInUse { key, task } => write!(formatter, "key \"{key}\" belongs to task {task}"),
            Refusal::Reserved { queue, at_ms, limit } => write!(
                formatter,
                "queue \"{queue}\" has all of its {limit} reservable slots taken at {at_ms} ms; \
                 choose another time, or a plain delay"
            ),
            Refusal::Full { queue, pending, bound } => {
                write!(formatter, "queue \"{queue}\" is full: {pending} tasks wait and the bound is {bound}")
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// Why none of several tasks is taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchRefusal {
    /// The one at fault, by its place among them, from 0; `None`: none of them more than another.
    pub at: Option<usize>,
    /// Why.
    pub why: Refusal,
}

impl BatchRefusal {
    pub(super) fn of(at: usize, why: Refusal) -> BatchRefusal {
        BatchRefusal { at: Some(at), why }
    }

    pub(super) fn of_all(why: Refusal) -> BatchRefusal {
        BatchRefusal { at: None, why }
    }
}

/// Why a running attempt is to be given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortReason {
    /// It took too long.
    TimedOut,
    /// Its executor was silent for too long.
    LeaseExpired,
    /// Its task was cancelled.
    Cancelled,
    /// The engine shuts down and waited long enough.
    Drained,
}

/// A task's status, as it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Waits for other tasks.
    Blocked,
    /// Waits for a time, before its first attempt.
    Scheduled,
    /// Could run.
    Queued,
    /// An attempt runs.
    Running,
    /// Waits for a time, before another attempt.
    Retrying,
    /// Over.
    Ended(Outcome),
}

/// What whoever drives the engine has to do or to tell, in order. Each waits until the records are durable that were
/// written before it was polled, save [`Output::Abort`], which need not wait, and what goes to a shard that shares the log:
/// [`Output::Answer`], [`Output::Launch`], [`Output::EndRun`] and [`Output::WatchRun`]. These are told while records are taken back, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Run the task's function.
    Dispatch {
        /// The task.
        task: TaskNo,
        /// The right to end the attempt.
        lease: Lease,
        /// Counted from 1.
        attempt: u32,
        /// Which of the queue's groups of workers it counts against.
        group: usize,
        /// The thread that is to run it.
        member: MemberNo,
    },
    /// Give an attempt up. Whatever it still says changes nothing.
    Abort {
        /// Its task.
        task: TaskNo,
        /// The right that it has lost.
        lease: Lease,
        /// The thread that runs it.
        member: MemberNo,
        /// Why.
        reason: AbortReason,
    },
    /// A task's status changed. Retries and ends are always told, the others if the configuration says so.
    Changed {
        /// The task.
        task: TaskNo,
        /// What it is now.
        status: Status,
        /// Attempts that began so far.
        attempt: u32,
        /// When, in ms since 1970.
        time_ms: i64,
        /// Why an attempt ended that another one follows.
        end: Option<AttemptEnd>,
    },
    /// A submission that waited was decided.
    Admitted {
        /// Which.
        submitter: SubmitterNo,
        /// One answer for each of its tasks.
        result: Result<Vec<Answer>, BatchRefusal>,
    },
    /// What a run asked for, or watches, is answered.
    Answer {
        /// The operation that waits.
        caller: Caller,
        /// What it is told.
        answer: OrderAnswer,
    },
    /// A run is to be made: [`super::Engine::handle_run_made`] or [`super::Engine::handle_run_refused`] follows.
    Launch(Box<LaunchOrder>),
    /// A run that has started is to be asked to end.
    EndRun {
        /// Its id.
        id: Box<str>,
        /// Which run, and its shard.
        run: Caller,
    },
    /// A task waits for a run: [`super::Engine::handle_awaited_run`] follows once that has ended, or if there is none.
    WatchRun {
        /// The task.
        task: TaskNo,
        /// Which of the runs that it waits for, from 1.
        edge: u32,
        /// Id of the workflow.
        id: Box<str>,
        /// One run of it.
        run: Option<RunNo>,
    },
    /// A step has its limits now.
    Granted(StepTicket),
    /// A queue wants other slots than before.
    Scale {
        /// The queue.
        queue: Box<str>,
        /// Slots that it wanted before.
        from: u32,
        /// Slots that it wants now.
        to: u32,
        /// Whether somebody outside is to provide them. Otherwise it has them.
        is_outside: bool,
    },
    /// Something that nobody asked for and somebody should know.
    Warning(Warning),
}

/// Something that nobody asked for and somebody should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// No worker carries the labels that a task needs.
    NoWorkerFor {
        /// The task.
        task: TaskNo,
        /// The queue.
        queue: Box<str>,
    },
    /// A recovered task names a queue that is not defined now. It waits until one is.
    QueueGone {
        /// The queue.
        queue: Box<str>,
    },
    /// A recovered task names a limit that is not defined now. It waits until one is.
    LimitGone {
        /// The limit.
        limit: Box<str>,
    },
}
