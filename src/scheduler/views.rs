//! What the engine shows: a task, all tasks, a queue, and why a task does not run.

use super::engine::{Engine, status_of};
use super::output::Status;
use super::run_edges::RunEnd;
use super::task::{AttemptNote, Place, State, Task, TaskIx};
use crate::record::{self, Caller, Class, RunNo, TaskNo};

/// A task, as it is now.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names say what they are; times are in ms since 1970")]
pub struct TaskView<'a> {
    pub task: TaskNo,
    pub queue: &'a str,
    pub kind: &'a str,
    pub class: Class,
    pub status: Status,
    pub attempts: u32,
    pub submitted_ms: i64,
    /// When the attempt that runs began.
    pub started_ms: Option<i64>,
    pub ended_ms: Option<i64>,
    /// Its input; of a completed task its output.
    pub payload: &'a [u8],
    /// What it ended with, if not completed.
    pub failure: &'a [u8],
    pub key: Option<&'a str>,
    pub tenant: Option<&'a str>,
    pub tags: &'a [(Box<str>, Box<str>)],
    pub deadline_ms: Option<i64>,
    /// What it waited or waits for.
    pub parents: &'a [TaskNo],
    /// Attempts that did not end it, the newest ones.
    pub history: &'a [AttemptNote],
    /// The schedule that asked for it, and for which time.
    pub occurrence: Option<(&'a str, i64)>,
    /// The run that it stands for.
    pub run: Option<Caller>,
    /// The id of the run that it is or was to stand for, if a schedule asked for that.
    pub launch: Option<&'a str>,
}

impl TaskView<'_> {
    /// Whether it stands for a run, be that made or not.
    #[must_use]
    pub fn stands_for_run(&self) -> bool {
        self.run.is_some() || self.launch.is_some()
    }
}

/// Why a task does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say what they are; times are in ms since 1970")]
pub enum Reason {
    /// It runs.
    Running,
    /// It is over.
    Ended,
    /// It waits for these tasks, these keys of tasks and ids of workflows, and perhaps for the first of its order key.
    Blocked { parents: Vec<TaskNo>, keys: Vec<Box<str>>, order_key: Option<(Box<str>, TaskNo)> },
    /// It waits for a time.
    Until { time_ms: i64, is_retry: bool },
    /// So many go before it in its line, and the queue has no free slot.
    Behind { tasks: usize, busy: u32, capacity: u32 },
    /// A limit is short.
    Limit { name: Box<str>, key: Option<Box<str>>, amount: u32, available: u64, is_protected: bool },
    /// No free worker carries its labels; `anybody`: whether a busy one does.
    Labels { anybody: bool },
    /// Its definition has no code here.
    Unregistered,
    /// Its queue is paused.
    Paused,
    /// Nobody defined its queue.
    QueueGone,
    /// The engine shuts down.
    Draining,
}

/// A queue, as it is now and as it was over the window.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say what they are; parts are in thousandths")]
pub struct QueueView {
    pub name: Box<str>,
    pub is_paused: bool,
    pub capacity: u32,
    pub busy: u32,
    pub held: u32,
    /// By class, from critical to low.
    pub pending: [u64; 4],
    pub retrying: [u64; 4],
    pub ready: u64,
    pub reservations: usize,
    pub dispatched: u64,
    pub completed: u64,
    pub failed_attempts: u64,
    pub retried: u64,
    /// Dispatches while no better class waited. All, when there were none.
    pub adherence: u32,
    /// Reserved starts within their tolerance. All, when there were none.
    pub on_time: u32,
    /// Worker time in use. None, without workers.
    pub utilisation: u32,
    /// Worker time of attempts that completed. None, without workers.
    pub efficiency: u32,
    pub wait_mean_ms: i64,
    pub wait_p50_ms: i64,
    pub wait_p90_ms: i64,
    pub wait_p99_ms: i64,
    pub run_p50_ms: i64,
    pub run_p99_ms: i64,
    /// Since the engine was made.
    pub worker_ms: u64,
}

impl Engine {
    /// A task, if it is known.
    #[must_use]
    pub fn task(&self, task: TaskNo) -> Option<TaskView<'_>> {
        self.tasks.find(task).map(|ix| self.view(&self.tasks[ix]))
    }

    /// The newest task that was given a key, if it is known.
    #[must_use]
    pub fn task_by_key(&self, key: &str) -> Option<TaskView<'_>> {
        self.keys.get(key).map(|ix| self.view(&self.tasks[*ix]))
    }

    /// The number that was given last; 0: none was.
    #[must_use]
    pub fn newest_task(&self) -> TaskNo {
        TaskNo(self.next_number - 1)
    }

    /// All known tasks with a greater number, in their order.
    pub fn tasks_after(&self, after: TaskNo) -> impl Iterator<Item = TaskView<'_>> {
        self.tasks.iter_after(after).map(|(_, task)| self.view(task))
    }

    /// The runs that a task waited for, and how they ended: id, which run, status, what with.
    pub fn awaited_runs(&self, task: TaskNo) -> impl Iterator<Item = (&str, Option<RunNo>, record::Status, &[u8])> {
        let more = self.tasks.find(task).and_then(|ix| self.tasks[ix].more.as_deref());
        more.map_or(&[][..], |more| &more.runs).iter().filter_map(|edge| match &edge.end {
            RunEnd::Is(status, payload) => Some((&*edge.id, edge.run, *status, &**payload)),
            RunEnd::Awaited | RunEnd::Past => None,
        })
    }

    fn view<'a>(&'a self, task: &'a Task) -> TaskView<'a> {
        let queue = self.queue(task.queue);
        let more = task.more.as_deref();
        TaskView {
            task: task.number,
            queue: &queue.name,
            kind: &queue.kinds[usize::from(task.kind.0)].name,
            class: task.class,
            status: status_of(&task.state),
            attempts: task.attempts,
            submitted_ms: task.submitted_ms,
            started_ms: match task.state {
                State::Running { started_ms, .. } => Some(started_ms),
                _ => None,
            },
            ended_ms: match task.state {
                State::Ended { time_ms, .. } => Some(time_ms),
                _ => None,
            },
            payload: &task.payload,
            failure: more.map_or(&[], |more| &more.failure),
            key: task.key(),
            tenant: task.tenant(),
            tags: more.map_or(&[], |more| &more.tags),
            deadline_ms: more.and_then(|more| more.deadline_ms),
            parents: more.map_or(&[], |more| &more.parents),
            history: more.map_or(&[], |more| &more.history),
            occurrence: more.and_then(|more| more.occurrence.as_ref()).map(|of| (&*of.schedule, of.at_ms)),
            run: task.run(),
            launch: task.launch().map(|launch| &*launch.id),
        }
    }

    /// How a limit is used now; `key`: whose share.
    #[must_use]
    pub fn limit_usage(&self, name: &str, key: Option<&str>) -> Option<super::limits::Usage> {
        self.limits.usage(name, key, self.now_ms)
    }

    /// Names of the queues that are defined.
    pub fn queue_names(&self) -> impl Iterator<Item = &str> {
        self.queues.iter().filter(|queue| queue.is_defined).map(|queue| &*queue.name)
    }

    /// Why a task does not run, if it is known.
    #[must_use]
    pub fn explain(&self, task: TaskNo) -> Option<Reason> {
        let ix = self.tasks.find(task)?;
        Some(match self.tasks[ix].state {
            State::Running { .. } => Reason::Running,
            State::Ended { .. } => Reason::Ended,
            State::Blocked => self.why_blocked(ix),
            State::Scheduled => self.until(ix, false),
            State::Retrying => self.until(ix, true),
            State::Ready(place) => self.why_waiting(ix, place),
        })
    }

    fn why_blocked(&self, ix: TaskIx) -> Reason {
        let task = &self.tasks[ix];
        let more = task.more.as_deref();
        let all = more.map_or(&[][..], |more| &more.parents);
        let is_live = |number: &TaskNo| self.tasks.find(*number).is_some_and(|ix| !self.tasks[ix].is_ended());
        let first = more.and_then(|more| more.order_key.as_ref()).and_then(|key| {
            let first = self.first_in_order(key)?;
            (first != ix).then(|| (key.clone(), self.tasks[first].number))
        });
        Reason::Blocked {
            parents: all.iter().copied().filter(is_live).collect(),
            keys: more.map_or_else(Vec::new, |more| {
                let runs = more.runs.iter().filter(|edge| edge.is_awaited()).map(|edge| edge.id.clone());
                more.awaits.iter().map(|(key, _)| key.clone()).chain(runs).collect()
            }),
            order_key: first,
        }
    }

    fn until(&self, ix: TaskIx, is_retry: bool) -> Reason {
        let task = &self.tasks[ix];
        let not_before_ms = task.more.as_ref().and_then(|more| more.not_before_ms);
        let retry_ms = task.more.as_ref().and_then(|more| more.retry_ms);
        let time_ms = if is_retry { retry_ms } else { not_before_ms };
        Reason::Until { time_ms: time_ms.unwrap_or(self.now_ms), is_retry }
    }

    fn why_waiting(&self, ix: TaskIx, place: Place) -> Reason {
        let task = &self.tasks[ix];
        let queue = self.queue(task.queue);
        if !queue.is_defined {
            return Reason::QueueGone;
        }
        if !self.has_code_for(ix) {
            return Reason::Unregistered;
        }
        if queue.is_paused {
            return Reason::Paused;
        }
        if self.is_draining {
            return Reason::Draining;
        }
        match (place, task.claim().and_then(|claim| self.limits.waits_at(claim))) {
            (Place::Limit, Some((name, key, amount, available, is_protected))) => {
                Reason::Limit { name: name.into(), key: key.map(Into::into), amount, available, is_protected }
            }
            (Place::Labels, _) => Reason::Labels { anybody: self.anybody_for(ix) },
            _ => {
                let (busy, capacity) = (queue.workers.busy, queue.workers.capacity);
                Reason::Behind { tasks: queue.before(task), busy, capacity }
            }
        }
    }

    /// A queue, now and over the window.
    pub fn handle_snapshot(&mut self, now_ms: i64, queue: &str) -> Option<QueueView> {
        self.begin(now_ms);
        self.settle();
        let ix = *self.queue_names.get(queue)?;
        self.measure_capacity(ix);
        let now_ms = self.now_ms;
        let of = self.queue_mut(ix);
        let window = of.metrics.window(now_ms);
        let share = |part: u64, whole: u64, of_none: u32| {
            (part.saturating_mul(1_000)).checked_div(whole).map_or(of_none, |share| share.min(1_000) as u32)
        };
        Some(QueueView {
            name: of.name.clone(),
            is_paused: of.is_paused,
            capacity: of.workers.capacity,
            busy: of.workers.busy,
            held: of.reservations.held_count(),
            pending: of.pending,
            retrying: of.retrying,
            ready: of.ready,
            reservations: of.reservations.booked_count(),
            dispatched: window.dispatched,
            completed: window.completed,
            failed_attempts: window.failed_attempts,
            retried: window.retried,
            adherence: 1_000 - share(window.passed_better, window.dispatched, 0),
            on_time: share(window.reserved_on_time, window.reserved_starts, 1_000),
            utilisation: share(window.busy_ms, window.capacity_ms, 0),
            efficiency: share(window.useful_ms, window.capacity_ms, 0),
            wait_mean_ms: window.wait.mean_ms(),
            wait_p50_ms: window.wait.percentile_ms(50),
            wait_p90_ms: window.wait.percentile_ms(90),
            wait_p99_ms: window.wait.percentile_ms(99),
            run_p50_ms: window.run.percentile_ms(50),
            run_p99_ms: window.run.percentile_ms(99),
            worker_ms: of.metrics.worker_ms,
        })
    }
}
