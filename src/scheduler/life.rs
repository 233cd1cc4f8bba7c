//! What each record does to the state, live and after a restart alike.
//!
//! Blocked → scheduled → ready are not recorded: they follow from the description, from the ends of other tasks and from
//! the time. A record can therefore find its task further back than it was when it was written, and moves it on.

use super::engine::Engine;
use super::launches::OwnLaunch;
use super::limits::{Group, Want};
use super::order::Latest;
use super::task::{AttemptNote, Booked, HISTORY_MAX, Mark, More, OwnOccurrence, Place, QueueIx, State, Task, TaskIx};
use super::timers::{Timer, TimerNo};
use crate::record::{AttemptEnd, Outcome, TaskNo, TaskSpec};

impl Engine {
    /// A task exists.
    pub(super) fn apply_submitted(
        &mut self,
        queue: QueueIx,
        number: TaskNo,
        time_ms: i64,
        spec: &TaskSpec<'_>,
    ) -> TaskIx {
        let kind = self.queue_mut(queue).kind(spec.kind);
        let ix = self.tasks.insert(Task {
            number,
            queue,
            kind,
            class: spec.class,
            mark: Mark::default(),
            state: State::Blocked,
            submitted_ms: time_ms,
            eligible_ms: None,
            attempts: 0,
            free_attempts: 0,
            losses: 0,
            revivals: 0,
            unmet: 0,
            wake: TimerNo::NONE,
            payload: spec.payload.into(),
            more: more_of(spec),
        });
        self.touch(ix);
        self.next_number = self.next_number.max(number.0 + 1);
        self.totals.submitted += 1;
        self.count_pending(queue, spec.class, true);
        self.tell(ix, None);
        if self.tasks[ix].more.is_some() {
            self.take_up_options(ix, spec);
        }
        if self.tasks[ix].unmet == 0 {
            self.gate(ix, time_ms);
        }
        ix
    }

    fn take_up_options(&mut self, ix: TaskIx, spec: &TaskSpec<'_>) {
        // Before it takes its key: an edge to that key means whoever had it.
        for edge in &spec.after {
            self.join(ix, edge);
        }
        if let Some(key) = spec.key {
            self.give_key(key.into(), ix);
            self.adopt(ix, key);
        }
        self.ask_for_run(ix, spec);
        self.occurrence_lives(ix, true);
        self.join_order_line(ix);
        self.make_claim(ix);
        if let Some(reserve) = spec.reserve {
            let at_ms = spec.not_before_ms.unwrap_or(self.tasks[ix].submitted_ms);
            self.book(ix, at_ms, i64::from(reserve.tolerance_ms), reserve.on_miss);
        }
        self.await_expiry(ix);
    }

    /// Names what each attempt takes of limits. Of tasks that are taken back, see `derive`.
    pub(super) fn make_claim(&mut self, ix: TaskIx) {
        if self.is_restoring {
            return;
        }
        let task = &self.tasks[ix];
        let Some(more) = task.more.as_ref().filter(|more| !more.limits.is_empty()) else { return };
        let wants: Vec<Want<'_>> =
            more.limits.iter().map(|(name, key, amount)| Want { name, key: key.as_deref(), amount: *amount }).collect();
        let rank = self.config.order.rank(task.class, task.eligible_ms.unwrap_or(task.submitted_ms));
        let group = Group(u32::from(task.queue.0));
        let claim = self.limits.claim(u64::from(ix.0), group, rank, &wants, self.now_ms);
        self.tasks[ix].more_mut().claim = Some(claim);
    }

    /// Sets the time at which a task ends if it has not started.
    pub(super) fn await_expiry(&mut self, ix: TaskIx) {
        if let Some(expires_ms) = self.tasks[ix].more.as_ref().and_then(|more| more.expires_ms) {
            let timer = self.timers.set(expires_ms, Timer::Expire(ix));
            self.tasks[ix].more_mut().expire = timer;
        }
    }

    fn book(&mut self, ix: TaskIx, at_ms: i64, tolerance_ms: i64, on_miss: crate::record::OnMiss) {
        let end_ms = at_ms.saturating_add(self.estimate_ms(&self.tasks[ix])).saturating_add(tolerance_ms);
        let (hold, miss) = (TimerNo::NONE, TimerNo::NONE);
        let booked = Booked { at_ms, tolerance_ms, on_miss, end_ms, hold, miss };
        let task = &mut self.tasks[ix];
        task.more_mut().reserve = Some(booked);
        let (queue, number) = (task.queue, task.number);
        self.queue_mut(queue).reservations.book(number, &booked);
        self.await_booked(ix);
    }

    /// Sets the times at which a slot is kept for a reserved start and at which it is missed.
    pub(super) fn await_booked(&mut self, ix: TaskIx) {
        self.feel_load(self.tasks[ix].queue, 0);
        let Some(Booked { at_ms, tolerance_ms, .. }) = self.tasks[ix].reserve().copied() else { return };
        let hold_from_ms = at_ms.saturating_sub(i64::from(self.queue(self.tasks[ix].queue).config.hold_ms_max));
        let hold = self.timers.set(hold_from_ms, Timer::Hold(ix));
        let miss = self.timers.set(at_ms.saturating_add(tolerance_ms).saturating_add(1), Timer::Miss(ix));
        if let Some(booked) = self.tasks[ix].more_mut().reserve.as_mut() {
            (booked.hold, booked.miss) = (hold, miss);
        }
    }

    /// Nothing that it waited for is missing: it waits for its time, or is ready.
    pub(super) fn gate(&mut self, ix: TaskIx, since_ms: i64) {
        let task = &self.tasks[ix];
        debug_assert!(task.unmet == 0 && task.state == State::Blocked, "task {} is let through once", task.number);
        match task.more.as_ref().and_then(|more| more.not_before_ms).filter(|time_ms| *time_ms > self.now_ms) {
            Some(time_ms) => {
                let timer = self.timers.set(time_ms, Timer::Wake(ix));
                let task = &mut self.tasks[ix];
                task.state = State::Scheduled;
                task.wake = timer;
                self.tell(ix, None);
            }
            None => self.make_ready(ix, since_ms),
        }
    }

    /// A delay or the wait before an attempt is over.
    pub(super) fn woke(&mut self, ix: TaskIx, due_ms: i64) {
        let task = &mut self.tasks[ix];
        task.wake = TimerNo::NONE;
        if task.state == State::Retrying {
            let (queue, class) = (task.queue, task.class);
            self.queue_mut(queue).retrying[usize::from(class.code())] -= 1;
        }
        self.make_ready(ix, due_ms);
    }

    /// It could run now.
    pub(super) fn make_ready(&mut self, ix: TaskIx, since_ms: i64) {
        let is_first = self.tasks[ix].eligible_ms.is_none();
        if is_first {
            self.touch(ix);
            let task = &mut self.tasks[ix];
            task.eligible_ms = Some(since_ms);
            if let Some(claim) = task.claim() {
                let rank = self.config.order.rank(task.class, since_ms);
                self.limits.set_rank(claim, rank);
            }
        }
        self.enter_line(ix);
        let is_arrival = is_first && self.tasks[ix].reserve().is_none();
        self.feel_load(self.tasks[ix].queue, u64::from(is_arrival));
        self.tell(ix, None);
    }

    /// Puts a task into the line where it competes for a slot.
    pub(super) fn enter_line(&mut self, ix: TaskIx) {
        let place = self.place_for(ix);
        let task = &mut self.tasks[ix];
        task.state = State::Ready(place);
        let queue = task.queue;
        self.queues[usize::from(queue.0)].enter(ix, &self.tasks[ix]);
        self.mark_dirty(queue);
    }

    fn place_for(&mut self, ix: TaskIx) -> Place {
        let task = &self.tasks[ix];
        let Some(more) = &task.more else {
            return self.fair_place(ix, None);
        };
        if more.reserve.is_some() {
            return Place::Due;
        }
        if let Some(deadline_ms) = more.deadline_ms {
            let estimate_ms = self.estimate_ms(task);
            let start_ms = deadline_ms.saturating_sub(estimate_ms);
            // Nobody was more urgent than late before it could run at all: else a stream of tasks that are overdue when
            // they arrive would keep those of an ordinary deadline waiting for ever.
            let order_ms = start_ms.max(task.eligible_ms.unwrap_or(self.now_ms));
            return Place::Deadline { order_ms, latest: Latest { start_ms, estimate_ms } };
        }
        let kept = more.fair_tag;
        self.fair_place(ix, kept)
    }

    fn fair_place(&mut self, ix: TaskIx, kept: Option<u64>) -> Place {
        let task = &self.tasks[ix];
        let queue = &mut self.queues[usize::from(task.queue.0)];
        if queue.config.fair.is_none() {
            return Place::Plain;
        }
        Place::Fair { tag: kept.unwrap_or_else(|| queue.fair_tag(task.class, task.tenant())) }
    }

    /// Takes a ready task out of its line, leaving the state for the caller to set.
    pub(super) fn leave_line(&mut self, ix: TaskIx) {
        let task = &self.tasks[ix];
        self.queues[usize::from(task.queue.0)].leave(ix, task);
    }

    /// Takes a task out of wherever it waits.
    pub(super) fn leave_place(&mut self, ix: TaskIx) {
        match self.tasks[ix].state {
            State::Ready(_) => self.leave_line(ix),
            State::Retrying => {
                let task = &self.tasks[ix];
                let (queue, class) = (task.queue, task.class);
                self.queue_mut(queue).retrying[usize::from(class.code())] -= 1;
            }
            State::Blocked | State::Scheduled | State::Running { .. } | State::Ended { .. } => {}
        }
        self.timers.clear(&mut self.tasks[ix].wake);
    }

    /// An attempt began.
    pub(super) fn apply_started(&mut self, ix: TaskIx, time_ms: i64) {
        self.touch(ix);
        self.leave_place(ix);
        let task = &mut self.tasks[ix];
        task.state = State::Running { started_ms: time_ms, attempt: None };
        task.attempts += 1;
        task.eligible_ms = task.eligible_ms.or(Some(time_ms));
        let (queue, class) = (task.queue, task.class);
        if let Some(more) = &mut task.more {
            more.fair_tag = None;
            self.timers.clear(&mut more.expire);
        }
        self.count_pending(queue, class, false);
        self.totals.dispatched += 1;
        self.begin_booked(ix);
        self.tell(ix, None);
        self.let_run_in(ix);
    }

    /// An attempt ended and another one follows.
    pub(super) fn apply_retrying(
        &mut self,
        ix: TaskIx,
        time_ms: i64,
        retry_ms: i64,
        end: AttemptEnd,
        is_free: bool,
        failure: &[u8],
    ) {
        self.touch(ix);
        let timer = self.timers.set(retry_ms, Timer::Wake(ix));
        let task = &mut self.tasks[ix];
        let State::Running { started_ms, .. } = task.state else { return };
        task.free_attempts += u32::from(is_free);
        task.losses += u32::from(end == AttemptEnd::Lost);
        task.state = State::Retrying;
        task.wake = timer;
        let note = AttemptNote { attempt: task.attempts, started_ms, ended_ms: time_ms, end, failure: failure.into() };
        let more = task.more_mut();
        more.retry_ms = Some(retry_ms);
        remember(more, note);
        let (queue, class) = (task.queue, task.class);
        self.queue_mut(queue).retrying[usize::from(class.code())] += 1;
        self.count_pending(queue, class, true);
        self.totals.retried += 1;
        self.tell(ix, Some(end));
    }

    /// It is over.
    pub(super) fn apply_ended(&mut self, ix: TaskIx, time_ms: i64, outcome: Outcome, payload: &[u8]) {
        self.touch(ix);
        self.leave_place(ix);
        let task = &mut self.tasks[ix];
        let (queue, class) = (task.queue, task.class);
        self.ended_places += 1;
        let (was, place) = (task.state, self.ended_places);
        task.state = State::Ended { outcome, time_ms, place };
        if outcome == Outcome::Completed {
            task.payload = payload.into();
        } else if !payload.is_empty() {
            task.more_mut().failure = payload.into();
        }
        match was {
            State::Running { started_ms, .. } => self.learn(ix, outcome, time_ms.saturating_sub(started_ms)),
            _ => self.count_pending(queue, class, false),
        }
        self.totals.ended[usize::from(outcome.code()) - 1] += 1;
        if self.tasks[ix].more.is_some() {
            self.let_options_go(ix, outcome);
        }
        self.ended.insert(place, ix);
        self.tell(ix, None);
        self.forget_old(time_ms);
    }

    fn let_options_go(&mut self, ix: TaskIx, outcome: Outcome) {
        self.unbook(ix);
        self.leave_order_line(ix);
        self.leave_awaited(ix);
        if let Some(more) = self.tasks[ix].more.as_mut() {
            self.timers.clear(&mut more.expire);
            if let Some(claim) = more.claim.take() {
                self.limits.drop_claim(claim, self.now_ms);
            }
        }
        self.answer_watchers(ix);
        self.release_dependents(ix, outcome);
        self.occurrence_over(ix, outcome);
    }

    fn learn(&mut self, ix: TaskIx, outcome: Outcome, run_ms: i64) {
        if outcome == Outcome::Completed {
            let task = &self.tasks[ix];
            let queue = &mut self.queues[usize::from(task.queue.0)];
            queue.kinds[usize::from(task.kind.0)].learned.learn(run_ms);
            queue.learned.learn(run_ms);
        }
    }

    /// Expected run time: what the task says, what was learned about its kind, about its queue, or the queue's default.
    pub(super) fn estimate_ms(&self, task: &Task) -> i64 {
        let queue = self.queue(task.queue);
        let own = task.more.as_ref().and_then(|more| more.estimate_ms).map(i64::from);
        own.or_else(|| queue.kinds[usize::from(task.kind.0)].learned.estimate_ms())
            .or_else(|| queue.learned.estimate_ms())
            .unwrap_or_else(|| i64::from(queue.config.default_estimate_ms))
    }

    /// Forgets ended tasks that are too many or too old.
    fn forget_old(&mut self, time_ms: i64) {
        let oldest_ms = time_ms.saturating_sub(self.config.retained_ms);
        while let Some((place, ix)) = self.ended.first_key_value().map(|(place, ix)| (*place, *ix)) {
            let is_too_old = matches!(self.tasks[ix].state, State::Ended { time_ms, .. } if time_ms < oldest_ms);
            if self.ended.len() <= self.config.retained_max && !is_too_old {
                break;
            }
            self.ended.remove(&place);
            self.touch(ix);
            let task = self.tasks.remove(ix);
            if let Some(key) = task.key().filter(|key| self.keys.get(*key) == Some(&ix)) {
                self.keys.remove(key);
            }
        }
    }
}

/// What most tasks do not have, if this one has any of it.
pub(super) fn more_of(spec: &TaskSpec<'_>) -> Option<Box<More>> {
    let has_texts = spec.key.is_some() || spec.tenant.is_some() || spec.order_key.is_some();
    let has_times = spec.not_before_ms.is_some() || spec.deadline_ms.is_some() || spec.expires_ms.is_some();
    let has_lengths = spec.estimate_ms.is_some() || spec.timeout_ms.is_some() || spec.retry.is_some();
    let has_lists =
        !(spec.after.is_empty() && spec.limits.is_empty() && spec.labels.is_empty() && spec.tags.is_empty());
    if !(has_texts
        || has_times
        || has_lengths
        || has_lists
        || spec.reserve.is_some()
        || spec.occurrence.is_some()
        || spec.launch.is_some())
    {
        return None;
    }
    let mut labels: Vec<(Box<str>, Box<str>)> = pairs(&spec.labels);
    labels.sort_unstable();
    labels.dedup();
    Some(Box::new(More {
        key: spec.key.map(Into::into),
        tenant: spec.tenant.map(Into::into),
        order_key: spec.order_key.map(Into::into),
        not_before_ms: spec.not_before_ms,
        deadline_ms: spec.deadline_ms,
        expires_ms: spec.expires_ms,
        estimate_ms: spec.estimate_ms,
        timeout_ms: spec.timeout_ms,
        retry: spec.retry,
        limits: spec.limits.iter().map(|of| (of.name.into(), of.key.map(Into::into), of.amount)).collect(),
        labels: labels.into_boxed_slice(),
        tags: pairs(&spec.tags).into_boxed_slice(),
        occurrence: spec.occurrence.map(|of| OwnOccurrence {
            schedule: of.schedule.into(),
            at_ms: of.at_ms,
            is_regular: of.is_regular,
        }),
        launch: spec.launch.map(OwnLaunch::new),
        ..More::default()
    }))
}

fn pairs(of: &[(&str, &str)]) -> Vec<(Box<str>, Box<str>)> {
    of.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

fn remember(more: &mut More, note: AttemptNote) {
    if more.history.len() == HISTORY_MAX {
        more.history.remove(0);
    }
    more.history.push(note);
}
