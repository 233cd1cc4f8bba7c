//! What the engine shows.

use super::world::{World, classed, queue, spec};
use crate::record::{Class, OnMiss, Reserve, TaskNo, TaskSpec};
use crate::scheduler::{Failure, Reason};

#[test]
fn a_snapshot_counts_what_there_is_and_what_was() {
    let mut world = World::of(queue(2));
    let tasks: Vec<TaskNo> = (0..4).map(|_| world.submit(&spec())).collect();
    world.submit(&classed(Class::Low));
    world.advance(1_000);
    world.complete(tasks[0]);
    world.fail(tasks[1], Failure::Permanent);
    let view = world.engine.handle_snapshot(world.now_ms, "q").unwrap();
    assert_eq!((view.capacity, view.busy, view.pending, view.ready), (2, 2, [0, 0, 0, 1], 1));
    assert_eq!((view.dispatched, view.completed, view.failed_attempts), (4, 1, 1));
    assert_eq!((view.adherence, view.on_time), (1_000, 1_000));
    assert_eq!((view.utilisation, view.efficiency), (1_000, 500));
    assert!((1_000..1_125).contains(&view.run_p50_ms));
    assert_eq!(view.wait_p50_ms, 0);
    assert!((1_000..1_125).contains(&view.wait_p99_ms));
    assert_eq!(view.worker_ms, 2_000);
    assert!(world.engine.handle_snapshot(0, "none").is_none());
}

#[test]
fn the_window_moves_on() {
    let mut world = World::of(queue(1));
    let task = world.submit(&spec());
    world.advance(1_000);
    world.complete(task);
    world.advance(70_000);
    let view = world.engine.handle_snapshot(world.now_ms, "q").unwrap();
    assert_eq!((view.dispatched, view.completed, view.utilisation), (0, 0, 0));
    let after_years = world.now_ms + 1_000_000_000_000;
    let view = world.engine.handle_snapshot(after_years, "q").unwrap();
    assert_eq!(view.utilisation, 0);
}

#[test]
fn without_workers_nothing_is_used_and_nothing_is_missed() {
    let mut world = World::of(queue(0));
    world.submit(&spec());
    world.advance(10_000);
    let view = world.engine.handle_snapshot(world.now_ms, "q").unwrap();
    assert_eq!((view.utilisation, view.efficiency, view.adherence, view.on_time), (0, 0, 1_000, 1_000));
}

#[test]
fn a_start_within_its_tolerance_is_on_time() {
    let mut world = World::of(queue(1));
    let reserve = Some(Reserve { tolerance_ms: 100, on_miss: OnMiss::RunLate });
    let task = world.submit(&TaskSpec { not_before_ms: Some(1_000), reserve, ..spec() });
    world.advance(1_000);
    world.complete(task);
    let late = world.submit(&TaskSpec { not_before_ms: Some(0), reserve, ..spec() });
    world.complete(late);
    assert_eq!(world.engine.handle_snapshot(world.now_ms, "q").unwrap().on_time, 500);
}

#[test]
fn an_explanation_says_how_many_go_before() {
    let mut world = World::of(queue(1));
    world.submit(&spec());
    for _ in 0..3 {
        world.submit(&spec());
    }
    let last = world.submit(&spec());
    assert_eq!(world.engine.explain(last), Some(Reason::Behind { tasks: 3, busy: 1, capacity: 1 }));
    world.fail_once(TaskNo(1));
    assert!(matches!(world.engine.explain(TaskNo(1)), Some(Reason::Until { is_retry: true, .. })));
    assert_eq!(world.engine.explain(TaskNo(2)), Some(Reason::Running));
    assert_eq!(world.engine.explain(TaskNo(99)), None);
}

#[test]
fn tasks_are_listed_in_the_order_of_their_numbers() {
    let mut world = World::of(queue(1));
    let tasks: Vec<TaskNo> = (0..600).map(|_| world.submit(&spec())).collect();
    let listed: Vec<TaskNo> = world.engine.tasks_after(tasks[299]).map(|view| view.task).collect();
    assert_eq!(listed, tasks[300..]);
    let view = world.engine.task(tasks[0]).unwrap();
    assert_eq!((view.queue, view.kind, view.key, view.payload), ("q", "k", None, &b"in"[..]));
}

#[test]
fn ended_tasks_are_remembered_by_count_and_by_age() {
    let mut config = super::world::config(queue(1));
    config.retained_max = 2;
    config.retained_ms = 1_000;
    let mut world = World::new(config);
    let tasks: Vec<TaskNo> = (0..4).map(|_| world.submit(&TaskSpec { key: Some("a"), ..spec() })).collect();
    assert_eq!(tasks[0], tasks[3]);
    world.complete(tasks[0]);
    for _ in 0..2 {
        let task = world.submit(&spec());
        world.complete(task);
    }
    assert!(world.engine.task(tasks[0]).is_none());
    assert!(world.engine.task_by_key("a").is_none());
    world.advance(1_001);
    let task = world.submit(&spec());
    world.complete(task);
    assert_eq!(world.engine.tasks_after(TaskNo(0)).count(), 1);
}
