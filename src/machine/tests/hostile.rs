//! Exported runs come from anywhere: whatever a file says that was let through, the run that it makes may not fit its
//! code, and nothing worse.

use super::world::*;
use crate::machine::*;
use crate::record::*;
use proptest::prelude::*;

const RUN: RunNo = RunNo(9);

fn seq() -> impl Strategy<Value = Seq> {
    // The highest one makes a replay take 64 MiB: now and then will do.
    prop_oneof![200 => (1u32..5).prop_map(Seq), 1 => Just(Seq(1 << 24))]
}

fn time() -> impl Strategy<Value = i64> {
    prop_oneof![0i64..5_000_000, any::<i64>()]
}

/// Records that a journal may have, in any order.
fn record() -> impl Strategy<Value = Record<'static>> {
    let origin = Origin { from: ShardId(3), number: u64::MAX };
    let caller = Caller { shard: ShardId(4), run: RunNo(1), seq: Seq(0) };
    (0u8..25, seq(), time(), any::<u32>(), any::<bool>()).prop_map(move |(kind, seq, time_ms, number, flag)| {
        let (run, name, payload) = (RUN, if flag { "a" } else { "b" }, &b"1"[..]);
        let (due_ms, actor) = (flag.then_some(time_ms), flag.then_some("ann"));
        match kind {
            0 => Record::StepDone { run, seq, name, attempt: number, time_ms, is_failure: flag, payload },
            1 => {
                let retry = if flag { Retry::At(time_ms) } else { Retry::Paused };
                Record::StepFailed { run, seq, name, attempt: number, time_ms, retry, failure: payload }
            }
            2 => Record::StepStarted { run, seq, name, attempt: number, time_ms },
            3 => Record::Heartbeat { run, seq, attempt: number, time_ms, details: payload },
            4 => Record::TimerSet { run, seq, due_ms: time_ms, is_limit: flag },
            5 => Record::TimerFired { run, seq, time_ms, actor },
            6 => Record::WaitSet { run, seq, name, due_ms },
            7 => Record::ConditionSet { run, seq, due_ms },
            8 => Record::Signal { run, time_ms, name, payload, dedupe: actor, actor, origin: None },
            9 => Record::ChildSet { run, seq, child: child(name) },
            10 => Record::SendSet { run, seq, id: name, target: None, what: Sending::Signal(name, payload) },
            11 => Record::SendSet { run, seq, id: name, target: None, what: Sending::CancelChild(seq) },
            12 => Record::SendSet { run, seq, id: name, target: Some(run), what: Sending::Watch },
            13 => {
                let status = Status::from_code((number % 8) as u8 + 1).unwrap_or(Status::Failed);
                Record::ChildDone { run, seq, time_ms, status, payload, origin }
            }
            14 => Record::Cancel { run, time_ms, reason: name, actor, origin: None },
            15 => Record::Resumed { run, time_ms, actor },
            16 => Record::Watched { run, caller, origin },
            17 => Record::Update { run, number, time_ms, name, id: name, payload, actor },
            18 => Record::Update { run, number: number % 3, time_ms, name, id: name, payload, actor },
            19 => Record::UpdateDone { run, number: number % 3, time_ms, is_failure: flag, payload },
            20 => Record::Patched { run, id: name },
            21 => Record::Paused { run, time_ms, actor },
            22 => Record::TaskSet { run, seq, kind: name, role: TaskRole::Awaited, order: payload },
            23 => Record::Activated { run, time_ms, origin },
            24 => Record::Attributes { run, seq: flag.then_some(seq), time_ms, set: b"\x01a\x04" },
            _ => Record::Done { run, time_ms, status: Status::Failed, payload, actor, origin: None },
        }
    })
}

/// What the code of the run does in its turns.
#[derive(Clone, Copy, Debug)]
enum Does {
    Step(bool),
    Sleep,
    Wait(bool),
    Condition,
    Child(bool),
    Watch,
    Patched,
    Answer(u32),
    Withdraw(u32),
    Nothing,
    End,
}

fn does() -> impl Strategy<Value = Does> {
    prop_oneof![
        any::<bool>().prop_map(Does::Step),
        Just(Does::Sleep),
        any::<bool>().prop_map(Does::Wait),
        Just(Does::Condition),
        any::<bool>().prop_map(Does::Child),
        Just(Does::Watch),
        Just(Does::Patched),
        (0u32..3).prop_map(Does::Answer),
        (1u32..5).prop_map(Does::Withdraw),
        Just(Does::Nothing),
        Just(Does::End),
    ]
}

fn act(world: &mut World, run: R, does: Does) {
    let name = |flag| if flag { "a" } else { "b" };
    // Refused or not: it is the next delivery that shows what came of it.
    let _ = match does {
        Does::Step(flag) => world.step(run, name(flag)).map(drop),
        Does::Sleep => world.sleep(run, 10),
        Does::Wait(flag) => world.wait(run, name(flag), Some(5)).map(drop),
        Does::Condition => world.condition(run, None),
        Does::Child(flag) => world.child(run, child(name(flag))),
        Does::Watch => world.send(run, "a", Sending::Watch),
        Does::Patched => world.on(0, |shard, work| shard.patched(work, REVIVED, "a")).map(drop),
        Does::Answer(number) => world.on(0, |shard, work| shard.answer_update(work, REVIVED, number, false, b"1")),
        Does::Withdraw(seq) => world.on(0, |shard, _| shard.withdraw(REVIVED, Seq(seq))),
        Does::Nothing => Ok(()),
        Does::End => world.finish(run, Status::Completed, "1"),
    };
}

proptest! {
    #[test]
    fn a_hostile_journal_never_panics_whatever_the_code_asks_for(
        records in proptest::collection::vec(record(), 0..14),
        program in proptest::collection::vec(does(), 0..20),
    ) {
        let mut writer = JournalFileWriter::default();
        let start = Record::Start { run: RUN, time_ms: 5, new: new_run("x", "1"), origin: None };
        writer.push(&Numbered { lsn: Lsn(1), record: start });
        for record in &records {
            writer.push(&Numbered { lsn: Lsn(1), record: *record });
        }
        let bytes = writer.finish(ShardId(0), 5, false);
        // One with something behind its end, or another run's record, goes no further than this.
        if let Ok(file) = JournalFile::decode(&bytes) {
            let mut world = World::new(1);
            // What the code asks for comes behind the records of the file.
            world.log.push((ShardId(0), Vec::new()));
            world.is_mail_held = true;
            world.shards[0] =
                Shard::of_journal(file.shard, file.shards, Limits::default(), &mut file.entries()).unwrap();
            let run = R(0, REVIVED);
            prop_assert_eq!(world.load(run), Some(true));
            let mut program = program.into_iter();
            while world.next(run).is_some() {
                for does in program.by_ref().take(3) {
                    act(&mut world, run, does);
                }
            }
            let _ = world.shards[0].explain(REVIVED);
            for seq in [1, 1 << 24] {
                let _ = world.shards[0].first_of(REVIVED, Seq(seq));
            }
        }
    }
}
