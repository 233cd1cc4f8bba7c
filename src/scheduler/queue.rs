//! A queue: its lines, its workers and its counts.

use super::config::{OnFull, QueueConfig};
use super::fair::FairLine;
use super::lane::Lane;
use super::learn::Learned;
use super::metrics::Metrics;
use super::order::{LINES, OrderConfig, RELIEF_PASSES, RELIEF_WAIT_MS, Score};
use super::reserve::Reservations;
use super::scaling::Scaling;
use super::task::{KindIx, Place, State, Table, Task, TaskIx};
use super::workers::Workers;
use crate::record::{Class, TaskNo};
use std::collections::{BTreeMap, BTreeSet};

/// Labels that tasks need, sorted.
pub(super) type Labels = Box<[(Box<str>, Box<str>)]>;

/// One queue.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) name: Box<str>,
    pub(super) config: QueueConfig,
    /// A queue that recovered tasks name but nobody defined runs nothing.
    pub(super) is_defined: bool,
    pub(super) is_paused: bool,
    /// Slots that somebody set while it ran.
    pub(super) resized: Option<u32>,
    /// Fewest and most slots that somebody set while it ran, for when it follows its load.
    pub(super) bounds_set: Option<(u32, u32)>,
    pub(super) kinds: Vec<Kind>,
    kind_names: BTreeMap<Box<str>, KindIx>,
    pub(super) learned: Learned,
    plain: [Lane; 4],
    by_deadline: [BTreeSet<(i64, i64, TaskNo, TaskIx)>; 4],
    fair: [FairLine; 4],
    /// A bit for each line that has somebody.
    filled: u16,
    /// How many dispatches passed each line by while it had somebody.
    passed: [u32; LINES],
    pub(super) reservations: Reservations,
    pub(super) workers: Workers,
    /// `None`: somebody says how many slots there are.
    pub(super) scaling: Option<Scaling>,
    pub(super) label_waits: BTreeMap<Labels, BTreeSet<(TaskNo, TaskIx)>>,
    /// Ready tasks that may give way, by class; kept only for queues that drop.
    droppable: [BTreeSet<(TaskNo, TaskIx)>; 4],
    /// Accepted, not running, not over.
    pub(super) pending: [u64; 4],
    pub(super) retrying: [u64; 4],
    /// In a line, at a limit, or waiting for labels.
    pub(super) ready: u64,
    pub(super) is_dirty: bool,
    pub(super) metrics: Metrics,
}

/// A definition's name within a queue, and what was learned about it.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) name: Box<str>,
    pub(super) learned: Learned,
}

/// A line of a queue: a class, and which of its three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LineNo(usize);

const PLAIN: usize = 0;
const DEADLINE: usize = 1;
const FAIR: usize = 2;

impl LineNo {
    fn of(class: Class, place: Place) -> Option<LineNo> {
        let which = match place {
            Place::Plain => PLAIN,
            Place::Deadline { .. } => DEADLINE,
            Place::Fair { .. } => FAIR,
            Place::Due | Place::Limit | Place::Labels => return None,
        };
        Some(LineNo(usize::from(class.code()) * 3 + which))
    }

    fn class(self) -> usize {
        self.0 / 3
    }
}

impl Queue {
    pub(super) fn new(name: &str, config: QueueConfig, is_defined: bool, window_ms: i64) -> Queue {
        let scaling = config.scale.map(Scaling::new);
        let slots = scaling.as_ref().map_or(config.concurrency, Scaling::provided);
        let workers = Workers::new(if is_defined { slots } else { 0 });
        Queue {
            name: name.into(),
            config,
            is_defined,
            is_paused: false,
            resized: None,
            bounds_set: None,
            kinds: Vec::new(),
            kind_names: BTreeMap::new(),
            learned: Learned::default(),
            plain: Default::default(),
            by_deadline: Default::default(),
            fair: Default::default(),
            filled: 0,
            passed: [0; LINES],
            reservations: Reservations::default(),
            workers,
            scaling,
            label_waits: BTreeMap::new(),
            droppable: Default::default(),
            pending: [0; 4],
            retrying: [0; 4],
            ready: 0,
            is_dirty: false,
            metrics: Metrics::new(window_ms),
        }
    }

    pub(super) fn kind(&mut self, name: &str) -> KindIx {
        if let Some(kind) = self.kind_names.get(name) {
            return *kind;
        }
        let ix = KindIx(u16::try_from(self.kinds.len()).expect("a queue has fewer than 65,536 kinds"));
        self.kinds.push(Kind { name: name.into(), learned: Learned::default() });
        self.kind_names.insert(name.into(), ix);
        ix
    }

    /// Whether `kind` would still find a number for a name.
    pub(super) fn knows_or_has_room_for(&self, kind: &str) -> bool {
        self.kinds.len() < usize::from(u16::MAX) || self.kind_names.contains_key(kind)
    }

    pub(super) fn pending_total(&self) -> u64 {
        self.pending.iter().sum()
    }

    /// A tag in the fair line of a class, for a task of a tenant.
    pub(super) fn fair_tag(&mut self, class: Class, tenant: Option<&str>) -> u64 {
        let tenant = tenant.unwrap_or("");
        let weights = self.config.fair.as_ref();
        let weight = weights.and_then(|weights| weights.get(tenant)).copied().unwrap_or(100);
        self.fair[usize::from(class.code())].tag(tenant, weight)
    }

    /// Nobody who stands in a fair line has had anything yet.
    pub(super) fn forget_shares(&mut self) {
        self.fair = Default::default();
    }

    /// Puts a ready task where its state says.
    pub(super) fn enter(&mut self, ix: TaskIx, task: &Task) {
        let State::Ready(place) = task.state else { unreachable!("only a ready task stands in a line") };
        let class = usize::from(task.class.code());
        self.ready += 1;
        match place {
            Place::Plain => self.plain[class].insert(task.number, ix),
            Place::Deadline { order_ms, latest } => {
                self.by_deadline[class].insert((order_ms, latest.start_ms, task.number, ix));
            }
            Place::Fair { tag } => self.fair[class].insert(tag, task.number, ix),
            Place::Due => self.reservations.due(ix, task),
            Place::Labels => {
                self.label_waits.entry(task.labels().into()).or_default().insert((task.number, ix));
            }
            Place::Limit => {}
        }
        if let Some(line) = LineNo::of(task.class, place)
            && self.filled & 1 << line.0 == 0
        {
            self.filled |= 1 << line.0;
            self.passed[line.0] = 0;
        }
        if self.drops() && place != Place::Due {
            self.droppable[class].insert((task.number, ix));
        }
    }

    /// Takes a ready task out of where its state says.
    pub(super) fn leave(&mut self, ix: TaskIx, task: &Task) {
        let State::Ready(place) = task.state else { unreachable!("only a ready task stands in a line") };
        let class = usize::from(task.class.code());
        self.ready -= 1;
        let is_empty = match place {
            Place::Plain => {
                self.plain[class].remove(task.number);
                self.plain[class].is_empty()
            }
            Place::Deadline { order_ms, latest } => {
                self.by_deadline[class].remove(&(order_ms, latest.start_ms, task.number, ix));
                self.by_deadline[class].is_empty()
            }
            Place::Fair { tag } => {
                self.fair[class].remove(tag, task.number, ix);
                self.fair[class].len() == 0
            }
            Place::Due => {
                self.reservations.not_due(ix, task);
                false
            }
            Place::Labels => {
                self.leave_label_wait(ix, task);
                false
            }
            Place::Limit => false,
        };
        if is_empty && let Some(line) = LineNo::of(task.class, place) {
            self.filled &= !(1 << line.0);
        }
        if self.drops() {
            self.droppable[class].remove(&(task.number, ix));
        }
    }

    fn leave_label_wait(&mut self, ix: TaskIx, task: &Task) {
        if let Some(waiting) = self.label_waits.get_mut(task.labels()) {
            waiting.remove(&(task.number, ix));
            if waiting.is_empty() {
                self.label_waits.remove(task.labels());
            }
        }
    }

    fn drops(&self) -> bool {
        matches!(self.config.on_full, OnFull::DropOldest | OnFull::DropLowest)
    }

    /// Who gives way to a task of this class.
    pub(super) fn who_gives_way(&self, class: Class) -> Option<TaskIx> {
        match self.config.on_full {
            OnFull::Wait | OnFull::Reject => None,
            OnFull::DropOldest => self.droppable[3].first().map(|(_, ix)| *ix),
            OnFull::DropLowest => {
                let below = usize::from(class.code()) + 1..4;
                below.rev().find_map(|lower| self.droppable[lower].last()).map(|(_, ix)| *ix)
            }
        }
    }

    /// The line that has been passed by for too long, if there is one: see `order`.
    pub(super) fn relieved(&self, tasks: &Table, now_ms: i64) -> Option<TaskIx> {
        if self.passed.iter().all(|passed| *passed < RELIEF_PASSES) {
            return None;
        }
        let lines = (0..LINES).map(LineNo).filter(|line| self.filled & 1 << line.0 != 0);
        let overdue = lines.filter(|line| self.passed[line.0] >= RELIEF_PASSES).filter(|line| {
            let head = &tasks[self.head(*line)];
            now_ms.saturating_sub(head.eligible_ms.unwrap_or(now_ms)) >= RELIEF_WAIT_MS
        });
        overdue.max_by_key(|line| (self.passed[line.0], LINES - line.0)).map(|line| self.head(line))
    }

    /// The first task of the line that is worth most now.
    pub(super) fn best(&self, tasks: &Table, order: &OrderConfig, now_ms: i64) -> Option<TaskIx> {
        if self.filled.is_power_of_two() {
            return Some(self.head(LineNo(self.filled.trailing_zeros() as usize)));
        }
        let mut best: Option<(Score, Class, TaskNo, TaskIx)> = None;
        let mut rest = self.filled;
        while rest != 0 {
            let head = self.head(LineNo(rest.trailing_zeros() as usize));
            rest &= rest - 1;
            let task = &tasks[head];
            let latest = match task.state {
                State::Ready(Place::Deadline { latest, .. }) => Some(latest),
                _ => None,
            };
            let wait_ms = now_ms.saturating_sub(task.eligible_ms.unwrap_or(now_ms));
            let score = order.score(task.class, wait_ms, latest, now_ms);
            let is_better = best.is_none_or(|(of, class, number, _)| {
                score > of || score == of && (task.class, task.number) < (class, number)
            });
            if is_better {
                best = Some((score, task.class, task.number, head));
            }
        }
        best.map(|(.., ix)| ix)
    }

    fn head(&self, line: LineNo) -> TaskIx {
        let class = line.class();
        let head = match line.0 % 3 {
            PLAIN => self.plain[class].first().map(|(_, ix)| ix),
            DEADLINE => self.by_deadline[class].first().map(|(.., ix)| *ix),
            _ => self.fair[class].first(),
        };
        head.expect("a filled line has a first task")
    }

    /// Counts a dispatch: of a line, or of none if a reserved start went.
    pub(super) fn dispatched(&mut self, class: Class, place: Place) {
        let own = LineNo::of(class, place).map(|line| line.0);
        if let Place::Fair { tag } = place {
            self.fair[usize::from(class.code())].dispatched(tag);
        }
        let mut others = self.filled;
        if let Some(own) = own {
            self.passed[own] = 0;
            others &= !(1 << own);
        }
        while others != 0 {
            let line = others.trailing_zeros() as usize;
            self.passed[line] = self.passed[line].saturating_add(1);
            others &= others - 1;
        }
    }

    /// How many of the same line go before a task.
    pub(super) fn before(&self, task: &Task) -> usize {
        let class = usize::from(task.class.code());
        match task.state {
            State::Ready(Place::Plain) => self.plain[class].before(task.number),
            State::Ready(Place::Deadline { order_ms, latest }) => {
                self.by_deadline[class].range(..(order_ms, latest.start_ms, task.number, TaskIx(0))).count()
            }
            State::Ready(Place::Fair { tag }) => self.fair[class].before(tag, task.number),
            _ => 0,
        }
    }

    /// Whether a better class than this one has somebody in a line.
    pub(super) fn better_waits(&self, class: Class) -> bool {
        self.filled & ((1 << (usize::from(class.code()) * 3)) - 1) != 0
    }

    /// Who waits for a slot or for the next attempt, by class. Those who wait for a limit or for labels would not start
    /// sooner with more slots.
    pub(super) fn backlog(&self) -> [u64; 4] {
        std::array::from_fn(|class| {
            let in_lines = self.plain[class].len() + self.by_deadline[class].len() + self.fair[class].len();
            in_lines as u64 + self.retrying[class]
        })
    }

    /// Everybody in a line of a class.
    #[cfg(test)]
    pub(super) fn in_lines(&self, class: usize) -> impl Iterator<Item = TaskIx> {
        let deadline = self.by_deadline[class].iter().map(|(.., ix)| *ix);
        self.plain[class].iter().chain(deadline).chain(self.fair[class].iter())
    }
}
