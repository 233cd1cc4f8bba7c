//! Search attributes and filters as texts of the SDK: js/attributes.ts and js/client/filters.ts write them.

use super::fault::Fault;
use super::task_texts::{malformed, next, number};
use crate::engine::{Attribute, FIELD, Filter, PART, TEXT, TEXTS_MAX, Test, Value, write_attribute};
use std::str::Split;

/// Conditions of a filter, one in another.
const DEPTH_MAX: usize = 32;

/// Attributes: names and values in turn; a letter says what a value is, `-` that the name is taken away.
pub(super) fn attributes(text: &str) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    if text.is_empty() {
        return Ok(bytes);
    }
    let mut parts = text.split(PART);
    let mut entries: Vec<(&str, Option<Attribute<'_>>)> = Vec::new();
    while let Some(name) = parts.next() {
        entries.push((name, attribute(next(&mut parts)?)?));
    }
    entries.sort_by_key(|(name, _)| *name);
    entries.iter().for_each(|(name, value)| write_attribute(&mut bytes, name, value.as_ref()));
    Ok(bytes)
}

fn attribute(text: &str) -> Result<Option<Attribute<'_>>, Fault> {
    if text == "-" {
        return Ok(None);
    }
    if text.is_empty() || text.starts_with(TEXT) {
        let texts: Vec<&str> = text.split(TEXT).skip(1).collect();
        if texts.len() > TEXTS_MAX {
            return Err(Fault::bad_input(format!(
                "a search attribute has {} texts; it can have up to {TEXTS_MAX}",
                texts.len()
            )));
        }
        return Ok(Some(Attribute::Texts(texts)));
    }
    let (kind, rest) = text.split_at_checked(1).ok_or_else(|| malformed(text))?;
    Ok(Some(match kind {
        "t" => Attribute::Text(rest),
        "n" => Attribute::Number(number(rest)?),
        "b" => Attribute::Flag(rest == "1"),
        "d" => Attribute::Time(number(rest)?),
        "w" => Attribute::Whole(number(rest)?),
        _ => return Err(malformed(text)),
    }))
}

fn value(text: &str) -> Result<Value, Fault> {
    Ok(match attribute(text)? {
        Some(Attribute::Text(text)) => Value::Text(text.to_owned()),
        Some(Attribute::Number(number)) => Value::Number(number),
        Some(Attribute::Whole(number)) => Value::Whole(number),
        Some(Attribute::Flag(flag)) => Value::Flag(flag),
        Some(Attribute::Time(time_ms)) => Value::Time(time_ms),
        Some(Attribute::Texts(_)) | None => return Err(malformed(text)),
    })
}

/// A filter: each condition before its parts. Nothing: all runs.
pub(super) fn filter(text: &str) -> Result<Filter, Fault> {
    if text.is_empty() {
        return Ok(Filter::All(Vec::new()));
    }
    let mut fields = text.split(FIELD);
    let filter = condition(&mut fields, DEPTH_MAX)?;
    match fields.next() {
        None => Ok(filter),
        Some(rest) => Err(malformed(rest)),
    }
}

fn condition(fields: &mut Split<'_, char>, depth: usize) -> Result<Filter, Fault> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Fault::bad_input(format!("a filter has conditions in {DEPTH_MAX} others at most")));
    };
    let flag = |text: &str| text == "1";
    Ok(match next(fields)? {
        "&" => Filter::All(conditions(fields, depth)?),
        "|" => Filter::Any(conditions(fields, depth)?),
        "!" => Filter::Not(Box::new(condition(fields, depth)?)),
        "k" => Filter::Kind(next(fields)?.to_owned()),
        "s" => Filter::Status(number(next(fields)?)?),
        "S" => Filter::Stuck(flag(next(fields)?)),
        "P" => Filter::Paused(flag(next(fields)?)),
        "i" => Filter::IdPrefix(next(fields)?.to_owned()),
        "f" => Filter::StartedFrom(number(next(fields)?)?),
        "b" => Filter::StartedBefore(number(next(fields)?)?),
        "a" => {
            let name = next(fields)?.to_owned();
            let test = match next(fields)? {
                "=" => Test::Is(value(next(fields)?)?),
                ">" => Test::Above(value(next(fields)?)?, false),
                ">=" => Test::Above(value(next(fields)?)?, true),
                "<" => Test::Below(value(next(fields)?)?, false),
                "<=" => Test::Below(value(next(fields)?)?, true),
                "^" => Test::Prefix(next(fields)?.to_owned()),
                "?" => Test::Exists,
                other => return Err(malformed(other)),
            };
            Filter::Attribute(name, test)
        }
        other => return Err(malformed(other)),
    })
}

fn conditions(fields: &mut Split<'_, char>, depth: usize) -> Result<Vec<Filter>, Fault> {
    let count: usize = number(next(fields)?)?;
    (0..count).map(|_| condition(fields, depth)).collect()
}
