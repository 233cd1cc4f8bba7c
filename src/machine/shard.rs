//! The shard: its runs, and what each record does to them.

use super::limits::Limits;
use super::messages::{Body, Message, Outbox, OwnedChild};
use super::ops::{Op, StepPhase};
use super::run::{Child, Code, End, OpenRun, Run, RunIx, RunState};
use super::timers::Timers;
use crate::record::{
    Caller, DecodeError, Lsn, NewRun, Origin, ParentClose, Record, Retry, RunNo, Sending, Seq, ShardId, Status,
    shard_of,
};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

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
    /// The run is stuck from now on.
    Stuck(RunIx),
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
    pub timers_fired: u64,
    pub messages_sent: u64,
    pub deliveries: u64,
}

/// Why a record cannot be taken back into memory.
#[derive(Debug, PartialEq, Eq)]
pub enum RestoreError {
    /// Its bytes are no record.
    Decode(DecodeError),
    /// It belongs to a run that no earlier record started.
    UnknownRun(RunNo),
    /// It starts a run whose number does not follow the one before.
    Number(RunNo),
    /// It ends a run that has ended.
    EndedTwice(RunNo),
    /// The run's journal has no room for it.
    TooLong(RunNo),
    /// It names a shard that the directory does not have.
    UnknownShard(ShardId),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestoreError::Decode(error) => error.fmt(formatter),
            RestoreError::UnknownRun(run) => write!(formatter, "no record starts run {}", run.0),
            RestoreError::Number(run) => write!(formatter, "it starts run {} out of order", run.0),
            RestoreError::EndedTwice(run) => write!(formatter, "it ends run {} a second time", run.0),
            RestoreError::TooLong(run) => write!(formatter, "the journal of run {} is longer than 4 GiB", run.0),
            RestoreError::UnknownShard(shard) => write!(formatter, "there is no shard {shard}"),
        }
    }
}

impl std::error::Error for RestoreError {}

/// The journals of ended runs are kept for `history` up to this size a shard, the newest ones.
const ENDED_JOURNAL_BYTES_MAX: usize = 4 << 20;

/// One shard. Verbs that run code are in `code`, those of clients in `commands`, messages in `commands` as well.
#[derive(Debug)]
pub struct Shard {
    pub(crate) id: ShardId,
    pub(crate) count: u16,
    pub(crate) runs: Vec<Run>,
    by_id: BTreeMap<Box<str>, RunIx>,
    next_no: u64,
    open_count: usize,
    pub(crate) timers: Timers,
    pub(crate) outbox: Outbox,
    applied: BTreeMap<ShardId, u64>,
    last: Lsn,
    ended_journals: VecDeque<RunIx>,
    ended_journal_bytes: usize,
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
            next_no: 1,
            open_count: 0,
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

    /// Takes a record back, in the order of the log. No effects: ask for them with [`Shard::restored`].
    pub fn restore(&mut self, lsn: Lsn, bytes: &[u8]) -> Result<(), RestoreError> {
        let record = Record::decode(bytes).map_err(RestoreError::Decode)?;
        let run = match (&record, record.run()) {
            (Record::Start { run, .. }, _) if run.0 != self.next_no || run.0 == u64::MAX => {
                return Err(RestoreError::Number(*run));
            }
            (Record::Start { .. }, _) | (_, None) => None,
            (_, Some(no)) => Some(self.run_of(no).ok_or(RestoreError::UnknownRun(no))?),
        };
        if let (Record::Done { run: no, .. }, Some(run)) = (&record, run)
            && self.run(run).open().is_none()
        {
            return Err(RestoreError::EndedTwice(*no));
        }
        if let (Some(no), Some(run)) = (record.run(), run)
            && !self.run(run).journal.has_room(bytes.len())
        {
            return Err(RestoreError::TooLong(no));
        }
        if let Some(unknown) = shards_named(&record).into_iter().flatten().find(|shard| shard.0 >= self.count) {
            return Err(RestoreError::UnknownShard(unknown));
        }
        self.apply(lsn, &record, bytes, run, None);
        Ok(())
    }

    /// The log has no more records: asks for the code of every open run. `clean` says that the last close was
    /// orderly, so that no body can have been cut off.
    pub fn restored(&mut self, clean: bool, effects: &mut Vec<Effect>) {
        for (index, run) in self.runs.iter_mut().enumerate() {
            if let RunState::Open(open) = &mut run.state {
                open.is_recovered = !clean;
                effects.push(Effect::Load(RunIx(index as u32)));
            }
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
        // Numbers are given out from 1 on, without gaps, and every run since the first is in memory.
        let index = usize::try_from(no.0.checked_sub(1)?).ok()?;
        (index < self.runs.len()).then_some(RunIx(index as u32))
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

    /// What a record does to the state, live (with effects) and in recovery (without).
    fn apply(
        &mut self,
        lsn: Lsn,
        record: &Record<'_>,
        bytes: &[u8],
        run: Option<RunIx>,
        mut effects: Option<&mut Vec<Effect>>,
    ) {
        debug_assert!(lsn > self.last, "records come in the order of the log");
        self.last = lsn;
        self.metrics.records += 1;
        if let Some(Origin { from, number }) = record.origin() {
            self.applied.insert(from, number);
        }
        let run = match record {
            Record::Start { run, time_ms, new, .. } => Some(self.create(*run, *time_ms, new)),
            _ => run,
        };
        let entry = run.and_then(|run| {
            let run = self.run_mut(run);
            run.last = lsn;
            // The journal of a run that has ended is complete, and its size is accounted for.
            run.open().is_some().then(|| run.journal.push(lsn, bytes))
        });
        match *record {
            Record::Start { .. } => push(&mut effects, Effect::Load(run.expect("a start makes a run"))),
            Record::StepDone { seq, .. } => self.step_done(known(run), seq),
            Record::StepFailed { seq, attempt, retry, .. } => self.step_failed(known(run), seq, attempt, retry, lsn),
            Record::StepStarted { seq, .. } => {
                if let Some(step) = self.open_mut(known(run)).and_then(|open| open.ops.step_mut(seq)) {
                    step.is_started = true;
                    step.gate = lsn;
                }
            }
            Record::Heartbeat { .. }
            | Record::TimerSet { .. }
            | Record::WaitSet { .. }
            | Record::ConditionSet { .. } => {}
            Record::TimerFired { .. } => {
                self.metrics.timers_fired += 1;
                self.wake(known(run), &mut effects);
            }
            Record::Signal { dedupe, .. } => {
                self.metrics.signals += 1;
                if let Some(open) = self.open_mut(known(run)) {
                    open.untaken += 1;
                    open.dedupe.extend(dedupe.map(Box::from));
                }
                self.wake(known(run), &mut effects);
            }
            Record::ChildSet { seq, child, .. } => {
                let parent = known(run);
                let caller = Caller { shard: self.id, run: self.run(parent).no, seq };
                let to = shard_of(child.id, self.count);
                if let Some(open) = self.open_mut(parent) {
                    open.children.push(Child { seq, id: child.id.into(), shard: to, close: child.parent_close });
                }
                self.post(to, lsn, Body::Start { caller, child: OwnedChild::from(&child) }, &mut effects);
            }
            Record::SendSet { seq, id, target, what, .. } => {
                let caller = Caller { shard: self.id, run: self.run(known(run)).no, seq };
                let body = match what {
                    Sending::Signal(name, payload) => {
                        Body::Signal { id: id.into(), target, name: name.into(), payload: payload.into() }
                    }
                    Sending::Cancel(reason) => Body::Cancel { id: id.into(), target, reason: reason.into() },
                    Sending::Watch => Body::Watch { id: id.into(), target, caller },
                };
                self.post(shard_of(id, self.count), lsn, body, &mut effects);
            }
            Record::ChildDone { seq, .. } => {
                if let Some(open) = self.open_mut(known(run)) {
                    open.children.retain(|child| child.seq != seq);
                }
                self.wake(known(run), &mut effects);
            }
            Record::Cancel { .. } => {
                if let Some(open) = self.open_mut(known(run)) {
                    open.is_cancelled = true;
                }
                self.wake(known(run), &mut effects);
            }
            Record::Resumed { .. } => self.unpause(known(run)),
            Record::Done { status, time_ms, payload, .. } => {
                self.end(known(run), End { status, time_ms, lsn, payload: payload.into() }, &mut effects);
            }
            Record::Watched { caller, .. } => {
                let watched = known(run);
                match &mut self.run_mut(watched).state {
                    RunState::Open(open) => open.watchers.push(caller),
                    RunState::Ended(end) => {
                        let (status, payload) = (end.status, end.payload.clone());
                        self.answer(caller, lsn, status, payload, &mut effects);
                    }
                }
            }
            Record::Answered { caller, status, payload, .. } => {
                self.answer(caller, lsn, status, payload.into(), &mut effects);
            }
            Record::Received { .. } => {}
        }
        if let (Some(run), Some(entry), true) = (run, entry, is_passed(record)) {
            self.pass(run, entry);
        }
    }

    /// The entry is none that code could be handed: code that waits at it, or has just asked for it in its last turn, need
    /// not come to get past it.
    fn pass(&mut self, run: RunIx, entry: u32) {
        let target = self.run_mut(run);
        let end = target.journal.end();
        if let Some(open) = target.open_mut()
            && open.cursor == entry
            && open.is_waiting()
            && !open.is_replaying()
        {
            open.cursor = end;
        }
    }

    fn create(&mut self, no: RunNo, time_ms: i64, new: &NewRun<'_>) -> RunIx {
        let run = RunIx(u32::try_from(self.runs.len()).expect("runs in memory are bounded far below 2^32"));
        let watchers = new.parent.iter().map(|(caller, _)| *caller).collect();
        self.runs.push(Run {
            no,
            id: new.id.into(),
            kind: new.kind.into(),
            version: new.version,
            key_root: new.key_root,
            created_ms: time_ms,
            deadline_ms: new.deadline_ms,
            parent: new.parent,
            last: Lsn::NONE,
            journal: super::journal::Journal::default(),
            state: RunState::Open(Box::new(OpenRun { watchers, ..OpenRun::default() })),
        });
        self.by_id.insert(new.id.into(), run);
        self.next_no = no.0 + 1;
        self.open_count += 1;
        self.metrics.runs_started += 1;
        if let Some(deadline_ms) = new.deadline_ms {
            self.timers.set(deadline_ms, run, Seq(0));
        }
        run
    }

    fn step_done(&mut self, run: RunIx, seq: Seq) {
        self.metrics.steps_done += 1;
        let Some(open) = self.open_mut(run) else { return };
        open.paused.remove(&seq);
        if let Some(step) = open.ops.step_mut(seq) {
            step.phase = StepPhase::Settled;
            self.timers.unwatch(run, seq);
        }
    }

    fn step_failed(&mut self, run: RunIx, seq: Seq, attempt: u32, retry: Retry, lsn: Lsn) {
        self.metrics.attempts_failed += 1;
        let Some(open) = self.open_mut(run) else { return };
        match retry {
            Retry::At(_) => open.paused.remove(&seq),
            Retry::Paused => open.paused.insert(seq),
        };
        let Some(step) = open.ops.step_mut(seq) else { return };
        step.attempt = attempt.saturating_add(1);
        step.is_started = false;
        step.gate = lsn;
        step.phase = match retry {
            Retry::At(at_ms) => StepPhase::Backoff(at_ms),
            Retry::Paused => StepPhase::Paused,
        };
        self.timers.unwatch(run, seq);
        if let Retry::At(at_ms) = retry {
            self.timers.set(at_ms, run, seq);
        }
    }

    /// Paused steps of a live run are as good as new: [`Shard::resume`] begins them. A run whose code is in a replay, or
    /// not in memory, meets the record on its way.
    fn unpause(&mut self, run: RunIx) {
        let target = self.run_mut(run);
        let end = target.journal.end();
        let Some(open) = target.open_mut() else { return };
        open.paused.clear();
        if let Some(replay) = &mut open.replay {
            replay.end = end;
            return;
        }
        open.ops.renew_paused();
    }

    fn end(&mut self, run: RunIx, end: End, effects: &mut Option<&mut Vec<Effect>>) {
        let (lsn, status) = (end.lsn, end.status);
        let deadline_ms = self.run(run).deadline_ms;
        let RunState::Open(open) = std::mem::replace(&mut self.run_mut(run).state, RunState::Ended(end)) else {
            unreachable!("a run ends once: every caller looks first");
        };
        self.open_count -= 1;
        if status == Status::Completed {
            self.metrics.runs_completed += 1;
        } else {
            self.metrics.runs_ended_otherwise += 1;
        }
        if let Some(deadline_ms) = deadline_ms {
            self.timers.unset(deadline_ms, run, Seq(0));
        }
        for (seq, op) in open.ops.iter() {
            self.disarm(run, seq, op);
        }
        for caller in &open.watchers {
            let payload = self.run(run).end().map(|end| end.payload.clone()).unwrap_or_default();
            self.answer(*caller, lsn, status, payload, effects);
        }
        let parent = self.run(run).no;
        for child in open.children.iter().filter(|child| child.close != ParentClose::Abandon) {
            let caller = Caller { shard: self.id, run: parent, seq: child.seq };
            let body = Body::Close { id: child.id.clone(), caller, policy: child.close };
            self.post(child.shard, lsn, body, effects);
        }
        self.keep_journal(run);
        let was_loaded = !matches!(open.code, Code::Absent);
        push(effects, Effect::Ended { run, was_loaded });
    }

    /// Takes an operation's timers back.
    pub(crate) fn disarm(&mut self, run: RunIx, seq: Seq, op: &Op) {
        match op {
            Op::Step(step) => {
                self.timers.unwatch(run, seq);
                if let StepPhase::Backoff(at_ms) = step.phase {
                    self.timers.unset(at_ms, run, seq);
                }
            }
            Op::Timer { .. } | Op::Wait { .. } | Op::Condition { .. } | Op::Child => {
                if let Some(due_ms) = op.due_ms() {
                    self.timers.unset(due_ms, run, seq);
                }
            }
        }
    }

    /// Keeps the newest journals of ended runs within their bound.
    fn keep_journal(&mut self, run: RunIx) {
        self.ended_journal_bytes += self.run(run).journal.end() as usize;
        self.ended_journals.push_back(run);
        while self.ended_journal_bytes > ENDED_JOURNAL_BYTES_MAX {
            let Some(oldest) = self.ended_journals.pop_front() else { break };
            let journal = std::mem::take(&mut self.run_mut(oldest).journal);
            self.ended_journal_bytes -= journal.end() as usize;
        }
    }

    fn answer(
        &mut self,
        caller: Caller,
        lsn: Lsn,
        status: Status,
        payload: Box<[u8]>,
        effects: &mut Option<&mut Vec<Effect>>,
    ) {
        self.post(caller.shard, lsn, Body::Ended { run: caller.run, seq: caller.seq, status, payload }, effects);
    }

    fn post(&mut self, to: ShardId, lsn: Lsn, body: Body, effects: &mut Option<&mut Vec<Effect>>) {
        self.metrics.messages_sent += 1;
        let message = self.outbox.post(self.id, to, lsn, body);
        push(effects, Effect::Post(message));
    }

    fn wake(&mut self, run: RunIx, effects: &mut Option<&mut Vec<Effect>>) {
        if self.run(run).open().is_some_and(OpenRun::is_waiting) {
            push(effects, Effect::Wake(run));
        }
    }
}

fn push(effects: &mut Option<&mut Vec<Effect>>, effect: Effect) {
    if let Some(effects) = effects {
        effects.push(effect);
    }
}

/// Whether the walk of live code goes past a record without a look: what it says was done when it was applied.
fn is_passed(record: &Record<'_>) -> bool {
    match record {
        Record::StepFailed { .. }
        | Record::StepStarted { .. }
        | Record::TimerSet { .. }
        | Record::WaitSet { .. }
        | Record::ConditionSet { .. }
        | Record::ChildSet { .. }
        | Record::SendSet { .. }
        | Record::Heartbeat { .. }
        | Record::Resumed { .. }
        | Record::Watched { .. } => true,
        Record::Start { .. }
        | Record::StepDone { .. }
        | Record::TimerFired { .. }
        | Record::Signal { .. }
        | Record::ChildDone { .. }
        | Record::Cancel { .. }
        | Record::Done { .. }
        | Record::Answered { .. }
        | Record::Received { .. } => false,
    }
}

/// The shards that a record sends something to, or has something from.
fn shards_named(record: &Record<'_>) -> [Option<ShardId>; 2] {
    let caller = match record {
        Record::Start { new, .. } => new.parent.map(|(caller, _)| caller.shard),
        Record::Watched { caller, .. } | Record::Answered { caller, .. } => Some(caller.shard),
        Record::StepDone { .. }
        | Record::StepFailed { .. }
        | Record::StepStarted { .. }
        | Record::Heartbeat { .. }
        | Record::TimerSet { .. }
        | Record::TimerFired { .. }
        | Record::WaitSet { .. }
        | Record::ConditionSet { .. }
        | Record::Signal { .. }
        | Record::ChildSet { .. }
        | Record::SendSet { .. }
        | Record::ChildDone { .. }
        | Record::Cancel { .. }
        | Record::Resumed { .. }
        | Record::Done { .. }
        | Record::Received { .. } => None,
    };
    [caller, record.origin().map(|origin| origin.from)]
}

fn known(run: Option<RunIx>) -> RunIx {
    run.expect("the caller found the run of the record")
}
