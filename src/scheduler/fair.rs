//! Fair shares between the tenants of a queue, by start-time fair queueing.
//!
//! Each class has a virtual time. A task's tag is the virtual time, or where its tenant's last task ended if that is
//! later; its end is the tag and a step that is shorter for heavier tenants. Tasks go in the order of tags, and the
//! virtual time follows the tag of whoever went. A tenant that was idle has saved nothing up.

use super::task::TaskIx;
use crate::record::TaskNo;
use std::collections::{BTreeMap, BTreeSet};

/// A tenant of weight 1 advances by so much a task.
const STEP: u64 = 1_000_000;

/// Tenants are forgotten, once the virtual time has passed them, when more than so many are known.
const TENANTS_MAX: usize = 4_096;

/// The tasks of one class of a fair queue.
#[derive(Debug, Default)]
pub(super) struct FairLine {
    tasks: BTreeSet<(u64, TaskNo, TaskIx)>,
    virtual_time: u64,
    finished: BTreeMap<Box<str>, u64>,
}

impl FairLine {
    /// A tag for a task of a tenant; `weight_percent` of 100 is an ordinary one.
    pub(super) fn tag(&mut self, tenant: &str, weight_percent: u32) -> u64 {
        let step = (STEP * 100 / u64::from(weight_percent.max(1))).max(1);
        let tag = self.finished.get(tenant).copied().unwrap_or(0).max(self.virtual_time);
        match self.finished.get_mut(tenant) {
            Some(finish) => *finish = tag.saturating_add(step),
            None => {
                if self.finished.len() >= TENANTS_MAX {
                    let virtual_time = self.virtual_time;
                    self.finished.retain(|_, finish| *finish > virtual_time);
                }
                self.finished.insert(tenant.into(), tag.saturating_add(step));
            }
        }
        tag
    }

    pub(super) fn insert(&mut self, tag: u64, number: TaskNo, task: TaskIx) {
        self.tasks.insert((tag, number, task));
    }

    pub(super) fn remove(&mut self, tag: u64, number: TaskNo, task: TaskIx) {
        let was_there = self.tasks.remove(&(tag, number, task));
        debug_assert!(was_there, "task {number} is in the fair line");
    }

    /// Says that a task with this tag was dispatched.
    pub(super) fn dispatched(&mut self, tag: u64) {
        self.virtual_time = self.virtual_time.max(tag);
    }

    pub(super) fn first(&self) -> Option<TaskIx> {
        self.tasks.first().map(|(_, _, task)| *task)
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// How many go before a task.
    pub(super) fn before(&self, tag: u64, number: TaskNo) -> usize {
        self.tasks.range(..(tag, number, TaskIx(0))).count()
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = TaskIx> {
        self.tasks.iter().map(|(_, _, task)| *task)
    }
}
