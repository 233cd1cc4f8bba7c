//! Clients on any thread: what they ask for, and what they were told.

use super::host::Broken;
use super::oracle::{Fact, Oracle, latest, newest_of_shard};
use super::program::{SIGNALS, some_attributes, some_conflict, some_id, some_input, some_reuse};
use super::world::World;
use crate::engine::{Border, BranchRequest};
use crate::engine::{EngineError, ErrorCode, Event, EventKind, FIELD, Lsn, NewSignal, NewUpdate, Run, Token};
use crate::engine::{ForeignEngine, StartRequest, StartWith, Status};
use crate::log::LogState;
use std::collections::BTreeMap;

/// What a client waits for.
#[derive(Debug)]
pub(super) enum Ask {
    /// A start, perhaps with a signal.
    Start {
        id: String,
        lsn: Lsn,
        blocker: Option<String>,
        signal: Option<(String, Option<String>)>,
    },
    Fact(Fact, Lsn),
    Result {
        id: String,
        run_id: String,
    },
    Update {
        id: String,
        run_id: String,
        update_id: String,
    },
    /// What the code of a run has seen.
    Query,
    /// A run that goes on from an earlier place, under this id.
    Branch(String),
    Any,
}

impl World {
    /// A client on one of the threads asks for something.
    pub(super) fn client(&mut self) -> Result<(), Broken> {
        let present = self.process().present();
        let thread = *self.rng.pick(&present);
        self.process().thread(thread).rouse();
        let token = self.process().thread(thread).tokens();
        self.number += 1;
        let number = self.number;
        let id = some_id(&mut self.rng);
        let known = latest(self.engine(), &id).map(|(run_id, _)| run_id);
        let run = Run { id: &id, run_id: "" };
        let what = self.rng.below(22);
        let fact = |make: fn(String, String) -> Fact| known.clone().map(|run_id| make(id.clone(), run_id));
        let (asked, fact) = match what {
            0..=6 => return self.start(thread, token, &id),
            7..=10 => {
                let name = *self.rng.pick(&SIGNALS);
                let dedupe = self.rng.one_in(3).then(|| format!("d{}", self.rng.below(4)));
                let payload = format!("client {number}");
                let engine = self.engine_of(thread);
                let sent = engine.signal(token, run, name, payload.as_bytes(), dedupe.as_deref(), None);
                let fact = known.clone().map(|run_id| Fact::Signal { id: id.clone(), run_id, payload, dedupe });
                (sent, fact)
            }
            11 => {
                let sent = self.engine_of(thread).cancel(token, run, "a client says so", None);
                (sent, fact(|id, run_id| Fact::Cancelled { id, run_id }))
            }
            12 => {
                let sent = self.engine_of(thread).terminate(token, run, "a client says so", None);
                (sent, fact(|id, run_id| Fact::Over { id, run_id }))
            }
            13 => (self.engine_of(thread).resume(token, run, None), None),
            14 => (self.engine_of(thread).pause(token, run, None), None),
            15..=16 => {
                let (update_id, payload) = (format!("u{}", self.rng.below(6)), format!("client {number}"));
                let update = NewUpdate { name: "set", id: &update_id, payload: payload.as_bytes(), actor: None };
                let sent = self.engine_of(thread).update(token, run, update);
                let ask = known.map(|run_id| Ask::Update { id: id.clone(), run_id, update_id });
                return self.asked(token, &format!("update of {id}"), sent, ask);
            }
            17 => {
                let sent = self.engine_of(thread).ask(token, run, "where", "");
                return self.asked(token, &format!("query of {id}"), sent, Some(Ask::Query));
            }
            18..=19 => return self.branch(thread, token, run, what == 18),
            _ => {
                let sent = self.engine_of(thread).result(token, run);
                let ask = known.map(|run_id| Ask::Result { id: id.clone(), run_id });
                return self.asked(token, &format!("result of {id}"), sent, ask);
            }
        };
        let lsn = newest_of_shard(self.engine(), &id);
        let ask = fact.map_or(Ask::Any, |fact| Ask::Fact(fact, lsn));
        if let Err(error) = &asked {
            self.refused(error.code)?;
        }
        self.asked(token, &format!("command {what} to {id}"), asked, Some(ask))
    }

    /// A run is reset, or forked. With fresh keys, by which the oracle tells its traces apart.
    fn branch(&mut self, thread: usize, token: Token, run: Run<'_>, is_reset: bool) -> Result<(), Broken> {
        let place = self.rng.between(1, 4) as u32;
        let request = BranchRequest {
            border: if self.rng.one_in(3) { Border::End } else { Border::Operation(place) },
            reapplies_signals: self.rng.one_in(2),
            has_fresh_keys: true,
            version: None,
            actor: None,
        };
        let to = if is_reset { run.id.to_owned() } else { some_id(&mut self.rng) };
        let engine = self.engine_of(thread);
        let sent = if is_reset { engine.reset(token, run, request) } else { engine.fork(token, run, &to, request) };
        if let Err(error) = &sent {
            self.refused(error.code)?;
        }
        self.asked(token, &format!("{request:?} of {} as {to}", run.id), sent, Some(Ask::Branch(to)))
    }

    fn engine_of(&mut self, thread: usize) -> &mut ForeignEngine {
        &mut self.process().thread(thread).engine
    }

    fn asked(
        &mut self,
        token: Token,
        what: &str,
        sent: Result<(), EngineError>,
        ask: Option<Ask>,
    ) -> Result<(), Broken> {
        self.note(|| format!("client {token:x}: {what}: {sent:?}"));
        if let (Ok(()), Some(ask)) = (sent, ask) {
            self.asks.insert(token, ask);
        }
        Ok(())
    }

    fn start(&mut self, thread: usize, token: Token, id: &str) -> Result<(), Broken> {
        let input = some_input(&mut self.rng, 2);
        let name = *self.rng.pick(&SIGNALS);
        let signal = self.rng.one_in(4).then(|| {
            let dedupe = self.rng.one_in(3).then(|| format!("d{}", self.rng.below(4)));
            (format!("client {}", self.number), dedupe)
        });
        let with = signal.as_ref().map(|(payload, dedupe)| {
            StartWith::Signal(NewSignal { name, payload: payload.as_bytes(), dedupe: dedupe.as_deref() })
        });
        let attributes = if self.rng.one_in(4) { some_attributes(&mut self.rng) } else { Vec::new() };
        let request = StartRequest {
            id,
            kind: "p",
            version: 1,
            input: input.as_bytes(),
            reuse: some_reuse(&mut self.rng),
            conflict: some_conflict(&mut self.rng),
            attributes: &attributes,
            timeout_ms: self.rng.one_in(8).then(|| self.rng.between(0, 10_000)),
            actor: None,
            result_token: self.rng.one_in(2).then_some(token + 1),
            with,
        };
        let blocker = latest(self.engine(), id).map(|(run_id, _)| run_id);
        let asked = self.engine_of(thread).start(token, request);
        self.note(|| format!("client {token:x}: start {id} {input} with {signal:?}: {asked:?}"));
        if let Err(error) = asked {
            return self.refused(error.code);
        }
        let lsn = newest_of_shard(self.engine(), id);
        if let (Some(result_token), Some((run_id, _))) = (request.result_token, latest(self.engine(), id)) {
            self.asks.insert(result_token, Ask::Result { id: id.into(), run_id });
        }
        self.asks.insert(token, Ask::Start { id: id.into(), lsn, blocker, signal });
        Ok(())
    }

    /// A command is refused at once only for what the log is like, or because a finished run could not be read.
    fn refused(&mut self, code: ErrorCode) -> Result<(), Broken> {
        match (self.engine().group().log_state(), code) {
            (LogState::Poisoned(_), ErrorCode::Storage) | (LogState::Full(_), ErrorCode::StorageFull) => Ok(()),
            (_, ErrorCode::Storage) if self.climate.checkpoint > 0 && self.disk.errors() > 0 => Ok(()),
            (state, code) => Err(format!("LAW-1: refused at once with {code:?}, the log is {state:?}")),
        }
    }
}

/// A client is told something.
pub(super) fn answered(asks: &mut BTreeMap<Token, Ask>, oracle: &mut Oracle, event: Event) -> Result<(), Broken> {
    let Some(ask) = asks.remove(&event.a) else { return Ok(()) };
    match (ask, event.kind) {
        (Ask::Start { id, lsn, signal, .. }, EventKind::Reply) => {
            let run_id = event.text.split(FIELD).next().unwrap_or_default().to_owned();
            if let Some((payload, dedupe)) = signal {
                oracle.told(Fact::Signal { id: id.clone(), run_id: run_id.clone(), payload, dedupe }, lsn)?;
            }
            oracle.told(Fact::Exists { id, run_id }, lsn)
        }
        (Ask::Start { id, lsn, blocker: Some(run_id), .. }, EventKind::Refuse) => {
            oracle.told(Fact::Exists { id, run_id }, lsn)
        }
        (Ask::Fact(fact, lsn), EventKind::Ack) => oracle.told(fact, lsn),
        (Ask::Result { id, run_id }, EventKind::Result) => {
            let fact = Fact::Ended { id, run_id, status: event.b, payload: event.text };
            oracle.told(fact, Lsn::NONE)
        }
        (Ask::Update { id, run_id, update_id }, EventKind::Result)
            if event.b == u32::from(Status::Completed.code()) =>
        {
            oracle.told(Fact::Answered { id, run_id, update_id, payload: event.text }, Lsn::NONE)
        }
        (Ask::Update { .. }, EventKind::Result) if event.b == u32::from(Status::Refused.code()) => Ok(()),
        (Ask::Query, EventKind::Reply) => oracle.queried(&event.text),
        (
            Ask::Fact(Fact::Signal { .. }, _)
            | Ask::Any
            | Ask::Branch(_)
            | Ask::Result { .. }
            | Ask::Update { .. }
            | Ask::Query,
            EventKind::Refuse,
        ) => Ok(()),
        (Ask::Branch(id), EventKind::Reply) => oracle.told(Fact::Exists { id, run_id: event.text }, Lsn::NONE),
        (Ask::Any, EventKind::Ack) => Ok(()),
        (_, kind) => Err(format!("a client got {kind:?} {:?}, which answers nothing", event.text)),
    }
}
