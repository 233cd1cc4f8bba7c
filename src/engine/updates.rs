//! Updates: what clients ask for, what the host's code makes of it, and the other verbs of running code that came with
//! them.

use super::error::{EngineError, ErrorCode, bad_input};
use super::events::fields;
use super::foreign::{ForeignEngine, Run};
use super::host::Slot;
use crate::machine::{Halt, NewUpdate, NextRun, RunIx, Target, check_actor, check_text};
use crate::record::Seq;
use crate::runtime::{Accepted, HostEvent, ShardCell, Token};

impl ForeignEngine {
    /// Asks for an update. `token` gets its answer once that is durable: as the result of a run would come, with the status
    /// `Completed`, `Failed` (what the handler threw) or `Refused` (what the validator threw; nothing was recorded). A
    /// second request of the same id is the first one again.
    pub fn update(&mut self, token: Token, run: Run<'_>, update: NewUpdate<'_>) -> Result<(), EngineError> {
        self.admits(run.id)?;
        self.check_update(&update)?;
        let (shard, no, _recalled) = self.target(run)?;
        self.on_shard(shard, |cell, _| offer(cell, token, Target { id: run.id, run: no }, &update))
    }

    pub(super) fn check_update(&self, update: &NewUpdate<'_>) -> Result<(), EngineError> {
        check_text("the name of an update", update.name).map_err(bad_input)?;
        check_text("the id of an update", update.id).map_err(bad_input)?;
        check_actor(update.actor).map_err(bad_input)?;
        self.check_payload("the argument of the update", update.payload)
    }

    /// The code has validated an offered update.
    pub fn accept_offer(&mut self, slot: Slot, number: u32) -> Result<Accepted, Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, work| cell.accept_offer(work, number))
    }

    /// The code refuses an offered update, and why.
    pub fn refuse_offer(&mut self, slot: Slot, number: u32, failure: &[u8]) -> Result<(), Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, _| cell.refuse_offer(number, failure))
    }

    /// The code answers an update that it was handed.
    pub fn answer_update(&mut self, slot: Slot, number: u32, is_failure: bool, payload: &[u8]) -> Result<(), Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, work| cell.shard.answer_update(work, run, number, is_failure, payload))?
    }

    /// The code ends and goes on as a new run under its id, with keys of its own. The slot is free afterwards.
    pub fn continue_as_new(
        &mut self,
        slot: Slot,
        version: u32,
        timeout_ms: Option<i64>,
        input: &[u8],
    ) -> Result<(), Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, work| {
            // Known to nobody before it is recorded, and recorded once.
            let key_root = super::keys::child_root(cell.shard.key_root_at(run, Seq(u32::MAX)), Seq(u32::MAX));
            cell.shard.continue_as_new(work, run, NextRun { version, key_root, timeout_ms, input })
        })??;
        self.slots.free(slot);
        Ok(())
    }

    /// An operation that was just opened is left alone by a cancel of the run.
    pub fn shield(&mut self, slot: Slot, seq: Seq) -> Result<(), Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, _| cell.shard.shield(run, seq))?
    }

    /// A stuck run is not to wait for somebody: it ends, with this as its failure.
    pub fn fail_stuck(&mut self, slot: Slot, failure: &[u8]) -> Result<(), Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, work| cell.shard.fail_stuck(work, run, failure))
    }

    /// The run's code sets search attributes.
    pub fn set_attributes(&mut self, slot: Slot, seq: Seq, set: &[u8]) -> Result<(), Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, work| cell.shard.set_attributes(work, run, seq, set))?
    }

    /// A stuck run is to be tried again after a time.
    pub fn retry_stuck(&mut self, slot: Slot) -> Result<(), Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, work| cell.shard.retry_stuck(work, run))
    }

    /// Whether the run takes a changed way of its code.
    pub fn patched(&mut self, slot: Slot, id: &str) -> Result<bool, Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, work| cell.shard.patched(work, run, id))?
    }
}

/// Offers an update to the run's code, or answers it by what is recorded.
pub(super) fn offer(cell: &mut ShardCell, token: Token, target: Target<'_>, update: &NewUpdate<'_>) {
    match cell.offer_update(token, target, update) {
        Ok(Some((run, number))) => cell.events.push_back(HostEvent::Offer(run, number)),
        Ok(None) => {}
        Err(refusal) => super::commands::refuse(cell, token, &refusal),
    }
}

/// Why an update gets no answer.
pub(super) fn lost(cell: &ShardCell, run: RunIx) -> String {
    let view = cell.shard.view(run);
    let why = if view.status.is_some() { "has ended" } else { "is stuck" };
    let message = match cell.shard.is_object(run) {
        true => format!("object \"{}\" {why} and does not answer the call", view.id),
        false => format!("workflow \"{}\" {why} and does not answer the update", view.id),
    };
    let EngineError { code, message } = EngineError::new(ErrorCode::NotFound, message);
    fields(&[code.text(), &message])
}
