//! Objects: what clients ask of them, and the verbs of their code.

use super::commands::{URGENT_BYTES, refuse};
use super::error::{EngineError, bad_input};
use super::events::FIELD;
use super::foreign::ForeignEngine;
use super::host::Slot;
use crate::machine::{CallAnswer, Halt, NewUpdate, Refusal, Target, check_actor};
use crate::record::NewRun;
use crate::runtime::{Output, Token};

impl ForeignEngine {
    /// Calls an object. `token` gets the answer once that is durable: as the result of a run would come, with the status
    /// `Completed` or `Failed` (what the handler threw). A second call of the same id is the first one again. `id` is the
    /// id of the object's run.
    pub fn call_object(&mut self, token: Token, id: &str, kind: &str, call: NewUpdate<'_>) -> Result<(), EngineError> {
        self.admits(id)?;
        self.check_update(&call)?;
        self.admits_run()?;
        let key_root = self.key_roots.next()?;
        let actor = call.actor;
        let _recalled = self.recall(id)?;
        let new = NewRun { id, kind, version: 1, key_root, deadline_ms: None, parent: None, input: b"", actor };
        self.on_shard(self.group.shard_of(id), |cell, work| match cell.shard.call_object(work, new, call) {
            Ok((run, number)) => cell.await_call(run, number, token),
            Err(refusal) => refuse(cell, token, &refusal),
        })
    }

    /// `token` gets the encoded state of an object once that is durable; empty: as it is at first.
    pub fn read_object(&mut self, token: Token, id: &str) -> Result<(), EngineError> {
        self.check_readable()?;
        let _recalled = self.recall(id)?;
        self.on_shard(self.group.shard_of(id), |cell, _| match cell.shard.find_object(id) {
            Ok(run) => {
                let state = String::from_utf8_lossy(cell.shard.object_state(run).1).into_owned();
                cell.held.hold(cell.shard.last(), Output::Reply(token, state));
            }
            Err(refusal) => refuse(cell, token, &refusal),
        })
    }

    /// Ends an object. `token` gets `1` if this was what ended it and `0` if there was none, once that is durable.
    pub fn delete_object(&mut self, token: Token, id: &str, actor: Option<&str>) -> Result<(), EngineError> {
        self.check_readable()?;
        check_actor(actor).map_err(bad_input)?;
        self.group.admits_urgent(URGENT_BYTES)?;
        let _recalled = self.recall(id)?;
        self.on_shard(self.group.shard_of(id), |cell, work| {
            let deleted = match cell.shard.find_object(id) {
                Ok(run) => {
                    let no = cell.shard.view(run).no;
                    cell.shard.terminate(work, Target { id, run: Some(no) }, b"deleted", actor).map(|()| "1")
                }
                Err(Refusal::NotFound(_) | Refusal::Ended(..)) => Ok("0"),
                Err(refusal) => Err(refusal),
            };
            match deleted {
                Ok(reply) => cell.held.hold(cell.shard.last(), Output::Reply(token, reply.to_owned())),
                Err(refusal) => refuse(cell, token, &refusal),
            }
        })?;
        self.group.hurry();
        Ok(())
    }

    /// What the code of an object begins with: the last operation before, a separator, the encoded state.
    pub fn object_state(&self, slot: Slot) -> Result<String, Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, _| {
            let (seq, state) = cell.shard.object_state(run);
            format!("{}{FIELD}{}", seq.0, String::from_utf8_lossy(state))
        })
    }

    /// The code answers a call. Returns whether the run should continue as new.
    pub fn answer_call(&mut self, slot: Slot, answer: CallAnswer<'_>) -> Result<bool, Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, work| cell.shard.answer_call(work, run, answer))?
    }
}
