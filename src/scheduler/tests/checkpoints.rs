//! A checkpoint and the records behind it say what all records say.

use super::history::{History, Rng, Seen, setting};
use super::store::Store;
use super::world::World;
use crate::record::{TaskNo, TaskRecord};
use crate::scheduler::{Config, Engine, Member, MemberNo, Output, RestoreError};

/// All that an engine keeps and shows, in a form that does not depend on where in its tables it keeps it.
fn portrait(engine: &mut Engine, now_ms: i64) -> Vec<String> {
    let mut lines: Vec<String> = engine.encode_head().into_iter().map(|part| format!("{part:?}")).collect();
    let tasks: Vec<TaskNo> = engine.tasks_after(TaskNo(0)).map(|view| view.task).collect();
    for number in tasks {
        let ix = engine.tasks.find(number).unwrap();
        // Having options and having none of them is the same.
        engine.tasks[ix].more_mut();
        let mut bytes = Vec::new();
        engine.encode_task(ix, &mut bytes);
        lines.push(format!("{:?} {:?} {bytes:?}", engine.task(number).unwrap(), engine.explain(number)));
    }
    let queues: Vec<String> = engine.queue_names().map(str::to_owned).collect();
    for queue in queues {
        lines.push(format!("{:?}", engine.handle_snapshot(now_ms, &queue)));
    }
    for name in ["c", "k", "r"] {
        lines.push(format!("{:?}", engine.limit_usage(name, None)));
    }
    lines.extend(engine.schedules().map(|schedule| format!("{schedule:?}")));
    lines.push(format!("{:?} {:?} {:?}", engine.keys.keys(), engine.awaited.keys(), engine.ended.keys()));
    lines.push(format!("{:?} {:?} {:?}", engine.next_wake_ms(), engine.waiting.len(), engine.pending));
    lines
}

/// An output, without the number that stands for a caller in this life.
fn told(output: &Output) -> String {
    match output {
        Output::Admitted { result, .. } => format!("{result:?}"),
        other => format!("{other:?}"),
    }
}

fn answers(engine: &mut Engine) -> Vec<Output> {
    std::iter::from_fn(|| engine.poll_output()).collect()
}

/// What an engine is after a restart, and what it then does when `seed` chooses what happens.
fn goes_on(engine: Engine, before: &World, seed: u64) -> Vec<String> {
    let mut world = World { engine, now_ms: before.now_ms, ..World::new(before.config.clone()) };
    world.engine.recover(before.now_ms, seed.is_multiple_of(4));
    world.drain();
    let mut lines = portrait(&mut world.engine, world.now_ms);
    let mut history = History::new(world, seed);
    (0..30).for_each(|_| history.step(&mut Seen::default()));
    let mut world = history.world;
    lines.extend(world.records.iter().map(|record| format!("{:?}", TaskRecord::decode(record).unwrap())));
    lines.extend(world.outputs.iter().map(told));
    lines.extend(portrait(&mut world.engine, world.now_ms));
    lines
}

/// A restart from the store and one from all records are the same, before anything happens and after.
fn compare(world: &World, seed: u64) {
    let config = Config { epoch: world.config.epoch + 1, ..world.config.clone() };
    let records = &world.records;
    let mut all = Store::default().restored(&config, records);
    let mut stored = Store::of(world.store.stored.clone()).restored(&config, records);
    let (told, told_since) = (answers(&mut all), answers(&mut stored));
    assert!(told.ends_with(&told_since), "{told_since:?} is no end of {told:?}");
    let (all, stored) = (goes_on(all, world, seed), goes_on(stored, world, seed));
    let differ = all.iter().zip(&stored).find(|(all, stored)| all != stored);
    assert_eq!(differ, None, "by all records, and by what is stored up to record {}", world.store.records());
    assert_eq!(all.len(), stored.len());
}

fn play(seed: u64, steps: usize) -> History {
    let mut history = History::new(World::new(Config { seed, ..setting() }), seed);
    let (mut rng, mut seen) = (Rng::new(!seed), Seen::default());
    for _ in 0..steps {
        history.step(&mut seen);
        match rng.below(16) {
            0 => history.world.begin_checkpoint(),
            1..=9 if history.world.save_tasks(rng.below(1_000) as usize) => {
                compare(&history.world, rng.below(u64::MAX));
            }
            10 if rng.one_in(4) => history.world.give_up_checkpoint(),
            11 => compare(&history.world, rng.below(u64::MAX)),
            12 if rng.one_in(3) => history.crash(&mut seen),
            _ => {}
        }
    }
    history
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the test is told its seeds from outside")]
fn a_checkpoint_and_the_records_behind_it_are_all_records() {
    let first: u64 = std::env::var("FUSEE_SEED").map_or(1, |seed| seed.parse().unwrap());
    let count: u64 = std::env::var("FUSEE_SEEDS").map_or(6, |count| count.parse().unwrap());
    let mut stored = 0;
    for seed in first..first + count {
        let played = std::panic::catch_unwind(|| play(seed, 200).world.store.records());
        stored += usize::from(played.unwrap_or_else(|_| panic!("FUSEE_SEED={seed} FUSEE_SEEDS=1")) > 0);
    }
    assert!(stored as u64 > count / 2, "most histories store something");
}

/// Whether all of it is taken back. What is, goes on.
fn takes_back(config: &Config, head: &[Vec<u8>], tasks: &[Vec<u8>], now_ms: i64) -> bool {
    let mut engine = Engine::new(config.clone()).unwrap();
    let is_good = head.iter().all(|part| engine.restore_head(part).is_ok())
        && tasks.iter().all(|task| engine.restore_task(task).is_ok())
        && engine.restore_links().is_ok();
    if is_good {
        engine.recover(now_ms, false);
        engine.handle_time(now_ms.saturating_add(10_000));
    }
    is_good
}

/// Changes a value somewhere, in one of the ways in which bytes go wrong.
fn damage(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let at = rng.below(bytes.len() as u64) as usize;
    match rng.below(5) {
        0 => bytes.truncate(at),
        1 => bytes[at] ^= 1 << rng.below(8),
        2 => bytes[at] = rng.below(256) as u8,
        3 => drop(bytes.splice(at..=at, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1])),
        _ => drop(bytes.splice(at..=at, [0xff, 0xff, 0xff, 0xff, 0xf])),
    }
}

#[test]
fn damaged_bytes_are_refused_or_taken_back_and_never_panic() {
    let (mut refused, mut taken) = (0, 0);
    for seed in 1..4 {
        let mut history = play(seed, 120);
        history.world.begin_checkpoint();
        while !history.world.save_tasks(1 << 20) {}
        let (config, now_ms) = (history.world.config.clone(), history.world.now_ms);
        let stored = history.world.store.stored.unwrap();
        let tasks: Vec<Vec<u8>> = stored.tasks.into_values().collect();
        assert!(takes_back(&config, &stored.head, &tasks, now_ms));
        let mut rng = Rng::new(seed);
        for _ in 0..200 {
            let (mut head, mut tasks) = (stored.head.clone(), tasks.clone());
            let values = head.len() + tasks.len();
            let at = rng.below(values as u64) as usize;
            let head_len = head.len();
            damage(&mut rng, if at < head_len { &mut head[at] } else { &mut tasks[at - head_len] });
            let counts = if takes_back(&config, &head, &tasks, now_ms) { &mut taken } else { &mut refused };
            *counts += 1;
        }
    }
    assert!(refused > taken && taken > 0, "{refused} refused, {taken} taken back");
}

#[test]
fn a_list_that_says_it_is_endless_is_refused_at_once() {
    let mut engine = Engine::new(setting()).unwrap();
    let endless = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    let task: Vec<u8> = [1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0].into_iter().chain(endless).collect();
    assert!(matches!(engine.restore_task(&task), Err(RestoreError::Decode(_))));
}

#[test]
fn a_part_of_the_head_is_bounded_however_much_waits() {
    let mut history = History::new(World::new(setting()), 1);
    for at in 0..200 {
        let spec = history.schedule_spec();
        history.world.engine.handle_schedule(0, &format!("schedule {at}"), &spec).unwrap();
    }
    let mut world = history.world;
    world.drain();
    world.begin_checkpoint();
    while !world.save_tasks(1 << 20) {}
    let head = &world.store.stored.as_ref().unwrap().head;
    assert!(head.len() > 10 && head.iter().all(|part| part.len() < 512), "{} parts", head.len());
    let mut engine = world.store.restored(&world.config, &world.records);
    engine.recover(0, true);
    assert_eq!(engine.schedules().count(), 200);
}

#[test]
fn threads_leave_nothing_in_a_checkpoint() {
    let kinds =
        |names: &[&str]| Member { kinds: names.iter().map(|name| (*name).into()).collect(), labels: Vec::new() };
    let mut world = World::of(super::world::queue(2));
    world.engine.handle_member(0, MemberNo(1), kinds(&["k"]));
    let task = world.submit(&super::world::spec());
    assert!(world.running.contains_key(&task));
    world.begin_checkpoint();
    while !world.save_tasks(1 << 20) {}
    world.crash();
    assert!(world.running.contains_key(&task), "whoever drives the engine has all code until threads come");
    world.config.kinds = Some(std::collections::BTreeSet::new());
    world.crash_at(world.records.len(), true);
    assert_eq!(world.engine.explain(task), Some(crate::scheduler::Reason::Unregistered));
    world.engine.handle_member(0, MemberNo(2), kinds(&["k"]));
    world.drain();
    assert!(world.running.contains_key(&task));
}
