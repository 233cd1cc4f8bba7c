//! The id policies, and how runs end.

use super::world::*;
use crate::machine::*;
use crate::record::*;

const REUSES: [IdReuse; 3] = [IdReuse::Allow, IdReuse::AllowFailedOnly, IdReuse::Reject];
const CONFLICTS: [IdConflict; 4] =
    [IdConflict::SameInput, IdConflict::Fail, IdConflict::UseExisting, IdConflict::TerminateExisting];

#[test]
fn an_id_in_use_follows_its_conflict_policy_whatever_the_reuse_policy() {
    for reuse in REUSES {
        for conflict in CONFLICTS {
            for input in ["in", "other"] {
                let mut world = World::new(1);
                let old = world.started("a");
                let answer = world.try_start(new_run("a", input), reuse, conflict);
                let is_existing = match conflict {
                    IdConflict::SameInput => input == "in",
                    IdConflict::UseExisting => true,
                    IdConflict::Fail | IdConflict::TerminateExisting => false,
                };
                let case = format!("{reuse:?} {conflict:?} {input}");
                if is_existing {
                    assert_eq!(answer, Ok((old, true)), "{case}");
                } else if conflict == IdConflict::TerminateExisting && reuse != IdReuse::Reject {
                    let (new, existing) = answer.unwrap();
                    assert!(!existing && new != old, "{case}");
                    assert_eq!(world.status(old), Some(Status::Terminated), "{case}");
                    assert_eq!(world.find("a"), new, "{case}");
                } else {
                    assert!(matches!(answer, Err(Refusal::AlreadyStarted(_))), "{case}");
                    assert_eq!((world.status(old), world.log.len()), (None, 1), "nothing was recorded: {case}");
                }
            }
        }
    }
}

#[test]
fn an_id_that_was_used_follows_its_reuse_policy() {
    for reuse in REUSES {
        for (status, is_failed) in [(Status::Completed, false), (Status::Failed, true), (Status::Cancelled, true)] {
            let mut world = World::new(1);
            let old = world.started("a");
            world.finish(old, status, "out").unwrap();
            let answer = world.try_start(new_run("a", "in"), reuse, IdConflict::SameInput);
            let allowed = reuse == IdReuse::Allow || (reuse == IdReuse::AllowFailedOnly && is_failed);
            assert_eq!(answer.is_ok(), allowed, "{reuse:?} {status:?}");
            if allowed {
                assert!(answer.unwrap().0 != old);
            }
        }
    }
}

#[test]
fn a_crash_between_the_end_of_the_old_run_and_the_start_of_the_new_one_leaves_the_id_usable() {
    for reuse in REUSES {
        let mut world = World::new(1);
        world.started("a");
        let Ok(_) = world.try_start(new_run("a", "new"), reuse, IdConflict::TerminateExisting) else { continue };
        world.log.pop();
        world.reopen(false);
        assert!(world.try_start(new_run("a", "new"), reuse, IdConflict::TerminateExisting).is_ok(), "{reuse:?}");
    }
}

#[test]
fn a_run_ends_once_and_takes_nothing_afterwards() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "s").unwrap();
    world.finish(run, Status::Completed, "out").unwrap();
    assert_eq!(world.labels(run), ["started", "ended"]);
    let count = world.log.len();
    assert_eq!(world.finish(run, Status::Failed, "again"), Err(Halt::Dead));
    assert!(!world.complete(run, 1, 1, "late"));
    assert_eq!(world.signal("a", "s", "1"), Err(Refusal::Ended("a".into(), Status::Completed)));
    assert_eq!((world.cancel("a"), world.terminate("a")), (Ok(()), Ok(())));
    assert_eq!(world.next(run), None);
    assert_eq!(world.log.len(), count, "nothing more was recorded");
    assert_eq!(world.shards[0].outcome(run.1), Some((Status::Completed, b"out".as_slice(), Lsn(2))));
}

#[test]
fn what_is_not_there_is_not_found() {
    let mut world = World::new(3);
    assert!(matches!(world.signal("a", "s", "1"), Err(Refusal::NotFound(_))));
    assert!(matches!(world.cancel("a"), Err(Refusal::NotFound(_))));
    assert!(matches!(world.terminate("a"), Err(Refusal::NotFound(_))));
    assert!(matches!(world.resume("a"), Err(Refusal::NotFound(_))));
    let run = world.started("a");
    let home = run.0;
    let other = Target { id: "a", run: Some(RunNo(9)) };
    let answer = world.on(home, |shard, work| shard.cancel(work, other, "", None));
    assert!(matches!(answer, Err(Refusal::NotFound(text)) if text.contains("-9")));
}

#[test]
fn terminate_ends_at_once_and_the_host_drops_the_code() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.sleep(run, 10).unwrap();
    world.terminate("a").unwrap();
    assert_eq!(world.status(run), Some(Status::Terminated));
    assert!(world.has_effect(|effect| matches!(effect, Effect::Ended { was_loaded: true, .. })));
    assert_eq!(world.sleep(run, 1), Err(Halt::Dead));
    assert_eq!(world.shards[0].next_due_ms(), None, "its timers are gone");
    assert_eq!(world.shards[0].open_count(), 0);
}

#[test]
fn a_run_whose_time_is_over_ends_also_if_that_was_while_nobody_ran_it() {
    for is_reopened in [false, true] {
        let mut world = World::new(1);
        let new = NewRun { deadline_ms: Some(T0 + 50), ..new_run("a", "in") };
        let (run, _) = world.try_start(new, IdReuse::Allow, IdConflict::Fail).unwrap();
        world.load(run);
        world.next(run);
        world.wait(run, "never", None).unwrap();
        world.advance(49);
        assert_eq!(world.status(run), None);
        if is_reopened {
            world.reopen(false);
        }
        world.advance(1);
        assert_eq!(world.status(run), Some(Status::TimedOut), "reopened: {is_reopened}");
    }
}

#[test]
fn a_cancel_withdraws_everything_in_one_delivery_and_the_code_may_clean_up() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "s").unwrap();
    world.sleep(run, 10).unwrap();
    world.wait(run, "x", Some(20)).unwrap();
    world.condition(run, Some(30)).unwrap();
    world.send(run, "b", Sending::Watch).unwrap();
    while world.next(run).is_some() {}
    world.cancel("a").unwrap();
    world.cancel("a").unwrap();
    assert_eq!(world.next(run), Some((DeliveryKind::Cancelled, 0)));
    assert_eq!(world.payload(run), "enough");
    assert!(!world.complete(run, 1, 1, "late"), "the attempt does not count any more");
    assert_eq!(world.shards[0].next_due_ms(), None);
    assert!(matches!(world.step(run, "clean up"), Ok(OpenedStep::Run(_))));
    world.rests(run);
    world.signal("a", "x", "1").unwrap();
    world.advance(100);
    world.rests(run);
    assert!(world.complete(run, 6, 1, "clean"));
    assert_eq!(world.next(run), Some((DeliveryKind::StepCompleted, 6)));
    world.finish(run, Status::Cancelled, "").unwrap();
    assert_eq!(world.labels(run).iter().filter(|label| **label == "cancelRequested").count(), 1);
}

#[test]
fn a_result_recorded_after_a_cancel_and_before_its_delivery_is_passed_over_live_and_in_replay() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "s").unwrap();
    world.cancel("a").unwrap();
    assert!(world.complete(run, 1, 1, "done"));
    assert_eq!(world.next(run), Some((DeliveryKind::Cancelled, 0)));
    world.rests(run);
    world.crash(run);
    world.step(run, "s").unwrap();
    assert_eq!(world.next(run), Some((DeliveryKind::Cancelled, 0)));
    world.rests(run);
}
