//! Why something asked of a schedule is refused.

use super::super::cron::TimingError;
use super::super::output::Refusal;
use std::fmt;

/// Why something asked of a schedule is refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleError {
    /// Its name.
    pub schedule: Box<str>,
    /// What is wrong.
    pub problem: ScheduleProblem,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the text of each says what it is")]
pub enum ScheduleProblem {
    Unknown,
    Timing(TimingError),
    /// What is wrong with the definition.
    Invalid(&'static str),
    /// Why its task would be refused, or was.
    Task(Refusal),
    /// More than can be backfilled at once.
    TooManyTimes(u32),
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "schedule \"{}\": ", self.schedule)?;
        match &self.problem {
            ScheduleProblem::Unknown => formatter.write_str("there is none of that name"),
            ScheduleProblem::Timing(error) => error.fmt(formatter),
            ScheduleProblem::Invalid(what) => formatter.write_str(what),
            ScheduleProblem::Task(refusal) => refusal.fmt(formatter),
            ScheduleProblem::TooManyTimes(most) => {
                write!(formatter, "the range holds more than {most} times; backfill it in parts")
            }
        }
    }
}

impl std::error::Error for ScheduleError {}
