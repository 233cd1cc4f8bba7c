//! Tasks that wait for runs of workflows.

use super::world::{World, config, queue, spec};
use crate::record::{Condition, Edge, Origin, Outcome, Parent, RunNo, ShardId, Status as RunStatus, TaskNo, TaskSpec};
use crate::scheduler::*;

const SHARD: ShardId = ShardId(1);

fn after(edges: &[(&'static str, Condition)]) -> TaskSpec<'static> {
    let after = edges.iter().map(|(id, condition)| Edge { parent: Parent::Run(id, None), condition: *condition });
    TaskSpec { after: after.collect(), ..spec() }
}

impl World {
    fn run_ended(&mut self, task: TaskNo, edge: u32, status: RunStatus) {
        let origin = Origin { from: SHARD, number: self.engine.taken_from(SHARD) + 1 };
        self.engine.handle_awaited_run(self.now_ms, task, edge, status, b"end", origin);
        self.drain();
    }

    fn watched(outputs: impl Iterator<Item = Output>) -> Vec<String> {
        let watched = outputs.filter_map(|output| match output {
            Output::WatchRun { task, edge, id, run } => Some(format!("{task}.{edge} {id} {:?}", run.map(|run| run.0))),
            _ => None,
        });
        watched.collect()
    }
}

#[test]
fn a_task_starts_when_all_its_runs_have_ended_as_asked_for() {
    let mut world = World::new(config(queue(1)));
    let task = world.submit(&after(&[("a", Condition::Success), ("b", Condition::Completion)]));
    assert_eq!(World::watched(world.outputs.iter().cloned()), ["1.1 a None", "1.2 b None"]);
    let keys = vec!["a".into(), "b".into()];
    assert_eq!(world.engine.explain(task), Some(Reason::Blocked { parents: vec![], keys, order_key: None }));
    world.run_ended(task, 2, RunStatus::Cancelled);
    assert_eq!(world.status(task), Status::Blocked);
    world.run_ended(task, 2, RunStatus::Completed);
    assert_eq!(world.status(task), Status::Blocked, "it is told once");
    world.run_ended(task, 1, RunStatus::Completed);
    assert_eq!(world.status(task), Status::Running);
    let ends: Vec<_> = world.engine.awaited_runs(task).map(|(id, _, status, _)| (id, status)).collect();
    assert_eq!(ends, [("a", RunStatus::Completed), ("b", RunStatus::Cancelled)]);
    world.run_ended(TaskNo(99), 1, RunStatus::Completed);
    assert_eq!(world.engine.taken_from(SHARD), 4, "of a task that is not known it is nothing");
}

#[test]
fn conditions_hold_as_for_tasks() {
    let ends = |condition, status| {
        let mut world = World::new(config(queue(1)));
        let task = world.submit(&after(&[("a", condition)]));
        world.run_ended(task, 1, status);
        matches!(world.status(task), Status::Running)
    };
    use RunStatus::{Cancelled, Completed, Expired, Failed, NotFound, Terminated, TimedOut};
    for (condition, fits) in [
        (Condition::Success, vec![Completed]),
        (Condition::Failure, vec![Failed, TimedOut]),
        (Condition::Completion, vec![Completed, Failed, TimedOut, Cancelled, Terminated, Expired]),
    ] {
        for status in [Completed, Failed, TimedOut, Cancelled, Terminated, Expired, NotFound] {
            assert_eq!(ends(condition, status), fits.contains(&status), "{condition:?} {status:?}");
        }
    }
}

#[test]
fn a_wait_that_is_in_vain_skips_the_task_and_says_why() {
    let mut world = World::new(config(queue(1)));
    let task = world.submit(&after(&[("a", Condition::Success), ("b", Condition::Success)]));
    world.run_ended(task, 1, RunStatus::NotFound);
    assert_eq!(world.outcome(task), Outcome::Skipped);
    let why = String::from_utf8_lossy(world.engine.task(task).unwrap().failure).into_owned();
    assert_eq!(why, "there is no workflow \"a\", which it waited for");
    world.run_ended(task, 2, RunStatus::Completed);
    assert_eq!(world.outcome(task), Outcome::Skipped);
    world.revive(task);
    assert_eq!(world.status(task), Status::Running, "what it waited for is past");
}

#[test]
fn a_crash_behind_any_record_leaves_each_wait_and_asks_under_the_same_numbers() {
    let mut world = World::new(config(queue(1)));
    let one = Edge { parent: Parent::Run("x", Some(RunNo(3))), condition: Condition::Success };
    let first = world.submit(&TaskSpec { after: vec![one], ..spec() });
    let second = world.submit(&after(&[("a", Condition::Success), ("b", Condition::Failure)]));
    world.run_ended(second, 1, RunStatus::Completed);
    world.run_ended(second, 2, RunStatus::Completed);
    world.run_ended(first, 1, RunStatus::Completed);
    let told = ["1.1 x Some(3)", "2.1 a None", "2.2 b None"];
    assert_eq!(World::watched(world.outputs.iter().cloned()), told);
    let records = world.records.clone();
    for cut in 2..=records.len() {
        world.records.clone_from(&records);
        world.crash_at(cut, false);
        let mut engine = Engine::new(world.config.clone()).unwrap();
        world.records.iter().for_each(|record| engine.restore(record).unwrap());
        assert_eq!(World::watched(std::iter::from_fn(|| engine.poll_output())), told);
        for (task, edge, status) in [(second, 1, RunStatus::Completed), (second, 2, RunStatus::Completed)] {
            world.run_ended(task, edge, status);
        }
        world.run_ended(first, 1, RunStatus::Completed);
        assert_eq!((world.status(first), world.outcome(second)), (Status::Running, Outcome::Skipped), "behind {cut}");
    }
}

#[test]
fn a_checkpoint_has_the_runs_that_are_waited_for() {
    let mut world = World::new(config(queue(1)));
    let task = world.submit(&after(&[("a", Condition::Success), ("b", Condition::Success)]));
    world.run_ended(task, 1, RunStatus::Completed);
    world.begin_checkpoint();
    assert!(world.save_tasks(1 << 20));
    world.crash();
    assert_eq!(world.status(task), Status::Blocked);
    world.run_ended(task, 2, RunStatus::Completed);
    assert_eq!((world.status(task), world.engine.awaited_runs(task).count()), (Status::Running, 2));
}
