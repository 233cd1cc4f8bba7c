//! A sample of seeds, the seeds that once found something, and one seed on request.

use super::*;
use crate::engine::{
    Clock, Config, Durability, EngineError, ErrorCode, EventKind, Events, ForeignEngine, IdConflict, IdReuse, Run,
    StartRequest,
};
use crate::log::LogOptions;
use std::sync::Arc;

/// Seeds that found a bug when they were new. What a seed does changes with the simulator, so each bug has a test of its
/// own as well: [`every_call_of_a_recovery_may_fail_and_the_next_ones_have_everything_rule_r5`], the reads of an open in
/// `checkpoint_tests`, and the pause after a cancel among the tests of the machine.
const FOUND: &[u64] = &[66, 1126, 19_861, 135_318];

#[test]
fn no_seed_breaks_a_law() {
    if let Ok(seed) = std::env::var("FUSEE_SEED") {
        let (result, trace) = trace_seed(seed.parse().unwrap());
        println!("{}", trace.join("\n"));
        panic!("seed {seed}: {result:?}");
    }
    let count = std::env::var("FUSEE_SEEDS").map_or(300, |count| count.parse().unwrap());
    for seed in FOUND.iter().copied().chain(1..=count) {
        if let Err(broken) = run_seed(seed) {
            panic!(
                "seed {seed}: {broken}\nFUSEE_SEED={seed} cargo test sim::tests::no_seed_breaks_a_law -- --nocapture"
            );
        }
    }
}

#[test]
fn a_seed_does_the_same_again() {
    for seed in [3, 50, 77, 141] {
        let (first, second) = (run_seed(seed), run_seed(seed));
        assert_eq!(format!("{first:?}"), format!("{second:?}"), "seed {seed}");
        let ((_, first), (_, second)) = (trace_seed(seed), trace_seed(seed));
        assert_eq!(first.len(), second.len(), "seed {seed}");
    }
}

/// An engine over a disk that fails when it is told to.
fn engine(disk: &SimDisk) -> ForeignEngine {
    try_engine(disk).unwrap()
}

fn try_engine(disk: &SimDisk) -> Result<ForeignEngine, EngineError> {
    let log = LogOptions {
        segment_bytes: 12 << 10,
        staged_bytes_max: 2_000,
        reserve_bytes: 16 << 10,
        ..LogOptions::default()
    };
    // Under a clock that stands there is no thread of the log: what it writes and when would change what a fault hits.
    let clock = Clock::virtual_at(1_000);
    let config = Config { shards: 1, log, clock, ..Config::new(Durability::Custom(Arc::new(disk.clone()))) };
    ForeignEngine::open(config, Box::new(|| {}))
}

fn start(engine: &mut ForeignEngine, token: u32, id: &str) -> Result<(), EngineError> {
    engine
        .start(
            token,
            StartRequest {
                id,
                kind: "p",
                version: 1,
                input: &[b'x'; 500],
                reuse: IdReuse::Allow,
                conflict: IdConflict::Fail,
                attributes: b"",
                timeout_ms: None,
                actor: None,
                result_token: None,
                with: None,
            },
        )
        .map(drop)
}

/// What is told after everything was written that can be.
fn told(engine: &mut ForeignEngine) -> Vec<(EventKind, u32)> {
    engine.group().flush();
    let mut events = Events::default();
    while engine.tick(&mut events) {}
    events.drain().map(|event| (event.kind, event.a)).collect()
}

#[test]
fn after_a_failed_flush_nobody_is_told_anything_but_that_law_9() {
    let disk = SimDisk::new(Rng::new(1));
    let mut first = engine(&disk);
    start(&mut first, 1, "kept").unwrap();
    assert_eq!(told(&mut first), [(EventKind::Reply, 1)]);
    start(&mut first, 2, "unknown").unwrap();
    disk.set_faults(Faults { sync: 1, ..Faults::default() });
    assert_eq!(told(&mut first), [(EventKind::Failed, 0)]);
    disk.set_faults(Faults::default());
    assert_eq!(told(&mut first), [], "it is not tried again");
    let run = Run { id: "kept", run_id: "" };
    for refused in [
        start(&mut first, 3, "late"),
        first.signal(4, run, "s", b"", None, None),
        first.cancel(4, run, "", None),
        first.terminate(4, run, "", None),
        first.result(4, run),
    ] {
        assert_eq!(refused.unwrap_err().code, ErrorCode::Storage);
    }
    assert_eq!(first.health().0, "failed");
    assert_eq!(first.close().unwrap_err().code, ErrorCode::Storage);
    let mut second = engine(&disk);
    second.describe(5, run).unwrap();
    assert_eq!(told(&mut second), [(EventKind::Reply, 5)]);
    assert!(!second.opened().is_clean);
}

#[test]
fn a_full_disk_refuses_commands_keeps_what_it_took_and_heals_by_itself_law_9() {
    let disk = SimDisk::new(Rng::new(2));
    let mut engine = engine(&disk);
    disk.set_faults(Faults { full: 1, ..Faults::default() });
    // The first segment has room for some of them.
    let taken = (1..100).take_while(|number| {
        let taken = start(&mut engine, *number, &format!("r{number}"));
        engine.group().flush();
        taken.is_ok()
    });
    let taken = taken.count() as u32;
    assert!(taken > 2 && taken < 99, "{taken} starts were taken");
    assert_eq!(start(&mut engine, 100, "late").unwrap_err().code, ErrorCode::StorageFull);
    assert_eq!(engine.health().0, "degraded");
    assert!(engine.next_due_ms().is_some_and(|ms| ms <= 1_000), "it tries again by itself");
    let before = told(&mut engine);
    assert!(!before.contains(&(EventKind::Reply, taken)), "the last one waits");
    disk.set_faults(Faults::default());
    assert!(told(&mut engine).contains(&(EventKind::Reply, taken)));
    assert_eq!((engine.health().0, start(&mut engine, 101, "again")), ("ok", Ok(())));
    assert_eq!(told(&mut engine), [(EventKind::Reply, 101)]);
}

#[test]
fn on_a_full_disk_cancels_and_terminates_get_through_and_nothing_else_law_9() {
    let disk = SimDisk::new(Rng::new(2));
    let mut engine = engine(&disk);
    for (token, id) in [(1, "a"), (2, "b"), (3, "c")] {
        start(&mut engine, token, id).unwrap();
        told(&mut engine);
    }
    disk.set_faults(Faults { full: 1, ..Faults::default() });
    let taken = (10..100).take_while(|token| {
        let is_taken = start(&mut engine, *token, &format!("r{token}")).is_ok();
        engine.group().flush();
        is_taken
    });
    assert!(taken.count() > 0);
    let run = |id| Run { id, run_id: "" };
    engine.cancel(101, run("a"), "make space", None).unwrap();
    engine.terminate(102, run("b"), "make space", None).unwrap();
    let answers = told(&mut engine);
    assert!(answers.contains(&(EventKind::Ack, 101)) && answers.contains(&(EventKind::Ack, 102)), "{answers:?}");
    for refused in [start(&mut engine, 103, "late"), engine.signal(104, run("c"), "s", b"", None, None)] {
        assert_eq!(refused.unwrap_err().code, ErrorCode::StorageFull);
    }
    assert_eq!(engine.health().0, "degraded");
    disk.set_faults(Faults::default());
    // Nothing waits any more; the host comes back by itself all the same, and then the reserve is made again.
    assert!(engine.next_due_ms().is_some_and(|ms| ms <= 1_000));
    engine.idle();
    assert_eq!((engine.health().0, start(&mut engine, 105, "again")), ("ok", Ok(())));
}

#[test]
fn every_call_of_a_first_open_may_be_the_last_one() {
    for is_power_cut in [false, true] {
        for call in 1..60 {
            let disk = SimDisk::new(Rng::new(call));
            disk.die_after(Some(call));
            let config = Config { shards: 2, ..Config::new(Durability::Custom(Arc::new(disk.clone()))) };
            let opened = ForeignEngine::open(config.clone(), Box::new(|| {}));
            let is_over = opened.is_ok() && !disk.is_dead();
            if let Ok(engine) = opened {
                engine.group().abandon();
            }
            disk.crash(is_power_cut);
            let again = ForeignEngine::open(config, Box::new(|| {}));
            assert!(again.is_ok(), "died in call {call}: {:?}", again.err());
            if is_over {
                assert!(call > 4, "an open makes more calls than {call}");
                break;
            }
        }
    }
}

#[test]
fn every_call_of_a_recovery_may_fail_and_the_next_ones_have_everything_rule_r5() {
    for seed in 0..12 {
        for call in 1.. {
            let disk = SimDisk::new(Rng::new(seed));
            let mut first = engine(&disk);
            start(&mut first, 1, "kept").unwrap();
            assert_eq!(told(&mut first), [(EventKind::Reply, 1)]);
            first.group().abandon();
            disk.crash(false);
            disk.take_errors();
            disk.fail_after(call);
            if let Ok(second) = try_engine(&disk) {
                second.group().abandon();
            }
            let was_reached = disk.take_errors() > 0;
            disk.crash(false);
            let mut third = try_engine(&disk).unwrap_or_else(|error| panic!("call {call} failed: {error}"));
            start(&mut third, 2, "more").unwrap();
            assert_eq!(told(&mut third), [(EventKind::Reply, 2)]);
            third.group().abandon();
            disk.crash(true);
            let mut fourth = try_engine(&disk).unwrap_or_else(|error| panic!("call {call} failed: {error}"));
            for (token, id) in [(3, "kept"), (4, "more")] {
                fourth.describe(token, Run { id, run_id: "" }).unwrap();
                assert_eq!(told(&mut fourth), [(EventKind::Reply, token)], "{id} after call {call} failed");
            }
            if !was_reached {
                assert!(call > 8, "a recovery makes more calls than {call}");
                break;
            }
        }
    }
}
