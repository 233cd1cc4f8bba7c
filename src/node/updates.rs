//! Verbs around updates, and starts that bring a message; of running code, those that came with them.

use super::attribute_texts::attributes;
use super::code::{answer, policies};
use super::export::{Call, export};
use super::fault::{DEAD, Fault, LATER, Shared, halt};
use crate::engine::{Accepted, FIELD, NewSignal, NewUpdate, Seq, Slot, StartRequest, StartWith};
use napi::Env;
use napi::bindgen_prelude::Object;
use std::rc::Rc;

/// What a start brings with it, as `startWith` names it.
const WITH_SIGNAL: u32 = 0;

/// Adds the verbs.
pub(super) fn export_updates(env: &Env, object: &mut Object<'_>, engine: &Shared) -> napi::Result<()> {
    let shared = Rc::clone(engine);
    export(env, object, "update", move |call| {
        let run = call.run(1)?;
        let (name, update_id, payload) = (call.str(3)?, call.str(4)?, call.str(5)?);
        let actor = call.optional_str(6)?;
        let update = NewUpdate { name, id: update_id, payload: payload.as_bytes(), actor };
        Ok(shared.borrow_mut().update(call.number(0)?, run, update)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "startWith", move |call| start_with(&shared, call))?;
    let shared = Rc::clone(engine);
    export(env, object, "acceptUpdate", move |call| {
        Ok(match shared.borrow_mut().accept_offer(Slot(call.number(0)?), call.number(1)?) {
            Ok(Accepted::Recorded) => 0.0,
            Ok(Accepted::Later) => LATER,
            Ok(Accepted::Gone) => DEAD,
            Err(reason) => halt(reason),
        })
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "refuseUpdate", move |call| {
        let failure = call.str(2)?;
        Ok(answer(shared.borrow_mut().refuse_offer(Slot(call.number(0)?), call.number(1)?, failure.as_bytes())))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "answerUpdate", move |call| {
        let (is_failure, payload) = (call.get::<bool>(2)?, call.str(3)?);
        let (slot, number) = (Slot(call.number(0)?), call.number(1)?);
        Ok(answer(shared.borrow_mut().answer_update(slot, number, is_failure, payload.as_bytes())))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "continueAsNew", move |call| {
        let (version, timeout_ms, input) = (call.number(1)?, call.optional_ms(2)?, call.str(3)?);
        Ok(answer(shared.borrow_mut().continue_as_new(Slot(call.number(0)?), version, timeout_ms, input.as_bytes())))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "shield", move |call| {
        Ok(answer(shared.borrow_mut().shield(Slot(call.number(0)?), Seq(call.number(1)?))))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "failStuck", move |call| {
        let failure = call.str(1)?;
        Ok(answer(shared.borrow_mut().fail_stuck(Slot(call.number(0)?), failure.as_bytes())))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "retryStuck", move |call| Ok(answer(shared.borrow_mut().retry_stuck(Slot(call.number(0)?)))))?;
    let shared = Rc::clone(engine);
    export(env, object, "pause", move |call| {
        let (run, actor) = (call.run(1)?, call.optional_str(3)?);
        Ok(shared.borrow_mut().pause(call.number(0)?, run, actor)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "wake", move |call| {
        let (run, actor) = (call.run(1)?, call.optional_str(3)?);
        Ok(shared.borrow_mut().wake(call.number(0)?, run, actor)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "revive", move |call| {
        let run = call.run(0)?;
        let (slot, text) = shared.borrow_mut().revive(run)?;
        Ok(format!("{}{FIELD}{text}", slot.0))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "lay", move |call| {
        shared.borrow_mut().lay(Slot(call.number(0)?));
        Ok(())
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "setAttributes", move |call| {
        let set = attributes(call.str(2)?)?;
        Ok(answer(shared.borrow_mut().set_attributes(Slot(call.number(0)?), Seq(call.number(1)?), &set)))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "patched", move |call| {
        let id = call.str(1)?;
        Ok(match shared.borrow_mut().patched(Slot(call.number(0)?), id) {
            Ok(is_patched) => f64::from(u8::from(is_patched)),
            Err(reason) => halt(reason),
        })
    })
}

/// A start with a message: token, id, type, version, input, policies, timeout, actor, what, name, value, id of the
/// message, token of the update's answer, search attributes.
fn start_with(shared: &Shared, call: &Call) -> Result<(), Fault> {
    let (id, kind, input) = (call.str(1)?, call.str(2)?, call.str(4)?);
    let (reuse, conflict) = policies(call.number(5)?)?;
    let actor = call.optional_str(7)?;
    let (name, payload, message_id) = (call.str(9)?, call.str(10)?, call.optional_str(11)?);
    let with = if call.number(8)? == WITH_SIGNAL {
        StartWith::Signal(NewSignal { name, payload: payload.as_bytes(), dedupe: message_id })
    } else {
        let update = NewUpdate { name, id: message_id.unwrap_or_default(), payload: payload.as_bytes(), actor };
        StartWith::Update(call.number(12)?, update)
    };
    let request = StartRequest {
        id,
        kind,
        version: call.number(3)?,
        input: input.as_bytes(),
        reuse,
        conflict,
        attributes: &attributes(call.str(13)?)?,
        timeout_ms: call.optional_ms(6)?,
        actor,
        result_token: None,
        with: Some(with),
    };
    shared.borrow_mut().start(call.number(0)?, request)?;
    Ok(())
}
