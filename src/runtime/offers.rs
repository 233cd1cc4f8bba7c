//! Updates that clients have asked for: those that a run's code has still to validate, and those whose answers are
//! waited for. Nothing of it is recorded: a client that asks again after a crash, under the same id, finds what was.

use super::cell::{Output, ShardCell, Token};
use crate::machine::{KnownUpdate, NewUpdate, Refusal, RunIx, Target, Work};
use crate::record::Status;
use std::collections::BTreeMap;

/// An update that no code has validated yet.
#[derive(Debug)]
pub struct Offer {
    /// The run that is asked.
    pub run: RunIx,
    /// Name of the update.
    pub name: Box<str>,
    /// Encoded argument.
    pub payload: Box<[u8]>,
    id: Box<str>,
    actor: Option<Box<str>>,
    tokens: Vec<Token>,
}

/// Offers and waiting clients of one shard.
#[derive(Debug, Default)]
pub struct Offers {
    last: u32,
    open: BTreeMap<u32, Offer>,
    /// By run and number of the update.
    waiters: BTreeMap<(RunIx, u32), Vec<Token>>,
}

/// What became of an update that the code found valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It is recorded.
    Recorded,
    /// More is recorded than the code has seen: it must be validated again.
    Later,
    /// Nobody asks for it any more.
    Gone,
}

impl Offers {
    /// The offers to a run, in the order in which they came.
    pub fn to(&self, run: RunIx) -> impl Iterator<Item = (u32, &Offer)> {
        self.open.iter().filter(move |(_, offer)| offer.run == run).map(|(number, offer)| (*number, offer))
    }

    /// The runs that are asked, or whose answers are waited for.
    pub(super) fn runs(&self, each: &mut dyn FnMut(RunIx)) {
        self.open.values().map(|offer| offer.run).chain(self.waiters.keys().map(|(run, _)| *run)).for_each(each);
    }

    /// An offer by its number.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&Offer> {
        self.open.get(&number)
    }

    fn number_of(&self, run: RunIx, id: &str) -> Option<u32> {
        self.to(run).find(|(_, offer)| *offer.id == *id).map(|(number, _)| number)
    }

    /// Those requests are not waited for any more.
    pub(super) fn forget(&mut self, is_forgotten: impl Fn(Token) -> bool) {
        self.waiters.retain(|_, tokens| {
            tokens.retain(|waiting| !is_forgotten(*waiting));
            !tokens.is_empty()
        });
        // Nobody is told of it, but what was asked for was not taken back.
        self.open.values_mut().for_each(|offer| offer.tokens.retain(|waiting| !is_forgotten(*waiting)));
    }
}

impl ShardCell {
    /// A client asks for an update: it gets the answer if there is one, waits for it if the update was accepted, or else
    /// has it offered to the run's code. `Some`: the new offer, to be told to the code's host.
    pub fn offer_update(
        &mut self,
        token: Token,
        target: Target<'_>,
        update: &NewUpdate<'_>,
    ) -> Result<Option<(RunIx, u32)>, Refusal> {
        self.shard.check_update(update)?;
        let run = match self.shard.find_update(target, update.id)? {
            KnownUpdate::Accepted(run, number) => {
                self.await_update(run, number, token);
                return Ok(None);
            }
            KnownUpdate::New(run) => run,
        };
        if let Some(offer) = self.offers.number_of(run, update.id).and_then(|number| self.offers.open.get_mut(&number))
        {
            offer.tokens.push(token);
            return Ok(None);
        }
        self.shard.admits_update(run, self.offers.to(run).count())?;
        if self.shard.stuck(run).is_some() {
            self.held.hold(self.shard.last(), Output::UpdateLost(token, run));
            return Ok(None);
        }
        self.offers.last = self.offers.last.wrapping_add(1);
        let offer = Offer {
            run,
            name: update.name.into(),
            payload: update.payload.into(),
            id: update.id.into(),
            actor: update.actor.map(Box::from),
            tokens: vec![token],
        };
        self.offers.open.insert(self.offers.last, offer);
        Ok(Some((run, self.offers.last)))
    }

    /// The run's code has validated an offer: it is recorded, and whoever asked waits for its answer.
    pub fn accept_offer(&mut self, work: &mut Work<'_>, number: u32) -> Accepted {
        let Some(offer) = self.offers.open.remove(&number) else { return Accepted::Gone };
        let Offer { run, name, id, payload, actor, .. } = &offer;
        let update = NewUpdate { name, id, payload, actor: actor.as_deref() };
        let Some(accepted) = self.shard.accept_update(work, *run, update) else {
            self.offers.open.insert(number, offer);
            return Accepted::Later;
        };
        for token in &offer.tokens {
            self.await_update(*run, accepted, *token);
        }
        Accepted::Recorded
    }

    /// The run's code refuses an offer: nothing is recorded, and whoever asked is told once that rests on durable records.
    pub fn refuse_offer(&mut self, number: u32, failure: &[u8]) {
        let Some(offer) = self.offers.open.remove(&number) else { return };
        for token in offer.tokens {
            self.held.hold(self.shard.last(), Output::Result(token, Status::Refused, failure.into()));
        }
    }

    /// An update has its answer.
    pub(super) fn update_answered(&mut self, run: RunIx, number: u32) {
        for token in self.offers.waiters.remove(&(run, number)).into_iter().flatten() {
            self.await_update(run, number, token);
        }
    }

    fn await_update(&mut self, run: RunIx, number: u32, token: Token) {
        if let Some(answer) = self.shard.update_answer(run, number) {
            let status = if answer.is_failure { Status::Failed } else { Status::Completed };
            self.held.hold(answer.lsn, Output::Result(token, status, answer.payload.into()));
        } else if self.shard.outcome(run).is_some() {
            self.held.hold(self.shard.last(), Output::UpdateLost(token, run));
        } else {
            self.offers.waiters.entry((run, number)).or_default().push(token);
        }
    }

    /// A call of an object: the client gets the answer, or waits for it.
    pub fn await_call(&mut self, run: RunIx, number: u32, token: Token) {
        self.await_update(run, number, token);
    }

    /// Those who wait for calls of an object wait at the run that goes on for it.
    fn follow_calls(&mut self, run: RunIx) {
        let next = self.shard.last_of_chain(run);
        if next == run || !self.shard.is_object(run) {
            return;
        }
        let waiting: Vec<(RunIx, u32)> =
            self.offers.waiters.range((run, 0)..=(run, u32::MAX)).map(|(key, _)| *key).collect();
        for key in waiting {
            for token in self.offers.waiters.remove(&key).into_iter().flatten() {
                self.await_update(next, key.1, token);
            }
        }
    }

    /// The run has ended, or is stuck: it takes no offers, and an ended one answers nothing.
    pub(super) fn lose_updates(&mut self, run: RunIx) {
        self.follow_calls(run);
        let offers: Vec<u32> = self.offers.to(run).map(|(number, _)| number).collect();
        let mut tokens: Vec<Token> = Vec::new();
        tokens
            .extend(offers.iter().filter_map(|number| self.offers.open.remove(number)).flat_map(|offer| offer.tokens));
        if self.shard.outcome(run).is_some() {
            let waiting: Vec<(RunIx, u32)> =
                self.offers.waiters.range((run, 0)..=(run, u32::MAX)).map(|(key, _)| *key).collect();
            tokens.extend(waiting.iter().filter_map(|key| self.offers.waiters.remove(key)).flatten());
        }
        for token in tokens {
            self.held.hold(self.shard.last(), Output::UpdateLost(token, run));
        }
    }
}
