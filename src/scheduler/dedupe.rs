//! What a submission under a key does when the key belongs to a task already.

use super::engine::Engine;
use super::output::{Answer, Refusal};
use super::task::{State, TaskIx};
use crate::record::{Change, Condition, DedupeMode, DedupeScope, Edge, Parent, TaskRecord, TaskSpec};
use std::borrow::Cow;

pub(super) use crate::record::Dedupe;

/// What is to be done with a submission.
#[allow(clippy::large_enum_variant, reason = "it lives for one call, on the stack")]
pub(super) enum Decision<'s, 'a> {
    Done(Answer),
    Accept(Cow<'s, TaskSpec<'a>>),
}

impl Engine {
    /// Decides by the key. May change the task that has it.
    pub(super) fn by_key<'s, 'a>(
        &mut self,
        spec: &'s TaskSpec<'a>,
        dedupe: Dedupe,
    ) -> Result<Decision<'s, 'a>, Refusal> {
        let Some(key) = spec.key else { return Ok(Decision::Accept(Cow::Borrowed(spec))) };
        let Some(ix) = self.keys.get(key).copied().filter(|ix| self.keeps_key(*ix, dedupe)) else {
            return Ok(Decision::Accept(self.first_of_its_key(spec, dedupe.mode)));
        };
        let number = self.tasks[ix].number;
        let is_changeable = self.tasks[ix].is_pending() && self.tasks[ix].attempts == 0;
        let answer = match dedupe.mode {
            DedupeMode::Error => return Err(Refusal::KeyInUse { key: key.into(), task: number }),
            DedupeMode::Rerun if self.tasks[ix].is_running() || self.tasks[ix].state == State::Retrying => {
                let mut spec = spec.clone();
                spec.after.push(Edge { parent: Parent::Number(number), condition: Condition::Completion });
                return Ok(Decision::Accept(Cow::Owned(spec)));
            }
            DedupeMode::Replace | DedupeMode::Rerun if is_changeable => {
                self.replace(ix, spec.payload, spec.not_before_ms);
                Answer::Changed(number)
            }
            DedupeMode::Debounce { window_ms, max_wait_ms } if is_changeable => {
                let time_ms = self.debounced_ms(window_ms, max_wait_ms, self.tasks[ix].submitted_ms);
                self.replace(ix, spec.payload, Some(time_ms.max(spec.not_before_ms.unwrap_or(time_ms))));
                Answer::Changed(number)
            }
            DedupeMode::Skip
            | DedupeMode::Replace
            | DedupeMode::Debounce { .. }
            | DedupeMode::Throttle { .. }
            | DedupeMode::Rerun => Answer::Existing(number),
        };
        Ok(Decision::Done(answer))
    }

    fn keeps_key(&self, ix: TaskIx, dedupe: Dedupe) -> bool {
        let task = &self.tasks[ix];
        if let DedupeMode::Throttle { window_ms } = dedupe.mode {
            return self.now_ms < task.submitted_ms.saturating_add(i64::from(window_ms));
        }
        match dedupe.scope {
            DedupeScope::Pending => task.is_pending(),
            DedupeScope::Live => !task.is_ended(),
            DedupeScope::Retained => match task.state {
                State::Ended { time_ms, .. } => self.now_ms.saturating_sub(time_ms) <= self.config.retained_ms,
                _ => true,
            },
        }
    }

    fn first_of_its_key<'s, 'a>(&self, spec: &'s TaskSpec<'a>, mode: DedupeMode) -> Cow<'s, TaskSpec<'a>> {
        let DedupeMode::Debounce { window_ms, max_wait_ms } = mode else { return Cow::Borrowed(spec) };
        let mut spec = spec.clone();
        let time_ms = self.debounced_ms(window_ms, max_wait_ms, self.now_ms);
        spec.not_before_ms = Some(time_ms.max(spec.not_before_ms.unwrap_or(time_ms)));
        Cow::Owned(spec)
    }

    fn debounced_ms(&self, window_ms: u32, max_wait_ms: Option<u32>, first_ms: i64) -> i64 {
        let quiet_ms = self.now_ms.saturating_add(i64::from(window_ms));
        max_wait_ms.map_or(quiet_ms, |max_ms| quiet_ms.min(first_ms.saturating_add(i64::from(max_ms))))
    }

    fn replace(&mut self, ix: TaskIx, payload: &[u8], not_before_ms: Option<i64>) {
        let change = Change::Replaced { payload, not_before_ms };
        self.record(&TaskRecord::Changed { task: self.tasks[ix].number, time_ms: self.now_ms, change });
        self.apply_changed(ix, &change);
    }
}
