//! What a checkpoint takes: the tasks that changed since the one before, each once, as they are at one moment.
//!
//! A checkpoint begins with a cut ([`Engine::begin_checkpoint`]): all that the records up to then say is in it, and
//! nothing behind them. What is no task is written at the cut. Tasks are written later, in as many goes as whoever holds
//! the lock likes ([`Engine::save_tasks`]); one that changes before it was its turn is written just before it changes.
//!
//! A change costs a look at a mark, and the first one after a cut 8 bytes. A cut costs what is no task, and a look at each
//! task that changed. Before the first checkpoint nothing is noted, so that an engine without a store pays nothing.

use super::engine::Engine;
use super::task::{Mark, TaskIx};
use crate::record::TaskNo;

/// What a task counts as besides its bytes: it was looked at.
const NUMBER_BYTES: usize = 16;

/// What belongs to the checkpoint that is being made, and what to the next one.
#[derive(Debug, Default)]
pub(super) struct Saving {
    /// Whether there is a checkpoint that changes are to be told apart from.
    is_on: bool,
    /// Changed since the last cut.
    touched: Vec<TaskNo>,
    /// Of the checkpoint that is being made; from `next` on they are not written yet.
    cut: Vec<TaskNo>,
    next: usize,
    /// Forgotten before the cut.
    gone: Vec<TaskNo>,
    /// Those of the cut that changed since, as they were.
    early: Vec<(TaskNo, Box<[u8]>)>,
}

impl Saving {
    /// All that is known comes from a checkpoint.
    pub(super) fn resume(&mut self) {
        self.is_on = true;
    }
}

impl Engine {
    /// A task is about to change what is stored of it, or to be forgotten.
    pub(super) fn touch(&mut self, ix: TaskIx) {
        if !self.saving.is_on {
            return;
        }
        let task = &mut self.tasks[ix];
        let number = task.number;
        match std::mem::replace(&mut task.mark, Mark::Touched) {
            Mark::Touched => return,
            Mark::Stored => {}
            Mark::InCut => {
                let mut bytes = Vec::new();
                self.encode_task(ix, &mut bytes);
                self.saving.early.push((number, bytes.into()));
            }
        }
        self.saving.touched.push(number);
    }

    /// Begins a checkpoint, with the first record that is not in it being the next one. Returns all that is no task, in
    /// parts that take the place of all parts before; the tasks follow by [`Engine::save_tasks`]. One that was begun before
    /// and not [kept](Engine::keep_checkpoint) is given up. Call it between two calls, when all records have been polled.
    pub fn begin_checkpoint(&mut self) -> Vec<Vec<u8>> {
        if !self.saving.is_on {
            self.saving.is_on = true;
            self.saving.touched = self.tasks.iter_after(TaskNo(0)).map(|(_, task)| task.number).collect();
        }
        self.give_up_checkpoint();
        for number in std::mem::take(&mut self.saving.touched) {
            match self.tasks.find(number) {
                Some(ix) => {
                    self.tasks[ix].mark = Mark::InCut;
                    self.saving.cut.push(number);
                }
                None => self.saving.gone.push(number),
            }
        }
        self.encode_head()
    }

    /// Writes tasks of the checkpoint until so many bytes have been written: number and bytes, or none of a task that was
    /// forgotten. `false`: there are no more.
    pub fn save_tasks(&mut self, bytes_max: usize, put: &mut dyn FnMut(TaskNo, Option<&[u8]>)) -> bool {
        let mut written = 0;
        let mut bytes = Vec::new();
        while written < bytes_max {
            if let Some((number, early)) = self.saving.early.pop() {
                written += early.len();
                put(number, Some(&early));
                continue;
            }
            written += NUMBER_BYTES;
            let Some(number) = self.saving.cut.get(self.saving.next).copied() else {
                let Some(number) = self.saving.gone.get(self.saving.next - self.saving.cut.len()) else { return false };
                put(*number, None);
                self.saving.next += 1;
                continue;
            };
            self.saving.next += 1;
            // Else it has changed since, and was written before that.
            if let Some(ix) = self.tasks.find(number).filter(|ix| self.tasks[*ix].mark == Mark::InCut) {
                bytes.clear();
                self.encode_task(ix, &mut bytes);
                self.tasks[ix].mark = Mark::Stored;
                written += bytes.len();
                put(number, Some(&bytes));
            }
        }
        true
    }

    /// The checkpoint is stored, all of it.
    pub fn keep_checkpoint(&mut self) {
        debug_assert!(self.saving.early.is_empty(), "all tasks of a checkpoint are written before it is kept");
        (self.saving.cut, self.saving.gone, self.saving.next) = (Vec::new(), Vec::new(), 0);
    }

    /// The checkpoint was not stored: what was in it belongs to the next one.
    pub fn give_up_checkpoint(&mut self) {
        let numbers = [std::mem::take(&mut self.saving.cut), std::mem::take(&mut self.saving.gone)].concat();
        for number in numbers {
            match self.tasks.find(number) {
                Some(ix) if self.tasks[ix].mark == Mark::Touched => {}
                found => {
                    if let Some(ix) = found {
                        self.tasks[ix].mark = Mark::Touched;
                    }
                    self.saving.touched.push(number);
                }
            }
        }
        self.saving.next = 0;
        self.saving.early.clear();
    }
}
