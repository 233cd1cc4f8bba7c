//! Verbs of clients.

use super::attribute_texts::{attributes, filter};
use super::code::policies;
use super::export::{Call, as_text, export, export_hot};
use super::fault::{Fault, Shared};
use super::task_texts::submission;
use crate::engine::{FIELD, Past, PastEnd, ROW, Run, RunNo, ShardId, Slot, StartRequest};
use napi::Env;
use napi::bindgen_prelude::Object;
use std::cell::RefCell;
use std::rc::Rc;

/// A run crosses as its number times this, plus its shard.
const SHARDS: f64 = 65_536.0;

/// The texts of a start, kept to save their allocations.
#[derive(Default)]
struct StartTexts {
    id: Vec<u8>,
    kind: Vec<u8>,
    input: Vec<u8>,
    actor: Vec<u8>,
}

/// Adds the verbs of clients.
pub(super) fn export_client(env: &Env, object: &mut Object<'_>, engine: &Shared) -> napi::Result<()> {
    let shared = Rc::clone(engine);
    let texts = RefCell::new(StartTexts::default());
    export_hot(env, object, "start", move |call| {
        let (token, result_token) = (call.number(0)?, call.number(1)?);
        let set = if call.count() > 9 { attributes(&call.get::<String>(9)?)? } else { Vec::new() };
        let mut texts = texts.borrow_mut();
        let StartTexts { id, kind, input, actor } = &mut *texts;
        for (index, text) in [(2, &mut *id), (3, &mut *kind), (5, &mut *input), (8, &mut *actor)] {
            call.text(index, text)?;
        }
        let (reuse, conflict) = policies(call.number(6)?)?;
        let request = StartRequest {
            id: as_text(id)?,
            kind: as_text(kind)?,
            version: call.number(4)?,
            input,
            reuse,
            conflict,
            attributes: &set,
            timeout_ms: call.optional_ms(7)?,
            actor: (!actor.is_empty()).then(|| as_text(actor)).transpose()?,
            result_token: (result_token != 0).then_some(result_token),
            with: None,
        };
        let run = shared.borrow_mut().start(token, request)?;
        Ok(run.map_or(-1.0, |(ShardId(shard), RunNo(no))| no as f64 * SHARDS + f64::from(shard)))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "enqueueRun", move |call| {
        let (id, kind, input) = (call.get::<String>(1)?, call.get::<String>(2)?, call.get::<String>(4)?);
        let (reuse, conflict) = policies(call.get(5)?)?;
        let (actor, row) = (call.optional_text(7)?, call.get::<String>(8)?);
        let (spec, _) = submission(&row)?;
        let request = StartRequest {
            id: &id,
            kind: &kind,
            version: call.get(3)?,
            input: input.as_bytes(),
            reuse,
            conflict,
            attributes: b"",
            timeout_ms: call.optional_ms(6)?,
            actor: actor.as_deref(),
            result_token: None,
            with: None,
        };
        Ok(shared.borrow_mut().enqueue_run(call.get(0)?, request, &spec)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "signal", move |call| {
        let (id, run_id) = target(call)?;
        let (name, payload) = (call.get::<String>(3)?, call.get::<String>(4)?);
        let (dedupe, actor) = (call.optional_text(5)?, call.optional_text(6)?);
        let run = Run { id: &id, run_id: &run_id };
        let mut engine = shared.borrow_mut();
        Ok(engine.signal(call.get(0)?, run, &name, payload.as_bytes(), dedupe.as_deref(), actor.as_deref())?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "completeAwakeable", move |call| {
        let ((id, run_id), name, payload) = (target(call)?, call.get::<String>(3)?, call.get::<String>(4)?);
        let (actor, run) = (call.optional_text(5)?, Run { id: &id, run_id: &run_id });
        let mut engine = shared.borrow_mut();
        Ok(engine.complete_awakeable(call.get(0)?, run, &name, payload.as_bytes(), actor.as_deref())?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "cancel", move |call| {
        let ((id, run_id), reason, actor) = (target(call)?, call.get::<String>(3)?, call.optional_text(4)?);
        let run = Run { id: &id, run_id: &run_id };
        Ok(shared.borrow_mut().cancel(call.get(0)?, run, &reason, actor.as_deref())?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "terminate", move |call| {
        let ((id, run_id), reason, actor) = (target(call)?, call.get::<String>(3)?, call.optional_text(4)?);
        let run = Run { id: &id, run_id: &run_id };
        Ok(shared.borrow_mut().terminate(call.get(0)?, run, &reason, actor.as_deref())?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "resume", move |call| {
        let ((id, run_id), actor) = (target(call)?, call.optional_text(3)?);
        let run = Run { id: &id, run_id: &run_id };
        Ok(shared.borrow_mut().resume(call.get(0)?, run, actor.as_deref())?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "result", move |call| {
        let (id, run_id) = target(call)?;
        Ok(shared.borrow_mut().result(call.get(0)?, Run { id: &id, run_id: &run_id })?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "forget", move |call| {
        shared.borrow_mut().forget(call.get(0)?);
        Ok(())
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "querySlot", move |call| {
        let (id, run_id) = (call.get::<String>(0)?, call.get::<String>(1)?);
        Ok(shared.borrow().query_slot(Run { id: &id, run_id: &run_id })?.0)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "ackAt", move |call| Ok(shared.borrow_mut().ack_at(Slot(call.get(0)?), call.get(1)?)?))?;
    export_reads(env, object, engine)?;
    export_life(env, object, engine)
}

fn export_reads(env: &Env, object: &mut Object<'_>, engine: &Shared) -> napi::Result<()> {
    let shared = Rc::clone(engine);
    export(env, object, "describe", move |call| {
        let (id, run_id) = target(call)?;
        Ok(shared.borrow_mut().describe(call.get(0)?, Run { id: &id, run_id: &run_id })?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "history", move |call| {
        let (id, run_id) = target(call)?;
        let (from, limit) = (call.get::<u32>(3)?, call.get::<u32>(4)?);
        let run = Run { id: &id, run_id: &run_id };
        Ok(shared.borrow_mut().history(call.get(0)?, run, from as usize, limit as usize)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "explain", move |call| {
        let (id, run_id) = target(call)?;
        Ok(shared.borrow_mut().explain(call.get(0)?, Run { id: &id, run_id: &run_id })?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "list", move |call| {
        let (query, cursor) = (call.get::<String>(1)?, call.get::<String>(3)?);
        let (is_newest_first, limit) = (call.get::<u32>(2)? != 0, call.get::<u32>(4)?);
        let filter = filter(&query)?;
        Ok(shared.borrow_mut().list(call.get(0)?, &filter, &query, is_newest_first, &cursor, limit as usize)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "count", move |call| {
        Ok(shared.borrow_mut().count(call.get(0)?, &filter(&call.get::<String>(1)?)?)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "metrics", move |_| {
        let rows: Vec<String> =
            shared.borrow().metrics().into_iter().map(|(name, value)| format!("{name}{FIELD}{value}")).collect();
        Ok(rows.join(&ROW.to_string()))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "health", move |_| {
        let (status, problems) = shared.borrow().health();
        Ok(std::iter::once(status.to_owned()).chain(problems).collect::<Vec<_>>().join(&FIELD.to_string()))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "orphans", move |_| {
        let rows: Vec<String> =
            shared.borrow().orphans().into_iter().map(|(id, seq)| format!("{id}{FIELD}{}", seq.0)).collect();
        Ok(rows.join(&ROW.to_string()))
    })
}

fn export_life(env: &Env, object: &mut Object<'_>, engine: &Shared) -> napi::Result<()> {
    let shared = Rc::clone(engine);
    export(env, object, "report", move |_| {
        let engine = shared.borrow();
        let opened = engine.opened();
        let mut parts = vec![
            opened.open_runs.to_string(),
            opened.records.to_string(),
            opened.torn_bytes.to_string(),
            u8::from(opened.is_clean).to_string(),
        ];
        parts.extend(engine.unregistered().iter().map(|(kind, count)| format!("{kind}: {count}")));
        Ok(parts.join(&FIELD.to_string()))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "warnings", move |_| Ok(shared.borrow().group().warnings().join(&ROW.to_string())))?;
    let shared = Rc::clone(engine);
    export(env, object, "subscribe", move |call| {
        shared.borrow_mut().listen(call.get::<u32>(0)? != 0);
        Ok(())
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "setNow", move |call| {
        shared.borrow().set_now_ms(call.get::<f64>(0)? as i64);
        Ok(())
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "now", move |_| Ok(shared.borrow().clock().now_ms() as f64))?;
    let shared = Rc::clone(engine);
    export(env, object, "crash", move |_| Ok(shared.borrow_mut().crash()?))?;
    export_past(env, object, engine)?;
    let shared = Rc::clone(engine);
    export(env, object, "close", move |_| Ok(shared.borrow_mut().close()?))
}

/// An engine in memory can go back to any point of its past, for tests.
fn export_past(env: &Env, object: &mut Object<'_>, engine: &Shared) -> napi::Result<()> {
    let past: Rc<RefCell<Option<Past>>> = Rc::default();
    let no_past = || Fault::bad_input("there is no past to go back to");
    let (shared, kept) = (Rc::clone(engine), Rc::clone(&past));
    export(env, object, "past", move |_| {
        let past = shared.borrow_mut().past()?;
        let count = past.len() as f64;
        kept.replace(Some(past));
        Ok(count)
    })?;
    let kept = Rc::clone(&past);
    export(env, object, "pastEnds", move |_| {
        let kept = kept.borrow();
        let past = kept.as_ref().ok_or_else(no_past)?;
        Ok(past.ends().iter().map(PastEnd::row).collect::<Vec<_>>().join(&ROW.to_string()))
    })?;
    let kept = Rc::clone(&past);
    export(env, object, "pastSignals", move |call| {
        let (records, prefix) = (call.get::<u32>(0)?, call.get::<String>(1)?);
        let kept = kept.borrow();
        Ok(kept.as_ref().ok_or_else(no_past)?.signals(records as usize, &prefix) as f64)
    })?;
    let (shared, kept) = (Rc::clone(engine), Rc::clone(&past));
    export(env, object, "standing", move |call| {
        let (index, kept) = (call.get::<u32>(0)?, kept.borrow());
        let end = kept.as_ref().and_then(|past| past.ends().get(index as usize)).ok_or_else(no_past)?;
        Ok(shared.borrow().standing(end))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "rewind", move |call| {
        let (count, now_ms) = (call.get::<u32>(0)?, call.get::<f64>(1)?);
        let past = past.borrow();
        let past = past.as_ref().ok_or_else(no_past)?;
        let mut engine = shared.borrow_mut();
        engine.group().abandon();
        Ok(engine.rewind(past, count as usize, now_ms as i64)?)
    })
}

/// The id and the run id, arguments 1 and 2 of most verbs.
fn target(call: &Call) -> Result<(String, String), Fault> {
    Ok((call.get(1)?, call.get(2)?))
}
