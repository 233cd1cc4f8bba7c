//! What falls due when. Equal times fire in the order in which they were set.

use super::schedules::ScheduleIx;
use super::task::{QueueIx, TaskIx};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Number of a timer that is set, or none. Whoever set it keeps it: a timer fires only for a number still kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TimerNo(u64);

impl TimerNo {
    /// No timer.
    pub(super) const NONE: TimerNo = TimerNo(0);
}

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A delay, a reserved start or the wait before an attempt is over.
    Wake(TaskIx),
    /// The task ends if it has not started.
    Expire(TaskIx),
    /// The wait for a key that no task has is over.
    Await(TaskIx),
    /// A slot is to be kept for a reserved start.
    Hold(TaskIx),
    /// A reserved start has been missed.
    Miss(TaskIx),
    /// The attempt took too long.
    Timeout(TaskIx),
    /// The attempt's executor was silent for too long.
    Lease(TaskIx),
    /// A schedule's next task is to be made.
    Schedule(ScheduleIx),
    /// A queue looks how many slots it needs.
    Scale(QueueIx),
}

/// A heap of times. A timer that is cleared stays in it until it comes up or until those are more than half.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(i64, TimerNo, Timer)>>,
    last: u64,
    cleared: usize,
}

impl Timers {
    pub(super) fn set(&mut self, due_ms: i64, timer: Timer) -> TimerNo {
        self.last += 1;
        let number = TimerNo(self.last);
        self.heap.push(Reverse((due_ms, number, timer)));
        number
    }

    /// Forgets a timer. `is_kept` says whether a number is still kept by whoever set it.
    pub(super) fn clear(&mut self, number: &mut TimerNo) {
        if std::mem::take(number) != TimerNo::NONE {
            self.cleared += 1;
        }
    }

    /// Whether so many cleared timers lie about that they should be [swept](Timers::sweep) out.
    pub(super) fn is_littered(&self) -> bool {
        self.cleared > 1_024 && self.cleared > self.heap.len() / 2
    }

    pub(super) fn sweep(&mut self, is_kept: impl Fn(TimerNo, Timer) -> bool) {
        self.heap.retain(|Reverse((_, number, timer))| is_kept(*number, *timer));
        self.cleared = 0;
    }

    /// The earliest time at which something may fall due.
    pub(super) fn next_due_ms(&self) -> Option<i64> {
        self.heap.peek().map(|Reverse((due_ms, ..))| *due_ms)
    }

    /// Takes the earliest timer if it is due.
    pub(super) fn pop_due(&mut self, now_ms: i64) -> Option<(i64, TimerNo, Timer)> {
        if self.next_due_ms()? > now_ms {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    /// Says that a timer that came up had been cleared.
    pub(super) fn was_cleared(&mut self) {
        self.cleared = self.cleared.saturating_sub(1);
    }

    #[cfg(test)]
    pub(super) fn is_set(&self, number: TimerNo) -> bool {
        number != TimerNo::NONE && self.heap.iter().any(|Reverse((_, of, _))| *of == number)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }
}
