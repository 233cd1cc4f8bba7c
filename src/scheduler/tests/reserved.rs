//! Plain delays, and reserved starts.

use super::world::{World, classed, queue, spec};
use crate::record::{Class, Condition, Edge, OnMiss, Outcome, Parent, Reserve, TaskSpec};
use crate::scheduler::{QueueConfig, Reason, Refusal, Status};

fn delayed(at_ms: i64) -> TaskSpec<'static> {
    TaskSpec { not_before_ms: Some(at_ms), ..spec() }
}

fn reserved(at_ms: i64, tolerance_ms: u32, on_miss: OnMiss) -> TaskSpec<'static> {
    TaskSpec { reserve: Some(Reserve { tolerance_ms, on_miss }), ..delayed(at_ms) }
}

#[test]
fn any_number_of_tasks_can_be_delayed_to_one_time() {
    let mut world = World::of(queue(1));
    let tasks: Vec<_> = (0..100).map(|_| world.submit(&delayed(1_000))).collect();
    assert_eq!(world.engine.explain(tasks[0]), Some(Reason::Until { time_ms: 1_000, is_retry: false }));
    world.advance(999);
    assert!(world.started.is_empty());
    world.advance(1);
    world.run_all();
    assert_eq!(world.started, tasks);
}

#[test]
fn a_delay_can_be_changed_before_the_start() {
    let mut world = World::of(queue(1));
    let task = world.submit(&delayed(1_000));
    assert!(world.engine.handle_reschedule(0, task, 5_000));
    world.drain();
    world.advance(4_999);
    assert_eq!(world.status(task), Status::Scheduled);
    assert!(world.engine.handle_reschedule(world.now_ms, task, 0), "promoted");
    world.drain();
    assert_eq!(world.status(task), Status::Running);
    assert!(!world.engine.handle_reschedule(world.now_ms, task, 0));
}

#[test]
fn so_many_starts_are_promised_for_one_time() {
    let mut world = World::of(QueueConfig { default_estimate_ms: 5_000, ..queue(4) });
    for at_s in [100, 101] {
        world.submit(&reserved(at_s * 1_000, 1_000, OnMiss::RunLate));
    }
    let refused = world.try_submit(&reserved(102_000, 1_000, OnMiss::RunLate));
    assert_eq!(refused, Err(Refusal::Reserved { queue: "q".into(), at_ms: 102_000, limit: 2 }));
    world.submit(&reserved(120_000, 1_000, OnMiss::RunLate));
}

#[test]
fn a_slot_is_kept_for_a_reserved_start() {
    let mut world = World::of(queue(1));
    let task = world.submit(&reserved(10_000, 1_000, OnMiss::Fail));
    world.advance(8_900);
    let before = world.submit(&spec());
    world.complete(before);
    world.advance(200);
    let high = world.submit(&classed(Class::Critical));
    assert_eq!(world.status(high), Status::Queued, "a slot is kept");
    assert_eq!(world.engine.handle_snapshot(world.now_ms, "q").unwrap().held, 1);
    world.advance(900);
    assert_eq!(world.status(task), Status::Running);
    world.complete(task);
    assert_eq!(world.status(high), Status::Running);
}

#[test]
fn a_missed_start_runs_late_or_ends() {
    for (on_miss, outcome) in
        [(OnMiss::Skip, Some(Outcome::Missed)), (OnMiss::Fail, Some(Outcome::Failed)), (OnMiss::RunLate, None)]
    {
        let mut world = World::of(queue(1));
        let long = world.submit(&spec());
        let task = world.submit(&reserved(1_000, 100, on_miss));
        let normal = world.submit(&spec());
        world.advance(1_100);
        assert_eq!(world.status(task), Status::Queued, "the tolerance is not over yet");
        world.advance(1);
        match outcome {
            Some(outcome) => assert_eq!(world.outcome(task), outcome),
            None => {
                world.complete(long);
                assert_eq!(world.status(task), Status::Running, "before other work");
            }
        }
        assert_eq!(world.status(normal), Status::Queued);
    }
}

#[test]
fn a_start_that_is_missed_when_it_is_submitted_is_missed_at_once() {
    let mut world = World::of(queue(1));
    world.advance(10_000);
    let task = world.submit(&reserved(1_000, 100, OnMiss::Skip));
    assert_eq!(world.outcome(task), Outcome::Missed);
    assert!(world.started.is_empty());
    let late = world.submit(&reserved(1_000, 100, OnMiss::RunLate));
    assert_eq!(world.status(late), Status::Running);
}

#[test]
fn no_tolerance_still_runs_on_time() {
    let mut world = World::of(queue(1));
    let task = world.submit(&reserved(1_000, 0, OnMiss::Skip));
    world.advance(1_000);
    assert_eq!(world.status(task), Status::Running);
}

#[test]
fn a_retry_is_never_a_miss_and_keeps_the_reservation() {
    let mut world = World::of(queue(2));
    let task = world.submit(&reserved(1_000, 0, OnMiss::Skip));
    world.advance(1_000);
    world.fail_once(task);
    world.advance(60_000);
    assert_eq!(world.engine.handle_snapshot(world.now_ms, "q").unwrap().reservations, 1);
    world.complete(task);
    assert_eq!(world.engine.handle_snapshot(world.now_ms, "q").unwrap().reservations, 0);
}

#[test]
fn a_blocked_reserved_start_gives_its_slot_up_when_it_is_missed() {
    let mut world = World::of(queue(1));
    let parent = world.submit(&delayed(50_000));
    let edge = Edge { parent: Parent::Number(parent), condition: Condition::Completion };
    let task = world.submit(&TaskSpec { after: vec![edge], ..reserved(10_000, 100, OnMiss::RunLate) });
    world.advance(10_000);
    let other = world.submit(&spec());
    assert_eq!(world.status(other), Status::Queued);
    world.advance(101);
    assert_eq!(world.status(other), Status::Running);
    world.complete(other);
    world.advance(40_000);
    world.complete(parent);
    assert_eq!(world.status(task), Status::Running);
}

#[test]
fn cancelling_a_reserved_start_frees_its_slot() {
    let mut world = World::of(queue(1));
    let task = world.submit(&reserved(10_000, 100, OnMiss::RunLate));
    world.advance(9_999);
    let other = world.submit(&spec());
    assert_eq!(world.status(other), Status::Queued);
    world.cancel(task);
    assert_eq!(world.status(other), Status::Running);
}

#[test]
fn a_reservation_needs_a_time() {
    let mut world = World::of(queue(1));
    let reserve = Some(Reserve { tolerance_ms: 0, on_miss: OnMiss::Skip });
    assert!(matches!(world.try_submit(&TaskSpec { reserve, ..spec() }), Err(Refusal::Invalid(_))));
}
