//! Objects: calls in order, a state with each answer, a replay from the last one, a journal that does not grow for ever.

use super::world::*;
use crate::machine::*;
use crate::record::*;

const ID: &str = "object:cart:a";

fn call(world: &mut World, id: &str) -> Result<u32, Refusal> {
    world.call(ID, id).map(|(_, number)| number)
}

fn answer(world: &mut World, run: R, number: u32, payload: &str, state: Option<&str>) -> Result<bool, Halt> {
    let (payload, state) = (payload.as_bytes(), state.map(str::as_bytes));
    world.answer(run, CallAnswer { number, is_failure: false, payload, state, is_alone: true })
}

fn answered(world: &World, run: R, number: u32) -> Option<String> {
    let answer = world.shards[run.0].update_answer(run.1, number)?;
    Some(String::from_utf8(answer.payload.to_vec()).unwrap())
}

fn state(world: &World, run: R) -> (u32, String) {
    let (seq, state) = world.shards[run.0].object_state(run.1);
    (seq.0, String::from_utf8(state.to_vec()).unwrap())
}

/// An object in its first turn, with one call recorded.
fn called(world: &mut World) -> R {
    assert_eq!(call(world, "c1"), Ok(1));
    let run = world.find(ID);
    assert_eq!(world.load(run), Some(false), "there is nothing to replay");
    assert_eq!(world.next(run), Some((DeliveryKind::Start, 0)));
    run
}

#[test]
fn a_replay_begins_behind_the_last_answer_with_its_state() {
    let mut world = World::new(1);
    let run = called(&mut world);
    assert_eq!(world.next(run), Some((DeliveryKind::CallArrived, 1)));
    assert_eq!(world.shards[0].delivered_update(run.1), Some("add"));
    world.step(run, "one").unwrap();
    world.step(run, "left open").unwrap();
    assert!(world.complete(run, 1, 1, "r"));
    assert_eq!(call(&mut world, "c2"), Ok(2));
    assert_eq!(call(&mut world, "c1"), Ok(1), "the same request again");
    assert_eq!(world.next(run), Some((DeliveryKind::StepCompleted, 1)));
    world.now_ms += 5;
    assert_eq!(answer(&mut world, run, 1, "yes", Some("s1")), Ok(false));
    assert_eq!(answer(&mut world, run, 1, "again", None), Err(Halt::Dead), "one answer");
    assert!(!world.complete(run, 2, 1, "late"), "what was not waited for is withdrawn");
    assert_eq!(world.shards[0].turn_ms(run.1), T0 + 5, "the next call begins in the turn of the answer");
    assert_eq!(world.next(run), Some((DeliveryKind::CallArrived, 2)));
    world.step(run, "three").unwrap();
    assert!(world.complete(run, 3, 1, "r3"));

    world.crash(run);
    assert_eq!(state(&world, run), (2, "s1".into()));
    assert_eq!(answered(&world, run, 1), Some("yes".into()));
    assert_eq!(world.next(run), Some((DeliveryKind::CallArrived, 2)), "call 1 is over");
    assert_eq!(world.shards[0].turn_ms(run.1), T0 + 5, "as it was live");
    let opened = world.on(0, |shard, work| shard.open_step(work, run.1, Seq(3), "three", StepMode::default()));
    assert_eq!(opened, Ok(OpenedStep::Recorded));
    assert_eq!(world.next(run), Some((DeliveryKind::StepCompleted, 3)));
    assert_eq!(answer(&mut world, run, 2, "two", None), Ok(false));
    world.rests(run);
    assert_eq!(state(&world, run), (3, "s1".into()), "an answer without a state leaves it");
    world.no_orphans();
    world.crash(run);
    world.rests(run);
}

#[test]
fn code_that_asks_for_something_else_in_a_call_that_is_not_answered_is_stuck_law_5() {
    let mut world = World::new(1);
    let run = called(&mut world);
    world.next(run);
    world.step(run, "one").unwrap();
    assert_eq!(answer(&mut world, run, 1, "yes", Some("s")), Ok(false));
    assert_eq!(call(&mut world, "c2"), Ok(2));
    assert_eq!(world.next(run), Some((DeliveryKind::CallArrived, 2)));
    world.sleep(run, 5).unwrap();
    world.crash(run);
    assert_eq!(world.next(run), Some((DeliveryKind::CallArrived, 2)));
    let asked = world.on(0, |shard, work| shard.open_step(work, run.1, Seq(2), "other", StepMode::default()));
    assert_eq!(asked, Err(Halt::Mismatch));
    assert!(matches!(call(&mut world, "c3"), Err(Refusal::NotFound(why)) if why.contains("stuck")));
    assert_eq!(call(&mut world, "c2"), Ok(2), "what was taken is known");
}

#[test]
fn an_answer_that_code_does_not_give_the_same_is_none_it_is_not_asked_law_6() {
    let mut world = World::new(1);
    let run = called(&mut world);
    world.next(run);
    world.step(run, "one").unwrap();
    world.crash(run);
    assert_eq!(world.next(run), Some((DeliveryKind::CallArrived, 1)));
    world.on(0, |shard, work| shard.open_step(work, run.1, Seq(1), "one", StepMode::default())).unwrap();
    world.rests(run);
    assert!(world.complete(run, 1, 1, "r"));
    assert_eq!(world.next(run), Some((DeliveryKind::StepCompleted, 1)));
    assert_eq!(answer(&mut world, run, 1, "yes", Some("s")), Ok(false));
    world.rests(run);
}

#[test]
fn calls_that_wait_and_answers_go_along_when_the_journal_is_left() {
    let mut world = World::new(1);
    world.limit(Limits { journal_records_max: 8, ..Limits::default() });
    let run = called(&mut world);
    world.next(run);
    assert_eq!(answer(&mut world, run, 1, "yes", Some("s1")), Ok(false));
    for (id, number) in [("c2", 2), ("c3", 3)] {
        assert_eq!(call(&mut world, id), Ok(number));
    }
    assert_eq!(world.next(run), Some((DeliveryKind::CallArrived, 2)));
    assert_eq!(answer(&mut world, run, 2, "yes 2", Some("s2")), Ok(true), "it has grown, and doubled");
    let next = NextRun { version: 1, key_root: [9; 16], timeout_ms: None, input: b"s2" };
    world.on(0, |shard, work| shard.continue_as_new(work, run.1, next)).unwrap();
    let run = world.find(ID);
    assert_eq!(world.labels(run), ["started", "called", "callCompleted", "called", "called", "callCompleted"]);
    let again = world.restored_from(world.log.len()).remove(0);
    assert_eq!(again.history(run.1).count(), 6);
    assert_eq!(world.load(run), Some(false));
    assert_eq!(world.next(run), Some((DeliveryKind::Start, 0)));
    assert_eq!(state(&world, run), (0, "s2".into()));
    assert_eq!((call(&mut world, "c1"), call(&mut world, "c3")), (Ok(1), Ok(3)));
    assert_eq!(answered(&world, run, 2), Some("yes 2".into()));
    assert_eq!(world.next(run), Some((DeliveryKind::CallArrived, 3)));
    assert_eq!(answer(&mut world, run, 3, "yes 3", None), Ok(false), "it has to grow again");
    assert_eq!(call(&mut world, "c4"), Ok(4));
    assert_eq!(state(&world, run), (0, "s2".into()));
}

#[test]
fn a_run_hears_the_answer_though_the_object_goes_on_elsewhere_law_3() {
    let mut world = World::new(3);
    let caller = world.started("caller");
    let what = Sending::Call(CallSpec { kind: "cart", key_root: [3; 16], name: "add", payload: b"1" });
    world.send(caller, ID, what).unwrap();
    world.send(caller, ID, what).unwrap();
    world.rests(caller);
    let object = world.find(ID);
    assert_eq!(world.labels(object), ["started", "called", "called"]);
    world.load(object);
    assert_eq!(world.next(object), Some((DeliveryKind::Start, 0)));
    assert_eq!(world.next(object), Some((DeliveryKind::CallArrived, 1)));
    answer(&mut world, object, 1, "one", Some("s")).unwrap();
    assert_eq!(world.next(caller), Some((DeliveryKind::ChildEnded, 1)));
    assert_eq!(world.payload(caller), "Completed:one");
    let next = NextRun { version: 1, key_root: [9; 16], timeout_ms: None, input: b"s" };
    world.on(object.0, |shard, work| shard.continue_as_new(work, object.1, next)).unwrap();
    world.rests(caller);
    world.reopen(false);
    let object = world.find(ID);
    world.load(object);
    world.next(object);
    assert_eq!(world.next(object), Some((DeliveryKind::CallArrived, 2)));
    let answer = CallAnswer { number: 2, is_failure: true, payload: b"no", state: None, is_alone: true };
    world.answer(object, answer).unwrap();
    world.load(caller);
    assert_eq!(world.next(caller), Some((DeliveryKind::Start, 0)));
    world.send(caller, ID, what).unwrap();
    world.send(caller, ID, what).unwrap();
    assert_eq!(world.next(caller), Some((DeliveryKind::ChildEnded, 1)));
    assert_eq!(world.next(caller), Some((DeliveryKind::ChildEnded, 2)));
    assert_eq!(world.payload(caller), "Failed:no");
}

#[test]
fn whoever_waits_for_an_object_that_ends_is_told() {
    let mut world = World::new(2);
    let caller = world.started("caller");
    let what = Sending::Call(CallSpec { kind: "cart", key_root: [3; 16], name: "add", payload: b"" });
    world.send(caller, ID, what).unwrap();
    world.rests(caller);
    world.terminate(ID).unwrap();
    assert_eq!(world.next(caller), Some((DeliveryKind::ChildEnded, 1)));
    assert!(world.payload(caller).starts_with("NotFound:"));
    assert_eq!(call(&mut world, "c1"), Ok(1), "another one begins");
}

#[test]
fn a_handler_that_only_looks_is_answered_beside_the_one_that_runs() {
    let mut world = World::new(1);
    let run = called(&mut world);
    world.next(run);
    world.step(run, "slow").unwrap();
    assert_eq!(call(&mut world, "look"), Ok(2));
    assert_eq!(world.next(run), Some((DeliveryKind::CallArrived, 2)));
    let look = CallAnswer { number: 2, is_failure: false, payload: b"seen", state: None, is_alone: false };
    assert_eq!(world.answer(run, look), Ok(false));
    assert!(world.complete(run, 1, 1, "r"), "nothing of the other is withdrawn");
    world.crash(run);
    assert_eq!(world.next(run), Some((DeliveryKind::CallArrived, 1)));
    assert_eq!(answered(&world, run, 2), Some("seen".into()));
}

#[test]
fn a_cancel_is_of_the_call_that_runs() {
    let mut world = World::new(1);
    let run = called(&mut world);
    world.next(run);
    world.cancel(ID).unwrap();
    assert_eq!(world.next(run), Some((DeliveryKind::Cancelled, 0)));
    answer(&mut world, run, 1, "", None).unwrap();
    world.cancel(ID).unwrap();
    world.rests(run);
    assert_eq!(call(&mut world, "c2"), Ok(2));
    assert_eq!(world.next(run), Some((DeliveryKind::CallArrived, 2)));
    world.cancel(ID).unwrap();
    world.crash(run);
    assert_eq!(world.next(run), Some((DeliveryKind::CallArrived, 2)), "and not the cancel of the call before");
    assert_eq!(world.next(run), Some((DeliveryKind::Cancelled, 0)));
}

#[test]
fn what_cannot_be_recorded_is_refused() {
    let mut world = World::new(1);
    world.limit(Limits { payload_bytes_max: 100, ..Limits::default() });
    let run = called(&mut world);
    world.next(run);
    answer(&mut world, run, 1, &"p".repeat(60), Some(&"s".repeat(60))).unwrap();
    assert!(answered(&world, run, 1).is_some_and(|answer| answer.contains("take 120 bytes; the limit is 100")));
    assert_eq!(state(&world, run), (0, String::new()), "and nothing has changed");
    let refused = world.try_start(new_run("object:x", ""), IdReuse::Allow, IdConflict::Fail);
    assert!(matches!(refused, Err(Refusal::BadInput(why)) if why.contains("as those of objects do")));
    let branch =
        Branch { border: Border::Operation(1), reapplies_signals: false, version: None, key_root: None, actor: None };
    let reset = world.on(0, |shard, work| shard.reset(work, Target { id: ID, run: None }, &branch));
    assert!(matches!(reset, Err(Refusal::BadInput(why)) if why.contains("is an object")));
}
