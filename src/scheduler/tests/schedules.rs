//! Schedules: plans, overlap, missed times, what is asked of them, restarts at any record.

use super::world::{World, config, queue};
use crate::record::{CatchUp, Condition, Outcome, Overlap, ScheduleSpec, TaskNo, TaskRecord, TaskSpec, When};
use crate::scheduler::*;

const MINUTE_MS: i64 = 60_000;

fn every_minute() -> ScheduleSpec<'static> {
    ScheduleSpec {
        when: When::Every { period_ms: 60_000, offset_ms: 0 },
        start_ms: None,
        end_ms: None,
        limit: None,
        jitter_ms: 0,
        overlap: Overlap::Skip,
        catch_up: CatchUp::Last,
        pauses_on_failure: false,
        deadline_after_ms: None,
        expires_after_ms: None,
        template: TaskSpec::new("q", "k", b"in"),
    }
}

fn overlapping(overlap: Overlap) -> ScheduleSpec<'static> {
    ScheduleSpec { overlap, ..every_minute() }
}

fn world(spec: &ScheduleSpec<'_>) -> World {
    let mut world = World::of(queue(10));
    world.engine.handle_schedule(0, "n", spec).unwrap();
    world.drain();
    world
}

/// The times of its tasks, in the order in which they were made, over or not.
fn times(world: &World) -> Vec<i64> {
    world.engine.tasks_after(TaskNo(0)).filter_map(|view| Some(view.occurrence?.1 / MINUTE_MS)).collect()
}

fn events(world: &mut World) -> Vec<ScheduleEvent> {
    std::iter::from_fn(|| world.engine.poll_schedule_event()).collect()
}

#[test]
fn each_time_makes_one_task_whose_key_is_name_and_time() {
    let mut world = world(&overlapping(Overlap::Allow));
    assert_eq!(world.engine.next_wake_ms(), Some(MINUTE_MS));
    world.advance(3 * MINUTE_MS);
    assert_eq!(times(&world), [1, 2, 3]);
    let view = world.engine.task_by_key("n@1970-01-01T00:01:00Z").unwrap();
    assert_eq!(view.occurrence, Some(("n", MINUTE_MS)));
    let schedule = world.engine.schedule("n").unwrap();
    assert_eq!((schedule.fired, schedule.live, schedule.last), (3, 3, Some((TaskNo(3), 3 * MINUTE_MS))));
    assert_eq!(schedule.next, Some(FireTime { at_ms: 4 * MINUTE_MS, due_ms: 4 * MINUTE_MS }));
}

#[test]
fn start_end_and_limit_bound_the_times() {
    let (start_ms, end_ms) = (Some(3 * MINUTE_MS), Some(5 * MINUTE_MS));
    let mut bounded = world(&ScheduleSpec { start_ms, end_ms, ..overlapping(Overlap::Allow) });
    bounded.advance(20 * MINUTE_MS);
    assert_eq!(times(&bounded), [3, 4, 5]);
    assert_eq!(bounded.engine.next_wake_ms(), None, "nothing wakes for what is over");
    let mut limited = world(&ScheduleSpec { limit: Some(2), ..overlapping(Overlap::Allow) });
    assert_eq!(limited.engine.preview(0, "n", 9).unwrap().len(), 2);
    limited.advance(20 * MINUTE_MS);
    assert_eq!(times(&limited), [1, 2]);
    assert_eq!(limited.engine.schedule("n").unwrap().next, None);
}

#[test]
fn six_overlap_policies_do_what_they_say() {
    let mut skip = world(&overlapping(Overlap::Skip));
    skip.advance(2 * MINUTE_MS);
    assert_eq!(times(&skip), [1]);
    assert!(matches!(events(&mut skip)[..], [ScheduleEvent::Skipped { why: ScheduleSkip::Overlap, .. }]));

    let mut queued = world(&overlapping(Overlap::Queue));
    queued.advance(3 * MINUTE_MS);
    assert_eq!((times(&queued), queued.running.len()), (vec![1, 2, 3], 1));
    queued.cancel(TaskNo(2));
    assert_eq!(queued.running.len(), 1, "the third still waits for the first");
    queued.complete(TaskNo(1));
    assert!(queued.running.contains_key(&TaskNo(3)));

    let mut one = world(&overlapping(Overlap::QueueOne));
    one.advance(3 * MINUTE_MS);
    assert_eq!(one.outcome(TaskNo(2)), Outcome::Skipped, "a newer one took its place");
    one.complete(TaskNo(1));
    assert!(one.running.contains_key(&TaskNo(3)));

    let mut replaced = world(&overlapping(Overlap::Replace));
    replaced.advance(2 * MINUTE_MS);
    assert_eq!(replaced.outcome(TaskNo(1)), Outcome::Cancelled);
    assert!(replaced.running.contains_key(&TaskNo(2)));

    let mut success = world(&overlapping(Overlap::QueueOnSuccess));
    success.advance(2 * MINUTE_MS);
    success.fail(TaskNo(1), Failure::Permanent);
    assert_eq!(success.outcome(TaskNo(2)), Outcome::Skipped);
    success.advance(MINUTE_MS);
    assert_eq!(times(&success), [1, 2], "none until somebody looks at it");
    success.engine.handle_schedule(success.now_ms, "n", &overlapping(Overlap::QueueOnSuccess)).unwrap();
    success.advance(MINUTE_MS);
    assert_eq!(times(&success), [1, 2, 4]);
}

#[test]
fn missed_times_are_made_up_for_as_the_schedule_says() {
    let after_a_gap = |catch_up, overlap| {
        let mut world = world(&ScheduleSpec { catch_up, ..overlapping(overlap) });
        world.now_ms = 10 * MINUTE_MS + 30_000;
        world.crash();
        let told = events(&mut world);
        (times(&world), told)
    };
    let (made, told) = after_a_gap(CatchUp::None, Overlap::Allow);
    assert_eq!(made, [0i64; 0]);
    let all = ScheduleEvent::Missed { schedule: "n".into(), first_ms: MINUTE_MS, last_ms: 10 * MINUTE_MS };
    assert_eq!(told, [all]);
    assert_eq!(after_a_gap(CatchUp::Last, Overlap::Allow).0, [10]);
    assert_eq!(after_a_gap(CatchUp::UpTo(3), Overlap::Allow).0, [8, 9, 10]);
    assert_eq!(after_a_gap(CatchUp::UpTo(3), Overlap::Queue).0, [8, 9, 10]);
    assert_eq!(after_a_gap(CatchUp::UpTo(3), Overlap::Skip).0, [10], "one at a time: the newest");
}

#[test]
fn a_paused_schedule_makes_nothing_and_catches_up_when_it_goes_on() {
    let mut world = world(&every_minute());
    world.engine.handle_schedule_paused(0, "n", true).unwrap();
    world.advance(5 * MINUTE_MS + 30_000);
    assert_eq!((times(&world).len(), world.engine.next_wake_ms()), (0, None));
    world.crash();
    assert!(world.engine.schedule("n").unwrap().is_paused, "over restarts too");
    world.engine.handle_schedule_paused(world.now_ms, "n", false).unwrap();
    world.drain();
    assert_eq!(times(&world), [5]);
}

#[test]
fn a_failure_pauses_a_schedule_that_asks_for_it_and_a_crash_in_between_changes_nothing() {
    let mut world = world(&ScheduleSpec { pauses_on_failure: true, ..every_minute() });
    world.advance(MINUTE_MS);
    world.fail(TaskNo(1), Failure::Permanent);
    assert!(world.engine.schedule("n").unwrap().is_paused);
    let ended = world.records.len() - 1;
    world.crash_at(ended, false);
    assert!(world.engine.schedule("n").unwrap().is_paused, "it follows from the end");
    assert_eq!(times(&world), [1]);
}

#[test]
fn a_trigger_is_beside_the_plan_and_a_backfill_makes_each_time_once() {
    let mut world = world(&every_minute());
    world.now_ms = 30_000;
    let Ok(Submitted::Now(answer)) = world.engine.handle_trigger(30_000, "n") else { panic!("there is room") };
    world.drain();
    assert!(world.running.contains_key(&answer.task()));
    assert_eq!(world.engine.schedule("n").unwrap().next.unwrap().at_ms, MINUTE_MS);
    world.complete(answer.task());
    let mut world = self::world(&overlapping(Overlap::Queue));
    world.advance(2 * MINUTE_MS);
    world.engine.handle_schedule(world.now_ms, "n", &overlapping(Overlap::Queue)).unwrap();
    let made = world.engine.handle_backfill(world.now_ms, "n", -2 * MINUTE_MS, 9 * MINUTE_MS, 1_000).unwrap();
    world.drain();
    assert_eq!((made.len(), times(&world)), (3, vec![1, 2, -2, -1, 0]), "the others are there already");
    assert_eq!(world.running.len(), 1, "one after the other");
    assert_eq!(world.engine.handle_backfill(world.now_ms, "n", -2 * MINUTE_MS, 9 * MINUTE_MS, 1_000).unwrap(), []);
    assert_eq!(world.run_all().len(), 5);
    let many = world.engine.handle_backfill(world.now_ms, "n", i64::MIN, 0, 1_000).unwrap_err();
    assert!(many.to_string().contains("\"n\": the range holds more than 1000 times"), "{many}");
}

#[test]
fn a_backfill_waits_for_those_that_are_not_over_as_its_policy_says() {
    let policy = overlapping(Overlap::QueueOnSuccess);
    let backfilled = || {
        let mut world = world(&policy);
        world.advance(MINUTE_MS);
        world.engine.handle_backfill(world.now_ms, "n", -MINUTE_MS, 0, 9).unwrap();
        world.drain();
        assert_eq!((times(&world), world.running.len()), (vec![1, -1, 0], 1));
        world
    };
    let mut failing = backfilled();
    failing.fail(TaskNo(1), Failure::Permanent);
    assert_eq!(failing.outcome(TaskNo(2)), Outcome::Skipped, "the one before it did not complete");
    assert_eq!(failing.outcome(TaskNo(3)), Outcome::Skipped);
    let mut fine = backfilled();
    fine.complete(TaskNo(1));
    assert!(fine.running.contains_key(&TaskNo(2)), "{:?}", fine.running);
    // Those before the newest may end as they like.
    let mut older = backfilled();
    older.engine.handle_backfill(older.now_ms, "n", -2 * MINUTE_MS, -2 * MINUTE_MS, 9).unwrap();
    older.drain();
    older.cancel(TaskNo(2));
    older.complete(TaskNo(1));
    assert_eq!(older.outcome(TaskNo(3)), Outcome::Skipped);
    assert_eq!(older.outcome(TaskNo(4)), Outcome::Skipped, "it waits for the newest to complete");
    let mut replacing = world(&overlapping(Overlap::Replace));
    replacing.advance(MINUTE_MS);
    replacing.engine.handle_backfill(replacing.now_ms, "n", 0, 0, 9).unwrap();
    replacing.advance(MINUTE_MS);
    assert_eq!(replacing.outcome(TaskNo(1)), Outcome::Cancelled);
    let mut one = world(&overlapping(Overlap::QueueOne));
    one.advance(2 * MINUTE_MS);
    one.engine.handle_backfill(one.now_ms, "n", -MINUTE_MS, 0, 9).unwrap();
    one.drain();
    one.advance(MINUTE_MS);
    assert_eq!(times(&one), [1, 2, -1, 0, 3]);
    one.complete(TaskNo(1));
    assert!(one.running.contains_key(&TaskNo(3)), "what waited for the second goes on without it");
    one.complete(TaskNo(3));
    one.complete(TaskNo(4));
    assert!(one.running.contains_key(&TaskNo(5)), "{:?}", one.running);
}

#[test]
fn declared_schedules_are_reconciled_in_one_record_before_anything_fires() {
    let mut world = World::of(queue(10));
    let [old, kept, own] = ["old", "kept", "own"];
    let declared = [(old, every_minute()), (kept, every_minute())];
    world.engine.handle_reconcile(0, &declared).unwrap();
    world.engine.handle_schedule(0, own, &every_minute()).unwrap();
    world.drain();
    assert_eq!(world.records.len(), 2);
    let mut engine = Engine::new(world.config.clone()).unwrap();
    world.records.iter().for_each(|record| engine.restore(record).unwrap());
    let now = [(kept, every_minute()), ("new", every_minute())];
    let done = engine.handle_reconcile(5 * MINUTE_MS, &now).unwrap();
    assert_eq!(done, Reconciled { set: vec!["new".into()], removed: vec![old.into()], unchanged: 1 });
    engine.recover(5 * MINUTE_MS, true);
    let names: Vec<&str> = engine.schedules().map(|schedule| schedule.name).collect();
    assert_eq!(names, [kept, "new", own]);
    assert!(engine.tasks_after(TaskNo(0)).all(|view| view.occurrence.unwrap().0 != old), "it is gone before it fires");
    let bad = [("new", ScheduleSpec { when: When::Cron { expression: "61 * * * *", zone: "UTC" }, ..every_minute() })];
    let refused = engine.handle_reconcile(5 * MINUTE_MS, &bad).unwrap_err();
    assert!(refused.to_string().starts_with("schedule \"new\": cron \"61 * * * *\": minute"), "{refused}");
    assert_eq!(engine.schedules().count(), 3, "all or none");
}

#[test]
fn schedules_that_are_held_do_nothing_until_they_are_declared() {
    let mut world = World::of(queue(10));
    world.engine.handle_reconcile(0, &[("old", every_minute())]).unwrap();
    world.engine.handle_schedule(0, "own", &overlapping(Overlap::Replace)).unwrap();
    world.advance(2 * MINUTE_MS);
    let records = world.records.clone();
    let now_ms = 5 * MINUTE_MS;
    let reopened = |declared: &[(&str, ScheduleSpec<'_>)]| {
        let mut engine = Engine::new(Config { epoch: 2, ..config(queue(10)) }).unwrap();
        records.iter().for_each(|record| engine.restore(record).unwrap());
        engine.hold_schedules(declared).map(|()| {
            engine.recover(now_ms, true);
            engine
        })
    };
    let bad = [("new", ScheduleSpec { limit: Some(0), ..every_minute() })];
    assert!(reopened(&bad).unwrap_err().to_string().contains("a limit of 0"), "they are checked");
    let declared = [("new", every_minute())];
    let mut engine = reopened(&declared).unwrap();
    engine.handle_time(now_ms + MINUTE_MS);
    let is_of_schedules = |record: &[u8]| {
        let record = TaskRecord::decode(record).unwrap();
        matches!(
            record,
            TaskRecord::Submitted { .. } | TaskRecord::SchedulesSet { .. } | TaskRecord::ScheduleMoved { .. }
        )
    };
    while let Some(record) = engine.poll_record() {
        assert!(!is_of_schedules(record), "nothing is made, and nothing is lost");
    }
    let done = engine.handle_reconcile(now_ms + MINUTE_MS, &declared).unwrap();
    assert_eq!(done, Reconciled { set: vec!["new".into()], removed: vec!["old".into()], unchanged: 0 });
    let records: Vec<Vec<u8>> = std::iter::from_fn(|| engine.poll_record().map(<[u8]>::to_vec)).collect();
    let made: Vec<i64> = records.iter().filter_map(|record| made(record)).collect();
    assert_eq!(made, [6], "what was missed meanwhile is made up for as ever, by the new definitions");
    engine.handle_time(now_ms + 2 * MINUTE_MS);
    assert_eq!(engine.schedule("new").unwrap().fired, 1);
}

#[test]
fn a_full_queue_holds_a_schedule_up_until_there_is_room() {
    let bounds = Bounds { pending: Some(1), ..Bounds::default() };
    let mut world = World::of(QueueConfig { bounds, ..queue(1) });
    world.engine.handle_schedule(0, "n", &overlapping(Overlap::Allow)).unwrap();
    world.try_submit(&TaskSpec::new("q", "k", b"")).unwrap();
    world.try_submit(&TaskSpec::new("q", "k", b"")).unwrap();
    world.advance(MINUTE_MS);
    assert_eq!(times(&world).len(), 0);
    world.complete(TaskNo(1));
    assert_eq!(times(&world), [1]);
}

#[test]
fn jitter_is_late_by_the_same_each_time_it_is_asked_and_never_early() {
    let world = world(&ScheduleSpec { jitter_ms: 20_000, ..every_minute() });
    let times = world.engine.preview(0, "n", 50).unwrap();
    assert_eq!(times, world.engine.preview(0, "n", 50).unwrap());
    let late: Vec<i64> = times.iter().map(|time| time.due_ms - time.at_ms).collect();
    assert!(late.iter().all(|late_ms| (0..=20_000).contains(late_ms)));
    assert!(late.iter().min() < late.iter().max(), "they differ: {late:?}");
}

#[test]
fn definitions_that_make_no_sense_are_refused_with_the_name() {
    let mut world = World::of(queue(1));
    let spec = every_minute();
    let key_edge = crate::record::Edge { parent: crate::record::Parent::Key("a"), condition: Condition::Success };
    let refused = [
        (ScheduleSpec { limit: Some(0), ..spec.clone() }, "a limit of 0"),
        (ScheduleSpec { start_ms: Some(2), end_ms: Some(1), ..spec.clone() }, "ends before it starts"),
        (ScheduleSpec { jitter_ms: 60_001, ..spec.clone() }, "longer than the period"),
        (ScheduleSpec { catch_up: CatchUp::UpTo(1_001), ..spec.clone() }, "at most 1,000"),
        (ScheduleSpec { template: TaskSpec::new("x", "k", b""), ..spec.clone() }, "queue \"x\" is not defined"),
        (
            ScheduleSpec { template: TaskSpec { after: vec![key_edge], ..spec.template.clone() }, ..spec.clone() },
            "`after`",
        ),
        (
            ScheduleSpec { template: TaskSpec { deadline_ms: Some(1), ..spec.template.clone() }, ..spec.clone() },
            "lengths",
        ),
    ];
    for (spec, expected) in refused {
        let error = world.engine.handle_schedule(0, "n", &spec).unwrap_err().to_string();
        assert!(error.starts_with("schedule \"n\": ") && error.contains(expected), "{error}");
    }
    assert!(world.engine.handle_trigger(0, "n").unwrap_err().to_string().contains("there is none"));
    assert!(!world.engine.handle_schedule_removed(0, "n"));
}

/// Whatever is lost of the log, what is left makes every time once, and overlap is as the policy says.
#[test]
fn a_crash_at_any_record_makes_no_time_twice_and_loses_none() {
    for overlap in Overlap::ALL {
        let mut history = world(&ScheduleSpec { catch_up: CatchUp::UpTo(100), ..overlapping(*overlap) });
        for minute in 1..=6 {
            history.advance(MINUTE_MS);
            if minute % 2 == 0
                && let Some(task) = history.running.keys().next().copied()
            {
                history.complete(task);
            }
        }
        let all = history.records.clone();
        for kept in 1..=all.len() {
            let mut world = World::of(queue(10));
            world.records = all.clone();
            world.now_ms = history.now_ms;
            world.crash_at(kept, false);
            world.advance(2 * MINUTE_MS);
            world.run_all();
            let mut regular: Vec<i64> = world.records.iter().filter_map(|record| made(record)).collect();
            let count = regular.len();
            regular.sort_unstable();
            regular.dedup();
            assert_eq!(regular.len(), count, "{overlap:?} after {kept} records: {regular:?}");
            if matches!(overlap, Overlap::Allow | Overlap::Queue) {
                assert_eq!(regular, (1..=8).collect::<Vec<_>>(), "{overlap:?} after {kept} records");
            }
        }
    }
}

fn made(record: &[u8]) -> Option<i64> {
    match TaskRecord::decode(record).unwrap() {
        TaskRecord::Submitted { spec, .. } => spec.occurrence.filter(|of| of.is_regular).map(|of| of.at_ms / MINUTE_MS),
        _ => None,
    }
}
