//! Awakeables: waits that somebody outside completes, once, with a name that only who was given it knows.
//!
//! An awakeable is a wait for a signal of its own name, and its completion is that signal. So nothing about it has to be
//! kept beside the journal: whether it is completed, or over, is read there when somebody asks.

use super::commands::{Refusal, Target};
use super::run::{Code, RunIx};
use super::shard::{Shard, Work};
use crate::record::{Record, Seq};

/// How names of awakeables begin, and no names of signals: else a token could be made up for any wait of a run.
const AWAKEABLE_PREFIX: &str = "awakeable:";

/// What the journal of a run says about an awakeable.
enum Place {
    /// The run has asked for none of this name.
    Unasked,
    /// It waits.
    Waiting(Seq),
    /// It is completed, or its time is over.
    Over,
}

impl Shard {
    /// Completes the awakeable `name` of a run. `false`: it was completed before, its time is over, its scope or its run
    /// was cancelled, or the run has ended; nothing is recorded then.
    pub fn complete_awakeable(
        &mut self,
        work: &mut Work<'_>,
        target: Target<'_>,
        name: &str,
        payload: &[u8],
        actor: Option<&str>,
    ) -> Result<bool, Refusal> {
        self.limits.check_signal(name, payload, None, actor).map_err(Refusal::BadInput)?;
        let asked = self.find(target)?;
        // A run that was reset left its awakeables to the one in its place; one that continued as new did not.
        let run = self.last_of_chain(asked);
        if self.run(run).open().is_none() {
            return Ok(false);
        }
        let seq = match self.awakeable(run, name) {
            Place::Waiting(seq) => seq,
            Place::Over => return Ok(false),
            Place::Unasked if run != asked => return Ok(false),
            Place::Unasked => {
                return Err(Refusal::NotFound(format!(
                    "workflow \"{}\" has no awakeable of this token; take the token from ctx.awakeable() as it is",
                    target.id
                )));
            }
        };
        if self.is_withdrawn(run, seq) {
            return Ok(false);
        }
        let record = Record::Signal {
            run: self.run(run).no,
            time_ms: work.now_ms,
            name,
            payload,
            dedupe: None,
            actor,
            origin: None,
        };
        self.commit(work, Some(run), &record);
        Ok(true)
    }

    fn awakeable(&self, run: RunIx, name: &str) -> Place {
        let mut place = Place::Unasked;
        if !name.starts_with(AWAKEABLE_PREFIX) {
            return place;
        }
        for (_, entry) in self.run(run).journal.entries() {
            if let Record::WaitSet { seq, name: waited, .. } = entry.record
                && waited == name
            {
                place = Place::Waiting(seq);
            }
            let Place::Waiting(seq) = place else { continue };
            let is_completed = matches!(entry.record, Record::Signal { name: sent, .. } if sent == name);
            let is_expired = matches!(entry.record, Record::TimerFired { seq: fired, .. } if fired == seq);
            if is_completed || is_expired {
                return Place::Over;
            }
        }
        place
    }

    /// Whether the code has given it up, or is about to: a cancel of the run is recorded that it has yet to be told of, and
    /// that comes first. Only code that is here and has come to where it was can tell.
    fn is_withdrawn(&self, run: RunIx, seq: Seq) -> bool {
        let target = self.run(run);
        target.open().is_some_and(|open| {
            let is_here = matches!(open.code, Code::Idle | Code::InTurn | Code::InLastTurn);
            if !is_here || open.is_replaying() {
                return false;
            }
            let is_cancel = |record: &Record<'_>| matches!(record, Record::Cancel { .. });
            let mut unseen = target.journal.entries().skip_while(|(position, _)| *position < open.cursor);
            open.ops.get(seq).is_none()
                || (!open.shielded.contains(&seq) && unseen.any(|(_, entry)| is_cancel(&entry.record)))
        })
    }
}
