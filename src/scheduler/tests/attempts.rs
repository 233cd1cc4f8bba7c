//! Attempts: how they begin, end, are followed by others, and are given up.

use super::world::{World, queue, spec};
use crate::record::{AttemptEnd, Outcome, RetryPolicy, TaskSpec};
use crate::scheduler::{AbortReason, Failure, Lease, MemberNo, Output, QueueConfig, Status};

fn plain_retry(max_attempts: u32) -> QueueConfig {
    let retry = RetryPolicy { max_attempts, has_jitter: false, ..RetryPolicy::default() };
    QueueConfig { retry, ..queue(1) }
}

#[test]
fn a_retryable_failure_is_followed_by_another_attempt_after_the_wait() {
    let mut world = World::of(plain_retry(3));
    let task = world.submit(&spec());
    world.fail_once(task);
    assert_eq!(world.status(task), Status::Retrying);
    world.advance(999);
    assert!(world.running.is_empty());
    world.advance(1);
    world.fail_once(task);
    world.advance(2_000);
    world.fail_once(task);
    assert_eq!(world.outcome(task), Outcome::Dead);
    let view = world.engine.task(task).unwrap();
    assert_eq!((view.attempts, view.failure, view.payload), (3, &b"thrown"[..], &b"in"[..]));
    let history: Vec<_> = view.history.iter().map(|note| (note.attempt, note.started_ms, note.ended_ms)).collect();
    assert_eq!(history, [(1, 0, 0), (2, 1_000, 1_000)], "the last one is the end itself");
}

#[test]
fn a_permanent_failure_is_the_end() {
    let mut world = World::of(plain_retry(3));
    let task = world.submit(&spec());
    world.fail(task, Failure::Permanent);
    assert_eq!(world.outcome(task), Outcome::Failed);
}

#[test]
fn a_function_can_ask_for_a_longer_wait() {
    let mut world = World::of(plain_retry(3));
    let task = world.submit(&spec());
    world.fail(task, Failure::Retryable { after_ms: Some(5_000) });
    world.advance(4_999);
    assert!(world.running.is_empty());
    world.advance(1);
    assert!(world.running.contains_key(&task));
}

#[test]
fn a_postponed_attempt_costs_nothing() {
    let mut world = World::of(plain_retry(1));
    let task = world.submit(&spec());
    for round in 1..5 {
        let lease = world.running.remove(&task).unwrap();
        assert!(world.engine.handle_postponed(world.now_ms, lease, round * 100));
        world.drain();
        world.advance(100);
    }
    world.complete(task);
    assert_eq!(world.outcome(task), Outcome::Completed);
}

#[test]
fn an_attempt_that_takes_too_long_is_given_up_and_counts() {
    let mut world = World::of(QueueConfig { timeout_ms: Some(500), ..plain_retry(1) });
    let slow = world.submit(&TaskSpec { timeout_ms: Some(100), ..spec() });
    let lease = world.running[&slow];
    world.advance(99);
    assert_eq!(world.status(slow), Status::Running);
    world.advance(1);
    assert!(world.outputs.contains(&Output::Abort {
        task: slow,
        lease,
        member: MemberNo(0),
        reason: AbortReason::TimedOut
    }));
    assert_eq!(world.outcome(slow), Outcome::Dead);
    assert!(!world.engine.handle_completed(world.now_ms, lease, b""), "a late result changes nothing");
    assert_eq!((world.engine.totals().stale, world.engine.totals().timed_out), (1, 1));
    assert_eq!(world.ended[&slow], [Outcome::Dead]);
}

#[test]
fn an_executor_that_is_silent_for_too_long_loses_its_attempt() {
    let mut world = World::of(QueueConfig { lease_ms: Some(100), ..plain_retry(2) });
    let task = world.submit(&spec());
    let lease = world.running[&task];
    for _ in 0..5 {
        world.advance(80);
        assert!(world.engine.handle_heartbeat(world.now_ms, lease));
    }
    assert_eq!(world.status(task), Status::Running);
    world.advance(100);
    assert_eq!(world.status(task), Status::Retrying);
    assert!(!world.engine.handle_heartbeat(world.now_ms, lease));
    assert_eq!(world.engine.totals().leases_expired, 1);
}

#[test]
fn heartbeats_and_timeouts_leave_no_litter() {
    let of = QueueConfig { lease_ms: Some(1_000_000), timeout_ms: Some(1_000_000), ..queue(1) };
    let mut world = World::new(crate::scheduler::Config { retained_max: 5, ..super::world::config(of) });
    for _ in 0..3_000 {
        let task = world.submit(&spec());
        let lease = world.running[&task];
        assert!(world.engine.handle_heartbeat(world.now_ms, lease));
        world.complete(task);
    }
    assert!(world.engine.timers.len() < 3_000, "{} timers", world.engine.timers.len());
}

#[test]
fn a_lease_that_never_was_changes_nothing() {
    let mut world = World::of(queue(1));
    let task = world.submit(&spec());
    let wrong = Lease { serial: world.running[&task].serial + 1, ..world.running[&task] };
    assert!(!world.engine.handle_completed(0, wrong, b""));
    assert!(!world.engine.handle_completed(0, Lease { slot: 7, serial: 1 }, b""));
    assert_eq!(world.status(task), Status::Running);
}

#[test]
fn cancelling_ends_a_task_whatever_it_does() {
    let mut world = World::of(plain_retry(3));
    let running = world.submit(&spec());
    let waiting = world.submit(&spec());
    let delayed = world.submit(&TaskSpec { not_before_ms: Some(1_000), ..spec() });
    let lease = world.running[&running];
    for task in [waiting, delayed, running] {
        assert!(world.cancel(task));
        assert!(!world.cancel(task), "once");
        assert_eq!(world.ended[&task], [Outcome::Cancelled]);
    }
    assert!(world.outputs.contains(&Output::Abort {
        task: running,
        lease,
        member: MemberNo(0),
        reason: AbortReason::Cancelled
    }));
    assert!(!world.engine.handle_completed(0, lease, b""));
    world.advance(2_000);
    assert_eq!(world.started, [running]);
}

#[test]
fn a_retrying_task_can_be_cancelled() {
    let mut world = World::of(plain_retry(3));
    let task = world.submit(&spec());
    world.fail_once(task);
    assert!(world.cancel(task));
    world.advance(10_000);
    assert_eq!(world.started, [task]);
}

#[test]
fn a_drain_starts_nothing_and_a_cut_costs_nothing() {
    let mut world = World::of(plain_retry(1));
    let labels = [("gpu".into(), "a".into())];
    world.engine.handle_workers(0, "q", &labels, 1).unwrap();
    let first = world.submit(&spec());
    let labelled = world.submit(&TaskSpec { labels: vec![("gpu", "a")], ..spec() });
    let second = world.submit(&spec());
    world.engine.handle_drain(0);
    world.drain();
    world.complete(first);
    assert_eq!(world.started, [first, labelled], "no group of workers starts anything");
    world.engine.handle_cut(0);
    world.drain();
    assert!(world.running.is_empty());
    world.crash_at(world.records.len(), true);
    world.engine.handle_workers(0, "q", &labels, 1).unwrap();
    world.drain();
    world.run_all();
    assert_eq!(world.outcome(labelled), Outcome::Completed, "its only attempt was not used up");
    assert_eq!(world.outcome(second), Outcome::Completed);
    let history = &world.engine.task(labelled).unwrap().history;
    assert_eq!(history[0].end, AttemptEnd::Drained);
}

#[test]
fn a_dead_task_can_be_given_its_attempts_back() {
    let mut world = World::of(plain_retry(2));
    let task = world.submit(&TaskSpec { key: Some("a"), order_key: Some("o"), ..spec() });
    world.fail_once(task);
    world.advance(1_000);
    world.fail_once(task);
    assert_eq!(world.outcome(task), Outcome::Dead);
    assert_eq!(world.engine.handle_revive(world.now_ms, task), Ok(true));
    world.drain();
    world.fail_once(task);
    assert_eq!(world.status(task), Status::Retrying, "it has two attempts again");
    world.advance(60_000);
    world.complete(task);
    assert_eq!(world.engine.handle_revive(world.now_ms, task), Ok(false), "it completed");
    assert_eq!(world.engine.task(task).unwrap().attempts, 4);
}

#[test]
fn time_that_runs_backwards_stands_still() {
    let mut world = World::of(queue(1));
    world.advance(1_000);
    let task = world.engine.handle_submit(-5, &spec(), Default::default());
    world.drain();
    assert!(task.is_ok());
    assert_eq!(world.engine.tasks_after(Default::default()).next().unwrap().submitted_ms, 1_000);
}

#[test]
fn times_far_away_do_not_wrap() {
    let mut world = World::of(queue(1));
    let far = world.submit(&TaskSpec { not_before_ms: Some(i64::MAX), ..spec() });
    world.submit(&TaskSpec { deadline_ms: Some(i64::MAX), expires_ms: Some(i64::MAX), ..spec() });
    let past = TaskSpec { not_before_ms: Some(i64::MIN), deadline_ms: Some(i64::MIN), ..spec() };
    world.submit(&past);
    world.run_all();
    world.advance(1_000_000);
    assert_eq!(world.status(far), Status::Scheduled);
    assert_eq!(world.started.len(), 2);
}

#[test]
fn a_task_that_has_not_started_in_time_expires() {
    let mut world = World::of(queue(1));
    let running = world.submit(&TaskSpec { expires_ms: Some(100), ..spec() });
    let waiting = world.submit(&TaskSpec { expires_ms: Some(100), ..spec() });
    world.advance(100);
    assert_eq!(world.status(running), Status::Running, "it started");
    assert_eq!(world.outcome(waiting), Outcome::Expired);
}
