//! Schedules that start workflows: the task of a time stands for a run, from before that is made.

use super::world::{World, config, queue};
use crate::record::{
    Caller, CatchUp, Launch, Origin, Outcome, Overlap, RunNo, ScheduleSpec, Seq, ShardId, TaskNo, TaskSpec, When,
};
use crate::scheduler::*;

const MINUTE_MS: i64 = 60_000;
const SHARD: ShardId = ShardId(1);

fn every_minute(overlap: Overlap) -> ScheduleSpec<'static> {
    let launch = Launch { id: "", version: 3, timeout_ms: Some(9), key_root: [0; 16] };
    ScheduleSpec {
        when: When::Every { period_ms: 60_000, offset_ms: 0 },
        start_ms: None,
        end_ms: None,
        limit: None,
        jitter_ms: 0,
        overlap,
        catch_up: CatchUp::Last,
        pauses_on_failure: false,
        deadline_after_ms: Some(7),
        expires_after_ms: None,
        template: TaskSpec { launch: Some(launch), ..TaskSpec::new("q", "flow", b"in") },
    }
}

fn world(slots: u32, spec: &ScheduleSpec<'_>) -> World {
    let mut world = World::new(config(queue(slots)));
    world.engine.handle_schedule(0, "n", spec).unwrap();
    world.drain();
    world
}

fn caller(task: u64) -> Caller {
    Caller { shard: SHARD, run: RunNo(task), seq: Seq(0) }
}

impl World {
    fn message(&self) -> Origin {
        Origin { from: SHARD, number: self.engine.taken_from(SHARD) + 1 }
    }

    fn made(&mut self, task: u64) {
        let origin = self.message();
        self.engine.handle_run_made(self.now_ms, TaskNo(task), caller(task), origin);
        self.drain();
    }

    fn refused(&mut self, task: u64) {
        let origin = self.message();
        self.engine.handle_run_refused(self.now_ms, TaskNo(task), b"it is running", origin);
        self.drain();
    }

    fn run_over(&mut self, task: u64, outcome: Outcome) {
        let origin = self.message();
        self.engine.handle_run_over(self.now_ms, caller(task), outcome, origin);
        self.drain();
    }

    /// A minute passes, and the shard makes what is asked for.
    fn minute(&mut self) {
        self.advance(MINUTE_MS);
        for view in self.engine.tasks_after(TaskNo(0)).map(|view| (view.task.0, view.run)).collect::<Vec<_>>() {
            if view.1.is_none() {
                self.made(view.0);
            }
        }
    }

    fn statuses(&self) -> Vec<Status> {
        self.engine.tasks_after(TaskNo(0)).map(|view| view.status).collect()
    }

    fn to_shards(&self) -> Vec<String> {
        self.shard_outputs(self.outputs.iter().cloned())
    }

    fn shard_outputs(&self, outputs: impl Iterator<Item = Output>) -> Vec<String> {
        let told = outputs.filter_map(|output| match output {
            Output::Launch(order) => Some(format!("make {}", order.id)),
            Output::EndRun { id, .. } => Some(format!("end {id}")),
            Output::Answer { caller, answer: OrderAnswer::MayStart } => Some(format!("start {}", caller.run.0)),
            Output::Answer { caller, answer: OrderAnswer::Ended(end) } => {
                Some(format!("{} {:?}", caller.run.0, end.outcome))
            }
            _ => None,
        });
        told.collect()
    }

    fn to_shards_by_records(&self) -> Vec<String> {
        let mut engine = Engine::new(self.config.clone()).unwrap();
        self.records.iter().for_each(|record| engine.restore(record).unwrap());
        self.shard_outputs(std::iter::from_fn(|| engine.poll_output()))
    }
}

const ENDED: fn(Outcome) -> Status = Status::Ended;

#[test]
fn a_time_asks_for_a_run_and_the_run_starts_when_it_is_made_and_its_turn_has_come() {
    let mut world = world(1, &every_minute(Overlap::Allow));
    world.advance(MINUTE_MS);
    let [Output::Launch(order)] =
        &world.outputs.iter().filter(|o| matches!(o, Output::Launch(_))).collect::<Vec<_>>()[..]
    else {
        panic!("{:?}", world.outputs)
    };
    assert_eq!((&*order.id, &*order.kind, order.version), ("n@1970-01-01T00:01:00Z", "flow", 3));
    assert_eq!((&*order.input, order.timeout_ms), (&b"in"[..], Some(9)));
    assert_ne!(order.key_root, [0; 16]);
    assert_eq!(world.status(TaskNo(1)), Status::Blocked, "there is no run yet");
    world.made(1);
    assert_eq!(world.status(TaskNo(1)), Status::Running);
    world.minute();
    assert_eq!(world.status(TaskNo(2)), Status::Queued, "the other has the slot");
    world.run_over(1, Outcome::Completed);
    assert_eq!(world.status(TaskNo(2)), Status::Running);
    assert_eq!(world.engine.schedule("n").unwrap().live, 1);
    let told = ["make n@1970-01-01T00:01:00Z", "start 1", "make n@1970-01-01T00:02:00Z", "start 2"];
    assert_eq!(world.to_shards(), told);
    assert_eq!(world.to_shards_by_records(), told, "under the same numbers in each life");
    assert!(!world.engine.handle_cancel(world.now_ms, TaskNo(2), b"why"), "a run is ended in its shard");
}

#[test]
fn overlap_looks_at_runs() {
    let mut skip = world(9, &every_minute(Overlap::Skip));
    skip.minute();
    skip.minute();
    assert_eq!(skip.statuses(), [Status::Running]);
    skip.run_over(1, Outcome::Failed);
    skip.minute();
    assert_eq!(skip.statuses(), [ENDED(Outcome::Failed), Status::Running]);

    let mut one = world(9, &every_minute(Overlap::QueueOne));
    (0..3).for_each(|_| one.minute());
    assert_eq!(one.statuses(), [Status::Running, ENDED(Outcome::Skipped), Status::Blocked]);
    one.run_over(1, Outcome::Completed);
    assert_eq!(one.status(TaskNo(3)), Status::Running);
    assert_eq!(one.to_shards()[3..], ["make n@1970-01-01T00:03:00Z", "2 Skipped", "start 3"]);

    let mut success = world(9, &every_minute(Overlap::QueueOnSuccess));
    (0..2).for_each(|_| success.minute());
    success.run_over(1, Outcome::Dead);
    assert_eq!(success.statuses(), [ENDED(Outcome::Dead), ENDED(Outcome::Skipped)]);
}

#[test]
fn one_that_replaces_others_has_those_end_that_have_started_and_ends_those_that_have_not() {
    let mut world = world(1, &every_minute(Overlap::Replace));
    (0..3).for_each(|_| world.minute());
    assert_eq!(world.statuses(), [Status::Running, ENDED(Outcome::Cancelled), Status::Queued]);
    let asked = |world: &World| world.to_shards().iter().filter(|text| text.starts_with("end ")).count();
    assert_eq!(asked(&world), 1, "once");
    assert!(world.to_shards().contains(&"2 Cancelled".to_owned()));
    world.crash();
    assert_eq!(asked(&world), 1, "by its record: it has the same number");
    world.advance(30_000);
    assert_eq!(asked(&world), 1);
    world.run_over(1, Outcome::Cancelled);
    assert_eq!(world.status(TaskNo(3)), Status::Running);
}

#[test]
fn a_run_that_cannot_be_frees_its_place_and_is_told() {
    let mut world = world(1, &every_minute(Overlap::Skip));
    world.advance(MINUTE_MS);
    world.refused(1);
    world.refused(1);
    assert_eq!(world.outcome(TaskNo(1)), Outcome::Skipped);
    let told = world.engine.poll_schedule_event();
    assert!(
        matches!(told, Some(ScheduleEvent::Skipped { why: ScheduleSkip::Exists, at_ms: MINUTE_MS, .. })),
        "{told:?}"
    );
    assert!(world.engine.poll_schedule_event().is_none(), "once");
    assert_eq!(world.engine.handle_revive(world.now_ms, TaskNo(1)), Ok(false));
    assert_eq!(world.engine.taken_from(SHARD), 2);
}

#[test]
fn a_task_that_ended_before_its_run_was_made_tells_it_so() {
    let mut world = world(1, &every_minute(Overlap::Replace));
    world.advance(2 * MINUTE_MS);
    assert_eq!(world.statuses(), [ENDED(Outcome::Cancelled), Status::Blocked]);
    world.made(1);
    assert_eq!(world.to_shards().last().unwrap(), "1 Cancelled");
    assert_eq!(world.to_shards(), world.to_shards_by_records());
}

#[test]
fn a_crash_behind_any_record_asks_for_each_run_once() {
    let mut world = world(2, &every_minute(Overlap::Allow));
    (0..3).for_each(|_| world.minute());
    world.run_over(1, Outcome::Completed);
    let (records, now_ms) = (world.records.clone(), world.now_ms);
    for cut in 0..=records.len() {
        world.records.clone_from(&records);
        world.now_ms = now_ms;
        world.crash_at(cut, false);
        world.minute();
        let runs: Vec<u64> = world.engine.tasks_after(TaskNo(0)).filter_map(|view| Some(view.run?.run.0)).collect();
        let numbers: Vec<u64> = world.engine.tasks_after(TaskNo(0)).map(|view| view.task.0).collect();
        assert_eq!(runs, numbers, "behind record {cut}");
        let ids: std::collections::BTreeSet<_> =
            world.engine.tasks_after(TaskNo(0)).map(|view| view.launch.unwrap().to_owned()).collect();
        assert_eq!(ids.len(), numbers.len(), "each time once, behind record {cut}");
    }
}

#[test]
fn triggers_and_backfills_make_runs_too() {
    let mut world = world(1, &every_minute(Overlap::Skip));
    let now_ms = world.now_ms;
    world.engine.handle_trigger(now_ms, "n").unwrap();
    world.now_ms = 10 * MINUTE_MS - 1;
    let made = world.engine.handle_backfill(world.now_ms, "n", 7 * MINUTE_MS, world.now_ms, 9).unwrap();
    world.drain();
    assert_eq!(made.len(), 3);
    let ids: Vec<String> = world.to_shards().into_iter().filter(|text| text.starts_with("make")).collect();
    assert_eq!(
        ids,
        [
            "make n@1970-01-01T00:00:00Z",
            "make n@1970-01-01T00:07:00Z",
            "make n@1970-01-01T00:08:00Z",
            "make n@1970-01-01T00:09:00Z"
        ]
    );
}

#[test]
fn ids_need_the_time_and_room_for_it() {
    let mut world = World::new(config(queue(1)));
    let with = |id: &'static str| {
        let launch = Launch { id, version: 1, timeout_ms: None, key_root: [0; 16] };
        let template = TaskSpec { launch: Some(launch), ..TaskSpec::new("q", "flow", b"") };
        ScheduleSpec { template, ..every_minute(Overlap::Allow) }
    };
    let refused = world.engine.handle_schedule(0, "n", &with("daily")).unwrap_err();
    assert!(refused.to_string().contains("{time}"), "{refused}");
    let long = "n".repeat(230);
    assert!(world.engine.handle_schedule(0, &long, &with("")).unwrap_err().to_string().contains("256 bytes"));
    world.engine.handle_schedule(0, "n", &with("a/{time}/b")).unwrap();
    world.drain();
    world.advance(MINUTE_MS);
    assert_eq!(world.to_shards(), ["make a/1970-01-01T00:01:00Z/b"]);
    assert_eq!(world.engine.schedule("n").unwrap().last_run.as_deref(), Some("a/1970-01-01T00:01:00Z/b"));
}
