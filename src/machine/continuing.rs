//! A run that ends so that the next one under its id goes on.

use super::code::Halt;
use super::run::{Given, RunIx};
use super::shard::{Shard, Work};
use crate::record::{NewRun, Record, Status};

/// The run that takes the place of one that ends.
#[derive(Clone, Copy, Debug)]
pub struct NextRun<'a> {
    /// Version of the code.
    pub version: u32,
    /// What the run's keys come from.
    pub key_root: [u8; 16],
    /// Longest life.
    pub timeout_ms: Option<i64>,
    /// Encoded input.
    pub input: &'a [u8],
}

impl Shard {
    /// The code ends and goes on as a new run: one record. Signals that nobody has taken go with it, and a request to end
    /// that the code has not seen; whoever waits for the end waits for that of the new run.
    pub fn continue_as_new(&mut self, work: &mut Work<'_>, run: RunIx, next: NextRun<'_>) -> Result<(), Halt> {
        self.may_end(work, run)?;
        let carried = self.places_to_carry(run);
        let bytes = next.input.len() + carried.len();
        if bytes > self.limits.payload_bytes_max {
            let message = format!(
                "the input of the next run and the places of signals that wait take {bytes} bytes; the limit is {} \
                 bytes: keep it elsewhere and pass a reference (workflow \"{}\")",
                self.limits.payload_bytes_max,
                self.run(run).id
            );
            let failure = crate::record::encode_failure("NonRetryableError", "NON_RETRYABLE", &message);
            return self.finish(work, run, Status::Failed, failure.as_bytes());
        }
        let old = self.run(run);
        let (no, id, kind, parent) = (old.no, old.id.clone(), old.kind.clone(), old.parent);
        let new = NewRun {
            id: &id,
            kind: &kind,
            version: next.version,
            key_root: next.key_root,
            deadline_ms: next.timeout_ms.map(|timeout_ms| work.now_ms.saturating_add(timeout_ms)),
            parent,
            input: next.input,
            actor: None,
        };
        self.leave(run);
        let (time_ms, next) = (work.now_ms, self.next_run_no());
        self.commit(work, Some(run), &Record::Continued { run: no, time_ms, next, new, carried: &carried });
        Ok(())
    }

    /// The run that goes on for a run: itself, or the last one in memory of those that took its place.
    #[must_use]
    pub fn last_of_chain(&self, run: RunIx) -> RunIx {
        let mut run = run;
        while let Some(next) = self.run(run).end().and_then(|end| end.continued).and_then(|no| self.run_of(no)) {
            run = next;
        }
        run
    }

    /// A run has what its own records do not tell, before anything else happens to it.
    pub(super) fn give(&mut self, run: RunIx, given: Given) {
        let target = self.run_mut(run);
        let no = target.no;
        if let Some(open) = target.open_mut() {
            open.watchers.clone_from(&given.watchers);
            open.ticket.clone_from(&given.ticket);
            // Whoever takes the place of another one has started.
            open.is_queued = given.ticket.as_ref().is_some_and(|ticket| ticket.run == no);
        }
        target.given = Some(Box::new(given));
    }
}
