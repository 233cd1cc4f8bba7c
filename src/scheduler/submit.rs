//! Taking tasks in, one by one: key, then description, then reservation, then room. So what is going
//! to be refused makes nobody give way.

use super::config::OnFull;
use super::dedupe::Decision;
use super::engine::Engine;
use super::limits::Want;
use super::output::{Answer, Refusal, Submitted};
use super::task::{QueueIx, TaskIx};
use crate::record::{Dedupe, Order, Outcome, TaskNo, TaskSpec, Writer, encode_submitted};

impl Engine {
    /// Submits a task. What it comes back with is to be held until the records written by then are durable.
    pub fn handle_submit(
        &mut self,
        now_ms: i64,
        spec: &TaskSpec<'_>,
        dedupe: Dedupe,
    ) -> Result<Submitted<Answer>, Refusal> {
        self.begin(now_ms);
        let result = self.submit_or_wait(spec, dedupe);
        self.totals.refused += u64::from(result.is_err());
        self.settle();
        result
    }

    pub(super) fn submit_or_wait(&mut self, spec: &TaskSpec<'_>, dedupe: Dedupe) -> Result<Submitted<Answer>, Refusal> {
        let queue = self.find_queue(spec.queue)?;
        let waits_in_line = self.waiting.is_line(queue, spec.class);
        match self.submit(spec, dedupe, waits_in_line, None)? {
            Some(answer) => Ok(Submitted::Now(answer)),
            None => {
                let demand = vec![(queue, spec.class, 1)];
                Ok(Submitted::Waits(self.waiting.park_one(spec, dedupe, demand)))
            }
        }
    }

    /// `None`: there is no room, and its queue lets submissions wait.
    pub(super) fn submit(
        &mut self,
        spec: &TaskSpec<'_>,
        dedupe: Dedupe,
        waits_in_line: bool,
        order: Option<&Order>,
    ) -> Result<Option<Answer>, Refusal> {
        if self.is_draining {
            return Err(Refusal::Closed);
        }
        let spec = match self.by_key(spec, dedupe)? {
            Decision::Done(answer) => return Ok(Some(answer)),
            Decision::Accept(spec) => spec,
        };
        let queue = self.find_queue(spec.queue)?;
        self.check(queue, &spec)?;
        self.check_edges(&spec.after, self.queue(queue).config.unknown_key)?;
        self.check_cycle(spec.key, &spec.after, spec.order_key)?;
        self.check_reservation(queue, &spec)?;
        if waits_in_line || !self.make_room(queue, &spec)? {
            return Ok(None);
        }
        Ok(Some(Answer::New(self.accept(queue, &spec, order))))
    }

    /// `false`: it has to wait.
    fn make_room(&mut self, queue: QueueIx, spec: &TaskSpec<'_>) -> Result<bool, Refusal> {
        let demand = [(queue, spec.class, 1)];
        let Some(broken) = self.broken_bound(&demand, None) else { return Ok(true) };
        if self.never_fits(&demand) {
            return Err(broken);
        }
        match self.queue(queue).config.on_full {
            OnFull::Wait => return Ok(false),
            OnFull::Reject => return Err(broken),
            OnFull::DropOldest | OnFull::DropLowest => {}
        }
        let victim = self.queue(queue).who_gives_way(spec.class);
        match victim.filter(|ix| self.broken_bound(&demand, Some(*ix)).is_none()) {
            Some(ix) => {
                self.end(ix, Outcome::Shed, b"it gave way to a later task when its queue was full");
                Ok(true)
            }
            None => Err(broken),
        }
    }

    /// Takes a task in that was found good.
    fn accept(&mut self, queue: QueueIx, spec: &TaskSpec<'_>, order: Option<&Order>) -> TaskNo {
        let (number, time_ms) = (TaskNo(self.next_number), self.now_ms);
        match order {
            Some(order) => self.write_ordered(number, time_ms, order, spec),
            None => self.records.write(|bytes| encode_submitted(&mut Writer::new(bytes), number, time_ms, spec)),
        }
        let ix = self.apply_submitted(queue, number, time_ms, spec);
        if let Some(order) = order {
            self.apply_ordered(ix, order);
        }
        self.after_acceptance(ix);
        number
    }

    pub(super) fn after_acceptance(&mut self, ix: TaskIx) {
        if self.is_missed_already(ix) {
            self.missed(ix);
        }
    }

    pub(super) fn find_queue(&self, name: &str) -> Result<QueueIx, Refusal> {
        let found = self.queue_names.get(name).copied().filter(|ix| self.queue(*ix).is_defined);
        found.ok_or_else(|| Refusal::UnknownQueue(name.into()))
    }

    /// What is wrong with a description whatever else there is.
    pub(super) fn check(&self, queue: QueueIx, spec: &TaskSpec<'_>) -> Result<(), Refusal> {
        if !self.queue(queue).knows_or_has_room_for(spec.kind) {
            return Err(Refusal::Invalid("the queue has 65,535 names of definitions already; use fewer"));
        }
        if spec.retry.is_some_and(|policy| policy.max_attempts == 0) {
            return Err(Refusal::Invalid("0 attempts never run; make it 1 or more"));
        }
        if spec.reserve.is_some() && spec.not_before_ms.is_none() {
            return Err(Refusal::Invalid("a reserved start needs a time; give it one, or leave the reservation out"));
        }
        if !spec.limits.is_empty() {
            let wants: Vec<Want<'_>> =
                spec.limits.iter().map(|of| Want { name: of.name, key: of.key, amount: of.amount }).collect();
            self.limits.check(&wants).map_err(Refusal::Limit)?;
        }
        Ok(())
    }
}
