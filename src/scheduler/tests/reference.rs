//! A second engine that decides which task of a queue is next: it looks at all tasks each time, and keeps nothing that it
//! can find out by looking. What happened it takes from the records; the starts among them it says beforehand.
//!
//! One queue without reserved starts, rates and keys of tasks; `reference_limits` has what it knows of limits.

use super::reference_limits::Claims;
use crate::record::{Change, Class, Condition, LimitSpec, Outcome, Parent, TaskNo, TaskRecord, TaskSpec};
use crate::scheduler::QueueConfig;
use std::collections::BTreeMap;

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    Blocked,
    Delayed,
    Line,
    Limit,
    Labels,
    Running { is_gpu: bool },
    Retrying,
    Over,
}

#[derive(Debug)]
pub(super) struct RefTask {
    pub(super) at: At,
    outcome: Option<Outcome>,
    class: Class,
    tenant: String,
    needs_gpu: bool,
    deadline_ms: Option<i64>,
    estimate_ms: i64,
    not_before_ms: Option<i64>,
    /// Parents, what is asked of them, and whether they gave it.
    edges: Vec<(TaskNo, Condition, bool)>,
    order_key: Option<String>,
    order_place: u64,
    submitted_ms: i64,
    eligible_ms: Option<i64>,
    /// Its share's place, as long as it waits for one start.
    pub(super) tag: Option<u64>,
    /// When it moves on by itself; equal times in the order in which they were set.
    wake: Option<(i64, u64)>,
    /// When its attempt takes too long, in the same order.
    timeout: Option<(i64, u64)>,
    wants: Vec<(String, u32)>,
}

/// Which of the three lines of a class a task stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Plain,
    Deadline,
    Tenant,
}

type Line = (Class, Kind);

pub(super) struct Reference {
    now_ms: i64,
    pub(super) tasks: BTreeMap<TaskNo, RefTask>,
    weights: Option<BTreeMap<Box<str>, u32>>,
    timeout_ms: Option<i64>,
    slots: u32,
    gpu_slots: u32,
    is_paused: bool,
    is_filling: bool,
    places: u64,
    wakes: u64,
    /// By class: the time of its shares, and where each tenant's last share ended.
    shares: BTreeMap<Class, (u64, BTreeMap<String, u64>)>,
    passed: BTreeMap<Line, u32>,
    pub(super) claims: Claims,
    pub(super) reliefs: usize,
}

impl Reference {
    pub(super) fn new(queue: &QueueConfig, limits: &[(&str, u32)]) -> Reference {
        Reference {
            now_ms: 0,
            tasks: BTreeMap::new(),
            weights: queue.fair.clone(),
            timeout_ms: queue.timeout_ms.map(i64::from),
            slots: queue.concurrency,
            gpu_slots: 0,
            is_paused: false,
            is_filling: false,
            places: 0,
            wakes: 0,
            shares: BTreeMap::new(),
            passed: BTreeMap::new(),
            claims: Claims::new(limits),
            reliefs: 0,
        }
    }

    /// A call brought the time.
    pub(super) fn begin(&mut self, now_ms: i64) {
        self.now_ms = self.now_ms.max(now_ms);
        self.is_filling = false;
        self.fire();
    }

    /// Those whose time has come, in its order. An attempt whose time is over comes before those that were set later: its
    /// record says what follows.
    fn fire(&mut self) {
        loop {
            let due = self.tasks.iter().filter_map(|(number, task)| Some((task.wake?, *number)));
            let overdue = self.tasks.values().filter_map(|task| task.timeout).min();
            let is_next = |time: (i64, u64)| time.0 <= self.now_ms && overdue.is_none_or(|overdue| time < overdue);
            let Some(((due_ms, _), number)) = due.min().filter(|(time, _)| is_next(*time)) else {
                return;
            };
            self.tasks.get_mut(&number).unwrap().wake = None;
            self.ready(number, due_ms);
        }
    }

    /// A record says what happened. A start must be the one that is next.
    pub(super) fn heed(&mut self, record: &TaskRecord<'_>) {
        if let TaskRecord::Started { task, .. } = record {
            let next = self.next();
            if next != Some(*task) {
                let expected = next.map(|next| (next, &self.tasks[&next]));
                panic!("at {} ms {task} started: {:?}, next was {expected:?}", self.now_ms, self.tasks[task]);
            }
            return self.start(*task);
        }
        self.is_filling = false;
        self.fire();
        match record {
            TaskRecord::Submitted { task, spec, .. } => self.submit(*task, spec),
            TaskRecord::Retrying { task, retry_ms, .. } => {
                self.leave(*task);
                let wake = self.wake_at(*retry_ms);
                let task = self.tasks.get_mut(task).unwrap();
                (task.at, task.wake) = (At::Retrying, Some(wake));
            }
            TaskRecord::Ended { task, outcome, .. } => self.end(*task, *outcome),
            TaskRecord::Changed { task, change: Change::Class(class), .. } => self.change_class(*task, *class),
            TaskRecord::Changed { task, change: Change::NotBefore(time_ms), .. } => self.change_time(*task, *time_ms),
            TaskRecord::Revived { task, .. } => self.revive(*task),
            TaskRecord::QueueSet { is_paused, concurrency, .. } => {
                self.is_paused = *is_paused;
                if let Some(slots) = concurrency {
                    self.slots = *slots;
                }
                self.suspend();
            }
            TaskRecord::LimitSet { name, spec: LimitSpec::Concurrency(units) } => self.claims.resize(name, *units),
            other => panic!("the workload does not make {other:?}"),
        }
    }

    pub(super) fn set_gpu_slots(&mut self, slots: u32) {
        self.gpu_slots = slots;
        self.suspend();
        self.free_gpu();
    }

    fn suspend(&mut self) {
        self.claims.suspend(self.is_paused || self.slots + self.gpu_slots == 0);
    }

    fn submit(&mut self, number: TaskNo, spec: &TaskSpec<'_>) {
        let edges = spec.after.iter().map(|edge| {
            let Parent::Number(parent) = edge.parent else { panic!("the workload names parents by number") };
            (parent, edge.condition, false)
        });
        let mut task = RefTask {
            at: At::Blocked,
            outcome: None,
            class: spec.class,
            tenant: spec.tenant.unwrap_or("").to_owned(),
            needs_gpu: !spec.labels.is_empty(),
            deadline_ms: spec.deadline_ms,
            estimate_ms: spec.estimate_ms.map_or(0, i64::from),
            not_before_ms: spec.not_before_ms,
            edges: edges.collect(),
            order_key: spec.order_key.map(str::to_owned),
            order_place: 0,
            submitted_ms: self.now_ms,
            eligible_ms: None,
            tag: None,
            wake: None,
            timeout: None,
            wants: spec.limits.iter().map(|of| (format!("{}:{}", of.name, of.key.unwrap_or("")), of.amount)).collect(),
        };
        for (parent, condition, is_met) in &mut task.edges {
            *is_met = self.tasks[parent].outcome.is_some_and(|outcome| is_what(*condition, outcome));
        }
        self.tasks.insert(number, task);
        self.live_again(number);
    }

    fn live_again(&mut self, number: TaskNo) {
        self.places += 1;
        let task = self.tasks.get_mut(&number).unwrap();
        task.order_place = self.places;
        self.claims.add(number, &task.wants, rank(task));
        self.let_through(number, self.now_ms);
    }

    /// Whether all that it waited for is there; then it waits for its time, or is ready.
    fn let_through(&mut self, number: TaskNo, since_ms: i64) {
        let task = &self.tasks[&number];
        let is_before = |other: &RefTask| {
            other.at != At::Over && other.order_key == task.order_key && other.order_place < task.order_place
        };
        let in_order = task.order_key.is_none() || !self.tasks.values().any(is_before);
        if task.at != At::Blocked || !in_order || task.edges.iter().any(|edge| !edge.2) {
            return;
        }
        match task.not_before_ms.filter(|time_ms| *time_ms > self.now_ms) {
            Some(time_ms) => {
                let wake = self.wake_at(time_ms);
                let task = self.tasks.get_mut(&number).unwrap();
                (task.at, task.wake) = (At::Delayed, Some(wake));
            }
            None => self.ready(number, since_ms),
        }
    }

    fn wake_at(&mut self, time_ms: i64) -> (i64, u64) {
        self.wakes += 1;
        (time_ms, self.wakes)
    }

    fn ready(&mut self, number: TaskNo, since_ms: i64) {
        let task = self.tasks.get_mut(&number).unwrap();
        if task.eligible_ms.is_none() {
            task.eligible_ms = Some(since_ms);
            self.claims.set_rank(number, rank(task));
        }
        self.stand(number);
    }

    /// Puts it into its line.
    fn stand(&mut self, number: TaskNo) {
        let line = self.line_of(number);
        if self.members(line).is_empty() {
            self.passed.insert(line, 0);
        }
        let task = self.tasks.get_mut(&number).unwrap();
        task.at = At::Line;
        if line.1 == Kind::Tenant && task.tag.is_none() {
            let weight = self.weights.as_ref().and_then(|of| of.get(&*task.tenant)).copied().unwrap_or(100);
            let (time, ends) = self.shares.entry(task.class).or_default();
            let tag = ends.get(&task.tenant).copied().unwrap_or(0).max(*time);
            ends.insert(task.tenant.clone(), tag + 1_000_000 * 100 / u64::from(weight));
            task.tag = Some(tag);
        }
    }

    fn line_of(&self, number: TaskNo) -> Line {
        let task = &self.tasks[&number];
        let kind = match (task.deadline_ms, &self.weights) {
            (Some(_), _) => Kind::Deadline,
            (None, Some(_)) => Kind::Tenant,
            (None, None) => Kind::Plain,
        };
        (task.class, kind)
    }

    fn members(&self, line: Line) -> Vec<TaskNo> {
        let stands = |number: &TaskNo| self.tasks[number].at == At::Line && self.line_of(*number) == line;
        self.tasks.keys().copied().filter(stands).collect()
    }

    fn lines(&self) -> Vec<Line> {
        let kinds = [Kind::Plain, Kind::Deadline, Kind::Tenant];
        let all =
            [Class::Critical, Class::High, Class::Normal, Class::Low].map(|class| kinds.map(|kind| (class, kind)));
        all.into_iter().flatten().filter(|line| !self.members(*line).is_empty()).collect()
    }

    fn first_of(&self, line: Line) -> TaskNo {
        let key = |number: &TaskNo| {
            let task = &self.tasks[number];
            match line.1 {
                Kind::Plain => (0, 0, *number),
                Kind::Deadline => {
                    let start_ms = latest_ms(task);
                    (start_ms.max(task.eligible_ms.unwrap()), start_ms, *number)
                }
                Kind::Tenant => (task.tag.unwrap() as i64, 0, *number),
            }
        };
        self.members(line).into_iter().min_by_key(key).unwrap()
    }

    /// A line that 64 starts passed by, and whose first task has waited for a minute; the one passed by most.
    fn overdue(&self) -> Option<TaskNo> {
        let is_overdue = |line: &Line| {
            let waited_ms = self.now_ms - self.tasks[&self.first_of(*line)].eligible_ms.unwrap();
            self.passed[line] >= 64 && waited_ms >= 60_000
        };
        let lines = self.lines().into_iter().filter(is_overdue);
        lines.min_by_key(|line| (u32::MAX - self.passed[line], *line)).map(|line| self.first_of(line))
    }

    fn best(&self) -> Option<TaskNo> {
        let first = self.lines().into_iter().map(|line| self.first_of(line));
        first.min_by_key(|number| {
            let task = &self.tasks[number];
            let (total, aged) = score(task, self.now_ms);
            (-total, -aged, task.class, *number)
        })
    }

    fn busy(&self, gpu: bool) -> u32 {
        self.tasks.values().filter(|task| task.at == (At::Running { is_gpu: gpu })).count() as u32
    }

    /// The kind of worker that takes a task: a plain one unless it needs more or all are busy.
    fn seat(&self, number: TaskNo) -> Option<bool> {
        let has_plain = self.busy(false) < self.slots && !self.tasks[&number].needs_gpu;
        let has_gpu = self.busy(true) < self.gpu_slots;
        if has_plain { Some(false) } else { has_gpu.then_some(true) }
    }

    fn has_slot(&self) -> bool {
        !self.is_paused && (self.busy(false) < self.slots || self.busy(true) < self.gpu_slots)
    }

    /// Who starts next, if anybody can. Those who cannot step aside.
    pub(super) fn next(&mut self) -> Option<TaskNo> {
        if !std::mem::replace(&mut self.is_filling, true) {
            self.fire();
            self.recall();
        }
        loop {
            while self.has_slot() {
                let overdue = self.overdue();
                self.reliefs += usize::from(overdue.is_some());
                let Some(number) = overdue.or_else(|| self.best()) else { break };
                if self.seat(number).is_none() {
                    self.claims.withdraw(number);
                    self.tasks.get_mut(&number).unwrap().at = At::Labels;
                } else if !self.claims.take(number) {
                    self.tasks.get_mut(&number).unwrap().at = At::Limit;
                } else {
                    return Some(number);
                }
            }
            let waiting = self.tasks.iter().find(|(_, task)| task.at == At::Labels).map(|(number, _)| *number);
            if let Some(number) = waiting.filter(|number| self.has_slot() && self.seat(*number).is_some()) {
                self.stand(number);
            } else if !self.recall() {
                return None;
            }
        }
    }

    /// Those whom a limit has something for compete again.
    fn recall(&mut self) -> bool {
        let woken = self.claims.poll_woken();
        for number in &woken {
            if self.tasks[number].at == At::Limit {
                self.stand(*number);
            }
        }
        !woken.is_empty()
    }

    fn start(&mut self, number: TaskNo) {
        let line = self.line_of(number);
        let is_gpu = self.seat(number).unwrap();
        let timeout = self.timeout_ms.map(|ms| self.wake_at(self.now_ms + ms));
        let task = self.tasks.get_mut(&number).unwrap();
        (task.at, task.timeout) = (At::Running { is_gpu }, timeout);
        if let Some(tag) = task.tag.take().filter(|_| line.1 == Kind::Tenant) {
            let time = &mut self.shares.get_mut(&line.0).unwrap().0;
            *time = tag.max(*time);
        }
        self.passed.insert(line, 0);
        for other in self.lines().into_iter().filter(|other| *other != line) {
            *self.passed.get_mut(&other).unwrap() += 1;
        }
    }

    /// It gives back what it has, and is nowhere.
    fn leave(&mut self, number: TaskNo) {
        let task = self.tasks.get_mut(&number).unwrap();
        (task.wake, task.timeout) = (None, None);
        let at = std::mem::replace(&mut task.at, At::Blocked);
        if let At::Running { is_gpu } = at {
            self.claims.release(number);
            if is_gpu {
                self.free_gpu();
            }
        }
    }

    /// So many of those who wait for such a worker compete again.
    fn free_gpu(&mut self) {
        let free = self.gpu_slots.saturating_sub(self.busy(true)) as usize;
        let waiting = self.tasks.iter().filter(|(_, task)| task.at == At::Labels && task.needs_gpu);
        let first: Vec<TaskNo> = waiting.map(|(number, _)| *number).take(free).collect();
        first.into_iter().for_each(|number| self.stand(number));
    }

    fn end(&mut self, number: TaskNo, outcome: Outcome) {
        self.leave(number);
        let task = self.tasks.get_mut(&number).unwrap();
        (task.at, task.outcome) = (At::Over, Some(outcome));
        let key = self.tasks[&number].order_key.clone();
        let behind =
            self.tasks.iter().filter(|(_, task)| key.is_some() && task.order_key == key && task.at != At::Over);
        if let Some((_, next)) = behind.map(|(number, task)| (task.order_place, *number)).min() {
            self.let_through(next, self.now_ms);
        }
        self.claims.remove(number);
        let children: Vec<TaskNo> = self.tasks.keys().copied().collect();
        for child in children {
            let edges = &mut self.tasks.get_mut(&child).unwrap().edges;
            let mut has_met = false;
            for edge in edges.iter_mut().filter(|edge| edge.0 == number && !edge.2) {
                edge.2 = is_what(edge.1, outcome);
                has_met |= edge.2;
            }
            if has_met {
                self.let_through(child, self.now_ms);
            }
        }
    }

    fn change_class(&mut self, number: TaskNo, class: Class) {
        let task = self.tasks.get_mut(&number).unwrap();
        task.class = class;
        // A share of the old class is none of the new one.
        task.tag = None;
        self.claims.set_rank(number, rank(task));
        if task.at == At::Line {
            task.at = At::Blocked;
            self.stand(number);
        }
    }

    fn change_time(&mut self, number: TaskNo, time_ms: i64) {
        let task = self.tasks.get_mut(&number).unwrap();
        task.not_before_ms = Some(time_ms);
        if matches!(task.at, At::Delayed | At::Line | At::Limit | At::Labels) {
            (task.at, task.wake, task.tag) = (At::Blocked, None, None);
            self.claims.withdraw(number);
            self.let_through(number, self.now_ms);
        }
    }

    fn revive(&mut self, number: TaskNo) {
        let task = self.tasks.get_mut(&number).unwrap();
        (task.at, task.outcome, task.eligible_ms, task.tag) = (At::Blocked, None, None, None);
        (task.not_before_ms, task.deadline_ms) = (None, None);
        task.edges.clear();
        self.live_again(number);
    }
}

fn is_what(condition: Condition, outcome: Outcome) -> bool {
    match condition {
        Condition::Completion => true,
        Condition::Success => outcome == Outcome::Completed,
        Condition::Failure => matches!(outcome, Outcome::Failed | Outcome::Dead),
    }
}

fn latest_ms(task: &RefTask) -> i64 {
    task.deadline_ms.unwrap() - task.estimate_ms
}

/// In thousandths of a point: with the ceiling of its class, and without.
fn score(task: &RefTask, now_ms: i64) -> (i64, i64) {
    let (base, ceiling) = match task.class {
        Class::Critical => (10_000, 10_800),
        Class::High => (1_000, 1_800),
        Class::Normal => (100, 900),
        Class::Low => (10, 900),
    };
    let aged = base * 1_000 + 2 * (now_ms - task.eligible_ms.unwrap()).max(0);
    let urgency = match task.deadline_ms {
        None => 0,
        Some(_) => {
            let slack_ms = latest_ms(task) - now_ms;
            let horizon_ms = task.estimate_ms.max(5_000);
            match slack_ms {
                _ if slack_ms >= horizon_ms => 0,
                0.. => 5_000_000 * (horizon_ms - slack_ms) / horizon_ms,
                _ => 5_000_000 + (-slack_ms * 100).min(3_000_000),
            }
        }
    };
    (aged.min(ceiling * 1_000) + urgency, aged + urgency)
}

/// The time at which a critical task of the same age and worth would have become eligible.
fn rank(task: &RefTask) -> i64 {
    let base = match task.class {
        Class::Critical => 10_000,
        Class::High => 1_000,
        Class::Normal => 100,
        Class::Low => 10,
    };
    task.eligible_ms.unwrap_or(task.submitted_ms) - base * 500
}
