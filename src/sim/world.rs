//! One seed: an engine, its host, clients, a disk, and everything that can go wrong between them.

use super::disk::{Faults, Rot, SimDisk};
use super::host::{Broken, Host, PAYLOAD_BYTES_SMALL};
use super::oracle::{Fact, Oracle, latest, newest_of_shard};
use super::program::{SIGNALS, some_conflict, some_id, some_input, some_reuse};
use super::rng::{Rng, mix};
use crate::engine::{Clock, Event, Lsn, NewUpdate, Run, StartRequest, Status};
use crate::engine::{Config, Durability, ErrorCode, EventKind, Events, FIELD, FlushMode, ForeignEngine};
use crate::log::{Log, LogOptions, LogState};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What one seed did.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the names say what is counted")]
pub struct Report {
    pub actions: u64,
    pub runs: u64,
    pub records: u64,
    pub bodies: u64,
    pub kills: u64,
    pub power_cuts: u64,
    pub crashes_in_recovery: u64,
    pub clean_closes: u64,
    pub damages: u64,
    pub damages_refused: u64,
    pub failed_calls: u64,
    pub simulated_ms: u64,
    /// Over everything that code and clients saw: equal for two runs of a seed.
    pub digest: u64,
}

/// How a seed is run, drawn from the seed: each has faults of its own.
#[derive(Debug)]
struct Climate {
    shards: u16,
    segment_bytes: u64,
    actions: u64,
    /// A crash about every so many actions; 0: none.
    crash: u64,
    /// One crash in so many comes from within a call to the disk.
    crash_in_call: u64,
    /// Recoveries that crash, one in so many; 0: none.
    crash_in_recovery: u64,
    /// Before one in so many opens a copy of the directory is damaged and opened; 0: never.
    rot: u64,
    /// Bytes that may wait for a full disk.
    staged_bytes_max: usize,
    /// Bytes of the reserve; 0: there is none.
    reserve_bytes: u64,
    /// Largest payload.
    payload_bytes_max: usize,
    /// Records in a journal before its run fails.
    journal_records_max: usize,
    faults: Faults,
}

/// What a client waits for.
enum Ask {
    Start { id: String, lsn: Lsn, blocker: Option<String> },
    Fact(Fact, Lsn),
    Result { id: String, run_id: String },
    Update { id: String, run_id: String, update_id: String },
    Any,
}

pub(super) struct World {
    rng: Rng,
    climate: Climate,
    disk: SimDisk,
    clock: Clock,
    now_ms: i64,
    engine: Option<ForeignEngine>,
    host: Host,
    oracle: Oracle,
    asks: BTreeMap<u32, Ask>,
    token: u32,
    /// A frame that is durable says that everything up to here was durable before it; the newest last.
    vouched: VecDeque<Lsn>,
    /// What was durable when the last process ended.
    durable: Lsn,
    /// Programs have code in this process.
    has_code: bool,
    events: Events,
    report: Report,
    trace: Option<Vec<String>>,
}

/// At most, and one more.
const FRAMES_IN_A_SECTOR: usize = 8;

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
            engine: None,
            host: Host::default(),
            oracle: Oracle::default(),
            asks: BTreeMap::new(),
            token: 0,
            vouched: VecDeque::new(),
            durable: Lsn::NONE,
            has_code: true,
            events: Events::default(),
            report: Report::default(),
            trace: is_traced.then(Vec::new),
        }
    }

    /// What happened, if it was asked for.
    pub(super) fn take_trace(&mut self) -> Vec<String> {
        self.trace.take().unwrap_or_default()
    }

    fn note(&mut self, text: impl FnOnce() -> String) {
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

    fn engine(&mut self) -> &mut ForeignEngine {
        self.engine.as_mut().expect("actions begin with an open engine")
    }

    /// After each action: law 8, and whether the process can go on.
    fn look(&mut self) -> Result<(), Broken> {
        let Some(engine) = &self.engine else { return Ok(()) };
        if let Some((id, seq)) = engine.orphans().into_iter().next() {
            return Err(format!("LAW-8: nothing will wake {id}, operation {}", seq.0));
        }
        if self.disk.is_dead() {
            let is_power_cut = self.rng.one_in(2);
            self.crash(is_power_cut);
        } else if matches!(engine.group().log_state(), LogState::Poisoned(_)) && self.rng.one_in(3) {
            // Sometimes a failed engine is used for some more time: nothing of it may be told.
            let is_power_cut = self.rng.one_in(2);
            self.crash(is_power_cut);
        }
        Ok(())
    }

    fn act(&mut self) -> Result<(), Broken> {
        if self.engine.is_none() {
            return self.open();
        }
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
        match self.rng.below(100) {
            0..=15 => self.client(),
            16..=35 => self.tick(),
            36..=60 => self.turn().map(drop),
            61..=77 => self.body().map(drop),
            78..=89 => {
                self.flush();
                Ok(())
            }
            90..=97 => {
                self.pass_time();
                Ok(())
            }
            98 => self.host.late_body(self.engine.as_mut().expect("it is open"), &mut self.oracle).map(drop),
            _ if self.rng.one_in(3) => self.close(),
            _ => Ok(()),
        }
    }

    fn flush(&mut self) {
        let before = self.engine().durable();
        self.engine().group().flush();
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

    fn advance(&mut self, ms: i64) {
        self.now_ms += ms;
        self.clock.advance_to(self.now_ms);
        self.note(|| format!("{ms} ms pass"));
    }

    fn next_due_ms(&self) -> Option<i64> {
        let engine_ms = self.engine.as_ref().and_then(ForeignEngine::next_due_at_ms);
        [engine_ms, self.host.next_body_ms()].into_iter().flatten().min()
    }

    fn tick(&mut self) -> Result<(), Broken> {
        let mut events = std::mem::take(&mut self.events);
        let engine = self.engine.as_mut().expect("it is open");
        engine.tick(&mut events);
        let mut told = Ok(());
        for event in events.drain() {
            if let Some(trace) = &mut self.trace {
                trace.push(format!("{:>6} event {event:?}", self.now_ms - T0));
            }
            let handled = self.host.handle(engine, &mut self.oracle, event);
            match handled {
                Ok(None) => {}
                Ok(Some(answer)) => {
                    if told.is_ok() {
                        told = answered(&mut self.asks, &mut self.oracle, answer);
                    }
                }
                Err(broken) => told = told.and(Err(broken)),
            }
        }
        self.events = events;
        told
    }

    /// `false`: no code has anything to do.
    fn turn(&mut self) -> Result<bool, Broken> {
        let runnable = self.host.runnable();
        if runnable.is_empty() {
            return Ok(false);
        }
        let slot = *self.rng.pick(&runnable);
        self.host.decide_offers(self.engine.as_mut().expect("it is open"));
        let had_turn = self.host.turn(self.engine.as_mut().expect("it is open"), &mut self.oracle, slot)?;
        let name = self.host.codes.get(&slot).map(|code| code.id.clone());
        self.note(|| format!("turn of slot {} ({name:?}): {had_turn}", slot.0));
        Ok(true)
    }

    /// `false`: no body can begin or end.
    fn body(&mut self) -> Result<bool, Broken> {
        let engine = self.engine.as_mut().expect("it is open");
        let ready = self.host.ready_bodies(engine, self.now_ms);
        if ready.is_empty() {
            return Ok(false);
        }
        let index = *self.rng.pick(&ready);
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>6} body {:?}", self.now_ms - T0, self.host.bodies[index]));
        }
        self.report.bodies += 1;
        self.host.body(engine, &mut self.oracle, index, self.now_ms, &mut self.rng)?;
        Ok(true)
    }

    fn client(&mut self) -> Result<(), Broken> {
        self.token += 2;
        let token = self.token;
        let id = some_id(&mut self.rng);
        let before = latest(self.engine(), &id);
        let known = before.clone().map(|(run_id, _)| run_id);
        let run = Run { id: &id, run_id: "" };
        let what = self.rng.below(18);
        let fact = |make: fn(String, String) -> Fact| known.clone().map(|run_id| make(id.clone(), run_id));
        let (asked, fact) = match what {
            0..=6 => return self.start(token, &id),
            7..=10 => {
                let name = *self.rng.pick(&SIGNALS);
                let dedupe = self.rng.one_in(3).then(|| format!("d{}", self.rng.below(4)));
                let payload = format!("client {token}");
                let sent = self.engine().signal(token, run, name, payload.as_bytes(), dedupe.as_deref(), None);
                let fact = known.clone().map(|run_id| Fact::Signal { id: id.clone(), run_id, payload, dedupe });
                (sent, fact)
            }
            11 => {
                let sent = self.engine().cancel(token, run, "a client says so", None);
                (sent, fact(|id, run_id| Fact::Cancelled { id, run_id }))
            }
            12 => {
                let sent = self.engine().terminate(token, run, "a client says so", None);
                (sent, fact(|id, run_id| Fact::Over { id, run_id }))
            }
            13 => (self.engine().resume(token, run, None), None),
            14..=15 => {
                let (update_id, payload) = (format!("u{}", self.rng.below(6)), format!("client {token}"));
                let update = NewUpdate { name: "set", id: &update_id, payload: payload.as_bytes(), actor: None };
                let sent = self.engine().update(token, run, update);
                self.note(|| format!("client {token}: update {update_id} of {id}: {sent:?}"));
                if let (Ok(()), Some(run_id)) = (sent, known) {
                    self.asks.insert(token, Ask::Update { id, run_id, update_id });
                }
                return Ok(());
            }
            _ => {
                let sent = self.engine().result(token, run);
                self.note(|| format!("client {token}: result of {id}: {sent:?}"));
                if let (Ok(()), Some(run_id)) = (sent, known) {
                    self.asks.insert(token, Ask::Result { id, run_id });
                }
                return Ok(());
            }
        };
        self.note(|| format!("client {token}: command {what} to {id}: {asked:?}"));
        match asked {
            Ok(()) => {
                let lsn = newest_of_shard(self.engine(), &id);
                self.asks.insert(token, fact.map_or(Ask::Any, |fact| Ask::Fact(fact, lsn)));
                Ok(())
            }
            Err(error) => self.refused(error.code),
        }
    }

    fn start(&mut self, token: u32, id: &str) -> Result<(), Broken> {
        let input = some_input(&mut self.rng, 2);
        let request = StartRequest {
            id,
            kind: "p",
            version: 1,
            input: input.as_bytes(),
            reuse: some_reuse(&mut self.rng),
            conflict: some_conflict(&mut self.rng),
            timeout_ms: self.rng.one_in(8).then(|| self.rng.between(0, 10_000)),
            actor: None,
            result_token: self.rng.one_in(2).then_some(token + 1),
            with: None,
        };
        let blocker = latest(self.engine(), id).map(|(run_id, _)| run_id);
        let asked = self.engine().start(token, request);
        self.note(|| format!("client {token}: start {id} {input}: {asked:?}"));
        if let Err(error) = asked {
            return self.refused(error.code);
        }
        let lsn = newest_of_shard(self.engine(), id);
        if let (Some(result_token), Some((run_id, _))) = (request.result_token, latest(self.engine(), id)) {
            self.asks.insert(result_token, Ask::Result { id: id.into(), run_id });
        }
        self.asks.insert(token, Ask::Start { id: id.into(), lsn, blocker });
        Ok(())
    }

    /// A command is refused at once only for what the log is like.
    fn refused(&mut self, code: ErrorCode) -> Result<(), Broken> {
        match (self.engine().group().log_state(), code) {
            (LogState::Poisoned(_), ErrorCode::Storage) | (LogState::Full(_), ErrorCode::StorageFull) => Ok(()),
            (state, code) => Err(format!("LAW-1: refused at once with {code:?}, the log is {state:?}")),
        }
    }

    /// The process is killed; with `is_power_cut` the machine loses its power as well.
    fn crash(&mut self, is_power_cut: bool) {
        self.note(|| if is_power_cut { "the power is cut".into() } else { "the process is killed".into() });
        if let Some(engine) = self.engine.take() {
            self.oracle.before_crash(&engine);
            self.durable = engine.durable();
            // Nothing reaches the disk any more, whatever is dropped.
            self.disk.die_after(Some(1));
            engine.group().abandon();
        }
        self.forget();
        self.report.failed_calls += self.disk.take_errors();
        self.disk.crash(is_power_cut);
        if is_power_cut {
            self.report.power_cuts += 1;
        } else {
            self.report.kills += 1;
        }
    }

    /// What a process has in memory is gone.
    fn forget(&mut self) {
        self.host.forget();
        self.asks.clear();
        self.events = Events::default();
    }

    fn close(&mut self) -> Result<(), Broken> {
        let mut engine = self.engine.take().expect("it is open");
        engine.group().flush();
        self.oracle.before_crash(&engine);
        let closed = engine.close();
        self.durable = engine.durable();
        if closed.is_ok() {
            // The header knows it all, far from the frames.
            self.vouched = std::iter::repeat_n(self.durable, FRAMES_IN_A_SECTOR).collect();
        }
        self.note(|| format!("close: {closed:?}"));
        self.forget();
        if closed.is_ok() {
            self.report.clean_closes += 1;
        }
        if self.disk.is_dead() {
            self.crash(false);
        }
        Ok(())
    }

    fn open(&mut self) -> Result<(), Broken> {
        let dies = self.climate.crash_in_recovery > 0 && self.rng.one_in(self.climate.crash_in_recovery);
        if dies {
            let calls = self.rng.below(40) + 1;
            self.note(|| format!("recovery will die in call {calls}"));
            self.disk.die_after(Some(calls));
        }
        self.has_code = !self.rng.one_in(10) || self.host.is_mended;
        if !dies && self.climate.rot > 0 && self.rng.one_in(self.climate.rot) {
            self.damage()?;
        }
        if !dies && self.rng.one_in(6) {
            self.trim_copy()?;
        }
        self.try_open()
    }

    /// Opens a damaged copy of the directory: it has to be noticed, unless it hit only what nothing vouches for.
    fn damage(&mut self) -> Result<(), Broken> {
        if !self.oracle.knows_before() {
            return Ok(());
        }
        let Some((disk, rot, place)) = self.disk.rotten(&mut self.rng) else { return Ok(()) };
        self.report.damages += 1;
        let config = Config { durability: Durability::Custom(Arc::new(disk)), ..self.config() };
        let opened = ForeignEngine::open(config, Box::new(|| {}));
        let found = opened.as_ref().map(|engine| engine.opened().records).map_err(ToString::to_string);
        self.note(|| format!("a copy with a rotten {place} opens as {found:?}"));
        let vouched = match rot {
            Rot::Bit => self.vouched.back().copied(),
            // It may have the frames in it that vouch for one another.
            Rot::Sector if self.vouched.len() < FRAMES_IN_A_SECTOR => None,
            Rot::Sector => self.vouched.front().copied(),
            Rot::Cut => Some(self.durable),
        };
        let vouched = vouched.unwrap_or_default();
        match opened {
            Ok(engine) => {
                self.oracle.after_damage(&engine, vouched).map_err(|broken| format!("LAW-10: rotten {place}: {broken}"))
            }
            Err(error) if matches!(error.code, ErrorCode::LogCorrupt | ErrorCode::NewerFormat) => {
                self.report.damages_refused += 1;
                Ok(())
            }
            Err(error) => Err(format!("LAW-10: rotten {place}: {error}")),
        }
    }

    /// Trims a copy of the directory and dies in it, without power: what is left has no gap and has all from there on.
    fn trim_copy(&mut self) -> Result<(), Broken> {
        let disk = self.disk.copy(&mut self.rng);
        let log = self.config().log;
        let open = |first: &mut Option<Lsn>| {
            Log::open(Arc::new(disk.clone()), log, &mut |lsn, _, _| {
                first.get_or_insert(lsn);
            })
        };
        let Ok((trimmed, _)) = open(&mut None) else { return Ok(()) };
        let last = trimmed.last();
        let below = Lsn(self.rng.below(last.0 + 1) + 1);
        disk.die_after(Some(self.rng.below(12) + 1));
        let removed = trimmed.trim(below);
        self.note(|| format!("a copy is trimmed below {below} of {last}: {removed:?}"));
        trimmed.abandon();
        disk.crash(true);
        let mut first = None;
        match open(&mut first) {
            Ok((log, _)) if log.last() == last && first.is_none_or(|first| first <= below) => Ok(()),
            Ok((log, _)) => Err(format!("LAW-10: after a trim below {below} it has {first:?} to {}", log.last())),
            Err(error) => Err(format!("LAW-10: after a trim that died: {error}")),
        }
    }

    fn try_open(&mut self) -> Result<(), Broken> {
        let opened = ForeignEngine::open(self.config(), Box::new(|| {}));
        match opened {
            Ok(mut engine) => {
                engine.listen(true);
                let found = engine.opened();
                self.note(|| format!("opened: {found:?}"));
                self.oracle.after_open(&engine)?;
                self.disk.die_after(None);
                self.engine = Some(engine);
                Ok(())
            }
            Err(error) => {
                self.note(|| format!("open failed: {error}"));
                if self.disk.take_errors() == 0 {
                    return Err(format!("LAW-10: it does not open though no call failed: {error}"));
                }
                if self.disk.is_dead() {
                    self.report.crashes_in_recovery += 1;
                }
                if matches!(error.code, ErrorCode::LogCorrupt | ErrorCode::NewerFormat | ErrorCode::BadInput) {
                    return Err(format!("LAW-10: nothing is damaged, it says {error}"));
                }
                let is_power_cut = self.rng.one_in(2);
                self.crash(is_power_cut);
                Ok(())
            }
        }
    }

    fn config(&self) -> Config {
        let (segment_bytes, staged_bytes_max) = (self.climate.segment_bytes, self.climate.staged_bytes_max);
        let reserve_bytes = self.climate.reserve_bytes;
        let log = LogOptions { segment_bytes, staged_bytes_max, reserve_bytes, ..LogOptions::default() };
        Config {
            shards: self.climate.shards,
            log,
            flush: Some(FlushMode::Inline),
            clock: self.clock.clone(),
            payload_bytes_max: self.climate.payload_bytes_max,
            journal_records_max: self.climate.journal_records_max,
            definitions: if self.has_code { vec!["p".into()] } else { Vec::new() },
            ..Config::new(Durability::Custom(Arc::new(self.disk.clone())))
        }
    }

    /// No more faults: everything that is due happens, everything that waits gets what it waits for or is cancelled, and
    /// everything ends.
    fn calm(&mut self) -> Result<(), Broken> {
        self.note(|| "calm".into());
        self.climate.crash = 0;
        self.climate.crash_in_recovery = 0;
        self.disk.set_faults(Faults::default());
        self.disk.die_after(None);
        self.host.is_mended = true;
        self.reopen()?;
        self.settle()?;
        self.check_rest()?;
        for round in 0..30 {
            if self.engine().group().open_runs() == 0 {
                break;
            }
            self.help(round)?;
            self.settle()?;
        }
        let open = self.engine().group().open_runs();
        if open > 0 {
            let ids: Vec<String> =
                self.host.codes.values().map(|code| format!("{} {:?}", code.id, code.open)).collect();
            return Err(format!("liveness: {open} runs never end: {ids:?}"));
        }
        self.count();
        self.oracle.check(self.engine.as_ref().expect("it is open"))?;
        let is_power_cut = self.rng.one_in(2);
        self.crash(is_power_cut);
        self.try_open()?;
        match self.engine().group().open_runs() {
            0 => Ok(()),
            open => Err(format!("LAW-3: {open} runs have ended and are open again")),
        }
    }

    fn count(&mut self) {
        let metrics = self.engine().metrics();
        let sum = |name: &str| metrics.iter().filter(|(key, _)| key.ends_with(name)).map(|(_, value)| value).sum();
        self.report.runs = sum(".runs_started");
        self.report.records = sum("log.last_lsn");
    }

    /// Half of the time the process goes on, unless it cannot.
    fn reopen(&mut self) -> Result<(), Broken> {
        let is_fit = self.has_code
            && !self.disk.is_dead()
            && self.engine.as_ref().is_some_and(|engine| !matches!(engine.group().log_state(), LogState::Poisoned(_)));
        if !is_fit || self.rng.one_in(2) {
            let is_power_cut = self.rng.one_in(2);
            self.crash(is_power_cut);
            self.has_code = true;
            self.try_open()?;
        }
        Ok(())
    }

    /// Runs until nothing moves and nothing will fall due.
    fn settle(&mut self) -> Result<(), Broken> {
        for _ in 0..20_000 {
            self.flush();
            self.tick()?;
            self.look()?;
            let mut has_moved = false;
            while self.turn()? {
                has_moved = true;
            }
            while self.body()? {
                has_moved = true;
            }
            let engine = self.engine();
            if has_moved || engine.durable() < engine.group().last() || self.needs_tick() {
                continue;
            }
            match self.next_due_ms() {
                Some(due_ms) => self.advance((due_ms - self.now_ms).max(0)),
                None => return Ok(()),
            }
        }
        Err("liveness: it never comes to rest".into())
    }

    fn needs_tick(&mut self) -> bool {
        self.engine().has_work()
    }

    /// At rest, with nothing that falls due: whatever is still open waits for somebody outside.
    fn check_rest(&mut self) -> Result<(), Broken> {
        let engine = self.engine.as_ref().expect("it is open");
        let unacknowledged: u64 = engine
            .metrics()
            .iter()
            .filter(|(name, _)| name.ends_with("unacknowledged_messages"))
            .map(|(_, count)| count)
            .sum();
        if unacknowledged > 0 {
            return Err(format!("LAW-3: {unacknowledged} messages never arrived"));
        }
        let (open, loaded) = (engine.group().open_runs(), self.host.codes.len());
        if open != loaded {
            return Err(format!("LAW-8: {open} runs are open, the code of {loaded} is loaded"));
        }
        for code in self.host.codes.values() {
            code.check_rest(engine, &self.oracle)?;
            if let Some(id) = code.awaited_ids().find(|id| !latest(engine, id).is_some_and(|(_, is_open)| is_open)) {
                return Err(format!("LAW-8: {} waits for {id}, which has ended", code.id));
            }
        }
        if self.asks.values().any(|ask| !matches!(ask, Ask::Result { .. })) {
            return Err("LAW-1: a client was never answered".into());
        }
        self.oracle.check(engine)
    }

    /// Gives what is waited for, and cancels in the end.
    fn help(&mut self, round: u64) -> Result<(), Broken> {
        let ids: Vec<String> = self.host.codes.values().map(|code| code.id.clone()).collect();
        for id in ids {
            let run = Run { id: &id, run_id: "" };
            let engine = self.engine.as_mut().expect("it is open");
            let calm = |error| format!("LAW-9: the disk is fine, it says {error}");
            engine.resume(0, run, None).map_err(calm)?;
            if round >= 5 {
                engine.cancel(0, run, "it is over", None).map_err(calm)?;
                continue;
            }
            for name in SIGNALS {
                self.token += 2;
                let payload = format!("help {}", self.token);
                engine.signal(0, run, name, payload.as_bytes(), None, None).map_err(calm)?;
            }
        }
        Ok(())
    }
}

/// A client is told something.
fn answered(asks: &mut BTreeMap<u32, Ask>, oracle: &mut Oracle, event: Event) -> Result<(), Broken> {
    let Some(ask) = asks.remove(&event.a) else { return Ok(()) };
    match (ask, event.kind) {
        (Ask::Start { id, lsn, .. }, EventKind::Reply) => {
            let run_id = event.text.split(FIELD).next().unwrap_or_default().to_owned();
            oracle.told(Fact::Exists { id, run_id }, lsn)
        }
        (Ask::Start { id, lsn, blocker: Some(run_id) }, EventKind::Refuse) => {
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
        (Ask::Fact(Fact::Signal { .. }, _) | Ask::Any | Ask::Result { .. } | Ask::Update { .. }, EventKind::Refuse) => {
            Ok(())
        }
        (Ask::Any, EventKind::Ack) => Ok(()),
        (_, kind) => Err(format!("a client got {kind:?} {:?}, which answers nothing", event.text)),
    }
}

impl Climate {
    fn of(rng: &mut Rng) -> Climate {
        let is_faulty = rng.one_in(2);
        let mut chance = |one_in: &[u64]| if is_faulty { *rng.pick(one_in) } else { 0 };
        let faults = Faults {
            write: chance(&[0, 0, 40, 200]),
            sync: chance(&[0, 20, 60, 200]),
            read: chance(&[0, 0, 0, 300]),
            full: chance(&[0, 0, 3, 30]),
        };
        Climate {
            shards: rng.below(5) as u16 + 1,
            segment_bytes: *rng.pick(&[8 << 10, 12 << 10, 20 << 10]),
            actions: 150 + rng.below(450),
            crash: *rng.pick(&[0, 20, 60, 60, 150]),
            crash_in_call: *rng.pick(&[1, 2, 2, 4]),
            crash_in_recovery: *rng.pick(&[0, 0, 2, 4]),
            rot: *rng.pick(&[0, 2]),
            staged_bytes_max: *rng.pick(&[300, 4 << 10, 64 << 20]),
            reserve_bytes: *rng.pick(&[0, 10 << 10, 32 << 10]),
            payload_bytes_max: *rng.pick(&[PAYLOAD_BYTES_SMALL, 4 << 20]),
            journal_records_max: *rng.pick(&[10, 20, 50_000, 50_000]),
            faults,
        }
    }
}
