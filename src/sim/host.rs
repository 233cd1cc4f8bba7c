//! The host: runs programs against the engine as a JS thread would, one turn a delivery, bodies between turns.

use super::bodies::Body;
use super::code::{Code, Stop};
use super::journal::recorded_at;
use super::oracle::{Entry, Oracle};
use super::program::{Plan, Program};
use super::rng::mix;
use crate::engine::{
    Accepted, CallAnswer, Delivery, DeliveryKind, Event, EventKind, Explanation, FIELD, ForeignEngine, Halt, Slot,
};
use crate::machine::{RunIx, Target};
use crate::record::{Seq, ShardId, Status, parse_run_id};
use std::collections::{BTreeMap, BTreeSet};

/// A limit of payloads that everything in the simulation keeps, save some results of steps.
pub(super) const PAYLOAD_BYTES_SMALL: usize = 48;

/// A broken promise: which law, and what happened.
pub(super) type Broken = String;

/// Everything in the memory of the process.
#[derive(Default)]
pub(super) struct Host {
    pub(super) codes: BTreeMap<Slot, Code>,
    pub(super) bodies: Vec<Body>,
    /// Bodies whose attempt was given up and that return all the same.
    pub(super) late: Vec<Body>,
    /// Leases that were given out: slot, operation, lease.
    pub(super) leases: BTreeSet<(Slot, u32, u32)>,
    /// Updates that wait for the code to look at them.
    offers: Vec<(Slot, u32)>,
    /// The log has failed: the host was told.
    pub(super) has_failed: bool,
    /// Bodies succeed from now on, whatever their plan says.
    pub(super) is_mended: bool,
}

impl Host {
    pub(super) fn new(is_mended: bool) -> Host {
        Host { is_mended, ..Host::default() }
    }

    /// Takes what a tick told. Answers to clients are handed back.
    pub(super) fn handle(
        &mut self,
        engine: &mut ForeignEngine,
        oracle: &mut Oracle,
        event: Event,
    ) -> Result<Option<Event>, Broken> {
        let slot = Slot(event.a);
        match event.kind {
            EventKind::Start => self.load(engine, oracle, slot, &event.text),
            EventKind::Wake => {
                self.news(slot);
                Ok(())
            }
            EventKind::Offer => {
                self.offers.retain(|offer| *offer != (slot, event.b));
                self.offers.push((slot, event.b));
                Ok(())
            }
            EventKind::Attempt => self.attempt(engine, slot, event.b, &event.text),
            EventKind::Timeout => self.overdue(engine, slot, event.b, &event.text),
            EventKind::Ended => {
                self.drop_code(slot);
                Ok(())
            }
            // Threads that die three times in the same turn are taken for its fault; it is resumed in the end.
            EventKind::Notice if event.b == 3 && !event.text.contains("3 threads in a row") => {
                Err(format!("LAW-5: a run is stuck: {:?}", event.text))
            }
            EventKind::Notice | EventKind::Blocked => Ok(()),
            EventKind::Ask => {
                let code = self.codes.get(&Slot(event.b));
                let seen =
                    code.map_or_else(|| "nothing any more".into(), |code| format!("{} {}", code.key, code.position));
                engine.answer(event.a, &seen);
                Ok(())
            }
            EventKind::Task | EventKind::TaskAbort | EventKind::TaskNotice => {
                Err(format!("nobody enqueued a task: {event:?}"))
            }
            EventKind::Failed => {
                self.has_failed = true;
                Ok(())
            }
            EventKind::Ack | EventKind::Reply | EventKind::Refuse | EventKind::Result => return Ok(Some(event)),
        }?;
        Ok(None)
    }

    fn load(&mut self, engine: &ForeignEngine, oracle: &mut Oracle, slot: Slot, text: &str) -> Result<(), Broken> {
        let fields: Vec<&str> = text.split(FIELD).collect();
        // It may have ended within the tick that tells of it.
        let Ok(identity) = engine.identity(slot) else { return Ok(()) };
        let run_id = identity.split(FIELD).nth(1).unwrap_or_default().to_owned();
        let (shard, no) = parse_run_id(&run_id).ok_or("a run id cannot be read")?;
        let id = fields[0].to_owned();
        let run = engine
            .group()
            .with(shard, |cell, _| cell.shard.find(Target { id: &id, run: Some(no) }).expect("its slot was just told"));
        // A child that is started again for a parent that goes on from an earlier place has the key root that it had.
        let key = oracle.key(&format!("{} {run_id}", fields[1]));
        if let Some(other) = self.codes.values().find(|code| code.key == key) {
            return Err(format!("LAW-4: the code of {} ({}) is called twice at a time", other.id, other.run_id));
        }
        let code = Code {
            id,
            run_id,
            place: (shard, run),
            key,
            program: Program::of(fields[3]),
            stage: 0,
            awaited: Vec::new(),
            has_winner: false,
            asked: 0,
            open: BTreeMap::new(),
            deliveries: 0,
            state: 0,
            position: 0,
            is_cancelled: false,
            is_at_rest: false,
            taken: None,
            has_news: false,
        };
        self.codes.insert(slot, code);
        Ok(())
    }

    pub(super) fn drop_code(&mut self, slot: Slot) {
        self.codes.remove(&slot);
        self.bodies.retain(|body| body.slot != slot);
        self.late.retain(|body| body.slot != slot);
        self.leases.retain(|(of, ..)| *of != slot);
    }

    /// A run whose code has something to look at or has not been asked.
    pub(super) fn runnable(&self) -> Vec<Slot> {
        self.codes.iter().filter(|(_, code)| !code.is_at_rest).map(|(slot, _)| *slot).collect()
    }

    /// One turn of a run. `false`: there was nothing to hand it.
    pub(super) fn turn(&mut self, engine: &mut ForeignEngine, oracle: &mut Oracle, slot: Slot) -> Result<bool, Broken> {
        let taken = self.codes.get_mut(&slot).and_then(|code| code.taken.take());
        if taken.is_some() && is_gone(engine, self.codes[&slot].place) {
            // The code would go on to its next verb, and no further.
            self.drop_code(slot);
            return Ok(false);
        }
        let delivery = match taken.map_or_else(|| engine.quiescent(slot), |taken| Ok(Some(taken))) {
            Ok(Some(delivery)) => delivery,
            Ok(None) => {
                if let Some(code) = self.codes.get_mut(&slot) {
                    code.is_at_rest = true;
                }
                return Ok(false);
            }
            Err(halt) => return self.halted(engine, slot, halt).map(|()| false),
        };
        let mut code = self.codes.remove(&slot).expect("only loaded runs have turns");
        if taken.is_none() {
            code.has_news = false;
        }
        let done = self.deliver(engine, oracle, slot, &mut code, delivery);
        match done {
            Ok(is_over) => {
                if is_over {
                    self.drop_code(slot);
                } else {
                    // Some hosts look all the same.
                    code.is_at_rest = delivery.is_last
                        && !code.has_news
                        && !code.open.is_empty()
                        && code.deliveries.is_multiple_of(2);
                    self.codes.insert(slot, code);
                }
                Ok(true)
            }
            Err(Stop::Halt(halt)) => {
                self.codes.insert(slot, code);
                self.halted(engine, slot, halt).map(|()| true)
            }
            Err(Stop::Broken(broken)) => Err(broken),
        }
    }

    /// There is something for a run's code to look at.
    pub(super) fn news(&mut self, slot: Slot) {
        if let Some(code) = self.codes.get_mut(&slot) {
            code.is_at_rest = false;
            code.has_news = true;
        }
    }

    /// Updates are accepted or refused between turns, by code that is at rest. Some are refused. `true`: some were decided.
    pub(super) fn decide_offers(&mut self, engine: &mut ForeignEngine) -> bool {
        let due = std::mem::take(&mut self.offers);
        let count = due.len();
        for (slot, number) in due {
            let Some(code) = self.codes.get(&slot) else { continue };
            if !code.is_at_rest {
                self.offers.push((slot, number));
            } else if number % 5 == 0 {
                let _ = engine.refuse_offer(slot, number, b"no");
            } else if engine.accept_offer(slot, number) == Ok(Accepted::Later) {
                self.offers.push((slot, number));
            }
        }
        self.offers.len() < count
    }

    /// A run may end at any time by somebody else; a program that is the same never mismatches.
    pub(super) fn halted(&mut self, engine: &ForeignEngine, slot: Slot, halt: Halt) -> Result<(), Broken> {
        match halt {
            Halt::Dead => {
                self.drop_code(slot);
                Ok(())
            }
            Halt::Mismatch => Err(format!("LAW-5: a replay differs: {}", engine.mismatch(slot).unwrap_or_default())),
        }
    }

    fn deliver(
        &mut self,
        engine: &mut ForeignEngine,
        oracle: &mut Oracle,
        slot: Slot,
        code: &mut Code,
        delivery: Delivery,
    ) -> Result<bool, Stop> {
        let payload = engine.payload(slot)?;
        let entry = Entry {
            what: format!("{:?} {} {payload}", delivery.kind, delivery.seq.0),
            lsn: recorded_at(engine, code.place, delivery, &payload),
        };
        code.see(oracle, entry)?;
        code.deliveries += 1;
        match delivery.kind {
            DeliveryKind::Start => self.open_stage(engine, oracle, slot, code)?,
            DeliveryKind::Cancelled => {
                code.is_cancelled = true;
                code.open.clear();
                code.awaited.clear();
                self.bodies.retain(|body| body.slot != slot);
                self.late.retain(|body| body.slot != slot);
                if let Some(step) = code.program.clean_up.clone() {
                    self.open(engine, oracle, slot, code, &Plan::Step(step))?;
                    return Ok(false);
                }
                engine.finish(slot, Status::Cancelled, &code.result())?;
                return Ok(true);
            }
            DeliveryKind::StepCompleted
            | DeliveryKind::StepFailed
            | DeliveryKind::TimerFired
            | DeliveryKind::SignalTaken
            | DeliveryKind::WaitTimedOut
            | DeliveryKind::ConditionTimedOut
            | DeliveryKind::ChildEnded => code.resolve(delivery.seq.0)?,
            DeliveryKind::UpdateAccepted => {
                engine.answer_update(slot, delivery.seq.0, false, &code.result())?;
            }
            DeliveryKind::CallArrived => {
                let (number, payload) = (delivery.seq.0, code.result());
                let answer = CallAnswer { number, is_failure: false, payload: &payload, state: None, is_alone: true };
                engine.answer_call(slot, answer)?;
            }
        }
        loop {
            if self.go_on(engine, oracle, slot, code)? {
                return Ok(true);
            }
            // Conditions at the end of the turn, in call order, one derived turn each: law 4.
            let is_true =
                |plan: &Plan| matches!(plan, Plan::Condition { deliveries, .. } if *deliveries <= code.deliveries);
            let Some(seq) = code.open.iter().find(|(_, plan)| is_true(plan)).map(|(seq, _)| *seq) else {
                return Ok(false);
            };
            engine.withdraw(slot, Seq(seq))?;
            code.state = mix(code.state ^ u64::from(seq));
            code.resolve(seq)?;
        }
    }
}

/// The run has ended, or somebody has paused it and may have resumed it: its code is in memory no more, though the host has
/// not been told so yet.
fn is_gone(engine: &ForeignEngine, (shard, run): (ShardId, RunIx)) -> bool {
    engine.group().with(shard, |cell, _| {
        let is_absent = matches!(cell.shard.explain(run), Explanation::Ended(_) | Explanation::Absent);
        is_absent || cell.shard.is_held(run)
    })
}
