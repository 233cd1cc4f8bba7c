//! Makes the tasks of the times that have come.

use super::super::dedupe::Dedupe;
use super::super::engine::Engine;
use super::super::output::{Answer, Refusal};
use super::super::task::TaskIx;
use super::super::timers::Timer;
use super::{ScheduleEvent, ScheduleIx, ScheduleSkip};
use crate::record::{Launch, Occurrence, ScheduleSpec, TaskRecord, TaskSpec, decode_schedule};
use jiff::Timestamp;
use std::sync::Arc;

impl Engine {
    /// Looks at every schedule that something happened to.
    pub(in crate::scheduler) fn tend_schedules(&mut self) {
        if self.schedules.are_held {
            // All are looked at when they no longer are.
            self.schedules.due.clear();
        }
        while let Some(ix) = self.schedules.due.pop_first() {
            self.tend(ix);
        }
    }

    fn tend(&mut self, ix: ScheduleIx) {
        self.schedules.starved.remove(&ix);
        let Some(schedule) = self.schedules.get_mut(ix) else { return };
        let mut timer = std::mem::take(&mut schedule.timer);
        let must_pause = schedule.must_pause;
        self.timers.clear(&mut timer);
        if let Some(task) = must_pause {
            self.pause_itself(ix, task);
        }
        let is_draining = self.is_draining;
        let Some(schedule) = self.schedules.get(ix).filter(|schedule| !is_draining && !schedule.is_paused) else {
            return;
        };
        let due = schedule.due_now(self.now_ms);
        if let Some((first_ms, last_ms)) = due.missed {
            let name = Arc::clone(&schedule.name);
            if due.times.is_empty() {
                self.move_on(&name, last_ms);
            }
            self.schedules.events.push_back(ScheduleEvent::Missed { schedule: name, first_ms, last_ms });
        }
        for at_ms in due.times {
            if !self.fire_at(ix, at_ms) {
                return;
            }
        }
        self.keep_overlap(ix);
        self.arm(ix);
    }

    fn arm(&mut self, ix: ScheduleIx) {
        let Some(schedule) = self.schedules.get(ix) else { return };
        let Some((definition, next_ms)) = schedule.definition.as_ref().zip(schedule.next_ms()) else { return };
        let due_ms = schedule.due_ms(&definition.spec(), next_ms);
        let timer = self.timers.set(due_ms, Timer::Schedule(ix));
        if let Some(schedule) = self.schedules.get_mut(ix) {
            schedule.timer = timer;
        }
    }

    fn pause_itself(&mut self, ix: ScheduleIx, task: crate::record::TaskNo) {
        let Some(schedule) = self.schedules.get(ix) else { return };
        let name = Arc::clone(&schedule.name);
        self.record(&TaskRecord::SchedulePaused { name: &name, time_ms: self.now_ms, is_paused: true });
        self.schedules.apply_paused(&name, true);
        let view = self.task(task);
        let run = view.and_then(|view| view.launch).map(Box::from);
        self.schedules.events.push_back(ScheduleEvent::Paused { schedule: name, task, run });
    }

    fn move_on(&mut self, name: &str, past_ms: i64) {
        self.record(&TaskRecord::ScheduleMoved { name, past_ms });
        self.schedules.apply_moved(name, past_ms);
    }

    /// `false`: its task waits for room.
    fn fire_at(&mut self, ix: ScheduleIx, at_ms: i64) -> bool {
        let Some(schedule) = self.schedules.get(ix) else { return true };
        let Some(definition) = &schedule.definition else { return true };
        let (bytes, name) = (Arc::clone(&definition.bytes), Arc::clone(&schedule.name));
        let spec = decode_schedule(&bytes).expect("a definition is kept as it was encoded");
        if spec.limit.is_some_and(|limit| schedule.fired >= limit) {
            return true;
        }
        let names = self.names_of(&spec, &name, at_ms);
        let mut task = occurrence_of(&spec, &name, at_ms, true, &names);
        match self.make_occurrence(ix, &spec, &mut task) {
            Ok(true) => {}
            Ok(false) => return false,
            Err(why) => {
                self.move_on(&name, at_ms);
                let event = match why {
                    Unmade::Skipped(why) => ScheduleEvent::Skipped { schedule: name, at_ms, why },
                    Unmade::Refused(refusal) => {
                        self.totals.refused += 1;
                        ScheduleEvent::Refused { schedule: name, at_ms, refusal }
                    }
                };
                self.schedules.events.push_back(event);
            }
        }
        true
    }

    fn make_occurrence(
        &mut self,
        ix: ScheduleIx,
        spec: &ScheduleSpec<'_>,
        task: &mut TaskSpec<'_>,
    ) -> Result<bool, Unmade> {
        match self.key_owner(task) {
            KeyOwner::Itself => return Err(Unmade::Skipped(ScheduleSkip::Exists)),
            // It is known by its schedule and time all the same.
            KeyOwner::Stranger => task.key = None,
            KeyOwner::Nobody => {}
        }
        task.after = self.overlap_of(ix, spec.overlap).map_err(Unmade::Skipped)?;
        let queue = self.find_queue(task.queue).map_err(Unmade::Refused)?;
        let waits_in_line = self.waiting.is_line(queue, task.class);
        match self.submit(task, Dedupe::default(), waits_in_line, None) {
            Ok(Some(Answer::New(_) | Answer::Existing(_) | Answer::Changed(_))) => {
                self.keep_overlap(ix);
                Ok(true)
            }
            Ok(None) => {
                self.schedules.starved.insert(ix, (queue, task.class));
                Ok(false)
            }
            Err(refusal) => Err(Unmade::Refused(refusal)),
        }
    }

    /// Who has the key of an occurrence.
    pub(super) fn key_owner(&self, task: &TaskSpec<'_>) -> KeyOwner {
        let Some(owner) = task.key.and_then(|key| self.keys.get(key)).map(|ix| &self.tasks[*ix]) else {
            return KeyOwner::Nobody;
        };
        let own = owner.more.as_ref().and_then(|more| more.occurrence.as_ref());
        let is_itself =
            own.zip(task.occurrence).is_some_and(|(own, new)| *own.schedule == *new.schedule && own.at_ms == new.at_ms);
        match (is_itself, owner.is_ended()) {
            (true, _) => KeyOwner::Itself,
            (false, false) => KeyOwner::Stranger,
            (false, true) => KeyOwner::Nobody,
        }
    }

    /// Tries those again whose tasks wait for room. `true`: one found it.
    pub(in crate::scheduler) fn feed_starved(&mut self) -> bool {
        if self.schedules.starved.is_empty() {
            return false;
        }
        let fed = self.schedules.starved.iter().filter(|(_, (queue, class))| {
            !self.waiting.is_line(*queue, *class) && self.broken_bound(&[(*queue, *class, 1)], None).is_none()
        });
        let fed: Vec<ScheduleIx> = fed.map(|(ix, _)| *ix).collect();
        self.schedules.due.extend(&fed);
        self.tend_schedules();
        !fed.is_empty()
    }
}

/// Why a time passes without a task.
enum Unmade {
    Skipped(ScheduleSkip),
    Refused(Refusal),
}

/// Who has the key of an occurrence.
pub(super) enum KeyOwner {
    Nobody,
    /// The task of this very time, over or not.
    Itself,
    /// A task that is not over and has nothing to do with it.
    Stranger,
}

/// What the task of a time, and the run that it stands for, are known by.
pub(super) struct Names {
    pub(super) key: String,
    id: String,
    key_root: [u8; 16],
}

impl Engine {
    pub(super) fn names_of(&mut self, spec: &ScheduleSpec<'_>, name: &str, at_ms: i64) -> Names {
        let has_run = spec.template.launch.is_some();
        let id = if has_run { run_id_of(spec, name, at_ms) } else { String::new() };
        let key_root = if has_run { self.chance.bytes_for(&id) } else { [0; 16] };
        Names { key: occurrence_key(spec, name, at_ms), id, key_root }
    }

    /// The run of a time could not be made: there was one of its id.
    pub(in crate::scheduler) fn occurrence_refused(&mut self, ix: TaskIx) {
        let of = self.tasks[ix].more.as_ref().and_then(|more| more.occurrence.as_ref());
        if let Some(of) = of.filter(|of| of.is_regular) {
            let (schedule, at_ms) = (Arc::from(&*of.schedule), of.at_ms);
            self.schedules.events.push_back(ScheduleEvent::Skipped { schedule, at_ms, why: ScheduleSkip::Exists });
        }
    }
}

/// The key of an occurrence: the schedule's name, or the key of its template, and the time in UTC.
fn occurrence_key(spec: &ScheduleSpec<'_>, name: &str, at_ms: i64) -> String {
    format!("{}@{}", spec.template.key.unwrap_or(name), time_text(at_ms))
}

/// The id of the run of a time.
pub(super) fn run_id_of(spec: &ScheduleSpec<'_>, name: &str, at_ms: i64) -> String {
    match spec.template.launch {
        Some(Launch { id, .. }) if !id.is_empty() => id.replace(TIME, &time_text(at_ms)),
        _ => occurrence_key(spec, name, at_ms),
    }
}

/// Stands for the time in what the ids of runs are made of.
pub(super) const TIME: &str = "{time}";

fn time_text(at_ms: i64) -> String {
    Timestamp::from_millisecond(at_ms).map_or_else(|_| at_ms.to_string(), |time| time.to_string())
}

/// The task of a time.
pub(super) fn occurrence_of<'a>(
    spec: &ScheduleSpec<'a>,
    name: &'a str,
    at_ms: i64,
    is_regular: bool,
    names: &'a Names,
) -> TaskSpec<'a> {
    let after = |length_ms: Option<u32>| length_ms.map(|ms| at_ms.saturating_add(i64::from(ms)));
    TaskSpec {
        key: Some(&names.key),
        deadline_ms: after(spec.deadline_after_ms),
        expires_ms: after(spec.expires_after_ms),
        occurrence: Some(Occurrence { schedule: name, at_ms, is_regular }),
        launch: spec.template.launch.map(|launch| Launch { id: &names.id, key_root: names.key_root, ..launch }),
        ..spec.template.clone()
    }
}
