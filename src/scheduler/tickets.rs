//! Tasks that stand for runs of workflows: they wait like any other, and when their turn has come the run is let in. From
//! then on they hold their slot and their limits until the run says that it is over; no attempt of theirs is anybody's to
//! run, to lose or to cut.
//!
//! The run's shard is the authority. It does not know what a run does.

use super::config::OnFull;
use super::engine::Engine;
use super::members::MemberNo;
use super::orders::{OrderAnswer, Standing};
use super::output::Refusal;
use super::task::{State, Task, TaskIx};
use super::timers::TimerNo;
use super::views::Reason;
use crate::record::{Caller, Order, Origin, Outcome, TaskRecord, TaskRole, TaskSpec};

/// Has the slots of tasks that stand for runs: no thread has this number.
pub(super) const NOBODY: MemberNo = MemberNo(u8::MAX);

impl Engine {
    /// Why a task that stands for a run would be refused if it came now. One that has to wait for room is not.
    pub fn check_enqueue(&mut self, now_ms: i64, spec: &TaskSpec<'_>) -> Result<(), Refusal> {
        self.begin(now_ms);
        let result = self.find_fault(spec);
        self.settle();
        result
    }

    fn find_fault(&self, spec: &TaskSpec<'_>) -> Result<(), Refusal> {
        if self.is_draining {
            return Err(Refusal::Closed);
        }
        let queue = self.find_queue(spec.queue)?;
        self.check(queue, spec)?;
        self.check_edges(&spec.after, self.queue(queue).config.unknown_key)?;
        self.check_cycle(spec.key, &spec.after, spec.order_key)?;
        self.check_reservation(queue, spec)?;
        let demand = [(queue, spec.class, 1)];
        match self.broken_bound(&demand, None) {
            Some(broken) if self.queue(queue).config.on_full == OnFull::Reject || self.never_fits(&demand) => {
                Err(broken)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The run that a task stands for is over. Of one whose task is over, too, it is nothing.
    pub fn handle_run_over(&mut self, now_ms: i64, caller: Caller, outcome: Outcome, origin: Origin) {
        self.begin(now_ms);
        match self.orders.standing(caller) {
            Some(Standing::Is { task, .. }) => match self.tasks.find(task).filter(|ix| !self.tasks[*ix].is_ended()) {
                Some(ix) => self.run_over(ix, outcome, origin),
                None => self.take_message(origin),
            },
            Some(Standing::Waits(_)) => {
                let order = Order { caller, origin, role: TaskRole::Run };
                self.refuse_order(&order, "CANCELLED\nit ended before there was room for it\n\n");
            }
            None => self.take_message(origin),
        }
        self.settle();
    }

    fn run_over(&mut self, ix: TaskIx, outcome: Outcome, origin: Origin) {
        self.give_back(ix);
        let (task, time_ms) = (self.tasks[ix].number, self.now_ms);
        self.record(&TaskRecord::RunOver { task, time_ms, outcome, origin });
        self.measure_end(ix, outcome);
        self.apply_run_over(ix, time_ms, outcome, origin);
    }

    pub(super) fn apply_run_over(&mut self, ix: TaskIx, time_ms: i64, outcome: Outcome, origin: Origin) {
        self.apply_taken(origin);
        // It knows: nobody is to be told.
        self.tasks[ix].more_mut().watchers.clear();
        if let Some(caller) = self.tasks[ix].run() {
            self.orders.close(caller);
        }
        self.apply_ended(ix, time_ms, outcome, b"");
    }

    /// A task exists that stands for a run.
    pub(super) fn apply_ticket(&mut self, ix: TaskIx, caller: Caller) {
        self.tasks[ix].more_mut().run = Some(caller);
        self.watch_for(ix, caller, true);
        let task = self.tasks[ix].number;
        self.answer(caller, OrderAnswer::Exists(super::output::Answer::New(task)));
    }

    /// Its turn has come.
    pub(super) fn let_run_in(&mut self, ix: TaskIx) {
        if let Some(caller) = self.tasks[ix].run() {
            self.answer(caller, OrderAnswer::MayStart);
        }
    }

    /// After an open: a run that was let in has its slot and its limits, whatever else has been changed meanwhile.
    pub(super) fn hold_again(&mut self, ix: TaskIx) {
        let State::Running { started_ms, .. } = self.tasks[ix].state else { return };
        let (queue, claim) = (self.tasks[ix].queue, self.tasks[ix].claim());
        let group = self.queue(queue).workers.choose(&[]).unwrap_or(0);
        self.queue_mut(queue).workers.begin(group);
        let (attempt, _) = self.attempts.begin(ix, group, NOBODY, TimerNo::NONE, TimerNo::NONE);
        self.tasks[ix].state = State::Running { started_ms, attempt: Some(attempt) };
        if let Some(claim) = claim {
            self.limits.hold(claim);
        }
    }

    /// Why the task that stands for a run does not run, and its queue. `None`: it is not here, or not any more.
    #[must_use]
    pub fn explain_run(&self, caller: Caller) -> Option<(Reason, &str)> {
        match self.orders.standing(caller)? {
            Standing::Is { task, .. } => {
                let queue = self.task(task)?.queue;
                Some((self.explain(task)?, queue))
            }
            Standing::Waits(submitter) => {
                let queue = self.queue(self.waiting.queue_of(submitter)?);
                let (busy, capacity) = (queue.workers.busy, queue.workers.capacity);
                Some((Reason::Behind { tasks: queue.pending_total() as usize, busy, capacity }, &queue.name))
            }
        }
    }
}

impl Task {
    /// The run that it stands for.
    pub(super) fn run(&self) -> Option<Caller> {
        self.more.as_ref()?.run
    }
}
