//! The code of one run in memory: a program, how far it is, and what it asks for.

use super::bodies::Body;
use super::host::{Broken, Host};
use super::journal::{newest_of_run, signal_at};
use super::oracle::{Entry, Oracle};
use super::program::{Plan, Program};
use super::rng::mix_bytes;
use crate::engine::{Delivery, ForeignEngine, Halt, Lsn, Slot, StepMode, TimerMode};
use crate::machine::{OpenedStep, RunIx};
use crate::record::{ChildSpec, Sending, Seq, ShardId, Status};
use std::collections::BTreeMap;

/// The code of one run, in memory.
pub(super) struct Code {
    pub(super) id: String,
    pub(super) run_id: String,
    pub(super) place: (ShardId, RunIx),
    /// The run's number with the oracle.
    pub(super) key: usize,
    pub(super) program: Program,
    pub(super) stage: usize,
    /// Operations of the stage that it waits for.
    pub(super) awaited: Vec<u32>,
    pub(super) has_winner: bool,
    pub(super) asked: u32,
    pub(super) open: BTreeMap<u32, Plan>,
    pub(super) deliveries: u32,
    /// What the code has seen so far.
    pub(super) state: u64,
    /// Position in the trace of the run.
    pub(super) position: usize,
    pub(super) is_cancelled: bool,
    /// The code has been asked and there was nothing, or it was told that there is nothing.
    pub(super) is_at_rest: bool,
    /// What was taken with the result of a step and waits for its turn.
    pub(super) taken: Option<Delivery>,
    /// Something was recorded since the last delivery was taken.
    pub(super) has_news: bool,
}

/// Why a turn did not come to its end.
pub(super) enum Stop {
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

impl Host {
    pub(super) fn open_stage(
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
    pub(super) fn go_on(
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
                if let Some(input) = &code.program.continues {
                    engine.continue_as_new(slot, 1, None, input.as_bytes())?;
                    return Ok(true);
                }
                engine.finish(slot, code.program.status, &code.result())?;
                return Ok(true);
            }
            self.open_stage(engine, oracle, slot, code)?;
        }
        Ok(false)
    }

    /// Asks for an operation. `false`: it is done at once.
    pub(super) fn open(
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
                let mode = TimerMode { is_absolute: *is_absolute, is_limit: false };
                engine.open_timer(slot, seq, if *is_absolute { turn_ms + ms } else { *ms }, mode)?;
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
            Plan::Attributes(set) => {
                engine.set_attributes(slot, seq, set)?;
                return Ok(false);
            }
        }
        code.open.insert(seq.0, plan.clone());
        Ok(true)
    }
}

impl Code {
    pub(super) fn see(&mut self, oracle: &mut Oracle, entry: Entry) -> Result<(), Broken> {
        self.state = mix_bytes(self.state, entry.what.as_bytes());
        oracle.seen(self.key, self.position, entry)?;
        self.position += 1;
        Ok(())
    }

    pub(super) fn resolve(&mut self, seq: u32) -> Result<(), Broken> {
        if self.open.remove(&seq).is_none() {
            return Err(format!("LAW-7: operation {seq} of {} has a second result", self.id));
        }
        if self.awaited.contains(&seq) {
            self.awaited.retain(|awaited| *awaited != seq);
            self.has_winner = true;
        }
        Ok(())
    }

    pub(super) fn result(&self) -> Vec<u8> {
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
            | Plan::Attributes(_)
            | Plan::Cancel { .. } => None,
        })
    }
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
                Plan::Signal { .. } | Plan::Cancel { .. } | Plan::Attributes(_) => false,
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
