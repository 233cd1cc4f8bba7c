//! Slots that come and go, and workers with labels.

use super::world::{World, queue, spec};
use crate::record::{LimitSpec, LimitUse, TaskSpec};
use crate::scheduler::{Output, Reason, Refusal, Status, Warning};

const GPU: &[(&str, &str)] = &[("gpu", "a")];

fn labels(of: &[(&str, &str)]) -> Vec<(Box<str>, Box<str>)> {
    of.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

fn labelled() -> TaskSpec<'static> {
    TaskSpec { labels: GPU.to_vec(), ..spec() }
}

#[test]
fn a_task_waits_for_a_worker_with_its_labels_and_holds_up_nobody() {
    let mut world = World::of(queue(1));
    let task = world.submit(&labelled());
    let plain = world.submit(&spec());
    assert_eq!(world.status(plain), Status::Running);
    assert_eq!(world.engine.explain(task), Some(Reason::Labels { anybody: false }));
    assert!(world.outputs.contains(&Output::Warning(Warning::NoWorkerFor { task, queue: "q".into() })));
    world.engine.handle_workers(0, "q", &labels(GPU), 1).unwrap();
    world.drain();
    assert_eq!(world.status(task), Status::Running);
    let next = world.submit(&labelled());
    world.complete(plain);
    assert_eq!(world.engine.explain(next), Some(Reason::Labels { anybody: true }));
    world.complete(task);
    assert_eq!(world.status(next), Status::Running);
}

#[test]
fn a_worker_goes_to_the_next_when_the_first_lacks_a_limit() {
    let mut config = super::world::config(queue(2));
    config.limits.insert("c".into(), LimitSpec::Concurrency(1));
    let mut world = World::new(config);
    world.engine.handle_workers(0, "q", &labels(GPU), 1).unwrap();
    let limited = vec![LimitUse { name: "c", key: None, amount: 1 }];
    let holder = world.submit(&TaskSpec { limits: limited.clone(), ..spec() });
    let task = world.submit(&labelled());
    let first = world.submit(&TaskSpec { limits: limited, ..labelled() });
    let second = world.submit(&labelled());
    world.complete(task);
    assert!(matches!(world.engine.explain(first), Some(Reason::Limit { .. })));
    assert_eq!(world.status(second), Status::Running);
    world.complete(second);
    world.complete(holder);
    assert_eq!(world.status(first), Status::Running);
}

#[test]
fn slots_that_go_stop_nothing_and_slots_that_come_start_something() {
    let mut world = World::of(queue(3));
    let tasks: Vec<_> = (0..6).map(|_| world.submit(&spec())).collect();
    world.engine.handle_workers(0, "q", &[], 1).unwrap();
    world.drain();
    assert_eq!(world.running.len(), 3);
    world.complete(tasks[0]);
    world.complete(tasks[1]);
    assert_eq!(world.started.len(), 3);
    world.complete(tasks[2]);
    assert_eq!(world.started.len(), 4);
    world.engine.handle_concurrency(0, "q", 3).unwrap();
    world.drain();
    assert_eq!(world.started.len(), 6);
}

#[test]
fn a_paused_queue_starts_nothing_and_stays_paused_over_a_restart() {
    let mut world = World::of(queue(2));
    let running = world.submit(&spec());
    world.engine.handle_pause(0, "q", true).unwrap();
    let task = world.submit(&spec());
    assert_eq!(world.engine.explain(task), Some(Reason::Paused));
    world.complete(running);
    world.crash();
    assert!(world.running.is_empty());
    world.engine.handle_pause(0, "q", false).unwrap();
    world.drain();
    assert!(world.running.contains_key(&task));
}

#[test]
fn slots_set_while_running_stay_over_a_restart() {
    let mut world = World::of(queue(1));
    world.engine.handle_concurrency(0, "q", 3).unwrap();
    world.drain();
    world.crash();
    for _ in 0..5 {
        world.submit(&spec());
    }
    assert_eq!(world.running.len(), 3);
}

#[test]
fn an_unknown_queue_is_refused() {
    let mut world = World::of(queue(1));
    let unknown = Refusal::UnknownQueue("none".into());
    assert_eq!(world.try_submit(&TaskSpec { queue: "none", ..spec() }), Err(unknown.clone()));
    assert_eq!(world.engine.handle_pause(0, "none", true), Err(unknown.clone()));
    assert_eq!(world.engine.handle_workers(0, "none", &[], 1), Err(unknown));
}
