//! Tasks and steps that share limits.

use super::world::{World, classed, config, queue, spec};
use crate::record::{Class, LimitSpec, LimitUse, Outcome, TaskNo, TaskSpec};
use crate::scheduler::limits::{LimitError, Want};
use crate::scheduler::{Output, Reason, Refusal, StepTicket};

fn limited(of: &[(&str, LimitSpec)], concurrency: u32) -> World {
    let mut config = config(queue(concurrency));
    config.queues.insert("other".into(), queue(concurrency));
    config.limits = of.iter().map(|(name, limit)| ((*name).into(), *limit)).collect();
    World::new(config)
}

fn taking(name: &'static str, amount: u32) -> TaskSpec<'static> {
    TaskSpec { limits: vec![LimitUse { name, key: None, amount }], ..spec() }
}

fn keyed(key: &'static str) -> TaskSpec<'static> {
    TaskSpec { limits: vec![LimitUse { name: "user", key: Some(key), amount: 1 }], ..spec() }
}

#[test]
fn a_task_that_lacks_a_limit_leaves_its_slot_to_others() {
    let mut world = limited(&[("api", LimitSpec::Concurrency(1))], 4);
    let first = world.submit(&taking("api", 1));
    let second = world.submit(&taking("api", 1));
    let plain = world.submit(&spec());
    assert_eq!(world.started, [first, plain]);
    let reason = Reason::Limit { name: "api".into(), key: None, amount: 1, available: 0, is_protected: false };
    assert_eq!(world.engine.explain(second), Some(reason));
    world.complete(first);
    assert_eq!(world.started, [first, plain, second]);
}

#[test]
fn a_limit_comes_back_with_each_end_of_an_attempt() {
    let mut world = limited(&[("api", LimitSpec::Concurrency(1))], 4);
    let first = world.submit(&taking("api", 1));
    let second = world.submit(&taking("api", 1));
    world.fail_once(first);
    assert_eq!(world.started, [first, second], "a task that waits for its next attempt holds nothing");
    world.cancel(second);
    assert_eq!(world.engine.limits.usage("api", None, 0).unwrap().used, 0);
}

#[test]
fn a_rate_over_two_queues_is_one_rate() {
    let mut world = limited(&[("api", LimitSpec::Rate { limit: 10, period_ms: 1_000, burst: 1 })], 20);
    for at in 0..20 {
        let queue = if at % 2 == 0 { "q" } else { "other" };
        world.submit(&TaskSpec { queue, ..taking("api", 1) });
    }
    while world.started.len() < 20 {
        world.advance(1);
    }
    assert!((1_800..=2_000).contains(&world.now_ms), "{} ms", world.now_ms);
}

#[test]
fn keys_of_a_limit_do_not_hold_each_other_up() {
    let mut world = limited(&[("user", LimitSpec::Concurrency(1))], 10);
    let ann = world.submit(&keyed("ann"));
    let again = world.submit(&keyed("ann"));
    let bob = world.submit(&keyed("bob"));
    assert_eq!(world.started, [ann, bob]);
    world.run_all();
    assert_eq!(world.outcome(again), Outcome::Completed);
    assert_eq!(world.engine.limits.usage("user", None, 0).unwrap().keys, 0, "idle keys are forgotten");
}

#[test]
fn a_large_request_is_not_starved_by_a_stream_of_small_ones() {
    let mut world = limited(&[("api", LimitSpec::Concurrency(4))], 10);
    let mut small: Vec<TaskNo> = (0..4).map(|_| world.submit(&taking("api", 1))).collect();
    let large = world.submit(&taking("api", 4));
    for _ in 0..60 {
        if world.started.contains(&large) {
            return;
        }
        small.push(world.submit(&taking("api", 1)));
        world.advance(10);
        let task = *world.running.keys().next().unwrap();
        world.complete(task);
    }
    panic!("it starves: {:?}", world.engine.explain(large));
}

#[test]
fn a_waiter_of_a_full_queue_does_not_keep_another_queue_from_the_limit() {
    let mut world = limited(&[("api", LimitSpec::Concurrency(1))], 1);
    let holder = world.submit(&TaskSpec { queue: "other", ..taking("api", 1) });
    let stuck = world.submit(&taking("api", 1));
    let long = world.submit(&spec());
    let next = world.submit(&TaskSpec { queue: "other", ..taking("api", 1) });
    assert_eq!(world.started, [holder, long], "the slot went to one that lacks nothing");
    world.complete(holder);
    assert_eq!(world.started, [holder, long, next], "the limit is free and one queue has a slot");
    world.complete(long);
    world.complete(next);
    assert_eq!(world.started.last(), Some(&stuck));
}

#[test]
fn a_paused_queue_keeps_nobody_from_a_limit() {
    let mut world = limited(&[("api", LimitSpec::Concurrency(1))], 4);
    let holder = world.submit(&TaskSpec { queue: "other", ..taking("api", 1) });
    let paused = world.submit(&taking("api", 1));
    world.engine.handle_pause(0, "q", true).unwrap();
    world.drain();
    assert_eq!(world.engine.explain(paused), Some(Reason::Paused));
    let mut last = holder;
    for _ in 0..40 {
        let next = world.submit(&TaskSpec { queue: "other", ..taking("api", 1) });
        world.complete(last);
        assert!(world.running.contains_key(&next));
        last = next;
    }
    world.engine.handle_pause(0, "q", false).unwrap();
    world.drain();
    world.complete(last);
    assert!(world.running.contains_key(&paused));
}

#[test]
fn the_more_important_gets_a_limit_first_and_the_others_their_part() {
    let mut world = limited(&[("api", LimitSpec::Concurrency(1))], 100);
    let mut running = world.submit(&taking("api", 1));
    let low = world.submit(&TaskSpec { class: Class::Low, ..taking("api", 1) });
    for round in 0..40 {
        let high = world.submit(&TaskSpec { class: Class::High, ..taking("api", 1) });
        world.complete(running);
        if world.running.contains_key(&low) {
            assert!(round > 5, "not at once");
            return;
        }
        running = high;
        assert!(world.running.contains_key(&high));
    }
    panic!("it starves");
}

#[test]
fn what_can_never_be_had_is_refused() {
    let mut world = limited(&[("api", LimitSpec::Concurrency(2))], 1);
    let too_much = LimitError::TooMuch { name: "api".into(), amount: 3, capacity: 2 };
    assert_eq!(world.try_submit(&taking("api", 3)), Err(Refusal::Limit(too_much.clone())));
    let twice = TaskSpec { limits: [taking("api", 1).limits, taking("api", 2).limits].concat(), ..spec() };
    assert_eq!(world.try_submit(&twice), Err(Refusal::Limit(too_much)), "both parts count together");
    assert_eq!(world.try_submit(&taking("none", 1)), Err(Refusal::Limit(LimitError::Unknown("none".into()))));
}

#[test]
fn steps_and_tasks_share_a_limit() {
    let mut world = limited(&[("api", LimitSpec::Concurrency(1))], 4);
    let want = [Want { name: "api", key: None, amount: 1 }];
    let task = world.submit(&taking("api", 1));
    assert_eq!(world.engine.handle_step(0, StepTicket(1), &want), Ok(false));
    let later = world.submit(&taking("api", 1));
    world.complete(task);
    assert!(world.outputs.contains(&Output::Granted(StepTicket(1))));
    let last = world.submit(&taking("api", 1));
    assert!(world.running.is_empty());
    world.engine.handle_step_over(0, StepTicket(1));
    world.drain();
    assert!(world.running.contains_key(&later), "it came first");
    world.complete(later);
    assert!(world.running.contains_key(&last));
    world.engine.handle_step_over(0, StepTicket(1));
    assert!(world.engine.handle_step(0, StepTicket(2), &[Want { name: "none", key: None, amount: 1 }]).is_err());
}

#[test]
fn a_limit_is_resized_live_and_stays_so() {
    let mut world = limited(&[("api", LimitSpec::Concurrency(1))], 4);
    world.submit(&taking("api", 1));
    let second = world.submit(&taking("api", 1));
    world.engine.handle_limit(0, "api", LimitSpec::Concurrency(2)).unwrap();
    world.drain();
    assert!(world.running.contains_key(&second));
    assert!(world.engine.handle_limit(0, "api", LimitSpec::Concurrency(0)).is_err());
    world.crash();
    assert_eq!(world.running.len(), 2);
}

#[test]
fn a_class_that_changes_counts_at_a_limit_too() {
    let mut world = limited(&[("api", LimitSpec::Concurrency(1))], 4);
    let first = world.submit(&taking("api", 1));
    world.submit(&taking("api", 1));
    let low = world.submit(&TaskSpec { limits: taking("api", 1).limits, ..classed(Class::Low) });
    assert!(world.engine.handle_reprioritize(0, low, Class::High));
    world.drain();
    world.complete(first);
    assert!(world.running.contains_key(&low));
}
