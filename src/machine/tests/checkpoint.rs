//! A shard that comes back from a checkpoint and the records behind it is what it was: LAW-3, rule R6.

use super::restore::{image, play};
use super::world::*;
use crate::machine::*;
use crate::record::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Default)]
struct Kept {
    id: String,
    kind: String,
    created_ms: i64,
    order_ms: i64,
    is_ended: bool,
    body: Vec<u8>,
    chunks: Vec<Vec<u8>>,
}

impl Kept {
    fn name(&self, no: RunNo) -> SavedName<'_> {
        let Kept { id, kind, created_ms, order_ms, .. } = self;
        SavedName { no, id, kind, created_ms: *created_ms, order_ms: *order_ms }
    }
}

/// What stands for the store: the last checkpoint that was committed.
#[derive(Clone, Default)]
struct Shelf {
    runs: BTreeMap<(ShardId, RunNo), Kept>,
    states: BTreeMap<ShardId, Vec<u8>>,
}

/// A checkpoint that has begun.
struct Begun {
    position: Lsn,
    states: Vec<Vec<u8>>,
    changed: Vec<Vec<RunIx>>,
}

fn begin(world: &mut World) -> Begun {
    let position = Lsn(world.log.len() as u64);
    let states = world.shards.iter_mut().map(|shard| shard.save_state(position)).collect();
    let changed = world.shards.iter_mut().map(Shard::take_changed).collect();
    Begun { position, states, changed }
}

/// Writes a checkpoint that began some time ago, and forgets finished runs that it has, if they may be.
fn finish(world: &mut World, shelf: &mut Shelf, begun: Begun, forgets: bool) {
    for (index, shard) in world.shards.iter_mut().enumerate() {
        let id = ShardId(index as u16);
        shelf.states.insert(id, begun.states[index].clone());
        let mut ended = Vec::new();
        for run in begun.changed[index].iter().copied() {
            let Some(saved) = shard.save_run(run, begun.position) else { continue };
            let kept = shelf.runs.entry((id, saved.name.no)).or_default();
            assert_eq!(kept.chunks.len() as u32, saved.chunks);
            match saved.records {
                SavedRecords::None => {}
                SavedRecords::More(bytes) => kept.chunks.push(bytes.to_vec()),
                SavedRecords::All(bytes) => kept.chunks = vec![bytes.to_vec()],
            }
            *kept = Kept {
                id: saved.name.id.into(),
                kind: saved.name.kind.into(),
                created_ms: saved.name.created_ms,
                order_ms: saved.name.order_ms,
                is_ended: saved.end.is_some(),
                body: saved.body.clone(),
                chunks: std::mem::take(&mut kept.chunks),
            };
            let (to, chunks, is_ended) = (saved.stored_to, kept.chunks.len() as u32, kept.is_ended);
            shard.saved(run, to, chunks, is_ended);
            if is_ended {
                ended.push(run);
            }
        }
        if forgets {
            for run in ended {
                assert!(shard.forget(run));
            }
        }
    }
}

fn recall(shelf: &Shelf, shard: &mut Shard, id: ShardId, no: RunNo) {
    if shard.known(no).is_none()
        && let Some(kept) = shelf.runs.get(&(id, no)).filter(|kept| kept.is_ended)
    {
        let ended = EndedRun::decode(&kept.body).unwrap();
        shard.recall(kept.name(no), ended, &kept.chunks.concat());
    }
}

fn restored(world: &World, shelf: &Shelf) -> Vec<Shard> {
    let count = world.shards.len() as u16;
    let mut shards: Vec<Shard> = (0..count).map(|id| Shard::new(ShardId(id), count)).collect();
    let mut positions = vec![Lsn::NONE; usize::from(count)];
    for (index, shard) in shards.iter_mut().enumerate() {
        let id = ShardId(index as u16);
        for ((of, no), kept) in &shelf.runs {
            if *of == id && !kept.is_ended {
                shard.restore_run(kept.name(*no), kept.chunks.len() as u32, &kept.body, &kept.chunks.concat()).unwrap();
            }
        }
        if let Some(state) = shelf.states.get(&id) {
            positions[index] = shard.restore_state(state).unwrap();
        }
    }
    for ((id, record), lsn) in world.log.iter().zip(1..) {
        let (shard, lsn) = (&mut shards[usize::from(id.0)], Lsn(lsn));
        if lsn > positions[usize::from(id.0)] {
            if let Some(no) = Record::decode(record).unwrap().run() {
                recall(shelf, shard, *id, no);
            }
            shard.restore(lsn, record).unwrap();
        }
    }
    shards
}

/// Everything, the finished runs of the shelf included. Which record about a finished run was the last one is not kept.
fn whole(shelf: &Shelf, mut shards: Vec<Shard>) -> Vec<String> {
    for (id, no) in shelf.runs.keys() {
        recall(shelf, &mut shards[usize::from(id.0)], *id, *no);
    }
    shards
        .iter_mut()
        .map(|shard| {
            let ended: Vec<RunIx> =
                shard.views().filter(|(_, view)| view.status.is_some()).map(|(run, _)| run).collect();
            for run in ended {
                shard.run_mut(run).last = Lsn::NONE;
            }
            image(shard)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_checkpoint_and_the_records_behind_it_give_the_state_of_all_records_law_3_rule_r6(
        script in proptest::collection::vec((any::<u8>(), any::<u8>()), 1..160),
        // How many verbs until a checkpoint begins, until its runs are taken, whether finished runs are forgotten.
        rounds in proptest::collection::vec((0usize..30, 0usize..12, any::<bool>()), 1..8),
        shards in 1u16..4,
    ) {
        let mut world = World::new(shards);
        world.shards.iter_mut().for_each(Shard::keep_ended_journals);
        let mut shelf = Shelf::default();
        let mut rest = &script[..];
        let mut take = |count: usize| {
            let (now, later) = rest.split_at(count.min(rest.len()));
            rest = later;
            now
        };
        for (until, during, forgets) in rounds {
            play(&mut world, take(until));
            let begun = begin(&mut world);
            play(&mut world, take(during));
            finish(&mut world, &mut shelf, begun, forgets);
            let all = whole(&Shelf::default(), world.restored_from(world.log.len()));
            prop_assert_eq!(&whole(&shelf, restored(&world, &shelf)), &all);
            // Goes on from the checkpoint, as after a restart, with nobody's code in memory.
            let back = restored(&world, &shelf);
            let live = std::mem::replace(&mut world.shards, back);
            prop_assert_eq!(&whole(&shelf, live), &all, "the live one");
            for shard in &mut world.shards {
                shard.keep_ended_journals();
                shard.restored(false, &mut Vec::new());
            }
            world.effects.clear();
        }
    }
}

#[test]
fn what_a_failed_checkpoint_had_belongs_to_the_next_one() {
    let mut world = World::new(1);
    let run = world.started("a");
    let begun = begin(&mut world);
    assert_eq!(begun.changed, [vec![run.1]]);
    assert!(world.shards[0].is_unchanged());
    world.shards[0].give_back(&begun.changed[0]);
    assert!(!world.shards[0].is_unchanged());
    assert_eq!(begin(&mut world).changed, [vec![run.1]]);
    assert_eq!(begin(&mut world).changed, [vec![]], "nothing has happened since");
}

#[test]
fn a_run_that_is_not_stored_as_ended_is_not_forgotten() {
    let mut world = World::new(1);
    let run = world.started("a");
    assert!(!world.shards[0].forget(run.1));
    world.finish(run, Status::Completed, "x").unwrap();
    assert!(!world.shards[0].forget(run.1));
    let begun = begin(&mut world);
    finish(&mut world, &mut Shelf::default(), begun, true);
    assert_eq!((world.shards[0].ended_count(), world.shards[0].known_id("a")), (0, None));
    let again = world.started("b");
    assert_eq!(again.1, run.1, "its place is used again");
}

#[test]
fn whoever_waits_for_a_chain_still_waits_for_its_last_run_after_a_checkpoint_law_3() {
    let mut world = World::new(1);
    world.shards.iter_mut().for_each(Shard::keep_ended_journals);
    let (run, watcher) = (world.started("a"), world.started("b"));
    world.send(watcher, "a", Sending::Watch).unwrap();
    super::continuing::go_on(&mut world, run, "next").unwrap();
    let next = world.find("a");
    let waiting = |shard: &Shard, run: RunIx| shard.run(run).open().map(|open| open.watchers.len());
    assert_eq!(waiting(&world.shards[0], next.1), Some(1), "the run that went on has the one that waits");
    let mut shelf = Shelf::default();
    let begun = begin(&mut world);
    finish(&mut world, &mut shelf, begun, true);
    let back = restored(&world, &shelf);
    assert_eq!(waiting(&back[0], back[0].known_id("a").unwrap()), Some(1));
}
