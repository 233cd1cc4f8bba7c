//! The text of answers about schedules, and of what a tick tells of them.

use super::events::{EventKind, Events, fields};
use super::tasks::task_id;
use crate::record::{CatchUp, TaskNo, When};
use crate::scheduler::{ScheduleEvent, ScheduleSkip, ScheduleView};

/// What the notice of a schedule says in place of what became of a task.
const SCHEDULE: u32 = 3;

/// A schedule: name, type, queue, declared, paused, next time, when its task is made, last time, its task or the
/// id of its run, how many so far, those that are not over, cron, zone, period, overlap, catch-up, why it says no times, whether it
/// starts workflows.
pub(super) fn schedule_row(schedule: &ScheduleView<'_>) -> String {
    let spec = &schedule.spec;
    let (cron, zone, period) = match spec.when {
        When::Cron { expression, zone } => (expression, zone, String::new()),
        When::Every { period_ms, .. } => ("", "", period_ms.to_string()),
    };
    let last = schedule.last_run.clone().or_else(|| schedule.last.map(|(task, _)| task_id(task)));
    fields(&[
        schedule.name,
        spec.template.kind,
        spec.template.queue,
        flag(schedule.is_declared),
        flag(schedule.is_paused),
        &optional(schedule.next.map(|next| next.at_ms)),
        &optional(schedule.next.map(|next| next.due_ms)),
        &optional(schedule.last.map(|(_, at_ms)| at_ms)),
        &last.unwrap_or_default(),
        &schedule.fired.to_string(),
        &schedule.live.to_string(),
        cron,
        zone,
        &period,
        &spec.overlap.code().to_string(),
        &match spec.catch_up {
            CatchUp::None => "none".to_owned(),
            CatchUp::Last => "last".to_owned(),
            CatchUp::UpTo(count) => count.to_string(),
        },
        &schedule.broken.map(ToString::to_string).unwrap_or_default(),
        flag(spec.template.launch.is_some()),
    ])
}

/// What a tick tells of a schedule: its name, what happened, a time, another one, why, a task, the id of its run.
pub(super) fn translate_schedule(event: &ScheduleEvent, events: &mut Events) {
    let (schedule, what, first_ms, last_ms, why, task): (_, _, _, _, String, Option<TaskNo>) = match event {
        ScheduleEvent::Skipped { schedule, at_ms, why } => {
            (schedule, "skipped", Some(*at_ms), None, skip_text(*why).into(), None)
        }
        ScheduleEvent::Missed { schedule, first_ms, last_ms } => {
            (schedule, "missed", Some(*first_ms), Some(*last_ms), String::new(), None)
        }
        ScheduleEvent::Refused { schedule, at_ms, refusal } => {
            (schedule, "refused", Some(*at_ms), None, refusal.to_string(), None)
        }
        ScheduleEvent::Paused { schedule, task, .. } => (schedule, "paused", None, None, String::new(), Some(*task)),
        ScheduleEvent::Broken { schedule, error } => (schedule, "broken", None, None, error.to_string(), None),
    };
    let (first, last) = (optional(first_ms), optional(last_ms));
    let run = if let ScheduleEvent::Paused { run: Some(id), .. } = event { &**id } else { "" };
    let text = fields(&[schedule, what, &first, &last, &why, &task.map(task_id).unwrap_or_default(), run]);
    events.push(EventKind::TaskNotice, SCHEDULE, 0, text);
}

fn skip_text(why: ScheduleSkip) -> &'static str {
    match why {
        ScheduleSkip::Overlap => "overlap",
        ScheduleSkip::AfterFailure => "afterFailure",
        ScheduleSkip::TooManyWait => "tooManyWait",
        ScheduleSkip::Exists => "exists",
    }
}

fn flag(is_so: bool) -> &'static str {
    if is_so { "1" } else { "0" }
}

fn optional(time_ms: Option<i64>) -> String {
    time_ms.map(|ms| ms.to_string()).unwrap_or_default()
}
