//! An engine with a clock, a log and an executor that the test plays.

use super::invariants;
use super::store::Store;
use crate::record::{Class, Outcome, TaskNo, TaskSpec};
use crate::scheduler::*;
use std::collections::BTreeMap;

pub(super) struct World {
    pub(super) engine: Engine,
    pub(super) config: Config,
    pub(super) now_ms: i64,
    pub(super) records: Vec<Vec<u8>>,
    pub(super) outputs: Vec<Output>,
    pub(super) running: BTreeMap<TaskNo, Lease>,
    /// In the order of their dispatches.
    pub(super) started: Vec<TaskNo>,
    pub(super) ended: BTreeMap<TaskNo, Vec<Outcome>>,
    pub(super) store: Store,
}

pub(super) fn queue(concurrency: u32) -> QueueConfig {
    QueueConfig { concurrency, ..QueueConfig::default() }
}

pub(super) fn config(of: QueueConfig) -> Config {
    Config { queues: [("q".into(), of)].into(), ..Config::default() }
}

pub(super) fn spec() -> TaskSpec<'static> {
    TaskSpec::new("q", "k", b"in")
}

pub(super) fn classed(class: Class) -> TaskSpec<'static> {
    TaskSpec { class, ..spec() }
}

pub(super) fn keyed(key: &'static str) -> TaskSpec<'static> {
    TaskSpec { key: Some(key), ..spec() }
}

impl World {
    pub(super) fn new(config: Config) -> World {
        World {
            engine: Engine::new(config.clone()).unwrap(),
            config,
            now_ms: 0,
            records: Vec::new(),
            outputs: Vec::new(),
            running: BTreeMap::new(),
            started: Vec::new(),
            ended: BTreeMap::new(),
            store: Store::default(),
        }
    }

    pub(super) fn of(queue: QueueConfig) -> World {
        World::new(config(queue))
    }

    /// Takes what the engine says, and checks that its parts agree.
    pub(super) fn drain(&mut self) {
        while let Some(record) = self.engine.poll_record() {
            self.records.push(record.to_vec());
        }
        while let Some(output) = self.engine.poll_output() {
            match &output {
                Output::Dispatch { task, lease, .. } => {
                    self.running.insert(*task, *lease);
                    self.started.push(*task);
                }
                Output::Abort { task, .. } => {
                    self.running.remove(task);
                }
                Output::Changed { task, status: Status::Ended(outcome), .. } => {
                    self.ended.entry(*task).or_default().push(*outcome);
                }
                _ => {}
            }
            self.outputs.push(output);
        }
        invariants::check(&self.engine);
    }

    pub(super) fn try_submit(&mut self, spec: &TaskSpec<'_>) -> Result<Submitted<Answer>, Refusal> {
        self.submit_as(spec, Dedupe::default())
    }

    pub(super) fn submit_as(&mut self, spec: &TaskSpec<'_>, dedupe: Dedupe) -> Result<Submitted<Answer>, Refusal> {
        let result = self.engine.handle_submit(self.now_ms, spec, dedupe);
        self.drain();
        result
    }

    pub(super) fn submit(&mut self, spec: &TaskSpec<'_>) -> TaskNo {
        match self.try_submit(spec).unwrap() {
            Submitted::Now(answer) => answer.task(),
            Submitted::Waits(_) => panic!("it waits for room"),
        }
    }

    pub(super) fn batch(&mut self, specs: &[TaskSpec<'_>]) -> Result<Submitted<Vec<Answer>>, Refusal> {
        self.try_batch(specs).map_err(|refusal| refusal.why)
    }

    pub(super) fn try_batch(&mut self, specs: &[TaskSpec<'_>]) -> Result<Submitted<Vec<Answer>>, BatchRefusal> {
        let result = self.engine.handle_batch(self.now_ms, specs);
        self.drain();
        result
    }

    /// Time passes, stopping where the engine wants to be woken.
    pub(super) fn advance(&mut self, by_ms: i64) {
        let until_ms = self.now_ms + by_ms;
        while let Some(wake_ms) = self.engine.next_wake_ms().filter(|wake_ms| *wake_ms <= until_ms) {
            self.now_ms = self.now_ms.max(wake_ms);
            self.engine.handle_time(self.now_ms);
            self.drain();
        }
        self.now_ms = until_ms;
        self.engine.handle_time(self.now_ms);
        self.drain();
    }

    pub(super) fn complete(&mut self, task: TaskNo) {
        let lease = self.running.remove(&task).expect("it runs");
        assert!(self.engine.handle_completed(self.now_ms, lease, b"out"));
        self.drain();
    }

    pub(super) fn fail(&mut self, task: TaskNo, failure: Failure) {
        let lease = self.running.remove(&task).expect("it runs");
        assert!(self.engine.handle_failed(self.now_ms, lease, failure, b"thrown"));
        self.drain();
    }

    pub(super) fn fail_once(&mut self, task: TaskNo) {
        self.fail(task, Failure::Retryable { after_ms: None });
    }

    pub(super) fn cancel(&mut self, task: TaskNo) -> bool {
        let was_live = self.engine.handle_cancel(self.now_ms, task, b"why");
        self.running.remove(&task);
        self.drain();
        was_live
    }

    pub(super) fn revive(&mut self, task: TaskNo) {
        assert_eq!(self.engine.handle_revive(self.now_ms, task), Ok(true));
        self.ended.remove(&task);
        self.drain();
    }

    /// Completes whatever runs, until nothing runs. The order in which they started.
    pub(super) fn run_all(&mut self) -> Vec<TaskNo> {
        let from = self.started.len();
        let before: Vec<TaskNo> = self.running.keys().copied().collect();
        while let Some(task) = self.running.keys().next().copied() {
            self.complete(task);
        }
        let mut order = before;
        order.extend(&self.started[from..]);
        order
    }

    pub(super) fn status(&self, task: TaskNo) -> Status {
        self.engine.task(task).unwrap().status
    }

    pub(super) fn outcome(&self, task: TaskNo) -> Outcome {
        match self.status(task) {
            Status::Ended(outcome) => outcome,
            other => panic!("task {task} is {other:?}"),
        }
    }

    /// The process dies, and another one reads what the store has and the records behind it, `count` in all.
    pub(super) fn crash_at(&mut self, count: usize, was_clean: bool) {
        self.config.epoch += 1;
        self.records.truncate(count);
        self.engine = self.store.restored(&self.config, &self.records);
        self.engine.recover(self.now_ms, was_clean);
        self.outputs.clear();
        self.running.clear();
        self.drain();
    }

    pub(super) fn crash(&mut self) {
        self.crash_at(self.records.len(), false);
    }
}
