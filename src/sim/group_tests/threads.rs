//! Groups on threads of their own.

use super::rig::*;
use crate::engine::*;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

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
