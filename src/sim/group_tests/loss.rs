//! Parts that are lost, replaced, spread over the others, and come back.

use super::rig::*;
use crate::engine::*;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
#[test]
fn what_a_lost_incarnation_says_changes_nothing_law_7() {
    let effects = Mutex::default();
    let mut client = client(1, 2);
    let mut lost = Host::join(&client, 0, || {});
    let result = client.start("a");
    lost.tick();
    lost.engine.idle();
    let body = lost.bodies[0].clone();
    let incarnation = lost.engine.incarnation();
    assert!(client.engine.lose(0, incarnation));
    assert!(!client.engine.lose(0, incarnation), "once");
    for none in [2, 255, u16::MAX] {
        assert!(!client.engine.lose(none, 1), "the group has no part {none}");
        assert_eq!(client.engine.spread(none), 0);
    }
    let last = client.engine.group().last();
    assert_eq!(lost.engine.complete(body.slot, STEP, body.lease, b"late", false), Err(Halt::Dead));
    assert_eq!(lost.engine.quiescent(body.slot), Err(Halt::Dead));
    assert_eq!(lost.engine.finish(body.slot, Status::Completed, b"late"), Err(Halt::Dead));
    assert_eq!(lost.engine.heartbeat(body.slot, STEP, body.lease, Some(b"late")), Err(Halt::Dead));
    let run = Run { id: "a", run_id: "" };
    let refused = lost.engine.signal(9, run, "go", b"", None, None).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Closed);
    assert_eq!(client.engine.group().last(), last, "nothing was recorded");

    let mut next = Host::join(&client, 0, || {});
    assert!(next.engine.incarnation() > incarnation);
    assert_eq!(lost.engine.complete(body.slot, STEP, body.lease, b"late", false), Err(Halt::Dead));
    client.signal("a", "x");
    settle(&mut [&mut client, &mut next, &mut lost], &effects);
    assert_eq!(client.told[&result].1, "x");
    assert_eq!(effects.lock()["a"], 1);
}

#[test]
fn a_thread_that_was_replaced_takes_no_answer_and_no_wake_from_who_has_its_place_law_1() {
    let mut client = client(2, 2);
    let mut lost = Host::join(&client, 0, || {});
    assert!(client.engine.lose(0, lost.engine.incarnation()));
    let wakes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&wakes);
    let mut next = Host::join(&client, 0, move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let id = id_of(&client, 1, 0);
    let result = next.start(&id);
    let start = result - 1;
    next.engine.group().flush();
    // Answers of that place are durable: they are not this thread's, and it has nothing to do.
    lost.engine.listen(true);
    lost.engine.forget(start);
    assert_eq!(lost.engine.idle().1, lost.engine.has_work());
    lost.tick();
    assert!(lost.told.is_empty() && !lost.engine.has_work());
    next.tick();
    assert!(next.has(start));
    // Whoever has the place sleeps: what the other one does wakes nobody, and keeps nobody from being woken.
    while next.engine.idle().1 {
        next.tick();
    }
    lost.tick();
    lost.engine.idle();
    assert_eq!(wakes.load(Ordering::Relaxed), 0);
    client.engine.terminate(1, Run { id: &id, run_id: "" }, "", None).unwrap();
    client.engine.group().flush();
    assert_eq!(wakes.load(Ordering::Relaxed), 1);
    next.tick();
    assert!(next.has(result));
}

#[test]
fn a_step_that_kills_its_thread_is_counted_from_the_second_loss_on_law_7() {
    let mut client = client(1, 1);
    let mut numbers = Vec::new();
    client.start("a");
    for _ in 0..4 {
        let mut part = Host::join(&client, 0, || {});
        let mut events = Events::default();
        for _ in 0..4 {
            while part.engine.tick(&mut events) {}
            for event in events.drain() {
                if event.kind == EventKind::Start {
                    part.turns(Slot(event.a));
                    numbers.extend(part.bodies.drain(..).map(|_| 1));
                } else if event.kind == EventKind::Attempt {
                    numbers.push(event.text.split(FIELD).next().unwrap().parse().unwrap());
                }
            }
            part.engine.idle();
        }
    }
    assert_eq!(numbers, [1, 1, 2, 3]);
}

#[test]
fn a_run_whose_code_ends_three_threads_in_a_row_is_set_aside_and_can_be_resumed_law_11() {
    let mut client = client(1, 1);
    let result = client.start("deadly");
    for life in 0..3 {
        let mut part = Host::join(&client, 0, || {});
        let slot = part.begun();
        assert_eq!(part.engine.quiescent(slot).unwrap().unwrap().kind, DeliveryKind::Start, "life {life}");
    }
    let effects = Mutex::default();
    let mut part = Host::join(&client, 0, || {});
    let other = client.start("other");
    client.signal("other", "x");
    settle(&mut [&mut client, &mut part], &effects);
    assert_eq!(client.told[&other].1, "x", "it was not the fourth to go");
    let explained = client.token();
    client.engine.explain(explained, Run { id: "deadly", run_id: "" }).unwrap();
    settle(&mut [&mut client, &mut part], &effects);
    assert!(client.told[&explained].1.contains("its code ended 3 threads in a row"), "{:?}", client.told[&explained]);
    let resumed = client.token();
    client.engine.resume(resumed, Run { id: "deadly", run_id: "" }, None).unwrap();
    client.signal("deadly", "y");
    settle(&mut [&mut client, &mut part], &effects);
    assert_eq!(client.told[&result].1, "y");
}

#[test]
fn threads_that_end_elsewhere_do_not_count_against_a_run() {
    let effects = Mutex::default();
    let mut client = client(1, 1);
    let result = client.start("a");
    for _ in 0..4 {
        // It waits for its signal, and the thread sleeps, then does something else and ends.
        let mut part = Host::join(&client, 0, || {});
        settle(&mut [&mut client, &mut part], &effects);
        part.tick();
    }
    let mut part = Host::join(&client, 0, || {});
    client.signal("a", "x");
    settle(&mut [&mut client, &mut part], &effects);
    assert_eq!(client.told[&result].1, "x");
}

#[test]
fn shards_of_a_lost_part_can_go_to_the_others_and_come_back() {
    let effects = Mutex::default();
    let mut client = client(2, 4);
    let mut stays = Host::join(&client, 0, || {});
    drop(Host::join(&client, 1, || {}));
    assert_eq!(client.engine.owner(ShardId(1)), None, "a dropped engine leaves");
    let id = id_of(&client, 1, 0);
    let result = client.start(&id);
    settle(&mut [&mut client, &mut stays], &effects);
    assert!(effects.lock().is_empty(), "nobody has its code");
    assert_eq!(client.engine.spread(1), 2);
    assert_eq!(client.engine.owner(ShardId(1)), Some(0));
    settle(&mut [&mut client, &mut stays], &effects);
    assert_eq!(effects.lock()[&id], 1);
    // The run moves in the middle of its life; where it was, its code is dropped.
    let slot = *stays.ids.iter().find(|(_, of)| **of == id).unwrap().0;
    let mut back = Host::join(&client, 1, || {});
    assert_eq!(stays.engine.quiescent(slot), Err(Halt::Dead));
    client.signal(&id, "x");
    settle(&mut [&mut client, &mut stays, &mut back], &effects);
    assert_eq!(client.told[&result].1, "x");
    assert_eq!(effects.lock()[&id], 1, "its step had its result");
}

#[test]
fn a_shard_that_went_and_came_back_unnoticed_has_its_code_once_law_4() {
    let effects = Mutex::default();
    let mut client = client(2, 2);
    let mut stays = Host::join(&client, 0, || {});
    let id = id_of(&client, 1, 0);
    let result = client.start(&id);
    client.engine.spread(1);
    settle(&mut [&mut client, &mut stays], &effects);
    let old = *stays.ids.iter().find(|(_, of)| **of == id).unwrap().0;
    // It goes home, and comes back, while this thread does something else.
    drop(Host::join(&client, 1, || {}));
    client.engine.spread(1);
    assert_eq!(client.engine.owner(ShardId(1)), Some(0));
    assert_eq!(stays.engine.quiescent(old), Err(Halt::Dead), "that code was given up");
    assert!(stays.engine.has_work());
    let mut events = Events::default();
    while stays.engine.tick(&mut events) {}
    let kinds: Vec<_> = events.drain().map(|event| (event.kind, event.a)).collect();
    let new = kinds.iter().find(|(kind, _)| *kind == EventKind::Start).unwrap().1;
    assert_eq!(kinds[0], (EventKind::Ended, old.0));
    assert_ne!(new, old.0);
    stays.ids.insert(Slot(new), id.clone());
    stays.turns(Slot(new));
    client.signal(&id, "x");
    settle(&mut [&mut client, &mut stays], &effects);
    assert_eq!(client.told[&result].1, "x");
    assert_eq!(effects.lock()[&id], 1);
}
