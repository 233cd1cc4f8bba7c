//! How a queue does: counts, waits, run times and use of its workers, over a window that moves in twelfths.

use super::engine::Engine;
use super::histogram::Histogram;
use super::task::{QueueIx, State, TaskIx};
use crate::record::Outcome;

const PARTS: usize = 12;

/// One twelfth of the window.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    pub(super) dispatched: u64,
    pub(super) passed_better: u64,
    pub(super) completed: u64,
    pub(super) failed_attempts: u64,
    pub(super) retried: u64,
    pub(super) reserved_starts: u64,
    pub(super) reserved_on_time: u64,
    pub(super) busy_ms: u64,
    pub(super) useful_ms: u64,
    pub(super) capacity_ms: u64,
    pub(super) wait: Histogram,
    pub(super) run: Histogram,
}

/// What is measured of a queue.
#[derive(Debug)]
pub(super) struct Metrics {
    parts: [Part; PARTS],
    part_ms: i64,
    /// Number of the newest part, counted from 1970.
    newest: i64,
    /// Up to when the use of workers was counted.
    counted_ms: Option<i64>,
    /// Run times of tasks without a reserved start, since the beginning.
    plain_run: Histogram,
    pub(super) worker_ms: u64,
}

impl Metrics {
    pub(super) fn new(window_ms: i64) -> Metrics {
        Metrics {
            parts: Default::default(),
            part_ms: (window_ms / PARTS as i64).max(1),
            newest: i64::MIN,
            counted_ms: None,
            plain_run: Histogram::default(),
            worker_ms: 0,
        }
    }

    /// The part of a time; older ones than the window are emptied on the way.
    fn at(&mut self, now_ms: i64) -> &mut Part {
        let number = now_ms.div_euclid(self.part_ms);
        if number > self.newest {
            let first = self.newest.saturating_add(1).max(number.saturating_sub(PARTS as i64 - 1));
            for passed in first..=number {
                self.parts[passed.rem_euclid(PARTS as i64) as usize].clear();
            }
            self.newest = number;
        }
        &mut self.parts[number.rem_euclid(PARTS as i64) as usize]
    }

    /// Counts the use of workers up to now, before it changes.
    fn count_workers(&mut self, now_ms: i64, busy: u32, capacity: u32) {
        let window_ms = self.part_ms * PARTS as i64;
        let Some(from_ms) = self.counted_ms.replace(now_ms) else { return };
        if from_ms >= now_ms {
            return;
        }
        self.worker_ms = self.worker_ms.saturating_add(now_ms.abs_diff(from_ms).saturating_mul(u64::from(capacity)));
        let mut from_ms = from_ms.max(now_ms.saturating_sub(window_ms));
        while from_ms < now_ms {
            let end_ms = from_ms.div_euclid(self.part_ms).saturating_add(1).saturating_mul(self.part_ms).min(now_ms);
            let length_ms = end_ms.abs_diff(from_ms);
            let part = self.at(from_ms);
            part.busy_ms += length_ms * u64::from(busy.min(capacity));
            part.capacity_ms += length_ms * u64::from(capacity);
            from_ms = end_ms;
        }
    }

    /// The whole window.
    pub(super) fn window(&mut self, now_ms: i64) -> Part {
        self.at(now_ms);
        let mut sum = Part::default();
        self.parts.iter().for_each(|part| sum.add(part));
        sum
    }
}

impl Part {
    fn clear(&mut self) {
        let (mut wait, mut run) = (std::mem::take(&mut self.wait), std::mem::take(&mut self.run));
        wait.clear();
        run.clear();
        *self = Part { wait, run, ..Part::default() };
    }

    fn add(&mut self, other: &Part) {
        self.dispatched += other.dispatched;
        self.passed_better += other.passed_better;
        self.completed += other.completed;
        self.failed_attempts += other.failed_attempts;
        self.retried += other.retried;
        self.reserved_starts += other.reserved_starts;
        self.reserved_on_time += other.reserved_on_time;
        self.busy_ms += other.busy_ms;
        self.useful_ms += other.useful_ms;
        self.capacity_ms += other.capacity_ms;
        self.wait.merge(&other.wait);
        self.run.merge(&other.run);
    }
}

impl Engine {
    /// Counts the use of a queue's workers, before it changes. Of a time before the restart nothing is counted.
    pub(super) fn measure_capacity(&mut self, queue: QueueIx) {
        if self.is_restoring {
            return;
        }
        let now_ms = self.now_ms;
        let queue = self.queue_mut(queue);
        let (busy, capacity) = (queue.workers.busy, queue.workers.capacity);
        queue.metrics.count_workers(now_ms, busy, capacity);
    }

    /// An attempt is about to begin.
    pub(super) fn measure_start(&mut self, ix: TaskIx) {
        let task = &self.tasks[ix];
        let queue = &mut self.queues[usize::from(task.queue.0)];
        let now_ms = self.now_ms;
        let passes_better = queue.better_waits(task.class);
        let (busy, capacity) = (queue.workers.busy, queue.workers.capacity);
        queue.metrics.count_workers(now_ms, busy, capacity);
        let part = queue.metrics.at(now_ms);
        part.dispatched += 1;
        part.passed_better += u64::from(passes_better);
        if task.attempts == 0 {
            part.wait.add(now_ms.saturating_sub(task.eligible_ms.unwrap_or(now_ms)));
            if let Some(booked) = task.reserve() {
                part.reserved_starts += 1;
                part.reserved_on_time += u64::from(now_ms.abs_diff(booked.at_ms) <= booked.tolerance_ms as u64);
            }
        }
    }

    /// An attempt is about to be followed by another one.
    pub(super) fn measure_failure(&mut self, ix: TaskIx) {
        let (queue, now_ms) = (self.tasks[ix].queue, self.now_ms);
        let part = self.queue_mut(queue).metrics.at(now_ms);
        part.failed_attempts += 1;
        part.retried += 1;
    }

    /// A task is about to end.
    pub(super) fn measure_end(&mut self, ix: TaskIx, outcome: Outcome) {
        let task = &self.tasks[ix];
        let State::Running { started_ms, .. } = task.state else { return };
        let (queue, is_plain) = (task.queue, task.reserve().is_none());
        let now_ms = self.now_ms;
        let run_ms = now_ms.saturating_sub(started_ms);
        let metrics = &mut self.queue_mut(queue).metrics;
        let part = metrics.at(now_ms);
        if outcome == Outcome::Completed {
            part.completed += 1;
            part.useful_ms += run_ms.max(0) as u64;
            part.run.add(run_ms);
            if is_plain {
                metrics.plain_run.add(run_ms);
            }
        } else {
            part.failed_attempts += 1;
        }
    }

    /// How long most other work occupies a slot.
    pub(super) fn measured_run_p90_ms(&self, queue: QueueIx) -> i64 {
        let queue = self.queue(queue);
        if queue.metrics.plain_run.count() == 0 {
            return i64::from(queue.config.default_estimate_ms);
        }
        queue.metrics.plain_run.percentile_ms(90)
    }
}
