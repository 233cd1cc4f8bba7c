//! Shares of tenants.

use super::world::{World, classed, config, queue, spec};
use crate::record::{Class, Condition, Edge, LimitSpec, LimitUse, Outcome, Parent, TaskNo, TaskSpec};
use crate::scheduler::{Failure, QueueConfig, Status};
use std::collections::BTreeMap;

fn fair(weights: &[(&str, u32)]) -> QueueConfig {
    let weights: BTreeMap<Box<str>, u32> = weights.iter().map(|(name, weight)| ((*name).into(), *weight)).collect();
    QueueConfig { fair: Some(weights), ..queue(1) }
}

fn of(tenant: &'static str) -> TaskSpec<'static> {
    TaskSpec { tenant: Some(tenant), ..spec() }
}

fn tenants(world: &World, tasks: &[TaskNo]) -> String {
    let first =
        |task: &TaskNo| world.engine.task(*task).unwrap().tenant.map_or('-', |name| name.chars().next().unwrap());
    tasks.iter().map(first).collect()
}

#[test]
fn weights_share_the_dispatches_whoever_came_first() {
    let mut world = World::of(fair(&[("heavy", 300), ("light", 100)]));
    world.submit(&spec());
    for _ in 0..60 {
        world.submit(&of("light"));
    }
    for _ in 0..60 {
        world.submit(&of("heavy"));
    }
    let order = world.run_all();
    let heavy = tenants(&world, &order[1..41]).matches('h').count();
    assert!((29..=31).contains(&heavy), "{heavy} of 40");
}

#[test]
fn an_idle_tenant_saves_nothing_up() {
    let mut world = World::of(fair(&[]));
    world.submit(&spec());
    for _ in 0..50 {
        world.submit(&of("alone"));
    }
    for _ in 0..30 {
        world.advance(300);
        let task = *world.running.keys().next().unwrap();
        world.complete(task);
    }
    for _ in 0..20 {
        world.submit(&of("newcomer"));
    }
    let order = world.run_all();
    let told = tenants(&world, &order[1..21]);
    assert!(told == "an".repeat(10) || told == "na".repeat(10), "{told}");
}

#[test]
fn one_tenant_of_many_tasks_does_not_hold_up_another() {
    let mut world = World::of(fair(&[]));
    world.submit(&spec());
    for _ in 0..500 {
        world.submit(&of("many"));
    }
    let few = world.submit(&of("few"));
    let order = world.run_all();
    assert!(order.iter().position(|task| *task == few).unwrap() <= 2);
}

#[test]
fn classes_come_before_shares_and_deadlines_leave_them() {
    let mut world = World::of(fair(&[]));
    let running = world.submit(&spec());
    let normal = world.submit(&of("a"));
    let high = world.submit(&TaskSpec { tenant: Some("a"), ..classed(Class::High) });
    let urgent = world.submit(&TaskSpec { deadline_ms: Some(0), ..of("a") });
    assert_eq!(world.run_all(), [running, urgent, high, normal]);
}

#[test]
fn nobody_pays_after_a_restart_for_what_it_had_before() {
    let mut world = World::of(fair(&[]));
    for _ in 0..30 {
        let task = world.submit(&of("busy"));
        world.complete(task);
    }
    world.submit(&spec());
    world.crash();
    for _ in 0..10 {
        world.submit(&of("busy"));
        world.submit(&of("idle"));
    }
    let order = world.run_all();
    let told = tenants(&world, &order[1..21]);
    assert!(told == "bi".repeat(10) || told == "ib".repeat(10), "{told}");
}

#[test]
fn a_task_that_could_never_run_costs_its_tenant_nothing() {
    let mut world = World::of(fair(&[]));
    let parent = world.submit(&spec());
    world.fail(parent, Failure::Permanent);
    world.submit(&spec());
    for _ in 0..5 {
        let edge = Edge { parent: Parent::Number(parent), condition: Condition::Success };
        let task = world.submit(&TaskSpec { after: vec![edge], ..of("a") });
        assert_eq!(world.outcome(task), Outcome::Skipped);
    }
    for _ in 0..4 {
        world.submit(&of("a"));
        world.submit(&of("b"));
    }
    let order = world.run_all();
    assert_eq!(tenants(&world, &order[1..9]), "ab".repeat(4));
}

#[test]
fn a_task_that_changes_its_class_while_it_waits_for_a_limit_has_a_share_of_the_new_one() {
    let mut config = config(QueueConfig { concurrency: 2, ..fair(&[]) });
    config.limits.insert("c".into(), LimitSpec::Concurrency(1));
    let mut world = World::new(config);
    for _ in 0..5 {
        let task = world.submit(&TaskSpec { class: Class::Low, ..of("a") });
        world.complete(task);
    }
    let limits = vec![LimitUse { name: "c", key: None, amount: 1 }];
    let holder = world.submit(&TaskSpec { limits: limits.clone(), ..spec() });
    let task = world.submit(&TaskSpec { limits, class: Class::Low, ..of("a") });
    world.submit(&spec());
    assert!(world.engine.handle_reprioritize(0, task, Class::Normal));
    world.drain();
    for _ in 0..3 {
        world.submit(&of("b"));
    }
    world.complete(holder);
    assert_eq!(world.status(task), Status::Running);
}
