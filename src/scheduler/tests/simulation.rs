//! Random histories: random commands at random times, a crash at any record, the invariants after each step.

use super::history::{History, Seen, setting};
use super::world::World;
use crate::record::{Parent, TaskNo, TaskRecord, TaskSpec};
use crate::scheduler::*;
use std::collections::{BTreeMap, BTreeSet};

fn run(seed: u64, steps: usize, seen: &mut Seen) {
    let config = Config { seed, ..setting() };
    let mut history = History::new(World::new(config), seed);
    for _ in 0..steps {
        history.step(seen);
        if history.rng.one_in(80) {
            history.crash(seen);
        }
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
            TaskRecord::Submitted { task, spec, .. } | TaskRecord::Ordered { task, spec, .. } => {
                seen.occurrences += usize::from(spec.occurrence.is_some());
                submitted(task, &spec, &mut live, &mut parents, &mut rates);
            }
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
            TaskRecord::RunOver { task, .. } => {
                assert!(live.remove(&task).is_some(), "task {task} ends once");
                ended.insert(task);
                seen.runs += 1;
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
        Parent::Key(_) | Parent::Run(..) => None,
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
    let count: u64 = std::env::var("FUSEE_SEEDS").map_or(60, |count| count.parse().unwrap());
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
        seen.answers += one.answers;
        seen.occurrences += one.occurrences;
        seen.runs += one.runs;
    }
    if count >= 60 {
        assert_eq!(seen.outcomes.len(), 8, "the workload reaches every end: {seen:?}");
        assert!(seen.crashes > 0 && seen.waits > 0 && seen.refusals > 0 && seen.aborts > 0, "{seen:?}");
        assert!(seen.answers > 0 && seen.occurrences > 0 && seen.runs > 0, "{seen:?}");
    }
}

#[test]
fn a_restart_from_every_prefix_rebuilds_what_the_rest_continues() {
    for seed in 1..4 {
        let mut history = History::new(World::new(setting()), seed);
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
