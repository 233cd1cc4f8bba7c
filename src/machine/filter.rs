//! Which runs are listed: conditions, what is made of them, and the runs of a shard that fulfil them.

use super::index::{Key, Span, kind_key, order_key, status_key, value_key};
use super::run::RunIx;
use super::shard::Shard;
use super::views::{QUEUED, RunView};
use crate::record::{Attribute, RunNo, Status, attributes_in};
use std::cmp::Ordering;

/// A condition. Times are in ms since 1970.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// All of them hold. None: all runs.
    All(Vec<Filter>),
    /// One of them holds, at least.
    Any(Vec<Filter>),
    /// It does not hold.
    Not(Box<Filter>),
    /// The name of the definition.
    Kind(String),
    /// One bit a status code, bit 0 for runs that have not ended.
    Status(u32),
    /// With or without the mark.
    Stuck(bool),
    /// With or without the mark.
    Paused(bool),
    /// The id begins so.
    IdPrefix(String),
    /// Started at this time or later.
    StartedFrom(i64),
    /// Started before this time.
    StartedBefore(i64),
    /// What a search attribute is.
    Attribute(String, Test),
}

/// What is asked of the value of a search attribute; of a list, of one of its texts. A value of another kind does not
/// fulfil it, nor does none.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// It is this one.
    Is(Value),
    /// It is above it; or equal, if so it says.
    Above(Value, bool),
    /// It is below it; or equal, if so it says.
    Below(Value, bool),
    /// It is a text that begins so.
    Prefix(String),
    /// There is one.
    Exists,
}

/// A value that attributes are compared with.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "as those of an attribute")]
pub enum Value {
    Text(String),
    Number(f64),
    Whole(i64),
    Flag(bool),
    Time(i64),
}

impl Value {
    fn attribute(&self) -> Attribute<'_> {
        match self {
            Value::Text(text) => Attribute::Text(text),
            Value::Number(number) => Attribute::Number(*number),
            Value::Whole(number) => Attribute::Whole(*number),
            Value::Flag(flag) => Attribute::Flag(*flag),
            Value::Time(time_ms) => Attribute::Time(*time_ms),
        }
    }
}

impl Test {
    fn admits(&self, value: &Attribute<'_>) -> bool {
        if let Attribute::Texts(texts) = value {
            return matches!(self, Test::Exists) || texts.iter().any(|text| self.admits(&Attribute::Text(text)));
        }
        let order = |than: &Value| value.compare(&than.attribute());
        match self {
            Test::Is(than) => order(than) == Some(Ordering::Equal),
            Test::Above(than, or_equal) => {
                order(than).is_some_and(|order| order.is_gt() || (*or_equal && order.is_eq()))
            }
            Test::Below(than, or_equal) => {
                order(than).is_some_and(|order| order.is_lt() || (*or_equal && order.is_eq()))
            }
            Test::Prefix(prefix) => matches!(value, Attribute::Text(text) if text.starts_with(prefix.as_str())),
            Test::Exists => true,
        }
    }

    /// Runs outside of it do not fulfil the test. `None`: any may.
    fn span(&self, name: &str) -> Option<Span> {
        let key = |value: &Value| order_key(name, &value.attribute());
        Some(match self {
            Test::Is(value) => Span::of(value_key(name, &value.attribute())?),
            Test::Above(value, _) => Span { from: key(value)?, to: (key(value)?.0, u64::MAX) },
            Test::Below(value, _) => Span { from: (key(value)?.0, 0), to: key(value)? },
            Test::Prefix(prefix) => {
                let from: Key = order_key(name, &Attribute::Text(prefix))?;
                let open_bits = 64 - 8 * prefix.len().min(8) as u32;
                Span { from, to: (from.0, from.1 | 1u64.checked_shl(open_bits).unwrap_or(0).wrapping_sub(1)) }
            }
            Test::Exists => return None,
        })
    }
}

/// Entries of an index that are looked at one by one before a walk over all runs is the better way.
const GATHERED_MAX: usize = 512;

/// In which runs of a shard to look.
enum Way {
    /// All of them.
    Walk,
    /// Those of the span, which come in order.
    Ordered(Span),
    /// Those of the spans, which do not.
    Gathered(Vec<Span>),
}

impl Filter {
    /// Whether a run is meant.
    #[must_use]
    pub fn admits(&self, run: &RunView<'_>) -> bool {
        match self {
            Filter::All(filters) => filters.iter().all(|filter| filter.admits(run)),
            Filter::Any(filters) => filters.iter().any(|filter| filter.admits(run)),
            Filter::Not(filter) => !filter.admits(run),
            Filter::Kind(kind) => kind == run.kind,
            Filter::Status(mask) => mask & 1 << run.status_code() != 0,
            Filter::Stuck(wanted) => *wanted == run.marks.is_stuck,
            Filter::Paused(wanted) => *wanted == run.marks.is_paused,
            Filter::IdPrefix(prefix) => run.id.starts_with(prefix.as_str()),
            Filter::StartedFrom(from_ms) => run.created_ms >= *from_ms,
            Filter::StartedBefore(before_ms) => run.created_ms < *before_ms,
            Filter::Attribute(name, test) => attributes_in(run.attributes)
                .find(|entry| entry.name == name)
                .and_then(|entry| entry.value)
                .is_some_and(|value| test.admits(&value)),
        }
    }

    /// Spans outside of which no run is meant, those with the fewest entries that are known of. `None`: there is none.
    fn spans(&self, shard: &Shard) -> Option<Vec<Span>> {
        match self {
            Filter::All(filters) => {
                let ranges: Vec<Vec<Span>> = ranges(filters).collect();
                // One bound of a range says less than both.
                let is_told = |filter: &&Filter| ranges.is_empty() || bound(filter).is_none();
                let known = filters.iter().filter(is_told).filter_map(|filter| filter.spans(shard));
                let mut known: Vec<Vec<Span>> = known.chain(ranges.iter().cloned()).collect();
                if known.len() < 2 {
                    return known.pop();
                }
                known.into_iter().min_by_key(|spans| (shard.entries_of(spans), spans.len()))
            }
            Filter::Any(filters) => {
                let all: Option<Vec<Vec<Span>>> = filters.iter().map(|filter| filter.spans(shard)).collect();
                all.map(|all| all.concat())
            }
            Filter::Kind(kind) => Some(vec![Span::of(kind_key(kind))]),
            Filter::Status(mask) => {
                // Runs that wait in a queue have not ended.
                let is_open = mask & (1 | 1 << QUEUED) != 0;
                let ends = (1..QUEUED).filter(|code| mask & 1 << code != 0).filter_map(Status::from_code);
                let keys = is_open.then_some(None).into_iter().chain(ends.map(Some));
                Some(keys.map(|status| Span::of(status_key(status))).collect())
            }
            Filter::Attribute(name, test) => test.span(name).map(|span| vec![span]),
            // What is paused or stuck has not ended.
            Filter::Stuck(true) | Filter::Paused(true) => Some(vec![Span::of(status_key(None))]),
            Filter::Not(_)
            | Filter::Stuck(false)
            | Filter::Paused(false)
            | Filter::IdPrefix(_)
            | Filter::StartedFrom(_)
            | Filter::StartedBefore(_) => None,
        }
    }
}

/// What a filter says about finished runs that an index of theirs is asked for: outside of it none is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndedHint {
    /// Names of definitions; none: any.
    pub kinds: Vec<String>,
    /// Bits of status codes.
    pub statuses: u32,
    /// Started at this time or later, in ms since 1970.
    pub from_ms: i64,
    /// Every run inside of it is meant.
    pub is_exact: bool,
}

/// Bits of the statuses of runs that have ended.
const ENDED: u32 = ((1 << QUEUED) - 1) & !1;

impl Filter {
    /// In which finished runs to look.
    #[must_use]
    pub fn ended_hint(&self) -> EndedHint {
        let any = EndedHint { kinds: Vec::new(), statuses: ENDED, from_ms: i64::MIN, is_exact: false };
        match self {
            Filter::Kind(kind) => EndedHint { kinds: vec![kind.clone()], is_exact: true, ..any },
            Filter::Status(mask) => EndedHint { statuses: mask & ENDED, is_exact: true, ..any },
            // The place in the order of starts is never before the start.
            Filter::StartedFrom(from_ms) => EndedHint { from_ms: *from_ms, ..any },
            Filter::Stuck(true) | Filter::Paused(true) => EndedHint { statuses: 0, ..any },
            Filter::Stuck(false) | Filter::Paused(false) => EndedHint { is_exact: true, ..any },
            Filter::Any(filters) if filters.iter().all(|filter| matches!(filter, Filter::Kind(_))) => {
                let mut kinds: Vec<String> = filters.iter().flat_map(|filter| filter.ended_hint().kinds).collect();
                kinds.sort_unstable();
                kinds.dedup();
                let statuses = if kinds.is_empty() { 0 } else { ENDED };
                EndedHint { kinds, statuses, is_exact: true, ..any }
            }
            Filter::All(filters) => {
                let mut all = EndedHint { is_exact: true, ..any };
                for hint in filters.iter().map(Filter::ended_hint) {
                    all.statuses &= hint.statuses;
                    all.from_ms = all.from_ms.max(hint.from_ms);
                    all.is_exact &= hint.is_exact && (all.kinds.is_empty() || hint.kinds.is_empty());
                    if all.kinds.is_empty() {
                        all.kinds = hint.kinds;
                    }
                }
                all
            }
            Filter::Any(_)
            | Filter::Not(_)
            | Filter::IdPrefix(_)
            | Filter::StartedBefore(_)
            | Filter::Attribute(..) => any,
        }
    }
}

/// What is on one side of a bound that is no text.
fn bound(filter: &Filter) -> Option<Span> {
    match filter {
        Filter::Attribute(name, test @ (Test::Above(value, _) | Test::Below(value, _))) => match value {
            Value::Text(_) => None,
            Value::Number(_) | Value::Whole(_) | Value::Flag(_) | Value::Time(_) => test.span(name),
        },
        _ => None,
    }
}

/// For two bounds of one attribute, what is between them. Not for texts: of a list, each may hold for another one.
fn ranges(filters: &[Filter]) -> impl Iterator<Item = Vec<Span>> {
    let all: Vec<Span> = filters.iter().filter_map(bound).collect();
    let both = |(one, other): (&Span, &Span)| {
        let span = Span { from: one.from.max(other.from), to: one.to.min(other.to) };
        (one.from.0 == other.from.0).then(|| if span.from <= span.to { vec![span] } else { Vec::new() })
    };
    let pairs: Vec<Vec<Span>> = all.iter().zip(all.iter().skip(1)).filter_map(both).collect();
    pairs.into_iter()
}

impl Shard {
    /// Runs that a filter means, by start, at most `limit`: the newest or the oldest first. `after`: only those behind
    /// this place in that order, which is a run's `order_ms` and its number.
    #[must_use]
    pub fn search(
        &self,
        filter: &Filter,
        is_newest_first: bool,
        after: Option<(i64, u64)>,
        limit: usize,
    ) -> Vec<RunIx> {
        let count = self.next_run_no();
        let (first, end) = match after {
            None => (RunNo(0), count),
            Some(after) if is_newest_first => (RunNo(0), self.first_from(after)),
            Some((order_ms, no)) => (self.first_from((order_ms, no.saturating_add(1))), count),
        };
        let mut found = Vec::new();
        let mut take = |runs: &mut dyn Iterator<Item = RunIx>| {
            found.extend(runs.filter(|run| filter.admits(&self.view(*run))).take(limit));
        };
        let known = |no| self.run_of(no);
        let range = first..end.max(first);
        match self.way(filter) {
            Way::Walk if is_newest_first => take(&mut self.by_no.range(range).rev().map(|(_, run)| *run)),
            Way::Walk => take(&mut self.by_no.range(range).map(|(_, run)| *run)),
            Way::Ordered(span) if is_newest_first => {
                take(&mut self.index.runs(span, first, end).rev().filter_map(known));
            }
            Way::Ordered(span) => take(&mut self.index.runs(span, first, end).filter_map(known)),
            Way::Gathered(spans) => {
                let mut runs: Vec<RunNo> = spans.iter().flat_map(|span| self.index.runs(*span, first, end)).collect();
                runs.sort_unstable();
                runs.dedup();
                if is_newest_first {
                    runs.reverse();
                }
                take(&mut runs.into_iter().filter_map(known));
            }
        }
        found
    }

    /// A number below which are exactly the runs before a place in the order of starts.
    fn first_from(&self, place: (i64, u64)) -> RunNo {
        let (mut low, mut high) = (0, self.next_no);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.by_no.range(RunNo(middle)..).next() {
                Some((no, run)) if (self.run(*run).order_ms, no.0) < place => low = no.0 + 1,
                Some(_) | None => high = middle,
            }
        }
        RunNo(low)
    }

    fn way(&self, filter: &Filter) -> Way {
        match filter.spans(self) {
            None => Way::Walk,
            Some(spans) => match spans[..] {
                [span] if span.is_ordered() => Way::Ordered(span),
                _ if self.entries_of(&spans) < GATHERED_MAX => Way::Gathered(spans),
                _ => Way::Walk,
            },
        }
    }

    /// Entries of spans together, as far as it matters how many there are.
    fn entries_of(&self, spans: &[Span]) -> usize {
        spans.iter().map(|span| self.index.count(*span, GATHERED_MAX)).sum()
    }
}
