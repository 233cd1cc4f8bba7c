//! Signals: buffered, taken in order, known again.

use super::world::*;
use crate::machine::*;
use crate::record::*;

#[test]
fn signals_wait_for_somebody_to_take_them_in_order_by_name() {
    let mut world = World::new(1);
    let run = world.started("a");
    for (name, payload) in [("x", "1"), ("y", "2"), ("x", "3")] {
        world.signal("a", name, payload).unwrap();
    }
    for _ in 0..2 {
        assert_eq!(world.wait(run, "y", None), Ok(None), "the walk has not come to it: it is delivered");
        assert_eq!(world.next(run), Some((DeliveryKind::SignalTaken, 1)));
        assert_eq!(world.payload(run), "2");
        world.rests(run);
        assert_eq!(world.wait(run, "x", None), Err(Halt::Dead), "only within a turn");
        world.crash(run);
    }
    world.wait(run, "y", None).unwrap();
    world.next(run);
    assert_eq!(world.wait(run, "x", None), Ok(Some("1".into())), "it was walked past, and kept");
    assert_eq!(world.wait(run, "x", None), Ok(None));
    assert_eq!(world.next(run), Some((DeliveryKind::SignalTaken, 3)));
    assert_eq!(world.payload(run), "3");
}

#[test]
fn the_oldest_wait_gets_the_signal() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.wait(run, "x", None).unwrap();
    world.wait(run, "x", None).unwrap();
    world.rests(run);
    world.signal("a", "x", "1").unwrap();
    assert_eq!(world.next(run), Some((DeliveryKind::SignalTaken, 1)));
    world.rests(run);
}

#[test]
fn a_withdrawn_wait_eats_no_signal_law_4() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.wait(run, "x", None).unwrap();
    world.signal("a", "x", "1").unwrap();
    world.on(0, |shard, _| shard.withdraw(run.1, Seq(1))).unwrap();
    world.step(run, "s").unwrap();
    world.rests(run);
    world.complete(run, 2, 1, "");
    world.next(run);
    assert_eq!(world.wait(run, "x", None), Ok(Some("1".into())));
}

#[test]
fn a_repeated_signal_is_known_also_after_a_crash_and_after_it_was_taken() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.signal_once("a", "x", "1", Some("k")).unwrap();
    world.signal_once("a", "x", "1", Some("k")).unwrap();
    world.crash(run);
    world.signal_once("a", "x", "1", Some("k")).unwrap();
    world.wait(run, "x", None).unwrap();
    assert_eq!(world.next(run), Some((DeliveryKind::SignalTaken, 1)));
    world.signal_once("a", "x", "1", Some("k")).unwrap();
    world.signal_once("a", "x", "2", Some("other")).unwrap();
    assert_eq!(world.labels(run).iter().filter(|label| **label == "signalReceived").count(), 2);
}

#[test]
fn signals_that_nobody_takes_are_bounded_whether_the_code_is_there_or_not() {
    for is_loaded in [true, false] {
        let mut world = World::new(1);
        let run = world.started("a");
        world.rests(run);
        if !is_loaded {
            world.reopen(false);
        }
        let taken = (0..10_001).take_while(|_| world.signal("a", "x", "1").is_ok()).count();
        assert_eq!(taken, 10_000);
        assert!(matches!(world.signal("a", "x", "1"), Err(Refusal::Busy(_))));
        world.crash(run);
        world.rests(run);
        assert!(matches!(world.signal("a", "x", "1"), Err(Refusal::Busy(_))), "the replay has counted them");
        world.crash(run);
        world.wait(run, "x", None).unwrap();
        world.next(run);
        world.rests(run);
        assert_eq!(world.signal("a", "x", "1"), Ok(()), "one was taken");
        assert!(matches!(world.signal("a", "x", "1"), Err(Refusal::Busy(_))));
    }
}

#[test]
fn signals_that_were_taken_before_a_crash_do_not_count_as_waiting() {
    let mut world = World::new(1);
    let run = world.started("a");
    for _ in 0..10_000 {
        world.wait(run, "x", None).unwrap();
        world.signal("a", "x", "1").unwrap();
        world.next(run);
    }
    world.reopen(false);
    world.signal("a", "x", "1").expect("its code is not there: how many wait is not known");
    world.load(run);
    world.signal("a", "x", "1").expect("the replay has not come to them");
    world.next(run);
    for _ in 0..10_000 {
        world.wait(run, "x", None).unwrap();
        world.next(run);
    }
    world.rests(run);
    world.signal("a", "x", "1").expect("three wait");
}
