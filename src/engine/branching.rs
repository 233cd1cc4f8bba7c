//! Forks of runs, and runs that take the place of others: what clients ask for, across shards.

use super::commands::refuse;
use super::error::{EngineError, bad_input};
use super::foreign::{ForeignEngine, Run};
use crate::machine::{Border, Branch, RunIx, Target, check_actor};
use crate::record::run_id;
use crate::runtime::{Output, ShardCell, Token};

/// What a client asks for, beside the run.
#[derive(Clone, Copy, Debug)]
pub struct BranchRequest<'a> {
    /// The first operation that is not taken over.
    pub border: Border<'a>,
    /// Signals that came later go along.
    pub reapplies_signals: bool,
    /// Operations from the border on get other keys.
    pub has_fresh_keys: bool,
    /// Version of the code, if it is another one.
    pub version: Option<u32>,
    /// Who asks.
    pub actor: Option<&'a str>,
}

impl ForeignEngine {
    /// The id goes on from before a place. `token` gets the id of the new run once it is durable.
    pub fn reset(&mut self, token: Token, run: Run<'_>, request: BranchRequest<'_>) -> Result<(), EngineError> {
        let branch = self.branch(run.id, request)?;
        let (shard, no, _recalled) = self.target(run)?;
        self.on_shard(shard, |cell, work| {
            let reset = cell.shard.reset(work, Target { id: run.id, run: no }, &branch);
            match reset {
                Ok(next) => begun(cell, token, next),
                Err(refusal) => refuse(cell, token, &refusal),
            }
        })
    }

    /// Begins a run of the id `to` with what a run has recorded before a place. `token` gets the id of the new run once it
    /// is durable.
    pub fn fork(
        &mut self,
        token: Token,
        run: Run<'_>,
        to: &str,
        request: BranchRequest<'_>,
    ) -> Result<(), EngineError> {
        self.admits(to)?;
        let branch = self.branch(run.id, request)?;
        let (shard, no, _recalled) = self.target(run)?;
        let copied = self.on_shard(shard, |cell, work| {
            let copied = cell.shard.copy_for_fork(work.now_ms, Target { id: run.id, run: no }, to, &branch);
            copied.map_err(|refusal| refuse(cell, token, &refusal)).ok()
        })?;
        // What was copied has a lower LSN than the fork, whichever shard that is in.
        let Some(copied) = copied else { return Ok(()) };
        let _recalled = self.recall(to)?;
        self.on_shard(self.group.shard_of(to), |cell, work| match cell.shard.fork(work, &copied) {
            Ok(next) => begun(cell, token, next),
            Err(refusal) => refuse(cell, token, &refusal),
        })
    }

    fn branch<'a>(&mut self, id: &str, request: BranchRequest<'a>) -> Result<Branch<'a>, EngineError> {
        self.admits(id)?;
        check_actor(request.actor).map_err(bad_input)?;
        self.admits_run()?;
        let BranchRequest { border, reapplies_signals, has_fresh_keys, version, actor } = request;
        let key_root = if has_fresh_keys { Some(self.key_roots.next()?) } else { None };
        Ok(Branch { border, reapplies_signals, version, key_root, actor })
    }
}

fn begun(cell: &mut ShardCell, token: Token, run: RunIx) {
    let text = run_id(cell.shard.id(), cell.shard.view(run).no);
    cell.held.hold(cell.shard.last(), Output::Reply(token, text));
}
