//! What clients and other shards ask of a shard, and what falls due in it.

use super::admission::Enqueued;
use super::calls::OBJECT_PREFIX;
use super::limits::check_actor;
use super::messages::{Body, Message};
use super::ops::{Op, StepPhase};
use super::run::RunIx;
use super::shard::{Effect, Shard, Work};
use super::stuck::NEXT_TRY;
use crate::record::{
    CallSpec, Caller, IdConflict, IdReuse, Lsn, NewRun, NewSignal, Origin, ParentClose, Record, RunNo, Seq, Status,
    TaskNo,
};
use std::fmt;

/// Signals that may wait in one run for somebody to take them.
const BUFFERED_SIGNALS_MAX: usize = 10_000;

/// Due timers handled in one go, so that a mass wake does not hold the shard for long.
const DUE_BATCH_MAX: usize = 1_024;

/// What a start is recorded with.
#[derive(Clone, Copy, Debug)]
pub(super) enum Along<'a> {
    Nothing,
    Signal(NewSignal<'a>),
    /// The run waits until the scheduler lets it start.
    Order(Enqueued<'a>),
    /// The same of one that the scheduler asked for by this message: the task stands for it already.
    Launch(Enqueued<'a>, TaskNo, Origin),
}

/// A start, before the id policies have looked at it.
#[derive(Clone, Copy, Debug)]
pub struct StartCommand<'a> {
    /// What the run will be.
    pub new: NewRun<'a>,
    /// Its first search attributes, in their writing; empty: none.
    pub attributes: &'a [u8],
    /// For an id that has been used.
    pub reuse: IdReuse,
    /// For an id that is in use.
    pub conflict: IdConflict,
}

/// The answer to a start: the run, and whether it was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// The run that has the id.
    pub run: RunIx,
    /// It was there before.
    pub is_existing: bool,
}

/// Which run is meant: the latest one under an id, or a certain one of them.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The workflow id.
    pub id: &'a str,
    /// One run of it.
    pub run: Option<RunNo>,
}

/// Why a command is refused. Nothing was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such run.
    NotFound(String),
    /// The run has ended, and how.
    Ended(String, Status),
    /// The id policies say no.
    AlreadyStarted(String),
    /// A bound is reached; what, and how large it is.
    Busy(String),
    /// Something that was given cannot be recorded; what, and with which numbers.
    BadInput(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotFound(text) | Refusal::AlreadyStarted(text) | Refusal::Busy(text) | Refusal::BadInput(text) => {
                formatter.write_str(text)
            }
            Refusal::Ended(id, status) => {
                write!(formatter, "workflow \"{id}\" has ended ({}) and takes nothing any more", word(*status))
            }
        }
    }
}

pub(super) fn word(status: Status) -> &'static str {
    match status {
        Status::Completed => "completed",
        Status::Failed => "failed",
        Status::Cancelled => "cancelled",
        Status::Terminated => "terminated",
        Status::TimedOut => "timedOut",
        Status::NotFound => "not found",
        Status::Refused => "refused",
        Status::ContinuedAsNew => "continuedAsNew",
        Status::Skipped => "skipped",
        Status::Missed => "missed",
        Status::Expired => "expired",
        Status::Shed => "shed",
    }
}

impl Shard {
    /// Starts a run, or finds the one that stands for it. Its end is reported to `new.parent`, if there is one.
    pub fn start(&mut self, work: &mut Work<'_>, command: StartCommand<'_>) -> Result<Started, Refusal> {
        self.start_along(work, command, Along::Nothing, None)
    }

    /// Starts a run with a signal to it, in one record; or signals the run that stands for it.
    pub fn start_signalled(
        &mut self,
        work: &mut Work<'_>,
        command: StartCommand<'_>,
        signal: NewSignal<'_>,
    ) -> Result<Started, Refusal> {
        let NewSignal { name, payload, dedupe } = signal;
        self.limits.check_signalled_start(&command.new, &signal).map_err(Refusal::BadInput)?;
        let started = self.start_along(work, command, Along::Signal(signal), None)?;
        if started.is_existing {
            let target = Target { id: command.new.id, run: None };
            self.signal(work, target, name, payload, dedupe, command.new.actor)?;
        }
        Ok(started)
    }

    pub(super) fn start_along(
        &mut self,
        work: &mut Work<'_>,
        command: StartCommand<'_>,
        along: Along<'_>,
        origin: Option<Origin>,
    ) -> Result<Started, Refusal> {
        let StartCommand { new, attributes, reuse, conflict } = command;
        if new.id.starts_with(OBJECT_PREFIX) {
            let id = new.id;
            return Err(Refusal::BadInput(format!(
                "the id \"{id}\" begins with \"{OBJECT_PREFIX}\", as those of objects do: give the workflow another one"
            )));
        }
        self.limits.check_start(&new).map_err(Refusal::BadInput)?;
        let signal = if let Along::Signal(signal) = &along { Some(signal) } else { None };
        self.limits.check_attributed(&new, attributes, signal).map_err(Refusal::BadInput)?;
        if let Some(existing) = self.latest_of(new.id) {
            let is_open = self.run(existing).open().is_some();
            if is_open {
                match conflict {
                    IdConflict::UseExisting => return Ok(Started { run: existing, is_existing: true }),
                    IdConflict::SameInput if self.has_input(existing, &new) => {
                        return Ok(Started { run: existing, is_existing: true });
                    }
                    IdConflict::SameInput => {
                        return Err(Refusal::AlreadyStarted(format!(
                            "workflow \"{}\" is running with another input; give another id, or an idConflictPolicy",
                            new.id
                        )));
                    }
                    IdConflict::Fail => {
                        return Err(Refusal::AlreadyStarted(format!("workflow \"{}\" is running", new.id)));
                    }
                    IdConflict::TerminateExisting if reuse == IdReuse::Reject => {
                        // Else a crash between the two records would leave neither the old run nor the new one.
                        return Err(Refusal::AlreadyStarted(format!(
                            "workflow \"{}\" is running and its idReusePolicy refuses another run",
                            new.id
                        )));
                    }
                    IdConflict::TerminateExisting => {
                        let reason = b"replaced by a new run";
                        self.done(work, existing, Status::Terminated, reason, new.actor, None);
                    }
                }
            } else {
                self.may_reuse(existing, &new, reuse)?;
            }
        }
        let (run, time_ms) = (self.next_run_no(), work.now_ms);
        let record = match along {
            Along::Nothing if attributes.is_empty() => Record::Start { run, time_ms, new, origin },
            Along::Signal(signal) if attributes.is_empty() => Record::SignalledStart { run, time_ms, new, signal },
            Along::Nothing => Record::AttributedStart { run, time_ms, new, set: attributes, signal: None },
            Along::Signal(signal) => {
                Record::AttributedStart { run, time_ms, new, set: attributes, signal: Some(signal) }
            }
            Along::Order(Enqueued { order, timeout_ms }) => {
                Record::Queued { run, time_ms, new, timeout_ms, order, task: None }
            }
            Along::Launch(Enqueued { order, timeout_ms }, task, origin) => {
                Record::Queued { run, time_ms, new, timeout_ms, order, task: Some((task, origin)) }
            }
        };
        self.commit(work, None, &record);
        let run = self.latest_of(new.id).expect("the start that was just applied made it");
        Ok(Started { run, is_existing: false })
    }

    fn may_reuse(&self, existing: RunIx, new: &NewRun<'_>, reuse: IdReuse) -> Result<(), Refusal> {
        let status = self.run(existing).end().map(|end| end.status);
        let allowed = match reuse {
            IdReuse::Allow => true,
            IdReuse::AllowFailedOnly => status != Some(Status::Completed),
            IdReuse::Reject => false,
        };
        if allowed {
            return Ok(());
        }
        Err(Refusal::AlreadyStarted(format!(
            "workflow \"{}\" has already run ({}) and its idReusePolicy refuses another run",
            new.id,
            status.map_or("ended", word)
        )))
    }

    fn has_input(&self, run: RunIx, new: &NewRun<'_>) -> bool {
        let run = self.run(run);
        *run.kind == *new.kind
            && matches!(run.journal.read(0).0.record, Record::Start { new: old, .. } if old.input == new.input)
    }

    /// Sends a signal. A second one with the same `dedupe` text is taken as the first one again.
    pub fn signal(
        &mut self,
        work: &mut Work<'_>,
        target: Target<'_>,
        name: &str,
        payload: &[u8],
        dedupe: Option<&str>,
        actor: Option<&str>,
    ) -> Result<(), Refusal> {
        self.limits.check_signal(name, payload, dedupe, actor).map_err(Refusal::BadInput)?;
        let run = self.live(target)?;
        let open = self.open_mut(run).expect("live runs are open");
        if dedupe.is_some_and(|dedupe| open.dedupe.contains(dedupe)) {
            return Ok(());
        }
        if open.untaken >= BUFFERED_SIGNALS_MAX {
            return Err(Refusal::Busy(format!(
                "workflow \"{}\" has {BUFFERED_SIGNALS_MAX} signals that it has not taken",
                target.id
            )));
        }
        let no = self.run(run).no;
        let record = Record::Signal { run: no, time_ms: work.now_ms, name, payload, dedupe, actor, origin: None };
        self.commit(work, Some(run), &record);
        Ok(())
    }

    /// Asks a run to end. No-op if it has ended or was asked before.
    pub fn cancel(
        &mut self,
        work: &mut Work<'_>,
        target: Target<'_>,
        reason: &str,
        actor: Option<&str>,
    ) -> Result<(), Refusal> {
        check_actor(actor).map_err(Refusal::BadInput)?;
        self.limits.check_payload("the reason", reason.as_bytes()).map_err(Refusal::BadInput)?;
        let run = self.find_last(target)?;
        self.cancel_from(work, run, reason, actor, None);
        Ok(())
    }

    fn cancel_from(
        &mut self,
        work: &mut Work<'_>,
        run: RunIx,
        reason: &str,
        actor: Option<&str>,
        origin: Option<Origin>,
    ) -> bool {
        if self.run(run).open().is_none_or(|open| open.is_cancelled) || self.is_idle_object(run) {
            return false;
        }
        if self.cancel_queued(work, run, reason, actor, origin) {
            return true;
        }
        let record = Record::Cancel { run: self.run(run).no, time_ms: work.now_ms, reason, actor, origin };
        self.commit(work, Some(run), &record);
        true
    }

    /// Ends a run at once. `payload` is the reason, as text. No-op if it has ended.
    pub fn terminate(
        &mut self,
        work: &mut Work<'_>,
        target: Target<'_>,
        payload: &[u8],
        actor: Option<&str>,
    ) -> Result<(), Refusal> {
        check_actor(actor).map_err(Refusal::BadInput)?;
        self.limits.check_payload("the reason", payload).map_err(Refusal::BadInput)?;
        let run = self.find_last(target)?;
        if self.run(run).open().is_some() {
            self.done(work, run, Status::Terminated, payload, actor, None);
        }
        Ok(())
    }

    /// Ends a pause; tries a stuck run again from its first record. No-op if it is neither.
    pub fn resume(&mut self, work: &mut Work<'_>, target: Target<'_>, actor: Option<&str>) -> Result<(), Refusal> {
        check_actor(actor).map_err(Refusal::BadInput)?;
        let run = self.live(target)?;
        let open = self.open_mut(run).expect("live runs are open");
        let (is_stuck, is_held) = (open.is_stuck(), open.is_held);
        if !is_stuck && !is_held && open.paused.is_empty() {
            return Ok(());
        }
        let record = Record::Resumed { run: self.run(run).no, time_ms: work.now_ms, actor };
        self.commit(work, Some(run), &record);
        if self.run(run).open().is_none() {
            return Ok(());
        }
        if is_held {
            work.effects.push(Effect::Load(run));
        } else if is_stuck {
            self.try_again(work, run);
        } else {
            self.begin_resumed(work, run);
        }
        Ok(())
    }

    fn begin_resumed(&mut self, work: &mut Work<'_>, run: RunIx) {
        let open = self.open_mut(run).expect("only open runs are resumed");
        if open.is_replaying() {
            return;
        }
        let is_resumed = |op: &Op| matches!(op, Op::Step(step) if step.phase == StepPhase::Replayed);
        let resumed: Vec<Seq> = open.ops.iter().filter(|(_, op)| is_resumed(op)).map(|(seq, _)| seq).collect();
        for seq in resumed {
            self.begin_attempt(work, run, seq);
        }
    }

    /// Applies a message, or knows it again. The sender may forget it once the shard's newest record is durable.
    /// `false`: an earlier one is missing; it must be sent again in its turn.
    pub fn handle_message(&mut self, work: &mut Work<'_>, message: &Message) -> bool {
        let applied = self.applied_from(message.from);
        if message.number <= applied {
            return true;
        }
        if message.number != applied + 1 {
            return false;
        }
        let origin = Origin { from: message.from, number: message.number };
        if let Err(why) = self.limits.check_body(&message.body) {
            self.refuse_message(work, &message.body, origin, &why);
            return true;
        }
        match &*message.body {
            Body::Start { caller, child } => {
                let new = NewRun {
                    id: &child.id,
                    kind: &child.kind,
                    version: child.version,
                    key_root: child.key_root,
                    deadline_ms: child.timeout_ms.map(|timeout_ms| work.now_ms.saturating_add(timeout_ms)),
                    parent: Some((*caller, child.parent_close)),
                    input: &child.input,
                    actor: None,
                };
                let command = StartCommand { new, attributes: b"", reuse: child.reuse, conflict: child.conflict };
                self.start_child(work, command, *caller, origin);
            }
            Body::Signal { id, target, name, payload } => {
                match self.live(Target { id, run: *target }) {
                    Ok(run) => {
                        let no = self.run(run).no;
                        let record = Record::Signal {
                            run: no,
                            time_ms: work.now_ms,
                            name,
                            payload,
                            dedupe: None,
                            actor: None,
                            origin: Some(origin),
                        };
                        self.commit(work, Some(run), &record);
                    }
                    Err(_) => self.received(work, origin),
                };
            }
            Body::Call { id, kind, key_root, name, payload, caller } => {
                let spec = CallSpec { kind, key_root: *key_root, name, payload };
                self.called_by_run(work, id, &spec, *caller, origin);
            }
            Body::Cancel { id, target, reason } => {
                let run = self.find_last(Target { id, run: *target }).ok();
                if !run.is_some_and(|run| self.cancel_from(work, run, reason, None, Some(origin))) {
                    self.received(work, origin);
                }
            }
            Body::Close { id, caller, policy } => self.close_child(work, id, *caller, *policy, origin),
            Body::Watch { id, target, caller } => match self.find_last(Target { id, run: *target }) {
                Ok(run) => {
                    let record = Record::Watched { run: self.run(run).no, caller: *caller, origin };
                    self.commit(work, Some(run), &record);
                }
                Err(refusal) => self.answered(work, *caller, Status::NotFound, &refusal.to_string(), origin),
            },
            Body::Ended { run, seq, status, payload } => self.child_ended(work, *run, *seq, *status, payload, origin),
            Body::Launch { task, run, order } => self.launch(work, *task, run, order, origin),
            Body::Admitted { run } => self.admitted(work, *run, origin),
            Body::Activate { run } => self.activate(work, *run, origin),
            Body::NeverLetIn { run, status, payload } => self.never_let_in(work, *run, *status, payload, origin),
            Body::Order { .. }
            | Body::CancelOrder { .. }
            | Body::CancelTask { .. }
            | Body::WatchTask { .. }
            | Body::Made { .. }
            | Body::RunOver { .. } => {
                debug_assert!(false, "it is for the scheduler");
                self.received(work, origin);
            }
        }
        true
    }

    fn start_child(&mut self, work: &mut Work<'_>, command: StartCommand<'_>, caller: Caller, origin: Origin) {
        match self.start_along(work, command, Along::Nothing, Some(origin)) {
            Ok(Started { is_existing: false, .. }) => {}
            Ok(Started { run, is_existing: true }) => {
                let record = Record::Watched { run: self.run(run).no, caller, origin };
                self.commit(work, Some(run), &record);
            }
            Err(refusal) => self.answered(work, caller, Status::Refused, &refusal.to_string(), origin),
        }
    }

    /// The parent has ended: only the run that it started itself is its child, not a later one under the same id.
    fn close_child(&mut self, work: &mut Work<'_>, id: &str, caller: Caller, policy: ParentClose, origin: Origin) {
        let is_child = |parent: Option<(Caller, ParentClose)>| parent.is_some_and(|(parent, _)| parent == caller);
        let child = self.latest_of(id).filter(|run| self.run(*run).open().is_some() && is_child(self.run(*run).parent));
        match (child, policy) {
            (Some(run), ParentClose::Terminate) => {
                self.done(work, run, Status::Terminated, b"its parent ended", None, Some(origin));
            }
            (Some(run), ParentClose::Cancel) => {
                if !self.cancel_from(work, run, "its parent ended", None, Some(origin)) {
                    self.received(work, origin);
                }
            }
            (None, _) | (_, ParentClose::Abandon) => self.received(work, origin),
        }
    }

    pub(super) fn received(&mut self, work: &mut Work<'_>, origin: Origin) {
        self.commit(work, None, &Record::Received { origin });
    }

    pub(super) fn answered(&mut self, work: &mut Work<'_>, caller: Caller, status: Status, text: &str, origin: Origin) {
        let record = Record::Answered { caller, status, payload: text.as_bytes(), origin };
        self.commit(work, None, &record);
    }

    /// Does what has fallen due, a bounded part of it: look at [`Shard::next_due_ms`] again afterwards.
    pub fn handle_due(&mut self, work: &mut Work<'_>) {
        for _ in 0..DUE_BATCH_MAX {
            let Some((due_ms, run, seq)) = self.timers.pop_due(work.now_ms) else { return };
            self.due(work, due_ms, run, seq);
        }
    }

    fn due(&mut self, work: &mut Work<'_>, due_ms: i64, run: RunIx, seq: Seq) {
        let now_ms = work.now_ms.max(due_ms);
        let no = self.run(run).no;
        let Some(open) = self.open_mut(run) else { return };
        if seq == Seq(0) {
            self.done(work, run, Status::TimedOut, b"", None, None);
            return;
        }
        if seq == NEXT_TRY {
            open.next_try_ms = None;
            self.try_again(work, run);
            return;
        }
        match open.ops.get(seq) {
            Some(Op::Step(step)) if step.phase == StepPhase::Backoff(due_ms) => self.begin_attempt(work, run, seq),
            Some(Op::Step(_)) => self.overdue(work, run, seq, now_ms),
            Some(Op::Timer { .. } | Op::Wait { .. } | Op::Condition { .. }) => {
                self.commit(work, Some(run), &Record::TimerFired { run: no, seq, time_ms: now_ms, actor: None });
            }
            Some(Op::Child) | None => {}
        }
    }

    fn overdue(&mut self, work: &mut Work<'_>, run: RunIx, seq: Seq, now_ms: i64) {
        if let Some(watch) = self.timers.watched(run, seq) {
            self.timers.unwatch(run, seq);
            let is_timeout = watch.is_timeout(now_ms);
            work.effects.push(Effect::Overdue { run, seq, lease: watch.lease, is_timeout });
        }
    }

    pub(crate) fn done(
        &mut self,
        work: &mut Work<'_>,
        run: RunIx,
        status: Status,
        payload: &[u8],
        actor: Option<&str>,
        origin: Option<Origin>,
    ) -> Lsn {
        let no = self.run(run).no;
        let record = Record::Done { run: no, time_ms: work.now_ms, status, payload, actor, origin };
        self.commit(work, Some(run), &record)
    }

    /// The run that is meant, ended or not.
    pub fn find(&self, target: Target<'_>) -> Result<RunIx, Refusal> {
        let found = match target.run {
            None => self.latest_of(target.id),
            Some(no) => self.run_of(no).filter(|run| *self.run(*run).id == *target.id),
        };
        found.ok_or_else(|| {
            Refusal::NotFound(match target.run {
                None => format!("there is no workflow \"{}\"", target.id),
                Some(no) => {
                    format!("there is no run {} of workflow \"{}\"", crate::record::run_id(self.id, no), target.id)
                }
            })
        })
    }

    /// The run that is meant, or the last one of those that took its place.
    pub fn find_last(&self, target: Target<'_>) -> Result<RunIx, Refusal> {
        self.find(target).map(|run| self.last_of_chain(run))
    }

    /// The same, if it has not ended.
    pub(super) fn live(&self, target: Target<'_>) -> Result<RunIx, Refusal> {
        let run = self.find_last(target)?;
        match self.run(run).end() {
            None => Ok(run),
            Some(end) => Err(Refusal::Ended(target.id.into(), end.status)),
        }
    }

    /// Forgets what the code of a run has done so far: no host has it any more. Nothing is recorded.
    pub fn unload(&mut self, run: RunIx) {
        let Some(open) = self.open_mut(run) else { return };
        let ops = std::mem::take(&mut open.ops);
        let next_try_ms = open.next_try_ms;
        *open = super::run::OpenRun {
            dedupe: std::mem::take(&mut open.dedupe),
            children: std::mem::take(&mut open.children),
            orders: std::mem::take(&mut open.orders),
            watchers: std::mem::take(&mut open.watchers),
            paused: std::mem::take(&mut open.paused),
            patches: std::mem::take(&mut open.patches),
            borders: std::mem::take(&mut open.borders),
            untaken: open.untaken,
            threads_lost: open.threads_lost,
            is_cancelled: open.is_cancelled,
            is_held: open.is_held,
            ticket: open.ticket.take(),
            is_queued: open.is_queued,
            tries: open.tries,
            // Bodies of the life before may still run somewhere.
            is_recovered: true,
            ..super::run::OpenRun::default()
        };
        for (seq, op) in ops.iter() {
            self.disarm(run, seq, op);
        }
        if let Some(due_ms) = next_try_ms {
            self.timers.unset(due_ms, run, NEXT_TRY);
        }
    }
}
