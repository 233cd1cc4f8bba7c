//! Tests of the machine: given records, a verb, then deliveries and effects.

use super::*;
use crate::record::{ChildSpec, IdConflict, IdReuse, Lsn, NewRun, ParentClose, Record, Retry, Seq, ShardId, Status};

/// A log that is a list.
#[derive(Default)]
struct List(Vec<Vec<u8>>);

impl Sink for List {
    fn append(&mut self, record: &[u8]) -> Lsn {
        self.0.push(record.to_vec());
        Lsn(self.0.len() as u64)
    }
}

/// One shard, its log, its clock, and the messages that it sent to itself.
struct World {
    shard: Shard,
    log: List,
    now_ms: i64,
    effects: Vec<Effect>,
}

fn new_run(id: &str) -> NewRun<'_> {
    let key_root = [1; 16];
    NewRun { id, kind: "flow", version: 1, key_root, deadline_ms: None, parent: None, input: b"1", actor: None }
}

fn target(id: &str) -> Target<'_> {
    Target { id, run: None }
}

impl World {
    fn new() -> Self {
        World { shard: Shard::new(ShardId(0), 1), log: List::default(), now_ms: 1_000, effects: Vec::new() }
    }

    fn work<R>(&mut self, verb: impl FnOnce(&mut Shard, &mut Work<'_>) -> R) -> R {
        let mut work = Work { now_ms: self.now_ms, log: &mut self.log, effects: &mut self.effects };
        let result = verb(&mut self.shard, &mut work);
        // Messages to itself arrive at once.
        while let Some(index) = self.effects.iter().position(|effect| matches!(effect, Effect::Post(_))) {
            let Effect::Post(message) = self.effects.remove(index) else { continue };
            let mut work = Work { now_ms: self.now_ms, log: &mut self.log, effects: &mut self.effects };
            assert!(self.shard.handle_message(&mut work, &message));
        }
        result
    }

    fn start(&mut self, id: &str) -> RunIx {
        self.start_with(id, IdReuse::Allow, IdConflict::Fail).unwrap().run
    }

    fn start_with(&mut self, id: &str, reuse: IdReuse, conflict: IdConflict) -> Result<Started, Refusal> {
        let started = self.work(|shard, work| shard.start(work, StartCommand { new: new_run(id), reuse, conflict }))?;
        if !started.is_existing {
            self.shard.load(started.run);
            assert_eq!(self.next(started.run).unwrap().kind, DeliveryKind::Start);
        }
        Ok(started)
    }

    fn next(&mut self, run: RunIx) -> Option<Delivery> {
        let delivery = self.work(|shard, work| shard.quiescent(work, run));
        assert_eq!(self.shard.orphans().iter().filter(|(_, seq)| *seq != Seq(0)).count(), 0, "LAW-8");
        delivery
    }

    fn step(&mut self, run: RunIx, seq: u32, name: &str, mode: StepMode) -> Result<OpenedStep, Halt> {
        self.work(|shard, work| shard.open_step(work, run, Seq(seq), name, mode))
    }

    fn complete(&mut self, run: RunIx, seq: u32, attempt: u32) -> bool {
        self.work(|shard, work| shard.complete(work, run, Seq(seq), attempt, b"ok"))
    }

    fn attempt(&self, run: RunIx, seq: u32) -> Option<(u32, bool)> {
        self.shard.attempt(run, Seq(seq)).map(|(attempt, is_interrupted, _)| (attempt, is_interrupted))
    }

    /// A new process reads the log; the code of `run` is called again.
    fn restart(&mut self, is_clean: bool, run: RunIx) {
        self.shard = Shard::new(ShardId(0), 1);
        self.effects.clear();
        for (index, record) in self.log.0.iter().enumerate() {
            self.shard.restore(Lsn(index as u64 + 1), record).unwrap();
        }
        self.shard.restored(is_clean, &mut self.effects);
        self.effects.clear();
        assert!(self.shard.load(run).is_some());
        assert_eq!(self.next(run).unwrap().kind, DeliveryKind::Start);
    }
}

const PLAIN: StepMode = StepMode { is_read_only: false, is_at_most_once: false };
const ONCE: StepMode = StepMode { is_read_only: false, is_at_most_once: true };

#[test]
fn an_id_in_use_meets_its_conflict_policy() {
    let mut world = World::new();
    let first = world.start("a");
    assert!(matches!(world.start_with("a", IdReuse::Allow, IdConflict::Fail), Err(Refusal::AlreadyStarted(_))));
    for conflict in [IdConflict::UseExisting, IdConflict::SameInput] {
        let again = world.start_with("a", IdReuse::Allow, conflict).unwrap();
        assert_eq!(again, Started { run: first, is_existing: true });
    }
    let second = world.start_with("a", IdReuse::Allow, IdConflict::TerminateExisting).unwrap();
    assert!(!second.is_existing && second.run != first);
    assert_eq!(world.shard.outcome(first).unwrap().0, Status::Terminated);
}

#[test]
fn an_id_that_was_used_meets_its_reuse_policy() {
    let mut world = World::new();
    let run = world.start("a");
    world.work(|shard, work| shard.finish(work, run, Status::Completed, b"1")).unwrap();
    for reuse in [IdReuse::Reject, IdReuse::AllowFailedOnly] {
        assert!(matches!(world.start_with("a", reuse, IdConflict::Fail), Err(Refusal::AlreadyStarted(_))));
    }
    assert!(!world.start_with("a", IdReuse::Allow, IdConflict::Fail).unwrap().is_existing);
}

#[test]
fn results_are_delivered_one_a_turn_in_the_order_of_their_records_law_4() {
    let mut world = World::new();
    let run = world.start("a");
    for seq in 1..=3 {
        assert!(matches!(world.step(run, seq, "s", PLAIN), Ok(OpenedStep::Run(_))));
    }
    for seq in [3, 1, 2] {
        assert!(world.complete(run, seq, 1));
    }
    for seq in [3, 1, 2] {
        assert_eq!(world.next(run), Some(Delivery { kind: DeliveryKind::StepCompleted, seq: Seq(seq) }));
    }
    assert_eq!(world.next(run), None);
}

#[test]
fn a_step_takes_one_result_law_7() {
    let mut world = World::new();
    let run = world.start("a");
    world.step(run, 1, "s", PLAIN).unwrap();
    assert!(!world.complete(run, 1, 2), "an attempt that never was");
    assert!(world.complete(run, 1, 1));
    assert!(!world.complete(run, 1, 1));
}

#[test]
fn back_off_survives_a_restart() {
    let mut world = World::new();
    let run = world.start("a");
    world.step(run, 1, "s", PLAIN).unwrap();
    assert!(world.work(|shard, work| shard.retry(work, run, Seq(1), 1, Retry::At(5_000), b"no")));
    world.restart(true, run);
    assert_eq!(world.step(run, 1, "s", PLAIN), Ok(OpenedStep::Later));
    assert_eq!(world.next(run), None);
    assert_eq!(world.shard.next_due_ms(), Some(5_000));
    world.now_ms = 5_000;
    world.work(|shard, work| shard.handle_due(work));
    assert_eq!(world.attempt(run, 1), Some((2, false)));
}

#[test]
fn a_lost_attempt_counts_from_the_second_loss_on_and_a_clean_close_counts_nothing_law_7() {
    let mut world = World::new();
    let run = world.start("a");
    world.step(run, 1, "s", PLAIN).unwrap();
    for (is_clean, attempt) in [(false, 1), (false, 2), (true, 2), (false, 3)] {
        world.restart(is_clean, run);
        assert_eq!(world.step(run, 1, "s", PLAIN), Ok(OpenedStep::Later));
        assert_eq!(world.next(run), None);
        assert_eq!(world.attempt(run, 1), Some((attempt, false)));
    }
}

#[test]
fn an_at_most_once_step_is_interrupted_by_a_restart_law_2() {
    let mut world = World::new();
    let run = world.start("a");
    let records = world.log.0.len() as u64;
    assert_eq!(world.step(run, 1, "s", ONCE), Ok(OpenedStep::Run(Lsn(records + 1))));
    world.restart(false, run);
    assert_eq!(world.step(run, 1, "s", ONCE), Ok(OpenedStep::Later));
    assert_eq!(world.next(run), None);
    assert_eq!(world.attempt(run, 1), Some((1, true)));
}

#[test]
fn a_paused_step_begins_again_when_it_is_resumed() {
    let mut world = World::new();
    let run = world.start("a");
    world.step(run, 1, "s", PLAIN).unwrap();
    assert!(world.work(|shard, work| shard.retry(work, run, Seq(1), 1, Retry::Paused, b"no")));
    assert!(world.shard.view(run).marks.is_paused);
    world.work(|shard, work| shard.resume(work, target("a"), Some("ann"))).unwrap();
    assert_eq!(world.attempt(run, 1), Some((1, false)));
}

#[test]
fn a_signal_before_its_wait_is_kept_and_a_timeout_eats_none_law_4() {
    let mut world = World::new();
    let run = world.start("a");
    let send = |world: &mut World, dedupe| {
        world.work(|shard, work| shard.signal(work, target("a"), "go", b"1", dedupe, None)).unwrap();
    };
    send(&mut world, Some("d"));
    send(&mut world, Some("d"));
    world.step(run, 1, "s", PLAIN).unwrap();
    world.complete(run, 1, 1);
    assert_eq!(world.next(run).unwrap().seq, Seq(1));
    assert!(world.work(|shard, work| shard.open_wait(work, run, Seq(2), "go", None)).unwrap());
    assert!(!world.work(|shard, work| shard.open_wait(work, run, Seq(3), "go", Some(10))).unwrap());
    world.now_ms = 2_000;
    world.work(|shard, work| shard.handle_due(work));
    send(&mut world, None);
    assert_eq!(world.next(run), Some(Delivery { kind: DeliveryKind::WaitTimedOut, seq: Seq(3) }));
    assert_eq!(world.next(run), None);
    world.work(|shard, work| shard.cancel(work, target("a"), "", None)).unwrap();
    assert_eq!(world.next(run).unwrap().kind, DeliveryKind::Cancelled);
    assert!(world.work(|shard, work| shard.open_wait(work, run, Seq(4), "go", None)).unwrap(), "it was not eaten");
}

#[test]
fn a_cancel_withdraws_everything_in_one_delivery() {
    let mut world = World::new();
    let run = world.start("a");
    world.step(run, 1, "s", PLAIN).unwrap();
    world.work(|shard, work| shard.open_timer(work, run, Seq(2), 50, false)).unwrap();
    world.work(|shard, work| shard.cancel(work, target("a"), "why", None)).unwrap();
    assert_eq!(world.next(run), Some(Delivery { kind: DeliveryKind::Cancelled, seq: Seq(0) }));
    assert_eq!(world.shard.next_due_ms(), None);
    assert!(!world.complete(run, 1, 1), "the result of a withdrawn step is dropped");
}

#[test]
fn a_replay_that_asks_for_something_else_is_stuck_and_can_be_tried_again_law_5() {
    let mut world = World::new();
    let run = world.start("a");
    world.step(run, 1, "charge", PLAIN).unwrap();
    world.complete(run, 1, 1);
    world.restart(false, run);
    assert_eq!(world.step(run, 1, "refund", PLAIN), Err(Halt::Mismatch));
    let message = world.shard.stuck_message(run).unwrap();
    assert!(message.contains("recorded step \"charge\"") && message.contains("asked for step \"refund\""), "{message}");
    assert_eq!(world.next(run), None);
    world.work(|shard, work| shard.resume(work, target("a"), None)).unwrap();
    assert_eq!(world.shard.load(run), Some(true));
    assert_eq!(world.next(run).unwrap().kind, DeliveryKind::Start);
    assert_eq!(world.step(run, 1, "charge", PLAIN), Ok(OpenedStep::Later));
    assert_eq!(world.next(run).unwrap().kind, DeliveryKind::StepCompleted);
}

#[test]
fn a_replay_that_asks_for_less_is_stuck_law_5() {
    let mut world = World::new();
    let run = world.start("a");
    world.step(run, 1, "charge", PLAIN).unwrap();
    world.complete(run, 1, 1);
    world.restart(false, run);
    assert_eq!(world.next(run), None);
    assert!(world.shard.view(run).marks.is_stuck);
}

#[test]
fn a_child_reports_to_its_parent_and_ends_with_it_by_policy_law_3() {
    let mut world = World::new();
    let run = world.start("parent");
    for (seq, id, parent_close) in [(1, "c1", ParentClose::Terminate), (2, "c2", ParentClose::Abandon)] {
        let child = ChildSpec {
            id,
            kind: "flow",
            version: 1,
            key_root: [2; 16],
            timeout_ms: None,
            parent_close,
            reuse: IdReuse::Allow,
            conflict: IdConflict::Fail,
            input: b"1",
        };
        world.work(|shard, work| shard.open_child(work, run, Seq(seq), child)).unwrap();
    }
    world.work(|shard, work| shard.finish(work, run, Status::Completed, b"")).unwrap();
    let status = |world: &World, id| world.shard.view(world.shard.find(target(id)).unwrap()).status;
    assert_eq!((status(&world, "c1"), status(&world, "c2")), (Some(Status::Terminated), None));
}

#[test]
fn a_message_is_applied_once_and_in_its_turn_law_3() {
    let mut world = World::new();
    let run = world.start("a");
    let other = world.start("b");
    let what = crate::record::Sending::Signal("go", b"1");
    let mut effects = Vec::new();
    let mut work = Work { now_ms: 1, log: &mut world.log, effects: &mut effects };
    world.shard.open_send(&mut work, run, Seq(1), "b", None, what).unwrap();
    let Some(Effect::Post(message)) = effects.pop() else { panic!("a send posts a message") };
    let early = Message { number: message.number + 1, ..message.clone() };
    let handle = |world: &mut World, message: &Message| world.work(|shard, work| shard.handle_message(work, message));
    assert!(!handle(&mut world, &early), "one before it is missing");
    assert!(handle(&mut world, &message) && handle(&mut world, &message));
    let signals = world.shard.history(other).filter(|entry| matches!(entry.record, Record::Signal { .. })).count();
    assert_eq!(signals, 1);
}

#[test]
fn a_time_limit_ends_the_run() {
    let mut world = World::new();
    let new = NewRun { deadline_ms: Some(3_000), ..new_run("a") };
    let command = StartCommand { new, reuse: IdReuse::Allow, conflict: IdConflict::Fail };
    let run = world.work(|shard, work| shard.start(work, command)).unwrap().run;
    world.now_ms = 3_000;
    world.work(|shard, work| shard.handle_due(work));
    assert_eq!(world.shard.outcome(run).unwrap().0, Status::TimedOut);
}
