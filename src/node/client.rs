//! Verbs of clients.

use super::attribute_texts::{attributes, filter};
use super::code::policies;
use super::export::{as_text, export, export_hot};
use super::fault::{Fault, Shared};
use super::task_texts::submission;
use crate::engine::{FIELD, Past, PastEnd, ROW, RunNo, ShardId, Slot, StartRequest};
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
        let set = if call.count() > 9 { attributes(call.str(9)?)? } else { Vec::new() };
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
        let (id, kind, input) = (call.str(1)?, call.str(2)?, call.str(4)?);
        let (reuse, conflict) = policies(call.number(5)?)?;
        let (actor, row) = (call.optional_str(7)?, call.str(8)?);
        let (spec, _) = submission(row)?;
        let request = StartRequest {
            id,
            kind,
            version: call.number(3)?,
            input: input.as_bytes(),
            reuse,
            conflict,
            attributes: b"",
            timeout_ms: call.optional_ms(6)?,
            actor,
            result_token: None,
            with: None,
        };
        Ok(shared.borrow_mut().enqueue_run(call.number(0)?, request, &spec)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "signal", move |call| {
        let run = call.run(1)?;
        let (name, payload) = (call.str(3)?, call.str(4)?);
        let (dedupe, actor) = (call.optional_str(5)?, call.optional_str(6)?);
        let mut engine = shared.borrow_mut();
        Ok(engine.signal(call.number(0)?, run, name, payload.as_bytes(), dedupe, actor)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "completeAwakeable", move |call| {
        let (run, name, payload) = (call.run(1)?, call.str(3)?, call.str(4)?);
        let (token, actor) = (call.number(0)?, call.optional_str(5)?);
        Ok(shared.borrow_mut().complete_awakeable(token, run, name, payload.as_bytes(), actor)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "cancel", move |call| {
        let (run, reason, actor) = (call.run(1)?, call.str(3)?, call.optional_str(4)?);
        Ok(shared.borrow_mut().cancel(call.number(0)?, run, reason, actor)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "terminate", move |call| {
        let (run, reason, actor) = (call.run(1)?, call.str(3)?, call.optional_str(4)?);
        Ok(shared.borrow_mut().terminate(call.number(0)?, run, reason, actor)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "resume", move |call| {
        let (run, actor) = (call.run(1)?, call.optional_str(3)?);
        Ok(shared.borrow_mut().resume(call.number(0)?, run, actor)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "result", move |call| Ok(shared.borrow_mut().result(call.number(0)?, call.run(1)?)?))?;
    let shared = Rc::clone(engine);
    export(env, object, "forget", move |call| {
        shared.borrow_mut().forget(call.number(0)?);
        Ok(())
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "querySlot", move |call| Ok(shared.borrow().query_slot(call.run(0)?)?.0))?;
    let shared = Rc::clone(engine);
    export(env, object, "ackAt", move |call| {
        Ok(shared.borrow_mut().ack_at(Slot(call.number(0)?), call.number(1)?)?)
    })?;
    export_reads(env, object, engine)?;
    export_life(env, object, engine)
}

fn export_reads(env: &Env, object: &mut Object<'_>, engine: &Shared) -> napi::Result<()> {
    let shared = Rc::clone(engine);
    export(env, object, "describe", move |call| Ok(shared.borrow_mut().describe(call.number(0)?, call.run(1)?)?))?;
    let shared = Rc::clone(engine);
    export(env, object, "history", move |call| {
        let run = call.run(1)?;
        let (from, limit) = (call.number(3)?, call.number(4)?);
        Ok(shared.borrow_mut().history(call.number(0)?, run, from as usize, limit as usize)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "explain", move |call| Ok(shared.borrow_mut().explain(call.number(0)?, call.run(1)?)?))?;
    let shared = Rc::clone(engine);
    export(env, object, "list", move |call| {
        let (query, cursor) = (call.str(1)?, call.str(3)?);
        let (is_newest_first, limit) = (call.number(2)? != 0, call.number(4)?);
        let filter = filter(query)?;
        Ok(shared.borrow_mut().list(call.number(0)?, &filter, query, is_newest_first, cursor, limit as usize)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "count", move |call| {
        Ok(shared.borrow_mut().count(call.number(0)?, &filter(call.str(1)?)?)?)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "metrics", move |_| {
        let rows: Vec<String> =
            shared.borrow().metrics().into_iter().map(|(name, value)| format!("{name}{FIELD}{value}")).collect();
        Ok(rows.join(&ROW.to_string()))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "backup", move |call| Ok(shared.borrow().backup(call.number(0)?, call.str(1)?)?))?;
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
        shared.borrow_mut().listen(call.number(0)? != 0);
        Ok(())
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "setNow", move |call| {
        shared.borrow().set_now_ms(call.float(0)? as i64);
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
        let (records, prefix) = (call.number(0)?, call.str(1)?);
        let kept = kept.borrow();
        Ok(kept.as_ref().ok_or_else(no_past)?.signals(records as usize, prefix) as f64)
    })?;
    let (shared, kept) = (Rc::clone(engine), Rc::clone(&past));
    export(env, object, "standing", move |call| {
        let (index, kept) = (call.number(0)?, kept.borrow());
        let end = kept.as_ref().and_then(|past| past.ends().get(index as usize)).ok_or_else(no_past)?;
        Ok(shared.borrow().standing(end))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "rewind", move |call| {
        let (count, now_ms) = (call.number(0)?, call.float(1)?);
        let past = past.borrow();
        let past = past.as_ref().ok_or_else(no_past)?;
        let mut engine = shared.borrow_mut();
        engine.group().abandon();
        Ok(engine.rewind(past, count as usize, now_ms as i64)?)
    })
}
