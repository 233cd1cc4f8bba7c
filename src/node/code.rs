//! Verbs of running code, and the turn of events.

use super::export::{as_text, export, export_hot};
use super::fault::{DEAD, Fault, LATER, RECORDED, Shared, halt};
use super::heads::{answer_rows, write_heads};
use super::items::items;
use super::task_texts::submission;
use crate::engine::{
    CallSpec, ChildSpec, Completed, Delivery, DeliveryKind, Events, FIELD, Halt, IdConflict, IdReuse, Lsn, ParentClose,
    RunNo, Sending, Seq, Slot, Status, StepMode, TaskRole, TimerMode,
};
use napi::Env;
use napi::bindgen_prelude::{Object, Uint32Array};
use std::cell::RefCell;
use std::rc::Rc;

/// Ends what a run asks for where nothing says how important it is.
const BY_ITS_RUN: &str = "\u{1f}i";

/// Adds the verbs of running code.
pub(super) fn export_code(env: &Env, object: &mut Object<'_>, engine: &Shared) -> napi::Result<()> {
    let shared = Rc::clone(engine);
    let name = RefCell::new(Vec::new());
    export_hot(env, object, "openStep", move |call| {
        let (slot, seq, flags) = (Slot(call.number(0)?), Seq(call.number(1)?), call.number(3)?);
        let mut name = name.borrow_mut();
        call.text(2, &mut name)?;
        let name = as_text(&name)?;
        let mode = StepMode { is_read_only: flags & 1 != 0, is_at_most_once: flags & 2 != 0 };
        Ok(match shared.borrow_mut().open_step(slot, seq, name, mode) {
            Ok(crate::engine::StepAnswer::Run(Lsn(gate))) => gate as f64,
            Ok(crate::engine::StepAnswer::Later) => LATER,
            Ok(crate::engine::StepAnswer::Recorded) => RECORDED,
            Err(reason) => halt(reason),
        })
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "openTimer", move |call| {
        let (slot, seq, value_ms) = (Slot(call.number(0)?), Seq(call.number(1)?), call.float(2)?);
        let flags = call.number(3)?;
        let mode = TimerMode { is_absolute: flags & 1 != 0, is_limit: flags & 2 != 0 };
        Ok(answer(shared.borrow_mut().open_timer(slot, seq, value_ms as i64, mode)))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "openWait", move |call| {
        let (slot, seq, name) = (Slot(call.number(0)?), Seq(call.number(1)?), call.str(2)?);
        Ok(match shared.borrow_mut().open_wait(slot, seq, name, call.optional_ms(3)?) {
            Ok(has_value) => f64::from(u8::from(has_value)),
            Err(reason) => halt(reason),
        })
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "openCondition", move |call| {
        let (slot, seq) = (Slot(call.number(0)?), Seq(call.number(1)?));
        Ok(answer(shared.borrow_mut().open_condition(slot, seq, call.optional_ms(2)?)))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "withdraw", move |call| {
        Ok(answer(shared.borrow_mut().withdraw(Slot(call.number(0)?), Seq(call.number(1)?))))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "openChild", move |call| {
        let (slot, seq, flags) = (Slot(call.number(0)?), Seq(call.number(1)?), call.number(2)?);
        let (id, kind, version) = (call.str(3)?, call.str(4)?, call.number(5)?);
        let input = call.str(6)?;
        let (reuse, conflict) = policies(flags)?;
        let child = ChildSpec {
            id,
            kind,
            version,
            key_root: [0; 16],
            timeout_ms: call.optional_ms(7)?,
            parent_close: ParentClose::from_code((flags & 3) as u8)
                .ok_or_else(|| Fault::bad_input(format!("{} is no parent close policy", flags & 3)))?,
            reuse,
            conflict,
            input: input.as_bytes(),
        };
        Ok(answer(shared.borrow_mut().open_child(slot, seq, child)))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "openSend", move |call| {
        let (slot, seq, what) = (Slot(call.number(0)?), Seq(call.number(1)?), call.number(2)?);
        let (id, run_id) = (call.str(3)?, call.str(4)?);
        let (name, payload) = (call.str(5)?, call.str(6)?);
        let what = match what {
            0 => Sending::Signal(name, payload.as_bytes()),
            1 => Sending::Cancel(payload),
            2 => Sending::Watch,
            3 => Sending::CancelChild(Seq(payload
                .parse()
                .map_err(|_| Fault::bad_input(format!("\"{payload}\" is no operation")))?)),
            4 => Sending::CancelOrder(Seq(payload
                .parse()
                .map_err(|_| Fault::bad_input(format!("\"{payload}\" is no operation")))?)),
            5 => Sending::CancelTask(known_task(id)?, payload),
            6 => Sending::WatchTask(known_task(id)?),
            7 => {
                let (kind, name) = name.split_once(FIELD).ok_or_else(|| Fault::bad_input("a call has two names"))?;
                Sending::Call(CallSpec { kind, key_root: [0; 16], name, payload: payload.as_bytes() })
            }
            other => return Err(Fault::bad_input(format!("{other} is nothing that can be sent"))),
        };
        Ok(answer(shared.borrow_mut().open_send(slot, seq, id, run_no(run_id)?, what)))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "openTask", move |call| {
        let (slot, seq, role) = (Slot(call.number(0)?), Seq(call.number(1)?), call.number(2)?);
        let text = call.str(3)?;
        let role = u8::try_from(role).ok().and_then(TaskRole::from_code).filter(|role| *role != TaskRole::Run);
        let role = role.ok_or_else(|| Fault::bad_input("there is no such part that a task plays for a run"))?;
        let (text, inherits_class) = text.strip_suffix(BY_ITS_RUN).map_or((text, false), |text| (text, true));
        let (spec, dedupe) = submission(text)?;
        Ok(answer(shared.borrow_mut().open_task(slot, seq, role, dedupe, &spec, inherits_class)))
    })?;
    export_results(env, object, engine)?;
    super::updates::export_updates(env, object, engine)?;
    super::branching::export_branching(env, object, engine)?;
    super::objects::export_objects(env, object, engine)?;
    export_turns(env, object, engine)
}

fn export_results(env: &Env, object: &mut Object<'_>, engine: &Shared) -> napi::Result<()> {
    let shared = Rc::clone(engine);
    let payload = RefCell::new(Vec::new());
    export_hot(env, object, "complete", move |call| {
        let (slot, seq, lease) = (Slot(call.number(0)?), Seq(call.number(1)?), call.number(2)?);
        let mut payload = payload.borrow_mut();
        call.text(3, &mut payload)?;
        Ok(match shared.borrow_mut().complete(slot, seq, lease, &payload, call.number(4)? == 1) {
            Ok(Completed::Taken) => 1.0,
            Ok(Completed::Recorded) => 0.0,
            Ok(Completed::Stale) => DEAD,
            Err(reason) => halt(reason),
        })
    })?;
    let shared = Rc::clone(engine);
    let texts = RefCell::new((Vec::new(), Vec::new()));
    export_hot(env, object, "completeAll", move |call| {
        let (rows, count) = (call.get(0)?, call.number(1)? as usize);
        let (payloads, ranges) = &mut *texts.borrow_mut();
        call.text(2, payloads)?;
        items(payloads, ranges);
        if ranges.len() != count {
            return Err(Fault::bad_input(format!("{} results came for {count} steps", ranges.len())));
        }
        let mut engine = shared.borrow_mut();
        answer_rows(rows, count, |index, [slot, seq, lease, takes]| {
            let payload = &payloads[ranges[index].clone()];
            match engine.complete(Slot(slot), Seq(seq), lease, payload, takes == 1) {
                Ok(Completed::Recorded) => 0,
                Ok(Completed::Taken) => 1,
                Ok(Completed::Stale) | Err(_) => 2,
            }
        });
        Ok(0.0)
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "fail", move |call| {
        let (slot, seq, lease) = (Slot(call.number(0)?), Seq(call.number(1)?), call.number(2)?);
        let (failure, delay_ms) = (call.str(3)?, call.float(4)?);
        let mut engine = shared.borrow_mut();
        let failure = failure.as_bytes();
        Ok(counted(if delay_ms >= 0.0 {
            engine.retry(slot, seq, lease, Some(delay_ms as i64), failure)
        } else if delay_ms == -2.0 {
            engine.retry(slot, seq, lease, None, failure)
        } else {
            engine.fail(slot, seq, lease, failure)
        }))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "heartbeat", move |call| {
        let (slot, seq, lease) = (Slot(call.number(0)?), Seq(call.number(1)?), call.number(2)?);
        let details = call.optional_str(3)?;
        Ok(counted(shared.borrow_mut().heartbeat(slot, seq, lease, details.map(str::as_bytes))))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "armAttempt", move |call| {
        let (slot, seq, lease) = (Slot(call.number(0)?), Seq(call.number(1)?), call.number(2)?);
        let (timeout_ms, heartbeat_ms) = (call.optional_ms(3)?, call.optional_ms(4)?);
        Ok(answer(shared.borrow_mut().watch_attempt(slot, seq, lease, timeout_ms, heartbeat_ms)))
    })?;
    let shared = Rc::clone(engine);
    let payload = RefCell::new(Vec::new());
    export_hot(env, object, "finish", move |call| {
        let (slot, status) = (Slot(call.number(0)?), call.number(1)?);
        let mut payload = payload.borrow_mut();
        call.text(2, &mut payload)?;
        let status = u8::try_from(status)
            .ok()
            .and_then(Status::from_code)
            .ok_or_else(|| Fault::bad_input(format!("{status} is no status")))?;
        Ok(answer(shared.borrow_mut().finish(slot, status, &payload)))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "stuck", move |call| {
        let (message, place) = (call.str(1)?, call.str(2)?);
        Ok(answer(shared.borrow_mut().stuck(Slot(call.number(0)?), message, place)))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "stuckAt", move |call| {
        let place = call.str(1)?;
        Ok(answer(shared.borrow_mut().stuck_at(Slot(call.number(0)?), place)))
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "mismatch", move |call| Ok(shared.borrow().mismatch(Slot(call.number(0)?)).unwrap_or_default()))
}

fn export_turns(env: &Env, object: &mut Object<'_>, engine: &Shared) -> napi::Result<()> {
    let shared = Rc::clone(engine);
    export_hot(env, object, "quiescent", move |call| {
        Ok(match shared.borrow_mut().quiescent(Slot(call.number(0)?)) {
            Ok(Some(delivery)) => delivery_number(delivery),
            Ok(None) => 0.0,
            Err(reason) => halt(reason),
        })
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "identity", move |call| {
        Ok(shared.borrow().identity(Slot(call.number(0)?)).unwrap_or_default())
    })?;
    let shared = Rc::clone(engine);
    export(env, object, "results", move |call| Ok(shared.borrow().results(Slot(call.number(0)?)).unwrap_or_default()))?;
    let shared = Rc::clone(engine);
    export(env, object, "payload", move |call| Ok(shared.borrow().payload(Slot(call.number(0)?)).unwrap_or_default()))?;
    let shared = Rc::clone(engine);
    export_hot(env, object, "turnTime", move |call| {
        Ok(shared.borrow().turn_ms(Slot(call.number(0)?)).map_or(DEAD, |ms| ms as f64))
    })?;
    let shared = Rc::clone(engine);
    export_hot(env, object, "replaying", move |call| {
        Ok(f64::from(u8::from(shared.borrow().is_replaying(Slot(call.number(0)?)).unwrap_or(false))))
    })?;
    let shared = Rc::clone(engine);
    export_hot(env, object, "durable", move |_| Ok(shared.borrow().durable().0 as f64))?;
    let shared = Rc::clone(engine);
    export_hot(env, object, "idle", move |_| {
        let (Lsn(durable), has_news) = shared.borrow_mut().idle();
        Ok(2.0 * durable as f64 + f64::from(u8::from(has_news)))
    })?;
    let shared = Rc::clone(engine);
    export_hot(env, object, "nextDueMs", move |_| Ok(shared.borrow().next_due_ms().map_or(-1.0, |ms| ms as f64)))?;
    let shared = Rc::clone(engine);
    export_hot(env, object, "nextDueAt", move |_| Ok(shared.borrow().next_due_at_ms().map_or(-1.0, |ms| ms as f64)))?;
    let shared = Rc::clone(engine);
    let pending = RefCell::new(Pending::default());
    export(env, object, "tick", move |call| {
        let heads: Uint32Array = call.get(0)?;
        let mut pending = pending.borrow_mut();
        if pending.next == pending.list.len() {
            pending.next = 0;
            pending.list.clear();
            let mut events = Events::default();
            pending.has_more = shared.borrow_mut().tick(&mut events);
            pending.list.extend(events.drain());
        }
        let (written, text) = write_heads(heads, &pending.list[pending.next..], pending.has_more);
        pending.next += written;
        Ok(text)
    })
}

/// Events that did not fit into the last crossing.
#[derive(Default)]
struct Pending {
    list: Vec<crate::engine::Event>,
    next: usize,
    has_more: bool,
}

/// A delivery in the crossing: its kind, whether it is the last one, its operation.
fn delivery_number(Delivery { kind, seq, is_last }: Delivery) -> f64 {
    f64::from(delivery_code(kind) + 16 * u8::from(is_last)) + 32.0 * f64::from(seq.0)
}

/// The code of a delivery in the crossing.
fn delivery_code(kind: DeliveryKind) -> u8 {
    match kind {
        DeliveryKind::Start => 1,
        DeliveryKind::StepCompleted => 2,
        DeliveryKind::StepFailed => 3,
        DeliveryKind::TimerFired => 4,
        DeliveryKind::SignalTaken => 5,
        DeliveryKind::WaitTimedOut => 6,
        DeliveryKind::ConditionTimedOut => 7,
        DeliveryKind::ChildEnded => 8,
        DeliveryKind::Cancelled => 9,
        DeliveryKind::UpdateAccepted => 10,
        DeliveryKind::CallArrived => 11,
    }
}

pub(super) fn answer(result: Result<(), Halt>) -> f64 {
    match result {
        Ok(()) => 0.0,
        Err(reason) => halt(reason),
    }
}

fn counted(result: Result<bool, Halt>) -> f64 {
    match result {
        Ok(true) => 0.0,
        // An attempt that does not count any more is as dead as a run that has ended.
        Ok(false) => DEAD,
        Err(reason) => halt(reason),
    }
}

/// The id policies in the bits of a call's flags.
pub(super) fn policies(flags: u32) -> Result<(IdReuse, IdConflict), Fault> {
    let reuse = IdReuse::from_code((flags >> 2 & 3) as u8);
    let conflict = IdConflict::from_code((flags >> 4 & 3) as u8);
    reuse.zip(conflict).ok_or_else(|| Fault::bad_input(format!("{flags} holds no id policies")))
}

fn known_task(id: &str) -> Result<crate::engine::TaskNo, Fault> {
    crate::engine::parse_task_id(id).ok_or_else(|| Fault::bad_input(format!("\"{id}\" is no id of a task")))
}

fn run_no(run_id: &str) -> Result<Option<RunNo>, Fault> {
    if run_id.is_empty() {
        return Ok(None);
    }
    crate::record::parse_run_id(run_id)
        .map(|(_, no)| Some(no))
        .ok_or_else(|| Fault::bad_input(format!("\"{run_id}\" is no run id")))
}
