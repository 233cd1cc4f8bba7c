//! Submissions under one key.

use super::world::{World, keyed, queue, spec};
use crate::record::{Outcome, TaskSpec};
use crate::scheduler::{Answer, Dedupe, DedupeMode, DedupeScope, Refusal, Status, Submitted};

fn by(mode: DedupeMode) -> Dedupe {
    Dedupe { mode, scope: DedupeScope::Live }
}

fn with(payload: &'static [u8]) -> TaskSpec<'static> {
    TaskSpec { payload, ..keyed("a") }
}

fn now(result: Result<Submitted<Answer>, Refusal>) -> Answer {
    match result.unwrap() {
        Submitted::Now(answer) => answer,
        Submitted::Waits(_) => panic!("it waits for room"),
    }
}

#[test]
fn a_key_of_a_live_task_stands_for_it_and_is_free_again_after() {
    let mut world = World::of(queue(1));
    let first = world.submit(&keyed("a"));
    assert_eq!(now(world.try_submit(&keyed("a"))), Answer::Existing(first));
    world.complete(first);
    assert!(matches!(now(world.try_submit(&keyed("a"))), Answer::New(_)));
}

#[test]
fn the_scope_says_what_keeps_a_key() {
    let mut world = World::of(queue(1));
    let first = world.submit(&keyed("a"));
    let pending = Dedupe { mode: DedupeMode::Skip, scope: DedupeScope::Pending };
    let second = now(world.submit_as(&keyed("a"), pending));
    assert!(matches!(second, Answer::New(_)), "the first runs");
    assert_eq!(now(world.submit_as(&keyed("a"), pending)), Answer::Existing(second.task()));
    world.complete(first);
    world.complete(second.task());
    let retained = Dedupe { mode: DedupeMode::Skip, scope: DedupeScope::Retained };
    assert_eq!(now(world.submit_as(&keyed("a"), retained)), Answer::Existing(second.task()));
    world.advance(3_600_001);
    assert!(matches!(now(world.submit_as(&keyed("a"), retained)), Answer::New(_)));
}

#[test]
fn replace_takes_the_newest_input_until_it_runs() {
    let mut world = World::of(queue(1));
    let running = world.submit(&spec());
    let task = world.submit(&with(b"1"));
    assert_eq!(now(world.submit_as(&with(b"2"), by(DedupeMode::Replace))), Answer::Changed(task));
    assert_eq!(world.engine.task(task).unwrap().payload, b"2");
    world.complete(running);
    assert_eq!(now(world.submit_as(&with(b"3"), by(DedupeMode::Replace))), Answer::Existing(task));
    assert_eq!(world.engine.task(task).unwrap().payload, b"2");
}

#[test]
fn debounce_starts_when_nobody_submits_for_a_while_or_at_the_latest_time() {
    let mut world = World::of(queue(1));
    let mode = DedupeMode::Debounce { window_ms: 100, max_wait_ms: Some(250) };
    let task = now(world.submit_as(&with(b"0"), by(mode))).task();
    for payload in [b"1", b"2", b"3"] {
        world.advance(80);
        assert_eq!(world.status(task), Status::Scheduled);
        assert_eq!(now(world.submit_as(&with(payload), by(mode))), Answer::Changed(task));
    }
    world.advance(9);
    assert!(world.running.is_empty());
    world.advance(1);
    assert_eq!(world.now_ms, 250);
    assert_eq!(world.status(task), Status::Running);
    assert_eq!(world.engine.task(task).unwrap().payload, b"3");
}

#[test]
fn throttle_takes_one_in_a_window_over_or_not() {
    let mut world = World::of(queue(1));
    let mode = by(DedupeMode::Throttle { window_ms: 100 });
    let first = now(world.submit_as(&keyed("a"), mode)).task();
    world.complete(first);
    world.advance(99);
    assert_eq!(now(world.submit_as(&keyed("a"), mode)), Answer::Existing(first));
    world.advance(1);
    assert!(matches!(now(world.submit_as(&keyed("a"), mode)), Answer::New(_)));
}

#[test]
fn rerun_keeps_one_waiting_with_the_newest_input() {
    let mut world = World::of(queue(4));
    let mode = by(DedupeMode::Rerun);
    let first = now(world.submit_as(&with(b"1"), mode)).task();
    let second = now(world.submit_as(&with(b"2"), mode)).task();
    assert_ne!(first, second);
    assert_eq!(world.status(second), Status::Blocked);
    assert_eq!(now(world.submit_as(&with(b"3"), mode)), Answer::Changed(second));
    world.complete(first);
    assert_eq!(world.status(second), Status::Running);
    assert_eq!(world.engine.task(second).unwrap().payload, b"3");
    world.complete(second);
    assert_eq!(world.started, [first, second]);
}

#[test]
fn a_key_in_use_can_be_an_error() {
    let mut world = World::of(queue(1));
    let task = world.submit(&keyed("a"));
    let refusal = world.submit_as(&keyed("a"), by(DedupeMode::Error)).unwrap_err();
    assert_eq!(refusal, Refusal::KeyInUse { key: "a".into(), task });
}

#[test]
fn a_revived_task_needs_its_key() {
    let mut world = World::of(queue(1));
    let first = world.submit(&keyed("a"));
    world.cancel(first);
    assert_eq!(world.outcome(first), Outcome::Cancelled);
    let second = world.submit(&keyed("a"));
    assert_eq!(world.engine.handle_revive(0, first), Err(Refusal::KeyInUse { key: "a".into(), task: second }));
}
