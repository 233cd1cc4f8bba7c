//! Runs that have ended, brought back so that their code answers a query.

use super::error::{EngineError, ErrorCode};
use super::events::fields;
use super::foreign::{ForeignEngine, Run};
use super::host::Slot;
use super::rows::key_roots;
use crate::machine::{REVIVED, Target};

impl ForeignEngine {
    /// A slot for the code of a run that has ended: it replays, as it was before its end, and nothing comes of it. Answers
    /// with the slot, and what the event of a start says. Let go of it with [`ForeignEngine::lay`].
    pub fn revive(&mut self, run: Run<'_>) -> Result<(Slot, String), EngineError> {
        let (shard, no, _recalled) = self.target(run)?;
        let (kind, input, revived) = self.group.with(shard, |cell, _| {
            let index = cell.shard.find_last(Target { id: run.id, run: no })?;
            let (kind, input) = (cell.shard.view(index).kind.to_owned(), cell.shard.input(index).to_vec());
            Ok::<_, crate::machine::Refusal>((kind, input, cell.shard.revived(index)))
        })?;
        if !self.definitions.contains(&kind) {
            return Err(EngineError::new(
                ErrorCode::Unregistered,
                format!("workflow \"{}\" of type \"{kind}\" has no code here to answer a query", run.id),
            ));
        }
        let Some(mut revived) = revived else {
            return Err(EngineError::new(
                ErrorCode::NotFound,
                format!("workflow \"{}\" has ended and its history is not kept any more: nothing can be asked", run.id),
            ));
        };
        revived.load(REVIVED);
        let view = revived.view(REVIVED);
        let text = fields(&[view.id, &key_roots(&revived, REVIVED), view.kind, &String::from_utf8_lossy(&input)]);
        let Some(ghost) = self.group.revive(revived, self.right) else {
            return Err(EngineError::new(
                ErrorCode::Busy,
                "too many runs that have ended are asked at once; ask again",
            ));
        };
        Ok((self.slots.take(ghost, REVIVED), text))
    }

    /// A revived run has been asked.
    pub fn lay(&mut self, slot: Slot) {
        if let Some((shard, _)) = self.slots.place(slot).filter(|(shard, _)| self.group.is_revived(*shard)) {
            self.slots.free(slot);
            self.group.lay(shard);
        }
    }
}
