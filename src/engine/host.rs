//! Slots: the runs whose code this host has in memory, and the verbs of that code.

use super::foreign::ForeignEngine;
use crate::machine::{Delivery, Effect, Halt, OpenedStep, RunIx, StepMode, TimerMode, Work};
use crate::record::{CallSpec, ChildSpec, Lsn, Retry, RunNo, Sending, Seq, ShardId, Status};
use crate::runtime::{Place, ShardCell};
use std::collections::VecDeque;

/// A run whose code the host has. Stale ones are known: every verb on one answers [`Halt::Dead`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// An index rests until so many others have been free before it is used again: a slot has 8 bits for its lives, so that
/// the same number comes again after a quarter of a million runs at the earliest, and not after 256 short ones.
const RESTING_MIN: usize = 1_024;

const INDEX_BITS: u32 = 24;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;

/// The answer to a step: the LSN to wait for, or that its attempt comes as an event.
pub type StepAnswer = OpenedStep;

/// The answer to the result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completed {
    /// The attempt does not count any more.
    Stale,
    /// It is recorded.
    Recorded,
    /// It is recorded, and it is the run's next delivery, the last one so far. The run may end from outside before its
    /// turn: its code then goes on to its next verb, which says so.
    Taken,
}

/// A replay gets so many results in one go, or about so many bytes of them.
const RESULTS_MAX: usize = 64;
const RESULTS_BYTES_MAX: usize = 16 << 10;

/// All slots of a host.
#[derive(Debug, Default)]
pub(super) struct Slots {
    entries: Vec<Entry>,
    /// Free indexes, those that have rested longest first.
    free: VecDeque<u32>,
    /// By shard, by run: its slot.
    by_run: Vec<Vec<Option<Slot>>>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    life: u8,
    place: Option<(ShardId, RunIx)>,
}

impl Slots {
    pub(super) fn new(shards: u16) -> Self {
        Slots { by_run: vec![Vec::new(); usize::from(shards)], ..Slots::default() }
    }

    pub(super) fn take(&mut self, shard: ShardId, run: RunIx) -> Slot {
        let rested = if self.free.len() >= RESTING_MIN { self.free.pop_front() } else { None };
        let index = rested.unwrap_or_else(|| {
            self.entries.push(Entry { life: 0, place: None });
            self.entries.len() as u32 - 1
        });
        debug_assert!(index <= INDEX_MASK);
        let entry = &mut self.entries[index as usize];
        entry.place = Some((shard, run));
        let slot = Slot(u32::from(entry.life) << INDEX_BITS | index);
        // A revived run is found by its slot alone.
        let Some(runs) = self.by_run.get_mut(usize::from(shard.0)) else { return slot };
        if runs.len() <= run.0 as usize {
            runs.resize(run.0 as usize + 1, None);
        }
        runs[run.0 as usize] = Some(slot);
        slot
    }

    pub(super) fn place(&self, slot: Slot) -> Option<(ShardId, RunIx)> {
        let entry = self.entries.get((slot.0 & INDEX_MASK) as usize)?;
        if u32::from(entry.life) == slot.0 >> INDEX_BITS { entry.place } else { None }
    }

    pub(super) fn slot(&self, shard: ShardId, run: RunIx) -> Option<Slot> {
        self.by_run[usize::from(shard.0)].get(run.0 as usize).copied().flatten()
    }

    /// Whether runs of a shard have slots.
    pub(super) fn has_any(&self, shard: ShardId) -> bool {
        self.by_run[usize::from(shard.0)].iter().any(Option::is_some)
    }

    /// The slots of a shard's runs.
    pub(super) fn of_shard(&self, shard: ShardId) -> Vec<Slot> {
        self.by_run[usize::from(shard.0)].iter().copied().flatten().collect()
    }

    pub(super) fn free(&mut self, slot: Slot) {
        let Some((shard, run)) = self.place(slot) else { return };
        let index = slot.0 & INDEX_MASK;
        let entry = &mut self.entries[index as usize];
        entry.place = None;
        entry.life = entry.life.wrapping_add(1);
        self.free.push_back(index);
        if let Some(runs) = self.by_run.get_mut(usize::from(shard.0)) {
            runs[run.0 as usize] = None;
        }
    }
}

impl ForeignEngine {
    pub(super) fn place(&self, slot: Slot) -> Result<(ShardId, RunIx), Halt> {
        self.slots.place(slot).ok_or(Halt::Dead)
    }

    /// The code can go no further: takes the next delivery, if there is one. Ends the turn. [`Halt::Mismatch`]: the code
    /// asked for less than was recorded.
    pub fn quiescent(&mut self, slot: Slot) -> Result<Option<Delivery>, Halt> {
        let (shard, run) = self.place(slot)?;
        if self.right.place != Place::OPENER {
            // A turn begins without a tick where the last flush was all that it waited for.
            self.group.awake(self.right);
        }
        let delivery = self.code(shard, run, |cell, work| match cell.shard.quiescent(work, run) {
            None if cell.shard.stuck(run).is_some() => Err(Halt::Mismatch),
            delivery => Ok(delivery),
        })??;
        if delivery.is_some() {
            self.group.appended();
        }
        Ok(delivery)
    }

    /// The payload of what was delivered last. For the end of a child it begins with the status code and a separator, for
    /// an update with its name and a separator.
    pub fn payload(&self, slot: Slot) -> Result<String, Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, _| {
            let (status, payload) = cell.shard.payload(run);
            let text = String::from_utf8_lossy(payload);
            if let Some(name) = cell.shard.delivered_update(run) {
                return format!("{name}{}{text}", super::events::FIELD);
            }
            match status {
                None => text.into_owned(),
                Some(status) => format!("{}{}{text}", status.code(), super::events::FIELD),
            }
        })
    }

    /// The result of the step that was delivered last and those of the steps after it, as far as they follow one another:
    /// a JSON array of their numbers and then the results. For hosts whose payloads are JSON.
    pub fn results(&self, slot: Slot) -> Result<String, Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, _| {
            let results = cell.shard.results(run, RESULTS_MAX, RESULTS_BYTES_MAX);
            let mut text = String::with_capacity(results.iter().map(|(_, payload)| payload.len() + 8).sum());
            for (index, (seq, _)) in results.iter().enumerate() {
                text.push_str(if index == 0 { "[[" } else { "," });
                text.push_str(&seq.0.to_string());
            }
            text.push(']');
            for (_, payload) in &results {
                text.push(',');
                text.push_str(&String::from_utf8_lossy(payload));
            }
            text.push(']');
            text
        })
    }

    /// What the run is, apart from its input: see `identity` in the crossing.
    pub fn identity(&self, slot: Slot) -> Result<String, Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, _| super::rows::identity(cell.shard.id(), &cell.shard.view(run)))
    }

    /// The time of the delivery whose turn it is, in ms since 1970.
    pub fn turn_ms(&self, slot: Slot) -> Result<i64, Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, _| cell.shard.turn_ms(run))
    }

    /// Whether recorded results are being given back.
    pub fn is_replaying(&self, slot: Slot) -> Result<bool, Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, _| cell.shard.is_replaying(run))
    }

    /// The code asks for a step.
    pub fn open_step(&mut self, slot: Slot, seq: Seq, name: &str, mode: StepMode) -> Result<StepAnswer, Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, work| cell.shard.open_step(work, run, seq, name, mode))?
    }

    /// The code sleeps, or limits the time of a scope.
    pub fn open_timer(&mut self, slot: Slot, seq: Seq, value_ms: i64, mode: TimerMode) -> Result<(), Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, work| cell.shard.open_timer(work, run, seq, value_ms, mode))?
    }

    /// The code waits for a signal. `true`: one was there, see [`ForeignEngine::payload`].
    pub fn open_wait(&mut self, slot: Slot, seq: Seq, name: &str, timeout_ms: Option<i64>) -> Result<bool, Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, work| cell.shard.open_wait(work, run, seq, name, timeout_ms))?
    }

    /// The code waits for a condition, which the host evaluates.
    pub fn open_condition(&mut self, slot: Slot, seq: Seq, timeout_ms: Option<i64>) -> Result<(), Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, work| cell.shard.open_condition(work, run, seq, timeout_ms))?
    }

    /// Takes back a wait whose iterator was closed, or a condition that became true.
    pub fn withdraw(&mut self, slot: Slot, seq: Seq) -> Result<(), Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, _| cell.shard.withdraw(run, seq))?
    }

    /// The code starts a child. Its keys come from the parent's and its place, so that a replay would give the same.
    pub fn open_child(&mut self, slot: Slot, seq: Seq, child: ChildSpec<'_>) -> Result<(), Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, work| {
            let parent = cell.shard.key_root_at(run, seq);
            let child = ChildSpec { key_root: super::keys::child_root(parent, seq), ..child };
            cell.shard.open_child(work, run, seq, child)
        })?
    }

    /// The code addresses another workflow. Only a watch stays open.
    pub fn open_send(
        &mut self,
        slot: Slot,
        seq: Seq,
        id: &str,
        target: Option<RunNo>,
        what: Sending<'_>,
    ) -> Result<(), Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, work| {
            let what = match what {
                Sending::Call(call) => {
                    let key_root = super::keys::child_root(cell.shard.key_root_at(run, seq), seq);
                    Sending::Call(CallSpec { key_root, ..call })
                }
                _ => what,
            };
            cell.shard.open_send(work, run, seq, id, target, what)
        })?
    }

    /// Work for the code of a run, or asked for by it: refused when the right to run it is another's.
    pub(super) fn code<R>(
        &self,
        shard: ShardId,
        run: RunIx,
        work: impl FnOnce(&mut ShardCell, &mut Work<'_>) -> R,
    ) -> Result<R, Halt> {
        if self.right.place != Place::OPENER {
            self.group.entered(self.right, shard, run);
        }
        self.group.with(shard, |cell, context| {
            if !self.has_code_of(shard, cell) && !cfg!(fusee_mutant = "incarnation_ignored") {
                return Err(Halt::Dead);
            }
            Ok(work(cell, context))
        })
    }

    /// The same on behalf of a run's own bodies: its host knows that there is something to look at and needs no wake.
    fn own<R>(
        &self,
        shard: ShardId,
        run: RunIx,
        work: impl FnOnce(&mut ShardCell, &mut Work<'_>) -> R,
    ) -> Result<R, Halt> {
        self.code(shard, run, |cell, context| {
            let result = work(cell, context);
            context.effects.retain(|effect| !matches!(effect, Effect::Wake(woken) if *woken == run));
            result
        })
    }

    /// A step's body returned. The host looks at the run by itself: it is told of no delivery. Under a dead
    /// lease nothing changes. With `takes` the result is taken as by [`ForeignEngine::quiescent`] if it is what
    /// comes next: the run's code must have come to rest, and nothing taken before may wait for its turn.
    pub fn complete(
        &mut self,
        slot: Slot,
        seq: Seq,
        lease: u32,
        payload: &[u8],
        takes: bool,
    ) -> Result<Completed, Halt> {
        let (shard, run) = self.place(slot)?;
        let completed = self.own(shard, run, |cell, work| {
            let shard = &mut cell.shard;
            if !takes {
                let counts = shard.complete(work, run, seq, lease, payload);
                return if counts { Completed::Recorded } else { Completed::Stale };
            }
            match shard.complete_next(work, run, seq, lease, payload) {
                None => Completed::Stale,
                Some(false) => Completed::Recorded,
                Some(true) => Completed::Taken,
            }
        })?;
        if completed == Completed::Taken {
            self.group.appended();
        }
        Ok(completed)
    }

    /// A step's body failed for good. Under a dead lease nothing changes.
    pub fn fail(&mut self, slot: Slot, seq: Seq, lease: u32, failure: &[u8]) -> Result<bool, Halt> {
        let (shard, run) = self.place(slot)?;
        self.own(shard, run, |cell, work| cell.shard.fail(work, run, seq, lease, failure))
    }

    /// A step's body failed: again after a time, or paused (`None`) until somebody resumes the run.
    pub fn retry(
        &mut self,
        slot: Slot,
        seq: Seq,
        lease: u32,
        after_ms: Option<i64>,
        failure: &[u8],
    ) -> Result<bool, Halt> {
        let (shard, run) = self.place(slot)?;
        self.own(shard, run, |cell, work| {
            let retry = after_ms.map_or(Retry::Paused, |after_ms| Retry::At(work.now_ms.saturating_add(after_ms)));
            cell.shard.retry(work, run, seq, lease, retry, failure)
        })
    }

    /// A running body says that it lives, and perhaps how far it is.
    pub fn heartbeat(&mut self, slot: Slot, seq: Seq, lease: u32, details: Option<&[u8]>) -> Result<bool, Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, work| cell.shard.heartbeat(work, run, seq, lease, details))
    }

    /// Limits a running attempt: its time, and its silence.
    pub fn watch_attempt(
        &mut self,
        slot: Slot,
        seq: Seq,
        lease: u32,
        timeout_ms: Option<i64>,
        heartbeat_ms: Option<i64>,
    ) -> Result<(), Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, work| {
            cell.shard.watch_attempt(work.now_ms, run, seq, lease, timeout_ms, heartbeat_ms);
        })
    }

    /// The code returned or threw. The slot is free afterwards.
    pub fn finish(&mut self, slot: Slot, status: Status, payload: &[u8]) -> Result<(), Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, work| cell.shard.finish(work, run, status, payload))??;
        self.slots.free(slot);
        Ok(())
    }

    /// The host found the code breaking a rule, at a place in it (empty: not known): nothing of it runs on, others do.
    pub fn stuck(&mut self, slot: Slot, message: &str, place: &str) -> Result<(), Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, work| cell.shard.mark_stuck(work, run, message, place))
    }

    /// The host knows where in the code a stuck run is.
    pub fn stuck_at(&mut self, slot: Slot, place: &str) -> Result<(), Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, _| cell.shard.set_stuck_place(run, place))
    }

    /// Why a run is stuck; empty if it is not.
    pub fn mismatch(&self, slot: Slot) -> Result<String, Halt> {
        let (shard, run) = self.place(slot)?;
        let message =
            |cell: &mut ShardCell| cell.shard.stuck(run).map(|stuck| stuck.message.clone()).unwrap_or_default();
        self.code(shard, run, |cell, _| message(cell))
    }

    /// What has to be durable for everything that the run's shard has recorded so far.
    pub fn last(&self, slot: Slot) -> Result<Lsn, Halt> {
        let (shard, run) = self.place(slot)?;
        self.code(shard, run, |cell, _| cell.shard.last())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_not_given_to_another_run_for_a_long_time_law_7() {
        let mut slots = Slots::new(1);
        let first = slots.take(ShardId(0), RunIx(0));
        slots.free(first);
        for run in 1..200_000 {
            let slot = slots.take(ShardId(0), RunIx(run % 7));
            assert_ne!(slot, first, "after {run} short runs");
            assert_eq!(slots.place(first), None);
            slots.free(slot);
        }
        assert!(slots.entries.len() <= RESTING_MIN + 1, "and memory does not grow");
    }
}
