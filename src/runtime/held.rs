//! What waits for the disk. The one place in the code that releases anything that leaves the process: law 1.

use crate::record::Lsn;
use std::collections::VecDeque;

/// Things held until the records they rest on are durable, by LSN. Equal LSNs keep their order.
#[derive(Debug)]
pub struct Held<T> {
    waiting: VecDeque<(Lsn, T)>,
}

impl<T> Default for Held<T> {
    fn default() -> Self {
        Held { waiting: VecDeque::new() }
    }
}

impl<T> Held<T> {
    /// Holds something back until everything up to `lsn` is durable.
    pub fn hold(&mut self, lsn: Lsn, thing: T) {
        match self.waiting.back() {
            Some((last, _)) if *last > lsn => {
                let index = self.waiting.partition_point(|(held, _)| *held <= lsn);
                self.waiting.insert(index, (lsn, thing));
            }
            Some(_) | None => self.waiting.push_back((lsn, thing)),
        }
    }

    /// Takes the next thing whose records are durable.
    pub fn release(&mut self, durable: Lsn) -> Option<T> {
        let is_released = match self.waiting.front() {
            Some((lsn, _)) => *lsn <= durable || cfg!(fusee_mutant = "release_before_durable"),
            None => false,
        };
        if is_released { self.waiting.pop_front().map(|(_, thing)| thing) } else { None }
    }

    /// What the first of them waits for; `None` if nothing waits.
    #[must_use]
    pub fn first(&self) -> Option<Lsn> {
        self.waiting.front().map(|(lsn, _)| *lsn)
    }

    /// Looks at all of them.
    pub fn each(&self, each: &mut dyn FnMut(&T)) {
        self.waiting.iter().for_each(|(_, thing)| each(thing));
    }

    /// Drops those that `keep` does not want any more.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.waiting.retain(|(_, thing)| keep(thing));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_released_before_its_records_are_durable_law_1() {
        let mut held = Held::default();
        held.hold(Lsn(5), 'b');
        held.hold(Lsn(9), 'd');
        held.hold(Lsn(5), 'c');
        held.hold(Lsn(2), 'a');
        assert_eq!(held.release(Lsn(1)), None);
        let released: Vec<char> = std::iter::from_fn(|| held.release(Lsn(8))).collect();
        assert_eq!(released, ['a', 'b', 'c']);
        assert_eq!(held.first(), Some(Lsn(9)));
    }
}
