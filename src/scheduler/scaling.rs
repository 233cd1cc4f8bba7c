//! How many slots a queue should have: from what arrives, what waits, and how long it takes.
//!
//! With λ arrivals a second, smoothed, and a service time s, λ·s slots are busy on the average (Little's law), and
//! λ·s / 0.75 leave a quarter free. What waits is to be gone in the drain time, and in each class with a longest wait
//! before that is over.

use super::engine::Engine;
use super::output::Output;
use super::task::QueueIx;
use super::timers::{Timer, TimerNo};
use std::collections::VecDeque;

/// Weight of the newest arrivals in the smoothed rate.
const SMOOTHING: f64 = 0.3;
/// Part of the slots that arrivals are to keep busy.
const UTILISATION: f64 = 0.75;
/// Fewer slots than that for arrivals are none: a rate that fades never is 0.
const TRICKLE: f64 = 0.01;
/// Slots that may be added at once, however few there are. Otherwise they are doubled at most.
const RAISE_MIN: u32 = 4;
/// Lowered only to the most that was wanted so long.
const LOOK_BACK_MS: i64 = 60_000;
/// Lowered by one in so long at most.
const LOWER_EVERY_MS: i64 = 30_000;
/// Reserved starts count so long before their time.
const LOOK_AHEAD_MS: i64 = 60_000;

/// How a queue follows its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleConfig {
    /// Fewest slots.
    pub min: u32,
    /// Most slots.
    pub max: u32,
    /// Time between two looks at the load.
    pub interval_ms: u32,
    /// What waits should be gone in this time.
    pub drain_ms: u32,
    /// Longest wait of each class, from critical to low.
    pub slo_ms: [Option<u32>; 4],
    /// Whether somebody outside provides the slots, and says by [`Engine::handle_workers`] how many there are. Until then
    /// there are none.
    pub is_outside: bool,
}

impl ScaleConfig {
    /// One that looks every second and drains in half a minute.
    #[must_use]
    pub fn between(min: u32, max: u32) -> ScaleConfig {
        ScaleConfig { min, max, interval_ms: 1_000, drain_ms: 30_000, slo_ms: [None; 4], is_outside: false }
    }

    pub(super) fn complaint(&self) -> Option<&'static str> {
        if self.max == 0 || self.min > self.max {
            return Some("the most slots must be 1 or more, and not fewer than the fewest");
        }
        if self.interval_ms == 0 || self.drain_ms == 0 || self.slo_ms.contains(&Some(0)) {
            return Some("the times by which a queue scales must be 1 ms or more");
        }
        None
    }

    /// Slots to begin with.
    fn first(&self) -> u32 {
        self.min.max(1)
    }
}

/// What is looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    /// What waits for a slot or for its next attempt, by class.
    backlog: [u64; 4],
    busy: u32,
    service_ms: i64,
    /// Reserved starts at one time, soon.
    reserved: u32,
    /// Nothing starts: what waits and what comes need no slots.
    is_paused: bool,
}

/// The slots that a queue wants, and why.
#[derive(Debug)]
pub(super) struct Scaling {
    config: ScaleConfig,
    /// Slots that were asked for last.
    target: u32,
    arrived: u64,
    arrived_per_s: f64,
    looked_ms: i64,
    lowered_ms: i64,
    /// What was wanted when, of the last [`LOOK_BACK_MS`]: only what nothing later exceeds, so the first is the most.
    recent: VecDeque<(i64, u32)>,
    pub(super) timer: TimerNo,
}

impl Scaling {
    pub(super) fn new(config: ScaleConfig) -> Scaling {
        Scaling {
            config,
            target: config.first(),
            arrived: 0,
            arrived_per_s: 0.0,
            looked_ms: i64::MIN,
            lowered_ms: i64::MIN,
            recent: VecDeque::new(),
            timer: TimerNo::NONE,
        }
    }

    /// Why it cannot have these bounds.
    pub(super) fn complaint_about(&self, (min, max): (u32, u32)) -> Option<&'static str> {
        ScaleConfig { min, max, ..self.config }.complaint()
    }

    /// Slots to begin with, before anybody outside provides some.
    pub(super) fn provided(&self) -> u32 {
        if self.config.is_outside { 0 } else { self.target }
    }

    /// Looks at the load. Returns the slots to ask for when they change.
    fn look(&mut self, now_ms: i64, load: &Load) -> Option<u32> {
        let wanted = self.wanted(now_ms, load);
        self.remember(now_ms, wanted);
        let most = self.recent.front().map_or(wanted, |(_, most)| *most);
        let target = if wanted > self.target {
            wanted.min(self.target.saturating_add(self.target.max(RAISE_MIN)))
        } else if most < self.target && now_ms.saturating_sub(self.lowered_ms) >= LOWER_EVERY_MS {
            self.lowered_ms = now_ms;
            self.target - 1
        } else {
            self.target
        };
        (target != self.target).then(|| {
            self.target = target;
            target
        })
    }

    fn wanted(&mut self, now_ms: i64, load: &Load) -> u32 {
        let interval_ms = i64::from(self.config.interval_ms);
        let passed_s =
            now_ms.saturating_sub(self.looked_ms).clamp(interval_ms, LOOK_BACK_MS.max(interval_ms)) as f64 / 1e3;
        self.looked_ms = now_ms;
        let rate = std::mem::take(&mut self.arrived) as f64 / passed_s;
        self.arrived_per_s += SMOOTHING * (rate - self.arrived_per_s);
        let service_s = load.service_ms.max(1) as f64 / 1e3;
        let slots_for = |tasks: u64, within_ms: u32| (tasks as f64 * service_s / (f64::from(within_ms) / 1e3)).ceil();
        let base = self.arrived_per_s * service_s / UTILISATION;
        let base = if base < TRICKLE || load.is_paused { 0.0 } else { base.ceil() };
        let drain = slots_for(load.backlog.iter().sum(), self.config.drain_ms);
        let mut before = 0;
        let mut promised = 0.0f64;
        for (backlog, slo_ms) in load.backlog.iter().zip(self.config.slo_ms) {
            before += backlog;
            if let Some(slo_ms) = slo_ms.filter(|_| *backlog > 0) {
                promised = promised.max(slots_for(before, slo_ms));
            }
        }
        // A cast of a float takes the nearest number there is.
        let wanted = (base + drain).max(promised).max(f64::from(load.busy)) as u32;
        wanted.saturating_add(load.reserved).clamp(self.config.min, self.config.max)
    }

    fn remember(&mut self, now_ms: i64, wanted: u32) {
        while self.recent.back().is_some_and(|(_, earlier)| *earlier <= wanted) {
            self.recent.pop_back();
        }
        self.recent.push_back((now_ms, wanted));
        while self.recent.front().is_some_and(|(at_ms, _)| now_ms.saturating_sub(*at_ms) >= LOOK_BACK_MS) {
            self.recent.pop_front();
        }
    }

    /// Whether looking again would change nothing until something arrives.
    fn is_at_rest(&self, load: &Load) -> bool {
        let is_idle = load.busy == 0 && load.reserved == 0 && load.backlog.iter().all(|backlog| *backlog == 0);
        let fades = self.arrived_per_s * (load.service_ms.max(1) as f64 / 1e3) / UTILISATION < TRICKLE;
        is_idle && fades && self.target == self.config.min
    }
}

impl Engine {
    /// Something came that a queue may need slots for.
    pub(super) fn feel_load(&mut self, ix: QueueIx, arrived: u64) {
        let now_ms = self.now_ms;
        let Some(scaling) = &mut self.queues[usize::from(ix.0)].scaling else { return };
        scaling.arrived += arrived;
        if scaling.timer == TimerNo::NONE {
            // Without a slot it would wait for the look.
            let after_ms = if scaling.target == 0 { 0 } else { i64::from(scaling.config.interval_ms) };
            scaling.looked_ms = now_ms;
            scaling.timer = self.timers.set(now_ms.saturating_add(after_ms), Timer::Scale(ix));
        }
    }

    /// A look at the load of a queue is due.
    pub(super) fn scale(&mut self, ix: QueueIx) {
        let (now_ms, load) = (self.now_ms, self.load(ix));
        let first_ms = self.queue(ix).reservations.first_ms_from(now_ms);
        let Some(scaling) = &mut self.queues[usize::from(ix.0)].scaling else { return };
        let from = scaling.target;
        let target = scaling.look(now_ms, &load);
        let (config, is_at_rest) = (scaling.config, scaling.is_at_rest(&load));
        let next_ms = if is_at_rest {
            first_ms.map(|first_ms| first_ms.saturating_sub(LOOK_AHEAD_MS).max(now_ms.saturating_add(1)))
        } else {
            Some(now_ms.saturating_add(i64::from(config.interval_ms)))
        };
        let timer = next_ms.map_or(TimerNo::NONE, |next_ms| self.timers.set(next_ms, Timer::Scale(ix)));
        if let Some(scaling) = &mut self.queues[usize::from(ix.0)].scaling {
            scaling.timer = timer;
        }
        if let Some(to) = target {
            self.ask_for_slots(ix, from, to);
        }
    }

    /// The bounds of a queue are others. One that does not follow its load now has them for when it does.
    pub(super) fn apply_queue_bounds(&mut self, ix: QueueIx, bounds: (u32, u32)) {
        let is_restoring = self.is_restoring;
        let queue = self.queue_mut(ix);
        queue.bounds_set = Some(bounds);
        let Some(scaling) = &mut queue.scaling else { return };
        (scaling.config.min, scaling.config.max) = bounds;
        queue.config.concurrency = bounds.1;
        if is_restoring {
            // It begins as an open lets it begin.
            scaling.target = scaling.config.first();
            let slots = scaling.provided();
            self.set_workers(ix, &[], slots);
        }
    }

    /// Brings the slots of a queue into its bounds at once; anything else is for the looks at its load.
    pub(super) fn heed_bounds(&mut self, ix: QueueIx) {
        let Some(scaling) = &mut self.queue_mut(ix).scaling else { return };
        let from = scaling.target;
        scaling.target = from.clamp(scaling.config.min, scaling.config.max);
        let to = scaling.target;
        if to != from {
            self.ask_for_slots(ix, from, to);
        }
        self.feel_load(ix, 0);
    }

    /// Says how many slots a queue wants, and takes them unless they come from outside.
    fn ask_for_slots(&mut self, ix: QueueIx, from: u32, to: u32) {
        let queue = self.queue(ix).name.clone();
        let is_outside = self.queue(ix).scaling.as_ref().is_some_and(|scaling| scaling.config.is_outside);
        self.outputs.push_back(Output::Scale { queue, from, to, is_outside });
        if !is_outside {
            self.set_workers(ix, &[], to);
        }
    }

    /// Asks for the first slots of queues that get theirs from outside.
    pub(super) fn ask_for_first_slots(&mut self) {
        for at in 0..self.queues.len() {
            let scaling = self.queues[at].scaling.as_ref().filter(|scaling| scaling.config.is_outside);
            if let Some(target) = scaling.map(|scaling| scaling.target) {
                self.ask_for_slots(QueueIx(at as u16), 0, target);
            }
        }
    }

    fn load(&self, ix: QueueIx) -> Load {
        let queue = self.queue(ix);
        let until_ms = self.now_ms.saturating_add(LOOK_AHEAD_MS);
        let waits = |number| self.tasks.find(number).is_some_and(|task| self.tasks[task].is_pending());
        let is_paused = queue.is_paused;
        let reserved = if is_paused { 0 } else { queue.reservations.most_at_once(self.now_ms, until_ms, waits) };
        let default_ms = i64::from(queue.config.default_estimate_ms);
        Load {
            backlog: if is_paused { [0; 4] } else { queue.backlog() },
            busy: queue.workers.busy,
            service_ms: queue.learned.mean_ms().unwrap_or(default_ms),
            reserved: u32::try_from(reserved).unwrap_or(u32::MAX),
            is_paused,
        }
    }
}
