//! Verbs around runs as files, and the door to a directory that is only looked at.
#![expect(unreachable_pub, reason = "exports of the addon are public for its macro")]

use super::export::{Call, export};
use super::fault::{Fault, Shared, throw};
use crate::engine::{Clock, Config, Cut, Durability, FIELD, ForeignEngine, Seq, Slot};
use napi::Env;
use napi::bindgen_prelude::{Object, Uint8Array};
use napi_derive::napi;
use std::cell::RefCell;
use std::rc::Rc;

/// Opens a directory to look at its runs. It is locked until it is closed, and nothing is written to it.
#[napi(catch_unwind)]
pub fn look(env: &Env, dir: String) -> napi::Result<Object<'_>> {
    let mut config = Config::new(Durability::ReadOnly(dir.into()));
    // Nothing falls due, and nothing that an opening writes is to be kept.
    config.clock = Clock::virtual_at(0);
    config.log.reserve_bytes = 0;
    config.log.segment_bytes = 1 << 20;
    let engine = ForeignEngine::open(config, Box::new(|| {})).map_err(|error| throw(env, &error.into()))?;
    let engine: Shared = Rc::new(RefCell::new(engine));
    let mut object = Object::new(env)?;
    let shared = Rc::clone(&engine);
    export(env, &mut object, "runs", move |_| Ok(shared.borrow().found_runs()))?;
    let shared = Rc::clone(&engine);
    export(env, &mut object, "journal", move |call| Ok(shared.borrow().found_journal(call.run(0)?)?))?;
    export(env, &mut object, "close", move |_| Ok(engine.borrow_mut().close()?))?;
    Ok(object)
}

/// Adds the verbs.
pub(super) fn export_journals(env: &Env, object: &mut Object<'_>, engine: &Shared) -> napi::Result<()> {
    let shared = Rc::clone(engine);
    export(env, object, "exportRun", move |call| {
        let run = call.run(1)?;
        let step = call.str(3)?;
        Ok(shared.borrow_mut().export_run(call.number(0)?, run, cut(call, step, 4)?)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "openJournal", move |call| {
        let (bytes, step) = (call.get::<Uint8Array>(0)?, call.str(1)?);
        let (slot, text) = shared.borrow_mut().open_journal(&bytes, cut(call, step, 2)?)?;
        Ok(format!("{}{FIELD}{text}", slot.0))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "misfit", move |call| Ok(shared.borrow().misfit(Slot(call.number(0)?))))
}

/// A place to cut at: the name of a step, or behind it the number of an operation; neither: none.
fn cut<'a>(call: &Call, step: &'a str, number: usize) -> Result<Option<Cut<'a>>, Fault> {
    let number = call.number(number)?;
    Ok(match (step, number) {
        ("", 0) => None,
        ("", number) => Some(Cut::BeforeOperation(Seq(number))),
        (step, _) => Some(Cut::BeforeStep(step)),
    })
}
