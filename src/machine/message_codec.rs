//! Messages without an acknowledgement as bytes, for checkpoints.

use super::messages::{Body, OwnedChild, OwnedLaunch};
use crate::record::{
    Caller, DecodeError, IdConflict, IdReuse, Outcome, ParentClose, Reader, RunNo, Seq, ShardId, Status, TaskNo,
    TaskRole, Writer,
};

pub(super) fn encode(body: &Body, out: &mut Writer<'_>) {
    match body {
        Body::Start { caller, child } => {
            out.byte(1);
            write_caller(out, *caller);
            write_child(out, child);
        }
        Body::Signal { id, target, name, payload } => {
            out.byte(2);
            out.text(id);
            write_target(out, *target);
            out.text(name);
            out.bytes(payload);
        }
        Body::Cancel { id, target, reason } => {
            out.byte(3);
            out.text(id);
            write_target(out, *target);
            out.text(reason);
        }
        Body::Close { id, caller, policy } => {
            out.byte(4);
            out.text(id);
            write_caller(out, *caller);
            out.byte(policy.code());
        }
        Body::Watch { id, target, caller } => {
            out.byte(5);
            out.text(id);
            write_target(out, *target);
            write_caller(out, *caller);
        }
        Body::Ended { run, seq, status, payload } => {
            out.byte(6);
            out.number(run.0);
            out.number(u64::from(seq.0));
            out.byte(status.code());
            out.bytes(payload);
        }
        Body::Order { caller, role, order } => {
            out.byte(7);
            write_caller(out, *caller);
            out.byte(role.code());
            out.bytes(order);
        }
        Body::CancelOrder { caller } => {
            out.byte(8);
            write_caller(out, *caller);
        }
        Body::RunOver { caller, outcome } => {
            out.byte(11);
            write_caller(out, *caller);
            out.byte(outcome.code());
        }
        Body::Admitted { run } => {
            out.byte(12);
            out.number(run.0);
        }
        Body::Activate { run } => {
            out.byte(13);
            out.number(run.0);
        }
        Body::NeverLetIn { run, status, payload } => {
            out.byte(14);
            out.number(run.0);
            out.byte(status.code());
            out.bytes(payload);
        }
        Body::Call { id, kind, key_root, name, payload, caller } => {
            out.byte(15);
            out.text(id);
            out.text(kind);
            out.raw(key_root);
            out.text(name);
            out.bytes(payload);
            write_caller(out, *caller);
        }
        Body::Launch { task, run, order } => {
            out.byte(16);
            out.number(task.0);
            out.text(&run.id);
            out.text(&run.kind);
            out.number(u64::from(run.version));
            out.raw(&run.key_root);
            out.option(run.timeout_ms, Writer::signed);
            out.bytes(&run.input);
            out.bytes(order);
        }
        Body::Made { task, caller } => {
            out.byte(17);
            out.number(task.0);
            write_caller(out, *caller);
        }
        Body::CancelTask { task, reason } => {
            out.byte(9);
            out.number(task.0);
            out.text(reason);
        }
        Body::WatchTask { task, caller } => {
            out.byte(10);
            out.number(task.0);
            write_caller(out, *caller);
        }
    }
}

pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Body, DecodeError> {
    Ok(match reader.byte()? {
        1 => Body::Start { caller: read_caller(reader)?, child: read_child(reader)? },
        2 => Body::Signal {
            id: reader.text()?.into(),
            target: read_target(reader)?,
            name: reader.text()?.into(),
            payload: reader.bytes()?.into(),
        },
        3 => Body::Cancel { id: reader.text()?.into(), target: read_target(reader)?, reason: reader.text()?.into() },
        4 => Body::Close {
            id: reader.text()?.into(),
            caller: read_caller(reader)?,
            policy: read_code(reader, ParentClose::from_code)?,
        },
        5 => Body::Watch { id: reader.text()?.into(), target: read_target(reader)?, caller: read_caller(reader)? },
        6 => Body::Ended {
            run: RunNo(reader.number()?),
            seq: read_seq(reader)?,
            status: read_code(reader, Status::from_code)?,
            payload: reader.bytes()?.into(),
        },
        7 => Body::Order {
            caller: read_caller(reader)?,
            role: read_code(reader, TaskRole::from_code)?,
            order: reader.bytes()?.into(),
        },
        8 => Body::CancelOrder { caller: read_caller(reader)? },
        9 => Body::CancelTask { task: TaskNo(reader.number()?), reason: reader.text()?.into() },
        10 => Body::WatchTask { task: TaskNo(reader.number()?), caller: read_caller(reader)? },
        11 => Body::RunOver { caller: read_caller(reader)?, outcome: read_code(reader, Outcome::from_code)? },
        12 => Body::Admitted { run: RunNo(reader.number()?) },
        13 => Body::Activate { run: RunNo(reader.number()?) },
        14 => Body::NeverLetIn {
            run: RunNo(reader.number()?),
            status: read_code(reader, Status::from_code)?,
            payload: reader.bytes()?.into(),
        },
        15 => Body::Call {
            id: reader.text()?.into(),
            kind: reader.text()?.into(),
            key_root: reader.raw(16)?.try_into().map_err(|_| DecodeError::Short)?,
            name: reader.text()?.into(),
            payload: reader.bytes()?.into(),
            caller: read_caller(reader)?,
        },
        16 => Body::Launch {
            task: TaskNo(reader.number()?),
            run: OwnedLaunch {
                id: reader.text()?.into(),
                kind: reader.text()?.into(),
                version: u32::try_from(reader.number()?).map_err(|_| DecodeError::Number)?,
                key_root: reader.raw(16)?.try_into().map_err(|_| DecodeError::Short)?,
                timeout_ms: reader.option(Reader::signed)?,
                input: reader.bytes()?.into(),
            },
            order: reader.bytes()?.into(),
        },
        17 => Body::Made { task: TaskNo(reader.number()?), caller: read_caller(reader)? },
        unknown => return Err(DecodeError::Unknown(u64::from(unknown))),
    })
}

pub(super) fn write_caller(out: &mut Writer<'_>, caller: Caller) {
    out.number(u64::from(caller.shard.0));
    out.number(caller.run.0);
    out.number(u64::from(caller.seq.0));
}

fn write_target(out: &mut Writer<'_>, target: Option<RunNo>) {
    out.option(target, |out, target| out.number(target.0));
}

fn write_child(out: &mut Writer<'_>, child: &OwnedChild) {
    out.text(&child.id);
    out.text(&child.kind);
    out.number(u64::from(child.version));
    out.raw(&child.key_root);
    out.option(child.timeout_ms, Writer::signed);
    out.byte(child.parent_close.code());
    out.byte(child.reuse.code());
    out.byte(child.conflict.code());
    out.bytes(&child.input);
}

pub(super) fn read_caller(reader: &mut Reader<'_>) -> Result<Caller, DecodeError> {
    let shard = ShardId(u16::try_from(reader.number()?).map_err(|_| DecodeError::Number)?);
    Ok(Caller { shard, run: RunNo(reader.number()?), seq: read_seq(reader)? })
}

fn read_seq(reader: &mut Reader<'_>) -> Result<Seq, DecodeError> {
    u32::try_from(reader.number()?).map(Seq).map_err(|_| DecodeError::Number)
}

fn read_target(reader: &mut Reader<'_>) -> Result<Option<RunNo>, DecodeError> {
    reader.option(|reader| reader.number().map(RunNo))
}

pub(super) fn read_code<T>(reader: &mut Reader<'_>, from_code: fn(u8) -> Option<T>) -> Result<T, DecodeError> {
    let code = reader.byte()?;
    from_code(code).ok_or_else(|| DecodeError::Unknown(u64::from(code)))
}

fn read_child(reader: &mut Reader<'_>) -> Result<OwnedChild, DecodeError> {
    let (id, kind) = (reader.text()?.into(), reader.text()?.into());
    let version = u32::try_from(reader.number()?).map_err(|_| DecodeError::Number)?;
    let mut key_root = [0; 16];
    key_root.copy_from_slice(reader.raw(16)?);
    Ok(OwnedChild {
        id,
        kind,
        version,
        key_root,
        timeout_ms: reader.option(Reader::signed)?,
        parent_close: read_code(reader, ParentClose::from_code)?,
        reuse: read_code(reader, IdReuse::from_code)?,
        conflict: read_code(reader, IdConflict::from_code)?,
        input: reader.bytes()?.into(),
    })
}
