//! Tasks that wait for tasks.

use super::world::{World, keyed, queue, spec};
use crate::record::{Condition, Edge, Outcome, Parent, RetryPolicy, TaskNo, TaskSpec};
use crate::scheduler::{Bounds, Failure, OnFull, QueueConfig, Reason, Refusal, Status, Submitted, UnknownKey};

fn after(parent: TaskNo, condition: Condition) -> TaskSpec<'static> {
    TaskSpec { after: vec![Edge { parent: Parent::Number(parent), condition }], ..spec() }
}

fn after_key(key: &'static str) -> TaskSpec<'static> {
    TaskSpec { after: vec![Edge { parent: Parent::Key(key), condition: Condition::Success }], ..spec() }
}

fn waiting(timeout_ms: Option<u32>) -> QueueConfig {
    QueueConfig { unknown_key: UnknownKey::Wait { timeout_ms }, ..queue(4) }
}

#[test]
fn a_child_starts_when_its_parents_have_ended() {
    let mut world = World::of(queue(4));
    let (a, b) = (world.submit(&spec()), world.submit(&spec()));
    let edges = [a, b].map(|parent| Edge { parent: Parent::Number(parent), condition: Condition::Success });
    let child = world.submit(&TaskSpec { after: edges.to_vec(), ..spec() });
    assert_eq!(world.status(child), Status::Blocked);
    assert_eq!(
        world.engine.explain(child),
        Some(Reason::Blocked { parents: vec![a, b], keys: vec![], order_key: None })
    );
    world.complete(a);
    assert_eq!(world.status(child), Status::Blocked);
    world.complete(b);
    assert_eq!(world.status(child), Status::Running);
    assert_eq!(world.engine.task(child).unwrap().parents, [a, b]);
}

#[test]
fn each_condition_holds_for_the_ends_it_names() {
    for (condition, completes, fails, is_cancelled) in [
        (Condition::Success, true, false, false),
        (Condition::Completion, true, true, true),
        (Condition::Failure, false, true, false),
    ] {
        for (how, holds) in [completes, fails, is_cancelled].into_iter().enumerate() {
            let mut world = World::of(queue(4));
            let parent = world.submit(&spec());
            let child = world.submit(&after(parent, condition));
            let grandchild = world.submit(&after(child, Condition::Success));
            match how {
                0 => world.complete(parent),
                1 => world.fail(parent, Failure::Permanent),
                _ => assert!(world.cancel(parent)),
            }
            let late = world.submit(&after(parent, condition));
            if holds {
                assert_eq!(world.status(child), Status::Running);
                assert_eq!(world.status(late), Status::Running, "of one that ended already");
            } else {
                assert_eq!(world.outcome(child), Outcome::Skipped);
                assert_eq!(world.outcome(grandchild), Outcome::Skipped, "skipping goes on");
                assert_eq!(world.outcome(late), Outcome::Skipped);
                let failure = String::from_utf8(world.engine.task(child).unwrap().failure.to_vec()).unwrap();
                assert!(failure.starts_with(&format!("task {parent}, which it waited for, ended as")), "{failure}");
            }
        }
    }
}

#[test]
fn an_unknown_parent_is_refused() {
    let mut world = World::of(queue(1));
    assert_eq!(world.try_submit(&after(TaskNo(9), Condition::Success)), Err(Refusal::UnknownParent(TaskNo(9))));
    assert_eq!(world.try_submit(&after_key("none")), Err(Refusal::UnknownKey("none".into())));
}

#[test]
fn a_key_can_be_waited_for_before_it_exists() {
    let mut world = World::of(waiting(Some(1_000)));
    let child = world.submit(&after_key("later"));
    assert_eq!(
        world.engine.explain(child),
        Some(Reason::Blocked { parents: vec![], keys: vec!["later".into()], order_key: None })
    );
    world.advance(500);
    let parent = world.submit(&keyed("later"));
    world.advance(1_000);
    assert_eq!(world.status(child), Status::Blocked, "the wait for a key is over, that for its task is not");
    world.complete(parent);
    assert_eq!(world.status(child), Status::Running);
}

#[test]
fn the_wait_for_a_key_ends_with_its_time() {
    let mut world = World::of(waiting(Some(1_000)));
    let child = world.submit(&after_key("never"));
    world.advance(1_000);
    assert_eq!(world.outcome(child), Outcome::Skipped);
    let other = world.submit(&after_key("never"));
    assert!(world.cancel(other), "and leaves nothing behind, which the invariants see");
}

#[test]
fn a_task_cannot_wait_for_itself_directly_or_through_others() {
    let mut world = World::of(waiting(None));
    let own = TaskSpec { key: Some("a"), ..after_key("a") };
    assert_eq!(world.try_submit(&own), Err(Refusal::Cycle(vec!["a".into(), "a".into()])));
    // b waits for a; c waits for b; a may not wait for c.
    let b = world.submit(&TaskSpec { key: Some("b"), ..after_key("a") });
    let c = world.submit(&after(b, Condition::Completion));
    let a = TaskSpec { key: Some("a"), ..after(c, Condition::Completion) };
    let refusal = world.try_submit(&a).unwrap_err();
    assert_eq!(refusal.to_string(), format!("it would wait for itself: a → {c} → a"));
    let by_key = TaskSpec { key: Some("a"), ..after_key("b") };
    assert!(matches!(world.try_submit(&by_key), Err(Refusal::Cycle(_))));
}

#[test]
fn a_cycle_through_keys_that_nobody_has_yet_is_refused() {
    let mut world = World::of(waiting(None));
    world.submit(&TaskSpec { key: Some("x"), ..after_key("y") });
    let y = TaskSpec { key: Some("y"), ..after_key("x") };
    assert!(matches!(world.try_submit(&y), Err(Refusal::Cycle(_))));
}

#[test]
fn a_batch_is_in_any_order_and_all_or_none() {
    let mut world = World::of(queue(4));
    let last = TaskSpec { key: Some("c"), ..after_key("b") };
    let middle = TaskSpec { key: Some("b"), ..after_key("a") };
    let answers = world.batch(&[last.clone(), middle, keyed("a")]).unwrap();
    let Submitted::Now(answers) = answers else { panic!("there is room") };
    let [c, b, a] = answers.iter().map(|answer| answer.task()).collect::<Vec<_>>()[..] else { panic!() };
    assert!(a < b && b < c, "numbers follow the order of waiting");
    assert_eq!(world.run_all(), [a, b, c]);
    assert_eq!(world.records.iter().filter(|record| record[0] == 65).count(), 1, "one record");

    let bad = TaskSpec { queue: "none", ..spec() };
    assert_eq!(world.batch(&[spec(), bad]), Err(Refusal::UnknownQueue("none".into())));
    assert_eq!(world.engine.tasks_after(c).count(), 0);
    assert_eq!(world.batch(&[keyed("z"), keyed("z")]), Err(Refusal::DuplicateKey("z".into())));
}

#[test]
fn a_cycle_within_a_batch_is_refused_with_its_path() {
    let mut world = World::of(queue(1));
    let one = TaskSpec { key: Some("one"), ..after_key("two") };
    let two = TaskSpec { key: Some("two"), ..after_key("three") };
    let three = TaskSpec { key: Some("three"), ..after_key("one") };
    let refusal = world.batch(&[spec(), one, two, three]).unwrap_err();
    assert_eq!(refusal.to_string(), "it would wait for itself: one → two → three → one");
}

#[test]
fn a_cycle_from_a_batch_through_the_outside_is_refused() {
    let mut world = World::of(waiting(None));
    let outside = world.submit(&after_key("first"));
    let first = TaskSpec { key: Some("first"), ..after_key("second") };
    let second = TaskSpec { key: Some("second"), ..after(outside, Condition::Completion) };
    assert!(matches!(world.batch(&[first, second]), Err(Refusal::Cycle(_))));
}

#[test]
fn a_key_of_a_batch_that_is_taken_comes_back_as_that_task() {
    let mut world = World::of(queue(1));
    let known = world.submit(&keyed("a"));
    let Ok(Submitted::Now(answers)) = world.batch(&[keyed("a"), after_key("a")]) else { panic!() };
    assert_eq!(answers[0], crate::scheduler::Answer::Existing(known));
    assert_eq!(world.status(answers[1].task()), Status::Blocked);
}

fn after_part(place: u32) -> TaskSpec<'static> {
    after(TaskNo::in_batch(place), Condition::Success)
}

#[test]
fn parts_of_a_batch_wait_for_each_other_by_their_places_and_stay_so_after_a_restart() {
    let mut world = World::of(queue(4));
    let batch = [after_part(2), spec(), after_part(1)];
    let Ok(Submitted::Now(answers)) = world.batch(&batch) else { panic!("there is room") };
    let [last, first, middle] = answers.iter().map(|answer| answer.task()).collect::<Vec<_>>()[..] else { panic!() };
    world.crash();
    assert_eq!(world.status(last), Status::Blocked);
    assert_eq!(world.run_all(), [first, middle, last]);
}

#[test]
fn a_part_of_a_batch_may_wait_for_whom_stands_for_another_part() {
    let mut world = World::of(queue(1));
    let known = world.submit(&keyed("a"));
    let Ok(Submitted::Now(answers)) = world.batch(&[keyed("a"), after_part(0)]) else { panic!("there is room") };
    assert_eq!(world.run_all(), [known, answers[1].task()]);
}

#[test]
fn a_refused_batch_names_the_part_at_fault_and_leaves_nothing() {
    let mut world = World::of(QueueConfig {
        bounds: Bounds { pending: Some(3), ..Bounds::default() },
        on_full: OnFull::Reject,
        ..queue(0)
    });
    world.submit(&spec());
    let before = world.records.len();
    let bad_queue = TaskSpec { queue: "none", ..spec() };
    let bad_retry = TaskSpec { retry: Some(RetryPolicy { max_attempts: 0, ..RetryPolicy::default() }), ..spec() };
    let batches: [&[TaskSpec<'_>]; 6] = [
        &[spec(), bad_queue],
        &[bad_retry, spec()],
        &[spec(), spec(), spec(), spec()],
        &[keyed("z"), spec(), keyed("z")],
        &[spec(), after_part(2), after_part(1)],
        &[spec(), after_part(2)],
    ];
    let places = batches.map(|batch| world.try_batch(batch).unwrap_err().at);
    assert_eq!(places, [Some(1), Some(0), Some(2), Some(2), Some(2), Some(1)]);
    assert_eq!(world.records.len(), before, "nothing is recorded");
    assert_eq!(world.engine.tasks_after(TaskNo(0)).count(), 1);
}

#[test]
fn tasks_of_one_order_key_run_one_at_a_time_in_order_retries_included() {
    let mut world = World::of(queue(4));
    let ordered = TaskSpec { order_key: Some("account"), ..spec() };
    let tasks: Vec<TaskNo> = (0..3).map(|_| world.submit(&ordered)).collect();
    let other = world.submit(&spec());
    assert_eq!(world.started, [tasks[0], other]);
    assert_eq!(
        world.engine.explain(tasks[2]),
        Some(Reason::Blocked { parents: vec![], keys: vec![], order_key: Some(("account".into(), tasks[0])) })
    );
    world.fail_once(tasks[0]);
    assert_eq!(world.started.len(), 2, "a retry keeps its place");
    world.cancel(tasks[1]);
    world.advance(1_000);
    world.complete(tasks[0]);
    assert_eq!(world.started, [tasks[0], other, tasks[0], tasks[2]]);
}

#[test]
fn a_cycle_through_a_line_of_one_order_key_is_refused() {
    let mut world = World::of(waiting(None));
    world.submit(&TaskSpec { order_key: Some("o"), ..after_key("later") });
    let behind = TaskSpec { order_key: Some("o"), ..keyed("later") };
    assert!(matches!(world.try_submit(&behind), Err(Refusal::Cycle(_))), "it stands behind who waits for it");
    world.submit(&keyed("later"));
}

#[test]
fn who_takes_a_key_over_waits_for_whoever_had_it() {
    let mut world = World::of(queue(4));
    let first = world.submit(&keyed("a"));
    let pending = crate::scheduler::Dedupe { scope: crate::scheduler::DedupeScope::Pending, ..Default::default() };
    let successor = TaskSpec { key: Some("a"), ..after_key("a") };
    let Ok(Submitted::Now(second)) = world.submit_as(&successor, pending) else { panic!() };
    assert_eq!(world.status(second.task()), Status::Blocked);
    world.complete(first);
    assert_eq!(world.status(second.task()), Status::Running);
}

#[test]
fn a_revived_task_stands_behind_those_of_its_order_key_that_came_meanwhile() {
    let mut world = World::of(queue(4));
    let ordered = TaskSpec { order_key: Some("account"), ..spec() };
    let first = world.submit(&ordered);
    world.fail(first, Failure::Permanent);
    let second = world.submit(&ordered);
    assert_eq!(world.engine.handle_revive(world.now_ms, first), Ok(true));
    world.drain();
    assert_eq!(world.status(first), Status::Blocked);
    world.complete(second);
    assert_eq!(world.status(first), Status::Running);
}
