//! What is read back from the log is what was there: LAW-3.

use super::journal::nearly_records;
use super::world::*;
use crate::machine::*;
use crate::record::*;
use proptest::prelude::*;

/// Everything of a shard that does not depend on whether its code is in memory.
pub(super) fn image(shard: &Shard) -> String {
    let runs: Vec<String> = shard
        .views()
        .map(|(run, view)| {
            // A cancel takes back paused steps when the code takes it, and not by the records: which of them are shielded
            // is the code's to say. So a run that was cancelled may be shown as paused until its code is here again; the
            // pause of the run itself is by the records alone.
            let is_cancelled = shard.history(run).any(|entry| matches!(entry.record, Record::Cancel { .. }));
            let is_paused = if is_cancelled { shard.is_held(run) } else { view.marks.is_paused };
            let view = RunView { marks: Marks { is_stuck: false, is_paused, ..view.marks }, ..view };
            let history: Vec<String> = shard.history(run).map(|entry| format!("{entry:?}")).collect();
            let target = shard.run(run);
            let next = target.end().and_then(|end| end.continued);
            // How many signals nobody has taken is not here: live code takes one without a record, and after a restart it is
            // counted as taken once its code is here again.
            let open = target.open().map(|open| {
                let ticket = (&open.ticket, open.is_queued);
                (open.is_held, &open.patches, &open.dedupe, &open.watchers, &open.orders, ticket)
            });
            let calls = target.open().map(|_| (shard.object_state(run), &target.calls));
            let (outcome, updates) = (shard.outcome(run), (&target.updates, calls));
            format!("{view:?} {outcome:?} {history:?} {next:?} {open:?} {updates:?} {:?}", target.deadline_ms)
        })
        .collect();
    // Where a run is in memory is nobody's business.
    let ids: Vec<_> = shard.latest_runs().map(|(id, run)| (id, shard.view(run).no)).collect();
    let outbox: Vec<Message> = shard.unacknowledged().collect();
    let applied: Vec<u64> =
        (0..8).map(ShardId).chain([ShardId::SCHEDULER]).map(|from| shard.applied_from(from)).collect();
    format!("{runs:?} {ids:?} {outbox:?} {applied:?} {:?} {} {:?}", shard.last(), shard.open_count(), shard.index)
}

const OBJECTS: [&str; 2] = ["object:cart:a", "object:cart:b"];

/// The code of an object is handed what is there, asks for a step, answers, goes on as a new run.
fn answer_next(world: &mut World, id: &str, argument: u8) {
    let home = world.home(id);
    let Ok(run) = world.shards[home].find(Target { id, run: None }) else { return };
    let run = R(home, run);
    if world.shards[home].explain(run.1) == Explanation::Absent {
        world.load(run);
    }
    let Some((DeliveryKind::CallArrived, number)) = world.next(run) else { return };
    let _ = world.step(run, "in a call");
    let state = [argument];
    let state = (!argument.is_multiple_of(3)).then_some(&state[..]);
    let answer = CallAnswer {
        number,
        is_failure: argument.is_multiple_of(5),
        payload: b"p",
        state,
        is_alone: !argument.is_multiple_of(7),
    };
    if world.answer(run, answer).is_ok() && argument.is_multiple_of(4) {
        let next = NextRun { version: 1, key_root: [9; 16], timeout_ms: None, input: b"s" };
        let _ = world.on(home, |shard, work| shard.continue_as_new(work, run.1, next));
    }
}

/// A script over all verbs: each number is one thing that is done.
pub(super) fn play(world: &mut World, script: &[(u8, u8)]) {
    let ids = ["a", "b", "c", "d", "e"];
    for (what, argument) in script {
        let id = ids[usize::from(argument % 5)];
        let other = ids[usize::from(argument / 5 % 5)];
        let known = world.shards[world.home(id)].find(Target { id, run: None }).ok();
        let run = known.map(|run| R(world.home(id), run));
        match (what % 32, run) {
            (29, _) => drop(world.call(OBJECTS[usize::from(argument % 2)], other)),
            (30, _) => answer_next(world, OBJECTS[usize::from(argument % 2)], *argument),
            (0, _) => {
                let policies = (IdReuse::from_code(argument % 3), IdConflict::from_code(argument % 4));
                let (Some(reuse), Some(conflict)) = policies else { continue };
                let _ = world.try_start(new_run(id, other), reuse, conflict);
            }
            (1, Some(run)) => drop(world.signal_once(id, other, other, Some(other)).map(|()| run)),
            (2, Some(_)) => drop(world.cancel(id)),
            (3, Some(_)) => drop(world.terminate(id)),
            (4, Some(_)) => drop(world.resume(id)),
            (26, _) => drop(world.enqueue(id, argument.checked_sub(60).map(i64::from))),
            (27, Some(run)) => {
                let no = world.shards[run.0].view(run.1).no;
                let body = match argument % 3 {
                    0 => Body::Admitted { run: no },
                    1 => Body::Activate { run: no },
                    _ => Body::NeverLetIn { run: no, status: Status::Expired, payload: Box::default() },
                };
                world.say(run.0, body);
            }
            (5, _) => world.advance(i64::from(*argument)),
            (21, _) => {
                let policies = (IdReuse::from_code(argument % 3), IdConflict::from_code(argument % 4));
                let (Some(reuse), Some(conflict)) = policies else { continue };
                let signal = NewSignal { name: other, payload: b"s", dedupe: Some(other) };
                let attributes = if argument % 2 == 0 { &super::search::number(other, 7.0)[..] } else { b"" };
                let command = StartCommand { new: new_run(id, other), attributes, reuse, conflict };
                let _ = world.on(world.home(id), |shard, work| shard.start_signalled(work, command, signal));
            }
            (_, None) => {}
            (22, Some(run)) => {
                // Few scripts have the code of a run here, and in a turn, by chance.
                if world.shards[run.0].explain(run.1) == Explanation::Absent {
                    world.load(run);
                }
                let _ = world.next(run);
                let roles = [TaskRole::Awaited, TaskRole::AwaitedLoosely, TaskRole::Detached];
                let _ = world.task(run, other, roles[usize::from(argument % 3)]);
            }
            (24, Some(_)) => {
                let border = super::branching::before(Border::Operation(u32::from(argument % 4) + 1));
                let _ = super::branching::reset(world, id, border);
            }
            (25, Some(_)) => {
                let border = super::branching::before(Border::Operation(u32::from(argument % 4) + 1));
                let _ = super::branching::fork(world, id, other, border);
            }
            (28, Some(run)) => drop(world.attributes(run, &super::search::number(other, f64::from(argument % 3)))),
            (23, Some(run)) => world.task_ended(run, u32::from(argument % 8) + 1),
            (6, Some(run)) if world.shards[run.0].explain(run.1) == Explanation::Absent => {
                world.load(run);
            }
            (6, Some(run)) => {
                let _ = world.next(run);
            }
            (31, Some(run)) => {
                let what = CallSpec { kind: "cart", key_root: [3; 16], name: "add", payload: b"" };
                let _ = world.send(run, OBJECTS[usize::from(argument % 2)], Sending::Call(what));
            }
            (7, Some(run)) => {
                let mode = StepMode { is_at_most_once: argument % 3 == 0, is_read_only: false };
                let _ = world.step_as(run, other, mode);
            }
            (8, Some(run)) => drop(world.sleep(run, i64::from(*argument))),
            (9, Some(run)) => drop(world.wait(run, other, argument.checked_sub(100).map(i64::from))),
            (10, Some(run)) => {
                let _ = world.child(run, ChildSpec { conflict: IdConflict::TerminateExisting, ..child(other) });
            }
            (11, Some(run)) => drop(world.send(
                run,
                other,
                [
                    Sending::Watch,
                    Sending::Cancel("c"),
                    Sending::Signal(id, b""),
                    Sending::CancelTask(TaskNo(7), other),
                    Sending::WatchTask(TaskNo(8)),
                ][usize::from(argument % 5)],
            )),
            (12, Some(run)) => {
                for seq in 1..9 {
                    world.complete(run, seq, 1, other);
                }
            }
            (13, Some(run)) => {
                for seq in 1..9 {
                    world.retry(run, seq, 1, argument.checked_sub(60).map(i64::from));
                }
            }
            (14, Some(run)) => drop(world.finish(run, Status::Completed, other)),
            (16, Some(run)) => drop(super::continuing::go_on(world, run, other)),
            (17, Some(run)) => {
                drop(world.on(run.0, |shard, work| shard.pause(work, Target { id, run: None }, Some(other))))
            }
            (18, Some(run)) => drop(world.on(run.0, |shard, work| shard.patched(work, run.1, other))),
            (19, Some(run)) => {
                let update = NewUpdate { name: other, id: other, payload: b"u", actor: None };
                let is_new =
                    world.shards[run.0].find_update(Target { id, run: None }, other) == Ok(KnownUpdate::New(run.1));
                if is_new {
                    world.on(run.0, |shard, work| shard.accept_update(work, run.1, update));
                }
            }
            (20, Some(run)) => drop(world.on(run.0, |shard, work| {
                shard.answer_update(work, run.1, u32::from(*argument % 4), *argument > 200, b"answer")
            })),
            (_, Some(run)) => drop(world.condition(run, Some(i64::from(*argument)))),
        }
        for shard in &world.shards {
            let orphans: Vec<_> = shard.orphans().into_iter().filter(|(_, seq)| *seq != Seq(0)).collect();
            assert_eq!(orphans, [], "LAW-8 after {what} {argument}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_prefix_of_the_records_gives_the_state_that_was_there_law_3(
        script in proptest::collection::vec((any::<u8>(), any::<u8>()), 1..120),
        shards in 1u16..4,
    ) {
        let mut world = World::new(shards);
        world.is_mail_held = false;
        let mut images = vec![(0, world.shards.iter().map(image).collect::<Vec<_>>())];
        for one in &script {
            play(&mut world, std::slice::from_ref(one));
            images.push((world.log.len(), world.shards.iter().map(image).collect()));
        }
        for (count, live) in images {
            let restored: Vec<String> = world.restored_from(count).iter().map(image).collect();
            prop_assert_eq!(&restored, &live, "after {} records", count);
        }
    }

    #[test]
    fn arbitrary_records_never_panic_law_10(records in proptest::collection::vec(nearly_records(), 1..40)) {
        let mut shard = Shard::new(ShardId(0), 1);
        let start = {
            let mut bytes = Vec::new();
            Record::Start { run: RunNo(1), time_ms: 0, new: new_run("a", ""), origin: None }.encode(&mut bytes);
            bytes
        };
        shard.restore(Lsn(1), &start).unwrap();
        for (record, lsn) in records.iter().zip(2..) {
            let _ = shard.restore(Lsn(lsn), record);
        }
        let mut effects = Vec::new();
        shard.restored(false, &mut effects);
        let _ = image(&shard);
    }
}

/// What the property above leaves to the code: it comes to the same once the code is here again.
#[test]
fn a_step_that_is_paused_behind_a_cancel_is_taken_back_by_the_code_again_after_a_restart_law_7() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "pay").unwrap();
    world.cancel("a").unwrap();
    assert!(world.retry(run, 1, 1, None));
    let is_paused = |world: &World| world.shards[0].views().next().unwrap().1.marks.is_paused;
    assert!(is_paused(&world));
    assert_eq!(world.next(run), Some((DeliveryKind::Cancelled, 0)));
    assert!(!is_paused(&world));
    world.reopen(false);
    assert!(is_paused(&world), "only the code knows that nothing shields the step");
    world.load(run);
    assert_eq!(world.next(run), Some((DeliveryKind::Start, 0)));
    world.step(run, "pay").unwrap();
    assert_eq!(world.next(run), Some((DeliveryKind::Cancelled, 0)));
    assert_eq!(world.next(run), None);
    assert!(!is_paused(&world));
}

/// Records that are well formed one by one, and nonsense together.
#[test]
fn records_that_contradict_one_another_are_refused_law_10() {
    let bytes = |record: Record<'_>| {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        bytes
    };
    let start = |run| bytes(Record::Start { run: RunNo(run), time_ms: 0, new: new_run("a", ""), origin: None });
    let done = bytes(Record::Done {
        run: RunNo(1),
        time_ms: 0,
        status: Status::Completed,
        payload: b"",
        actor: None,
        origin: None,
    });
    let caller = Caller { shard: ShardId(7), run: RunNo(1), seq: Seq(1) };
    let watched = bytes(Record::Watched { run: RunNo(1), caller, origin: Origin { from: ShardId(0), number: 1 } });
    let received = bytes(Record::Received { origin: Origin { from: ShardId(9), number: 1 } });
    let mut shard = Shard::new(ShardId(0), 2);
    assert_eq!(shard.restore(Lsn(1), &done), Err(RestoreError::UnknownRun(RunNo(1))));
    assert_eq!(shard.restore(Lsn(1), &start(2)), Err(RestoreError::Number(RunNo(2))));
    assert_eq!(shard.restore(Lsn(1), &start(1)), Ok(()));
    assert_eq!(shard.restore(Lsn(2), &start(1)), Err(RestoreError::Number(RunNo(1))));
    assert_eq!(shard.restore(Lsn(2), &watched), Err(RestoreError::UnknownShard(ShardId(7))));
    assert_eq!(shard.restore(Lsn(2), &received), Err(RestoreError::UnknownShard(ShardId(9))));
    assert_eq!(shard.restore(Lsn(2), &done), Ok(()));
    assert_eq!(shard.restore(Lsn(3), &done), Err(RestoreError::EndedTwice(RunNo(1))));
    assert!(matches!(shard.restore(Lsn(3), b"\xff"), Err(RestoreError::Decode(_))));
}

#[test]
fn a_restored_run_is_asked_for_once_though_a_message_started_it_meanwhile() {
    let mut world = World::new(1);
    let parent = world.started("p");
    world.is_mail_held = true;
    world.child(parent, child("kid")).unwrap();
    world.is_mail_held = false;
    world.reopen(false);
    let kid = world.find("kid");
    assert_eq!(world.load(kid), Some(false));
    assert_eq!(world.load(kid), None);
}
