//! What is not recorded follows from what is, in one order: that of the tasks' numbers. So an engine goes on in the same
//! way whether it took all records back, or a checkpoint and the records behind it.

use super::engine::Engine;
use super::limits::Limits;
use super::task::{Place, QueueIx, State, TaskIx};
use super::timers::{Timer, TimerNo, Timers};
use crate::record::{LimitSpec, TaskNo};

impl Engine {
    /// Defines the limits that are known without any task: those of the configuration, or as they were set since.
    pub(super) fn define_limits(&mut self) {
        for (name, limit) in self.config.limits.iter().chain(&self.limits_set) {
            self.limits.define(name, *limit, self.now_ms);
        }
    }

    /// A limit was defined or resized.
    pub(super) fn apply_limit_set(&mut self, name: &str, spec: LimitSpec) {
        self.limits_set.insert(name.into(), spec);
        self.limits.define(name, spec, self.now_ms);
    }

    /// A record is about to be taken back. What time alone did to its task before it was written is done first.
    pub(super) fn catch_up(&mut self, ix: TaskIx) {
        if let Some(due_ms) = self.wakes_ms(ix).filter(|due_ms| *due_ms <= self.now_ms) {
            self.timers.clear(&mut self.tasks[ix].wake);
            self.woke(ix, due_ms);
        }
    }

    /// When time moves a task on.
    fn wakes_ms(&self, ix: TaskIx) -> Option<i64> {
        let more = self.tasks[ix].more.as_ref()?;
        match self.tasks[ix].state {
            State::Scheduled => more.not_before_ms,
            State::Retrying => more.retry_ms,
            State::Blocked | State::Ready(_) | State::Running { .. } | State::Ended { .. } => None,
        }
    }

    /// After the last record: makes timers, claims and places anew.
    pub(super) fn derive(&mut self) {
        let live: Vec<TaskIx> =
            self.tasks.iter_after(TaskNo(0)).filter(|(_, task)| !task.is_ended()).map(|(ix, _)| ix).collect();
        // What became ready since the last record stands in line like what was ready before: a checkpoint, which knows the
        // time at which it was made, has more of the one and less of the other.
        live.iter().for_each(|ix| self.catch_up(*ix));
        (self.timers, self.limits) = (Timers::default(), Limits::default());
        self.define_limits();
        self.place_again(&live);
        for ix in live {
            self.make_claim(ix);
            self.await_again(ix);
        }
        self.schedules.renumber();
        for at in 0..self.queues.len() {
            self.suspend_if_idle(QueueIx(at as u16));
        }
    }

    /// Estimates have changed since, and shares begin anew: nobody has saved anything up, nobody is in arrears.
    fn place_again(&mut self, live: &[TaskIx]) {
        let is_scored =
            |ix: &TaskIx| matches!(self.tasks[*ix].state, State::Ready(Place::Deadline { .. } | Place::Fair { .. }));
        let scored: Vec<TaskIx> = live.iter().copied().filter(is_scored).collect();
        scored.iter().for_each(|ix| self.leave_line(*ix));
        self.queues.iter_mut().for_each(super::queue::Queue::forget_shares);
        scored.iter().for_each(|ix| self.enter_line(*ix));
    }

    fn await_again(&mut self, ix: TaskIx) {
        let wake = self.wakes_ms(ix).map_or(TimerNo::NONE, |due_ms| self.timers.set(due_ms, Timer::Wake(ix)));
        let task = &mut self.tasks[ix];
        task.wake = wake;
        let has_started = task.attempts > 0;
        let Some(more) = task.more.as_mut() else { return };
        (more.expire, more.await_timer) = (TimerNo::NONE, TimerNo::NONE);
        if let Some(booked) = more.reserve.as_mut() {
            (booked.hold, booked.miss) = (TimerNo::NONE, TimerNo::NONE);
        }
        if !more.awaits.is_empty() {
            self.limit_await(ix);
        }
        if !has_started {
            self.await_booked(ix);
            self.await_expiry(ix);
        }
    }
}
