//! What becomes of an occurrence when those before it are not over.

use super::super::engine::Engine;
use super::super::output::AbortReason;
use super::super::task::{State, TaskIx};
use super::{QUEUED_MAX, ScheduleIx, ScheduleSkip};
use crate::record::{Condition, Edge, Outcome, Overlap, Parent, TaskNo};
use std::collections::BTreeSet;

/// Behind all of these: the newest has to end as `of_newest` says, the others in any way.
pub(super) fn edges_behind(tasks: &BTreeSet<TaskNo>, of_newest: Condition) -> Vec<Edge<'static>> {
    let edge = |task: &TaskNo| Edge { parent: Parent::Number(*task), condition: Condition::Completion };
    let mut edges: Vec<Edge<'static>> = tasks.iter().map(edge).collect();
    if let Some(newest) = edges.last_mut() {
        newest.condition = of_newest;
    }
    edges
}

impl Engine {
    /// What a new occurrence waits for, or why there is none.
    pub(super) fn overlap_of(&self, ix: ScheduleIx, overlap: Overlap) -> Result<Vec<Edge<'static>>, ScheduleSkip> {
        let Some(schedule) = self.schedules.get(ix) else { return Ok(Vec::new()) };
        let live = &schedule.live;
        match overlap {
            Overlap::Allow | Overlap::Replace => Ok(Vec::new()),
            Overlap::Skip if live.is_empty() => Ok(Vec::new()),
            Overlap::Skip => Err(ScheduleSkip::Overlap),
            Overlap::QueueOne => {
                let replaced = self.waiting_occurrences(ix);
                let mut edges = edges_behind(live, Condition::Completion);
                edges.retain(|edge| !replaced.iter().any(|(task, _)| edge.parent == Parent::Number(*task)));
                Ok(edges)
            }
            Overlap::Queue | Overlap::QueueOnSuccess if live.len() >= QUEUED_MAX => Err(ScheduleSkip::TooManyWait),
            Overlap::Queue => Ok(edges_behind(live, Condition::Completion)),
            Overlap::QueueOnSuccess => {
                let has_failed = schedule.last_outcome.is_some_and(|outcome| outcome != Outcome::Completed);
                if live.is_empty() && has_failed {
                    return Err(ScheduleSkip::AfterFailure);
                }
                Ok(edges_behind(live, Condition::Success))
            }
        }
    }

    /// Regular occurrences that wait for others and never ran.
    fn waiting_occurrences(&self, ix: ScheduleIx) -> Vec<(TaskNo, TaskIx)> {
        self.regular_occurrences(ix)
            .filter(|(_, task)| {
                let task = &self.tasks[*task];
                let is_unmade = u32::from(task.is_unmade());
                task.state == State::Blocked && task.attempts == 0 && task.unmet > is_unmade
            })
            .collect()
    }

    fn regular_occurrences(&self, ix: ScheduleIx) -> impl Iterator<Item = (TaskNo, TaskIx)> {
        let live = self.schedules.get(ix).into_iter().flat_map(|schedule| &schedule.live);
        let found = live.filter_map(|task| Some((*task, self.tasks.find(*task)?)));
        found.filter(|(_, task)| {
            let of = self.tasks[*task].more.as_ref().and_then(|more| more.occurrence.as_ref());
            of.is_some_and(|of| of.is_regular)
        })
    }

    /// Ends those whose place a newer one took. It follows from what is recorded, so that a crash between the newer one
    /// and the end of the older leaves nothing undone.
    pub(super) fn keep_overlap(&mut self, ix: ScheduleIx) {
        let schedule = self.schedules.get(ix).filter(|schedule| schedule.live.len() > 1);
        let Some(definition) = schedule.and_then(|schedule| schedule.definition.as_ref()) else { return };
        match definition.spec().overlap {
            Overlap::Skip | Overlap::Allow | Overlap::Queue | Overlap::QueueOnSuccess => {}
            Overlap::QueueOne => {
                let mut waiting = self.waiting_occurrences(ix);
                waiting.pop();
                for (_, task) in waiting {
                    self.end(task, Outcome::Skipped, b"a later occurrence of its schedule took its place");
                }
            }
            Overlap::Replace => {
                let mut regular: Vec<(TaskNo, TaskIx)> = self.regular_occurrences(ix).collect();
                regular.pop();
                let why = b"a later occurrence of its schedule took its place";
                for (_, task) in regular {
                    if self.tasks[task].stands_for_run() {
                        self.end_run(task, why);
                    } else {
                        self.abort(task, AbortReason::Cancelled);
                        self.end(task, Outcome::Cancelled, why);
                    }
                }
            }
        }
    }

    /// After a restart: what the records left undone.
    pub(in crate::scheduler) fn keep_overlaps(&mut self) {
        if self.schedules.are_held {
            return;
        }
        let all: Vec<ScheduleIx> = self.schedules.all().collect();
        all.into_iter().for_each(|ix| self.keep_overlap(ix));
    }
}
