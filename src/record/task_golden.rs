//! The bytes of the scheduler's records, as they are on disk: a change here is a change of the format.

use super::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

const TIME_MS: i64 = 1_700_000_000_000;

fn full_spec() -> TaskSpec<'static> {
    TaskSpec {
        class: Class::High,
        key: Some("k"),
        tenant: Some("t"),
        order_key: Some("o"),
        not_before_ms: Some(TIME_MS),
        reserve: Some(Reserve { tolerance_ms: 500, on_miss: OnMiss::Skip }),
        deadline_ms: Some(TIME_MS + 1),
        expires_ms: Some(TIME_MS + 2),
        estimate_ms: Some(7),
        timeout_ms: Some(8),
        retry: Some(RetryPolicy::default()),
        after: vec![
            Edge { parent: Parent::Number(TaskNo(3)), condition: Condition::Success },
            Edge { parent: Parent::Key("p"), condition: Condition::Failure },
        ],
        limits: vec![LimitUse { name: "l", key: Some("u"), amount: 2 }],
        labels: vec![("gpu", "a")],
        tags: vec![("x", "y")],
        occurrence: Some(Occurrence { schedule: "n", at_ms: TIME_MS, is_regular: true }),
        ..TaskSpec::new("mail", "send", b"in")
    }
}

fn schedule(when: When<'static>, catch_up: CatchUp) -> ScheduleEntry<'static> {
    let spec = ScheduleSpec {
        when,
        start_ms: Some(TIME_MS),
        end_ms: None,
        limit: Some(9),
        jitter_ms: 10,
        overlap: Overlap::QueueOne,
        catch_up,
        pauses_on_failure: true,
        deadline_after_ms: Some(11),
        expires_after_ms: None,
        template: TaskSpec::new("q", "k", b""),
    };
    ScheduleEntry { name: "n", is_declared: true, spec }
}

fn samples() -> Vec<(&'static str, TaskRecord<'static>)> {
    let (task, time_ms) = (TaskNo(300), TIME_MS);
    let origin = Origin { from: ShardId(2), number: 9 };
    let order =
        Order { caller: Caller { shard: ShardId(2), run: RunNo(7), seq: Seq(3) }, origin, role: TaskRole::Detached };
    vec![
        (
            "40 ac02 80a0abfef962 0171 016b 02 0131 00",
            TaskRecord::Submitted { task, time_ms, spec: Box::new(TaskSpec::new("q", "k", b"1")) },
        ),
        (
            "40 ac02 80a0abfef962 046d61696c 0473656e64 01 02696e ffff01 016b 0174 016f 80a0abfef962 f40301 \
             82a0abfef962 84a0abfef962 07 08 03e807c801e0d40301 02 000300 01017002 01 016c010175 02 01 03677075 0161 \
             01 0178 0179 016e 80a0abfef962 01",
            TaskRecord::Submitted { task, time_ms, spec: Box::new(full_spec()) },
        ),
        (
            "40 ac02 80a0abfef962 0171 016b 02 0131 808002 0169 02 010a 05050505050505050505050505050505",
            TaskRecord::Submitted {
                task,
                time_ms,
                spec: Box::new(TaskSpec {
                    launch: Some(Launch { id: "i", version: 2, timeout_ms: Some(5), key_root: [5; 16] }),
                    ..TaskSpec::new("q", "k", b"1")
                }),
            },
        ),
        (
            "41 ac02 80a0abfef962 02 0171 016b 02 00 00 0171 016a 02 00 00",
            TaskRecord::Batch {
                first: task,
                time_ms,
                specs: vec![TaskSpec::new("q", "k", b""), TaskSpec::new("q", "j", b"")],
            },
        ),
        ("42 ac02 80a0abfef962", TaskRecord::Started { task, time_ms }),
        (
            "43 ac02 80a0abfef962 82a0abfef962 03 01 0165",
            TaskRecord::Retrying {
                task,
                time_ms,
                retry_ms: time_ms + 1,
                end: AttemptEnd::Lost,
                is_free: true,
                failure: b"e",
            },
        ),
        ("44 ac02 80a0abfef962 03 0165", TaskRecord::Ended { task, time_ms, outcome: Outcome::Dead, payload: b"e" }),
        ("45 ac02 80a0abfef962 00 01", TaskRecord::Changed { task, time_ms, change: Change::Class(Class::High) }),
        ("45 ac02 80a0abfef962 01 02", TaskRecord::Changed { task, time_ms, change: Change::NotBefore(1) }),
        (
            "45 ac02 80a0abfef962 02 0131 0102",
            TaskRecord::Changed { task, time_ms, change: Change::Replaced { payload: b"1", not_before_ms: Some(1) } },
        ),
        ("46 ac02 80a0abfef962", TaskRecord::Revived { task, time_ms }),
        ("47 0171 01 0105", TaskRecord::QueueSet { queue: "q", is_paused: true, concurrency: Some(5) }),
        ("48 016c 00 05", TaskRecord::LimitSet { name: "l", spec: LimitSpec::Concurrency(5) }),
        (
            "48 016c 01 3c e0d403 05",
            TaskRecord::LimitSet { name: "l", spec: LimitSpec::Rate { limit: 60, period_ms: 60_000, burst: 5 } },
        ),
        (
            "49 80a0abfef962 01 016e 01 00 09302033202a202a202a 03555443 0180a0abfef962 00 0109 0a 04 01 01 010b 00 \
             0171 016b 02 00 00 00",
            TaskRecord::SchedulesSet {
                time_ms,
                set: vec![schedule(When::Cron { expression: "0 3 * * *", zone: "UTC" }, CatchUp::Last)],
                removed: Vec::new(),
            },
        ),
        (
            "49 80a0abfef962 01 016e 01 01 05 06 0180a0abfef962 00 0109 0a 04 0203 01 010b 00 0171 016b 02 00 00 \
             02 0161 0162",
            TaskRecord::SchedulesSet {
                time_ms,
                set: vec![schedule(When::Every { period_ms: 5, offset_ms: 6 }, CatchUp::UpTo(3))],
                removed: vec!["a", "b"],
            },
        ),
        ("49 80a0abfef962 00 00", TaskRecord::SchedulesSet { time_ms, set: Vec::new(), removed: Vec::new() }),
        ("4b 016e 80a0abfef962", TaskRecord::ScheduleMoved { name: "n", past_ms: time_ms }),
        ("4c 016e 80a0abfef962 01", TaskRecord::SchedulePaused { name: "n", time_ms, is_paused: true }),
        (
            "50 ac02 80a0abfef962 020703 0209 02 0171 016b 02 0131 00",
            TaskRecord::Ordered { task, time_ms, order, spec: Box::new(TaskSpec::new("q", "k", b"1")) },
        ),
        (
            "51 80a0abfef962 020703 0209 02 02050107 00 0171 016b 02 0131 00",
            TaskRecord::OrderWaits {
                time_ms,
                order,
                dedupe: Dedupe {
                    mode: DedupeMode::Debounce { window_ms: 5, max_wait_ms: Some(7) },
                    scope: DedupeScope::Pending,
                },
                spec: Box::new(TaskSpec::new("q", "k", b"1")),
            },
        ),
        ("52 ac02 80a0abfef962 020703 0209 02 01", TaskRecord::OrderJoined { task, time_ms, order, is_changed: true }),
        ("53 020703 0209 02 80a0abfef962 0177", TaskRecord::OrderRefused { order, time_ms, why: b"w" }),
        ("54 0209", TaskRecord::MessageTaken { origin }),
        (
            "58 ac02 80a0abfef962 02 02 0165 0209",
            TaskRecord::AwaitedRun { task, time_ms, edge: 2, status: Status::Failed, payload: b"e", origin },
        ),
        (
            "40 ac02 80a0abfef962 0171 016b 02 0131 8008 02 02 0177 0107 00 02 0178 00 01",
            TaskRecord::Submitted {
                task,
                time_ms,
                spec: Box::new(TaskSpec {
                    after: vec![
                        Edge { parent: Parent::Run("w", Some(RunNo(7))), condition: Condition::Success },
                        Edge { parent: Parent::Run("x", None), condition: Condition::Completion },
                    ],
                    ..TaskSpec::new("q", "k", b"1")
                }),
            },
        ),
        ("57 ac02 80a0abfef962", TaskRecord::RunAsked { task, time_ms }),
        ("56 ac02 80a0abfef962 020703 0209", TaskRecord::RunMade { task, time_ms, caller: order.caller, origin }),
        ("59 0171 01 ac02", TaskRecord::QueueBounds { queue: "q", min: 1, max: 300 }),
        ("55 ac02 80a0abfef962 04 0209", TaskRecord::RunOver { task, time_ms, outcome: Outcome::Cancelled, origin }),
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn encoded(record: &TaskRecord<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    bytes
}

#[test]
fn every_task_record_has_the_bytes_that_it_was_released_with() {
    for (golden, record) in samples() {
        let bytes = encoded(&record);
        assert_eq!(hex(&bytes), golden.replace(' ', ""), "{record:?}");
        assert_eq!(TaskRecord::decode(&bytes), Ok(record.clone()));
        for length in 0..bytes.len() {
            assert!(TaskRecord::decode(&bytes[..length]).is_err(), "{record:?} cut to {length}");
        }
    }
}

#[test]
fn a_count_past_the_end_allocates_nothing() {
    let mut bytes = vec![65, 1, 0];
    Writer::new(&mut bytes).number(u64::MAX);
    assert_eq!(TaskRecord::decode(&bytes), Err(DecodeError::Short));
}

/// The owned parts of a description, which borrows everything.
type Parts = (Vec<String>, Vec<u8>, Vec<Option<i64>>, Vec<Option<u32>>, Vec<(u64, u8)>, (u8, u8));

fn parts() -> impl Strategy<Value = Parts> {
    (
        vec("[a-zé]{0,6}", 8),
        vec(any::<u8>(), 0..20),
        vec(option::of(any::<i64>()), 3),
        vec(option::of(any::<u32>()), 3),
        vec((1u64.., 0u8..3), 0..4),
        (0u8..4, any::<u8>()),
    )
}

fn spec_of(parts: &Parts) -> TaskSpec<'_> {
    let (texts, payload, times, lengths, edges, (class, bits)) = parts;
    let text = |at: usize| (bits & 1 << at != 0).then_some(texts[at].as_str());
    TaskSpec {
        class: Class::from_code(*class).unwrap(),
        key: text(2),
        tenant: text(3),
        order_key: text(4),
        not_before_ms: times[0],
        deadline_ms: times[1],
        expires_ms: times[2],
        estimate_ms: lengths[0],
        timeout_ms: lengths[1],
        reserve: lengths[2].map(|tolerance_ms| Reserve { tolerance_ms, on_miss: OnMiss::Fail }),
        after: edges
            .iter()
            .map(|(parent, condition)| Edge {
                parent: if parent % 2 == 0 { Parent::Key(&texts[5]) } else { Parent::Number(TaskNo(*parent)) },
                condition: Condition::from_code(*condition).unwrap(),
            })
            .collect(),
        tags: edges.iter().map(|_| (texts[6].as_str(), texts[7].as_str())).collect(),
        limits: edges
            .iter()
            .map(|(parent, _)| LimitUse { name: &texts[6], key: text(7), amount: *parent as u32 })
            .collect(),
        ..TaskSpec::new(&texts[0], &texts[1], payload)
    }
}

proptest! {
    #[test]
    fn descriptions_round_trip(parts in parts(), task in 1u64.., time_ms: i64) {
        let spec = spec_of(&parts);
        let record = TaskRecord::Batch { first: TaskNo(task), time_ms, specs: vec![spec.clone(), spec.clone()] };
        let bytes = encoded(&record);
        prop_assert_eq!(TaskRecord::decode(&bytes), Ok(record.clone()));
        let mut alone = Vec::new();
        encode_spec(&mut alone, &spec);
        prop_assert_eq!(decode_spec(&alone), Ok(spec));
    }

    #[test]
    fn arbitrary_bytes_are_a_task_record_in_its_one_writing_or_none(kind in 60u8..90, rest in vec(any::<u8>(), 0..80)) {
        let mut bytes = vec![kind];
        bytes.extend(rest);
        if let Ok(record) = TaskRecord::decode(&bytes) {
            prop_assert_eq!(encoded(&record), bytes);
        }
    }

    #[test]
    fn a_damaged_task_record_never_panics(sample in 0usize..24, at in 0usize..64, byte: u8) {
        let mut bytes = encoded(&samples()[sample].1);
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(record) = TaskRecord::decode(&bytes) {
            prop_assert_eq!(encoded(&record), bytes);
        }
    }
}
