//! What each record does to the state of a shard: written once, for live work and for recovery alike.

use super::admission::outcome_of;
use super::journal::Journal;
use super::messages::Body;
use super::ops::{Op, StepPhase};
use super::run::{Child, Code, End, OpenRun, Run, RunIx, RunState};
use super::shard::{Effect, Shard};
use crate::record::{
    Caller, Lsn, NewRun, Origin, ParentClose, Record, Retry, RunNo, Sending, Seq, ShardId, Status, TaskRole, shard_of,
};

/// The journals of ended runs are kept for `history` up to this size a shard, the newest ones.
const ENDED_JOURNAL_BYTES_MAX: usize = 4 << 20;

impl Shard {
    /// What a record does to the state, live (with effects) and in recovery (without).
    pub(super) fn apply(
        &mut self,
        lsn: Lsn,
        record: &Record<'_>,
        bytes: &[u8],
        run: Option<RunIx>,
        mut effects: Option<&mut Vec<Effect>>,
    ) {
        debug_assert!(lsn > self.last, "records come in the order of the log");
        self.last = lsn;
        self.metrics.records += 1;
        if !self.apply_compound(lsn, record, run, &mut effects) {
            self.apply_simple(lsn, record, bytes, run, &mut effects);
        }
    }

    /// What a record that says one thing does to the state. The run that it belongs to.
    pub(super) fn apply_simple(
        &mut self,
        lsn: Lsn,
        record: &Record<'_>,
        bytes: &[u8],
        run: Option<RunIx>,
        effects: &mut Option<&mut Vec<Effect>>,
    ) -> Option<RunIx> {
        // What a copy implies was done when the record was made that it is of.
        let is_copy = run.is_some_and(|run| record.run() != Some(self.run(run).no));
        if let Some(Origin { from, number }) = record.origin().filter(|_| !is_copy) {
            self.applied.insert(from, number);
        }
        let run = match record {
            Record::Start { run, time_ms, new, .. } => Some(self.create(*run, *time_ms, new)),
            _ => run,
        };
        if let Some(run) = run {
            self.touch(run);
        }
        let entry = run.and_then(|run| {
            let run = self.run_mut(run);
            run.last = lsn;
            // The journal of a run that has ended is complete, and its size is accounted for.
            run.open().is_some().then(|| run.journal.push(lsn, bytes))
        });
        match *record {
            Record::Start { .. } => push(effects, Effect::Load(run.expect("a start makes a run"))),
            Record::StepDone { seq, .. } => self.step_done(known(run), seq),
            Record::StepFailed { seq, attempt, retry, .. } => self.step_failed(known(run), seq, attempt, retry, lsn),
            Record::StepStarted { seq, .. } => {
                if let Some(step) = self.open_mut(known(run)).and_then(|open| open.ops.step_mut(seq)) {
                    step.is_started = true;
                    step.gate = lsn;
                }
            }
            Record::Heartbeat { .. }
            | Record::TimerSet { .. }
            | Record::WaitSet { .. }
            | Record::ConditionSet { .. } => {}
            Record::TimerFired { .. } => {
                self.metrics.timers_fired += 1;
                self.wake(known(run), effects);
            }
            Record::Signal { dedupe, .. } => {
                self.metrics.signals += 1;
                if let Some(open) = self.open_mut(known(run)) {
                    open.untaken += 1;
                    open.dedupe.extend(dedupe.map(Box::from));
                }
                self.wake(known(run), effects);
            }
            Record::ChildSet { run: asked_by, seq, child } => {
                let parent = known(run);
                let caller = Caller { shard: self.id, run: asked_by, seq };
                let to = shard_of(child.id, self.count);
                if let Some(open) = self.open_mut(parent) {
                    open.children.push(Child { caller, id: child.id.into(), shard: to, close: child.parent_close });
                }
                if !is_copy {
                    let body = self.child_message(parent, lsn, caller, &child);
                    self.post(to, lsn, body, effects);
                }
            }
            Record::SendSet { .. } if is_copy => {}
            Record::SendSet { seq, id, target, what, .. } => {
                let caller = Caller { shard: self.id, run: self.run(known(run)).no, seq };
                let asked_by = |of| self.caller_of(known(run), of);
                let body = match what {
                    Sending::Signal(name, payload) => {
                        Body::Signal { id: id.into(), target, name: name.into(), payload: payload.into() }
                    }
                    Sending::Cancel(reason) => Body::Cancel { id: id.into(), target, reason: reason.into() },
                    Sending::Watch => Body::Watch { id: id.into(), target, caller },
                    Sending::CancelChild(child) => {
                        Body::Close { id: id.into(), caller: asked_by(child), policy: ParentClose::Cancel }
                    }
                    Sending::CancelOrder(order) => Body::CancelOrder { caller: asked_by(order) },
                    Sending::CancelTask(task, reason) => Body::CancelTask { task, reason: reason.into() },
                    Sending::WatchTask(task) => Body::WatchTask { task, caller },
                    Sending::Call(call) => super::calls::call_body(id, &call, caller),
                };
                let to = if what.is_to_scheduler() { ShardId::SCHEDULER } else { shard_of(id, self.count) };
                self.post(to, lsn, body, effects);
            }
            Record::TaskSet { run: asked_by, seq, role, order, .. } => {
                let caller = Caller { shard: self.id, run: asked_by, seq };
                if let Some(open) = self.open_mut(known(run)).filter(|_| role == TaskRole::Awaited) {
                    open.orders.push(caller);
                }
                if !is_copy {
                    self.post(ShardId::SCHEDULER, lsn, Body::Order { caller, role, order: order.into() }, effects);
                }
            }
            Record::ChildDone { seq, .. } => {
                if let Some(open) = self.open_mut(known(run)) {
                    open.children.retain(|child| child.caller.seq != seq);
                    open.orders.retain(|order| order.seq != seq);
                }
                self.wake(known(run), effects);
            }
            Record::Cancel { .. } => {
                if let Some(open) = self.open_mut(known(run)) {
                    open.is_cancelled = true;
                }
                self.wake(known(run), effects);
            }
            Record::Resumed { .. } => self.unpause(known(run)),
            Record::Paused { .. } => {
                if let Some(open) = self.open_mut(known(run)) {
                    open.is_held = true;
                }
            }
            Record::Done { status, time_ms, payload, origin, .. } => {
                let ended = known(run);
                if let Some(open) = self.open_mut(ended).filter(|_| origin.is_some_and(is_scheduler)) {
                    // It ended because what stands for it did: there is nobody to be told.
                    open.ticket = None;
                }
                self.end(known(run), End { status, time_ms, lsn, payload: payload.into(), continued: None }, effects);
            }
            Record::Watched { caller, .. } => {
                let watched = known(run);
                match &mut self.run_mut(watched).state {
                    RunState::Open(open) => open.watchers.push(caller),
                    RunState::Ended(end) => {
                        let (status, payload) = (end.status, end.payload.clone());
                        self.answer(caller, lsn, status, payload, effects);
                    }
                }
            }
            Record::Answered { caller, status, payload, .. } => {
                self.answer(caller, lsn, status, payload.into(), effects);
            }
            Record::Received { .. } => {}
            Record::Activated { time_ms, .. } => self.apply_activated(known(run), time_ms, effects),
            Record::Update { id, number, .. } => {
                self.update_accepted(known(run), id, number);
                self.wake(known(run), effects);
            }
            Record::UpdateDone { number, .. } => self.update_answered(known(run), number, entry, effects),
            Record::Called { number, id, caller, .. } => {
                self.call_recorded(known(run), number, id, caller);
                self.wake(known(run), effects);
            }
            Record::CallDone { .. } => self.call_done(known(run), lsn, record, entry, effects),
            Record::Patched { id, .. } => {
                if let Some(open) = self.open_mut(known(run)) {
                    open.patches.insert(id.into());
                }
            }
            Record::Attributes { set, .. } => self.attributes_set(known(run), set),
            Record::Branched { seq, key_root, .. } => {
                if let Some(open) = self.open_mut(known(run)) {
                    open.borders.push((seq, key_root));
                }
            }
            Record::SignalledStart { .. }
            | Record::AttributedStart { .. }
            | Record::Queued { .. }
            | Record::Continued { .. }
            | Record::Forked { .. }
            | Record::Reset { .. } => {
                unreachable!("it was taken apart")
            }
        }
        if let (Some(run), Some(entry), true) = (run, entry, is_passed(record)) {
            self.pass(run, entry);
        }
        run
    }

    /// The entry is none that code could be handed: code that waits at it, or has just asked for it in its last turn, need
    /// not come to get past it.
    fn pass(&mut self, run: RunIx, entry: u32) {
        let target = self.run_mut(run);
        let end = target.journal.end();
        if let Some(open) = target.open_mut()
            && open.cursor == entry
            && open.is_waiting()
            && !open.is_replaying()
        {
            open.cursor = end;
        }
    }

    fn create(&mut self, no: RunNo, time_ms: i64, new: &NewRun<'_>) -> RunIx {
        let watchers = new.parent.iter().map(|(caller, _)| *caller).collect();
        self.newest_ms = self.newest_ms.max(time_ms);
        self.index.add_run(no, new.kind);
        let run = self.place(Run {
            no,
            id: new.id.into(),
            kind: new.kind.into(),
            version: new.version,
            key_root: new.key_root,
            created_ms: time_ms,
            order_ms: self.newest_ms,
            attributes: Box::default(),
            started_ms: time_ms,
            deadline_ms: new.deadline_ms,
            parent: new.parent,
            last: Lsn::NONE,
            journal: super::journal::Journal::default(),
            given: None,
            updates: None,
            calls: None,
            state: RunState::Open(Box::new(OpenRun { watchers, ..OpenRun::default() })),
            saved: super::checkpoint::Saved::default(),
        });
        self.by_id.insert(new.id.into(), run);
        self.next_no = no.0 + 1;
        self.open_count += 1;
        self.metrics.runs_started += 1;
        if let Some(deadline_ms) = new.deadline_ms {
            self.timers.set(deadline_ms, run, Seq(0));
        }
        run
    }

    fn step_done(&mut self, run: RunIx, seq: Seq) {
        self.metrics.steps_done += 1;
        let Some(open) = self.open_mut(run) else { return };
        open.paused.remove(&seq);
        if let Some(step) = open.ops.step_mut(seq) {
            step.phase = StepPhase::Settled;
            self.timers.unwatch(run, seq);
        }
    }

    fn step_failed(&mut self, run: RunIx, seq: Seq, attempt: u32, retry: Retry, lsn: Lsn) {
        self.metrics.attempts_failed += 1;
        let Some(open) = self.open_mut(run) else { return };
        match retry {
            Retry::At(_) => open.paused.remove(&seq),
            Retry::Paused => open.paused.insert(seq),
        };
        let Some(step) = open.ops.step_mut(seq) else { return };
        step.attempt = attempt.saturating_add(1);
        step.is_started = false;
        step.gate = lsn;
        step.phase = match retry {
            Retry::At(at_ms) => StepPhase::Backoff(at_ms),
            Retry::Paused => StepPhase::Paused,
        };
        self.timers.unwatch(run, seq);
        if let Retry::At(at_ms) = retry {
            self.timers.set(at_ms, run, seq);
        }
    }

    /// Paused steps of a live run are as good as new: [`Shard::resume`] begins them. A run whose code is in a replay, or
    /// not in memory, meets the record on its way.
    fn unpause(&mut self, run: RunIx) {
        let target = self.run_mut(run);
        let end = target.journal.end();
        let Some(open) = target.open_mut() else { return };
        open.paused.clear();
        open.is_held = false;
        if let Some(replay) = &mut open.replay {
            replay.end = end;
            return;
        }
        open.ops.renew_paused();
    }

    fn end(&mut self, run: RunIx, end: End, effects: &mut Option<&mut Vec<Effect>>) {
        let (lsn, status) = (end.lsn, end.status);
        let deadline_ms = self.run(run).deadline_ms;
        let RunState::Open(open) = std::mem::replace(&mut self.run_mut(run).state, RunState::Ended(end)) else {
            unreachable!("a run ends once: every caller looks first");
        };
        self.open_count -= 1;
        self.index.end_run(self.runs[run.0 as usize].no, status);
        if status == Status::Completed {
            self.metrics.runs_completed += 1;
        } else {
            self.metrics.runs_ended_otherwise += 1;
        }
        if let Some(deadline_ms) = deadline_ms {
            self.timers.unset(deadline_ms, run, Seq(0));
        }
        if let Some(due_ms) = open.next_try_ms {
            self.timers.unset(due_ms, run, super::stuck::NEXT_TRY);
        }
        for (seq, op) in open.ops.iter() {
            self.disarm(run, seq, op);
        }
        for caller in &open.watchers {
            let payload = self.run(run).end().map(|end| end.payload.clone()).unwrap_or_default();
            self.answer(*caller, lsn, status, payload, effects);
        }
        self.lose_calls(run, lsn, effects);
        self.close_dependents(lsn, &open.children, &open.orders, effects);
        if let Some(ticket) = &open.ticket {
            let caller = Caller { shard: self.id, run: ticket.run, seq: Seq(0) };
            self.post(ShardId::SCHEDULER, lsn, Body::RunOver { caller, outcome: outcome_of(status) }, effects);
        }
        if !self.has_store {
            self.keep_journal(run);
        }
        let was_loaded = !matches!(open.code, Code::Absent);
        push(effects, Effect::Ended { run, was_loaded });
    }

    /// What is not to outlive whoever asked for it.
    pub(super) fn close_dependents(
        &mut self,
        lsn: Lsn,
        children: &[Child],
        orders: &[Caller],
        effects: &mut Option<&mut Vec<Effect>>,
    ) {
        for child in children.iter().filter(|child| child.close != ParentClose::Abandon) {
            let body = Body::Close { id: child.id.clone(), caller: child.caller, policy: child.close };
            self.post(child.shard, lsn, body, effects);
        }
        for caller in orders.iter().copied() {
            self.post(ShardId::SCHEDULER, lsn, Body::CancelOrder { caller }, effects);
        }
    }

    /// Takes an operation's timers back.
    pub(super) fn disarm(&mut self, run: RunIx, seq: Seq, op: &Op) {
        match op {
            Op::Step(step) => {
                self.timers.unwatch(run, seq);
                if let StepPhase::Backoff(at_ms) = step.phase {
                    self.timers.unset(at_ms, run, seq);
                }
            }
            Op::Timer { .. } | Op::Wait { .. } | Op::Condition { .. } | Op::Child => {
                if let Some(due_ms) = op.due_ms() {
                    self.timers.unset(due_ms, run, seq);
                }
            }
        }
    }

    /// Keeps the newest journals of ended runs within their bound.
    pub(super) fn keep_journal(&mut self, run: RunIx) {
        self.note_ended(run);
        while self.ended_journal_bytes > ENDED_JOURNAL_BYTES_MAX {
            let Some(oldest) = self.next_ended() else { break };
            if let Some(run) = self.run_of(oldest) {
                self.run_mut(run).journal = Journal::default();
            }
        }
    }

    pub(super) fn answer(
        &mut self,
        caller: Caller,
        lsn: Lsn,
        status: Status,
        payload: Box<[u8]>,
        effects: &mut Option<&mut Vec<Effect>>,
    ) {
        self.post(caller.shard, lsn, Body::Ended { run: caller.run, seq: caller.seq, status, payload }, effects);
    }

    pub(super) fn post(&mut self, to: ShardId, lsn: Lsn, body: Body, effects: &mut Option<&mut Vec<Effect>>) {
        self.metrics.messages_sent += 1;
        let message = self.outbox.post(self.id, to, lsn, body);
        push(effects, Effect::Post(message));
    }

    fn wake(&mut self, run: RunIx, effects: &mut Option<&mut Vec<Effect>>) {
        if self.run(run).open().is_some_and(OpenRun::is_waiting) {
            push(effects, Effect::Wake(run));
        }
    }
}

pub(super) fn push(effects: &mut Option<&mut Vec<Effect>>, effect: Effect) {
    if let Some(effects) = effects {
        effects.push(effect);
    }
}

/// Whether the walk of live code goes past a record without a look: what it says was done when it was applied.
fn is_passed(record: &Record<'_>) -> bool {
    match record {
        Record::StepFailed { .. }
        | Record::StepStarted { .. }
        | Record::TimerSet { .. }
        | Record::WaitSet { .. }
        | Record::ConditionSet { .. }
        | Record::ChildSet { .. }
        | Record::SendSet { .. }
        | Record::TaskSet { .. }
        | Record::Heartbeat { .. }
        | Record::Resumed { .. }
        | Record::UpdateDone { .. }
        | Record::CallDone { .. }
        | Record::Patched { .. }
        | Record::Paused { .. }
        | Record::Attributes { .. }
        | Record::Activated { .. }
        | Record::Branched { .. }
        | Record::Watched { .. } => true,
        Record::Start { .. }
        | Record::StepDone { .. }
        | Record::TimerFired { .. }
        | Record::Signal { .. }
        | Record::ChildDone { .. }
        | Record::Cancel { .. }
        | Record::Done { .. }
        | Record::Answered { .. }
        | Record::Received { .. }
        | Record::Update { .. }
        | Record::Called { .. }
        | Record::SignalledStart { .. }
        | Record::AttributedStart { .. }
        | Record::Queued { .. }
        | Record::Continued { .. }
        | Record::Forked { .. }
        | Record::Reset { .. } => false,
    }
}

fn is_scheduler(origin: Origin) -> bool {
    origin.from == ShardId::SCHEDULER
}

fn known(run: Option<RunIx>) -> RunIx {
    run.expect("the caller found the run of the record")
}
