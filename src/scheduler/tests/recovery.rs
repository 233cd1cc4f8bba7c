//! What a restart rebuilds, and what it costs.

use super::world::{World, classed, config, keyed, queue, spec};
use crate::record::{AttemptEnd, Class, Condition, Edge, LimitUse, Outcome, Parent, RetryPolicy, TaskNo, TaskSpec};
use crate::scheduler::{Answer, Config, Engine, Output, QueueConfig, Reason, RestoreError, Status, Submitted, Warning};

fn once() -> QueueConfig {
    QueueConfig { retry: RetryPolicy { max_attempts: 1, ..RetryPolicy::default() }, ..queue(1) }
}

#[test]
fn numbers_order_keys_and_waits_survive() {
    let mut world = World::of(queue(1));
    let running = world.submit(&spec());
    let low = world.submit(&classed(Class::Low));
    let named = world.submit(&keyed("a"));
    let edge = Edge { parent: Parent::Key("a"), condition: Condition::Success };
    let child = world.submit(&TaskSpec { after: vec![edge], ..spec() });
    let delayed = world.submit(&TaskSpec { not_before_ms: Some(10_000), ..spec() });
    world.crash();
    assert_eq!(world.status(child), Status::Blocked);
    assert_eq!(world.status(delayed), Status::Scheduled);
    let Ok(Submitted::Now(answer)) = world.try_submit(&keyed("a")) else { panic!() };
    assert_eq!(answer, Answer::Existing(named));
    let next = world.submit(&spec());
    assert_eq!(next, TaskNo(6));
    assert_eq!(world.run_all(), [running, named, child, next, low]);
}

#[test]
fn the_first_crash_costs_nothing_and_the_later_ones_do() {
    let mut world =
        World::of(QueueConfig { retry: RetryPolicy { max_attempts: 2, ..RetryPolicy::default() }, ..queue(1) });
    let task = world.submit(&spec());
    world.crash();
    assert!(world.running.contains_key(&task), "at once");
    world.crash();
    assert_eq!(world.status(task), Status::Retrying);
    world.advance(60_000);
    assert!(world.running.contains_key(&task));
    world.crash();
    assert_eq!(world.outcome(task), Outcome::Dead, "it does not kill its process for ever");
    let ends: Vec<AttemptEnd> = world.engine.task(task).unwrap().history.iter().map(|note| note.end).collect();
    assert_eq!(ends, [AttemptEnd::Lost, AttemptEnd::Lost]);
}

#[test]
fn an_orderly_end_costs_nothing() {
    let mut world = World::of(once());
    let task = world.submit(&spec());
    for _ in 0..5 {
        world.crash_at(world.records.len(), true);
        assert!(world.running.contains_key(&task));
    }
    world.complete(task);
    assert_eq!(world.outcome(task), Outcome::Completed);
}

#[test]
fn a_lost_thread_gives_its_attempts_back() {
    let mut world = World::of(once());
    let task = world.submit(&spec());
    let lease = world.running.remove(&task).unwrap();
    assert!(world.engine.handle_lost(0, lease));
    world.drain();
    assert!(world.running.contains_key(&task));
    assert!(!world.engine.handle_completed(0, lease, b""), "the old lease is dead");
}

#[test]
fn a_lease_of_another_opening_changes_nothing() {
    let mut world = World::of(queue(1));
    let task = world.submit(&spec());
    let old = world.running[&task];
    world.crash();
    assert!(!world.engine.handle_completed(0, old, b""));
    assert_ne!(world.running[&task], old);
}

#[test]
fn the_time_of_a_retry_survives() {
    let mut world = World::of(queue(1));
    let task = world.submit(&spec());
    world.fail_once(task);
    let before = world.engine.explain(task);
    world.crash();
    assert_eq!(world.engine.explain(task), before);
}

#[test]
fn a_child_whose_parent_failed_just_before_the_crash_is_skipped() {
    let mut world = World::of(once());
    let parent = world.submit(&spec());
    let edge = Edge { parent: Parent::Number(parent), condition: Condition::Success };
    let child = world.submit(&TaskSpec { after: vec![edge], ..spec() });
    world.fail_once(parent);
    assert_eq!(world.outcome(child), Outcome::Skipped);
    world.crash_at(world.records.len() - 1, false);
    assert_eq!(world.outcome(child), Outcome::Skipped);
}

#[test]
fn a_revived_task_is_not_skipped_again_for_what_its_former_life_waited_for() {
    let mut world = World::of(once());
    let parent = world.submit(&spec());
    let edge = Edge { parent: Parent::Number(parent), condition: Condition::Success };
    let child = world.submit(&TaskSpec { after: vec![edge], ..spec() });
    world.fail_once(parent);
    assert_eq!(world.outcome(child), Outcome::Skipped);
    world.revive(child);
    assert!(world.running.contains_key(&child));
    world.crash();
    assert!(world.running.contains_key(&child), "{:?}", world.status(child));
}

#[test]
fn nothing_is_lost_to_a_queue_or_limit_that_is_gone() {
    let mut config = config(queue(1));
    config.limits.insert("api".into(), crate::record::LimitSpec::Concurrency(1));
    let mut world = World::new(config);
    let task = world.submit(&spec());
    let limited = world.submit(&TaskSpec { limits: vec![LimitUse { name: "api", key: None, amount: 1 }], ..spec() });
    world.config.queues.insert("other".into(), queue(1));
    let defined = std::mem::take(&mut world.config.queues);
    let limits = std::mem::take(&mut world.config.limits);
    world.crash();
    assert!(world.running.is_empty());
    assert_eq!(world.engine.explain(limited), Some(Reason::QueueGone));
    assert!(world.outputs.contains(&Output::Warning(Warning::QueueGone { queue: "q".into() })));
    assert!(world.outputs.contains(&Output::Warning(Warning::LimitGone { limit: "api".into() })));
    world.config.queues = defined;
    world.crash();
    world.complete(task);
    assert!(matches!(world.engine.explain(limited), Some(Reason::Limit { available: 0, .. })));
    world.config.limits = limits;
    world.crash();
    assert!(world.running.contains_key(&limited));
}

#[test]
fn past_times_fire_before_anything_is_dispatched() {
    let mut world = World::of(queue(1));
    let low = world.submit(&TaskSpec { not_before_ms: Some(1_000), ..classed(Class::Low) });
    let high = world.submit(&TaskSpec { not_before_ms: Some(2_000), ..classed(Class::High) });
    world.now_ms = 5_000;
    world.crash();
    assert_eq!(world.run_all(), [high, low]);
}

#[test]
fn records_that_do_not_fit_are_refused_with_the_task() {
    let mut world = World::of(once());
    let task = world.submit(&spec());
    world.complete(task);
    let restore = |records: &[&Vec<u8>]| {
        let mut engine = Engine::new(world.config.clone()).unwrap();
        records.iter().try_for_each(|record| engine.restore(record))
    };
    let [submitted, started, ended] = [&world.records[0], &world.records[1], &world.records[2]];
    assert_eq!(restore(&[submitted, started, ended]), Ok(()));
    assert_eq!(restore(&[submitted, submitted]), Err(RestoreError::Number(task)));
    assert_eq!(restore(&[started]), Err(RestoreError::UnknownTask(task)));
    assert_eq!(restore(&[submitted, started, started]), Err(RestoreError::WrongState(task)));
    assert_eq!(restore(&[submitted, started, ended, ended]), Err(RestoreError::WrongState(task)));
    assert!(matches!(restore(&[&vec![1]]), Err(RestoreError::Decode(_))));
}

#[test]
fn a_retained_outcome_survives() {
    let mut world = World::of(once());
    let good = world.submit(&spec());
    world.complete(good);
    let bad = world.submit(&keyed("a"));
    world.fail_once(bad);
    world.crash();
    assert_eq!(world.engine.task(good).unwrap().payload, b"out");
    assert_eq!(world.engine.task_by_key("a").unwrap().failure, b"thrown");
    assert_eq!(world.engine.handle_revive(0, bad), Ok(true));
}

#[test]
fn a_task_that_ended_twice_is_remembered_in_one_place() {
    let mut world = World::new(Config { retained_max: 2, ..config(once()) });
    let task = world.submit(&spec());
    world.fail_once(task);
    world.revive(task);
    world.fail_once(task);
    let other = world.submit(&spec());
    world.complete(other);
    assert_eq!(world.outcome(task), Outcome::Dead);
    assert_eq!(world.outcome(other), Outcome::Completed);
    let third = world.submit(&spec());
    world.complete(third);
    assert!(world.engine.task(task).is_none(), "the two that ended last are known");
    assert_eq!(world.outcome(other), Outcome::Completed);
}

#[test]
fn the_time_in_which_the_process_was_down_is_no_worker_time() {
    let mut world = World::of(queue(2));
    world.engine.handle_concurrency(0, "q", 3).unwrap();
    world.drain();
    world.now_ms = 10_000;
    world.crash();
    world.advance(1_000);
    let view = world.engine.handle_snapshot(world.now_ms, "q").unwrap();
    assert!(view.worker_ms <= 3_000, "{} ms", view.worker_ms);
}
