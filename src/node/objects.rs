//! Verbs around objects.

use super::export::export;
use super::fault::{Shared, halt};
use crate::engine::{CallAnswer, NewUpdate, Slot};
use napi::Env;
use napi::bindgen_prelude::Object;
use std::rc::Rc;

/// Flags of `answerCall`.
const HAS_FAILED: u32 = 1;
const IS_ALONE: u32 = 2;
const HAS_STATE: u32 = 4;

/// Adds the verbs.
pub(super) fn export_objects(env: &Env, object: &mut Object<'_>, engine: &Shared) -> napi::Result<()> {
    let shared = Rc::clone(engine);
    export(env, object, "callObject", move |call| {
        let (id, kind, name) = (call.get::<String>(1)?, call.get::<String>(2)?, call.get::<String>(3)?);
        let (call_id, payload, actor) = (call.get::<String>(4)?, call.get::<String>(5)?, call.optional_text(6)?);
        let update = NewUpdate { name: &name, id: &call_id, payload: payload.as_bytes(), actor: actor.as_deref() };
        Ok(shared.borrow_mut().call_object(call.get(0)?, &id, &kind, update)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "readObject", move |call| {
        let id: String = call.get(1)?;
        Ok(shared.borrow_mut().read_object(call.get(0)?, &id)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "objectState", move |call| {
        Ok(shared.borrow().object_state(Slot(call.get(0)?)).unwrap_or_default())
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "answerCall", move |call| {
        let (flags, payload, state) = (call.get::<u32>(2)?, call.get::<String>(3)?, call.get::<String>(4)?);
        let answer = CallAnswer {
            number: call.get(1)?,
            is_failure: flags & HAS_FAILED != 0,
            payload: payload.as_bytes(),
            state: (flags & HAS_STATE != 0).then_some(state.as_bytes()),
            is_alone: flags & IS_ALONE != 0,
        };
        Ok(match shared.borrow_mut().answer_call(Slot(call.get(0)?), answer) {
            Ok(should_continue) => f64::from(u8::from(should_continue)),
            Err(reason) => halt(reason),
        })
    })
}
