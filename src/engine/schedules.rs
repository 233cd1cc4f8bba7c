//! Schedules: what clients ask of them.

use super::config::Config;
use super::enqueue::RUN_FIELDS_BYTES;
use super::error::{EngineError, ErrorCode, bad_input};
use super::events::{ROW, fields};
use super::foreign::ForeignEngine;
use super::schedule_rows::schedule_row;
use super::tasks::{check_spec, fields_bytes, task_id, verb_code};
use crate::machine::{Limits, OBJECT_PREFIX};
use crate::record::{ScheduleSpec, TaskNo, When, decode_schedule};
use crate::runtime::{TaskCell, TaskEvent, TaskWork, Token, specs_of};
use crate::scheduler::{Refusal, ScheduleError, ScheduleProblem, TIMES_MAX, times_of};

/// Previews show so many times at most.
const PREVIEW_MAX: usize = 10_000;

impl ForeignEngine {
    /// Takes the declared schedules, where an open was to wait for this; `token` is acknowledged once that is durable.
    pub fn declare_schedules(&mut self, token: Token) -> Result<(), EngineError> {
        let declared = self.config.schedules.clone().unwrap_or_default();
        self.of_schedules(token, |cell, work| {
            cell.engine.handle_reconcile(work.now_ms, &specs_of(&declared)).map(|_| String::new())
        })
    }

    /// Makes a schedule or changes it; `token` is acknowledged once that is durable.
    pub fn set_schedule(&mut self, token: Token, name: &str, spec: &ScheduleSpec<'_>) -> Result<(), EngineError> {
        self.check_open()?;
        self.group.admits()?;
        check_schedule(&self.config.limits().map_err(bad_input)?, name, spec)?;
        self.group.with_tasks(|cell, work| {
            let event = match cell.engine.handle_schedule(work.now_ms, name, spec) {
                Ok(()) => TaskEvent::Ack(token),
                Err(error) => refused(token, &error),
            };
            cell.tell(work, token, event);
        });
        Ok(())
    }

    /// Ends a schedule; `token` gets whether there was one.
    pub fn remove_schedule(&mut self, token: Token, name: &str) -> Result<(), EngineError> {
        self.of_schedules(token, |cell, work| {
            Ok(u8::from(cell.engine.handle_schedule_removed(work.now_ms, name)).to_string())
        })
    }

    /// Pauses a schedule or lets it go on; `token` gets an empty text once that is durable.
    pub fn pause_schedule(&mut self, token: Token, name: &str, is_paused: bool) -> Result<(), EngineError> {
        self.of_schedules(token, |cell, work| {
            cell.engine.handle_schedule_paused(work.now_ms, name, is_paused).map(|()| String::new())
        })
    }

    /// Makes the task of a schedule now, beside its plan; `token` gets what became of it, as from
    /// [`ForeignEngine::enqueue`].
    pub fn trigger_schedule(&mut self, token: Token, name: &str) -> Result<(), EngineError> {
        self.check_open()?;
        self.group.admits()?;
        self.group.with_tasks(|cell, work| {
            if cell.engine.schedule(name).is_none() {
                return cell.tell(work, token, refused(token, &unknown(name)));
            }
            cell.decide(work, token, std::iter::once(name), |engine, now_ms, name| {
                engine.handle_trigger(now_ms, name).map_err(|error| match error.problem {
                    ScheduleProblem::Task(refusal) => refusal,
                    ScheduleProblem::Unknown
                    | ScheduleProblem::Timing(_)
                    | ScheduleProblem::Invalid(_)
                    | ScheduleProblem::TooManyTimes(_) => Refusal::Invalid("its schedule makes no tasks"),
                })
            });
        });
        Ok(())
    }

    /// Makes the tasks of the times from one to another that have passed; `token` gets their ids.
    pub fn backfill_schedule(&mut self, token: Token, name: &str, from_ms: i64, to_ms: i64) -> Result<(), EngineError> {
        let record_bytes_max = self.config.log.record_bytes_max;
        self.of_schedules(token, |cell, work| {
            let bytes = cell.engine.schedule(name).map_or(0, |view| {
                let template = &view.spec.template;
                template.payload.len() + fields_bytes(template)
            });
            // They are one record.
            let times_max = TIMES_MAX.min(u32::try_from(record_bytes_max / bytes.max(1)).unwrap_or(u32::MAX));
            let tasks = cell.engine.handle_backfill(work.now_ms, name, from_ms, to_ms, times_max)?;
            let ids: Vec<String> = tasks.into_iter().map(task_id).collect();
            Ok(fields(&ids.iter().map(String::as_str).collect::<Vec<_>>()))
        })
    }

    /// `token` gets the id and the run id of the run that a task of a schedule stands for, once that is made; an empty text
    /// if it stands for none.
    pub fn run_of_task(&mut self, token: Token, task: TaskNo) -> Result<(), EngineError> {
        self.check_open()?;
        self.group.with_tasks(|cell, work| cell.await_run(work, task, token));
        Ok(())
    }

    /// `token` gets the rows of all schedules, by name; with a name, the row of that one.
    pub fn list_schedules(&mut self, token: Token, name: Option<&str>) -> Result<(), EngineError> {
        self.check_open()?;
        self.group.with_tasks(|cell, work| {
            let event = match name {
                None => {
                    let rows: Vec<String> = cell.engine.schedules().map(|view| schedule_row(&view)).collect();
                    TaskEvent::Reply(token, rows.join(&ROW.to_string()))
                }
                Some(name) => match cell.engine.schedule(name) {
                    Some(view) => TaskEvent::Reply(token, schedule_row(&view)),
                    None => refused(token, &unknown(name)),
                },
            };
            cell.tell(work, token, event);
        });
        Ok(())
    }

    /// `token` gets the next times of a schedule, in ms since 1970.
    pub fn preview_schedule(&mut self, token: Token, name: &str, count: usize) -> Result<(), EngineError> {
        self.check_open()?;
        self.group.with_tasks(|cell, work| {
            let event = match cell.engine.preview(work.now_ms, name, count.min(PREVIEW_MAX)) {
                Ok(times) => TaskEvent::Reply(token, times_row(times.into_iter().map(|time| time.at_ms))),
                Err(error) => refused(token, &error),
            };
            cell.tell(work, token, event);
        });
        Ok(())
    }

    /// The next times of a plan that belongs to no schedule, after one, in ms since 1970.
    pub fn preview_plan(&self, when: When<'_>, after_ms: i64, count: usize) -> Result<String, EngineError> {
        let times = times_of(when, after_ms, count.min(PREVIEW_MAX)).map_err(|error| bad_input(error.to_string()))?;
        Ok(times_row(times.into_iter()))
    }

    fn of_schedules(
        &mut self,
        token: Token,
        act: impl FnOnce(&mut TaskCell, &mut TaskWork<'_>) -> Result<String, ScheduleError>,
    ) -> Result<(), EngineError> {
        self.check_open()?;
        self.group.admits()?;
        self.group.with_tasks(|cell, work| {
            let event = match act(cell, work) {
                Ok(text) => TaskEvent::Reply(token, text),
                Err(error) => refused(token, &error),
            };
            cell.tell(work, token, event);
        });
        Ok(())
    }
}

/// Whether the log takes what code declares: as one record.
pub(super) fn check_declared(config: &Config) -> Result<(), EngineError> {
    let Some(declared) = &config.schedules else { return Ok(()) };
    let limits = config.limits().map_err(bad_input)?;
    let mut bytes = 0;
    for (name, encoded) in declared {
        let spec = decode_schedule(encoded).map_err(|error| bad_input(format!("schedule \"{name}\": {error}")))?;
        check_schedule(&limits, name, &spec)?;
        bytes += name.len() + encoded.len();
    }
    if bytes > limits.payload_bytes_max {
        return Err(bad_input(format!(
            "the declared schedules take {bytes} bytes together; the limit is {}: put what is large elsewhere, and what \
             names it into their inputs",
            limits.payload_bytes_max
        )));
    }
    Ok(())
}

fn check_schedule(limits: &Limits, name: &str, spec: &ScheduleSpec<'_>) -> Result<(), EngineError> {
    let texts = match spec.when {
        When::Cron { expression, zone } => name.len() + expression.len() + zone.len(),
        When::Every { .. } => name.len(),
    };
    let id = spec.template.launch.map_or("", |launch| if launch.id.is_empty() { name } else { launch.id });
    if id.starts_with(OBJECT_PREFIX) {
        return Err(bad_input(format!(
            "schedule \"{name}\": the ids of its runs would begin with \"{OBJECT_PREFIX}\", as those of objects do"
        )));
    }
    // Its run's record has the task's description, too.
    let of_run = if spec.template.launch.is_some() { RUN_FIELDS_BYTES } else { 0 };
    check_spec(limits, &spec.template, texts + of_run)
        .map_err(|error| bad_input(format!("schedule \"{name}\": {error}")))
}

fn unknown(name: &str) -> ScheduleError {
    ScheduleError { schedule: name.into(), problem: ScheduleProblem::Unknown }
}

fn refused(token: Token, error: &ScheduleError) -> TaskEvent {
    let code = match &error.problem {
        ScheduleProblem::Unknown => ErrorCode::NotFound.text(),
        ScheduleProblem::Timing(_) | ScheduleProblem::Invalid(_) | ScheduleProblem::TooManyTimes(_) => {
            ErrorCode::BadInput.text()
        }
        ScheduleProblem::Task(refusal) => verb_code(refusal),
    };
    TaskEvent::Refuse(token, code, error.to_string())
}

fn times_row(times: impl Iterator<Item = i64>) -> String {
    let texts: Vec<String> = times.map(|time_ms| time_ms.to_string()).collect();
    fields(&texts.iter().map(String::as_str).collect::<Vec<_>>())
}
