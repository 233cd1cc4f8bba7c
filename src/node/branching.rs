//! Verbs of clients by which a run goes on from an earlier place.

use super::export::{Call, export};
use super::fault::{Fault, Shared};
use crate::engine::{Border, BranchRequest};
use napi::Env;
use napi::bindgen_prelude::Object;
use std::rc::Rc;

const REAPPLIES_SIGNALS: u32 = 1;
const HAS_FRESH_KEYS: u32 = 2;
const HAS_VERSION: u32 = 4;

/// Adds the verb: a fork where an id for it is given, else a reset.
pub(super) fn export_branching(env: &Env, object: &mut Object<'_>, engine: &Shared) -> napi::Result<()> {
    let shared = Rc::clone(engine);
    export(env, object, "branch", move |call| {
        let (token, run, to) = (call.number(0)?, call.run(1)?, call.str(3)?);
        let (name, flags, version) = (call.str(5)?, call.number(7)?, call.number(8)?);
        let actor = call.optional_str(9)?;
        let request = BranchRequest {
            border: border(call, name)?,
            reapplies_signals: flags & REAPPLIES_SIGNALS != 0,
            has_fresh_keys: flags & HAS_FRESH_KEYS != 0,
            version: (flags & HAS_VERSION != 0).then_some(version),
            actor,
        };
        let mut engine = shared.borrow_mut();
        if to.is_empty() {
            engine.reset(token, run, request)?
        } else {
            engine.fork(token, run, to, request)?
        }
        Ok(())
    })
}

fn border<'a>(call: &Call, name: &'a str) -> Result<Border<'a>, Fault> {
    Ok(match call.number(4)? {
        0 => Border::Step(name),
        1 => Border::Operation(call.number(6)?),
        2 => Border::FailedStep(name),
        3 => Border::FailedChild,
        4 => Border::End,
        other => return Err(Fault::bad_input(format!("there is no place {other} in a run"))),
    })
}
