//! Which runs of a shard may be what somebody looks for: by type, by status, by search attribute.
//!
//! One ordered set of (field, value, run), 24 bytes an entry; runs by their numbers, which are in the order of their start. A value is a number that stands for it: a hash, to be found
//! by what it is; or, for what has an order, its first 8 bytes in that order, to be found between two others. So an entry
//! may be there for another value, and whoever asks looks at the run itself; but none is missing.

use crate::record::{Attribute, RunNo, Status, attributes_in};
use std::collections::BTreeSet;

/// What a run is found by: field, value.
pub(super) type Key = (u32, u64);

/// Runs between two keys, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: Key,
    pub(super) to: Key,
}

impl Span {
    /// Runs of one key.
    pub(super) fn of(key: Key) -> Span {
        Span { from: key, to: key }
    }

    /// All of its runs come in the order of their start.
    pub(super) fn is_ordered(self) -> bool {
        self.from == self.to
    }
}

#[derive(Debug, Default)]
pub(super) struct Index {
    entries: BTreeSet<(u32, u64, u64)>,
}

const KIND: u32 = 0;
const STATUS: u32 = 1;
/// Attributes by hash have even fields from here on, those by order the odd ones behind them.
const ATTRIBUTES: u32 = 2;

impl Index {
    pub(super) fn add_run(&mut self, no: RunNo, kind: &str) {
        self.add(kind_key(kind), no);
        self.add(status_key(None), no);
    }

    pub(super) fn end_run(&mut self, no: RunNo, status: Status) {
        self.remove(status_key(None), no);
        self.add(status_key(Some(status)), no);
    }

    /// A run that has ended and comes back into memory.
    pub(super) fn add_ended(&mut self, no: RunNo, kind: &str, status: Status, attributes: &[u8]) {
        self.add(kind_key(kind), no);
        self.add(status_key(Some(status)), no);
        self.add_attributes(no, attributes);
    }

    /// A run that has ended and leaves memory.
    pub(super) fn remove_ended(&mut self, no: RunNo, kind: &str, status: Status, attributes: &[u8]) {
        self.remove(kind_key(kind), no);
        self.remove(status_key(Some(status)), no);
        self.remove_attributes(no, attributes);
    }

    pub(super) fn add_attributes(&mut self, no: RunNo, attributes: &[u8]) {
        each_key(attributes, |key| self.add(key, no));
    }

    pub(super) fn remove_attributes(&mut self, no: RunNo, attributes: &[u8]) {
        each_key(attributes, |key| self.remove(key, no));
    }

    /// The runs of a span from `first` up to before `end`, in both directions.
    pub(super) fn runs(&self, span: Span, first: RunNo, end: RunNo) -> impl DoubleEndedIterator<Item = RunNo> {
        let is_meant = move |no: &RunNo| (first..end).contains(no);
        // Of one key the runs are in order, so that those before and behind need not be looked at.
        let (from, to) = if span.is_ordered() { (first.0, end.0.saturating_sub(1)) } else { (0, u64::MAX) };
        let range = (span.from.0, span.from.1, from)..=(span.to.0, span.to.1, to);
        let range = if range.is_empty() { (0, 0, 0)..=(0, 0, 0) } else { range };
        self.entries.range(range).map(|(_, _, no)| RunNo(*no)).filter(is_meant)
    }

    /// How many entries a span has, or `max` if it has more.
    pub(super) fn count(&self, span: Span, max: usize) -> usize {
        self.entries.range((span.from.0, span.from.1, 0)..=(span.to.0, span.to.1, u64::MAX)).take(max).count()
    }

    fn add(&mut self, key: Key, no: RunNo) {
        self.entries.insert((key.0, key.1, no.0));
    }

    fn remove(&mut self, key: Key, no: RunNo) {
        self.entries.remove(&(key.0, key.1, no.0));
    }
}

/// The key of a definition's name.
pub(super) fn kind_key(kind: &str) -> Key {
    (KIND, hash(kind.as_bytes()))
}

/// The key of a status; `None`: it has not ended.
pub(super) fn status_key(status: Option<Status>) -> Key {
    (STATUS, u64::from(status.map_or(0, Status::code)))
}

/// The key of an attribute that has this value.
pub(super) fn value_key(name: &str, value: &Attribute<'_>) -> Option<Key> {
    let value = match value {
        Attribute::Text(text) => hash(text.as_bytes()),
        Attribute::Number(_) | Attribute::Whole(_) | Attribute::Time(_) | Attribute::Flag(_) => order_of(value)?,
        Attribute::Texts(_) => return None,
    };
    Some((field(name), value))
}

/// The key of an attribute by the order of its values.
pub(super) fn order_key(name: &str, value: &Attribute<'_>) -> Option<Key> {
    Some((field(name) + 1, order_of(value)?))
}

/// Every key of attributes.
fn each_key(attributes: &[u8], mut each: impl FnMut(Key)) {
    for entry in attributes_in(attributes) {
        let name = entry.name;
        let mut both = |value: &Attribute<'_>| {
            [value_key(name, value), order_key(name, value)].into_iter().flatten().for_each(&mut each);
        };
        match entry.value {
            Some(Attribute::Texts(texts)) => texts.into_iter().for_each(|text| both(&Attribute::Text(text))),
            Some(value) => both(&value),
            None => {}
        }
    }
}

/// The field of an attribute's name.
fn field(name: &str) -> u32 {
    ATTRIBUTES + ((hash(name.as_bytes()) as u32) >> 2) * 2
}

/// A number in the order of the values, as far as 8 bytes tell them apart.
fn order_of(value: &Attribute<'_>) -> Option<u64> {
    Some(match value {
        Attribute::Number(number) => order_of_number(*number),
        // Rounded: two neighbours may be one, and never change places.
        Attribute::Whole(number) => order_of_number(*number as f64),
        Attribute::Time(time_ms) => (*time_ms as u64) ^ (1 << 63),
        Attribute::Flag(flag) => u64::from(*flag),
        Attribute::Text(text) => {
            let mut first = [0; 8];
            let length = text.len().min(8);
            first[..length].copy_from_slice(&text.as_bytes()[..length]);
            // The first byte counts most.
            u64::from_le_bytes(first).swap_bytes()
        }
        Attribute::Texts(_) => return None,
    })
}

/// Bits of a number in the order of numbers.
fn order_of_number(number: f64) -> u64 {
    let bits = (number + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// FNV-1a, mixed as for the shard of an id; of no format.
fn hash(bytes: &[u8]) -> u64 {
    let mut hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^ (hash >> 27)
}
