//! Taking records back after a restart, and going on from there.

use super::config::QueueConfig;
use super::engine::Engine;
use super::limits::Limits;
use super::output::Warning;
use super::task::{QueueIx, State, TaskIx};
use crate::record::{AttemptEnd, DecodeError, TaskNo, TaskRecord};
use std::collections::BTreeSet;
use std::fmt;

/// Why a record cannot be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreError {
    /// Its bytes are no record.
    Decode(DecodeError),
    /// It belongs to a task that no earlier record submitted, or that was forgotten.
    UnknownTask(TaskNo),
    /// It submits a task whose number does not follow those before.
    Number(TaskNo),
    /// The task is over, or does not run, or does: the record does not fit what came before.
    WrongState(TaskNo),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestoreError::Decode(error) => error.fmt(formatter),
            RestoreError::UnknownTask(task) => write!(formatter, "no record submits task {task}"),
            RestoreError::Number(task) => write!(formatter, "it submits task {task} out of order"),
            RestoreError::WrongState(task) => write!(formatter, "it does not fit the state of task {task}"),
        }
    }
}

impl std::error::Error for RestoreError {}

impl Engine {
    /// Takes the next record of the log back, in order, before [`Engine::recover`].
    pub fn restore(&mut self, bytes: &[u8]) -> Result<(), RestoreError> {
        self.is_restoring = true;
        match TaskRecord::decode(bytes).map_err(RestoreError::Decode)? {
            TaskRecord::Submitted { task, time_ms, spec } => {
                self.take_back(task, time_ms)?;
                let queue = self.queue_or_new(spec.queue);
                self.apply_submitted(queue, task, time_ms, &spec);
            }
            TaskRecord::Batch { first, time_ms, specs } => {
                self.take_back(first, time_ms)?;
                self.apply_batch(first, time_ms, &specs);
            }
            TaskRecord::Started { task, time_ms } => {
                let ix = self.in_state(task, time_ms, |state| !is_over(state) && !is_running(state))?;
                self.apply_started(ix, time_ms);
            }
            TaskRecord::Retrying { task, time_ms, retry_ms, end, is_free, failure } => {
                let ix = self.in_state(task, time_ms, is_running)?;
                self.apply_retrying(ix, time_ms, retry_ms, end, is_free, failure);
            }
            TaskRecord::Ended { task, time_ms, outcome, payload } => {
                let ix = self.in_state(task, time_ms, |state| !is_over(state))?;
                self.apply_ended(ix, time_ms, outcome, payload);
            }
            TaskRecord::Changed { task, time_ms, change } => {
                let ix = self.in_state(task, time_ms, |state| !is_over(state))?;
                self.apply_changed(ix, &change);
            }
            TaskRecord::Revived { task, time_ms } => {
                let ix = self.in_state(task, time_ms, is_over)?;
                self.apply_revived(ix, time_ms);
            }
            TaskRecord::QueueSet { queue, is_paused, concurrency } => {
                let ix = self.queue_or_new(queue);
                self.apply_queue_set(ix, is_paused, concurrency);
            }
            TaskRecord::QueueBounds { queue, min, max } => {
                let ix = self.queue_or_new(queue);
                self.apply_queue_bounds(ix, (min, max));
            }
            TaskRecord::LimitSet { name, spec } => self.apply_limit_set(name, spec),
            TaskRecord::SchedulesSet { time_ms, set, removed } => {
                self.now_ms = self.now_ms.max(time_ms);
                self.schedules.apply_set(time_ms, &set, &removed);
            }
            TaskRecord::ScheduleMoved { name, past_ms } => self.schedules.apply_moved(name, past_ms),
            TaskRecord::SchedulePaused { name, time_ms, is_paused } => {
                self.now_ms = self.now_ms.max(time_ms);
                self.schedules.apply_paused(name, is_paused);
            }
            TaskRecord::Ordered { task, time_ms, order, spec } => {
                self.take_back(task, time_ms)?;
                let queue = self.queue_or_new(spec.queue);
                let ix = self.apply_submitted(queue, task, time_ms, &spec);
                self.apply_ordered(ix, &order);
            }
            TaskRecord::OrderWaits { time_ms, order, dedupe, spec } => {
                self.now_ms = self.now_ms.max(time_ms);
                self.apply_order_waits(&order, dedupe, &spec);
            }
            TaskRecord::OrderJoined { task, time_ms, order, is_changed } => {
                self.now_ms = self.now_ms.max(time_ms);
                self.apply_joined(&order, task, is_changed);
            }
            TaskRecord::OrderRefused { order, time_ms, why } => {
                self.now_ms = self.now_ms.max(time_ms);
                self.apply_order_refused(&order, why);
            }
            TaskRecord::MessageTaken { origin } => self.apply_taken(origin),
            TaskRecord::RunOver { task, time_ms, outcome, origin } => {
                let ix = self.in_state(task, time_ms, |state| !is_over(state))?;
                self.apply_run_over(ix, time_ms, outcome, origin);
            }
            TaskRecord::RunMade { task, time_ms, caller, origin } => {
                self.now_ms = self.now_ms.max(time_ms);
                self.apply_run_made(task, time_ms, caller, origin);
            }
            TaskRecord::AwaitedRun { task, time_ms, edge, status, payload, origin } => {
                self.now_ms = self.now_ms.max(time_ms);
                self.apply_awaited_run(task, time_ms, edge, status, payload, origin);
            }
            TaskRecord::RunAsked { task, time_ms } => {
                let ix = self.in_state(task, time_ms, is_running)?;
                self.apply_run_asked(ix);
            }
        }
        Ok(())
    }

    /// Goes on after the last record. `was_clean`: nothing ran when the log ended, or what ran was given up in order.
    ///
    /// Attempts that ran go back: at no cost after a clean end; after a crash at no cost for the first losses of a task,
    /// so that the crash of a neighbour costs nothing, and as attempts after that, so that a task that kills its process
    /// does not do so for ever.
    pub fn recover(&mut self, now_ms: i64, was_clean: bool) {
        self.now_ms = self.now_ms.max(now_ms);
        self.is_restoring = false;
        self.derive();
        // What steps took is not in these records, and what a crash cut off is in none.
        self.limits.empty_rates(self.now_ms);
        self.warn_of_what_is_gone();
        self.warn_of_broken_schedules();
        self.keep_overlaps();
        self.schedules.mark_all();
        self.waiting.has_room = true;
        let running: Vec<TaskIx> =
            self.tasks.iter_after(TaskNo(0)).filter(|(_, task)| task.is_running()).map(|(ix, _)| ix).collect();
        for ix in running {
            if self.tasks[ix].run().is_some() {
                self.hold_again(ix);
            } else if was_clean {
                self.retry(ix, AttemptEnd::Drained, self.now_ms, true, b"");
            } else {
                self.lost(ix);
            }
        }
        self.mark_all_dirty();
        self.ask_for_first_slots();
        (0..self.queues.len()).for_each(|at| self.feel_load(QueueIx(at as u16), 0));
        self.begin(now_ms);
        self.settle();
    }

    fn take_back(&mut self, task: TaskNo, time_ms: i64) -> Result<(), RestoreError> {
        if task.0 < self.next_number {
            return Err(RestoreError::Number(task));
        }
        self.now_ms = self.now_ms.max(time_ms);
        Ok(())
    }

    fn in_state(&mut self, task: TaskNo, time_ms: i64, fits: impl Fn(&State) -> bool) -> Result<TaskIx, RestoreError> {
        let ix = self.tasks.find(task).ok_or(RestoreError::UnknownTask(task))?;
        if !fits(&self.tasks[ix].state) {
            return Err(RestoreError::WrongState(task));
        }
        self.now_ms = self.now_ms.max(time_ms);
        self.catch_up(ix);
        Ok(ix)
    }

    /// A queue of this name. One that nobody defined runs nothing, and loses nothing.
    pub(super) fn queue_or_new(&mut self, name: &str) -> QueueIx {
        match self.queue_names.get(name) {
            Some(ix) => *ix,
            None => self.add_queue(name, QueueConfig::default(), false),
        }
    }

    fn warn_of_what_is_gone(&mut self) {
        let queues = self.queues.iter().filter(|queue| !queue.is_defined && queue.pending_total() > 0);
        let mut warnings: Vec<Warning> = queues.map(|queue| Warning::QueueGone { queue: queue.name.clone() }).collect();
        let live = self.tasks.iter_after(TaskNo(0)).filter(|(_, task)| !task.is_ended());
        let named = live.filter_map(|(_, task)| task.more.as_ref()).flat_map(|more| &more.limits).map(|of| &of.0);
        let gone: BTreeSet<&Box<str>> = named.filter(|name| !is_defined(&self.limits, name)).collect();
        warnings.extend(gone.into_iter().map(|limit| Warning::LimitGone { limit: limit.clone() }));
        warnings.into_iter().for_each(|warning| self.warn(warning));
    }
}

fn is_defined(limits: &Limits, name: &str) -> bool {
    limits.is_defined(name)
}

fn is_over(state: &State) -> bool {
    matches!(state, State::Ended { .. })
}

fn is_running(state: &State) -> bool {
    matches!(state, State::Running { .. })
}
