//! Copies of a directory: made while it is used, made badly, and copies of one that is closed.

use super::checkpoint_task_tests::{World, config, steady, step};
use super::checkpoint_tests::{self as runs, kill, verify};
use super::*;
use crate::engine::*;
use crate::log::{LogError, Storage};
use std::sync::mpsc;

/// A process over a copy.
fn opened(disk: &SimDisk, now_ms: i64) -> World {
    let engine = ForeignEngine::open(config(disk, now_ms), Box::new(|| {})).unwrap();
    World { disk: disk.clone(), engine, now_ms, ..World::new(1, true) }
}

fn ids(engine: &mut ForeignEngine) -> Vec<String> {
    engine.group().flush();
    let shards = (0..engine.group().shard_count()).map(ShardId);
    let mut ids: Vec<String> = shards
        .flat_map(|shard| {
            engine
                .group()
                .with(shard, |cell, _| cell.shard.latest_runs().map(|(id, _)| id.to_owned()).collect::<Vec<_>>())
        })
        .collect();
    ids.sort_unstable();
    ids
}

#[test]
fn a_copy_of_a_running_directory_has_what_was_durable_and_both_go_on_law_1() {
    for seed in 1..=6 {
        let (mut world, mut rng) = (World::new(seed, true), Rng::new(seed));
        for at in 0..80 {
            step(&mut world, &mut rng);
            match rng.below(10) {
                0 => world.checkpoint(),
                1 => {
                    let copy = SimDisk::new(Rng::new(at));
                    world.engine.group().backup(&copy).unwrap();
                    let portrait = steady(world.portrait());
                    copy.crash(true);
                    let mut other = opened(&copy, world.now_ms);
                    other.settle();
                    assert_eq!(steady(other.portrait()), portrait, "seed {seed}, step {at}");
                    assert_eq!(ids(&mut other.engine), ids(&mut world.engine), "seed {seed}, step {at}");
                    (0..10).for_each(|_| step(&mut other, &mut rng));
                    other.checkpoint();
                    verify(&other.disk);
                }
                _ => {}
            }
        }
    }
}

#[test]
fn a_copy_is_made_while_others_work_and_checkpoints_wait_for_it_law_12() {
    let disk = SimDisk::new(Rng::new(1));
    let checkpoints = Some(CheckpointOptions { log_bytes_max: 64 << 10, ..CheckpointOptions::default() });
    let config = Config { clock: Clock::System, checkpoints, ..runs::config(&disk) };
    let mut engine = ForeignEngine::open(config, Box::new(|| {})).unwrap();
    let mut number = 0;
    for _ in 0..4 {
        let copy = SimDisk::new(Rng::new(2));
        let before = number;
        let (tell, told) = mpsc::channel();
        let target = copy.clone();
        let done = Box::new(move |_: &crate::runtime::Group, made: Result<(), LogError>| tell.send(made).unwrap());
        engine.group().backup_aside(Box::new(move || Ok(Box::new(target) as Box<dyn Storage>)), done).unwrap();
        let made = loop {
            runs::start(&mut engine, &format!("r{number}"));
            runs::told(&mut engine);
            number += 1;
            if let Ok(made) = told.try_recv() {
                break made;
            }
        };
        made.unwrap();
        copy.crash(true);
        let mut other = ForeignEngine::open(runs::config(&copy), Box::new(|| {})).unwrap();
        let found = ids(&mut other);
        assert!((before..=number).contains(&found.len()), "{} of {before} to {number}", found.len());
        for number in 0..found.len() {
            assert!(found.binary_search(&format!("r{number}")).is_ok(), "r{number} is missing: law 3");
        }
    }
    engine.close().unwrap();
}

#[test]
fn a_copy_that_was_not_finished_is_refused_with_the_reason_and_the_next_one_replaces_it() {
    let (mut world, mut rng) = (World::new(1, true), Rng::new(1));
    (0..60).for_each(|_| step(&mut world, &mut rng));
    world.checkpoint();
    (0..20).for_each(|_| step(&mut world, &mut rng));
    let portrait = steady(world.portrait());
    let mut refused = 0;
    for call in 1.. {
        let copy = SimDisk::new(Rng::new(call));
        let is_crash = call % 2 == 0;
        if is_crash {
            copy.die_after(Some(call))
        } else {
            copy.fail_after(call)
        };
        let made = world.engine.group().backup(&copy);
        let was_reached = made.is_err() || copy.is_dead();
        copy.crash(call / 2 % 2 == 0);
        copy.take_errors();
        match ForeignEngine::open(config(&copy, world.now_ms), Box::new(|| {})) {
            Err(error) => {
                assert!(error.code == ErrorCode::LogCorrupt && error.message.contains("not finished"), "{error}");
                refused += 1;
                world.engine.group().backup(&copy).unwrap();
            }
            // Nothing was there yet, or all of it.
            Ok(engine) if engine.opened().is_new => assert!(call < 6, "call {call}"),
            Ok(engine) => kill(&copy, engine, false),
        }
        if !copy.names().iter().any(|name| name == "runs") {
            continue;
        }
        assert_eq!(steady(opened(&copy, world.now_ms).portrait()), portrait, "call {call}");
        if !was_reached {
            break;
        }
    }
    assert!(refused > 10, "{refused} copies were refused");
}

#[test]
fn a_copy_needs_a_directory_of_its_own() {
    let (mut world, mut rng) = (World::new(1, true), Rng::new(1));
    (0..20).for_each(|_| step(&mut world, &mut rng));
    let error = world.engine.group().backup(&world.disk).unwrap_err();
    assert!(matches!(error, LogError::Locked { .. }), "{error}");
    let used = SimDisk::new(Rng::new(2));
    used.put("letter", Some(b"mine".to_vec()));
    let error = world.engine.group().backup(&used).unwrap_err();
    assert!(error.to_string().contains("not empty, it has \"letter\""), "{error}");
    assert_eq!(used.names(), ["letter"]);
}

#[test]
fn files_of_a_directory_in_use_copied_one_by_one_are_refused_or_have_all_that_was_there_law_10() {
    let mut refused = 0;
    for seed in 1..=30 {
        let (mut world, mut rng) = (World::new(seed % 5, true), Rng::new(seed));
        for _ in 0..60 {
            step(&mut world, &mut rng);
            if rng.one_in(10) {
                world.checkpoint();
            }
        }
        let before = ids(&mut world.engine);
        let copy = SimDisk::new(Rng::new(seed));
        let mut names: Vec<String> = world.disk.names();
        if rng.one_in(2) {
            names.reverse();
        }
        for name in names {
            copy.put(&name, world.disk.bytes(&name));
            (0..rng.below(40)).for_each(|_| step(&mut world, &mut rng));
            if rng.one_in(2) {
                world.checkpoint();
            }
        }
        match ForeignEngine::open(config(&copy, world.now_ms), Box::new(|| {})) {
            Err(error) => {
                assert!(error.code == ErrorCode::LogCorrupt, "seed {seed}: {error}");
                refused += 1;
            }
            Ok(mut engine) => {
                let found = ids(&mut engine);
                assert!(before.iter().all(|id| found.contains(id)), "seed {seed}: a copy that lacks what was there");
            }
        }
    }
    assert!((5..30).contains(&refused), "{refused} of 30 were refused");
}

#[test]
fn the_files_of_a_closed_directory_are_a_copy() {
    let (mut world, mut rng) = (World::new(1, true), Rng::new(1));
    (0..60).for_each(|_| step(&mut world, &mut rng));
    world.checkpoint();
    (0..20).for_each(|_| step(&mut world, &mut rng));
    let portrait = steady(world.portrait());
    world.engine.close().unwrap();
    let copy = SimDisk::new(Rng::new(1));
    for name in world.disk.names() {
        copy.put(&name, world.disk.bytes(&name));
    }
    assert_eq!(steady(opened(&copy, world.now_ms).portrait()), portrait);
}

#[test]
fn a_store_of_which_half_was_copied_before_a_checkpoint_and_half_behind_it_is_refused_or_whole_law_10() {
    let mut refused = 0;
    for seed in 1..=30 {
        let (mut world, mut rng) = (World::new(seed % 5, true), Rng::new(seed));
        (0..60).for_each(|_| step(&mut world, &mut rng));
        world.checkpoint();
        let before = (ids(&mut world.engine), steady(world.portrait()));
        let early = world.disk.bytes("runs").unwrap();
        for _ in 0..rng.between(1, 4) {
            (0..20).for_each(|_| step(&mut world, &mut rng));
            world.checkpoint();
        }
        let copy = SimDisk::new(Rng::new(seed));
        for name in world.disk.names() {
            copy.put(&name, world.disk.bytes(&name));
        }
        let mut mixed = world.disk.bytes("runs").unwrap();
        let cut = rng.below(early.len() as u64) as usize;
        mixed[..cut].copy_from_slice(&early[..cut]);
        copy.put("runs", Some(mixed));
        match ForeignEngine::open(config(&copy, world.now_ms), Box::new(|| {})) {
            Err(error) => {
                assert!(error.code == ErrorCode::LogCorrupt, "seed {seed}: {error}");
                refused += 1;
            }
            Ok(mut engine) => {
                let found = ids(&mut engine);
                let warnings = engine.group().warnings().len();
                assert!(warnings > 0 || before.0.iter().all(|id| found.contains(id)), "seed {seed}: lacks runs");
            }
        }
    }
    assert!(refused > 15, "only {refused} of 30 were refused");
}

#[test]
fn whoever_asked_for_a_copy_and_sleeps_is_woken_when_it_is_made() {
    let (wake, woken) = mpsc::channel();
    let config = Config { clock: Clock::System, ..runs::config(&SimDisk::new(Rng::new(1))) };
    let mut engine = ForeignEngine::open(config, Box::new(move || wake.send(()).unwrap())).unwrap();
    runs::start(&mut engine, "a");
    runs::told(&mut engine);
    let (go, wait) = mpsc::channel::<()>();
    let target = SimDisk::new(Rng::new(2));
    let open = Box::new(move || {
        wait.recv().unwrap();
        Ok(Box::new(target) as Box<dyn Storage>)
    });
    engine.group().backup_aside(open, Box::new(|_, made| made.unwrap())).unwrap();
    assert!(!engine.idle().1, "there is nothing yet");
    assert!(woken.try_recv().is_err());
    go.send(()).unwrap();
    // Patience, not a measure.
    woken.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    drop(woken);
    engine.group().abandon();
}
