//! What becomes of a reserved start as its time comes near, comes and goes by.

use super::engine::Engine;
use super::output::Refusal;
use super::task::{State, TaskIx};
use super::timers::Timer;
use crate::record::{OnMiss, Outcome, TaskSpec};

/// Nearer than this a hold is not looked at again before its time.
const NEAR_MS: i64 = 1_000;

impl Engine {
    /// Whether a start can be promised at its time.
    pub(super) fn check_reservation(&self, queue: super::task::QueueIx, spec: &TaskSpec<'_>) -> Result<(), Refusal> {
        let (Some(reserve), Some(at_ms)) = (spec.reserve, spec.not_before_ms) else { return Ok(()) };
        let of = self.queue(queue);
        let tolerance_ms = i64::from(reserve.tolerance_ms);
        let estimate_ms = spec.estimate_ms.map_or_else(
            || of.learned.estimate_ms().unwrap_or_else(|| i64::from(of.config.default_estimate_ms)),
            i64::from,
        );
        let end_ms = at_ms.saturating_add(estimate_ms).saturating_add(tolerance_ms);
        let most = of.reservations.most_at_once(at_ms.saturating_sub(tolerance_ms), end_ms, |_| true);
        let limit = of.config.reservable();
        if most >= limit as usize {
            return Err(Refusal::Reserved { queue: of.name.clone(), at_ms, limit });
        }
        Ok(())
    }

    /// Keeps a slot from `at - lead`, where the lead is as long as other work may occupy a slot. The lead is looked at
    /// again on the way, so that one that grows is noticed.
    pub(super) fn hold_or_wait(&mut self, ix: TaskIx) {
        let task = &self.tasks[ix];
        let queue = task.queue;
        let Some(booked) = task.reserve().copied() else { return };
        if task.attempts > 0 || self.now_ms >= booked.at_ms {
            return;
        }
        let of = self.queue(queue);
        let lead_ms = self.measured_run_p90_ms(queue).max(booked.tolerance_ms).min(i64::from(of.config.hold_ms_max));
        let from_ms = booked.at_ms.saturating_sub(lead_ms);
        if self.now_ms >= from_ms {
            let of = &mut self.queues[usize::from(queue.0)];
            of.reservations.want_hold(ix, &self.tasks[ix]);
            self.mark_dirty(queue);
            return;
        }
        let left_ms = from_ms - self.now_ms;
        let next_ms = if left_ms < NEAR_MS { from_ms } else { self.now_ms + left_ms / 2 };
        let timer = self.timers.set(next_ms, Timer::Hold(ix));
        if let Some(booked) = self.tasks[ix].more_mut().reserve.as_mut() {
            booked.hold = timer;
        }
    }

    /// The promised time and its tolerance have passed.
    pub(super) fn missed(&mut self, ix: TaskIx) {
        let task = &self.tasks[ix];
        let Some(booked) = task.reserve().copied() else { return };
        if task.attempts > 0 || task.is_ended() {
            return;
        }
        let (number, queue) = (task.number, task.queue);
        match booked.on_miss {
            OnMiss::RunLate => {
                if task.state == State::Blocked {
                    let of = &mut self.queues[usize::from(queue.0)];
                    of.reservations.let_go(ix, &self.tasks[ix]);
                    self.mark_dirty(queue);
                }
            }
            OnMiss::Skip | OnMiss::Fail => {
                let late = format!(
                    "task {number} should have started at {} ms and no later than {} ms after",
                    booked.at_ms, booked.tolerance_ms
                );
                let outcome = if booked.on_miss == OnMiss::Skip { Outcome::Missed } else { Outcome::Failed };
                self.end(ix, outcome, late.as_bytes());
            }
        }
    }

    /// Whether a task was submitted after its promised time had passed.
    pub(super) fn is_missed_already(&self, ix: TaskIx) -> bool {
        let booked = self.tasks[ix].reserve();
        booked.is_some_and(|booked| self.now_ms > booked.at_ms.saturating_add(booked.tolerance_ms))
    }

    /// Its first attempt began.
    pub(super) fn begin_booked(&mut self, ix: TaskIx) {
        let task = &mut self.tasks[ix];
        let queue = task.queue;
        let Some(booked) = task.more.as_mut().and_then(|more| more.reserve.as_mut()) else { return };
        self.timers.clear(&mut booked.hold);
        self.timers.clear(&mut booked.miss);
        let of = &mut self.queues[usize::from(queue.0)];
        of.reservations.let_go(ix, &self.tasks[ix]);
    }

    /// It is over.
    pub(super) fn unbook(&mut self, ix: TaskIx) {
        self.begin_booked(ix);
        let task = &self.tasks[ix];
        let (number, queue) = (task.number, task.queue);
        if let Some(booked) = task.reserve().copied() {
            self.queue_mut(queue).reservations.unbook(number, &booked);
            self.mark_dirty(queue);
        }
    }
}
