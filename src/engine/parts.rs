//! Several hosts of one group: joining it, losing a place in it, questions to code that another host runs.

use super::commands::refuse;
use super::config::Config;
use super::error::{EngineError, ErrorCode, bad_input};
use super::events::{EventKind, Events, fields};
use super::foreign::{ForeignEngine, Run};
use super::host::{Slot, Slots};
use crate::log::LogState;
use crate::machine::Target;
use crate::record::{ShardId, run_id};
use crate::runtime::{Blocked, Group, Output, Place, Question, ShardCell, Token};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A group that further threads may join for as long as it is open.
#[derive(Clone)]
pub struct Joinable {
    group: Weak<Group>,
    config: Config,
}

impl Joinable {
    /// Whether it can still be joined.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.group.upgrade().is_some_and(|group| !matches!(group.log_state(), LogState::Closed))
    }
}

impl ForeignEngine {
    /// What a thread needs to join the group.
    #[must_use]
    pub fn joinable(&self) -> Joinable {
        let config = Config { definitions: Vec::new(), ..self.config.clone() };
        Joinable { group: Arc::downgrade(&self.group), config }
    }

    /// Takes the place of a part, by number from 0: its runs come in the first ticks of the engine that is returned.
    /// Refused while another thread has that place, and once the group is closed.
    pub fn join(
        to: &Joinable,
        part: u16,
        definitions: Vec<String>,
        notify: Box<dyn Fn() + Send + Sync>,
    ) -> Result<ForeignEngine, EngineError> {
        let group = to.group.upgrade().filter(|group| !matches!(group.log_state(), LogState::Closed));
        let group = group.ok_or_else(|| EngineError::new(ErrorCode::Closed, "the group is closed; open it again"))?;
        let notify: super::foreign::Notify = notify.into();
        let right = group.enter_part(part, Arc::clone(&notify)).map_err(bad_input)?;
        group.with_tasks(|cell, _| cell.drop_mail(right.place));
        let config = Config { definitions, ..to.config.clone() };
        Ok(ForeignEngine::over(group, right, config, notify))
    }

    /// Its tokens are this one and those after it, 2^24 of them: so does an answer find the place that asked.
    #[must_use]
    pub fn first_token(&self) -> Token {
        self.right.place.first_token()
    }

    /// Number of its life among all those of the group: what came before in its place has a lower one.
    #[must_use]
    pub fn incarnation(&self) -> u32 {
        self.right.incarnation
    }

    /// Number of workers; 0: this host runs all code itself.
    #[must_use]
    pub fn workers(&self) -> u16 {
        self.group.workers()
    }

    /// The worker that runs the code of a shard now, from 0; `None`: nobody does, or there are no workers.
    #[must_use]
    pub fn owner(&self, shard: ShardId) -> Option<u16> {
        self.group.holder(shard).place.0.checked_sub(1).map(u16::from)
    }

    /// The shard of a workflow id.
    #[must_use]
    pub fn shard_of(&self, id: &str) -> ShardId {
        self.group.shard_of(id)
    }

    /// Types that have code in the workers: what is asked about other types says that they have none.
    pub fn define(&mut self, definitions: Vec<String>) {
        self.definitions = definitions.into_iter().collect();
    }

    /// The thread of a part is gone, in that incarnation of it. Attempts that ran there are lost attempts; what it may
    /// still say changes nothing. `false`: that incarnation was over.
    pub fn lose(&self, part: u16, incarnation: u32) -> bool {
        let place = self.group.place_of_part(part);
        place.is_some_and(|place| self.group.leave(crate::runtime::Right { place, incarnation }))
    }

    /// Gives the shards of a part that is not there to the others. Returns how many have moved.
    pub fn spread(&self, part: u16) -> usize {
        self.group.spread(part)
    }

    /// Watches over the parts from another thread: one that gives no sign of life for `after` is reported.
    pub fn watch_parts(&self, after: Option<Duration>) {
        self.group.watch_parts(after);
    }

    /// A body of a run is about to be called: the run is named if it blocks the thread. Only where an
    /// [`ForeignEngine::idle`] follows before the host sleeps.
    pub fn entering(&self, slot: Slot) {
        self.group.awake(self.right);
        if let Some((shard, run)) = self.slots.place(slot) {
            self.group.entered(self.right, shard, run);
        }
    }

    /// Asks the code of a run, whichever thread has it. `token` gets what the host of that thread answers.
    pub fn ask(&mut self, token: Token, run: Run<'_>, name: &str, input: &str) -> Result<(), EngineError> {
        self.check_open()?;
        if let LogState::Poisoned(error) = self.group.log_state() {
            return Err(EngineError::new(ErrorCode::Storage, error.to_string()));
        }
        let (shard, no, _recalled) = self.target(run)?;
        self.on_shard(shard, |cell, _| match cell.shard.find_last(Target { id: run.id, run: no }) {
            Ok(_) if cell.questions.len() >= QUESTIONS_MAX => {
                let text = format!(
                    "{QUESTIONS_MAX} queries wait for the code of runs beside workflow \"{}\"; wait for some of them, or see \
                     in health() whether their worker is blocked",
                    run.id
                );
                cell.held.hold(cell.shard.last(), Output::Refuse(token, fields(&[ErrorCode::Busy.text(), &text])));
            }
            Ok(index) => {
                cell.questions.insert(token, Question { run: index, name: name.into(), input: input.into() });
                cell.asks.push_back(token);
            }
            Err(refusal) => refuse(cell, token, &refusal),
        })?;
        self.group.stir(shard);
        Ok(())
    }

    /// The code of a run answers a question: `token` gets the text once everything that the run's shard has recorded is
    /// durable. One that is answered already, or not waited for any more, is left alone.
    pub fn answer(&mut self, token: Token, text: &str) {
        for shard in self.shard_ids().filter(|shard| self.owns(*shard)) {
            self.group.with(shard, |cell, _| {
                if cell.questions.remove(&token).is_some() {
                    cell.held.hold(cell.shard.last(), Output::Reply(token, text.to_owned()));
                }
            });
        }
    }

    /// Workers that run nothing now, a sentence each.
    pub(super) fn worker_problems(&self) -> Vec<String> {
        let blocked = self.group.blocked_parts().into_iter();
        let blocked = blocked.map(|part| format!("worker {part} is blocked: its thread does not come back from code"));
        let absent = self.group.absent_parts().into_iter();
        let absent = absent.map(|part| format!("worker {part} is not there: its runs wait for its replacement"));
        blocked.chain(absent).collect()
    }

    /// Whether the code of a shard's runs that is here is the code that may run. A revived run's always is its host's.
    pub(super) fn has_code_of(&self, shard: ShardId, cell: &ShardCell) -> bool {
        cell.holder == self.right
            && self.handovers.get(usize::from(shard.0)).is_none_or(|handovers| *handovers == cell.handovers)
    }

    /// Whether it has code of shards that changed hands, though they may have come back.
    pub(super) fn has_lost_code(&self) -> bool {
        self.rights_version != self.group.rights_version()
            && self.shard_ids().any(|shard| self.has_changed(shard) && self.slots.has_any(shard))
    }

    fn has_changed(&self, shard: ShardId) -> bool {
        self.handovers[usize::from(shard.0)] != self.group.handovers(shard)
    }

    /// Drops the code of shards that changed hands: it is another's to run now, or comes anew.
    pub(super) fn drop_lost(&mut self, events: &mut Events) {
        let version = self.group.rights_version();
        if version == self.rights_version {
            return;
        }
        self.rights_version = version;
        for shard in self.shard_ids() {
            if !self.has_changed(shard) {
                continue;
            }
            self.handovers[usize::from(shard.0)] = self.group.handovers(shard);
            for slot in self.slots.of_shard(shard) {
                self.slots.free(slot);
                events.push(EventKind::Ended, slot.0, 0, String::new());
            }
        }
    }

    /// Tells whoever opened the group of parts that are blocked, and of those that work again.
    pub(super) fn report_blocked(&self, events: &mut Events) {
        if self.right.place != Place::OPENER || !self.group.has_blocked_reports() {
            return;
        }
        for Blocked { part, incarnation, is_blocked, silent, entered } in self.group.take_blocked_reports() {
            let (id, run_id, kind) = entered.unwrap_or_default();
            let text = fields(&[&silent.as_millis().to_string(), &incarnation.to_string(), &id, &run_id, &kind]);
            events.push(EventKind::Blocked, u32::from(part), u32::from(is_blocked), text);
        }
    }
}

/// Why a query to a run that somebody has paused has no answer.
pub(super) fn paused(id: &str) -> String {
    format!("workflow \"{id}\" is paused and answers no queries; resume it, then ask again")
}

pub(super) fn queued(id: &str) -> String {
    format!("workflow \"{id}\" waits in a queue and answers no queries before it has started; explain says what for")
}

/// Questions that may wait for the code of one shard's runs.
const QUESTIONS_MAX: usize = 1_000;

/// Of a question to a run that has ended: its host may revive it.
const NO_SLOT: u32 = u32::MAX;

/// Hands questions to the code of their runs, as far as it is here.
pub(super) fn ask(shard: ShardId, cell: &mut ShardCell, slots: &Slots, events: &mut Events) {
    for token in std::mem::take(&mut cell.asks) {
        let Some(question) = cell.questions.get(&token) else { continue };
        let view = cell.shard.view(question.run);
        let slot = slots.slot(shard, question.run);
        if slot.is_some() || view.status.is_some() {
            let text = fields(&[&question.name, view.id, &run_id(shard, view.no), &question.input]);
            events.push(EventKind::Ask, token, slot.map_or(NO_SLOT, |slot| slot.0), text);
            continue;
        }
        let why = if view.marks.is_stuck {
            let id = run_id(shard, view.no);
            let text = format!("workflow \"{}\" (run {id}) is stuck, and answers no queries", view.id);
            EngineError::new(ErrorCode::NotFound, text)
        } else if cell.shard.is_held(question.run) {
            EngineError::new(ErrorCode::Busy, paused(view.id))
        } else if view.marks.is_queued {
            EngineError::new(ErrorCode::Busy, queued(view.id))
        } else {
            let text = format!("workflow \"{}\" of type \"{}\" has no code here to answer a query", view.id, view.kind);
            EngineError::new(ErrorCode::Unregistered, text)
        };
        cell.questions.remove(&token);
        cell.held.hold(cell.shard.last(), Output::Refuse(token, fields(&[why.code.text(), &why.message])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Durability;
    use crate::log::MemoryStorage;

    #[test]
    fn a_thread_that_is_replaced_between_its_check_and_the_lock_does_nothing_law_7() {
        let memory = Durability::Memory(MemoryStorage::new());
        let config = Config { workers: 1, shards: 2, ..Config::new(memory) };
        let client = ForeignEngine::open(config, Box::new(|| {})).unwrap();
        let join = || ForeignEngine::join(&client.joinable(), 0, Vec::new(), Box::new(|| {})).unwrap();
        let lost = join();
        assert!(lost.check_open().is_ok());
        assert_eq!(lost.on_shard(ShardId(1), |_, _| 1).unwrap(), 1);
        assert!(client.lose(0, lost.incarnation()));
        let next = join();
        // Its tokens are those of the life that has its place now.
        assert_eq!(lost.first_token(), next.first_token());
        let refused = lost.on_shard(ShardId(1), |_, _| panic!("this is another thread's by now"));
        assert_eq!(refused.unwrap_err().code, ErrorCode::Closed);
        assert_eq!(next.on_shard(ShardId(1), |_, _| 2).unwrap(), 2);
    }
}
