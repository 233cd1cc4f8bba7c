//! Runs that are made because a task exists: a schedule came to a time. The task stands for the run from the beginning, and
//! waits until the run's shard says that it has made it. From then on it is like any other that stands for a run.
//!
//! The shard decides whether the id is free. It does not know how messages travel.

use super::engine::Engine;
use super::orders::OrderAnswer;
use super::output::Output;
use super::task::{State, Task, TaskIx};
use crate::record::{Caller, Dedupe, Launch, Origin, Outcome, TaskNo, TaskRecord, TaskSpec, encode_order};

/// A run that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "as in Launch")]
pub struct LaunchOrder {
    /// It stands for the run.
    pub task: TaskNo,
    pub id: Box<str>,
    pub kind: Box<str>,
    pub version: u32,
    pub timeout_ms: Option<i64>,
    pub key_root: [u8; 16],
    pub input: Box<[u8]>,
    /// How the task is described, without its input: see [`encode_order`].
    pub order: Box<[u8]>,
}

/// [`Launch`] that owns its text.
#[derive(Debug)]
pub(super) struct OwnLaunch {
    pub(super) id: Box<str>,
    version: u32,
    timeout_ms: Option<i64>,
    key_root: [u8; 16],
    /// Whether its run, which has started, was asked to end.
    pub(super) is_asked: bool,
}

impl OwnLaunch {
    pub(super) fn new(launch: Launch<'_>) -> OwnLaunch {
        let Launch { id, version, timeout_ms, key_root } = launch;
        OwnLaunch { id: id.into(), version, timeout_ms, key_root, is_asked: false }
    }

    pub(super) fn as_launch(&self) -> Launch<'_> {
        Launch { id: &self.id, version: self.version, timeout_ms: self.timeout_ms, key_root: self.key_root }
    }
}

impl Task {
    /// The run that it is or was to stand for.
    pub(super) fn launch(&self) -> Option<&OwnLaunch> {
        self.more.as_ref()?.launch.as_ref()
    }

    /// Whether it stands for a run, be that made or not.
    pub(super) fn stands_for_run(&self) -> bool {
        self.run().is_some() || self.launch().is_some()
    }

    /// Whether its run is yet to be made.
    pub(super) fn is_unmade(&self) -> bool {
        self.launch().is_some() && self.run().is_none()
    }
}

impl Engine {
    /// A task exists that is to stand for a run: it waits for that. Also told while records are taken back.
    pub(super) fn ask_for_run(&mut self, ix: TaskIx, spec: &TaskSpec<'_>) {
        let Some(launch) = spec.launch else { return };
        self.tasks[ix].unmet += 1;
        let mut order = Vec::new();
        let bare = TaskSpec { payload: b"", after: Vec::new(), launch: None, ..spec.clone() };
        encode_order(&mut order, Dedupe::default(), &bare);
        self.outputs.push_back(Output::Launch(Box::new(LaunchOrder {
            task: self.tasks[ix].number,
            id: launch.id.into(),
            kind: spec.kind.into(),
            version: launch.version,
            timeout_ms: launch.timeout_ms,
            key_root: launch.key_root,
            input: spec.payload.into(),
            order: order.into(),
        })));
    }

    /// The run exists that a task asked for.
    pub fn handle_run_made(&mut self, now_ms: i64, task: TaskNo, caller: Caller, origin: Origin) {
        self.begin(now_ms);
        let time_ms = self.now_ms;
        self.record(&TaskRecord::RunMade { task, time_ms, caller, origin });
        self.apply_run_made(task, time_ms, caller, origin);
        self.settle();
    }

    /// The run that a task asked for cannot be.
    pub fn handle_run_refused(&mut self, now_ms: i64, task: TaskNo, why: &[u8], origin: Origin) {
        self.begin(now_ms);
        let waiting = self.tasks.find(task).filter(|ix| !self.tasks[*ix].is_ended() && self.tasks[*ix].is_unmade());
        if let Some(ix) = waiting {
            self.end(ix, Outcome::Skipped, why);
            self.occurrence_refused(ix);
        }
        // Should a crash come in between, the message comes again, and finds that it is over.
        self.take_message(origin);
        self.settle();
    }

    pub(super) fn apply_run_made(&mut self, task: TaskNo, time_ms: i64, caller: Caller, origin: Origin) {
        self.apply_taken(origin);
        let Some(ix) = self.tasks.find(task) else {
            // It ended long ago: the run is told the same as one that came too late.
            return self
                .answer(caller, OrderAnswer::Refused(b"CANCELLED\nit ended before its run was made\n\n"[..].into()));
        };
        self.touch(ix);
        let has_ended = self.tasks[ix].is_ended();
        let of = &mut self.tasks[ix];
        of.payload = Box::default();
        of.more_mut().run = Some(caller);
        if has_ended {
            return self.answer_end(ix, caller);
        }
        self.watch_for(ix, caller, true);
        self.one_met(ix, time_ms);
    }

    /// Asks the run of a task to end: one that has started ends in its shard, another one with its task.
    pub(super) fn end_run(&mut self, ix: TaskIx, why: &[u8]) {
        if !matches!(self.tasks[ix].state, State::Running { .. }) {
            return self.end(ix, Outcome::Cancelled, why);
        }
        if self.tasks[ix].launch().is_some_and(|launch| !launch.is_asked) {
            self.record(&TaskRecord::RunAsked { task: self.tasks[ix].number, time_ms: self.now_ms });
            self.apply_run_asked(ix);
        }
    }

    pub(super) fn apply_run_asked(&mut self, ix: TaskIx) {
        self.touch(ix);
        let Some(more) = self.tasks[ix].more.as_mut() else { return };
        if let Some((launch, run)) = more.launch.as_mut().zip(more.run) {
            launch.is_asked = true;
            self.outputs.push_back(Output::EndRun { id: launch.id.clone(), run });
        }
    }
}
