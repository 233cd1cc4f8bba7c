//! The open operations of a run, by their number.

use crate::record::{Lsn, Seq};
use std::collections::VecDeque;

/// What a run waits for at one place of its code.
#[derive(Debug)]
pub(crate) enum Op {
    Step(StepOp),
    Timer {
        due_ms: i64,
    },
    Wait {
        name: Box<str>,
        due_ms: Option<i64>,
    },
    Condition {
        due_ms: Option<i64>,
    },
    /// A child, or another workflow whose end is awaited.
    Child,
}

impl Op {
    /// When a timer has to fire for it, attempts aside.
    pub(crate) fn due_ms(&self) -> Option<i64> {
        match self {
            Op::Timer { due_ms } => Some(*due_ms),
            Op::Wait { due_ms, .. } | Op::Condition { due_ms } => *due_ms,
            Op::Step(_) | Op::Child => None,
        }
    }
}

/// A step without a result.
#[derive(Debug)]
pub(crate) struct StepOp {
    pub(crate) name: Box<str>,
    /// The attempt that runs or comes next, from 1 since the step was asked for or last resumed.
    pub(crate) attempt: u32,
    /// Leases that were given out before the step was last resumed.
    pub(crate) past_leases: u32,
    /// The body must not run before this is durable.
    pub(crate) gate: Lsn,
    pub(crate) phase: StepPhase,
    pub(crate) is_read_only: bool,
    pub(crate) is_at_most_once: bool,
    /// The start of the present attempt is recorded.
    pub(crate) is_started: bool,
    /// It runs at most once, a start of it is recorded, and no outcome: it must not run again.
    pub(crate) is_interrupted: bool,
    /// Its record may be missing although its body ran: the process that ran it is gone.
    pub(crate) is_recovered: bool,
}

impl StepOp {
    /// What the present attempt, or the next one, is completed under. It follows from the records of the step alone, so
    /// a replay comes to the same number; no two attempts of a step have the same one.
    pub(crate) fn lease(&self) -> u32 {
        self.past_leases.saturating_add(self.attempt)
    }
}

/// Where a step without a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepPhase {
    /// Asked for in a replay that is still going on, or just resumed: its attempt is about to be begun.
    Replayed,
    /// The host has it: it waits for its gate or its body runs.
    Running,
    /// Waits for a time in ms since 1970, then runs again.
    Backoff(i64),
    /// Waits for somebody to resume the run.
    Paused,
    /// Its result is recorded and not delivered yet.
    Settled,
}

/// Open operations in the order of their numbers. Removal leaves a hole that is dropped once it is at the front, so
/// that thousands of parallel steps cost a binary search each.
#[derive(Debug, Default)]
pub(crate) struct OpenOps {
    slots: VecDeque<(u32, Option<Op>)>,
    open: u32,
}

impl OpenOps {
    /// Adds an operation. Numbers only rise.
    pub(crate) fn insert(&mut self, seq: Seq, op: Op) {
        debug_assert!(self.slots.back().is_none_or(|(last, _)| *last < seq.0));
        if self.slots.capacity() == 0 {
            self.slots.reserve_exact(1);
        }
        self.slots.push_back((seq.0, Some(op)));
        self.open += 1;
    }

    pub(crate) fn get(&self, seq: Seq) -> Option<&Op> {
        self.index(seq).and_then(|index| self.slots[index].1.as_ref())
    }

    pub(crate) fn get_mut(&mut self, seq: Seq) -> Option<&mut Op> {
        self.index(seq).and_then(|index| self.slots[index].1.as_mut())
    }

    pub(crate) fn step_mut(&mut self, seq: Seq) -> Option<&mut StepOp> {
        match self.get_mut(seq) {
            Some(Op::Step(step)) => Some(step),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, seq: Seq) -> Option<Op> {
        let index = self.index(seq)?;
        let op = self.slots[index].1.take()?;
        self.open -= 1;
        while self.slots.front().is_some_and(|(_, op)| op.is_none()) {
            self.slots.pop_front();
        }
        while self.slots.back().is_some_and(|(_, op)| op.is_none()) {
            self.slots.pop_back();
        }
        Some(op)
    }

    /// The oldest wait for a signal of this name.
    pub(crate) fn first_wait(&self, name: &str) -> Option<Seq> {
        self.iter().find_map(|(seq, op)| match op {
            Op::Wait { name: waited, .. } if **waited == *name => Some(seq),
            _ => None,
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Seq, &Op)> {
        self.slots.iter().filter_map(|(seq, op)| op.as_ref().map(|op| (Seq(*seq), op)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Seq, &mut Op)> {
        self.slots.iter_mut().filter_map(|(seq, op)| op.as_mut().map(|op| (Seq(*seq), op)))
    }

    /// Steps that waited for somebody to resume the run are as good as just asked for. Returns whether there were any.
    pub(crate) fn renew_paused(&mut self) {
        for (_, op) in self.iter_mut() {
            if let Op::Step(step) = op
                && step.phase == StepPhase::Paused
            {
                if !cfg!(fusee_mutant = "late_completion_accepted") {
                    // `attempt` is the next one, which was not begun.
                    step.past_leases = step.lease().saturating_sub(1);
                }
                step.attempt = 1;
                step.phase = StepPhase::Replayed;
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open == 0
    }

    #[inline]
    fn index(&self, seq: Seq) -> Option<usize> {
        // Nearly always one of the two ends.
        match self.slots.front() {
            Some((first, _)) if *first == seq.0 => return Some(0),
            None => return None,
            Some(_) => {}
        }
        self.slots.binary_search_by_key(&seq.0, |(seq, _)| *seq).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removal_in_any_order_keeps_the_rest_findable() {
        let mut ops = OpenOps::default();
        for seq in 1..=6 {
            ops.insert(Seq(seq), Op::Child);
        }
        for seq in [3, 1, 6, 2] {
            assert!(ops.remove(Seq(seq)).is_some());
            assert!(ops.remove(Seq(seq)).is_none());
        }
        assert_eq!(ops.iter().map(|(seq, _)| seq.0).collect::<Vec<_>>(), [4, 5]);
        ops.insert(Seq(7), Op::Child);
        assert!(ops.get(Seq(7)).is_some() && ops.get(Seq(6)).is_none());
        for seq in [4, 5, 7] {
            ops.remove(Seq(seq));
        }
        assert!(ops.is_empty());
    }
}
