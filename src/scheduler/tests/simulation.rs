//! Random histories: random commands at random times, a crash at any record, the invariants after each step.

use super::world::World;
use crate::record::{
    Class, Condition, Edge, LimitSpec, LimitUse, OnMiss, Outcome, Parent, Reserve, RetryPolicy, TaskNo, TaskRecord,
    TaskSpec,
};
use crate::scheduler::chance::Chance;
use crate::scheduler::*;
use std::collections::{BTreeMap, BTreeSet};

const KEYS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const QUEUES: [&str; 3] = ["fast", "fair", "full"];

/// What has happened at least once over all seeds.
#[derive(Debug, Default)]
struct Seen {
    outcomes: BTreeSet<Outcome>,
    crashes: usize,
    waits: usize,
    refusals: usize,
    aborts: usize,
}

/// Choices from a seed.
struct Rng(Chance);

impl Rng {
    fn new(seed: u64) -> Rng {
        Rng(Chance::new(seed))
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// Both included.
    fn between(&mut self, from: i64, to: i64) -> i64 {
        from + self.below(to.abs_diff(from) + 1) as i64
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}

struct History {
    world: World,
    rng: Rng,
    last: u64,
}

fn setting() -> Config {
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

    fn step(&mut self, seen: &mut Seen) {
        match self.rng.below(20) {
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
            18 if self.rng.one_in(4) => self.crash(seen),
            _ => self.resize(),
        }
        self.last = self.world.engine.next_number - 1;
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
    fn crash(&mut self, seen: &mut Seen) {
        seen.crashes += 1;
        let lost = self.rng.below(6) as usize;
        let kept = self.world.records.len().saturating_sub(lost);
        let was_clean = self.rng.one_in(4);
        self.world.crash_at(kept, was_clean);
        self.world.ended.clear();
    }

    /// Gives everybody what they need, and sees all tasks end.
    fn settle(&mut self) {
        let now_ms = self.world.now_ms;
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

fn run(seed: u64, steps: usize, seen: &mut Seen) {
    let config = Config { seed, ..setting() };
    let mut history = History { world: World::new(config), rng: Rng::new(seed), last: 0 };
    for _ in 0..steps {
        history.step(seen);
    }
    seen.aborts += history.world.outputs.iter().filter(|output| matches!(output, Output::Abort { .. })).count();
    history.settle();
    judge(&history.world.records, seen);
}

/// What the records say by themselves: each task ended once a life, none after its end, children after their parents,
/// rates kept over the whole history.
fn judge(records: &[Vec<u8>], seen: &mut Seen) {
    let mut live: BTreeMap<TaskNo, bool> = BTreeMap::new();
    let mut ended: BTreeSet<TaskNo> = BTreeSet::new();
    let mut parents: BTreeMap<TaskNo, Vec<TaskNo>> = BTreeMap::new();
    let mut rates: BTreeMap<TaskNo, u32> = BTreeMap::new();
    let mut taken: Vec<(i64, u32)> = Vec::new();
    for record in records {
        match TaskRecord::decode(record).unwrap() {
            TaskRecord::Submitted { task, spec, .. } => submitted(task, &spec, &mut live, &mut parents, &mut rates),
            TaskRecord::Batch { first, specs, .. } => {
                for (at, spec) in specs.iter().enumerate() {
                    submitted(TaskNo(first.0 + at as u64), spec, &mut live, &mut parents, &mut rates);
                }
            }
            TaskRecord::Started { task, time_ms } => {
                assert_eq!(live.insert(task, true), Some(false), "task {task} starts while it waits");
                let all = parents.get(&task).map_or(&[][..], Vec::as_slice);
                let is_after = |parent: &TaskNo| ended.contains(parent) || !live.contains_key(parent);
                assert!(all.iter().all(is_after), "task {task} starts after its parents");
                taken.extend(rates.get(&task).map(|amount| (time_ms, *amount)));
            }
            TaskRecord::Retrying { task, .. } => assert_eq!(live.insert(task, false), Some(true), "task {task}"),
            TaskRecord::Ended { task, outcome, .. } => {
                assert!(live.remove(&task).is_some(), "task {task} ends once");
                ended.insert(task);
                seen.outcomes.insert(outcome);
            }
            TaskRecord::Revived { task, .. } => {
                assert_eq!(live.insert(task, false), None, "only what is over is revived");
                parents.remove(&task);
            }
            _ => {}
        }
    }
    assert!(live.is_empty(), "lost: {live:?}");
    for (at, (from_ms, _)) in taken.iter().enumerate() {
        let mut sum = 0;
        for (to_ms, amount) in &taken[at..] {
            sum += i64::from(*amount);
            assert!((sum - 4) * 100 <= 5 * (to_ms - from_ms), "{sum} units in {} ms", to_ms - from_ms);
        }
    }
}

fn submitted(
    task: TaskNo,
    spec: &TaskSpec<'_>,
    live: &mut BTreeMap<TaskNo, bool>,
    parents: &mut BTreeMap<TaskNo, Vec<TaskNo>>,
    rates: &mut BTreeMap<TaskNo, u32>,
) {
    assert_eq!(live.insert(task, false), None, "numbers are never used twice");
    let by_number = spec.after.iter().filter_map(|edge| match edge.parent {
        Parent::Number(parent) => Some(parent),
        Parent::Key(_) => None,
    });
    parents.insert(task, by_number.collect());
    if let Some(of) = spec.limits.iter().find(|of| of.name == "r") {
        rates.insert(task, of.amount);
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the test is told its seeds from outside")]
fn random_histories_with_crashes_keep_every_promise() {
    let first: u64 = std::env::var("FUSEE_SEED").map_or(1, |seed| seed.parse().unwrap());
    let count: u64 = std::env::var("FUSEE_SEEDS").map_or(120, |count| count.parse().unwrap());
    let mut seen = Seen::default();
    for seed in first..first + count {
        let result = std::panic::catch_unwind(|| {
            let mut seen = Seen::default();
            run(seed, 250, &mut seen);
            seen
        });
        let one = result.unwrap_or_else(|_| panic!("FUSEE_SEED={seed} FUSEE_SEEDS=1"));
        seen.outcomes.extend(one.outcomes);
        seen.crashes += one.crashes;
        seen.waits += one.waits;
        seen.refusals += one.refusals;
        seen.aborts += one.aborts;
    }
    if count >= 100 {
        assert_eq!(seen.outcomes.len(), 8, "the workload reaches every end: {seen:?}");
        assert!(seen.crashes > 0 && seen.waits > 0 && seen.refusals > 0 && seen.aborts > 0, "{seen:?}");
    }
}

#[test]
fn a_restart_from_every_prefix_rebuilds_what_the_rest_continues() {
    for seed in 1..4 {
        let mut history = History { world: World::new(setting()), rng: Rng::new(seed), last: 0 };
        let mut seen = Seen::default();
        for _ in 0..120 {
            history.step(&mut seen);
        }
        let records = history.world.records.clone();
        let mut engine = Engine::new(setting()).unwrap();
        for (at, record) in records.iter().enumerate() {
            engine.restore(record).unwrap();
            let mut other = Engine::new(setting()).unwrap();
            records[..=at].iter().for_each(|record| other.restore(record).unwrap());
            other.recover(history.world.now_ms, false);
            super::invariants::check(&other);
        }
        assert_eq!(describe(&engine), describe(&history.world.engine), "seed {seed}");
    }
}

/// What records decide about a task, as opposed to where it stands at the moment.
fn describe(engine: &Engine) -> Vec<String> {
    let tasks = engine.tasks_after(TaskNo(0)).map(|view| {
        let is_over_or_runs = match view.status {
            Status::Running => "running".to_owned(),
            Status::Ended(outcome) => format!("{outcome:?}"),
            _ => "waits".to_owned(),
        };
        format!(
            "{} {is_over_or_runs} {:?} {} {:?} {:?} {:?}",
            view.task, view.class, view.attempts, view.payload, view.key, view.history
        )
    });
    tasks.collect()
}
