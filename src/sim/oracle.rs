//! What has to be true: everything that was told to somebody is there after every crash, what is there is a prefix of
//! what was, and code sees the same things again.

use super::disk::quietly;
use super::rng::mix_bytes;
use crate::engine::{ForeignEngine, Lsn};
use crate::machine::Target;
use crate::record::{Record, RunNo, Seq, ShardId, Status, merge_attributes, parse_run_id, run_id};
use std::collections::{BTreeMap, BTreeSet};

/// One thing that code was handed, and the record that it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) what: String,
    pub(super) lsn: Lsn,
}

/// What somebody was told.
#[derive(Clone, Debug)]
pub(super) enum Fact {
    /// There is this run of this workflow.
    Exists { id: String, run_id: String },
    /// The run has a signal with this payload, or with this dedupe text.
    Signal { id: String, run_id: String, payload: String, dedupe: Option<String> },
    /// The run has answered this update so.
    Answered { id: String, run_id: String, update_id: String, payload: String },
    /// The run was asked to end, or has ended.
    Cancelled { id: String, run_id: String },
    /// The run has ended.
    Over { id: String, run_id: String },
    /// The run has ended like this.
    Ended { id: String, run_id: String, status: u32, payload: String },
}

/// A run as the log has it.
struct Image {
    id: String,
    key_root: [u8; 16],
    attributes: Vec<u8>,
    journal: Vec<(Lsn, Vec<u8>)>,
    outcome: Option<(Status, Vec<u8>, Lsn)>,
}

/// All runs of an engine.
type Images = BTreeMap<(ShardId, RunNo), Image>;

#[derive(Default)]
struct Seen {
    trace: Vec<Entry>,
    /// Starts of bodies that may run once.
    once: BTreeSet<(u32, Lsn)>,
}

/// The memory of the outside world.
#[derive(Default)]
pub(super) struct Oracle {
    keys: BTreeMap<String, usize>,
    runs: Vec<Seen>,
    facts: Vec<(Fact, Lsn)>,
    /// The newest record that something outside rests on, and what.
    outside: (Lsn, &'static str),
    effects: u64,
    before: Option<(Images, Lsn, Lsn)>,
    /// Over everything that was seen, for comparing two runs of a seed.
    pub(super) digest: u64,
}

impl Oracle {
    /// The number of a run, by its key root and its run id.
    pub(super) fn key(&mut self, name: &str) -> usize {
        if let Some(key) = self.keys.get(name) {
            return *key;
        }
        self.keys.insert(name.to_owned(), self.runs.len());
        self.runs.push(Seen::default());
        self.runs.len() - 1
    }

    /// A number that no effect had before.
    pub(super) fn effect(&mut self) -> u64 {
        self.effects += 1;
        self.effects
    }

    /// Code was handed something. What a life before was handed, and a crash has not taken, comes again at its position.
    pub(super) fn seen(&mut self, key: usize, position: usize, entry: Entry) -> Result<(), String> {
        self.digest = mix_bytes(self.digest, entry.what.as_bytes());
        if entry.lsn == Lsn::NONE {
            return Err(format!("LAW-4: code was handed what no record says: {}", entry.what));
        }
        let trace = &mut self.runs[key].trace;
        match trace.get(position) {
            Some(known) if *known == entry => Ok(()),
            Some(known) => Err(format!("LAW-4: replay hands out {entry:?} instead of {known:?} as number {position}")),
            None => {
                trace.push(entry);
                Ok(())
            }
        }
    }

    /// How much the code of a run has been handed in all its lives.
    pub(super) fn seen_count(&self, key: usize) -> usize {
        self.runs[key].trace.len()
    }

    /// A step's body runs: an effect outside that rests on everything up to a record.
    pub(super) fn body_ran(&mut self, key: usize, seq: u32, rests_on: Lsn, is_once: bool) -> Result<(), String> {
        if is_once && !self.runs[key].once.insert((seq, rests_on)) {
            return Err(format!("LAW-2: the body of operation {seq}, at most once, ran twice for one recorded start"));
        }
        self.rests(rests_on, "LAW-2: the body of a step ran");
        Ok(())
    }

    /// Somebody was told something that rests on everything up to a record.
    pub(super) fn told(&mut self, fact: Fact, lsn: Lsn) -> Result<(), String> {
        if let Fact::Ended { id, run_id, status, payload } = &fact {
            for (other, _) in &self.facts {
                if let Fact::Ended { id: same, run_id: run, status: was, payload: said } = other
                    && (same, run) == (id, run_id)
                    && (was, said) != (status, payload)
                {
                    return Err(format!(
                        "LAW-1: the result of {id} ({run_id}) was {was} {said}, now {status} {payload}"
                    ));
                }
            }
        }
        self.rests(lsn, "LAW-1: somebody was told");
        self.facts.push((fact, lsn));
        Ok(())
    }

    /// The code of a run was asked how much it has been handed: an answer that rests on all of that.
    pub(super) fn queried(&mut self, answer: &str) -> Result<(), String> {
        let Some((key, position)) = answer
            .split_once(' ')
            .and_then(|(key, position)| Some((key.parse::<usize>().ok()?, position.parse::<usize>().ok()?)))
        else {
            return Ok(());
        };
        let newest = self.runs[key].trace[..position].iter().map(|entry| entry.lsn).max();
        self.rests(newest.unwrap_or(Lsn::NONE), "LAW-1: a query was answered");
        Ok(())
    }

    fn rests(&mut self, lsn: Lsn, what: &'static str) {
        if lsn > self.outside.0 {
            self.outside = (lsn, what);
        }
    }

    /// The process is about to be gone.
    pub(super) fn before_crash(&mut self, engine: &ForeignEngine) {
        self.before = Some((images(engine), engine.durable(), engine.group().last()));
    }

    /// Another process has opened the log.
    pub(super) fn after_open(&mut self, engine: &ForeignEngine) -> Result<(), String> {
        let now = images(engine);
        check_journals(&now)?;
        let found = engine.opened().last;
        let Some((before, durable, last)) = self.before.take() else { return Ok(()) };
        if found < durable {
            return Err(format!("LAW-3: records up to {durable} were durable, only {found} are there"));
        }
        if found > last {
            return Err(format!("LAW-3: records up to {found} are there, only {last} were appended"));
        }
        if found < self.outside.0 {
            return Err(format!("{} on record {}, only {found} are there", self.outside.1, self.outside.0));
        }
        for run in &mut self.runs {
            let kept = run.trace.iter().position(|entry| entry.lsn > found);
            run.trace.truncate(kept.unwrap_or(run.trace.len()));
        }
        for (place, was) in &before {
            compare(*place, was, now.get(place), found)?;
        }
        let is_new = |place: &(ShardId, RunNo), image: &Image| {
            !before.contains_key(place) && image.journal.first().is_some_and(|(lsn, _)| *lsn <= found)
        };
        if let Some(((shard, no), _)) = now.iter().find(|(place, image)| is_new(place, image)) {
            return Err(format!("LAW-3: run {} was never started", run_id(*shard, *no)));
        }
        self.check_facts(&now)
    }

    /// A directory with damage in it has been opened: all of it that a later frame vouches for is there, unchanged.
    pub(super) fn after_damage(&self, engine: &ForeignEngine, vouched: Lsn) -> Result<(), String> {
        let Some((before, ..)) = &self.before else { return Ok(()) };
        let found = engine.opened().last;
        if found < vouched {
            return Err(format!("records up to {vouched} were vouched for, it opens with {found}"));
        }
        let now = images(engine);
        before.iter().try_for_each(|(place, was)| compare(*place, was, now.get(place), found))
    }

    /// Whether anything is known that a directory has to have.
    pub(super) fn knows_before(&self) -> bool {
        self.before.is_some()
    }

    /// Everything that was told is so.
    fn check_facts(&self, now: &Images) -> Result<(), String> {
        for (fact, _) in &self.facts {
            let (id, text) = match fact {
                Fact::Exists { id, run_id }
                | Fact::Signal { id, run_id, .. }
                | Fact::Answered { id, run_id, .. }
                | Fact::Cancelled { id, run_id }
                | Fact::Over { id, run_id }
                | Fact::Ended { id, run_id, .. } => (id, run_id),
            };
            let image = parse_run_id(text).and_then(|place| Some((place.0, now.get(&place)?)));
            let image = image.filter(|(_, image)| image.id == *id);
            let is_so = image.is_some_and(|(shard, image)| match fact {
                // The end of a run that went on as others is that of the last one.
                Fact::Ended { .. } => holds(fact, last_of_chain(now, shard, image)),
                _ => holds(fact, image),
            });
            if !is_so {
                return Err(format!("LAW-1: what was told is not so any more: {fact:?}"));
            }
        }
        Ok(())
    }

    /// The state of a live engine is what was told, and what the laws ask for.
    pub(super) fn check(&self, engine: &ForeignEngine) -> Result<(), String> {
        let now = images(engine);
        check_journals(&now)?;
        self.check_facts(&now)
    }
}

fn images(engine: &ForeignEngine) -> Images {
    let _recalled = quietly(|| engine.group().recall_all());
    let mut images = Images::new();
    for shard in (0..engine.group().shard_count()).map(ShardId) {
        engine.group().with(shard, |cell, _| {
            for (run, view) in cell.shard.views() {
                let encoded = |record: &Record<'_>| {
                    let mut bytes = Vec::new();
                    record.encode(&mut bytes);
                    bytes
                };
                let image = Image {
                    id: view.id.to_owned(),
                    key_root: view.key_root,
                    attributes: view.attributes.to_vec(),
                    journal: cell.shard.history(run).map(|entry| (entry.lsn, encoded(&entry.record))).collect(),
                    outcome: cell.shard.outcome(run).map(|(status, payload, lsn)| (status, payload.to_vec(), lsn)),
                };
                images.insert((shard, view.no), image);
            }
        });
    }
    images
}

/// A run after a crash is a prefix of what it was, up to the newest record that is there.
fn compare(place: (ShardId, RunNo), was: &Image, now: Option<&Image>, found: Lsn) -> Result<(), String> {
    let name = run_id(place.0, place.1);
    let kept = was.journal.partition_point(|(lsn, _)| *lsn <= found);
    let Some(now) = now.filter(|now| now.key_root == was.key_root) else {
        return if kept == 0 { Ok(()) } else { Err(format!("LAW-3: run {name} of {} is gone", was.id)) };
    };
    let same = now.journal.partition_point(|(lsn, _)| *lsn <= found);
    if now.id != was.id || now.journal[..same] != was.journal[..kept] {
        return Err(format!("LAW-3: the journal of run {name} of {} is not what it was", was.id));
    }
    match &was.outcome {
        Some(outcome) if outcome.2 <= found && now.outcome.as_ref() != Some(outcome) => {
            Err(format!("LAW-3: the end of run {name} of {} is not what it was", was.id))
        }
        Some(_) | None => Ok(()),
    }
}

fn holds(fact: &Fact, image: &Image) -> bool {
    let has = |is_meant: &dyn Fn(&Record<'_>) -> bool| {
        image.journal.iter().any(|(_, bytes)| Record::decode(bytes).is_ok_and(|record| is_meant(&record)))
    };
    match fact {
        Fact::Exists { .. } => true,
        Fact::Signal { payload, dedupe, .. } => has(&|record| match record {
            Record::Signal { payload: sent, dedupe: known, .. } => match dedupe {
                Some(dedupe) => *known == Some(dedupe),
                None => *sent == payload.as_bytes(),
            },
            _ => false,
        }),
        Fact::Answered { update_id, payload, .. } => {
            let mut accepted = None;
            image.journal.iter().any(|(_, bytes)| match Record::decode(bytes) {
                Ok(Record::Update { number, id, .. }) if id == update_id => {
                    accepted = Some(number);
                    false
                }
                Ok(Record::UpdateDone { number, payload: said, .. }) => {
                    accepted == Some(number) && said == payload.as_bytes()
                }
                _ => false,
            })
        }
        Fact::Cancelled { .. } => image.outcome.is_some() || has(&|record| matches!(record, Record::Cancel { .. })),
        Fact::Over { .. } => image.outcome.is_some(),
        Fact::Ended { status, payload, .. } => image
            .outcome
            .as_ref()
            .is_some_and(|(was, said, _)| u32::from(was.code()) == *status && said == payload.as_bytes()),
    }
}

/// The run that went on for a run, and so forth: one record ended the one and began the other.
fn last_of_chain<'a>(images: &'a Images, shard: ShardId, first: &'a Image) -> &'a Image {
    let mut image = first;
    while let Some((Status::ContinuedAsNew | Status::Terminated, _, lsn)) = &image.outcome {
        let begun_by = |next: &&Image| next.id == image.id && next.journal.first().is_some_and(|entry| entry.0 == *lsn);
        let of_shard = images.range((shard, RunNo(0))..=(shard, RunNo(u64::MAX)));
        match of_shard.map(|(_, next)| next).find(begun_by) {
            Some(next) => image = next,
            None => break,
        }
    }
    image
}

/// One result per step, one delivery per message, one child per call: whatever happened.
fn check_journals(images: &Images) -> Result<(), String> {
    let mut signals = BTreeSet::new();
    let mut parents = BTreeSet::new();
    let mut updates = BTreeSet::new();
    let went_on: BTreeSet<(ShardId, Lsn)> = images
        .iter()
        .filter_map(|((shard, _), image)| match &image.outcome {
            Some((Status::ContinuedAsNew | Status::Terminated, _, lsn)) => Some((*shard, *lsn)),
            Some(_) | None => None,
        })
        .collect();
    for ((shard, no), image) in images {
        let mut settled = BTreeSet::new();
        let mut attributes = Vec::new();
        let name = run_id(*shard, *no);
        for (lsn, bytes) in &image.journal {
            // What a run took over from the one that went on as it was checked there.
            let is_carried =
                went_on.contains(&(*shard, *lsn)) && image.journal.first().is_some_and(|(first, _)| first == lsn);
            let record = Record::decode(bytes).map_err(|error| format!("LAW-10: a record of run {name}: {error}"))?;
            // So was what it is a copy of.
            let is_carried = is_carried || record.run() != Some(*no);
            match record {
                Record::StepDone { seq, .. } if !settled.insert((2, seq)) => {
                    return Err(format!("LAW-7: operation {} of run {name} has two results", seq.0));
                }
                Record::TimerFired { seq, .. } if !settled.insert((7, seq)) => {
                    return Err(format!("LAW-7: operation {} of run {name} fired twice", seq.0));
                }
                Record::ChildDone { seq, .. } if !settled.insert((13, seq)) => {
                    return Err(format!("LAW-3: operation {} of run {name} heard of two ends", seq.0));
                }
                Record::Attributes { set, .. } => attributes = merge_attributes(&attributes, set),
                Record::UpdateDone { number, .. } if !settled.insert((21, Seq(number))) => {
                    return Err(format!("LAW-7: update {number} of run {name} has two answers"));
                }
                Record::Update { id, .. } if !updates.insert((*no, *shard, id.to_owned())) => {
                    return Err(format!("LAW-7: update {id} of run {name} was accepted twice"));
                }
                Record::Signal { payload, origin: Some(_), .. } if !is_carried && !signals.insert(payload.to_vec()) => {
                    return Err(format!("LAW-3: a message was applied twice, to run {name}"));
                }
                Record::Start { new, .. }
                    if !is_carried && new.parent.is_some_and(|(caller, _)| !parents.insert(caller)) =>
                {
                    return Err(format!("LAW-3: a child was started twice, the second time as run {name}"));
                }
                _ => {}
            }
        }
        if attributes != image.attributes && !image.journal.is_empty() {
            return Err(format!("LAW-3: run {name} has other search attributes than its records say"));
        }
    }
    Ok(())
}

/// The latest run of a workflow: its run id, and whether it has not ended.
pub(super) fn latest(engine: &ForeignEngine, id: &str) -> Option<(String, bool)> {
    let shard = engine.group().shard_of(id);
    let _recalled = quietly(|| engine.group().recall(shard, Some(id), None));
    engine.group().with(shard, |cell, _| {
        let run = cell.shard.find(Target { id, run: None }).ok()?;
        let view = cell.shard.view(run);
        Some((run_id(shard, view.no), view.status.is_none()))
    })
}

/// The newest record of the shard of a workflow.
pub(super) fn newest_of_shard(engine: &ForeignEngine, id: &str) -> Lsn {
    engine.group().with(engine.group().shard_of(id), |cell, _| cell.shard.last())
}
