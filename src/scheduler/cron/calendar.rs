//! A cron expression that was understood: which seconds, minutes, hours and days it means, and the next of them on a
//! calendar without time zones.

use jiff::civil::{Date, DateTime};

/// A day of a month that depends on the month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scheduler) enum DayRule {
    /// So many days before the last one.
    BeforeLast(u32),
    /// The weekday, Monday to Friday, that is nearest to a day within its month.
    NearestWeekday(u32),
    /// The last Monday to Friday.
    LastWeekday,
}

/// A weekday, 0 for Sunday, in one of its weeks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scheduler) enum WeekdayRule {
    /// The nth of the month, from 1.
    Nth(u32, u32),
    /// The last of the month.
    Last(u32),
}

/// What an expression means. Bit n of a set is number n.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::scheduler) struct Expression {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    pub(super) hours: u64,
    pub(super) days: u64,
    pub(super) months: u64,
    /// Sunday is 0.
    pub(super) weekdays: u64,
    pub(super) day_rules: Vec<DayRule>,
    pub(super) weekday_rules: Vec<WeekdayRule>,
    /// Whether both day fields name days: then either of them suffices, else both have to fit.
    pub(super) is_either_day: bool,
}

/// The calendar repeats itself after so many months.
const MONTHS_MAX: u32 = 400 * 12;
const YEAR_MAX: i16 = 9_990;

impl Expression {
    /// Whether it goes by the time that passes, and not by times of a day.
    pub(super) fn is_periodic(&self) -> bool {
        self.hours == (1 << 24) - 1
    }

    /// The first time from this one on.
    pub(super) fn at_or_after(&self, from: DateTime) -> Option<DateTime> {
        let (mut year, mut month) = (from.year(), from.month());
        for _ in 0..=MONTHS_MAX {
            if year > YEAR_MAX {
                return None;
            }
            if has(self.months, month as u32) {
                let first = Date::new(year, month, 1).ok()?;
                let mut days = self.days_of(first);
                if first <= from.date() {
                    days &= !0 << from.day();
                }
                if let Some(found) = self.first_of(first, days, from) {
                    return Some(found);
                }
            }
            (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        }
        None
    }

    /// The first time from `from` on in one of these days of a month.
    fn first_of(&self, month: Date, mut days: u64, from: DateTime) -> Option<DateTime> {
        while days != 0 {
            let date = Date::new(month.year(), month.month(), days.trailing_zeros() as i8).ok()?;
            let least = if date == from.date() { (from.hour(), from.minute(), from.second()) } else { (0, 0, 0) };
            if let Some((hour, minute, second)) = self.time_from(least) {
                return DateTime::new(date.year(), date.month(), date.day(), hour, minute, second, 0).ok();
            }
            days &= days - 1;
        }
        None
    }

    /// The first time of a day from this one on.
    fn time_from(&self, (hour, minute, second): (i8, i8, i8)) -> Option<(i8, i8, i8)> {
        let (first_minute, first_second) = (from(self.minutes, 0)?, from(self.seconds, 0)?);
        if has(self.hours, hour as u32) {
            if has(self.minutes, minute as u32)
                && let Some(second) = from(self.seconds, second)
            {
                return Some((hour, minute, second));
            }
            if let Some(minute) = from(self.minutes, minute + 1) {
                return Some((hour, minute, first_second));
            }
        }
        from(self.hours, hour + 1).map(|hour| (hour, first_minute, first_second))
    }

    /// The days of a month that fit.
    fn days_of(&self, first: Date) -> u64 {
        let length = first.days_in_month() as u32;
        let all = ((1u64 << length) - 1) << 1;
        let first_weekday = first.weekday().to_sunday_zero_offset() as u32;
        let weekday = |day: u32| (first_weekday + day - 1) % 7;
        let days = self.day_rules.iter().fold(self.days & all, |days, rule| {
            let day = match *rule {
                DayRule::BeforeLast(before) => length.saturating_sub(before),
                DayRule::NearestWeekday(day) if day > length => 0,
                DayRule::NearestWeekday(day) => nearest_weekday(day, length, weekday(day)),
                DayRule::LastWeekday => nearest_weekday(length, length, weekday(length)),
            };
            if day == 0 { days } else { days | 1 << day }
        });
        let fits = |day: u32| {
            let of = weekday(day);
            let by_rule = self.weekday_rules.iter().any(|rule| match *rule {
                WeekdayRule::Nth(weekday, nth) => weekday == of && (day - 1) / 7 + 1 == nth,
                WeekdayRule::Last(weekday) => weekday == of && day + 7 > length,
            });
            has(self.weekdays, of) || by_rule
        };
        let by_weekday = (1..=length).filter(|day| fits(*day)).fold(0u64, |days, day| days | 1 << day);
        if self.is_either_day { days | by_weekday } else { days & by_weekday }
    }
}

/// Saturdays go to the day before and Sundays to the day after, unless that is another month.
fn nearest_weekday(day: u32, length: u32, weekday: u32) -> u32 {
    match weekday {
        6 if day == 1 => 3,
        6 => day - 1,
        0 if day == length => day - 2,
        0 => day + 1,
        _ => day,
    }
}

fn has(set: u64, number: u32) -> bool {
    set & 1 << number != 0
}

/// The least number of a set that is not below `least`.
fn from(set: u64, least: i8) -> Option<i8> {
    let rest = set & (!0 << least);
    (rest != 0).then(|| rest.trailing_zeros() as i8)
}
