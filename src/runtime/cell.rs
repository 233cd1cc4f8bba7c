//! A shard with what surrounds it while it runs: what it holds back for the disk, what it has to tell its host.

use super::offers::Offers;
use super::outputs::Outputs;
use super::places::{Place, Right};
use super::resend::Resends;
use crate::machine::{Effect, RunIx, Shard};
use crate::record::{Lsn, Seq, ShardId, Status};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Names an outstanding request; chosen by the host, within those of its place: see [`Place::first_token`].
pub type Token = u32;

/// What waits for the disk.
#[derive(Debug)]
pub enum Output {
    /// The request is recorded.
    Ack(Token),
    /// The answer to a request.
    Reply(Token, String),
    /// A request is refused for what is recorded, or for what is not: also that is told only once it cannot change.
    Refuse(Token, String),
    /// How a run ended, for a request that waits for it.
    Result(Token, Status, Box<[u8]>),
    /// An update gets no answer any more: its run has ended, or is stuck and had not accepted it.
    UpdateLost(Token, RunIx),
    /// The body of a step may run, by the gate that it had when this was asked for.
    Attempt(RunIx, Seq, Lsn),
    /// A run ended, for listeners.
    Notice(RunIx),
    /// A run is stuck, for listeners.
    Stuck(RunIx),
    /// The journal of a run has come to half of one of its bounds.
    JournalHalf(RunIx),
    /// A message has its record: its sender may forget it.
    Applied {
        /// Who sent it.
        sender: ShardId,
        /// Its number.
        number: u64,
    },
    /// A message may leave for a shard that does not share the log.
    Remote(crate::machine::Message),
}

impl Output {
    /// The request that it answers; `None`: it is for the shard's code, for listeners, or for another shard.
    pub(super) fn token(&self) -> Option<Token> {
        match self {
            Output::Ack(token)
            | Output::Reply(token, _)
            | Output::Refuse(token, _)
            | Output::Result(token, ..)
            | Output::UpdateLost(token, _) => Some(*token),
            Output::Attempt(..)
            | Output::Notice(_)
            | Output::Stuck(_)
            | Output::JournalHalf(_)
            | Output::Applied { .. }
            | Output::Remote(_) => None,
        }
    }
}

impl Output {
    /// The run that whoever gets it looks at.
    fn run(&self) -> Option<RunIx> {
        match self {
            Output::UpdateLost(_, run)
            | Output::Attempt(run, ..)
            | Output::Notice(run)
            | Output::Stuck(run)
            | Output::JournalHalf(run) => Some(*run),
            Output::Ack(_)
            | Output::Reply(..)
            | Output::Refuse(..)
            | Output::Result(..)
            | Output::Applied { .. }
            | Output::Remote(_) => None,
        }
    }
}

/// What the host of the shard's code has to do, or is told.
#[derive(Debug)]
pub enum HostEvent {
    /// The run's code waits and has something to look at.
    Wake(RunIx),
    /// An update is offered to the run's code, under this number.
    Offer(RunIx, u32),
    /// The body of this step may run now, by the gate that it had when this was asked for.
    Attempt(RunIx, Seq, Lsn),
    /// The limit of the attempt under this lease is over; `true`: its own, `false`: it was silent for too long.
    Overdue(RunIx, Seq, u32, bool),
    /// The run's code is to be dropped: it ended from outside, or is tried anew.
    Dropped(RunIx),
    /// The journal of a run has come to half of one of its bounds.
    JournalHalf(RunIx),
}

impl HostEvent {
    fn run(&self) -> RunIx {
        match self {
            HostEvent::Wake(run)
            | HostEvent::Offer(run, _)
            | HostEvent::Attempt(run, ..)
            | HostEvent::Overdue(run, ..)
            | HostEvent::Dropped(run)
            | HostEvent::JournalHalf(run) => *run,
        }
    }
}

/// A question to the code of a run, from another thread.
#[derive(Debug)]
pub struct Question {
    /// The run.
    pub run: RunIx,
    /// Name of the query.
    pub name: Box<str>,
    /// Its encoded input; empty: none.
    pub input: Box<str>,
}

/// A shard as the group keeps it, behind its lock.
#[derive(Debug)]
pub struct ShardCell {
    /// Its state.
    pub shard: Shard,
    /// What waits for the disk.
    pub held: Outputs,
    /// Who may run the code of its runs.
    pub holder: Right,
    /// How often that right has changed hands: code that was handed out before the last time is nobody's.
    pub handovers: u32,
    /// What a piece of work asked for; empty between two of them, kept to save the allocation.
    pub(super) effects: Vec<Effect>,
    /// For the host, in order.
    pub events: VecDeque<HostEvent>,
    /// Runs with a wake among the events: a second one would say the same. So a host that does not come has at most one
    /// waiting for each of its runs, however many signals they get.
    woken: BTreeSet<RunIx>,
    /// Runs whose code should be in memory and is not.
    pub to_load: VecDeque<RunIx>,
    /// Requests that wait for the end of a run.
    pub waiters: BTreeMap<RunIx, Vec<Token>>,
    /// Requests that wait until the scheduler has taken in what stands for a run.
    admissions: BTreeMap<RunIx, Vec<(Token, String)>>,
    /// Questions to the code of runs, until they are answered, by the token that the answer goes to.
    pub questions: BTreeMap<Token, Question>,
    /// Those that the code has not been told of, in order.
    pub asks: VecDeque<Token>,
    /// Places that are told of ends of runs and of stuck ones.
    pub listeners: Vec<Place>,
    /// Updates that clients have asked for.
    pub offers: Offers,
    /// When messages to other processes are sent again.
    pub(super) resends: Resends,
}

impl ShardCell {
    pub(super) fn new(shard: Shard, places: usize) -> Self {
        ShardCell {
            shard,
            held: Outputs::for_places(places),
            holder: Right::NOBODY,
            handovers: 0,
            effects: Vec::new(),
            events: VecDeque::new(),
            woken: BTreeSet::new(),
            to_load: VecDeque::new(),
            waiters: BTreeMap::new(),
            admissions: BTreeMap::new(),
            questions: BTreeMap::new(),
            asks: VecDeque::new(),
            listeners: Vec::new(),
            offers: Offers::default(),
            resends: Resends::default(),
        }
    }

    /// Runs whose index somebody holds who will look at them: they stay in memory.
    pub(super) fn held_runs(&self) -> BTreeSet<RunIx> {
        let mut held: BTreeSet<RunIx> = self.to_load.iter().copied().collect();
        held.extend(self.events.iter().map(HostEvent::run));
        held.extend(self.questions.values().map(|question| question.run));
        held.extend(self.waiters.keys());
        held.extend(self.admissions.keys());
        self.offers.runs(&mut |run| held.extend([run]));
        self.held.each(&mut |output| held.extend(output.run()));
        held
    }

    /// A run's code has something to look at.
    pub(super) fn wake(&mut self, run: RunIx) {
        if self.woken.insert(run) {
            self.events.push_back(HostEvent::Wake(run));
        }
    }

    /// Takes the next event for the host.
    pub fn next_event(&mut self) -> Option<HostEvent> {
        let event = self.events.pop_front()?;
        if let HostEvent::Wake(run) = &event {
            self.woken.remove(run);
        }
        Some(event)
    }

    /// A request waits for the end of a run, or of the last of those that take its place: answered when that is durable, also if it has ended already.
    pub fn await_end(&mut self, run: RunIx, token: Token) {
        let run = self.shard.last_of_chain(run);
        match self.shard.outcome(run) {
            Some((status, payload, lsn)) => self.held.hold(lsn, Output::Result(token, status, payload.into())),
            None => self.waiters.entry(run).or_default().push(token),
        }
    }

    /// A request gets `reply` once the scheduler has taken in what stands for a run, or the run is over.
    pub fn await_admission(&mut self, run: RunIx, token: Token, reply: String) {
        self.admissions.entry(run).or_default().push((token, reply));
    }

    /// The scheduler has decided about what stands for a run. `refusal`: lines of why not.
    pub(super) fn run_admitted(&mut self, run: RunIx, refusal: Option<&[u8]>) {
        let refused = refusal.map(|why| format!("r\u{1f}{}", String::from_utf8_lossy(why).replace('\n', "\u{1f}")));
        for (token, reply) in self.admissions.remove(&run).into_iter().flatten() {
            self.held.hold(self.shard.last(), Output::Reply(token, refused.clone().unwrap_or(reply)));
        }
    }

    /// A request is not waited for any more.
    pub fn forget(&mut self, token: Token) {
        self.forget_admissions(|waiting| waiting == token);
        self.waiters.retain(|_, tokens| {
            tokens.retain(|waiting| *waiting != token);
            !tokens.is_empty()
        });
        self.offers.forget(|waiting| waiting == token);
        self.held.forget(token);
        self.questions.remove(&token);
    }

    fn forget_admissions(&mut self, is_forgotten: impl Fn(Token) -> bool) {
        self.admissions.retain(|_, waiting| {
            waiting.retain(|(token, _)| !is_forgotten(*token));
            !waiting.is_empty()
        });
    }

    /// Nobody at a place waits for anything any more.
    pub(super) fn forget_place(&mut self, place: Place) {
        self.forget_admissions(|token| Place::of(token) == place);
        self.waiters.retain(|_, tokens| {
            tokens.retain(|token| Place::of(*token) != place);
            !tokens.is_empty()
        });
        self.offers.forget(|token| Place::of(token) == place);
        self.held.forget_place(place);
        self.questions.retain(|token, _| Place::of(*token) != place);
        self.listeners.retain(|listener| *listener != place);
    }

    /// The thread that had the code of its runs has it no more: it is asked for again, for whoever holds it next.
    pub(super) fn change_holder(&mut self, holder: Right, effects: &mut Vec<Effect>) {
        self.holder = holder;
        self.handovers += 1;
        self.events.retain(|event| matches!(event, HostEvent::JournalHalf(_)));
        self.woken.clear();
        self.asks = self.questions.keys().copied().collect();
        self.held.forget_attempts();
        if !cfg!(fusee_mutant = "lost_code_kept") {
            self.shard.lose_code(effects);
        }
    }

    pub(super) fn run_ended(&mut self, run: RunIx) {
        let Some((_, _, lsn)) = self.shard.outcome(run) else { return };
        self.run_admitted(run, None);
        for token in self.waiters.remove(&run).into_iter().flatten() {
            self.await_end(run, token);
        }
        self.lose_updates(run);
        for listener in self.listeners.iter().copied() {
            self.held.hold_for(listener, lsn, Output::Notice(run));
        }
    }
}
