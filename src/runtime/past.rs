//! Finished runs that are not in memory: taken back for those who ask for them, and out again.
//!
//! A verb finds runs in memory alone. Whoever calls one about a run that may have ended asks for it first
//! ([`Group::recall`]), and holds what that returns until the verb is done: as long nothing leaves the shard's memory. The
//! store is read without the shard's lock.

use super::cell::ShardCell;
use super::checkpointer::Keeper;
use super::group::Group;
use super::loading::name_of;
use crate::machine::{EndedRun, Filter, Message, Missing, RunView, Shard};
use crate::record::{RunNo, ShardId, run_id};
use crate::store::{Page, Query, Store, StoreError, Stored};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of journals of finished runs that stay in the memory of a shard. Judgement: those that are asked for are mostly
/// among the last ones.
const KEPT_BYTES: usize = 1 << 20;

/// While it is there no run leaves the memory of its shard.
#[derive(Debug)]
pub struct Recalled(Option<Arc<AtomicU32>>);

impl Drop for Recalled {
    fn drop(&mut self) {
        if let Some(pins) = &self.0 {
            pins.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// A finished run as it was read.
struct Fetched {
    no: RunNo,
    stored: Stored,
    ended: EndedRun,
    journal: Vec<u8>,
}

/// A finished run that a filter admits: by start, shard, number.
pub type PastPlace = (i64, u16, u64);

impl Group {
    /// Has the finished runs in memory that a verb about the latest run of an id, or about a certain one, looks at.
    pub fn recall(&self, shard: ShardId, id: Option<&str>, no: Option<RunNo>) -> Result<Recalled, StoreError> {
        let Some(keeper) = self.keeper.as_ref().filter(|keeper| keeper.has_past()) else { return Ok(Recalled(None)) };
        let pins = &self.gauges[usize::from(shard.0)].pins;
        pins.fetch_add(1, Ordering::SeqCst);
        let recalled = Recalled(Some(Arc::clone(pins)));
        let mut missing = self.visit(shard, |cell, _| {
            let missing = cell.shard.missing(id, no);
            if missing.is_some() && pins.load(Ordering::SeqCst) == 1 {
                cell.forget_oldest(keeper.kept_runs());
            }
            // What was forgotten just now may be what it is about.
            missing.and_then(|_| cell.shard.missing(id, no))
        });
        while let Some(wanted) = missing {
            let fetched = keeper.fetch(shard, id, wanted)?;
            if fetched.is_empty() {
                // There is no latest run: what else is wanted?
                missing = match wanted {
                    Missing::Latest => self.visit(shard, |cell, _| cell.shard.missing(None, no)),
                    Missing::Run(_) => None,
                };
                continue;
            }
            missing = self.visit(shard, |cell, _| {
                place(&mut cell.shard, &fetched);
                cell.shard.missing(id, no)
            });
        }
        Ok(recalled)
    }

    /// The same for what a message is about. `None`: that cannot be read now, and the message comes again once it can. A
    /// run that is damaged is none: those behind it are not to wait for ever.
    pub(super) fn recall_for(&self, message: &Message) -> Option<Recalled> {
        let (id, no) = message.body.about();
        match (self.recall(message.to, id, no), &self.keeper) {
            (Ok(recalled), _) => Some(recalled),
            (Err(error @ StoreError::Damaged { .. }), Some(keeper)) => {
                keeper.note_damage(&error);
                Some(Recalled(None))
            }
            (Err(_), keeper) => {
                keeper.iter().for_each(|keeper| keeper.owe_messages());
                None
            }
        }
    }

    /// Has every finished run in memory, for a look at all of them, as long as what it returns is there.
    #[cfg(any(test, feature = "sim"))]
    #[must_use]
    pub fn recall_all(&self) -> Vec<Recalled> {
        let mut recalled = Vec::new();
        let Some(keeper) = self.keeper.as_ref().filter(|keeper| keeper.has_past()) else { return recalled };
        for shard in (0..self.shard_count()).map(ShardId) {
            let mut numbers = Vec::new();
            // What could not be read before is opened again.
            let mut tries = (0..3).map(|_| {
                numbers.clear();
                keeper.read(&mut |store| store.ended_runs(shard, &mut |run| numbers.push(run.no)))
            });
            let read = tries
                .find(Result::is_ok)
                .unwrap_or_else(|| keeper.read(&mut |store| store.ended_runs(shard, &mut |run| numbers.push(run.no))));
            assert!(read.is_ok(), "the run store can be read while all is looked at: {read:?}");
            for no in numbers {
                let run = self.recall(shard, None, Some(no));
                recalled.push(run.expect("the run store can be read while all is looked at"));
            }
        }
        recalled
    }

    /// Finished runs of the store that a filter admits, by start, until `each` has enough; `after`: only those behind. Those
    /// that are in memory, too, are among them.
    pub fn past_runs(
        &self,
        filter: &Filter,
        is_newest_first: bool,
        after: Option<PastPlace>,
        each: &mut dyn FnMut(PastPlace, ShardId, &RunView<'_>) -> Page,
    ) -> Result<(), StoreError> {
        let Some(keeper) = self.keeper.as_ref().filter(|keeper| keeper.has_past()) else { return Ok(()) };
        let hint = filter.ended_hint();
        let statuses: Vec<u8> = (0..32).filter(|code| hint.statuses & 1 << code != 0).collect();
        let query = Query {
            kinds: &hint.kinds,
            statuses: &statuses,
            from_ms: hint.from_ms,
            before_ms: None,
            after: after.map(|(order_ms, shard, no)| (order_ms, ShardId(shard), RunNo(no))),
            is_newest_first,
        };
        keeper.read(&mut |store| {
            let mut unread = None;
            store.finished(&query, &mut |(shard, no), stored| {
                let decoded = stored.and_then(|stored| decode(shard, no, &stored).map(|ended| (stored, ended)));
                let (stored, ended) = match decoded {
                    Ok(decoded) => decoded,
                    Err(error @ StoreError::Damaged { .. }) => {
                        keeper.note_damage(&error);
                        return Page::More;
                    }
                    Err(error) => {
                        unread = Some(error);
                        return Page::Enough;
                    }
                };
                let name = name_of(no, &stored.head());
                let view = ended.view(&name);
                if filter.admits(&view) { each((name.order_ms, shard.0, no.0), shard, &view) } else { Page::More }
            })?;
            unread.map_or(Ok(()), Err)
        })
    }

    /// How many runs a filter admits.
    pub fn count_runs(&self, filter: &Filter) -> Result<u64, StoreError> {
        let in_memory = |ended: &mut Vec<(ShardId, RunNo)>, stored: &mut u64| {
            let mut count = 0;
            for shard in (0..self.shard_count()).map(ShardId) {
                self.visit(shard, |cell, _| {
                    for run in cell.shard.search(filter, true, None, usize::MAX) {
                        count += 1;
                        let view = cell.shard.view(run);
                        *stored += u64::from(cell.shard.is_stored(run));
                        ended.extend(view.status.map(|_| (shard, view.no)));
                    }
                });
            }
            count
        };
        let (mut ended, mut stored) = (Vec::new(), 0);
        let Some(keeper) = self.keeper.as_ref().filter(|keeper| keeper.has_past()) else {
            return Ok(in_memory(&mut ended, &mut stored));
        };
        let hint = filter.ended_hint();
        let before = keeper.changes();
        let count = in_memory(&mut ended, &mut stored);
        if hint.is_exact {
            let statuses: Vec<u8> = (0..32).filter(|code| hint.statuses & 1 << code != 0).collect();
            let mut past = 0;
            keeper.read(&mut |store| {
                past = store.count(&hint.kinds, &statuses)?;
                Ok(())
            })?;
            // No checkpoint was made meanwhile: those stored, and those in memory that are not.
            if before % 2 == 0 && before == keeper.changes() {
                return Ok(past + count - stored);
            }
        }
        ended.sort_unstable();
        let mut past = 0;
        self.past_runs(filter, true, None, &mut |_, shard, view| {
            past += u64::from(ended.binary_search(&(shard, view.no)).is_err());
            Page::More
        })?;
        Ok(count + past)
    }

    /// Takes finished runs of a shard that are stored out of memory, unless somebody is about to look at them.
    pub(super) fn forget_oldest(&self, keeper: &Keeper, shard: ShardId) {
        self.visit(shard, |cell, _| {
            if self.gauges[usize::from(shard.0)].pins.load(Ordering::SeqCst) == 0 {
                cell.forget_oldest(keeper.kept_runs());
            }
        });
    }
}

impl ShardCell {
    fn forget_oldest(&mut self, runs_max: usize) {
        if self.shard.has_too_many_ended(runs_max, KEPT_BYTES) {
            let held = self.held_runs();
            self.shard.forget_oldest(runs_max, KEPT_BYTES, &|run| held.contains(&run));
        }
    }
}

impl Keeper {
    /// A run that is missing, and before it the latest one of its id.
    fn fetch(&self, shard: ShardId, id: Option<&str>, missing: Missing) -> Result<Vec<Fetched>, StoreError> {
        let mut fetched = Vec::new();
        self.read(&mut |store| {
            fetched = fetch(store, shard, id, missing, &mut |error| self.note_damage(error))?;
            Ok(())
        })?;
        Ok(fetched)
    }
}

fn fetch(
    store: &Store,
    shard: ShardId,
    id: Option<&str>,
    missing: Missing,
    damaged: &mut dyn FnMut(&StoreError),
) -> Result<Vec<Fetched>, StoreError> {
    let mut fetched = Vec::new();
    let wanted = match missing {
        Missing::Run(no) => run(store, shard, no, damaged)?,
        Missing::Latest => None,
    };
    let own_id = wanted.as_ref().map(|run| run.stored.head().id.to_owned());
    if let Some(id) = own_id.as_deref().or_else(|| id.filter(|_| missing == Missing::Latest))
        && let Some(latest) = store.latest(shard, id)?
        && wanted.as_ref().is_none_or(|run| run.no != latest)
    {
        fetched.extend(run(store, shard, latest, damaged)?);
    }
    fetched.extend(wanted);
    Ok(fetched)
}

/// A run that has ended. Without its journal, if that is damaged: it only has no history any more.
fn run(
    store: &Store,
    shard: ShardId,
    no: RunNo,
    damaged: &mut dyn FnMut(&StoreError),
) -> Result<Option<Fetched>, StoreError> {
    let (stored, journal) = match store.run(shard, no) {
        Ok(Some(run)) => run,
        Ok(None) => return Ok(None),
        Err(error @ StoreError::Damaged { .. }) => {
            let Some(stored) = store.head(shard, no)? else { return Ok(None) };
            if stored.head().end.is_some() {
                damaged(&error);
            }
            (stored, Vec::new())
        }
        Err(error) => return Err(error),
    };
    if stored.head().end.is_none() {
        return Ok(None);
    }
    let ended = decode(shard, no, &stored)?;
    Ok(Some(Fetched { no, stored, ended, journal }))
}

fn decode(shard: ShardId, no: RunNo, stored: &Stored) -> Result<EndedRun, StoreError> {
    let head = stored.head();
    EndedRun::decode(head.body).map_err(|error| StoreError::Damaged {
        what: format!("the head of run {} of workflow \"{}\": {error}", run_id(shard, no), head.id),
    })
}

fn place(shard: &mut Shard, fetched: &[Fetched]) {
    for Fetched { no, stored, ended, journal } in fetched {
        match shard.known(*no) {
            Some(run) => shard.note_latest(run),
            None => {
                let run = shard.recall(name_of(*no, &stored.head()), ended.clone(), journal);
                shard.note_ended(run);
            }
        }
    }
}

/// Has a finished run in memory that a record of the log is about. `false`: it is not in the store.
pub(super) fn recall_for_record(
    store: &Store,
    machine: &mut Shard,
    shard: ShardId,
    no: RunNo,
    damaged: &mut dyn FnMut(&StoreError),
) -> Result<bool, StoreError> {
    let fetched = fetch(store, shard, None, Missing::Run(no), damaged)?;
    place(machine, &fetched);
    Ok(machine.known(no).is_some())
}
