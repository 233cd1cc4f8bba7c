//! Attempts of steps: when one may run, and what becomes of its outcome.

use super::ops::{Op, StepPhase};
use super::run::{Code, RunIx};
use super::shard::{Effect, Shard, Work};
use super::timers::Watch;
use crate::record::{Lsn, Record, Retry, Seq, encode_step_failure};

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

impl Shard {
    /// Lets an attempt of a step run: records its start first where a crash must not go unnoticed.
    pub(super) fn begin_attempt(&mut self, work: &mut Work<'_>, run: RunIx, seq: Seq) {
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
        if self.fits(payload) {
            // Nearly always: what it would be called is not worth the writing.
            return None;
        }
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
}
