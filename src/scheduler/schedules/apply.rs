//! What records do to schedules, live and after a restart alike.

use super::super::cron::Timing;
use super::super::engine::Engine;
use super::super::task::TaskIx;
use super::{Definition, Schedules};
use crate::record::{Occurrence, Outcome, ScheduleEntry, TaskNo, When, encode_schedule};

impl Schedules {
    /// Definitions came, changed and went.
    pub(in crate::scheduler) fn apply_set(&mut self, time_ms: i64, set: &[ScheduleEntry<'_>], removed: &[&str]) {
        for name in removed {
            if let Some(ix) = self.names.get(*name).copied() {
                if let Some(schedule) = self.get_mut(ix) {
                    schedule.definition = None;
                }
                self.due.insert(ix);
                self.forget_if_over(ix);
            }
        }
        for entry in set {
            self.define(time_ms, entry);
        }
    }

    /// Of a schedule that is there already, a new plan begins now; the same plan goes on where it was.
    fn define(&mut self, time_ms: i64, entry: &ScheduleEntry<'_>) {
        let ix = self.find_or_add(entry.name);
        let timing = Timing::new(entry.spec.when, &mut self.zones);
        let mut bytes = Vec::new();
        encode_schedule(&mut bytes, &entry.spec);
        let definition = Definition { bytes: bytes.into(), is_declared: entry.is_declared, timing };
        let schedule = self.get_mut(ix).expect("it was found or added");
        match schedule.definition.replace(definition) {
            None => {
                (schedule.past_ms, schedule.fired, schedule.last) = (time_ms, 0, None);
                schedule.is_paused = false;
            }
            Some(before) if !is_same_plan(before.spec().when, entry.spec.when) => {
                schedule.past_ms = schedule.past_ms.max(time_ms);
            }
            Some(_) => {}
        }
        (schedule.must_pause, schedule.last_outcome) = (None, None);
        self.due.insert(ix);
    }

    /// A time passed without a task.
    pub(in crate::scheduler) fn apply_moved(&mut self, name: &str, past_ms: i64) {
        let ix = self.find_or_add(name);
        let schedule = self.get_mut(ix).expect("it was found or added");
        schedule.past_ms = schedule.past_ms.max(past_ms);
        self.forget_if_over(ix);
    }

    /// Somebody paused or resumed it, or it paused itself.
    pub(in crate::scheduler) fn apply_paused(&mut self, name: &str, is_paused: bool) {
        let ix = self.find_or_add(name);
        let schedule = self.get_mut(ix).expect("it was found or added");
        (schedule.is_paused, schedule.must_pause) = (is_paused, None);
        if !is_paused {
            schedule.last_outcome = None;
        }
        self.due.insert(ix);
        self.forget_if_over(ix);
    }

    fn submitted(&mut self, task: TaskNo, of: &Occurrence<'_>) {
        let ix = self.find_or_add(of.schedule);
        let schedule = self.get_mut(ix).expect("it was found or added");
        schedule.live.insert(task);
        if of.is_regular {
            schedule.past_ms = schedule.past_ms.max(of.at_ms);
            schedule.fired += 1;
            schedule.last = Some((task, of.at_ms));
        }
    }

    fn ended(&mut self, task: TaskNo, name: &str, outcome: Outcome) {
        let ix = self.find_or_add(name);
        let schedule = self.get_mut(ix).expect("it was found or added");
        schedule.live.remove(&task);
        schedule.last_outcome = Some(outcome);
        let pauses = schedule.definition.as_ref().is_some_and(|definition| definition.spec().pauses_on_failure);
        if pauses && matches!(outcome, Outcome::Failed | Outcome::Dead) && !schedule.is_paused {
            schedule.must_pause = Some(task);
            self.due.insert(ix);
        }
        self.forget_if_over(ix);
    }
}

impl Engine {
    /// A task of a schedule exists, or lives again.
    pub(in crate::scheduler) fn occurrence_lives(&mut self, ix: TaskIx, is_new: bool) {
        let task = &self.tasks[ix];
        let Some(of) = task.more.as_ref().and_then(|more| more.occurrence.as_ref()) else { return };
        let of = Occurrence { schedule: &of.schedule, at_ms: of.at_ms, is_regular: of.is_regular && is_new };
        self.schedules.submitted(task.number, &of);
    }

    /// A task of a schedule is over.
    pub(in crate::scheduler) fn occurrence_over(&mut self, ix: TaskIx, outcome: Outcome) {
        let task = &self.tasks[ix];
        if let Some(of) = task.more.as_ref().and_then(|more| more.occurrence.as_ref()) {
            self.schedules.ended(task.number, &of.schedule, outcome);
        }
    }
}

fn is_same_plan(one: When<'_>, other: When<'_>) -> bool {
    one == other
}
