//! Step bodies: begun once their gate is durable, ended at a time of their plan, in the ways that bodies end.

use super::host::{Broken, Host, PAYLOAD_BYTES_SMALL};
use super::journal::newest_of_attempt;
use super::oracle::Oracle;
use super::program::{Plan, StepPlan};
use super::rng::Rng;
use crate::engine::{Completed, Delivery, DeliveryKind, FIELD, ForeignEngine, Lsn, Slot};
use crate::record::Seq;

/// A step body that may run, or runs.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub(super) slot: Slot,
    pub(super) seq: u32,
    pub(super) attempt: u32,
    pub(super) lease: u32,
    pub(super) is_interrupted: bool,
    /// What the engine says must be durable.
    pub(super) gate: Lsn,
    /// What must have survived for the body to have run: law 2, by the journal and not by the engine's word.
    pub(super) rests_on: Lsn,
    pub(super) plan: StepPlan,
    pub(super) ends_at_ms: Option<i64>,
}

impl Host {
    /// A body of a replayed or failed step may run: its records have to be durable already.
    pub(super) fn attempt(&mut self, engine: &ForeignEngine, slot: Slot, seq: u32, text: &str) -> Result<(), Broken> {
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

    pub(super) fn overdue(
        &mut self,
        engine: &mut ForeignEngine,
        slot: Slot,
        seq: u32,
        text: &str,
    ) -> Result<(), Broken> {
        let lease: u32 = text.split(FIELD).next().and_then(|lease| lease.parse().ok()).unwrap_or(0);
        let found = self.bodies.iter().position(|body| body.slot == slot && body.seq == seq && body.lease == lease);
        let Some(index) = found else { return Ok(()) };
        let body = self.bodies.remove(index);
        self.late.push(body.clone());
        self.failed(engine, &body, "timed out")
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

enum Outcome {
    Completed(String),
    Failed(String),
    /// `None`: paused.
    Retry(Option<i64>),
}

fn engine_fail(text: &str) -> Outcome {
    Outcome::Failed(text.to_owned())
}
