//! Tasks that stand for runs: they hold a slot and limits from their turn until the run is over, whatever happens to threads
//! and processes meanwhile.

use super::world::{World, config, queue, spec};
use crate::record::{
    Caller, Dedupe, LimitSpec, LimitUse, Order, Origin, Outcome, RunNo, Seq, ShardId, TaskNo, TaskRole, TaskSpec,
};
use crate::scheduler::*;

fn caller(run: u64) -> Caller {
    Caller { shard: ShardId(1), run: RunNo(run), seq: Seq(0) }
}

impl World {
    fn origin(&self) -> Origin {
        Origin { from: ShardId(1), number: self.engine.taken_from(ShardId(1)) + 1 }
    }

    fn enqueue(&mut self, run: u64, spec: &TaskSpec<'_>) {
        let order = Order { caller: caller(run), origin: self.origin(), role: TaskRole::Run };
        self.engine.handle_order(self.now_ms, &order, Dedupe::default(), spec);
        self.drain();
    }

    fn over(&mut self, run: u64) {
        let origin = self.origin();
        self.engine.handle_run_over(self.now_ms, caller(run), Outcome::Completed, origin);
        self.drain();
    }

    /// What runs were told so far, by the outputs of this life or by taking all records back.
    fn says(&self, outputs: impl Iterator<Item = Output>) -> Vec<String> {
        let said = outputs.filter_map(|output| match output {
            Output::Answer { caller, answer } => Some((caller.run.0, answer)),
            _ => None,
        });
        said.map(|(run, answer)| match answer {
            OrderAnswer::Exists(_) => format!("{run} in"),
            OrderAnswer::MayStart => format!("{run} starts"),
            OrderAnswer::Ended(end) => format!("{run} {:?}", end.outcome),
            OrderAnswer::Refused(_) => format!("{run} refused"),
        })
        .collect()
    }

    fn said(&self) -> Vec<String> {
        self.says(self.outputs.iter().cloned())
    }

    fn said_by_records(&self) -> Vec<String> {
        let mut engine = Engine::new(self.config.clone()).unwrap();
        self.records.iter().for_each(|record| engine.restore(record).unwrap());
        self.says(std::iter::from_fn(|| engine.poll_output()))
    }
}

fn limited() -> Config {
    let mut config = config(queue(1));
    config.limits = [("one".into(), LimitSpec::Concurrency(1)), ("rate".into(), rate())].into();
    config
}

fn rate() -> LimitSpec {
    LimitSpec::Rate { limit: 2, period_ms: 1_000, burst: 2 }
}

fn wants() -> TaskSpec<'static> {
    let one = |name| LimitUse { name, key: None, amount: 1 };
    TaskSpec { limits: vec![one("one"), one("rate")], ..spec() }
}

#[test]
fn a_slot_and_limits_are_held_over_drains_lost_threads_and_crashes_until_the_run_is_over() {
    let mut world = World::new(limited());
    world.enqueue(1, &wants());
    world.enqueue(2, &wants());
    assert_eq!(world.said(), ["1 in", "1 starts", "2 in"]);
    assert!(world.running.is_empty(), "nobody is to run anything");
    world.engine.handle_member_gone(0, MemberNo(0));
    world.engine.handle_drain(0);
    world.engine.handle_cut(0);
    world.drain();
    for was_clean in [true, false] {
        world.crash_at(world.records.len(), was_clean);
        world.advance(10_000);
        assert_eq!(world.status(TaskNo(1)), Status::Running);
        assert_eq!(world.status(TaskNo(2)), Status::Queued, "it has neither slot nor limit");
        assert_eq!(world.engine.limit_usage("one", None).unwrap().used, 1);
        assert_eq!(world.said(), ["1 in", "1 starts", "2 in"], "by the records: the same, under the same numbers");
    }
    world.over(1);
    world.advance(10_000);
    assert_eq!((world.outcome(TaskNo(1)), world.status(TaskNo(2))), (Outcome::Completed, Status::Running));
    world.over(2);
    assert_eq!(world.engine.limit_usage("one", None).unwrap().used, 0);
    assert_eq!(world.said_by_records(), ["1 in", "1 starts", "2 in", "2 starts"]);
}

#[test]
fn what_runs_are_told_follows_from_the_records_whatever_ends_them() {
    let bounds = Bounds { pending: Some(2), ..Bounds::default() };
    let mut world = World::of(QueueConfig { bounds, ..queue(1) });
    world.enqueue(1, &spec());
    world.enqueue(2, &TaskSpec { expires_ms: Some(50), ..spec() });
    world.enqueue(3, &spec());
    world.enqueue(4, &spec());
    world.enqueue(5, &spec());
    assert_eq!(world.said(), ["1 in", "1 starts", "2 in", "3 in"], "two wait for room");
    // Over before there was room, over before its turn, over after it was started; and all of it again.
    world.over(5);
    world.over(3);
    world.advance(60);
    world.over(1);
    for run in [1, 2, 3, 5, 9] {
        world.over(run);
    }
    let said = ["1 in", "1 starts", "2 in", "3 in", "5 refused", "4 in", "2 Expired", "4 starts"];
    assert_eq!(world.said(), said);
    assert_eq!(world.said_by_records(), said);
    assert!(!world.engine.handle_cancel(60, TaskNo(4), b"why"), "a run is ended in its shard");
    assert_eq!(world.engine.handle_revive(60, TaskNo(2)), Ok(false));
    world.over(4);
    assert_eq!(world.engine.taken_from(ShardId(1)), 14);
}

#[test]
fn what_is_refused_for_sure_is_known_before() {
    let bounds = Bounds { pending: Some(1), ..Bounds::default() };
    let mut world = World::of(QueueConfig { bounds, on_full: OnFull::Reject, ..queue(0) });
    assert_eq!(world.engine.check_enqueue(0, &spec()), Ok(()));
    world.enqueue(1, &spec());
    assert!(matches!(world.engine.check_enqueue(0, &spec()), Err(Refusal::Full { .. })));
    let nowhere = TaskSpec { queue: "none", ..spec() };
    assert!(matches!(world.engine.check_enqueue(0, &nowhere), Err(Refusal::UnknownQueue(_))));
    world.enqueue(2, &spec());
    assert_eq!(world.said(), ["1 in", "2 refused"]);
    assert!(world.engine.poll_record().is_none());
}

#[test]
fn a_checkpoint_has_what_stands_for_runs() {
    let mut world = World::new(limited());
    world.enqueue(1, &wants());
    world.over(1);
    world.enqueue(2, &wants());
    world.enqueue(3, &wants());
    world.begin_checkpoint();
    assert!(world.save_tasks(1 << 20));
    world.crash();
    let runs = |world: &World| world.engine.tasks_after(TaskNo(0)).map(|task| task.run).collect::<Vec<_>>();
    assert_eq!(runs(&world), [Some(caller(1)), Some(caller(2)), Some(caller(3))]);
    assert_eq!((world.status(TaskNo(2)), world.status(TaskNo(3))), (Status::Running, Status::Queued));
    world.over(2);
    world.advance(10_000);
    assert_eq!((world.outcome(TaskNo(2)), world.status(TaskNo(3))), (Outcome::Completed, Status::Running));
}
