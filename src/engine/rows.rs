//! The text of answers: runs, records and reasons as rows of fields.

use super::events::{PART, ROW, TEXT, fields};
use super::keys::hex;
use crate::machine::{Described, Explanation, RunIx, RunView, Shard, Stuck};
use crate::record::{Attribute, Lsn, Record, Seq, ShardId, attributes_in, run_id};

/// What a run is, apart from its input: its id, run id, type, version, key root, start, and its parent's run id.
pub(super) fn identity(shard: ShardId, view: &RunView<'_>) -> String {
    fields(&[
        view.id,
        &run_id(shard, view.no),
        view.kind,
        &view.version.to_string(),
        &hex(&view.key_root),
        &view.started_ms.unwrap_or(view.created_ms).to_string(),
        &view.parent.map(|caller| run_id(caller.shard, caller.run)).unwrap_or_default(),
    ])
}

/// What the keys and the ids of a run's operations come from, as the event of its start says it: the key root; of a run
/// that begins with copies, for each border the first operation behind it, the key root from there on, the id before it.
pub(super) fn key_roots(shard: &Shard, run: RunIx) -> String {
    let mut text = hex(&shard.view(run).key_root);
    for (seq, key_root, id) in shard.borders(run) {
        text.extend([&*ROW.to_string(), &seq.0.to_string(), &ROW.to_string(), &hex(&key_root), &ROW.to_string(), id]);
    }
    text
}

pub(super) fn row(shard: ShardId, view: &RunView<'_>) -> String {
    let marks = u8::from(view.marks.is_paused) + 2 * u8::from(view.marks.is_stuck);
    fields(&[
        view.id,
        &run_id(shard, view.no),
        view.kind,
        &view.version.to_string(),
        &view.status_code().to_string(),
        &marks.to_string(),
        &view.created_ms.to_string(),
        &view.started_ms.map(|started_ms| started_ms.to_string()).unwrap_or_default(),
        &view.ended_ms.map(|ended_ms| ended_ms.to_string()).unwrap_or_default(),
        "",
        &view.parent.map(|caller| run_id(caller.shard, caller.run)).unwrap_or_default(),
        &attribute_text(view.attributes),
    ])
}

/// Search attributes as a text: names and values in turn, a letter before each value that says what it is.
pub(super) fn attribute_text(attributes: &[u8]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for entry in attributes_in(attributes) {
        let Some(value) = entry.value else { continue };
        parts.push(entry.name.to_owned());
        parts.push(match value {
            Attribute::Text(text) => format!("t{text}"),
            Attribute::Number(number) => format!("n{number}"),
            Attribute::Flag(flag) => format!("b{}", u8::from(flag)),
            Attribute::Time(time_ms) => format!("d{time_ms}"),
            Attribute::Whole(number) => format!("w{number}"),
            Attribute::Texts(texts) => texts.iter().map(|text| format!("{TEXT}{text}")).collect(),
        });
    }
    parts.join(&PART.to_string())
}

pub(super) fn history_row(lsn: Lsn, record: &Record<'_>) -> String {
    let (time_ms, seq, name, attempt, payload): (Option<i64>, Option<Seq>, &str, Option<u32>, &[u8]) = match *record {
        Record::Start { time_ms, new, .. } => (Some(time_ms), None, new.kind, None, new.input),
        Record::StepDone { seq, name, attempt, time_ms, payload, .. } => {
            (Some(time_ms), Some(seq), name, Some(attempt), payload)
        }
        Record::StepFailed { seq, name, attempt, time_ms, failure, .. } => {
            (Some(time_ms), Some(seq), name, Some(attempt), failure)
        }
        Record::StepStarted { seq, name, attempt, time_ms, .. } => (Some(time_ms), Some(seq), name, Some(attempt), b""),
        Record::Heartbeat { seq, attempt, time_ms, details, .. } => {
            (Some(time_ms), Some(seq), "", Some(attempt), details)
        }
        Record::TimerSet { seq, due_ms, .. } => (Some(due_ms), Some(seq), "", None, b""),
        Record::TimerFired { seq, time_ms, .. } => (Some(time_ms), Some(seq), "", None, b""),
        Record::WaitSet { seq, name, due_ms, .. } => (due_ms, Some(seq), name, None, b""),
        Record::ConditionSet { seq, due_ms, .. } => (due_ms, Some(seq), "", None, b""),
        Record::Signal { time_ms, name, payload, .. } => (Some(time_ms), None, name, None, payload),
        Record::ChildSet { seq, child, .. } => (None, Some(seq), child.id, None, child.input),
        Record::TaskSet { seq, kind, .. } => (None, Some(seq), kind, None, b""),
        Record::SendSet { seq, id, .. } => (None, Some(seq), id, None, b""),
        Record::ChildDone { seq, time_ms, payload, .. } => (Some(time_ms), Some(seq), "", None, payload),
        Record::Cancel { time_ms, reason, .. } => (Some(time_ms), None, "", None, reason.as_bytes()),
        Record::Paused { time_ms, .. } | Record::Resumed { time_ms, .. } | Record::Activated { time_ms, .. } => {
            (Some(time_ms), None, "", None, b"")
        }
        Record::Done { time_ms, payload, .. } => (Some(time_ms), None, "", None, payload),
        Record::Update { time_ms, name, payload, .. } | Record::Called { time_ms, name, payload, .. } => {
            (Some(time_ms), None, name, None, payload)
        }
        Record::UpdateDone { time_ms, payload, .. } | Record::CallDone { time_ms, payload, .. } => {
            (Some(time_ms), None, "", None, payload)
        }
        Record::Patched { id, .. } => (None, None, id, None, b""),
        Record::Attributes { seq, time_ms, .. } => (Some(time_ms), seq, "", None, b""),
        // Journals have their parts.
        Record::SignalledStart { time_ms, new, .. }
        | Record::AttributedStart { time_ms, new, .. }
        | Record::Queued { time_ms, new, .. }
        | Record::Continued { time_ms, new, .. } => (Some(time_ms), None, new.kind, None, new.input),
        Record::Branched { time_ms, source, .. } => (Some(time_ms), None, source, None, b""),
        Record::Forked { .. } | Record::Reset { .. } => (None, None, "", None, b""),
        Record::Watched { .. } | Record::Answered { .. } | Record::Received { .. } => (None, None, "", None, b""),
    };
    let number = |value: Option<i64>| value.map(|value| value.to_string()).unwrap_or_default();
    fields(&[
        &lsn.to_string(),
        &number(time_ms),
        record.label(),
        &number(seq.map(|seq| i64::from(seq.0))),
        name,
        &number(attempt.map(i64::from)),
        &String::from_utf8_lossy(payload),
    ])
}

/// Message, operation number, kind and name of what was recorded and of what was asked for, place.
pub(super) fn stuck_report(stuck: &Stuck) -> String {
    let parts = |operation: &Option<Described>| match operation {
        Some(Described { kind, name }) => fields(&[kind, name]),
        None => fields(&["", ""]),
    };
    let (recorded, asked) = (parts(&stuck.recorded), parts(&stuck.asked));
    fields(&[&stuck.message, &stuck.seq.0.to_string(), &recorded, &asked, &stuck.place])
}

pub(super) fn explanation(explanation: &Explanation, has_definition: bool) -> String {
    match explanation {
        Explanation::Ended(status) => fields(&["ended", &status.code().to_string()]),
        Explanation::Stuck(stuck) => fields(&["stuck", &stuck_report(stuck)]),
        Explanation::Absent if !has_definition => "notRegistered".into(),
        Explanation::Absent | Explanation::Running => "running".into(),
        // Its request to the scheduler has not come there yet.
        Explanation::Queued(_) => "starting".into(),
        Explanation::Step(name) => fields(&["step", name]),
        Explanation::Timer(until_ms) => fields(&["timer", &until_ms.to_string()]),
        Explanation::Retry(name, until_ms) => fields(&["retry", &until_ms.to_string(), name]),
        Explanation::Paused(name) => fields(&["paused", name]),
        Explanation::Waiting(what) => fields(&["waiting", what]),
        Explanation::Outside => "outside".into(),
    }
}
