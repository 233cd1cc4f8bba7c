//! Workflows that start through a queue, with a crash after every record: nothing is lost, nothing comes twice.

use super::*;
use crate::log::MemoryStorage;
use std::collections::BTreeMap;

const SLOTS: &str = "line";
/// A queue with room for all.
const WIDE: &str = "wide";

/// An engine with a queue of one slot and three shards, and the runs whose code it has.
struct Rig {
    engine: ForeignEngine,
    told: Vec<Event>,
    loaded: BTreeMap<String, Slot>,
    /// Ids in the order in which their code was called.
    started: Vec<String>,
    next_token: Token,
}

fn config() -> Config {
    let mut tasks = TaskConfig::default();
    let line = QueueConfig { concurrency: 1, ..QueueConfig::default() };
    tasks.queues = [(SLOTS.into(), line), (WIDE.into(), QueueConfig::default())].into();
    tasks.limits = [("one".into(), LimitSpec::Concurrency(1))].into();
    let memory = Durability::Memory(MemoryStorage::new());
    Config {
        definitions: vec!["flow".into()],
        shards: 3,
        clock: Clock::virtual_at(1_000),
        tasks,
        ..Config::new(memory)
    }
}

fn rig_request(id: &str) -> StartRequest<'_> {
    StartRequest {
        id,
        kind: "flow",
        version: 1,
        input: b"1",
        reuse: IdReuse::Reject,
        conflict: IdConflict::SameInput,
        attributes: b"",
        timeout_ms: Some(60_000),
        actor: None,
        result_token: None,
        with: None,
    }
}

impl Rig {
    fn open() -> Rig {
        let engine = ForeignEngine::open(config(), Box::new(|| {})).unwrap();
        Rig { engine, told: Vec::new(), loaded: BTreeMap::new(), started: Vec::new(), next_token: 0 }
    }

    fn token(&mut self) -> Token {
        self.next_token += 1;
        self.next_token
    }

    fn enqueue(&mut self, id: &str) -> Token {
        let token = self.token();
        let request = rig_request(id);
        let limits = vec![crate::record::LimitUse { name: "one", key: None, amount: 1 }];
        let spec = TaskSpec { limits, ..TaskSpec::new(SLOTS, "flow", b"") };
        self.engine.enqueue_run(token, request, &spec).unwrap();
        token
    }

    fn settle(&mut self) {
        for _ in 0..6 {
            let mut events = Events::default();
            while self.engine.tick(&mut events) {}
            for event in events.drain() {
                match event.kind {
                    EventKind::Start => self.load(&event),
                    EventKind::Ended => self.loaded.retain(|_, slot| slot.0 != event.a),
                    _ => self.told.push(event),
                }
            }
            self.engine.idle();
        }
    }

    fn load(&mut self, event: &Event) {
        let id = event.text.split(FIELD).next().unwrap().to_owned();
        let slot = Slot(event.a);
        assert_eq!(self.engine.quiescent(slot).unwrap().unwrap().kind, DeliveryKind::Start);
        self.started.push(id.clone());
        // That one was ended from outside may be told after the next one has its slot.
        let over: Vec<String> = self.loaded.keys().filter(|id| self.status(id).is_some()).cloned().collect();
        self.loaded.retain(|id, _| !over.contains(id));
        self.loaded.insert(id, slot);
        assert_eq!(self.loaded.len(), 1, "one slot, one run: {:?}", self.loaded);
    }

    /// The code of a run ends in its first turn, if it is here.
    fn finish(&mut self, id: &str) {
        if let Some(slot) = self.loaded.remove(id) {
            self.engine.finish(slot, Status::Completed, b"1").unwrap();
        }
        self.settle();
    }

    fn cancel(&mut self, id: &str) {
        let token = self.token();
        self.engine.cancel(token, Run { id, run_id: "" }, "why", None).unwrap();
    }

    fn status(&self, id: &str) -> Option<Status> {
        let shard = self.engine.group().shard_of(id);
        self.engine.group().with(shard, |cell, _| {
            let target = crate::machine::Target { id, run: None };
            cell.shard.find_last(target).ok().and_then(|run| cell.shard.view(run).status)
        })
    }

    fn usage(&self) -> (u32, u64, u64) {
        self.engine.group().with_tasks(|cell, work| {
            let view = cell.engine.handle_snapshot(work.now_ms, SLOTS).unwrap();
            (view.busy, view.pending.iter().sum(), cell.engine.limit_usage("one", None).unwrap().used)
        })
    }
}

const ALL: [&str; 3] = ["a", "b", "c"];

/// Three are enqueued, the third is cancelled while it waits, the others run one after the other.
fn script(rig: &mut Rig) {
    for id in ALL {
        rig.enqueue(id);
        rig.settle();
    }
    rig.cancel("c");
    rig.settle();
    for id in ["a", "b", "a", "b"] {
        rig.finish(id);
    }
}

fn check(rig: &Rig, what: &str) {
    let ends = ALL.map(|id| rig.status(id));
    assert_eq!(ends, [Some(Status::Completed), Some(Status::Completed), Some(Status::Cancelled)], "{what}");
    assert_eq!(rig.usage(), (0, 0, 0), "{what}: slots, who waits, limits");
    assert!(rig.engine.orphans().is_empty(), "LAW-8, {what}");
}

#[test]
fn runs_start_one_after_the_other_and_a_cancelled_one_never_does() {
    let mut rig = Rig::open();
    let token = rig.enqueue("a");
    rig.enqueue("b");
    rig.settle();
    assert_eq!((rig.started.join(" "), rig.usage()), ("a".into(), (1, 1, 1)));
    let reply = rig.told.iter().find(|event| event.a == token).expect("it is admitted");
    assert!(reply.kind == EventKind::Reply && reply.text.starts_with("n\u{1f}"), "{reply:?}");
    script(&mut rig);
    assert_eq!(rig.started.join(" "), "a b");
    check(&rig, "without a crash");
}

#[test]
fn a_crash_after_any_record_loses_no_run_and_starts_none_twice_law_3_law_7_law_8() {
    let mut first = Rig::open();
    script(&mut first);
    check(&first, "without a crash");
    let past = first.engine.past().unwrap();
    for cut in 0..=past.len() {
        let mut rig = Rig::open();
        rig.engine.rewind(&past, cut, 1_000).unwrap();
        rig.settle();
        script(&mut rig);
        check(&rig, &format!("after a crash behind record {cut} of {}", past.len()));
        // A second crash, when all is over, brings nothing back.
        rig.engine.crash().unwrap();
        rig.loaded.clear();
        rig.started.clear();
        rig.settle();
        assert!(rig.started.is_empty(), "after a crash behind record {cut}");
        check(&rig, "and another one at the end");
    }
}

#[test]
fn a_run_times_out_from_its_start_on_and_gives_its_slot_to_the_next() {
    let mut rig = Rig::open();
    rig.enqueue("a");
    rig.settle();
    rig.engine.set_now_ms(50_000);
    rig.enqueue("b");
    rig.settle();
    rig.engine.set_now_ms(61_001);
    rig.settle();
    assert_eq!((rig.status("a"), rig.status("b")), (Some(Status::TimedOut), None));
    assert_eq!(rig.started.join(" "), "a b");
    rig.engine.set_now_ms(121_000);
    rig.settle();
    assert_eq!(rig.status("b"), None, "its time began when it was let in");
    rig.engine.set_now_ms(121_001);
    rig.settle();
    assert_eq!((rig.status("b"), rig.usage()), (Some(Status::TimedOut), (0, 0, 0)));
}

/// A schedule of one slot's queue makes two runs by a backfill, then one by a trigger; all of them run.
fn scheduled(rig: &mut Rig) {
    use crate::record::{CatchUp, Launch, Overlap, ScheduleSpec, When};
    let launch = Launch { id: "r{time}", version: 1, timeout_ms: Some(60_000), key_root: [0; 16] };
    let spec = ScheduleSpec {
        when: When::Every { period_ms: 500, offset_ms: 0 },
        start_ms: None,
        end_ms: Some(1_000),
        limit: None,
        jitter_ms: 0,
        overlap: Overlap::Allow,
        catch_up: CatchUp::None,
        pauses_on_failure: false,
        deadline_after_ms: None,
        expires_after_ms: None,
        template: TaskSpec { launch: Some(launch), ..TaskSpec::new(SLOTS, "flow", b"1") },
    };
    let token = rig.token();
    rig.engine.set_schedule(token, "s", &spec).unwrap();
    let token = rig.token();
    rig.engine.backfill_schedule(token, "s", 1, 1_000).unwrap();
    rig.settle();
    while let Some(id) = rig.loaded.keys().next().cloned() {
        rig.finish(&id);
    }
}

#[test]
fn a_crash_after_any_record_makes_each_run_of_a_schedule_once_law_3_law_7_law_8() {
    let ids = ["r1970-01-01T00:00:00.5Z", "r1970-01-01T00:00:01Z"];
    let mut first = Rig::open();
    scheduled(&mut first);
    assert_eq!(first.started, ids);
    let past = first.engine.past().unwrap();
    for cut in 0..=past.len() {
        let mut rig = Rig::open();
        rig.engine.rewind(&past, cut, 1_000).unwrap();
        rig.settle();
        scheduled(&mut rig);
        let what = format!("after a crash behind record {cut} of {}", past.len());
        assert_eq!(ids.map(|id| rig.status(id)), [Some(Status::Completed); 2], "{what}");
        assert_eq!(rig.usage(), (0, 0, 0), "{what}: slots, who waits, limits");
        assert!(rig.engine.orphans().is_empty(), "LAW-8, {what}");
        let runs = |rig: &Rig| {
            ids.map(|id| rig.engine.group().shard_of(id))
                .map(|shard| rig.engine.group().with(shard, |cell, _| cell.shard.open_count()))
        };
        assert_eq!(runs(&rig), [0, 0], "{what}");
        rig.engine.crash().unwrap();
        rig.loaded.clear();
        rig.started.clear();
        rig.settle();
        assert!(rig.started.is_empty(), "{what}, and another one");
    }
}

/// A run is enqueued behind another one, which ends.
fn behind(rig: &mut Rig) {
    use crate::record::{Condition, Edge, Parent};
    rig.enqueue("a");
    rig.settle();
    let token = rig.token();
    let after = vec![Edge { parent: Parent::Run("a", None), condition: Condition::Completion }];
    let spec = TaskSpec { after, ..TaskSpec::new(WIDE, "flow", b"") };
    rig.engine.enqueue_run(token, rig_request("b"), &spec).unwrap();
    rig.settle();
    let is_open = rig.status("a").is_none();
    assert!(!is_open || !rig.started.contains(&"b".to_owned()), "it does not start before");
    rig.finish("a");
    rig.finish("b");
}

#[test]
fn a_crash_after_any_record_loses_and_doubles_no_wait_for_a_run_law_3_law_8() {
    let mut first = Rig::open();
    behind(&mut first);
    assert_eq!(first.started, ["a", "b"]);
    let past = first.engine.past().unwrap();
    for cut in 0..=past.len() {
        let mut rig = Rig::open();
        rig.engine.rewind(&past, cut, 1_000).unwrap();
        rig.settle();
        behind(&mut rig);
        let what = format!("after a crash behind record {cut} of {}", past.len());
        assert_eq!(["a", "b"].map(|id| rig.status(id)), [Some(Status::Completed); 2], "{what}");
        assert!(rig.engine.orphans().is_empty(), "LAW-8, {what}");
    }
}
