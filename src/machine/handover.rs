//! The code of runs is lost with the thread that ran it, and the thread that takes over gets it anew.

use super::run::{Code, RunIx};
use super::shard::{Effect, Shard};

impl Shard {
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
