//! Children, watches and messages over shards: LAW-3.

use super::world::*;
use crate::machine::*;
use crate::record::*;

/// A parent and a child that are on different shards of four.
const PARENT: &str = "parent";

fn kid(world: &World) -> String {
    (0..).map(|number| format!("kid-{number}")).find(|id| world.home(id) != world.home(PARENT)).unwrap()
}

fn family(spec: impl FnOnce(ChildSpec<'static>) -> ChildSpec<'static>) -> (World, R, R) {
    let mut world = World::new(4);
    let id: &'static str = Box::leak(kid(&world).into_boxed_str());
    let parent = world.started(PARENT);
    world.child(parent, spec(child(id))).unwrap();
    world.rests(parent);
    let kid = world.find(id);
    (world, parent, kid)
}

fn run_kid(world: &mut World, kid: R, status: Status, payload: &str) {
    world.load(kid);
    world.next(kid);
    world.finish(kid, status, payload).unwrap();
}

#[test]
fn a_childs_end_is_delivered_to_the_operation_that_started_it() {
    for status in [Status::Completed, Status::Failed, Status::Cancelled] {
        let (mut world, parent, kid) = family(|spec| spec);
        run_kid(&mut world, kid, status, "out");
        assert_eq!(world.next(parent), Some((DeliveryKind::ChildEnded, 1)));
        assert_eq!(world.payload(parent), format!("{status:?}:out"));
        world.crash(parent);
        world.child(parent, child(&kid_id(&world, kid))).unwrap();
        assert_eq!(world.next(parent), Some((DeliveryKind::ChildEnded, 1)));
    }
}

fn kid_id(world: &World, kid: R) -> String {
    world.shards[kid.0].view(kid.1).id.to_owned()
}

#[test]
fn a_refused_child_is_answered_and_an_existing_one_stands_for_it() {
    for (conflict, expected) in [
        (IdConflict::Fail, "Refused:workflow"),
        (IdConflict::SameInput, "Refused:"),
        (IdConflict::UseExisting, "Completed:out"),
    ] {
        let mut world = World::new(4);
        let id = kid(&world);
        let existing = world.started(&id);
        let parent = world.started(PARENT);
        world.child(parent, ChildSpec { conflict, input: b"other", ..child(&id) }).unwrap();
        world.finish(existing, Status::Completed, "out").unwrap();
        assert_eq!(world.next(parent), Some((DeliveryKind::ChildEnded, 1)), "{conflict:?}");
        assert!(world.payload(parent).starts_with(expected), "{conflict:?}: {}", world.payload(parent));
    }
}

#[test]
fn the_end_of_a_parent_closes_its_open_children_by_their_policy() {
    for (parent_close, status, is_asked) in [
        (ParentClose::Terminate, Some(Status::Terminated), false),
        (ParentClose::Cancel, None, true),
        (ParentClose::Abandon, None, false),
    ] {
        let (mut world, _, kid) = family(|spec| ChildSpec { parent_close, ..spec });
        world.terminate(PARENT).unwrap();
        assert_eq!(world.status(kid), status, "{parent_close:?}");
        assert_eq!(world.labels(kid).contains(&"cancelRequested"), is_asked, "{parent_close:?}");
    }
}

#[test]
fn the_end_of_a_parent_leaves_runs_alone_that_are_not_its_children() {
    let mut world = World::new(4);
    let id = kid(&world);
    let existing = world.started(&id);
    let parent = world.started(PARENT);
    world.child(parent, ChildSpec { conflict: IdConflict::UseExisting, ..child(&id) }).unwrap();
    world.terminate(PARENT).unwrap();
    assert_eq!(world.status(existing), None, "it was there before");

    let (mut world, _, kid) = family(|spec| spec);
    let id = kid_id(&world, kid);
    world.is_mail_held = true;
    world.terminate(&id).unwrap();
    let (later, _) = world.try_start(new_run(&id, "later"), IdReuse::Allow, IdConflict::Fail).unwrap();
    world.terminate(PARENT).unwrap();
    world.post_all();
    assert_eq!(world.status(later), None, "it has the id and another parent");
}

#[test]
fn a_child_that_has_ended_is_not_closed() {
    let (mut world, parent, kid) = family(|spec| spec);
    run_kid(&mut world, kid, Status::Completed, "out");
    world.next(parent);
    world.finish(parent, Status::Completed, "").unwrap();
    assert_eq!(world.status(kid), Some(Status::Completed));
    assert_eq!(world.log.iter().filter(|(_, record)| record[0] == 19).count(), 0, "and no message says so");
}

#[test]
fn a_watch_hears_of_the_end_of_a_run_that_is_open_ended_or_unknown() {
    let mut world = World::new(4);
    let parent = world.started(PARENT);
    let open = world.started("open");
    let ended = world.started("ended");
    world.finish(ended, Status::Failed, "why").unwrap();
    for id in ["open", "ended", "unknown"] {
        world.send(parent, id, Sending::Watch).unwrap();
    }
    assert_eq!(world.next(parent), Some((DeliveryKind::ChildEnded, 2)));
    assert_eq!(world.payload(parent), "Failed:why");
    assert_eq!(world.next(parent), Some((DeliveryKind::ChildEnded, 3)));
    assert!(world.payload(parent).starts_with("NotFound:"));
    world.rests(parent);
    world.finish(open, Status::Completed, "out").unwrap();
    assert_eq!(world.next(parent), Some((DeliveryKind::ChildEnded, 1)));
    assert_eq!(world.payload(parent), "Completed:out");
}

#[test]
fn signals_and_cancels_to_others_are_done_once_and_to_nobody_are_dropped() {
    let mut world = World::new(4);
    let parent = world.started(PARENT);
    let other = world.started("other");
    world.send(parent, "other", Sending::Signal("x", b"1")).unwrap();
    world.send(parent, "other", Sending::Cancel("why")).unwrap();
    world.send(parent, "other", Sending::Cancel("why")).unwrap();
    world.send(parent, "nobody", Sending::Signal("x", b"1")).unwrap();
    world.send(parent, "nobody", Sending::Cancel("why")).unwrap();
    world.rests(parent);
    assert_eq!(world.labels(other), ["started", "signalReceived", "cancelRequested"]);
    let unacknowledged: usize = world.shards.iter().map(Shard::unacknowledged_count).sum();
    assert_eq!(unacknowledged, 5, "until somebody says that they are durable");
}

#[test]
fn a_repeated_message_is_known_and_a_gap_is_refused_law_3() {
    let mut world = World::new(4);
    let parent = world.started(PARENT);
    let other = world.started("other");
    world.is_mail_held = true;
    for payload in [b"1", b"2", b"3"] {
        world.send(parent, "other", Sending::Signal("x", payload)).unwrap();
    }
    let messages: Vec<Message> = world.mail.drain(..).collect();
    assert_eq!(messages.iter().map(|message| message.number).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(!world.receive(&messages[1]), "1 is missing");
    assert!(world.receive(&messages[0]) && world.receive(&messages[0]) && world.receive(&messages[1]));
    assert!(world.receive(&messages[0]) && world.receive(&messages[2]) && world.receive(&messages[1]));
    assert_eq!(world.labels(other), ["started", "signalReceived", "signalReceived", "signalReceived"]);
}

#[test]
fn messages_have_the_same_numbers_after_a_crash_and_what_was_applied_stays_known_law_3() {
    let mut world = World::new(4);
    let parent = world.started(PARENT);
    let other = world.started("other");
    world.is_mail_held = true;
    for payload in [b"1", b"2", b"3"] {
        world.send(parent, "other", Sending::Signal("x", payload)).unwrap();
    }
    let before: Vec<Message> = world.mail.drain(..).collect();
    assert!(world.receive(&before[0]));
    let restored = world.restored_from(world.log.len());
    let after: Vec<Message> = restored[parent.0].unacknowledged().collect();
    assert_eq!(format!("{before:?}"), format!("{after:?}"));
    world.is_mail_held = false;
    world.reopen(false);
    assert_eq!(world.labels(other).len(), 4, "each once, the first one not again");
    let home = ShardId(other.0 as u16);
    world.shards[parent.0].acknowledge(home, 2);
    assert_eq!(world.shards[parent.0].unacknowledged().map(|message| message.number).collect::<Vec<_>>(), [3]);
    world.shards[parent.0].acknowledge(home, 1);
    world.shards[parent.0].acknowledge(home, 99);
    assert_eq!(world.shards[parent.0].unacknowledged_count(), 0);
}

#[test]
fn an_answer_to_a_run_that_has_ended_is_taken_and_dropped() {
    let (mut world, parent, kid) = family(|spec| ChildSpec { parent_close: ParentClose::Abandon, ..spec });
    world.terminate(PARENT).unwrap();
    run_kid(&mut world, kid, Status::Completed, "out");
    assert_eq!(world.status(parent), Some(Status::Terminated));
    assert_eq!(world.log.last().map(|(_, record)| record[0]), Some(19));
}

#[test]
fn a_child_may_replace_its_own_parent() {
    let mut world = World::new(1);
    let parent = world.started(PARENT);
    let spec = ChildSpec { conflict: IdConflict::TerminateExisting, ..child(PARENT) };
    world.child(parent, spec).unwrap();
    assert_eq!(world.status(parent), Some(Status::Terminated));
    let replacement = world.find(PARENT);
    assert_eq!(world.status(replacement), Some(Status::Terminated), "its parent has ended");
}

#[test]
fn watching_a_run_that_has_ended_leaves_the_kept_journals_in_their_bound() {
    let mut world = World::new(1);
    world.limit(Limits { payload_bytes_max: 8 << 20, ..Limits::default() });
    let watcher = world.started("watcher");
    let run = world.started("a");
    world.finish(run, Status::Completed, &"x".repeat(5 << 20)).unwrap();
    assert_eq!(world.labels(run), [] as [&str; 0], "too large to be kept");
    world.send(watcher, "a", Sending::Watch).unwrap();
    let small = world.started("b");
    world.finish(small, Status::Completed, "out").unwrap();
    world.send(watcher, "b", Sending::Watch).unwrap();
    assert_eq!(world.labels(small), ["started", "ended"]);
    let large = world.started("c");
    world.finish(large, Status::Completed, &"x".repeat(5 << 20)).unwrap();
    assert_eq!(world.shards[0].load(run.1), None, "an ended run without a journal is not loaded");
}
