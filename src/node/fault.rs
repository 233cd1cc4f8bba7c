//! What verbs answer when something is wrong: errors with a code, codes below zero, what a panic becomes.

use crate::engine::{EngineError, ForeignEngine, Halt};
use napi::{Env, Error, Status};
use std::any::Any;
use std::cell::RefCell;
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
