//! What is too large to be recorded.

use super::world::*;
use crate::machine::*;
use crate::record::*;

fn small() -> World {
    let mut world = World::new(1);
    world.limit(Limits { payload_bytes_max: 10, ..Limits::default() });
    world
}

const LARGE: &str = "eleven byte";

#[test]
fn a_result_that_is_too_large_fails_its_step_for_good_law_6() {
    let mut world = small();
    let run = world.started("a");
    world.step(run, "s").unwrap();
    world.rests(run);
    assert!(world.complete(run, 1, 1, LARGE));
    assert_eq!(world.next(run), Some((DeliveryKind::StepFailed, 1)));
    let failure = world.payload(run);
    assert!(failure.contains("StepError") && failure.contains("NON_RETRYABLE"), "{failure}");
    assert!(failure.contains("takes 11 bytes; the limit is 10 bytes"), "{failure}");
    assert!(!world.complete(run, 1, 1, "ok"), "once");
    world.crash(run);
    world.step(run, "s").unwrap();
    assert_eq!(world.next(run), Some((DeliveryKind::StepFailed, 1)));
    assert_eq!(world.payload(run), failure);
}

#[test]
fn an_error_that_is_too_large_is_replaced_by_one_that_says_so() {
    let mut world = small();
    let run = world.started("a");
    world.step(run, "s").unwrap();
    world.rests(run);
    let retried = world.on(0, |shard, work| shard.retry(work, run.1, Seq(1), 1, Retry::At(T0), LARGE.as_bytes()));
    assert!(retried);
    world.advance(0);
    assert!(world.fail(run, 1, 2, LARGE));
    assert_eq!(world.next(run), Some((DeliveryKind::StepFailed, 1)));
    assert!(world.payload(run).contains("the error of step \\\"s\\\" takes 11 bytes"), "{}", world.payload(run));
    let recorded: usize =
        world.log.iter().filter(|(_, record)| record.windows(11).any(|at| at == LARGE.as_bytes())).count();
    assert_eq!(recorded, 0);
}

#[test]
fn details_of_a_heartbeat_that_are_too_large_are_left_out_and_it_counts() {
    let mut world = small();
    let run = world.started("a");
    world.step(run, "s").unwrap();
    world.rests(run);
    assert!(world.on(0, |shard, work| shard.heartbeat(work, run.1, Seq(1), 1, Some(LARGE.as_bytes()))));
    assert_eq!(world.labels(run), ["started"]);
}

#[test]
fn a_run_whose_result_is_too_large_fails() {
    for (status, expected) in
        [(Status::Completed, Status::Failed), (Status::Failed, Status::Failed), (Status::Cancelled, Status::Cancelled)]
    {
        let mut world = small();
        let run = world.started("a");
        world.finish(run, status, LARGE).unwrap();
        let (ended, payload, _) = world.shards[0].outcome(run.1).unwrap();
        let payload = String::from_utf8(payload.to_vec()).unwrap();
        assert_eq!(ended, expected);
        assert!(
            payload.contains("takes 11 bytes; the limit is 10 bytes") && payload.contains("\\\"a\\\""),
            "{payload}"
        );
    }
}

#[test]
fn code_that_asks_for_what_cannot_be_recorded_is_stuck_and_records_nothing() {
    let long = "n".repeat(257);
    let long = long.as_str();
    type Ask<'a> = &'a dyn Fn(&mut World, R) -> Option<Halt>;
    let asks: [(Ask<'_>, &str); 7] = [
        (&|world, run| world.step(run, long).err(), "the name of a step is 1 to 256 bytes"),
        (&|world, run| world.step(run, "a\u{1f}b").err(), "without control characters"),
        (&|world, run| world.wait(run, long, None).err(), "the name of a signal"),
        (&|world, run| world.child(run, child(long)).err(), "the id of a child"),
        (
            &|world, run| world.child(run, ChildSpec { input: LARGE.as_bytes(), ..child("kid") }).err(),
            "the input of a child takes 11 bytes; the limit is 10",
        ),
        (
            &|world, run| world.send(run, "b", Sending::Signal("go", LARGE.as_bytes())).err(),
            "the value of the signal takes 11 bytes",
        ),
        (&|world, run| world.send(run, "b", Sending::Cancel(LARGE)).err(), "the reason of a cancel takes 11 bytes"),
    ];
    for (ask, why) in asks {
        let mut world = small();
        let run = world.started("a");
        assert_eq!(ask(&mut world, run), Some(Halt::Mismatch), "{why}");
        let message = world.shards[0].stuck(run.1).unwrap().message.clone();
        assert!(message.contains("operation 1: ") && message.contains(why), "{message}");
        assert_eq!(world.labels(run), ["started"]);
    }
}

#[test]
fn commands_that_cannot_be_recorded_are_refused() {
    let mut world = small();
    world.started("a");
    let target = Target { id: "a", run: None };
    let before = world.log.len();
    let long = "n".repeat(257);
    let refused = [
        world.signal("a", "go", LARGE),
        world.signal("a", &long, ""),
        world.signal_once("a", "go", "", Some(&long)),
        world.on(0, |shard, work| shard.cancel(work, target, LARGE, None)),
        world.on(0, |shard, work| shard.terminate(work, target, LARGE.as_bytes(), None)),
        world.on(0, |shard, work| shard.resume(work, target, Some(&long))),
        world.try_start(new_run("b", LARGE), IdReuse::Allow, IdConflict::Fail).map(drop),
        world.try_start(new_run(&long, ""), IdReuse::Allow, IdConflict::Fail).map(drop),
    ];
    for (index, answer) in refused.iter().enumerate() {
        assert!(matches!(answer, Err(Refusal::BadInput(_))), "{index}: {answer:?}");
    }
    assert_eq!(world.log.len(), before);
}

#[test]
fn messages_of_a_process_with_larger_limits_are_answered_law_3() {
    let mut world = World::new(2);
    let home = |id: &str| usize::from(shard_of(id, 2).0);
    let kid = (0..).map(|n| format!("k{n}")).find(|id| home(id) != home("a")).unwrap();
    let run = world.started("a");
    world.is_mail_held = true;
    world.child(run, ChildSpec { input: LARGE.as_bytes(), ..child(&kid) }).unwrap();
    world.send(run, &kid, Sending::Signal("go", LARGE.as_bytes())).unwrap();
    world.limit(Limits { payload_bytes_max: 10, ..Limits::default() });
    world.is_mail_held = false;
    world.post_all();
    assert_eq!(world.next(run), Some((DeliveryKind::ChildEnded, 1)));
    assert!(world.payload(run).starts_with("Refused:the input takes 11 bytes"), "{}", world.payload(run));
}

#[test]
fn a_childs_result_from_a_process_with_larger_limits_is_a_failure() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.child(run, child("kid")).unwrap();
    world.rests(run);
    world.is_mail_held = true;
    let kid = world.find("kid");
    world.load(kid);
    world.next(kid);
    world.finish(kid, Status::Completed, &"x".repeat(3_000)).unwrap();
    world.limit(Limits { payload_bytes_max: 10, ..Limits::default() });
    world.is_mail_held = false;
    world.post_all();
    assert_eq!(world.next(run), Some((DeliveryKind::ChildEnded, 1)));
    assert!(world.payload(run).starts_with("Failed:"), "{}", world.payload(run));
    assert!(world.payload(run).contains("takes 3000 bytes"), "{}", world.payload(run));
}

/// A run that takes signals, one a turn, under a bound of so many records.
fn bounded(records: usize) -> (World, R) {
    let mut world = World::new(1);
    world.limit(Limits { journal_records_max: records, ..Limits::default() });
    let run = world.started("a");
    (world, run)
}

#[test]
fn a_run_that_reaches_the_bound_of_its_journal_fails_and_nothing_else_does() {
    let (mut world, run) = bounded(10);
    let other = world.started("b");
    for number in 1..=8 {
        world.signal("a", "go", &number.to_string()).unwrap();
        let halves = usize::from(number >= 4);
        assert_eq!(
            world.effects.iter().filter(|(_, e)| matches!(e, Effect::JournalHalf(_))).count(),
            halves,
            "{number}"
        );
    }
    assert_eq!(world.status(run), None);
    world.signal("a", "go", "9").unwrap();
    let (status, payload, _) = world.shards[0].outcome(run.1).unwrap();
    let payload = String::from_utf8(payload.to_vec()).unwrap();
    assert_eq!(status, Status::Failed);
    assert!(payload.contains("JOURNAL_LIMIT") && payload.contains("has 10 records"), "{payload}");
    assert!(world.has_effect(|effect| matches!(effect, Effect::Ended { was_loaded: true, .. })));
    assert!(matches!(world.signal("a", "go", "10"), Err(Refusal::Ended(..))));
    assert_eq!(world.next(run), None);
    assert_eq!(world.status(other), None);
    world.signal("b", "go", "1").unwrap();
    world.no_orphans();
}

#[test]
fn bytes_bound_a_journal_as_records_do() {
    let mut world = World::new(1);
    world.limit(Limits { journal_bytes_max: 1_000, ..Limits::default() });
    let run = world.started("a");
    world.signal("a", "go", &"x".repeat(500)).unwrap();
    assert!(world.has_effect(|effect| matches!(effect, Effect::JournalHalf(_))));
    world.signal("a", "go", &"x".repeat(500)).unwrap();
    assert_eq!(world.status(run), Some(Status::Failed));
}

#[test]
fn code_that_reaches_the_bound_in_its_turn_goes_no_further() {
    type Ask<'a> = &'a dyn Fn(&mut World, R) -> Option<Halt>;
    let at_most_once = StepMode { is_read_only: false, is_at_most_once: true };
    let asks: [Ask<'_>; 6] = [
        &|world, run| world.sleep(run, 1_000).err(),
        &|world, run| world.wait(run, "x", Some(5)).err(),
        &|world, run| world.condition(run, None).err(),
        &|world, run| world.child(run, child("kid")).err(),
        &|world, run| world.send(run, "b", Sending::Watch).err(),
        &|world, run| world.step_as(run, "s", at_most_once).err(),
    ];
    for (index, ask) in asks.into_iter().enumerate() {
        let (mut world, run) = bounded(10);
        for number in 1..=8 {
            world.signal("a", "go", &number.to_string()).unwrap();
        }
        assert_eq!(ask(&mut world, run), Some(Halt::Dead), "{index}");
        assert_eq!(world.status(run), Some(Status::Failed));
        assert_eq!(world.step(run, "t"), Err(Halt::Dead));
        assert_eq!(world.finish(run, Status::Completed, "x"), Err(Halt::Dead));
        assert_eq!(world.shards[0].next_due_ms(), None);
        assert_eq!(world.take_attempts(), []);
        if index == 3 {
            assert_eq!(world.status(world.find("kid")), Some(Status::Terminated), "its parent has ended");
        }
    }
}

#[test]
fn steps_timers_and_resumes_may_reach_the_bound() {
    // The failed attempt, the pause, the resume, the result: each is the last record once.
    for records in 10..=13 {
        let (mut world, run) = bounded(records);
        for number in 1..=8 {
            world.signal("a", "go", &number.to_string()).unwrap();
        }
        world.step(run, "s").unwrap();
        world.rests(run);
        world.retry(run, 1, 1, Some(0));
        world.advance(0);
        world.retry(run, 1, 2, None);
        let _ = world.resume("a");
        world.complete(run, 1, 3, "ok");
        assert_eq!(world.status(run), Some(Status::Failed), "{records}");
        assert_eq!(world.shards[0].journal_size(run.1).records, records + 1);
    }
    let (mut world, run) = bounded(10);
    world.sleep(run, 5).unwrap();
    for number in 1..=7 {
        world.signal("a", "go", &number.to_string()).unwrap();
    }
    world.advance(5);
    assert_eq!(world.status(run), Some(Status::Failed));
}

#[test]
fn a_stuck_run_may_reach_the_bound_by_its_resume() {
    let (mut world, run) = bounded(10);
    for number in 1..=8 {
        world.signal("a", "go", &number.to_string()).unwrap();
    }
    world.on(0, |shard, work| shard.mark_stuck(work, run.1, "it awaited something else", ""));
    world.resume("a").unwrap();
    assert_eq!(world.status(run), Some(Status::Failed));
    assert!(!world.has_effect(|effect| matches!(effect, Effect::Dropped(_))));
}

#[test]
fn a_bound_is_decided_once_and_recovery_does_not_decide() {
    let (mut world, run) = bounded(10);
    for number in 1..=9 {
        world.signal("a", "go", &number.to_string()).unwrap();
    }
    let after = |count: usize, limit: usize| {
        let mut shards = world.restored_from(count);
        shards[0].set_limits(Limits { journal_records_max: limit, ..Limits::default() });
        (shards[0].view(run.1).status, shards[0].journal_size(run.1).records)
    };
    for limit in [3, 10, 50_000] {
        assert_eq!(after(11, limit), (Some(Status::Failed), 11));
        assert_eq!(after(10, limit), (None, 10), "the crash came between the two records");
    }
}

#[test]
fn a_run_that_a_crash_left_over_its_bound_ends_at_its_next_record() {
    let (mut world, run) = bounded(10);
    for number in 1..=9 {
        world.signal("a", "go", &number.to_string()).unwrap();
    }
    world.log.truncate(10);
    world.reopen(false);
    world.limit(Limits { journal_records_max: 10, ..Limits::default() });
    assert_eq!(world.load(run), Some(true));
    assert_eq!(world.next(run), Some((DeliveryKind::Start, 0)), "it replays");
    world.signal("a", "go", "10").unwrap();
    assert_eq!(world.status(run), Some(Status::Failed));
    world.rests(run);
}
