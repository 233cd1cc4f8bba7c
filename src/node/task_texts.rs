//! Texts about tasks, taken apart: what JS packs into one crossing, read where it lies.
//!
//! Rows are separated by U+001E, fields by U+001F, entries of a list by U+001D, their parts by U+001C. No text of a user
//! contains any of them: the SDK sees to it, and a payload has no control characters at all.

use super::fault::Fault;
use super::schedules::declared;
use crate::engine::{
    Bounds, Class, Condition, DeclaredSchedules, Dedupe, DedupeMode, DedupeScope, Edge, FIELD, Launch, Lease,
    LimitSpec, LimitUse, Member, OnFull, OnMiss, Parent, QueueConfig, ROW, Reserve, RetryPolicy, ScaleConfig,
    TaskConfig, TaskFilter, TaskNo, TaskOutcome, TaskSpec, UnknownKey,
};
use std::collections::BTreeMap;
use std::str::FromStr;

const ENTRY: char = '\u{1d}';
pub(super) const PART: char = '\u{1c}';

/// Submissions, a row each: queue, type, input, then options, each with a letter before it.
pub(super) fn submissions(text: &str) -> Result<Vec<(TaskSpec<'_>, Dedupe)>, Fault> {
    text.split(ROW).map(submission).collect()
}

/// Submissions that are taken in together, a row each. Their keys mean what they do by default.
pub(super) fn together(text: &str) -> Result<Vec<TaskSpec<'_>>, Fault> {
    text.split(ROW).map(|row| submission(row).map(|(spec, _)| spec)).collect()
}

pub(super) fn submission(row: &str) -> Result<(TaskSpec<'_>, Dedupe), Fault> {
    let mut fields = row.split(FIELD);
    let (queue, kind, payload) = (next(&mut fields)?, next(&mut fields)?, next(&mut fields)?);
    let mut spec = TaskSpec::new(queue, kind, payload.as_bytes());
    let mut dedupe = Dedupe::default();
    for field in fields {
        let (letter, value) = field.split_at_checked(1).ok_or_else(|| malformed(field))?;
        match letter {
            "p" => spec.class = Class::from_code(number(value)?).ok_or_else(|| malformed(field))?,
            "k" => spec.key = Some(value),
            "t" => spec.tenant = Some(value),
            "o" => spec.order_key = Some(value),
            "n" => spec.not_before_ms = Some(number(value)?),
            "d" => spec.deadline_ms = Some(number(value)?),
            "x" => spec.expires_ms = Some(number(value)?),
            "e" => spec.estimate_ms = Some(number(value)?),
            "T" => spec.timeout_ms = Some(number(value)?),
            "R" => spec.retry = Some(retry(value)?),
            "r" => {
                let mut parts = value.split(PART);
                let (tolerance_ms, on_miss) = (number(next(&mut parts)?)?, number(next(&mut parts)?)?);
                let on_miss = OnMiss::from_code(on_miss).ok_or_else(|| malformed(field))?;
                spec.reserve = Some(Reserve { tolerance_ms, on_miss });
            }
            "D" => dedupe = deduping(value)?,
            "a" => spec.after.push(edge(value)?),
            "l" => spec.limits.push(limit_use(value)?),
            "L" => spec.labels.push(pair(value)?),
            "g" => spec.tags.push(pair(value)?),
            "W" => spec.launch = Some(launch(value)?),
            _ => return Err(malformed(field)),
        }
    }
    Ok((spec, dedupe))
}

fn retry(text: &str) -> Result<RetryPolicy, Fault> {
    let mut parts = text.split(PART);
    Ok(RetryPolicy {
        max_attempts: number(next(&mut parts)?)?,
        initial_ms: number(next(&mut parts)?)?,
        backoff_percent: number(next(&mut parts)?)?,
        max_ms: number(next(&mut parts)?)?,
        has_jitter: next(&mut parts)? == "1",
    })
}

fn deduping(text: &str) -> Result<Dedupe, Fault> {
    let mut parts = text.split(PART);
    let (mode, window, longest, scope) = (next(&mut parts)?, next(&mut parts)?, next(&mut parts)?, next(&mut parts)?);
    let mode = match mode {
        "skip" => DedupeMode::Skip,
        "replace" => DedupeMode::Replace,
        "rerun" => DedupeMode::Rerun,
        "error" => DedupeMode::Error,
        "debounce" => DedupeMode::Debounce { window_ms: number(window)?, max_wait_ms: optional(longest)? },
        "throttle" => DedupeMode::Throttle { window_ms: number(window)? },
        other => return Err(malformed(other)),
    };
    let scope = match scope {
        "pending" => DedupeScope::Pending,
        "live" => DedupeScope::Live,
        "retained" => DedupeScope::Retained,
        other => return Err(malformed(other)),
    };
    Ok(Dedupe { mode, scope })
}

/// So much is added to the number of a condition on a run: id, run id.
const RUN_EDGE: u8 = 16;

/// And so much on a condition on a task of the same transaction: its place, from 0.
const PART_EDGE: u8 = 32;

fn edge(text: &str) -> Result<Edge<'_>, Fault> {
    let mut parts = text.splitn(2, PART);
    let code: u8 = number(next(&mut parts)?)?;
    let condition = Condition::from_code(code % RUN_EDGE).ok_or_else(|| malformed(text))?;
    let parent = next(&mut parts)?;
    if code >= PART_EDGE {
        return Ok(Edge { parent: Parent::Number(TaskNo::in_batch(number(parent)?)), condition });
    }
    let parent = match (code / RUN_EDGE, crate::engine::parse_task_id(parent)) {
        (0, Some(number)) if number.place_in_batch().is_some() => return Err(malformed(text)),
        (0, Some(number)) => Parent::Number(number),
        (0, None) => Parent::Key(parent),
        (..) => {
            let (id, run) = pair(parent)?;
            let run = if run.is_empty() {
                None
            } else {
                Some(crate::record::parse_run_id(run).ok_or_else(|| malformed(text))?.1)
            };
            Parent::Run(id, run)
        }
    };
    Ok(Edge { parent, condition })
}

/// A run: version of its code, longest life, id.
fn launch(text: &str) -> Result<Launch<'_>, Fault> {
    let mut parts = text.splitn(3, PART);
    let (version, timeout_ms) = (number(next(&mut parts)?)?, optional(next(&mut parts)?)?);
    Ok(Launch { id: next(&mut parts)?, version, timeout_ms, key_root: [0; 16] })
}

fn limit_use(text: &str) -> Result<LimitUse<'_>, Fault> {
    let mut parts = text.split(PART);
    let (amount, name) = (number(next(&mut parts)?)?, next(&mut parts)?);
    Ok(LimitUse { name, key: parts.next(), amount })
}

/// What a thread runs: names of definitions, then labels, each with a letter before it.
pub(super) fn member(text: &str) -> Result<Member, Fault> {
    let mut member = Member::default();
    for field in text.split(FIELD).filter(|field| !field.is_empty()) {
        let (letter, value) = field.split_at_checked(1).ok_or_else(|| malformed(field))?;
        if letter == "L" {
            let (name, value) = pair(value)?;
            member.labels.push((name.into(), value.into()));
        } else {
            member.kinds.insert(value.into());
        }
    }
    Ok(member)
}

fn pair(text: &str) -> Result<(&str, &str), Fault> {
    text.split_once(PART).ok_or_else(|| malformed(text))
}

/// What attempts say, a row each: slot and serial of the lease, a letter, what belongs to it, a payload.
pub(super) fn outcomes(text: &str) -> Result<Vec<(Lease, TaskOutcome<'_>)>, Fault> {
    text.split(ROW).map(outcome).collect()
}

fn outcome(row: &str) -> Result<(Lease, TaskOutcome<'_>), Fault> {
    let mut fields = row.split(FIELD);
    let lease = Lease { slot: number(next(&mut fields)?)?, serial: number(next(&mut fields)?)? };
    let (letter, value, payload) = (next(&mut fields)?, next(&mut fields)?, next(&mut fields)?.as_bytes());
    Ok((
        lease,
        match letter {
            "c" => TaskOutcome::Completed(payload),
            "f" => TaskOutcome::Failed { thrown: payload, after_ms: optional(value)? },
            "p" => TaskOutcome::FailedForGood(payload),
            "w" => TaskOutcome::Postponed(number(value)?),
            "h" => TaskOutcome::Heartbeat((!payload.is_empty()).then_some(payload)),
            "g" => TaskOutcome::Progress(payload),
            other => return Err(malformed(other)),
        },
    ))
}

/// What an open is given for tasks.
pub(super) struct TaskOptions {
    pub(super) tasks: TaskConfig,
    pub(super) schedules: Option<DeclaredSchedules>,
    pub(super) holds_schedules: bool,
}

/// Queues, limits, definitions and declared schedules, a row each, with a letter in the first field.
pub(super) fn config(text: &str) -> Result<TaskOptions, Fault> {
    let (mut schedules, mut holds_schedules) = (None, false);
    let mut config = TaskConfig { kinds: Some(Default::default()), ..TaskConfig::default() };
    for row in text.split(ROW).filter(|row| !row.is_empty()) {
        let mut fields = row.split(FIELD);
        match next(&mut fields)? {
            // The option is there, though perhaps with none in it.
            "S" => schedules = Some(DeclaredSchedules::new()),
            // They wait until they are declared.
            "h" => holds_schedules = true,
            "d" => schedules.get_or_insert_default().push(declared(row.split_at(2).1)?),
            "s" => config.seed = number(next(&mut fields)?)?,
            "k" => {
                let kind = next(&mut fields)?.into();
                config.kinds.get_or_insert_default().insert(kind);
            }
            "q" => {
                let (name, queue) = queue(&mut fields)?;
                config.queues.insert(name.into(), queue);
            }
            "l" => {
                let name = next(&mut fields)?.into();
                config.limits.insert(name, limit(next(&mut fields)?)?);
            }
            other => return Err(malformed(other)),
        }
    }
    Ok(TaskOptions { tasks: config, schedules, holds_schedules })
}

fn queue<'a>(fields: &mut impl Iterator<Item = &'a str>) -> Result<(&'a str, QueueConfig), Fault> {
    let name = next(fields)?;
    let concurrency = number(next(fields)?)?;
    let pending = optional(next(fields)?)?;
    let on_full = match next(fields)? {
        "wait" => OnFull::Wait,
        "reject" => OnFull::Reject,
        "dropOldest" => OnFull::DropOldest,
        "dropLowest" => OnFull::DropLowest,
        other => return Err(malformed(other)),
    };
    let policy = next(fields)?;
    let lease_ms = optional(next(fields)?)?;
    let fair = match next(fields)? {
        "" => None,
        weights => Some(
            weights
                .split(ENTRY)
                .skip(1)
                .map(|entry| pair(entry).and_then(|(tenant, percent)| Ok((tenant.into(), number(percent)?))))
                .collect::<Result<BTreeMap<Box<str>, u32>, Fault>>()?,
        ),
    };
    let scale = match next(fields)? {
        "" => None,
        text => Some(scale(text)?),
    };
    let mut queue = QueueConfig {
        concurrency,
        scale,
        bounds: Bounds { pending, ..Bounds::default() },
        on_full,
        lease_ms,
        fair,
        unknown_key: UnknownKey::Reject,
        ..QueueConfig::default()
    };
    if !policy.is_empty() {
        queue.retry = retry(policy)?;
    }
    Ok((name, queue))
}

/// How a queue follows its load: fewest, most, interval, drain time, whether the slots come from outside, and the longest
/// wait of each class.
fn scale(text: &str) -> Result<ScaleConfig, Fault> {
    let mut parts = text.split(PART);
    let mut scale = ScaleConfig::between(number(next(&mut parts)?)?, number(next(&mut parts)?)?);
    scale.interval_ms = number(next(&mut parts)?)?;
    scale.drain_ms = number(next(&mut parts)?)?;
    scale.is_outside = next(&mut parts)? == "1";
    for slo_ms in &mut scale.slo_ms {
        *slo_ms = optional(next(&mut parts)?)?;
    }
    Ok(scale)
}

/// A limit: `c` and the units, or `r`, the limit, the period and the burst.
pub(super) fn limit(text: &str) -> Result<LimitSpec, Fault> {
    let mut parts = text.split(PART);
    Ok(match next(&mut parts)? {
        "c" => LimitSpec::Concurrency(number(next(&mut parts)?)?),
        "r" => LimitSpec::Rate {
            limit: number(next(&mut parts)?)?,
            period_ms: number(next(&mut parts)?)?,
            burst: number(next(&mut parts)?)?,
        },
        other => return Err(malformed(other)),
    })
}

/// A filter: types, bits of statuses, queue, tenant, beginning of the key, tags.
pub(super) fn filter(text: &str) -> Result<TaskFilter, Fault> {
    let mut fields = text.split(FIELD);
    let kinds = next(&mut fields)?.split(ENTRY).filter(|kind| !kind.is_empty()).map(str::to_owned).collect();
    let status_mask = number(next(&mut fields)?)?;
    let named = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let (queue, tenant) = (named(next(&mut fields)?), named(next(&mut fields)?));
    let key_prefix = next(&mut fields)?.to_owned();
    let tags = next(&mut fields)?.split(ENTRY).filter(|tag| !tag.is_empty()).map(|tag| {
        let (name, value) = pair(tag)?;
        Ok((name.to_owned(), value.to_owned()))
    });
    Ok(TaskFilter { kinds, status_mask, queue, tenant, key_prefix, tags: tags.collect::<Result<_, Fault>>()? })
}

/// The number of a task.
pub(super) fn task_no(text: &str) -> Result<TaskNo, Fault> {
    number(text).map(TaskNo)
}

pub(super) fn next<'a>(fields: &mut impl Iterator<Item = &'a str>) -> Result<&'a str, Fault> {
    fields.next().ok_or_else(|| Fault::bad_input("a text of the SDK ends before its last field"))
}

pub(super) fn number<N: FromStr>(text: &str) -> Result<N, Fault> {
    text.parse().map_err(|_| malformed(text))
}

pub(super) fn optional<N: FromStr>(text: &str) -> Result<Option<N>, Fault> {
    if text.is_empty() { Ok(None) } else { number(text).map(Some) }
}

pub(super) fn malformed(text: &str) -> Fault {
    Fault::bad_input(format!("a text of the SDK has \"{}\" where that cannot be", text.escape_debug()))
}
