//! Taking in several tasks, all or none, in one record. A part may wait for other parts: by key, in any order, or by its
//! place among them, since none has a number before all have.

use super::config::OnFull;
use super::engine::Engine;
use super::output::{Answer, BatchRefusal, Refusal, Submitted};
use super::task::{QueueIx, TaskIx};
use crate::record::{Edge, Parent, TaskNo, TaskSpec, Writer, encode_batch};
use std::collections::{BTreeMap, BTreeSet};

impl Engine {
    /// Submits several tasks, all or none. They may wait for each other by key or by [`TaskNo::in_batch`], in any order; one
    /// whose key is taken comes back as that one. The answers are in the order of `specs`.
    pub fn handle_batch(
        &mut self,
        now_ms: i64,
        specs: &[TaskSpec<'_>],
    ) -> Result<Submitted<Vec<Answer>>, BatchRefusal> {
        self.begin(now_ms);
        let result = self.batch_or_wait(specs);
        self.totals.refused += u64::from(result.is_err());
        self.settle();
        result
    }

    fn batch_or_wait(&mut self, specs: &[TaskSpec<'_>]) -> Result<Submitted<Vec<Answer>>, BatchRefusal> {
        for (at, spec) in specs.iter().enumerate() {
            self.find_queue(spec.queue).map_err(|why| BatchRefusal::of(at, why))?;
        }
        let demand = self.demand_of(specs).map_err(BatchRefusal::of_all)?;
        let waits_in_line = demand.iter().any(|(queue, class, _)| self.waiting.is_line(*queue, *class));
        match self.submit_batch(specs, waits_in_line)? {
            Some(answers) => Ok(Submitted::Now(answers)),
            None => Ok(Submitted::Waits(self.waiting.park_batch(specs, demand))),
        }
    }

    /// `None`: there is no room, and its queues let submissions wait.
    pub(super) fn submit_batch(
        &mut self,
        specs: &[TaskSpec<'_>],
        waits_in_line: bool,
    ) -> Result<Option<Vec<Answer>>, BatchRefusal> {
        if self.is_draining {
            return Err(BatchRefusal::of_all(Refusal::Closed));
        }
        let mut answers: Vec<Option<Answer>> = specs.iter().map(|spec| self.known_by_key(spec)).collect();
        let mut specs = specs.to_vec();
        // Who stands for a part has a number already.
        point_at(&mut specs, |at| answers.get(at).copied().flatten().map(Answer::task));
        let fresh = in_order_of_waiting(&specs, &answers)?;
        let keys: BTreeSet<&str> = fresh.iter().filter_map(|at| specs[*at].key).collect();
        let mut promised = BTreeMap::new();
        for at in &fresh {
            self.check_part(&specs, *at, &keys, &mut promised).map_err(|why| BatchRefusal::of(*at, why))?;
        }
        self.check_batch_cycles(&specs, &fresh)?;
        let parts = |count: usize| fresh.iter().filter(move |at| **at < count).map(|at| &specs[*at]);
        let demand = self.demand_of(parts(specs.len())).map_err(BatchRefusal::of_all)?;
        if let Some(broken) = self.broken_bound(&demand, None) {
            let may_wait = demand.iter().all(|(queue, ..)| self.queue(*queue).config.on_full == OnFull::Wait);
            if may_wait && !self.never_fits(&demand) {
                return Ok(None);
            }
            let fits = |count: usize| {
                self.demand_of(parts(count)).is_ok_and(|demand| self.broken_bound(&demand, None).is_none())
            };
            let counts: Vec<usize> = (1..=specs.len()).collect();
            return Err(BatchRefusal::of(counts.partition_point(|count| fits(*count)), broken));
        }
        if waits_in_line {
            return Ok(None);
        }
        let numbers: BTreeMap<usize, TaskNo> = fresh.iter().copied().zip((self.next_number..).map(TaskNo)).collect();
        point_at(&mut specs, |at| numbers.get(&at).copied());
        let accepted: Vec<TaskSpec<'_>> = fresh.iter().map(|at| specs[*at].clone()).collect();
        for (number, at) in self.accept_batch(&accepted).into_iter().zip(fresh) {
            answers[at] = Some(Answer::New(number));
        }
        Ok(Some(answers.into_iter().map(|answer| answer.expect("each is known or was accepted")).collect()))
    }

    fn check_part(
        &self,
        specs: &[TaskSpec<'_>],
        at: usize,
        keys: &BTreeSet<&str>,
        promised: &mut BTreeMap<QueueIx, Vec<i64>>,
    ) -> Result<(), Refusal> {
        let spec = &specs[at];
        let queue = self.find_queue(spec.queue)?;
        self.check(queue, spec)?;
        let is_inside = |edge: &&Edge<'_>| match edge.parent {
            Parent::Key(key) => keys.contains(key),
            Parent::Number(number) => number.place_in_batch().is_some_and(|place| place < specs.len()),
            Parent::Run(..) => false,
        };
        let outside: Vec<_> = spec.after.iter().filter(|edge| !is_inside(edge)).copied().collect();
        self.check_edges(&outside, self.queue(queue).config.unknown_key)?;
        self.check_cycle(spec.key, &outside, spec.order_key)?;
        self.check_reservation(queue, spec)?;
        self.check_promises(queue, spec, promised)
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
    fn check_batch_cycles(&self, specs: &[TaskSpec<'_>], fresh: &[usize]) -> Result<(), BatchRefusal> {
        let by_key: BTreeMap<&str, usize> = fresh.iter().filter_map(|at| Some((specs[*at].key?, *at))).collect();
        for at in fresh.iter().filter(|at| specs[**at].key.is_some_and(|key| self.awaited.contains_key(key))) {
            let mut found = BTreeSet::from([*at]);
            let mut next = vec![*at];
            while let Some(of) = next.pop() {
                self.check_cycle(specs[*at].key, &specs[of].after, specs[of].order_key)
                    .map_err(|why| BatchRefusal::of(of, why))?;
                let parents = specs[of].after.iter().filter_map(|edge| part_of(edge, &by_key));
                let earlier = fresh.iter().copied().take_while(|other| *other != of);
                let in_line = earlier
                    .filter(|other| specs[of].order_key.is_some() && specs[*other].order_key == specs[of].order_key);
                next.extend(parents.chain(in_line).filter(|parent| found.insert(*parent)));
            }
        }
        Ok(())
    }
}

/// Has edges to parts of the batch name tasks, where those have numbers.
fn point_at(specs: &mut [TaskSpec<'_>], number_of: impl Fn(usize) -> Option<TaskNo>) {
    for edge in specs.iter_mut().flat_map(|spec| &mut spec.after) {
        if let Parent::Number(number) = edge.parent
            && let Some(number) = number.place_in_batch().and_then(&number_of)
        {
            edge.parent = Parent::Number(number);
        }
    }
}

/// The part of a batch that an edge leads to.
fn part_of(edge: &Edge<'_>, by_key: &BTreeMap<&str, usize>) -> Option<usize> {
    match edge.parent {
        Parent::Key(key) => by_key.get(key).copied(),
        Parent::Number(number) => number.place_in_batch(),
        Parent::Run(..) => None,
    }
}

/// The tasks of a batch that are new, each after those of the batch that it waits for.
fn in_order_of_waiting(specs: &[TaskSpec<'_>], known: &[Option<Answer>]) -> Result<Vec<usize>, BatchRefusal> {
    let mut by_key: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, spec) in specs.iter().enumerate().filter(|(at, _)| known[*at].is_none()) {
        if let Some(key) = spec.key
            && by_key.insert(key, at).is_some()
        {
            return Err(BatchRefusal::of(at, Refusal::DuplicateKey(key.into())));
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
) -> Result<(), BatchRefusal> {
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
        let parent = part_of(next, by_key).filter(|parent| *parent < specs.len());
        match parent.map(|parent| (parent, marks[parent])) {
            Some((parent, Mark::OnPath)) => {
                return Err(BatchRefusal::of(at, Refusal::Cycle(cycle(&path, parent, specs))));
            }
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
