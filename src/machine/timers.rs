//! What falls due when. One entry an operation at most; operation 0 is the run's own time limit.

use super::run::RunIx;
use crate::record::Seq;
use std::collections::{BTreeMap, BTreeSet};

/// Everything of a shard that waits for a time, in ms since 1970.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    due: BTreeSet<(i64, RunIx, Seq)>,
    /// Limits of attempts that run now. Not recorded: they end with the attempt.
    watches: BTreeMap<(RunIx, Seq), Watch>,
}

/// The limits of one running attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    pub(crate) lease: u32,
    /// The attempt's own limit, as a time.
    pub(crate) timeout_at_ms: Option<i64>,
    /// Longest silence.
    pub(crate) heartbeat_ms: Option<i64>,
    pub(crate) last_beat_ms: i64,
}

impl Watch {
    pub(crate) fn due_ms(&self) -> i64 {
        let silence_ms = self.heartbeat_ms.map(|limit_ms| self.last_beat_ms.saturating_add(limit_ms));
        match (self.timeout_at_ms, silence_ms) {
            (Some(timeout_ms), Some(silence_ms)) => timeout_ms.min(silence_ms),
            (Some(due_ms), None) | (None, Some(due_ms)) => due_ms,
            (None, None) => i64::MAX,
        }
    }

    /// Whether it is the attempt's own limit that is over.
    pub(crate) fn is_timeout(&self, now_ms: i64) -> bool {
        self.timeout_at_ms.is_some_and(|due_ms| due_ms <= now_ms)
    }
}

impl Timers {
    pub(crate) fn set(&mut self, due_ms: i64, run: RunIx, seq: Seq) {
        self.due.insert((due_ms, run, seq));
    }

    pub(crate) fn unset(&mut self, due_ms: i64, run: RunIx, seq: Seq) {
        self.due.remove(&(due_ms, run, seq));
    }

    pub(crate) fn is_set(&self, due_ms: i64, run: RunIx, seq: Seq) -> bool {
        self.due.contains(&(due_ms, run, seq))
    }

    /// The earliest time at which something falls due.
    pub(crate) fn next_due_ms(&self) -> Option<i64> {
        self.due.first().map(|(due_ms, ..)| *due_ms)
    }

    /// Takes the earliest entry if it is due.
    pub(crate) fn pop_due(&mut self, now_ms: i64) -> Option<(i64, RunIx, Seq)> {
        if self.next_due_ms()? > now_ms {
            return None;
        }
        self.due.pop_first()
    }

    /// Starts to watch an attempt, in place of an earlier one of the same step.
    pub(crate) fn watch(&mut self, run: RunIx, seq: Seq, watch: Watch) {
        self.unwatch(run, seq);
        self.watches.insert((run, seq), watch);
        self.set(watch.due_ms(), run, seq);
    }

    /// Ends the watch of a step, if there is one.
    pub(crate) fn unwatch(&mut self, run: RunIx, seq: Seq) {
        if self.watches.is_empty() {
            return;
        }
        if let Some(watch) = self.watches.remove(&(run, seq)) {
            self.unset(watch.due_ms(), run, seq);
        }
    }

    pub(crate) fn watched(&self, run: RunIx, seq: Seq) -> Option<Watch> {
        self.watches.get(&(run, seq)).copied()
    }

    /// Notes a sign of life.
    pub(crate) fn beat(&mut self, run: RunIx, seq: Seq, now_ms: i64) {
        if let Some(watch) = self.watched(run, seq) {
            self.watch(run, seq, Watch { last_beat_ms: now_ms, ..watch });
        }
    }
}
