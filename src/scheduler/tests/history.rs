//! Random commands of all kinds, from a seed.

use super::world::World;
use crate::record::{
    Caller, CatchUp, Class, Condition, Edge, Launch, LimitSpec, LimitUse, OnMiss, Order, Origin, Outcome, Overlap,
    Parent, Reserve, RetryPolicy, RunNo, ScheduleSpec, Seq, ShardId, TaskNo, TaskRole, TaskSpec, When,
};
use crate::scheduler::chance::Chance;
use crate::scheduler::*;
use std::collections::BTreeSet;

const KEYS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const QUEUES: [&str; 3] = ["fast", "fair", "full"];

/// What has happened at least once over all seeds.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) outcomes: BTreeSet<Outcome>,
    pub(super) crashes: usize,
    pub(super) waits: usize,
    pub(super) refusals: usize,
    pub(super) aborts: usize,
    pub(super) answers: usize,
    pub(super) occurrences: usize,
    pub(super) runs: usize,
}

/// Choices from a seed.
pub(super) struct Rng(Chance);

impl Rng {
    pub(super) fn new(seed: u64) -> Rng {
        Rng(Chance::new(seed))
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// Both included.
    pub(super) fn between(&mut self, from: i64, to: i64) -> i64 {
        from + self.below(to.abs_diff(from) + 1) as i64
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}

pub(super) struct History {
    pub(super) world: World,
    pub(super) rng: Rng,
    last: u64,
}

const SHARD: ShardId = ShardId(1);
const SCHEDULES: [&str; 2] = ["s", "t"];

pub(super) fn setting() -> Config {
    let retry = RetryPolicy { max_attempts: 2, initial_ms: 50, max_ms: 200, ..RetryPolicy::default() };
    let unknown_key = UnknownKey::Wait { timeout_ms: Some(2_000) };
    let fast = QueueConfig { concurrency: 3, retry, timeout_ms: Some(400), unknown_key, ..QueueConfig::default() };
    let fair = QueueConfig {
        concurrency: 2,
        fair: Some([("t0".into(), 300)].into()),
        lease_ms: Some(500),
        bounds: Bounds { pending: Some(12), ..Bounds::default() },
        ..fast.clone()
    };
    let full = QueueConfig {
        concurrency: 1,
        bounds: Bounds { pending: Some(6), pending_of: [None, None, Some(4), None] },
        on_full: OnFull::DropLowest,
        ..fast.clone()
    };
    Config {
        queues: QUEUES.into_iter().map(Into::into).zip([fast, fair, full]).collect(),
        limits: [
            ("c".into(), LimitSpec::Concurrency(3)),
            ("k".into(), LimitSpec::Concurrency(1)),
            ("r".into(), LimitSpec::Rate { limit: 5, period_ms: 100, burst: 4 }),
        ]
        .into(),
        retained_max: 40,
        ..Config::default()
    }
}

impl History {
    pub(super) fn new(world: World, seed: u64) -> History {
        let last = world.engine.next_number - 1;
        History { world, rng: Rng::new(seed), last }
    }

    fn spec(&mut self) -> TaskSpec<'static> {
        let now_ms = self.world.now_ms;
        let rng = &mut self.rng;
        let mut spec = TaskSpec::new(rng.pick::<&'static str>(&QUEUES), rng.pick::<&'static str>(&["x", "y"]), b"in");
        spec.class = Class::from_code(rng.below(4) as u8).unwrap();
        spec.key = rng.one_in(3).then(|| *rng.pick(&KEYS));
        spec.tenant = rng.one_in(2).then(|| *rng.pick(&["t0", "t1"]));
        spec.order_key = rng.one_in(5).then(|| *rng.pick(&["o", "p"]));
        spec.not_before_ms = rng.one_in(4).then(|| now_ms + rng.between(-100, 800));
        spec.deadline_ms = rng.one_in(4).then(|| now_ms + rng.between(-100, 3_000));
        spec.expires_ms = rng.one_in(8).then(|| now_ms + rng.between(-50, 1_500));
        spec.timeout_ms = rng.one_in(6).then(|| rng.between(20, 300) as u32);
        if rng.one_in(8) {
            spec.not_before_ms = Some(now_ms + rng.between(-100, 2_000));
            let on_miss = OnMiss::from_code(rng.below(3) as u8).unwrap();
            spec.reserve = Some(Reserve { tolerance_ms: rng.below(100) as u32, on_miss });
        }
        for _ in 0..rng.below(3) {
            let parent = match rng.below(3) {
                0 => Parent::Key(rng.pick::<&'static str>(&KEYS)),
                _ => Parent::Number(TaskNo(self.last.saturating_sub(rng.below(6)).max(1))),
            };
            let condition = Condition::from_code(rng.below(3) as u8).unwrap();
            if rng.one_in(3) {
                spec.after.push(Edge { parent, condition });
            }
        }
        if rng.one_in(8) {
            let condition = Condition::from_code(rng.below(3) as u8).unwrap();
            spec.after.push(Edge { parent: Parent::Run("w", None), condition });
        }
        if rng.one_in(2) {
            spec.limits.push(LimitUse { name: "c", key: None, amount: rng.between(1, 3) as u32 });
        }
        if rng.one_in(3) {
            spec.limits.push(LimitUse { name: "k", key: Some(*rng.pick(&KEYS)), amount: 1 });
        }
        if rng.one_in(4) {
            spec.limits.push(LimitUse { name: "r", key: None, amount: rng.between(1, 4) as u32 });
        }
        if rng.one_in(10) {
            spec.labels.push(("gpu", "a"));
        }
        spec
    }

    fn any_task(&mut self) -> TaskNo {
        TaskNo(self.last.saturating_sub(self.rng.below(30)).max(1))
    }

    pub(super) fn step(&mut self, seen: &mut Seen) {
        match self.rng.below(25) {
            0..=6 => self.submit(seen),
            7 => {
                let specs: Vec<_> = (0..self.rng.between(1, 4)).map(|_| self.spec()).collect();
                seen.refusals += usize::from(self.world.batch(&specs).is_err());
            }
            8..=12 => self.end_attempt(),
            13..=15 => {
                let by_ms = self.rng.between(0, 300);
                self.world.advance(by_ms);
            }
            16 => {
                let task = self.any_task();
                self.world.cancel(task);
            }
            17 => self.change(),
            18 => self.order(seen),
            19 => self.ask_about(),
            20 => self.schedule(),
            21 => self.shard(false),
            22 => self.awaited(false),
            _ => self.resize(),
        }
        self.last = self.world.engine.next_number - 1;
    }

    /// A run asks for a task, or watches one.
    fn order(&mut self, seen: &mut Seen) {
        let (order, now_ms) = (self.next_order(), self.world.now_ms);
        if self.rng.one_in(4) {
            let task = self.any_task();
            self.world.engine.handle_watch(now_ms, &order, task);
        } else {
            let spec = self.spec();
            let mode = *self.rng.pick(&[DedupeMode::Skip, DedupeMode::Replace, DedupeMode::Rerun]);
            self.world.engine.handle_order(now_ms, &order, Dedupe { mode, scope: DedupeScope::Live }, &spec);
        }
        self.world.drain();
        seen.answers += self.world.outputs.iter().filter(|output| matches!(output, Output::Answer { .. })).count();
    }

    fn next_order(&mut self) -> Order {
        let number = self.world.engine.taken_from(SHARD) + 1;
        let role = TaskRole::from_code(self.rng.below(3) as u8).unwrap();
        Order { caller: caller(number), origin: Origin { from: SHARD, number }, role }
    }

    /// A run gives up what it asked for, or asks a task to end.
    fn ask_about(&mut self) {
        let (Order { origin, .. }, now_ms) = (self.next_order(), self.world.now_ms);
        if self.rng.one_in(2) {
            let earlier = origin.number.saturating_sub(self.rng.below(5)).max(1);
            self.world.engine.handle_order_cancelled(now_ms, caller(earlier), origin);
        } else {
            let task = self.any_task();
            self.world.engine.handle_cancel_by_run(now_ms, task, b"why", origin);
        }
        self.world.drain();
    }

    /// The shard makes runs or cannot, and runs come to their ends. `is_all`: all of them.
    fn shard(&mut self, is_all: bool) {
        let runs: Vec<(TaskNo, bool, bool)> = self
            .world
            .engine
            .tasks_after(TaskNo(0))
            .filter(|view| view.launch.is_some() && (view.run.is_none() || !matches!(view.status, Status::Ended(_))))
            .map(|view| (view.task, view.run.is_some(), view.status == Status::Running))
            .collect();
        for (task, is_made, has_started) in runs {
            if !is_all && !self.rng.one_in(3) {
                continue;
            }
            let (Order { origin, .. }, now_ms) = (self.next_order(), self.world.now_ms);
            let caller = Caller { shard: SHARD, run: RunNo(1_000 + task.0), seq: Seq(0) };
            let engine = &mut self.world.engine;
            match self.rng.below(4) {
                0 if !is_made => engine.handle_run_refused(now_ms, task, b"it is there", origin),
                _ if !is_made => engine.handle_run_made(now_ms, task, caller, origin),
                1 => engine.handle_run_over(now_ms, caller, Outcome::Failed, origin),
                _ if has_started || is_all => engine.handle_run_over(now_ms, caller, Outcome::Completed, origin),
                _ => {}
            }
            self.world.drain();
        }
    }

    /// Runs end that tasks wait for. `is_all`: all of them.
    fn awaited(&mut self, is_all: bool) {
        let found = self.world.engine.tasks.iter_after(TaskNo(0)).filter_map(|(_, task)| {
            let runs = &task.more.as_ref()?.runs;
            let edge = runs.iter().position(|edge| edge.is_awaited())?;
            (!task.is_ended()).then_some((task.number, edge as u32 + 1))
        });
        for (task, edge) in found.collect::<Vec<_>>() {
            if is_all || self.rng.one_in(2) {
                let statuses = [
                    crate::record::Status::Completed,
                    crate::record::Status::Failed,
                    crate::record::Status::Cancelled,
                    crate::record::Status::NotFound,
                ];
                let status = *self.rng.pick(&statuses);
                let (Order { origin, .. }, now_ms) = (self.next_order(), self.world.now_ms);
                self.world.engine.handle_awaited_run(now_ms, task, edge, status, b"end", origin);
                self.world.drain();
            }
        }
    }

    fn schedule(&mut self) {
        let (now_ms, name) = (self.world.now_ms, *self.rng.pick(&SCHEDULES));
        let choice = self.rng.below(6);
        let spec = self.schedule_spec();
        let engine = &mut self.world.engine;
        match choice {
            0 => drop(engine.handle_schedule_removed(now_ms, name)),
            1 => drop(engine.handle_schedule_paused(now_ms, name, self.rng.one_in(2))),
            2 => drop(engine.handle_trigger(now_ms, name)),
            _ => engine.handle_schedule(now_ms, name, &spec).unwrap(),
        }
        self.world.drain();
    }

    pub(super) fn schedule_spec(&mut self) -> ScheduleSpec<'static> {
        let rng = &mut self.rng;
        let mut template = TaskSpec::new(rng.pick::<&'static str>(&QUEUES), "x", b"in");
        template.class = Class::from_code(rng.below(4) as u8).unwrap();
        template.key = rng.one_in(4).then(|| *rng.pick(&KEYS));
        let launch = Launch { id: "r-{time}", version: 1, timeout_ms: Some(9), key_root: [0; 16] };
        template.launch = rng.one_in(2).then_some(launch);
        ScheduleSpec {
            when: When::Every { period_ms: 300 * (1 + rng.below(3)), offset_ms: rng.below(300) },
            start_ms: None,
            end_ms: None,
            limit: rng.one_in(4).then(|| 1 + rng.below(5)),
            jitter_ms: rng.below(2) as u32 * 50,
            overlap: Overlap::from_code(rng.below(6) as u8).unwrap(),
            catch_up: *rng.pick(&[CatchUp::None, CatchUp::Last, CatchUp::UpTo(3)]),
            pauses_on_failure: rng.one_in(3),
            deadline_after_ms: rng.one_in(3).then_some(200),
            expires_after_ms: rng.one_in(3).then_some(500),
            template,
        }
    }

    fn submit(&mut self, seen: &mut Seen) {
        let spec = self.spec();
        let mode = match self.rng.below(8) {
            0 => DedupeMode::Replace,
            1 => DedupeMode::Debounce { window_ms: 100, max_wait_ms: Some(300) },
            2 => DedupeMode::Throttle { window_ms: 200 },
            3 => DedupeMode::Rerun,
            4 => DedupeMode::Error,
            _ => DedupeMode::Skip,
        };
        let scope = *self.rng.pick(&[DedupeScope::Pending, DedupeScope::Live, DedupeScope::Retained]);
        match self.world.submit_as(&spec, Dedupe { mode, scope }) {
            Ok(Submitted::Waits(submitter)) => {
                seen.waits += 1;
                if self.rng.one_in(5) {
                    self.world.engine.handle_abandoned(self.world.now_ms, submitter);
                    self.world.drain();
                }
            }
            Ok(Submitted::Now(_)) => {}
            Err(_) => seen.refusals += 1,
        }
    }

    fn end_attempt(&mut self) {
        let running: Vec<TaskNo> = self.world.running.keys().copied().collect();
        if running.is_empty() {
            return;
        }
        let task = *self.rng.pick(&running);
        let lease = self.world.running[&task];
        let now_ms = self.world.now_ms;
        let engine = &mut self.world.engine;
        let is_current = match self.rng.below(10) {
            0 => engine.handle_failed(now_ms, lease, Failure::Permanent, b"e"),
            1 | 2 => engine.handle_failed(now_ms, lease, Failure::Retryable { after_ms: Some(10) }, b"e"),
            3 => engine.handle_postponed(now_ms, lease, now_ms + 50),
            4 => engine.handle_lost(now_ms, lease),
            5 => {
                engine.handle_heartbeat(now_ms, lease);
                self.world.drain();
                return;
            }
            _ => engine.handle_completed(now_ms, lease, b"out"),
        };
        assert!(is_current, "task {task} ran");
        assert!(!engine.handle_completed(now_ms, lease, b"twice"), "and ended once");
        if self.world.running.get(&task) == Some(&lease) {
            self.world.running.remove(&task);
        }
        self.world.drain();
    }

    fn change(&mut self) {
        let (task, now_ms) = (self.any_task(), self.world.now_ms);
        match self.rng.below(3) {
            0 => {
                let class = Class::from_code(self.rng.below(4) as u8).unwrap();
                self.world.engine.handle_reprioritize(now_ms, task, class);
            }
            1 => {
                let time_ms = now_ms + self.rng.between(-100, 500);
                self.world.engine.handle_reschedule(now_ms, task, time_ms);
            }
            _ => {
                let was_over = self.world.engine.task(task).is_some_and(|view| matches!(view.status, Status::Ended(_)));
                if self.world.engine.handle_revive(now_ms, task) == Ok(true) {
                    assert!(was_over);
                    self.world.ended.remove(&task);
                }
            }
        }
        self.world.drain();
    }

    fn resize(&mut self) {
        let (now_ms, queue) = (self.world.now_ms, *self.rng.pick(&QUEUES));
        let count = self.rng.below(4) as u32;
        let labels: &[(Box<str>, Box<str>)] = &[("gpu".into(), "a".into())];
        let engine = &mut self.world.engine;
        match self.rng.below(6) {
            0 => engine.handle_workers(now_ms, queue, labels, count).unwrap(),
            1 => engine.handle_concurrency(now_ms, queue, count).unwrap(),
            2 => engine.handle_pause(now_ms, queue, count == 0).unwrap(),
            3 => engine.handle_limit(now_ms, "c", LimitSpec::Concurrency(count + 1)).unwrap(),
            _ => drop(engine.handle_snapshot(now_ms, queue)),
        }
        self.world.drain();
    }

    /// The process dies with a part of what it wrote.
    pub(super) fn crash(&mut self, seen: &mut Seen) {
        seen.crashes += 1;
        let lost = self.rng.below(6) as usize;
        let kept = self.world.records.len().saturating_sub(lost).max(self.world.store.records());
        let was_clean = self.rng.one_in(4);
        self.world.crash_at(kept, was_clean);
        self.world.ended.clear();
        self.last = self.world.engine.next_number - 1;
    }

    /// Gives everybody what they need, and sees all tasks end.
    pub(super) fn settle(&mut self) {
        let now_ms = self.world.now_ms;
        for name in SCHEDULES {
            self.world.engine.handle_schedule_removed(now_ms, name);
        }
        for queue in QUEUES {
            let labels: &[(Box<str>, Box<str>)] = &[("gpu".into(), "a".into())];
            self.world.engine.handle_pause(now_ms, queue, false).unwrap();
            self.world.engine.handle_concurrency(now_ms, queue, 2).unwrap();
            self.world.engine.handle_workers(now_ms, queue, labels, 1).unwrap();
        }
        self.world.engine.handle_limit(now_ms, "c", LimitSpec::Concurrency(4)).unwrap();
        self.world.drain();
        for _ in 0..4_000 {
            while let Some(task) = self.world.running.keys().next().copied() {
                self.world.complete(task);
            }
            self.shard(true);
            self.awaited(true);
            let Some(wake_ms) = self.world.engine.next_wake_ms() else { break };
            let by_ms = (wake_ms - self.world.now_ms).max(0);
            self.world.advance(by_ms);
        }
        let engine = &self.world.engine;
        let left: Vec<_> = engine
            .tasks_after(TaskNo(0))
            .filter(|view| !matches!(view.status, Status::Ended(_)))
            .map(|view| (view.task, view.status, engine.explain(view.task)))
            .collect();
        assert!(left.is_empty(), "never end: {left:?}");
        assert!(engine.awaited.is_empty() && engine.order_lines.is_empty() && engine.waiting.len() == 0);
        for name in ["c", "k", "r"] {
            let usage = engine.limits.usage(name, None, self.world.now_ms).unwrap();
            assert_eq!((usage.used, usage.waiting, usage.keys), (0, 0, 0), "limit {name}");
        }
    }
}

fn caller(number: u64) -> Caller {
    Caller { shard: SHARD, run: RunNo(1), seq: Seq(number as u32) }
}
