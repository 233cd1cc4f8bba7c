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
        let (id, kind, name) = (call.str(1)?, call.str(2)?, call.str(3)?);
        let update =
            NewUpdate { name, id: call.str(4)?, payload: call.str(5)?.as_bytes(), actor: call.optional_str(6)? };
        Ok(shared.borrow_mut().call_object(call.number(0)?, id, kind, update)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "readObject", move |call| {
        Ok(shared.borrow_mut().read_object(call.number(0)?, call.str(1)?)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "deleteObject", move |call| {
        let (id, actor) = (call.str(1)?, call.optional_str(2)?);
        Ok(shared.borrow_mut().delete_object(call.number(0)?, id, actor)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "objectState", move |call| {
        Ok(shared.borrow().object_state(Slot(call.number(0)?)).unwrap_or_default())
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "answerCall", move |call| {
        let (flags, payload, state) = (call.number(2)?, call.str(3)?, call.str(4)?);
        let answer = CallAnswer {
            number: call.number(1)?,
            is_failure: flags & HAS_FAILED != 0,
            payload: payload.as_bytes(),
            state: (flags & HAS_STATE != 0).then_some(state.as_bytes()),
            is_alone: flags & IS_ALONE != 0,
        };
        Ok(match shared.borrow_mut().answer_call(Slot(call.number(0)?), answer) {
            Ok(should_continue) => f64::from(u8::from(should_continue)),
            Err(reason) => halt(reason),
        })
    })
}
