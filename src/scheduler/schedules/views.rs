//! What schedules show.

use super::super::cron::{Timing, TimingError, Zones};
use super::super::engine::Engine;
use super::fire::run_id_of;
use super::{Schedule, ScheduleError, ScheduleProblem};
use crate::record::{ScheduleSpec, TaskNo, When};

/// A schedule, as it is now. Times are in ms since 1970.
#[derive(Clone, Debug)]
pub struct ScheduleView<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its definition.
    pub spec: ScheduleSpec<'a>,
    /// Whether code declares it.
    pub is_declared: bool,
    /// Whether its times pass without tasks.
    pub is_paused: bool,
    /// Its next time. `None`: it is paused, or has none.
    pub next: Option<FireTime>,
    /// The newest regular task, and its time.
    pub last: Option<(TaskNo, i64)>,
    /// The id of the run that it stands for.
    pub last_run: Option<String>,
    /// Regular tasks so far.
    pub fired: u64,
    /// Its tasks that are not over.
    pub live: usize,
    /// Why its stored definition says no times in this release.
    pub broken: Option<&'a TimingError>,
}

/// A time of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FireTime {
    /// What it stands for, in ms since 1970.
    pub at_ms: i64,
    /// When its task is made: later than that by the jitter.
    pub due_ms: i64,
}

impl Engine {
    /// All schedules, by name.
    pub fn schedules(&self) -> impl Iterator<Item = ScheduleView<'_>> {
        self.schedules.names.keys().filter_map(|name| self.schedule(name))
    }

    /// A schedule.
    #[must_use]
    pub fn schedule(&self, name: &str) -> Option<ScheduleView<'_>> {
        let (_, schedule) = self.schedules.find(name)?;
        let definition = schedule.definition.as_ref()?;
        let spec = definition.spec();
        let next = schedule.next_ms().filter(|_| !schedule.is_paused);
        Some(ScheduleView {
            name: &schedule.name,
            is_declared: definition.is_declared,
            is_paused: schedule.is_paused,
            next: next.map(|at_ms| schedule.fire_time(&spec, at_ms)),
            last: schedule.last,
            last_run: schedule.last.and_then(|last| self.run_of_occurrence(&spec, &schedule.name, last)),
            fired: schedule.fired,
            live: schedule.live.len(),
            broken: definition.timing.as_ref().err(),
            spec,
        })
    }

    /// What it is called now, if the task is not remembered.
    fn run_of_occurrence(&self, spec: &ScheduleSpec<'_>, name: &str, (task, at_ms): (TaskNo, i64)) -> Option<String> {
        match self.task(task) {
            Some(view) => view.launch.map(str::to_owned),
            None => spec.template.launch.map(|_| run_id_of(spec, name, at_ms)),
        }
    }

    /// The next times of a schedule from now on, at most so many, as if it were not paused.
    pub fn preview(&self, now_ms: i64, name: &str, count: usize) -> Result<Vec<FireTime>, ScheduleError> {
        let unknown = || ScheduleError { schedule: name.into(), problem: ScheduleProblem::Unknown };
        let (_, schedule) = self.schedules.find(name).ok_or_else(unknown)?;
        let definition = schedule.definition.as_ref().ok_or_else(unknown)?;
        let spec = definition.spec();
        let left = spec.limit.map_or(u64::MAX, |limit| limit.saturating_sub(schedule.fired));
        let first_ms = schedule.next_after(schedule.past_ms.max(now_ms.saturating_sub(1)));
        let times = std::iter::successors(first_ms, |at_ms| schedule.next_after(*at_ms));
        let count = count.min(usize::try_from(left).unwrap_or(usize::MAX));
        Ok(times.take(count).map(|at_ms| schedule.fire_time(&spec, at_ms)).collect())
    }
}

impl Schedule {
    fn fire_time(&self, spec: &ScheduleSpec<'_>, at_ms: i64) -> FireTime {
        FireTime { at_ms, due_ms: self.due_ms(spec, at_ms) }
    }
}

/// The times of a plan that belongs to no schedule, after a time, at most so many, in ms since 1970.
pub fn times_of(when: When<'_>, after_ms: i64, count: usize) -> Result<Vec<i64>, TimingError> {
    let timing = Timing::new(when, &mut Zones::default())?;
    let first_ms = timing.next_after(after_ms);
    Ok(std::iter::successors(first_ms, |at_ms| timing.next_after(*at_ms)).take(count).collect())
}
