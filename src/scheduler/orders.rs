//! Tasks that runs ask for, by messages of their shards. A message is taken once: one record says what became of it, and
//! a message that is sent again is known by its number. Whoever waits is answered once: by what a record says.
//!
//! It does not know how messages travel, nor what an answer looks like in a journal.

use super::engine::Engine;
use super::head::{Head, TAKEN};
use super::output::{AbortReason, Answer, Output, Refusal, SubmitterNo};
use super::saved::counter;
use super::task::{AttemptNote, TaskIx};
use crate::record::{
    Caller, DecodeError, Dedupe, Order, Origin, Outcome, Reader, ShardId, TaskNo, TaskRecord, TaskRole, TaskSpec,
    Writer, encode_ordered,
};
use std::collections::BTreeMap;

/// What a run is told of a task that it asked for, or watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderAnswer {
    /// It exists. Only those are told who do not wait for its end.
    Exists(Answer),
    /// The run that it stands for may start.
    MayStart,
    /// It ended.
    Ended(Box<OrderEnd>),
    /// It cannot be; why, as it was recorded.
    Refused(Box<[u8]>),
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say what they are")]
pub struct OrderEnd {
    pub task: TaskNo,
    pub outcome: Outcome,
    pub attempts: u32,
    /// What it returned, threw last, or was cancelled for.
    pub payload: Box<[u8]>,
    /// Attempts that others followed, the newest ones.
    pub history: Vec<AttemptNote>,
}

/// Messages that were taken, and what is asked for and not answered yet.
#[derive(Debug, Default)]
pub(super) struct Orders {
    /// By shard: the number of its last message that has a record.
    taken: BTreeMap<ShardId, u64>,
    open: BTreeMap<Caller, Standing>,
}

/// Where something stands that a run asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It waits for room.
    Waits(SubmitterNo),
    /// It is a task; `is_own`: that was made for it.
    Is { task: TaskNo, is_own: bool },
}

impl Orders {
    /// Where something stands that was asked for as an operation.
    pub(super) fn standing(&self, caller: Caller) -> Option<Standing> {
        self.open.get(&caller).copied()
    }

    /// What was asked for as an operation is over, and nobody waits for it.
    pub(super) fn close(&mut self, caller: Caller) {
        self.open.remove(&caller);
    }

    pub(super) fn encode(&self, head: &mut Head) {
        for (shard, number) in &self.taken {
            let mut out = head.entry(TAKEN);
            out.number(u64::from(shard.0));
            out.number(*number);
        }
    }

    pub(super) fn decode(&mut self, from: &mut Reader<'_>) -> Result<(), DecodeError> {
        let shard = u16::try_from(from.number()?).map_err(|_| DecodeError::Number)?;
        self.taken.insert(ShardId(shard), counter(from)?);
        Ok(())
    }

    /// Whether a task that a run watches was made for it.
    pub(super) fn is_own(&self, caller: Caller) -> bool {
        matches!(self.open.get(&caller), Some(Standing::Is { is_own: true, .. }))
    }

    /// A run watches a task.
    pub(super) fn watches(&mut self, caller: Caller, task: TaskNo, is_own: bool) {
        self.open.insert(caller, Standing::Is { task, is_own });
    }

    /// What a run asked for waits for room.
    pub(super) fn waits(&mut self, caller: Caller, submitter: SubmitterNo) {
        self.open.insert(caller, Standing::Waits(submitter));
    }

    fn take(&mut self, origin: Origin) {
        let taken = self.taken.entry(origin.from).or_default();
        *taken = (*taken).max(origin.number);
    }
}

impl Engine {
    /// The last message of a shard that has a record.
    #[must_use]
    pub fn taken_from(&self, shard: ShardId) -> u64 {
        self.orders.taken.get(&shard).copied().unwrap_or(0)
    }

    /// Whether messages are taken; if not, they are to be kept for the next opening.
    #[must_use]
    pub fn takes_messages(&self) -> bool {
        !self.is_draining
    }

    /// A run asks for a task. It is answered by [`Output::Answer`].
    pub fn handle_order(&mut self, now_ms: i64, order: &Order, dedupe: Dedupe, spec: &TaskSpec<'_>) {
        self.begin(now_ms);
        let queue = self.find_queue(spec.queue);
        let waits_in_line = queue.is_ok_and(|queue| self.waiting.is_line(queue, spec.class));
        self.decide_order(order, dedupe, spec, waits_in_line);
        self.settle();
    }

    /// What a run asked for cannot be read.
    pub fn handle_unreadable(&mut self, now_ms: i64, order: &Order, why: &str) {
        self.begin(now_ms);
        self.refuse_order(order, &format!("BAD_INPUT\n{why}\n\n"));
        self.settle();
    }

    /// A run watches a task. It is told of its end, also of one that has ended.
    pub fn handle_watch(&mut self, now_ms: i64, order: &Order, task: TaskNo) {
        self.begin(now_ms);
        match self.tasks.find(task) {
            Some(_) => self.join_order(order, task, false),
            None => {
                let why = format!("NOT_FOUND\nthere is no task \"t-{task}\", or it is not remembered any more\n\n");
                self.refuse_order(order, &why);
            }
        }
        self.settle();
    }

    /// A run that asked for a task does not want it any more: the task that was made for it is cancelled.
    pub fn handle_order_cancelled(&mut self, now_ms: i64, caller: Caller, origin: Origin) {
        self.begin(now_ms);
        match self.orders.open.get(&caller).copied() {
            Some(Standing::Waits(submitter)) => {
                let role = self.waiting.order_of(submitter).map_or(TaskRole::Detached, |order| order.role);
                let why = "CANCELLED\nthe workflow that asked for it gave it up\n\n";
                self.refuse_order(&Order { caller, origin, role }, why);
            }
            Some(Standing::Is { task, is_own: true }) => {
                self.cancel_for(task, b"the workflow that waited for it gave it up");
                self.take_message(origin);
            }
            Some(Standing::Is { is_own: false, .. }) | None => self.take_message(origin),
        }
        self.settle();
    }

    /// A run asks a task to end.
    pub fn handle_cancel_by_run(&mut self, now_ms: i64, task: TaskNo, reason: &[u8], origin: Origin) {
        self.begin(now_ms);
        self.cancel_for(task, reason);
        self.take_message(origin);
        self.settle();
    }

    fn cancel_for(&mut self, task: TaskNo, reason: &[u8]) {
        let live = self.tasks.find(task).filter(|ix| !self.tasks[*ix].is_ended());
        // A run is ended in its shard.
        if let Some(ix) = live.filter(|ix| !self.tasks[*ix].stands_for_run()) {
            self.abort(ix, AbortReason::Cancelled);
            self.end(ix, Outcome::Cancelled, reason);
        }
    }

    pub(super) fn take_message(&mut self, origin: Origin) {
        self.record(&TaskRecord::MessageTaken { origin });
        self.apply_taken(origin);
    }

    pub(super) fn decide_order(&mut self, order: &Order, dedupe: Dedupe, spec: &TaskSpec<'_>, waits_in_line: bool) {
        match self.submit(spec, dedupe, waits_in_line, Some(order)) {
            // Its record says all of it.
            Ok(Some(Answer::New(_))) => {}
            Ok(Some(Answer::Existing(task))) => self.join_order(order, task, false),
            Ok(Some(Answer::Changed(task))) => self.join_order(order, task, true),
            Ok(None) => self.let_order_wait(order, dedupe, spec),
            Err(refusal) => {
                self.totals.refused += 1;
                self.refuse_order(order, &why(&refusal));
            }
        }
    }

    fn join_order(&mut self, order: &Order, task: TaskNo, is_changed: bool) {
        self.record(&TaskRecord::OrderJoined { task, time_ms: self.now_ms, order: *order, is_changed });
        self.apply_joined(order, task, is_changed);
    }

    fn let_order_wait(&mut self, order: &Order, dedupe: Dedupe, spec: &TaskSpec<'_>) {
        let record =
            TaskRecord::OrderWaits { time_ms: self.now_ms, order: *order, dedupe, spec: Box::new(spec.clone()) };
        self.record(&record);
        self.apply_order_waits(order, dedupe, spec);
    }

    pub(super) fn refuse_order(&mut self, order: &Order, why: &str) {
        self.record(&TaskRecord::OrderRefused { order: *order, time_ms: self.now_ms, why: why.as_bytes() });
        self.apply_order_refused(order, why.as_bytes());
    }

    pub(super) fn write_ordered(&mut self, task: TaskNo, time_ms: i64, order: &Order, spec: &TaskSpec<'_>) {
        self.records.write(|bytes| encode_ordered(&mut Writer::new(bytes), task, time_ms, order, spec));
    }

    pub(super) fn apply_taken(&mut self, origin: Origin) {
        self.orders.take(origin);
    }

    /// A task exists that a run asked for.
    pub(super) fn apply_ordered(&mut self, ix: TaskIx, order: &Order) {
        self.orders.take(order.origin);
        self.stop_waiting(order.caller);
        let task = self.tasks[ix].number;
        match order.role {
            TaskRole::Detached => self.answer(order.caller, OrderAnswer::Exists(Answer::New(task))),
            TaskRole::Awaited | TaskRole::AwaitedLoosely => self.watch_for(ix, order.caller, true),
            TaskRole::Run => self.apply_ticket(ix, order.caller),
        }
    }

    /// A task that was there stands for what a run asked for.
    pub(super) fn apply_joined(&mut self, order: &Order, task: TaskNo, is_changed: bool) {
        self.orders.take(order.origin);
        self.stop_waiting(order.caller);
        let exists = if is_changed { Answer::Changed(task) } else { Answer::Existing(task) };
        let is_awaited = order.role != TaskRole::Detached;
        match self.tasks.find(task) {
            _ if !is_awaited => self.answer(order.caller, OrderAnswer::Exists(exists)),
            Some(ix) if self.tasks[ix].is_ended() => self.answer_end(ix, order.caller),
            Some(ix) => self.watch_for(ix, order.caller, false),
            // Forgotten since it was recorded: it had ended then, so that it was answered at once.
            None => self.answer(order.caller, OrderAnswer::Refused(Box::default())),
        }
    }

    pub(super) fn apply_order_waits(&mut self, order: &Order, dedupe: Dedupe, spec: &TaskSpec<'_>) {
        self.orders.take(order.origin);
        let demand = vec![(self.queue_or_new(spec.queue), spec.class, 1)];
        let submitter = self.waiting.park_order(spec, dedupe, demand, *order);
        self.orders.waits(order.caller, submitter);
    }

    pub(super) fn apply_order_refused(&mut self, order: &Order, why: &[u8]) {
        self.orders.take(order.origin);
        self.stop_waiting(order.caller);
        self.answer(order.caller, OrderAnswer::Refused(why.into()));
    }

    fn stop_waiting(&mut self, caller: Caller) {
        if let Some(Standing::Waits(submitter)) = self.orders.open.get(&caller).copied() {
            self.orders.open.remove(&caller);
            self.waiting.remove(submitter);
            self.waiting.has_room = true;
        }
    }

    pub(super) fn watch_for(&mut self, ix: TaskIx, caller: Caller, is_own: bool) {
        let task = self.tasks[ix].number;
        self.touch(ix);
        self.tasks[ix].more_mut().watchers.push(caller);
        self.orders.watches(caller, task, is_own);
    }

    /// A task ended: whoever waits for it is told.
    pub(super) fn answer_watchers(&mut self, ix: TaskIx) {
        let watchers = self.tasks[ix].more.as_mut().map(|more| std::mem::take(&mut more.watchers)).unwrap_or_default();
        for caller in watchers {
            self.orders.open.remove(&caller);
            self.answer_end(ix, caller);
        }
    }

    pub(super) fn answer_end(&mut self, ix: TaskIx, caller: Caller) {
        let task = &self.tasks[ix];
        let super::task::State::Ended { outcome, .. } = task.state else { return };
        let more = task.more.as_ref();
        let payload = match outcome {
            Outcome::Completed => task.payload.clone(),
            _ => more.map(|more| more.failure.clone()).unwrap_or_default(),
        };
        let end = OrderEnd {
            task: task.number,
            outcome,
            attempts: task.attempts,
            payload,
            history: more.map(|more| more.history.clone()).unwrap_or_default(),
        };
        self.answer(caller, OrderAnswer::Ended(Box::new(end)));
    }

    /// Also told while records are taken back: answers are numbered by their order, the same in each life.
    pub(super) fn answer(&mut self, caller: Caller, answer: OrderAnswer) {
        self.outputs.push_back(Output::Answer { caller, answer });
    }
}

/// A refusal as it is recorded for a run: its code, what it says, and what it is about, a line each.
fn why(refusal: &Refusal) -> String {
    let (queue, number) = refusal.about();
    format!("{}\n{}\n{queue}\n{number}", refusal.code(), refusal.to_string().replace('\n', " "))
}
