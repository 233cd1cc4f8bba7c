//! Runs that start when the task scheduler lets them: they exist and wait, are let in, and say when they are over.
//!
//! The shard is the authority over such a run from the first record on: whoever ends it ends it here, and the task that
//! stands for it follows. Of cancel and start one comes first in the shard's records.

use super::commands::{Along, Refusal, StartCommand, Started};
use super::messages::{Body, OwnedLaunch};
use super::run::{Given, Run, RunIx};
use super::shard::{Effect, Shard, Work};
use crate::record::{
    Caller, Class, DecodeError, IdConflict, IdReuse, NewRun, Origin, Outcome, Reader, Record, RunNo, Seq, ShardId,
    Status, TaskNo, TaskRole, TaskSpec, Writer, decode_order, encode_failure,
};
use std::sync::Arc;

/// How a run is put before the scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Enqueued<'a> {
    /// What [`crate::record::encode_order`] wrote: a task without an input, which stands for the run.
    pub order: &'a [u8],
    /// Longest life, from the time at which it may start.
    pub timeout_ms: Option<i64>,
}

/// The task that stands for a run.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    /// The run that it was made for: the first of those that took each other's place.
    pub(crate) run: RunNo,
    pub(crate) timeout_ms: Option<i64>,
    /// What tasks that the run waits for have from it: they are as urgent as it is, and take its tenant's share.
    class: Class,
    tenant: Option<Box<str>>,
    deadline_ms: Option<i64>,
}

impl Shard {
    /// Makes a run that waits until the scheduler lets it start, or finds the one that stands for it.
    pub fn enqueue(
        &mut self,
        work: &mut Work<'_>,
        command: StartCommand<'_>,
        enqueued: Enqueued<'_>,
    ) -> Result<Started, Refusal> {
        self.start_along(work, command, Along::Order(enqueued), None)
    }

    /// The scheduler asks for a run that waits until it lets it start. An id has one such run, as long as that is remembered.
    pub(super) fn launch(
        &mut self,
        work: &mut Work<'_>,
        task: TaskNo,
        run: &OwnedLaunch,
        order: &[u8],
        origin: Origin,
    ) {
        let new = NewRun {
            id: &run.id,
            kind: &run.kind,
            version: run.version,
            key_root: run.key_root,
            deadline_ms: None,
            parent: None,
            input: &run.input,
            actor: None,
        };
        let command = StartCommand { new, attributes: b"", reuse: IdReuse::Reject, conflict: IdConflict::Fail };
        let enqueued = Enqueued { order, timeout_ms: run.timeout_ms };
        if let Err(refusal) = self.start_along(work, command, Along::Launch(enqueued, task, origin), None) {
            self.answered(work, stands_as(task), Status::Refused, &refusal.to_string(), origin);
        }
    }

    /// Whether the run waits until the scheduler lets it start.
    #[must_use]
    pub fn is_queued(&self, run: RunIx) -> bool {
        self.run(run).open().is_some_and(|open| open.is_queued)
    }

    /// The operation under which the scheduler knows the run, while it stands for it.
    #[must_use]
    pub fn ticket(&self, run: RunIx) -> Option<Caller> {
        let ticket = self.run(run).open()?.ticket.as_ref()?;
        Some(Caller { shard: self.id, run: ticket.run, seq: Seq(0) })
    }

    /// Somebody asks a run to end that has not started: it is over. `false`: it has.
    pub(super) fn cancel_queued(
        &mut self,
        work: &mut Work<'_>,
        run: RunIx,
        reason: &str,
        actor: Option<&str>,
        origin: Option<Origin>,
    ) -> bool {
        if !self.is_queued(run) {
            return false;
        }
        let failure = cancelled(&self.run(run).id, reason);
        self.done(work, run, Status::Cancelled, failure.as_bytes(), actor, origin);
        true
    }

    /// The scheduler has taken the run in.
    pub(super) fn admitted(&mut self, work: &mut Work<'_>, run: RunNo, origin: Origin) {
        self.received(work, origin);
        if let Some(run) = self.run_of(run) {
            work.effects.push(Effect::Admitted { run, refusal: None });
        }
    }

    /// The scheduler lets the run start.
    pub(super) fn activate(&mut self, work: &mut Work<'_>, run: RunNo, origin: Origin) {
        match self.run_of(run).filter(|index| self.is_queued(*index)) {
            Some(index) => {
                self.commit(work, Some(index), &Record::Activated { run, time_ms: work.now_ms, origin });
            }
            // It was ended meanwhile, and the scheduler is told so.
            None => self.received(work, origin),
        }
    }

    /// The task that stands for the run is over, or cannot be, before the run has started. `payload` is why, as text, of a
    /// refusal its lines.
    pub(super) fn never_let_in(
        &mut self,
        work: &mut Work<'_>,
        run: RunNo,
        status: Status,
        payload: &[u8],
        origin: Origin,
    ) {
        let Some(index) = self.run_of(run).filter(|index| self.is_queued(*index)) else {
            return self.received(work, origin);
        };
        let text = String::from_utf8_lossy(payload);
        match status {
            Status::Cancelled => {
                let failure = cancelled(&self.run(index).id, &text);
                self.done(work, index, status, failure.as_bytes(), None, Some(origin));
            }
            Status::Refused => {
                let why = text.split('\n').nth(1).unwrap_or_default();
                let message = format!("workflow \"{}\" could not be enqueued: {why}", self.run(index).id);
                let failure = encode_failure("NonRetryableError", "NON_RETRYABLE", &message);
                // Before its end: whoever enqueued it is to hear of this, and not that it is there.
                work.effects.push(Effect::Admitted { run: index, refusal: Some(payload.into()) });
                self.done(work, index, Status::Failed, failure.as_bytes(), None, Some(origin));
            }
            Status::Failed => {
                let message = format!("workflow \"{}\" was never let in: {text}", self.run(index).id);
                let failure = encode_failure("NonRetryableError", "NON_RETRYABLE", &message);
                self.done(work, index, status, failure.as_bytes(), None, Some(origin));
            }
            _ => {
                self.done(work, index, status, payload, None, Some(origin));
            }
        }
    }

    /// What a record that makes such a run does to the state, besides its start. `task` stands for it already, if there is
    /// one.
    pub(super) fn apply_queued(
        &mut self,
        run: RunIx,
        lsn: crate::record::Lsn,
        enqueued: Enqueued<'_>,
        task: Option<TaskNo>,
        effects: &mut Option<&mut Vec<Effect>>,
    ) {
        let no = self.run(run).no;
        let watchers = self.run(run).open().map(|open| open.watchers.clone()).unwrap_or_default();
        self.give(run, Given { watchers, ticket: Some(Arc::new(Ticket::of(no, enqueued))) });
        let caller = Caller { shard: self.id, run: no, seq: Seq(0) };
        let body = match task {
            Some(task) => Body::Made { task, caller },
            None => Body::Order { caller, role: TaskRole::Run, order: enqueued.order.into() },
        };
        self.post(ShardId::SCHEDULER, lsn, body, effects);
    }

    /// The run may start: its time begins.
    pub(super) fn apply_activated(&mut self, run: RunIx, time_ms: i64, effects: &mut Option<&mut Vec<Effect>>) {
        let target = self.run_mut(run);
        target.started_ms = time_ms;
        let Some(open) = target.open_mut().filter(|open| open.is_queued) else { return };
        open.is_queued = false;
        if let Some(timeout_ms) = open.ticket.as_ref().and_then(|ticket| ticket.timeout_ms) {
            let deadline_ms = time_ms.saturating_add(timeout_ms);
            target.deadline_ms = Some(deadline_ms);
            self.timers.set(deadline_ms, run, Seq(0));
        }
        super::apply::push(effects, Effect::Load(run));
    }
}

/// Who waits for the answer to what the scheduler asked for a task.
pub(super) fn stands_as(task: TaskNo) -> Caller {
    Caller { shard: ShardId::SCHEDULER, run: RunNo(task.0), seq: Seq(0) }
}

impl Ticket {
    fn of(run: RunNo, Enqueued { order, timeout_ms }: Enqueued<'_>) -> Ticket {
        // One that cannot be read is refused by the scheduler.
        let spec = decode_order(order).ok().map(|(_, spec)| spec);
        Ticket {
            run,
            timeout_ms,
            class: spec.as_ref().map_or(Class::Normal, |spec| spec.class),
            tenant: spec.as_ref().and_then(|spec| spec.tenant).map(Box::from),
            deadline_ms: spec.and_then(|spec| spec.deadline_ms),
        }
    }
}

/// As checkpoints have it.
impl Ticket {
    pub(super) fn encode(&self, out: &mut Writer<'_>) {
        out.number(self.run.0);
        out.option(self.timeout_ms, Writer::signed);
        out.byte(self.class.code());
        out.option(self.tenant.as_deref(), Writer::text);
        out.option(self.deadline_ms, Writer::signed);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Ticket, DecodeError> {
        Ok(Ticket {
            run: RunNo(reader.number()?),
            timeout_ms: reader.option(Reader::signed)?,
            class: super::message_codec::read_code(reader, Class::from_code)?,
            tenant: reader.option(Reader::text)?.map(Box::from),
            deadline_ms: reader.option(Reader::signed)?,
        })
    }
}

impl Run {
    /// A task that the run waits for is as urgent as the run is, and takes the same share of a queue, unless it says
    /// otherwise. `inherits_class`: it does not.
    pub(super) fn lend<'a>(&'a self, spec: &TaskSpec<'a>, inherits_class: bool) -> TaskSpec<'a> {
        let mut lent = spec.clone();
        let ticket = self.open().and_then(|open| open.ticket.as_ref());
        let deadline_ms = self.deadline_ms.into_iter().chain(ticket.and_then(|ticket| ticket.deadline_ms)).min();
        lent.deadline_ms = lent.deadline_ms.or(deadline_ms);
        if let Some(ticket) = ticket {
            lent.tenant = lent.tenant.or(ticket.tenant.as_deref());
            if inherits_class {
                lent.class = ticket.class;
            }
        }
        lent
    }
}

fn cancelled(id: &str, reason: &str) -> String {
    let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    encode_failure("CancelledError", "CANCELLED", &format!("workflow {id} was cancelled before it started{why}"))
}

/// The end of a run, as the scheduler counts ends.
pub(super) fn outcome_of(status: Status) -> Outcome {
    match status {
        Status::Completed => Outcome::Completed,
        Status::Failed | Status::NotFound | Status::Refused | Status::ContinuedAsNew => Outcome::Failed,
        Status::Cancelled | Status::Terminated => Outcome::Cancelled,
        Status::TimedOut => Outcome::Dead,
        Status::Skipped => Outcome::Skipped,
        Status::Missed => Outcome::Missed,
        Status::Expired => Outcome::Expired,
        Status::Shed => Outcome::Shed,
    }
}
