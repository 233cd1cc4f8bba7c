//! What is true of an engine between two calls.

use crate::record::TaskNo;
use crate::scheduler::Engine;
use crate::scheduler::task::{Place, State, TaskIx};
use std::collections::BTreeMap;

pub(super) fn check(engine: &Engine) {
    check_counts(engine);
    check_places(engine);
    check_attempts(engine);
    check_waits(engine);
    check_slots(engine);
    check_schedules(engine);
}

/// Pending and ready counts are what counting gives.
fn check_counts(engine: &Engine) {
    let mut pending = [0; 4];
    let mut of_queue: BTreeMap<u16, ([u64; 4], [u64; 4], u64)> = BTreeMap::new();
    for (_, task) in engine.tasks.iter_after(TaskNo(0)) {
        let class = usize::from(task.class.code());
        let of = of_queue.entry(task.queue.0).or_default();
        if task.is_pending() {
            pending[class] += 1;
            of.0[class] += 1;
        }
        of.1[class] += u64::from(task.state == State::Retrying);
        of.2 += u64::from(matches!(task.state, State::Ready(_)));
    }
    assert_eq!(engine.pending, pending);
    for (at, queue) in engine.queues.iter().enumerate() {
        let (pending, retrying, ready) = of_queue.remove(&(at as u16)).unwrap_or_default();
        assert_eq!((queue.pending, queue.retrying, queue.ready), (pending, retrying, ready), "{}", queue.name);
    }
}

/// Every ready task is where its state says, and only there; no ended task is anywhere.
fn check_places(engine: &Engine) {
    let mut in_lines = BTreeMap::new();
    for queue in &engine.queues {
        for class in 0..4 {
            for ix in queue.in_lines(class) {
                assert_eq!(usize::from(engine.tasks[ix].class.code()), class);
                assert!(in_lines.insert(ix, ()).is_none(), "in two lines");
            }
        }
    }
    for (ix, task) in engine.tasks.iter_after(TaskNo(0)) {
        let is_in_line = in_lines.remove(&ix).is_some();
        let should = matches!(
            task.state,
            State::Ready(Place::Plain) | State::Ready(Place::Deadline { .. }) | State::Ready(Place::Fair { .. })
        );
        assert_eq!(is_in_line, should, "task {} is {:?}", task.number, task.state);
        if task.is_ended() {
            let queue = engine.queue(task.queue);
            assert!(queue.reservations.is_free_of(task.number), "task {} is over and reserved", task.number);
            assert!(task.claim().is_none());
        }
        if let State::Ready(Place::Limit) = task.state {
            let claim = task.claim().expect("it waits for a limit");
            assert!(engine.limits.waits_at(claim).is_some(), "task {} waits at no limit", task.number);
        }
    }
    assert!(in_lines.is_empty());
}

/// Leases and running tasks belong together, and slots are counted right.
fn check_attempts(engine: &Engine) {
    let mut busy: BTreeMap<u16, u32> = BTreeMap::new();
    for (_, ix) in engine.attempts.iter() {
        assert!(engine.tasks[ix].is_running());
        *busy.entry(engine.tasks[ix].queue.0).or_default() += 1;
    }
    let running = engine.tasks.iter_after(TaskNo(0)).filter(|(_, task)| task.is_running());
    assert_eq!(running.count() as u32, busy.values().sum::<u32>());
    for (at, queue) in engine.queues.iter().enumerate() {
        assert_eq!(queue.workers.busy, busy.remove(&(at as u16)).unwrap_or(0));
        assert_eq!(queue.workers.busy, queue.workers.groups.iter().map(|group| group.busy).sum::<u32>());
    }
}

/// Whoever is blocked waits for somebody who is not over, or for a key; whoever waits for a time has a timer.
fn check_waits(engine: &Engine) {
    let mut awaiting = 0;
    let mut edges: BTreeMap<TaskIx, usize> = BTreeMap::new();
    let live = engine.tasks.iter_after(TaskNo(0)).filter(|(_, parent)| !parent.is_ended());
    for dependent in live.filter_map(|(_, parent)| parent.more.as_ref()).flat_map(|more| &more.dependents) {
        *edges.entry(dependent.task).or_default() += usize::from(engine.still_waits(dependent));
    }
    for (ix, task) in engine.tasks.iter_after(TaskNo(0)) {
        let awaits = task.more.as_ref().map_or(0, |more| more.awaits.len());
        awaiting += awaits;
        match task.state {
            State::Blocked => assert!(task.unmet > 0, "task {} waits for nothing", task.number),
            State::Scheduled | State::Retrying => assert!(engine.timers.is_set(task.wake), "task {}", task.number),
            State::Ready(_) | State::Running { .. } | State::Ended { .. } => {
                assert_eq!(awaits, 0, "task {} is {:?}", task.number, task.state);
            }
        }
        if task.unmet > 0 && task.state == State::Blocked {
            let edges = edges.get(&ix).copied().unwrap_or(0);
            let in_order = task
                .more
                .as_ref()
                .and_then(|more| more.order_key.as_ref())
                .is_some_and(|key| engine.first_in_order(key) != Some(ix));
            let runs = task.more.as_ref().map_or(0, |more| more.runs.iter().filter(|edge| edge.is_awaited()).count());
            let others = edges + awaits + runs + usize::from(in_order);
            assert_eq!(task.unmet as usize, others + usize::from(task.is_unmade()), "task {}", task.number);
        }
    }
    assert_eq!(awaiting, engine.awaited.values().map(Vec::len).sum::<usize>());
}

/// Nobody who could run waits while a slot is free.
fn check_slots(engine: &Engine) {
    for queue in &engine.queues {
        let is_open = !queue.is_paused && !engine.is_draining;
        let held = queue.reservations.held_count();
        if is_open && queue.workers.free() > held {
            for class in 0..4 {
                assert_eq!(queue.in_lines(class).count(), 0, "queue {} has a free slot", queue.name);
            }
            assert_eq!(queue.reservations.due_count(), 0, "queue {} has a free slot", queue.name);
            for (_, ix) in queue.label_waits.values().filter_map(|waiting| waiting.first()) {
                assert!(engine.seat(*ix).is_none(), "task {} has a worker", engine.tasks[*ix].number);
            }
        }
    }
}

/// A schedule counts as its own, over or not, exactly the tasks that say so.
fn check_schedules(engine: &Engine) {
    for schedule in engine.schedules() {
        let live = engine.tasks_after(TaskNo(0)).filter(|view| {
            let is_own = view.occurrence.is_some_and(|(name, _)| name == schedule.name);
            is_own && !matches!(view.status, crate::scheduler::Status::Ended(_))
        });
        assert_eq!(schedule.live, live.count(), "schedule {}", schedule.name);
    }
}
