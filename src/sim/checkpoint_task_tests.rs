//! Tasks and schedules in checkpoints: a directory that makes them, at any time, goes on as one does that never made any.

use super::checkpoint_tests::{config as base, kill, latest, log_files, store_of, verify};
use super::*;
use crate::engine::*;
use crate::store::StoreError;
use std::collections::BTreeMap;

const QUEUES: [&str; 3] = ["mail", "slow", "load"];
const KEYS: [&str; 4] = ["a", "b", "c", "d"];
const STARTED_MS: i64 = 1_000;

fn tasks() -> TaskConfig {
    let retry = RetryPolicy { max_attempts: 3, initial_ms: 100, ..RetryPolicy::default() };
    let mail = QueueConfig { concurrency: 3, retry, ..QueueConfig::default() };
    let bounds = Bounds { pending: Some(6), ..Bounds::default() };
    let slow = QueueConfig { concurrency: 1, bounds, on_full: OnFull::Wait, ..mail.clone() };
    let load = QueueConfig { scale: Some(ScaleConfig::between(1, 4)), concurrency: 4, ..QueueConfig::default() };
    TaskConfig {
        queues: QUEUES.into_iter().map(Into::into).zip([mail, slow, load]).collect(),
        limits: [("one".into(), LimitSpec::Concurrency(1))].into(),
        retained_max: 40,
        ..TaskConfig::default()
    }
}

pub(super) fn config(disk: &SimDisk, now_ms: i64) -> Config {
    Config { tasks: tasks(), definitions: vec!["flow".into()], clock: Clock::virtual_at(now_ms), ..base(disk) }
}

/// A process over a disk, what it was told, and what runs in it.
pub(super) struct World {
    pub(super) disk: SimDisk,
    pub(super) engine: ForeignEngine,
    pub(super) now_ms: i64,
    pub(super) makes_checkpoints: bool,
    pub(super) told: Vec<String>,
    pub(super) given: BTreeMap<String, Lease>,
    pub(super) tokens: Token,
}

impl World {
    pub(super) fn new(seed: u64, makes_checkpoints: bool) -> World {
        let disk = SimDisk::new(Rng::new(seed));
        let engine = ForeignEngine::open(config(&disk, STARTED_MS), Box::new(|| {})).unwrap();
        let (told, given) = (Vec::new(), BTreeMap::new());
        World { disk, engine, now_ms: STARTED_MS, makes_checkpoints, told, given, tokens: 0 }
    }

    fn token(&mut self) -> Token {
        self.tokens += 1;
        self.tokens
    }

    pub(super) fn settle(&mut self) {
        for _ in 0..4 {
            self.engine.group().flush();
            let mut events = Events::default();
            while self.engine.tick(&mut events) {}
            events.drain().for_each(|event| self.hear(&event));
        }
    }

    fn hear(&mut self, event: &Event) {
        let fields: Vec<&str> = event.text.split(FIELD).collect();
        match event.kind {
            EventKind::Start | EventKind::Wake => self.turns(Slot(event.a)),
            EventKind::Task => {
                let lease = Lease { slot: event.a, serial: fields[0].parse().unwrap() };
                self.given.insert(fields[1].into(), lease);
                self.told.push(format!("task {:?} attempt {}", &fields[1..], event.b));
            }
            EventKind::TaskAbort => self.told.push(format!("abort {}", event.b)),
            EventKind::Ended => self.told.push("a run ended".into()),
            _ => self.told.push(format!("{:?} {} {} {}", event.kind, event.a, event.b, event.text)),
        }
    }

    /// A flow asks for a task, and ends with what that gave.
    fn turns(&mut self, slot: Slot) {
        while let Ok(Some(delivery)) = self.engine.quiescent(slot) {
            if delivery.kind == DeliveryKind::Start {
                let spec = TaskSpec::new("mail", "work", b"of a run");
                self.engine.open_task(slot, Seq(1), TaskRole::Awaited, Dedupe::default(), &spec, false).unwrap();
            } else {
                self.told.push(format!("{:?} {}", delivery.kind, self.engine.payload(slot).unwrap()));
                self.engine.finish(slot, Status::Completed, b"1").unwrap();
            }
        }
    }

    fn start(&mut self, id: &str, is_enqueued: bool) {
        let token = self.token();
        let request = StartRequest {
            id,
            kind: "flow",
            version: 1,
            input: b"",
            reuse: IdReuse::Allow,
            conflict: IdConflict::Fail,
            attributes: b"",
            timeout_ms: None,
            actor: None,
            result_token: None,
            with: None,
        };
        if is_enqueued {
            self.engine.enqueue_run(token, request, &TaskSpec::new("mail", "flow", b"")).unwrap();
        } else {
            self.engine.start(token, request).unwrap();
        }
    }

    fn enqueue(&mut self, spec: TaskSpec<'_>, mode: DedupeMode) {
        let token = self.token();
        self.engine.enqueue(token, &[(spec, Dedupe { mode, ..Dedupe::default() })]).unwrap();
    }

    fn advance(&mut self, by_ms: i64) {
        self.now_ms += by_ms;
        self.engine.set_now_ms(self.now_ms);
    }

    fn end_attempt(&mut self, at: u64, is_good: bool) {
        let Some((task, lease)) = self.given.iter().nth(at as usize % self.given.len().max(1)) else { return };
        let (task, lease) = (task.clone(), *lease);
        self.given.remove(&task);
        let outcome = if is_good {
            TaskOutcome::Completed(b"done")
        } else {
            TaskOutcome::Failed { thrown: b"no", after_ms: None }
        };
        self.engine.task_outcomes([(lease, outcome)].into_iter());
    }

    pub(super) fn checkpoint(&mut self) {
        if self.makes_checkpoints {
            self.engine.group().checkpoint().unwrap();
        }
    }

    fn crash(&mut self, is_power_cut: bool) {
        let next = SimDisk::new(Rng::new(1));
        let here = std::mem::replace(&mut self.disk, next);
        let spare = ForeignEngine::open(config(&self.disk, 0), Box::new(|| {})).unwrap();
        kill(&here, std::mem::replace(&mut self.engine, spare), is_power_cut);
        self.disk = here;
        self.given.clear();
        self.engine = ForeignEngine::open(config(&self.disk, self.now_ms), Box::new(|| {})).unwrap();
        assert_eq!(self.engine.group().warnings(), [""; 0]);
    }

    /// All that can be asked of the scheduler.
    pub(super) fn portrait(&mut self) -> Vec<String> {
        let now_ms = self.now_ms;
        self.engine.group().with_tasks(|cell, _| {
            let engine = &mut cell.engine;
            let mut lines: Vec<String> = engine
                .tasks_after(TaskNo(0))
                .map(|view| format!("{view:?} {:?}", engine.explain(view.task)))
                .chain(engine.schedules().map(|schedule| format!("{schedule:?}")))
                .collect();
            lines.extend(QUEUES.map(|queue| format!("{:?}", engine.handle_snapshot(now_ms, queue))));
            lines.push(format!("{:?} {:?}", engine.limit_usage("one", None), engine.next_wake_ms()));
            lines
        })
    }
}

fn spec(rng: &mut Rng, now_ms: i64, newest: u64) -> TaskSpec<'static> {
    let mut spec = TaskSpec::new(rng.pick::<&'static str>(&QUEUES), "work", b"in");
    spec.class = Class::from_code(rng.below(4) as u8).unwrap();
    spec.key = rng.one_in(3).then(|| *rng.pick(&KEYS));
    spec.order_key = rng.one_in(5).then(|| *rng.pick(&KEYS));
    spec.tenant = rng.one_in(4).then(|| *rng.pick(&KEYS));
    spec.not_before_ms = rng.one_in(4).then(|| now_ms + rng.below(800) as i64);
    spec.expires_ms = rng.one_in(8).then(|| now_ms + rng.below(1_500) as i64);
    if rng.one_in(3) {
        let parent = Parent::Number(TaskNo(newest.saturating_sub(rng.below(6)).max(1)));
        spec.after.push(Edge { parent, condition: Condition::from_code(rng.below(3) as u8).unwrap() });
    }
    if rng.one_in(3) {
        spec.limits.push(LimitUse { name: "one", key: None, amount: 1 });
    }
    spec
}

fn schedule(rng: &mut Rng) -> ScheduleSpec<'static> {
    let starts_runs = Launch { id: "r-{time}", version: 1, timeout_ms: Some(900), key_root: [0; 16] };
    let (kind, launch) = if rng.one_in(2) { ("flow", Some(starts_runs)) } else { ("work", None) };
    ScheduleSpec {
        when: When::Every { period_ms: 300 * (1 + rng.below(3)), offset_ms: rng.below(300) },
        start_ms: None,
        end_ms: None,
        limit: rng.one_in(4).then(|| 1 + rng.below(5)),
        jitter_ms: rng.below(2) as u32 * 50,
        overlap: Overlap::from_code(rng.below(6) as u8).unwrap(),
        catch_up: *rng.pick(&[CatchUp::None, CatchUp::Last, CatchUp::UpTo(3)]),
        pauses_on_failure: rng.one_in(3),
        deadline_after_ms: None,
        expires_after_ms: rng.one_in(3).then_some(500),
        template: TaskSpec { launch, ..TaskSpec::new("mail", kind, b"of a schedule") },
    }
}

/// The same choice in both worlds.
pub(super) fn step(world: &mut World, rng: &mut Rng) {
    let newest = world.engine.group().with_tasks(|cell, _| cell.engine.totals().submitted);
    match rng.below(20) {
        0..=5 => {
            let mode = *rng.pick(&[DedupeMode::Skip, DedupeMode::Replace]);
            world.enqueue(spec(rng, world.now_ms, newest), mode);
        }
        6 => world.start(&format!("flow {}", rng.below(1_000)), rng.one_in(2)),
        7..=11 => world.end_attempt(rng.below(100), !rng.one_in(4)),
        12..=14 => world.advance(rng.below(400) as i64),
        15 => {
            let (token, name) = (world.token(), *rng.pick(&["s", "t"]));
            world.engine.set_schedule(token, name, &schedule(rng)).unwrap();
        }
        16 => {
            let token = world.token();
            let task = task_id(TaskNo(newest.saturating_sub(rng.below(10)).max(1)));
            world.engine.cancel_task(token, &task, "why").unwrap();
        }
        17 => {
            let token = world.token();
            world.engine.pause_queue(token, rng.pick::<&str>(&QUEUES), rng.one_in(2)).unwrap();
        }
        18 => {
            let token = world.token();
            let slots = 1 + rng.below(4) as u32;
            if rng.one_in(2) {
                world.engine.resize_queue(token, "mail", slots).unwrap();
            } else {
                world.engine.bound_queue(token, "load", slots - 1, slots + rng.below(3) as u32).unwrap();
            }
        }
        _ => {
            let token = world.token();
            let count = 1 + rng.below(3) as u32;
            world.engine.set_limit(token, "one", LimitSpec::Concurrency(count)).unwrap();
        }
    }
    world.settle();
}

#[test]
fn tasks_and_schedules_go_on_from_a_checkpoint_as_from_all_records_law_3() {
    let mut trimmed = 0;
    for seed in 1..=6 {
        let mut worlds = [World::new(seed, true), World::new(seed, false)];
        let mut rng = Rng::new(seed);
        for at in 0..150 {
            let does = rng.below(20);
            let is_power_cut = rng.one_in(2);
            let (mut told, mut portraits) = (Vec::new(), Vec::new());
            let mut choices = rng.fork(at);
            for world in &mut worlds {
                step(world, &mut choices.clone());
                match does {
                    0..=2 => world.checkpoint(),
                    3 => world.crash(is_power_cut),
                    4 => {
                        world.checkpoint();
                        world.crash(is_power_cut);
                    }
                    _ => {}
                }
                world.settle();
                told.push(std::mem::take(&mut world.told));
                portraits.push(world.portrait());
            }
            choices.next();
            assert_eq!(told[0], told[1], "seed {seed}, step {at}");
            assert_eq!(portraits[0], portraits[1], "seed {seed}, step {at}");
        }
        let [with, without] = &worlds;
        trimmed += usize::from(log_files(&with.disk).len() < log_files(&without.disk).len());
        verify(&with.disk);
    }
    assert!(trimmed > 3, "only {trimmed} logs were trimmed");
}

/// A directory with 200 tasks in all states, a schedule and two waiting runs, whose log is trimmed; not closed.
fn filled(seed: u64) -> World {
    let mut world = World::new(seed, true);
    let mut rng = Rng::new(7);
    world.start("awaits", false);
    world.start("is enqueued", true);
    let token = world.token();
    let every = ScheduleSpec { catch_up: CatchUp::None, limit: None, ..schedule(&mut rng) };
    world.engine.set_schedule(token, "s", &every).unwrap();
    for number in 0..200 {
        world.enqueue(spec(&mut rng, world.now_ms, number), DedupeMode::Skip);
        world.settle();
        if number % 2 == 0 {
            world.end_attempt(number, number % 8 != 0);
        }
    }
    world.settle();
    let before = log_files(&world.disk).len();
    world.checkpoint();
    assert!(before > 2 && log_files(&world.disk).len() == 1, "{before} files, then {:?}", log_files(&world.disk));
    world
}

#[test]
fn tasks_do_not_pin_the_log_and_a_checkpoint_costs_what_has_changed_law_12() {
    let mut world = filled(1);
    assert!(!world.engine.group().checkpoint().unwrap(), "nothing has changed");
    world.enqueue(TaskSpec::new("mail", "work", b"one more"), DedupeMode::Skip);
    world.settle();
    let changed = world.engine.group().with_tasks(|cell, _| {
        cell.engine.begin_checkpoint();
        let mut count = 0;
        while cell.engine.save_tasks(1 << 20, &mut |_, _| count += 1) {}
        cell.engine.give_up_checkpoint();
        count
    });
    assert!((1..5).contains(&changed), "{changed} tasks are written for one more");
    world.checkpoint();
    let portrait = world.portrait();
    world.crash(true);
    assert_eq!(world.engine.opened().records, 0);
    world.settle();
    let after = world.portrait();
    assert_eq!(after.len(), portrait.len());
}

/// Whatever call of a checkpoint is the last one, or of the open behind it, or fails: no task is lost.
fn at_every_call(prepare: &dyn Fn(&SimDisk, u64), goes_on: bool) {
    for call in 1.. {
        let mut world = if call % 2 == 0 { filled(call) } else { World::new(call, true) };
        let is_power_cut = call / 2 % 2 == 0;
        for _ in 0..4 {
            let spec = TaskSpec { order_key: Some("line"), ..TaskSpec::new("mail", "work", b"x") };
            world.enqueue(spec, DedupeMode::Skip);
        }
        world.settle();
        world.end_attempt(0, true);
        world.settle();
        world.disk.take_errors();
        prepare(&world.disk, call);
        let made = world.engine.group().checkpoint();
        let was_reached = world.disk.take_errors() > 0;
        world.disk.fail_after(u64::MAX / 2);
        if goes_on && world.engine.health().0 != "failed" {
            world.end_attempt(0, true);
            world.settle();
            let again = world.engine.group().checkpoint();
            assert!(again.is_ok(), "call {call} failed with {made:?}, then {again:?}");
        }
        let before = world.portrait();
        world.crash(is_power_cut);
        world.settle();
        // What ran goes back, everything else is as it was.
        let (before, after) = (steady(before), steady(world.portrait()));
        assert_eq!(after, before, "call {call}");
        world.checkpoint();
        verify(&world.disk);
        world.crash(true);
        assert_eq!(steady(world.portrait()), before, "call {call}");
        if !was_reached {
            assert!(call > 20, "a checkpoint makes more calls than {call}");
            return;
        }
    }
}

/// Lines about tasks that are over or wait for others: no crash changes them.
pub(super) fn steady(portrait: Vec<String>) -> Vec<String> {
    portrait.into_iter().filter(|line| line.contains("Ended(") || line.contains("Blocked")).collect()
}

#[test]
fn every_call_of_a_checkpoint_with_tasks_may_be_the_last_one_rule_r6() {
    at_every_call(&|disk, call| disk.die_after(Some(call)), false);
}

#[test]
fn every_call_of_a_checkpoint_with_tasks_may_fail_rule_r6() {
    at_every_call(&|disk, call| disk.fail_after(call), true);
}

#[test]
fn every_call_of_the_open_behind_a_checkpoint_with_tasks_may_be_the_last_one_rule_r6() {
    for call in 1.. {
        let mut world = filled(call);
        world.enqueue(TaskSpec::new("mail", "work", b"behind it"), DedupeMode::Skip);
        world.settle();
        let before = steady(world.portrait());
        let World { disk, engine, now_ms, .. } = world;
        kill(&disk, engine, call % 2 == 0);
        disk.die_after(Some(call));
        drop(ForeignEngine::open(config(&disk, now_ms), Box::new(|| {})));
        let was_reached = disk.is_dead();
        disk.crash(call / 2 % 2 == 0);
        disk.take_errors();
        let engine = ForeignEngine::open(config(&disk, now_ms), Box::new(|| {})).unwrap();
        let mut world = World { disk, engine, ..World::new(1, true) };
        assert_eq!(steady(world.portrait()), before, "call {call}");
        if !was_reached {
            assert!(call > 10, "an open makes more calls than {call}");
            return;
        }
    }
}

#[test]
fn a_directory_whose_store_has_no_scheduler_opens_as_before_and_gets_it_with_the_next_checkpoint() {
    // Only what the log had from its first record on could be in such a directory.
    let disk = SimDisk::new(Rng::new(1));
    let whole = |now_ms| Config { log: crate::log::LogOptions::default(), ..config(&disk, now_ms) };
    let mut first = ForeignEngine::open(whole(STARTED_MS), Box::new(|| {})).unwrap();
    first.enqueue(1, &[(TaskSpec::new("mail", "work", b"input"), Dedupe::default())]).unwrap();
    assert!(first.group().checkpoint().unwrap());
    let store_id = first.group().store_id();
    kill(&disk, first, true);
    let bytes = store_of(&disk, &store_id, |store| store.make_format_1());
    disk.put("runs", Some(bytes));
    let has_task = |engine: &ForeignEngine| {
        engine.group().with_tasks(|cell, _| cell.engine.task(TaskNo(1)).is_some_and(|view| view.payload == b"input"))
    };
    let second = ForeignEngine::open(whole(STARTED_MS), Box::new(|| {})).unwrap();
    assert!(second.opened().records > 0 && has_task(&second));
    assert!(second.group().checkpoint().unwrap());
    kill(&disk, second, true);
    verify(&disk);
    let third = ForeignEngine::open(whole(STARTED_MS), Box::new(|| {})).unwrap();
    assert!(has_task(&third));
    // The attempt that the crash cut is given back by each open.
    assert!(third.opened().records <= 2, "{}", third.opened().records);
}

#[test]
fn damage_to_a_task_in_the_store_is_named_and_nothing_is_touched_law_10() {
    let disk = SimDisk::new(Rng::new(1));
    let mut first = ForeignEngine::open(config(&disk, STARTED_MS), Box::new(|| {})).unwrap();
    first.enqueue(1, &[(TaskSpec::new("mail", "work", &b"unique".repeat(40)), Dedupe::default())]).unwrap();
    assert!(first.group().checkpoint().unwrap());
    let store_id = first.group().store_id();
    kill(&disk, first, true);
    super::checkpoint_tests::rot(&disk, &"unique".repeat(40));
    let error = ForeignEngine::open(config(&disk, STARTED_MS), Box::new(|| {})).map(drop).unwrap_err();
    assert_eq!(error.code, ErrorCode::LogCorrupt, "{error}");
    assert!(error.message.contains("file \"runs\"") && error.message.contains("task t-1"), "{error}");
    store_of(&disk, &store_id, |store| {
        assert_eq!(store.verify().unwrap().damages, ["task t-1"]);
        assert!(matches!(store.scheduler(&mut |_, _| Ok(())), Err(StoreError::Damaged { .. })));
    });
}

#[test]
fn a_run_is_told_after_a_restart_from_a_checkpoint_of_the_task_it_awaits_law_8() {
    let mut world = World::new(1, true);
    world.start("awaits", false);
    world.settle();
    world.checkpoint();
    for is_power_cut in [false, true] {
        world.crash(is_power_cut);
        world.settle();
    }
    assert_eq!(world.engine.opened().open_runs, 1);
    // The second loss of an attempt costs it a wait.
    world.advance(10_000);
    world.settle();
    world.end_attempt(0, true);
    world.settle();
    let token = world.token();
    world.engine.result(token, latest("awaits")).unwrap();
    world.settle();
    assert!(world.told.last().unwrap().starts_with("Result"), "{:?}", world.told);
}
