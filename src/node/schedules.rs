//! Verbs of schedules, and their texts taken apart.

use super::export::export;
use super::fault::{Fault, Shared};
use super::task_texts::{PART, malformed, next, number, optional, submission, task_no};
use crate::engine::{CatchUp, FIELD, Overlap, ScheduleSpec, When, encode_schedule};
use napi::Env;
use napi::bindgen_prelude::Object;
use std::rc::Rc;

/// Adds the verbs of schedules.
pub(super) fn export_schedules(env: &Env, object: &mut Object<'_>, engine: &Shared) -> napi::Result<()> {
    let shared = Rc::clone(engine);
    export(env, object, "setSchedule", move |call| {
        let (name, text) = (call.str(1)?, call.str(2)?);
        Ok(shared.borrow_mut().set_schedule(call.number(0)?, name, &schedule(text)?)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "declareSchedules", move |call| Ok(shared.borrow_mut().declare_schedules(call.number(0)?)?))?;
    let shared = Rc::clone(engine);
    export(env, object, "removeSchedule", move |call| {
        Ok(shared.borrow_mut().remove_schedule(call.number(0)?, call.str(1)?)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "pauseSchedule", move |call| {
        let (name, is_paused) = (call.str(1)?, call.number(2)? != 0);
        Ok(shared.borrow_mut().pause_schedule(call.number(0)?, name, is_paused)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "triggerSchedule", move |call| {
        Ok(shared.borrow_mut().trigger_schedule(call.number(0)?, call.str(1)?)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "backfillSchedule", move |call| {
        let (from_ms, to_ms) = (call.float(2)? as i64, call.float(3)? as i64);
        Ok(shared.borrow_mut().backfill_schedule(call.number(0)?, call.str(1)?, from_ms, to_ms)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "runOfTask", move |call| {
        Ok(shared.borrow_mut().run_of_task(call.number(0)?, task_no(call.str(1)?)?)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "listSchedules", move |call| {
        Ok(shared.borrow_mut().list_schedules(call.number(0)?, call.optional_str(1)?)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "previewSchedule", move |call| {
        let count = call.number(2)? as usize;
        Ok(shared.borrow_mut().preview_schedule(call.number(0)?, call.str(1)?, count)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "previewPlan", move |call| {
        let (text, after_ms, count) = (call.str(0)?, call.float(1)? as i64, call.number(2)?);
        Ok(shared.borrow().preview_plan(when(text)?, after_ms, count as usize)?)
    })
}

/// A declared schedule: its name, then as [`schedule`] reads it; the definition as it is recorded.
pub(super) fn declared(text: &str) -> Result<(Box<str>, Box<[u8]>), Fault> {
    let (name, rest) = text.split_once(FIELD).ok_or_else(|| malformed(text))?;
    let mut bytes = Vec::new();
    encode_schedule(&mut bytes, &schedule(rest)?);
    Ok((name.into(), bytes.into()))
}

/// When, start, end, limit, jitter, overlap, catch-up, whether it pauses on failure, deadline and expiry of each task from
/// its time; then the task, as it is submitted.
fn schedule(text: &str) -> Result<ScheduleSpec<'_>, Fault> {
    let mut fields = text.splitn(11, FIELD);
    let when = when(next(&mut fields)?)?;
    let (start_ms, end_ms) = (optional(next(&mut fields)?)?, optional(next(&mut fields)?)?);
    let (limit, jitter_ms) = (optional(next(&mut fields)?)?, number(next(&mut fields)?)?);
    let overlap = Overlap::from_code(number(next(&mut fields)?)?).ok_or_else(|| malformed(text))?;
    let catch_up = match next(&mut fields)? {
        "none" => CatchUp::None,
        "last" => CatchUp::Last,
        count => CatchUp::UpTo(number(count)?),
    };
    let pauses_on_failure = next(&mut fields)? == "1";
    let (deadline_after_ms, expires_after_ms) = (optional(next(&mut fields)?)?, optional(next(&mut fields)?)?);
    let (template, _) = submission(next(&mut fields)?)?;
    Ok(ScheduleSpec {
        when,
        start_ms,
        end_ms,
        limit,
        jitter_ms,
        overlap,
        catch_up,
        pauses_on_failure,
        deadline_after_ms,
        expires_after_ms,
        template,
    })
}

/// `c`, the expression and the zone, or `e`, the period and its offset.
fn when(text: &str) -> Result<When<'_>, Fault> {
    let mut parts = text.splitn(3, PART);
    Ok(match next(&mut parts)? {
        "c" => When::Cron { expression: next(&mut parts)?, zone: next(&mut parts)? },
        "e" => When::Every { period_ms: number(next(&mut parts)?)?, offset_ms: number(next(&mut parts)?)? },
        other => return Err(malformed(other)),
    })
}
