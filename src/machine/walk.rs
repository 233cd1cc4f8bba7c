//! The walk along the journal: what running code is handed, one entry a turn, live and in replay alike.

use super::ops::{Op, StepPhase};
use super::run::{Code, OpenRun, Replay, RunIx};
use super::shard::{Shard, Work};
use super::stuck::Operation;
use crate::record::{Record, Retry, Seq, Status};

/// What the code is handed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// What happened.
    pub kind: DeliveryKind,
    /// The operation that it settles; 0 for the start and for a cancel.
    pub seq: Seq,
    /// Nothing is recorded behind it: the host need not come back at the end of the turn unless it is woken, or the code
    /// waits for nothing that could be recorded.
    pub is_last: bool,
}

/// What happened to an operation, or to the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryKind {
    /// The function is to be called.
    Start,
    /// The step has a result.
    StepCompleted,
    /// The step has failed for good.
    StepFailed,
    /// The sleep is over.
    TimerFired,
    /// The wait has its signal.
    SignalTaken,
    /// The wait's time is over.
    WaitTimedOut,
    /// The condition's time is over.
    ConditionTimedOut,
    /// The child, or the watched workflow, ended.
    ChildEnded,
    /// Somebody asked the run to end: everything open is withdrawn, save what is shielded.
    Cancelled,
    /// An update was accepted: its handler is to be called. `seq` is its number.
    UpdateAccepted,
    /// An object was called. `seq` is the number of the call.
    CallArrived,
}

/// What the walk does with a journal entry.
enum Walk {
    Pass,
    Deliver(DeliveryKind, Seq, i64),
    Buffer,
    Unasked,
    Unanswered(u32),
}

impl Shard {
    /// Notes that a host has the run's code, about to be called: the walk begins with the first record. `true`: what
    /// was recorded before is replayed first. `None`: the run has ended meanwhile, or a host has its code already.
    pub fn load(&mut self, run: RunIx) -> Option<bool> {
        let (skip_to, before, turn_ms) = self.replay_base(run).unwrap_or((0, 0, 0));
        let target = self.run_mut(run);
        if !matches!(target.open()?.code, Code::Absent) || target.open()?.is_held || target.open()?.is_queued {
            return None;
        }
        let end = target.journal.end();
        // That it was let in is nothing that code could have gone past, nor are calls that it has not been handed.
        let is_nothing = |record: &Record<'_>| {
            matches!(record, Record::Activated { .. } | Record::Called { .. } | Record::CallDone { seq: None, .. })
        };
        let is_new = target.journal.entries().skip(1).all(|(_, entry)| is_nothing(&entry.record));
        let is_recovered = target.open()?.is_recovered;
        let replay = (is_recovered || !is_new).then(|| {
            let mut recorded = Vec::new();
            for (position, entry) in target.journal.entries_from(skip_to) {
                if let Some((seq, _)) = Operation::of(&entry.record).filter(|(seq, _)| seq.0 > before) {
                    let index = (seq.0 - before) as usize - 1;
                    if recorded.len() <= index {
                        recorded.resize(index + 1, 0);
                    }
                    if recorded[index] == 0 {
                        recorded[index] = position + 1;
                    }
                }
            }
            Box::new(Replay { end, before, recorded })
        });
        let open = target.open_mut()?;
        let is_replay = replay.is_some();
        open.replay = replay;
        (open.skip_to, open.asked, open.turn_ms) = (skip_to, before, turn_ms);
        open.code = Code::Idle;
        Some(is_replay)
    }

    /// The code can go no further: hands out the next entry that concerns it, if there is one. A run whose code asked
    /// for less than was recorded gets stuck here.
    pub fn quiescent(&mut self, work: &mut Work<'_>, run: RunIx) -> Option<Delivery> {
        let open = self.open_mut(run)?;
        match open.code {
            Code::Idle | Code::InTurn | Code::InLastTurn => open.code = Code::Idle,
            Code::Absent | Code::Stuck(_) => return None,
        }
        loop {
            let target = self.run_mut(run);
            let end = target.journal.end();
            let open = target.open_mut()?;
            if open.replay.as_ref().is_some_and(|replay| open.cursor >= replay.end) && !self.end_replay(work, run) {
                return None;
            }
            let open = self.open_mut(run)?;
            if open.cursor >= end {
                return None;
            }
            let position = open.cursor;
            match self.walk(run, position) {
                Walk::Pass => {}
                Walk::Buffer => self.open_mut(run)?.buffered.push_back(position),
                Walk::Unasked => {
                    self.unasked(work, run, position);
                    return None;
                }
                Walk::Unanswered(number) => {
                    self.unanswered(work, run, number);
                    return None;
                }
                Walk::Deliver(kind, seq, time_ms) => return self.hand_out(run, position, kind, seq, time_ms),
            }
        }
    }

    /// Hands out an entry; the cursor is behind it.
    fn hand_out(&mut self, run: RunIx, position: u32, kind: DeliveryKind, seq: Seq, time_ms: i64) -> Option<Delivery> {
        self.settle(run, kind, seq);
        let target = self.run_mut(run);
        let end = target.journal.end();
        let open = target.open_mut()?;
        open.delivered = position;
        open.turn_ms = open.turn_ms.max(time_ms);
        let is_last = open.cursor >= end && !open.is_replaying();
        open.code = if is_last { Code::InLastTurn } else { Code::InTurn };
        self.metrics.deliveries += 1;
        Some(Delivery { kind, seq, is_last })
    }

    /// A step's body returned, and its result is handed to the code as by [`Shard::quiescent`] if it is what comes next:
    /// the code must have come to rest. `None`: the lease is dead, and nothing has changed; else whether it was handed out.
    pub fn complete_next(
        &mut self,
        work: &mut Work<'_>,
        run: RunIx,
        seq: Seq,
        lease: u32,
        payload: &[u8],
    ) -> Option<bool> {
        let is_next = self.has_seen_all(run) && self.fits(payload);
        if !self.complete(work, run, seq, lease, payload) {
            return None;
        }
        Some(is_next && self.hand_out_result(run, seq, work.now_ms).is_some())
    }

    /// Hands out the result that was just recorded behind everything that the code has seen.
    fn hand_out_result(&mut self, run: RunIx, seq: Seq, time_ms: i64) -> Option<Delivery> {
        let target = self.run_mut(run);
        let end = target.journal.end();
        let open = target.open_mut()?;
        let position = std::mem::replace(&mut open.cursor, end);
        self.hand_out(run, position, DeliveryKind::StepCompleted, seq, time_ms)
    }

    /// Whether the code was handed everything that is recorded.
    #[must_use]
    #[inline]
    pub fn has_seen_all(&self, run: RunIx) -> bool {
        let target = self.run(run);
        target.open().is_some_and(|open| open.cursor == target.journal.end() && !open.is_replaying())
    }

    /// Looks at the entry at the cursor, and moves the cursor behind it.
    fn walk(&mut self, run: RunIx, position: u32) -> Walk {
        let target = &mut self.runs[run.0 as usize];
        let (entry, next) = target.journal.read(position);
        let super::run::RunState::Open(open) = &mut target.state else { return Walk::Pass };
        open.cursor = next;
        if position < open.skip_to && !matches!(entry.record, Record::Start { .. } | Record::Called { .. }) {
            return Walk::Pass;
        }
        let is_asked = |seq: Seq| seq.0 <= open.asked;
        match entry.record {
            Record::Start { .. } => Walk::Deliver(DeliveryKind::Start, Seq(0), target.started_ms),
            Record::StepDone { seq, is_failure, time_ms, .. } => match open.ops.get(seq) {
                Some(_) if is_failure => Walk::Deliver(DeliveryKind::StepFailed, seq, time_ms),
                Some(_) => Walk::Deliver(DeliveryKind::StepCompleted, seq, time_ms),
                None if is_asked(seq) => Walk::Pass,
                None => Walk::Unasked,
            },
            Record::StepFailed { seq, attempt, retry, .. } => {
                let is_replaying = open.is_replaying();
                match open.ops.step_mut(seq) {
                    Some(step) if is_replaying => {
                        step.attempt = attempt.saturating_add(1);
                        step.is_started = false;
                        step.phase = match retry {
                            Retry::At(at_ms) => StepPhase::Backoff(at_ms),
                            Retry::Paused => StepPhase::Paused,
                        };
                        Walk::Pass
                    }
                    Some(_) => Walk::Pass,
                    None if is_asked(seq) => Walk::Pass,
                    None => Walk::Unasked,
                }
            }
            Record::StepStarted { seq, attempt, .. } => {
                let is_replaying = open.is_replaying();
                if let Some(step) = open.ops.step_mut(seq).filter(|_| is_replaying) {
                    step.attempt = attempt;
                    step.is_started = true;
                    step.phase = StepPhase::Replayed;
                }
                if is_asked(seq) { Walk::Pass } else { Walk::Unasked }
            }
            Record::TimerFired { seq, time_ms, .. } => match open.ops.get(seq) {
                Some(Op::Timer { .. }) => Walk::Deliver(DeliveryKind::TimerFired, seq, time_ms),
                Some(Op::Wait { .. }) => Walk::Deliver(DeliveryKind::WaitTimedOut, seq, time_ms),
                Some(Op::Condition { .. }) => Walk::Deliver(DeliveryKind::ConditionTimedOut, seq, time_ms),
                // It became true, or got its signal, before its time was over.
                Some(Op::Step(_) | Op::Child) | None => Walk::Pass,
            },
            Record::Signal { name, time_ms, .. } => match open.ops.first_wait(name) {
                Some(seq) => Walk::Deliver(DeliveryKind::SignalTaken, seq, time_ms),
                None => Walk::Buffer,
            },
            Record::ChildDone { seq, time_ms, .. } => match open.ops.get(seq) {
                Some(Op::Child) => Walk::Deliver(DeliveryKind::ChildEnded, seq, time_ms),
                Some(_) | None => Walk::Pass,
            },
            Record::Cancel { time_ms, .. } => Walk::Deliver(DeliveryKind::Cancelled, Seq(0), time_ms),
            Record::Resumed { .. } => {
                if open.is_replaying() {
                    open.ops.renew_paused();
                }
                Walk::Pass
            }
            Record::TimerSet { seq, .. }
            | Record::WaitSet { seq, .. }
            | Record::ConditionSet { seq, .. }
            | Record::ChildSet { seq, .. }
            | Record::TaskSet { seq, .. }
            | Record::Attributes { seq: Some(seq), .. }
            | Record::SendSet { seq, .. } => {
                if is_asked(seq) {
                    Walk::Pass
                } else {
                    Walk::Unasked
                }
            }
            Record::Update { number, time_ms, .. } => {
                open.updates.get_or_insert_default().hand(number);
                Walk::Deliver(DeliveryKind::UpdateAccepted, Seq(number), time_ms)
            }
            Record::Called { number, time_ms, .. } => {
                if target.calls.as_ref().is_some_and(|book| book.is_answered(number)) {
                    Walk::Pass
                } else {
                    Walk::Deliver(DeliveryKind::CallArrived, Seq(number), time_ms)
                }
            }
            Record::UpdateDone { number, .. } => {
                if open.updates.as_ref().is_some_and(|updates| updates.owes(number)) {
                    Walk::Unanswered(number)
                } else {
                    Walk::Pass
                }
            }
            Record::Heartbeat { .. }
            | Record::CallDone { .. }
            | Record::Patched { .. }
            | Record::Paused { .. }
            | Record::Attributes { seq: None, .. }
            | Record::AttributedStart { .. }
            | Record::Activated { .. }
            | Record::Queued { .. }
            | Record::Branched { .. }
            | Record::Forked { .. }
            | Record::Reset { .. }
            | Record::SignalledStart { .. }
            | Record::Continued { .. }
            | Record::Done { .. }
            | Record::Watched { .. }
            | Record::Answered { .. }
            | Record::Received { .. } => Walk::Pass,
        }
    }

    /// Closes what a delivery settles.
    fn settle(&mut self, run: RunIx, kind: DeliveryKind, seq: Seq) {
        if kind == DeliveryKind::Cancelled {
            self.settle_cancel(run);
        } else if seq != Seq(0) && !matches!(kind, DeliveryKind::UpdateAccepted | DeliveryKind::CallArrived) {
            let open = self.open_mut(run).expect("only open runs are walked");
            if kind == DeliveryKind::SignalTaken {
                open.take_signal();
            }
            open.shielded.remove(&seq);
            if let Some(op) = open.ops.remove(seq)
                && op.due_ms().is_some()
            {
                self.disarm(run, seq, &op);
            }
        }
    }

    fn settle_cancel(&mut self, run: RunIx) {
        let open = self.open_mut(run).expect("only open runs are walked");
        if cfg!(fusee_mutant = "pause_forgotten") {
            open.paused.clear();
        }
        let is_shielded = |seq: &Seq| open.shielded.contains(seq);
        let withdrawn: Vec<Seq> = open.ops.iter().map(|(seq, _)| seq).filter(|seq| !is_shielded(seq)).collect();
        for seq in withdrawn {
            let open = self.open_mut(run).expect("it was just found");
            // In a replay, steps that the code asks for only after this may have been paused since.
            open.paused.remove(&seq);
            if let Some(op) = open.ops.remove(seq) {
                self.disarm(run, seq, &op);
            }
        }
    }

    /// The code has been handed everything that was recorded before: it must have asked for everything that was.
    fn end_replay(&mut self, work: &mut Work<'_>, run: RunIx) -> bool {
        let open = self.open_mut(run).expect("only open runs are walked");
        let Some(replay) = open.replay.take() else { return true };
        let asked = (open.asked - replay.before) as usize;
        if replay.recorded.len() > asked {
            let position = replay.recorded[asked..].iter().find(|position| **position > 0);
            if let Some(position) = position.copied() {
                self.unasked(work, run, position - 1);
                return false;
            }
        }
        self.open_mut(run).expect("only open runs are walked").threads_lost = 0;
        self.count_untaken(run);
        let pending: Vec<Seq> =
            self.run(run).open().into_iter().flat_map(|open| open.ops.iter()).map(|op| op.0).collect();
        for seq in pending {
            self.arm(work, run, seq);
        }
        true
    }

    /// The replay has shown which of the recorded signals the code takes.
    fn count_untaken(&mut self, run: RunIx) {
        let target = &mut self.runs[run.0 as usize];
        let super::run::RunState::Open(open) = &mut target.state else { return };
        let ahead = target.journal.entries_from(open.cursor);
        open.untaken =
            open.buffered.len() + ahead.filter(|(_, entry)| matches!(entry.record, Record::Signal { .. })).count();
    }

    /// Sets going what a replay left open.
    fn arm(&mut self, work: &mut Work<'_>, run: RunIx, seq: Seq) {
        let Some(op) = self.open_mut(run).and_then(|open| open.ops.get_mut(seq)) else { return };
        match op {
            Op::Step(step) => match step.phase {
                StepPhase::Replayed => {
                    if step.is_started && step.is_recovered && !step.is_at_most_once {
                        // The attempt was lost with its process: it counts.
                        step.attempt = step.attempt.saturating_add(1);
                        step.is_started = false;
                    }
                    self.begin_attempt(work, run, seq);
                }
                StepPhase::Backoff(at_ms) => self.timers.set(at_ms, run, seq),
                StepPhase::Running | StepPhase::Paused | StepPhase::Settled => {}
            },
            Op::Timer { .. } | Op::Wait { .. } | Op::Condition { .. } | Op::Child => {
                if let Some(due_ms) = op.due_ms()
                    && !cfg!(fusee_mutant = "timer_not_rearmed")
                {
                    self.timers.set(due_ms, run, seq);
                }
            }
        }
    }

    /// The result of the step that was delivered last, and of those whose results follow it without anything between them:
    /// a replay gets them in one go. At most so many, and about so many bytes.
    pub fn results(&self, run: RunIx, count_max: usize, bytes_max: usize) -> Vec<(Seq, &[u8])> {
        let target = self.run(run);
        let Some(open) = target.open() else { return Vec::new() };
        let (mut results, mut bytes, mut position) = (Vec::new(), 0, open.delivered);
        while position < target.journal.end() && results.len() < count_max && bytes < bytes_max {
            let (entry, next) = target.journal.read(position);
            let Record::StepDone { seq, payload, is_failure: false, .. } = entry.record else { break };
            bytes += payload.len();
            results.push((seq, payload));
            position = next;
        }
        results
    }

    /// The payload of what was delivered last, and for a child's end how it ended.
    #[must_use]
    pub fn payload(&self, run: RunIx) -> (Option<Status>, &[u8]) {
        let target = self.run(run);
        let Some(open) = target.open() else { return (None, b"") };
        match target.journal.read(open.delivered).0.record {
            Record::Start { new, .. } => (None, new.input),
            Record::StepDone { payload, .. }
            | Record::Signal { payload, .. }
            | Record::Update { payload, .. }
            | Record::Called { payload, .. } => (None, payload),
            Record::ChildDone { status, payload, .. } => (Some(status), payload),
            Record::Cancel { reason, .. } => (None, reason.as_bytes()),
            _ => (None, b""),
        }
    }

    /// The time of the delivery whose turn it is, in ms since 1970.
    #[must_use]
    pub fn turn_ms(&self, run: RunIx) -> i64 {
        self.run(run).open().map_or(0, |open| open.turn_ms)
    }

    /// Whether recorded results are being given back.
    #[must_use]
    pub fn is_replaying(&self, run: RunIx) -> bool {
        self.run(run).open().is_some_and(OpenRun::is_replaying)
    }

    fn unasked(&mut self, work: &mut Work<'_>, run: RunIx, position: u32) {
        let asked = self.run(run).open().map_or(0, |open| open.asked);
        let instead = format!("has asked for only {asked} operations");
        self.mismatch(work, run, position, None, &instead);
    }
}
