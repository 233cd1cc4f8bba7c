//! Completing what the code of a run waits for from outside.

use super::commands::refuse;
use super::error::{EngineError, bad_input};
use super::foreign::{ForeignEngine, Run};
use crate::machine::Target;
use crate::runtime::{Output, Token};

impl ForeignEngine {
    /// Completes an awakeable. `token` gets `1` if this was what completed it and `0` if it was over before, once that
    /// is durable.
    pub fn complete_awakeable(
        &mut self,
        token: Token,
        run: Run<'_>,
        name: &str,
        payload: &[u8],
        actor: Option<&str>,
    ) -> Result<(), EngineError> {
        self.admits(run.id)?;
        self.config.limits().and_then(|limits| limits.check_signal(name, payload, None, actor)).map_err(bad_input)?;
        let (shard, no, _recalled) = self.target(run)?;
        self.on_shard(shard, |cell, work| {
            let target = Target { id: run.id, run: no };
            match cell.shard.complete_awakeable(work, target, name, payload, actor) {
                Ok(is_first) => {
                    let reply = if is_first { "1" } else { "0" }.to_owned();
                    cell.held.hold(cell.shard.last(), Output::Reply(token, reply));
                }
                Err(refusal) => refuse(cell, token, &refusal),
            }
        })
    }
}
