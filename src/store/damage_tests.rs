//! The damage matrix of the run store: a small one, damaged in every place and way, has to be refused, or to say what is
//! damaged, or to say exactly what it said before. What can be read is never something else.
//!
//! A sample of the bits runs always; every one of them with `cargo test --release --lib damage -- --include-ignored`.

use super::tests::MemoryFile;
use super::*;
use crate::record::{RunNo, ShardId, TaskNo};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

const ME: Identity = Identity { store: [7; 16], shards: 2 };
const SHARDS: [ShardId; 2] = [ShardId(0), ShardId(1)];
const STATUSES: [u8; 2] = [1, 2];
const RUNS: u64 = 30;
const SECTOR: usize = 512;

type Run = Option<(Stored, Vec<u8>)>;

/// What the store answers, each thing as its text: errors too, since they may differ.
#[derive(Debug, Default)]
struct Answers {
    /// What lies under a key: runs, states of shards, the scheduler.
    values: BTreeMap<String, Result<Option<String>, StoreError>>,
    /// What was looked up: lists, counts, the newest run of an id. Something missing may change them.
    lookups: BTreeMap<String, Result<String, StoreError>>,
}

fn text_of(run: Run) -> Option<String> {
    run.map(|(head, journal)| format!("{head:?} {journal:?}"))
}

fn ask(store: &Store) -> Answers {
    let mut answers = Answers::default();
    for shard in SHARDS {
        answers.values.insert(
            format!("state of {shard:?}"),
            store.shard(shard).map(|state| state.map(|state| format!("{state:?}"))),
        );
        for no in 1..=RUNS {
            let run = store.run(shard, RunNo(no)).map(text_of);
            answers.values.insert(format!("run {shard:?} {no}"), run);
            let newest = store.latest(shard, &format!("id-{no}")).map(|no| format!("{no:?}"));
            answers.lookups.insert(format!("newest of {shard:?} id-{no}"), newest);
        }
        let mut open = Vec::new();
        let found = store.open_runs(shard, &mut |run| open.push((run.no, run.head.is_ok(), run.journal.is_ok())));
        answers.lookups.insert(format!("open in {shard:?}"), found.map(|()| format!("{open:?}")));
    }
    let mut tasks = Vec::new();
    let found = store.scheduler(&mut |no, bytes| {
        tasks.push(format!("{no:?} {bytes:?}"));
        Ok(())
    });
    answers.lookups.insert("the scheduler".into(), found.map(|is_there| format!("{is_there} {tasks:?}")));
    for kinds in [&[][..], &["even".to_owned()]] {
        let query =
            Query { kinds, statuses: &STATUSES, from_ms: 0, before_ms: None, after: None, is_newest_first: false };
        let mut list = Vec::new();
        let found = store.finished(&query, &mut |place, head| {
            list.push((place, head.map(|head| format!("{head:?}"))));
            Page::More
        });
        answers.lookups.insert(format!("list of {kinds:?}"), found.map(|()| format!("{list:?}")));
        let count = store.count(kinds, &STATUSES).map(|count| count.to_string());
        answers.lookups.insert(format!("count of {kinds:?}"), count);
    }
    for status in STATUSES {
        let ended = store.ended_before(status, i64::MAX, 1_000).map(|ended| format!("{ended:?}"));
        answers.lookups.insert(format!("ended as {status}"), ended);
    }
    answers
}

fn file_of(bytes: Vec<u8>) -> MemoryFile {
    MemoryFile(Arc::new(Mutex::new(bytes)))
}

fn put(
    writer: &mut Writer<'_>,
    shard: ShardId,
    no: u64,
    chunks: u32,
    end: Option<(u8, i64)>,
) -> Result<(), StoreError> {
    let id = format!("id-{no}");
    let kind = if no.is_multiple_of(2) { "even" } else { "odd" };
    let head = Head { id: &id, kind, created_ms: no as i64, order_ms: no as i64, end, chunks, body: &[no as u8; 40] };
    let journal = vec![no as u8; 20 + 37 * (no as usize % 40)];
    let chunk = if end.is_some() { Chunk::Whole(&journal) } else { Chunk::Append(&journal) };
    writer.put_run(&RunWrite { shard, no: RunNo(no), head, chunk }).map(drop)
}

/// One more checkpoint, with a run of its own.
fn write_on(store: &Store) -> Result<(), StoreError> {
    store.checkpoint(|writer| {
        put(writer, SHARDS[0], RUNS + 1, 0, Some((1, 999)))?;
        writer.put_shard(SHARDS[0], b"a state")
    })
}

struct Reference {
    bytes: Vec<u8>,
    answers: Answers,
    /// The same after [`write_on`].
    later: Answers,
}

impl Reference {
    /// Runs that were written by several checkpoints, some of them ended or taken away since, beside shards and tasks.
    fn new() -> Reference {
        let file = MemoryFile::default();
        let store = Store::create(Box::new(file.clone()), ME).unwrap();
        for round in 0..4 {
            let done = store.checkpoint::<_, StoreError>(|writer| {
                for shard in SHARDS {
                    for no in (1..=RUNS).filter(|no| no % 4 == round) {
                        put(writer, shard, no, 0, None)?;
                    }
                    for no in (1..=RUNS).filter(|no| round > 0 && no % 4 == round - 1 && no % 3 > 0) {
                        put(writer, shard, no, 1, Some((STATUSES[no as usize % 2], 100 + no as i64)))?;
                    }
                    writer.put_shard(shard, &[round as u8; 30])?;
                }
                if round == 3 {
                    assert!(writer.remove_run(SHARDS[0], RunNo(5))?);
                }
                for no in 1..=20 {
                    writer.put_task(TaskNo(no), (no % 4 != round).then_some(&[no as u8; 100][..]))?;
                }
                writer.put_scheduler(&mut [&b"one part"[..], b"another part"].into_iter())
            });
            done.unwrap();
        }
        drop(store);
        let bytes = file.0.lock().clone();
        let store = Store::open(Box::new(file_of(bytes.clone())), &ME.store).unwrap();
        assert_eq!(store.verify().unwrap().damages, [""; 0]);
        let answers = ask(&store);
        write_on(&store).unwrap();
        Reference { bytes, later: ask(&store), answers }
    }

    /// Stretches of the file that are not empty, in sectors.
    fn used(&self) -> Vec<Range<usize>> {
        let sectors = (0..self.bytes.len()).step_by(SECTOR).map(|at| at..(at + SECTOR).min(self.bytes.len()));
        sectors.filter(|sector| self.bytes[sector.clone()].iter().any(|byte| *byte != 0)).collect()
    }

    /// Opens a store whose file has other bytes, asks for everything, writes to it, and asks again. How it went.
    fn try_damage(&self, bytes: Vec<u8>, what: &dyn Fn() -> String) -> Outcome {
        let store = match Store::open(Box::new(file_of(bytes)), &ME.store) {
            Ok(store) => store,
            Err(error) => {
                self.typed(&error, what);
                return Outcome::Refused;
            }
        };
        let before = self.compare(&store, &self.answers, what);
        if let Err(error) = write_on(&store) {
            self.typed(&error, what);
            return Outcome::Told;
        }
        before.max(self.compare(&store, &self.later, what))
    }

    fn typed(&self, error: &StoreError, what: &dyn Fn() -> String) {
        let is_damage =
            matches!(error, StoreError::Damaged { .. } | StoreError::Foreign { .. } | StoreError::Newer { .. });
        assert!(is_damage, "{}: {error:?}", what());
    }

    fn compare(&self, store: &Store, expected: &Answers, what: &dyn Fn() -> String) -> Outcome {
        let found = ask(store);
        let mut differs = Vec::new();
        for (name, was) in &expected.values {
            let is = &found.values[name];
            if is == was {
                continue;
            }
            // What a lost branch of the tree hides is missing; it is never another value.
            assert!(matches!(is, Err(_) | Ok(None)), "{}: {name} was {was:?} and is {is:?}", what());
            differs.push(name);
        }
        differs
            .extend(expected.lookups.iter().filter(|(name, was)| found.lookups[*name] != **was).map(|(name, _)| name));
        let is_told = store.verify().map_or(true, |verified| !verified.damages.is_empty());
        assert!(is_told || differs.is_empty(), "{}: {differs:?} differ, and all is said to be well", what());
        if is_told { Outcome::Told } else { Outcome::Harmless }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// It hit what is not in use, or no longer.
    Harmless,
    Told,
    Refused,
}

fn flip_bits(step: usize) -> BTreeMap<Outcome, usize> {
    let reference = Reference::new();
    let bits: Vec<usize> = reference.used().into_iter().flat_map(|used| used.start * 8..used.end * 8).collect();
    let mut outcomes = BTreeMap::new();
    for bit in bits.into_iter().step_by(step) {
        let mut bytes = reference.bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let outcome = reference.try_damage(bytes, &|| format!("bit {} of byte {}", bit % 8, bit / 8));
        *outcomes.entry(outcome).or_default() += 1;
    }
    outcomes
}

#[test]
fn a_flipped_bit_of_the_store_is_told_and_changes_nothing_else_law_10() {
    let outcomes = flip_bits(6_007);
    assert!(outcomes[&Outcome::Told] > 5, "{outcomes:?}");
}

#[test]
#[ignore = "a million openings; takes minutes in a release build"]
fn every_flipped_bit_of_the_store_is_told_and_changes_nothing_else_law_10() {
    println!("{:?}", flip_bits(1));
}

/// Damages every `step`-th pair of a sector in use and a way to damage it. How often it was told.
fn damage_sectors(step: usize) -> usize {
    let reference = Reference::new();
    let used = reference.used();
    let ways = ["zeros instead", "noise instead", "a shift by a byte", "another sector instead"];
    let pairs = used.iter().enumerate().flat_map(|pair| ways.map(|way| (pair, way)));
    let mut told = 0;
    for ((index, sector), way) in pairs.step_by(step) {
        let other = used[(index + 7) % used.len()].clone();
        let mut bytes = reference.bytes.clone();
        for (offset, at) in sector.clone().enumerate() {
            bytes[at] = match way {
                "zeros instead" => 0,
                "noise instead" => bytes[at] ^ (offset as u8).wrapping_mul(37) ^ 0x5a,
                "a shift by a byte" => reference.bytes[at.saturating_sub(1)],
                _ => reference.bytes[(other.start + offset).min(reference.bytes.len() - 1)],
            };
        }
        let outcome = reference.try_damage(bytes, &|| format!("{way} at {sector:?}"));
        told += usize::from(outcome != Outcome::Harmless);
    }
    told
}

#[test]
fn a_damaged_sector_of_the_store_is_told_and_changes_nothing_else_law_10() {
    let told = damage_sectors(23);
    assert!(told > 5, "only {told}");
}

#[test]
#[ignore = "takes a minute"]
fn every_damaged_sector_of_the_store_is_told_and_changes_nothing_else_law_10() {
    println!("{} are told", damage_sectors(1));
}

#[test]
fn a_cut_store_is_told_and_changes_nothing_else_law_10() {
    let reference = Reference::new();
    let ends = reference.used().into_iter().step_by(5).flat_map(|used| [used.start, used.start + 1, used.end - 1]);
    for keep in ends.chain([0, 1, reference.bytes.len() - 1]) {
        reference.try_damage(reference.bytes[..keep].to_vec(), &|| format!("a cut to {keep} bytes"));
    }
}
