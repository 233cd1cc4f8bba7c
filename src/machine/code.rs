//! The verbs of running code: the operations that it opens, and its end.

use super::attributes::{check_attributes_kept, check_attributes_set};
use super::limits::check_text;
use super::ops::{Op, StepOp, StepPhase};
use super::run::{Code, RunIx};
use super::shard::{Shard, Work};
use super::stuck::Operation;
use crate::record::{ChildSpec, Dedupe, Lsn, Record, Sending, Seq, Status, TaskRole, TaskSpec, encode_order};

/// How a step is to be run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepMode {
    /// It has no effect outside: it need not wait for the disk.
    pub is_read_only: bool,
    /// Its start is recorded and waited for; it is never run a second time after a crash.
    pub is_at_most_once: bool,
}

/// What a timer is for, and how its time is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimerMode {
    /// A time in ms since 1970, not one that counts from the present turn.
    pub is_absolute: bool,
    /// It limits the time of a scope: it is no sleep, and [`Shard::end_sleeps`] leaves it.
    pub is_limit: bool,
}

/// The answer to a step that the code asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenedStep {
    /// The body may run, as attempt 1 under lease 1, once this is durable.
    Run(Lsn),
    /// An [`super::Effect::Attempt`] or a delivery will come.
    Later,
    /// Its result is recorded and comes as a delivery; no body will run.
    Recorded,
}

/// The answer to a verb of running code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// The run has ended, is stuck, or its code is not in memory: nothing of it goes on.
    Dead,
    /// The code asks for something else than was recorded; the run is stuck now.
    Mismatch,
}

/// What a replay finds recorded under an operation's number.
enum Asked {
    New,
    /// At this position; `is_result` says that a step had its result at the first attempt, with no record before it.
    Recorded {
        position: u32,
        is_result: bool,
    },
}

impl Shard {
    /// The code asks for a step.
    pub fn open_step(
        &mut self,
        work: &mut Work<'_>,
        run: RunIx,
        seq: Seq,
        name: &str,
        mode: StepMode,
    ) -> Result<OpenedStep, Halt> {
        let checked = check_text("the name of a step", name);
        let asked = self.ask(work, run, seq, Operation::Step(name), checked)?;
        let last = self.run(run).last;
        let open = self.open_mut(run).ok_or(Halt::Dead)?;
        let is_replaying = open.is_replaying();
        let gate = if mode.is_read_only || cfg!(fusee_mutant = "gate_ignored") { Lsn::NONE } else { last };
        let step = StepOp {
            name: name.into(),
            attempt: 1,
            past_leases: 0,
            gate,
            phase: if is_replaying { StepPhase::Replayed } else { StepPhase::Running },
            is_read_only: mode.is_read_only,
            is_at_most_once: mode.is_at_most_once,
            is_started: false,
            is_interrupted: false,
            is_recovered: is_replaying && open.is_recovered,
        };
        open.ops.insert(seq, Op::Step(step));
        match asked {
            Asked::Recorded { is_result: true, .. } => Ok(OpenedStep::Recorded),
            Asked::Recorded { is_result: false, .. } => Ok(OpenedStep::Later),
            Asked::New if is_replaying => Ok(OpenedStep::Later),
            Asked::New if mode.is_at_most_once => {
                let no = self.run(run).no;
                let record = Record::StepStarted { run: no, seq, name, attempt: 1, time_ms: work.now_ms };
                self.record(work, run, &record).map(OpenedStep::Run)
            }
            Asked::New => Ok(OpenedStep::Run(gate)),
        }
    }

    /// The code sleeps, or limits the time of a scope.
    pub fn open_timer(
        &mut self,
        work: &mut Work<'_>,
        run: RunIx,
        seq: Seq,
        value_ms: i64,
        mode: TimerMode,
    ) -> Result<(), Halt> {
        let asked = self.ask(work, run, seq, Operation::Sleep, Ok(()))?;
        let no = self.run(run).no;
        let turn_ms = self.open_mut(run).ok_or(Halt::Dead)?.turn_ms;
        let due_ms = match asked {
            Asked::Recorded { position, .. } => match self.run(run).journal.read(position).0.record {
                Record::TimerSet { due_ms, .. } => due_ms,
                _ => unreachable!("the kind was compared"),
            },
            Asked::New => {
                let due_ms = if mode.is_absolute { value_ms } else { turn_ms.saturating_add(value_ms) };
                self.record(work, run, &Record::TimerSet { run: no, seq, due_ms, is_limit: mode.is_limit })?;
                due_ms
            }
        };
        self.insert(run, seq, Op::Timer { due_ms });
        Ok(())
    }

    /// The code waits for a signal. `true`: one was there; [`Shard::payload`] has it.
    pub fn open_wait(
        &mut self,
        work: &mut Work<'_>,
        run: RunIx,
        seq: Seq,
        name: &str,
        timeout_ms: Option<i64>,
    ) -> Result<bool, Halt> {
        let asked = self.ask(work, run, seq, Operation::Wait(name), check_text("the name of a signal", name))?;
        let due_ms =
            self.limit(work, run, asked, timeout_ms, |no, due_ms| Record::WaitSet { run: no, seq, name, due_ms })?;
        let target = &mut self.runs[run.0 as usize];
        let super::run::RunState::Open(open) = &mut target.state else { return Err(Halt::Dead) };
        let buffered = open.buffered.iter().position(|position| {
            matches!(target.journal.read(*position).0.record, Record::Signal { name: sent, .. } if sent == name)
        });
        if let Some(index) = buffered {
            open.delivered = open.buffered.remove(index).expect("the index was just found");
            open.take_signal();
            return Ok(true);
        }
        self.insert(run, seq, Op::Wait { name: name.into(), due_ms });
        Ok(false)
    }

    /// The code waits for a condition, which the host evaluates.
    pub fn open_condition(
        &mut self,
        work: &mut Work<'_>,
        run: RunIx,
        seq: Seq,
        timeout_ms: Option<i64>,
    ) -> Result<(), Halt> {
        let asked = self.ask(work, run, seq, Operation::Condition, Ok(()))?;
        let due_ms =
            self.limit(work, run, asked, timeout_ms, |no, due_ms| Record::ConditionSet { run: no, seq, due_ms })?;
        self.insert(run, seq, Op::Condition { due_ms });
        Ok(())
    }

    /// Takes back an operation: a wait whose iterator was closed, a condition that became true, anything of a scope that
    /// was cancelled. An outcome that comes later is dropped.
    pub fn withdraw(&mut self, run: RunIx, seq: Seq) -> Result<(), Halt> {
        let open = self.open_mut(run).ok_or(Halt::Dead)?;
        if let Some(op) = open.ops.remove(seq) {
            open.paused.remove(&seq);
            open.shielded.remove(&seq);
            self.disarm(run, seq, &op);
        }
        Ok(())
    }

    /// An operation that was just opened is left alone by a cancel of the run.
    pub fn shield(&mut self, run: RunIx, seq: Seq) -> Result<(), Halt> {
        let open = self.open_mut(run).ok_or(Halt::Dead)?;
        if open.ops.get(seq).is_some() {
            open.shielded.insert(seq);
        }
        Ok(())
    }

    /// The code starts a child. Its end is delivered to this operation.
    pub fn open_child(&mut self, work: &mut Work<'_>, run: RunIx, seq: Seq, child: ChildSpec<'_>) -> Result<(), Halt> {
        let (operation, checked) =
            (Operation::Child { kind: child.kind, id: child.id }, self.limits.check_child(&child));
        let asked = self.ask(work, run, seq, operation, checked)?;
        if let Asked::New = asked {
            let no = self.run(run).no;
            self.record(work, run, &Record::ChildSet { run: no, seq, child })?;
        }
        self.insert(run, seq, Op::Child);
        Ok(())
    }

    /// The code asks for a task. Its end, or that it exists, is delivered to this operation. `inherits_class`: neither the
    /// code nor the definition says how important it is. What it was asked for with is `checked` by the caller.
    #[allow(clippy::too_many_arguments, reason = "they name an operation and what it is")]
    pub fn open_task(
        &mut self,
        work: &mut Work<'_>,
        run: RunIx,
        seq: Seq,
        role: TaskRole,
        dedupe: Dedupe,
        spec: &TaskSpec<'_>,
        inherits_class: bool,
        checked: Result<(), String>,
    ) -> Result<(), Halt> {
        let asked = self.ask(work, run, seq, Operation::Task { kind: spec.kind, role }, checked)?;
        if let Asked::New = asked {
            let no = self.run(run).no;
            let mut order = Vec::new();
            if role == TaskRole::Detached {
                encode_order(&mut order, dedupe, spec);
            } else {
                encode_order(&mut order, dedupe, &self.run(run).lend(spec, inherits_class));
            }
            self.record(work, run, &Record::TaskSet { run: no, seq, kind: spec.kind, role, order: &order })?;
        }
        self.insert(run, seq, Op::Child);
        Ok(())
    }

    /// The code addresses another workflow, or a task. Only a watch stays open.
    pub fn open_send(
        &mut self,
        work: &mut Work<'_>,
        run: RunIx,
        seq: Seq,
        id: &str,
        target: Option<crate::record::RunNo>,
        what: Sending<'_>,
    ) -> Result<(), Halt> {
        let checked = self.limits.check_sending(id, what);
        let asked = self.ask(work, run, seq, Operation::sending(id, what), checked)?;
        if let Asked::New = asked {
            let no = self.run(run).no;
            self.record(work, run, &Record::SendSet { run: no, seq, id, target, what })?;
        }
        if let Sending::Watch | Sending::WatchTask(_) | Sending::Call(_) = what {
            self.insert(run, seq, Op::Child);
        }
        Ok(())
    }

    /// The code sets search attributes. A run that would have more of them than it may fails.
    pub fn set_attributes(&mut self, work: &mut Work<'_>, run: RunIx, seq: Seq, set: &[u8]) -> Result<(), Halt> {
        let checked = check_attributes_set(set);
        if let Asked::New = self.ask(work, run, seq, Operation::Attributes, checked)? {
            if let Err(why) = check_attributes_kept(&self.run(run).attributes, set) {
                let message = format!("{why} (workflow \"{}\")", self.run(run).id);
                let failure = crate::record::encode_failure("NonRetryableError", "NON_RETRYABLE", &message);
                self.done(work, run, Status::Failed, failure.as_bytes(), None, None);
                return Err(Halt::Dead);
            }
            let (no, time_ms) = (self.run(run).no, work.now_ms);
            self.record(work, run, &Record::Attributes { run: no, seq: Some(seq), time_ms, set })?;
        }
        Ok(())
    }

    /// The code returned or threw.
    pub fn finish(&mut self, work: &mut Work<'_>, run: RunIx, status: Status, payload: &[u8]) -> Result<(), Halt> {
        self.may_end(work, run)?;
        self.leave(run);
        let (status, payload) = self.bounded_end(run, status, payload);
        self.done(work, run, status, &payload, None, None);
        Ok(())
    }

    /// Whether the code may end here: a replay must have asked for everything that was recorded.
    pub(super) fn may_end(&mut self, work: &mut Work<'_>, run: RunIx) -> Result<(), Halt> {
        let open = self.open_mut(run).ok_or(Halt::Dead)?;
        if !open.is_in_turn() {
            return Err(Halt::Dead);
        }
        let Some(replay) = &open.replay else { return Ok(()) };
        let asked = (open.asked - replay.before) as usize;
        let unasked = replay.recorded.iter().skip(asked).find(|position| **position > 0).copied();
        if let Some(position) = unasked {
            return Err(self.mismatch(work, run, position - 1, None, "has ended"));
        }
        match self.owed_update(run) {
            Some(number) => Err(self.unanswered(work, run, number)),
            None => Ok(()),
        }
    }

    /// The code has ended by itself: there is nothing for its host to drop.
    pub(super) fn leave(&mut self, run: RunIx) {
        if let Some(open) = self.open_mut(run) {
            open.code = Code::Absent;
        }
    }

    /// Counts an operation, and compares it with what was recorded under its number.
    fn ask(
        &mut self,
        work: &mut Work<'_>,
        run: RunIx,
        seq: Seq,
        operation: Operation<'_>,
        checked: Result<(), String>,
    ) -> Result<Asked, Halt> {
        let open = self.open_mut(run).ok_or(Halt::Dead)?;
        if !open.is_in_turn() {
            return Err(Halt::Dead);
        }
        if seq.0 != open.asked + 1 {
            let text = format!("operation {} was asked for after operation {}", seq.0, open.asked);
            return Err(self.refuse_operation(work, run, seq, operation, text));
        }
        if let Err(why) = checked {
            // Nothing of it can be recorded, so that nothing may follow it.
            let text = format!("operation {}: {why}", seq.0);
            return Err(self.refuse_operation(work, run, seq, operation, text));
        }
        open.asked = seq.0;
        let replay = open.replay.as_ref();
        let recorded = replay.and_then(|replay| replay.recorded.get((seq.0 - replay.before) as usize - 1).copied());
        let Some(position) = recorded.filter(|position| *position > 0) else { return Ok(Asked::New) };
        let position = position - 1;
        let record = self.run(run).journal.read(position).0.record;
        if Operation::of(&record).is_some_and(|(_, recorded)| recorded == operation) {
            let is_result = matches!(record, Record::StepDone { .. });
            return Ok(Asked::Recorded { position, is_result });
        }
        Err(self.mismatch(work, run, position, Some(operation), ""))
    }

    /// Records what the code asks for. The run may end by it.
    fn record(&mut self, work: &mut Work<'_>, run: RunIx, record: &Record<'_>) -> Result<Lsn, Halt> {
        let lsn = self.commit(work, Some(run), record);
        if self.run(run).open().is_some() { Ok(lsn) } else { Err(Halt::Dead) }
    }

    /// The limit of a wait or a condition: the recorded one, or a new one with its record.
    fn limit<'r>(
        &mut self,
        work: &mut Work<'_>,
        run: RunIx,
        asked: Asked,
        timeout_ms: Option<i64>,
        record: impl Fn(crate::record::RunNo, Option<i64>) -> Record<'r>,
    ) -> Result<Option<i64>, Halt> {
        match asked {
            Asked::Recorded { position, .. } => match self.run(run).journal.read(position).0.record {
                Record::WaitSet { due_ms, .. } | Record::ConditionSet { due_ms, .. } => Ok(due_ms),
                _ => unreachable!("the kind was compared"),
            },
            Asked::New => {
                let turn_ms = self.open_mut(run).ok_or(Halt::Dead)?.turn_ms;
                let due_ms = timeout_ms.map(|timeout_ms| turn_ms.saturating_add(timeout_ms));
                let no = self.run(run).no;
                self.record(work, run, &record(no, due_ms))?;
                Ok(due_ms)
            }
        }
    }

    /// Adds an operation other than a step; its timer is set now, or when the replay ends.
    fn insert(&mut self, run: RunIx, seq: Seq, op: Op) {
        let due_ms = op.due_ms();
        let Some(open) = self.open_mut(run) else { return };
        open.ops.insert(seq, op);
        if let Some(due_ms) = due_ms
            && !open.is_replaying()
        {
            self.timers.set(due_ms, run, seq);
        }
    }
}
