//! Tests of tasks through the engine: what waits for the disk, what a crash and a close cost, what is refused.

use super::*;
use crate::log::MemoryStorage;

/// An engine with two queues, and what it told.
struct Rig {
    engine: ForeignEngine,
    told: Vec<Event>,
}

/// An attempt, as the host got it.
#[derive(Debug, PartialEq)]
struct Given {
    lease: Lease,
    attempt: u32,
    task: String,
    input: String,
}

const NO_JITTER: RetryPolicy =
    RetryPolicy { max_attempts: 2, initial_ms: 1_000, backoff_percent: 200, max_ms: 60_000, has_jitter: false };

fn config() -> Config {
    let mut tasks = TaskConfig { kinds: Some(["work".into()].into()), ..TaskConfig::default() };
    let mail = QueueConfig { concurrency: 1, retry: NO_JITTER, ..QueueConfig::default() };
    let tight = Bounds { pending: Some(1), ..Bounds::default() };
    let small = QueueConfig { bounds: tight, concurrency: 1, on_full: OnFull::Reject, ..QueueConfig::default() };
    let waiting = QueueConfig { on_full: OnFull::Wait, ..small.clone() };
    tasks.queues = [("mail".into(), mail), ("small".into(), small), ("waiting".into(), waiting)].into();
    let memory = Durability::Memory(MemoryStorage::new());
    Config { shards: 1, clock: Clock::virtual_at(1_000), tasks, ..Config::new(memory) }
}

impl Rig {
    fn open() -> Rig {
        Rig { engine: ForeignEngine::open(config(), Box::new(|| {})).unwrap(), told: Vec::new() }
    }

    fn enqueue(&mut self, token: Token, queue: &str, inputs: &[&str]) -> Result<(), EngineError> {
        let spec = |input: &&'static str| (TaskSpec::new("mail", "work", input.as_bytes()), Dedupe::default());
        let inputs: Vec<&'static str> = inputs.iter().map(|input| &*Box::leak((*input).into())).collect();
        let specs: Vec<_> =
            inputs.iter().map(spec).map(|(spec, dedupe)| (TaskSpec { queue, ..spec }, dedupe)).collect();
        self.engine.enqueue(token, &specs)
    }

    fn tick(&mut self) {
        let mut events = Events::default();
        while self.engine.tick(&mut events) {}
        self.told.extend(events.drain());
    }

    fn settle(&mut self) {
        for _ in 0..5 {
            self.tick();
            self.engine.idle();
        }
        self.tick();
    }

    fn given(&mut self) -> Vec<Given> {
        let (tasks, rest) = std::mem::take(&mut self.told).into_iter().partition(|event| event.kind == EventKind::Task);
        self.told = rest;
        let given = |event: Event| {
            let fields: Vec<&str> = event.text.split(FIELD).collect();
            let lease = Lease { slot: event.a, serial: fields[0].parse().unwrap() };
            Given { lease, attempt: event.b, task: fields[1].into(), input: fields[3].into() }
        };
        tasks.into_iter().map(given).collect::<Vec<_>>()
    }

    fn one(&mut self) -> Given {
        self.settle();
        let mut given = self.given();
        assert_eq!(given.len(), 1, "one attempt runs");
        given.remove(0)
    }

    fn says(&mut self, lease: Lease, outcome: TaskOutcome<'_>) {
        self.engine.task_outcomes([(lease, outcome)].into_iter());
    }

    fn answer(&mut self, token: Token) -> Option<String> {
        let is_answer = |event: &Event| {
            matches!(event.kind, EventKind::Ack | EventKind::Reply | EventKind::Refuse | EventKind::Result)
        };
        let index = self.told.iter().position(|event| is_answer(event) && event.a == token)?;
        let event = self.told.remove(index);
        Some(format!("{:?} {} {}", event.kind, event.b, event.text.replace(FIELD, "|").replace(ROW, ";")))
    }

    fn asked(&mut self, token: Token, ask: impl FnOnce(&mut ForeignEngine)) -> String {
        ask(&mut self.engine);
        self.settle();
        self.answer(token).expect("an answer")
    }
}

#[test]
fn nothing_of_a_task_leaves_before_its_records_are_durable_law_1() {
    let mut rig = Rig::open();
    rig.enqueue(1, "mail", &["a"]).unwrap();
    rig.engine.task_result(2, "t-1").unwrap();
    rig.engine.describe_task(3, "t-1").unwrap();
    rig.engine.describe_task(4, "t-9").unwrap();
    rig.tick();
    assert_eq!(rig.told, [], "neither the acknowledgement, nor the attempt, nor what was read or not found");

    let given = rig.one();
    assert_eq!((given.attempt, given.input.as_str()), (1, "a"));
    assert_eq!(rig.answer(1).unwrap(), "Reply 0 n|1");
    assert!(rig.answer(3).unwrap().starts_with("Reply 0 t-1|work|mail|2|19|1|1000|1000|"));
    assert!(rig.answer(4).unwrap().starts_with("Refuse 0 NOT_FOUND|there is no task \"t-9\""));
    assert_eq!(rig.answer(2), None);

    rig.says(given.lease, TaskOutcome::Completed(b"done"));
    rig.tick();
    assert_eq!(rig.told, [], "the result is not durable yet");
    rig.settle();
    assert_eq!(rig.answer(2).unwrap(), "Result 1 t-1|1|done|");
    let again = rig.asked(5, |engine| engine.task_result(5, "t-1").unwrap());
    assert_eq!(again, "Result 1 t-1|1|done|");
}

#[test]
fn the_end_of_a_task_for_which_nobody_waits_becomes_durable_with_workers_too_law_1() {
    for workers in [0, 1] {
        let config = Config { workers, flush: Some(FlushMode::Inline), ..config() };
        let mut rig = Rig { engine: ForeignEngine::open(config, Box::new(|| {})).unwrap(), told: Vec::new() };
        rig.enqueue(1, "mail", &["a"]).unwrap();
        let given = rig.one();
        rig.says(given.lease, TaskOutcome::Completed(b"done"));
        rig.settle();
        assert_eq!(rig.engine.group.durable(), rig.engine.group.last(), "{workers} workers");
    }
}

#[test]
fn a_result_counts_once_and_only_under_the_current_lease_law_7() {
    let mut rig = Rig::open();
    rig.enqueue(1, "mail", &["a"]).unwrap();
    let first = rig.one();
    rig.says(first.lease, TaskOutcome::Failed { thrown: b"no", after_ms: None });
    rig.settle();
    assert_eq!(rig.engine.next_due_at_ms(), Some(2_000), "the next attempt has its time");
    rig.says(first.lease, TaskOutcome::Completed(b"too late"));
    rig.engine.set_now_ms(2_000);
    let second = rig.one();
    assert_eq!(second.attempt, 2);
    rig.says(second.lease, TaskOutcome::Completed(b"yes"));
    rig.says(second.lease, TaskOutcome::Completed(b"twice"));
    let result = rig.asked(2, |engine| engine.task_result(2, "t-1").unwrap());
    assert!(result.starts_with("Result 1 t-1|2|yes|1"), "{result}");
    assert_eq!(rig.engine.next_due_at_ms(), None, "an idle scheduler wakes nobody");
}

#[test]
fn a_task_that_fails_to_the_end_is_dead_and_can_be_given_its_attempts_back() {
    let mut rig = Rig::open();
    rig.enqueue(1, "mail", &["a"]).unwrap();
    for due_ms in [2_000, 2_000] {
        let given = rig.one();
        rig.says(given.lease, TaskOutcome::Failed { thrown: b"\"no\"", after_ms: None });
        rig.settle();
        rig.engine.set_now_ms(due_ms);
    }
    assert!(rig.asked(2, |engine| engine.task_result(2, "t-1").unwrap()).starts_with("Result 3 t-1|2|\"no\"|1"));
    let filter = TaskFilter { kinds: vec!["work".into()], ..TaskFilter::default() };
    assert_eq!(
        rig.asked(3, |engine| engine.change_tasks(3, &filter, TaskChange::Retry, (0, 0)).unwrap()),
        "Reply 0 1|0|1"
    );
    let given = rig.one();
    assert_eq!(given.attempt, 3);
    rig.says(given.lease, TaskOutcome::FailedForGood(b"\"never\""));
    assert!(rig.asked(4, |engine| engine.task_result(4, "t-1").unwrap()).starts_with("Result 2 t-1|3|\"never\"|"));
}

#[test]
fn an_attempt_that_a_crash_cut_off_comes_again_and_what_was_acknowledged_is_there_law_3() {
    let mut rig = Rig::open();
    rig.enqueue(1, "mail", &["a", "b"]).unwrap();
    let before = rig.one();
    assert_eq!(rig.answer(1).unwrap(), "Reply 0 n|1;n|2");
    rig.enqueue(2, "mail", &["never durable"]).unwrap();
    rig.engine.crash().unwrap();
    let after = rig.one();
    assert_eq!((after.input.as_str(), after.attempt), ("a", 2));
    rig.says(before.lease, TaskOutcome::Completed(b"of another life"));
    rig.settle();
    assert!(rig.asked(3, |engine| engine.describe_task(3, "t-1").unwrap()).contains("|mail|2|19|2|"), "it runs");
    assert!(rig.asked(4, |engine| engine.describe_task(4, "t-3").unwrap()).starts_with("Refuse"));

    // The first loss was free: two attempts are left to the policy of two.
    for time_ms in [2_000, 2_000] {
        let lease = rig.given().pop().map_or(after.lease, |given| given.lease);
        rig.says(lease, TaskOutcome::Failed { thrown: b"\"no\"", after_ms: None });
        rig.settle();
        if rig.engine.clock().now_ms() < time_ms {
            rig.told.retain(|event| event.kind != EventKind::Task);
            // The other task has the slot meanwhile.
            rig.engine.cancel_task(9, "t-2", "not this one").unwrap();
        }
        rig.engine.set_now_ms(time_ms);
        rig.settle();
    }
    let result = rig.asked(5, |engine| engine.task_result(5, "t-1").unwrap());
    assert!(result.starts_with("Result 3 t-1|3|\"no\"|"), "{result}");
}

#[test]
fn a_clean_close_costs_no_attempt() {
    let path = std::env::temp_dir().join(format!("fusee-tasks-close-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    let config = Config { durability: Durability::Local(path.clone()), flush: Some(FlushMode::Inline), ..config() };
    for attempt in 1..=4 {
        let engine = ForeignEngine::open(config.clone(), Box::new(|| {})).unwrap();
        let mut rig = Rig { engine, told: Vec::new() };
        if attempt == 1 {
            rig.enqueue(1, "mail", &["a"]).unwrap();
        }
        assert_eq!(rig.one().attempt, attempt, "with a policy of two attempts");
        rig.engine.close().unwrap();
    }
    std::fs::remove_dir_all(&path).unwrap();
}

#[test]
fn each_submission_is_decided_for_itself_and_one_that_waits_is_answered_when_there_is_room() {
    let mut rig = Rig::open();
    rig.enqueue(1, "small", &["runs", "waits", "is refused"]).unwrap();
    let first = rig.one();
    let answer = rig.answer(1).unwrap();
    assert!(answer.starts_with("Reply 0 n|1;n|2;r|QUEUE_FULL|queue \"small\" is full: 1 tasks wait"), "{answer}");
    assert!(answer.ends_with("|small|1"), "{answer}");

    rig.enqueue(2, "waiting", &["runs", "waits", "waits for room"]).unwrap();
    rig.settle();
    assert_eq!(rig.answer(2), None);
    let other = rig.given().remove(0);
    rig.says(other.lease, TaskOutcome::Completed(b"1"));
    rig.settle();
    assert_eq!(rig.answer(2).unwrap(), "Reply 0 n|3;n|4;n|5");
    rig.says(first.lease, TaskOutcome::Completed(b"1"));

    let spec = TaskSpec { queue: "nowhere", ..TaskSpec::new("mail", "work", b"") };
    rig.engine.enqueue(3, &[(spec, Dedupe::default())]).unwrap();
    rig.settle();
    assert!(rig.answer(3).unwrap().contains("r|BAD_INPUT|queue \"nowhere\" is not defined"));
    let large = "x".repeat(5_000);
    let spec = TaskSpec { tags: vec![("note", &large)], ..TaskSpec::new("mail", "work", b"") };
    let error = rig.engine.enqueue(4, &[(spec, Dedupe::default())]).unwrap_err();
    assert!(error.message.contains("the limit is 4096"), "{error}");
    let spec = TaskSpec { key: Some("t-7"), ..TaskSpec::new("mail", "work", b"") };
    assert_eq!(rig.engine.enqueue(4, &[(spec, Dedupe::default())]).unwrap_err().code, ErrorCode::BadInput);
}

#[test]
fn a_task_without_a_definition_here_waits_and_holds_up_nobody() {
    let mut rig = Rig::open();
    let other = TaskSpec { kind: "elsewhere", ..TaskSpec::new("mail", "work", b"") };
    rig.engine.enqueue(1, &[(other, Dedupe::default())]).unwrap();
    rig.enqueue(2, "mail", &["a"]).unwrap();
    let given = rig.one();
    assert_eq!(given.input, "a");
    assert_eq!(rig.asked(3, |engine| engine.explain_task(3, "t-1").unwrap()), "Reply 0 notRegistered");
    rig.says(given.lease, TaskOutcome::Completed(b"1"));
    rig.settle();
    assert_eq!(rig.given(), [], "also when the slot is free again");
}

#[test]
fn a_cancelled_attempt_is_told_at_once_and_one_that_was_not_told_yet_never_is() {
    let mut rig = Rig::open();
    rig.enqueue(1, "mail", &["a", "b"]).unwrap();
    let given = rig.one();
    rig.engine.cancel_task(2, "t-1", "enough").unwrap();
    rig.tick();
    let abort = rig.told.iter().find(|event| event.kind == EventKind::TaskAbort).expect("before anything is durable");
    assert_eq!((abort.a, abort.b, abort.text.as_str()), (given.lease.slot, 2, &*given.lease.serial.to_string()));
    // The second one has its slot now, by records that are not durable: it is cancelled before its attempt is told.
    rig.engine.cancel_task(3, "t-2", "enough").unwrap();
    rig.settle();
    assert_eq!(rig.given(), []);
    assert_eq!(rig.answer(2).unwrap(), "Ack 0 ");
    let result = rig.asked(4, |engine| engine.task_result(4, "t-1").unwrap());
    assert_eq!(result, "Result 4 t-1|1|enough|");
}

#[test]
fn a_queue_pauses_goes_on_and_stays_as_it_is_over_a_crash() {
    let mut rig = Rig::open();
    assert_eq!(rig.asked(1, |engine| engine.pause_queue(1, "mail", true).unwrap()), "Ack 0 ");
    rig.enqueue(2, "mail", &["a"]).unwrap();
    rig.settle();
    rig.engine.crash().unwrap();
    rig.settle();
    assert_eq!(rig.given(), []);
    assert_eq!(rig.asked(3, |engine| engine.explain_task(3, "t-1").unwrap()), "Reply 0 queue|mail|0|1");
    assert!(rig.asked(4, |engine| engine.queue_stats(4, "mail").unwrap()).starts_with("Reply 0 1|1|0|1|1|"));
    assert!(rig.asked(5, |engine| engine.pause_queue(5, "none", true).unwrap()).starts_with("Refuse 0 BAD_INPUT"));
    rig.engine.pause_queue(6, "mail", false).unwrap();
    assert_eq!(rig.one().input, "a");
}

impl Rig {
    fn of_workflows() -> Rig {
        let config = Config { definitions: vec!["flow".into()], shards: 3, ..config() };
        Rig { engine: ForeignEngine::open(config, Box::new(|| {})).unwrap(), told: Vec::new() }
    }

    /// Writes what is staged and fetches what follows, `count` times.
    fn flushes(&mut self, count: usize) {
        for _ in 0..count {
            self.tick();
            while self.engine.idle().1 {
                self.tick();
            }
            self.tick();
        }
    }

    fn start_flow(&mut self, token: Token, id: &str) -> Slot {
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
        self.engine.start(token, request).unwrap();
        self.tick();
        let index = self.told.iter().position(|event| event.kind == EventKind::Start).expect("its code is asked for");
        let slot = Slot(self.told.remove(index).a);
        assert_eq!(self.engine.quiescent(slot).unwrap().unwrap().kind, DeliveryKind::Start);
        slot
    }

    fn asks_for(&mut self, slot: Slot, seq: u32, role: TaskRole) {
        let spec = TaskSpec::new("mail", "work", b"in");
        self.engine.open_task(slot, Seq(seq), role, Dedupe::default(), &spec, false).unwrap();
    }
}

#[test]
fn a_task_takes_one_flush_to_its_function_and_one_to_its_result() {
    let mut rig = Rig::open();
    let before = rig.engine.group().flush_figures().0;
    let flushed = |rig: &Rig| rig.engine.group().flush_figures().0 - before;
    rig.enqueue(1, "mail", &["a"]).unwrap();
    rig.flushes(1);
    assert_eq!(flushed(&rig), 1);
    assert_eq!(rig.answer(1).unwrap(), "Reply 0 n|1");
    let given = rig.given().remove(0);
    rig.engine.task_result(2, "t-1").unwrap();
    rig.says(given.lease, TaskOutcome::Completed(b"done"));
    rig.flushes(1);
    assert_eq!(flushed(&rig), 2);
    assert_eq!(rig.answer(2).unwrap(), "Result 1 t-1|1|done|");
}

#[test]
fn a_workflow_with_a_task_takes_one_flush_to_the_function_and_none_between_the_result_and_the_code() {
    let mut rig = Rig::of_workflows();
    let slot = rig.start_flow(1, "a");
    rig.asks_for(slot, 1, TaskRole::Awaited);
    assert_eq!(rig.engine.quiescent(slot), Ok(None));
    rig.tick();
    assert!(rig.given().is_empty(), "LAW-1: neither the run nor the task is durable");
    rig.flushes(1);
    let given = rig.given().remove(0);
    rig.says(given.lease, TaskOutcome::Completed(b"7"));
    let delivery = rig.engine.quiescent(slot).unwrap().expect("code runs ahead of the disk");
    assert_eq!((delivery.kind, delivery.seq), (DeliveryKind::ChildEnded, Seq(1)));
    assert!(rig.engine.payload(slot).unwrap().ends_with('7'));
}

#[test]
fn a_crash_at_any_flush_between_a_run_and_its_task_asks_for_it_once() {
    for cut in 0..4 {
        let mut rig = Rig::of_workflows();
        let mut slot = rig.start_flow(1, "a");
        rig.flushes(1);
        rig.asks_for(slot, 1, TaskRole::Awaited);
        let mut is_done = false;
        for stage in 0..6 {
            if stage == cut {
                rig.engine.crash().unwrap();
                // A replay, or another attempt, gives it again.
                is_done = false;
                rig.told.clear();
                rig.tick();
                let start = rig.told.iter().find(|event| event.kind == EventKind::Start).expect("it is open");
                slot = Slot(start.a);
                assert_eq!(rig.engine.quiescent(slot).unwrap().unwrap().kind, DeliveryKind::Start);
                rig.asks_for(slot, 1, TaskRole::Awaited);
            }
            while let Ok(Some(delivery)) = rig.engine.quiescent(slot) {
                assert_eq!(delivery.kind, DeliveryKind::ChildEnded);
                assert!(!is_done, "one result");
                is_done = true;
            }
            if stage % 2 == 0 {
                rig.flushes(1);
            } else {
                for given in rig.given() {
                    assert_eq!(given.task, "1", "one task, whatever was cut");
                    rig.says(given.lease, TaskOutcome::Completed(b"7"));
                }
            }
        }
        let count = rig.asked(9, |engine| engine.count_tasks(9, &TaskFilter::default()).unwrap());
        assert_eq!(count, "Reply 0 1", "after a crash at stage {cut}");
        assert!(is_done, "after a crash at stage {cut}");
    }
}
