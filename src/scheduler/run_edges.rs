//! Tasks that wait for runs of workflows. The run's shard is asked to say how the run ends, by a message that follows from
//! the record of the task; its answer, or that there is no such run, is recorded here once.

use super::engine::Engine;
use super::output::Output;
use super::task::{State, TaskIx};
use crate::record::{Condition, Origin, RunNo, Status, TaskNo, TaskRecord};

/// A run that a task waits or waited for.
#[derive(Debug)]
pub(super) struct RunEdge {
    pub(super) id: Box<str>,
    pub(super) run: Option<RunNo>,
    pub(super) condition: Condition,
    pub(super) end: RunEnd,
}

/// What is known of the end of a run.
#[derive(Debug)]
pub(super) enum RunEnd {
    /// It is waited for.
    Awaited,
    /// How it ended, and what with.
    Is(Status, Box<[u8]>),
    /// The task lives again, and waits for nobody from before.
    Past,
}

impl RunEdge {
    pub(super) fn is_awaited(&self) -> bool {
        matches!(self.end, RunEnd::Awaited)
    }
}

/// Whether an edge with this condition holds after a run ended so.
fn holds(condition: Condition, status: Status) -> bool {
    match condition {
        Condition::Success => status == Status::Completed,
        Condition::Failure => matches!(status, Status::Failed | Status::TimedOut),
        Condition::Completion => !matches!(status, Status::NotFound | Status::Refused),
    }
}

impl Engine {
    /// Makes a task wait for a run.
    pub(super) fn await_run(&mut self, ix: TaskIx, id: &str, run: Option<RunNo>, condition: Condition) {
        let task = self.tasks[ix].number;
        let runs = &mut self.tasks[ix].more_mut().runs;
        runs.push(RunEdge { id: id.into(), run, condition, end: RunEnd::Awaited });
        let edge = runs.len() as u32;
        self.tasks[ix].unmet += 1;
        self.outputs.push_back(Output::WatchRun { task, edge, id: id.into(), run });
    }

    /// A run has ended that a task waits for, as its n-th of those, from 1; or there is none.
    pub fn handle_awaited_run(
        &mut self,
        now_ms: i64,
        task: TaskNo,
        edge: u32,
        status: Status,
        payload: &[u8],
        origin: Origin,
    ) {
        self.begin(now_ms);
        if self.waiting_edge(task, edge).is_some() {
            let time_ms = self.now_ms;
            self.record(&TaskRecord::AwaitedRun { task, time_ms, edge, status, payload, origin });
            self.apply_awaited_run(task, time_ms, edge, status, payload, origin);
        } else {
            self.take_message(origin);
        }
        self.settle();
    }

    fn waiting_edge(&self, task: TaskNo, edge: u32) -> Option<TaskIx> {
        let ix = self.tasks.find(task).filter(|ix| self.tasks[*ix].state == State::Blocked)?;
        let runs = &self.tasks[ix].more.as_ref()?.runs;
        runs.get((edge as usize).checked_sub(1)?).filter(|edge| edge.is_awaited()).map(|_| ix)
    }

    pub(super) fn apply_awaited_run(
        &mut self,
        task: TaskNo,
        time_ms: i64,
        edge: u32,
        status: Status,
        payload: &[u8],
        origin: Origin,
    ) {
        self.apply_taken(origin);
        let Some(ix) = self.waiting_edge(task, edge) else { return };
        self.touch(ix);
        let revivals = self.tasks[ix].revivals;
        let of = &mut self.tasks[ix].more_mut().runs[edge as usize - 1];
        of.end = RunEnd::Is(status, payload.into());
        if holds(of.condition, status) {
            return self.one_met(ix, time_ms);
        }
        let reason = match status {
            Status::NotFound => format!("there is no workflow \"{}\", which it waited for", of.id),
            _ => format!("workflow \"{}\", which it waited for, ended otherwise", of.id),
        };
        self.doomed.push_back((ix, task, revivals, reason));
    }
}
