//! The host: runs programs against the engine as a JS thread would, one turn a delivery, bodies between turns.

use super::oracle::{Entry, Oracle};
use super::program::{Plan, Program, StepPlan};
use super::rng::{Rng, mix, mix_bytes};
use crate::engine::{
    Accepted, Completed, Delivery, DeliveryKind, Event, EventKind, FIELD, ForeignEngine, Halt, Lsn, Slot, StepMode,
};
use crate::machine::{OpenedStep, RunIx, Target};
use crate::record::{ChildSpec, Record, Sending, Seq, ShardId, Status, parse_run_id};
use std::collections::{BTreeMap, BTreeSet};

/// A limit of payloads that everything in the simulation keeps, save some results of steps.
pub(super) const PAYLOAD_BYTES_SMALL: usize = 48;

/// A broken promise: which law, and what happened.
pub(super) type Broken = String;

/// The code of one run, in memory.
pub(super) struct Code {
    pub(super) id: String,
    pub(super) run_id: String,
    pub(super) place: (ShardId, RunIx),
    /// The run's number with the oracle.
    pub(super) key: usize,
    program: Program,
    stage: usize,
    /// Operations of the stage that it waits for.
    awaited: Vec<u32>,
    has_winner: bool,
    asked: u32,
    pub(super) open: BTreeMap<u32, Plan>,
    deliveries: u32,
    /// What the code has seen so far.
    state: u64,
    /// Position in the trace of the run.
    position: usize,
    is_cancelled: bool,
    /// The code has been asked and there was nothing, or it was told that there is nothing.
    pub(super) is_at_rest: bool,
    /// What was taken with the result of a step and waits for its turn.
    taken: Option<Delivery>,
    /// Something was recorded since the last delivery was taken.
    has_news: bool,
}

/// A step body that may run, or runs.
#[derive(Clone, Debug)]
pub(super) struct Body {
    slot: Slot,
    seq: u32,
    attempt: u32,
    lease: u32,
    is_interrupted: bool,
    /// What the engine says must be durable.
    gate: Lsn,
    /// What must have survived for the body to have run: law 2, by the journal and not by the engine's word.
    rests_on: Lsn,
    plan: StepPlan,
    ends_at_ms: Option<i64>,
}

/// Everything in the memory of the process.
#[derive(Default)]
pub(super) struct Host {
    pub(super) codes: BTreeMap<Slot, Code>,
    pub(super) bodies: Vec<Body>,
    /// Bodies whose attempt was given up and that return all the same.
    late: Vec<Body>,
    /// Leases that were given out: slot, operation, lease.
    leases: BTreeSet<(Slot, u32, u32)>,
    /// Updates that wait for the code to look at them.
    offers: Vec<(Slot, u32)>,
    /// The log has failed: the host was told.
    pub(super) has_failed: bool,
    /// Bodies succeed from now on, whatever their plan says.
    pub(super) is_mended: bool,
}

impl Host {
    /// The process is gone.
    pub(super) fn forget(&mut self) {
        *self = Host { is_mended: self.is_mended, ..Host::default() };
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
            EventKind::Notice if event.b == 3 => Err(format!("LAW-5: a run is stuck: {:?}", event.text)),
            EventKind::Notice | EventKind::Blocked | EventKind::Ask => Ok(()),
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
        let key = oracle.key(fields[1]);
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

    fn drop_code(&mut self, slot: Slot) {
        self.codes.remove(&slot);
        self.bodies.retain(|body| body.slot != slot);
        self.late.retain(|body| body.slot != slot);
        self.leases.retain(|(of, ..)| *of != slot);
    }

    /// A body of a replayed or failed step may run: its records have to be durable already.
    fn attempt(&mut self, engine: &ForeignEngine, slot: Slot, seq: u32, text: &str) -> Result<(), Broken> {
        let Some(code) = self.codes.get(&slot) else { return Ok(()) };
        let Some(Plan::Step(plan)) = code.open.get(&seq) else {
            return Err(format!("an attempt of operation {seq} of {}, which is no open step", code.id));
        };
        let mut fields = text.split(FIELD);
        let attempt = fields.next().and_then(|attempt| attempt.parse().ok()).ok_or("an attempt has no number")?;
        let is_interrupted = fields.next() == Some("1");
        let lease = fields.next().and_then(|lease| lease.parse().ok()).ok_or("an attempt has no lease")?;
        if !self.leases.insert((slot, seq, lease)) {
            return Err(format!("LAW-7: lease {lease} of operation {seq} of {} is given out twice", code.id));
        }
        if self.bodies.iter().any(|body| body.slot == slot && body.seq == seq) {
            return Err(format!("two bodies of operation {seq} of {} at a time", code.id));
        }
        let rests_on = newest_of_attempt(engine, code.place, seq, plan.is_read_only);
        let body = Body {
            slot,
            seq,
            attempt,
            lease,
            is_interrupted,
            gate: Lsn::NONE,
            rests_on,
            plan: plan.clone(),
            ends_at_ms: None,
        };
        self.bodies.push(body);
        Ok(())
    }

    fn overdue(&mut self, engine: &mut ForeignEngine, slot: Slot, seq: u32, text: &str) -> Result<(), Broken> {
        let lease: u32 = text.split(FIELD).next().and_then(|lease| lease.parse().ok()).unwrap_or(0);
        let found = self.bodies.iter().position(|body| body.slot == slot && body.seq == seq && body.lease == lease);
        let Some(index) = found else { return Ok(()) };
        let body = self.bodies.remove(index);
        self.late.push(body.clone());
        self.failed(engine, &body, "timed out")
    }

    /// A run whose code has something to look at or has not been asked.
    pub(super) fn runnable(&self) -> Vec<Slot> {
        self.codes.iter().filter(|(_, code)| !code.is_at_rest).map(|(slot, _)| *slot).collect()
    }

    /// One turn of a run. `false`: there was nothing to hand it.
    pub(super) fn turn(&mut self, engine: &mut ForeignEngine, oracle: &mut Oracle, slot: Slot) -> Result<bool, Broken> {
        let taken = self.codes.get_mut(&slot).and_then(|code| code.taken.take());
        if taken.is_some() && is_over(engine, self.codes[&slot].place) {
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
    fn news(&mut self, slot: Slot) {
        if let Some(code) = self.codes.get_mut(&slot) {
            code.is_at_rest = false;
            code.has_news = true;
        }
    }

    /// Updates are accepted or refused between turns, by code that is at rest. Some are refused.
    pub(super) fn decide_offers(&mut self, engine: &mut ForeignEngine) {
        let due = std::mem::take(&mut self.offers);
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
    }

    /// A run may end at any time by somebody else; a program that is the same never mismatches.
    fn halted(&mut self, engine: &ForeignEngine, slot: Slot, halt: Halt) -> Result<(), Broken> {
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

    fn open_stage(
        &mut self,
        engine: &mut ForeignEngine,
        oracle: &mut Oracle,
        slot: Slot,
        code: &mut Code,
    ) -> Result<(), Stop> {
        code.has_winner = false;
        code.awaited.clear();
        for plan in code.program.stages[code.stage].ops.clone() {
            match self.open(engine, oracle, slot, code, &plan)? {
                true => code.awaited.push(code.asked),
                false => code.has_winner = true,
            }
        }
        Ok(())
    }

    /// Opens the next stages as long as the present one is over. `true`: the program has ended.
    fn go_on(
        &mut self,
        engine: &mut ForeignEngine,
        oracle: &mut Oracle,
        slot: Slot,
        code: &mut Code,
    ) -> Result<bool, Stop> {
        if code.is_cancelled {
            if code.open.is_empty() {
                engine.finish(slot, Status::Cancelled, &code.result())?;
                return Ok(true);
            }
            return Ok(false);
        }
        while code.awaited.is_empty() || (code.program.stages[code.stage].is_race && code.has_winner) {
            code.stage += 1;
            if code.stage == code.program.stages.len() {
                engine.finish(slot, code.program.status, &code.result())?;
                return Ok(true);
            }
            self.open_stage(engine, oracle, slot, code)?;
        }
        Ok(false)
    }

    /// Asks for an operation. `false`: it is done at once.
    fn open(
        &mut self,
        engine: &mut ForeignEngine,
        oracle: &mut Oracle,
        slot: Slot,
        code: &mut Code,
        plan: &Plan,
    ) -> Result<bool, Stop> {
        code.asked += 1;
        let seq = Seq(code.asked);
        match plan {
            Plan::Step(step) => {
                let mode = StepMode { is_read_only: step.is_read_only, is_at_most_once: step.is_at_most_once };
                let newest = newest_of_run(engine, code.place);
                if let OpenedStep::Run(gate) = engine.open_step(slot, seq, &step.name, mode)? {
                    let rests_on = match (step.is_read_only, step.is_at_most_once) {
                        (true, _) => Lsn::NONE,
                        (_, true) => newest_of_run(engine, code.place),
                        (false, false) => newest,
                    };
                    self.leases.insert((slot, seq.0, 1));
                    self.bodies.push(Body {
                        slot,
                        seq: seq.0,
                        attempt: 1,
                        lease: 1,
                        is_interrupted: false,
                        gate,
                        rests_on,
                        plan: step.clone(),
                        ends_at_ms: None,
                    });
                }
            }
            Plan::Sleep { ms, is_absolute } => {
                let turn_ms = engine.turn_ms(slot)?;
                engine.open_timer(slot, seq, if *is_absolute { turn_ms + ms } else { *ms }, *is_absolute)?;
            }
            Plan::Wait { name, timeout_ms } => {
                if engine.open_wait(slot, seq, name, *timeout_ms)? {
                    let payload = engine.payload(slot)?;
                    let lsn = signal_at(engine, code.place, &payload);
                    code.see(oracle, Entry { what: format!("Taken {} {payload}", seq.0), lsn })?;
                    return Ok(false);
                }
            }
            Plan::Condition { timeout_ms, .. } => engine.open_condition(slot, seq, *timeout_ms)?,
            Plan::Child(child) => {
                let spec = ChildSpec {
                    id: &child.id,
                    kind: "p",
                    version: 1,
                    key_root: [0; 16],
                    timeout_ms: child.timeout_ms,
                    parent_close: child.parent_close,
                    reuse: child.reuse,
                    conflict: child.conflict,
                    input: child.input.as_bytes(),
                };
                engine.open_child(slot, seq, spec)?;
            }
            Plan::Signal { id, name } => {
                let payload = format!("from {} {} {:x}", code.run_id, seq.0, code.state);
                engine.open_send(slot, seq, id, None, Sending::Signal(name, payload.as_bytes()))?;
                return Ok(false);
            }
            Plan::Cancel { id } => {
                engine.open_send(slot, seq, id, None, Sending::Cancel("another run says so"))?;
                return Ok(false);
            }
            Plan::Watch { id } => engine.open_send(slot, seq, id, None, Sending::Watch)?,
        }
        code.open.insert(seq.0, plan.clone());
        Ok(true)
    }

    /// Bodies that may begin or end now.
    pub(super) fn ready_bodies(&self, engine: &ForeignEngine, now_ms: i64) -> Vec<usize> {
        let durable = engine.durable();
        let is_ready = |body: &Body| match body.ends_at_ms {
            None => body.gate <= durable,
            Some(at_ms) => at_ms <= now_ms,
        };
        (0..self.bodies.len()).filter(|index| is_ready(&self.bodies[*index])).collect()
    }

    /// When a running body ends next.
    pub(super) fn next_body_ms(&self) -> Option<i64> {
        self.bodies.iter().filter_map(|body| body.ends_at_ms).min()
    }

    /// Begins a body, or ends it.
    pub(super) fn body(
        &mut self,
        engine: &mut ForeignEngine,
        oracle: &mut Oracle,
        index: usize,
        now_ms: i64,
        rng: &mut Rng,
    ) -> Result<(), Broken> {
        let body = self.bodies[index].clone();
        if body.ends_at_ms.is_none() && !body.is_interrupted {
            let Some(code) = self.codes.get(&body.slot) else { return Ok(()) };
            oracle.body_ran(code.key, body.seq, body.rests_on, body.plan.is_at_most_once)?;
            let (seq, timeout_ms) = (Seq(body.seq), body.plan.timeout_ms);
            if timeout_ms.is_some() && engine.watch_attempt(body.slot, seq, body.lease, timeout_ms, None).is_err() {
                self.drop_code(body.slot);
                return Ok(());
            }
            if body.plan.body_ms > 0 && !self.is_mended {
                self.bodies[index].ends_at_ms = Some(now_ms + body.plan.body_ms);
                return Ok(());
            }
        }
        self.bodies.remove(index);
        if body.is_interrupted {
            return self.ended(engine, &body, engine_fail("interrupted"));
        }
        if body.attempt <= body.plan.failures && !self.is_mended {
            return self.failed(engine, &body, "failed");
        }
        let effect = oracle.effect();
        // Where payloads are limited, one result in eight is too large, and recorded as a failure: law 6.
        let padding = if effect.is_multiple_of(8) { "x".repeat(PAYLOAD_BYTES_SMALL) } else { String::new() };
        let result = format!("{} attempt {} effect {effect}{padding}", body.plan.name, body.attempt);
        self.ended(engine, &body, Outcome::Completed(result))?;
        if rng.one_in(6) {
            // A host that forgot that it has said so already, or a body that returned twice.
            self.late.push(body);
        }
        Ok(())
    }

    /// A body whose lease is dead returns: nothing changes.
    pub(super) fn late_body(&mut self, engine: &mut ForeignEngine, oracle: &mut Oracle) -> Result<bool, Broken> {
        let Some(body) = self.late.pop() else { return Ok(false) };
        let result = format!("late {}", oracle.effect());
        match engine.complete(body.slot, Seq(body.seq), body.lease, result.as_bytes(), false) {
            Ok(Completed::Stale) => Ok(true),
            Ok(_) => {
                Err(format!("LAW-7: a result under the dead lease {} was taken, operation {}", body.lease, body.seq))
            }
            Err(halt) => self.halted(engine, body.slot, halt).map(|()| true),
        }
    }

    fn failed(&mut self, engine: &mut ForeignEngine, body: &Body, text: &str) -> Result<(), Broken> {
        let outcome = if body.attempt < body.plan.attempts_max {
            Outcome::Retry(Some(body.plan.retry_ms))
        } else if body.plan.pauses {
            Outcome::Retry(None)
        } else {
            engine_fail(text)
        };
        self.ended(engine, body, outcome)
    }

    fn ended(&mut self, engine: &mut ForeignEngine, body: &Body, outcome: Outcome) -> Result<(), Broken> {
        let (slot, seq, lease) = (body.slot, Seq(body.seq), body.lease);
        let recorded = match outcome {
            Outcome::Completed(result) => {
                let takes =
                    self.codes.get(&slot).is_some_and(|code| code.taken.is_none() && code.state.is_multiple_of(2));
                engine.complete(slot, seq, lease, result.as_bytes(), takes).map(|completed| {
                    match self.codes.get_mut(&slot).filter(|_| completed == Completed::Taken) {
                        Some(code) => {
                            let delivery = Delivery { kind: DeliveryKind::StepCompleted, seq, is_last: true };
                            (code.taken, code.has_news, code.is_at_rest) = (Some(delivery), false, false);
                        }
                        None => self.news(slot),
                    }
                })
            }
            Outcome::Failed(text) => engine.fail(slot, seq, lease, text.as_bytes()).map(|_| self.news(slot)),
            Outcome::Retry(after_ms) => engine.retry(slot, seq, lease, after_ms, b"again").map(|_| self.news(slot)),
        };
        match recorded {
            Ok(()) => Ok(()),
            Err(halt) => self.halted(engine, slot, halt),
        }
    }
}

fn is_over(engine: &ForeignEngine, (shard, run): (ShardId, RunIx)) -> bool {
    engine.group().with(shard, |cell, _| cell.shard.outcome(run).is_some())
}

enum Outcome {
    Completed(String),
    Failed(String),
    /// `None`: paused.
    Retry(Option<i64>),
}

fn engine_fail(text: &str) -> Outcome {
    Outcome::Failed(text.to_owned())
}

/// Why a turn did not come to its end.
enum Stop {
    Halt(Halt),
    Broken(Broken),
}

impl From<Halt> for Stop {
    fn from(halt: Halt) -> Stop {
        Stop::Halt(halt)
    }
}

impl From<Broken> for Stop {
    fn from(broken: Broken) -> Stop {
        Stop::Broken(broken)
    }
}

impl Code {
    fn see(&mut self, oracle: &mut Oracle, entry: Entry) -> Result<(), Broken> {
        self.state = mix_bytes(self.state, entry.what.as_bytes());
        oracle.seen(self.key, self.position, entry)?;
        self.position += 1;
        Ok(())
    }

    fn resolve(&mut self, seq: u32) -> Result<(), Broken> {
        if self.open.remove(&seq).is_none() {
            return Err(format!("LAW-7: operation {seq} of {} has a second result", self.id));
        }
        if self.awaited.contains(&seq) {
            self.awaited.retain(|awaited| *awaited != seq);
            self.has_winner = true;
        }
        Ok(())
    }

    fn result(&self) -> Vec<u8> {
        format!("{:x} after {}", self.state, self.deliveries).into_bytes()
    }

    /// Ids of workflows whose end it waits for.
    pub(super) fn awaited_ids(&self) -> impl Iterator<Item = &str> {
        self.open.values().filter_map(|plan| match plan {
            Plan::Child(child) => Some(child.id.as_str()),
            Plan::Watch { id } => Some(id.as_str()),
            Plan::Step(_)
            | Plan::Sleep { .. }
            | Plan::Wait { .. }
            | Plan::Condition { .. }
            | Plan::Signal { .. }
            | Plan::Cancel { .. } => None,
        })
    }
}

fn newest_of_run(engine: &ForeignEngine, (shard, run): (ShardId, RunIx)) -> Lsn {
    engine.group().with(shard, |cell, _| cell.shard.view(run).last)
}

/// The record that an attempt rests on: the failed attempt before it, the recorded start, or the resume.
fn newest_of_attempt(engine: &ForeignEngine, (shard, run): (ShardId, RunIx), seq: u32, is_read_only: bool) -> Lsn {
    if is_read_only {
        return Lsn::NONE;
    }
    engine.group().with(shard, |cell, _| {
        let is_meant = |record: &Record<'_>| match record {
            Record::StepStarted { seq: of, .. } | Record::StepFailed { seq: of, .. } => of.0 == seq,
            Record::Resumed { .. } => true,
            _ => false,
        };
        let newest = cell.shard.history(run).filter(|entry| is_meant(&entry.record)).last();
        newest.map_or(Lsn::NONE, |entry| entry.lsn)
    })
}

/// The record that a delivery hands out.
fn recorded_at(engine: &ForeignEngine, (shard, run): (ShardId, RunIx), delivery: Delivery, payload: &str) -> Lsn {
    if delivery.kind == DeliveryKind::SignalTaken {
        return signal_at(engine, (shard, run), payload);
    }
    engine.group().with(shard, |cell, _| {
        let is_meant = |record: &Record<'_>| match (delivery.kind, record) {
            (DeliveryKind::Start, Record::Start { .. }) | (DeliveryKind::Cancelled, Record::Cancel { .. }) => true,
            (DeliveryKind::StepCompleted | DeliveryKind::StepFailed, Record::StepDone { seq, .. })
            | (
                DeliveryKind::TimerFired | DeliveryKind::WaitTimedOut | DeliveryKind::ConditionTimedOut,
                Record::TimerFired { seq, .. },
            )
            | (DeliveryKind::ChildEnded, Record::ChildDone { seq, .. }) => *seq == delivery.seq,
            (DeliveryKind::UpdateAccepted, Record::Update { number, .. }) => *number == delivery.seq.0,
            _ => false,
        };
        cell.shard.history(run).find(|entry| is_meant(&entry.record)).map_or(Lsn::NONE, |entry| entry.lsn)
    })
}

fn signal_at(engine: &ForeignEngine, (shard, run): (ShardId, RunIx), payload: &str) -> Lsn {
    engine.group().with(shard, |cell, _| {
        let is_meant =
            |record: &Record<'_>| matches!(record, Record::Signal { payload: sent, .. } if *sent == payload.as_bytes());
        cell.shard.history(run).find(|entry| is_meant(&entry.record)).map_or(Lsn::NONE, |entry| entry.lsn)
    })
}

impl Code {
    /// At rest, with no body under way and nothing that falls due: sleeps are over, open steps are paused.
    pub(super) fn check_rest(&self, engine: &ForeignEngine, oracle: &Oracle) -> Result<(), Broken> {
        if self.position != oracle.seen_count(self.key) {
            return Err(format!("LAW-4: replay handed {} things to {}, not all of them", self.position, self.id));
        }
        let (shard, run) = self.place;
        let is_paused = engine.group().with(shard, |cell, _| cell.shard.view(run).marks.is_paused);
        for (seq, plan) in &self.open {
            let waits_for_somebody = match plan {
                Plan::Step(_) => is_paused,
                Plan::Sleep { .. } | Plan::Condition { .. } => false,
                Plan::Wait { timeout_ms, .. } => timeout_ms.is_none(),
                Plan::Child(_) | Plan::Watch { .. } => true,
                Plan::Signal { .. } | Plan::Cancel { .. } => false,
            };
            if !waits_for_somebody {
                let (why, records) = engine.group().with(shard, |cell, _| {
                    let records: Vec<String> =
                        cell.shard.history(run).map(|entry| format!("{} {:?}", entry.lsn, entry.record)).collect();
                    (cell.shard.explain(run), records.join("\n"))
                });
                return Err(format!(
                    "LAW-8: operation {seq} of {} is open and nothing will end it: {plan:?}, {why:?}\n{records}",
                    self.id
                ));
            }
        }
        Ok(())
    }
}
