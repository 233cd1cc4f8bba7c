//! First in, first out by task number, with a way back for those that return and a way out for those that leave early.

use super::task::TaskIx;
use crate::record::TaskNo;
use std::collections::{BTreeMap, VecDeque};

/// Tasks in the order of their numbers. Most arrive in that order and leave at the front: both cost O(1). A task that
/// comes back (a retry, a limit that had something) goes to its old place, and one that leaves from the middle leaves a
/// hole: O(log n).
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// In order; `None` is a hole.
    fresh: VecDeque<(TaskNo, Option<TaskIx>)>,
    holes: usize,
    /// Those that came back.
    returned: BTreeMap<TaskNo, TaskIx>,
}

impl Lane {
    pub(super) fn len(&self) -> usize {
        self.fresh.len() - self.holes + self.returned.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn insert(&mut self, number: TaskNo, task: TaskIx) {
        if self.fresh.back().is_none_or(|(last, _)| *last < number) {
            self.fresh.push_back((number, Some(task)));
        } else {
            self.returned.insert(number, task);
        }
    }

    pub(super) fn remove(&mut self, number: TaskNo) {
        if self.returned.remove(&number).is_none() {
            let place = self.fresh.binary_search_by_key(&number, |(of, _)| *of).expect("it is in the lane");
            self.fresh[place].1 = None;
            self.holes += 1;
        }
        self.tidy();
    }

    pub(super) fn first(&self) -> Option<(TaskNo, TaskIx)> {
        let fresh = self.fresh.front().map(|(number, task)| (*number, task.expect("no hole is in front")));
        let returned = self.returned.first_key_value().map(|(number, task)| (*number, *task));
        match (fresh, returned) {
            (Some(fresh), Some(returned)) => Some(fresh.min(returned)),
            (fresh, returned) => fresh.or(returned),
        }
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = TaskIx> {
        self.fresh.iter().filter_map(|(_, task)| *task).chain(self.returned.values().copied())
    }

    /// How many go before a number.
    pub(super) fn before(&self, number: TaskNo) -> usize {
        self.fresh.iter().take_while(|(of, _)| *of < number).filter(|(_, task)| task.is_some()).count()
            + self.returned.range(..number).count()
    }

    /// No hole is in front, and holes are never more than half.
    fn tidy(&mut self) {
        while self.fresh.front().is_some_and(|(_, task)| task.is_none()) {
            self.fresh.pop_front();
            self.holes -= 1;
        }
        if self.holes > 64 && self.holes > self.fresh.len() / 2 {
            self.fresh.retain(|(_, task)| task.is_some());
            self.holes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_lane_is_a_sorted_map(steps in proptest::collection::vec((any::<bool>(), 1u64..200), 0..400)) {
            let mut lane = Lane::default();
            let mut model = BTreeMap::new();
            for (adds, number) in steps {
                let number = TaskNo(number);
                if adds && !model.contains_key(&number) {
                    lane.insert(number, TaskIx(number.0 as u32));
                    model.insert(number, TaskIx(number.0 as u32));
                } else if !adds && model.remove(&number).is_some() {
                    lane.remove(number);
                }
                prop_assert_eq!(lane.len(), model.len());
                prop_assert_eq!(lane.first(), model.first_key_value().map(|(number, task)| (*number, *task)));
                prop_assert_eq!(lane.before(number), model.range(..number).count());
            }
        }
    }
}
