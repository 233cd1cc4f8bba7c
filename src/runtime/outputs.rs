//! What a shard holds back for the disk: what its running code waits for, and answers, by the place that asked.

use super::cell::{Output, Token};
use super::held::Held;
use super::places::Place;
use crate::record::Lsn;

/// Outputs of a shard until the records they rest on are durable.
#[derive(Debug, Default)]
pub struct Outputs {
    code: Held<Output>,
    /// By place.
    answers: Vec<Held<Output>>,
}

impl Outputs {
    pub(super) fn for_places(count: usize) -> Self {
        Outputs { code: Held::default(), answers: std::iter::repeat_with(Held::default).take(count).collect() }
    }

    /// Holds something back until everything up to `lsn` is durable. Answers go to the place that asked; one that is not
    /// there any more gets none.
    pub fn hold(&mut self, lsn: Lsn, output: Output) {
        match output.token() {
            Some(token) => self.hold_for(Place::of(token), lsn, output),
            None => self.code.hold(lsn, output),
        }
    }

    /// The same, for one place.
    pub fn hold_for(&mut self, place: Place, lsn: Lsn, output: Output) {
        if let Some(answers) = self.answers.get_mut(place.index()) {
            answers.hold(lsn, output);
        }
    }

    pub(super) fn release(&mut self, durable: Lsn) -> Option<Output> {
        self.code.release(durable)
    }

    pub(super) fn release_for(&mut self, place: Place, durable: Lsn) -> Option<Output> {
        self.answers.get_mut(place.index())?.release(durable)
    }

    /// Everything that is held.
    pub(super) fn each(&self, each: &mut dyn FnMut(&Output)) {
        self.answers.iter().chain([&self.code]).for_each(|held| held.each(each));
    }

    /// What the first of those for the code waits for.
    pub(super) fn first(&self) -> Option<Lsn> {
        self.code.first()
    }

    /// What the first answer of each place waits for.
    pub(super) fn first_by_place(&self) -> impl Iterator<Item = Option<Lsn>> {
        self.answers.iter().map(Held::first)
    }

    /// An answer is not waited for any more.
    pub(super) fn forget(&mut self, token: Token) {
        if let Some(answers) = self.answers.get_mut(Place::of(token).index()) {
            answers.retain(|output| output.token() != Some(token));
        }
    }

    /// Nobody at a place waits for anything any more.
    pub(super) fn forget_place(&mut self, place: Place) {
        if let Some(answers) = self.answers.get_mut(place.index()) {
            *answers = Held::default();
        }
    }

    /// Attempts that were about to begin belonged to code that is gone.
    pub(super) fn forget_attempts(&mut self) {
        self.code.retain(|output| !matches!(output, Output::Attempt(..)));
    }
}
