//! What is wrong with a cron expression: in which field, which part of it, and what is allowed there.

use std::fmt;

/// A field of a cron expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say what they are")]
pub enum CronField {
    Second,
    Minute,
    Hour,
    DayOfMonth,
    Month,
    DayOfWeek,
}

impl CronField {
    pub(super) fn name(self) -> &'static str {
        match self {
            CronField::Second => "second",
            CronField::Minute => "minute",
            CronField::Hour => "hour",
            CronField::DayOfMonth => "day of month",
            CronField::Month => "month",
            CronField::DayOfWeek => "day of week",
        }
    }

    /// Least and greatest number.
    pub(super) fn range(self) -> (u32, u32) {
        match self {
            CronField::Second | CronField::Minute => (0, 59),
            CronField::Hour => (0, 23),
            CronField::DayOfMonth => (1, 31),
            CronField::Month => (1, 12),
            CronField::DayOfWeek => (0, 7),
        }
    }

    /// What a whole part of the field may look like.
    fn allowed(self) -> &'static str {
        match self {
            CronField::Second | CronField::Minute => "0 to 59, *, a-b, */n, a-b/n",
            CronField::Hour => "0 to 23, *, a-b, */n, a-b/n",
            CronField::DayOfMonth => "1 to 31, *, ?, a-b, */n, a-b/n, L, L-n, nW, LW",
            CronField::Month => "1 to 12 or JAN to DEC, *, a-b, */n, a-b/n",
            CronField::DayOfWeek => "0 to 7 or SUN to SAT (0 and 7 are Sunday), *, ?, a-b, */n, a-b/n, d#n, dL",
        }
    }
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the text of each says what it is")]
pub enum CronProblem {
    Empty,
    FieldCount(usize),
    UnknownMacro,
    NotAValue,
    OutOfRange,
    Backwards,
    Step { max: u32 },
    Nth,
    Never,
}

/// A cron expression that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronError {
    /// All of it.
    pub expression: Box<str>,
    /// Where the mistake begins, in characters from 1.
    pub position: usize,
    /// Its field, if it is in one.
    pub field: Option<CronField>,
    /// The part that is wrong.
    pub part: Box<str>,
    /// What is wrong with it.
    pub problem: CronProblem,
}

impl fmt::Display for CronError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cron \"{}\": ", self.expression)?;
        if let Some(field) = self.field {
            write!(formatter, "{} at position {}: ", field.name(), self.position)?;
        }
        let (part, field) = (&self.part, self.field.unwrap_or(CronField::Minute));
        let (least, most) = field.range();
        match self.problem {
            CronProblem::Empty => formatter.write_str("it is empty; \"0 3 * * *\" is every day at 3:00"),
            CronProblem::FieldCount(count) => write!(
                formatter,
                "it has {count} fields; it needs 5 (minute, hour, day of month, month, day of week), or 6 with the second first"
            ),
            CronProblem::UnknownMacro => write!(
                formatter,
                "\"{part}\" is not known; there are @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly, \
                 and `every` for fixed distances"
            ),
            CronProblem::NotAValue => {
                write!(formatter, "\"{part}\" is not understood; allowed are {}, and lists of them", field.allowed())
            }
            CronProblem::OutOfRange => write!(formatter, "\"{part}\" is out of range; {least} to {most} are allowed"),
            CronProblem::Backwards => {
                write!(formatter, "\"{part}\" runs backwards; write two ranges, like a-{most},{least}-b")
            }
            CronProblem::Step { max } => write!(formatter, "the step of \"{part}\" must be from 1 to {max}"),
            CronProblem::Nth => write!(formatter, "\"{part}\": a month has a 1st to a 5th of a weekday, so #1 to #5"),
            CronProblem::Never => formatter.write_str(
                "no date fits: none of its months has such a day; look at day of month, month and day of week together",
            ),
        }
    }
}

impl std::error::Error for CronError {}
