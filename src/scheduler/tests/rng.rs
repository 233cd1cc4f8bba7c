//! Chance for random histories, on the scheduler's own generator.

use crate::scheduler::chance::Chance;

pub(super) struct Rng(Chance);

impl Rng {
    pub(super) fn new(seed: u64) -> Rng {
        Rng(Chance::new(seed))
    }

    /// Less than `bound`, which is not 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// From `from` to `to`, both included.
    pub(super) fn between(&mut self, from: i64, to: i64) -> i64 {
        from + self.below((to - from + 1) as u64) as i64
    }

    /// True once in `n` times.
    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of the items.
    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}
