//! Expressions and their mistakes; and the times in ten zones against a model that looks at every minute, with another
//! library's time zones.

use super::*;
use crate::scheduler::chance::Chance;
use chrono::{DateTime, Datelike, Duration, NaiveDate, NaiveDateTime, TimeZone, Timelike, Utc};
use chrono_tz::Tz;
use std::collections::BTreeSet;

fn cron(expression: &str, zone: &str) -> Timing {
    Timing::new(When::Cron { expression, zone }, &mut Zones::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn complaint(expression: &str) -> String {
    Timing::new(When::Cron { expression, zone: "UTC" }, &mut Zones::default()).unwrap_err().to_string()
}

fn ms(text: &str) -> i64 {
    text.parse::<DateTime<Utc>>().unwrap_or_else(|_| panic!("{text} is a time")).timestamp_millis()
}

/// So many times after one, in local time with its offset.
fn next(timing: &Timing, zone: Tz, after: &str, count: usize) -> Vec<String> {
    let mut at_ms = ms(after);
    let mut times = Vec::new();
    for _ in 0..count {
        at_ms = timing.next_after(at_ms).expect("there is another");
        times.push(zone.timestamp_millis_opt(at_ms).unwrap().format("%d %H:%M%z").to_string());
    }
    times
}

fn days(expression: &str, after: &str, count: usize) -> Vec<String> {
    let timing = cron(expression, "UTC");
    let mut at_ms = ms(after);
    let next = std::iter::repeat_with(|| {
        at_ms = timing.next_after(at_ms).expect("there is another");
        Utc.timestamp_millis_opt(at_ms).unwrap().format("%Y-%m-%d").to_string()
    });
    next.take(count).collect()
}

#[test]
fn a_mistake_is_named_with_its_field_its_place_and_what_is_allowed() {
    let said = [
        ("", "it is empty"),
        ("0 3 * *", "it has 4 fields; it needs 5"),
        ("61 * * * *", "minute at position 1: \"61\" is out of range; 0 to 59 are allowed"),
        ("0 24 * * *", "hour at position 3: \"24\" is out of range; 0 to 23 are allowed"),
        ("0 0 1,32 * *", "day of month at position 7: \"32\" is out of range; 1 to 31"),
        ("0 0 * 13 *", "month at position 7: \"13\" is out of range; 1 to 12"),
        ("0 0 * * 8", "day of week at position 9: \"8\" is out of range; 0 to 7"),
        ("0 0 * * MOO", "\"MOO\" is not understood; allowed are 0 to 7 or SUN to SAT"),
        ("0 22-5 * * *", "hour at position 3: \"22-5\" runs backwards; write two ranges, like a-23,0-b"),
        ("*/0 * * * *", "the step of \"*/0\" must be from 1 to 59"),
        ("*/90 * * * *", "the step of \"*/90\" must be from 1 to 59"),
        ("-1 * * * *", "\"-1\" is not understood"),
        ("+1 * * * *", "\"+1\" is not understood"),
        ("1,,2 * * * *", "minute at position 3: \"\" is not understood"),
        ("? * * * *", "\"?\" is not understood"),
        ("0 0 * * 1#6", "a 1st to a 5th"),
        ("0 0 30 2 *", "no date fits"),
        ("0 0 31 4,6 ?", "no date fits"),
        ("@reboot", "\"@reboot\" is not known; there are @yearly"),
        ("99999999999999999999 * * * *", "out of range"),
    ];
    for (expression, expected) in said {
        let complaint = complaint(expression);
        assert!(complaint.contains(expected), "{expression:?}: {complaint}");
    }
    let unknown = Timing::new(When::Cron { expression: "@daily", zone: "Europe/Berln" }, &mut Zones::default());
    assert!(unknown.unwrap_err().to_string().contains("\"Europe/Berln\" is not known"));
    let none = Timing::new(When::Every { period_ms: 0, offset_ms: 0 }, &mut Zones::default()).unwrap_err();
    assert!(none.to_string().contains("a period of 0 ms"));
}

#[test]
fn names_lists_ranges_steps_and_macros_mean_what_they_say() {
    let same = [
        ("0 0 * JAN,dec sun-Tue", "0 0 * 1,12 0-2"),
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 * * FRI-SUN", "0 0 * * 5,6,0"),
        ("5/20 * * * *", "5,25,45 * * * *"),
        ("10-30/10 * * * *", "10,20,30 * * * *"),
        ("0 3 * * *", "0 0 3 * * *"),
        ("@daily", "0 0 * * *"),
        ("@WEEKLY", "0 0 * * SUN"),
        (" @hourly ", "0 * * * *"),
        ("0 0 * * */2", "0 0 * * 0,2,4,6"),
    ];
    for (one, other) in same {
        let (Timing::Cron { expression: one_means, .. }, Timing::Cron { expression: other_means, .. }) =
            (cron(one, "UTC"), cron(other, "UTC"))
        else {
            panic!("both are expressions")
        };
        assert_eq!(one_means, other_means, "{one} is {other}");
    }
}

#[test]
fn days_that_depend_on_the_month_are_found() {
    let from = "2024-01-15T00:00:00Z";
    assert_eq!(days("0 0 L * *", from, 3), ["2024-01-31", "2024-02-29", "2024-03-31"]);
    assert_eq!(days("0 0 L-1 * *", from, 2), ["2024-01-30", "2024-02-28"]);
    assert_eq!(days("0 0 LW * *", from, 4), ["2024-01-31", "2024-02-29", "2024-03-29", "2024-04-30"]);
    // The 1st of June 2024 is a Saturday, the 15th too, the 16th a Sunday.
    assert_eq!(days("0 0 1W 6 *", from, 1), ["2024-06-03"]);
    assert_eq!(days("0 0 15W 6 *", from, 1), ["2024-06-14"]);
    assert_eq!(days("0 0 16W 6 *", from, 1), ["2024-06-17"]);
    assert_eq!(days("0 0 30W 6 *", from, 1), ["2024-06-28"], "the 30th is a Sunday and the last");
    assert_eq!(days("0 0 * * FRI#2", from, 2), ["2024-02-09", "2024-03-08"]);
    assert_eq!(days("0 0 * * 5L", from, 2), ["2024-01-26", "2024-02-23"]);
    assert_eq!(days("0 0 29 2 *", "2096-03-01T00:00:00Z", 1), ["2104-02-29"], "2100 is no leap year");
}

#[test]
fn either_day_field_suffices_when_both_name_days_and_both_must_fit_when_one_is_open() {
    let from = "2024-09-01T00:00:00Z";
    assert_eq!(days("0 0 13 * FRI", from, 4), ["2024-09-06", "2024-09-13", "2024-09-20", "2024-09-27"]);
    assert_eq!(days("0 0 */13 * FRI", from, 1), ["2024-09-27"], "the 1st, 14th and 27th, if a Friday");
    assert_eq!(days("0 0 13 * ?", from, 2), ["2024-09-13", "2024-10-13"]);
}

#[test]
fn a_time_of_day_that_is_skipped_comes_when_the_clock_goes_on_and_once() {
    let zone = Tz::America__New_York;
    let daily = cron("30 2 * * *", "America/New_York");
    assert_eq!(next(&daily, zone, "2024-03-09T12:00:00Z", 2), ["10 03:00-0400", "11 02:30-0400"]);
    let often = cron("0,15,30 2,3 * * *", "America/New_York");
    assert_eq!(
        next(&often, zone, "2024-03-10T05:00:00Z", 4),
        ["10 03:00-0400", "10 03:15-0400", "10 03:30-0400", "11 02:00-0400"]
    );
    let whole_day = cron("0 9 * * *", "Pacific/Apia");
    assert_eq!(
        next(&whole_day, Tz::Pacific__Apia, "2011-12-29T20:00:00Z", 2),
        ["31 00:00+1400", "31 09:00+1400"],
        "Samoa had no 30 December 2011"
    );
}

#[test]
fn a_time_of_day_that_is_there_twice_comes_the_first_time() {
    let daily = cron("30 1 * * *", "America/New_York");
    assert_eq!(next(&daily, Tz::America__New_York, "2024-11-02T12:00:00Z", 2), ["03 01:30-0400", "04 01:30-0500"]);
    let between = cron("0 1 * * *", "America/New_York");
    assert_eq!(
        next(&between, Tz::America__New_York, "2024-11-03T06:10:00Z", 1),
        ["04 01:00-0500"],
        "asked in the second pass"
    );
}

#[test]
fn every_real_hour_comes_once_whatever_the_clock_does() {
    let hourly = cron("0 * * * *", "Europe/Berlin");
    for day in ["2024-03-30T20:00:00Z", "2024-10-26T20:00:00Z"] {
        let mut at_ms = ms(day);
        for _ in 0..12 {
            let next_ms = hourly.next_after(at_ms).unwrap();
            assert_eq!(next_ms - at_ms, 3_600_000);
            at_ms = next_ms;
        }
    }
}

#[test]
fn periods_count_from_their_offset_and_nothing_is_asked_beyond_the_calendar() {
    let every = Timing::new(When::Every { period_ms: 1_000, offset_ms: 1_300 }, &mut Zones::default()).unwrap();
    assert_eq!(every.next_after(0), Some(300));
    assert_eq!(every.next_after(300), Some(1_300));
    assert_eq!(every.next_after(-701), Some(-700));
    assert_eq!(every.next_after(i64::MAX - 500), None);
    let daily = cron("@daily", "UTC");
    assert_eq!((daily.next_after(i64::MAX), daily.next_after(i64::MIN)), (None, None));
    assert_eq!(daily.next_after(ms("2024-01-01T00:00:00Z") - 1), Some(ms("2024-01-01T00:00:00Z")), "part of a second");
    assert_eq!(daily.next_after(ms("2024-01-01T00:00:00Z")), Some(ms("2024-01-02T00:00:00Z")));
}

#[test]
fn the_newest_times_of_a_long_gap_are_found_without_counting_all() {
    let every = Timing::new(When::Every { period_ms: 1, offset_ms: 0 }, &mut Zones::default()).unwrap();
    assert_eq!(every.newest(0, 1_000_000_000_000, 3), [999_999_999_997, 999_999_999_998, 999_999_999_999]);
    assert_eq!(every.newest(5, 8, 9), [6, 7]);
    assert_eq!(every.newest(5, 6, 9), [0i64; 0]);
    let yearly = cron("@yearly", "UTC");
    let (from, to) = (ms("2000-06-01T00:00:00Z"), ms("2024-06-01T00:00:00Z"));
    assert_eq!(yearly.newest(from, to, 2), [ms("2023-01-01T00:00:00Z"), ms("2024-01-01T00:00:00Z")]);
    assert_eq!(yearly.newest(from, to, 100).len(), 24);
}

/// An expression as the sets that it was made from.
struct Model {
    minutes: BTreeSet<u32>,
    hours: BTreeSet<u32>,
    /// `None`: any.
    days: Option<BTreeSet<u32>>,
    weekdays: Option<BTreeSet<u32>>,
}

impl Model {
    fn any(chance: &mut Chance) -> Model {
        let mut set = |from: u64, to: u64, count: u64| -> BTreeSet<u32> {
            let size = 1 + chance.below(count);
            (0..size).map(|_| (from + chance.below(to - from + 1)) as u32).collect()
        };
        let minutes = set(0, 59, 4);
        // Around the hours at which clocks change.
        let hours = set(0, 4, 3);
        let (days, weekdays) = (set(1, 31, 12), set(0, 6, 3));
        let all_hours = chance.below(3) == 0;
        Model {
            minutes,
            hours: if all_hours { (0..24).collect() } else { hours },
            days: (chance.below(3) == 0).then_some(days),
            weekdays: (chance.below(3) == 0).then_some(weekdays),
        }
    }

    fn text(&self) -> String {
        let list = |set: &BTreeSet<u32>| set.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let hours = if self.hours.len() == 24 { "*".to_owned() } else { list(&self.hours) };
        let [days, weekdays] =
            [&self.days, &self.weekdays].map(|set| set.as_ref().map_or_else(|| "*".to_owned(), list));
        format!("{} {hours} {days} * {weekdays}", list(&self.minutes))
    }

    fn fits(&self, local: NaiveDateTime) -> bool {
        let day = self.days.as_ref().map(|days| days.contains(&local.day()));
        let weekday = self.weekdays.as_ref().map(|days| days.contains(&local.weekday().num_days_from_sunday()));
        let is_day = match (day, weekday) {
            (Some(day), Some(weekday)) => day || weekday,
            (day, weekday) => day.unwrap_or(true) && weekday.unwrap_or(true),
        };
        is_day && self.minutes.contains(&local.minute()) && self.hours.contains(&local.hour())
    }

    /// Looks at every minute of a stretch of time, and at every minute of the calendar beside it.
    fn times(&self, zone: Tz, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<i64> {
        let minutes = (to - from).num_minutes();
        let readings: Vec<(DateTime<Utc>, NaiveDateTime)> = (0..=minutes)
            .map(|minute| from + Duration::minutes(minute))
            .map(|at| (at, at.with_timezone(&zone).naive_local()))
            .collect();
        let mut times = BTreeSet::new();
        if self.hours.len() == 24 {
            times.extend(readings.iter().filter(|(_, local)| self.fits(*local)).map(|(at, _)| at.timestamp_millis()));
            return times.into_iter().collect();
        }
        let mut local = readings[0].1;
        let last = readings[readings.len() - 1].1;
        while local < last {
            if self.fits(local) {
                let first = readings.iter().find(|(_, reading)| *reading == local);
                let found = first.or_else(|| readings.iter().find(|(_, reading)| *reading > local));
                times.extend(found.map(|(at, _)| at.timestamp_millis()));
            }
            local += Duration::minutes(1);
        }
        times.into_iter().collect()
    }
}

/// Year, month, day.
type Day = (i32, u32, u32);

/// Zones of both hemispheres; changes of an hour, of half an hour, at midnight, of a whole day, and none.
const ZONES: [(Tz, &[Day]); 10] = [
    (Tz::Europe__Berlin, &[(2023, 3, 26), (2023, 10, 29)]),
    (Tz::America__New_York, &[(2024, 3, 10), (2024, 11, 3)]),
    (Tz::America__Sao_Paulo, &[(2018, 2, 18), (2018, 11, 4)]),
    (Tz::Australia__Lord_Howe, &[(2023, 4, 2), (2023, 10, 1)]),
    (Tz::Pacific__Apia, &[(2011, 12, 30), (2012, 4, 1)]),
    (Tz::Asia__Tehran, &[(2021, 3, 22), (2021, 9, 22)]),
    (Tz::Africa__Casablanca, &[(2023, 3, 19), (2023, 4, 23)]),
    (Tz::America__St_Johns, &[(2010, 3, 14), (2010, 11, 7)]),
    (Tz::Asia__Kolkata, &[(2023, 3, 26)]),
    (Tz::Antarctica__Troll, &[(2023, 3, 26), (2023, 10, 29)]),
];

#[test]
fn ten_zones_agree_with_a_model_that_looks_at_every_minute() {
    let mut chance = Chance::new(7);
    let (mut compared, mut found) = (0, 0);
    for (zone, changes) in ZONES {
        for (year, month, day) in changes {
            let noon = NaiveDate::from_ymd_opt(*year, *month, *day).unwrap().and_hms_opt(12, 0, 0).unwrap().and_utc();
            let (from, to) = (noon - Duration::days(3), noon + Duration::days(3));
            for _ in 0..12 {
                let model = Model::any(&mut chance);
                let text = model.text();
                let timing = cron(&text, zone.name());
                // A day at each end is left to what lies beyond the stretch.
                let inner = (from + Duration::days(1)).timestamp_millis()..(to - Duration::days(1)).timestamp_millis();
                let expected: Vec<i64> =
                    model.times(zone, from, to).into_iter().filter(|at| inner.contains(at)).collect();
                let mut actual = Vec::new();
                let mut next_ms = timing.next_after(inner.start - 1);
                while let Some(at_ms) = next_ms.filter(|at_ms| inner.contains(at_ms)) {
                    actual.push(at_ms);
                    next_ms = timing.next_after(at_ms);
                }
                let readable = |times: &[i64]| -> Vec<String> {
                    times.iter().map(|at| zone.timestamp_millis_opt(*at).unwrap().to_string()).collect()
                };
                assert_eq!(readable(&actual), readable(&expected), "{text} in {zone} about {noon}");
                // The next time is the same from wherever between two times it is asked.
                for _ in 0..20 {
                    let asked_ms = inner.start + chance.below((inner.end - inner.start) as u64) as i64;
                    let answer = timing.next_after(asked_ms).filter(|at_ms| inner.contains(at_ms));
                    assert_eq!(answer, expected.iter().find(|at| **at > asked_ms).copied(), "{text} after {asked_ms}");
                }
                compared += 1;
                found += expected.len();
            }
        }
    }
    assert!(compared >= 200 && found > 2_000, "{compared} expressions, {found} times");
}
