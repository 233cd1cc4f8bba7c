//! Random workloads of one queue, where `reference` says before each start who is next.

use super::history::Rng;
use super::reference::{At, Reference};
use super::world::World;
use crate::record::{Class, Condition, Edge, LimitSpec, LimitUse, Parent, RetryPolicy, TaskNo, TaskRecord, TaskSpec};
use crate::scheduler::task::{Place, State};
use crate::scheduler::*;

const SLOTS: u32 = 2;
const UNITS: u32 = 3;

struct Pair {
    world: World,
    reference: Reference,
    rng: Rng,
    heeded: usize,
    /// How often in so many commands the clock moves far.
    pace: u64,
}

impl Pair {
    fn new(seed: u64) -> Pair {
        let mut rng = Rng::new(seed);
        let fair = rng.one_in(2).then(|| [("t0".into(), 300), ("t2".into(), 50)].into());
        let retry = RetryPolicy { max_attempts: 3, initial_ms: 40, max_ms: 200, ..RetryPolicy::default() };
        let timeout_ms = rng.one_in(3).then_some(5_000);
        Pair::of(QueueConfig { concurrency: SLOTS, retry, timeout_ms, fair, ..QueueConfig::default() }, seed, rng)
    }

    fn of(queue: QueueConfig, seed: u64, mut rng: Rng) -> Pair {
        let reference = Reference::new(&queue, &[("c", UNITS), ("k", 1)]);
        let limits = [("c".into(), LimitSpec::Concurrency(UNITS)), ("k".into(), LimitSpec::Concurrency(1))].into();
        let config = Config { limits, seed, ..super::world::config(queue) };
        let pace = 1 + rng.below(20);
        Pair { world: World::new(config), reference, rng, heeded: 0, pace }
    }

    /// Holds what was just recorded, and where everybody is, to what the reference says.
    fn agree(&mut self) {
        self.world.drain();
        for record in &self.world.records[self.heeded..] {
            self.reference.heed(&TaskRecord::decode(record).unwrap());
        }
        self.heeded = self.world.records.len();
        assert_eq!(self.reference.next(), None, "could start at {} ms", self.world.now_ms);
        for (_, task) in self.world.engine.tasks.iter_after(TaskNo(0)) {
            let at = match task.state {
                State::Blocked => At::Blocked,
                State::Scheduled => At::Delayed,
                State::Ready(Place::Limit) => At::Limit,
                State::Ready(Place::Labels) => At::Labels,
                State::Ready(_) => At::Line,
                State::Retrying => At::Retrying,
                State::Ended { .. } => At::Over,
                State::Running { .. } => match self.reference.tasks[&task.number].at {
                    running @ At::Running { .. } => running,
                    other => panic!("task {} runs and is {other:?}", task.number),
                },
            };
            let expected = &self.reference.tasks[&task.number];
            assert_eq!(expected.at, at, "task {}", task.number);
            if let State::Ready(Place::Fair { tag }) = task.state {
                assert_eq!(expected.tag, Some(tag), "task {}", task.number);
            }
        }
    }

    fn pass(&mut self, by_ms: i64) {
        let until_ms = self.world.now_ms + by_ms;
        while self.world.now_ms < until_ms {
            let wake_ms = self.world.engine.next_wake_ms().unwrap_or(until_ms).clamp(self.world.now_ms, until_ms);
            self.world.now_ms = wake_ms;
            self.world.engine.handle_time(wake_ms);
            self.reference.begin(wake_ms);
            self.agree();
        }
    }

    fn spec(&mut self) -> TaskSpec<'static> {
        let (now_ms, newest) = (self.world.now_ms, self.world.engine.next_number - 1);
        let rng = &mut self.rng;
        let mut spec = TaskSpec::new("q", "k", b"in");
        spec.class = Class::from_code(rng.below(4) as u8).unwrap();
        spec.tenant = rng.one_in(2).then(|| *rng.pick(&["t0", "t1", "t2"]));
        spec.order_key = rng.one_in(8).then(|| *rng.pick(&["o", "p"]));
        spec.not_before_ms = rng.one_in(6).then(|| now_ms + rng.between(-100, 800));
        spec.estimate_ms = rng.one_in(2).then(|| rng.below(9_000) as u32);
        if rng.one_in(4) {
            (spec.deadline_ms, spec.estimate_ms) =
                (Some(now_ms + rng.between(-9_000, 20_000)), Some(rng.below(9_000) as u32));
        }
        if rng.one_in(6) && newest > 0 {
            let parent = Parent::Number(TaskNo(newest.saturating_sub(rng.below(6)).max(1)));
            spec.after.push(Edge { parent, condition: Condition::from_code(rng.below(3) as u8).unwrap() });
        }
        if rng.one_in(3) {
            spec.limits.push(LimitUse { name: "c", key: None, amount: rng.between(1, 3) as u32 });
        }
        if rng.one_in(4) {
            spec.limits.push(LimitUse { name: "k", key: Some(*rng.pick(&["a", "b"])), amount: 1 });
        }
        if rng.one_in(6) {
            spec.labels.push(("gpu", "a"));
        }
        spec
    }

    fn any_task(&mut self) -> TaskNo {
        let newest = self.world.engine.next_number - 1;
        TaskNo(newest.saturating_sub(self.rng.below(60)).max(1))
    }

    fn step(&mut self) {
        let now_ms = self.world.now_ms;
        self.reference.begin(now_ms);
        match self.rng.below(24) {
            0..=8 => {
                let spec = self.spec();
                drop(self.world.engine.handle_submit(now_ms, &spec, Dedupe::default()));
            }
            9..=16 => self.end_attempt(),
            17 if self.rng.one_in(self.pace) => {
                let by_ms = self.rng.between(0, 60_000);
                return self.pass(by_ms);
            }
            17 | 18 => {
                let by_ms = self.rng.between(0, 60);
                return self.pass(by_ms);
            }
            19 => {
                let task = self.any_task();
                self.world.engine.handle_cancel(now_ms, task, b"why");
            }
            20 | 21 => self.change(),
            _ => self.resize(),
        }
        self.agree();
    }

    fn end_attempt(&mut self) {
        let running: Vec<Lease> = self.world.engine.running().into_iter().map(|(_, lease)| lease).collect();
        if running.is_empty() {
            return;
        }
        let (lease, now_ms) = (*self.rng.pick(&running), self.world.now_ms);
        let engine = &mut self.world.engine;
        match self.rng.below(12) {
            0 => engine.handle_failed(now_ms, lease, Failure::Permanent, b"e"),
            1 | 2 => engine.handle_failed(now_ms, lease, Failure::Retryable { after_ms: None }, b"e"),
            3 => engine.handle_postponed(now_ms, lease, now_ms + 50),
            4 => engine.handle_lost(now_ms, lease),
            _ => engine.handle_completed(now_ms, lease, b"out"),
        };
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
            _ => drop(self.world.engine.handle_revive(now_ms, task)),
        }
    }

    fn resize(&mut self) {
        let (now_ms, count) = (self.world.now_ms, self.rng.below(4) as u32);
        let engine = &mut self.world.engine;
        match self.rng.below(8) {
            0 => {
                engine.handle_workers(now_ms, "q", &[("gpu".into(), "a".into())], count).unwrap();
                self.reference.set_gpu_slots(count);
            }
            1 => engine.handle_concurrency(now_ms, "q", count).unwrap(),
            2 => engine.handle_pause(now_ms, "q", count == 0).unwrap(),
            3 => engine.handle_limit(now_ms, "c", LimitSpec::Concurrency(count.max(1) + 1)).unwrap(),
            _ => drop(engine.handle_snapshot(now_ms, "q")),
        }
    }
}

/// An attempt whose time is over and that is made again at once, and one that dies of the same at the same time: the task
/// that waited for that is ready before the one that comes back, since the end of both attempts was set earlier.
#[test]
fn what_falls_due_at_one_time_comes_in_the_order_in_which_it_was_set() {
    let retry = RetryPolicy { max_attempts: 1, initial_ms: 0, ..RetryPolicy::default() };
    let (timeout_ms, fair) = (Some(5_000), Some([("t".into(), 100)].into()));
    let queue = QueueConfig { concurrency: SLOTS, retry, timeout_ms, fair, ..QueueConfig::default() };
    let mut pair = Pair::of(queue, 1, Rng::new(1));
    let mut submit = |change: &dyn Fn(&mut TaskSpec<'static>)| {
        let mut spec = TaskSpec::new("q", "k", b"in");
        change(&mut spec);
        pair.reference.begin(0);
        pair.world.engine.handle_submit(0, &spec, Dedupe::default()).unwrap();
        pair.agree();
    };
    submit(&|again| again.retry = Some(RetryPolicy { max_attempts: 2, ..retry }));
    submit(&|_| {});
    let parent = Parent::Number(TaskNo(2));
    submit(&|waits| waits.after.push(Edge { parent, condition: Condition::Failure }));
    pair.pass(5_000);
    assert_eq!(pair.world.started, [1, 2, 3, 1].map(TaskNo));
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the test is told its seeds from outside")]
fn who_is_next_is_who_looking_at_all_tasks_finds() {
    let first: u64 = std::env::var("FUSEE_SEED").map_or(1, |seed| seed.parse().unwrap());
    let count: u64 = std::env::var("FUSEE_SEEDS").map_or(16, |count| count.parse().unwrap());
    let (mut reliefs, mut protections, mut starts) = (0, 0, 0);
    for seed in first..first + count {
        let played = std::panic::catch_unwind(|| {
            let mut pair = Pair::new(seed);
            (0..400).for_each(|_| pair.step());
            (pair.reference.reliefs, pair.reference.claims.stamps, pair.world.started.len())
        });
        let one = played.unwrap_or_else(|_| panic!("FUSEE_SEED={seed} FUSEE_SEEDS=1"));
        (reliefs, protections, starts) = (reliefs + one.0, protections + one.1, starts + one.2);
    }
    if count >= 16 {
        assert!(reliefs > 0 && protections > 0, "{reliefs} reliefs, {protections} protections, {starts} starts");
    }
}
