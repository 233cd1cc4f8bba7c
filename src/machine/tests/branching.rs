//! Forks, resets and another try of runs that have failed.

use super::world::*;
use crate::machine::*;
use crate::record::*;

pub(super) fn before(border: Border<'_>) -> Branch<'_> {
    Branch { border, reapplies_signals: true, version: None, key_root: None, actor: Some("ann") }
}

pub(super) fn reset(world: &mut World, id: &str, branch: Branch<'_>) -> Result<R, Refusal> {
    let home = world.home(id);
    let run = world.on(home, |shard, work| shard.reset(work, Target { id, run: None }, &branch))?;
    Ok(R(home, run))
}

pub(super) fn fork(world: &mut World, id: &str, to: &str, branch: Branch<'_>) -> Result<R, Refusal> {
    let (now_ms, home) = (world.now_ms, world.home(to));
    let copied = world.shards[world.home(id)].copy_for_fork(now_ms, Target { id, run: None }, to, &branch)?;
    Ok(R(home, world.on(home, |shard, work| shard.fork(work, &copied))?))
}

/// Loads the run; its start is handed out.
fn replay(world: &mut World, run: R) {
    assert_eq!(world.load(run), Some(true));
    assert_eq!(world.next(run), Some((DeliveryKind::Start, 0)));
}

fn refusal<T: std::fmt::Debug>(result: Result<T, Refusal>) -> String {
    result.unwrap_err().to_string()
}

/// Two steps, one after the other, with a signal between them and one behind.
fn two_steps(world: &mut World) -> R {
    let run = world.started("a");
    world.step(run, "one").unwrap();
    world.rests(run);
    assert!(world.complete(run, 1, 1, "1"));
    assert_eq!(world.next(run), Some((DeliveryKind::StepCompleted, 1)));
    world.signal("a", "x", "early").unwrap();
    world.step(run, "two").unwrap();
    world.rests(run);
    assert!(world.complete(run, 2, 1, "2"));
    assert_eq!(world.next(run), Some((DeliveryKind::StepCompleted, 2)));
    world.signal("a", "x", "late").unwrap();
    world.rests(run);
    run
}

#[test]
fn an_id_goes_on_from_before_a_step_in_one_record() {
    for (reapplies_signals, signals) in [(true, vec!["early", "late"]), (false, vec!["early"])] {
        let mut world = World::new(1);
        let run = two_steps(&mut world);
        let records = world.log.len();
        let branch = Branch { reapplies_signals, version: Some(3), ..before(Border::Step("two")) };
        reset(&mut world, "a", branch).unwrap();
        assert_eq!(world.log.len(), records + 1);
        assert!(world.has_effect(|effect| matches!(effect, Effect::Ended { was_loaded: true, .. })));
        for life in 0..2 {
            assert_eq!(world.status(run), Some(Status::Terminated), "life {life}");
            let next = world.find("a");
            assert_ne!(next, run);
            let view = world.shards[0].view(next.1);
            assert_eq!((view.version, view.status, view.created_ms), (3, None, T0));
            assert_eq!(world.labels(next)[..4], ["started", "branched", "stepCompleted", "signalReceived"]);
            replay(&mut world, next);
            assert_eq!(world.step(next, "one"), Ok(OpenedStep::Recorded));
            assert_eq!(world.next(next), Some((DeliveryKind::StepCompleted, 1)));
            assert_eq!(world.payload(next), "1");
            assert_eq!(world.step(next, "changed"), Ok(OpenedStep::Later), "the new code may ask for something else");
            for (index, signal) in signals.iter().enumerate() {
                assert_eq!(world.wait(next, "x", None), Ok(None));
                assert_eq!(world.next(next), Some((DeliveryKind::SignalTaken, 3 + index as u32)));
                assert_eq!(world.payload(next), *signal);
            }
            world.rests(next);
            assert_eq!(world.take_attempts().last().map(|attempt| attempt.0), Some(2));
            world.no_orphans();
            world.reopen(true);
        }
    }
}

#[test]
fn every_crash_has_the_run_or_the_one_in_its_place_law_3() {
    let mut world = World::new(1);
    two_steps(&mut world);
    let old = world.find("a");
    reset(&mut world, "a", before(Border::Step("two"))).unwrap();
    let next = world.find("a");
    for count in 1..=world.log.len() {
        let shard = &world.restored_from(count)[0];
        let latest = shard.find(Target { id: "a", run: None }).unwrap();
        let is_reset = count == world.log.len();
        assert_eq!(latest, if is_reset { next.1 } else { old.1 });
        assert_eq!(shard.open_count(), 1, "one of them goes on, never both");
        assert_eq!(shard.view(old.1).status.is_some(), is_reset);
    }
}

#[test]
fn results_that_came_for_steps_beside_the_place_go_along_law_7() {
    let mut world = World::new(1);
    let run = world.started("a");
    for name in ["slow", "quick", "other"] {
        world.step(run, name).unwrap();
    }
    world.sleep(run, 5).unwrap();
    world.rests(run);
    assert!(world.complete(run, 2, 1, "q"));
    assert_eq!(world.next(run), Some((DeliveryKind::StepCompleted, 2)));
    assert!(world.complete(run, 1, 1, "s") && world.complete(run, 3, 1, "o"));
    let next = reset(&mut world, "a", before(Border::Step("quick"))).unwrap();
    assert_eq!(world.labels(next), ["started", "branched", "stepCompleted"]);
    replay(&mut world, next);
    assert_eq!(world.step(next, "slow"), Ok(OpenedStep::Recorded));
    world.step(next, "quick").unwrap();
    assert_eq!(world.next(next), Some((DeliveryKind::StepCompleted, 1)));
}

#[test]
fn keys_stay_unless_fresh_ones_are_asked_for_and_then_from_the_place_on_law_7() {
    let mut world = World::new(1);
    two_steps(&mut world);
    let keys = |world: &World, run: R| [1, 2, 3].map(|seq| world.shards[0].key_root_at(run.1, Seq(seq))[0]);
    let next = reset(&mut world, "a", before(Border::Step("two"))).unwrap();
    assert_eq!(keys(&world, next), [7, 7, 7]);
    let fresh = Branch { key_root: Some([1; 16]), ..before(Border::Operation(1)) };
    replay(&mut world, next);
    world.step(next, "one").unwrap();
    let forked = fork(&mut world, "a", "b", Branch { border: Border::Operation(2), ..fresh }).unwrap();
    assert_eq!(keys(&world, forked), [7, 1, 1]);
    let again = reset(&mut world, "b", before(Border::Operation(1))).unwrap();
    assert_eq!(keys(&world, again), [7, 1, 1], "also of what comes again");
    let again = reset(&mut world, "b", Branch { key_root: Some([2; 16]), ..fresh }).unwrap();
    for _ in 0..2 {
        assert_eq!(keys(&world, again), [2, 2, 2]);
        world.reopen(false);
    }
    let borders: Vec<_> = world.shards[0].borders(again.1).map(|(seq, root, id)| (seq.0, root[0], id)).collect();
    assert_eq!(borders, [(1, 2, "a")], "what came before it has the ids of the first run");
}

#[test]
fn a_fork_lives_beside_its_source_and_shares_nothing_but_the_past() {
    for shards in [1, 3] {
        let mut world = World::new(shards);
        let run = two_steps(&mut world);
        let branch = Branch { key_root: Some([9; 16]), reapplies_signals: false, ..before(Border::Step("two")) };
        let records = world.log.len();
        let forked = fork(&mut world, "a", "b", branch).unwrap();
        assert_eq!(world.log.len(), records + 1);
        for _ in 0..2 {
            assert_eq!((world.status(run), world.status(forked)), (None, None));
            replay(&mut world, forked);
            assert_eq!(world.step(forked, "one"), Ok(OpenedStep::Recorded));
            assert_eq!(world.next(forked), Some((DeliveryKind::StepCompleted, 1)));
            world.step(forked, "two").unwrap();
            world.rests(forked);
            world.reopen(false);
        }
        assert!(refusal(fork(&mut world, "a", "b", branch)).contains("another id"));
        world.terminate("b").unwrap();
        assert!(
            matches!(fork(&mut world, "a", "b", branch), Err(Refusal::AlreadyStarted(_))),
            "also of one that ended"
        );
        assert_eq!(world.status(run), None);
    }
}

#[test]
fn a_timer_of_the_past_keeps_its_time() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.sleep(run, 100).unwrap();
    world.step(run, "s").unwrap();
    world.rests(run);
    assert!(world.complete(run, 2, 1, ""));
    world.advance(40);
    let next = reset(&mut world, "a", before(Border::Step("s"))).unwrap();
    replay(&mut world, next);
    world.sleep(next, 100).unwrap();
    world.rests(next);
    world.no_orphans();
    assert_eq!(world.shards[0].next_due_ms(), Some(T0 + 100), "and the cut run has no timers");
    world.advance(60);
    assert_eq!(world.next(next), Some((DeliveryKind::TimerFired, 1)));
    let fresh = Branch { key_root: Some([1; 16]), ..before(Border::Operation(1)) };
    let forked = fork(&mut world, "a", "b", fresh).unwrap();
    replay(&mut world, forked);
    assert_eq!(world.labels(forked), ["started", "branched"]);
}

/// A parent with a child of each policy before the step and one behind it; `kid-…` are open.
fn with_children(world: &mut World) -> R {
    let parent = world.started("parent");
    for (id, parent_close) in POLICIES {
        world.child(parent, ChildSpec { parent_close, ..child(id) }).unwrap();
    }
    world.step(parent, "s").unwrap();
    world.rests(parent);
    assert!(world.complete(parent, 4, 1, ""));
    assert_eq!(world.next(parent), Some((DeliveryKind::StepCompleted, 4)));
    world.child(parent, child("kid-behind")).unwrap();
    world.rests(parent);
    for id in ["kid-t", "kid-c", "kid-a", "kid-behind"] {
        let kid = world.find(id);
        world.load(kid);
        assert_eq!(world.next(kid), Some((DeliveryKind::Start, 0)));
    }
    parent
}

const POLICIES: [(&str, ParentClose); 3] =
    [("kid-t", ParentClose::Terminate), ("kid-c", ParentClose::Cancel), ("kid-a", ParentClose::Abandon)];

fn ask_again(world: &mut World, parent: R) {
    replay(world, parent);
    for (id, parent_close) in POLICIES {
        world.child(parent, ChildSpec { parent_close, ..child(id) }).unwrap();
    }
    world.step(parent, "s").unwrap();
}

#[test]
fn children_of_before_the_place_are_adopted_and_those_behind_it_closed() {
    for has_crash in [false, true] {
        let mut world = World::new(2);
        with_children(&mut world);
        let next = reset(&mut world, "parent", before(Border::Step("s"))).unwrap();
        assert_eq!(world.status(world.find("kid-behind")), Some(Status::Terminated));
        for (id, _) in POLICIES {
            assert!(!world.labels(world.find(id)).contains(&"cancelRequested"), "{id}");
            assert_eq!(world.status(world.find(id)), None, "{id}");
        }
        // A second reset adopts what the first one has adopted.
        let next = if has_crash { reset(&mut world, "parent", before(Border::Operation(4))).unwrap() } else { next };
        if has_crash {
            world.reopen(false);
        }
        ask_again(&mut world, next);
        world.rests(next);
        let kid = world.find("kid-c");
        if has_crash {
            world.load(kid);
            world.next(kid);
        }
        world.finish(kid, Status::Completed, "done").unwrap();
        assert_eq!(world.next(next), Some((DeliveryKind::ChildEnded, 2)));
        assert_eq!(world.payload(next), "Completed:done");
        world.rests(next);
        world
            .on(next.0, |shard, work| {
                shard.open_send(work, next.1, Seq(5), "kid-t", None, Sending::CancelChild(Seq(1)))
            })
            .expect_err("not in a turn");
        world.terminate("parent").unwrap();
        assert_eq!(world.status(world.find("kid-t")), Some(Status::Terminated), "it is closed with who adopted it");
        assert_eq!(world.status(world.find("kid-a")), None);
    }
}

#[test]
fn a_child_that_was_adopted_is_cancelled_by_its_operation() {
    let mut world = World::new(1);
    with_children(&mut world);
    let next = reset(&mut world, "parent", before(Border::Step("s"))).unwrap();
    ask_again(&mut world, next);
    world.send(next, "kid-t", Sending::CancelChild(Seq(1))).unwrap();
    assert!(world.labels(world.find("kid-t")).contains(&"cancelRequested"));
}

#[test]
fn an_end_that_came_behind_the_place_goes_along_and_one_of_a_cut_operation_does_not() {
    let mut world = World::new(1);
    let parent = with_children(&mut world);
    for id in ["kid-t", "kid-behind"] {
        world.finish(world.find(id), Status::Completed, id).unwrap();
    }
    assert_eq!(world.labels(parent).iter().filter(|label| **label == "childEnded").count(), 2);
    let next = reset(&mut world, "parent", before(Border::Step("s"))).unwrap();
    assert_eq!(world.labels(next).iter().filter(|label| **label == "childEnded").count(), 1);
    ask_again(&mut world, next);
    assert_eq!(world.next(next), Some((DeliveryKind::ChildEnded, 1)));
    assert_eq!(world.payload(next), "Completed:kid-t");
    world.rests(next);
}

#[test]
fn a_late_answer_to_a_cut_operation_of_the_same_number_is_dropped() {
    let mut world = World::new(1);
    with_children(&mut world);
    world.is_mail_held = true;
    let next = reset(&mut world, "parent", before(Border::Step("s"))).unwrap();
    ask_again(&mut world, next);
    world.rests(next);
    world.is_mail_held = false;
    assert!(world.take_attempts().iter().any(|attempt| attempt.0 == 4));
    let lease = *world.leases.last().unwrap();
    assert!(world.complete(next, 4, lease, ""));
    assert_eq!(world.next(next), Some((DeliveryKind::StepCompleted, 4)));
    world.child(next, child("kid-other")).unwrap();
    world.rests(next);
    assert_eq!(world.status(world.find("kid-behind")), Some(Status::Terminated));
    assert!(!world.labels(next).contains(&"childEnded"), "the end of operation 5 of the run before is not its");
}

#[test]
fn a_fork_waits_for_the_children_that_are_alive_and_does_not_own_them() {
    let mut world = World::new(2);
    let parent = with_children(&mut world);
    let forked = fork(&mut world, "parent", "fork", before(Border::Step("s"))).unwrap();
    ask_again(&mut world, forked);
    world.rests(forked);
    world.finish(world.find("kid-a"), Status::Completed, "done").unwrap();
    assert_eq!(world.next(forked), Some((DeliveryKind::ChildEnded, 3)));
    world.rests(forked);
    assert_eq!(world.next(parent), Some((DeliveryKind::ChildEnded, 3)), "so does its source");
    world.terminate("fork").unwrap();
    assert_eq!(world.status(world.find("kid-t")), None, "it is the child of another run");
}

#[test]
fn a_run_that_failed_asks_anew_for_the_children_that_ended_with_it() {
    let mut world = World::new(1);
    let parent = with_children(&mut world);
    world.signal("parent", "wake", "").unwrap();
    world.wait(parent, "wake", None).expect_err("not in a turn");
    world.terminate("parent").unwrap();
    let first = world.find("kid-t");
    assert_eq!(world.status(first), Some(Status::Terminated));
    let records = world.log.len();
    let next = reset(&mut world, "parent", before(Border::Step("s"))).unwrap();
    assert_eq!(world.status(parent), Some(Status::Terminated), "how it ended stays");
    assert!(world.log.len() > records);
    assert_ne!(world.find("kid-t"), first, "it is started again");
    ask_again(&mut world, next);
    world.rests(next);
    let kid = world.find("kid-t");
    world.load(kid);
    world.next(kid);
    world.finish(kid, Status::Completed, "second").unwrap();
    assert_eq!(world.next(next), Some((DeliveryKind::ChildEnded, 1)));
    world.finish(world.find("kid-a"), Status::Completed, "first").unwrap();
    assert_eq!(world.next(next), Some((DeliveryKind::ChildEnded, 3)), "it went on all the time");
}

#[test]
fn a_parent_hears_of_the_end_of_the_run_in_its_childs_place() {
    let mut world = World::new(2);
    let parent = world.started("parent");
    world.child(parent, child("kid")).unwrap();
    world.rests(parent);
    let kid = world.find("kid");
    world.load(kid);
    world.next(kid);
    world.step(kid, "s").unwrap();
    let next = reset(&mut world, "kid", before(Border::Step("s"))).unwrap();
    world.rests(parent);
    replay(&mut world, next);
    world.finish(next, Status::Completed, "done").unwrap();
    assert_eq!(world.next(parent), Some((DeliveryKind::ChildEnded, 1)));
    assert_eq!(world.payload(parent), "Completed:done");
    let again = reset(&mut world, "kid", before(Border::Operation(1))).unwrap();
    assert_eq!(world.shards[again.0].view(again.1).parent, None, "its parent has been told of an end");
}

#[test]
fn awakeables_before_the_place_stay_with_the_id() {
    let mut world = World::new(1);
    let run = world.started("a");
    let no = world.shards[0].view(run.1).no;
    world.wait(run, "awakeable:k", None).unwrap();
    world.step(run, "s").unwrap();
    world.wait(run, "awakeable:cut", None).unwrap();
    world.rests(run);
    let next = reset(&mut world, "a", before(Border::Step("s"))).unwrap();
    let target = Target { id: "a", run: Some(no) };
    let complete = |world: &mut World, name: &str| {
        world.on(0, |shard, work| shard.complete_awakeable(work, target, name, b"v", None))
    };
    assert_eq!(complete(&mut world, "awakeable:cut"), Ok(false), "it was withdrawn");
    assert_eq!(complete(&mut world, "awakeable:k"), Ok(true), "by the token of the run before");
    assert_eq!(complete(&mut world, "awakeable:k"), Ok(false));
    replay(&mut world, next);
    world.wait(next, "awakeable:k", None).unwrap();
    assert_eq!(world.next(next), Some((DeliveryKind::SignalTaken, 1)));
}

#[test]
fn tasks_before_the_place_are_adopted_by_a_reset_and_asked_for_anew_by_a_fork() {
    let mut world = World::new(1);
    let run = world.started("a");
    let spec = TaskSpec::new("q", "k", b"in");
    let ask = |world: &mut World, run: R, seq: u32| {
        let role = TaskRole::Awaited;
        world
            .on(0, |shard, work| shard.open_task(work, run.1, Seq(seq), role, Dedupe::default(), &spec, false, Ok(())))
            .unwrap();
    };
    ask(&mut world, run, 1);
    world.on(0, |shard, work| shard.open_step(work, run.1, Seq(2), "s", StepMode::default())).unwrap();
    ask(&mut world, run, 3);
    world.rests(run);
    world.to_scheduler.clear();
    let first = world.shards[0].view(run.1).no;
    let next = reset(&mut world, "a", before(Border::Step("s"))).unwrap();
    let said: Vec<_> = world.to_scheduler.drain(..).map(|message| message.body).collect();
    assert_eq!(said.len(), 1);
    let (shard, seq) = (ShardId(0), Seq(3));
    assert_eq!(*said[0], Body::CancelOrder { caller: Caller { shard, run: first, seq } }, "the one behind it");
    let end = Body::Ended { run: first, seq: Seq(1), status: Status::Completed, payload: (*b"out").into() };
    let message =
        Message { from: ShardId::SCHEDULER, to: shard, number: 1, lsn: Lsn::NONE, body: std::sync::Arc::new(end) };
    let forked = fork(&mut world, "a", "b", before(Border::Operation(2))).unwrap();
    let said: Vec<_> = world.to_scheduler.drain(..).map(|message| message.body).collect();
    let fork_no = world.shards[0].view(forked.1).no;
    assert!(matches!(&*said[0], Body::Order { caller, .. } if *caller == Caller { shard, run: fork_no, seq: Seq(1) }));
    assert!(world.receive(&message));
    replay(&mut world, next);
    ask(&mut world, next, 1);
    assert_eq!(world.next(next), Some((DeliveryKind::ChildEnded, 1)));
    assert_eq!(world.payload(next), "Completed:out");
}

#[test]
fn a_failed_run_goes_on_from_the_step_that_failed() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "s").unwrap();
    world.step(run, "t").unwrap();
    world.rests(run);
    assert!(world.complete(run, 2, 1, "t") && world.fail(run, 1, 1, "no"));
    assert_eq!(world.next(run), Some((DeliveryKind::StepCompleted, 2)));
    assert_eq!(world.next(run), Some((DeliveryKind::StepFailed, 1)));
    assert!(refusal(reset(&mut world, "a", before(Border::FailedStep("s")))).contains("has not failed (running)"));
    world.finish(run, Status::Failed, "no").unwrap();
    let next = reset(&mut world, "a", before(Border::FailedStep("s"))).unwrap();
    assert_eq!(world.labels(next), ["started", "branched"]);
    world.terminate("a").unwrap();
    assert!(refusal(reset(&mut world, "a", before(Border::End))).contains("(terminated)"));
}

#[test]
fn a_run_that_failed_by_its_own_code_keeps_everything_but_its_end() {
    let mut world = World::new(1);
    let run = two_steps(&mut world);
    world.signal("a", "y", "").unwrap();
    world.rests(run);
    world.cancel("a").unwrap();
    assert_eq!(world.next(run), Some((DeliveryKind::Cancelled, 0)));
    world.finish(run, Status::Failed, "a bug").unwrap();
    let before_end = world.labels(run).len() - 1;
    let next = reset(&mut world, "a", before(Border::End)).unwrap();
    assert_eq!(world.labels(next).len(), before_end + 1);
    replay(&mut world, next);
    for (seq, name) in [(1, "one"), (2, "two")] {
        assert_eq!(world.step(next, name), Ok(OpenedStep::Recorded));
        assert_eq!(world.next(next), Some((DeliveryKind::StepCompleted, seq)));
    }
    assert_eq!(world.next(next), Some((DeliveryKind::Cancelled, 0)));
}

#[test]
fn the_time_limit_of_a_run_begins_anew() {
    let mut world = World::new(1);
    let new = NewRun { deadline_ms: Some(T0 + 100), ..new_run("a", "in") };
    let (run, _) = world.try_start(new, IdReuse::Allow, IdConflict::Fail).unwrap();
    world.load(run);
    world.next(run);
    world.step(run, "s").unwrap();
    world.advance(60);
    for round in 1..=2 {
        let next = reset(&mut world, "a", before(Border::Step("s"))).unwrap();
        assert_eq!(world.shards[0].next_due_ms(), Some(world.now_ms + 100), "round {round}");
        replay(&mut world, next);
        world.step(next, "s").unwrap();
        world.rests(next);
        world.advance(10);
    }
    world.advance(90);
    assert_eq!(world.status(world.find("a")), Some(Status::TimedOut));
}

#[test]
fn what_cannot_be_is_refused_and_leaves_no_record() {
    let mut world = World::new(1);
    let run = two_steps(&mut world);
    let records = world.log.len();
    let refused = |world: &mut World, border, text: &str| {
        let why = refusal(reset(world, "a", before(border)));
        assert!(why.contains(text), "{why}");
        let why = refusal(fork(world, "a", "b", before(border)));
        assert!(why.contains(text), "{why}");
        assert_eq!(world.log.len(), records);
    };
    refused(&mut world, Border::Step("none"), "has no step \"none\"");
    refused(&mut world, Border::Operation(0), "has no operation 0 (the newest is 2)");
    refused(&mut world, Border::Operation(3), "continueAsNew");
    assert!(matches!(reset(&mut world, "nobody", before(Border::End)), Err(Refusal::NotFound(_))));
    assert!(matches!(fork(&mut world, "a", "", before(Border::Step("two"))), Err(Refusal::BadInput(_))));
    let long = "x".repeat(257);
    let actor = Branch { actor: Some(&long), ..before(Border::Step("two")) };
    assert!(matches!(reset(&mut world, "a", actor), Err(Refusal::BadInput(_))));
    world.limit(Limits { payload_bytes_max: 100, ..Limits::default() });
    refused(&mut world, Border::Step("two"), "the limit is 100 bytes");
    world.limit(Limits::default());
    world.terminate("a").unwrap();
    let no = world.shards[0].view(run.1).no;
    world.started("a");
    let target = Target { id: "a", run: Some(no) };
    let stale = world.on(0, |shard, work| shard.reset(work, target, &before(Border::Step("two"))));
    assert!(refusal(stale).contains("is not its latest one"));
}

#[test]
fn a_run_whose_journal_is_not_kept_cannot_be_copied() {
    let mut world = World::new(1);
    two_steps(&mut world);
    world.terminate("a").unwrap();
    let big = "x".repeat(2 << 20);
    for id in ["b", "c", "d"] {
        let (new, reuse) = (new_run(id, &big), IdReuse::Allow);
        let (other, _) = world.try_start(new, reuse, IdConflict::Fail).unwrap();
        world.load(other);
        world.next(other);
        world.finish(other, Status::Completed, "").unwrap();
    }
    for result in
        [reset(&mut world, "a", before(Border::Operation(1))), fork(&mut world, "a", "e", before(Border::Step("two")))]
    {
        assert!(refusal(result).contains("history is not kept any more"));
    }
}

#[test]
fn entries_that_nobody_wrote_are_refused() {
    let mut world = World::new(1);
    two_steps(&mut world);
    reset(&mut world, "a", before(Border::Step("two"))).unwrap();
    let (_, bytes) = world.log.last().unwrap().clone();
    let Ok(Record::Reset { run, time_ms, next, reason, actor, entries }) = Record::decode(&bytes) else { panic!() };
    let restored = |entries: &[u8], next| {
        let mut shard = world.restored_from(world.log.len() - 1).remove(0);
        let mut bytes = Vec::new();
        Record::Reset { run, time_ms, next, reason, actor, entries }.encode(&mut bytes);
        shard.restore(Lsn(world.log.len() as u64), &bytes)
    };
    assert_eq!(restored(entries, next), Ok(()));
    assert!(restored(b"", next).is_err() && restored(&entries[..entries.len() - 1], next).is_err());
    assert!(restored(entries, RunNo(9)).is_err());
    let twice: Vec<u8> = entries.iter().chain(entries).copied().collect();
    assert!(restored(&twice, next).is_err(), "a start comes once, and first");
    for at in 0..entries.len() {
        let mut damaged = entries.to_vec();
        damaged[at] ^= 1;
        let _ = restored(&damaged, next);
    }
}

#[test]
fn a_reset_goes_on_in_the_slot_of_an_enqueued_run_and_has_its_time_and_a_fork_has_none() {
    let mut world = World::new(1);
    let run = world.enqueue("a", Some(1_000));
    world.advance(100);
    world.say(0, Body::Activate { run: RunNo(1) });
    world.load(run);
    assert_eq!(world.next(run), Some((DeliveryKind::Start, 0)));
    world.step(run, "one").unwrap();
    world.rests(run);
    assert!(world.complete(run, 1, 1, "1"));
    world.advance(10);
    let forked = fork(&mut world, "a", "b", before(Border::Operation(1))).unwrap();
    let next = reset(&mut world, "a", before(Border::Operation(1))).unwrap();
    for _ in 0..2 {
        for of in [next, forked] {
            let of = if of == next { world.find("a") } else { world.find("b") };
            replay(&mut world, of);
            assert_eq!(world.shards[0].turn_ms(of.1), T0 + 100, "the first turn has the time that it had");
        }
        world.reopen(true);
    }
    assert_eq!(world.to_scheduler.len(), 1, "it is not over");
    world.terminate("b").unwrap();
    assert_eq!(world.to_scheduler.len(), 1, "nobody has let it in");
    world.advance(1_000);
    assert_eq!(world.status(world.find("a")), Some(Status::TimedOut), "as much time as it had, from the reset on");
    let over = &world.to_scheduler.last().expect("the slot is free").body;
    let caller = Caller { shard: ShardId(0), run: RunNo(1), seq: Seq(0) };
    assert_eq!(**over, Body::RunOver { caller, outcome: Outcome::Dead });
}
