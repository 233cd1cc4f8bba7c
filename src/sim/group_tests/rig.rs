//! Hosts of a group without their threads.
//!
//! A workflow here does a step, waits for a signal `go`, and ends with what the step gave and what the signal brought.

use crate::engine::*;
use parking_lot::Mutex;
use std::collections::BTreeMap;

pub(super) const STEP: Seq = Seq(1);
pub(super) const WAIT: Seq = Seq(2);

/// A body that may run once its gate is durable.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub(super) slot: Slot,
    pub(super) lease: u32,
    pub(super) gate: Lsn,
}

/// A thread with an engine, without the thread.
pub(super) struct Host {
    pub(super) engine: ForeignEngine,
    pub(super) bodies: Vec<Body>,
    pub(super) told: BTreeMap<Token, (EventKind, String)>,
    /// Questions are answered with the id of the run that has the slot.
    pub(super) ids: BTreeMap<Slot, String>,
    pub(super) blocked: Vec<(u32, u32, String)>,
    pub(super) tokens: Token,
}

impl Host {
    pub(super) fn over(engine: ForeignEngine) -> Host {
        let tokens = engine.first_token();
        Host { engine, bodies: vec![], told: BTreeMap::new(), ids: BTreeMap::new(), blocked: vec![], tokens }
    }

    pub(super) fn join(client: &Host, part: u16, notify: impl Fn() + Send + Sync + 'static) -> Host {
        Host::over(join(&client.engine.joinable(), part, notify).unwrap())
    }

    pub(super) fn token(&mut self) -> Token {
        self.tokens += 1;
        self.tokens
    }

    /// Fetches events and runs the code that they ask for.
    pub(super) fn tick(&mut self) {
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

    /// The slot of the run that begins, or goes on, and whose code is not called yet.
    pub(super) fn begun(&mut self) -> Slot {
        let mut events = Events::default();
        while self.engine.tick(&mut events) {}
        let mut starts = events.drain().filter(|event| event.kind == EventKind::Start);
        Slot(starts.next().expect("its code is asked for").a)
    }

    pub(super) fn turns(&mut self, slot: Slot) {
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

    pub(super) fn finish(&mut self, slot: Slot) -> Result<(), Halt> {
        let payload = self.engine.payload(slot)?;
        self.engine.finish(slot, Status::Completed, payload.as_bytes())
    }

    /// Calls bodies that may run. `effects` counts the calls by workflow.
    pub(super) fn run_bodies(&mut self, effects: &Mutex<BTreeMap<String, usize>>) {
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

    pub(super) fn start(&mut self, id: &str) -> Token {
        let (token, result) = (self.token(), self.token());
        let request = StartRequest {
            id,
            kind: "flow",
            version: 1,
            input: b"",
            reuse: IdReuse::Allow,
            conflict: IdConflict::Fail,
            attributes: b"",
            timeout_ms: None,
            actor: None,
            result_token: Some(result),
            with: None,
        };
        self.engine.start(token, request).unwrap();
        result
    }

    pub(super) fn signal(&mut self, id: &str, payload: &str) -> Token {
        let token = self.token();
        let run = Run { id, run_id: "" };
        self.engine.signal(token, run, "go", payload.as_bytes(), None, None).unwrap();
        token
    }

    pub(super) fn has(&self, token: Token) -> bool {
        self.told.contains_key(&token)
    }
}

pub(super) fn join(
    to: &Joinable,
    part: u16,
    notify: impl Fn() + Send + Sync + 'static,
) -> Result<ForeignEngine, EngineError> {
    ForeignEngine::join(to, part, vec!["flow".into()], Box::new(notify))
}

pub(super) fn config(workers: u16, shards: u16) -> Config {
    let definitions = vec!["flow".into()];
    Config { workers, shards, definitions, ..Config::new(Durability::Memory(MemoryStorage::new())) }
}

pub(super) fn client(workers: u16, shards: u16) -> Host {
    Host::over(ForeignEngine::open(config(workers, shards), Box::new(|| {})).unwrap())
}

/// An id whose shard is of a worker's.
pub(super) fn id_of(client: &Host, part: u16, salt: u64) -> String {
    let workers = client.engine.workers();
    (0..).map(|n| format!("w{salt}-{n}")).find(|id| client.engine.shard_of(id).0 % workers == part).unwrap()
}

pub(super) fn settle(hosts: &mut [&mut Host], effects: &Mutex<BTreeMap<String, usize>>) {
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
