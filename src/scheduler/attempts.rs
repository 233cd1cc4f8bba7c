//! Attempts that run: the right to end them, and the ways they end.

use super::engine::Engine;
use super::limits::ClaimIx;
use super::members::MemberNo;
use super::output::{AbortReason, Lease, Output, StepTicket};
use super::retry;
use super::task::{AttemptIx, State, TaskIx};
use super::timers::{Timer, TimerNo};
use crate::record::{AttemptEnd, Outcome, TaskNo, TaskRecord};
use std::collections::BTreeMap;

/// An attempt that runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    serial: u64,
    pub(super) task: TaskIx,
    group: usize,
    member: MemberNo,
    pub(super) timeout: TimerNo,
    pub(super) lease_end: TimerNo,
}

/// All attempts that run, and the steps that have or want limits.
#[derive(Debug)]
pub(super) struct Attempts {
    slots: Vec<Option<Attempt>>,
    free: Vec<AttemptIx>,
    next_serial: u64,
    pub(super) steps: BTreeMap<StepTicket, ClaimIx>,
}

impl Attempts {
    pub(super) fn new(epoch: u16) -> Attempts {
        Attempts { slots: Vec::new(), free: Vec::new(), next_serial: u64::from(epoch) << 48, steps: BTreeMap::new() }
    }

    pub(super) fn begin(
        &mut self,
        task: TaskIx,
        group: usize,
        member: MemberNo,
        timeout: TimerNo,
        lease_end: TimerNo,
    ) -> (AttemptIx, Lease) {
        self.next_serial += 1;
        let serial = self.next_serial;
        let attempt = Attempt { serial, task, group, member, timeout, lease_end };
        let ix = match self.free.pop() {
            Some(ix) => {
                self.slots[ix.0 as usize] = Some(attempt);
                ix
            }
            None => {
                self.slots.push(Some(attempt));
                AttemptIx(self.slots.len() as u32 - 1)
            }
        };
        (ix, Lease { slot: ix.0, serial })
    }

    fn end(&mut self, ix: AttemptIx) -> Attempt {
        self.free.push(ix);
        self.slots[ix.0 as usize].take().expect("an attempt ends once")
    }

    pub(super) fn at(&self, ix: AttemptIx) -> &Attempt {
        self.slots[ix.0 as usize].as_ref().expect("a running task has an attempt")
    }

    fn at_mut(&mut self, ix: AttemptIx) -> &mut Attempt {
        self.slots[ix.0 as usize].as_mut().expect("a running task has an attempt")
    }

    pub(super) fn lease(&self, ix: AttemptIx) -> Lease {
        Lease { slot: ix.0, serial: self.at(ix).serial }
    }

    fn task_of(&self, lease: Lease) -> Option<TaskIx> {
        let attempt = self.slots.get(lease.slot as usize)?.as_ref()?;
        (attempt.serial == lease.serial).then_some(attempt.task)
    }

    /// The tasks whose attempts a thread runs.
    pub(super) fn of_member(&self, member: MemberNo) -> Vec<TaskIx> {
        self.slots.iter().flatten().filter(|attempt| attempt.member == member).map(|attempt| attempt.task).collect()
    }

    /// Every attempt that runs.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Lease, TaskIx)> {
        self.slots.iter().enumerate().filter_map(|(slot, attempt)| {
            attempt.map(|attempt| (Lease { slot: slot as u32, serial: attempt.serial }, attempt.task))
        })
    }
}

/// How a function ended without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No retry mends it.
    Permanent,
    /// Another attempt may do better.
    Retryable {
        /// Not before so many ms have passed.
        after_ms: Option<i64>,
    },
}

impl Engine {
    /// An attempt has a result. `false`: its lease is not the current one, and nothing changed.
    pub fn handle_completed(&mut self, now_ms: i64, lease: Lease, output: &[u8]) -> bool {
        self.with_attempt(now_ms, lease, |engine, ix| engine.end(ix, Outcome::Completed, output))
    }

    /// An attempt threw. `false` as above.
    pub fn handle_failed(&mut self, now_ms: i64, lease: Lease, failure: Failure, thrown: &[u8]) -> bool {
        self.with_attempt(now_ms, lease, |engine, ix| match failure {
            Failure::Permanent => engine.end(ix, Outcome::Failed, thrown),
            Failure::Retryable { after_ms } => engine.retry_or_bury(ix, AttemptEnd::Failed, after_ms, thrown),
        })
    }

    /// An attempt gave up because its task is to be cancelled. `false` as above.
    pub fn handle_cancelled(&mut self, now_ms: i64, lease: Lease, reason: &[u8]) -> bool {
        self.with_attempt(now_ms, lease, |engine, ix| engine.end(ix, Outcome::Cancelled, reason))
    }

    /// An attempt asks to be made again later, and does not count. `false` as above.
    pub fn handle_postponed(&mut self, now_ms: i64, lease: Lease, until_ms: i64) -> bool {
        self.with_attempt(now_ms, lease, |engine, ix| engine.retry(ix, AttemptEnd::Postponed, until_ms, true, b""))
    }

    /// The thread or process in which an attempt ran is gone. The first such loss of a task does not count as an attempt;
    /// one that goes on taking its process with it does. `false` as above.
    pub fn handle_lost(&mut self, now_ms: i64, lease: Lease) -> bool {
        self.with_attempt(now_ms, lease, |engine, ix| engine.lost(ix))
    }

    /// An attempt's executor is alive. `false` as above.
    pub fn handle_heartbeat(&mut self, now_ms: i64, lease: Lease) -> bool {
        self.with_attempt(now_ms, lease, |engine, ix| {
            let lease_ms = engine.queue(engine.tasks[ix].queue).config.lease_ms;
            let State::Running { attempt: Some(attempt), .. } = engine.tasks[ix].state else { return };
            if let Some(lease_ms) = lease_ms {
                let due_ms = engine.now_ms.saturating_add(i64::from(lease_ms));
                let attempt = engine.attempts.at_mut(attempt);
                engine.timers.clear(&mut attempt.lease_end);
                attempt.lease_end = engine.timers.set(due_ms, Timer::Lease(ix));
            }
        })
    }

    /// No attempt starts and no task is accepted from now on. Running attempts may still end.
    pub fn handle_drain(&mut self, now_ms: i64) {
        self.begin(now_ms);
        self.is_draining = true;
        self.schedules.mark_all();
        self.refuse_waiting();
        for at in 0..self.queues.len() {
            self.suspend_if_idle(super::task::QueueIx(at as u16));
        }
        self.settle();
    }

    /// The grace of a drain is over: every attempt that still runs is given up and goes back, at no cost to its task.
    pub fn handle_cut(&mut self, now_ms: i64) {
        self.begin(now_ms);
        let attempts = self.attempts.iter().map(|(_, ix)| ix);
        let running: Vec<TaskIx> = attempts.filter(|ix| self.tasks[*ix].run().is_none()).collect();
        for ix in running {
            self.abort(ix, AbortReason::Drained);
            self.retry(ix, AttemptEnd::Drained, self.now_ms, true, b"");
        }
        self.settle();
    }

    /// The task of which a lease is the current one; `None`: the attempt is over.
    #[must_use]
    pub fn task_of(&self, lease: Lease) -> Option<TaskNo> {
        self.attempts.task_of(lease).map(|ix| self.tasks[ix].number)
    }

    fn with_attempt(&mut self, now_ms: i64, lease: Lease, act: impl FnOnce(&mut Self, TaskIx)) -> bool {
        self.begin(now_ms);
        let task = self.attempts.task_of(lease);
        match task {
            Some(ix) => act(self, ix),
            None => self.totals.stale += 1,
        }
        self.settle();
        task.is_some()
    }

    /// An attempt's time is over.
    pub(super) fn attempt_over(&mut self, ix: TaskIx, end: AttemptEnd) {
        let (reason, thrown) = match end {
            AttemptEnd::LeaseExpired => {
                self.totals.leases_expired += 1;
                (AbortReason::LeaseExpired, &b"the executor was silent for too long"[..])
            }
            _ => {
                self.totals.timed_out += 1;
                (AbortReason::TimedOut, &b"the attempt took too long"[..])
            }
        };
        self.abort(ix, reason);
        self.retry_or_bury(ix, end, None, thrown);
    }

    /// Tells the executor that an attempt is given up.
    pub(super) fn abort(&mut self, ix: TaskIx, reason: AbortReason) {
        if let State::Running { attempt: Some(attempt), .. } = self.tasks[ix].state {
            let (lease, member) = (self.attempts.lease(attempt), self.attempts.at(attempt).member);
            self.outputs.push_back(Output::Abort { task: self.tasks[ix].number, lease, member, reason });
        }
    }

    pub(super) fn lost(&mut self, ix: TaskIx) {
        self.totals.lost += 1;
        let task = &self.tasks[ix];
        if task.losses < self.queue(task.queue).config.free_losses {
            self.retry(ix, AttemptEnd::Lost, self.now_ms, true, b"");
        } else {
            self.retry_or_bury(ix, AttemptEnd::Lost, None, b"the process or thread that ran it is gone");
        }
    }

    fn retry_or_bury(&mut self, ix: TaskIx, end: AttemptEnd, after_ms: Option<i64>, thrown: &[u8]) {
        let task = &self.tasks[ix];
        let own = task.more.as_ref().and_then(|more| more.retry);
        let policy = own.unwrap_or_else(|| self.queue(task.queue).config.retry);
        let counted = task.counted_attempts();
        if counted >= policy.max_attempts {
            self.end(ix, Outcome::Dead, thrown);
        } else {
            let wait_ms = retry::wait_ms(&policy, counted.max(1), after_ms, &mut self.chance);
            self.retry(ix, end, self.now_ms.saturating_add(wait_ms), false, thrown);
        }
    }

    pub(super) fn retry(&mut self, ix: TaskIx, end: AttemptEnd, retry_ms: i64, is_free: bool, thrown: &[u8]) {
        self.give_back(ix);
        let (task, time_ms) = (self.tasks[ix].number, self.now_ms);
        self.record(&TaskRecord::Retrying { task, time_ms, retry_ms, end, is_free, failure: thrown });
        self.measure_failure(ix);
        self.apply_retrying(ix, time_ms, retry_ms, end, is_free, thrown);
    }

    /// Ends a task that is not over, whatever it does.
    pub(super) fn end(&mut self, ix: TaskIx, outcome: Outcome, payload: &[u8]) {
        self.give_back(ix);
        let (task, time_ms) = (self.tasks[ix].number, self.now_ms);
        self.record(&TaskRecord::Ended { task, time_ms, outcome, payload });
        self.measure_end(ix, outcome);
        self.apply_ended(ix, time_ms, outcome, payload);
    }

    /// Takes back what a running attempt holds: its lease, its slot, its limits.
    pub(super) fn give_back(&mut self, ix: TaskIx) {
        let State::Running { started_ms, attempt: Some(attempt) } = self.tasks[ix].state else { return };
        let mut ended = self.attempts.end(attempt);
        self.timers.clear(&mut ended.timeout);
        self.timers.clear(&mut ended.lease_end);
        self.tasks[ix].state = State::Running { started_ms, attempt: None };
        let (queue, claim) = (self.tasks[ix].queue, self.tasks[ix].claim());
        self.measure_capacity(queue);
        self.queue_mut(queue).workers.end(ended.group);
        self.members.end(ended.member);
        if let Some(claim) = claim {
            self.limits.release(claim, self.now_ms);
        }
        self.heed_labels(queue, ended.group);
        self.mark_dirty(queue);
    }

    /// Cancels a task: at once, whatever it does. `false`: it is not known, or over, or stands for a run, which is ended in
    /// its shard.
    pub fn handle_cancel(&mut self, now_ms: i64, task: TaskNo, reason: &[u8]) -> bool {
        self.begin(now_ms);
        let live = self.tasks.find(task).filter(|ix| !self.tasks[*ix].is_ended() && !self.tasks[*ix].stands_for_run());
        if let Some(ix) = live {
            self.abort(ix, AbortReason::Cancelled);
            self.end(ix, Outcome::Cancelled, reason);
        }
        self.settle();
        live.is_some()
    }
}
