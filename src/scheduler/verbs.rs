//! What somebody asks of tasks, queues and limits that exist.

use super::config::complaint_about;
use super::engine::Engine;
use super::output::{Refusal, Warning};
use super::task::{Place, QueueIx, State, TaskIx};
use crate::record::{Change, Class, LimitSpec, Outcome, TaskNo, TaskRecord};

/// What somebody reads who sets the slots of a queue that follows its load.
const SCALES_ITSELF: &str = "a queue that follows its load has bounds instead of a number of slots; give { min, max }";

/// What somebody reads who sets the bounds of another one.
const HAS_NO_BOUNDS: &str = "a queue with a number of slots has no bounds to follow its load between; give a number, or open \
                             it with a concurrency of { min, max }";

impl Engine {
    /// Changes the class of a task. `false`: it is not known, or over.
    pub fn handle_reprioritize(&mut self, now_ms: i64, task: TaskNo, class: Class) -> bool {
        self.begin(now_ms);
        let live = self.tasks.find(task).filter(|ix| !self.tasks[*ix].is_ended());
        if let Some(ix) = live.filter(|ix| self.tasks[*ix].class != class) {
            self.change(ix, Change::Class(class));
        }
        self.settle();
        live.is_some()
    }

    /// Changes the time before which a task does not start. `false`: it is not known, has started, or has a reserved start.
    pub fn handle_reschedule(&mut self, now_ms: i64, task: TaskNo, not_before_ms: i64) -> bool {
        self.begin(now_ms);
        let waiting = self.tasks.find(task).filter(|ix| {
            let task = &self.tasks[*ix];
            task.is_pending() && task.attempts == 0 && task.reserve().is_none()
        });
        if let Some(ix) = waiting {
            self.change(ix, Change::NotBefore(not_before_ms));
        }
        self.settle();
        waiting.is_some()
    }

    fn change(&mut self, ix: TaskIx, change: Change<'_>) {
        self.record(&TaskRecord::Changed { task: self.tasks[ix].number, time_ms: self.now_ms, change });
        self.apply_changed(ix, &change);
    }

    /// Gives a task that ended, other than completed, its attempts back. It keeps its number and its history.
    ///
    /// `Ok(false)`: it is not remembered, not over, completed, or stands for a run. Refused when its key belongs to another task by now.
    pub fn handle_revive(&mut self, now_ms: i64, task: TaskNo) -> Result<bool, Refusal> {
        self.begin(now_ms);
        let result = self.revive(task);
        self.settle();
        result
    }

    fn revive(&mut self, task: TaskNo) -> Result<bool, Refusal> {
        if self.is_draining {
            return Err(Refusal::Closed);
        }
        let Some(ix) = self.tasks.find(task) else { return Ok(false) };
        let State::Ended { outcome, .. } = self.tasks[ix].state else { return Ok(false) };
        if outcome == Outcome::Completed || self.tasks[ix].stands_for_run() {
            return Ok(false);
        }
        if let Some(key) = self.tasks[ix].key()
            && let Some(other) = self.keys.get(key).filter(|other| **other != ix && !self.tasks[**other].is_ended())
        {
            return Err(Refusal::KeyInUse { key: key.into(), task: self.tasks[*other].number });
        }
        let demand = [(self.tasks[ix].queue, self.tasks[ix].class, 1)];
        if let Some(broken) = self.broken_bound(&demand, None) {
            return Err(broken);
        }
        self.record(&TaskRecord::Revived { task, time_ms: self.now_ms });
        self.apply_revived(ix, self.now_ms);
        Ok(true)
    }

    /// Pauses a queue, or lets it go on. Running attempts go on in any case. It stays so over restarts.
    pub fn handle_pause(&mut self, now_ms: i64, queue: &str, is_paused: bool) -> Result<(), Refusal> {
        self.begin(now_ms);
        let found = self.find_queue(queue);
        if let Ok(ix) = found
            && self.queue(ix).is_paused != is_paused
        {
            self.record(&TaskRecord::QueueSet { queue, is_paused, concurrency: self.queue(ix).resized });
            self.apply_queue_set(ix, is_paused, self.queue(ix).resized);
            self.feel_load(ix, 0);
        }
        self.settle();
        found.map(|_| ())
    }

    /// Changes the slots of a queue that no labels are asked for. It stays so over restarts.
    pub fn handle_concurrency(&mut self, now_ms: i64, queue: &str, concurrency: u32) -> Result<(), Refusal> {
        self.begin(now_ms);
        let found = self.find_queue(queue).and_then(|ix| {
            let scales = self.queue(ix).scaling.is_some();
            if scales { Err(Refusal::Invalid(SCALES_ITSELF)) } else { Ok(ix) }
        });
        if let Ok(ix) = found {
            let is_paused = self.queue(ix).is_paused;
            self.record(&TaskRecord::QueueSet { queue, is_paused, concurrency: Some(concurrency) });
            self.apply_queue_set(ix, is_paused, Some(concurrency));
        }
        self.settle();
        found.map(|_| ())
    }

    /// Changes the bounds between which a queue follows its load, and its slots if they are outside of them. It stays so
    /// over restarts.
    pub fn handle_bounds(&mut self, now_ms: i64, queue: &str, min: u32, max: u32) -> Result<(), Refusal> {
        self.begin(now_ms);
        let found = self.find_queue(queue).and_then(|ix| {
            let scaling = self.queue(ix).scaling.as_ref().ok_or(Refusal::Invalid(HAS_NO_BOUNDS))?;
            scaling.complaint_about((min, max)).map_or(Ok(ix), |complaint| Err(Refusal::Invalid(complaint)))
        });
        if let Ok(ix) = found {
            self.record(&TaskRecord::QueueBounds { queue, min, max });
            self.apply_queue_bounds(ix, (min, max));
            self.heed_bounds(ix);
        }
        self.settle();
        found.map(|_| ())
    }

    pub(super) fn apply_queue_set(&mut self, ix: QueueIx, is_paused: bool, concurrency: Option<u32>) {
        self.queue_mut(ix).is_paused = is_paused;
        self.queue_mut(ix).resized = concurrency;
        if let Some(concurrency) = concurrency.filter(|_| self.queue(ix).is_defined && self.queue(ix).scaling.is_none())
        {
            self.set_workers(ix, &[], concurrency);
        }
        self.suspend_if_idle(ix);
        self.mark_dirty(ix);
    }

    /// Workers with exactly these labels, which must be sorted, have so many slots now. Running attempts go on.
    pub fn handle_workers(
        &mut self,
        now_ms: i64,
        queue: &str,
        labels: &[(Box<str>, Box<str>)],
        capacity: u32,
    ) -> Result<(), Refusal> {
        debug_assert!(labels.is_sorted(), "labels are compared in one order");
        self.begin(now_ms);
        let found = self.find_queue(queue);
        if let Ok(ix) = found {
            self.set_workers(ix, labels, capacity);
        }
        self.settle();
        found.map(|_| ())
    }

    pub(super) fn set_workers(&mut self, ix: QueueIx, labels: &[(Box<str>, Box<str>)], capacity: u32) {
        self.measure_capacity(ix);
        self.queue_mut(ix).workers.set(labels, capacity);
        self.suspend_if_idle(ix);
        let group = self.queue(ix).workers.groups.iter().position(|group| *group.labels == *labels);
        self.heed_labels(ix, group.expect("the group was just set"));
        self.mark_dirty(ix);
    }

    /// Says that nobody carries the labels that a task needs, when that is so.
    pub(super) fn warn_of_labels(&mut self, ix: TaskIx) {
        let task = &self.tasks[ix];
        let queue = self.queue(task.queue);
        if !self.anybody_for(ix) && task.state == State::Ready(Place::Labels) {
            let warning = Warning::NoWorkerFor { task: task.number, queue: queue.name.clone() };
            self.warn(warning);
        }
    }

    /// Defines a limit, or resizes it while it is in use. It stays so over restarts.
    pub fn handle_limit(&mut self, now_ms: i64, name: &str, spec: LimitSpec) -> Result<(), Refusal> {
        self.begin(now_ms);
        let complaint = complaint_about(spec);
        if complaint.is_none() {
            self.record(&TaskRecord::LimitSet { name, spec });
            self.apply_limit_set(name, spec);
        }
        self.settle();
        complaint.map_or(Ok(()), |complaint| Err(Refusal::Invalid(complaint)))
    }
}
