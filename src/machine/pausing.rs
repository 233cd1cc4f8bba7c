//! Runs that somebody has paused: nothing of their code goes on, whatever comes for them, until they are resumed.

use super::commands::{Refusal, Target};
use super::limits::check_actor;
use super::run::{Code, RunIx};
use super::shard::{Effect, Shard, Work};
use crate::record::Record;

impl Shard {
    /// Pauses a run: what comes for it is recorded and waits. No-op if it is paused already.
    pub fn pause(&mut self, work: &mut Work<'_>, target: Target<'_>, actor: Option<&str>) -> Result<(), Refusal> {
        check_actor(actor).map_err(Refusal::BadInput)?;
        let run = self.live(target)?;
        if self.is_held(run) {
            return Ok(());
        }
        let was_loaded = self.run(run).open().is_some_and(|open| !matches!(open.code, Code::Absent));
        let record = Record::Paused { run: self.run(run).no, time_ms: work.now_ms, actor };
        self.commit(work, Some(run), &record);
        if self.run(run).open().is_some() {
            self.unload(run);
            if was_loaded {
                work.effects.push(Effect::Dropped(run));
            }
        }
        Ok(())
    }

    /// Whether somebody has paused the run.
    #[must_use]
    pub fn is_held(&self, run: RunIx) -> bool {
        self.run(run).open().is_some_and(|open| open.is_held)
    }
}
