//! Tasks that runs ask for: each message is taken once and answered once, wherever a crash cuts the records.

use super::world::{World, config, keyed, queue, spec};
use crate::record::{
    Caller, Dedupe, DedupeMode, Order, Origin, Outcome, RunNo, Seq, ShardId, TaskNo, TaskRole, TaskSpec,
};
use crate::scheduler::*;

const CALLER: Caller = Caller { shard: ShardId(1), run: RunNo(3), seq: Seq(1) };

fn order(number: u64, role: TaskRole) -> Order {
    let caller = Caller { seq: Seq(number as u32), ..CALLER };
    Order { caller, origin: Origin { from: ShardId(1), number }, role }
}

fn origin(number: u64) -> Origin {
    Origin { from: ShardId(1), number }
}

impl World {
    fn order(&mut self, order: &Order, spec: &TaskSpec<'_>) {
        self.order_as(order, spec, Dedupe::default());
    }

    fn order_as(&mut self, order: &Order, spec: &TaskSpec<'_>, dedupe: Dedupe) {
        self.engine.handle_order(self.now_ms, order, dedupe, spec);
        self.drain();
    }

    /// What runs were told since the last time: the operation, and in short what.
    fn told(&mut self) -> Vec<(u32, String)> {
        let told = self.outputs.iter().filter_map(|output| match output {
            Output::Answer { caller, answer } => Some((caller.seq.0, short(answer))),
            _ => None,
        });
        let told = told.collect();
        self.outputs.clear();
        told
    }

    /// What runs are told by taking all records back.
    fn told_by_records(&self) -> Vec<(u32, String)> {
        let mut engine = Engine::new(self.config.clone()).unwrap();
        self.records.iter().for_each(|record| engine.restore(record).unwrap());
        let outputs = std::iter::from_fn(|| engine.poll_output());
        outputs
            .filter_map(|output| match output {
                Output::Answer { caller, answer } => Some((caller.seq.0, short(&answer))),
                _ => None,
            })
            .collect()
    }
}

fn short(answer: &OrderAnswer) -> String {
    match answer {
        OrderAnswer::Exists(answer) => format!("{answer:?}"),
        OrderAnswer::MayStart => "MayStart".into(),
        OrderAnswer::Ended(end) => format!("{:?} after {}", end.outcome, end.attempts),
        OrderAnswer::Refused(why) => String::from_utf8_lossy(why).split('\n').next().unwrap_or_default().to_owned(),
    }
}

#[test]
fn who_awaits_is_told_of_the_end_and_who_does_not_that_it_exists() {
    let mut world = World::of(queue(2));
    world.order(&order(1, TaskRole::Awaited), &spec());
    world.order(&order(2, TaskRole::Detached), &spec());
    assert_eq!(world.engine.taken_from(ShardId(1)), 2);
    assert_eq!(world.told(), [(2, "New(TaskNo(2))".into())]);
    world.complete(TaskNo(1));
    world.complete(TaskNo(2));
    assert_eq!(world.told(), [(1, "Completed after 1".into())]);
}

#[test]
fn a_key_that_is_taken_joins_the_task_that_has_it() {
    let mut world = World::of(queue(0));
    let first = world.submit(&keyed("a"));
    world.order(&order(1, TaskRole::Awaited), &keyed("a"));
    let replace = Dedupe { mode: DedupeMode::Replace, ..Dedupe::default() };
    world.order_as(&order(2, TaskRole::Detached), &keyed("a"), replace);
    let error = Dedupe { mode: DedupeMode::Error, ..Dedupe::default() };
    world.order_as(&order(3, TaskRole::Awaited), &keyed("a"), error);
    assert_eq!(world.told(), [(2, format!("Changed({first:?})")), (3, "BUSY".into())]);
    world.engine.handle_order_cancelled(0, order(1, TaskRole::Awaited).caller, origin(4));
    world.drain();
    assert_eq!(world.status(first), Status::Queued, "it was not made for the run");
    world.cancel(first);
    assert_eq!(world.told(), [(1, "Cancelled after 0".into())]);
}

#[test]
fn a_run_that_gives_up_cancels_what_was_made_for_it_or_waits_for_room() {
    let mut world = World::of(QueueConfig { bounds: Bounds { pending: Some(1), ..Bounds::default() }, ..queue(0) });
    world.order(&order(1, TaskRole::Awaited), &spec());
    world.order(&order(2, TaskRole::Awaited), &spec());
    world.order(&order(3, TaskRole::Detached), &spec());
    assert_eq!(world.told(), [], "two wait for room");
    world.engine.handle_order_cancelled(0, order(2, TaskRole::Awaited).caller, origin(4));
    world.drain();
    assert_eq!(world.told(), [(2, "CANCELLED".into())]);
    world.engine.handle_order_cancelled(0, order(1, TaskRole::Awaited).caller, origin(5));
    world.drain();
    assert_eq!(world.outcome(TaskNo(1)), Outcome::Cancelled);
    assert_eq!(world.told(), [(1, "Cancelled after 0".into()), (3, "New(TaskNo(2))".into())]);
    world.engine.handle_order_cancelled(0, order(1, TaskRole::Awaited).caller, origin(6));
    world.drain();
    assert_eq!((world.told(), world.engine.taken_from(ShardId(1))), (vec![], 6), "of what is over it is nothing");
}

#[test]
fn what_waits_for_room_waits_over_restarts_and_closings() {
    let mut world = World::of(QueueConfig { bounds: Bounds { pending: Some(1), ..Bounds::default() }, ..queue(1) });
    for number in 1..=4 {
        world.order(&order(number, TaskRole::Awaited), &spec());
    }
    world.engine.handle_drain(0);
    world.drain();
    assert!(!world.engine.takes_messages());
    assert_eq!(world.told(), [], "nobody is refused by a closing");
    world.crash_at(world.records.len(), true);
    assert_eq!(world.engine.taken_from(ShardId(1)), 4);
    world.run_all();
    let told: Vec<u32> = world.told().into_iter().map(|(seq, _)| seq).collect();
    assert_eq!(told, [1, 2, 3, 4], "in the order in which they were asked for");
}

#[test]
fn a_watch_of_a_task_that_is_over_or_unknown_is_answered_at_once() {
    let mut world = World::of(queue(1));
    let task = world.submit(&spec());
    world.complete(task);
    world.engine.handle_watch(0, &order(1, TaskRole::AwaitedLoosely), task);
    world.engine.handle_watch(0, &order(2, TaskRole::AwaitedLoosely), TaskNo(9));
    world.drain();
    assert_eq!(world.told(), [(1, "Completed after 1".into()), (2, "NOT_FOUND".into())]);
}

/// Everything that a run can ask for, as messages; those that were taken before are sent again and are nothing.
fn send_all(world: &mut World) {
    let narrow = TaskSpec { queue: "narrow", ..spec() };
    for number in 1..=9 {
        let order = |role| order(number, role);
        if number <= world.engine.taken_from(ShardId(1)) {
            continue;
        }
        match number {
            1 => world.order(&order(TaskRole::Awaited), &spec()),
            2 => world.order(&order(TaskRole::Detached), &keyed("a")),
            3 => world.order(&order(TaskRole::AwaitedLoosely), &keyed("a")),
            4 | 5 => world.order(&order(TaskRole::Awaited), &narrow),
            6 => world.engine.handle_order_cancelled(0, super::orders::order(5, TaskRole::Awaited).caller, origin(6)),
            7 => world.order(&order(TaskRole::Awaited), &TaskSpec { queue: "none", ..spec() }),
            8 => world.engine.handle_cancel_by_run(0, TaskNo(1), b"why", origin(8)),
            _ => world.engine.handle_watch(0, &order(TaskRole::AwaitedLoosely), TaskNo(1)),
        }
        world.drain();
    }
    while !world.running.is_empty() {
        world.run_all();
    }
}

fn crowded() -> Config {
    let narrow = QueueConfig { bounds: Bounds { pending: Some(1), ..Bounds::default() }, ..queue(1) };
    let mut config = config(queue(2));
    config.queues.insert("narrow".into(), narrow);
    config
}

#[test]
fn a_crash_behind_any_record_loses_and_doubles_nothing() {
    let mut plain = World::new(crowded());
    plain.submit(&TaskSpec { queue: "narrow", ..spec() });
    plain.submit(&TaskSpec { queue: "narrow", ..spec() });
    let first = plain.records.len();
    send_all(&mut plain);
    let mut answered: Vec<u32> = plain.told_by_records().into_iter().map(|(seq, _)| seq).collect();
    answered.sort_unstable();
    assert_eq!(answered, [1, 2, 3, 4, 5, 7, 9], "each operation that waits, once");
    let tasks = |world: &World| world.engine.tasks_after(TaskNo(0)).count();
    for kept in first..=plain.records.len() {
        let mut world = World::new(crowded());
        world.records = plain.records.clone();
        world.crash_at(kept, false);
        send_all(&mut world);
        let mut again: Vec<u32> = world.told_by_records().into_iter().map(|(seq, _)| seq).collect();
        again.sort_unstable();
        assert_eq!(again, answered, "after a crash behind record {kept}");
        assert_eq!(tasks(&world), tasks(&plain), "after a crash behind record {kept}");
    }
}

#[test]
fn answers_come_in_the_same_order_from_the_records_as_they_came_live() {
    let mut world = World::new(crowded());
    world.submit(&TaskSpec { queue: "narrow", ..spec() });
    world.submit(&TaskSpec { queue: "narrow", ..spec() });
    send_all(&mut world);
    let by_records = world.told_by_records();
    assert_eq!(world.told(), by_records, "their numbers follow from it");
}
