//! Taking tasks in, one by one or several at once: key, then description, then reservation, then room. So what is going
//! to be refused makes nobody give way.

use super::config::OnFull;
use super::dedupe::Decision;
use super::engine::Engine;
use super::limits::Want;
use super::output::{Answer, Refusal, Submitted};
use super::task::{QueueIx, TaskIx};
use crate::record::{Dedupe, Order, Outcome, Parent, TaskNo, TaskSpec, Writer, encode_batch, encode_submitted};
use std::collections::{BTreeMap, BTreeSet};

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

    /// Submits several tasks, all or none. They may wait for each other by key, in any order; one whose key is taken
    /// comes back as that one. The answers are in the order of `specs`.
    pub fn handle_batch(&mut self, now_ms: i64, specs: &[TaskSpec<'_>]) -> Result<Submitted<Vec<Answer>>, Refusal> {
        self.begin(now_ms);
        let result = self.batch_or_wait(specs);
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

    fn batch_or_wait(&mut self, specs: &[TaskSpec<'_>]) -> Result<Submitted<Vec<Answer>>, Refusal> {
        let demand = self.demand_of(specs)?;
        let waits_in_line = demand.iter().any(|(queue, class, _)| self.waiting.is_line(*queue, *class));
        match self.submit_batch(specs, waits_in_line)? {
            Some(answers) => Ok(Submitted::Now(answers)),
            None => Ok(Submitted::Waits(self.waiting.park_batch(specs, demand))),
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

    fn after_acceptance(&mut self, ix: TaskIx) {
        if self.is_missed_already(ix) {
            self.missed(ix);
        }
    }

    /// `None` as for one.
    pub(super) fn submit_batch(
        &mut self,
        specs: &[TaskSpec<'_>],
        waits_in_line: bool,
    ) -> Result<Option<Vec<Answer>>, Refusal> {
        if self.is_draining {
            return Err(Refusal::Closed);
        }
        let mut answers: Vec<Option<Answer>> = specs.iter().map(|spec| self.known_by_key(spec)).collect();
        let fresh = in_order_of_waiting(specs, &answers)?;
        let keys: BTreeSet<&str> = fresh.iter().filter_map(|at| specs[*at].key).collect();
        let mut promised = BTreeMap::new();
        for at in &fresh {
            let spec = &specs[*at];
            let queue = self.find_queue(spec.queue)?;
            self.check(queue, spec)?;
            let outside: Vec<_> = spec
                .after
                .iter()
                .filter(|edge| !matches!(edge.parent, Parent::Key(key) if keys.contains(key)))
                .copied()
                .collect();
            self.check_edges(&outside, self.queue(queue).config.unknown_key)?;
            self.check_cycle(spec.key, &outside, spec.order_key)?;
            self.check_reservation(queue, spec)?;
            self.check_promises(queue, spec, &mut promised)?;
        }
        self.check_batch_cycles(specs, &fresh)?;
        let accepted: Vec<TaskSpec<'_>> = fresh.iter().map(|at| specs[*at].clone()).collect();
        let demand = self.demand_of(&accepted)?;
        if let Some(broken) = self.broken_bound(&demand, None) {
            let may_wait = demand.iter().all(|(queue, ..)| self.queue(*queue).config.on_full == OnFull::Wait);
            return if may_wait && !self.never_fits(&demand) { Ok(None) } else { Err(broken) };
        }
        if waits_in_line {
            return Ok(None);
        }
        for (number, at) in self.accept_batch(&accepted).into_iter().zip(fresh) {
            answers[at] = Some(Answer::New(number));
        }
        Ok(Some(answers.into_iter().map(|answer| answer.expect("each is known or was accepted")).collect()))
    }

    fn accept_batch(&mut self, specs: &[TaskSpec<'_>]) -> Vec<TaskNo> {
        let (first, time_ms) = (TaskNo(self.next_number), self.now_ms);
        if specs.is_empty() {
            return Vec::new();
        }
        self.records.write(|bytes| encode_batch(&mut Writer::new(bytes), first, time_ms, specs));
        let applied = self.apply_batch(first, time_ms, specs);
        applied.iter().for_each(|ix| self.after_acceptance(*ix));
        (first.0..).map(TaskNo).take(specs.len()).collect()
    }

    pub(super) fn apply_batch(&mut self, first: TaskNo, time_ms: i64, specs: &[TaskSpec<'_>]) -> Vec<TaskIx> {
        let numbered = (first.0..).map(TaskNo).zip(specs);
        numbered
            .map(|(number, spec)| {
                let queue = self.queue_or_new(spec.queue);
                self.apply_submitted(queue, number, time_ms, spec)
            })
            .collect()
    }

    fn known_by_key(&self, spec: &TaskSpec<'_>) -> Option<Answer> {
        let ix = self.keys.get(spec.key?)?;
        let task = &self.tasks[*ix];
        (!task.is_ended()).then_some(Answer::Existing(task.number))
    }

    /// Reservations of one batch count against each other.
    fn check_promises(
        &self,
        queue: QueueIx,
        spec: &TaskSpec<'_>,
        promised: &mut BTreeMap<QueueIx, Vec<i64>>,
    ) -> Result<(), Refusal> {
        let (Some(_), Some(at_ms)) = (spec.reserve, spec.not_before_ms) else { return Ok(()) };
        let of = self.queue(queue);
        let others = promised.entry(queue).or_default();
        // All that are near each other count, which is more than overlap: a batch may be refused that would just fit.
        let span_ms = 2 * i64::from(of.config.default_estimate_ms).max(i64::from(spec.estimate_ms.unwrap_or(0)));
        let near = others.iter().filter(|other| at_ms.abs_diff(**other) <= span_ms as u64).count();
        let booked =
            of.reservations.most_at_once(at_ms.saturating_sub(span_ms), at_ms.saturating_add(span_ms), |_| true);
        others.push(at_ms);
        let limit = of.config.reservable();
        if near > 0 && near + booked >= limit as usize {
            return Err(Refusal::Reserved { queue: of.name.clone(), at_ms, limit });
        }
        Ok(())
    }

    /// A task outside that waits for a key of the batch, and is waited for by a part of the batch which that key waits
    /// for, closes a cycle through the batch.
    fn check_batch_cycles(&self, specs: &[TaskSpec<'_>], fresh: &[usize]) -> Result<(), Refusal> {
        let by_key: BTreeMap<&str, usize> = fresh.iter().filter_map(|at| Some((specs[*at].key?, *at))).collect();
        for at in fresh.iter().filter(|at| specs[**at].key.is_some_and(|key| self.awaited.contains_key(key))) {
            let mut found = BTreeSet::from([*at]);
            let mut next = vec![*at];
            while let Some(of) = next.pop() {
                self.check_cycle(specs[*at].key, &specs[of].after, specs[of].order_key)?;
                let parents = specs[of].after.iter().filter_map(|edge| match edge.parent {
                    Parent::Key(key) => by_key.get(key).copied(),
                    Parent::Number(_) | Parent::Run(..) => None,
                });
                let earlier = fresh.iter().copied().take_while(|other| *other != of);
                let in_line = earlier
                    .filter(|other| specs[of].order_key.is_some() && specs[*other].order_key == specs[of].order_key);
                next.extend(parents.chain(in_line).filter(|parent| found.insert(*parent)));
            }
        }
        Ok(())
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

/// The tasks of a batch that are new, each after those of the batch that it waits for.
fn in_order_of_waiting(specs: &[TaskSpec<'_>], known: &[Option<Answer>]) -> Result<Vec<usize>, Refusal> {
    let mut by_key: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, spec) in specs.iter().enumerate().filter(|(at, _)| known[*at].is_none()) {
        if let Some(key) = spec.key
            && by_key.insert(key, at).is_some()
        {
            return Err(Refusal::DuplicateKey(key.into()));
        }
    }
    let mut order = Vec::with_capacity(specs.len());
    let mut marks = vec![Mark::Unseen; specs.len()];
    for at in (0..specs.len()).filter(|at| known[*at].is_none()) {
        visit(at, specs, &by_key, &mut marks, &mut order)?;
    }
    Ok(order)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Unseen,
    OnPath,
    Placed,
}

/// Depth first, with a stack of its own: a chain may be as long as the batch.
fn visit(
    from: usize,
    specs: &[TaskSpec<'_>],
    by_key: &BTreeMap<&str, usize>,
    marks: &mut [Mark],
    order: &mut Vec<usize>,
) -> Result<(), Refusal> {
    let mut path = vec![(from, 0)];
    while let Some((at, edge)) = path.pop() {
        if marks[at] == Mark::Placed {
            continue;
        }
        marks[at] = Mark::OnPath;
        let Some(next) = specs[at].after.get(edge) else {
            marks[at] = Mark::Placed;
            order.push(at);
            continue;
        };
        path.push((at, edge + 1));
        let parent = match next.parent {
            Parent::Key(key) => by_key.get(key).copied(),
            Parent::Number(_) | Parent::Run(..) => None,
        };
        match parent.map(|parent| (parent, marks[parent])) {
            Some((parent, Mark::OnPath)) => return Err(Refusal::Cycle(cycle(&path, parent, specs))),
            Some((parent, Mark::Unseen)) => path.push((parent, 0)),
            Some((_, Mark::Placed)) | None => {}
        }
    }
    Ok(())
}

fn cycle(path: &[(usize, usize)], back_to: usize, specs: &[TaskSpec<'_>]) -> Vec<Box<str>> {
    let around = path.iter().map(|(at, _)| *at).skip_while(|at| *at != back_to).chain([back_to]);
    around.map(|at| specs[at].key.map_or_else(|| format!("#{at}").into(), Into::into)).collect()
}
