//! How long tasks of a kind take, learned from those that completed.

use super::saved::counter;
use crate::record::{DecodeError, Reader, Writer};

/// The mean at first, then a median that follows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Learned {
    count: u64,
    /// In thousandths of a ms, so that short tasks move it too.
    mean_us: i64,
    median_us: i64,
}

/// A median needs so many before it says anything.
const MEDIAN_FROM: u64 = 3;

impl Learned {
    pub(super) fn learn(&mut self, run_ms: i64) {
        let run_us = run_ms.clamp(0, i64::MAX / 2_000) * 1_000;
        self.count += 1;
        if self.count == 1 {
            self.mean_us = run_us;
            self.median_us = run_us;
            return;
        }
        self.mean_us += (run_us - self.mean_us) / 10;
        if self.count <= MEDIAN_FROM {
            self.median_us = self.mean_us;
            return;
        }
        // The step shrinks as more is known, to 2 % of the mean.
        let step = (self.mean_us / (self.count.isqrt() as i64)).max(self.mean_us / 50).max(1);
        self.median_us = match run_us.cmp(&self.median_us) {
            std::cmp::Ordering::Less => (self.median_us - step).max(run_us),
            std::cmp::Ordering::Equal => self.median_us,
            std::cmp::Ordering::Greater => (self.median_us + step).min(run_us),
        };
    }

    pub(super) fn encode(&self, out: &mut Writer<'_>) {
        out.number(self.count);
        out.signed(self.mean_us);
        out.signed(self.median_us);
    }

    pub(super) fn decode(&mut self, from: &mut Reader<'_>) -> Result<(), DecodeError> {
        *self = Learned { count: counter(from)?, mean_us: from.signed()?, median_us: from.signed()? };
        let is_length = |of_us: i64| (0..=i64::MAX / 2).contains(&of_us);
        if is_length(self.mean_us) && is_length(self.median_us) { Ok(()) } else { Err(DecodeError::Number) }
    }

    /// `None` before anything completed.
    pub(super) fn estimate_ms(&self) -> Option<i64> {
        (self.count > 0).then_some((self.median_us + 999) / 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_not_moved_by_the_rare_long_one() {
        let mut learned = Learned::default();
        assert_eq!(learned.estimate_ms(), None);
        for round in 0..1_000 {
            learned.learn(if round % 20 == 19 { 10_000 } else { 100 });
        }
        let estimate_ms = learned.estimate_ms().unwrap();
        assert!((90..=200).contains(&estimate_ms), "{estimate_ms}");
        assert!(learned.mean_us / 1_000 > estimate_ms);
    }

    #[test]
    fn it_follows_a_change() {
        let mut learned = Learned::default();
        (0..100).for_each(|_| learned.learn(100));
        (0..300).for_each(|_| learned.learn(1_000));
        assert_eq!(learned.estimate_ms(), Some(1_000));
    }
}
