//! The shard: its runs, and the one way in which something is recorded about them.

use super::index::Index;
use super::limits::Limits;
use super::messages::{Message, Outbox};
use super::run::{OpenRun, Run, RunIx};
use super::timers::Timers;
use crate::record::{Lsn, Record, RunNo, Seq, ShardId};
use std::collections::{BTreeMap, VecDeque};

/// Takes records and hands out their numbers.
pub trait Sink {
    /// Appends an encoded record of the shard. Not durable on return.
    fn append(&mut self, record: &[u8]) -> Lsn;
}

/// What a verb works with: the time, where records go, where effects go.
pub struct Work<'a> {
    /// Now, in ms since 1970.
    pub now_ms: i64,
    /// Where records go.
    pub log: &'a mut dyn Sink,
    /// What the caller has to do next, in order.
    pub effects: &'a mut Vec<Effect>,
}

/// What the machine asks of whoever drives it.
#[derive(Debug)]
pub enum Effect {
    /// The run's code is in no host's memory and should be: call [`Shard::load`] when it is.
    Load(RunIx),
    /// The run's code waits and has something to look at.
    Wake(RunIx),
    /// The body of a step may run once `gate` is durable.
    Attempt {
        /// The run.
        run: RunIx,
        /// The step.
        seq: Seq,
        /// What must be durable first.
        gate: Lsn,
    },
    /// The limit of a running attempt is over.
    Overdue {
        /// The run.
        run: RunIx,
        /// The step.
        seq: Seq,
        /// The lease of the attempt.
        lease: u32,
        /// `true`: the attempt's own limit. `false`: it was silent for too long.
        is_timeout: bool,
    },
    /// The run ended; `was_loaded` says that its code was in a host's memory and did not end it itself.
    Ended {
        /// The run.
        run: RunIx,
        /// Whether a host has to drop its code.
        was_loaded: bool,
    },
    /// The run's code is to be dropped, for a new try: a `Load` follows.
    Dropped(RunIx),
    /// The scheduler has taken in what stands for the run, or refuses it: the lines of why.
    Admitted {
        /// The run.
        run: RunIx,
        /// `None`: taken in.
        refusal: Option<Box<[u8]>>,
    },
    /// The run is stuck from now on.
    Stuck(RunIx),
    /// An update of the run has its answer.
    UpdateAnswered {
        /// The run.
        run: RunIx,
        /// Its number.
        number: u32,
    },
    /// The journal of the run has come to half of one of its bounds.
    JournalHalf(RunIx),
    /// A message for another shard, or for this one.
    Post(Message),
}

/// Counters since the shard was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say what is counted")]
pub struct Metrics {
    pub records: u64,
    pub runs_started: u64,
    pub runs_completed: u64,
    pub runs_ended_otherwise: u64,
    pub steps_done: u64,
    pub attempts_failed: u64,
    pub signals: u64,
    pub updates: u64,
    pub timers_fired: u64,
    pub messages_sent: u64,
    pub deliveries: u64,
}

/// One shard. Verbs of running code are in `code`, `walk` and `attempts`, those of clients and messages in `commands`,
/// what records do to it in `apply`.
#[derive(Debug)]
pub struct Shard {
    pub(crate) id: ShardId,
    pub(crate) count: u16,
    pub(crate) runs: Vec<Run>,
    pub(super) by_id: BTreeMap<Box<str>, RunIx>,
    pub(super) by_no: BTreeMap<RunNo, RunIx>,
    /// Places in `runs` that are free.
    pub(super) vacant: Vec<RunIx>,
    /// Runs that have changed since the last checkpoint began.
    pub(super) changed: Vec<RunIx>,
    /// Which checkpoint will have what changes now, from 1.
    pub(super) round: u64,
    /// `metrics.records` when the state was last taken.
    pub(super) records_saved: u64,
    /// Ended runs are stored and then forgotten.
    pub(super) has_store: bool,
    pub(super) next_no: u64,
    pub(super) open_count: usize,
    pub(super) index: Index,
    /// The latest start so far.
    pub(super) newest_ms: i64,
    pub(crate) timers: Timers,
    pub(crate) outbox: Outbox,
    pub(super) applied: BTreeMap<ShardId, u64>,
    pub(super) last: Lsn,
    /// Runs that have ended, the oldest first, each with the bytes of its journal: those whose journals are here.
    pub(super) ended_journals: VecDeque<(RunNo, u32)>,
    pub(super) ended_journal_bytes: usize,
    scratch: Vec<u8>,
    pub(crate) limits: Limits,
    pub(crate) metrics: Metrics,
}

impl Shard {
    /// An empty shard, one of `count`.
    #[must_use]
    pub fn new(id: ShardId, count: u16) -> Self {
        Shard {
            id,
            count,
            runs: Vec::new(),
            by_id: BTreeMap::new(),
            by_no: BTreeMap::new(),
            vacant: Vec::new(),
            changed: Vec::new(),
            round: 1,
            records_saved: 0,
            has_store: false,
            next_no: 1,
            open_count: 0,
            index: Index::default(),
            newest_ms: i64::MIN,
            timers: Timers::default(),
            outbox: Outbox::default(),
            applied: BTreeMap::new(),
            last: Lsn::NONE,
            ended_journals: VecDeque::new(),
            ended_journal_bytes: 0,
            scratch: Vec::new(),
            limits: Limits::default(),
            metrics: Metrics::default(),
        }
    }

    /// Number of the newest record of the shard.
    #[must_use]
    pub fn last(&self) -> Lsn {
        self.last
    }

    /// Runs that have not ended.
    #[must_use]
    pub fn open_count(&self) -> usize {
        self.open_count
    }

    /// Runs in memory; their indexes are below it.
    #[must_use]
    pub fn run_count(&self) -> u32 {
        self.runs.len() as u32
    }

    /// Counters since the shard was opened.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.metrics
    }

    /// When something falls due next, in ms since 1970.
    #[must_use]
    pub fn next_due_ms(&self) -> Option<i64> {
        self.timers.next_due_ms()
    }

    /// The last message of a sender that has a record here.
    #[must_use]
    pub fn applied_from(&self, sender: ShardId) -> u64 {
        self.applied.get(&sender).copied().unwrap_or(0)
    }

    /// A receiver has everything up to `number` on disk. `false`: that was known.
    pub fn acknowledge(&mut self, receiver: ShardId, number: u64) -> bool {
        self.outbox.acknowledge(receiver, number)
    }

    /// Every message to a receiver without an acknowledgement, in order.
    pub fn unacknowledged_to(&self, receiver: ShardId) -> impl Iterator<Item = Message> {
        self.outbox.waiting_for(self.id, receiver)
    }

    /// Every message without an acknowledgement, in order: to be sent again after an open.
    pub fn unacknowledged(&self) -> impl Iterator<Item = Message> {
        self.outbox.waiting(self.id)
    }

    pub(crate) fn run_of(&self, no: RunNo) -> Option<RunIx> {
        self.by_no.get(&no).copied()
    }

    /// Finds a place in memory for a run.
    pub(super) fn place(&mut self, run: Run) -> RunIx {
        let no = run.no;
        let place = match self.vacant.pop() {
            Some(place) => {
                *self.run_mut(place) = run;
                place
            }
            None => {
                self.runs.push(run);
                RunIx(u32::try_from(self.runs.len() - 1).expect("runs in memory are bounded far below 2^32"))
            }
        };
        self.by_no.insert(no, place);
        place
    }

    pub(crate) fn latest_of(&self, id: &str) -> Option<RunIx> {
        self.by_id.get(id).copied()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = (&str, RunIx)> {
        self.by_id.iter().map(|(id, run)| (&**id, *run))
    }

    pub(crate) fn next_run_no(&self) -> RunNo {
        RunNo(self.next_no)
    }

    pub(crate) fn run(&self, run: RunIx) -> &Run {
        &self.runs[run.0 as usize]
    }

    pub(crate) fn run_mut(&mut self, run: RunIx) -> &mut Run {
        &mut self.runs[run.0 as usize]
    }

    pub(crate) fn open_mut(&mut self, run: RunIx) -> Option<&mut OpenRun> {
        self.run_mut(run).open_mut()
    }

    /// Appends a record and does to the state what it says: the one way in which anything recorded happens. The run of
    /// the record may have ended by it: at a bound of its journal.
    pub(crate) fn commit(&mut self, work: &mut Work<'_>, run: Option<RunIx>, record: &Record<'_>) -> Lsn {
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        record.encode(&mut bytes);
        let lsn = work.log.append(&bytes);
        let before = run.map(|run| self.journal_size(run));
        self.apply(lsn, record, &bytes, run, Some(work.effects));
        self.scratch = bytes;
        if let (Some(run), Some(before)) = (run, before) {
            self.bound_journal(work, run, before);
        }
        lsn
    }
}
