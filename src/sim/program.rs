//! Workflow programs made by a seed: stages of operations, each stage waited for as a whole or for its first one.

use super::rng::{Rng, mix_bytes};
use crate::record::{Attribute, IdConflict, IdReuse, ParentClose, Status, write_attribute};

/// Workflow ids that everything is about. Few, so that they meet.
pub(super) const IDS: u64 = 10;

/// Signal names.
pub(super) const SIGNALS: [&str; 3] = ["red", "green", "blue"];

/// A workflow's code.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) stages: Vec<Stage>,
    /// After a cancel, before the end.
    pub(super) clean_up: Option<StepPlan>,
    pub(super) status: Status,
    /// At its end it goes on as a new run with this input.
    pub(super) continues: Option<String>,
}

/// Operations that are asked for in one turn.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub(super) ops: Vec<Plan>,
    /// The first result suffices; the rest stays open.
    pub(super) is_race: bool,
}

/// One operation.
#[derive(Clone, Debug)]
pub(super) enum Plan {
    Step(StepPlan),
    Sleep {
        ms: i64,
        is_absolute: bool,
    },
    Wait {
        name: &'static str,
        timeout_ms: Option<i64>,
    },
    /// True once the run has been handed so many deliveries.
    Condition {
        deliveries: u32,
        timeout_ms: Option<i64>,
    },
    Child(ChildPlan),
    Signal {
        id: String,
        name: &'static str,
    },
    Cancel {
        id: String,
    },
    Watch {
        id: String,
    },
    /// Search attributes, in their writing.
    Attributes(Vec<u8>),
}

/// A step and how its body behaves.
#[derive(Clone, Debug)]
pub(super) struct StepPlan {
    pub(super) name: String,
    pub(super) is_read_only: bool,
    pub(super) is_at_most_once: bool,
    /// Attempts that fail before one succeeds.
    pub(super) failures: u32,
    /// Attempts before it fails for good, or is paused.
    pub(super) attempts_max: u32,
    pub(super) pauses: bool,
    pub(super) retry_ms: i64,
    pub(super) timeout_ms: Option<i64>,
    /// How long the body takes.
    pub(super) body_ms: i64,
}

/// A child and its policies.
#[derive(Clone, Debug)]
pub(super) struct ChildPlan {
    pub(super) id: String,
    pub(super) input: String,
    pub(super) parent_close: ParentClose,
    pub(super) reuse: IdReuse,
    pub(super) conflict: IdConflict,
    pub(super) timeout_ms: Option<i64>,
}

pub(super) fn some_id(rng: &mut Rng) -> String {
    format!("w{}", rng.below(IDS))
}

pub(super) fn some_reuse(rng: &mut Rng) -> IdReuse {
    *rng.pick(&[IdReuse::Allow, IdReuse::Allow, IdReuse::AllowFailedOnly, IdReuse::Reject])
}

pub(super) fn some_conflict(rng: &mut Rng) -> IdConflict {
    *rng.pick(&[IdConflict::SameInput, IdConflict::Fail, IdConflict::UseExisting, IdConflict::TerminateExisting])
}

/// Some search attributes, in their writing; of those that are taken away, what may not be there.
pub(super) fn some_attributes(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    for name in ["a", "b"] {
        match rng.below(4) {
            0 => write_attribute(&mut bytes, name, None),
            1 => write_attribute(&mut bytes, name, Some(&Attribute::Number(rng.below(9) as f64))),
            2 => write_attribute(&mut bytes, name, Some(&Attribute::Text(some_signal(rng)))),
            _ => {}
        }
    }
    bytes
}

/// An input: what the program is made from, and how deep its children may go.
pub(super) fn some_input(rng: &mut Rng, depth: u64) -> String {
    format!("{}:{depth}", rng.below(1 << 32))
}

impl Program {
    /// The program that an input stands for.
    pub(super) fn of(input: &str) -> Program {
        let depth = input.rsplit(':').next().and_then(|depth| depth.parse().ok()).unwrap_or(0);
        let mut rng = Rng::new(mix_bytes(0, input.as_bytes()));
        let stages = (0..=rng.below(4)).map(|_| stage(&mut rng, depth)).collect();
        Program {
            stages,
            clean_up: rng.one_in(2).then(|| step(&mut rng)),
            status: if rng.one_in(5) { Status::Failed } else { Status::Completed },
            continues: (depth > 0 && rng.one_in(5)).then(|| some_input(&mut rng, depth - 1)),
        }
    }
}

fn stage(rng: &mut Rng, depth: u64) -> Stage {
    let count = if rng.one_in(3) { rng.below(4) + 1 } else { 1 };
    Stage { ops: (0..count).map(|_| plan(rng, depth)).collect(), is_race: rng.one_in(4) }
}

fn plan(rng: &mut Rng, depth: u64) -> Plan {
    match rng.below(20) {
        0..=8 => Plan::Step(step(rng)),
        9..=10 => Plan::Sleep { ms: rng.between(0, 2_000), is_absolute: rng.one_in(4) },
        11..=13 => Plan::Wait { name: some_signal(rng), timeout_ms: rng.one_in(2).then(|| rng.between(0, 3_000)) },
        14 => Plan::Condition { deliveries: rng.below(8) as u32, timeout_ms: Some(rng.between(0, 3_000)) },
        15..=16 if depth > 0 => Plan::Child(ChildPlan {
            id: some_id(rng),
            input: some_input(rng, depth - 1),
            parent_close: *rng.pick(&[ParentClose::Terminate, ParentClose::Cancel, ParentClose::Abandon]),
            reuse: some_reuse(rng),
            conflict: some_conflict(rng),
            timeout_ms: rng.one_in(4).then(|| rng.between(0, 5_000)),
        }),
        17 => Plan::Cancel { id: some_id(rng) },
        18 => Plan::Watch { id: some_id(rng) },
        15 => Plan::Attributes(some_attributes(rng)),
        _ => Plan::Signal { id: some_id(rng), name: some_signal(rng) },
    }
}

fn step(rng: &mut Rng) -> StepPlan {
    let is_at_most_once = rng.one_in(6);
    StepPlan {
        name: format!("s{}", rng.below(5)),
        is_read_only: !is_at_most_once && rng.one_in(6),
        is_at_most_once,
        failures: if rng.one_in(3) { rng.below(4) as u32 } else { 0 },
        attempts_max: rng.below(4) as u32 + 1,
        pauses: rng.one_in(4),
        retry_ms: rng.between(0, 500),
        timeout_ms: rng.one_in(4).then(|| rng.between(1, 300)),
        body_ms: if rng.one_in(2) { rng.between(0, 400) } else { 0 },
    }
}

pub(super) fn some_signal(rng: &mut Rng) -> &'static str {
    SIGNALS[rng.below(SIGNALS.len() as u64) as usize]
}
