//! Threads that run functions: who gets what, and what becomes of attempts when one is gone.

use super::world::{World, config, queue, spec};
use crate::record::{Outcome, TaskNo, TaskSpec};
use crate::scheduler::{Config, Member, MemberNo, Output, QueueConfig, Reason, Status, Warning};

const GPU: (&str, &str) = ("gpu", "a");

fn member(kinds: &[&str], labels: &[(&str, &str)]) -> Member {
    Member {
        kinds: kinds.iter().map(|kind| (*kind).into()).collect(),
        labels: labels.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
    }
}

/// A world in which no thread has code yet.
fn world(of: QueueConfig) -> World {
    World::new(Config { kinds: Some(Default::default()), ..config(of) })
}

fn came(world: &mut World, no: u8, of: Member) {
    world.engine.handle_member(world.now_ms, MemberNo(no), of);
    world.drain();
}

fn gone(world: &mut World, no: u8) {
    world.engine.handle_member_gone(world.now_ms, MemberNo(no));
    world.drain();
}

/// The thread to which the newest attempt of a task went.
fn thread_of(world: &World, of: TaskNo) -> u8 {
    let newest = world.outputs.iter().rev().find_map(|output| match output {
        Output::Dispatch { task, member, .. } if *task == of => Some(member.0),
        _ => None,
    });
    newest.expect("it was dispatched")
}

#[test]
fn tasks_wait_for_a_thread_with_their_code_and_are_shared_out_evenly() {
    let mut world = world(queue(10));
    let tasks: Vec<_> = (0..4).map(|_| world.submit(&spec())).collect();
    assert_eq!(world.engine.explain(tasks[0]), Some(Reason::Unregistered));
    came(&mut world, 1, member(&["other"], &[]));
    assert_eq!(world.status(tasks[0]), Status::Queued);
    came(&mut world, 2, member(&[spec().kind], &[]));
    assert!(tasks.iter().all(|task| thread_of(&world, *task) == 2));
    came(&mut world, 3, member(&[spec().kind], &[]));
    let more: Vec<_> = (0..6).map(|_| world.submit(&spec())).collect();
    let of_third = more.iter().filter(|task| thread_of(&world, **task) == 3).count();
    assert_eq!(of_third, 5, "until it has as many as the other one");
}

#[test]
fn labels_are_carried_by_threads_and_rare_ones_are_kept() {
    let mut world = world(queue(10));
    came(&mut world, 1, member(&[spec().kind], &[GPU]));
    let labelled = TaskSpec { labels: vec![GPU], ..spec() };
    let wrong = TaskSpec { labels: vec![("gpu", "b")], ..spec() };
    let (on_gpu, nowhere) = (world.submit(&labelled), world.submit(&wrong));
    assert_eq!(thread_of(&world, on_gpu), 1);
    assert_eq!(world.engine.explain(nowhere), Some(Reason::Labels { anybody: false }));
    assert!(world.outputs.contains(&Output::Warning(Warning::NoWorkerFor { task: nowhere, queue: "q".into() })));
    came(&mut world, 2, member(&[spec().kind], &[]));
    let plain: Vec<_> = (0..3).map(|_| world.submit(&spec())).collect();
    assert!(plain.iter().all(|task| thread_of(&world, *task) == 2));
    came(&mut world, 3, member(&[spec().kind], &[("gpu", "b")]));
    assert_eq!(thread_of(&world, nowhere), 3);
}

#[test]
fn attempts_of_a_thread_that_is_gone_go_elsewhere_at_once_and_the_first_loss_is_free() {
    let mut world = world(queue(10));
    came(&mut world, 1, member(&[spec().kind], &[]));
    let task = world.submit(&spec());
    let lease = world.running[&task];
    came(&mut world, 2, member(&[spec().kind], &[]));
    let other = world.submit(&spec());
    assert_eq!(thread_of(&world, other), 2);
    gone(&mut world, 1);
    assert_eq!((world.status(task), thread_of(&world, task)), (Status::Running, 2));
    assert!(!world.engine.handle_completed(world.now_ms, lease, b""), "what the lost one says changes nothing");
    gone(&mut world, 1);
    assert_eq!(world.status(task), Status::Running, "gone twice is gone once");
    assert_eq!(world.engine.totals().lost, 1);
    gone(&mut world, 2);
    assert_eq!(world.status(other), Status::Queued, "its first loss");
    assert_eq!(world.status(task), Status::Retrying, "its second, which counts");
    came(&mut world, 2, member(&[spec().kind], &[]));
    assert_eq!(world.status(other), Status::Running);
    world.complete(other);
    assert_eq!(world.outcome(other), Outcome::Completed);
}

#[test]
fn a_thread_that_ends_in_a_shutdown_costs_nothing() {
    let mut world = world(queue(1));
    came(&mut world, 1, member(&[spec().kind], &[]));
    let task = world.submit(&spec());
    world.engine.handle_drain(world.now_ms);
    gone(&mut world, 1);
    assert_eq!((world.status(task), world.engine.totals().lost), (Status::Queued, 0));
}

#[test]
fn slots_of_the_queue_bound_all_threads_together() {
    let mut world = world(queue(2));
    for no in 1..4 {
        came(&mut world, no, member(&[spec().kind], &[]));
    }
    let tasks: Vec<_> = (0..5).map(|_| world.submit(&spec())).collect();
    assert_eq!(tasks.iter().filter(|task| world.status(**task) == Status::Running).count(), 2);
    world.complete(tasks[0]);
    assert_eq!(world.status(tasks[2]), Status::Running);
}
