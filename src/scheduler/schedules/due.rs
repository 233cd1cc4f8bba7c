//! Which times of a schedule are due, and which of those that were missed are made up for.

use super::{GRACE_MS, Schedule};
use crate::record::{CatchUp, Overlap, ScheduleSpec};

/// Times that have come.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Due {
    /// To be fired, in their order.
    pub(super) times: Vec<i64>,
    /// The first and the last of those that are not.
    pub(super) missed: Option<(i64, i64)>,
}

impl Schedule {
    /// The first time that is not settled. `None`: it has no plan, its limit is reached, or its end.
    pub(super) fn next_ms(&self) -> Option<i64> {
        self.next_after(self.past_ms)
    }

    /// The first time after another that it may fire at.
    pub(super) fn next_after(&self, after_ms: i64) -> Option<i64> {
        let definition = self.definition.as_ref()?;
        let (timing, spec) = (definition.timing.as_ref().ok()?, definition.spec());
        if spec.limit.is_some_and(|limit| self.fired >= limit) {
            return None;
        }
        let after_ms = after_ms.max(spec.start_ms.map_or(i64::MIN, |start_ms| start_ms.saturating_sub(1)));
        timing.next_after(after_ms).filter(|time_ms| spec.end_ms.is_none_or(|end_ms| *time_ms <= end_ms))
    }

    /// When the task of a time is made: a bit later than that if the schedule has jitter, always by the same.
    pub(super) fn due_ms(&self, spec: &ScheduleSpec<'_>, at_ms: i64) -> i64 {
        at_ms.saturating_add(jitter_ms(&self.name, at_ms, spec.jitter_ms))
    }

    /// What is due by now.
    pub(super) fn due_now(&self, now_ms: i64) -> Due {
        let Some(definition) = &self.definition else { return Due::default() };
        let (Ok(timing), spec) = (&definition.timing, definition.spec()) else { return Due::default() };
        let Some(first_ms) = self.next_ms().filter(|first_ms| self.due_ms(&spec, *first_ms) <= now_ms) else {
            return Due::default();
        };
        let is_single = is_single(spec.overlap);
        let kept = match spec.catch_up {
            CatchUp::None => 0,
            CatchUp::Last => 1,
            CatchUp::UpTo(count) => count as usize,
        };
        let kept = if is_single { kept.min(1) } else { kept };
        // Before this, all have been missed, however long their jitter.
        let long_ago_ms = now_ms.saturating_sub(GRACE_MS).saturating_sub(i64::from(spec.jitter_ms));
        let end_ms = spec.end_ms.map_or(i64::MAX, |end_ms| end_ms.saturating_add(1));
        let mut missed = timing.newest(first_ms - 1, long_ago_ms.min(end_ms), kept.max(1));
        let mut on_time = Vec::new();
        let mut next = self.next_after((first_ms - 1).max(long_ago_ms - 1));
        while let Some(at_ms) = next.filter(|at_ms| *at_ms <= now_ms) {
            let due_ms = self.due_ms(&spec, at_ms);
            if due_ms > now_ms {
                break;
            }
            if now_ms - due_ms > GRACE_MS {
                missed.push(at_ms)
            } else {
                on_time.push(at_ms)
            }
            next = self.next_after(at_ms);
        }
        let last_ms = missed.iter().chain(&on_time).copied().max().unwrap_or(first_ms);
        let mut times: Vec<i64> = missed.split_off(missed.len().saturating_sub(kept));
        times.append(&mut on_time);
        if is_single {
            times.drain(..times.len().saturating_sub(1));
        }
        let dropped = match times.first() {
            None => Some((first_ms, last_ms)),
            Some(kept_ms) if *kept_ms > first_ms => Some((first_ms, self.last_before(*kept_ms, first_ms))),
            Some(_) => None,
        };
        Due { times, missed: dropped }
    }

    fn last_before(&self, before_ms: i64, first_ms: i64) -> i64 {
        let timing = self.definition.as_ref().and_then(|definition| definition.timing.as_ref().ok());
        timing.and_then(|timing| timing.newest(first_ms - 1, before_ms, 1).pop()).unwrap_or(first_ms)
    }
}

/// Whether at most one task of several times that came together makes sense.
fn is_single(overlap: Overlap) -> bool {
    match overlap {
        Overlap::Skip | Overlap::QueueOne | Overlap::Replace => true,
        Overlap::Allow | Overlap::Queue | Overlap::QueueOnSuccess => false,
    }
}

/// A number from 0 to `most_ms` that follows from a schedule and a time of it.
fn jitter_ms(name: &str, at_ms: i64, most_ms: u32) -> i64 {
    if most_ms == 0 {
        return 0;
    }
    let seed = name.bytes().chain(at_ms.to_le_bytes());
    let mixed =
        seed.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    super::super::chance::Chance::new(mixed).below(u64::from(most_ms) + 1) as i64
}
