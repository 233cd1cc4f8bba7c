//! Reads cron expressions: five fields, or six with the second first; names, ranges, steps, lists, `L`, `W`, `#`, and the
//! `@daily` kind.

use super::calendar::{DayRule, Expression, WeekdayRule};
use super::error::{CronError, CronField, CronProblem};
use jiff::civil;

const MACROS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

const FIELDS: [CronField; 6] = [
    CronField::Second,
    CronField::Minute,
    CronField::Hour,
    CronField::DayOfMonth,
    CronField::Month,
    CronField::DayOfWeek,
];

const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// What one field means, and for days what depends on the month.
#[derive(Default)]
struct Meaning {
    set: u64,
    days: Vec<DayRule>,
    weekdays: Vec<WeekdayRule>,
}

/// Understands an expression, or says what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Expression, CronError> {
    let whole = |part: &str, problem| error(text, text, part, None, problem);
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(whole("", CronProblem::Empty));
    }
    if trimmed.starts_with('@') {
        let known = MACROS.iter().find(|(name, _)| name.eq_ignore_ascii_case(trimmed));
        return known.map_or_else(|| Err(whole(trimmed, CronProblem::UnknownMacro)), |(_, meaning)| parse(meaning));
    }
    let parts: Vec<&str> = trimmed.split_ascii_whitespace().collect();
    let skipped = match parts.len() {
        5 => 1,
        6 => 0,
        count => return Err(whole(trimmed, CronProblem::FieldCount(count))),
    };
    let mut meanings: Vec<Meaning> = Vec::with_capacity(6);
    if skipped == 1 {
        meanings.push(Meaning { set: 1, ..Meaning::default() });
    }
    for (field, part) in FIELDS[skipped..].iter().zip(&parts) {
        meanings.push(read_field(text, *field, part)?);
    }
    let names_days = |part: &str| !part.starts_with(['*', '?']);
    let is_either_day = names_days(parts[3 - skipped]) && names_days(parts[5 - skipped]);
    let [seconds, minutes, hours, days, months, weekdays]: [Meaning; 6] =
        meanings.try_into().unwrap_or_else(|_| unreachable!("six fields were read"));
    let expression = Expression {
        seconds: seconds.set,
        minutes: minutes.set,
        hours: hours.set,
        days: days.set,
        months: months.set,
        weekdays: weekdays.set,
        day_rules: days.days,
        weekday_rules: weekdays.weekdays,
        is_either_day,
    };
    if expression.at_or_after(civil::date(2000, 1, 1).at(0, 0, 0, 0)).is_none() {
        return Err(whole(trimmed, CronProblem::Never));
    }
    Ok(expression)
}

fn read_field(text: &str, field: CronField, whole: &str) -> Result<Meaning, CronError> {
    let mut meaning = Meaning::default();
    for part in whole.split(',') {
        read_part(field, part, &mut meaning).map_err(|problem| error(text, part, part, Some(field), problem))?;
    }
    Ok(meaning)
}

/// Where a part stands is where its text lies within the expression.
fn error(text: &str, at: &str, part: &str, field: Option<CronField>, problem: CronProblem) -> CronError {
    let offset = (at.as_ptr() as usize).saturating_sub(text.as_ptr() as usize).min(text.len());
    let position = text.get(..offset).map_or(0, |before| before.chars().count()) + 1;
    CronError { expression: text.into(), position, field, part: part.into(), problem }
}

fn read_part(field: CronField, part: &str, meaning: &mut Meaning) -> Result<(), CronProblem> {
    let is_day = matches!(field, CronField::DayOfMonth | CronField::DayOfWeek);
    if is_day && read_rule(field, part, meaning)? {
        return Ok(());
    }
    let (least, most) = field.range();
    let (base, step) = match part.split_once('/') {
        Some((base, step)) => (base, Some(step)),
        None => (part, None),
    };
    let (from, to) = match base.split_once('-') {
        _ if base == "*" || (base == "?" && is_day && step.is_none()) => (least, most),
        Some((from, to)) => {
            let (from, mut to) = (value(field, from)?, value(field, to)?);
            if field == CronField::DayOfWeek && to == 0 && from > 0 {
                to = 7;
            }
            (from, to)
        }
        None => {
            let from = value(field, base)?;
            (from, if step.is_some() { most } else { from })
        }
    };
    if from > to {
        return Err(CronProblem::Backwards);
    }
    let step_max = most - least;
    let step = match step {
        None => 1,
        Some(step) => {
            number(step).filter(|step| (1..=step_max).contains(step)).ok_or(CronProblem::Step { max: step_max })?
        }
    };
    // `*/2` of weekdays counts from Sunday and does not meet it again as 7.
    let to = if field == CronField::DayOfWeek && base == "*" { 6 } else { to };
    for of in (from..=to).step_by(step as usize) {
        meaning.set |= 1 << if field == CronField::DayOfWeek { of % 7 } else { of };
    }
    Ok(())
}

/// Reads what depends on the month. `false`: it is something else.
fn read_rule(field: CronField, part: &str, meaning: &mut Meaning) -> Result<bool, CronProblem> {
    let upper = part.to_ascii_uppercase();
    if field == CronField::DayOfWeek {
        if let Some((weekday, nth)) = upper.split_once('#') {
            let nth = number(nth).filter(|nth| (1..=5).contains(nth)).ok_or(CronProblem::Nth)?;
            meaning.weekdays.push(WeekdayRule::Nth(value(field, weekday)? % 7, nth));
        } else if let Some(weekday) = upper.strip_suffix('L').filter(|weekday| !weekday.is_empty()) {
            meaning.weekdays.push(WeekdayRule::Last(value(field, weekday)? % 7));
        } else {
            return Ok(false);
        }
        return Ok(true);
    }
    if upper == "L" {
        meaning.days.push(DayRule::BeforeLast(0));
    } else if upper == "LW" {
        meaning.days.push(DayRule::LastWeekday);
    } else if let Some(before) = upper.strip_prefix("L-") {
        let before = number(before).ok_or(CronProblem::NotAValue)?;
        meaning.days.push(DayRule::BeforeLast(Some(before).filter(|days| *days <= 30).ok_or(CronProblem::OutOfRange)?));
    } else if let Some(day) = upper.strip_suffix('W') {
        meaning.days.push(DayRule::NearestWeekday(value(field, day)?));
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn value(field: CronField, text: &str) -> Result<u32, CronProblem> {
    let by_name = |names: &[&str], first| {
        names.iter().position(|name| name.eq_ignore_ascii_case(text)).map(|at| at as u32 + first)
    };
    let named = match field {
        CronField::Month => by_name(&MONTHS, 1),
        CronField::DayOfWeek => by_name(&WEEKDAYS, 0),
        CronField::Second | CronField::Minute | CronField::Hour | CronField::DayOfMonth => None,
    };
    let (least, most) = field.range();
    match named.or_else(|| number(text)) {
        None => Err(CronProblem::NotAValue),
        Some(value) if (least..=most).contains(&value) => Ok(value),
        Some(_) => Err(CronProblem::OutOfRange),
    }
}

/// Digits only: no sign, nothing around them.
fn number(text: &str) -> Option<u32> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits.then(|| text.parse().unwrap_or(u32::MAX))
}
