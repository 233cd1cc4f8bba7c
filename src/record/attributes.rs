//! Search attributes of a run, as bytes: names with values, in the order of the names, each once.
//!
//! ```text
//! attributes  for each: name, kind of the value, value
//! value       0 removed | 1 text | 2 number, 8 bytes little endian | 3 false | 4 true | 5 ms since 1970
//!             | 6 whole number | 7 how many, then texts
//! ```
//!
//! Runs keep them so: a look for one name walks over a few dozen bytes, and allocates nothing.

use super::{DecodeError, Reader, Writer};
use std::cmp::Ordering;

/// A list has at most so many texts.
pub const TEXTS_MAX: usize = 64;

/// Value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute<'a> {
    /// A text.
    Text(&'a str),
    /// A number that is one: neither infinite nor none at all.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// A time in ms since 1970.
    Time(i64),
    /// A whole number, exact beyond 2^53.
    Whole(i64),
    /// Several texts.
    Texts(Vec<&'a str>),
}

impl Attribute<'_> {
    /// How two values compare: `None` if they are of kinds that cannot be compared. Numbers compare as numbers, texts by
    /// their bytes.
    #[must_use]
    pub fn compare(&self, other: &Attribute<'_>) -> Option<Ordering> {
        Some(match (self, other) {
            (Attribute::Text(one), Attribute::Text(other)) => one.cmp(other),
            (Attribute::Number(one), Attribute::Number(other)) => one.partial_cmp(other)?,
            (Attribute::Whole(one), Attribute::Whole(other)) | (Attribute::Time(one), Attribute::Time(other)) => {
                one.cmp(other)
            }
            (Attribute::Whole(one), Attribute::Number(other)) => whole_with_number(*one, *other),
            (Attribute::Number(one), Attribute::Whole(other)) => whole_with_number(*other, *one).reverse(),
            (Attribute::Flag(one), Attribute::Flag(other)) => one.cmp(other),
            _ => return None,
        })
    }
}

/// Exact, where a conversion to either side would round.
fn whole_with_number(whole: i64, number: f64) -> Ordering {
    // 2^63 is the first number above every whole one, and what lies between them converts without loss.
    if number >= 9_223_372_036_854_775_808.0 {
        return Ordering::Less;
    }
    if number < -9_223_372_036_854_775_808.0 {
        return Ordering::Greater;
    }
    let floor = number.floor();
    match whole.cmp(&(floor as i64)) {
        Ordering::Equal if number > floor => Ordering::Less,
        order => order,
    }
}

/// One entry: its name, its value (`None`: removed), its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeEntry<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value; `None`: one of that name is taken away.
    pub value: Option<Attribute<'a>>,
    bytes: &'a [u8],
}

/// The entries of bytes that [`check_attributes`] has looked at.
pub fn attributes_in(bytes: &[u8]) -> impl Iterator<Item = AttributeEntry<'_>> {
    let mut reader = Reader::new(bytes);
    std::iter::from_fn(move || if reader.rest().is_empty() { None } else { read_entry(&mut reader).ok() })
}

/// Whether bytes are attributes, in their one writing. Returns how many there are.
pub fn check_attributes(bytes: &[u8]) -> Result<usize, DecodeError> {
    let mut reader = Reader::new(bytes);
    let (mut before, mut count) = ("", 0);
    while !reader.rest().is_empty() {
        let entry = read_entry(&mut reader)?;
        if entry.name <= before {
            return Err(DecodeError::Text);
        }
        (before, count) = (entry.name, count + 1);
    }
    Ok(count)
}

/// Attributes with what is set on top of them: of two of a name the new one, and none that is taken away.
#[must_use]
pub fn merge_attributes(old: &[u8], set: &[u8]) -> Vec<u8> {
    let mut merged = Vec::with_capacity(old.len() + set.len());
    let mut old = attributes_in(old).peekable();
    for new in attributes_in(set) {
        while let Some(entry) = old.next_if(|entry| entry.name < new.name) {
            merged.extend_from_slice(entry.bytes);
        }
        old.next_if(|entry| entry.name == new.name);
        if new.value.is_some() {
            merged.extend_from_slice(new.bytes);
        }
    }
    old.for_each(|entry| merged.extend_from_slice(entry.bytes));
    merged
}

/// Writes an entry. They are to be written in the order of their names.
pub fn write_attribute(bytes: &mut Vec<u8>, name: &str, value: Option<&Attribute<'_>>) {
    let mut out = Writer::new(bytes);
    out.text(name);
    match value {
        None => out.byte(0),
        Some(Attribute::Text(text)) => {
            out.byte(1);
            out.text(text);
        }
        Some(Attribute::Number(number)) => {
            out.byte(2);
            // One writing of zero.
            out.raw(&(number + 0.0).to_le_bytes());
        }
        Some(Attribute::Flag(flag)) => out.byte(3 + u8::from(*flag)),
        Some(Attribute::Time(time_ms)) => {
            out.byte(5);
            out.signed(*time_ms);
        }
        Some(Attribute::Whole(number)) => {
            out.byte(6);
            out.signed(*number);
        }
        Some(Attribute::Texts(texts)) => {
            out.byte(7);
            out.number(texts.len() as u64);
            texts.iter().for_each(|text| out.text(text));
        }
    }
}

fn read_entry<'a>(from: &mut Reader<'a>) -> Result<AttributeEntry<'a>, DecodeError> {
    let all = from.rest();
    let name = from.text()?;
    let value = match from.byte()? {
        0 => None,
        1 => Some(Attribute::Text(from.text()?)),
        2 => {
            let bytes = from.raw(8)?.first_chunk::<8>().ok_or(DecodeError::Short)?;
            let number = f64::from_le_bytes(*bytes);
            if !number.is_finite() || (number == 0.0 && number.is_sign_negative()) {
                return Err(DecodeError::Number);
            }
            Some(Attribute::Number(number))
        }
        3 => Some(Attribute::Flag(false)),
        4 => Some(Attribute::Flag(true)),
        5 => Some(Attribute::Time(from.signed()?)),
        6 => Some(Attribute::Whole(from.signed()?)),
        7 => {
            let count = from.number()?;
            if count > TEXTS_MAX as u64 {
                return Err(DecodeError::Number);
            }
            Some(Attribute::Texts((0..count).map(|_| from.text()).collect::<Result<_, _>>()?))
        }
        other => return Err(DecodeError::Unknown(u64::from(other))),
    };
    let bytes = &all[..all.len() - from.rest().len()];
    Ok(AttributeEntry { name, value, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(entries: &[(&str, Option<Attribute<'_>>)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, value) in entries {
            write_attribute(&mut bytes, name, value.as_ref());
        }
        bytes
    }

    fn names(bytes: &[u8]) -> String {
        attributes_in(bytes).map(|entry| entry.name).collect()
    }

    #[test]
    fn what_is_set_replaces_adds_and_takes_away() {
        let number = |value: f64| Some(Attribute::Number(value));
        let old = written(&[("b", number(1.0)), ("c", number(2.0)), ("e", number(3.0))]);
        let set = written(&[("a", number(9.0)), ("c", number(8.0)), ("d", None), ("e", None), ("f", number(7.0))]);
        let merged = merge_attributes(&old, &set);
        assert_eq!(check_attributes(&merged), Ok(4));
        assert_eq!(names(&merged), "abcf");
        assert_eq!(attributes_in(&merged).nth(2).unwrap().value, number(8.0));
        assert_eq!(merge_attributes(&[], &set), written(&[("a", number(9.0)), ("c", number(8.0)), ("f", number(7.0))]));
        assert_eq!(merge_attributes(&old, &[]), old);
    }

    #[test]
    fn names_out_of_order_twice_or_empty_and_numbers_that_are_none_are_no_attributes() {
        let flag = || Some(Attribute::Flag(true));
        for entries in [[("b", flag()), ("a", flag())], [("a", flag()), ("a", None)], [("", flag()), ("a", flag())]] {
            assert_eq!(check_attributes(&written(&entries)), Err(DecodeError::Text));
        }
        for number in [f64::NAN, f64::INFINITY] {
            assert_eq!(check_attributes(&written(&[("a", Some(Attribute::Number(number)))])), Err(DecodeError::Number));
        }
        assert_eq!(check_attributes(&written(&[("a", Some(Attribute::Number(-0.0)))])), Ok(1));
        assert_eq!(check_attributes(&[1, b'a', 7, 65]), Err(DecodeError::Number));
    }

    #[test]
    fn whole_numbers_and_others_compare_exactly() {
        let compare = |whole, number| Attribute::Whole(whole).compare(&Attribute::Number(number));
        assert_eq!(compare(1 << 53, 9_007_199_254_740_992.0), Some(Ordering::Equal));
        assert_eq!(compare((1 << 53) + 1, 9_007_199_254_740_992.0), Some(Ordering::Greater));
        assert_eq!(compare(7, 7.5), Some(Ordering::Less));
        assert_eq!(compare(-7, -7.5), Some(Ordering::Greater));
        assert_eq!(compare(i64::MAX, 9_223_372_036_854_775_808.0), Some(Ordering::Less));
        assert_eq!(compare(i64::MIN, -9_223_372_036_854_775_808.0), Some(Ordering::Equal));
        assert_eq!(Attribute::Number(7.5).compare(&Attribute::Whole(7)), Some(Ordering::Greater));
        assert_eq!(Attribute::Text("7").compare(&Attribute::Number(7.0)), None);
        assert_eq!(Attribute::Time(7).compare(&Attribute::Number(7.0)), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_attributes_in_their_one_writing_or_none(
            bytes in proptest::collection::vec(0u8..9, 0..40),
        ) {
            if check_attributes(&bytes).is_ok() {
                let mut again = Vec::new();
                for entry in attributes_in(&bytes) {
                    write_attribute(&mut again, entry.name, entry.value.as_ref());
                }
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
