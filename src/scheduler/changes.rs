//! What a changed class, time or input does to a task, and what being revived does.

use super::engine::Engine;
use super::run_edges::RunEnd;
use super::task::{Place, State, TaskIx};
use crate::record::{Change, Class};

impl Engine {
    /// Somebody changed a task that has not started.
    pub(super) fn apply_changed(&mut self, ix: TaskIx, change: &Change<'_>) {
        self.touch(ix);
        match *change {
            Change::Class(class) => self.apply_class(ix, class),
            Change::NotBefore(time_ms) => self.apply_time(ix, Some(time_ms)),
            Change::Replaced { payload, not_before_ms } => {
                self.tasks[ix].payload = payload.into();
                self.apply_time(ix, not_before_ms);
            }
        }
    }

    fn apply_class(&mut self, ix: TaskIx, class: Class) {
        let state = self.tasks[ix].state;
        if let State::Ready(_) = state {
            self.leave_line(ix);
        }
        let task = &mut self.tasks[ix];
        let from = std::mem::replace(&mut task.class, class);
        task.forget_share();
        let (queue, eligible_ms, claim) = (task.queue, task.eligible_ms.unwrap_or(task.submitted_ms), task.claim());
        if task.is_pending() {
            self.count_pending(queue, from, false);
            self.count_pending(queue, class, true);
        }
        if let Some(claim) = claim {
            self.limits.set_rank(claim, self.config.order.rank(class, eligible_ms));
        }
        match state {
            State::Ready(Place::Plain | Place::Deadline { .. } | Place::Fair { .. }) => self.enter_line(ix),
            State::Ready(Place::Due | Place::Limit | Place::Labels) => {
                self.queues[usize::from(queue.0)].enter(ix, &self.tasks[ix]);
            }
            State::Retrying => {
                self.queue_mut(queue).retrying[usize::from(from.code())] -= 1;
                self.queue_mut(queue).retrying[usize::from(class.code())] += 1;
            }
            State::Blocked | State::Scheduled | State::Running { .. } | State::Ended { .. } => {}
        }
    }

    fn apply_time(&mut self, ix: TaskIx, not_before_ms: Option<i64>) {
        if self.tasks[ix].more.is_none() && not_before_ms.is_none() {
            return;
        }
        self.tasks[ix].more_mut().not_before_ms = not_before_ms;
        if let State::Scheduled | State::Ready(_) = self.tasks[ix].state {
            self.leave_place(ix);
            let task = &mut self.tasks[ix];
            task.state = State::Blocked;
            task.forget_share();
            if let Some(claim) = task.claim() {
                self.limits.withdraw(claim, self.now_ms);
            }
            self.gate(ix, self.now_ms);
        }
    }

    /// An ended task gets its attempts back. What it waited for, and when it was to run, is past.
    pub(super) fn apply_revived(&mut self, ix: TaskIx, time_ms: i64) {
        self.touch(ix);
        let task = &mut self.tasks[ix];
        if let State::Ended { place, .. } = task.state {
            self.ended.remove(&place);
        }
        task.state = State::Blocked;
        task.free_attempts = task.attempts;
        task.losses = 0;
        task.revivals += 1;
        task.unmet = 0;
        task.eligible_ms = None;
        task.forget_share();
        let (queue, class) = (task.queue, task.class);
        if let Some(more) = &mut task.more {
            (more.not_before_ms, more.reserve, more.deadline_ms, more.expires_ms) = (None, None, None, None);
            more.failure = Box::default();
            more.edges.clear();
            for edge in more.runs.iter_mut().filter(|edge| edge.is_awaited()) {
                edge.end = RunEnd::Past;
            }
        }
        self.count_pending(queue, class, true);
        if let Some(key) = self.tasks[ix].key().map(Box::<str>::from) {
            self.give_key(key, ix);
        }
        self.occurrence_lives(ix, false);
        self.join_order_line(ix);
        self.make_claim(ix);
        if self.tasks[ix].unmet == 0 {
            self.gate(ix, time_ms);
        }
    }
}
