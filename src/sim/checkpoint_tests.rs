//! Checkpoints over a disk that fails and loses power: what is in the store, what is in the log, and that together they
//! are everything that was acknowledged.

use super::*;
use crate::engine::{
    CheckpointOptions, Clock, Config, Durability, EngineError, ErrorCode, EventKind, Events, FIELD, Filter,
    ForeignEngine, IdConflict, IdReuse, ROW, Run, StartRequest,
};
use crate::log::LogOptions;
use crate::record::ShardId;
use crate::store::{Store, StoreFile};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;

pub(super) fn config(disk: &SimDisk) -> Config {
    let log = LogOptions { segment_bytes: 12 << 10, reserve_bytes: 0, ..LogOptions::default() };
    Config {
        shards: 2,
        log,
        clock: Clock::virtual_at(1_000),
        checkpoints: Some(CheckpointOptions { log_bytes_max: 1 << 30, kept_runs: 0 }),
        ..Config::new(Durability::Custom(Arc::new(disk.clone())))
    }
}

fn try_engine(disk: &SimDisk) -> Result<ForeignEngine, EngineError> {
    ForeignEngine::open(config(disk), Box::new(|| {}))
}

fn engine(disk: &SimDisk) -> ForeignEngine {
    try_engine(disk).unwrap()
}

/// Starts a run whose input is long and says its id.
pub(super) fn start(engine: &mut ForeignEngine, id: &str) {
    start_with(engine, id, &id.repeat(400 / id.len()));
}

fn start_with(engine: &mut ForeignEngine, id: &str, input: &str) {
    let request = StartRequest {
        id,
        kind: "p",
        version: 1,
        input: input.as_bytes(),
        reuse: IdReuse::Allow,
        conflict: IdConflict::Fail,
        timeout_ms: None,
        actor: None,
        result_token: None,
        with: None,
        attributes: b"",
    };
    engine.start(1, request).unwrap();
}

pub(super) fn told(engine: &mut ForeignEngine) -> Vec<(EventKind, String)> {
    engine.group().flush();
    let mut events = Events::default();
    while engine.tick(&mut events) {}
    events.drain().map(|event| (event.kind, event.text)).collect()
}

pub(super) fn latest(id: &str) -> Run<'_> {
    Run { id, run_id: "" }
}

/// What a client is told about a run, without its run id.
fn described(engine: &mut ForeignEngine, id: &str) -> String {
    told(engine);
    engine.describe(9, latest(id)).unwrap();
    let (kind, text) = told(engine).pop().unwrap();
    format!("{kind:?} {text}")
}

/// How a run ended.
fn outcome(engine: &mut ForeignEngine, id: &str) -> String {
    told(engine);
    engine.result(9, latest(id)).unwrap();
    told(engine).pop().unwrap().1
}

fn history(engine: &mut ForeignEngine, id: &str) -> String {
    told(engine);
    engine.history(9, latest(id), 0, 100).unwrap();
    told(engine).pop().unwrap().1
}

pub(super) fn kill(disk: &SimDisk, engine: ForeignEngine, is_power_cut: bool) {
    disk.die_after(Some(1));
    engine.group().abandon();
    drop(engine);
    disk.crash(is_power_cut);
    disk.take_errors();
}

pub(super) fn log_files(disk: &SimDisk) -> Vec<String> {
    disk.names().into_iter().filter(|name| name.ends_with(".log")).collect()
}

/// Everything in the store is as it should be.
pub(super) fn verify(disk: &SimDisk) {
    let copy = disk.copy(&mut Rng::new(1));
    let store_id = engine(&copy).group().store_id();
    store_of(disk, &store_id, |store| assert_eq!(store.verify().unwrap().damages, [""; 0]));
}

/// Does something with a copy of the store and returns its bytes.
pub(super) fn store_of(disk: &SimDisk, store_id: &[u8; 16], act: impl FnOnce(&Store)) -> Vec<u8> {
    #[derive(Clone)]
    struct Bytes(Arc<Mutex<Vec<u8>>>);
    impl StoreFile for Bytes {
        fn len(&self) -> io::Result<u64> {
            Ok(self.0.lock().len() as u64)
        }
        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            let bytes = self.0.lock();
            let count = buffer.len().min(bytes.len().saturating_sub(offset as usize));
            buffer[..count].copy_from_slice(&bytes[offset as usize..][..count]);
            Ok(count)
        }
        fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
            self.0.lock()[offset as usize..][..bytes.len()].copy_from_slice(bytes);
            Ok(())
        }
        fn set_len(&self, length: u64) -> io::Result<()> {
            self.0.lock().resize(length as usize, 0);
            Ok(())
        }
        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }
    let bytes = Bytes(Arc::new(Mutex::new(disk.bytes("runs").unwrap())));
    let store = Store::open(Box::new(bytes.clone()), store_id).unwrap();
    act(&store);
    drop(store);
    bytes.0.lock().clone()
}

/// A directory with runs 0 to 59 of which 0 to 9 have ended, whose log is trimmed; not closed.
fn filled(disk: &SimDisk) -> ForeignEngine {
    let mut first = engine(disk);
    for number in 0..60 {
        start(&mut first, &format!("r{number}"));
        told(&mut first);
    }
    for number in 0..10 {
        first.terminate(1, latest(&format!("r{number}")), "over", None).unwrap();
    }
    told(&mut first);
    let before = log_files(disk).len();
    assert!(first.group().checkpoint().unwrap());
    assert!(before > 2 && log_files(disk).len() == 1, "{before} files of the log, then {:?}", log_files(disk));
    first
}

#[test]
fn a_checkpoint_trims_the_log_and_a_killed_process_finds_every_run_law_12() {
    for is_power_cut in [false, true] {
        let disk = SimDisk::new(Rng::new(1));
        let mut first = filled(&disk);
        assert!(!first.group().checkpoint().unwrap(), "nothing has changed");
        first.terminate(1, latest("r10"), "behind it", None).unwrap();
        let all: Vec<String> = (0..60).map(|number| format!("r{number}")).collect();
        let before: Vec<_> = all.iter().map(|id| (described(&mut first, id), history(&mut first, id))).collect();
        kill(&disk, first, is_power_cut);
        let mut second = engine(&disk);
        assert_eq!((second.opened().records, second.group().open_runs()), (1, 49));
        let after: Vec<_> = all.iter().map(|id| (described(&mut second, id), history(&mut second, id))).collect();
        assert_eq!(after, before);
        verify(&disk);
    }
}

/// Finished runs in memory.
fn ended_in_memory(engine: &ForeignEngine) -> usize {
    let ended = |shard| engine.group().with(ShardId(shard), |cell, _| cell.shard.ended_count());
    (0..2).map(ended).sum()
}

#[test]
fn memory_does_not_follow_the_number_of_finished_runs_law_12() {
    let disk = SimDisk::new(Rng::new(1));
    let mut first = engine(&disk);
    for round in 0..20 {
        for number in 0..50 {
            let id = format!("r{round}.{number}");
            start(&mut first, &id);
            first.terminate(1, latest(&id), "over", None).unwrap();
            told(&mut first);
        }
        assert!(first.group().checkpoint().unwrap());
        assert_eq!(ended_in_memory(&first), 0, "after {} runs", 50 * (round + 1));
        let places: u32 =
            (0..2).map(|shard| first.group().with(ShardId(shard), |cell, _| cell.shard.run_count())).sum();
        assert!(places <= 100, "{places} places in memory after {} runs", 50 * (round + 1));
    }
    for round in 0..20 {
        for number in 0..50 {
            assert!(history(&mut first, &format!("r{round}.{number}")).contains("over"));
        }
    }
    assert!(ended_in_memory(&first) <= 4, "those that were looked at leave again");
    kill(&disk, first, true);
    let mut second = engine(&disk);
    assert_eq!((second.opened().records, ended_in_memory(&second)), (0, 0), "an open reads none of them");
    assert!(outcome(&mut second, "r3.7").contains("over"));
}

/// Pages of all runs with a status, the ids alone; and how many are counted.
fn listed(engine: &mut ForeignEngine, mask: u32, is_newest_first: bool) -> (Vec<String>, String) {
    let filter = Filter::Status(mask);
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        told(engine);
        engine.list(9, &filter, "q", is_newest_first, &cursor, 7).unwrap();
        let text = told(engine).pop().unwrap().1;
        let mut rows: Vec<&str> = text.split(ROW).collect();
        cursor = rows.pop().unwrap().to_owned();
        ids.extend(rows.iter().map(|row| row.split(FIELD).next().unwrap().to_owned()));
        if cursor.is_empty() {
            break;
        }
    }
    told(engine);
    engine.count(9, &filter).unwrap();
    (ids, told(engine).pop().unwrap().1)
}

#[test]
fn a_list_and_a_count_have_the_runs_in_memory_and_those_in_the_store_once_each() {
    let disk = SimDisk::new(Rng::new(1));
    let config =
        Config { checkpoints: Some(CheckpointOptions { log_bytes_max: 1 << 30, kept_runs: 3 }), ..config(&disk) };
    let mut first = ForeignEngine::open(config, Box::new(|| {})).unwrap();
    let ids: Vec<String> = (0..60).map(|number| format!("r{number}")).collect();
    for (number, id) in ids.iter().enumerate() {
        start(&mut first, id);
        if number % 3 > 0 {
            first.terminate(1, latest(id), "over", None).unwrap();
        }
        told(&mut first);
        if number % 20 == 19 {
            assert!(first.group().checkpoint().unwrap());
        }
    }
    first.terminate(1, latest("r0"), "over, and not stored", None).unwrap();
    drop(described(&mut first, "r1"));
    assert!(ended_in_memory(&first) < 10);
    let sorted = |ids: &mut dyn Iterator<Item = &String>| -> Vec<String> {
        let mut ids: Vec<String> = ids.cloned().collect();
        ids.sort();
        ids
    };
    let over = |number: &usize| *number == 0 || !number.is_multiple_of(3);
    let all = sorted(&mut ids.iter());
    let ended = sorted(&mut (0..60).filter(over).map(|number| &ids[number]));
    for (mask, expected) in [(u32::MAX, &all), (!1 & 0xffff, &ended)] {
        let (mut oldest_first, count) = listed(&mut first, mask, false);
        let (mut newest_first, _) = listed(&mut first, mask, true);
        oldest_first.sort();
        newest_first.sort();
        assert_eq!((&oldest_first, &newest_first, count), (expected, expected, expected.len().to_string()));
    }
}

#[test]
fn an_id_whose_run_is_in_the_store_alone_is_in_use_no_more_and_was_law_7() {
    let disk = SimDisk::new(Rng::new(1));
    let mut first = filled(&disk);
    assert_eq!(ended_in_memory(&first), 0);
    let again = |reuse| StartRequest {
        id: "r3",
        kind: "p",
        version: 1,
        input: b"",
        reuse,
        conflict: IdConflict::Fail,
        timeout_ms: None,
        actor: None,
        result_token: None,
        with: None,
        attributes: b"",
    };
    assert_eq!(first.start(1, again(IdReuse::Reject)).unwrap(), None);
    assert!(told(&mut first)[0].1.contains("has already run (terminated)"));
    assert!(first.start(1, again(IdReuse::Allow)).unwrap().is_some());
    told(&mut first);
    assert!(described(&mut first, "r3").starts_with("Reply"));
    assert_eq!(first.group().open_runs(), 51);
}

#[test]
fn an_orderly_end_leaves_nothing_to_replay_and_a_small_directory_no_store_law_12() {
    let disk = SimDisk::new(Rng::new(1));
    let mut first = engine(&disk);
    start(&mut first, "small");
    first.close().unwrap();
    assert_eq!(disk.bytes("runs"), None);
    let mut second = engine(&disk);
    for number in 0..3_000 {
        start(&mut second, &format!("r{number}"));
    }
    second.close().unwrap();
    drop(second);
    assert!(log_files(&disk).len() <= 2, "{:?}", log_files(&disk));
    let third = engine(&disk);
    assert_eq!((third.opened().records, third.group().open_runs()), (0, 3_001));
}

#[test]
fn a_store_is_read_also_where_no_checkpoints_are_made() {
    let disk = SimDisk::new(Rng::new(1));
    kill(&disk, filled(&disk), false);
    let config = Config { checkpoints: None, ..config(&disk) };
    let mut second = ForeignEngine::open(config, Box::new(|| {})).unwrap();
    assert_eq!(second.group().open_runs(), 50);
    start(&mut second, "more");
    told(&mut second);
    assert!(!second.group().checkpoint().unwrap());
    kill(&disk, second, true);
    assert_eq!(engine(&disk).group().open_runs(), 51);
}

/// Whatever call of a checkpoint is the last one or fails: nothing is lost, and the next checkpoint succeeds.
fn at_every_call(from: u64, prepare: &dyn Fn(&SimDisk, u64), goes_on: bool) {
    for call in 1.. {
        let disk = SimDisk::new(Rng::new(from + call));
        let mut first = if call % 2 == 0 { filled(&disk) } else { engine(&disk) };
        let (is_first, is_power_cut) = (call % 2 == 1, call / 2 % 2 == 0);
        for id in ["x", "y", "z"] {
            start(&mut first, id);
        }
        first.terminate(1, latest("x"), "over", None).unwrap();
        told(&mut first);
        disk.take_errors();
        prepare(&disk, call);
        let made = first.group().checkpoint();
        let was_reached = disk.take_errors() > 0;
        disk.fail_after(u64::MAX / 2);
        if goes_on && !matches!(first.health().0, "failed") {
            first.signal(5, latest("y"), "s", b"\"after\"", None, None).unwrap();
            told(&mut first);
            let again = first.group().checkpoint();
            assert!(again.is_ok(), "call {call} failed with {made:?}, then {again:?}");
            assert_eq!(first.health().0, "ok");
        }
        kill(&disk, first, is_power_cut);
        let mut second = try_engine(&disk).unwrap_or_else(|error| panic!("call {call}: {error}"));
        assert_eq!(second.group().open_runs(), if is_first { 2 } else { 52 }, "call {call}");
        assert!(outcome(&mut second, "x").contains("over"), "call {call}");
        start(&mut second, "more");
        told(&mut second);
        assert!(second.group().checkpoint().unwrap(), "call {call}");
        verify(&disk);
        kill(&disk, second, true);
        assert_eq!(engine(&disk).group().open_runs(), if is_first { 3 } else { 53 }, "call {call}");
        if !was_reached {
            assert!(call > 20, "a checkpoint makes more calls than {call}");
            return;
        }
    }
}

#[test]
fn every_call_of_a_checkpoint_may_be_the_last_one_rule_r6() {
    at_every_call(100, &|disk, call| disk.die_after(Some(call)), false);
}

#[test]
fn every_call_of_a_checkpoint_may_fail_and_what_the_next_process_sees_stays_rule_r6() {
    for goes_on in [false, true] {
        at_every_call(500, &|disk, call| disk.fail_after(call), goes_on);
    }
}

#[test]
fn a_full_disk_stops_checkpoints_and_nothing_else_and_they_heal_law_9() {
    let disk = SimDisk::new(Rng::new(3));
    let mut engine = filled(&disk);
    start(&mut engine, "more");
    disk.set_faults(Faults { full: 1, ..Faults::default() });
    for number in 0..5 {
        start(&mut engine, &format!("m{number}"));
        assert_eq!(told(&mut engine)[0].0, EventKind::Reply, "the log acknowledges");
        // A larger store needs space.
        for other in 0..20 {
            start(&mut engine, &format!("n{number}.{other}"));
        }
        if engine.group().checkpoint().is_err() {
            break;
        }
    }
    let (status, problems) = engine.health();
    assert_eq!(status, "degraded");
    assert!(problems.iter().any(|problem| problem.contains("no checkpoint could be made")), "{problems:?}");
    disk.set_faults(Faults::default());
    told(&mut engine);
    assert!(engine.group().checkpoint().unwrap());
    assert_eq!(engine.health(), ("ok", Vec::new()));
}

fn files(disk: &SimDisk) -> Vec<(String, Option<Vec<u8>>)> {
    disk.names().into_iter().map(|name| (name.clone(), disk.bytes(&name))).collect()
}

#[test]
fn a_store_that_is_missing_damaged_or_of_another_log_is_refused_by_name_and_nothing_is_touched_law_10() {
    let disk = SimDisk::new(Rng::new(1));
    filled(&disk).close().unwrap();
    let other = SimDisk::new(Rng::new(2));
    filled(&other).close().unwrap();
    let store = disk.bytes("runs").unwrap();
    let cut = store[..store.len() / 2].to_vec();
    let mut flipped = store.clone();
    flipped[3] ^= 1;
    let cases = [
        (None, "it is missing, and the log begins with record"),
        (Some(other.bytes("runs").unwrap()), "it was made for another log"),
        (Some(Vec::new()), "its file is empty"),
        (Some(vec![0; 8192]), "damaged"),
        (Some(b"text".repeat(4000)), "damaged"),
        (Some(cut), "damaged"),
        (Some(flipped), "damaged"),
    ];
    for (bytes, expected) in cases {
        disk.put("runs", bytes.clone());
        let before = files(&disk);
        let error = try_engine(&disk).map(drop).unwrap_err();
        assert_eq!(error.code, ErrorCode::LogCorrupt, "{error}");
        assert!(error.message.contains("file \"runs\"") && error.message.contains(expected), "{expected}: {error}");
        assert!(error.message.contains("restore"), "{error}");
        assert!(before == files(&disk), "{expected}: something was written");
    }
    disk.put("runs", Some(store));
    assert_eq!(engine(&disk).group().open_runs(), 50);
    for name in log_files(&disk) {
        disk.put(&name, None);
    }
    let error = try_engine(&disk).map(drop).unwrap_err();
    assert!(error.message.contains("there is no log"), "{error}");
}

#[test]
fn a_log_that_ends_before_what_the_store_has_is_damaged_rule_r4() {
    let disk = SimDisk::new(Rng::new(1));
    let mut first = engine(&disk);
    start(&mut first, "a");
    told(&mut first);
    let (name, early) = (log_files(&disk)[0].clone(), disk.bytes(&log_files(&disk)[0]).unwrap());
    start(&mut first, "b");
    told(&mut first);
    assert!(first.group().checkpoint().unwrap());
    kill(&disk, first, false);
    disk.put(&name, Some(early));
    let error = try_engine(&disk).map(drop).unwrap_err();
    assert_eq!(error.code, ErrorCode::LogCorrupt, "{error}");
}

/// Changes the place in the store where something unique is written.
pub(super) fn rot(disk: &SimDisk, text: &str) {
    let mut store = disk.bytes("runs").unwrap();
    let places: Vec<usize> =
        (0..store.len() - text.len()).filter(|at| store[*at..].starts_with(text.as_bytes())).collect();
    assert!(!places.is_empty(), "{text} is in the store");
    for at in places {
        store[at] ^= 1;
    }
    disk.put("runs", Some(store));
}

#[test]
fn damage_to_one_run_is_told_and_spares_the_others_law_10() {
    let disk = SimDisk::new(Rng::new(1));
    filled(&disk).close().unwrap();
    rot(&disk, &"r5".repeat(100));
    rot(&disk, &"r50".repeat(100));
    let mut second = engine(&disk);
    let warnings = second.group().warnings().to_vec();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("r50") && warnings[0].contains("left out"), "{warnings:?}");
    assert_eq!(second.group().open_runs(), 49);
    assert_eq!(second.health().0, "ok", "a finished run is read when it is asked for");
    assert!(outcome(&mut second, "r5").contains("over"), "how it ended is known");
    assert!(history(&mut second, "r5").contains("is damaged in the run store"), "its history is not");
    let (status, problems) = second.health();
    assert_eq!((status, problems.len()), ("degraded", 1), "{problems:?}");
    assert!(problems[0].contains("journal of run"), "{problems:?}");
    assert!(described(&mut second, "r50").starts_with("Refuse"));
    start(&mut second, "r50");
    assert_eq!(told(&mut second)[0].0, EventKind::Reply, "the id is free");
    assert!(second.group().checkpoint().unwrap());
    kill(&disk, second, true);
    let mut third = engine(&disk);
    assert_eq!(third.group().open_runs(), 50);
    assert!(described(&mut third, "r50").starts_with("Reply"));
}

#[test]
fn what_cannot_be_read_at_an_open_is_not_taken_for_damage_rule_r4() {
    let disk = SimDisk::new(Rng::new(1));
    let mut first = engine(&disk);
    // Its journal has pages of its own, which nothing else is read from, and is the last that is read.
    let id = ["a", "b", "c", "d", "e"].into_iter().find(|id| first.group().shard_of(id).0 == 1).unwrap();
    start_with(&mut first, id, &"large".repeat(2_000));
    first.terminate(1, latest(id), "over", None).unwrap();
    told(&mut first);
    assert!(first.group().checkpoint().unwrap());
    kill(&disk, first, false);
    for call in 1.. {
        disk.fail_after(call);
        let opened = try_engine(&disk);
        let was_reached = disk.take_errors() > 0;
        disk.fail_after(u64::MAX / 2);
        match opened {
            Ok(mut engine) => {
                assert_eq!(engine.group().warnings(), [""; 0], "call {call}");
                assert_ne!(history(&mut engine, id), "", "call {call}");
                kill(&disk, engine, false);
            }
            Err(error) => assert_eq!(error.code, ErrorCode::Storage, "call {call}: {error}"),
        }
        if !was_reached {
            assert!(call > 20, "an open makes more calls than {call}");
            return;
        }
    }
}

#[test]
fn a_thread_makes_checkpoints_as_the_log_grows() {
    let disk = SimDisk::new(Rng::new(1));
    let checkpoints = Some(CheckpointOptions { log_bytes_max: 20 << 10, kept_runs: 3 });
    let config = Config { clock: Clock::System, checkpoints, ..config(&disk) };
    let mut first = ForeignEngine::open(config, Box::new(|| {})).unwrap();
    let mut number = 0;
    // It needs some time; that it never comes is the end of the test's patience.
    while disk.bytes("runs").is_none() || log_files(&disk).len() > 2 {
        start(&mut first, &format!("r{number}"));
        told(&mut first);
        number += 1;
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(number < 30_000, "no checkpoint: {:?}", first.health());
    }
    first.group().flush();
    first.group().abandon();
    drop(first);
    disk.crash(true);
    assert_eq!(engine(&disk).group().open_runs(), number);
}
