//! Verbs of tasks, queues and limits.

use super::export::export;
use super::fault::{Fault, Shared};
use super::task_texts::{filter, limit, member, number, outcomes, submissions, task_no, together};
use crate::engine::{Class, TaskChange};
use napi::Env;
use napi::bindgen_prelude::Object;
use std::rc::Rc;

/// Adds the verbs of tasks.
pub(super) fn export_tasks(env: &Env, object: &mut Object<'_>, engine: &Shared) -> napi::Result<()> {
    let shared = Rc::clone(engine);
    export(env, object, "enqueueTasks", move |call| {
        let text = call.str(1)?;
        Ok(shared.borrow_mut().enqueue(call.number(0)?, &submissions(text)?)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "enqueueTogether", move |call| {
        let text = call.str(1)?;
        Ok(shared.borrow_mut().enqueue_together(call.number(0)?, &together(text)?)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "taskOutcomes", move |call| {
        let text = call.str(0)?;
        shared.borrow_mut().task_outcomes(outcomes(text)?.into_iter());
        Ok(())
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "taskInfo", move |call| Ok(shared.borrow().task_info(task_no(call.str(0)?)?)))?;
    let shared = Rc::clone(engine);
    export(env, object, "taskParents", move |call| Ok(shared.borrow().task_parents(task_no(call.str(0)?)?)))?;
    let shared = Rc::clone(engine);
    export(env, object, "taskKey", move |call| Ok(shared.borrow().task_key(task_no(call.str(0)?)?)))?;
    let shared = Rc::clone(engine);
    export(env, object, "defineTasks", move |call| {
        let text = call.str(0)?;
        shared.borrow().define_tasks(member(text)?);
        Ok(())
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "drainTasks", move |_| {
        shared.borrow_mut().drain_tasks();
        Ok(())
    })?;
    export_one(env, object, engine)?;
    export_many(env, object, engine)?;
    export_queues(env, object, engine)
}

fn export_one(env: &Env, object: &mut Object<'_>, engine: &Shared) -> napi::Result<()> {
    let shared = Rc::clone(engine);
    export(env, object, "taskResult", move |call| {
        Ok(shared.borrow_mut().task_result(call.number(0)?, call.str(1)?)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "describeTask", move |call| {
        Ok(shared.borrow_mut().describe_task(call.number(0)?, call.str(1)?)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "explainTask", move |call| {
        Ok(shared.borrow_mut().explain_task(call.number(0)?, call.str(1)?)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "cancelTask", move |call| {
        let (task, reason) = (call.str(1)?, call.str(2)?);
        Ok(shared.borrow_mut().cancel_task(call.number(0)?, task, reason)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "retryTask", move |call| Ok(shared.borrow_mut().retry_task(call.number(0)?, call.str(1)?)?))?;
    let shared = Rc::clone(engine);
    export(env, object, "reprioritizeTask", move |call| {
        let (task, class) = (call.str(1)?, class(call.number(2)?)?);
        Ok(shared.borrow_mut().reprioritize_task(call.number(0)?, task, class)?)
    })
}

fn export_many(env: &Env, object: &mut Object<'_>, engine: &Shared) -> napi::Result<()> {
    let shared = Rc::clone(engine);
    export(env, object, "listTasks", move |call| {
        let filter = filter(call.str(1)?)?;
        let (after, limit) = (call.float(2)? as u64, call.number(3)? as usize);
        Ok(shared.borrow_mut().list_tasks(call.number(0)?, &filter, after, limit)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "countTasks", move |call| {
        Ok(shared.borrow_mut().count_tasks(call.number(0)?, &filter(call.str(1)?)?)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "changeTasks", move |call| {
        let (filter, what, more) = (filter(call.str(1)?)?, call.str(2)?, call.str(3)?);
        let change = match what {
            "cancel" => TaskChange::Cancel(more),
            "retry" => TaskChange::Retry,
            _ => TaskChange::Reprioritize(class(number(more)?)?),
        };
        let span = (call.float(4)? as u64, call.float(5)? as u64);
        Ok(shared.borrow_mut().change_tasks(call.number(0)?, &filter, change, span)?)
    })
}

fn class(code: u32) -> Result<Class, Fault> {
    let class = u8::try_from(code).ok().and_then(Class::from_code);
    class.ok_or_else(|| Fault::bad_input("there is no such class of priority"))
}

fn export_queues(env: &Env, object: &mut Object<'_>, engine: &Shared) -> napi::Result<()> {
    let shared = Rc::clone(engine);
    export(env, object, "pauseQueue", move |call| {
        let (queue, is_paused) = (call.str(1)?, call.number(2)? != 0);
        Ok(shared.borrow_mut().pause_queue(call.number(0)?, queue, is_paused)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "resizeQueue", move |call| {
        let (queue, concurrency) = (call.str(1)?, call.number(2)?);
        Ok(shared.borrow_mut().resize_queue(call.number(0)?, queue, concurrency)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "boundQueue", move |call| {
        let (queue, min, max) = (call.str(1)?, call.number(2)?, call.number(3)?);
        Ok(shared.borrow_mut().bound_queue(call.number(0)?, queue, min, max)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "reportCapacity", move |call| {
        Ok(shared.borrow_mut().report_capacity(call.str(0)?, call.number(1)?)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "queueStats", move |call| {
        Ok(shared.borrow_mut().queue_stats(call.number(0)?, call.str(1)?)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "setLimit", move |call| {
        let (name, spec) = (call.str(1)?, limit(call.str(2)?)?);
        Ok(shared.borrow_mut().set_limit(call.number(0)?, name, spec)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "limitUsage", move |call| {
        let (name, key) = (call.str(1)?, call.optional_str(2)?);
        Ok(shared.borrow_mut().limit_usage(call.number(0)?, name, key)?)
    })
}
