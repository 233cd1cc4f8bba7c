//! One seed: a process with its threads, clients, a disk, and everything that can go wrong between them.

use super::clients::{Ask, answered};
use super::climate::Climate;
use super::disk::SimDisk;
use super::host::Broken;
use super::oracle::Oracle;
use super::process::{Process, Thread};
use super::rng::{Rng, mix};
use crate::engine::{Clock, ForeignEngine, Lsn, Slot, Token};
use crate::log::LogState;
use std::collections::{BTreeMap, VecDeque};

/// What one seed did.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the names say what is counted")]
pub struct Report {
    pub actions: u64,
    pub runs: u64,
    pub records: u64,
    pub bodies: u64,
    pub kills: u64,
    pub losses: u64,
    pub seizures: u64,
    pub moved_shards: u64,
    pub power_cuts: u64,
    pub crashes_in_recovery: u64,
    pub clean_closes: u64,
    pub checkpoints: u64,
    pub checkpoints_failed: u64,
    pub damages: u64,
    pub damages_refused: u64,
    pub failed_calls: u64,
    pub simulated_ms: u64,
    /// Over everything that code and clients saw: equal for two runs of a seed.
    pub digest: u64,
}

pub(super) struct World {
    pub(super) rng: Rng,
    pub(super) climate: Climate,
    pub(super) disk: SimDisk,
    pub(super) clock: Clock,
    pub(super) now_ms: i64,
    pub(super) process: Option<Process>,
    pub(super) oracle: Oracle,
    pub(super) asks: BTreeMap<Token, Ask>,
    /// What clients send is told apart by it.
    pub(super) number: u64,
    /// A frame that is durable says that everything up to here was durable before it; the newest last.
    pub(super) vouched: VecDeque<Lsn>,
    /// What was durable when the last process ended.
    pub(super) durable: Lsn,
    /// Programs have code in this process.
    pub(super) has_code: bool,
    /// Bodies succeed from now on, whatever their plan says.
    pub(super) is_mended: bool,
    pub(super) report: Report,
    trace: Option<Vec<String>>,
}

/// At most, and one more.
pub(super) const FRAMES_IN_A_SECTOR: usize = 8;

const T0: i64 = 1_700_000_000_000;

impl World {
    pub(super) fn new(seed: u64, is_traced: bool) -> World {
        let mut rng = Rng::new(mix(seed));
        let climate = Climate::of(&mut rng);
        World {
            disk: SimDisk::new(rng.fork(1)),
            clock: Clock::virtual_at(T0),
            now_ms: T0,
            climate,
            rng,
            process: None,
            oracle: Oracle::default(),
            asks: BTreeMap::new(),
            number: 0,
            vouched: VecDeque::new(),
            durable: Lsn::NONE,
            has_code: true,
            is_mended: false,
            report: Report::default(),
            trace: is_traced.then(Vec::new),
        }
    }

    /// What happened, if it was asked for.
    pub(super) fn take_trace(&mut self) -> Vec<String> {
        self.trace.take().unwrap_or_default()
    }

    pub(super) fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>6} {}", self.now_ms - T0, text()));
        }
    }

    /// Everything: a stormy time, then a calm one in which everything has to end.
    pub(super) fn run(&mut self) -> Result<Report, Broken> {
        let climate = format!("{:?}", self.climate);
        self.note(|| climate);
        self.disk.set_faults(self.climate.faults);
        for _ in 0..self.climate.actions {
            self.report.actions += 1;
            self.act()?;
            self.look()?;
        }
        self.calm()?;
        self.report.simulated_ms = (self.now_ms - T0) as u64;
        self.report.failed_calls += self.disk.take_errors();
        self.report.digest = self.oracle.digest;
        Ok(self.report)
    }

    pub(super) fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("actions begin with an open directory")
    }

    pub(super) fn engine(&self) -> &ForeignEngine {
        self.process.as_ref().expect("actions begin with an open directory").engine()
    }

    /// After each action: law 8, and whether the process can go on.
    pub(super) fn look(&mut self) -> Result<(), Broken> {
        let Some(process) = &self.process else { return Ok(()) };
        if let Some((id, seq)) = process.engine().orphans().into_iter().next() {
            return Err(format!("LAW-8: nothing will wake {id}, operation {}", seq.0));
        }
        if self.disk.is_dead() {
            let is_power_cut = self.rng.one_in(2);
            self.crash(is_power_cut);
        } else if matches!(process.engine().group().log_state(), LogState::Poisoned(_)) && self.rng.one_in(3) {
            // Sometimes a failed engine is used for some more time: nothing of it may be told.
            let is_power_cut = self.rng.one_in(2);
            self.crash(is_power_cut);
        }
        Ok(())
    }

    fn act(&mut self) -> Result<(), Broken> {
        let Some(process) = &self.process else { return self.open() };
        let has_parts = process.engine().workers() > 0;
        if self.climate.crash > 0 && self.rng.one_in(self.climate.crash) {
            if self.rng.one_in(self.climate.crash_in_call) {
                let calls = self.rng.below(12) + 1;
                self.note(|| format!("will die in call {calls}"));
                self.disk.die_after(Some(calls));
            } else {
                let is_power_cut = self.rng.one_in(2);
                self.crash(is_power_cut);
            }
            return Ok(());
        }
        if has_parts && self.rng.one_in(self.climate.unrest) {
            return self.unrest();
        }
        if self.climate.checkpoint > 0 && self.rng.one_in(self.climate.checkpoint) {
            self.checkpoint();
            return Ok(());
        }
        match self.rng.below(100) {
            0..=15 => self.client(),
            16..=35 => {
                let index = self.some_thread();
                self.tick(index)
            }
            36..=60 => {
                let index = self.some_thread();
                self.turn_of(index).map(drop)
            }
            61..=77 => {
                let index = self.some_thread();
                self.body_of(index).map(drop)
            }
            78..=85 => {
                self.flush();
                Ok(())
            }
            86..=89 => {
                let index = self.some_thread();
                self.idle(index);
                Ok(())
            }
            90..=97 => {
                self.pass_time();
                Ok(())
            }
            98 => {
                let index = self.some_thread();
                let World { process, oracle, .. } = self;
                let thread = process.as_mut().expect("it is open").thread(index);
                thread.rouse();
                let Thread { engine, host, .. } = thread;
                host.late_body(engine, oracle).map(drop)
            }
            _ if self.rng.one_in(3) => self.close(),
            _ => Ok(()),
        }
    }

    fn some_thread(&mut self) -> usize {
        let present = self.process().present();
        *self.rng.pick(&present)
    }

    /// The log's thread, or somebody who has nothing else to do.
    pub(super) fn flush(&mut self) {
        let before = self.engine().durable();
        self.engine().group().flush();
        self.flushed(before);
    }

    /// A thread has nothing else to do.
    pub(super) fn idle(&mut self, index: usize) {
        let (before, now_ms) = (self.engine().durable(), self.now_ms);
        self.process().thread(index).idle(now_ms);
        self.flushed(before);
    }

    fn flushed(&mut self, before: Lsn) {
        let durable = self.engine().durable();
        if durable > before {
            self.vouched.push_back(before);
            if self.vouched.len() > FRAMES_IN_A_SECTOR {
                self.vouched.pop_front();
            }
        }
        self.note(|| format!("flush: {durable}"));
    }

    fn pass_time(&mut self) {
        let next_ms = self.next_due_ms();
        let ms = match next_ms {
            Some(due_ms) if self.rng.one_in(2) => (due_ms - self.now_ms).max(0),
            Some(_) | None => self.rng.between(0, 400),
        };
        self.advance(ms);
    }

    pub(super) fn advance(&mut self, ms: i64) {
        self.now_ms += ms;
        self.clock.advance_to(self.now_ms);
        self.note(|| format!("{ms} ms pass"));
    }

    pub(super) fn next_due_ms(&self) -> Option<i64> {
        let of_thread =
            |thread: &Thread| [thread.engine.next_due_at_ms(), thread.host.next_body_ms()].into_iter().flatten().min();
        self.process.as_ref()?.threads().filter_map(of_thread).min()
    }

    pub(super) fn tick(&mut self, index: usize) -> Result<(), Broken> {
        let World { process, oracle, asks, trace, now_ms, .. } = self;
        let thread = process.as_mut().expect("it is open").thread(index);
        thread.rouse();
        let Thread { engine, host, events, .. } = thread;
        engine.tick(events);
        let mut told = Ok(());
        for event in events.drain() {
            if let Some(trace) = trace {
                trace.push(format!("{:>6} thread {index}: event {event:?}", *now_ms - T0));
            }
            match host.handle(engine, oracle, event) {
                Ok(None) => {}
                Ok(Some(answer)) => {
                    if told.is_ok() {
                        told = answered(asks, oracle, answer);
                    }
                }
                Err(broken) => told = told.and(Err(broken)),
            }
        }
        told
    }

    /// `false`: no code of the thread has anything to do.
    pub(super) fn turn_of(&mut self, index: usize) -> Result<bool, Broken> {
        let World { process, oracle, rng, .. } = self;
        let thread = process.as_mut().expect("it is open").thread(index);
        thread.rouse();
        let Thread { engine, host, .. } = thread;
        let runnable = host.runnable();
        if runnable.is_empty() {
            return Ok(false);
        }
        let slot: Slot = *rng.pick(&runnable);
        host.decide_offers(engine);
        let had_turn = host.turn(engine, oracle, slot)?;
        let name = host.codes.get(&slot).map(|code| code.id.clone());
        self.note(|| format!("thread {index}: turn of slot {} ({name:?}): {had_turn}", slot.0));
        Ok(true)
    }

    /// `false`: no body of the thread can begin or end.
    pub(super) fn body_of(&mut self, index: usize) -> Result<bool, Broken> {
        let World { process, oracle, rng, trace, report, now_ms, .. } = self;
        let thread = process.as_mut().expect("it is open").thread(index);
        thread.rouse();
        let Thread { engine, host, .. } = thread;
        let ready = host.ready_bodies(engine, *now_ms);
        if ready.is_empty() {
            return Ok(false);
        }
        let body = *rng.pick(&ready);
        if let Some(trace) = trace {
            trace.push(format!("{:>6} thread {index}: body {:?}", *now_ms - T0, host.bodies[body]));
        }
        report.bodies += 1;
        host.body(engine, oracle, body, *now_ms, rng)?;
        Ok(true)
    }
}
