//! When a schedule is due: cron expressions in time zones, and fixed distances.
//!
//! Pure: the rules of the time zones are part of the program, so the same release gives the same times on every machine.
//! It does not know what happens at those times.
//!
//! **Local times that do not exist or exist twice.** An expression whose hours are all 24 goes by the time that passes:
//! it names every real minute (or second) whose local reading fits, so nothing is added where clocks go forward, and where
//! they go back both passes count. Any other expression names times of a day, each of them once: one that is skipped comes
//! at the moment when the clock goes on, where several skipped ones are one; one that is there twice comes the first time.

mod calendar;
mod error;
mod parse;
mod zone;

#[cfg(test)]
mod tests;

pub use error::{CronError, CronField, CronProblem};

use crate::record::When;
use calendar::Expression;
use std::collections::VecDeque;
use zone::Zone;
pub(super) use zone::Zones;

/// When something is due, checked and ready to be asked.
#[derive(Clone, Debug)]
pub(super) enum Timing {
    Cron { expression: Box<Expression>, zone: Zone },
    Every { period_ms: i64, offset_ms: i64 },
}

/// Why a [`When`] says no times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimingError {
    /// Its expression is none.
    Cron(CronError),
    /// Nobody knows its time zone.
    UnknownZone(Box<str>),
    /// Its period is 0 or too long to count.
    Period(u64),
}

impl std::fmt::Display for TimingError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TimingError::Cron(error) => error.fmt(formatter),
            TimingError::UnknownZone(zone) => write!(
                formatter,
                "time zone \"{zone}\" is not known; use a name of the IANA database, like \"Europe/Berlin\" or \"UTC\""
            ),
            TimingError::Period(period_ms) => {
                write!(formatter, "a period of {period_ms} ms is no period; make it from 1 to {PERIOD_MS_MAX}")
            }
        }
    }
}

/// A hundred years.
const PERIOD_MS_MAX: u64 = 100 * 366 * 86_400_000;

impl Timing {
    pub(super) fn new(when: When<'_>, zones: &mut Zones) -> Result<Timing, TimingError> {
        match when {
            When::Cron { expression, zone } => {
                let expression = parse::parse(expression).map_err(TimingError::Cron)?;
                let zone = zones.find(zone).ok_or_else(|| TimingError::UnknownZone(zone.into()))?;
                Ok(Timing::Cron { expression: Box::new(expression), zone })
            }
            When::Every { period_ms, offset_ms } => {
                if period_ms == 0 || period_ms > PERIOD_MS_MAX {
                    return Err(TimingError::Period(period_ms));
                }
                let (period, offset) = (period_ms as i64, (offset_ms % period_ms) as i64);
                Ok(Timing::Every { period_ms: period, offset_ms: offset })
            }
        }
    }

    /// The first time after this one, in ms since 1970. `None`: there is none before the end of the calendar.
    pub(super) fn next_after(&self, after_ms: i64) -> Option<i64> {
        match self {
            Timing::Cron { expression, zone } => zone.next_after(expression, after_ms),
            Timing::Every { period_ms, offset_ms } => {
                let periods = after_ms.checked_sub(*offset_ms)?.div_euclid(*period_ms) + 1;
                periods.checked_mul(*period_ms)?.checked_add(*offset_ms)
            }
        }
    }

    /// The newest times after one and before another, at most so many, in their order.
    ///
    /// Looks back in pieces that double, so the cost follows the number of times found and not the length of the gap.
    pub(super) fn newest(&self, after_ms: i64, before_ms: i64, count: usize) -> Vec<i64> {
        let mut found: VecDeque<i64> = VecDeque::new();
        let (mut to_ms, mut length_ms) = (before_ms, 60_000i64);
        while found.len() < count && to_ms > after_ms.saturating_add(1) {
            let from_ms = to_ms.saturating_sub(length_ms).max(after_ms.saturating_add(1));
            let mut piece: VecDeque<i64> = VecDeque::new();
            let mut next = self.next_after(from_ms - 1);
            while let Some(time_ms) = next.filter(|time_ms| *time_ms < to_ms) {
                if piece.len() == count - found.len() {
                    piece.pop_front();
                }
                piece.push_back(time_ms);
                next = self.next_after(time_ms);
            }
            piece.extend(found);
            found = piece;
            (to_ms, length_ms) = (from_ms, length_ms.saturating_mul(2));
        }
        found.into()
    }
}
