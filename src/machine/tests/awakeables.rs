//! Awakeables: who may complete them, and how often.

use super::world::*;
use crate::machine::*;
use crate::record::*;

const NAME: &str = "awakeable:secret";

fn complete(world: &mut World, id: &str, name: &str) -> Result<bool, Refusal> {
    let home = world.home(id);
    world.on(home, |shard, work| shard.complete_awakeable(work, Target { id, run: None }, name, b"value", Some("ann")))
}

#[test]
fn the_first_completion_is_recorded_and_no_other() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.wait(run, NAME, None).unwrap();
    assert_eq!(complete(&mut world, "a", NAME), Ok(true));
    assert_eq!(complete(&mut world, "a", NAME), Ok(false));
    world.crash(run);
    assert_eq!(complete(&mut world, "a", NAME), Ok(false));
    assert_eq!(
        world.labels(run).iter().filter(|label| **label == "signalReceived").count(),
        1,
        "{:?}",
        world.labels(run)
    );
}

#[test]
fn a_wait_for_a_signal_is_no_awakeable() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.wait(run, "approved", None).unwrap();
    assert!(matches!(complete(&mut world, "a", "approved"), Err(Refusal::NotFound(_))));
    assert_eq!(world.labels(run).iter().filter(|label| **label == "signalReceived").count(), 0);
}

#[test]
fn code_that_is_not_here_does_not_keep_it_from_being_completed() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.wait(run, NAME, None).unwrap();
    world.reopen(false);
    assert_eq!(complete(&mut world, "a", NAME), Ok(true));
    world.load(run);
    assert_eq!(world.next(run), Some((DeliveryKind::Start, 0)));
    world.wait(run, NAME, None).unwrap();
    assert_eq!(world.next(run), Some((DeliveryKind::SignalTaken, 1)));
    assert_eq!(world.payload(run), "value");
}

#[test]
fn what_is_over_or_withdrawn_takes_nothing_and_what_was_never_asked_for_is_refused() {
    let mut world = World::new(1);
    let run = world.started("a");
    assert!(matches!(complete(&mut world, "a", NAME), Err(Refusal::NotFound(_))));
    assert!(matches!(complete(&mut world, "nobody", NAME), Err(Refusal::NotFound(_))));
    assert!(matches!(complete(&mut world, "a", ""), Err(Refusal::BadInput(_))));
    world.wait(run, NAME, Some(5)).unwrap();
    world.wait(run, "awakeable:other", None).unwrap();
    let home = world.home("a");
    world.on(home, |shard, _| shard.withdraw(run.1, Seq(2))).unwrap();
    assert_eq!(complete(&mut world, "a", "awakeable:other"), Ok(false));
    world.rests(run);
    world.advance(5);
    assert_eq!(complete(&mut world, "a", NAME), Ok(false));
    world.reopen(true);
    assert_eq!(complete(&mut world, "a", NAME), Ok(false));
    world.terminate("a").unwrap();
    assert_eq!(complete(&mut world, "a", NAME), Ok(false));
}

#[test]
fn what_a_recorded_cancel_will_withdraw_takes_nothing_and_what_is_shielded_does() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.wait(run, NAME, None).unwrap();
    world.wait(run, "awakeable:kept", None).unwrap();
    let home = world.home("a");
    world.on(home, |shard, _| shard.shield(run.1, Seq(2))).unwrap();
    world.rests(run);
    world.cancel("a").unwrap();
    assert_eq!(
        complete(&mut world, "a", NAME),
        Ok(false),
        "the code is yet to be told of the cancel, but it comes first"
    );
    assert_eq!(complete(&mut world, "a", "awakeable:kept"), Ok(true));
    assert_eq!(world.next(run), Some((DeliveryKind::Cancelled, 0)));
    assert_eq!(world.next(run), Some((DeliveryKind::SignalTaken, 2)));
    // What is asked for after the cancel is not touched by it.
    world.wait(run, "awakeable:later", None).unwrap();
    world.rests(run);
    assert_eq!(complete(&mut world, "a", "awakeable:later"), Ok(true));
}
