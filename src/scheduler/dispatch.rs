//! Fills the free slots of a queue: slots to be kept first, then reserved starts that are due, then whoever was passed by
//! for too long, then whoever is worth most. A task that lacks workers or limits steps aside without holding anything.

use super::engine::Engine;
use super::limits::Group;
use super::members::MemberNo;
use super::output::{Output, StepTicket};
use super::task::{Place, QueueIx, State, TaskIx};
use super::timers::{Timer, TimerNo};
use crate::record::{TaskNo, TaskRecord};

/// Owners of claims above this are steps of workflows.
const STEP: u64 = 1 << 63;

impl Engine {
    /// Dispatches until the queue has no free slot or nobody for it.
    pub(super) fn fill_slots(&mut self, queue: QueueIx) {
        loop {
            while let Some(ix) = self.next_of(queue) {
                self.try_start(ix);
            }
            if !self.offer_workers(queue) {
                return;
            }
        }
    }

    /// A worker is free and nobody in the lines wants it: whoever waits for such a one competes again. When it became free
    /// it was kept for others, who may have lacked a limit then, or have ended since. `false`: there is nobody.
    fn offer_workers(&mut self, queue: QueueIx) -> bool {
        let of = self.queue(queue);
        let has_slot = of.workers.free() > of.reservations.held_count();
        if of.label_waits.is_empty() || !has_slot || of.is_paused || self.is_draining {
            return false;
        }
        let first = of.label_waits.values().filter_map(|waiting| waiting.first());
        let fitting: Vec<TaskIx> = first.map(|(_, ix)| *ix).filter(|ix| self.seat(*ix).is_some()).collect();
        for ix in &fitting {
            self.leave_line(*ix);
            self.enter_line(*ix);
        }
        !fitting.is_empty()
    }

    fn next_of(&mut self, queue: QueueIx) -> Option<TaskIx> {
        if self.is_draining {
            return None;
        }
        let of = &mut self.queues[usize::from(queue.0)];
        if of.is_paused {
            return None;
        }
        let mut free = of.workers.free().saturating_sub(of.reservations.held_count());
        while free > 0 && of.reservations.hold_next() {
            free -= 1;
        }
        if let Some(ix) = of.reservations.first_due_held().filter(|_| of.workers.free() > 0) {
            return Some(ix);
        }
        if free == 0 {
            return None;
        }
        let of = self.queue(queue);
        of.relieved(&self.tasks, self.now_ms)
            .or_else(|| of.reservations.first_due())
            .or_else(|| of.best(&self.tasks, &self.config.order, self.now_ms))
    }

    /// Starts a task of a line, or lets it wait for what it lacks.
    fn try_start(&mut self, ix: TaskIx) {
        let task = &self.tasks[ix];
        let claim = task.claim();
        let Some((group, member)) = self.seat(ix) else {
            self.step_aside(ix, Place::Labels);
            return;
        };
        if let Some(claim) = claim
            && !self.limits.take(claim, self.now_ms)
        {
            self.step_aside(ix, Place::Limit);
            return;
        }
        self.start(ix, group, member);
    }

    fn step_aside(&mut self, ix: TaskIx, to: Place) {
        self.leave_line(ix);
        if let State::Ready(Place::Fair { tag }) = self.tasks[ix].state {
            self.tasks[ix].more_mut().fair_tag = Some(tag);
        }
        self.tasks[ix].state = State::Ready(to);
        let (queue, claim) = (self.tasks[ix].queue, self.tasks[ix].claim());
        self.queues[usize::from(queue.0)].enter(ix, &self.tasks[ix]);
        if to == Place::Labels {
            if let Some(claim) = claim {
                self.limits.withdraw(claim, self.now_ms);
            }
            self.warn_of_labels(ix);
        }
    }

    fn start(&mut self, ix: TaskIx, group: usize, member: MemberNo) {
        let (number, queue, class) = (self.tasks[ix].number, self.tasks[ix].queue, self.tasks[ix].class);
        let State::Ready(place) = self.tasks[ix].state else { unreachable!("a task starts from a line") };
        self.record(&TaskRecord::Started { task: number, time_ms: self.now_ms });
        self.measure_start(ix);
        self.apply_started(ix, self.now_ms);
        self.queue_mut(queue).dispatched(class, place);
        self.queue_mut(queue).workers.begin(group);
        self.members.begin(member);
        let stands_for_run = self.tasks[ix].run().is_some();
        let (timeout, lease_end) = if stands_for_run { (TimerNo::NONE, TimerNo::NONE) } else { self.watch(ix) };
        let (attempt, lease) = self.attempts.begin(ix, group, member, timeout, lease_end);
        self.tasks[ix].state = State::Running { started_ms: self.now_ms, attempt: Some(attempt) };
        if stands_for_run {
            return;
        }
        self.outputs.push_back(Output::Dispatch {
            task: number,
            lease,
            attempt: self.tasks[ix].attempts,
            group,
            member,
        });
    }

    /// Sets the limits of an attempt in time.
    fn watch(&mut self, ix: TaskIx) -> (TimerNo, TimerNo) {
        let config = &self.queue(self.tasks[ix].queue).config;
        let own_ms = self.tasks[ix].more.as_ref().and_then(|more| more.timeout_ms);
        let (timeout_ms, lease_ms) = (own_ms.or(config.timeout_ms), config.lease_ms);
        let mut set = |length_ms: Option<u32>, timer| {
            length_ms.map_or(TimerNo::NONE, |ms| self.timers.set(self.now_ms.saturating_add(i64::from(ms)), timer))
        };
        (set(timeout_ms, Timer::Timeout(ix)), set(lease_ms, Timer::Lease(ix)))
    }

    /// Puts tasks that limits woke back into their lines, and tells steps that they have theirs.
    pub(super) fn heed_limits(&mut self) {
        while let Some((owner, claim)) = self.limits.poll_woken() {
            if owner & STEP != 0 {
                if self.limits.take(claim, self.now_ms) {
                    self.outputs.push_back(Output::Granted(StepTicket(owner & !STEP)));
                }
                continue;
            }
            let ix = TaskIx(u32::try_from(owner).expect("the owner of a claim is a task or a step"));
            if self.tasks[ix].state == State::Ready(Place::Limit) {
                self.leave_line(ix);
                self.enter_line(ix);
            }
        }
    }

    /// A slot of a group is free, or there are more of them: whoever waited for such a worker competes again.
    pub(super) fn heed_labels(&mut self, queue: QueueIx, group: usize) {
        let of = self.queue(queue);
        if of.label_waits.is_empty() {
            return;
        }
        let workers = &of.workers.groups[group];
        let free = workers.capacity.saturating_sub(workers.busy) as usize;
        let fitting = of.label_waits.iter().filter(|(labels, _)| workers.carries(labels));
        let woken: Vec<TaskIx> =
            fitting.flat_map(|(_, waiting)| waiting.iter().take(free).map(|(_, ix)| *ix)).collect();
        for ix in woken {
            self.leave_line(ix);
            self.enter_line(ix);
        }
    }

    /// A step of a workflow asks for limits. `false`: it waits, and [`Output::Granted`] follows.
    pub fn handle_step(
        &mut self,
        now_ms: i64,
        ticket: StepTicket,
        wants: &[super::limits::Want<'_>],
    ) -> Result<bool, super::limits::LimitError> {
        self.begin(now_ms);
        let checked = self.limits.check(wants);
        let is_granted = checked.map(|()| {
            let claim = self.limits.claim(ticket.0 | STEP, Group(u32::MAX), self.now_ms, wants, self.now_ms);
            self.attempts.steps.insert(ticket, claim);
            self.limits.take(claim, self.now_ms)
        });
        self.settle();
        is_granted
    }

    /// A step gives back what it had, or does not want it any more. Of an unknown one it is nothing.
    pub fn handle_step_over(&mut self, now_ms: i64, ticket: StepTicket) {
        self.begin(now_ms);
        if let Some(claim) = self.attempts.steps.remove(&ticket) {
            if self.limits.is_held(claim) {
                self.limits.release(claim, self.now_ms);
            }
            self.limits.drop_claim(claim, self.now_ms);
        }
        self.settle();
    }

    /// Number and lease of every attempt that runs.
    #[must_use]
    pub fn running(&self) -> Vec<(TaskNo, super::output::Lease)> {
        self.attempts.iter().map(|(lease, ix)| (self.tasks[ix].number, lease)).collect()
    }
}
