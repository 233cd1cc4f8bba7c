//! Bytes to records: the same fields in the same order, each checked. There is one writing of a record and no other.

use super::{
    CallSpec, Caller, ChildSpec, DecodeError, IdConflict, IdReuse, NewRun, NewSignal, Origin, ParentClose, Reader,
    Record, Retry, RunNo, Sending, Seq, ShardId, Status, TaskNo, TaskRole,
};

impl<'a> Record<'a> {
    /// Reads one record that must fill `bytes` exactly. Borrows from `bytes`; never allocates, never panics.
    pub fn decode(bytes: &'a [u8]) -> Result<Record<'a>, DecodeError> {
        let mut reader = Reader::new(bytes);
        let record = read_record(&mut reader)?;
        reader.end()?;
        Ok(record)
    }
}

fn read_record<'a>(from: &mut Reader<'a>) -> Result<Record<'a>, DecodeError> {
    Ok(match from.byte()? {
        1 => Record::Start {
            run: run(from)?,
            time_ms: from.signed()?,
            new: read_new_run(from)?,
            origin: from.option(read_known_origin)?,
        },
        2 => {
            let (run, seq, name, attempt, time_ms) = read_step_head(from)?;
            Record::StepDone { run, seq, name, attempt, time_ms, is_failure: flag(from)?, payload: from.bytes()? }
        }
        3 => {
            let (run, seq, name, attempt, time_ms) = read_step_head(from)?;
            let retry = from.option(Reader::signed)?.map_or(Retry::Paused, Retry::At);
            Record::StepFailed { run, seq, name, attempt, time_ms, retry, failure: from.bytes()? }
        }
        4 => {
            let (run, seq, name, attempt, time_ms) = read_step_head(from)?;
            Record::StepStarted { run, seq, name, attempt, time_ms }
        }
        5 => Record::Heartbeat {
            run: run(from)?,
            seq: seq(from)?,
            attempt: small(from)?,
            time_ms: from.signed()?,
            details: from.bytes()?,
        },
        kind @ (6 | 32) => {
            Record::TimerSet { run: run(from)?, seq: seq(from)?, due_ms: from.signed()?, is_limit: kind == 32 }
        }
        7 => Record::TimerFired { run: run(from)?, seq: seq(from)?, time_ms: from.signed()?, actor: None },
        8 => Record::WaitSet {
            run: run(from)?,
            seq: seq(from)?,
            name: from.text()?,
            due_ms: from.option(Reader::signed)?,
        },
        9 => Record::ConditionSet { run: run(from)?, seq: seq(from)?, due_ms: from.option(Reader::signed)? },
        10 => Record::Signal {
            run: run(from)?,
            time_ms: from.signed()?,
            name: from.text()?,
            payload: from.bytes()?,
            dedupe: from.option(Reader::text)?,
            actor: from.option(Reader::text)?,
            origin: from.option(read_known_origin)?,
        },
        11 => Record::ChildSet { run: run(from)?, seq: seq(from)?, child: read_child(from)? },
        12 => Record::SendSet {
            run: run(from)?,
            seq: seq(from)?,
            id: from.text()?,
            target: from.option(run)?,
            what: read_sending(from)?,
        },
        13 => Record::ChildDone {
            run: run(from)?,
            seq: seq(from)?,
            time_ms: from.signed()?,
            status: status(from)?,
            payload: from.bytes()?,
            origin: read_known_origin(from)?,
        },
        14 => Record::Cancel {
            run: run(from)?,
            time_ms: from.signed()?,
            reason: from.text()?,
            actor: from.option(Reader::text)?,
            origin: from.option(read_known_origin)?,
        },
        15 => Record::Resumed { run: run(from)?, time_ms: from.signed()?, actor: from.option(Reader::text)? },
        16 => Record::Done {
            run: run(from)?,
            time_ms: from.signed()?,
            status: status(from)?,
            payload: from.bytes()?,
            actor: from.option(Reader::text)?,
            origin: from.option(read_known_origin)?,
        },
        17 => Record::Watched { run: run(from)?, caller: read_caller(from)?, origin: read_known_origin(from)? },
        18 => Record::Answered {
            caller: read_caller(from)?,
            status: status(from)?,
            payload: from.bytes()?,
            origin: read_known_origin(from)?,
        },
        19 => Record::Received { origin: read_known_origin(from)? },
        20 => Record::Update {
            run: run(from)?,
            number: small(from)?,
            time_ms: from.signed()?,
            name: from.text()?,
            id: from.text()?,
            payload: from.bytes()?,
            actor: from.option(Reader::text)?,
        },
        21 => Record::UpdateDone {
            run: run(from)?,
            number: small(from)?,
            time_ms: from.signed()?,
            is_failure: flag(from)?,
            payload: from.bytes()?,
        },
        22 => Record::SignalledStart {
            run: run(from)?,
            time_ms: from.signed()?,
            new: read_new_run(from)?,
            signal: read_new_signal(from)?,
        },
        23 => Record::Continued {
            run: run(from)?,
            time_ms: from.signed()?,
            next: run(from)?,
            new: read_new_run(from)?,
            carried: from.bytes()?,
        },
        24 => Record::Patched { run: run(from)?, id: from.text()? },
        25 => Record::Paused { run: run(from)?, time_ms: from.signed()?, actor: from.option(Reader::text)? },
        kind @ (26 | 40) => Record::Queued {
            run: run(from)?,
            time_ms: from.signed()?,
            new: read_new_run(from)?,
            timeout_ms: from.option(Reader::signed)?,
            order: from.bytes()?,
            task: if kind == 40 { Some((TaskNo(from.number()?), read_known_origin(from)?)) } else { None },
        },
        27 => Record::Activated { run: run(from)?, time_ms: from.signed()?, origin: read_known_origin(from)? },
        30 => Record::TaskSet {
            run: run(from)?,
            seq: seq(from)?,
            kind: from.text()?,
            role: code(from, TaskRole::from_code)?,
            order: from.bytes()?,
        },
        31 => {
            Record::TimerFired { run: run(from)?, seq: seq(from)?, time_ms: from.signed()?, actor: Some(from.text()?) }
        }
        36 => Record::Attributes {
            run: run(from)?,
            seq: Some(Seq(small(from)?)).filter(|seq| seq.0 > 0),
            time_ms: from.signed()?,
            set: attributes(from)?,
        },
        37 => Record::AttributedStart {
            run: run(from)?,
            time_ms: from.signed()?,
            new: read_new_run(from)?,
            set: attributes(from)?,
            signal: from.option(read_new_signal)?,
        },
        33 => Record::Forked { run: run(from)?, entries: from.bytes()? },
        34 => Record::Reset {
            run: run(from)?,
            time_ms: from.signed()?,
            next: run(from)?,
            reason: from.text()?,
            actor: from.option(Reader::text)?,
            entries: from.bytes()?,
        },
        35 => {
            let (run, seq) = (run(from)?, seq(from)?);
            Record::Branched {
                run,
                time_ms: from.signed()?,
                seq,
                id: from.text()?,
                source: from.text()?,
                key_root: root(from)?,
                actor: from.option(Reader::text)?,
            }
        }
        38 => Record::Called {
            run: run(from)?,
            number: small(from)?,
            time_ms: from.signed()?,
            name: from.text()?,
            id: from.option(Reader::text)?,
            payload: from.bytes()?,
            caller: from.option(read_caller)?,
            actor: from.option(Reader::text)?,
            origin: from.option(read_known_origin)?,
        },
        39 => Record::CallDone {
            run: run(from)?,
            number: small(from)?,
            time_ms: from.signed()?,
            // Of a handler that asked for nothing it is 0.
            seq: from.option(|from| small(from).map(Seq))?,
            is_failure: flag(from)?,
            payload: from.bytes()?,
            state: from.option(Reader::bytes)?,
        },
        other => return Err(DecodeError::Unknown(u64::from(other))),
    })
}

fn attributes<'a>(from: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let bytes = from.bytes()?;
    super::check_attributes(bytes).map(|_| bytes)
}

fn read_new_signal<'a>(from: &mut Reader<'a>) -> Result<NewSignal<'a>, DecodeError> {
    Ok(NewSignal { name: from.text()?, payload: from.bytes()?, dedupe: from.option(Reader::text)? })
}

fn read_step_head<'a>(from: &mut Reader<'a>) -> Result<(RunNo, Seq, &'a str, u32, i64), DecodeError> {
    Ok((run(from)?, seq(from)?, from.text()?, small(from)?, from.signed()?))
}

fn run(from: &mut Reader<'_>) -> Result<RunNo, DecodeError> {
    from.number().map(RunNo)
}

fn task(from: &mut Reader<'_>) -> Result<TaskNo, DecodeError> {
    from.number().map(TaskNo)
}

/// Operations are numbered from 1.
fn seq(from: &mut Reader<'_>) -> Result<Seq, DecodeError> {
    match small(from)? {
        0 => Err(DecodeError::Number),
        number => Ok(Seq(number)),
    }
}

pub(crate) fn small(from: &mut Reader<'_>) -> Result<u32, DecodeError> {
    u32::try_from(from.number()?).map_err(|_| DecodeError::Number)
}

pub(crate) fn flag(from: &mut Reader<'_>) -> Result<bool, DecodeError> {
    match from.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(DecodeError::Unknown(u64::from(other))),
    }
}

pub(crate) fn code<T>(from: &mut Reader<'_>, of: impl Fn(u8) -> Option<T>) -> Result<T, DecodeError> {
    let code = from.byte()?;
    of(code).ok_or_else(|| DecodeError::Unknown(u64::from(code)))
}

fn status(from: &mut Reader<'_>) -> Result<Status, DecodeError> {
    code(from, Status::from_code)
}

fn shard(from: &mut Reader<'_>) -> Result<ShardId, DecodeError> {
    u16::try_from(from.number()?).map(ShardId).map_err(|_| DecodeError::Number)
}

fn root(from: &mut Reader<'_>) -> Result<[u8; 16], DecodeError> {
    from.raw(16)?.try_into().map_err(|_| DecodeError::Short)
}

pub(crate) fn read_caller(from: &mut Reader<'_>) -> Result<Caller, DecodeError> {
    Ok(Caller { shard: shard(from)?, run: run(from)?, seq: Seq(small(from)?) })
}

pub(super) fn read_known_origin(from: &mut Reader<'_>) -> Result<Origin, DecodeError> {
    Ok(Origin { from: shard(from)?, number: from.number()? })
}

fn read_new_run<'a>(from: &mut Reader<'a>) -> Result<NewRun<'a>, DecodeError> {
    Ok(NewRun {
        id: from.text()?,
        kind: from.text()?,
        version: small(from)?,
        key_root: root(from)?,
        deadline_ms: from.option(Reader::signed)?,
        parent: from.option(|from| Ok((read_caller(from)?, code(from, ParentClose::from_code)?)))?,
        input: from.bytes()?,
        actor: from.option(Reader::text)?,
    })
}

fn read_child<'a>(from: &mut Reader<'a>) -> Result<ChildSpec<'a>, DecodeError> {
    Ok(ChildSpec {
        id: from.text()?,
        kind: from.text()?,
        version: small(from)?,
        key_root: root(from)?,
        timeout_ms: from.option(Reader::signed)?,
        parent_close: code(from, ParentClose::from_code)?,
        reuse: code(from, IdReuse::from_code)?,
        conflict: code(from, IdConflict::from_code)?,
        input: from.bytes()?,
    })
}

fn read_sending<'a>(from: &mut Reader<'a>) -> Result<Sending<'a>, DecodeError> {
    Ok(match from.byte()? {
        0 => Sending::Signal(from.text()?, from.bytes()?),
        1 => Sending::Cancel(from.text()?),
        2 => Sending::Watch,
        3 => Sending::CancelChild(seq(from)?),
        4 => Sending::CancelOrder(seq(from)?),
        5 => Sending::CancelTask(task(from)?, from.text()?),
        6 => Sending::WatchTask(task(from)?),
        7 => Sending::Call(CallSpec {
            kind: from.text()?,
            key_root: root(from)?,
            name: from.text()?,
            payload: from.bytes()?,
        }),
        other => return Err(DecodeError::Unknown(u64::from(other))),
    })
}
