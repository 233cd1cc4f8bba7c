//! Every record that a shard ever writes, and its bytes.
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

use super::{DecodeError, Lsn, Reader, RunNo, Seq, ShardId, Writer};

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
    /// The operation.
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
    },
    TimerFired {
        run: RunNo,
        seq: Seq,
        time_ms: i64,
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
}

impl<'a> Record<'a> {
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
            | Record::Watched { run, .. } => Some(run),
            Record::Answered { .. } | Record::Received { .. } => None,
        }
    }

    /// The message that it answers to, if it came from one.
    #[must_use]
    pub fn origin(&self) -> Option<Origin> {
        match *self {
            Record::Start { origin, .. }
            | Record::Signal { origin, .. }
            | Record::Cancel { origin, .. }
            | Record::Done { origin, .. } => origin,
            Record::ChildDone { origin, .. }
            | Record::Watched { origin, .. }
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
            | Record::Resumed { .. } => None,
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
            Record::SendSet { what: Sending::Cancel(_), .. } => "cancelSent",
            Record::SendSet { what: Sending::Watch, .. } => "watchSet",
            Record::ChildDone { .. } => "childEnded",
            Record::Cancel { .. } => "cancelRequested",
            Record::Resumed { .. } => "resumed",
            Record::Done { .. } => "ended",
            Record::Watched { .. } => "watched",
            Record::Answered { .. } => "answered",
            Record::Received { .. } => "received",
        }
    }

    /// Writes it at the end of `bytes`.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        let out = &mut Writer::new(bytes);
        match *self {
            Record::Start { run, time_ms, new, origin } => {
                head(out, 1, run);
                out.signed(time_ms);
                write_new_run(out, &new);
                write_origin(out, origin);
            }
            Record::StepDone { run, seq, name, attempt, time_ms, is_failure, payload } => {
                step_head(out, 2, run, seq, name, attempt, time_ms);
                out.byte(u8::from(is_failure));
                out.bytes(payload);
            }
            Record::StepFailed { run, seq, name, attempt, time_ms, retry, failure } => {
                step_head(out, 3, run, seq, name, attempt, time_ms);
                let retry_at_ms = match retry {
                    Retry::At(at_ms) => Some(at_ms),
                    Retry::Paused => None,
                };
                out.option(retry_at_ms, Writer::signed);
                out.bytes(failure);
            }
            Record::StepStarted { run, seq, name, attempt, time_ms } => {
                step_head(out, 4, run, seq, name, attempt, time_ms);
            }
            Record::Heartbeat { run, seq, attempt, time_ms, details } => {
                op_head(out, 5, run, seq);
                out.number(u64::from(attempt));
                out.signed(time_ms);
                out.bytes(details);
            }
            Record::TimerSet { run, seq, due_ms } => {
                op_head(out, 6, run, seq);
                out.signed(due_ms);
            }
            Record::TimerFired { run, seq, time_ms } => {
                op_head(out, 7, run, seq);
                out.signed(time_ms);
            }
            Record::WaitSet { run, seq, name, due_ms } => {
                op_head(out, 8, run, seq);
                out.text(name);
                out.option(due_ms, Writer::signed);
            }
            Record::ConditionSet { run, seq, due_ms } => {
                op_head(out, 9, run, seq);
                out.option(due_ms, Writer::signed);
            }
            Record::Signal { run, time_ms, name, payload, dedupe, actor, origin } => {
                head(out, 10, run);
                out.signed(time_ms);
                out.text(name);
                out.bytes(payload);
                out.option(dedupe, Writer::text);
                out.option(actor, Writer::text);
                write_origin(out, origin);
            }
            Record::ChildSet { run, seq, child } => {
                op_head(out, 11, run, seq);
                write_child(out, &child);
            }
            Record::SendSet { run, seq, id, target, what } => {
                op_head(out, 12, run, seq);
                out.text(id);
                out.option(target, |out, target| out.number(target.0));
                write_sending(out, what);
            }
            Record::ChildDone { run, seq, time_ms, status, payload, origin } => {
                op_head(out, 13, run, seq);
                out.signed(time_ms);
                out.byte(status.code());
                out.bytes(payload);
                write_known_origin(out, origin);
            }
            Record::Cancel { run, time_ms, reason, actor, origin } => {
                head(out, 14, run);
                out.signed(time_ms);
                out.text(reason);
                out.option(actor, Writer::text);
                write_origin(out, origin);
            }
            Record::Resumed { run, time_ms, actor } => {
                head(out, 15, run);
                out.signed(time_ms);
                out.option(actor, Writer::text);
            }
            Record::Done { run, time_ms, status, payload, actor, origin } => {
                head(out, 16, run);
                out.signed(time_ms);
                out.byte(status.code());
                out.bytes(payload);
                out.option(actor, Writer::text);
                write_origin(out, origin);
            }
            Record::Watched { run, caller, origin } => {
                head(out, 17, run);
                write_caller(out, caller);
                write_known_origin(out, origin);
            }
            Record::Answered { caller, status, payload, origin } => {
                out.byte(18);
                write_caller(out, caller);
                out.byte(status.code());
                out.bytes(payload);
                write_known_origin(out, origin);
            }
            Record::Received { origin } => {
                out.byte(19);
                write_known_origin(out, origin);
            }
        }
    }

    /// Reads one record that must fill `bytes` exactly. Borrows from `bytes`; never allocates, never panics.
    pub fn decode(bytes: &'a [u8]) -> Result<Record<'a>, DecodeError> {
        let mut reader = Reader::new(bytes);
        let record = read_record(&mut reader)?;
        reader.end()?;
        Ok(record)
    }
}

fn read_record<'a>(from: &mut Reader<'a>) -> Result<Record<'a>, DecodeError> {
    Ok(match from.byte()? {
        1 => Record::Start {
            run: run(from)?,
            time_ms: from.signed()?,
            new: read_new_run(from)?,
            origin: from.option(read_known_origin)?,
        },
        2 => {
            let (run, seq, name, attempt, time_ms) = read_step_head(from)?;
            Record::StepDone { run, seq, name, attempt, time_ms, is_failure: flag(from)?, payload: from.bytes()? }
        }
        3 => {
            let (run, seq, name, attempt, time_ms) = read_step_head(from)?;
            let retry = from.option(Reader::signed)?.map_or(Retry::Paused, Retry::At);
            Record::StepFailed { run, seq, name, attempt, time_ms, retry, failure: from.bytes()? }
        }
        4 => {
            let (run, seq, name, attempt, time_ms) = read_step_head(from)?;
            Record::StepStarted { run, seq, name, attempt, time_ms }
        }
        5 => Record::Heartbeat {
            run: run(from)?,
            seq: seq(from)?,
            attempt: small(from)?,
            time_ms: from.signed()?,
            details: from.bytes()?,
        },
        6 => Record::TimerSet { run: run(from)?, seq: seq(from)?, due_ms: from.signed()? },
        7 => Record::TimerFired { run: run(from)?, seq: seq(from)?, time_ms: from.signed()? },
        8 => Record::WaitSet {
            run: run(from)?,
            seq: seq(from)?,
            name: from.text()?,
            due_ms: from.option(Reader::signed)?,
        },
        9 => Record::ConditionSet { run: run(from)?, seq: seq(from)?, due_ms: from.option(Reader::signed)? },
        10 => Record::Signal {
            run: run(from)?,
            time_ms: from.signed()?,
            name: from.text()?,
            payload: from.bytes()?,
            dedupe: from.option(Reader::text)?,
            actor: from.option(Reader::text)?,
            origin: from.option(read_known_origin)?,
        },
        11 => Record::ChildSet { run: run(from)?, seq: seq(from)?, child: read_child(from)? },
        12 => Record::SendSet {
            run: run(from)?,
            seq: seq(from)?,
            id: from.text()?,
            target: from.option(run)?,
            what: read_sending(from)?,
        },
        13 => Record::ChildDone {
            run: run(from)?,
            seq: seq(from)?,
            time_ms: from.signed()?,
            status: status(from)?,
            payload: from.bytes()?,
            origin: read_known_origin(from)?,
        },
        14 => Record::Cancel {
            run: run(from)?,
            time_ms: from.signed()?,
            reason: from.text()?,
            actor: from.option(Reader::text)?,
            origin: from.option(read_known_origin)?,
        },
        15 => Record::Resumed { run: run(from)?, time_ms: from.signed()?, actor: from.option(Reader::text)? },
        16 => Record::Done {
            run: run(from)?,
            time_ms: from.signed()?,
            status: status(from)?,
            payload: from.bytes()?,
            actor: from.option(Reader::text)?,
            origin: from.option(read_known_origin)?,
        },
        17 => Record::Watched { run: run(from)?, caller: read_caller(from)?, origin: read_known_origin(from)? },
        18 => Record::Answered {
            caller: read_caller(from)?,
            status: status(from)?,
            payload: from.bytes()?,
            origin: read_known_origin(from)?,
        },
        19 => Record::Received { origin: read_known_origin(from)? },
        other => return Err(DecodeError::Unknown(u64::from(other))),
    })
}

fn head(out: &mut Writer<'_>, kind: u8, run: RunNo) {
    out.byte(kind);
    out.number(run.0);
}

fn op_head(out: &mut Writer<'_>, kind: u8, run: RunNo, seq: Seq) {
    head(out, kind, run);
    out.number(u64::from(seq.0));
}

fn step_head(out: &mut Writer<'_>, kind: u8, run: RunNo, seq: Seq, name: &str, attempt: u32, time_ms: i64) {
    op_head(out, kind, run, seq);
    out.text(name);
    out.number(u64::from(attempt));
    out.signed(time_ms);
}

fn read_step_head<'a>(from: &mut Reader<'a>) -> Result<(RunNo, Seq, &'a str, u32, i64), DecodeError> {
    Ok((run(from)?, seq(from)?, from.text()?, small(from)?, from.signed()?))
}

fn run(from: &mut Reader<'_>) -> Result<RunNo, DecodeError> {
    from.number().map(RunNo)
}

/// Operations are numbered from 1.
fn seq(from: &mut Reader<'_>) -> Result<Seq, DecodeError> {
    match small(from)? {
        0 => Err(DecodeError::Number),
        number => Ok(Seq(number)),
    }
}

fn small(from: &mut Reader<'_>) -> Result<u32, DecodeError> {
    u32::try_from(from.number()?).map_err(|_| DecodeError::Number)
}

fn flag(from: &mut Reader<'_>) -> Result<bool, DecodeError> {
    match from.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(DecodeError::Unknown(u64::from(other))),
    }
}

fn code<T>(from: &mut Reader<'_>, of: impl Fn(u8) -> Option<T>) -> Result<T, DecodeError> {
    let code = from.byte()?;
    of(code).ok_or_else(|| DecodeError::Unknown(u64::from(code)))
}

fn status(from: &mut Reader<'_>) -> Result<Status, DecodeError> {
    code(from, Status::from_code)
}

fn shard(from: &mut Reader<'_>) -> Result<ShardId, DecodeError> {
    u16::try_from(from.number()?).map(ShardId).map_err(|_| DecodeError::Number)
}

fn root(from: &mut Reader<'_>) -> Result<[u8; 16], DecodeError> {
    from.raw(16)?.try_into().map_err(|_| DecodeError::Short)
}

fn write_caller(out: &mut Writer<'_>, caller: Caller) {
    out.number(u64::from(caller.shard.0));
    out.number(caller.run.0);
    out.number(u64::from(caller.seq.0));
}

fn read_caller(from: &mut Reader<'_>) -> Result<Caller, DecodeError> {
    Ok(Caller { shard: shard(from)?, run: run(from)?, seq: seq(from)? })
}

fn write_known_origin(out: &mut Writer<'_>, origin: Origin) {
    out.number(u64::from(origin.from.0));
    out.number(origin.number);
}

fn write_origin(out: &mut Writer<'_>, origin: Option<Origin>) {
    out.option(origin, write_known_origin);
}

fn read_known_origin(from: &mut Reader<'_>) -> Result<Origin, DecodeError> {
    Ok(Origin { from: shard(from)?, number: from.number()? })
}

fn write_new_run(out: &mut Writer<'_>, new: &NewRun<'_>) {
    out.text(new.id);
    out.text(new.kind);
    out.number(u64::from(new.version));
    out.raw(&new.key_root);
    out.option(new.deadline_ms, Writer::signed);
    out.option(new.parent, |out, (caller, close)| {
        write_caller(out, caller);
        out.byte(close.code());
    });
    out.bytes(new.input);
    out.option(new.actor, Writer::text);
}

fn read_new_run<'a>(from: &mut Reader<'a>) -> Result<NewRun<'a>, DecodeError> {
    Ok(NewRun {
        id: from.text()?,
        kind: from.text()?,
        version: small(from)?,
        key_root: root(from)?,
        deadline_ms: from.option(Reader::signed)?,
        parent: from.option(|from| Ok((read_caller(from)?, code(from, ParentClose::from_code)?)))?,
        input: from.bytes()?,
        actor: from.option(Reader::text)?,
    })
}

fn write_child(out: &mut Writer<'_>, child: &ChildSpec<'_>) {
    out.text(child.id);
    out.text(child.kind);
    out.number(u64::from(child.version));
    out.raw(&child.key_root);
    out.option(child.timeout_ms, Writer::signed);
    out.byte(child.parent_close.code());
    out.byte(child.reuse.code());
    out.byte(child.conflict.code());
    out.bytes(child.input);
}

fn read_child<'a>(from: &mut Reader<'a>) -> Result<ChildSpec<'a>, DecodeError> {
    Ok(ChildSpec {
        id: from.text()?,
        kind: from.text()?,
        version: small(from)?,
        key_root: root(from)?,
        timeout_ms: from.option(Reader::signed)?,
        parent_close: code(from, ParentClose::from_code)?,
        reuse: code(from, IdReuse::from_code)?,
        conflict: code(from, IdConflict::from_code)?,
        input: from.bytes()?,
    })
}

fn write_sending(out: &mut Writer<'_>, what: Sending<'_>) {
    match what {
        Sending::Signal(name, payload) => {
            out.byte(0);
            out.text(name);
            out.bytes(payload);
        }
        Sending::Cancel(reason) => {
            out.byte(1);
            out.text(reason);
        }
        Sending::Watch => out.byte(2),
    }
}

fn read_sending<'a>(from: &mut Reader<'a>) -> Result<Sending<'a>, DecodeError> {
    Ok(match from.byte()? {
        0 => Sending::Signal(from.text()?, from.bytes()?),
        1 => Sending::Cancel(from.text()?),
        2 => Sending::Watch,
        other => return Err(DecodeError::Unknown(u64::from(other))),
    })
}

/// A record with its number, as journals keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbered<'a> {
    /// Its number in the log.
    pub lsn: Lsn,
    /// What it says.
    pub record: Record<'a>,
}
