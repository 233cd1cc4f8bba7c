//! Verbs around updates, and starts that bring a message; of running code, those that came with them.

use super::attribute_texts::attributes;
use super::code::{answer, policies};
use super::export::{Call, export};
use super::fault::{DEAD, Fault, LATER, Shared, halt};
use crate::engine::{Accepted, FIELD, NewSignal, NewUpdate, Run, Seq, Slot, StartRequest, StartWith};
use napi::Env;
use napi::bindgen_prelude::Object;
use std::rc::Rc;

/// What a start brings with it, as `startWith` names it.
const WITH_SIGNAL: u32 = 0;

/// Adds the verbs.
pub(super) fn export_updates(env: &Env, object: &mut Object<'_>, engine: &Shared) -> napi::Result<()> {
    let shared = Rc::clone(engine);
    export(env, object, "update", move |call| {
        let (id, run_id) = (call.get::<String>(1)?, call.get::<String>(2)?);
        let (name, update_id, payload) = (call.get::<String>(3)?, call.get::<String>(4)?, call.get::<String>(5)?);
        let actor = call.optional_text(6)?;
        let update = NewUpdate { name: &name, id: &update_id, payload: payload.as_bytes(), actor: actor.as_deref() };
        Ok(shared.borrow_mut().update(call.get(0)?, Run { id: &id, run_id: &run_id }, update)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "startWith", move |call| start_with(&shared, call))?;
    let shared = Rc::clone(engine);
    export(env, object, "acceptUpdate", move |call| {
        Ok(match shared.borrow_mut().accept_offer(Slot(call.get(0)?), call.get(1)?) {
            Ok(Accepted::Recorded) => 0.0,
            Ok(Accepted::Later) => LATER,
            Ok(Accepted::Gone) => DEAD,
            Err(reason) => halt(reason),
        })
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "refuseUpdate", move |call| {
        let failure: String = call.get(2)?;
        Ok(answer(shared.borrow_mut().refuse_offer(Slot(call.get(0)?), call.get(1)?, failure.as_bytes())))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "answerUpdate", move |call| {
        let (is_failure, payload) = (call.get::<bool>(2)?, call.get::<String>(3)?);
        let (slot, number) = (Slot(call.get(0)?), call.get(1)?);
        Ok(answer(shared.borrow_mut().answer_update(slot, number, is_failure, payload.as_bytes())))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "continueAsNew", move |call| {
        let (version, timeout_ms, input) = (call.get::<u32>(1)?, call.optional_ms(2)?, call.get::<String>(3)?);
        Ok(answer(shared.borrow_mut().continue_as_new(Slot(call.get(0)?), version, timeout_ms, input.as_bytes())))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "shield", move |call| {
        Ok(answer(shared.borrow_mut().shield(Slot(call.get(0)?), Seq(call.get(1)?))))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "failStuck", move |call| {
        let failure: String = call.get(1)?;
        Ok(answer(shared.borrow_mut().fail_stuck(Slot(call.get(0)?), failure.as_bytes())))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "retryStuck", move |call| Ok(answer(shared.borrow_mut().retry_stuck(Slot(call.get(0)?)))))?;
    let shared = Rc::clone(engine);
    export(env, object, "pause", move |call| {
        let (id, run_id, actor) = (call.get::<String>(1)?, call.get::<String>(2)?, call.optional_text(3)?);
        let run = Run { id: &id, run_id: &run_id };
        Ok(shared.borrow_mut().pause(call.get(0)?, run, actor.as_deref())?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "wake", move |call| {
        let (id, run_id, actor) = (call.get::<String>(1)?, call.get::<String>(2)?, call.optional_text(3)?);
        let run = Run { id: &id, run_id: &run_id };
        Ok(shared.borrow_mut().wake(call.get(0)?, run, actor.as_deref())?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "revive", move |call| {
        let (id, run_id) = (call.get::<String>(0)?, call.get::<String>(1)?);
        let (slot, text) = shared.borrow_mut().revive(Run { id: &id, run_id: &run_id })?;
        Ok(format!("{}{FIELD}{text}", slot.0))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "lay", move |call| {
        shared.borrow_mut().lay(Slot(call.get(0)?));
        Ok(())
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "setAttributes", move |call| {
        let set = attributes(&call.get::<String>(2)?)?;
        Ok(answer(shared.borrow_mut().set_attributes(Slot(call.get(0)?), Seq(call.get(1)?), &set)))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "patched", move |call| {
        let id: String = call.get(1)?;
        Ok(match shared.borrow_mut().patched(Slot(call.get(0)?), &id) {
            Ok(is_patched) => f64::from(u8::from(is_patched)),
            Err(reason) => halt(reason),
        })
    })
}

/// A start with a message: token, id, type, version, input, policies, timeout, actor, what, name, value, id of the
/// message, token of the update's answer, search attributes.
fn start_with(shared: &Shared, call: &Call) -> Result<(), Fault> {
    let (id, kind, input) = (call.get::<String>(1)?, call.get::<String>(2)?, call.get::<String>(4)?);
    let (reuse, conflict) = policies(call.get(5)?)?;
    let actor = call.optional_text(7)?;
    let (name, payload, message_id) = (call.get::<String>(9)?, call.get::<String>(10)?, call.optional_text(11)?);
    let with = if call.get::<u32>(8)? == WITH_SIGNAL {
        StartWith::Signal(NewSignal { name: &name, payload: payload.as_bytes(), dedupe: message_id.as_deref() })
    } else {
        let update = NewUpdate {
            name: &name,
            id: message_id.as_deref().unwrap_or_default(),
            payload: payload.as_bytes(),
            actor: actor.as_deref(),
        };
        StartWith::Update(call.get(12)?, update)
    };
    let request = StartRequest {
        id: &id,
        kind: &kind,
        version: call.get(3)?,
        input: input.as_bytes(),
        reuse,
        conflict,
        attributes: &attributes(&call.get::<String>(13)?)?,
        timeout_ms: call.optional_ms(6)?,
        actor: actor.as_deref(),
        result_token: None,
        with: Some(with),
    };
    shared.borrow_mut().start(call.get(0)?, request)?;
    Ok(())
}
