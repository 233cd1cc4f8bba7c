//! Tests of groups: several hosts over one log, in one thread by the draw of a seed, and on threads of their own.
//!
//! A workflow here does a step, waits for a signal `go`, and ends with what the step gave and what the signal brought.

use super::Rng;
use crate::engine::*;
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const STEP: Seq = Seq(1);
const WAIT: Seq = Seq(2);

/// A body that may run once its gate is durable.
#[derive(Clone, Debug)]
struct Body {
    slot: Slot,
    lease: u32,
    gate: Lsn,
}

/// A thread with an engine, without the thread.
struct Host {
    engine: ForeignEngine,
    bodies: Vec<Body>,
    told: BTreeMap<Token, (EventKind, String)>,
    /// Questions are answered with the id of the run that has the slot.
    ids: BTreeMap<Slot, String>,
    blocked: Vec<(u32, u32, String)>,
    tokens: Token,
}

impl Host {
    fn over(engine: ForeignEngine) -> Host {
        let tokens = engine.first_token();
        Host { engine, bodies: vec![], told: BTreeMap::new(), ids: BTreeMap::new(), blocked: vec![], tokens }
    }

    fn join(client: &Host, part: u16, notify: impl Fn() + Send + Sync + 'static) -> Host {
        Host::over(join(&client.engine.joinable(), part, notify).unwrap())
    }

    fn token(&mut self) -> Token {
        self.tokens += 1;
        self.tokens
    }

    /// Fetches events and runs the code that they ask for.
    fn tick(&mut self) {
        let mut events = Events::default();
        while self.engine.tick(&mut events) {}
        for event in events.drain() {
            let slot = Slot(event.a);
            match event.kind {
                EventKind::Start => {
                    self.ids.insert(slot, event.text.split(FIELD).next().unwrap().into());
                    self.turns(slot);
                }
                EventKind::Wake => self.turns(slot),
                EventKind::Attempt => {
                    let lease = event.text.split(FIELD).nth(2).unwrap().parse().unwrap();
                    self.bodies.push(Body { slot, lease, gate: Lsn::NONE });
                }
                EventKind::Ended => self.bodies.retain(|body| body.slot != slot),
                EventKind::Ask => {
                    let text: Vec<&str> = event.text.split(FIELD).collect();
                    let (name, id, run_id) = (text[0], text[1], text[2]);
                    let mut kind = "";
                    if event.b == u32::MAX {
                        kind = "ended ";
                        let (slot, _) = self.engine.revive(Run { id, run_id }).unwrap();
                        assert!(self.engine.quiescent(slot).unwrap().is_some(), "it replays");
                        self.engine.lay(slot);
                    } else {
                        assert_eq!(self.ids[&Slot(event.b)], id);
                    }
                    self.engine.answer(event.a, &format!("{name} of {kind}{id}"));
                }
                EventKind::Blocked => self.blocked.push((event.a, event.b, event.text)),
                EventKind::Timeout | EventKind::Notice | EventKind::Failed | EventKind::Offer => {}
                EventKind::Task | EventKind::TaskAbort | EventKind::TaskNotice => {}
                EventKind::Ack | EventKind::Reply | EventKind::Refuse | EventKind::Result => {
                    assert_eq!(Place::of(event.a), Place::of(self.engine.first_token()), "it asked for nothing");
                    assert!(self.told.insert(event.a, (event.kind, event.text)).is_none(), "answered twice");
                }
            }
        }
    }

    fn turns(&mut self, slot: Slot) {
        while let Ok(Some(delivery)) = self.engine.quiescent(slot) {
            let opened = match delivery.kind {
                DeliveryKind::Start => self.engine.open_step(slot, STEP, "work", StepMode::default()).map(|answer| {
                    if let StepAnswer::Run(gate) = answer {
                        self.bodies.push(Body { slot, lease: 1, gate });
                    }
                }),
                DeliveryKind::StepCompleted => match self.engine.open_wait(slot, WAIT, "go", None) {
                    Ok(true) => self.finish(slot),
                    other => other.map(drop),
                },
                DeliveryKind::SignalTaken => self.finish(slot),
                other => panic!("{other:?}"),
            };
            assert!(matches!(opened, Ok(()) | Err(Halt::Dead)), "{opened:?}");
        }
    }

    fn finish(&mut self, slot: Slot) -> Result<(), Halt> {
        let payload = self.engine.payload(slot)?;
        self.engine.finish(slot, Status::Completed, payload.as_bytes())
    }

    /// Calls bodies that may run. `effects` counts the calls by workflow.
    fn run_bodies(&mut self, effects: &Mutex<BTreeMap<String, usize>>) {
        let durable = self.engine.durable();
        let (due, rest) = std::mem::take(&mut self.bodies).into_iter().partition(|body: &Body| body.gate <= durable);
        self.bodies = rest;
        for Body { slot, lease, .. } in due {
            *effects.lock().entry(self.ids[&slot].clone()).or_default() += 1;
            if let Ok(Completed::Recorded | Completed::Taken) = self.engine.complete(slot, STEP, lease, b"1", false) {
                self.turns(slot);
            }
        }
    }

    fn start(&mut self, id: &str) -> Token {
        let (token, result) = (self.token(), self.token());
        let request = StartRequest {
            id,
            kind: "flow",
            version: 1,
            input: b"",
            reuse: IdReuse::Allow,
            conflict: IdConflict::Fail,
            timeout_ms: None,
            actor: None,
            result_token: Some(result),
            with: None,
        };
        self.engine.start(token, request).unwrap();
        result
    }

    fn signal(&mut self, id: &str, payload: &str) -> Token {
        let token = self.token();
        let run = Run { id, run_id: "" };
        self.engine.signal(token, run, "go", payload.as_bytes(), None, None).unwrap();
        token
    }

    fn has(&self, token: Token) -> bool {
        self.told.contains_key(&token)
    }
}

fn join(to: &Joinable, part: u16, notify: impl Fn() + Send + Sync + 'static) -> Result<ForeignEngine, EngineError> {
    ForeignEngine::join(to, part, vec!["flow".into()], Box::new(notify))
}

fn config(workers: u16, shards: u16) -> Config {
    let definitions = vec!["flow".into()];
    Config { workers, shards, definitions, ..Config::new(Durability::Memory(MemoryStorage::new())) }
}

fn client(workers: u16, shards: u16) -> Host {
    Host::over(ForeignEngine::open(config(workers, shards), Box::new(|| {})).unwrap())
}

/// An id whose shard is of a worker's.
fn id_of(client: &Host, part: u16, salt: u64) -> String {
    let workers = client.engine.workers();
    (0..).map(|n| format!("w{salt}-{n}")).find(|id| client.engine.shard_of(id).0 % workers == part).unwrap()
}

fn settle(hosts: &mut [&mut Host], effects: &Mutex<BTreeMap<String, usize>>) {
    for _ in 0..40 {
        for host in hosts.iter_mut() {
            host.tick();
            host.engine.idle();
            host.run_bodies(effects);
        }
        // Whoever leaves has the log's thread write, which may be at it.
        hosts[0].engine.group().flush();
    }
}

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

/// One history of a group in one thread: which part works when, dies and comes back is the seed's.
fn history(seed: u64) {
    let mut rng = Rng::new(seed);
    let (workers, shards) = (1 + rng.below(3) as u16, 3 + rng.below(3) as u16);
    let effects = Mutex::default();
    let mut client = client(workers, shards);
    let mut parts: Vec<Option<Host>> = (0..workers).map(|part| Some(Host::join(&client, part, || {}))).collect();
    let (mut zombies, mut waiting, mut unsignalled) = (Vec::<Host>::new(), BTreeMap::new(), BTreeSet::new());
    let mut losses = 0;
    for turn in 0..400 {
        let part = rng.below(u64::from(workers)) as usize;
        match rng.below(20) {
            0 if turn < 300 => {
                let id = format!("run-{turn}");
                waiting.insert(client.start(&id), id.clone());
                unsignalled.insert(id);
            }
            1 | 2 => {
                if let Some(id) = unsignalled.pop_first() {
                    client.signal(&id, &id);
                }
            }
            3 if turn < 300 => {
                if let Some(host) = parts[part].take() {
                    losses += 1;
                    assert!(client.engine.lose(part as u16, host.engine.incarnation()));
                    zombies.push(host);
                }
            }
            4 if parts[part].is_none() => drop(client.engine.spread(part as u16)),
            5 | 6 if parts[part].is_none() => parts[part] = Some(Host::join(&client, part as u16, || {})),
            7 => {
                // A thread that does not know that it is dead goes on: nothing of it counts.
                if let Some(zombie) = zombies.last_mut() {
                    let before = client.engine.group().last();
                    zombie.run_bodies(&effects);
                    assert_eq!(client.engine.group().last(), before, "seed {seed}: a dead incarnation recorded");
                }
            }
            8..=12 => {
                client.tick();
                client.engine.idle();
            }
            _ => {
                if let Some(host) = &mut parts[part] {
                    match rng.below(3) {
                        0 => host.tick(),
                        1 => drop(host.engine.idle()),
                        _ => host.run_bodies(&effects),
                    }
                }
            }
        }
    }
    for (part, host) in parts.iter_mut().enumerate() {
        host.get_or_insert_with(|| Host::join(&client, part as u16, || {}));
    }
    for id in std::mem::take(&mut unsignalled) {
        client.signal(&id, &id);
    }
    let mut parts: Vec<Host> = parts.into_iter().flatten().collect();
    let mut hosts: Vec<&mut Host> = parts.iter_mut().chain(std::iter::once(&mut client)).collect();
    settle(&mut hosts, &effects);
    for (token, id) in &waiting {
        let told = client.told.get(token).map(|(_, text)| text.as_str());
        assert_eq!(told, Some(id.as_str()), "seed {seed}: the result of {id} after {losses} losses");
    }
    assert_eq!(client.engine.orphans(), [], "seed {seed}: law 8");
}

#[test]
fn parts_that_die_at_any_moment_lose_no_result_laws_1_7_8() {
    (0..300).for_each(history);
}

/// What a host on a thread of its own sleeps on.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.rung.lock() = true;
        self.heard.notify_all();
    }

    /// Waits for a ring: its absence would show as a test that takes very long, and then fails.
    fn wait(&self) {
        let mut rung = self.rung.lock();
        if !*rung {
            let _timeout = self.heard.wait_for(&mut rung, Duration::from_secs(20));
        }
        *rung = false;
    }
}

/// Runs a part until it is told to end; it sleeps whenever it has nothing to do.
fn part_loop(
    joinable: &Joinable,
    part: u16,
    bell: &Arc<Bell>,
    is_over: &AtomicBool,
    effects: &Mutex<BTreeMap<String, usize>>,
) -> usize {
    let ringing = Arc::clone(bell);
    let mut host = Host::over(join(joinable, part, move || ringing.ring()).unwrap());
    let mut sleeps = 0;
    while !is_over.load(Ordering::Acquire) {
        host.tick();
        let (_, has_news) = host.engine.idle();
        host.run_bodies(effects);
        let durable = host.engine.durable();
        if !has_news && !host.bodies.iter().any(|body| body.gate <= durable) && !host.engine.has_work() {
            let (_, has_news) = host.engine.idle();
            if !has_news && !host.bodies.iter().any(|body| body.gate <= host.engine.durable()) {
                sleeps += 1;
                bell.wait();
            }
        }
    }
    sleeps
}

/// Drives the client until a condition holds, sleeping in between.
fn until(client: &mut Host, bell: &Bell, what: &str, mut is_so: impl FnMut(&mut Host) -> bool) {
    for _ in 0..100_000 {
        client.tick();
        if is_so(client) {
            return;
        }
        let (_, has_news) = client.engine.idle();
        if !has_news {
            bell.wait();
        }
    }
    panic!("never: {what}");
}

#[test]
fn threads_that_die_under_load_lose_nothing_and_nobody_misses_a_wake_laws_1_7() {
    for mode in [FlushMode::Inline, FlushMode::Background] {
        let path = std::env::temp_dir().join(format!("fusee-group-{mode:?}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let config = Config { flush: Some(mode), ..Config::new(Durability::Local(path.clone())) };
        let config = Config { workers: 3, shards: 7, definitions: vec!["flow".into()], ..config };
        let client_bell = Arc::new(Bell::default());
        let ringing = Arc::clone(&client_bell);
        let mut client = Host::over(ForeignEngine::open(config, Box::new(move || ringing.ring())).unwrap());
        let joinable = client.engine.joinable();
        let effects = Mutex::default();
        let results = std::thread::scope(|scope| {
            let spawn = |part: u16| {
                let (bell, is_over) = (Arc::new(Bell::default()), Arc::new(AtomicBool::new(false)));
                let (joinable, effects) = (&joinable, &effects);
                let (inner_bell, inner_over) = (Arc::clone(&bell), Arc::clone(&is_over));
                let thread = scope.spawn(move || part_loop(joinable, part, &inner_bell, &inner_over, effects));
                (bell, is_over, thread)
            };
            let mut threads: Vec<_> = (0..3).map(|part| Some(spawn(part))).collect();
            let end =
                |(bell, is_over, thread): (Arc<Bell>, Arc<AtomicBool>, std::thread::ScopedJoinHandle<'_, usize>)| {
                    is_over.store(true, Ordering::Release);
                    bell.ring();
                    thread.join().unwrap()
                };
            let mut results = Vec::new();
            for round in 0..30_u16 {
                for n in 0..10 {
                    let id = format!("r{round}-{n}");
                    results.push((client.start(&id), id.clone()));
                    client.signal(&id, &id);
                }
                let part = round % 3;
                if let Some(thread) = threads[usize::from(part)].take() {
                    end(thread);
                }
                threads[usize::from(part)] = Some(spawn(part));
                let wanted = results.last().unwrap().0 - 1;
                until(&mut client, &client_bell, "a start is durable", |client| client.has(wanted));
            }
            let all: Vec<Token> = results.iter().map(|(token, _)| *token).collect();
            until(&mut client, &client_bell, "all results", |client| all.iter().all(|token| client.has(*token)));
            let sleeps: usize = threads.into_iter().flatten().map(end).sum();
            assert!(sleeps > 0, "a host that has nothing to do sleeps");
            results
        });
        assert!(results.iter().all(|(token, id)| client.told[token].1 == *id));
        client.engine.close().unwrap();
        let mut reopened = Host::over(
            ForeignEngine::open(
                Config { definitions: vec!["flow".into()], ..Config::new(Durability::Local(path.clone())) },
                Box::new(|| {}),
            )
            .unwrap(),
        );
        let token = reopened.token();
        reopened.engine.result(token, Run { id: "r29-9", run_id: "" }).unwrap();
        settle(&mut [&mut reopened], &effects);
        assert_eq!(reopened.told[&token].1, "r29-9", "LAW-3");
        drop(reopened);
        let _ = std::fs::remove_dir_all(&path);
    }
}

#[test]
fn the_watchdog_names_the_run_that_a_silent_part_entered_last() {
    let bell = Arc::new(Bell::default());
    let (ringing, rings) = (Arc::clone(&bell), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&rings);
    let notify = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        ringing.ring();
    };
    let mut client = Host::over(ForeignEngine::open(config(2, 2), Box::new(notify)).unwrap());
    client.engine.watch_parts(Some(Duration::from_millis(20)));
    let mut parts = [Host::join(&client, 0, || {}), Host::join(&client, 1, || {})];
    let id = id_of(&client, 1, 0);
    client.start(&id);
    parts[0].tick();
    parts[0].engine.idle();
    // It has entered the run, and gives no sign of life after that.
    parts[1].tick();
    until(&mut client, &bell, "it is reported", |client| !client.blocked.is_empty());
    let (part, is_blocked, text) = client.blocked.remove(0);
    let fields: Vec<&str> = text.split(FIELD).collect();
    assert_eq!((part, is_blocked, fields[2], fields[4]), (1, 1, id.as_str(), "flow"));
    let (status, problems) = client.engine.health();
    assert_eq!(status, "degraded");
    assert!(problems[0].contains("worker 1"), "{problems:?}");
    // It works again.
    parts[1].tick();
    parts[1].engine.idle();
    until(&mut client, &bell, "it works again", |client| !client.blocked.is_empty());
    assert_eq!(client.blocked.remove(0).1, 0);
    assert_eq!(client.engine.health(), ("ok", vec![]));
    // A part that sleeps is not blocked, however long it does.
    let before = rings.load(Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(80));
    assert_eq!((rings.load(Ordering::Relaxed), client.engine.group().blocked_parts()), (before, vec![]));
}
