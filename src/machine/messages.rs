//! What shards and the task scheduler say to each other, and the outbox that remembers it until the other side has it on disk.
//!
//! Messages go first in, first out per (sender, receiver), numbered without gaps. The number follows from the order of
//! the sender's records, so a recovery numbers them the same; the receiver keeps the last number it applied per
//! sender, so a resend is known.

use crate::record::{
    Caller, ChildSpec, DecodeError, IdConflict, IdReuse, Lsn, Outcome, ParentClose, Reader, RunNo, Seq, ShardId,
    Status, TaskNo, TaskRole, Writer,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A message on its way.
#[derive(Clone, Debug)]
pub struct Message {
    /// Who sends it.
    pub from: ShardId,
    /// Who gets it.
    pub to: ShardId,
    /// Its number among those from the one to the other, from 1.
    pub number: u64,
    /// The sender's record that implies it. Where sender and receiver do not share a log, it must be durable first.
    pub lsn: Lsn,
    /// What it says.
    pub body: Arc<Body>,
}

/// What a message says.
#[derive(Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are named by the variants and by the types they have")]
pub enum Body {
    /// Start a child.
    Start { caller: Caller, child: OwnedChild },
    /// Deliver a signal.
    Signal { id: Box<str>, target: Option<RunNo>, name: Box<str>, payload: Box<[u8]> },
    /// Ask a run to end.
    Cancel { id: Box<str>, target: Option<RunNo>, reason: Box<str> },
    /// The parent ended: apply the policy to the run that this caller started.
    Close { id: Box<str>, caller: Caller, policy: ParentClose },
    /// Call an object; a call makes it, if there is none.
    Call { id: Box<str>, kind: Box<str>, key_root: [u8; 16], name: Box<str>, payload: Box<[u8]>, caller: Caller },
    /// Say when the run ends.
    Watch { id: Box<str>, target: Option<RunNo>, caller: Caller },
    /// What this operation waits for has ended, or cannot be.
    Ended { run: RunNo, seq: Seq, status: Status, payload: Box<[u8]> },
    /// From the scheduler: make a run that waits until it may start; the task stands for it. `order` describes that, as in
    /// `Order`, without the input.
    Launch { task: TaskNo, run: OwnedLaunch, order: Box<[u8]> },
    /// From the scheduler: it has taken in what stands for the run.
    Admitted { run: RunNo },
    /// From the scheduler: the run may start.
    Activate { run: RunNo },
    /// From the scheduler: what stands for the run is over, or cannot be, and the run has not started.
    NeverLetIn { run: RunNo, status: Status, payload: Box<[u8]> },
    /// To the scheduler: the run exists that it asked for.
    Made { task: TaskNo, caller: Caller },
    /// To the scheduler: the run is over that this caller stands for.
    RunOver { caller: Caller, outcome: Outcome },
    /// To the scheduler: submit a task. `order` is what [`crate::record::encode_order`] wrote.
    Order { caller: Caller, role: TaskRole, order: Box<[u8]> },
    /// To the scheduler: what was asked for as this operation is not wanted any more.
    CancelOrder { caller: Caller },
    /// To the scheduler: ask a task to end.
    CancelTask { task: TaskNo, reason: Box<str> },
    /// To the scheduler: say when the task ends.
    WatchTask { task: TaskNo, caller: Caller },
}

impl Body {
    /// The runs that whoever gets it looks at: the latest one of an id, a certain one.
    #[must_use]
    pub fn about(&self) -> (Option<&str>, Option<RunNo>) {
        match self {
            Body::Start { child, .. } => (Some(&child.id), None),
            Body::Signal { id, target, .. } | Body::Cancel { id, target, .. } | Body::Watch { id, target, .. } => {
                (Some(id), *target)
            }
            Body::Close { id, .. } | Body::Call { id, .. } => (Some(id), None),
            Body::Launch { run, .. } => (Some(&run.id), None),
            Body::Ended { run, .. } => (None, Some(*run)),
            // They are about runs that have not ended, or for the scheduler.
            Body::Admitted { .. }
            | Body::Activate { .. }
            | Body::NeverLetIn { .. }
            | Body::Made { .. }
            | Body::RunOver { .. }
            | Body::Order { .. }
            | Body::CancelOrder { .. }
            | Body::CancelTask { .. }
            | Body::WatchTask { .. } => (None, None),
        }
    }
}

/// [`ChildSpec`] that owns its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "as in ChildSpec")]
pub struct OwnedChild {
    pub id: Box<str>,
    pub kind: Box<str>,
    pub version: u32,
    pub key_root: [u8; 16],
    pub timeout_ms: Option<i64>,
    pub parent_close: ParentClose,
    pub reuse: IdReuse,
    pub conflict: IdConflict,
    pub input: Box<[u8]>,
}

impl From<&ChildSpec<'_>> for OwnedChild {
    fn from(child: &ChildSpec<'_>) -> Self {
        OwnedChild {
            id: child.id.into(),
            kind: child.kind.into(),
            version: child.version,
            key_root: child.key_root,
            timeout_ms: child.timeout_ms,
            parent_close: child.parent_close,
            reuse: child.reuse,
            conflict: child.conflict,
            input: child.input.into(),
        }
    }
}

/// A run that the scheduler asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "as in Launch")]
pub struct OwnedLaunch {
    pub id: Box<str>,
    pub kind: Box<str>,
    pub version: u32,
    pub key_root: [u8; 16],
    pub timeout_ms: Option<i64>,
    pub input: Box<[u8]>,
}

/// Everything sent that its receiver has not yet acknowledged as durable.
#[derive(Debug, Default)]
pub struct Outbox {
    lanes: BTreeMap<ShardId, Lane>,
}

#[derive(Debug, Default)]
struct Lane {
    sent: u64,
    /// Newest last; the number of the last one is `sent`.
    waiting: VecDeque<(Lsn, Arc<Body>)>,
}

impl Lane {
    fn waiting_from(&self, from: ShardId, to: ShardId) -> impl Iterator<Item = Message> {
        let first = self.sent - self.waiting.len() as u64 + 1;
        self.waiting.iter().zip(first..).map(move |((lsn, body), number)| Message {
            from,
            to,
            number,
            lsn: *lsn,
            body: Arc::clone(body),
        })
    }
}

impl Outbox {
    /// Numbers a message and keeps it.
    pub fn post(&mut self, from: ShardId, to: ShardId, lsn: Lsn, body: Body) -> Message {
        let lane = self.lanes.entry(to).or_default();
        lane.sent += 1;
        let body = Arc::new(body);
        lane.waiting.push_back((lsn, Arc::clone(&body)));
        Message { from, to, number: lane.sent, lsn, body }
    }

    /// Forgets what a receiver has on disk. `false`: there was nothing to forget.
    pub fn acknowledge(&mut self, to: ShardId, number: u64) -> bool {
        let Some(lane) = self.lanes.get_mut(&to) else { return false };
        let kept = lane.sent.saturating_sub(number);
        let before = lane.waiting.len();
        while lane.waiting.len() as u64 > kept {
            lane.waiting.pop_front();
        }
        lane.waiting.len() < before
    }

    /// Everything not acknowledged, in order.
    pub fn waiting(&self, from: ShardId) -> impl Iterator<Item = Message> {
        self.lanes.iter().flat_map(move |(to, lane)| lane.waiting_from(from, *to))
    }

    /// Everything that a receiver has not acknowledged, in order.
    pub fn waiting_for(&self, from: ShardId, to: ShardId) -> impl Iterator<Item = Message> {
        self.lanes.get(&to).into_iter().flat_map(move |lane| lane.waiting_from(from, to))
    }

    /// All of it, for a checkpoint.
    pub fn encode(&self, out: &mut Writer<'_>) {
        out.number(self.lanes.len() as u64);
        for (to, lane) in &self.lanes {
            out.number(u64::from(to.0));
            out.number(lane.sent);
            out.number(lane.waiting.len() as u64);
            for (lsn, body) in &lane.waiting {
                out.number(lsn.0);
                super::message_codec::encode(body, out);
            }
        }
    }

    /// Reads what [`Outbox::encode`] wrote.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Outbox, DecodeError> {
        let mut outbox = Outbox::default();
        for _ in 0..reader.number()? {
            let to = ShardId(u16::try_from(reader.number()?).map_err(|_| DecodeError::Number)?);
            let mut lane = Lane { sent: reader.number()?, ..Lane::default() };
            for _ in 0..reader.number()? {
                let lsn = Lsn(reader.number()?);
                lane.waiting.push_back((lsn, Arc::new(super::message_codec::decode(reader)?)));
            }
            if lane.sent < lane.waiting.len() as u64 {
                return Err(DecodeError::Number);
            }
            outbox.lanes.insert(to, lane);
        }
        Ok(outbox)
    }

    /// How many wait.
    pub fn count(&self) -> usize {
        self.lanes.values().map(|lane| lane.waiting.len()).sum()
    }
}
