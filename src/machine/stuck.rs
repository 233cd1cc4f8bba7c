//! What an operation is known by, and why a run is stuck: law 5.

use super::code::Halt;
use super::run::{Code, RunIx};
use super::shard::{Effect, Shard, Work};
use crate::record::{Record, Sending, Seq, TaskRole};
use std::fmt;

/// What an operation is, beside its number: the same in replay, or the run is stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation<'a> {
    Step(&'a str),
    Sleep,
    Wait(&'a str),
    Condition,
    Child { kind: &'a str, id: &'a str },
    Signal { name: &'a str, id: &'a str },
    Cancel(&'a str),
    Result(&'a str),
    Call { name: &'a str, id: &'a str },
    Task { kind: &'a str, role: TaskRole },
    Attributes,
}

impl<'a> Operation<'a> {
    /// The operation that a record belongs to, and its number, for those that identify it.
    pub(crate) fn of(record: &Record<'a>) -> Option<(Seq, Operation<'a>)> {
        Some(match *record {
            Record::StepDone { seq, name, .. }
            | Record::StepFailed { seq, name, .. }
            | Record::StepStarted { seq, name, .. } => (seq, Operation::Step(name)),
            Record::TimerSet { seq, .. } => (seq, Operation::Sleep),
            Record::WaitSet { seq, name, .. } => (seq, Operation::Wait(name)),
            Record::ConditionSet { seq, .. } => (seq, Operation::Condition),
            Record::ChildSet { seq, child, .. } => (seq, Operation::Child { kind: child.kind, id: child.id }),
            Record::SendSet { seq, id, what, .. } => (seq, Operation::sending(id, what)),
            Record::TaskSet { seq, kind, role, .. } => (seq, Operation::Task { kind, role }),
            Record::Attributes { seq: Some(seq), .. } => (seq, Operation::Attributes),
            Record::Start { .. }
            | Record::Heartbeat { .. }
            | Record::TimerFired { .. }
            | Record::Signal { .. }
            | Record::ChildDone { .. }
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
            | Record::Attributes { seq: None, .. }
            | Record::AttributedStart { .. }
            | Record::Paused { .. }
            | Record::Queued { .. }
            | Record::Activated { .. }
            | Record::Forked { .. }
            | Record::Reset { .. }
            | Record::Branched { .. } => return None,
        })
    }

    pub(crate) fn sending(id: &'a str, what: Sending<'a>) -> Operation<'a> {
        match what {
            Sending::Signal(name, _) => Operation::Signal { name, id },
            Sending::Cancel(_) | Sending::CancelChild(_) | Sending::CancelOrder(_) | Sending::CancelTask(..) => {
                Operation::Cancel(id)
            }
            Sending::Watch | Sending::WatchTask(_) => Operation::Result(id),
            Sending::Call(call) => Operation::Call { name: call.name, id },
        }
    }

    fn described(self) -> Described {
        let (kind, name) = match self {
            Operation::Step(name) => ("step", name.to_owned()),
            Operation::Sleep => ("sleep", String::new()),
            Operation::Wait(name) => ("waitFor", name.to_owned()),
            Operation::Condition => ("condition", String::new()),
            Operation::Child { kind, id } => ("child", format!("{kind} {id}")),
            Operation::Signal { name, id } => ("signal", format!("{name} {id}")),
            Operation::Cancel(id) => ("cancel", id.to_owned()),
            Operation::Result(id) => ("result", id.to_owned()),
            Operation::Call { name, id } => ("call", format!("{name} {id}")),
            Operation::Task { kind, role: TaskRole::Detached } => ("enqueue", kind.to_owned()),
            Operation::Task { kind, .. } => ("run", kind.to_owned()),
            Operation::Attributes => ("setAttributes", String::new()),
        };
        Described { kind, name }
    }
}

impl fmt::Display for Operation<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Step(name) => write!(formatter, "step \"{name}\""),
            Operation::Sleep => formatter.write_str("sleep"),
            Operation::Wait(name) => write!(formatter, "wait for signal \"{name}\""),
            Operation::Condition => formatter.write_str("condition"),
            Operation::Child { kind, id } => write!(formatter, "child {kind} \"{id}\""),
            Operation::Signal { name, id } => write!(formatter, "signal \"{name}\" to workflow \"{id}\""),
            Operation::Cancel(id) => write!(formatter, "cancel of workflow \"{id}\""),
            Operation::Result(id) => write!(formatter, "result of workflow \"{id}\""),
            Operation::Call { name, id } => write!(formatter, "call of \"{name}\" of \"{id}\""),
            Operation::Task { kind, role: TaskRole::Detached } => write!(formatter, "enqueue of task \"{kind}\""),
            Operation::Task { kind, .. } => write!(formatter, "run of task \"{kind}\""),
            Operation::Attributes => formatter.write_str("setAttributes"),
        }
    }
}

/// An operation as reports show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// What kind of operation: the verb of the SDK.
    pub kind: &'static str,
    /// Its name: of a step or a signal, the type and the id of a child, the name and the receiver of a signal that is
    /// sent, the id of another workflow. Empty: it has none.
    pub name: String,
}

/// Why a run is stuck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// All of it in a sentence.
    pub message: String,
    /// The operation at which code and records part; of code that broke a rule, the last one that it asked for.
    pub seq: Seq,
    /// What is recorded there, if something is.
    pub recorded: Option<Described>,
    /// What the code asked for, if it asked for something.
    pub asked: Option<Described>,
    /// Where in the code, as the host says; empty: it does not know. Where the operation was asked for when it was
    /// recorded is in no record.
    pub place: String,
}

/// Stands for the next try of a stuck run where timers are kept by operation. No operation has this number.
pub(super) const NEXT_TRY: Seq = Seq(u32::MAX);

/// The first try of a stuck run comes after this time, each further one after twice as long.
const FIRST_TRY_MS: i64 = 1_000;

/// And not after longer than this.
const TRY_MS_MAX: i64 = 60_000;

impl Shard {
    /// The host found the code breaking a rule, at a place in it if it is known.
    pub fn mark_stuck(&mut self, work: &mut Work<'_>, run: RunIx, message: &str, place: &str) {
        let Some(open) = self.run(run).open().filter(|open| !open.is_stuck()) else { return };
        let seq = Seq(open.asked);
        let stuck = Stuck { message: message.into(), seq, recorded: None, asked: None, place: place.into() };
        self.stick(work, run, stuck);
    }

    /// A stuck run is not to wait for somebody: it ends, with this as its failure.
    pub fn fail_stuck(&mut self, work: &mut Work<'_>, run: RunIx, failure: &[u8]) {
        if self.stuck(run).is_some() {
            let (status, payload) = self.bounded_end(run, crate::record::Status::Failed, failure);
            self.done(work, run, status, &payload, None, None);
        }
    }

    /// A stuck run is to be tried again, from its first record: soon, and then less and less often. Nothing is recorded.
    pub fn retry_stuck(&mut self, work: &mut Work<'_>, run: RunIx) {
        let Some(open) = self.open_mut(run).filter(|open| open.is_stuck()) else { return };
        let after_ms = (FIRST_TRY_MS << open.tries.min(30)).min(TRY_MS_MAX);
        let due_ms = work.now_ms.saturating_add(after_ms);
        open.tries = open.tries.saturating_add(1);
        if let Some(before_ms) = open.next_try_ms.replace(due_ms) {
            self.timers.unset(before_ms, run, NEXT_TRY);
        }
        self.timers.set(due_ms, run, NEXT_TRY);
    }

    /// The time for another try has come, or somebody asks for one.
    pub(super) fn try_again(&mut self, work: &mut Work<'_>, run: RunIx) {
        if self.stuck(run).is_some() {
            self.unload(run);
            work.effects.push(Effect::Dropped(run));
            work.effects.push(Effect::Load(run));
        }
    }

    /// Why the run is stuck, if it is.
    #[must_use]
    pub fn stuck(&self, run: RunIx) -> Option<&Stuck> {
        match &self.run(run).open()?.code {
            Code::Stuck(stuck) => Some(stuck),
            Code::Absent | Code::Idle | Code::InTurn | Code::InLastTurn => None,
        }
    }

    /// The host knows where in the code the run got stuck.
    pub fn set_stuck_place(&mut self, run: RunIx, place: &str) {
        if let Some(open) = self.open_mut(run)
            && let Code::Stuck(stuck) = &mut open.code
        {
            place.clone_into(&mut stuck.place);
        }
    }

    /// The code asks for something else than is recorded at `position`, or for nothing (`None`) and does `instead`.
    pub(super) fn mismatch(
        &mut self,
        work: &mut Work<'_>,
        run: RunIx,
        position: u32,
        asked: Option<Operation<'_>>,
        instead: &str,
    ) -> Halt {
        let record = self.run(run).journal.read(position).0.record;
        let (seq, recorded) = Operation::of(&record).expect("only records that identify an operation are compared");
        let message = match asked {
            Some(asked) => format!("operation {}: recorded {recorded}, asked for {asked}", seq.0),
            None => format!("operation {}: recorded {recorded}, but the code {instead}", seq.0),
        };
        let (recorded, asked) = (Some(recorded.described()), asked.map(Operation::described));
        self.stick(work, run, Stuck { message, seq, recorded, asked, place: String::new() });
        Halt::Mismatch
    }

    /// The code asks for something that cannot be, whatever is recorded.
    pub(super) fn refuse_operation(
        &mut self,
        work: &mut Work<'_>,
        run: RunIx,
        seq: Seq,
        asked: Operation<'_>,
        message: String,
    ) -> Halt {
        let asked = Some(asked.described());
        self.stick(work, run, Stuck { message, seq, recorded: None, asked, place: String::new() });
        Halt::Mismatch
    }

    pub(super) fn stick(&mut self, work: &mut Work<'_>, run: RunIx, stuck: Stuck) {
        let Some(open) = self.open_mut(run) else { return };
        open.code = Code::Stuck(Box::new(stuck));
        let ops: Vec<Seq> = open.ops.iter().map(|op| op.0).collect();
        // Its timers fire when it is tried again; until then they would only fill its journal.
        for seq in ops {
            if let Some(op) = self.open_mut(run).and_then(|open| open.ops.remove(seq)) {
                self.disarm(run, seq, &op);
            }
        }
        work.effects.push(Effect::Stuck(run));
    }
}
