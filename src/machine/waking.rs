//! Sleeps that somebody outside has end before their time.

use super::commands::{Refusal, Target};
use super::limits::check_actor;
use super::ops::Op;
use super::run::{Code, OpenRun, RunIx};
use super::shard::{Shard, Work};
use crate::record::{Record, Seq};
use std::collections::BTreeSet;

impl Shard {
    /// Ends the sleeps of a run now, as if their time had come; limits of waits and of scopes and the times of retries stay. No-op if it
    /// does not sleep.
    pub fn end_sleeps(&mut self, work: &mut Work<'_>, target: Target<'_>, actor: Option<&str>) -> Result<(), Refusal> {
        check_actor(actor).map_err(Refusal::BadInput)?;
        let run = self.live(target)?;
        let (no, time_ms) = (self.run(run).no, work.now_ms);
        for seq in self.sleeps(run) {
            // At a bound of its journal it ends.
            if self.run(run).open().is_some() {
                self.commit(work, Some(run), &Record::TimerFired { run: no, seq, time_ms, actor });
            }
        }
        Ok(())
    }

    /// Sleeps without an end in the journal. Of a run whose code is not in memory, or in a replay, or stuck, there may be
    /// some that the code has withdrawn: a walk passes what fires for them.
    fn sleeps(&self, run: RunIx) -> BTreeSet<Seq> {
        let target = self.run(run);
        let mut sleeps = BTreeSet::new();
        for (_, entry) in target.journal.entries() {
            match entry.record {
                Record::TimerSet { seq, is_limit: false, .. } => {
                    sleeps.insert(seq);
                }
                Record::TimerFired { seq, .. } => {
                    sleeps.remove(&seq);
                }
                _ => {}
            }
        }
        if let Some(open) = target.open().filter(|open| knows_its_sleeps(open)) {
            sleeps.retain(|seq| matches!(open.ops.get(*seq), Some(Op::Timer { .. })));
        }
        sleeps
    }
}

fn knows_its_sleeps(open: &OpenRun) -> bool {
    !open.is_replaying() && matches!(open.code, Code::Idle | Code::InTurn | Code::InLastTurn)
}
