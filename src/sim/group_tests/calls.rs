//! Who asks what, who answers, who is woken, and what waits.

use super::rig::*;
use crate::engine::*;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
#[test]
fn each_part_runs_its_shards_and_answers_go_to_who_asked() {
    let effects = Mutex::default();
    let mut client = client(2, 4);
    let mut parts = [Host::join(&client, 0, || {}), Host::join(&client, 1, || {})];
    assert_eq!(
        (0..4).map(|shard| client.engine.owner(ShardId(shard))).collect::<Vec<_>>(),
        [Some(0), Some(1), Some(0), Some(1)]
    );
    let [own, other] = [0, 1].map(|part| id_of(&client, part, 0));
    let results = [client.start(&own), client.start(&other)];
    // A part is a client as well, of runs of the others too.
    let [a, b] = &mut parts;
    let signalled = [a.signal(&own, "x"), a.signal(&other, "y")];
    settle(&mut [&mut client, a, b], &effects);
    assert_eq!(results.map(|token| client.told[&token].1.clone()), ["x", "y"]);
    assert!(signalled.iter().all(|token| a.told[token].0 == EventKind::Ack));
    assert!(b.told.is_empty());
    assert!(a.ids.values().all(|id| *id == own) && b.ids.values().all(|id| *id == other));
}

#[test]
fn a_part_that_does_nothing_holds_up_no_acknowledgement_law_1() {
    let mut client = client(2, 2);
    let _blocked = [Host::join(&client, 0, || {}), Host::join(&client, 1, || {})];
    let id = id_of(&client, 0, 0);
    let result = client.start(&id);
    let start = result - 1;
    let signal = client.signal(&id, "x");
    let describe = client.token();
    client.engine.describe(describe, Run { id: &id, run_id: "" }).unwrap();
    client.tick();
    assert!(!client.has(start) && !client.has(signal), "nothing was flushed");
    client.engine.idle();
    client.tick();
    assert!(client.has(start) && client.has(signal) && client.has(describe));
    assert!(!client.has(result));
}

#[test]
fn code_is_asked_wherever_it_runs_and_again_where_it_comes_back() {
    let effects = Mutex::default();
    let mut client = client(2, 2);
    let mut parts = [Host::join(&client, 0, || {}), Host::join(&client, 1, || {})];
    let id = id_of(&client, 1, 0);
    client.start(&id);
    let [a, b] = &mut parts;
    settle(&mut [&mut client, a, b], &effects);
    let run = Run { id: &id, run_id: "" };
    let (from_client, from_part, forgotten) = (client.token(), a.token(), client.token());
    client.engine.ask(from_client, run, "status", "").unwrap();
    a.engine.ask(from_part, run, "status", "").unwrap();
    client.engine.ask(forgotten, run, "status", "").unwrap();
    client.engine.forget(forgotten);
    // The thread that was to answer is gone before it did.
    assert!(client.engine.lose(1, b.engine.incarnation()));
    let mut next = Host::join(&client, 1, || {});
    let missing = client.token();
    client.engine.ask(missing, Run { id: "nobody", run_id: "" }, "status", "").unwrap();
    settle(&mut [&mut client, &mut parts[0], &mut next], &effects);
    let answer = (EventKind::Reply, format!("status of {id}"));
    assert_eq!((&client.told[&from_client], &parts[0].told[&from_part]), (&answer, &answer));
    assert!(!client.has(forgotten));
    assert_eq!(client.told[&missing].0, EventKind::Refuse);
}

#[test]
fn what_waits_for_a_thread_that_does_not_come_is_bounded() {
    let effects = Mutex::default();
    let mut client = client(1, 1);
    let mut part = Host::join(&client, 0, || {});
    client.start("a");
    settle(&mut [&mut client, &mut part], &effects);
    // A run that waits is woken once, however many signals come.
    client.signal("a", "x");
    client.signal("a", "y");
    client.signal("a", "z");
    let waiting = client.engine.group().with(ShardId(0), |cell, _| cell.events.len());
    assert_eq!(waiting, 1);
    let run = Run { id: "a", run_id: "" };
    let tokens: Vec<Token> = (0..1_001).map(|_| client.token()).collect();
    for token in &tokens {
        client.engine.ask(*token, run, "status", "").unwrap();
    }
    client.engine.group().flush();
    client.tick();
    let (last, rest) = tokens.split_last().unwrap();
    assert!(rest.iter().all(|token| !client.has(*token)), "they wait");
    let (kind, text) = &client.told[last];
    assert!(*kind == EventKind::Refuse && text.contains("1000 queries"), "{text}");
}

#[test]
fn a_sleeping_part_is_woken_for_a_receipt_of_a_message_law_3() {
    let mut client = client(2, 2);
    let wakes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&wakes);
    let mut part = Host::join(&client, 1, move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    while part.engine.idle().1 {
        part.tick();
    }
    // Held for the shard's host until it is durable, with nothing else for it.
    client.engine.group().with(ShardId(1), |cell, _| {
        let lsn = Lsn(client.engine.group().last().0);
        cell.held.hold(lsn, crate::runtime::Output::Applied { sender: ShardId(0), number: 0 });
    });
    assert_eq!(wakes.load(Ordering::Relaxed), 1);
    assert!(part.engine.has_work());
    part.tick();
    assert!(!part.engine.has_work());
    client.tick();
}

#[test]
fn the_opener_is_woken_for_a_receipt_of_the_scheduler_law_3() {
    let wakes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&wakes);
    let notify = move || {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    let mut client = Host::over(ForeignEngine::open(config(2, 2), Box::new(notify)).unwrap());
    let _part = Host::join(&client, 0, || {});
    while client.engine.idle().1 {
        client.tick();
    }
    let group = client.engine.group();
    let before = wakes.load(Ordering::Relaxed);
    group.with_tasks(|cell, _| cell.receipts.hold(group.durable(), (ShardId(0), 0)));
    assert_eq!(wakes.load(Ordering::Relaxed), before + 1);
    assert!(client.engine.has_work());
    client.tick();
    assert!(!client.engine.has_work());
}

#[test]
fn an_answer_that_rests_on_durable_records_wakes_who_asked_also_about_a_run_that_has_ended() {
    let effects = Mutex::default();
    let mut client = client(2, 2);
    let wakes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&wakes);
    let mut a = Host::join(&client, 0, move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let mut b = Host::join(&client, 1, || {});
    let id = id_of(&client, 1, 0);
    client.start(&id);
    settle(&mut [&mut client, &mut a, &mut b], &effects);
    for expected in [format!("status of {id}"), format!("status of ended {id}")] {
        let token = a.token();
        a.engine.ask(token, Run { id: &id, run_id: "" }, "status", "").unwrap();
        while a.engine.idle().1 {
            a.tick();
        }
        let before = wakes.load(Ordering::Relaxed);
        b.tick();
        assert_eq!(wakes.load(Ordering::Relaxed), before + 1, "nothing is left to flush that would wake it");
        a.tick();
        assert_eq!(a.told[&token], (EventKind::Reply, expected.clone()));
        if !expected.contains("ended") {
            client.signal(&id, "end");
            settle(&mut [&mut client, &mut a, &mut b], &effects);
        }
    }
}

#[test]
fn groups_that_cannot_be_are_refused_with_their_numbers() {
    let refused = |config: Config| ForeignEngine::open(config, Box::new(|| {})).err().map(|error| error.message);
    let text = refused(config(5, 4)).unwrap();
    assert!(text.contains("4 shards") && text.contains("5 workers"), "{text}");
    assert!(refused(config(200, 400)).unwrap().contains("128"));
    let client = client(2, 2);
    let joinable = client.engine.joinable();
    let part = join(&joinable, 1, || {}).unwrap();
    assert!(join(&joinable, 1, || {}).err().unwrap().message.contains("there already"));
    assert!(join(&joinable, 2, || {}).err().unwrap().message.contains("counted from 0"));
    let mut client = client;
    client.engine.close().unwrap();
    let mut part = part;
    assert_eq!(part.signal_code(), ErrorCode::Closed);
    assert_eq!(join(&joinable, 0, || {}).err().unwrap().code, ErrorCode::Closed);
    drop((client, part));
    assert_eq!(join(&joinable, 0, || {}).err().unwrap().code, ErrorCode::Closed);
}

impl ForeignEngine {
    fn signal_code(&mut self) -> ErrorCode {
        self.signal(1, Run { id: "a", run_id: "" }, "go", b"", None, None).unwrap_err().code
    }
}
