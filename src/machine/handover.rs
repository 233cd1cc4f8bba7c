//! The code of runs is lost with the thread that ran it, and the thread that takes over gets it anew.

use super::ops::{Op, StepPhase};
use super::run::{Code, RunIx};
use super::shard::{Effect, Shard, Work};

/// From so many threads on that ended in the same turn of a run, it is set aside: the next thread would end there too.
const THREADS_LOST_MAX: u8 = 3;

impl Shard {
    /// A thread ended, and the last that it did was to run code or a body of this run. Bodies are not counted here: a
    /// lost attempt counts among the attempts of its step.
    pub fn lose_thread_in(&mut self, work: &mut Work<'_>, run: RunIx) {
        let Some(open) = self.open_mut(run).filter(|open| open.is_in_turn()) else { return };
        let is_in_body = |op: &Op| matches!(op, Op::Step(step) if step.phase == StepPhase::Running);
        if open.ops.iter().any(|(_, op)| is_in_body(op)) {
            return;
        }
        open.threads_lost += 1;
        if open.threads_lost >= THREADS_LOST_MAX {
            open.threads_lost = 0;
            let message = format!(
                "its code ended {THREADS_LOST_MAX} threads in a row, each in the same turn (an endless loop, memory that ran \
                 out, an exit): mend the code, then resume the run"
            );
            self.mark_stuck(work, run, &message, "");
        }
    }

    /// No host has the code of any run any more: asks for it again. Attempts that ran are lost attempts, like those of a
    /// killed process: a step is tried again, its start recorded first. Stuck runs have no code and wait as before.
    pub fn lose_code(&mut self, effects: &mut Vec<Effect>) {
        let is_loaded = |shard: &Shard, run: RunIx| {
            shard.run(run).open().is_some_and(|open| match open.code {
                Code::Idle | Code::InTurn | Code::InLastTurn => true,
                Code::Absent | Code::Stuck(_) => false,
            })
        };
        for index in 0..self.runs.len() {
            let run = RunIx(index as u32);
            if is_loaded(self, run) {
                self.unload(run);
                effects.push(Effect::Load(run));
            }
        }
    }
}
