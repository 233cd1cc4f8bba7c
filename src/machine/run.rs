//! One run in memory: what it is, its journal, what its code waits for, how it ended.

use super::admission::Ticket;
use super::calls::CallBook;
use super::checkpoint::Saved;
use super::journal::Journal;
use super::ops::OpenOps;
use super::stuck::Stuck;
use super::updates::{HandedUpdates, UpdateBook};
use crate::record::{Caller, Lsn, ParentClose, RunNo, Seq, ShardId, Status};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Index of a run in its shard's memory. Stable for the life of the shard in this process, and not longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunIx(pub u32);

/// A run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) no: RunNo,
    pub(crate) id: Box<str>,
    pub(crate) kind: Box<str>,
    pub(crate) version: u32,
    pub(crate) key_root: [u8; 16],
    pub(crate) created_ms: i64,
    /// When its code could first run; of one that waits to be let in the same.
    pub(crate) started_ms: i64,
    /// Its place among the runs of the shard by start: when it was started, and not before the run before it, however the
    /// clock was set.
    pub(crate) order_ms: i64,
    /// Its search attributes, in their writing.
    pub(crate) attributes: Box<[u8]>,
    pub(crate) deadline_ms: Option<i64>,
    pub(crate) parent: Option<(Caller, ParentClose)>,
    /// Its newest record.
    pub(crate) last: Lsn,
    pub(crate) journal: Journal,
    /// What it had from its start on of which its own records do not tell.
    pub(crate) given: Option<Box<Given>>,
    /// `None`: it has had none.
    pub(crate) updates: Option<Box<UpdateBook>>,
    /// `None`: it has had none.
    pub(crate) calls: Option<Box<CallBook>>,
    pub(crate) state: RunState,
    /// What of it is in the store.
    pub(crate) saved: Saved,
}

/// What a run has from its start on and not by its own journal. It outlives the end of the run until that is stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    /// Who waits for its end: of a run that took the place of another one, those that waited for that.
    pub(crate) watchers: Vec<Caller>,
    /// The task that stands for it.
    pub(crate) ticket: Option<Arc<Ticket>>,
}

#[derive(Debug)]
pub(crate) enum RunState {
    Open(Box<OpenRun>),
    Ended(End),
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) status: Status,
    pub(crate) time_ms: i64,
    pub(crate) lsn: Lsn,
    pub(crate) payload: Box<[u8]>,
    /// The run that took its place.
    pub(crate) continued: Option<RunNo>,
}

/// What only a run that has not ended has.
#[derive(Debug, Default)]
pub(crate) struct OpenRun {
    /// The next journal entry to look at.
    pub(crate) cursor: u32,
    /// Of an object: entries before this one are of calls that were answered, save those that wait.
    pub(crate) skip_to: u32,
    /// The entry handed out last; its payload is what the host may ask for.
    pub(crate) delivered: u32,
    /// Time of the delivery whose turn it is or was last.
    pub(crate) turn_ms: i64,
    /// The highest number of an operation that the code asked for.
    pub(crate) asked: u32,
    pub(crate) ops: OpenOps,
    pub(crate) code: Code,
    pub(crate) replay: Option<Box<Replay>>,
    /// The process that ran its bodies is gone, and not by a clean close.
    pub(crate) is_recovered: bool,
    /// Threads that ended in a turn of its code since that came to the end of what was recorded.
    pub(crate) threads_lost: u8,
    /// Somebody has paused the run, by the records alone.
    pub(crate) is_held: bool,
    /// The code was told of a cancel, or will be.
    pub(crate) is_cancelled: bool,
    /// Positions of signals that the walk has passed and nobody has taken.
    pub(crate) buffered: VecDeque<u32>,
    /// Recorded signals that nobody has taken, those before the walk included. Until the code is back after a restart and
    /// its replay is through, no more than there are: those that came since.
    pub(crate) untaken: usize,
    /// Steps that wait for somebody to resume the run, by the records alone: the code need not be in memory.
    pub(crate) paused: BTreeSet<Seq>,
    pub(crate) dedupe: BTreeSet<Box<str>>,
    pub(crate) children: Vec<Child>,
    /// Tasks that have not ended and are not to outlive the run, by the operation that waits for them.
    pub(crate) orders: Vec<Caller>,
    pub(crate) watchers: Vec<Caller>,
    /// The task that stands for it, if it came through the scheduler.
    pub(crate) ticket: Option<Arc<Ticket>>,
    /// It waits until the scheduler lets it start.
    pub(crate) is_queued: bool,
    /// Updates that the code was handed.
    pub(crate) updates: Option<Box<HandedUpdates>>,
    /// How often it was stuck and is tried again, and when that is next, in ms since 1970. Since it is in memory.
    pub(crate) tries: u32,
    pub(crate) next_try_ms: Option<i64>,
    /// Where it goes on by itself after what it has copied, and what keys come from there on. By the operations.
    pub(crate) borders: Vec<(Seq, [u8; 16])>,
    /// Changes of the code that it has come to, by the records alone.
    pub(crate) patches: BTreeSet<Box<str>>,
    /// Open operations that a cancel of the run leaves alone.
    pub(crate) shielded: BTreeSet<Seq>,
}

/// A child that has not ended.
#[derive(Clone, Debug)]
pub(crate) struct Child {
    /// Who asked for it: another run, if it was adopted from that.
    pub(crate) caller: Caller,
    pub(crate) id: Box<str>,
    pub(crate) shard: ShardId,
    pub(crate) close: ParentClose,
}

/// Where the code of a run is.
#[derive(Debug, Default)]
pub(crate) enum Code {
    /// Not in any host's memory.
    #[default]
    Absent,
    /// Waits for a delivery.
    Idle,
    /// Has one and has not come to rest.
    InTurn,
    /// Has one, behind which nothing was recorded, and is believed to come to rest: its host need not say so.
    InLastTurn,
    /// Asked for something else than was recorded, or broke a rule; why.
    Stuck(Box<Stuck>),
}

/// What a replay needs and a live run does not.
#[derive(Debug)]
pub(crate) struct Replay {
    /// Entries from here on are new.
    pub(crate) end: u32,
    /// The last operation that need not be asked for: 0, save for objects.
    pub(crate) before: u32,
    /// By the number of the operation behind those, from 0: the position of its first record, plus one; 0 if it left none.
    pub(crate) recorded: Vec<u32>,
}

impl Run {
    pub(crate) fn open(&self) -> Option<&OpenRun> {
        match &self.state {
            RunState::Open(open) => Some(open),
            RunState::Ended(_) => None,
        }
    }

    pub(crate) fn open_mut(&mut self) -> Option<&mut OpenRun> {
        match &mut self.state {
            RunState::Open(open) => Some(open),
            RunState::Ended(_) => None,
        }
    }

    pub(crate) fn end(&self) -> Option<&End> {
        match &self.state {
            RunState::Open(_) => None,
            RunState::Ended(end) => Some(end),
        }
    }
}

impl OpenRun {
    pub(crate) fn is_replaying(&self) -> bool {
        self.replay.is_some()
    }

    /// The code takes one of the signals that wait; what it takes in a replay is counted at the end of that.
    pub(crate) fn take_signal(&mut self) {
        if !self.is_replaying() {
            self.untaken -= 1;
        }
    }

    /// It may ask for something, or end.
    pub(crate) fn is_in_turn(&self) -> bool {
        matches!(self.code, Code::InTurn | Code::InLastTurn)
    }

    /// It waits for a delivery, as far as anybody knows, and will not look for one by itself.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.code, Code::Idle | Code::InLastTurn)
    }

    pub(crate) fn is_stuck(&self) -> bool {
        matches!(self.code, Code::Stuck(_))
    }
}
