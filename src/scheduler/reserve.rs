//! Reserved starts: how many can be promised for one time, and which slots are kept for them.

use super::task::{Booked, Task, TaskIx};
use crate::record::TaskNo;
use std::collections::{BTreeMap, BTreeSet};

type Entry = (i64, TaskNo, TaskIx);

/// The reserved starts of a queue.
#[derive(Debug, Default)]
pub(super) struct Reservations {
    /// Start of the interval and task, to its end. From acceptance to the end of the task.
    booked: BTreeMap<(i64, TaskNo), i64>,
    /// Longest interval ever booked: none that begins longer before a time reaches it.
    longest_ms: i64,
    /// Wait for a slot to be kept for them.
    wanting: BTreeSet<Entry>,
    /// Have a slot kept for them, and their time has not come.
    held: BTreeSet<Entry>,
    /// Their time has come and a slot is kept for them.
    due_held: BTreeSet<Entry>,
    due: BTreeSet<Entry>,
}

impl Reservations {
    /// The most starts that are promised at any one time of an interval, of the tasks that count.
    pub(super) fn most_at_once(&self, from_ms: i64, to_ms: i64, counts: impl Fn(TaskNo) -> bool) -> usize {
        let first = from_ms.saturating_sub(self.longest_ms);
        let near = self.booked.range((first, TaskNo(0))..(to_ms, TaskNo(0)));
        let mut edges: Vec<(i64, i32)> = Vec::new();
        for ((start_ms, _), end_ms) in near.filter(|((_, number), end_ms)| **end_ms > from_ms && counts(*number)) {
            edges.push((*start_ms.max(&from_ms), 1));
            edges.push((*end_ms, -1));
        }
        // Ends sort before starts of the same time: intervals that touch do not overlap.
        edges.sort_unstable();
        let mut at_once = 0;
        let most = edges.iter().map(|(_, change)| {
            at_once += change;
            at_once
        });
        most.max().unwrap_or(0) as usize
    }

    /// The beginning of the first interval that begins from a time on.
    pub(super) fn first_ms_from(&self, from_ms: i64) -> Option<i64> {
        self.booked.range((from_ms, TaskNo(0))..).next().map(|((start_ms, _), _)| *start_ms)
    }

    pub(super) fn book(&mut self, number: TaskNo, booked: &Booked) {
        let start_ms = booked.at_ms.saturating_sub(booked.tolerance_ms);
        self.booked.insert((start_ms, number), booked.end_ms);
        self.longest_ms = self.longest_ms.max(booked.end_ms.saturating_sub(start_ms));
    }

    pub(super) fn unbook(&mut self, number: TaskNo, booked: &Booked) {
        self.booked.remove(&(booked.at_ms.saturating_sub(booked.tolerance_ms), number));
    }

    /// A slot is to be kept for a task, as soon as one is free.
    pub(super) fn want_hold(&mut self, ix: TaskIx, task: &Task) {
        self.wanting.insert(entry(ix, task));
    }

    /// Keeps a free slot for the first that wants one.
    pub(super) fn hold_next(&mut self) -> bool {
        match self.wanting.pop_first() {
            Some(entry) => self.held.insert(entry),
            None => false,
        }
    }

    /// Slots that are kept.
    pub(super) fn held_count(&self) -> u32 {
        (self.held.len() + self.due_held.len()) as u32
    }

    /// A task has no claim to a slot any more.
    pub(super) fn let_go(&mut self, ix: TaskIx, task: &Task) {
        let entry = entry(ix, task);
        self.wanting.remove(&entry);
        self.held.remove(&entry);
    }

    pub(super) fn due(&mut self, ix: TaskIx, task: &Task) {
        let entry = entry(ix, task);
        self.wanting.remove(&entry);
        let is_held = self.held.remove(&entry);
        let line = if is_held { &mut self.due_held } else { &mut self.due };
        line.insert(entry);
    }

    pub(super) fn not_due(&mut self, ix: TaskIx, task: &Task) {
        let entry = entry(ix, task);
        self.due_held.remove(&entry);
        self.due.remove(&entry);
    }

    pub(super) fn first_due_held(&self) -> Option<TaskIx> {
        self.due_held.first().map(|(.., ix)| *ix)
    }

    pub(super) fn first_due(&self) -> Option<TaskIx> {
        self.due.first().map(|(.., ix)| *ix)
    }

    #[cfg(test)]
    pub(super) fn due_count(&self) -> u64 {
        (self.due.len() + self.due_held.len()) as u64
    }

    pub(super) fn booked_count(&self) -> usize {
        self.booked.len()
    }

    #[cfg(test)]
    pub(super) fn is_free_of(&self, number: TaskNo) -> bool {
        let sets = [&self.wanting, &self.held, &self.due, &self.due_held];
        !sets.iter().any(|set| set.iter().any(|entry| entry.1 == number))
            && !self.booked.keys().any(|key| key.1 == number)
    }
}

fn entry(ix: TaskIx, task: &Task) -> Entry {
    (task.reserve().map_or(task.submitted_ms, |booked| booked.at_ms), task.number, ix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::OnMiss;
    use crate::scheduler::timers::TimerNo;
    use proptest::prelude::*;

    fn booked(start_ms: i64, end_ms: i64) -> Booked {
        let (hold, miss) = (TimerNo::NONE, TimerNo::NONE);
        Booked { at_ms: start_ms, tolerance_ms: 0, on_miss: OnMiss::RunLate, end_ms, hold, miss }
    }

    proptest! {
        #[test]
        fn overlap_is_what_counting_each_moment_gives(
            intervals in proptest::collection::vec((0i64..50, 1i64..20), 0..20), from_ms in 0i64..50, length_ms in 1i64..20,
        ) {
            let mut reservations = Reservations::default();
            for (at, (start_ms, length_ms)) in intervals.iter().enumerate() {
                reservations.book(TaskNo(at as u64 + 1), &booked(*start_ms, start_ms + length_ms));
            }
            let at_moment = |moment: i64| {
                intervals.iter().filter(|(start_ms, length_ms)| (*start_ms..start_ms + length_ms).contains(&moment)).count()
            };
            let most = (from_ms..from_ms + length_ms).map(at_moment).max().unwrap();
            prop_assert_eq!(reservations.most_at_once(from_ms, from_ms + length_ms, |_| true), most);
        }
    }
}
