//! Records to bytes, field by field in the order of their declaration.

use super::{CallSpec, Caller, ChildSpec, NewRun, Origin, Reader, Record, Retry, RunNo, Sending, Seq, Writer};

impl Record<'_> {
    /// Writes it at the end of `bytes`.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        let out = &mut Writer::new(bytes);
        match *self {
            Record::Start { run, time_ms, new, origin } => {
                head(out, 1, run);
                out.signed(time_ms);
                write_new_run(out, &new);
                write_origin(out, origin);
            }
            Record::StepDone { run, seq, name, attempt, time_ms, is_failure, payload } => {
                step_head(out, 2, run, seq, name, attempt, time_ms);
                out.byte(u8::from(is_failure));
                out.bytes(payload);
            }
            Record::StepFailed { run, seq, name, attempt, time_ms, retry, failure } => {
                step_head(out, 3, run, seq, name, attempt, time_ms);
                let retry_at_ms = match retry {
                    Retry::At(at_ms) => Some(at_ms),
                    Retry::Paused => None,
                };
                out.option(retry_at_ms, Writer::signed);
                out.bytes(failure);
            }
            Record::StepStarted { run, seq, name, attempt, time_ms } => {
                step_head(out, 4, run, seq, name, attempt, time_ms);
            }
            Record::Heartbeat { run, seq, attempt, time_ms, details } => {
                op_head(out, 5, run, seq);
                out.number(u64::from(attempt));
                out.signed(time_ms);
                out.bytes(details);
            }
            Record::TimerSet { run, seq, due_ms, is_limit } => {
                op_head(out, if is_limit { 32 } else { 6 }, run, seq);
                out.signed(due_ms);
            }
            Record::TimerFired { run, seq, time_ms, actor: None } => {
                op_head(out, 7, run, seq);
                out.signed(time_ms);
            }
            Record::TimerFired { run, seq, time_ms, actor: Some(actor) } => {
                op_head(out, 31, run, seq);
                out.signed(time_ms);
                out.text(actor);
            }
            Record::WaitSet { run, seq, name, due_ms } => {
                op_head(out, 8, run, seq);
                out.text(name);
                out.option(due_ms, Writer::signed);
            }
            Record::ConditionSet { run, seq, due_ms } => {
                op_head(out, 9, run, seq);
                out.option(due_ms, Writer::signed);
            }
            Record::Signal { run, time_ms, name, payload, dedupe, actor, origin } => {
                head(out, 10, run);
                out.signed(time_ms);
                out.text(name);
                out.bytes(payload);
                out.option(dedupe, Writer::text);
                out.option(actor, Writer::text);
                write_origin(out, origin);
            }
            Record::ChildSet { run, seq, child } => {
                op_head(out, 11, run, seq);
                write_child(out, &child);
            }
            Record::SendSet { run, seq, id, target, what } => {
                op_head(out, 12, run, seq);
                out.text(id);
                out.option(target, |out, target| out.number(target.0));
                write_sending(out, what);
            }
            Record::ChildDone { run, seq, time_ms, status, payload, origin } => {
                op_head(out, 13, run, seq);
                out.signed(time_ms);
                out.byte(status.code());
                out.bytes(payload);
                write_known_origin(out, origin);
            }
            Record::Cancel { run, time_ms, reason, actor, origin } => {
                head(out, 14, run);
                out.signed(time_ms);
                out.text(reason);
                out.option(actor, Writer::text);
                write_origin(out, origin);
            }
            Record::Resumed { run, time_ms, actor } => {
                head(out, 15, run);
                out.signed(time_ms);
                out.option(actor, Writer::text);
            }
            Record::Done { run, time_ms, status, payload, actor, origin } => {
                head(out, 16, run);
                out.signed(time_ms);
                out.byte(status.code());
                out.bytes(payload);
                out.option(actor, Writer::text);
                write_origin(out, origin);
            }
            Record::Watched { run, caller, origin } => {
                head(out, 17, run);
                write_caller(out, caller);
                write_known_origin(out, origin);
            }
            Record::Answered { caller, status, payload, origin } => {
                out.byte(18);
                write_caller(out, caller);
                out.byte(status.code());
                out.bytes(payload);
                write_known_origin(out, origin);
            }
            Record::Received { origin } => {
                out.byte(19);
                write_known_origin(out, origin);
            }
            Record::Update { run, number, time_ms, name, id, payload, actor } => {
                update_head(out, 20, run, number, time_ms);
                out.text(name);
                out.text(id);
                out.bytes(payload);
                out.option(actor, Writer::text);
            }
            Record::UpdateDone { run, number, time_ms, is_failure, payload } => {
                update_head(out, 21, run, number, time_ms);
                out.byte(u8::from(is_failure));
                out.bytes(payload);
            }
            Record::Called { run, number, time_ms, name, id, payload, caller, actor, origin } => {
                update_head(out, 38, run, number, time_ms);
                out.text(name);
                out.option(id, Writer::text);
                out.bytes(payload);
                out.option(caller, write_caller);
                out.option(actor, Writer::text);
                write_origin(out, origin);
            }
            Record::CallDone { run, number, time_ms, seq, is_failure, payload, state } => {
                update_head(out, 39, run, number, time_ms);
                out.option(seq, |out, seq| out.number(u64::from(seq.0)));
                out.byte(u8::from(is_failure));
                out.bytes(payload);
                out.option(state, Writer::bytes);
            }
            Record::SignalledStart { run, time_ms, new, signal } => {
                head(out, 22, run);
                out.signed(time_ms);
                write_new_run(out, &new);
                out.text(signal.name);
                out.bytes(signal.payload);
                out.option(signal.dedupe, Writer::text);
            }
            Record::Continued { run, time_ms, next, new, carried } => {
                head(out, 23, run);
                out.signed(time_ms);
                out.number(next.0);
                write_new_run(out, &new);
                out.bytes(carried);
            }
            Record::Patched { run, id } => {
                head(out, 24, run);
                out.text(id);
            }
            Record::Paused { run, time_ms, actor } => {
                head(out, 25, run);
                out.signed(time_ms);
                out.option(actor, Writer::text);
            }
            Record::Queued { run, time_ms, new, timeout_ms, order, task } => {
                head(out, if task.is_some() { 40 } else { 26 }, run);
                out.signed(time_ms);
                write_new_run(out, &new);
                out.option(timeout_ms, Writer::signed);
                out.bytes(order);
                if let Some((task, origin)) = task {
                    out.number(task.0);
                    write_known_origin(out, origin);
                }
            }
            Record::Activated { run, time_ms, origin } => {
                head(out, 27, run);
                out.signed(time_ms);
                write_known_origin(out, origin);
            }
            Record::TaskSet { run, seq, kind, role, order } => {
                op_head(out, 30, run, seq);
                out.text(kind);
                out.byte(role.code());
                out.bytes(order);
            }
            Record::Attributes { run, seq, time_ms, set } => {
                op_head(out, 36, run, seq.unwrap_or(Seq(0)));
                out.signed(time_ms);
                out.bytes(set);
            }
            Record::AttributedStart { run, time_ms, new, set, signal } => {
                head(out, 37, run);
                out.signed(time_ms);
                write_new_run(out, &new);
                out.bytes(set);
                out.option(signal, |out, signal| {
                    out.text(signal.name);
                    out.bytes(signal.payload);
                    out.option(signal.dedupe, Writer::text);
                });
            }
            Record::Forked { run, entries } => {
                head(out, 33, run);
                out.bytes(entries);
            }
            Record::Reset { run, time_ms, next, reason, actor, entries } => {
                head(out, 34, run);
                out.signed(time_ms);
                out.number(next.0);
                out.text(reason);
                out.option(actor, Writer::text);
                out.bytes(entries);
            }
            Record::Branched { run, time_ms, seq, id, source, key_root, actor } => {
                op_head(out, 35, run, seq);
                out.signed(time_ms);
                out.text(id);
                out.text(source);
                out.raw(&key_root);
                out.option(actor, Writer::text);
            }
        }
    }
}

/// A record of a run, as one of the run `to`. `record` is what [`Record::encode`] wrote.
#[must_use]
pub fn renumbered(record: &[u8], to: RunNo) -> Vec<u8> {
    let mut reader = Reader::new(record);
    let mut bytes = Vec::with_capacity(record.len() + 9);
    let mut out = Writer::new(&mut bytes);
    if let (Ok(kind), Ok(_)) = (reader.byte(), reader.number()) {
        head(&mut out, kind, to);
        out.raw(reader.rest());
    }
    bytes
}

fn head(out: &mut Writer<'_>, kind: u8, run: RunNo) {
    out.byte(kind);
    out.number(run.0);
}

fn op_head(out: &mut Writer<'_>, kind: u8, run: RunNo, seq: Seq) {
    head(out, kind, run);
    out.number(u64::from(seq.0));
}

fn step_head(out: &mut Writer<'_>, kind: u8, run: RunNo, seq: Seq, name: &str, attempt: u32, time_ms: i64) {
    op_head(out, kind, run, seq);
    out.text(name);
    out.number(u64::from(attempt));
    out.signed(time_ms);
}

fn update_head(out: &mut Writer<'_>, kind: u8, run: RunNo, number: u32, time_ms: i64) {
    head(out, kind, run);
    out.number(u64::from(number));
    out.signed(time_ms);
}

pub(crate) fn write_caller(out: &mut Writer<'_>, caller: Caller) {
    out.number(u64::from(caller.shard.0));
    out.number(caller.run.0);
    out.number(u64::from(caller.seq.0));
}

pub(super) fn write_known_origin(out: &mut Writer<'_>, origin: Origin) {
    out.number(u64::from(origin.from.0));
    out.number(origin.number);
}

fn write_origin(out: &mut Writer<'_>, origin: Option<Origin>) {
    out.option(origin, write_known_origin);
}

fn write_new_run(out: &mut Writer<'_>, new: &NewRun<'_>) {
    out.text(new.id);
    out.text(new.kind);
    out.number(u64::from(new.version));
    out.raw(&new.key_root);
    out.option(new.deadline_ms, Writer::signed);
    out.option(new.parent, |out, (caller, close)| {
        write_caller(out, caller);
        out.byte(close.code());
    });
    out.bytes(new.input);
    out.option(new.actor, Writer::text);
}

fn write_child(out: &mut Writer<'_>, child: &ChildSpec<'_>) {
    out.text(child.id);
    out.text(child.kind);
    out.number(u64::from(child.version));
    out.raw(&child.key_root);
    out.option(child.timeout_ms, Writer::signed);
    out.byte(child.parent_close.code());
    out.byte(child.reuse.code());
    out.byte(child.conflict.code());
    out.bytes(child.input);
}

fn write_sending(out: &mut Writer<'_>, what: Sending<'_>) {
    match what {
        Sending::Signal(name, payload) => {
            out.byte(0);
            out.text(name);
            out.bytes(payload);
        }
        Sending::Cancel(reason) => {
            out.byte(1);
            out.text(reason);
        }
        Sending::Watch => out.byte(2),
        Sending::CancelChild(seq) => {
            out.byte(3);
            out.number(u64::from(seq.0));
        }
        Sending::CancelOrder(seq) => {
            out.byte(4);
            out.number(u64::from(seq.0));
        }
        Sending::CancelTask(task, reason) => {
            out.byte(5);
            out.number(task.0);
            out.text(reason);
        }
        Sending::WatchTask(task) => {
            out.byte(6);
            out.number(task.0);
        }
        Sending::Call(CallSpec { kind, key_root, name, payload }) => {
            out.byte(7);
            out.text(kind);
            out.raw(&key_root);
            out.text(name);
            out.bytes(payload);
        }
    }
}
