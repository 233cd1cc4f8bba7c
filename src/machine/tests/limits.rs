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
        let message = world.shards[0].stuck_message(run.1).unwrap().to_owned();
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
