//! Bounds, and what happens when they are reached.

use super::world::{World, classed, config, queue, spec};
use crate::record::{Class, Outcome, TaskNo, TaskSpec};
use crate::scheduler::{Answer, Bounds, Config, OnFull, Output, QueueConfig, Refusal, Submitted, SubmitterNo};

fn bounded(pending: u32, on_full: OnFull) -> QueueConfig {
    QueueConfig { bounds: Bounds { pending: Some(pending), ..Bounds::default() }, on_full, ..queue(1) }
}

fn waits(result: Result<Submitted<Answer>, Refusal>) -> SubmitterNo {
    match result.unwrap() {
        Submitted::Waits(submitter) => submitter,
        Submitted::Now(answer) => panic!("{answer:?}"),
    }
}

fn admitted(world: &World) -> Vec<(SubmitterNo, Result<TaskNo, Refusal>)> {
    let of = |output: &Output| match output {
        Output::Admitted { submitter, result } => {
            let result = result.clone().map(|answers| answers[0].task());
            Some((*submitter, result.map_err(|refusal| refusal.why)))
        }
        _ => None,
    };
    world.outputs.iter().filter_map(of).collect()
}

#[test]
fn who_waits_for_room_is_let_in_in_the_order_of_arrival() {
    let mut world = World::of(bounded(1, OnFull::Wait));
    let running = world.submit(&spec());
    world.submit(&spec());
    let waiting: Vec<SubmitterNo> = (0..3).map(|_| waits(world.try_submit(&spec()))).collect();
    world.complete(running);
    let first = admitted(&world);
    assert_eq!(first.len(), 1);
    assert_eq!(first[0].0, waiting[0]);
    let newcomer = waits(world.try_submit(&spec()));
    world.run_all();
    let order: Vec<SubmitterNo> = admitted(&world).into_iter().map(|(submitter, _)| submitter).collect();
    assert_eq!(order, [waiting[0], waiting[1], waiting[2], newcomer]);
    let numbers: Vec<TaskNo> = admitted(&world).into_iter().map(|(_, task)| task.unwrap()).collect();
    assert!(numbers.is_sorted());
}

#[test]
fn a_full_queue_delays_nobody_elsewhere_and_no_newcomer_passes() {
    let mut config = config(bounded(1, OnFull::Wait));
    config.queues.insert("other".into(), queue(1));
    let mut world = World::new(config);
    world.submit(&spec());
    world.submit(&spec());
    let first = waits(world.try_submit(&spec()));
    world.submit(&TaskSpec { queue: "other", ..spec() });
    assert!(world.engine.handle_abandoned(0, first));
    world.drain();
    assert!(!world.engine.handle_abandoned(0, first));
    assert_eq!(admitted(&world), []);
}

#[test]
fn what_could_never_fit_is_refused_at_once() {
    let mut world = World::of(bounded(2, OnFull::Wait));
    let refusal = world.batch(&[spec(), spec(), spec()]).unwrap_err();
    assert_eq!(refusal.to_string(), "queue \"q\" is full: 0 tasks wait and the bound is 2");
    world.submit(&spec());
    world.submit(&spec());
    let Ok(Submitted::Waits(batch)) = world.batch(&[spec(), spec()]) else { panic!("it waits") };
    let single = waits(world.try_submit(&spec()));
    world.run_all();
    let order: Vec<SubmitterNo> = admitted(&world).into_iter().map(|(submitter, _)| submitter).collect();
    assert_eq!(order, [batch, single], "a single one does not pass a batch of its line");
}

#[test]
fn a_queue_that_rejects_says_how_full_it_is() {
    let mut world = World::of(bounded(1, OnFull::Reject));
    world.submit(&spec());
    world.submit(&spec());
    assert_eq!(world.try_submit(&spec()), Err(Refusal::Full { queue: "q".into(), pending: 1, bound: 1 }));
}

#[test]
fn the_newest_of_the_lowest_class_gives_way_to_a_better_one() {
    let mut world = World::of(bounded(3, OnFull::DropLowest));
    world.submit(&spec());
    let [normal, older, newer] = [Class::Normal, Class::Low, Class::Low].map(|class| world.submit(&classed(class)));
    let high = world.submit(&classed(Class::High));
    assert_eq!(world.outcome(newer), Outcome::Shed);
    assert!(matches!(world.try_submit(&classed(Class::Low)), Err(Refusal::Full { .. })), "none is lower");
    world.submit(&spec());
    assert_eq!(world.outcome(older), Outcome::Shed);
    assert_eq!(world.ended.len(), 2);
    assert!(world.ended.keys().all(|task| ![normal, high].contains(task)));
}

#[test]
fn the_oldest_low_task_gives_way() {
    let mut world = World::of(bounded(2, OnFull::DropOldest));
    world.submit(&spec());
    let older = world.submit(&classed(Class::Low));
    world.submit(&classed(Class::Low));
    world.submit(&classed(Class::Low));
    assert_eq!(world.outcome(older), Outcome::Shed);
}

#[test]
fn nobody_gives_way_when_that_would_not_help() {
    let mut of = bounded(10, OnFull::DropLowest);
    of.bounds.pending_of[2] = Some(1);
    let mut world = World::of(of);
    world.submit(&spec());
    world.submit(&spec());
    let low = world.submit(&classed(Class::Low));
    assert!(matches!(world.try_submit(&spec()), Err(Refusal::Full { bound: 1, .. })), "the class itself is full");
    assert!(!world.ended.contains_key(&low));
}

#[test]
fn what_is_refused_for_its_reservation_makes_nobody_give_way() {
    let mut of = bounded(1, OnFull::DropLowest);
    of.reservable_percent = 1;
    let mut world = World::of(of);
    let reserve = Some(crate::record::Reserve { tolerance_ms: 0, on_miss: crate::record::OnMiss::RunLate });
    let reserved = TaskSpec { not_before_ms: Some(100_000), reserve, ..classed(Class::High) };
    world.submit(&reserved);
    world.cancel(TaskNo(1));
    world.submit(&spec());
    world.submit(&classed(Class::Low));
    world.engine.handle_time(0);
    let taken = TaskSpec { queue: "q", ..reserved.clone() };
    assert!(matches!(world.try_submit(&taken), Ok(Submitted::Now(_))), "it fits, and the low one gives way");
    assert_eq!(world.outcome(TaskNo(3)), Outcome::Shed);
    let before = world.ended.len();
    assert!(matches!(world.try_submit(&reserved), Err(Refusal::Reserved { limit: 1, .. })));
    assert_eq!(world.ended.len(), before);
}

#[test]
fn a_drain_refuses_who_waits() {
    let mut world = World::of(bounded(1, OnFull::Wait));
    world.submit(&spec());
    world.submit(&spec());
    let waiting = waits(world.try_submit(&spec()));
    world.engine.handle_drain(0);
    world.drain();
    assert_eq!(admitted(&world), [(waiting, Err(Refusal::Closed))]);
    assert_eq!(world.try_submit(&spec()), Err(Refusal::Closed));
}

#[test]
fn bounds_over_all_queues_count_all() {
    let mut config = Config { bounds: Bounds { pending: Some(2), ..Bounds::default() }, ..config(queue(0)) };
    config.queues.insert("other".into(), queue(0));
    let mut world = World::new(config);
    world.submit(&spec());
    world.submit(&TaskSpec { queue: "other", ..spec() });
    waits(world.try_submit(&spec()));
}
