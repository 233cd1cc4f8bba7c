//! Runs that go on as new ones, starts with a signal, patches, shielded operations.

use super::world::*;
use crate::machine::*;
use crate::record::*;

pub(super) fn go_on(world: &mut World, run: R, input: &str) -> Result<(), Halt> {
    let next = NextRun { version: 2, key_root: [9; 16], timeout_ms: None, input: input.as_bytes() };
    world.on(run.0, |shard, work| shard.continue_as_new(work, run.1, next))
}

#[test]
fn a_run_goes_on_as_a_new_one_with_the_signals_that_nobody_took() {
    let mut world = World::new(1);
    let run = world.started("a");
    for (name, payload) in [("x", "1"), ("y", "2"), ("x", "3")] {
        world.signal("a", name, payload).unwrap();
    }
    world.wait(run, "x", None).unwrap();
    assert_eq!(world.next(run), Some((DeliveryKind::SignalTaken, 1)));
    world.signal_once("a", "z", "4", Some("k")).unwrap();
    go_on(&mut world, run, "next").unwrap();
    for life in 0..2 {
        assert_eq!(world.status(run), Some(Status::ContinuedAsNew));
        let next = world.find("a");
        assert_ne!(next, run);
        let view = world.shards[0].view(next.1);
        assert_eq!((view.version, view.status, view.key_root), (2, None, [9; 16]));
        assert_eq!(world.shards[0].input(next.1), b"next");
        assert_eq!(world.labels(next)[..4], ["started", "signalReceived", "signalReceived", "signalReceived"]);
        assert_eq!(world.labels(run).last(), Some(&"ended"));
        assert_eq!(world.load(next), Some(true));
        assert_eq!(world.next(next), Some((DeliveryKind::Start, 0)));
        for (seq, (name, payload)) in [("y", "2"), ("x", "3"), ("z", "4")].into_iter().enumerate() {
            assert_eq!(world.wait(next, name, None), Ok(None), "life {life}");
            assert_eq!(world.next(next), Some((DeliveryKind::SignalTaken, seq as u32 + 1)));
            assert_eq!(world.payload(next), payload);
        }
        world.signal_once("a", "z", "5", Some("k")).unwrap();
        assert_eq!(world.labels(next).iter().filter(|label| **label == "signalReceived").count(), 3);
        world.reopen(false);
    }
}

#[test]
fn a_cancel_that_the_code_has_not_seen_goes_with_it() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.cancel("a").unwrap();
    go_on(&mut world, run, "").unwrap();
    let next = world.find("a");
    world.load(next);
    assert_eq!(world.next(next), Some((DeliveryKind::Start, 0)));
    assert_eq!(world.next(next), Some((DeliveryKind::Cancelled, 0)));
    world.finish(next, Status::Cancelled, "").unwrap();
    assert_eq!(world.shards[0].last_of_chain(run.1), next.1);
    let first = world.shards[0].view(run.1).no;
    let target = Target { id: "a", run: Some(first) };
    assert_eq!(world.shards[0].find_last(target), Ok(next.1));
}

#[test]
fn a_parent_hears_of_the_end_of_the_last_run_only_law_3() {
    let mut world = World::new(2);
    let parent = world.started("parent");
    world.child(parent, child("kid")).unwrap();
    world.rests(parent);
    let kid = world.find("kid");
    world.load(kid);
    world.next(kid);
    go_on(&mut world, kid, "more").unwrap();
    world.rests(parent);
    world.crash(parent);
    world.child(parent, child("kid")).unwrap();
    world.rests(parent);
    let next = world.find("kid");
    world.load(next);
    assert_eq!(world.next(next), Some((DeliveryKind::Start, 0)));
    world.finish(next, Status::Completed, "done").unwrap();
    assert_eq!(world.next(parent), Some((DeliveryKind::ChildEnded, 1)));
    assert_eq!(world.payload(parent), "Completed:done");
    world.finish(parent, Status::Completed, "").unwrap();
}

#[test]
fn a_run_that_was_continued_is_closed_with_its_parent() {
    let mut world = World::new(1);
    let parent = world.started("parent");
    world.child(parent, child("kid")).unwrap();
    let kid = world.find("kid");
    world.load(kid);
    world.next(kid);
    go_on(&mut world, kid, "more").unwrap();
    world.finish(parent, Status::Completed, "").unwrap();
    assert_eq!(world.status(world.find("kid")), Some(Status::Terminated));
}

#[test]
fn continuing_elsewhere_than_recorded_is_a_mismatch_law_5() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.sleep(run, 5).unwrap();
    world.rests(run);
    world.crash(run);
    assert_eq!(go_on(&mut world, run, ""), Err(Halt::Mismatch));
}

#[test]
fn a_start_and_its_signal_are_one_record() {
    let mut world = World::new(1);
    let signal = NewSignal { name: "x", payload: b"1", dedupe: Some("k") };
    let start = |world: &mut World, input: &str, conflict| {
        let (new, reuse) = (new_run("a", input), IdReuse::Allow);
        world.on(0, |shard, work| {
            shard.start_signalled(work, StartCommand { new, attributes: b"", reuse, conflict }, signal)
        })
    };
    let started = start(&mut world, "in", IdConflict::UseExisting).unwrap();
    assert_eq!((world.log.len(), started.is_existing), (1, false));
    for _ in 0..2 {
        let again = start(&mut world, "other", IdConflict::UseExisting).unwrap();
        assert_eq!((again.run, again.is_existing), (started.run, true));
        let run = world.find("a");
        assert_eq!(world.labels(run)[..2], ["started", "signalReceived"]);
        let signals = world.labels(run).iter().filter(|label| **label == "signalReceived").count();
        assert_eq!(signals, 1, "the second signal is the first one again");
        world.load(run);
        world.next(run);
        assert_eq!(world.wait(run, "x", None), Ok(None));
        assert_eq!(world.next(run), Some((DeliveryKind::SignalTaken, 1)));
        world.reopen(false);
    }
    assert!(start(&mut world, "in", IdConflict::Fail).is_err());
    world.limit(Limits { payload_bytes_max: 2, ..Limits::default() });
    assert!(matches!(start(&mut world, "in", IdConflict::UseExisting), Err(Refusal::BadInput(_))), "both together");
}

#[test]
fn a_patch_holds_from_where_nothing_more_was_recorded() {
    let patched = |world: &mut World, run: R, id: &str| world.on(0, |shard, work| shard.patched(work, run.1, id));
    let mut world = World::new(1);
    let run = world.started("a");
    world.sleep(run, 5).unwrap();
    world.rests(run);
    world.advance(5);
    assert_eq!(world.next(run), Some((DeliveryKind::TimerFired, 1)));
    world.wait(run, "x", None).unwrap();
    world.rests(run);
    for life in 0..3 {
        world.crash(run);
        assert_eq!(patched(&mut world, run, "early"), Ok(false), "life {life}: the old code has been here");
        world.sleep(run, 5).unwrap();
        assert_eq!(world.next(run), Some((DeliveryKind::TimerFired, 1)));
        world.wait(run, "x", None).unwrap();
        if life == 0 {
            world.rests(run);
            world.signal("a", "x", "1").unwrap();
        }
        assert_eq!(world.next(run), Some((DeliveryKind::SignalTaken, 2)));
        assert_eq!(patched(&mut world, run, "late"), Ok(true), "life {life}");
        world.wait(run, "y", None).unwrap();
        world.rests(run);
    }
    assert_eq!(world.labels(run).iter().filter(|label| **label == "patched").count(), 1);
}

#[test]
fn a_cancel_leaves_shielded_operations_alone_law_4() {
    let mut world = World::new(1);
    let run = world.started("a");
    for life in 0..2 {
        world.step(run, "shielded").unwrap();
        world.on(0, |shard, _| shard.shield(run.1, Seq(1))).unwrap();
        world.step(run, "plain").unwrap();
        if life == 0 {
            world.rests(run);
            world.cancel("a").unwrap();
        }
        assert_eq!(world.next(run), Some((DeliveryKind::Cancelled, 0)));
        if life == 0 {
            world.rests(run);
            assert!(!world.complete(run, 2, 1, "late"), "it was withdrawn");
            assert!(world.complete(run, 1, 1, "in time"));
        }
        assert_eq!(world.next(run), Some((DeliveryKind::StepCompleted, 1)));
        assert_eq!(world.payload(run), "in time");
        world.rests(run);
        world.crash(run);
    }
}

#[test]
fn a_child_is_cancelled_by_the_operation_that_started_it_and_no_other_run() {
    let mut world = World::new(1);
    let parent = world.started("parent");
    world.child(parent, child("kid")).unwrap();
    world.send(parent, "kid", Sending::CancelChild(Seq(1))).unwrap();
    let kid = world.find("kid");
    assert!(world.labels(kid).contains(&"cancelRequested"));
    let other = world.started("other");
    world.send(parent, "other", Sending::CancelChild(Seq(1))).unwrap();
    assert!(!world.labels(other).contains(&"cancelRequested"));
}
