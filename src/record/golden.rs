//! The bytes of every record, as they are on disk: a change here is a change of the format.

use super::*;
use proptest::prelude::*;

fn samples() -> Vec<(&'static str, Record<'static>)> {
    let (run, seq, time_ms) = (RunNo(7), Seq(3), 1_700_000_000_000);
    let origin = Origin { from: ShardId(2), number: 9 };
    let caller = Caller { shard: ShardId(1), run: RunNo(4), seq: Seq(2) };
    let new = NewRun {
        id: "order-1",
        kind: "checkout",
        version: 2,
        key_root: [5; 16],
        deadline_ms: Some(time_ms + 1),
        parent: Some((caller, ParentClose::Cancel)),
        input: b"{}",
        actor: Some("ann"),
    };
    let child = ChildSpec {
        id: "c",
        kind: "pay",
        version: 1,
        key_root: [6; 16],
        timeout_ms: None,
        parent_close: ParentClose::Abandon,
        reuse: IdReuse::Reject,
        conflict: IdConflict::UseExisting,
        input: b"1",
    };
    vec![
        (
            "010780a0abfef96207 6f726465722d31 08636865636b6f7574 02 05050505050505050505050505050505 \
             0182a0abfef962 0101040201 027b7d 0103616e6e 010209",
            Record::Start { run, time_ms, new, origin: Some(origin) },
        ),
        (
            "02070304706c6179 02 80a0abfef962 00 0474727565",
            Record::StepDone { run, seq, name: "play", attempt: 2, time_ms, is_failure: false, payload: b"true" },
        ),
        (
            "03070304706c6179 01 80a0abfef962 0184a0abfef962 0165",
            Record::StepFailed {
                run,
                seq,
                name: "play",
                attempt: 1,
                time_ms,
                retry: Retry::At(time_ms + 2),
                failure: b"e",
            },
        ),
        ("04070304706c6179 01 80a0abfef962", Record::StepStarted { run, seq, name: "play", attempt: 1, time_ms }),
        ("050703 01 80a0abfef962 0135", Record::Heartbeat { run, seq, attempt: 1, time_ms, details: b"5" }),
        ("060703 80a0abfef962", Record::TimerSet { run, seq, due_ms: time_ms, is_limit: false }),
        ("200703 80a0abfef962", Record::TimerSet { run, seq, due_ms: time_ms, is_limit: true }),
        ("070703 80a0abfef962", Record::TimerFired { run, seq, time_ms, actor: None }),
        ("1f0703 80a0abfef962 03616e6e", Record::TimerFired { run, seq, time_ms, actor: Some("ann") }),
        ("080703 02676f 00", Record::WaitSet { run, seq, name: "go", due_ms: None }),
        ("090703 0180a0abfef962", Record::ConditionSet { run, seq, due_ms: Some(time_ms) }),
        (
            "0a07 80a0abfef962 02676f 0131 010164 00 00",
            Record::Signal { run, time_ms, name: "go", payload: b"1", dedupe: Some("d"), actor: None, origin: None },
        ),
        (
            "0b0703 0163 03706179 01 06060606060606060606060606060606 00 02 02 02 0131",
            Record::ChildSet { run, seq, child },
        ),
        (
            "0c0703 0163 0108 00 02676f 0132",
            Record::SendSet { run, seq, id: "c", target: Some(RunNo(8)), what: Sending::Signal("go", b"2") },
        ),
        ("0c0703 0163 00 01 0177", Record::SendSet { run, seq, id: "c", target: None, what: Sending::Cancel("w") }),
        ("0c0703 0163 00 02", Record::SendSet { run, seq, id: "c", target: None, what: Sending::Watch }),
        (
            "0c0703 0163 00 0302",
            Record::SendSet { run, seq, id: "c", target: None, what: Sending::CancelChild(Seq(2)) },
        ),
        (
            "0d0703 80a0abfef962 01 0133 0209",
            Record::ChildDone { run, seq, time_ms, status: Status::Completed, payload: b"3", origin },
        ),
        (
            "0e07 80a0abfef962 0177 00 010209",
            Record::Cancel { run, time_ms, reason: "w", actor: None, origin: Some(origin) },
        ),
        ("0f07 80a0abfef962 0103616e6e", Record::Resumed { run, time_ms, actor: Some("ann") }),
        (
            "1007 80a0abfef962 05 00 00 00",
            Record::Done { run, time_ms, status: Status::TimedOut, payload: b"", actor: None, origin: None },
        ),
        ("1107 010402 0209", Record::Watched { run, caller, origin }),
        ("12 010402 07 0178 0209", Record::Answered { caller, status: Status::Refused, payload: b"x", origin }),
        ("13 0209", Record::Received { origin }),
        (
            "140702 80a0abfef962 03736574 0175 0131 0103616e6e",
            Record::Update { run, number: 2, time_ms, name: "set", id: "u", payload: b"1", actor: Some("ann") },
        ),
        (
            "150702 80a0abfef962 01 0165",
            Record::UpdateDone { run, number: 2, time_ms, is_failure: true, payload: b"e" },
        ),
        (
            "160780a0abfef96207 6f726465722d31 08636865636b6f7574 02 05050505050505050505050505050505 \
             0182a0abfef962 0101040201 027b7d 0103616e6e 02676f 0132 010164",
            Record::SignalledStart {
                run,
                time_ms,
                new,
                signal: NewSignal { name: "go", payload: b"2", dedupe: Some("d") },
            },
        ),
        (
            "170780a0abfef962 0807 6f726465722d31 08636865636b6f7574 02 05050505050505050505050505050505 \
             0182a0abfef962 0101040201 027b7d 0103616e6e 020302",
            Record::Continued { run, time_ms, next: RunNo(8), new, carried: &[3, 2] },
        ),
        ("1807 0176", Record::Patched { run, id: "v" }),
        ("1907 80a0abfef962 00", Record::Paused { run, time_ms, actor: None }),
        (
            "240703 80a0abfef962 0b 0161020000000000001c40",
            Record::Attributes { run, seq: Some(seq), time_ms, set: b"\x01a\x02\0\0\0\0\0\0\x1c@" },
        ),
        ("240700 80a0abfef962 03 016100", Record::Attributes { run, seq: None, time_ms, set: b"\x01a\0" }),
        (
            "250780a0abfef96207 6f726465722d31 08636865636b6f7574 02 05050505050505050505050505050505 \
             0182a0abfef962 0101040201 027b7d 0103616e6e 03 016104 01 02676f 0132 00",
            Record::AttributedStart {
                run,
                time_ms,
                new,
                set: b"\x01a\x04",
                signal: Some(NewSignal { name: "go", payload: b"2", dedupe: None }),
            },
        ),
        ("1e0703 016b 00 0161", Record::TaskSet { run, seq, kind: "k", role: TaskRole::Awaited, order: b"a" }),
        (
            "1a0780a0abfef96207 6f726465722d31 08636865636b6f7574 02 05050505050505050505050505050505 \
             0182a0abfef962 0101040201 027b7d 0103616e6e 010a 0161",
            Record::Queued { run, time_ms, new, timeout_ms: Some(5), order: b"a", task: None },
        ),
        (
            "280780a0abfef96207 6f726465722d31 08636865636b6f7574 02 05050505050505050505050505050505 \
             0182a0abfef962 0101040201 027b7d 0103616e6e 010a 0161 03 0209",
            Record::Queued {
                run,
                time_ms,
                new,
                timeout_ms: Some(5),
                order: b"a",
                task: Some((crate::record::TaskNo(3), origin)),
            },
        ),
        ("1b07 80a0abfef962 0209", Record::Activated { run, time_ms, origin }),
        (
            "0c0703 016b 00 0402",
            Record::SendSet { run, seq, id: "k", target: None, what: Sending::CancelOrder(Seq(2)) },
        ),
        (
            "0c0703 03742d32 00 05020177",
            Record::SendSet { run, seq, id: "t-2", target: None, what: Sending::CancelTask(TaskNo(2), "w") },
        ),
        (
            "0c0703 03742d32 00 0602",
            Record::SendSet { run, seq, id: "t-2", target: None, what: Sending::WatchTask(TaskNo(2)) },
        ),
        ("2107 03130209", Record::Forked { run, entries: &[0x13, 2, 9] }),
        (
            "2207 80a0abfef962 08 0177 0103616e6e 0161",
            Record::Reset { run, time_ms, next: RunNo(8), reason: "w", actor: Some("ann"), entries: b"a" },
        ),
        (
            "230703 80a0abfef962 0163 03302d36 05050505050505050505050505050505 00",
            Record::Branched { run, time_ms, seq, id: "c", source: "0-6", key_root: [5; 16], actor: None },
        ),
        (
            "260702 80a0abfef962 03616464 00 0131 01010402 00 010209",
            Record::Called {
                run,
                number: 2,
                time_ms,
                name: "add",
                id: None,
                payload: b"1",
                caller: Some(caller),
                actor: None,
                origin: Some(origin),
            },
        ),
        (
            "260702 80a0abfef962 03616464 010175 0131 00 0103616e6e 00",
            Record::Called {
                run,
                number: 2,
                time_ms,
                name: "add",
                id: Some("u"),
                payload: b"1",
                caller: None,
                actor: Some("ann"),
                origin: None,
            },
        ),
        (
            "270702 80a0abfef962 0103 00 0133 01027b7d",
            Record::CallDone {
                run,
                number: 2,
                time_ms,
                seq: Some(seq),
                is_failure: false,
                payload: b"3",
                state: Some(b"{}"),
            },
        ),
        (
            "270702 80a0abfef962 00 01 0165 00",
            Record::CallDone { run, number: 2, time_ms, seq: None, is_failure: true, payload: b"e", state: None },
        ),
        (
            "0c0703 016b 00 07 016b 05050505050505050505050505050505 03616464 0131",
            Record::SendSet {
                run,
                seq,
                id: "k",
                target: None,
                what: Sending::Call(CallSpec { kind: "k", key_root: [5; 16], name: "add", payload: b"1" }),
            },
        ),
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_record_has_the_bytes_that_it_was_released_with() {
    for (golden, record) in samples() {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        assert_eq!(hex(&bytes), golden.replace(' ', ""), "{record:?}");
        assert_eq!(Record::decode(&bytes), Ok(record));
        for length in 0..bytes.len() {
            assert!(Record::decode(&bytes[..length]).is_err(), "{record:?} cut to {length}");
        }
    }
}

#[test]
fn a_record_is_little_longer_than_its_payload() {
    let (text, payload, long) = ("n".repeat(TEXT_BYTES_MAX), vec![0; 1_000], "r".repeat(1_000));
    let (run, seq, time_ms, attempt) = (RunNo(u64::MAX), Seq(u32::MAX), i64::MIN, u32::MAX);
    let origin = Origin { from: ShardId(u16::MAX), number: u64::MAX };
    let caller = Caller { shard: ShardId(u16::MAX), run, seq };
    let (id, kind, name, actor) = (text.as_str(), text.as_str(), text.as_str(), Some(text.as_str()));
    let payload = payload.as_slice();
    let new = NewRun {
        id,
        kind,
        version: u32::MAX,
        key_root: [0; 16],
        deadline_ms: Some(time_ms),
        parent: Some((caller, ParentClose::Cancel)),
        input: payload,
        actor,
    };
    let child = ChildSpec {
        id,
        kind,
        version: u32::MAX,
        key_root: [0; 16],
        timeout_ms: Some(time_ms),
        parent_close: ParentClose::Cancel,
        reuse: IdReuse::Allow,
        conflict: IdConflict::Fail,
        input: payload,
    };
    let status = Status::Failed;
    for record in [
        Record::Start { run, time_ms, new, origin: Some(origin) },
        Record::StepDone { run, seq, name, attempt, time_ms, is_failure: true, payload },
        Record::StepFailed { run, seq, name, attempt, time_ms, retry: Retry::At(time_ms), failure: payload },
        Record::Heartbeat { run, seq, attempt, time_ms, details: payload },
        Record::Signal { run, time_ms, name, payload, dedupe: actor, actor, origin: Some(origin) },
        Record::ChildSet { run, seq, child },
        Record::SendSet { run, seq, id, target: Some(run), what: Sending::Signal(name, payload) },
        Record::SendSet { run, seq, id, target: Some(run), what: Sending::Cancel(&long) },
        Record::ChildDone { run, seq, time_ms, status, payload, origin },
        Record::Cancel { run, time_ms, reason: &long, actor, origin: Some(origin) },
        Record::Done { run, time_ms, status, payload, actor, origin: Some(origin) },
        Record::Answered { caller, status, payload, origin },
        Record::Update { run, number: u32::MAX, time_ms, name, id, payload, actor },
        Record::UpdateDone { run, number: u32::MAX, time_ms, is_failure: true, payload },
        Record::Called {
            run,
            number: u32::MAX,
            time_ms,
            name,
            id: Some(id),
            payload,
            caller: Some(caller),
            actor,
            origin: Some(origin),
        },
        Record::CallDone {
            run,
            number: u32::MAX,
            time_ms,
            seq: Some(seq),
            is_failure: true,
            payload: b"",
            state: Some(payload),
        },
        Record::SendSet {
            run,
            seq,
            id,
            target: Some(run),
            what: Sending::Call(CallSpec { kind, key_root: [0; 16], name, payload }),
        },
        Record::SignalledStart { run, time_ms, new, signal: NewSignal { name, payload: b"", dedupe: actor } },
        Record::Continued { run, time_ms, next: run, new, carried: b"" },
        Record::Forked { run, entries: payload },
        Record::Reset { run, time_ms, next: run, reason: name, actor, entries: payload },
        Record::Branched { run, time_ms, seq, id, source: name, key_root: [0; 16], actor },
    ] {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        // Half of the room is for payloads that the engine makes where there is none of the host's.
        assert!(bytes.len() <= 1_000 + FIELDS_BYTES_MAX / 2, "{} bytes: {}", bytes.len(), record.label());
    }
    let record = Record::Signal { run, time_ms, name, payload, dedupe: None, actor, origin: None };
    let (mut bytes, mut again) = (Vec::new(), Vec::new());
    record.encode(&mut bytes);
    Record::Signal { run: RunNo(1), time_ms, name, payload, dedupe: None, actor, origin: None }.encode(&mut again);
    assert_eq!(renumbered(&bytes, RunNo(1)), again);
    let quotes = "\"".repeat(TEXT_BYTES_MAX);
    let message = format!("the result of step \"{quotes}\" takes {} bytes; the limit is {} bytes", u64::MAX, u64::MAX);
    let own = crate::record::encode_step_failure(&quotes, u32::MAX, &message);
    assert!(own.len() <= FIELDS_BYTES_MAX / 2, "{} bytes", own.len());
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_a_record_in_its_one_writing_or_none(
        kind in 0u8..40,
        rest in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        let mut bytes = vec![kind];
        bytes.extend(rest);
        if let Ok(record) = Record::decode(&bytes) {
            let mut again = Vec::new();
            record.encode(&mut again);
            prop_assert_eq!(again, bytes);
        }
    }

    #[test]
    fn a_damaged_record_never_panics(sample: usize, at in 0usize..64, byte: u8) {
        let mut bytes = Vec::new();
        let samples = samples();
        samples[sample % samples.len()].1.encode(&mut bytes);
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = Record::decode(&bytes);
    }
}
