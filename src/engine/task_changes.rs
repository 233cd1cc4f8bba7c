//! The same done to many tasks, slice by slice.

use super::error::EngineError;
use super::events::fields;
use super::foreign::ForeignEngine;
use super::tasks::{TaskFilter, cut};
use crate::record::{Class, Outcome, TaskNo};
use crate::runtime::{TaskCell, TaskEvent, Token};
use crate::scheduler::Status;

/// So many tasks are changed at most before the scheduler's lock is released.
const SLICE_CHANGED_MAX: usize = 1_000;

/// And so many looked at.
const SLICE_SEEN_MAX: usize = 20_000;

/// What is done to many tasks.
#[derive(Clone, Copy, Debug)]
pub enum TaskChange<'a> {
    /// Those that have not ended are cancelled, for this reason.
    Cancel(&'a str),
    /// Those that failed or are dead get their attempts back.
    Retry,
    /// Those that have not ended get this class.
    Reprioritize(Class),
}

impl TaskChange<'_> {
    fn is_meant_for(self, status: Status) -> bool {
        match self {
            TaskChange::Cancel(_) | TaskChange::Reprioritize(_) => !matches!(status, Status::Ended(_)),
            TaskChange::Retry => matches!(status, Status::Ended(Outcome::Failed | Outcome::Dead)),
        }
    }

    fn apply(self, cell: &mut TaskCell, now_ms: i64, task: TaskNo) -> bool {
        match self {
            TaskChange::Cancel(reason) => cell.engine.handle_cancel(now_ms, task, cut(reason).as_bytes()),
            TaskChange::Retry => cell.engine.handle_revive(now_ms, task).unwrap_or(false),
            TaskChange::Reprioritize(class) => cell.engine.handle_reprioritize(now_ms, task, class),
        }
    }
}

impl ForeignEngine {
    /// Does the same to tasks that the filter admits, by number: those with greater numbers than `after`, up to `until` or,
    /// if that is 0, to the newest one, and so many at most as keep the lock for a moment only. `token` gets how many it was
    /// done to, the number to go on after (0: there are no more) and up to which, once that is durable.
    pub fn change_tasks(
        &mut self,
        token: Token,
        filter: &TaskFilter,
        change: TaskChange<'_>,
        (after, until): (u64, u64),
    ) -> Result<(), EngineError> {
        self.check_open()?;
        self.group.admits()?;
        self.group.with_tasks(|cell, work| {
            let until = if until == 0 { cell.engine.newest_task().0 } else { until };
            let (mut count, mut seen, mut last) = (0, 0, after);
            let mut meant = Vec::new();
            for view in cell.engine.tasks_after(TaskNo(after)).take_while(|view| view.task.0 <= until) {
                if seen == SLICE_SEEN_MAX || meant.len() == SLICE_CHANGED_MAX {
                    break;
                }
                seen += 1;
                last = view.task.0;
                if change.is_meant_for(view.status) && filter.admits(&view) {
                    meant.push(view.task);
                }
            }
            let is_all = cell.engine.tasks_after(TaskNo(last)).next().is_none_or(|view| view.task.0 > until);
            if matches!(change, TaskChange::Cancel(_)) {
                // Those that run come last: the slots that they leave are not for others that are cancelled next.
                meant.reverse();
            }
            for task in meant {
                count += usize::from(change.apply(cell, work.now_ms, task));
            }
            let next = if is_all { 0 } else { last };
            let reply = fields(&[&count.to_string(), &next.to_string(), &until.to_string()]);
            cell.tell(work, token, TaskEvent::Reply(token, reply));
        });
        Ok(())
    }
}
