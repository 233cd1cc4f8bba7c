//! Records and their bytes.

use crate::record::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// The fields of a record, owned, so that proptest can make them.
#[derive(Clone, Debug)]
struct Parts {
    kind: u8,
    run: u64,
    other: u64,
    seq: u32,
    attempt: u32,
    shard: u16,
    time_ms: i64,
    limit_ms: Option<i64>,
    is_set: bool,
    code: u8,
    texts: (String, String, Option<String>),
    bytes: Vec<u8>,
    root: [u8; 16],
}

fn parts() -> impl Strategy<Value = Parts> {
    let numbers = (1u8..=19, any::<u64>(), any::<u64>(), 1..=u32::MAX, any::<u32>(), any::<u16>());
    let times = (any::<i64>(), any::<Option<i64>>(), any::<bool>(), 0u8..12);
    let texts = ("\\PC{0,9}", "\\PC{0,9}", proptest::option::of("\\PC{0,9}"));
    (numbers, times, texts, vec(any::<u8>(), 0..40), any::<[u8; 16]>()).prop_map(
        |((kind, run, other, seq, attempt, shard), (time_ms, limit_ms, is_set, code), texts, bytes, root)| Parts {
            kind,
            run,
            other,
            seq,
            attempt,
            shard,
            time_ms,
            limit_ms,
            is_set,
            code,
            texts,
            bytes,
            root,
        },
    )
}

impl Parts {
    fn record(&self) -> Record<'_> {
        let (run, seq, attempt, time_ms) = (RunNo(self.run), Seq(self.seq), self.attempt, self.time_ms);
        let (name, id, actor) = (self.texts.0.as_str(), self.texts.1.as_str(), self.texts.2.as_deref());
        let payload = self.bytes.as_slice();
        let from = Origin { from: ShardId(self.shard), number: self.other };
        let origin = self.is_set.then_some(from);
        let caller = Caller { shard: ShardId(self.shard), run: RunNo(self.other), seq };
        let parent_close = ParentClose::from_code(self.code % 3).unwrap();
        let reuse = IdReuse::from_code(self.code % 3).unwrap();
        let conflict = IdConflict::from_code(self.code % 4).unwrap();
        let status = Status::from_code(self.code % 7 + 1).unwrap();
        let (version, key_root, due_ms) = (attempt, self.root, self.limit_ms);
        match self.kind {
            1 => {
                let parent = self.is_set.then_some((caller, parent_close));
                let new =
                    NewRun { id, kind: name, version, key_root, deadline_ms: due_ms, parent, input: payload, actor };
                Record::Start { run, time_ms, new, origin }
            }
            2 => Record::StepDone { run, seq, name, attempt, time_ms, is_failure: self.is_set, payload },
            3 => {
                let retry = due_ms.map_or(Retry::Paused, Retry::At);
                Record::StepFailed { run, seq, name, attempt, time_ms, retry, failure: payload }
            }
            4 => Record::StepStarted { run, seq, name, attempt, time_ms },
            5 => Record::Heartbeat { run, seq, attempt, time_ms, details: payload },
            6 => Record::TimerSet { run, seq, due_ms: time_ms, is_limit: self.is_set },
            7 => Record::TimerFired { run, seq, time_ms, actor },
            8 => Record::WaitSet { run, seq, name, due_ms },
            9 => Record::ConditionSet { run, seq, due_ms },
            10 => Record::Signal { run, time_ms, name, payload, dedupe: actor, actor, origin },
            11 => {
                let timeout_ms = due_ms;
                let child = ChildSpec {
                    id,
                    kind: name,
                    version,
                    key_root,
                    timeout_ms,
                    parent_close,
                    reuse,
                    conflict,
                    input: payload,
                };
                Record::ChildSet { run, seq, child }
            }
            12 => {
                let what = match self.code % 3 {
                    0 => Sending::Signal(name, payload),
                    1 => Sending::Cancel(name),
                    _ => Sending::Watch,
                };
                Record::SendSet { run, seq, id, target: self.is_set.then_some(RunNo(self.other)), what }
            }
            13 => Record::ChildDone { run, seq, time_ms, status, payload, origin: from },
            14 => Record::Cancel { run, time_ms, reason: name, actor, origin },
            15 => Record::Resumed { run, time_ms, actor },
            16 => Record::Done { run, time_ms, status, payload, actor, origin },
            17 => Record::Watched { run, caller, origin: from },
            18 => Record::Answered { caller, status, payload, origin: from },
            _ => Record::Received { origin: from },
        }
    }
}

fn encoded(record: &Record<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    bytes
}

/// Bytes that are records, damaged a little, and bytes that are anything.
pub(super) fn nearly_records() -> impl Strategy<Value = Vec<u8>> {
    let damaged = (parts(), any::<prop::sample::Index>(), any::<u8>(), 0u8..4).prop_map(|(parts, at, byte, how)| {
        let mut bytes = encoded(&parts.record());
        let at = at.index(bytes.len());
        match how {
            0 => bytes[at] = byte,
            1 => bytes.truncate(at),
            2 => bytes.insert(at, byte),
            _ => {}
        }
        bytes
    });
    prop_oneof![3 => damaged, 1 => vec(any::<u8>(), 0..60)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_record_is_read_as_it_was_written(parts in parts()) {
        let record = parts.record();
        let bytes = encoded(&record);
        prop_assert_eq!(Record::decode(&bytes), Ok(record));
    }

    #[test]
    fn a_record_cut_short_or_with_something_behind_it_is_none(parts in parts()) {
        let bytes = encoded(&parts.record());
        for length in 0..bytes.len() {
            prop_assert!(Record::decode(&bytes[..length]).is_err());
        }
        prop_assert!(Record::decode(&[bytes, vec![0]].concat()).is_err());
    }

    #[test]
    fn bytes_that_are_a_record_are_its_only_bytes(bytes in nearly_records()) {
        if let Ok(record) = Record::decode(&bytes) {
            let again = encoded(&record);
            prop_assert_eq!(Record::decode(&again), Ok(record));
            prop_assert_eq!(again, bytes);
        }
    }
}
