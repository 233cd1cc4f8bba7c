//! Groups that are open in this process, by number: how threads of JS, which share no object, join one.
#![expect(unreachable_pub, reason = "exports of the addon are public for its macro")]

use super::client::export_client;
use super::code::export_code;
use super::export::{export, export_hot};
use super::fault::{Fault, Shared, throw};
use super::journals::export_journals;
use super::open::{notifier, shared_object};
use super::schedules::export_schedules;
use super::tasks::export_tasks;
use crate::engine::{ForeignEngine, Joinable, Slot};
use napi::Env;
use napi::bindgen_prelude::{Function, Object};
use napi_derive::napi;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

struct Open {
    last: u32,
    by_number: BTreeMap<u32, Joinable>,
}

/// The addon is mapped once a process, so that all its threads see these.
static OPEN: LazyLock<Mutex<Open>> = LazyLock::new(|| Mutex::new(Open { last: 0, by_number: BTreeMap::new() }));

/// Makes a group known to other threads. Returns its number.
fn publish(group: Joinable) -> u32 {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.by_number.retain(|_, group| group.is_open());
    open.last += 1;
    let number = open.last;
    open.by_number.insert(number, group);
    number
}

fn find(number: u32) -> Result<Joinable, Fault> {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = open.by_number.get(&number).cloned();
    found.ok_or_else(|| Fault::bad_input(format!("there is no open group {number} in this process")))
}

/// Joins a group as one of its workers. `notify` is called on this thread, once until the next tick.
#[napi(catch_unwind)]
pub fn join<'env>(
    env: &'env Env,
    group: u32,
    part: u32,
    definitions: Vec<String>,
    notify: Function<'env, (), ()>,
) -> napi::Result<Object<'env>> {
    let joinable = find(group).map_err(|fault| throw(env, &fault))?;
    let part = u16::try_from(part).unwrap_or(u16::MAX);
    let engine = ForeignEngine::join(&joinable, part, definitions, notifier(notify)?)
        .map_err(|error| throw(env, &error.into()))?;
    let (mut object, engine) = shared_object(env, engine)?;
    export_hot(env, &mut object, "entering", move |call| {
        engine.borrow().entering(Slot(call.number(0)?));
        Ok(0.0)
    })?;
    Ok(object)
}

/// Adds what engines of a group need of one another.
pub(super) fn export_group(env: &Env, object: &mut Object<'_>, engine: &Shared) -> napi::Result<()> {
    let shared = Rc::clone(engine);
    export(env, object, "publish", move |_| Ok(publish(shared.borrow().joinable())))?;
    let shared = Rc::clone(engine);
    export(env, object, "firstToken", move |_| Ok(shared.borrow().first_token()))?;
    let shared = Rc::clone(engine);
    export(env, object, "incarnation", move |_| Ok(shared.borrow().incarnation()))?;
    let shared = Rc::clone(engine);
    export(env, object, "workers", move |_| Ok(u32::from(shared.borrow().workers())))?;
    let shared = Rc::clone(engine);
    export(env, object, "owner", move |call| {
        let engine = shared.borrow();
        let shard = engine.shard_of(call.str(0)?);
        Ok(engine.owner(shard).map_or(-1, i32::from))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "define", move |call| {
        shared.borrow_mut().define(call.get(0)?);
        Ok(())
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "lose", move |call| {
        let part = u16::try_from(call.number(0)?).unwrap_or(u16::MAX);
        Ok(shared.borrow().lose(part, call.number(1)?))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "spread", move |call| {
        let part = u16::try_from(call.number(0)?).unwrap_or(u16::MAX);
        Ok(shared.borrow().spread(part) as u32)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "watchParts", move |call| {
        shared.borrow().watch_parts(Some(Duration::from_millis(call.number(0)?.into())));
        Ok(())
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "ask", move |call| {
        let run = call.run(1)?;
        let (name, input) = (call.str(3)?, call.str(4)?);
        Ok(shared.borrow_mut().ask(call.number(0)?, run, name, input)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "answer", move |call| {
        shared.borrow_mut().answer(call.number(0)?, call.str(1)?);
        Ok(())
    })
}

/// All verbs of an engine.
pub(super) fn export_all(env: &Env, object: &mut Object<'_>, engine: &Shared) -> napi::Result<()> {
    export_code(env, object, engine)?;
    export_client(env, object, engine)?;
    export_tasks(env, object, engine)?;
    export_schedules(env, object, engine)?;
    export_journals(env, object, engine)?;
    export_group(env, object, engine)
}
