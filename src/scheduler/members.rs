//! Threads that run the functions of tasks: what each has code for, and the labels it carries. In memory only: after a
//! restart they come anew.

use super::engine::Engine;
use super::output::AbortReason;
use super::task::{QueueIx, TaskIx};
use super::tickets::NOBODY;
use crate::record::AttemptEnd;
use std::collections::BTreeSet;

/// A thread that runs functions, by the number that whoever drives the engine gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberNo(pub u8);

/// What a thread runs.
#[derive(Debug, Default)]
pub struct Member {
    /// Definitions that it has code for.
    pub kinds: BTreeSet<Box<str>>,
    /// What it carries.
    pub labels: Vec<(Box<str>, Box<str>)>,
}

/// The threads that are there. `None` of them by number was ever told of: whoever drives the engine runs everything.
#[derive(Debug, Default)]
pub(super) struct Members {
    list: Vec<Option<(Member, u32)>>,
}

impl Members {
    /// Whether code is somebody's at all; else the one that drives the engine has it.
    pub(super) fn is_open(&self) -> bool {
        self.list.is_empty()
    }

    fn present(&self) -> impl Iterator<Item = (MemberNo, &Member, u32)> {
        let numbered = self.list.iter().enumerate();
        numbered.filter_map(|(no, of)| of.as_ref().map(|(member, running)| (MemberNo(no as u8), member, *running)))
    }

    fn knows(&self, kind: &str) -> bool {
        self.present().any(|(_, member, _)| member.kinds.contains(kind))
    }

    /// Who runs a task: of those that have its code and carry its labels the one with the fewest labels, so that rare
    /// ones are kept for those who need them; then the one that runs the fewest attempts.
    fn choose(&self, kind: &str, needed: &[(Box<str>, Box<str>)]) -> Option<MemberNo> {
        let mut best: Option<(usize, u32, MemberNo)> = None;
        for (no, member, running) in self.present() {
            let rank = (member.labels.len(), running, no);
            let is_better = best.is_none_or(|than| rank < than);
            if is_better && member.carries(needed) && member.kinds.contains(kind) {
                best = Some(rank);
            }
        }
        best.map(|(.., no)| no)
    }

    pub(super) fn begin(&mut self, no: MemberNo) {
        if let Some(Some((_, running))) = self.list.get_mut(usize::from(no.0)) {
            *running += 1;
        }
    }

    pub(super) fn end(&mut self, no: MemberNo) {
        if let Some(Some((_, running))) = self.list.get_mut(usize::from(no.0)) {
            *running = running.saturating_sub(1);
        }
    }
}

impl Member {
    fn carries(&self, needed: &[(Box<str>, Box<str>)]) -> bool {
        needed.iter().all(|label| self.labels.contains(label))
    }
}

impl Engine {
    /// A thread is there, with this code and these labels, or it has others now. Tasks that waited for such a one compete
    /// again.
    pub fn handle_member(&mut self, now_ms: i64, no: MemberNo, member: Member) {
        self.begin(now_ms);
        self.set_member(no, member);
        for at in 0..self.queues.len() {
            let of = &self.queues[at];
            let waiting: Vec<TaskIx> = of.label_waits.values().flatten().map(|(_, ix)| *ix).collect();
            for ix in waiting {
                self.leave_line(ix);
                self.enter_line(ix);
            }
            self.mark_dirty(QueueIx(at as u16));
        }
        self.settle();
    }

    pub(super) fn set_member(&mut self, no: MemberNo, member: Member) {
        let at = usize::from(no.0);
        while self.members.list.len() <= at {
            self.members.list.push(None);
        }
        let running = self.members.list[at].as_ref().map_or(0, |(_, running)| *running);
        self.members.list[at] = Some((member, running));
    }

    /// A thread is gone, or is treated as if it were. Its attempts are lost attempts, and their tasks go on elsewhere at
    /// once; while the engine shuts down they have cost nothing. Of one that is not there it is nothing.
    pub fn handle_member_gone(&mut self, now_ms: i64, no: MemberNo) {
        self.begin(now_ms);
        let was_there = self.members.list.get_mut(usize::from(no.0)).is_some_and(|of| of.take().is_some());
        if was_there {
            for ix in self.attempts.of_member(no) {
                if self.is_draining {
                    self.abort(ix, AbortReason::Drained);
                    self.retry(ix, AttemptEnd::Drained, self.now_ms, true, b"");
                } else {
                    self.lost(ix);
                }
            }
        }
        self.settle();
    }

    /// Whether any thread that is there has the code of a task.
    pub(super) fn has_code_for(&self, ix: TaskIx) -> bool {
        self.tasks[ix].run().is_some() || self.members.is_open() || self.members.knows(self.kind_of(ix))
    }

    /// The slot's group and the thread for a task; `None`: there is nobody for it now.
    pub(super) fn seat(&self, ix: TaskIx) -> Option<(usize, MemberNo)> {
        let task = &self.tasks[ix];
        let workers = &self.queue(task.queue).workers;
        if task.run().is_some() {
            return workers.choose(&[]).map(|group| (group, NOBODY));
        }
        if self.members.is_open() {
            return workers.choose(task.labels()).map(|group| (group, MemberNo(0)));
        }
        let member = self.members.choose(self.kind_of(ix), task.labels())?;
        workers.choose(&[]).map(|group| (group, member))
    }

    /// Whether any thread, busy or not, could run a task.
    pub(super) fn anybody_for(&self, ix: TaskIx) -> bool {
        let task = &self.tasks[ix];
        if self.members.is_open() || task.run().is_some() {
            return self.queue(task.queue).workers.anybody_for(task.labels());
        }
        // Code that is nowhere is told of otherwise.
        !self.members.knows(self.kind_of(ix)) || self.members.choose(self.kind_of(ix), task.labels()).is_some()
    }

    fn kind_of(&self, ix: TaskIx) -> &str {
        let task = &self.tasks[ix];
        &self.queue(task.queue).kinds[usize::from(task.kind.0)].name
    }
}
