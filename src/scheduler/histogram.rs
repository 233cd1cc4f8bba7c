//! Durations counted by size: eight steps for each power of two, so that what is read from it is at most an eighth off.

/// Up to 2^40 ms, about 35 years.
const STEPS: usize = 320;

/// Durations in ms.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    counts: Box<[u32; STEPS]>,
    count: u64,
    sum_ms: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: Box::new([0; STEPS]), count: 0, sum_ms: 0 }
    }
}

impl Histogram {
    pub(super) fn add(&mut self, length_ms: i64) {
        let length_ms = length_ms.max(0) as u64;
        let step = &mut self.counts[step_of(length_ms)];
        *step = step.saturating_add(1);
        self.count += 1;
        self.sum_ms = self.sum_ms.saturating_add(length_ms);
    }

    pub(super) fn merge(&mut self, other: &Histogram) {
        for (own, other) in self.counts.iter_mut().zip(other.counts.iter()) {
            *own = own.saturating_add(*other);
        }
        self.count += other.count;
        self.sum_ms = self.sum_ms.saturating_add(other.sum_ms);
    }

    pub(super) fn clear(&mut self) {
        if self.count > 0 {
            *self = Histogram::default();
        }
    }

    /// The length that so many percent of them do not exceed, rounded up to the end of its step. 0 when there are none.
    pub(super) fn percentile_ms(&self, percent: u64) -> i64 {
        let rank = (self.count * percent).div_ceil(100).max(1);
        let mut seen = 0;
        for (step, count) in self.counts.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                return last_of(step) as i64;
            }
        }
        0
    }

    pub(super) fn mean_ms(&self) -> i64 {
        self.sum_ms.checked_div(self.count).unwrap_or(0) as i64
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

/// Lengths below 8 have a step each; above, three bits behind the highest one choose it.
fn step_of(length_ms: u64) -> usize {
    if length_ms < 8 {
        return length_ms as usize;
    }
    let power = length_ms.ilog2() as usize;
    let within = (length_ms >> (power - 3)) as usize & 7;
    ((power - 2) * 8 + within).min(STEPS - 1)
}

/// The greatest length of a step.
fn last_of(step: usize) -> u64 {
    if step < 8 {
        return step as u64;
    }
    let (power, within) = (step / 8 + 2, (step % 8) as u64);
    ((8 + within + 1) << (power - 3)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_length_is_in_the_step_that_ends_at_or_just_above_it(length_ms in 0u64..1 << 39) {
            let end_ms = last_of(step_of(length_ms));
            prop_assert!(length_ms <= end_ms && end_ms <= length_ms + length_ms / 8);
        }

        #[test]
        fn percentiles_never_fall(lengths in proptest::collection::vec(0i64..100_000, 1..50), low in 0u64..100) {
            let mut histogram = Histogram::default();
            lengths.iter().for_each(|length_ms| histogram.add(*length_ms));
            prop_assert!(histogram.percentile_ms(low) <= histogram.percentile_ms(low + 1));
            let greatest_ms = *lengths.iter().max().unwrap();
            prop_assert!(histogram.percentile_ms(100) >= greatest_ms);
        }
    }

    #[test]
    fn absurd_lengths_are_counted_and_nothing_of_none_is_0() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.percentile_ms(99), histogram.mean_ms()), (0, 0));
        histogram.add(i64::MAX);
        histogram.add(i64::MIN);
        assert_eq!(histogram.count(), 2);
        histogram.clear();
        assert_eq!(histogram.count(), 0);
    }
}
