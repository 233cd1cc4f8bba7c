//! Queues that follow their load.

use super::world::{World, classed, config, spec};
use crate::record::{Class, OnMiss, Reserve, TaskSpec};
use crate::scheduler::{Config, Engine, Output, QueueConfig, Refusal, ScaleConfig};

fn scaled(scale: ScaleConfig) -> QueueConfig {
    QueueConfig { concurrency: scale.max, scale: Some(scale), ..QueueConfig::default() }
}

/// What the queue asked for, in order.
fn asked(world: &World) -> Vec<(u32, u32)> {
    let of = |output: &Output| match output {
        Output::Scale { from, to, .. } => Some((*from, *to)),
        _ => None,
    };
    world.outputs.iter().filter_map(of).collect()
}

fn capacity(world: &mut World) -> u32 {
    world.engine.handle_snapshot(world.now_ms, "q").unwrap().capacity
}

fn submit(world: &mut World, count: usize, spec: &TaskSpec<'_>) {
    for _ in 0..count {
        world.submit(spec);
    }
}

/// Each task takes a second.
fn work(world: &mut World, seconds: usize) {
    for _ in 0..seconds {
        let begun: Vec<_> = world.running.keys().copied().collect();
        world.advance(1_000);
        begun.into_iter().for_each(|task| world.complete(task));
    }
}

#[test]
fn a_backlog_raises_it_in_steps_up_to_the_most() {
    let mut world = World::of(scaled(ScaleConfig::between(1, 10)));
    assert_eq!(capacity(&mut world), 1);
    submit(&mut world, 300, &spec());
    world.advance(1_000);
    assert_eq!((asked(&world), capacity(&mut world), world.running.len()), (vec![(1, 5)], 5, 5));
    world.advance(1_000);
    assert_eq!((asked(&world), world.running.len()), (vec![(1, 5), (5, 10)], 10));
    work(&mut world, 10);
    assert_eq!(asked(&world).len(), 2, "nothing is said while nothing changes");
}

#[test]
fn an_idle_queue_goes_back_to_the_fewest_and_is_not_looked_at_any_more() {
    let mut world = World::of(scaled(ScaleConfig::between(0, 10)));
    world.submit(&spec());
    work(&mut world, 1);
    // The arrival is forgotten after a dozen looks, and a minute later what was wanted for it.
    world.advance(73_000);
    assert_eq!(capacity(&mut world), 0);
    assert_eq!(world.engine.next_wake_ms(), None, "an idle queue wakes nobody");
    let task = world.submit(&spec());
    world.advance(0);
    assert!(world.running.contains_key(&task), "without a slot it does not wait for the next second");
}

#[test]
fn a_queue_that_nobody_uses_has_the_fewest_within_a_minute() {
    let mut world = World::of(scaled(ScaleConfig::between(0, 10)));
    world.engine.recover(0, true);
    world.advance(60_000);
    assert_eq!((capacity(&mut world), world.engine.next_wake_ms()), (0, None));
}

#[test]
fn it_is_lowered_by_one_in_half_a_minute_to_the_most_that_was_wanted_for_a_minute() {
    let mut world = World::of(scaled(ScaleConfig::between(1, 10)));
    submit(&mut world, 300, &spec());
    work(&mut world, 40);
    assert_eq!((capacity(&mut world), world.running.len()), (10, 0));
    let quiet_ms = world.now_ms;
    while capacity(&mut world) > 1 {
        world.advance(500);
    }
    let lowered = asked(&world);
    assert_eq!(lowered[2..], (1..10).rev().map(|to| (to + 1, to)).collect::<Vec<_>>());
    let took_ms = world.now_ms - quiet_ms;
    assert!((8 * 30_000..=60_000 + 10 * 30_000 + 40_000).contains(&took_ms), "{took_ms}");
}

/// Slots that are asked for these tasks, once their arrival is forgotten. Nobody provides any, so that none starts.
fn slots_for(scale: ScaleConfig, tasks: &[(Class, usize)]) -> u32 {
    let mut world = World::of(scaled(ScaleConfig { is_outside: true, ..scale }));
    world.engine.recover(0, true);
    world.drain();
    for (class, count) in tasks {
        submit(&mut world, *count, &classed(*class));
    }
    world.advance(3_600_000);
    asked(&world).last().unwrap().1
}

#[test]
fn a_paused_queue_wants_the_fewest_and_one_that_goes_on_what_waits() {
    let mut world = World::of(scaled(ScaleConfig::between(1, 10)));
    world.engine.handle_pause(0, "q", true).unwrap();
    submit(&mut world, 300, &spec());
    world.advance(60_000);
    assert_eq!((asked(&world), capacity(&mut world)), (vec![], 1));
    let now_ms = world.now_ms;
    world.engine.handle_pause(now_ms, "q", false).unwrap();
    world.advance(2_000);
    assert_eq!(asked(&world), [(1, 5), (5, 10)]);
}

#[test]
fn a_longest_wait_of_a_class_counts_what_goes_before_it_and_nothing_behind() {
    let within = |class: Class, ms: u32| {
        let mut scale = ScaleConfig::between(1, 50);
        scale.slo_ms[usize::from(class.code())] = Some(ms);
        scale
    };
    let mixed = [(Class::Critical, 6), (Class::Low, 12)];
    assert_eq!(slots_for(ScaleConfig::between(1, 50), &mixed), 1, "18 s of work in 30 s");
    assert_eq!(slots_for(within(Class::Critical, 1_000), &mixed), 6);
    assert_eq!(slots_for(within(Class::Low, 2_000), &mixed), 9);
    assert_eq!(slots_for(within(Class::High, 1_000), &mixed), 1, "nobody of that class waits");
}

#[test]
fn reserved_starts_of_the_next_minute_have_slots_beside_the_rest() {
    let mut world = World::of(scaled(ScaleConfig::between(0, 10)));
    let reserve = Some(Reserve { tolerance_ms: 1_000, on_miss: OnMiss::RunLate });
    let at = TaskSpec { reserve, not_before_ms: Some(600_000), ..spec() };
    let tasks: Vec<_> = (0..3).map(|_| world.submit(&at)).collect();
    world.advance(500_000);
    assert_eq!(capacity(&mut world), 0);
    let wakes_ms = world.engine.next_wake_ms().unwrap();
    assert!(wakes_ms > 510_000, "near its time, not every second: {wakes_ms}");
    world.advance(90_000);
    assert_eq!(capacity(&mut world), 3);
    world.advance(10_000);
    assert!(tasks.iter().all(|task| world.running.contains_key(task)));
}

#[test]
fn slots_from_outside_are_asked_for_and_taken_as_reported() {
    let mut world = World::of(scaled(ScaleConfig { is_outside: true, ..ScaleConfig::between(2, 8) }));
    world.engine.recover(0, true);
    world.drain();
    let task = world.submit(&spec());
    assert_eq!((asked(&world), world.running.len()), (vec![(0, 2)], 0));
    world.engine.handle_workers(0, "q", &[], 3).unwrap();
    world.drain();
    assert!(world.running.contains_key(&task));
    submit(&mut world, 90, &spec());
    world.advance(1_000);
    assert_eq!((asked(&world), capacity(&mut world)), (vec![(0, 2), (2, 6)], 3));
}

#[test]
fn its_slots_are_set_by_nobody_and_come_back_from_the_load_after_a_restart() {
    let mut world = World::of(scaled(ScaleConfig::between(1, 10)));
    assert!(matches!(world.engine.handle_concurrency(0, "q", 5), Err(Refusal::Invalid(_))));
    assert_eq!(world.engine.handle_concurrency(0, "?", 5), Err(Refusal::UnknownQueue("?".into())));
    submit(&mut world, 300, &spec());
    world.advance(2_000);
    world.crash();
    // Times begin in 1970: what was not seen is no burst of arrivals.
    assert_eq!((capacity(&mut world), asked(&world)), (1, vec![]));
    world.advance(2_000);
    assert_eq!(capacity(&mut world), 10);
}

#[test]
fn slots_that_somebody_had_set_give_way_to_the_bounds_of_a_later_opening() {
    let mut world = World::of(QueueConfig { concurrency: 4, ..QueueConfig::default() });
    world.engine.handle_concurrency(0, "q", 7).unwrap();
    world.drain();
    world.config = config(scaled(ScaleConfig::between(2, 3)));
    world.crash();
    assert_eq!(capacity(&mut world), 2);
}

#[test]
fn bounds_that_cannot_be_are_refused() {
    let refused = [
        ScaleConfig::between(3, 2),
        ScaleConfig::between(0, 0),
        ScaleConfig { interval_ms: 0, ..ScaleConfig::between(1, 2) },
        ScaleConfig { drain_ms: 0, ..ScaleConfig::between(1, 2) },
        ScaleConfig { slo_ms: [None, Some(0), None, None], ..ScaleConfig::between(1, 2) },
    ];
    for scale in refused {
        assert!(Engine::new(Config { queues: [("q".into(), scaled(scale))].into(), ..Config::default() }).is_err());
    }
}

#[test]
fn bounds_that_are_set_while_it_runs_count_at_once_and_stay_over_restarts() {
    let mut world = World::of(scaled(ScaleConfig::between(1, 10)));
    world.engine.recover(0, true);
    submit(&mut world, 300, &spec());
    world.advance(2_000);
    assert_eq!((capacity(&mut world), world.running.len()), (10, 10));
    let set = |world: &mut World, min, max| {
        world.engine.handle_bounds(world.now_ms, "q", min, max).unwrap();
        world.drain();
    };
    set(&mut world, 1, 4);
    assert_eq!((capacity(&mut world), world.running.len()), (4, 10), "what runs goes on");
    set(&mut world, 12, 40);
    assert_eq!((capacity(&mut world), world.running.len()), (12, 12), "the fewest are there at once");
    world.advance(1_000);
    assert!(capacity(&mut world) > 12, "the rest follows the load");
    set(&mut world, 2, 6);
    for is_stored in [false, true] {
        if is_stored {
            world.begin_checkpoint();
            while world.save_tasks(1_000) {}
        }
        world.crash();
        assert_eq!(capacity(&mut world), 2, "it begins with the fewest");
        world.advance(60_000);
        assert_eq!(capacity(&mut world), 6);
    }
    // Opened with a number of slots, it keeps the bounds for when it follows its load again.
    world.config.queues.insert("q".into(), QueueConfig { concurrency: 3, ..QueueConfig::default() });
    world.crash();
    assert_eq!(capacity(&mut world), 3);
}

#[test]
fn bounds_of_slots_from_outside_are_asked_for_at_once() {
    let mut world = World::of(scaled(ScaleConfig { is_outside: true, ..ScaleConfig::between(1, 10) }));
    world.engine.recover(0, true);
    world.engine.handle_bounds(0, "q", 3, 5).unwrap();
    world.drain();
    assert_eq!((asked(&world), capacity(&mut world)), (vec![(0, 1), (1, 3)], 0));
}

#[test]
fn bounds_that_cannot_be_are_refused_and_nothing_is_recorded() {
    let mut world = World::of(scaled(ScaleConfig::between(1, 10)));
    for (min, max) in [(2, 1), (0, 0)] {
        let refused = world.engine.handle_bounds(0, "q", min, max).unwrap_err();
        assert!(refused.to_string().contains("not fewer than the fewest"), "{refused}");
    }
    let number = world.engine.handle_concurrency(0, "q", 3).unwrap_err();
    assert!(number.to_string().contains("{ min, max }"), "{number}");
    let mut fixed = World::of(QueueConfig::default());
    let refused = fixed.engine.handle_bounds(0, "q", 1, 2).unwrap_err();
    assert!(refused.to_string().contains("give a number"), "{refused}");
    world.drain();
    fixed.drain();
    assert_eq!((world.records.len(), fixed.records.len()), (0, 0));
}
