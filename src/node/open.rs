//! Opening: options in, an object of functions out.
#![expect(unreachable_pub, reason = "exports of the addon are public for its macro")]

use super::export::export;
use super::fault::{Shared, throw};
use super::groups::export_all;
use super::task_texts;
use crate::engine::MemoryStorage;
use crate::engine::{CheckpointOptions, Clock, Config, Durability, FlushMode, ForeignEngine};
use napi::bindgen_prelude::{Either, Function, JsObjectValue, Null, Object};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use napi::{Env, Error, Status};
use napi_derive::napi;
use std::cell::RefCell;
use std::rc::Rc;

/// How an engine is opened, as JS says it.
#[napi(object)]
pub struct OpenOptions {
    /// The directory; `null`: memory.
    pub dir: Either<String, Null>,
    /// Types that have code here.
    pub definitions: Vec<String>,
    /// Shards of a new directory; 0: the default.
    pub shards: u32,
    /// Threads that will join to run the code; 0: this one runs it.
    pub workers: u32,
    /// Fewer workers will do where there are fewer shards.
    pub may_clamp_workers: bool,
    /// `auto`, `inline`, `pipeline` or `background`.
    pub flush: String,
    /// Where a virtual clock stands, in ms since 1970; `null`: the machine's clock.
    pub virtual_now: Either<f64, Null>,
    /// Largest encoded value; 0: the default.
    pub max_payload_bytes: f64,
    /// Records in a run's journal at most; 0: the default.
    pub max_journal_records: f64,
    /// Bytes in a run's journal at most; 0: the default.
    pub max_journal_bytes: f64,
    /// Open runs at most; 0: the default.
    pub max_runs: u32,
    /// Queues, limits, definitions and declared schedules of tasks, packed.
    pub tasks: String,
}

/// Opens an engine. `notify` is called on this thread, once until the next tick. Errors are thrown with a code.
#[napi(catch_unwind)]
pub fn open<'env>(env: &'env Env, options: OpenOptions, notify: Function<'env, (), ()>) -> napi::Result<Object<'env>> {
    let task_texts::TaskOptions { tasks, schedules, holds_schedules } =
        task_texts::config(&options.tasks).map_err(|fault| throw(env, &fault))?;
    let config = Config { tasks, schedules, holds_schedules, ..config(options)? };
    let engine = ForeignEngine::open(config, notifier(notify)?).map_err(|error| throw(env, &error.into()))?;
    Ok(shared_object(env, engine)?.0)
}

/// What wakes JS from any thread, on its own.
pub(super) fn notifier(notify: Function<'_, (), ()>) -> napi::Result<Box<dyn Fn() + Send + Sync>> {
    let wake = notify
        .build_threadsafe_function::<()>()
        .weak::<true>()
        .callee_handled::<false>()
        .max_queue_size::<1>()
        .build()?;
    Ok(Box::new(move || {
        // A full queue means that a wake is on its way; a closing environment needs none.
        wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
    }))
}

/// An engine as JS has it.
pub(super) fn shared_object(env: &Env, engine: ForeignEngine) -> napi::Result<(Object<'_>, Shared)> {
    let engine: Shared = Rc::new(RefCell::new(engine));
    let mut object = Object::new(env)?;
    export_all(env, &mut object, &engine)?;
    export(env, &mut object, "idempotencyKey", |call| {
        let (key_root, name) = (call.str(0)?, call.str(1)?);
        Ok(crate::engine::idempotency_key(key_root, name, call.number(2)?))
    })?;
    Ok((object, engine))
}

/// The global object of the realm that the addon was loaded in: its timers are the real ones, whatever a test
/// environment has put in their place.
#[napi(catch_unwind)]
pub fn realm(env: &Env) -> napi::Result<Object<'_>> {
    let global = env.get_global()?;
    global.get_named_property("globalThis")
}

fn config(options: OpenOptions) -> napi::Result<Config> {
    let bad = |text: String| Error::new(Status::InvalidArg, text);
    let (durability, checkpoints) = match options.dir {
        // Nothing in memory outlives its log.
        Either::B(Null) => (Durability::Memory(MemoryStorage::new()), None),
        Either::A(dir) => (Durability::Local(dir.into()), Some(CheckpointOptions::default())),
    };
    let mut config = Config { checkpoints, ..Config::new(durability) };
    config.definitions = options.definitions;
    if options.shards > 0 {
        config.shards = u16::try_from(options.shards)
            .map_err(|_| bad(format!("shards is {}; a directory has 1 to 1024", options.shards)))?;
    }
    config.workers = u16::try_from(options.workers).unwrap_or(u16::MAX);
    config.may_clamp_workers = options.may_clamp_workers;
    config.flush = match options.flush.as_str() {
        "auto" => None,
        "inline" => Some(FlushMode::Inline),
        "pipeline" => Some(FlushMode::Pipeline),
        "background" => Some(FlushMode::Background),
        other => return Err(bad(format!("flush is \"{other}\"; it can be auto, inline, pipeline or background"))),
    };
    if let Either::A(now_ms) = options.virtual_now {
        config.clock = Clock::virtual_at(now_ms as i64);
    }
    if options.max_payload_bytes > 0.0 {
        config.payload_bytes_max = options.max_payload_bytes as usize;
    }
    if options.max_journal_records > 0.0 {
        config.journal_records_max = options.max_journal_records as usize;
    }
    if options.max_journal_bytes > 0.0 {
        config.journal_bytes_max = options.max_journal_bytes as usize;
    }
    if options.max_runs > 0 {
        config.open_runs_max = options.max_runs as usize;
    }
    Ok(config)
}
