//! Updates: accepted by code that has seen everything, delivered in order, answered once.

use super::world::*;
use crate::machine::*;
use crate::record::*;

fn new<'a>(id: &'a str, payload: &'a str) -> NewUpdate<'a> {
    NewUpdate { name: "set", id, payload: payload.as_bytes(), actor: None }
}

fn accept(world: &mut World, run: R, id: &str) -> Option<u32> {
    world.on(run.0, |shard, work| shard.accept_update(work, run.1, new(id, "arg")))
}

fn answer(world: &mut World, run: R, number: u32, payload: &str) -> Result<(), Halt> {
    world.on(run.0, |shard, work| shard.answer_update(work, run.1, number, false, payload.as_bytes()))
}

fn answered(world: &World, run: R, number: u32) -> Option<String> {
    let answer = world.shards[run.0].update_answer(run.1, number)?;
    Some(String::from_utf8(answer.payload.to_vec()).unwrap())
}

fn known(world: &World, id: &str, update: &str) -> Result<KnownUpdate, Refusal> {
    world.shards[world.home(id)].find_update(Target { id, run: None }, update)
}

#[test]
fn an_update_is_delivered_in_its_place_and_answered_once_also_after_a_crash_law_7() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.wait(run, "x", None).unwrap();
    world.rests(run);
    assert_eq!(known(&world, "a", "u"), Ok(KnownUpdate::New(run.1)));
    assert_eq!(accept(&mut world, run, "u"), Some(1));
    assert_eq!(known(&world, "a", "u"), Ok(KnownUpdate::Accepted(run.1, 1)));
    world.signal("a", "x", "1").unwrap();
    assert_eq!(accept(&mut world, run, "v"), None, "there is something that the code has not seen");
    assert_eq!(world.next(run), Some((DeliveryKind::UpdateAccepted, 1)));
    assert_eq!((world.payload(run), world.shards[0].delivered_update(run.1)), ("arg".into(), Some("set")));
    assert_eq!(answered(&world, run, 1), None);
    answer(&mut world, run, 1, "yes").unwrap();
    assert_eq!(answer(&mut world, run, 1, "again"), Err(Halt::Dead), "one answer");
    assert_eq!(world.next(run), Some((DeliveryKind::SignalTaken, 1)));

    world.crash(run);
    world.wait(run, "x", None).unwrap();
    assert_eq!(known(&world, "a", "u"), Ok(KnownUpdate::Accepted(run.1, 1)));
    assert_eq!(answered(&world, run, 1), Some("yes".into()));
    assert_eq!(world.next(run), Some((DeliveryKind::UpdateAccepted, 1)));
    answer(&mut world, run, 1, "another word").unwrap();
    assert_eq!(answered(&world, run, 1), Some("yes".into()), "what is recorded stands");
    assert_eq!(world.next(run), Some((DeliveryKind::SignalTaken, 1)));
    world.finish(run, Status::Completed, "").unwrap();
    assert_eq!(answered(&world, run, 1), Some("yes".into()));
    world.reopen(false);
    assert_eq!(answered(&world, run, 1), Some("yes".into()));
    assert!(matches!(known(&world, "a", "w"), Err(Refusal::Ended(..))));
}

#[test]
fn an_answer_may_come_many_turns_later_and_in_any_order() {
    let mut world = World::new(1);
    let run = world.started("a");
    for round in 0..2 {
        world.step(run, "s").unwrap();
        world.wait(run, "never", None).unwrap();
        if round == 0 {
            world.rests(run);
            assert_eq!(accept(&mut world, run, "u"), Some(1));
        }
        assert_eq!(world.next(run), Some((DeliveryKind::UpdateAccepted, 1)));
        if round == 0 {
            world.rests(run);
            assert_eq!(accept(&mut world, run, "v"), Some(2));
        }
        assert_eq!(world.next(run), Some((DeliveryKind::UpdateAccepted, 2)));
        answer(&mut world, run, 2, "second").unwrap();
        if round == 0 {
            world.rests(run);
            world.complete(run, 1, 1, "done");
        }
        assert_eq!(world.next(run), Some((DeliveryKind::StepCompleted, 1)));
        answer(&mut world, run, 1, "first").unwrap();
        world.rests(run);
        assert_eq!([1, 2].map(|number| answered(&world, run, number).unwrap()), ["first", "second"]);
        world.no_orphans();
        world.crash(run);
    }
}

#[test]
fn code_that_does_not_give_a_recorded_answer_is_stuck_law_5() {
    for ends in [false, true] {
        let mut world = World::new(1);
        let run = world.started("a");
        world.wait(run, "x", None).unwrap();
        world.rests(run);
        accept(&mut world, run, "u").unwrap();
        world.next(run);
        answer(&mut world, run, 1, "yes").unwrap();
        world.rests(run);
        world.crash(run);
        world.wait(run, "x", None).unwrap();
        assert_eq!(world.next(run), Some((DeliveryKind::UpdateAccepted, 1)));
        if ends {
            assert_eq!(world.finish(run, Status::Completed, ""), Err(Halt::Mismatch));
        } else {
            world.rests(run);
        }
        let stuck = world.shards[0].stuck(run.1).expect("it is stuck");
        assert!(stuck.message.contains("answer to update 1"), "{}", stuck.message);
    }
}

#[test]
fn an_answer_that_is_too_large_becomes_a_failure() {
    let mut world = World::new(1);
    world.limit(Limits { payload_bytes_max: 100, ..Limits::default() });
    let run = world.started("a");
    world.wait(run, "x", None).unwrap();
    world.rests(run);
    accept(&mut world, run, "u").unwrap();
    world.next(run);
    answer(&mut world, run, 1, &"x".repeat(101)).unwrap();
    let answer = world.shards[0].update_answer(run.1, 1).unwrap();
    assert!(answer.is_failure && String::from_utf8_lossy(answer.payload).contains("101 bytes"));
    let refused = world.shards[0].check_update(&new("u", &"x".repeat(101)));
    assert!(matches!(refused, Err(Refusal::BadInput(text)) if text.contains("101 bytes")));
    assert!(matches!(world.shards[0].check_update(&new("", "")), Err(Refusal::BadInput(_))));
}

#[test]
fn updates_without_an_answer_are_bounded() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.wait(run, "x", None).unwrap();
    world.rests(run);
    for number in 1..=1_000 {
        assert_eq!(accept(&mut world, run, &format!("u{number}")), Some(number));
        assert_eq!(world.next(run), Some((DeliveryKind::UpdateAccepted, number)));
        world.rests(run);
    }
    assert!(matches!(world.shards[0].admits_update(run.1, 0), Err(Refusal::Busy(_))));
    accept(&mut world, run, "one more");
    world.next(run);
    for number in 1..=2 {
        answer(&mut world, run, number, "").unwrap();
    }
    assert_eq!(world.shards[0].admits_update(run.1, 0), Ok(()));
    assert!(matches!(world.shards[0].admits_update(run.1, 1), Err(Refusal::Busy(_))), "offers count");
}
