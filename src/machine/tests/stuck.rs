//! Code that asks for something else than was recorded: LAW-5.

use super::world::*;
use crate::machine::*;
use crate::record::*;

/// A run with a step, a sleep, a wait and a child recorded, crashed, its code in its first turn again.
fn recorded() -> (World, R) {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "s").unwrap();
    world.sleep(run, 10).unwrap();
    world.wait(run, "x", None).unwrap();
    world.child(run, child("kid")).unwrap();
    world.send(run, "kid", Sending::Signal("go", b"")).unwrap();
    world.complete(run, 1, 1, "ok");
    world.crash(run);
    (world, run)
}

fn message(world: &World, run: R) -> String {
    world.shards[run.0].stuck(run.1).map(|stuck| stuck.message.clone()).unwrap_or_default()
}

#[test]
fn another_name_makes_the_run_stuck_law_5() {
    let (mut world, run) = recorded();
    assert_eq!(world.step(run, "t"), Err(Halt::Mismatch));
    assert_eq!(message(&world, run), "operation 1: recorded step \"s\", asked for step \"t\"");
    assert!(world.has_effect(|effect| matches!(effect, Effect::Stuck(_))));
    assert_eq!(world.sleep(run, 10), Err(Halt::Dead), "nothing of it goes on");
    assert_eq!(world.finish(run, Status::Completed, ""), Err(Halt::Dead));
    world.rests(run);
    assert!(world.shards[0].view(run.1).marks.is_stuck);
    world.no_orphans();
}

#[test]
fn another_kind_makes_the_run_stuck_law_5() {
    let (mut world, run) = recorded();
    assert_eq!(world.sleep(run, 10), Err(Halt::Mismatch));
    assert_eq!(message(&world, run), "operation 1: recorded step \"s\", asked for sleep");
    let (mut world, run) = recorded();
    world.step(run, "s").unwrap();
    assert_eq!(world.wait(run, "x", None), Err(Halt::Mismatch));
    assert_eq!(message(&world, run), "operation 2: recorded sleep, asked for wait for signal \"x\"");
    let (mut world, run) = recorded();
    world.step(run, "s").unwrap();
    world.sleep(run, 10).unwrap();
    world.wait(run, "x", None).unwrap();
    assert_eq!(world.child(run, child("kim")), Err(Halt::Mismatch));
    assert_eq!(message(&world, run), "operation 4: recorded child flow \"kid\", asked for child flow \"kim\"");
}

#[test]
fn fewer_operations_than_recorded_make_the_run_stuck_law_5() {
    let (mut world, run) = recorded();
    world.step(run, "s").unwrap();
    assert_eq!(world.next(run), None);
    assert!(
        message(&world, run).contains("recorded sleep, but the code has asked for only 1"),
        "{:?}",
        message(&world, run)
    );
}

#[test]
fn an_end_before_everything_recorded_was_asked_for_makes_the_run_stuck_law_5() {
    let (mut world, run) = recorded();
    world.step(run, "s").unwrap();
    assert_eq!(world.finish(run, Status::Completed, ""), Err(Halt::Mismatch));
    assert_eq!(message(&world, run), "operation 2: recorded sleep, but the code has ended");
}

#[test]
fn operations_are_asked_for_in_order_law_5() {
    let mut world = World::new(1);
    let run = world.started("a");
    let answer = world.on(0, |shard, work| shard.open_timer(work, run.1, Seq(2), 10, TimerMode::default()));
    assert_eq!(answer, Err(Halt::Mismatch));
    assert!(message(&world, run).contains("operation 2 was asked for after operation 0"));
}

#[test]
fn a_stuck_run_keeps_what_arrives_and_goes_on_once_its_code_is_mended() {
    let (mut world, run) = recorded();
    assert_eq!(world.step(run, "t"), Err(Halt::Mismatch));
    world.signal("a", "x", "1").unwrap();
    world.advance(1_000);
    assert!(!world.complete(run, 1, 1, "no"));
    world.resume("a").unwrap();
    assert!(world.has_effect(|effect| matches!(effect, Effect::Dropped(_))));
    assert_eq!(world.load(run), Some(true));
    assert_eq!(world.load(run), None, "one host has its code, once");
    world.load(run);
    assert_eq!(world.next(run), Some((DeliveryKind::Start, 0)));
    world.step(run, "s").unwrap();
    world.sleep(run, 10).unwrap();
    world.wait(run, "x", None).unwrap();
    world.child(run, child("kid")).unwrap();
    world.send(run, "kid", Sending::Signal("go", b"")).unwrap();
    assert_eq!(world.next(run), Some((DeliveryKind::StepCompleted, 1)));
    assert_eq!(world.next(run), Some((DeliveryKind::SignalTaken, 3)));
    world.rests(run);
    world.advance(0);
    assert_eq!(world.next(run), Some((DeliveryKind::TimerFired, 2)));
}

#[test]
fn an_attempt_of_the_life_before_is_not_asked_for_again() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "s").unwrap();
    world.crash(run);
    world.step(run, "s").unwrap();
    world.rests(run);
    // The attempt waits for the disk; meanwhile the host finds a broken rule, and somebody resumes the run.
    world.on(0, |shard, work| shard.mark_stuck(work, run.1, "it awaited something else", "flow.ts:1:2"));
    world.resume("a").unwrap();
    world.load(run);
    world.next(run);
    world.step(run, "s").unwrap();
    world.rests(run);
    assert_eq!(world.take_attempts(), [(1, 2, false)], "one body, not two at a time");
}

#[test]
fn a_stuck_run_can_be_ended() {
    let (mut world, run) = recorded();
    assert_eq!(world.step(run, "t"), Err(Halt::Mismatch));
    world.terminate("a").unwrap();
    assert_eq!(world.status(run), Some(Status::Terminated));
}

fn described(kind: &'static str, name: &str) -> Option<Described> {
    Some(Described { kind, name: name.into() })
}

#[test]
fn a_stuck_run_says_where_what_was_recorded_and_what_was_asked_law_5() {
    type Asks<'a> = &'a dyn Fn(&mut World, R) -> Option<Halt>;
    let cases: [(Asks<'_>, u32, Option<Described>, Option<Described>); 7] = [
        (&|world, run| world.step(run, "t").err(), 1, described("step", "s"), described("step", "t")),
        (&|world, run| world.condition(run, None).err(), 1, described("step", "s"), described("condition", "")),
        (
            &|world, run| {
                world.step(run, "s").unwrap();
                world.child(run, child("kid")).err()
            },
            2,
            described("sleep", ""),
            described("child", "flow kid"),
        ),
        (
            &|world, run| {
                world.step(run, "s").unwrap();
                world.sleep(run, 10).unwrap();
                world.send(run, "b", Sending::Watch).err()
            },
            3,
            described("waitFor", "x"),
            described("result", "b"),
        ),
        (
            &|world, run| {
                world.step(run, "s").unwrap();
                world.sleep(run, 10).unwrap();
                world.wait(run, "x", None).unwrap();
                world.child(run, child("kid")).unwrap();
                world.send(run, "kid", Sending::Cancel("why")).err()
            },
            5,
            described("signal", "go kid"),
            described("cancel", "kid"),
        ),
        (&|world, run| world.finish(run, Status::Completed, "").err(), 1, described("step", "s"), None),
        (
            &|world, run| {
                world.step(run, "s").unwrap();
                world.rests(run);
                None
            },
            2,
            described("sleep", ""),
            None,
        ),
    ];
    for (asks, seq, was, asked) in cases {
        let (mut world, run) = recorded();
        assert_eq!(asks(&mut world, run).unwrap_or(Halt::Mismatch), Halt::Mismatch);
        world.on(0, |shard, _| shard.set_stuck_place(run.1, "flow.ts:3:7"));
        let stuck = world.shards[0].stuck(run.1).unwrap().clone();
        assert_eq!((stuck.seq, &stuck.recorded, &stuck.asked), (Seq(seq), &was, &asked), "{}", stuck.message);
        assert_eq!(stuck.place, "flow.ts:3:7");
        assert_eq!(world.shards[0].explain(run.1), Explanation::Stuck(Box::new(stuck)));
    }
}

#[test]
fn code_that_broke_a_rule_is_reported_with_the_last_operation_and_the_place() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "s").unwrap();
    world.on(0, |shard, work| shard.mark_stuck(work, run.1, "it awaited something else", "flow.ts:1:2"));
    world.on(0, |shard, work| shard.mark_stuck(work, run.1, "a second reason", "flow.ts:9:9"));
    let stuck = world.shards[0].stuck(run.1).unwrap();
    assert_eq!((&*stuck.message, stuck.seq, &*stuck.place), ("it awaited something else", Seq(1), "flow.ts:1:2"));
    assert_eq!((&stuck.recorded, &stuck.asked), (&None, &None));
}

#[test]
fn a_stuck_run_that_is_not_to_wait_fails_in_one_record() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.sleep(run, 5).unwrap();
    world.rests(run);
    world.on(0, |shard, work| shard.fail_stuck(work, run.1, b"no"));
    assert_eq!(world.status(run), None, "it is not stuck");
    world.crash(run);
    assert_eq!(world.step(run, "other"), Err(Halt::Mismatch));
    world.on(0, |shard, work| shard.fail_stuck(work, run.1, b"no"));
    assert_eq!(world.status(run), Some(Status::Failed));
    world.reopen(false);
    assert_eq!(world.status(run), Some(Status::Failed));
}

#[test]
fn a_stuck_run_is_tried_again_less_and_less_often_and_nothing_is_recorded() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.sleep(run, 5).unwrap();
    world.rests(run);
    world.crash(run);
    let records = world.log.len();
    for after_ms in [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000] {
        assert_eq!(world.step(run, "other"), Err(Halt::Mismatch));
        world.on(0, |shard, work| shard.retry_stuck(work, run.1));
        world.effects.clear();
        world.advance(after_ms - 1);
        assert!(!world.has_effect(|effect| matches!(effect, Effect::Load(_))));
        world.advance(1);
        assert!(world.has_effect(|effect| matches!(effect, Effect::Dropped(_))));
        assert!(world.has_effect(|effect| matches!(effect, Effect::Load(_))), "after {after_ms}");
        world.load(run);
        assert_eq!(world.next(run), Some((DeliveryKind::Start, 0)));
    }
    assert_eq!(world.log.len(), records);
    world.sleep(run, 5).unwrap();
    assert_eq!(world.next(run), None);
    world.advance(0);
    assert_eq!(world.next(run), Some((DeliveryKind::TimerFired, 1)), "the code fits again");
}

#[test]
fn the_next_try_is_taken_back_when_somebody_comes_before_it() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.sleep(run, 5).unwrap();
    world.rests(run);
    for way in ["resume", "pause", "end"] {
        world.crash(run);
        assert_eq!(world.step(run, "other"), Err(Halt::Mismatch));
        world.on(0, |shard, work| shard.retry_stuck(work, run.1));
        assert!(world.shards[0].next_due_ms().is_some());
        let target = Target { id: "a", run: None };
        match way {
            "resume" => world.resume("a").unwrap(),
            "pause" => {
                world.on(0, |shard, work| shard.pause(work, target, None)).unwrap();
                world.resume("a").unwrap();
            }
            _ => world.terminate("a").unwrap(),
        }
        assert_eq!(world.shards[0].next_due_ms(), None, "{way}");
    }
    world.on(0, |shard, work| shard.retry_stuck(work, run.1));
    assert_eq!(world.shards[0].next_due_ms(), None, "it is not stuck");
}
