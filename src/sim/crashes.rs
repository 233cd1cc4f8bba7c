//! Ends of a process and what the next one finds: kills, power cuts, orderly ends, openings that die, copies that are
//! damaged or trimmed.

use super::disk::Rot;
use super::host::Broken;
use super::process::Process;
use super::world::{FRAMES_IN_A_SECTOR, World};
use crate::engine::{CheckpointOptions, Config, Durability, ErrorCode, FlushMode, ForeignEngine, Lsn};
use crate::log::{Log, LogOptions};
use std::sync::Arc;

impl World {
    /// The process is killed; with `is_power_cut` the machine loses its power as well.
    pub(super) fn crash(&mut self, is_power_cut: bool) {
        self.note(|| if is_power_cut { "the power is cut".into() } else { "the process is killed".into() });
        if let Some(process) = self.process.take() {
            let engine = process.engine();
            self.oracle.before_crash(engine);
            self.durable = engine.durable();
            // Nothing reaches the disk any more, whatever is dropped.
            self.disk.die_after(Some(1));
            engine.group().abandon();
        }
        self.asks.clear();
        self.report.failed_calls += self.disk.take_errors();
        self.disk.crash(is_power_cut);
        if is_power_cut {
            self.report.power_cuts += 1;
        } else {
            self.report.kills += 1;
        }
    }

    /// Some of the parts leave before.
    pub(super) fn close(&mut self) -> Result<(), Broken> {
        let mut process = self.process.take().expect("it is open");
        process.engine().group().flush();
        self.oracle.before_crash(process.engine());
        for index in process.present().into_iter().filter(|index| *index > 0) {
            if self.rng.one_in(2) {
                process.thread(index).engine.close().map_err(|error| format!("a part cannot leave: {error}"))?;
            }
        }
        let closed = process.opener().engine.close();
        self.durable = process.engine().durable();
        if closed.is_ok() {
            // The header knows it all, far from the frames.
            self.vouched = std::iter::repeat_n(self.durable, FRAMES_IN_A_SECTOR).collect();
        }
        self.note(|| format!("close: {closed:?}"));
        self.asks.clear();
        drop(process);
        if closed.is_ok() {
            self.report.clean_closes += 1;
        }
        if self.disk.is_dead() {
            self.crash(false);
        }
        Ok(())
    }

    pub(super) fn open(&mut self) -> Result<(), Broken> {
        let dies = self.climate.crash_in_recovery > 0 && self.rng.one_in(self.climate.crash_in_recovery);
        if dies {
            let calls = self.rng.below(40) + 1;
            self.note(|| format!("recovery will die in call {calls}"));
            self.disk.die_after(Some(calls));
        }
        self.has_code = !self.rng.one_in(10) || self.is_mended;
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
        let found = opened.as_ref().map(|engine| engine.opened().last).map_err(ToString::to_string);
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
        let mut oldest = None;
        let Ok((trimmed, _)) = open(&mut oldest) else { return Ok(()) };
        let last = trimmed.last();
        let below = Lsn(self.rng.below(last.0 + 1) + 1);
        disk.die_after(Some(self.rng.below(12) + 1));
        let removed = trimmed.trim(below);
        self.note(|| format!("a copy is trimmed below {below} of {last}: {removed:?}"));
        trimmed.abandon();
        disk.crash(true);
        let mut first = None;
        match open(&mut first) {
            Ok((log, _)) if log.last() == last && first.is_none_or(|first| first <= below || Some(first) == oldest) => {
                Ok(())
            }
            Ok((log, _)) => Err(format!("LAW-10: after a trim below {below} it has {first:?} to {}", log.last())),
            Err(error) => Err(format!("LAW-10: after a trim that died: {error}")),
        }
    }

    pub(super) fn try_open(&mut self) -> Result<(), Broken> {
        let workers = self.rng.below(u64::from(self.climate.workers_max) + 1) as u16;
        match Process::open(Config { workers, ..self.config() }, self.is_mended) {
            Ok(process) => {
                let found = process.engine().opened();
                self.note(|| format!("opened for {workers} workers: {found:?}"));
                self.oracle.after_open(process.engine())?;
                self.disk.die_after(None);
                self.process = Some(process);
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

    /// What the checkpointer does, at any time.
    pub(super) fn checkpoint(&mut self) {
        if self.climate.crash > 0 && self.rng.one_in(6) {
            // Anywhere in it, also while the log is trimmed; a checkpoint makes a hundred calls or so.
            let calls = self.rng.below(150) + 1;
            self.note(|| format!("the checkpoint may die in call {calls}"));
            self.disk.die_after(Some(calls));
        }
        let made = self.engine().group().checkpoint();
        self.report.checkpoints += u64::from(matches!(made, Ok(true)));
        self.report.checkpoints_failed += u64::from(made.is_err());
        self.note(|| format!("checkpoint: {made:?}"));
    }

    pub(super) fn config(&self) -> Config {
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
            checkpoints: (self.climate.checkpoint > 0)
                .then_some(CheckpointOptions { log_bytes_max: 1, kept_runs: self.climate.kept_runs }),
            definitions: if self.has_code { vec!["p".into()] } else { Vec::new() },
            ..Config::new(Durability::Custom(Arc::new(self.disk.clone())))
        }
    }
}
