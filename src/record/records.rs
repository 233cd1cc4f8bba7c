//! Every record that a shard ever writes. Its bytes are made in `encode` and read in `decode`.
//!
//! A record is a kind byte, then its fields in the order of the declaration, in the alphabet of [`super::varint`].
//! Kinds and statuses are never renumbered. A field is never added to a kind that has been released: a change is a new
//! kind, and the reader keeps the old one.
//!
//! | kind | record | says |
//! | --- | --- | --- |
//! | 1 | `Start` | a run exists |
//! | 2 | `StepDone` | a step has its one result |
//! | 3 | `StepFailed` | an attempt failed and another one follows, or the step waits for a `Resumed` |
//! | 4 | `StepStarted` | a body is about to run, in a case where that must be known after a crash |
//! | 5 | `Heartbeat` | what a running attempt said last |
//! | 6 | `TimerSet` | the code sleeps |
//! | 7 | `TimerFired` | a sleep, or the limit of a wait or a condition, is over |
//! | 8 | `WaitSet` | the code waits for a signal |
//! | 9 | `ConditionSet` | the code waits for a condition |
//! | 10 | `Signal` | a signal arrived |
//! | 11 | `ChildSet` | the code started another workflow; implies a message |
//! | 12 | `SendSet` | the code addressed another workflow; implies a message |
//! | 13 | `ChildDone` | a child, or a watched workflow, ended |
//! | 14 | `Cancel` | somebody asked the run to end |
//! | 15 | `Resumed` | somebody ended a pause, or asks for another try of a stuck run |
//! | 16 | `Done` | the run ended; implies messages to whoever waits and to open children |
//! | 17 | `Watched` | somebody waits for the end of the run |
//! | 18 | `Answered` | a message changed nothing here and was answered; implies the answer |
//! | 19 | `Received` | a message changed nothing here |
//! | 20 | `Update` | an update was accepted |
//! | 21 | `UpdateDone` | the code answered an update |
//! | 22 | `SignalledStart` | a run exists and has a signal: both or neither |
//! | 23 | `Continued` | the run ended, the next one under its id exists and has what waited: all or nothing |
//! | 24 | `Patched` | the code of the run knows a change of the code |
//! | 25 | `Paused` | somebody asked that nothing of the run goes on until it is resumed |
//! | 26 | `Queued` | a run exists and waits until the scheduler lets it start; implies a message to it |
//! | 27 | `Activated` | the scheduler lets it start |
//! | 30 | `TaskSet` | the code asked for a task; implies a message to the scheduler |
//! | 31 | `TimerFired` | somebody who gave a name had a sleep end before its time |
//! | 32 | `TimerSet` | the code limits the time of a scope |
//! | 33 | `Forked` | a run exists whose journal begins with copies |
//! | 34 | `Reset` | the run ended, the next one under its id exists and has copies of what came before a place: all or nothing |
//! | 35 | `Branched` | in journals only: what stands before was copied, operations from a number on are the run's own |
//! | 36 | `Attributes` | search attributes of the run are set or taken away |
//! | 37 | `AttributedStart` | a run exists, has search attributes, and may have a signal: all or nothing |
//! | 38 | `Called` | an object was called |
//! | 39 | `CallDone` | the code answered a call, and what the object's state is; implies the answer to a run that called |
//! | 40 | `Queued` | the scheduler asked for it, and a task there stands for it already; implies the answer |
//!
//! 28 and 29 have never been written.

use super::{Lsn, RunNo, Seq, ShardId, TaskNo};

/// Longest name, id, key or actor, in bytes of UTF-8.
pub const TEXT_BYTES_MAX: usize = 256;

/// A record is at most so much longer than the one payload in it: every text and every number that it may have, and
/// the payloads that the engine itself makes. With room to spare.
pub const FIELDS_BYTES_MAX: usize = 4_096;

/// How a run, or something it waited for, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Its function returned.
    Completed,
    /// Its function threw.
    Failed,
    /// It was asked to end, and did.
    Cancelled,
    /// It was ended from outside.
    Terminated,
    /// Its time was over.
    TimedOut,
    /// An answer only: there is no such run.
    NotFound,
    /// An answer only: the id policies refused the start.
    Refused,
    /// It ended, and the next run under its id took its place.
    ContinuedAsNew,
    /// What it waited for before its start can no longer be.
    Skipped,
    /// Its reserved start went by.
    Missed,
    /// It had not started when its time was over.
    Expired,
    /// It gave way when its queue was full.
    Shed,
}

impl Status {
    /// The number that stands for it on disk and in the crossing to the host.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Status::Completed => 1,
            Status::Failed => 2,
            Status::Cancelled => 3,
            Status::Terminated => 4,
            Status::TimedOut => 5,
            Status::NotFound => 6,
            Status::Refused => 7,
            Status::ContinuedAsNew => 8,
            Status::Skipped => 9,
            Status::Missed => 10,
            Status::Expired => 11,
            Status::Shed => 12,
        }
    }

    /// The status that a number stands for.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Status> {
        Some(match code {
            1 => Status::Completed,
            2 => Status::Failed,
            3 => Status::Cancelled,
            4 => Status::Terminated,
            5 => Status::TimedOut,
            6 => Status::NotFound,
            7 => Status::Refused,
            8 => Status::ContinuedAsNew,
            9 => Status::Skipped,
            10 => Status::Missed,
            11 => Status::Expired,
            12 => Status::Shed,
            _ => return None,
        })
    }
}

/// What happens to a child when its parent ends first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParentClose {
    /// It is ended at once.
    Terminate,
    /// It is asked to end.
    Cancel,
    /// It goes on.
    Abandon,
}

/// May the id of a run that has ended be used again?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdReuse {
    /// Yes.
    Allow,
    /// Only if it ended other than completed.
    AllowFailedOnly,
    /// No.
    Reject,
}

/// The id belongs to a run that has not ended: what then?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdConflict {
    /// The existing run stands for the new one if the input is the same, else as `Fail`.
    SameInput,
    /// The start is refused.
    Fail,
    /// The existing run stands for the new one.
    UseExisting,
    /// The existing run is terminated first.
    TerminateExisting,
}

macro_rules! codes {
    ($name:ident { $($variant:ident = $code:literal),* $(,)? }) => {
        impl $name {
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

codes!(TaskRole { Awaited = 0, AwaitedLoosely = 1, Detached = 2, Run = 3 });
codes!(ParentClose { Terminate = 0, Cancel = 1, Abandon = 2 });
codes!(IdReuse { Allow = 0, AllowFailedOnly = 1, Reject = 2 });
codes!(IdConflict { SameInput = 0, Fail = 1, UseExisting = 2, TerminateExisting = 3 });

/// The operation that waits for an answer: which run of which shard, and where in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller {
    /// The shard of the run.
    pub shard: ShardId,
    /// The run.
    pub run: RunNo,
    /// The operation; 0: the run itself, which waits until it may start.
    pub seq: Seq,
}

/// The message that a record answers to: its sender and its number among those from that sender to this shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Who sent it.
    pub from: ShardId,
    /// Its number, from 1, without gaps.
    pub number: u64,
}

/// Everything that a start fixes about a run besides its number and the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewRun<'a> {
    /// The caller's name for the workflow.
    pub id: &'a str,
    /// The definition's name.
    pub kind: &'a str,
    /// Version of the code.
    pub version: u32,
    /// What the run's idempotency keys and its randomness come from.
    pub key_root: [u8; 16],
    /// When the run's time is over, in ms since 1970.
    pub deadline_ms: Option<i64>,
    /// Who started it, and what happens to it when that one ends first.
    pub parent: Option<(Caller, ParentClose)>,
    /// Encoded input.
    pub input: &'a [u8],
    /// Who asked.
    pub actor: Option<&'a str>,
}

/// A signal, with everything that is fixed about it besides its run and the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewSignal<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its encoded value.
    pub payload: &'a [u8],
    /// A second one of the same text is taken as this one again.
    pub dedupe: Option<&'a str>,
}

/// A child as its parent asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildSpec<'a> {
    /// The caller's name for the workflow.
    pub id: &'a str,
    /// The definition's name.
    pub kind: &'a str,
    /// Version of the code.
    pub version: u32,
    /// What the child's keys come from.
    pub key_root: [u8; 16],
    /// Longest life, from its start.
    pub timeout_ms: Option<i64>,
    /// What happens to it when the parent ends first.
    pub parent_close: ParentClose,
    /// For an id that has been used.
    pub reuse: IdReuse,
    /// For an id that is in use.
    pub conflict: IdConflict,
    /// Encoded input.
    pub input: &'a [u8],
}

/// What is said to another workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending<'a> {
    /// A signal: its name and its encoded value.
    Signal(&'a str, &'a [u8]),
    /// A request to end, with the reason.
    Cancel(&'a str),
    /// A wait for its end.
    Watch,
    /// A request to end to the child that was started as this operation, and to no other run of its id.
    CancelChild(Seq),
    /// A request to end to the task that was asked for as this operation.
    CancelOrder(Seq),
    /// A request to end to a task, with the reason.
    CancelTask(TaskNo, &'a str),
    /// A wait for the end of a task.
    WatchTask(TaskNo),
    /// A call of an object, whose answer is waited for.
    Call(CallSpec<'a>),
}

/// A call of an object as a run asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSpec<'a> {
    /// The definition's name.
    pub kind: &'a str,
    /// What the object's keys come from, if this call makes it.
    pub key_root: [u8; 16],
    /// Name of the handler.
    pub name: &'a str,
    /// Encoded input.
    pub payload: &'a [u8],
}

impl Sending<'_> {
    /// Whether it goes to the task scheduler, not to a workflow.
    #[must_use]
    pub fn is_to_scheduler(self) -> bool {
        match self {
            Sending::CancelOrder(_) | Sending::CancelTask(..) | Sending::WatchTask(_) => true,
            Sending::Signal(..) | Sending::Cancel(_) | Sending::Watch | Sending::CancelChild(_) | Sending::Call(_) => {
                false
            }
        }
    }
}

/// What a task is to the run that asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskRole {
    /// The run waits for its end, and does not outlive the need for it: it is cancelled when the run ends first.
    Awaited,
    /// The run waits for its end. It goes on when the run ends first.
    AwaitedLoosely,
    /// The run wants to know that it exists, and no more.
    Detached,
    /// It stands for the run itself, which starts when it does, and ends when the run does.
    Run,
}

/// What follows a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Another attempt, not before this time in ms since 1970.
    At(i64),
    /// Nothing, until somebody resumes the run.
    Paused,
}

/// A record of a shard. Times are in ms since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are named by the table above and by the types they have")]
pub enum Record<'a> {
    Start {
        run: RunNo,
        time_ms: i64,
        new: NewRun<'a>,
        origin: Option<Origin>,
    },
    StepDone {
        run: RunNo,
        seq: Seq,
        name: &'a str,
        attempt: u32,
        time_ms: i64,
        is_failure: bool,
        payload: &'a [u8],
    },
    StepFailed {
        run: RunNo,
        seq: Seq,
        name: &'a str,
        attempt: u32,
        time_ms: i64,
        retry: Retry,
        failure: &'a [u8],
    },
    StepStarted {
        run: RunNo,
        seq: Seq,
        name: &'a str,
        attempt: u32,
        time_ms: i64,
    },
    Heartbeat {
        run: RunNo,
        seq: Seq,
        attempt: u32,
        time_ms: i64,
        details: &'a [u8],
    },
    TimerSet {
        run: RunNo,
        seq: Seq,
        due_ms: i64,
        /// It limits the time of a scope, and is no sleep.
        is_limit: bool,
    },
    TimerFired {
        run: RunNo,
        seq: Seq,
        time_ms: i64,
        /// Who had a sleep end before its time, if they said so.
        actor: Option<&'a str>,
    },
    WaitSet {
        run: RunNo,
        seq: Seq,
        name: &'a str,
        due_ms: Option<i64>,
    },
    ConditionSet {
        run: RunNo,
        seq: Seq,
        due_ms: Option<i64>,
    },
    Signal {
        run: RunNo,
        time_ms: i64,
        name: &'a str,
        payload: &'a [u8],
        dedupe: Option<&'a str>,
        actor: Option<&'a str>,
        origin: Option<Origin>,
    },
    ChildSet {
        run: RunNo,
        seq: Seq,
        child: ChildSpec<'a>,
    },
    SendSet {
        run: RunNo,
        seq: Seq,
        id: &'a str,
        target: Option<RunNo>,
        what: Sending<'a>,
    },
    ChildDone {
        run: RunNo,
        seq: Seq,
        time_ms: i64,
        status: Status,
        payload: &'a [u8],
        origin: Origin,
    },
    Cancel {
        run: RunNo,
        time_ms: i64,
        reason: &'a str,
        actor: Option<&'a str>,
        origin: Option<Origin>,
    },
    Resumed {
        run: RunNo,
        time_ms: i64,
        actor: Option<&'a str>,
    },
    Done {
        run: RunNo,
        time_ms: i64,
        status: Status,
        payload: &'a [u8],
        actor: Option<&'a str>,
        origin: Option<Origin>,
    },
    Watched {
        run: RunNo,
        caller: Caller,
        origin: Origin,
    },
    Answered {
        caller: Caller,
        status: Status,
        payload: &'a [u8],
        origin: Origin,
    },
    Received {
        origin: Origin,
    },
    /// `number` counts the updates of the run, from 1.
    Update {
        run: RunNo,
        number: u32,
        time_ms: i64,
        name: &'a str,
        id: &'a str,
        payload: &'a [u8],
        actor: Option<&'a str>,
    },
    UpdateDone {
        run: RunNo,
        number: u32,
        time_ms: i64,
        is_failure: bool,
        payload: &'a [u8],
    },
    SignalledStart {
        run: RunNo,
        time_ms: i64,
        new: NewRun<'a>,
        signal: NewSignal<'a>,
    },
    /// `carried`: which records of the run's journal are taken over, by their places from 0 on, each as its distance
    /// from the one before.
    Continued {
        run: RunNo,
        time_ms: i64,
        next: RunNo,
        new: NewRun<'a>,
        carried: &'a [u8],
    },
    Patched {
        run: RunNo,
        id: &'a str,
    },
    Paused {
        run: RunNo,
        time_ms: i64,
        actor: Option<&'a str>,
    },
    /// `order` is what [`super::encode_order`] wrote: a task without an input, which stands for the run.
    Queued {
        run: RunNo,
        time_ms: i64,
        new: NewRun<'a>,
        /// Longest life, from the time at which it may start.
        timeout_ms: Option<i64>,
        order: &'a [u8],
        /// The task that stands for it already, and the message that asked for it. Otherwise it asks for the task.
        task: Option<(TaskNo, Origin)>,
    },
    Activated {
        run: RunNo,
        time_ms: i64,
        origin: Origin,
    },
    /// `order` is what [`super::encode_order`] wrote.
    TaskSet {
        run: RunNo,
        seq: Seq,
        kind: &'a str,
        role: TaskRole,
        order: &'a [u8],
    },
    /// `seq`: the operation of the code that sets them; `None`: they came with the run's start. `set` is attributes in
    /// the writing of [`super::write_attribute`].
    Attributes {
        run: RunNo,
        seq: Option<Seq>,
        time_ms: i64,
        set: &'a [u8],
    },
    AttributedStart {
        run: RunNo,
        time_ms: i64,
        new: NewRun<'a>,
        set: &'a [u8],
        signal: Option<NewSignal<'a>>,
    },
    /// `entries`: the records of the run's journal so far, each with its length before it. The first is its `Start`. One
    /// that has the number of another run, or 0, is a copy: what it implies was done when that one was recorded.
    Forked {
        run: RunNo,
        entries: &'a [u8],
    },
    /// `entries`: as of `Forked`, of the run `next`.
    Reset {
        run: RunNo,
        time_ms: i64,
        next: RunNo,
        reason: &'a str,
        actor: Option<&'a str>,
        entries: &'a [u8],
    },
    /// Copied from the run `source` of the workflow `id`. Operations from `seq` on have their keys from `key_root`.
    Branched {
        run: RunNo,
        time_ms: i64,
        seq: Seq,
        id: &'a str,
        source: &'a str,
        key_root: [u8; 16],
        actor: Option<&'a str>,
    },
    /// `number` counts the calls of the object, from 1. `id`: names a client's request; a second one is the first one
    /// again. `caller`: the operation of a run that waits for the answer.
    Called {
        run: RunNo,
        number: u32,
        time_ms: i64,
        name: &'a str,
        id: Option<&'a str>,
        payload: &'a [u8],
        caller: Option<Caller>,
        actor: Option<&'a str>,
        origin: Option<Origin>,
    },
    /// `seq`: the last operation that the code had asked for, when a handler ended that runs alone; `None`: it was one
    /// that only looks, or this is an answer that is kept. `state`: the object's state from here on; `None`: as before.
    CallDone {
        run: RunNo,
        number: u32,
        time_ms: i64,
        seq: Option<Seq>,
        is_failure: bool,
        payload: &'a [u8],
        state: Option<&'a [u8]>,
    },
}

impl Record<'_> {
    /// The run that it belongs to, if it belongs to one.
    #[must_use]
    pub fn run(&self) -> Option<RunNo> {
        match *self {
            Record::Start { run, .. }
            | Record::StepDone { run, .. }
            | Record::StepFailed { run, .. }
            | Record::StepStarted { run, .. }
            | Record::Heartbeat { run, .. }
            | Record::TimerSet { run, .. }
            | Record::TimerFired { run, .. }
            | Record::WaitSet { run, .. }
            | Record::ConditionSet { run, .. }
            | Record::Signal { run, .. }
            | Record::ChildSet { run, .. }
            | Record::SendSet { run, .. }
            | Record::ChildDone { run, .. }
            | Record::Cancel { run, .. }
            | Record::Resumed { run, .. }
            | Record::Done { run, .. }
            | Record::Watched { run, .. }
            | Record::Update { run, .. }
            | Record::UpdateDone { run, .. }
            | Record::Called { run, .. }
            | Record::CallDone { run, .. }
            | Record::SignalledStart { run, .. }
            | Record::Continued { run, .. }
            | Record::Patched { run, .. }
            | Record::Paused { run, .. }
            | Record::Queued { run, .. }
            | Record::Activated { run, .. }
            | Record::TaskSet { run, .. }
            | Record::Attributes { run, .. }
            | Record::AttributedStart { run, .. }
            | Record::Forked { run, .. }
            | Record::Reset { run, .. }
            | Record::Branched { run, .. } => Some(run),
            Record::Answered { .. } | Record::Received { .. } => None,
        }
    }

    /// The message that it answers to, if it came from one.
    #[must_use]
    pub fn origin(&self) -> Option<Origin> {
        match *self {
            Record::Start { origin, .. }
            | Record::Called { origin, .. }
            | Record::Signal { origin, .. }
            | Record::Cancel { origin, .. }
            | Record::Done { origin, .. } => origin,
            Record::Queued { task, .. } => task.map(|(_, origin)| origin),
            Record::ChildDone { origin, .. }
            | Record::Watched { origin, .. }
            | Record::Activated { origin, .. }
            | Record::Answered { origin, .. }
            | Record::Received { origin } => Some(origin),
            Record::StepDone { .. }
            | Record::StepFailed { .. }
            | Record::StepStarted { .. }
            | Record::Heartbeat { .. }
            | Record::TimerSet { .. }
            | Record::TimerFired { .. }
            | Record::WaitSet { .. }
            | Record::ConditionSet { .. }
            | Record::ChildSet { .. }
            | Record::SendSet { .. }
            | Record::Resumed { .. }
            | Record::Update { .. }
            | Record::UpdateDone { .. }
            | Record::CallDone { .. }
            | Record::SignalledStart { .. }
            | Record::Continued { .. }
            | Record::Patched { .. }
            | Record::Paused { .. }
            | Record::TaskSet { .. }
            | Record::Attributes { .. }
            | Record::AttributedStart { .. }
            | Record::Forked { .. }
            | Record::Reset { .. }
            | Record::Branched { .. } => None,
        }
    }

    /// The operation of the run's code that it tells of, if it tells of one.
    #[must_use]
    pub fn operation(&self) -> Option<Seq> {
        match *self {
            Record::StepDone { seq, .. }
            | Record::StepFailed { seq, .. }
            | Record::StepStarted { seq, .. }
            | Record::Heartbeat { seq, .. }
            | Record::TimerSet { seq, .. }
            | Record::TimerFired { seq, .. }
            | Record::WaitSet { seq, .. }
            | Record::ConditionSet { seq, .. }
            | Record::ChildSet { seq, .. }
            | Record::SendSet { seq, .. }
            | Record::ChildDone { seq, .. }
            | Record::TaskSet { seq, .. } => Some(seq),
            Record::Attributes { seq, .. } => seq,
            Record::Start { .. }
            | Record::Signal { .. }
            | Record::Cancel { .. }
            | Record::Resumed { .. }
            | Record::Done { .. }
            | Record::Watched { .. }
            | Record::Answered { .. }
            | Record::Received { .. }
            | Record::Update { .. }
            | Record::UpdateDone { .. }
            | Record::Called { .. }
            | Record::CallDone { .. }
            | Record::SignalledStart { .. }
            | Record::Continued { .. }
            | Record::Patched { .. }
            | Record::Paused { .. }
            | Record::AttributedStart { .. }
            | Record::Queued { .. }
            | Record::Activated { .. }
            | Record::Forked { .. }
            | Record::Reset { .. }
            | Record::Branched { .. } => None,
        }
    }

    /// The name of the step that it tells of, where the record has it.
    #[must_use]
    pub(super) fn step_name(&self) -> Option<&str> {
        match *self {
            Record::StepDone { name, .. } | Record::StepFailed { name, .. } | Record::StepStarted { name, .. } => {
                Some(name)
            }
            _ => None,
        }
    }

    /// Its name in histories.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Record::Start { .. } => "started",
            Record::StepDone { is_failure: false, .. } => "stepCompleted",
            Record::StepDone { is_failure: true, .. } => "stepFailed",
            Record::StepFailed { .. } => "stepAttemptFailed",
            Record::StepStarted { .. } => "stepStarted",
            Record::Heartbeat { .. } => "stepHeartbeat",
            Record::TimerSet { .. } => "timerSet",
            Record::TimerFired { .. } => "timerFired",
            Record::WaitSet { .. } => "waitSet",
            Record::ConditionSet { .. } => "conditionSet",
            Record::Signal { .. } => "signalReceived",
            Record::ChildSet { .. } => "childStarted",
            Record::SendSet { what: Sending::Signal(..), .. } => "signalSent",
            Record::SendSet { what: Sending::Call(_), .. } => "callSent",
            Record::SendSet {
                what: Sending::Cancel(_) | Sending::CancelChild(_) | Sending::CancelOrder(_) | Sending::CancelTask(..),
                ..
            } => "cancelSent",
            Record::SendSet { what: Sending::Watch | Sending::WatchTask(_), .. } => "watchSet",
            Record::ChildDone { .. } => "childEnded",
            Record::Cancel { .. } => "cancelRequested",
            Record::Resumed { .. } => "resumed",
            Record::Done { .. } => "ended",
            Record::Watched { .. } => "watched",
            Record::Answered { .. } => "answered",
            Record::Received { .. } => "received",
            Record::Update { .. } => "updateAccepted",
            Record::UpdateDone { is_failure: false, .. } => "updateCompleted",
            Record::UpdateDone { is_failure: true, .. } => "updateFailed",
            Record::Called { .. } => "called",
            Record::CallDone { is_failure: false, .. } => "callCompleted",
            Record::CallDone { is_failure: true, .. } => "callFailed",
            Record::SignalledStart { .. } => "startedWithSignal",
            Record::Continued { .. } => "continuedAsNew",
            Record::Patched { .. } => "patched",
            Record::Paused { .. } => "paused",
            Record::Queued { .. } => "queued",
            Record::Activated { .. } => "activated",
            Record::TaskSet { .. } => "taskEnqueued",
            Record::Attributes { .. } => "attributesSet",
            Record::AttributedStart { .. } => "startedWithAttributes",
            Record::Forked { .. } => "forked",
            Record::Reset { .. } => "reset",
            Record::Branched { .. } => "branched",
        }
    }
}

/// A record with its number, as journals keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbered<'a> {
    /// Its number in the log.
    pub lsn: Lsn,
    /// What it says.
    pub record: Record<'a>,
}
