//! Tasks that wait for others: edges with conditions, keys that nobody has yet, and lines of one order key.

use super::engine::Engine;
use super::output::Refusal;
use super::task::{Dependent, OwnEdge, State, TaskIx};
use super::timers::Timer;
use crate::record::{Condition, Edge, Outcome, Parent, TaskNo};
use crate::scheduler::config::UnknownKey;
use std::collections::BTreeSet;

/// Whether an edge with this condition holds after a parent ended so.
pub(super) fn holds(condition: Condition, outcome: Outcome) -> bool {
    match condition {
        Condition::Completion => true,
        Condition::Success => outcome == Outcome::Completed,
        Condition::Failure => matches!(outcome, Outcome::Failed | Outcome::Dead),
    }
}

impl Engine {
    /// Makes a task wait for a parent, unless the parent ended already.
    pub(super) fn join(&mut self, ix: TaskIx, edge: &Edge<'_>) {
        let parent = match edge.parent {
            Parent::Run(id, run) => return self.await_run(ix, id, run, edge.condition),
            Parent::Number(number) => self.tasks.find(number),
            Parent::Key(key) => self.keys.get(key).copied(),
        };
        let task = &self.tasks[ix];
        let dependent = Dependent { task: ix, number: task.number, revivals: task.revivals, condition: edge.condition };
        match (parent, edge.parent) {
            (Some(parent), _) => self.join_known(parent, dependent),
            (None, Parent::Key(key)) => self.await_key(ix, key, dependent),
            // Forgotten since: it held, or the record of the child would not stand in the log.
            (None, Parent::Number(_) | Parent::Run(..)) => {}
        }
    }

    fn join_known(&mut self, parent: TaskIx, dependent: Dependent) {
        let (number, revivals) = (self.tasks[parent].number, self.tasks[parent].revivals);
        let more = self.tasks[dependent.task].more_mut();
        more.parents.push(number);
        more.edges.push(OwnEdge { parent: number, revivals, condition: dependent.condition });
        match self.tasks[parent].state {
            State::Ended { outcome, .. } if holds(dependent.condition, outcome) => {}
            State::Ended { outcome, .. } => {
                // It stays blocked until it is skipped, and costs nobody a share or a place.
                self.tasks[dependent.task].unmet += 1;
                self.doom(dependent, number, outcome);
            }
            State::Blocked | State::Scheduled | State::Ready(_) | State::Running { .. } | State::Retrying => {
                self.tasks[parent].more_mut().dependents.push(dependent);
                self.tasks[dependent.task].unmet += 1;
            }
        }
    }

    fn await_key(&mut self, ix: TaskIx, key: &str, dependent: Dependent) {
        self.tasks[ix].more_mut().awaits.push((key.into(), dependent.condition));
        self.await_known(ix, key, dependent);
        if self.tasks[ix].more_mut().awaits.len() == 1 {
            self.limit_await(ix);
        }
    }

    fn await_known(&mut self, ix: TaskIx, key: &str, dependent: Dependent) {
        self.awaited.entry(key.into()).or_default().push(dependent);
        self.tasks[ix].unmet += 1;
    }

    /// Sets the time after which a task waits in vain for a key.
    pub(super) fn limit_await(&mut self, ix: TaskIx) {
        let queue = self.queue(self.tasks[ix].queue);
        if let UnknownKey::Wait { timeout_ms: Some(timeout_ms) } = queue.config.unknown_key {
            let due_ms = self.tasks[ix].submitted_ms.saturating_add(i64::from(timeout_ms));
            let timer = self.timers.set(due_ms, Timer::Await(ix));
            self.tasks[ix].more_mut().await_timer = timer;
        }
    }

    /// Makes a stored task wait again for those of its edges that were not met: its parent has not ended since.
    pub(super) fn wait_again(&mut self, ix: TaskIx) {
        let task = &self.tasks[ix];
        let Some(more) = task.more.as_ref() else { return };
        let (number, revivals, edges, awaits) = (task.number, task.revivals, more.edges.clone(), more.awaits.clone());
        let dependent = |condition| Dependent { task: ix, number, revivals, condition };
        let runs = more.runs.iter().filter(|edge| edge.is_awaited()).count() as u32;
        self.tasks[ix].unmet += runs + u32::from(self.tasks[ix].is_unmade());
        for edge in edges {
            let Some(parent) = self.tasks.find(edge.parent) else { continue };
            if !self.tasks[parent].is_ended() && self.tasks[parent].revivals == edge.revivals {
                self.tasks[parent].more_mut().dependents.push(dependent(edge.condition));
                self.tasks[ix].unmet += 1;
            }
        }
        for (key, condition) in awaits {
            self.await_known(ix, &key, dependent(condition));
        }
    }

    /// Gives a key to a task; whoever had it has it no more.
    pub(super) fn give_key(&mut self, key: Box<str>, ix: TaskIx) {
        if let Some(before) = self.keys.get(&key).copied() {
            self.touch(before);
        }
        self.keys.insert(key, ix);
    }

    /// A task with this key exists now: whoever waits for the key waits for it.
    pub(super) fn adopt(&mut self, ix: TaskIx, key: &str) {
        let Some(waiters) = self.awaited.remove(key) else { return };
        let number = self.tasks[ix].number;
        for waiter in waiters {
            self.touch(waiter.task);
            let more = self.tasks[waiter.task].more_mut();
            more.awaits.retain(|(awaited, _)| **awaited != *key);
            more.parents.push(number);
            more.edges.push(OwnEdge { parent: number, revivals: 0, condition: waiter.condition });
            if more.awaits.is_empty() {
                self.timers.clear(&mut more.await_timer);
            }
            self.tasks[ix].more_mut().dependents.push(waiter);
        }
    }

    /// The wait for a key was too long.
    pub(super) fn stop_awaiting(&mut self, ix: TaskIx) {
        let task = &self.tasks[ix];
        let awaits = task.more.as_ref().map_or(&[][..], |more| &more.awaits);
        let keys = awaits.iter().map(|(key, _)| &**key).collect::<Vec<_>>().join("\", \"");
        let reason = format!("no task came that has the key \"{keys}\"");
        self.doomed.push_back((ix, task.number, task.revivals, reason));
    }

    /// A task is over: it waits for no key any more.
    pub(super) fn leave_awaited(&mut self, ix: TaskIx) {
        let Some(more) = self.tasks[ix].more.as_mut() else { return };
        self.timers.clear(&mut more.await_timer);
        for (key, _) in std::mem::take(&mut more.awaits) {
            if let Some(waiters) = self.awaited.get_mut(&key) {
                waiters.retain(|waiter| waiter.task != ix);
                if waiters.is_empty() {
                    self.awaited.remove(&key);
                }
            }
        }
    }

    /// A task ended: whoever waited for that may go on, or never will.
    pub(super) fn release_dependents(&mut self, ix: TaskIx, outcome: Outcome) {
        let number = self.tasks[ix].number;
        let dependents = self.tasks[ix].more.as_mut().map(|more| std::mem::take(&mut more.dependents));
        for dependent in dependents.unwrap_or_default() {
            if !self.still_waits(&dependent) {
                continue;
            }
            if holds(dependent.condition, outcome) {
                self.one_met(dependent.task, self.now_ms);
            } else {
                self.doom(dependent, number, outcome);
            }
        }
    }

    /// Whether an entry of a parent is still good.
    pub(super) fn still_waits(&self, dependent: &Dependent) -> bool {
        self.tasks.same(dependent.task, dependent.number) && {
            let task = &self.tasks[dependent.task];
            task.state == State::Blocked && task.revivals == dependent.revivals
        }
    }

    fn doom(&mut self, dependent: Dependent, parent: TaskNo, outcome: Outcome) {
        let reason = format!("task {parent}, which it waited for, ended as {}", name_of(outcome));
        self.doomed.push_back((dependent.task, dependent.number, dependent.revivals, reason));
    }

    /// Ends tasks whose wait is in vain. What they end can doom others.
    pub(super) fn skip_doomed(&mut self) {
        while let Some((ix, number, revivals, reason)) = self.doomed.pop_front() {
            let is_that = self.tasks.same(ix, number) && self.tasks[ix].revivals == revivals;
            if is_that && !self.tasks[ix].is_ended() {
                self.end(ix, Outcome::Skipped, reason.as_bytes());
            }
        }
    }

    /// It waits for one thing less, since a time.
    pub(super) fn one_met(&mut self, ix: TaskIx, since_ms: i64) {
        let task = &mut self.tasks[ix];
        task.unmet -= 1;
        if task.unmet == 0 {
            self.gate(ix, since_ms);
        }
    }

    /// Only the first of an order key may run. A revived task stands behind those that came meanwhile.
    pub(super) fn join_order_line(&mut self, ix: TaskIx) {
        let Some(more) = self.tasks[ix].more.as_mut().filter(|more| more.order_key.is_some()) else { return };
        self.order_places += 1;
        more.order_place = self.order_places;
        let line = self.order_lines.entry(more.order_key.clone().unwrap_or_default()).or_default();
        line.insert(self.order_places, ix);
        if line.len() > 1 {
            self.tasks[ix].unmet += 1;
        }
    }

    /// Puts a stored task back into the line of its order key. `false`: its place is taken.
    pub(super) fn stand_again(&mut self, ix: TaskIx) -> bool {
        let Some(more) = self.tasks[ix].more.as_ref() else { return true };
        let Some(key) = more.order_key.clone() else { return true };
        self.order_lines.entry(key).or_default().insert(more.order_place, ix).is_none()
    }

    /// A task is over: the next of its order key may run.
    pub(super) fn leave_order_line(&mut self, ix: TaskIx) {
        let Some(more) = self.tasks[ix].more.as_ref() else { return };
        let Some(key) = more.order_key.as_ref() else { return };
        let Some(line) = self.order_lines.get_mut(key) else { return };
        let was_first = line.keys().next() == Some(&more.order_place);
        line.remove(&more.order_place);
        match line.first_key_value().map(|(_, next)| *next) {
            None => {
                self.order_lines.remove(key);
            }
            Some(next) if was_first => self.one_met(next, self.now_ms),
            Some(_) => {}
        }
    }

    /// The task that runs before all others of an order key.
    pub(super) fn first_in_order(&self, key: &str) -> Option<TaskIx> {
        self.order_lines.get(key)?.values().next().copied()
    }

    /// Whether what a task waits for is known, or may still come.
    pub(super) fn check_edges(&self, edges: &[Edge<'_>], unknown: UnknownKey) -> Result<(), Refusal> {
        for edge in edges {
            match edge.parent {
                Parent::Number(number) if self.tasks.find(number).is_none() => {
                    return Err(Refusal::UnknownParent(number));
                }
                Parent::Key(key) if !self.keys.contains_key(key) && unknown == UnknownKey::Reject => {
                    return Err(Refusal::UnknownKey(key.into()));
                }
                Parent::Number(_) | Parent::Key(_) | Parent::Run(..) => {}
            }
        }
        Ok(())
    }

    /// Whether a task that takes a key would wait for somebody who waits for that key.
    pub(super) fn check_cycle(
        &self,
        key: Option<&str>,
        edges: &[Edge<'_>],
        order_key: Option<&str>,
    ) -> Result<(), Refusal> {
        let Some(key) = key else { return Ok(()) };
        let cycle = |name: &str| Err(Refusal::Cycle(vec![key.into(), name.into(), key.into()]));
        if edges.iter().any(|edge| edge.parent == Parent::Key(key)) && !self.keys.contains_key(key) {
            return Err(Refusal::Cycle(vec![key.into(), key.into()]));
        }
        if !self.awaited.contains_key(key) {
            return Ok(());
        }
        let (waiting, awaited) = self.downstream_of_key(key);
        for edge in edges {
            let (is_cycle, name) = match edge.parent {
                Parent::Number(number) => {
                    let is_waiting = self.tasks.find(number).is_some_and(|ix| waiting.contains(&ix));
                    (is_waiting, number.to_string())
                }
                // It may wait for this one all the same: what a run does is not known here.
                Parent::Run(..) => continue,
                Parent::Key(parent) => {
                    let is_waiting = self.keys.get(parent).is_some_and(|ix| waiting.contains(ix));
                    (is_waiting || awaited.contains(parent), parent.to_owned())
                }
            };
            if is_cycle {
                return cycle(&name);
            }
        }
        let before = order_key.and_then(|order_key| self.order_lines.get(order_key));
        match before.into_iter().flat_map(|line| line.values()).find(|ix| waiting.contains(ix)) {
            Some(ix) => cycle(&self.tasks[*ix].number.to_string()),
            None => Ok(()),
        }
    }

    /// Everybody who waits, directly or through others, for a key that no task has; and the keys that they have.
    fn downstream_of_key(&self, key: &str) -> (BTreeSet<TaskIx>, BTreeSet<Box<str>>) {
        let mut found = BTreeSet::new();
        let mut keys = BTreeSet::new();
        let mut next: Vec<TaskIx> = self.awaited.get(key).into_iter().flatten().map(|waiter| waiter.task).collect();
        while let Some(ix) = next.pop() {
            if !found.insert(ix) {
                continue;
            }
            let task = &self.tasks[ix];
            let Some(more) = &task.more else { continue };
            let still_there = more.dependents.iter().filter(|of| self.still_waits(of));
            next.extend(still_there.map(|dependent| dependent.task));
            let line = more.order_key.as_ref().and_then(|order_key| self.order_lines.get(order_key));
            next.extend(line.into_iter().flat_map(|line| line.range(more.order_place..)).map(|(_, behind)| *behind));
            keys.extend(more.key.clone());
        }
        (found, keys)
    }
}

/// The word for an outcome in messages.
pub(super) fn name_of(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::Failed => "failed",
        Outcome::Dead => "dead",
        Outcome::Cancelled => "cancelled",
        Outcome::Skipped => "skipped",
        Outcome::Missed => "missed",
        Outcome::Expired => "expired",
        Outcome::Shed => "shed",
    }
}
