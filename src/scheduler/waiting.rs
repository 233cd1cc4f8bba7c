//! Bounds, and submitters that wait for room: first in, first out for each queue and class, so that a full queue delays
//! nobody elsewhere and no newcomer passes.

use super::engine::Engine;
use super::head::{Head, WAITS};
use super::output::{BatchRefusal, Output, Refusal, SubmitterNo};
use super::task::{QueueIx, TaskIx};
use crate::record::{
    Class, DecodeError, Dedupe, Order, Reader, TaskSpec, decode_order, decode_spec, encode_order, encode_spec,
    read_order, write_order,
};
use std::collections::{BTreeMap, BTreeSet};

/// So many tasks of a queue and class.
pub(super) type Demand = (QueueIx, Class, u64);

/// Submitters that wait for room.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    last: u64,
    submitters: BTreeMap<SubmitterNo, Submitter>,
    lines: BTreeMap<(QueueIx, Class), BTreeSet<SubmitterNo>>,
    /// Whether less waits than when they were last looked at.
    pub(super) has_room: bool,
}

#[derive(Debug)]
pub(super) struct Submitter {
    specs: Vec<Box<[u8]>>,
    /// `None`: a batch.
    dedupe: Option<Dedupe>,
    demand: Vec<Demand>,
    /// A run asked for it.
    order: Option<Order>,
}

impl Waiting {
    /// Whether somebody waits for the same.
    pub(super) fn is_line(&self, queue: QueueIx, class: Class) -> bool {
        !self.lines.is_empty() && self.lines.contains_key(&(queue, class))
    }

    pub(super) fn park_one(&mut self, spec: &TaskSpec<'_>, dedupe: Dedupe, demand: Vec<Demand>) -> SubmitterNo {
        self.park(Submitter { specs: vec![encoded(spec)], dedupe: Some(dedupe), demand, order: None })
    }

    pub(super) fn park_order(
        &mut self,
        spec: &TaskSpec<'_>,
        dedupe: Dedupe,
        demand: Vec<Demand>,
        order: Order,
    ) -> SubmitterNo {
        self.park(Submitter { specs: vec![encoded(spec)], dedupe: Some(dedupe), demand, order: Some(order) })
    }

    /// What a run asked for that waits.
    pub(super) fn order_of(&self, number: SubmitterNo) -> Option<Order> {
        self.submitters.get(&number)?.order
    }

    /// The queue in which a single one waits for room.
    pub(super) fn queue_of(&self, number: SubmitterNo) -> Option<QueueIx> {
        self.submitters.get(&number)?.demand.first().map(|(queue, ..)| *queue)
    }

    pub(super) fn park_batch(&mut self, specs: &[TaskSpec<'_>], demand: Vec<Demand>) -> SubmitterNo {
        self.park(Submitter { specs: specs.iter().map(encoded).collect(), dedupe: None, demand, order: None })
    }

    fn park(&mut self, submitter: Submitter) -> SubmitterNo {
        self.last += 1;
        let number = SubmitterNo(self.last);
        for (queue, class, _) in &submitter.demand {
            self.lines.entry((*queue, *class)).or_default().insert(number);
        }
        self.submitters.insert(number, submitter);
        number
    }

    pub(super) fn remove(&mut self, number: SubmitterNo) -> Option<Submitter> {
        let submitter = self.submitters.remove(&number)?;
        for (queue, class, _) in &submitter.demand {
            let line = self.lines.get_mut(&(*queue, *class)).expect("a submitter stands in its lines");
            line.remove(&number);
            if line.is_empty() {
                self.lines.remove(&(*queue, *class));
            }
        }
        Some(submitter)
    }

    /// What runs asked for. Who else waits asks again after a restart, or is gone.
    pub(super) fn encode(&self, head: &mut Head) {
        let orders = self.submitters.values().filter_map(|of| Some((of.order?, of.dedupe?, &of.specs[0])));
        for (order, dedupe, spec) in orders {
            let mut out = head.entry(WAITS);
            write_order(&mut out, &order);
            let spec = decode_spec(spec).expect("a description is kept as it was encoded");
            let mut bytes = Vec::new();
            encode_order(&mut bytes, dedupe, &spec);
            out.bytes(&bytes);
        }
    }

    /// Those whom nobody in any of their lines precedes, in the order of arrival.
    fn first_in_line(&self) -> BTreeSet<SubmitterNo> {
        let heads = self.lines.values().filter_map(|line| line.first()).copied();
        heads.filter(|number| self.is_first(*number)).collect()
    }

    fn is_first(&self, number: SubmitterNo) -> bool {
        self.submitters[&number]
            .demand
            .iter()
            .all(|(queue, class, _)| self.lines[&(*queue, *class)].first() == Some(&number))
    }

    pub(super) fn len(&self) -> usize {
        self.submitters.len()
    }
}

fn encoded(spec: &TaskSpec<'_>) -> Box<[u8]> {
    let mut bytes = Vec::new();
    encode_spec(&mut bytes, spec);
    bytes.into_boxed_slice()
}

impl Engine {
    /// Lets in who fits now. `true`: somebody was decided.
    pub(super) fn let_in(&mut self) -> bool {
        if !std::mem::take(&mut self.waiting.has_room) || self.waiting.len() == 0 || self.is_draining {
            return false;
        }
        let mut is_anybody = false;
        for number in self.waiting.first_in_line() {
            let demand = &self.waiting.submitters[&number].demand;
            if self.broken_bound(demand, None).is_some() {
                continue;
            }
            let submitter = self.waiting.remove(number).expect("whoever is first in line waits");
            self.decide(number, &submitter);
            self.waiting.has_room = true;
            is_anybody = true;
        }
        is_anybody
    }

    fn decide(&mut self, number: SubmitterNo, submitter: &Submitter) {
        let specs: Vec<TaskSpec<'_>> =
            submitter.specs.iter().map(|bytes| decode_spec(bytes).expect("it was encoded here")).collect();
        if let (Some(order), Some(dedupe)) = (submitter.order, submitter.dedupe) {
            self.decide_order(&order, dedupe, &specs[0], false);
            return;
        }
        let result = match submitter.dedupe {
            Some(dedupe) => match self.submit(&specs[0], dedupe, false, None) {
                Ok(answer) => Ok(answer.map(|answer| vec![answer])),
                Err(why) => Err(BatchRefusal::of(0, why)),
            },
            None => self.submit_batch(&specs, false),
        };
        let result = match result {
            Ok(Some(answers)) => Ok(answers),
            Ok(None) => unreachable!("it was looked whether there is room"),
            Err(refusal) => {
                self.totals.refused += 1;
                Err(refusal)
            }
        };
        self.outputs.push_back(Output::Admitted { submitter: number, result });
    }

    /// The caller of a submission that waits is gone. `false`: it was decided already.
    pub fn handle_abandoned(&mut self, now_ms: i64, submitter: SubmitterNo) -> bool {
        self.begin(now_ms);
        let was_waiting = self.waiting.remove(submitter).is_some();
        self.waiting.has_room |= was_waiting;
        self.settle();
        was_waiting
    }

    /// Nobody is let in any more. What runs asked for waits on, for the next opening.
    pub(super) fn refuse_waiting(&mut self) {
        let is_asking = |(number, submitter): (&SubmitterNo, &Submitter)| submitter.order.is_none().then_some(*number);
        let asking: Vec<SubmitterNo> = self.waiting.submitters.iter().filter_map(is_asking).collect();
        for number in asking {
            self.waiting.remove(number);
            self.outputs
                .push_back(Output::Admitted { submitter: number, result: Err(BatchRefusal::of_all(Refusal::Closed)) });
        }
    }

    /// Reads one of those that [`Waiting::encode`] wrote.
    pub(super) fn read_waiting(&mut self, from: &mut Reader<'_>) -> Result<(), DecodeError> {
        let order = read_order(from)?;
        let (dedupe, spec) = decode_order(from.bytes()?)?;
        self.stored_queue(spec.queue)?;
        self.apply_order_waits(&order, dedupe, &spec);
        Ok(())
    }

    /// What tasks ask for, by queue and class.
    pub(super) fn demand_of<'a>(
        &self,
        specs: impl IntoIterator<Item = &'a TaskSpec<'a>>,
    ) -> Result<Vec<Demand>, Refusal> {
        let mut demand: BTreeMap<(QueueIx, Class), u64> = BTreeMap::new();
        for spec in specs {
            *demand.entry((self.find_queue(spec.queue)?, spec.class)).or_default() += 1;
        }
        Ok(demand.into_iter().map(|((queue, class), count)| (queue, class, count)).collect())
    }

    /// The first bound that would be broken, as if `without` were gone.
    pub(super) fn broken_bound(&self, demand: &[Demand], without: Option<TaskIx>) -> Option<Refusal> {
        let gone = without.map(|ix| (self.tasks[ix].queue, usize::from(self.tasks[ix].class.code())));
        self.first_broken(
            demand,
            |class| self.pending[class] - u64::from(gone.is_some_and(|(_, of)| of == class)),
            |queue, class| self.queue(queue).pending[class] - u64::from(gone == Some((queue, class))),
        )
    }

    /// Whether there would be no room even if nothing waited.
    pub(super) fn never_fits(&self, demand: &[Demand]) -> bool {
        self.first_broken(demand, |_| 0, |_, _| 0).is_some()
    }

    fn first_broken(
        &self,
        demand: &[Demand],
        pending: impl Fn(usize) -> u64,
        pending_in: impl Fn(QueueIx, usize) -> u64,
    ) -> Option<Refusal> {
        let asked = |in_queue: Option<QueueIx>, of_class: Option<usize>| -> u64 {
            let fits = |(queue, class, _): &&Demand| {
                in_queue.is_none_or(|of| of == *queue) && of_class.is_none_or(|of| of == usize::from(class.code()))
            };
            demand.iter().filter(fits).map(|(.., count)| count).sum()
        };
        let all = &self.config.bounds;
        for (queue, class, _) in demand {
            let (name, own, class) =
                (&self.queue(*queue).name, &self.queue(*queue).config.bounds, usize::from(class.code()));
            let checks = [
                (own.pending, (0..4).map(|of| pending_in(*queue, of)).sum::<u64>(), asked(Some(*queue), None)),
                (own.pending_of[class], pending_in(*queue, class), asked(Some(*queue), Some(class))),
                (all.pending, (0..4).map(&pending).sum(), asked(None, None)),
                (all.pending_of[class], pending(class), asked(None, Some(class))),
            ];
            for (bound, pending, asked) in checks {
                if let Some(bound) = bound.filter(|bound| pending + asked > u64::from(*bound)) {
                    return Some(Refusal::Full { queue: name.clone(), pending, bound });
                }
            }
        }
        None
    }
}
