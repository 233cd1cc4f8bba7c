//! Functions that JS calls: the one way in. A function is a closure behind a trampoline that all of them share, so that
//! each costs the addon little more than what it does; converted closures of napi cost 2.5 kB each.
//!
//! Verbs that run once or more a step read their texts into buffers that are kept ([`Call::text`]) and answer with a
//! number: measured at a third of the cost of converting.
#![allow(unsafe_code, reason = "raw Node-API calls; the only other way costs a multiple per call")]

use super::fault::{Fault, panic_message, throw};
use crate::engine::Run;
use napi::bindgen_prelude::{FromNapiValue, JsObjectValue, Object, ToNapiValue, Unknown};
use napi::{Env, sys};
use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Most arguments that a verb has.
const ARGUMENTS_MAX: usize = 16;

/// Texts up to this size are read in one call.
const TEXT_BYTES: usize = 1_024;

/// A buffer larger than this is not kept for the next call.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// What a function does. Its answer is a value of the call.
type Verb = dyn Fn(&Call) -> Result<sys::napi_value, Fault>;

/// The arguments of a call. Valid only while the call lasts.
pub(super) struct Call {
    env: sys::napi_env,
    arguments: [sys::napi_value; ARGUMENTS_MAX],
    count: usize,
    /// The texts that were asked for, by argument. Verbs borrow them: one that owned its texts would carry the code that
    /// drops each of them on each of its ways out.
    texts: OnceCell<Box<[OnceCell<String>; ARGUMENTS_MAX]>>,
}

impl Call {
    /// An argument of a type.
    pub(super) fn get<T: FromNapiValue>(&self, index: usize) -> Result<T, Fault> {
        // SAFETY: `env` and the arguments are those of the call that is going on.
        unsafe { T::from_napi_value(self.env, self.argument(index)?) }
            .map_err(|error| Fault::bad_input(format!("argument {} of the engine: {}", index + 1, error.reason)))
    }

    /// How many arguments there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// An argument that is a number.
    pub(super) fn float(&self, index: usize) -> Result<f64, Fault> {
        let mut value = 0.0;
        // SAFETY: as for `number`.
        let status = unsafe { sys::napi_get_value_double(self.env, self.argument(index)?, &mut value) };
        self.expect(status, index, "a number").map(|()| value)
    }

    /// Two arguments that name a run: its id, and the id of one of the runs that had it, empty for the newest.
    pub(super) fn run(&self, index: usize) -> Result<Run<'_>, Fault> {
        Ok(Run { id: self.str(index)?, run_id: self.str(index + 1)? })
    }

    /// An argument that is a text.
    pub(super) fn str(&self, index: usize) -> Result<&str, Fault> {
        let read = || {
            let mut bytes = Vec::new();
            self.text(index, &mut bytes)?;
            String::from_utf8(bytes).map_err(|_| Fault::bad_input("a text is not valid UTF-8"))
        };
        self.argument(index)?;
        let text = &self.texts.get_or_init(Box::default)[index];
        match text.get() {
            Some(text) => Ok(text),
            None => {
                let read = read()?;
                Ok(text.get_or_init(|| read))
            }
        }
    }

    /// A text that is left out when it is empty.
    pub(super) fn optional_str(&self, index: usize) -> Result<Option<&str>, Fault> {
        let text = self.str(index)?;
        Ok((!text.is_empty()).then_some(text))
    }

    /// An argument that is a whole number from 0 to 2^32.
    pub(super) fn number(&self, index: usize) -> Result<u32, Fault> {
        let mut value = 0;
        // SAFETY: `env` and the arguments are those of the call that is going on; Node-API checks the type.
        let status = unsafe { sys::napi_get_value_uint32(self.env, self.argument(index)?, &mut value) };
        self.expect(status, index, "a number").map(|()| value)
    }

    /// An argument that is a number of milliseconds; negative: none.
    pub(super) fn optional_ms(&self, index: usize) -> Result<Option<i64>, Fault> {
        let value = self.float(index)?;
        Ok((value >= 0.0).then_some(value as i64))
    }

    /// An argument that is a text, into a buffer.
    pub(super) fn text(&self, index: usize, into: &mut Vec<u8>) -> Result<(), Fault> {
        let argument = self.argument(index)?;
        into.clear();
        if into.capacity() > KEPT_BYTES_MAX {
            *into = Vec::new();
        }
        into.reserve(TEXT_BYTES);
        let mut written = self.read_text(argument, index, into)?;
        // Short of the room by less than the longest character: there may be more of it.
        if written + 4 >= into.capacity() {
            let mut length = 0;
            // SAFETY: a null buffer asks for the length alone.
            let status =
                unsafe { sys::napi_get_value_string_utf8(self.env, argument, std::ptr::null_mut(), 0, &mut length) };
            self.expect(status, index, "a text")?;
            into.reserve(length + 1);
            written = self.read_text(argument, index, into)?;
        }
        // SAFETY: Node-API has written so many bytes into the capacity.
        unsafe { into.set_len(written) };
        Ok(())
    }

    fn read_text(&self, argument: sys::napi_value, index: usize, into: &mut Vec<u8>) -> Result<usize, Fault> {
        let mut written = 0;
        // SAFETY: the buffer has this capacity; Node-API writes at most that, its closing zero included.
        let status = unsafe {
            sys::napi_get_value_string_utf8(self.env, argument, into.as_mut_ptr().cast(), into.capacity(), &mut written)
        };
        self.expect(status, index, "a text").map(|()| written)
    }

    fn argument(&self, index: usize) -> Result<sys::napi_value, Fault> {
        if index < self.count {
            Ok(self.arguments[index])
        } else {
            Err(Fault::bad_input(format!("argument {} of the engine is missing", index + 1)))
        }
    }

    fn expect(&self, status: sys::napi_status, index: usize, what: &str) -> Result<(), Fault> {
        if status == sys::Status::napi_ok {
            Ok(())
        } else {
            Err(Fault::bad_input(format!("argument {} of the engine is not {what}", index + 1)))
        }
    }
}

/// The text of a buffer that [`Call::text`] filled.
pub(super) fn as_text(bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|_| Fault::bad_input("a text is not valid UTF-8"))
}

/// Adds a function to an object. What it answers is converted.
pub(super) fn export<R, F>(env: &Env, object: &mut Object<'_>, name: &str, verb: F) -> napi::Result<()>
where
    R: ToNapiValue,
    F: 'static + Fn(&Call) -> Result<R, Fault>,
{
    let verb = move |call: &Call| {
        let answer = verb(call)?;
        // SAFETY: `env` is that of the call that is going on.
        Ok(unsafe { R::to_napi_value(call.env, answer) }?)
    };
    add_function(env, object, name, Box::new(verb))
}

/// Adds a function to an object that answers with a number.
pub(super) fn export_hot<F>(env: &Env, object: &mut Object<'_>, name: &str, verb: F) -> napi::Result<()>
where
    F: 'static + Fn(&Call) -> Result<f64, Fault>,
{
    add_function(env, object, name, Box::new(move |call| verb(call).map(|answer| number(call.env, answer))))
}

fn add_function(env: &Env, object: &mut Object<'_>, name: &str, verb: Box<Verb>) -> napi::Result<()> {
    let verb = Box::into_raw(Box::new(verb));
    let mut function = std::ptr::null_mut();
    // SAFETY: `enter` reads the data as the `Box<Verb>` that it was made from; the finalizer below frees it, once, when
    // the function is collected, after which nobody can call it.
    let function = unsafe {
        let created = sys::napi_create_function(
            env.raw(),
            name.as_ptr().cast(),
            name.len() as isize,
            Some(enter),
            verb.cast(),
            &mut function,
        );
        if created != sys::Status::napi_ok {
            drop(Box::from_raw(verb));
            return Err(napi::Error::from_reason(format!("the function \"{name}\" could not be made")));
        }
        let no_reference = std::ptr::null_mut();
        let status =
            sys::napi_add_finalizer(env.raw(), function, verb.cast(), Some(free), no_reference, no_reference.cast());
        if status != sys::Status::napi_ok {
            // Somebody may call the function, so the verb is not freed.
            return Err(napi::Error::from_reason(format!("the function \"{name}\" could not be made")));
        }
        Unknown::from_raw_unchecked(env.raw(), function)
    };
    object.set_named_property(name, function)
}

/// Called by JS.
unsafe extern "C" fn enter(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    let mut call =
        Call { env, arguments: [std::ptr::null_mut(); ARGUMENTS_MAX], count: ARGUMENTS_MAX, texts: OnceCell::new() };
    let mut data = std::ptr::null_mut();
    // SAFETY: the pointers are to places that live through the call; `count` says how much room `arguments` has.
    let status = unsafe {
        let (arguments, this) = (call.arguments.as_mut_ptr(), std::ptr::null_mut());
        sys::napi_get_cb_info(env, info, &mut call.count, arguments, this, &mut data)
    };
    if status != sys::Status::napi_ok {
        return std::ptr::null_mut();
    }
    call.count = call.count.min(ARGUMENTS_MAX);
    // SAFETY: `add_function` made the data from a box of this type, which lives as long as the function.
    let verb = unsafe { &*data.cast::<Box<Verb>>() };
    let fault = match catch_unwind(AssertUnwindSafe(|| verb(&call))) {
        Ok(Ok(answer)) => return answer,
        Ok(Err(fault)) => fault,
        Err(panic) => panic_message(&*panic),
    };
    throw(&Env::from_raw(env), &fault);
    std::ptr::null_mut()
}

/// A number of JS; small whole ones without an allocation.
fn number(env: sys::napi_env, value: f64) -> sys::napi_value {
    let mut result = std::ptr::null_mut();
    let small = value as i32;
    // SAFETY: `env` is that of the call that is going on.
    unsafe {
        if f64::from(small) == value {
            sys::napi_create_int32(env, small, &mut result);
        } else {
            sys::napi_create_double(env, value, &mut result);
        }
    }
    result
}

/// Called when the function is collected.
unsafe extern "C" fn free(_env: sys::napi_env, data: *mut std::ffi::c_void, _hint: *mut std::ffi::c_void) {
    // A destructor that panics must not unwind into Node.
    let freed = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the data is the box of `add_function`, and this runs once.
        drop(unsafe { Box::from_raw(data.cast::<Box<Verb>>()) });
    }));
    drop(freed);
}
