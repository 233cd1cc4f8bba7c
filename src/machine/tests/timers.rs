//! Sleeps, waits with limits, conditions.

use super::world::*;
use crate::machine::*;
use crate::record::Status;

#[test]
fn a_sleep_is_counted_from_its_turn_and_fires_once() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.now_ms += 40;
    world.sleep(run, 100).unwrap();
    world.rests(run);
    world.advance(59);
    world.rests(run);
    world.advance(1);
    assert!(world.has_effect(|effect| matches!(effect, Effect::Wake(_))));
    assert_eq!(world.next(run), Some((DeliveryKind::TimerFired, 1)));
    assert_eq!(world.shards[0].turn_ms(run.1), T0 + 100);
    world.advance(1_000);
    world.rests(run);
}

#[test]
fn a_sleep_that_was_over_while_nobody_ran_wakes_at_once() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.sleep(run, 100).unwrap();
    world.now_ms += 5_000;
    world.crash(run);
    world.sleep(run, 100).unwrap();
    world.rests(run);
    world.no_orphans();
    world.advance(0);
    assert_eq!(world.next(run), Some((DeliveryKind::TimerFired, 1)));
    assert_eq!(world.shards[0].turn_ms(run.1), T0 + 5_000, "the code sees when it was woken");
}

fn end_sleeps(world: &mut World, id: &str, actor: Option<&str>) -> Result<(), Refusal> {
    let home = world.home(id);
    world.on(home, |shard, work| shard.end_sleeps(work, Target { id, run: None }, actor))
}

#[test]
fn a_sleep_ends_early_once_and_other_times_stay() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.sleep(run, 100).unwrap();
    world.wait(run, "x", Some(100)).unwrap();
    world.timer(run, 1_000, TimerMode { is_limit: true, ..TimerMode::default() }).unwrap();
    world.rests(run);
    world.now_ms += 40;
    for _ in 0..2 {
        end_sleeps(&mut world, "a", Some("ann")).unwrap();
    }
    assert!(world.has_effect(|effect| matches!(effect, Effect::Wake(_))));
    assert_eq!(world.next(run), Some((DeliveryKind::TimerFired, 1)));
    assert_eq!(world.shards[0].turn_ms(run.1), T0 + 40);
    world.rests(run);
    assert_eq!(world.labels(run), ["started", "timerSet", "waitSet", "timerSet", "timerFired"]);
    world.advance(100);
    assert_eq!(world.next(run), Some((DeliveryKind::WaitTimedOut, 2)));
    world.finish(run, Status::Completed, "").unwrap();
    assert!(matches!(end_sleeps(&mut world, "a", None), Err(Refusal::Ended(..))));
    assert!(matches!(end_sleeps(&mut world, "b", None), Err(Refusal::NotFound(_))));
    assert!(matches!(end_sleeps(&mut world, "a", Some("")), Err(Refusal::BadInput(_))));
}

#[test]
fn a_sleep_ended_early_stays_so_over_crashes_and_before_the_code_is_back() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.sleep(run, 100).unwrap();
    world.rests(run);
    for _ in 0..2 {
        world.reopen(true);
        end_sleeps(&mut world, "a", None).unwrap();
    }
    world.load(run);
    assert_eq!(world.next(run), Some((DeliveryKind::Start, 0)));
    world.sleep(run, 100).unwrap();
    assert_eq!(world.next(run), Some((DeliveryKind::TimerFired, 1)));
    world.sleep(run, 100).unwrap();
    world.rests(run);
    end_sleeps(&mut world, "a", None).unwrap();
    world.crash(run);
    world.sleep(run, 100).unwrap();
    assert_eq!(world.next(run), Some((DeliveryKind::TimerFired, 1)));
    world.sleep(run, 100).unwrap();
    assert_eq!(world.next(run), Some((DeliveryKind::TimerFired, 2)));
    world.advance(1_000);
    world.rests(run);
}

#[test]
fn what_has_fired_does_not_fire_again_after_a_crash() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.sleep(run, 100).unwrap();
    world.rests(run);
    world.advance(100);
    world.crash(run);
    world.sleep(run, 100).unwrap();
    assert_eq!(world.next(run), Some((DeliveryKind::TimerFired, 1)));
    world.rests(run);
    world.advance(1_000);
    assert_eq!(world.labels(run), ["started", "timerSet", "timerFired"]);
}

#[test]
fn of_a_limit_and_a_signal_the_one_recorded_first_wins_live_and_in_replay() {
    for is_signal_first in [true, false] {
        let mut world = World::new(1);
        let run = world.started("a");
        world.wait(run, "s", Some(100)).unwrap();
        world.rests(run);
        if is_signal_first {
            world.signal("a", "s", "1").unwrap();
            world.advance(100);
        } else {
            world.advance(100);
            world.signal("a", "s", "1").unwrap();
        }
        let expected = if is_signal_first { DeliveryKind::SignalTaken } else { DeliveryKind::WaitTimedOut };
        for _ in 0..2 {
            assert_eq!(world.next(run), Some((expected, 1)));
            assert_eq!(world.wait(run, "s", None), Ok(None));
            let second = (!is_signal_first).then_some((DeliveryKind::SignalTaken, 2));
            assert_eq!(world.next(run), second, "a wait that timed out has eaten no signal");
            world.crash(run);
            world.wait(run, "s", Some(100)).unwrap();
        }
    }
}

#[test]
fn a_condition_that_became_true_is_withdrawn_with_its_limit() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.condition(run, Some(100)).unwrap();
    world.condition(run, Some(200)).unwrap();
    world.rests(run);
    world.on(0, |shard, _| shard.withdraw(run.1, crate::record::Seq(1))).unwrap();
    world.advance(500);
    assert_eq!(world.next(run), Some((DeliveryKind::ConditionTimedOut, 2)));
    world.rests(run);
    assert_eq!(world.labels(run), ["started", "conditionSet", "conditionSet", "timerFired"]);
}

#[test]
fn a_clock_that_goes_back_takes_no_turn_back() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.now_ms -= 500;
    world.signal("a", "s", "1").unwrap();
    world.wait(run, "s", None).unwrap();
    assert_eq!(world.next(run), Some((DeliveryKind::SignalTaken, 1)));
    assert_eq!(world.shards[0].turn_ms(run.1), T0);
}

#[test]
fn extreme_limits_do_not_overflow() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.sleep(run, i64::MAX).unwrap();
    world.sleep(run, i64::MIN).unwrap();
    world.wait(run, "s", Some(i64::MAX)).unwrap();
    world.rests(run);
    world.advance(0);
    assert_eq!(world.next(run), Some((DeliveryKind::TimerFired, 2)));
    world.rests(run);
}
