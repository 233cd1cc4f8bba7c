//! The calm end of a seed: nothing fails any more, everything that waits gets what it waits for, and everything ends.

use super::clients::Ask;
use super::disk::Faults;
use super::host::Broken;
use super::oracle::latest;
use super::program::SIGNALS;
use super::world::World;
use crate::engine::{ForeignEngine, Place, Run};
use crate::log::LogState;
use crate::record::ShardId;

impl World {
    /// No more faults: everything that is due happens, everything that waits gets what it waits for or is cancelled, and
    /// everything ends.
    pub(super) fn calm(&mut self) -> Result<(), Broken> {
        self.note(|| "calm".into());
        self.climate.crash = 0;
        self.climate.crash_in_recovery = 0;
        self.disk.set_faults(Faults::default());
        self.disk.die_after(None);
        self.is_mended = true;
        self.reopen()?;
        self.man_all()?;
        self.process().threads_mut().for_each(|thread| thread.host.is_mended = true);
        self.settle()?;
        self.check_rest()?;
        for round in 0..30 {
            if self.engine().group().open_runs() == 0 {
                break;
            }
            self.help(round)?;
            // Rights change hands while others sleep.
            if self.engine().workers() > 0 && self.rng.one_in(2) {
                self.unrest()?;
                self.man_all()?;
            }
            self.settle()?;
        }
        let open = self.engine().group().open_runs();
        if open > 0 {
            let codes = self.process().threads().flat_map(|thread| thread.host.codes.values());
            let ids: Vec<String> = codes.map(|code| format!("{} {:?}", code.id, code.open)).collect();
            return Err(format!("liveness: {open} runs never end: {ids:?}"));
        }
        self.count();
        let World { oracle, process, .. } = self;
        oracle.check(process.as_ref().expect("it is open").engine())?;
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
            && self
                .process
                .as_ref()
                .is_some_and(|process| !matches!(process.engine().group().log_state(), LogState::Poisoned(_)));
        if !is_fit || self.rng.one_in(2) {
            let is_power_cut = self.rng.one_in(2);
            self.crash(is_power_cut);
            self.has_code = true;
            self.try_open()?;
        }
        Ok(())
    }

    /// Runs until nothing moves and nothing will fall due. Threads that have nothing to do sleep until they are woken:
    /// one that sleeps and has work was not.
    fn settle(&mut self) -> Result<(), Broken> {
        // What a full disk had left waiting comes first, as on a host that tries again by itself.
        self.flush();
        for _ in 0..20_000 {
            let mut has_moved = false;
            for index in self.process().present() {
                has_moved |= self.work(index)?;
            }
            self.look()?;
            if has_moved {
                continue;
            }
            if let Some(thread) = self.process().threads().find(|thread| thread.engine.has_work()) {
                let place = Place::of(thread.engine.first_token()).0;
                return Err(format!("LAW-8: thread {place} sleeps and nobody wakes it, though it has work"));
            }
            let engine = self.engine();
            if engine.durable() < engine.group().last() {
                // Nobody waits for it: the next one who does takes it along.
                self.flush();
                continue;
            }
            match self.next_due_ms() {
                Some(due_ms) => self.advance((due_ms - self.now_ms).max(0)),
                None => return Ok(()),
            }
        }
        Err("liveness: it never comes to rest".into())
    }

    /// All that a thread has to do, if it is awake or something has fallen due, until it sleeps. `false`: it slept.
    fn work(&mut self, index: usize) -> Result<bool, Broken> {
        let now_ms = self.now_ms;
        if !self.process().thread(index).sleeps_no_more(now_ms) {
            return Ok(false);
        }
        self.tick(index)?;
        while self.turn_of(index)? || self.body_of(index)? {}
        self.idle(index);
        Ok(true)
    }

    /// At rest, with nothing that falls due: whatever is still open waits for somebody outside.
    fn check_rest(&mut self) -> Result<(), Broken> {
        let World { process, oracle, asks, .. } = self;
        let process = process.as_ref().expect("it is open");
        let engine = process.engine();
        let unacknowledged: u64 = engine
            .metrics()
            .iter()
            .filter(|(name, _)| name.ends_with("unacknowledged_messages"))
            .map(|(_, count)| count)
            .sum();
        if unacknowledged > 0 {
            return Err(format!("LAW-3: {unacknowledged} messages never arrived"));
        }
        let loaded: usize = process.threads().map(|thread| thread.host.codes.len()).sum();
        let (open, held) = (engine.group().open_runs(), held_runs(engine));
        if open != loaded + held {
            return Err(format!(
                "LAW-8: {open} runs are open, the code of {loaded} is loaded, {held} are paused or set aside"
            ));
        }
        for code in process.threads().flat_map(|thread| thread.host.codes.values()) {
            code.check_rest(engine, oracle)?;
            if let Some(id) = code.awaited_ids().find(|id| !latest(engine, id).is_some_and(|(_, is_open)| is_open)) {
                return Err(format!("LAW-8: {} waits for {id}, which has ended", code.id));
            }
        }
        let waits_for_nobody = |ask: &Ask| match ask {
            Ask::Result { .. } => false,
            Ask::Update { id, .. } => !latest_is_held(engine, id),
            Ask::Start { .. } | Ask::Fact(..) | Ask::Branch(_) | Ask::Query | Ask::Any => true,
        };
        if let Some((token, ask)) = asks.iter().find(|(_, ask)| waits_for_nobody(ask)) {
            return Err(format!("LAW-1: the client of request {token:x} was never answered: {ask:?}"));
        }
        oracle.check(engine)
    }

    /// Gives what is waited for, and cancels in the end.
    fn help(&mut self, round: u64) -> Result<(), Broken> {
        for id in open_ids(self.engine()) {
            let run = Run { id: &id, run_id: "" };
            let calm = |error| format!("LAW-9: the disk is fine, it says {error}");
            let present = self.process().present();
            let thread = *self.rng.pick(&present);
            self.process().thread(thread).rouse();
            let token = self.process().thread(thread).tokens();
            self.process().thread(thread).engine.resume(token, run, None).map_err(calm)?;
            if round >= 5 {
                let token = self.process().thread(thread).tokens();
                self.process().thread(thread).engine.cancel(token, run, "it is over", None).map_err(calm)?;
                continue;
            }
            for name in SIGNALS {
                self.number += 1;
                let payload = format!("help {}", self.number);
                let thread = self.process().thread(thread);
                let token = thread.tokens();
                thread.engine.signal(token, run, name, payload.as_bytes(), None, None).map_err(calm)?;
            }
        }
        Ok(())
    }
}

fn shards(engine: &ForeignEngine) -> impl Iterator<Item = ShardId> + use<> {
    (0..engine.group().shard_count()).map(ShardId)
}

/// Runs that somebody has paused, and those that were set aside.
fn held_runs(engine: &ForeignEngine) -> usize {
    let of_shard = |shard| {
        engine.group().with(shard, |cell, _| {
            cell.shard.views().filter(|(run, view)| cell.shard.is_held(*run) || view.marks.is_stuck).count()
        })
    };
    shards(engine).map(of_shard).sum()
}

fn latest_is_held(engine: &ForeignEngine, id: &str) -> bool {
    let target = crate::machine::Target { id, run: None };
    engine
        .group()
        .with(engine.group().shard_of(id), |cell, _| cell.shard.find(target).is_ok_and(|run| cell.shard.is_held(run)))
}

/// Workflows that have not ended.
fn open_ids(engine: &ForeignEngine) -> Vec<String> {
    let of_shard = |shard| {
        engine.group().with(shard, |cell, _| {
            let open = cell.shard.views().filter(|(_, view)| view.status.is_none());
            open.map(|(_, view)| view.id.to_owned()).collect::<Vec<_>>()
        })
    };
    shards(engine).flat_map(of_shard).collect()
}
