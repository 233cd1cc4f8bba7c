//! What the journal of a run says: which record something rests on.

use crate::engine::{Delivery, DeliveryKind, ForeignEngine, Lsn};
use crate::machine::RunIx;
use crate::record::{Record, ShardId};

pub(super) fn newest_of_run(engine: &ForeignEngine, (shard, run): (ShardId, RunIx)) -> Lsn {
    engine.group().with(shard, |cell, _| cell.shard.view(run).last)
}

/// The record that an attempt rests on: the failed attempt before it, the recorded start, or the resume.
pub(super) fn newest_of_attempt(
    engine: &ForeignEngine,
    (shard, run): (ShardId, RunIx),
    seq: u32,
    is_read_only: bool,
) -> Lsn {
    if is_read_only {
        return Lsn::NONE;
    }
    engine.group().with(shard, |cell, _| {
        let is_meant = |record: &Record<'_>| match record {
            Record::StepStarted { seq: of, .. } | Record::StepFailed { seq: of, .. } => of.0 == seq,
            Record::Resumed { .. } => true,
            _ => false,
        };
        let newest = cell.shard.history(run).filter(|entry| is_meant(&entry.record)).last();
        newest.map_or(Lsn::NONE, |entry| entry.lsn)
    })
}

/// The record that a delivery hands out.
pub(super) fn recorded_at(
    engine: &ForeignEngine,
    (shard, run): (ShardId, RunIx),
    delivery: Delivery,
    payload: &str,
) -> Lsn {
    if delivery.kind == DeliveryKind::SignalTaken {
        return signal_at(engine, (shard, run), payload);
    }
    engine.group().with(shard, |cell, _| {
        let is_meant = |record: &Record<'_>| match (delivery.kind, record) {
            (DeliveryKind::Start, Record::Start { .. }) | (DeliveryKind::Cancelled, Record::Cancel { .. }) => true,
            (DeliveryKind::StepCompleted | DeliveryKind::StepFailed, Record::StepDone { seq, .. })
            | (
                DeliveryKind::TimerFired | DeliveryKind::WaitTimedOut | DeliveryKind::ConditionTimedOut,
                Record::TimerFired { seq, .. },
            )
            | (DeliveryKind::ChildEnded, Record::ChildDone { seq, .. }) => *seq == delivery.seq,
            (DeliveryKind::UpdateAccepted, Record::Update { number, .. }) => *number == delivery.seq.0,
            _ => false,
        };
        cell.shard.history(run).find(|entry| is_meant(&entry.record)).map_or(Lsn::NONE, |entry| entry.lsn)
    })
}

pub(super) fn signal_at(engine: &ForeignEngine, (shard, run): (ShardId, RunIx), payload: &str) -> Lsn {
    engine.group().with(shard, |cell, _| {
        let is_meant =
            |record: &Record<'_>| matches!(record, Record::Signal { payload: sent, .. } if *sent == payload.as_bytes());
        cell.shard.history(run).find(|entry| is_meant(&entry.record)).map_or(Lsn::NONE, |entry| entry.lsn)
    })
}
