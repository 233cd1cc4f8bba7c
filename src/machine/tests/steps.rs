//! Results, retries, pauses, lost attempts.

use super::world::*;
use crate::machine::*;
use crate::record::*;

const AT_MOST_ONCE: StepMode = StepMode { is_read_only: false, is_at_most_once: true };
const READ_ONLY: StepMode = StepMode { is_read_only: true, is_at_most_once: false };

#[test]
fn a_step_waits_for_the_newest_record_of_its_run_law_2() {
    let mut world = World::new(1);
    let run = world.started("a");
    assert_eq!(world.step(run, "s"), Ok(OpenedStep::Run(Lsn(1))));
    world.sleep(run, 5).unwrap();
    assert_eq!(world.step(run, "t"), Ok(OpenedStep::Run(Lsn(2))));
    assert_eq!(world.step_as(run, "r", READ_ONLY), Ok(OpenedStep::Run(Lsn::NONE)));
    assert_eq!(world.step_as(run, "m", AT_MOST_ONCE), Ok(OpenedStep::Run(Lsn(3))));
    assert_eq!(world.labels(run), ["started", "timerSet", "stepStarted"]);
}

#[test]
fn results_are_delivered_one_a_turn_in_the_order_of_their_records_law_4() {
    let mut world = World::new(1);
    let run = world.started("a");
    for name in ["x", "y", "z"] {
        world.step(run, name).unwrap();
    }
    world.rests(run);
    assert!(world.complete(run, 3, 1, "third") && world.fail(run, 1, 1, "first"));
    assert_eq!(world.next(run), Some((DeliveryKind::StepCompleted, 3)));
    assert_eq!(world.payload(run), "third");
    assert!(world.complete(run, 2, 1, "second"), "recorded within a turn, delivered after it");
    assert_eq!(world.next(run), Some((DeliveryKind::StepFailed, 1)));
    assert_eq!(world.payload(run), "first");
    assert_eq!(world.next(run), Some((DeliveryKind::StepCompleted, 2)));
    world.rests(run);
    world.crash(run);
    for name in ["x", "y", "z"] {
        assert_eq!(world.step(run, name), Ok(OpenedStep::Recorded));
    }
    let replayed: Vec<_> = std::iter::from_fn(|| world.next(run)).collect();
    assert_eq!(
        replayed,
        [(DeliveryKind::StepCompleted, 3), (DeliveryKind::StepFailed, 1), (DeliveryKind::StepCompleted, 2)]
    );
}

#[test]
fn the_last_delivery_says_so_and_its_turn_needs_no_end_law_8() {
    let mut world = World::new(1);
    let run = world.started("a");
    let quiescent = |world: &mut World| world.on(run.0, |shard, work| shard.quiescent(work, run.1));
    world.step(run, "x").unwrap();
    world.step(run, "y").unwrap();
    world.rests(run);
    assert!(world.complete(run, 1, 1, "") && world.complete(run, 2, 1, ""));
    assert!(!quiescent(&mut world).unwrap().is_last);
    assert!(quiescent(&mut world).unwrap().is_last);
    assert_eq!(world.shards[run.0].explain(run.1), Explanation::Running);
    // What the turn itself records is nothing to come back for.
    world.wait(run, "go", None).unwrap();
    assert_eq!(world.shards[run.0].explain(run.1), Explanation::Waiting("signal \"go\"".into()));
    assert!(world.shards[run.0].orphans().is_empty());
    world.effects.clear();
    world.signal("a", "go", "value").unwrap();
    assert!(matches!(world.effects[..], [(_, Effect::Wake(woken))] if woken == run.1), "its host must come");
    assert_eq!(world.next(run), Some((DeliveryKind::SignalTaken, 3)));
}

#[test]
fn one_result_per_step_law_7() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "s").unwrap();
    assert!(!world.complete(run, 1, 2, "an attempt that does not run"));
    assert!(!world.complete(run, 2, 1, "a step that is not open"));
    assert!(world.complete(run, 1, 1, "a"));
    assert!(!world.complete(run, 1, 1, "b") && !world.fail(run, 1, 1, "c") && !world.retry(run, 1, 1, Some(1)));
    assert_eq!(world.labels(run), ["started", "stepCompleted"]);
}

#[test]
fn a_failed_attempt_comes_again_after_its_delay_and_not_before() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "s").unwrap();
    world.rests(run);
    assert!(world.retry(run, 1, 1, Some(100)));
    assert_eq!(world.shards[0].explain(run.1), Explanation::Retry("s".into(), T0 + 100));
    world.no_orphans();
    assert!(!world.complete(run, 1, 1, "late") && !world.complete(run, 1, 2, "early"));
    world.advance(99);
    assert_eq!(world.take_attempts(), []);
    world.advance(1);
    assert_eq!(world.take_attempts(), [(1, 2, false)]);
    assert!(world.complete(run, 1, 2, "ok"));
    assert_eq!(world.next(run), Some((DeliveryKind::StepCompleted, 1)));
}

#[test]
fn a_delay_outlives_the_process() {
    for is_clean in [true, false] {
        for passed_ms in [0, 99, 100, 5_000] {
            let mut world = World::new(1);
            let run = world.started("a");
            world.step(run, "s").unwrap();
            assert!(world.retry(run, 1, 1, Some(100)));
            world.now_ms += passed_ms;
            if is_clean {
                world.close_and_open(run);
            } else {
                world.crash(run);
            }
            assert_eq!(world.step(run, "s"), Ok(OpenedStep::Later));
            world.rests(run);
            world.no_orphans();
            world.advance(0);
            assert_eq!(world.take_attempts().len(), usize::from(passed_ms >= 100));
            world.advance(100);
            assert!(world.complete(run, 1, 2, "ok"), "clean {is_clean}, after {passed_ms} ms");
        }
    }
}

#[test]
fn a_lost_attempt_counts_from_the_second_loss_on_law_7() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "s").unwrap();
    world.rests(run);
    for attempt in [1, 2, 3] {
        world.crash(run);
        assert_eq!(world.step(run, "s"), Ok(OpenedStep::Later));
        world.rests(run);
        assert_eq!(world.take_attempts(), [(1, attempt, false)]);
    }
    assert_eq!(world.labels(run), ["started", "stepStarted", "stepStarted", "stepStarted"]);
    assert!(world.complete(run, 1, 3, "ok"));
}

#[test]
fn a_recovered_attempt_waits_for_the_record_of_its_start_law_2() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "s").unwrap();
    world.crash(run);
    world.step(run, "s").unwrap();
    world.rests(run);
    let newest = Lsn(world.log.len() as u64);
    assert!(world.has_effect(|effect| matches!(effect, Effect::Attempt { gate, .. } if *gate == newest)));
    assert_eq!(world.shards[0].explain(run.1), Explanation::Step("s".into()));
}

#[test]
fn a_clean_close_counts_nothing_law_7() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "s").unwrap();
    for _ in 0..3 {
        world.close_and_open(run);
        assert_eq!(world.step(run, "s"), Ok(OpenedStep::Run(Lsn(1))));
        world.rests(run);
    }
    world.sleep(run, 5).unwrap_err();
    assert_eq!(world.labels(run), ["started"]);
    world.signal("a", "x", "").unwrap();
    for _ in 0..3 {
        world.close_and_open(run);
        assert_eq!(world.step(run, "s"), Ok(OpenedStep::Later), "there is something to replay");
        world.rests(run);
        assert_eq!(world.take_attempts(), [(1, 1, false)]);
    }
    assert_eq!(world.labels(run), ["started", "signalReceived"]);
}

#[test]
fn a_read_only_step_leaves_no_start_after_a_crash() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step_as(run, "s", READ_ONLY).unwrap();
    for _ in 0..2 {
        world.crash(run);
        world.step_as(run, "s", READ_ONLY).unwrap();
        world.rests(run);
        assert!(world.has_effect(|effect| matches!(effect, Effect::Attempt { gate: Lsn::NONE, .. })));
        assert_eq!(world.take_attempts(), [(1, 1, false)]);
    }
    assert_eq!(world.labels(run), ["started"]);
}

#[test]
fn a_step_that_runs_at_most_once_is_interrupted_by_a_crash_and_by_a_close() {
    for is_clean in [true, false] {
        let mut world = World::new(1);
        let run = world.started("a");
        world.step_as(run, "s", AT_MOST_ONCE).unwrap();
        for _ in 0..2 {
            world.reopen(is_clean);
            world.load(run);
            world.next(run);
            assert_eq!(world.step_as(run, "s", AT_MOST_ONCE), Ok(OpenedStep::Later));
            world.rests(run);
            assert_eq!(world.take_attempts(), [(1, 1, true)]);
        }
        assert!(world.fail(run, 1, 1, "interrupted"));
        assert_eq!(world.labels(run), ["started", "stepStarted", "stepFailed"]);
    }
}

#[test]
fn a_step_that_runs_at_most_once_and_never_began_begins_after_a_crash() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.sleep(run, 1_000).unwrap();
    world.crash(run);
    world.sleep(run, 1_000).unwrap();
    world.step_as(run, "s", AT_MOST_ONCE).unwrap();
    world.rests(run);
    assert_eq!(world.take_attempts(), [(2, 1, false)]);
    assert_eq!(world.labels(run), ["started", "timerSet", "stepStarted"]);
}

#[test]
fn a_paused_step_waits_for_somebody_and_begins_anew() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "s").unwrap();
    world.rests(run);
    assert!(!world.retry(run, 1, 3, None) && world.retry(run, 1, 1, None));
    assert!(world.shards[0].view(run.1).marks.is_paused);
    assert_eq!(world.shards[0].explain(run.1), Explanation::Paused("s".into()));
    world.no_orphans();
    world.advance(1_000_000);
    assert_eq!(world.take_attempts(), []);
    world.resume("a").unwrap();
    world.resume("a").unwrap();
    assert_eq!(world.take_attempts(), [(1, 1, false)]);
    assert!(!world.shards[0].view(run.1).marks.is_paused);
    assert_eq!(world.labels(run), ["started", "stepAttemptFailed", "resumed"]);
    assert_eq!(world.leases, [2]);
    assert!(world.complete(run, 1, 2, "ok"));
}

#[test]
fn a_completion_from_before_a_pause_changes_nothing_after_it_law_7() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "s").unwrap();
    world.rests(run);
    for lease in [1, 2] {
        assert!(world.retry(run, 1, lease, Some(0)));
        world.advance(0);
    }
    assert!(world.retry(run, 1, 3, None));
    world.resume("a").unwrap();
    let resumed = world.take_attempts();
    assert_eq!(resumed.last(), Some(&(1, 1, false)), "attempts are counted from 1 again");
    let issued = *world.leases.last().unwrap();
    assert_eq!(issued, 4, "leases are not");
    for dead in 0..issued {
        assert!(!world.complete(run, 1, dead, "late") && !world.fail(run, 1, dead, "late"));
        assert!(!world.retry(run, 1, dead, Some(0)));
        assert!(!world.on(0, |shard, work| shard.heartbeat(work, run.1, Seq(1), dead, Some(b"late"))));
    }
    assert!(world.complete(run, 1, issued, "in time"));
    assert_eq!(world.next(run), Some((DeliveryKind::StepCompleted, 1)));
    assert_eq!(world.payload(run), "in time");
}

#[test]
fn leases_go_on_in_a_replay_where_they_were_law_7() {
    for is_clean in [true, false] {
        let mut world = World::new(1);
        let run = world.started("a");
        world.step(run, "s").unwrap();
        world.rests(run);
        for lease in [1, 2] {
            assert!(world.retry(run, 1, lease, None));
            world.resume("a").unwrap();
        }
        world.take_attempts();
        assert_eq!(world.leases, [3], "of the one that still runs");
        world.reopen(is_clean);
        world.load(run);
        world.next(run);
        world.step(run, "s").unwrap();
        world.rests(run);
        assert_eq!(world.take_attempts(), [(1, 1, false)]);
        assert!(!world.complete(run, 1, 1, "late") && !world.complete(run, 1, 2, "late"));
        let lease = *world.leases.last().unwrap();
        assert!(lease >= 3 && world.complete(run, 1, lease, "ok"));
    }
}

#[test]
fn a_pause_outlives_the_process_and_so_does_its_end() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "s").unwrap();
    assert!(world.retry(run, 1, 1, None));
    world.crash(run);
    world.step(run, "s").unwrap();
    world.rests(run);
    assert_eq!((world.take_attempts(), world.shards[0].view(run.1).marks.is_paused), (vec![], true));
    world.resume("a").unwrap();
    world.crash(run);
    world.step(run, "s").unwrap();
    world.rests(run);
    assert!(!world.shards[0].view(run.1).marks.is_paused);
    assert_eq!(world.take_attempts().len(), 1);
}

#[test]
fn a_step_that_cleans_up_after_a_cancel_is_still_paused_after_a_crash() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "s").unwrap();
    assert!(world.retry(run, 1, 1, None));
    world.cancel("a").unwrap();
    world.next(run);
    assert!(!world.shards[0].view(run.1).marks.is_paused, "what was paused is withdrawn");
    world.step(run, "clean up").unwrap();
    world.rests(run);
    assert!(world.retry(run, 2, 1, None));
    world.crash(run);
    world.step(run, "s").unwrap();
    world.next(run);
    world.step(run, "clean up").unwrap();
    world.rests(run);
    assert!(world.shards[0].view(run.1).marks.is_paused);
    world.resume("a").unwrap();
    assert_eq!(world.take_attempts(), [(2, 1, false)]);
}

#[test]
fn a_resume_is_not_lost_on_a_run_whose_code_is_not_in_memory() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "s").unwrap();
    assert!(world.retry(run, 1, 1, None));
    world.reopen(false);
    assert!(world.shards[0].view(run.1).marks.is_paused, "also before the code is there");
    world.resume("a").unwrap();
    assert!(!world.shards[0].view(run.1).marks.is_paused);
    world.load(run);
    world.next(run);
    world.step(run, "s").unwrap();
    world.rests(run);
    assert_eq!(world.take_attempts(), [(1, 1, false)]);
}

#[test]
fn a_resume_is_not_lost_on_a_run_in_replay() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "s").unwrap();
    world.step(run, "t").unwrap();
    assert!(world.retry(run, 1, 1, None) && world.complete(run, 2, 1, "t"));
    world.crash(run);
    world.step(run, "s").unwrap();
    world.step(run, "t").unwrap();
    assert_eq!(world.next(run), Some((DeliveryKind::StepCompleted, 2)));
    world.resume("a").unwrap();
    world.rests(run);
    assert_eq!(world.take_attempts(), [(1, 1, false)]);
    world.no_orphans();
}

#[test]
fn a_resumed_step_that_runs_at_most_once_records_its_start() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step_as(run, "s", AT_MOST_ONCE).unwrap();
    assert!(world.retry(run, 1, 1, None));
    world.resume("a").unwrap();
    assert_eq!(world.take_attempts(), [(1, 1, false)]);
    world.crash(run);
    world.step_as(run, "s", AT_MOST_ONCE).unwrap();
    world.rests(run);
    assert_eq!(world.take_attempts(), [(1, 1, true)], "its body may have run: never again");
}

#[test]
fn heartbeats_keep_an_attempt_alive_and_their_details_come_back() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "s").unwrap();
    world.rests(run);
    world.on(0, |shard, work| shard.watch_attempt(work.now_ms, run.1, Seq(1), 1, Some(100), Some(30)));
    world.advance(29);
    assert!(world.on(0, |shard, work| shard.heartbeat(work, run.1, Seq(1), 1, Some(b"half"))));
    world.advance(29);
    assert!(!world.has_effect(|effect| matches!(effect, Effect::Overdue { .. })));
    world.advance(1);
    assert!(world.has_effect(|effect| matches!(effect, Effect::Overdue { is_timeout: false, lease: 1, .. })));
    assert!(world.retry(run, 1, 1, Some(0)));
    world.advance(0);
    let details = world.shards[0].attempt(run.1, Seq(1), Lsn(3)).map(|attempt| attempt.last_heartbeat);
    assert_eq!(details, Some(b"half".to_vec()));
    world.effects.clear();
    world.on(0, |shard, work| shard.watch_attempt(work.now_ms, run.1, Seq(1), 2, Some(100), None));
    world.advance(100);
    assert!(world.has_effect(|effect| matches!(effect, Effect::Overdue { is_timeout: true, lease: 2, .. })));
    assert!(world.complete(run, 1, 2, "ok"));
    assert_eq!(world.shards[0].next_due_ms(), None);
}

#[test]
fn a_limit_ends_with_its_attempt() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "s").unwrap();
    world.on(0, |shard, work| shard.watch_attempt(work.now_ms, run.1, Seq(1), 1, Some(100), None));
    assert!(world.complete(run, 1, 1, "ok"));
    world.advance(200);
    assert!(!world.has_effect(|effect| matches!(effect, Effect::Overdue { .. })));
}
