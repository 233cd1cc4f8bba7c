//! Who goes next.

use super::world::{World, classed, queue, spec};
use crate::record::{Class, TaskNo, TaskSpec};
use crate::scheduler::{LINES, Output, RELIEF_PASSES, RELIEF_WAIT_MS, Status};

#[test]
fn a_plain_task_is_blocked_then_ready_then_runs_then_completes() {
    let mut config = super::world::config(queue(1));
    config.tells_all = true;
    let mut world = World::new(config);
    let task = world.submit(&spec());
    world.complete(task);
    let told: Vec<Status> = world
        .outputs
        .iter()
        .filter_map(|output| match output {
            Output::Changed { status, .. } => Some(*status),
            _ => None,
        })
        .collect();
    let completed = Status::Ended(crate::record::Outcome::Completed);
    assert_eq!(told, [Status::Blocked, Status::Queued, Status::Running, completed]);
}

#[test]
fn the_more_important_goes_first_and_equals_in_the_order_of_arrival() {
    let mut world = World::of(queue(1));
    let running = world.submit(&spec());
    let tasks: Vec<TaskNo> = [Class::Low, Class::Normal, Class::High, Class::Normal, Class::Critical]
        .map(|class| world.submit(&classed(class)))
        .to_vec();
    assert_eq!(world.run_all(), [running, tasks[4], tasks[2], tasks[1], tasks[3], tasks[0]]);
}

#[test]
fn an_old_low_task_goes_before_a_new_normal_one_and_after_a_new_high_one() {
    let mut world = World::of(queue(1));
    let running = world.submit(&spec());
    let low = world.submit(&classed(Class::Low));
    world.advance(499_000);
    let normal = world.submit(&spec());
    let high = world.submit(&classed(Class::High));
    assert_eq!(world.run_all(), [running, high, low, normal]);
}

#[test]
fn a_flood_of_normal_tasks_lets_a_low_one_start_within_100_s() {
    let mut world = World::of(queue(1));
    world.submit(&spec());
    let low = world.submit(&classed(Class::Low));
    world.submit(&spec());
    for _ in 0..100 {
        world.advance(1_000);
        world.submit(&spec());
        let task = *world.running.keys().next().unwrap();
        world.complete(task);
        if world.started.contains(&low) {
            return;
        }
    }
    panic!("it never started");
}

/// The case in which a score with one ceiling a class starves the lower class for good: a standing backlog whose first
/// task is always older than 355 s.
#[test]
fn a_standing_backlog_older_than_355_s_does_not_starve_a_low_task() {
    let mut world = World::of(queue(1));
    for _ in 0..400 {
        world.submit(&spec());
        world.advance(1_000);
    }
    let low = world.submit(&classed(Class::Low));
    let bound = (RELIEF_WAIT_MS / 1_000) as usize + RELIEF_PASSES as usize + LINES;
    for _ in 0..bound {
        let task = *world.running.keys().next().unwrap();
        world.complete(task);
        world.submit(&spec());
        world.advance(1_000);
        let running = *world.running.keys().next().unwrap();
        if running == low {
            return;
        }
        let age_ms = world.now_ms - world.engine.task(running).unwrap().submitted_ms;
        assert!(age_ms >= 355_000, "the backlog stands");
    }
    panic!("it starves");
}

#[test]
fn every_class_gets_its_part_of_a_flood_of_critical_tasks_within_the_bound() {
    let mut world = World::of(queue(1));
    world.submit(&classed(Class::Critical));
    let others = [Class::High, Class::Normal, Class::Low].map(|class| world.submit(&classed(class)));
    for _ in 0..4 {
        world.submit(&classed(Class::Critical));
    }
    world.advance(RELIEF_WAIT_MS);
    let from = world.started.len();
    let bound = RELIEF_PASSES as usize + LINES;
    for _ in 0..bound {
        let task = *world.running.keys().next().unwrap();
        world.submit(&classed(Class::Critical));
        world.complete(task);
    }
    let started = &world.started[from..];
    assert!(others.iter().all(|task| started.contains(task)), "all within {bound} dispatches");
    assert!(started.iter().position(|task| others.contains(task)).unwrap() >= RELIEF_PASSES as usize - 1);
}

#[test]
fn tasks_that_are_overdue_when_they_arrive_do_not_starve_an_ordinary_deadline() {
    let mut world = World::of(queue(1));
    world.submit(&spec());
    let deadline_ms = Some(20_000);
    let ordinary = world.submit(&TaskSpec { deadline_ms, ..spec() });
    for _ in 0..100 {
        let late = TaskSpec { deadline_ms: Some(world.now_ms - 100_000), ..spec() };
        world.submit(&late);
        world.submit(&late);
        world.advance(1_000);
        let task = *world.running.keys().next().unwrap();
        world.complete(task);
        if world.started.contains(&ordinary) {
            assert!(world.now_ms <= 60_000, "started at {}", world.now_ms);
            return;
        }
    }
    panic!("it starves");
}

#[test]
fn a_deadline_that_comes_near_goes_before_a_better_class() {
    let mut world = World::of(queue(1));
    let running = world.submit(&spec());
    let low = world.submit(&TaskSpec { deadline_ms: Some(20_000), estimate_ms: Some(1_000), ..classed(Class::Low) });
    let high = world.submit(&classed(Class::High));
    world.advance(19_000);
    let critical = world.submit(&classed(Class::Critical));
    assert_eq!(world.run_all(), [running, critical, low, high]);
}

#[test]
fn a_task_that_comes_back_goes_to_its_old_place() {
    let mut world = World::of(queue(1));
    let first = world.submit(&spec());
    let second = world.submit(&spec());
    let third = world.submit(&spec());
    world.fail_once(first);
    assert_eq!(world.running.keys().collect::<Vec<_>>(), [&second]);
    world.advance(1_000);
    world.complete(second);
    assert_eq!(world.running.keys().collect::<Vec<_>>(), [&first], "before the third");
    assert_eq!(world.run_all(), [first, third]);
}

#[test]
fn plain_tasks_of_a_class_start_in_the_order_of_arrival() {
    let mut world = World::of(queue(3));
    let tasks: Vec<TaskNo> = (0..50).map(|_| world.submit(&spec())).collect();
    world.run_all();
    assert_eq!(world.started, tasks);
}

#[test]
fn waiting_counts_from_when_a_task_could_run() {
    let mut world = World::of(queue(1));
    let running = world.submit(&spec());
    let delayed = world.submit(&TaskSpec { not_before_ms: Some(400_000), ..classed(Class::Low) });
    world.advance(410_000);
    let normal = world.submit(&spec());
    assert_eq!(world.run_all(), [running, normal, delayed], "it waited for 10 s, not for 410");
}

#[test]
fn a_changed_class_counts_at_once() {
    let mut world = World::of(queue(1));
    let running = world.submit(&spec());
    let first = world.submit(&spec());
    let second = world.submit(&classed(Class::Low));
    assert!(world.engine.handle_reprioritize(world.now_ms, second, Class::High));
    world.drain();
    assert_eq!(world.run_all(), [running, second, first]);
    assert!(!world.engine.handle_reprioritize(world.now_ms, second, Class::Low), "it is over");
}
