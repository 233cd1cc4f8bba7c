//! Functions that JS calls: each converts its arguments, turns errors into JS errors with a code, and catches panics.

use crate::engine::{EngineError, ForeignEngine, Halt};
use napi::bindgen_prelude::{FromNapiValue, FunctionCallContext, JsObjectValue, Object, ToNapiValue};
use napi::{Env, Error, Status};
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// The engine behind an object of functions. Lives on one JS thread.
pub(super) type Shared = Rc<RefCell<ForeignEngine>>;

/// Codes below zero that verbs of running code answer.
pub(super) const RECORDED: f64 = -1.0;
pub(super) const LATER: f64 = -2.0;
pub(super) const MISMATCH: f64 = -3.0;
pub(super) const DEAD: f64 = -4.0;

/// An error with the code by which JS finds its class.
pub(super) struct Fault {
    code: &'static str,
    message: String,
}

impl From<EngineError> for Fault {
    fn from(error: EngineError) -> Self {
        Fault { code: error.code.text(), message: error.message }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault { code: "BAD_INPUT", message: error.reason.to_string() }
    }
}

impl Fault {
    pub(super) fn bad_input(message: impl Into<String>) -> Self {
        Fault { code: "BAD_INPUT", message: message.into() }
    }
}

/// What a verb of running code answers when nothing of the run goes on.
pub(super) fn halt(halt: Halt) -> f64 {
    match halt {
        Halt::Dead => DEAD,
        Halt::Mismatch => MISMATCH,
    }
}

/// The arguments of a call.
pub(super) struct Call<'a, 'b> {
    context: &'a FunctionCallContext<'b>,
}

impl Call<'_, '_> {
    /// An argument of a type.
    pub(super) fn get<T: FromNapiValue>(&self, index: usize) -> Result<T, Fault> {
        self.context
            .get(index)
            .map_err(|error| Fault::bad_input(format!("argument {} of the engine: {}", index + 1, error.reason)))
    }

    /// A text that is left out when it is empty.
    pub(super) fn optional_text(&self, index: usize) -> Result<Option<String>, Fault> {
        let text: String = self.get(index)?;
        Ok((!text.is_empty()).then_some(text))
    }

    /// A number of milliseconds that is left out when it is negative.
    pub(super) fn optional_ms(&self, index: usize) -> Result<Option<i64>, Fault> {
        let ms: f64 = self.get(index)?;
        Ok((ms >= 0.0).then_some(ms as i64))
    }
}

/// Adds a function to an object.
pub(super) fn export<R, F>(env: &Env, object: &mut Object<'_>, name: &str, verb: F) -> napi::Result<()>
where
    R: ToNapiValue,
    F: 'static + Fn(&Call<'_, '_>) -> Result<R, Fault>,
{
    let function = env.create_function_from_closure::<(), R, _>(name, move |context| {
        match catch_unwind(AssertUnwindSafe(|| verb(&Call { context: &context }))) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(fault)) => Err(throw(context.env, &fault)),
            Err(panic) => Err(throw(context.env, &panic_message(&*panic))),
        }
    })?;
    object.set_named_property(name, function)
}

/// What a panic becomes in JS.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> Fault {
    let said = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or_default();
    let message = format!("fusee has a bug: {said}; what was acknowledged is safe, close and reopen");
    Fault { code: "INTERNAL", message }
}

/// Throws in JS.
pub(super) fn throw(env: &Env, fault: &Fault) -> Error {
    let message = fault.message.replace('\0', "\u{fffd}");
    match env.throw_error(&message, Some(fault.code)) {
        Ok(()) => Error::from_status(Status::PendingException),
        Err(error) => error,
    }
}
