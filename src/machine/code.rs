//! The verbs of running code: operations it opens, results of its step bodies, and the walk along the journal that
//! hands it one entry a turn.

use super::limits::check_text;
use super::ops::{Op, StepOp, StepPhase};
use super::run::{Code, OpenRun, Replay, RunIx};
use super::shard::{Effect, Shard, Work};
use super::stuck::Operation;
use super::timers::Watch;
use crate::record::{ChildSpec, Lsn, Record, Retry, Sending, Seq, Status, encode_step_failure};

/// What the code is handed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// What happened.
    pub kind: DeliveryKind,
    /// The operation that it settles; 0 for the start and for a cancel.
    pub seq: Seq,
    /// Nothing is recorded behind it: the host need not come back at the end of the turn unless it is woken, or the code
    /// waits for nothing that could be recorded.
    pub is_last: bool,
}

/// What happened to an operation, or to the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryKind {
    /// The function is to be called.
    Start,
    /// The step has a result.
    StepCompleted,
    /// The step has failed for good.
    StepFailed,
    /// The sleep is over.
    TimerFired,
    /// The wait has its signal.
    SignalTaken,
    /// The wait's time is over.
    WaitTimedOut,
    /// The condition's time is over.
    ConditionTimedOut,
    /// The child, or the watched workflow, ended.
    ChildEnded,
    /// Somebody asked the run to end: everything open is withdrawn.
    Cancelled,
}

/// How a step is to be run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepMode {
    /// It has no effect outside: it need not wait for the disk.
    pub is_read_only: bool,
    /// Its start is recorded and waited for; it is never run a second time after a crash.
    pub is_at_most_once: bool,
}

/// One execution of a step's function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// What the function is told: counted from 1, and from 1 again whenever somebody resumes the run.
    pub number: u32,
    /// The right to complete the step, from 1: no other attempt of the step has it, neither before a pause nor after.
    pub lease: u32,
    /// An earlier start of a step that runs at most once has no outcome: the function must not be called.
    pub is_interrupted: bool,
    /// What the last heartbeat said.
    pub last_heartbeat: Vec<u8>,
}

/// The answer to a step that the code asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenedStep {
    /// The body may run, as attempt 1 under lease 1, once this is durable.
    Run(Lsn),
    /// An [`Effect::Attempt`] or a delivery will come.
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

/// What the walk does with a journal entry.
enum Walk {
    Pass,
    Deliver(DeliveryKind, Seq, i64),
    Buffer,
    Unasked,
}

impl Shard {
    /// Notes that a host has the run's code, about to be called: the walk begins with the first record. `true`: what
    /// was recorded before is replayed first. `None`: the run has ended meanwhile, or a host has its code already.
    pub fn load(&mut self, run: RunIx) -> Option<bool> {
        let target = self.run_mut(run);
        if !matches!(target.open()?.code, Code::Absent) {
            return None;
        }
        let first_end = target.journal.read(0).1;
        let end = target.journal.end();
        let is_recovered = target.open()?.is_recovered;
        let mut untaken = 0;
        let replay = (is_recovered || end > first_end).then(|| {
            let mut recorded = Vec::new();
            for (position, entry) in target.journal.entries() {
                untaken += usize::from(matches!(entry.record, Record::Signal { .. }));
                if let Some((seq, _)) = Operation::of(&entry.record) {
                    let index = seq.0 as usize - 1;
                    if recorded.len() <= index {
                        recorded.resize(index + 1, 0);
                    }
                    if recorded[index] == 0 {
                        recorded[index] = position + 1;
                    }
                }
            }
            Box::new(Replay { end, recorded })
        });
        let open = target.open_mut()?;
        let is_replay = replay.is_some();
        open.replay = replay;
        open.untaken = untaken;
        open.code = Code::Idle;
        Some(is_replay)
    }

    /// The code can go no further: hands out the next entry that concerns it, if there is one. A run whose code asked
    /// for less than was recorded gets stuck here.
    pub fn quiescent(&mut self, work: &mut Work<'_>, run: RunIx) -> Option<Delivery> {
        let open = self.open_mut(run)?;
        match open.code {
            Code::Idle | Code::InTurn | Code::InLastTurn => open.code = Code::Idle,
            Code::Absent | Code::Stuck(_) => return None,
        }
        loop {
            let target = self.run_mut(run);
            let end = target.journal.end();
            let open = target.open_mut()?;
            if open.replay.as_ref().is_some_and(|replay| open.cursor >= replay.end) && !self.end_replay(work, run) {
                return None;
            }
            let open = self.open_mut(run)?;
            if open.cursor >= end {
                return None;
            }
            let position = open.cursor;
            match self.walk(run, position) {
                Walk::Pass => {}
                Walk::Buffer => self.open_mut(run)?.buffered.push_back(position),
                Walk::Unasked => {
                    self.unasked(work, run, position);
                    return None;
                }
                Walk::Deliver(kind, seq, time_ms) => {
                    self.settle(run, kind, seq);
                    let open = self.open_mut(run)?;
                    open.delivered = position;
                    open.turn_ms = open.turn_ms.max(time_ms);
                    let is_last = open.cursor >= end && !open.is_replaying();
                    open.code = if is_last { Code::InLastTurn } else { Code::InTurn };
                    self.metrics.deliveries += 1;
                    return Some(Delivery { kind, seq, is_last });
                }
            }
        }
    }

    /// Whether the code was handed everything that is recorded.
    #[must_use]
    pub fn has_seen_all(&self, run: RunIx) -> bool {
        let target = self.run(run);
        target.open().is_some_and(|open| open.cursor == target.journal.end() && !open.is_replaying())
    }

    /// Looks at the entry at the cursor, and moves the cursor behind it.
    fn walk(&mut self, run: RunIx, position: u32) -> Walk {
        let target = &mut self.runs[run.0 as usize];
        let (entry, next) = target.journal.read(position);
        let super::run::RunState::Open(open) = &mut target.state else { return Walk::Pass };
        open.cursor = next;
        let is_asked = |seq: Seq| seq.0 <= open.asked;
        match entry.record {
            Record::Start { time_ms, .. } => Walk::Deliver(DeliveryKind::Start, Seq(0), time_ms),
            Record::StepDone { seq, is_failure, time_ms, .. } => match open.ops.get(seq) {
                Some(_) if is_failure => Walk::Deliver(DeliveryKind::StepFailed, seq, time_ms),
                Some(_) => Walk::Deliver(DeliveryKind::StepCompleted, seq, time_ms),
                None if is_asked(seq) => Walk::Pass,
                None => Walk::Unasked,
            },
            Record::StepFailed { seq, attempt, retry, .. } => {
                let is_replaying = open.is_replaying();
                match open.ops.step_mut(seq) {
                    Some(step) if is_replaying => {
                        step.attempt = attempt.saturating_add(1);
                        step.is_started = false;
                        step.phase = match retry {
                            Retry::At(at_ms) => StepPhase::Backoff(at_ms),
                            Retry::Paused => StepPhase::Paused,
                        };
                        Walk::Pass
                    }
                    Some(_) => Walk::Pass,
                    None if is_asked(seq) => Walk::Pass,
                    None => Walk::Unasked,
                }
            }
            Record::StepStarted { seq, attempt, .. } => {
                let is_replaying = open.is_replaying();
                if let Some(step) = open.ops.step_mut(seq).filter(|_| is_replaying) {
                    step.attempt = attempt;
                    step.is_started = true;
                    step.phase = StepPhase::Replayed;
                }
                if is_asked(seq) { Walk::Pass } else { Walk::Unasked }
            }
            Record::TimerFired { seq, time_ms, .. } => match open.ops.get(seq) {
                Some(Op::Timer { .. }) => Walk::Deliver(DeliveryKind::TimerFired, seq, time_ms),
                Some(Op::Wait { .. }) => Walk::Deliver(DeliveryKind::WaitTimedOut, seq, time_ms),
                Some(Op::Condition { .. }) => Walk::Deliver(DeliveryKind::ConditionTimedOut, seq, time_ms),
                // It became true, or got its signal, before its time was over.
                Some(Op::Step(_) | Op::Child) | None => Walk::Pass,
            },
            Record::Signal { name, time_ms, .. } => match open.ops.first_wait(name) {
                Some(seq) => Walk::Deliver(DeliveryKind::SignalTaken, seq, time_ms),
                None => Walk::Buffer,
            },
            Record::ChildDone { seq, time_ms, .. } => match open.ops.get(seq) {
                Some(Op::Child) => Walk::Deliver(DeliveryKind::ChildEnded, seq, time_ms),
                Some(_) | None => Walk::Pass,
            },
            Record::Cancel { time_ms, .. } => Walk::Deliver(DeliveryKind::Cancelled, Seq(0), time_ms),
            Record::Resumed { .. } => {
                if open.is_replaying() {
                    open.ops.renew_paused();
                }
                Walk::Pass
            }
            Record::TimerSet { seq, .. }
            | Record::WaitSet { seq, .. }
            | Record::ConditionSet { seq, .. }
            | Record::ChildSet { seq, .. }
            | Record::SendSet { seq, .. } => {
                if is_asked(seq) {
                    Walk::Pass
                } else {
                    Walk::Unasked
                }
            }
            Record::Heartbeat { .. }
            | Record::Done { .. }
            | Record::Watched { .. }
            | Record::Answered { .. }
            | Record::Received { .. } => Walk::Pass,
        }
    }

    /// Closes what a delivery settles.
    fn settle(&mut self, run: RunIx, kind: DeliveryKind, seq: Seq) {
        if kind == DeliveryKind::Cancelled {
            let open = self.open_mut(run).expect("only open runs are walked");
            let ops = std::mem::take(&mut open.ops);
            if cfg!(fusee_mutant = "pause_forgotten") {
                open.paused.clear();
            }
            for (seq, op) in ops.iter() {
                // In a replay, steps that the code asks for only after this may have been paused since.
                self.open_mut(run).expect("it was just found").paused.remove(&seq);
                self.disarm(run, seq, op);
            }
        } else if seq != Seq(0) {
            let open = self.open_mut(run).expect("only open runs are walked");
            open.untaken -= usize::from(kind == DeliveryKind::SignalTaken);
            if let Some(op) = open.ops.remove(seq)
                && op.due_ms().is_some()
            {
                self.disarm(run, seq, &op);
            }
        }
    }

    /// The code has been handed everything that was recorded before: it must have asked for everything that was.
    fn end_replay(&mut self, work: &mut Work<'_>, run: RunIx) -> bool {
        let open = self.open_mut(run).expect("only open runs are walked");
        let Some(replay) = open.replay.take() else { return true };
        if replay.recorded.len() > open.asked as usize {
            let position = replay.recorded[open.asked as usize..].iter().find(|position| **position > 0);
            if let Some(position) = position.copied() {
                self.unasked(work, run, position - 1);
                return false;
            }
        }
        let pending: Vec<Seq> =
            self.run(run).open().into_iter().flat_map(|open| open.ops.iter()).map(|op| op.0).collect();
        for seq in pending {
            self.arm(work, run, seq);
        }
        true
    }

    /// Sets going what a replay left open.
    fn arm(&mut self, work: &mut Work<'_>, run: RunIx, seq: Seq) {
        let Some(op) = self.open_mut(run).and_then(|open| open.ops.get_mut(seq)) else { return };
        match op {
            Op::Step(step) => match step.phase {
                StepPhase::Replayed => {
                    if step.is_started && step.is_recovered && !step.is_at_most_once {
                        // The attempt was lost with its process: it counts.
                        step.attempt = step.attempt.saturating_add(1);
                        step.is_started = false;
                    }
                    self.begin_attempt(work, run, seq);
                }
                StepPhase::Backoff(at_ms) => self.timers.set(at_ms, run, seq),
                StepPhase::Running | StepPhase::Paused | StepPhase::Settled => {}
            },
            Op::Timer { .. } | Op::Wait { .. } | Op::Condition { .. } | Op::Child => {
                if let Some(due_ms) = op.due_ms()
                    && !cfg!(fusee_mutant = "timer_not_rearmed")
                {
                    self.timers.set(due_ms, run, seq);
                }
            }
        }
    }

    /// Lets an attempt of a step run: records its start first where a crash must not go unnoticed.
    pub(crate) fn begin_attempt(&mut self, work: &mut Work<'_>, run: RunIx, seq: Seq) {
        let (no, last) = (self.run(run).no, self.run(run).last);
        let Some(step) = self.open_mut(run).and_then(|open| open.ops.step_mut(seq)) else { return };
        step.phase = StepPhase::Running;
        step.gate = if step.is_read_only { Lsn::NONE } else { last };
        step.is_interrupted = step.is_at_most_once && step.is_started;
        if !step.is_interrupted && (step.is_at_most_once || (step.is_recovered && !step.is_read_only)) {
            let (name, attempt) = (step.name.clone(), step.attempt);
            let record = Record::StepStarted { run: no, seq, name: &name, attempt, time_ms: work.now_ms };
            self.commit(work, Some(run), &record);
        }
        if let Some(step) = self.open_mut(run).and_then(|open| open.ops.step_mut(seq)) {
            let gate = step.gate;
            work.effects.push(Effect::Attempt { run, seq, gate });
        }
    }

    /// The attempt that an [`Effect::Attempt`] asks for. `None`: it is not asked for any more.
    #[must_use]
    pub fn attempt(&self, run: RunIx, seq: Seq, gate: Lsn) -> Option<Attempt> {
        let target = self.run(run);
        let Some(Op::Step(step)) = target.open()?.ops.get(seq) else { return None };
        if step.phase != StepPhase::Running || step.gate != gate {
            return None;
        }
        let mut last_heartbeat = Vec::new();
        for (_, entry) in target.journal.entries() {
            if let Record::Heartbeat { seq: of, details, .. } = entry.record
                && of == seq
            {
                last_heartbeat = details.to_vec();
            }
        }
        let (number, lease, is_interrupted) = (step.attempt, step.lease(), step.is_interrupted);
        Some(Attempt { number, lease, is_interrupted, last_heartbeat })
    }

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

    /// The code sleeps until a time, or for a time from the present turn on.
    pub fn open_timer(
        &mut self,
        work: &mut Work<'_>,
        run: RunIx,
        seq: Seq,
        value_ms: i64,
        is_absolute: bool,
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
                let due_ms = if is_absolute { value_ms } else { turn_ms.saturating_add(value_ms) };
                self.record(work, run, &Record::TimerSet { run: no, seq, due_ms })?;
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
            open.untaken -= 1;
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

    /// Takes back a wait whose iterator was closed, or a condition that became true.
    pub fn withdraw(&mut self, run: RunIx, seq: Seq) -> Result<(), Halt> {
        let open = self.open_mut(run).ok_or(Halt::Dead)?;
        if let Some(op) = open.ops.remove(seq) {
            self.disarm(run, seq, &op);
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

    /// The code addresses another workflow. Only a watch stays open.
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
        if what == Sending::Watch {
            self.insert(run, seq, Op::Child);
        }
        Ok(())
    }

    /// A step's body returned. `false`: the lease is dead: nothing has changed.
    pub fn complete(&mut self, work: &mut Work<'_>, run: RunIx, seq: Seq, lease: u32, payload: &[u8]) -> bool {
        self.step_result(work, run, seq, lease, false, payload)
    }

    /// A step's body failed for good. `false`: the lease is dead: nothing has changed.
    pub fn fail(&mut self, work: &mut Work<'_>, run: RunIx, seq: Seq, lease: u32, failure: &[u8]) -> bool {
        self.step_result(work, run, seq, lease, true, failure)
    }

    fn step_result(
        &mut self,
        work: &mut Work<'_>,
        run: RunIx,
        seq: Seq,
        lease: u32,
        is_failure: bool,
        payload: &[u8],
    ) -> bool {
        // Nobody asks for the name of a step that has its result.
        let Some((name, attempt)) =
            self.running(run, seq, lease).map(|(name, attempt)| (std::mem::take(name), attempt))
        else {
            return false;
        };
        let (no, time_ms) = (self.run(run).no, work.now_ms);
        let what = if is_failure { "the error" } else { "the result" };
        // Its effect is done: another attempt would only do it again. Law 6.
        let refused = self.bounded_failure(&name, attempt, what, payload);
        let (is_failure, payload) = refused.as_ref().map_or((is_failure, payload), |text| (true, text.as_bytes()));
        let record = Record::StepDone { run: no, seq, name: &name, attempt, time_ms, is_failure, payload };
        self.commit(work, Some(run), &record);
        true
    }

    /// A step's body failed and is to be tried again, or to wait for somebody. `false`: the lease is dead.
    pub fn retry(
        &mut self,
        work: &mut Work<'_>,
        run: RunIx,
        seq: Seq,
        lease: u32,
        retry: Retry,
        failure: &[u8],
    ) -> bool {
        let Some((name, attempt)) = self.running(run, seq, lease).map(|(name, attempt)| (name.clone(), attempt)) else {
            return false;
        };
        let no = self.run(run).no;
        let refused = self.bounded_failure(&name, attempt, "the error", failure);
        let failure = refused.as_ref().map_or(failure, |text| text.as_bytes());
        let record = Record::StepFailed { run: no, seq, name: &name, attempt, time_ms: work.now_ms, retry, failure };
        self.commit(work, Some(run), &record);
        true
    }

    /// What stands for an outcome that is too large to be recorded, if it is.
    fn bounded_failure(&self, name: &str, attempt: u32, what: &str, payload: &[u8]) -> Option<String> {
        let why = self.limits.check_payload(&format!("{what} of step \"{name}\""), payload).err()?;
        Some(encode_step_failure(name, attempt, &why))
    }

    /// A running body says that it lives, and perhaps how far it is. Details that are too large are not recorded; the
    /// sign of life counts.
    pub fn heartbeat(&mut self, work: &mut Work<'_>, run: RunIx, seq: Seq, lease: u32, details: Option<&[u8]>) -> bool {
        let Some((_, attempt)) = self.running(run, seq, lease) else { return false };
        self.timers.beat(run, seq, work.now_ms);
        if let Some(details) = details.filter(|details| details.len() <= self.limits.payload_bytes_max) {
            let no = self.run(run).no;
            let record = Record::Heartbeat { run: no, seq, attempt, time_ms: work.now_ms, details };
            self.commit(work, Some(run), &record);
        }
        true
    }

    /// Limits a running attempt: its time, and its silence. [`Effect::Overdue`] comes when one is over.
    pub fn watch_attempt(
        &mut self,
        now_ms: i64,
        run: RunIx,
        seq: Seq,
        lease: u32,
        timeout_ms: Option<i64>,
        heartbeat_ms: Option<i64>,
    ) {
        if self.running(run, seq, lease).is_some() && (timeout_ms.is_some() || heartbeat_ms.is_some()) {
            let timeout_at_ms = timeout_ms.map(|limit_ms| now_ms.saturating_add(limit_ms));
            self.timers.watch(run, seq, Watch { lease, timeout_at_ms, heartbeat_ms, last_beat_ms: now_ms });
        }
    }

    /// The name of a step and the number of its attempt, if the lease is that of the attempt that runs: law 7.
    fn running(&mut self, run: RunIx, seq: Seq, lease: u32) -> Option<(&mut Box<str>, u32)> {
        let open = self.open_mut(run)?;
        if matches!(open.code, Code::Absent | Code::Stuck(_)) {
            return None;
        }
        let step = open.ops.step_mut(seq)?;
        let counts = step.phase == StepPhase::Running && step.lease() == lease;
        (counts || cfg!(fusee_mutant = "second_result_accepted")).then_some((&mut step.name, step.attempt))
    }

    /// The code returned or threw.
    pub fn finish(&mut self, work: &mut Work<'_>, run: RunIx, status: Status, payload: &[u8]) -> Result<(), Halt> {
        let open = self.open_mut(run).ok_or(Halt::Dead)?;
        if !open.is_in_turn() {
            return Err(Halt::Dead);
        }
        if let Some(replay) = &open.replay {
            let asked = open.asked as usize;
            let unasked = replay.recorded.iter().skip(asked).find(|position| **position > 0).copied();
            if let Some(position) = unasked {
                return Err(self.mismatch(work, run, position - 1, None, "has ended"));
            }
        }
        // The code has ended by itself: there is nothing for its host to drop.
        open.code = Code::Absent;
        let (status, payload) = self.bounded_end(run, status, payload);
        self.done(work, run, status, &payload, None, None);
        Ok(())
    }

    /// The result of the step that was delivered last, and of those whose results follow it without anything between them:
    /// a replay gets them in one go. At most so many, and about so many bytes.
    pub fn results(&self, run: RunIx, count_max: usize, bytes_max: usize) -> Vec<(Seq, &[u8])> {
        let target = self.run(run);
        let Some(open) = target.open() else { return Vec::new() };
        let (mut results, mut bytes, mut position) = (Vec::new(), 0, open.delivered);
        while position < target.journal.end() && results.len() < count_max && bytes < bytes_max {
            let (entry, next) = target.journal.read(position);
            let Record::StepDone { seq, payload, is_failure: false, .. } = entry.record else { break };
            bytes += payload.len();
            results.push((seq, payload));
            position = next;
        }
        results
    }

    /// The payload of what was delivered last, and for a child's end how it ended.
    #[must_use]
    pub fn payload(&self, run: RunIx) -> (Option<Status>, &[u8]) {
        let target = self.run(run);
        let Some(open) = target.open() else { return (None, b"") };
        match target.journal.read(open.delivered).0.record {
            Record::Start { new, .. } => (None, new.input),
            Record::StepDone { payload, .. } | Record::Signal { payload, .. } => (None, payload),
            Record::ChildDone { status, payload, .. } => (Some(status), payload),
            Record::Cancel { reason, .. } => (None, reason.as_bytes()),
            _ => (None, b""),
        }
    }

    /// The time of the delivery whose turn it is, in ms since 1970.
    #[must_use]
    pub fn turn_ms(&self, run: RunIx) -> i64 {
        self.run(run).open().map_or(0, |open| open.turn_ms)
    }

    /// Whether recorded results are being given back.
    #[must_use]
    pub fn is_replaying(&self, run: RunIx) -> bool {
        self.run(run).open().is_some_and(OpenRun::is_replaying)
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
        let recorded = open.replay.as_ref().and_then(|replay| replay.recorded.get(seq.0 as usize - 1).copied());
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

    fn unasked(&mut self, work: &mut Work<'_>, run: RunIx, position: u32) {
        let asked = self.run(run).open().map_or(0, |open| open.asked);
        let instead = format!("has asked for only {asked} operations");
        self.mismatch(work, run, position, None, &instead);
    }
}
