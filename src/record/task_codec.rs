//! The bytes of the scheduler's records: a kind byte, then the fields in the order of their declaration. Of a task's
//! options only those are written that differ from the default, after a number whose bits say which.

use super::decode::{code, flag, read_caller, read_known_origin, small};
use super::encode::{write_caller, write_known_origin};
use super::tasks::{
    AttemptEnd, CatchUp, Change, Class, Condition, Dedupe, DedupeMode, DedupeScope, Edge, Launch, LimitSpec, LimitUse,
    Occurrence, OnMiss, Order, Outcome, Overlap, Parent, Reserve, RetryPolicy, ScheduleEntry, ScheduleSpec, TaskNo,
    TaskRecord, TaskSpec, When,
};
use super::{DecodeError, Reader, RunNo, Status, TaskRole, Writer};

const KEY: u64 = 1;
const TENANT: u64 = 1 << 1;
const ORDER_KEY: u64 = 1 << 2;
const NOT_BEFORE: u64 = 1 << 3;
const RESERVE: u64 = 1 << 4;
const DEADLINE: u64 = 1 << 5;
const EXPIRES: u64 = 1 << 6;
const ESTIMATE: u64 = 1 << 7;
const TIMEOUT: u64 = 1 << 8;
const RETRY: u64 = 1 << 9;
const AFTER: u64 = 1 << 10;
const LIMITS: u64 = 1 << 11;
const LABELS: u64 = 1 << 12;
const TAGS: u64 = 1 << 13;
const OCCURRENCE: u64 = 1 << 14;
const LAUNCH: u64 = 1 << 15;
const ALL_OPTIONS: u64 = (1 << 16) - 1;

impl<'a> TaskRecord<'a> {
    /// Writes the record behind what `bytes` holds already.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        let mut out = Writer::new(bytes);
        let out = &mut out;
        match self {
            TaskRecord::Submitted { task, time_ms, spec } => encode_submitted(out, *task, *time_ms, spec),
            TaskRecord::Batch { first, time_ms, specs } => encode_batch(out, *first, *time_ms, specs),
            TaskRecord::Started { task, time_ms } => head(out, 66, *task, *time_ms),
            TaskRecord::Retrying { task, time_ms, retry_ms, end, is_free, failure } => {
                head(out, 67, *task, *time_ms);
                out.signed(*retry_ms);
                out.byte(end.code());
                out.byte(u8::from(*is_free));
                out.bytes(failure);
            }
            TaskRecord::Ended { task, time_ms, outcome, payload } => {
                head(out, 68, *task, *time_ms);
                out.byte(outcome.code());
                out.bytes(payload);
            }
            TaskRecord::Changed { task, time_ms, change } => {
                head(out, 69, *task, *time_ms);
                write_change(out, *change);
            }
            TaskRecord::Revived { task, time_ms } => head(out, 70, *task, *time_ms),
            TaskRecord::QueueSet { queue, is_paused, concurrency } => {
                out.byte(71);
                out.text(queue);
                out.byte(u8::from(*is_paused));
                out.option(concurrency.map(u64::from), Writer::number);
            }
            TaskRecord::QueueBounds { queue, min, max } => {
                out.byte(89);
                out.text(queue);
                write_bounds(out, (*min, *max));
            }
            TaskRecord::LimitSet { name, spec } => {
                out.byte(72);
                out.text(name);
                write_limit(out, *spec);
            }
            TaskRecord::SchedulesSet { time_ms, set, removed } => {
                out.byte(73);
                out.signed(*time_ms);
                out.number(set.len() as u64);
                for entry in set {
                    out.text(entry.name);
                    out.byte(u8::from(entry.is_declared));
                    write_schedule(out, &entry.spec);
                }
                out.number(removed.len() as u64);
                removed.iter().for_each(|name| out.text(name));
            }
            TaskRecord::ScheduleMoved { name, past_ms } => {
                out.byte(75);
                out.text(name);
                out.signed(*past_ms);
            }
            TaskRecord::SchedulePaused { name, time_ms, is_paused } => {
                out.byte(76);
                out.text(name);
                out.signed(*time_ms);
                out.byte(u8::from(*is_paused));
            }
            TaskRecord::Ordered { task, time_ms, order, spec } => encode_ordered(out, *task, *time_ms, order, spec),
            TaskRecord::OrderWaits { time_ms, order, dedupe, spec } => {
                out.byte(81);
                out.signed(*time_ms);
                write_order(out, order);
                write_dedupe(out, *dedupe);
                write_spec(out, spec);
            }
            TaskRecord::OrderJoined { task, time_ms, order, is_changed } => {
                head(out, 82, *task, *time_ms);
                write_order(out, order);
                out.byte(u8::from(*is_changed));
            }
            TaskRecord::OrderRefused { order, time_ms, why } => {
                out.byte(83);
                write_order(out, order);
                out.signed(*time_ms);
                out.bytes(why);
            }
            TaskRecord::MessageTaken { origin } => {
                out.byte(84);
                write_known_origin(out, *origin);
            }
            TaskRecord::RunOver { task, time_ms, outcome, origin } => {
                head(out, 85, *task, *time_ms);
                out.byte(outcome.code());
                write_known_origin(out, *origin);
            }
            TaskRecord::RunMade { task, time_ms, caller, origin } => {
                head(out, 86, *task, *time_ms);
                write_caller(out, *caller);
                write_known_origin(out, *origin);
            }
            TaskRecord::RunAsked { task, time_ms } => head(out, 87, *task, *time_ms),
            TaskRecord::AwaitedRun { task, time_ms, edge, status, payload, origin } => {
                head(out, 88, *task, *time_ms);
                out.number(u64::from(*edge));
                out.byte(status.code());
                out.bytes(payload);
                write_known_origin(out, *origin);
            }
        }
    }

    /// Reads a record that fills `bytes` entirely.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let record = read_record(&mut reader)?;
        reader.end()?;
        Ok(record)
    }
}

/// Writes a `Submitted` without making one first: the record that is written most.
pub fn encode_submitted(out: &mut Writer<'_>, task: TaskNo, time_ms: i64, spec: &TaskSpec<'_>) {
    head(out, 64, task, time_ms);
    write_spec(out, spec);
}

/// Writes an `Ordered` without making one first.
pub fn encode_ordered(out: &mut Writer<'_>, task: TaskNo, time_ms: i64, order: &Order, spec: &TaskSpec<'_>) {
    head(out, 80, task, time_ms);
    write_order(out, order);
    write_spec(out, spec);
}

/// Writes a `Batch` without making one first.
pub fn encode_batch(out: &mut Writer<'_>, first: TaskNo, time_ms: i64, specs: &[TaskSpec<'_>]) {
    head(out, 65, first, time_ms);
    out.number(specs.len() as u64);
    for spec in specs {
        write_spec(out, spec);
    }
}

/// Writes a task's description alone, for whoever keeps it outside the log.
pub fn encode_spec(bytes: &mut Vec<u8>, spec: &TaskSpec<'_>) {
    write_spec(&mut Writer::new(bytes), spec);
}

/// Writes a task as a run asks for it, for the shard that keeps it in the run's journal.
pub fn encode_order(bytes: &mut Vec<u8>, dedupe: Dedupe, spec: &TaskSpec<'_>) {
    let out = &mut Writer::new(bytes);
    write_dedupe(out, dedupe);
    write_spec(out, spec);
}

/// Reads what [`encode_order`] wrote.
pub fn decode_order(bytes: &[u8]) -> Result<(Dedupe, TaskSpec<'_>), DecodeError> {
    let mut reader = Reader::new(bytes);
    let order = (read_dedupe(&mut reader)?, read_spec(&mut reader)?);
    reader.end()?;
    Ok(order)
}

/// Reads what [`encode_spec`] wrote.
pub fn decode_spec(bytes: &[u8]) -> Result<TaskSpec<'_>, DecodeError> {
    let mut reader = Reader::new(bytes);
    let spec = read_spec(&mut reader)?;
    reader.end()?;
    Ok(spec)
}

/// Writes the fewest and the most slots of a queue.
pub(crate) fn write_bounds(out: &mut Writer<'_>, (min, max): (u32, u32)) {
    out.number(u64::from(min));
    out.number(u64::from(max));
}

/// Reads what [`write_bounds`] wrote: the most is 1 or more, and not below the fewest.
pub(crate) fn read_bounds(from: &mut Reader<'_>) -> Result<(u32, u32), DecodeError> {
    let (min, max) = (small(from)?, small(from)?);
    if max == 0 || min > max { Err(DecodeError::Unknown(u64::from(max))) } else { Ok((min, max)) }
}

/// Writes a schedule's definition alone.
pub fn encode_schedule(bytes: &mut Vec<u8>, spec: &ScheduleSpec<'_>) {
    write_schedule(&mut Writer::new(bytes), spec);
}

/// Reads what [`encode_schedule`] wrote.
pub fn decode_schedule(bytes: &[u8]) -> Result<ScheduleSpec<'_>, DecodeError> {
    let mut reader = Reader::new(bytes);
    let spec = read_schedule(&mut reader)?;
    reader.end()?;
    Ok(spec)
}

fn head(out: &mut Writer<'_>, kind: u8, task: TaskNo, time_ms: i64) {
    out.byte(kind);
    out.number(task.0);
    out.signed(time_ms);
}

fn read_record<'a>(from: &mut Reader<'a>) -> Result<TaskRecord<'a>, DecodeError> {
    Ok(match from.byte()? {
        64 => TaskRecord::Submitted { task: task(from)?, time_ms: from.signed()?, spec: Box::new(read_spec(from)?) },
        65 => TaskRecord::Batch { first: task(from)?, time_ms: from.signed()?, specs: list(from, read_spec)? },
        66 => TaskRecord::Started { task: task(from)?, time_ms: from.signed()? },
        67 => TaskRecord::Retrying {
            task: task(from)?,
            time_ms: from.signed()?,
            retry_ms: from.signed()?,
            end: code(from, AttemptEnd::from_code)?,
            is_free: flag(from)?,
            failure: from.bytes()?,
        },
        68 => TaskRecord::Ended {
            task: task(from)?,
            time_ms: from.signed()?,
            outcome: code(from, Outcome::from_code)?,
            payload: from.bytes()?,
        },
        69 => TaskRecord::Changed { task: task(from)?, time_ms: from.signed()?, change: read_change(from)? },
        70 => TaskRecord::Revived { task: task(from)?, time_ms: from.signed()? },
        71 => TaskRecord::QueueSet { queue: from.text()?, is_paused: flag(from)?, concurrency: from.option(small)? },
        89 => {
            let queue = from.text()?;
            let (min, max) = read_bounds(from)?;
            TaskRecord::QueueBounds { queue, min, max }
        }
        72 => TaskRecord::LimitSet { name: from.text()?, spec: read_limit(from)? },
        73 => TaskRecord::SchedulesSet {
            time_ms: from.signed()?,
            set: list(from, |from| {
                Ok(ScheduleEntry { name: from.text()?, is_declared: flag(from)?, spec: read_schedule(from)? })
            })?,
            removed: list(from, Reader::text)?,
        },
        75 => TaskRecord::ScheduleMoved { name: from.text()?, past_ms: from.signed()? },
        76 => TaskRecord::SchedulePaused { name: from.text()?, time_ms: from.signed()?, is_paused: flag(from)? },
        80 => TaskRecord::Ordered {
            task: task(from)?,
            time_ms: from.signed()?,
            order: read_order(from)?,
            spec: Box::new(read_spec(from)?),
        },
        81 => TaskRecord::OrderWaits {
            time_ms: from.signed()?,
            order: read_order(from)?,
            dedupe: read_dedupe(from)?,
            spec: Box::new(read_spec(from)?),
        },
        82 => TaskRecord::OrderJoined {
            task: task(from)?,
            time_ms: from.signed()?,
            order: read_order(from)?,
            is_changed: flag(from)?,
        },
        83 => TaskRecord::OrderRefused { order: read_order(from)?, time_ms: from.signed()?, why: from.bytes()? },
        84 => TaskRecord::MessageTaken { origin: read_known_origin(from)? },
        85 => TaskRecord::RunOver {
            task: task(from)?,
            time_ms: from.signed()?,
            outcome: code(from, Outcome::from_code)?,
            origin: read_known_origin(from)?,
        },
        86 => TaskRecord::RunMade {
            task: task(from)?,
            time_ms: from.signed()?,
            caller: read_caller(from)?,
            origin: read_known_origin(from)?,
        },
        87 => TaskRecord::RunAsked { task: task(from)?, time_ms: from.signed()? },
        88 => TaskRecord::AwaitedRun {
            task: task(from)?,
            time_ms: from.signed()?,
            edge: small(from)?,
            status: code(from, Status::from_code)?,
            payload: from.bytes()?,
            origin: read_known_origin(from)?,
        },
        other => return Err(DecodeError::Unknown(u64::from(other))),
    })
}

pub(crate) fn write_order(out: &mut Writer<'_>, order: &Order) {
    write_caller(out, order.caller);
    write_known_origin(out, order.origin);
    out.byte(order.role.code());
}

pub(crate) fn read_order(from: &mut Reader<'_>) -> Result<Order, DecodeError> {
    Ok(Order { caller: read_caller(from)?, origin: read_known_origin(from)?, role: code(from, TaskRole::from_code)? })
}

fn write_dedupe(out: &mut Writer<'_>, Dedupe { mode, scope }: Dedupe) {
    match mode {
        DedupeMode::Skip => out.byte(0),
        DedupeMode::Replace => out.byte(1),
        DedupeMode::Debounce { window_ms, max_wait_ms } => {
            out.byte(2);
            out.number(u64::from(window_ms));
            out.option(max_wait_ms.map(u64::from), Writer::number);
        }
        DedupeMode::Throttle { window_ms } => {
            out.byte(3);
            out.number(u64::from(window_ms));
        }
        DedupeMode::Rerun => out.byte(4),
        DedupeMode::Error => out.byte(5),
    }
    out.byte(scope.code());
}

fn read_dedupe(from: &mut Reader<'_>) -> Result<Dedupe, DecodeError> {
    let mode = match from.byte()? {
        0 => DedupeMode::Skip,
        1 => DedupeMode::Replace,
        2 => DedupeMode::Debounce { window_ms: small(from)?, max_wait_ms: from.option(small)? },
        3 => DedupeMode::Throttle { window_ms: small(from)? },
        4 => DedupeMode::Rerun,
        5 => DedupeMode::Error,
        other => return Err(DecodeError::Unknown(u64::from(other))),
    };
    Ok(Dedupe { mode, scope: code(from, DedupeScope::from_code)? })
}

fn write_spec(out: &mut Writer<'_>, spec: &TaskSpec<'_>) {
    out.text(spec.queue);
    out.text(spec.kind);
    out.byte(spec.class.code());
    out.bytes(spec.payload);
    out.number(options(spec));
    for text in [spec.key, spec.tenant, spec.order_key].into_iter().flatten() {
        out.text(text);
    }
    if let Some(time_ms) = spec.not_before_ms {
        out.signed(time_ms);
    }
    if let Some(reserve) = spec.reserve {
        out.number(u64::from(reserve.tolerance_ms));
        out.byte(reserve.on_miss.code());
    }
    for time_ms in [spec.deadline_ms, spec.expires_ms].into_iter().flatten() {
        out.signed(time_ms);
    }
    for length_ms in [spec.estimate_ms, spec.timeout_ms].into_iter().flatten() {
        out.number(u64::from(length_ms));
    }
    if let Some(policy) = spec.retry {
        write_policy(out, policy);
    }
    write_list(out, &spec.after, write_edge);
    write_list(out, &spec.limits, write_use);
    write_list(out, &spec.labels, write_pair);
    write_list(out, &spec.tags, write_pair);
    if let Some(occurrence) = spec.occurrence {
        out.text(occurrence.schedule);
        out.signed(occurrence.at_ms);
        out.byte(u8::from(occurrence.is_regular));
    }
    if let Some(launch) = spec.launch {
        out.text(launch.id);
        out.number(u64::from(launch.version));
        out.option(launch.timeout_ms, Writer::signed);
        out.raw(&launch.key_root);
    }
}

fn options(spec: &TaskSpec<'_>) -> u64 {
    let bit = |is_there: bool, option: u64| if is_there { option } else { 0 };
    bit(spec.key.is_some(), KEY)
        | bit(spec.tenant.is_some(), TENANT)
        | bit(spec.order_key.is_some(), ORDER_KEY)
        | bit(spec.not_before_ms.is_some(), NOT_BEFORE)
        | bit(spec.reserve.is_some(), RESERVE)
        | bit(spec.deadline_ms.is_some(), DEADLINE)
        | bit(spec.expires_ms.is_some(), EXPIRES)
        | bit(spec.estimate_ms.is_some(), ESTIMATE)
        | bit(spec.timeout_ms.is_some(), TIMEOUT)
        | bit(spec.retry.is_some(), RETRY)
        | bit(!spec.after.is_empty(), AFTER)
        | bit(!spec.limits.is_empty(), LIMITS)
        | bit(!spec.labels.is_empty(), LABELS)
        | bit(!spec.tags.is_empty(), TAGS)
        | bit(spec.occurrence.is_some(), OCCURRENCE)
        | bit(spec.launch.is_some(), LAUNCH)
}

fn read_spec<'a>(from: &mut Reader<'a>) -> Result<TaskSpec<'a>, DecodeError> {
    let mut spec = TaskSpec::new(from.text()?, from.text()?, &[]);
    spec.class = code(from, Class::from_code)?;
    spec.payload = from.bytes()?;
    let options = from.number()?;
    if options & !ALL_OPTIONS != 0 {
        return Err(DecodeError::Unknown(options));
    }
    let has = |option: u64| options & option != 0;
    spec.key = when(has(KEY), from, Reader::text)?;
    spec.tenant = when(has(TENANT), from, Reader::text)?;
    spec.order_key = when(has(ORDER_KEY), from, Reader::text)?;
    spec.not_before_ms = when(has(NOT_BEFORE), from, Reader::signed)?;
    spec.reserve = when(has(RESERVE), from, |from| {
        Ok(Reserve { tolerance_ms: small(from)?, on_miss: code(from, OnMiss::from_code)? })
    })?;
    spec.deadline_ms = when(has(DEADLINE), from, Reader::signed)?;
    spec.expires_ms = when(has(EXPIRES), from, Reader::signed)?;
    spec.estimate_ms = when(has(ESTIMATE), from, small)?;
    spec.timeout_ms = when(has(TIMEOUT), from, small)?;
    spec.retry = when(has(RETRY), from, read_policy)?;
    spec.after = read_list(has(AFTER), from, read_edge)?;
    spec.limits = read_list(has(LIMITS), from, read_use)?;
    spec.labels = read_list(has(LABELS), from, read_pair)?;
    spec.tags = read_list(has(TAGS), from, read_pair)?;
    spec.occurrence = when(has(OCCURRENCE), from, |from| {
        Ok(Occurrence { schedule: from.text()?, at_ms: from.signed()?, is_regular: flag(from)? })
    })?;
    spec.launch = when(has(LAUNCH), from, |from| {
        Ok(Launch {
            id: from.text()?,
            version: small(from)?,
            timeout_ms: from.option(Reader::signed)?,
            key_root: from.raw(16)?.try_into().map_err(|_| DecodeError::Short)?,
        })
    })?;
    Ok(spec)
}

fn write_policy(out: &mut Writer<'_>, policy: RetryPolicy) {
    for number in [policy.max_attempts, policy.initial_ms, policy.backoff_percent, policy.max_ms] {
        out.number(u64::from(number));
    }
    out.byte(u8::from(policy.has_jitter));
}

fn read_policy(from: &mut Reader<'_>) -> Result<RetryPolicy, DecodeError> {
    Ok(RetryPolicy {
        max_attempts: small(from)?,
        initial_ms: small(from)?,
        backoff_percent: small(from)?,
        max_ms: small(from)?,
        has_jitter: flag(from)?,
    })
}

fn write_edge(out: &mut Writer<'_>, edge: &Edge<'_>) {
    match edge.parent {
        Parent::Number(task) => {
            out.byte(0);
            out.number(task.0);
        }
        Parent::Key(key) => {
            out.byte(1);
            out.text(key);
        }
        Parent::Run(id, run) => {
            out.byte(2);
            out.text(id);
            out.option(run.map(|run| run.0), Writer::number);
        }
    }
    out.byte(edge.condition.code());
}

fn read_edge<'a>(from: &mut Reader<'a>) -> Result<Edge<'a>, DecodeError> {
    let parent = match from.byte()? {
        0 => Parent::Number(task(from)?),
        1 => Parent::Key(from.text()?),
        2 => Parent::Run(from.text()?, from.option(Reader::number)?.map(RunNo)),
        other => return Err(DecodeError::Unknown(u64::from(other))),
    };
    Ok(Edge { parent, condition: code(from, Condition::from_code)? })
}

fn write_use(out: &mut Writer<'_>, of: &LimitUse<'_>) {
    out.text(of.name);
    out.option(of.key, Writer::text);
    out.number(u64::from(of.amount));
}

fn read_use<'a>(from: &mut Reader<'a>) -> Result<LimitUse<'a>, DecodeError> {
    Ok(LimitUse { name: from.text()?, key: from.option(Reader::text)?, amount: small(from)? })
}

fn write_pair(out: &mut Writer<'_>, pair: &(&str, &str)) {
    out.text(pair.0);
    out.text(pair.1);
}

fn read_pair<'a>(from: &mut Reader<'a>) -> Result<(&'a str, &'a str), DecodeError> {
    Ok((from.text()?, from.text()?))
}

fn write_change(out: &mut Writer<'_>, change: Change<'_>) {
    match change {
        Change::Class(class) => {
            out.byte(0);
            out.byte(class.code());
        }
        Change::NotBefore(time_ms) => {
            out.byte(1);
            out.signed(time_ms);
        }
        Change::Replaced { payload, not_before_ms } => {
            out.byte(2);
            out.bytes(payload);
            out.option(not_before_ms, Writer::signed);
        }
    }
}

fn read_change<'a>(from: &mut Reader<'a>) -> Result<Change<'a>, DecodeError> {
    Ok(match from.byte()? {
        0 => Change::Class(code(from, Class::from_code)?),
        1 => Change::NotBefore(from.signed()?),
        2 => Change::Replaced { payload: from.bytes()?, not_before_ms: from.option(Reader::signed)? },
        other => return Err(DecodeError::Unknown(u64::from(other))),
    })
}

pub(crate) fn write_limit(out: &mut Writer<'_>, spec: LimitSpec) {
    match spec {
        LimitSpec::Concurrency(units) => {
            out.byte(0);
            out.number(u64::from(units));
        }
        LimitSpec::Rate { limit, period_ms, burst } => {
            out.byte(1);
            for number in [limit, period_ms, burst] {
                out.number(u64::from(number));
            }
        }
    }
}

pub(crate) fn read_limit(from: &mut Reader<'_>) -> Result<LimitSpec, DecodeError> {
    Ok(match from.byte()? {
        0 => LimitSpec::Concurrency(small(from)?),
        1 => LimitSpec::Rate { limit: small(from)?, period_ms: small(from)?, burst: small(from)? },
        other => return Err(DecodeError::Unknown(u64::from(other))),
    })
}

fn write_schedule(out: &mut Writer<'_>, spec: &ScheduleSpec<'_>) {
    match spec.when {
        When::Cron { expression, zone } => {
            out.byte(0);
            out.text(expression);
            out.text(zone);
        }
        When::Every { period_ms, offset_ms } => {
            out.byte(1);
            out.number(period_ms);
            out.number(offset_ms);
        }
    }
    out.option(spec.start_ms, Writer::signed);
    out.option(spec.end_ms, Writer::signed);
    out.option(spec.limit, Writer::number);
    out.number(u64::from(spec.jitter_ms));
    out.byte(spec.overlap.code());
    match spec.catch_up {
        CatchUp::None => out.byte(0),
        CatchUp::Last => out.byte(1),
        CatchUp::UpTo(count) => {
            out.byte(2);
            out.number(u64::from(count));
        }
    }
    out.byte(u8::from(spec.pauses_on_failure));
    out.option(spec.deadline_after_ms.map(u64::from), Writer::number);
    out.option(spec.expires_after_ms.map(u64::from), Writer::number);
    write_spec(out, &spec.template);
}

fn read_schedule<'a>(from: &mut Reader<'a>) -> Result<ScheduleSpec<'a>, DecodeError> {
    Ok(ScheduleSpec {
        when: match from.byte()? {
            0 => When::Cron { expression: from.text()?, zone: from.text()? },
            1 => When::Every { period_ms: from.number()?, offset_ms: from.number()? },
            other => return Err(DecodeError::Unknown(u64::from(other))),
        },
        start_ms: from.option(Reader::signed)?,
        end_ms: from.option(Reader::signed)?,
        limit: from.option(Reader::number)?,
        jitter_ms: small(from)?,
        overlap: code(from, Overlap::from_code)?,
        catch_up: match from.byte()? {
            0 => CatchUp::None,
            1 => CatchUp::Last,
            2 => CatchUp::UpTo(small(from)?),
            other => return Err(DecodeError::Unknown(u64::from(other))),
        },
        pauses_on_failure: flag(from)?,
        deadline_after_ms: from.option(small)?,
        expires_after_ms: from.option(small)?,
        template: read_spec(from)?,
    })
}

/// Tasks are numbered from 1.
fn task(from: &mut Reader<'_>) -> Result<TaskNo, DecodeError> {
    match from.number()? {
        0 => Err(DecodeError::Number),
        number => Ok(TaskNo(number)),
    }
}

fn when<'a, T>(
    is_there: bool,
    from: &mut Reader<'a>,
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, DecodeError>,
) -> Result<Option<T>, DecodeError> {
    if is_there { read(from).map(Some) } else { Ok(None) }
}

/// An empty list has no bytes: a bit of the options says so.
fn write_list<T>(out: &mut Writer<'_>, items: &[T], write: impl Fn(&mut Writer<'_>, &T)) {
    if !items.is_empty() {
        out.number(items.len() as u64);
        items.iter().for_each(|item| write(out, item));
    }
}

fn read_list<'a, T>(
    is_there: bool,
    from: &mut Reader<'a>,
    read: impl Fn(&mut Reader<'a>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    if !is_there {
        return Ok(Vec::new());
    }
    let items = list(from, read)?;
    if items.is_empty() { Err(DecodeError::Number) } else { Ok(items) }
}

/// Each item has a byte at least, so a count of more than the bytes left is refused before anything is allocated.
fn list<'a, T>(
    from: &mut Reader<'a>,
    read: impl Fn(&mut Reader<'a>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let count = from.number()?;
    if count > from.rest().len() as u64 {
        return Err(DecodeError::Short);
    }
    (0..count).map(|_| read(from)).collect()
}
