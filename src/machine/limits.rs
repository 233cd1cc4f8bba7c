//! How large is what may be recorded. Checked before a record is made: the log takes every record of a shard.

use super::messages::Body;
use super::run::RunIx;
use super::shard::{Shard, Work};
use crate::record::{
    Caller, ChildSpec, FIELDS_BYTES_MAX, NewRun, NewSignal, Origin, Record, Sending, Status, TEXT_BYTES_MAX,
};

/// Payloads that the engine makes itself are not longer, whatever the limit of the host's.
const OWN_PAYLOAD_BYTES_MAX: usize = FIELDS_BYTES_MAX / 2;

/// Bounds of what a shard records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest payload, in bytes. Default 4 MiB.
    pub payload_bytes_max: usize,
    /// Records in the journal of a run; at so many it fails. Default 50,000.
    pub journal_records_max: usize,
    /// Bytes in the journal of a run; at so many it fails. Default 50 MiB.
    pub journal_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { payload_bytes_max: 4 << 20, journal_records_max: 50_000, journal_bytes_max: 50 << 20 }
    }
}

impl Shard {
    /// Whether a payload may be recorded.
    #[must_use]
    pub fn fits(&self, payload: &[u8]) -> bool {
        payload.len() <= self.limits.payload_bytes_max
    }
}

impl Limits {
    /// Whether a payload may be recorded; if not, why, with the numbers and what to do.
    pub fn check_payload(&self, what: &str, payload: &[u8]) -> Result<(), String> {
        let (bytes, max) = (payload.len(), self.payload_bytes_max);
        if bytes <= max {
            return Ok(());
        }
        Err(format!("{what} takes {bytes} bytes; the limit is {max} bytes: keep it elsewhere and pass a reference"))
    }

    /// Whether everything that a start names and carries may be recorded.
    pub fn check_start(&self, new: &NewRun<'_>) -> Result<(), String> {
        check_text("an id", new.id)?;
        check_text("the type of a workflow", new.kind)?;
        check_actor(new.actor)?;
        self.check_payload("the input", new.input)
    }

    /// Whether everything about a signal may be recorded.
    pub fn check_signal(
        &self,
        name: &str,
        payload: &[u8],
        dedupe: Option<&str>,
        actor: Option<&str>,
    ) -> Result<(), String> {
        check_text("the name of a signal", name)?;
        dedupe.map_or(Ok(()), |dedupe| check_text("the dedupe id of a signal", dedupe))?;
        check_actor(actor)?;
        self.check_payload("the value of the signal", payload)
    }

    /// Whether a start and a signal may be recorded in one.
    pub fn check_signalled_start(&self, new: &NewRun<'_>, signal: &NewSignal<'_>) -> Result<(), String> {
        self.check_start(new)?;
        self.check_signal(signal.name, signal.payload, signal.dedupe, None)?;
        let (bytes, max) = (new.input.len() + signal.payload.len(), self.payload_bytes_max);
        if bytes <= max {
            return Ok(());
        }
        Err(format!(
            "the input and the value of the signal together take {bytes} bytes; the limit is {max} bytes: keep them \
             elsewhere and pass a reference, or start first and signal then"
        ))
    }

    /// Whether a start and search attributes, and a signal if there is one, may be recorded in one.
    pub(super) fn check_attributed(
        &self,
        new: &NewRun<'_>,
        attributes: &[u8],
        signal: Option<&NewSignal<'_>>,
    ) -> Result<(), String> {
        if attributes.is_empty() {
            return Ok(());
        }
        super::attributes::check_attributes_set(attributes)?;
        super::attributes::check_attributes_kept(&[], attributes)?;
        let bytes = new.input.len() + attributes.len() + signal.map_or(0, |signal| signal.payload.len());
        let max = self.payload_bytes_max;
        if bytes <= max {
            return Ok(());
        }
        Err(format!(
            "the input, the search attributes and the value of the signal together take {bytes} bytes; the limit is {max} \
             bytes: keep them elsewhere and pass a reference"
        ))
    }

    pub(super) fn check_child(&self, child: &ChildSpec<'_>) -> Result<(), String> {
        check_text("the id of a child", child.id)?;
        check_text("the type of a child", child.kind)?;
        self.check_payload("the input of a child", child.input)
    }

    pub(super) fn check_sending(&self, id: &str, what: Sending<'_>) -> Result<(), String> {
        check_text("the id of a workflow", id)?;
        match what {
            Sending::Signal(name, payload) => self.check_signal(name, payload, None, None),
            Sending::Call(call) => {
                check_text("the name of an object's definition", call.kind)?;
                check_text("the name of a handler", call.name)?;
                self.check_payload("the input of the call", call.payload)
            }
            Sending::Cancel(reason) | Sending::CancelTask(_, reason) => {
                self.check_payload("the reason of a cancel", reason.as_bytes())
            }
            Sending::Watch | Sending::CancelChild(_) | Sending::CancelOrder(_) | Sending::WatchTask(_) => Ok(()),
        }
    }

    /// A message from a process with other limits may say more than can be recorded here.
    pub(super) fn check_body(&self, body: &Body) -> Result<(), String> {
        match body {
            Body::Start { child, .. } => self.check_payload("the input", &child.input),
            Body::Launch { run, .. } => self.check_payload("the input", &run.input),
            Body::Signal { name, payload, .. } => self.check_signal(name, payload, None, None),
            Body::Call { payload, .. } => self.check_payload("the input of the call", payload),
            Body::Cancel { reason, .. } => self.check_payload("the reason of a cancel", reason.as_bytes()),
            // It may be a failure that an engine has made.
            Body::Ended { payload, .. } if payload.len() <= OWN_PAYLOAD_BYTES_MAX => Ok(()),
            Body::Ended { payload, .. } => self.check_payload("the result", payload),
            // They are texts that the scheduler has made.
            Body::NeverLetIn { .. }
            | Body::Admitted { .. }
            | Body::Activate { .. }
            | Body::Made { .. }
            | Body::RunOver { .. }
            | Body::Close { .. }
            | Body::Watch { .. }
            | Body::Order { .. }
            | Body::CancelOrder { .. }
            | Body::CancelTask { .. }
            | Body::WatchTask { .. } => Ok(()),
        }
    }
}

/// Whether a name, an id or a key may be recorded: 1 to 256 bytes without the characters that separate fields where
/// texts cross to the host.
pub fn check_text(what: &str, text: &str) -> Result<(), String> {
    if text.is_empty() || text.len() > TEXT_BYTES_MAX || text.bytes().any(|byte| byte < b' ') {
        return Err(format!(
            "{what} is 1 to {TEXT_BYTES_MAX} bytes of text without control characters, not {} bytes",
            text.len()
        ));
    }
    Ok(())
}

/// Whether the name of who asks may be recorded.
pub fn check_actor(actor: Option<&str>) -> Result<(), String> {
    actor.map_or(Ok(()), |actor| check_text("the name of an actor", actor))
}

impl Shard {
    /// Sets what may be recorded from now on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Answers a message that says more than can be recorded here.
    pub(super) fn refuse_message(&mut self, work: &mut Work<'_>, body: &Body, origin: Origin, why: &str) {
        match body {
            Body::Start { caller, .. } | Body::Call { caller, .. } => {
                self.answered(work, *caller, Status::Refused, why, origin);
            }
            Body::Launch { task, .. } => {
                self.answered(work, super::admission::stands_as(*task), Status::Refused, why, origin)
            }
            Body::Ended { run, seq, .. } => {
                let failure = crate::record::encode_failure("NonRetryableError", "NON_RETRYABLE", why);
                self.child_ended(work, *run, *seq, Status::Failed, failure.as_bytes(), origin);
            }
            Body::Signal { .. }
            | Body::Cancel { .. }
            | Body::Close { .. }
            | Body::Watch { .. }
            | Body::NeverLetIn { .. }
            | Body::Admitted { .. }
            | Body::Activate { .. }
            | Body::Made { .. }
            | Body::RunOver { .. }
            | Body::Order { .. }
            | Body::CancelOrder { .. }
            | Body::CancelTask { .. }
            | Body::WatchTask { .. } => self.received(work, origin),
        }
    }

    /// Records the end of what an operation waits for, if its run has not ended.
    pub(super) fn child_ended(
        &mut self,
        work: &mut Work<'_>,
        run: crate::record::RunNo,
        seq: crate::record::Seq,
        status: Status,
        payload: &[u8],
        origin: Origin,
    ) {
        match self.answered_run(Caller { shard: self.id, run, seq }) {
            Some(index) => {
                let run = self.run(index).no;
                let record = Record::ChildDone { run, seq, time_ms: work.now_ms, status, payload, origin };
                self.commit(work, Some(index), &record);
            }
            None => self.received(work, origin),
        }
    }

    /// What the end of a run is recorded as: the run fails if what it returned cannot be recorded.
    pub(super) fn bounded_end<'a>(
        &self,
        run: RunIx,
        status: Status,
        payload: &'a [u8],
    ) -> (Status, std::borrow::Cow<'a, [u8]>) {
        let what = if status == Status::Completed { "the result" } else { "the error" };
        let Err(why) = self.limits.check_payload(what, payload) else { return (status, payload.into()) };
        let message = format!("{why} (workflow \"{}\")", self.run(run).id);
        let failure = crate::record::encode_failure("NonRetryableError", "NON_RETRYABLE", &message);
        let status = if status == Status::Completed { Status::Failed } else { status };
        (status, failure.into_bytes().into())
    }
}
