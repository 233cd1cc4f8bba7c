//! Limits, and the claims on them: made, taken, given back, withdrawn. `waits` has what happens in between.

use super::bucket::{Units, capacity};
use crate::record::LimitSpec;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

mod waits;

/// How often a waiter is passed by before it is protected.
pub const BYPASSES_MAX: i64 = 16;

/// Who is woken apart: a queue, or the steps of workflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group(pub u32);

/// A limit, as long as the machine lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LimitIx(u32);

/// A claim, until it is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClaimIx(u32);

/// A claim among those that wait with it: who came first goes first, wherever in the table it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    serial: u64,
    ix: ClaimIx,
}

impl Turn {
    const FIRST: Turn = Turn { serial: 0, ix: ClaimIx(0) };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct BucketIx(u32);

/// Part of a claim: so much of a limit.
#[derive(Clone, Copy, Debug)]
pub struct Want<'a> {
    /// The limit's name.
    pub name: &'a str,
    /// Whose share, if each key counts apart.
    pub key: Option<&'a str>,
    /// Units, at least 1.
    pub amount: u32,
}

/// Why a claim is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LimitError {
    /// No such limit is defined.
    Unknown(Box<str>),
    /// The limit never gives so much at once.
    TooMuch {
        /// Its name.
        name: Box<str>,
        /// What was asked for.
        amount: u32,
        /// What it gives at most.
        capacity: u32,
    },
    /// Nothing was asked for.
    Nothing(Box<str>),
}

impl fmt::Display for LimitError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitError::Unknown(name) => write!(formatter, "limit \"{name}\" is not defined"),
            LimitError::TooMuch { name, amount, capacity } => {
                write!(formatter, "{amount} units of limit \"{name}\" can never be had: it gives {capacity} at most")
            }
            LimitError::Nothing(name) => {
                write!(formatter, "0 units of limit \"{name}\" were asked for; ask for 1 or more")
            }
        }
    }
}

/// What a limit looks like from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The definition.
    pub spec: LimitSpec,
    /// Units in use.
    pub used: u64,
    /// Units that can be taken now.
    pub available: u64,
    /// Claims that wait here.
    pub waiting: usize,
    /// Keys with units in use, missing or waited for.
    pub keys: usize,
}

/// What one attempt takes of limits.
#[derive(Debug)]
pub struct Claim {
    /// Whom it is for; the machine hands it back and does not look at it.
    pub owner: u64,
    group: Group,
    /// Smaller goes first.
    rank: i64,
    /// The how manieth claim it is.
    serial: u64,
    wants: Box<[(BucketIx, u32)]>,
    state: State,
    /// Others that took what it waits for, before it last parked.
    bypasses: i64,
    /// Since when it is protected, in the order of protections.
    stamp: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    /// `since` is the bucket's count of takes, less the claim's bypasses so far.
    Parked {
        at: BucketIx,
        since: i64,
    },
    /// Out to compete for a slot, for its group.
    Woken {
        at: BucketIx,
        since: i64,
    },
    Held,
}

impl Claim {
    fn turn(&self, ix: ClaimIx) -> Turn {
        Turn { serial: self.serial, ix }
    }
}

#[derive(Debug)]
struct Limit {
    name: Box<str>,
    spec: LimitSpec,
    /// A limit that claims named before it was defined gives nothing.
    is_defined: bool,
    plain: Option<BucketIx>,
    keys: BTreeMap<Box<str>, BucketIx>,
}

#[derive(Debug)]
struct Bucket {
    limit: LimitIx,
    key: Option<Box<str>>,
    units: Units,
    /// How often anybody took from it.
    takes: i64,
    waiters: BTreeSet<(Group, i64, Turn)>,
    /// Waiters that are not protected, by how long they have been passed by.
    by_age: BTreeSet<(i64, Turn)>,
    /// Nobody is protected before so many takes.
    rests_until: i64,
    /// Claims with a part here that nobody passes, oldest protection first.
    protected: BTreeSet<(u64, ClaimIx)>,
    /// The woken claim of each group.
    woken: Vec<(Group, ClaimIx)>,
    /// Claims that name it.
    claims: u32,
    refill_ms: Option<i64>,
}

/// All limits of a directory.
#[derive(Debug, Default)]
pub struct Limits {
    limits: Vec<Limit>,
    names: BTreeMap<Box<str>, LimitIx>,
    buckets: Vec<Option<Bucket>>,
    free_buckets: Vec<BucketIx>,
    claims: Vec<Option<Claim>>,
    /// Claims that were made.
    serials: u64,
    free_claims: Vec<ClaimIx>,
    woken: VecDeque<ClaimIx>,
    refills: BTreeSet<(i64, BucketIx)>,
    protected: BTreeMap<u64, ClaimIx>,
    next_stamp: u64,
    suspended: BTreeSet<Group>,
    empty_ms: Option<i64>,
}

impl Limits {
    /// Defines a limit, or resizes it while it is in use. What is in use stays so.
    pub fn define(&mut self, name: &str, spec: LimitSpec, now_ms: i64) {
        let ix = self.named(name, spec);
        let limit = &mut self.limits[ix.0 as usize];
        let from = std::mem::replace(&mut limit.spec, spec);
        limit.is_defined = true;
        let buckets: Vec<BucketIx> = limit.plain.into_iter().chain(limit.keys.values().copied()).collect();
        for bucket in buckets {
            self.bucket_mut(bucket).units.resize(from, spec, now_ms);
            self.forget_impossible(bucket);
            self.wake(bucket, now_ms);
            self.drop_if_idle(bucket);
        }
    }

    /// Whether somebody defined it.
    #[must_use]
    pub fn is_defined(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|ix| self.limits[ix.0 as usize].is_defined)
    }

    /// From now on rates count as empty at this time: what was taken before a restart is not known.
    pub fn empty_rates(&mut self, now_ms: i64) {
        self.empty_ms = Some(now_ms);
        for bucket in self.buckets.iter_mut().flatten() {
            let spec = self.limits[bucket.limit.0 as usize].spec;
            bucket.units = Units::new(spec, now_ms, Some(now_ms));
        }
    }

    /// Whether a claim of these parts could ever be met.
    pub fn check(&self, wants: &[Want<'_>]) -> Result<(), LimitError> {
        for (at, want) in wants.iter().enumerate() {
            let limit = self.names.get(want.name).map(|ix| &self.limits[ix.0 as usize]);
            let limit = limit.filter(|limit| limit.is_defined).ok_or_else(|| LimitError::Unknown(want.name.into()))?;
            let capacity = capacity(limit.spec);
            if want.amount == 0 {
                return Err(LimitError::Nothing(want.name.into()));
            }
            let before = wants[..at].iter().filter(|other| (other.name, other.key) == (want.name, want.key));
            let amount = before.fold(want.amount, |sum, other| sum.saturating_add(other.amount));
            if amount > capacity {
                return Err(LimitError::TooMuch { name: want.name.into(), amount, capacity });
            }
        }
        Ok(())
    }

    /// Makes a claim. Parts that [`Limits::check`] would refuse wait until a definition lets them through.
    pub fn claim(&mut self, owner: u64, group: Group, rank: i64, wants: &[Want<'_>], now_ms: i64) -> ClaimIx {
        let mut parts: Vec<(BucketIx, u32)> = Vec::with_capacity(wants.len());
        for want in wants {
            let bucket = self.bucket_of(want, now_ms);
            match parts.iter_mut().find(|part| part.0 == bucket) {
                Some(part) => part.1 = part.1.saturating_add(want.amount),
                None => {
                    self.bucket_mut(bucket).claims += 1;
                    parts.push((bucket, want.amount));
                }
            }
        }
        let wants = parts.into_boxed_slice();
        self.serials += 1;
        let serial = self.serials;
        let claim = Claim { owner, group, rank, serial, wants, state: State::Idle, bypasses: 0, stamp: None };
        match self.free_claims.pop() {
            Some(ix) => {
                self.claims[ix.0 as usize] = Some(claim);
                ix
            }
            None => {
                self.claims.push(Some(claim));
                ClaimIx(self.claims.len() as u32 - 1)
            }
        }
    }

    /// Takes the whole claim, or parks it and says `false`.
    pub fn take(&mut self, ix: ClaimIx, now_ms: i64) -> bool {
        let (stamp, was) = (self.of(ix).stamp, self.of(ix).state);
        let since = match was {
            State::Woken { at, since } => {
                self.bucket_mut(at).woken.retain(|(_, woken)| *woken != ix);
                Some((at, since))
            }
            State::Idle => None,
            State::Parked { .. } | State::Held => unreachable!("a claim is taken when it is idle or woken"),
        };
        if let Some((at, since)) = since {
            let passed = self.bucket(at).takes - since;
            self.of_mut(ix).bypasses = passed;
        }
        if let Some(short) = self.first_short(ix, now_ms) {
            self.park(ix, short, now_ms);
            // What it was woken for may do for another; and who was protected meanwhile may fit.
            if let Some((at, _)) = since.filter(|(at, _)| *at != short) {
                self.wake(at, now_ms);
            }
            return false;
        }
        let parts = self.of(ix).wants.len();
        for part in 0..parts {
            let (bucket, amount) = self.of(ix).wants[part];
            let spec = self.spec(bucket);
            let bucket = self.bucket_mut(bucket);
            bucket.units.take(spec, amount);
            bucket.takes += 1;
        }
        let claim = self.of_mut(ix);
        claim.state = State::Held;
        claim.bypasses = 0;
        if stamp.is_some() {
            self.unprotect(ix);
        }
        for part in 0..parts {
            let bucket = self.of(ix).wants[part].0;
            self.protect_oldest(bucket);
            self.wake(bucket, now_ms);
        }
        true
    }

    /// Takes a whole idle claim again that was held before a restart, whatever is there now. Rates keep what they have.
    pub fn hold(&mut self, ix: ClaimIx) {
        debug_assert_eq!(self.of(ix).state, State::Idle, "it is held again before anybody else comes");
        for part in 0..self.of(ix).wants.len() {
            let (bucket, amount) = self.of(ix).wants[part];
            let spec = self.spec(bucket);
            if let LimitSpec::Concurrency(_) = spec {
                self.bucket_mut(bucket).units.take(spec, amount);
            }
        }
        self.of_mut(ix).state = State::Held;
    }

    /// Gives back what an attempt held. The claim stays, for another attempt.
    pub fn release(&mut self, ix: ClaimIx, now_ms: i64) {
        debug_assert_eq!(self.of(ix).state, State::Held, "only what is held is given back");
        self.of_mut(ix).state = State::Idle;
        for part in 0..self.of(ix).wants.len() {
            let (bucket, amount) = self.of(ix).wants[part];
            let spec = self.spec(bucket);
            self.bucket_mut(bucket).units.give(spec, amount);
            self.wake(bucket, now_ms);
        }
    }

    /// Takes a claim out of whatever it waits in, and leaves it idle.
    pub fn withdraw(&mut self, ix: ClaimIx, now_ms: i64) {
        let claim = self.of(ix);
        let (group, rank, state, turn) = (claim.group, claim.rank, claim.state, claim.turn(ix));
        let was_protected = claim.stamp.is_some();
        self.of_mut(ix).state = State::Idle;
        self.of_mut(ix).bypasses = 0;
        if was_protected {
            self.unprotect(ix);
        }
        match state {
            State::Parked { at, since } => {
                let bucket = self.bucket_mut(at);
                bucket.waiters.remove(&(group, rank, turn));
                bucket.by_age.remove(&(since, turn));
            }
            State::Woken { at, .. } => {
                self.bucket_mut(at).woken.retain(|(_, woken)| *woken != ix);
                self.wake(at, now_ms);
            }
            State::Idle | State::Held => {}
        }
        if was_protected {
            for part in 0..self.of(ix).wants.len() {
                self.wake(self.of(ix).wants[part].0, now_ms);
            }
        }
    }

    /// Ends a claim that is not held.
    pub fn drop_claim(&mut self, ix: ClaimIx, now_ms: i64) {
        debug_assert_ne!(self.of(ix).state, State::Held, "what is held is released first");
        self.withdraw(ix, now_ms);
        let claim = self.claims[ix.0 as usize].take().expect("a claim is dropped once");
        self.free_claims.push(ix);
        for (bucket, _) in claim.wants {
            self.bucket_mut(bucket).claims -= 1;
            self.drop_if_idle(bucket);
        }
    }

    /// Changes who goes first.
    pub fn set_rank(&mut self, ix: ClaimIx, rank: i64) {
        let claim = self.of_mut(ix);
        let (group, from, turn) = (claim.group, std::mem::replace(&mut claim.rank, rank), claim.turn(ix));
        if let State::Parked { at, .. } = claim.state {
            let bucket = self.bucket_mut(at);
            bucket.waiters.remove(&(group, from, turn));
            bucket.waiters.insert((group, rank, turn));
        }
    }

    /// Says that a group cannot use what it would get, or can again. While it cannot, its claims protect nothing.
    pub fn suspend(&mut self, group: Group, is_suspended: bool, now_ms: i64) {
        if !is_suspended {
            self.suspended.remove(&group);
            return;
        }
        if self.suspended.insert(group) {
            let of_group: Vec<ClaimIx> =
                self.protected.values().copied().filter(|ix| self.of(*ix).group == group).collect();
            for ix in of_group {
                self.unprotect(ix);
                for part in 0..self.of(ix).wants.len() {
                    self.wake(self.of(ix).wants[part].0, now_ms);
                }
            }
        }
    }

    /// The next claim that was woken: it is to be taken, now or when its owner has a slot.
    pub fn poll_woken(&mut self) -> Option<(u64, ClaimIx)> {
        while let Some(ix) = self.woken.pop_front() {
            if let Some(claim) = self.claims[ix.0 as usize].as_ref()
                && let State::Woken { .. } = claim.state
            {
                return Some((claim.owner, ix));
            }
        }
        None
    }

    /// When a rate has something for somebody again.
    #[must_use]
    pub fn next_refill_ms(&self) -> Option<i64> {
        self.refills.first().map(|(due_ms, _)| *due_ms)
    }

    /// Wakes whom the time brought units.
    pub fn handle_time(&mut self, now_ms: i64) {
        while let Some((due_ms, bucket)) = self.refills.first().copied().filter(|(due_ms, _)| *due_ms <= now_ms) {
            self.refills.remove(&(due_ms, bucket));
            self.bucket_mut(bucket).refill_ms = None;
            self.refilled(bucket, now_ms);
            self.wake(bucket, now_ms);
            self.drop_if_idle(bucket);
        }
    }

    /// What a limit, or a key of it, looks like now.
    #[must_use]
    pub fn usage(&self, name: &str, key: Option<&str>, now_ms: i64) -> Option<Usage> {
        let limit = &self.limits[self.names.get(name)?.0 as usize];
        let bucket = match key {
            Some(key) => limit.keys.get(key).copied(),
            None => limit.plain,
        };
        let (mut units, waiting) = match bucket {
            Some(ix) => (self.bucket(ix).units.clone(), self.bucket(ix).waiters.len() + self.bucket(ix).woken.len()),
            None => (Units::new(limit.spec, now_ms, self.empty_ms), 0),
        };
        units.refill(limit.spec, now_ms);
        let available = if limit.is_defined { units.available(limit.spec) } else { 0 };
        Some(Usage { spec: limit.spec, used: units.used(), available, waiting, keys: limit.keys.len() })
    }

    /// Where a claim waits: the limit's name, the key, units asked for and units there; whether it is protected.
    #[must_use]
    pub fn waits_at(&self, ix: ClaimIx) -> Option<(&str, Option<&str>, u32, u64, bool)> {
        let claim = self.of(ix);
        let (State::Parked { at, .. } | State::Woken { at, .. }) = claim.state else { return None };
        let bucket = self.bucket(at);
        let limit = &self.limits[bucket.limit.0 as usize];
        let amount = self.amount(ix, at).unwrap_or(0);
        let available = if limit.is_defined { bucket.units.available(limit.spec) } else { 0 };
        Some((&limit.name, bucket.key.as_deref(), amount, available, claim.stamp.is_some()))
    }

    /// Whether the claim has what it names.
    #[must_use]
    pub fn is_held(&self, ix: ClaimIx) -> bool {
        self.of(ix).state == State::Held
    }

    fn named(&mut self, name: &str, spec: LimitSpec) -> LimitIx {
        if let Some(ix) = self.names.get(name) {
            return *ix;
        }
        let ix = LimitIx(self.limits.len() as u32);
        let keys = BTreeMap::new();
        self.limits.push(Limit { name: name.into(), spec, is_defined: false, plain: None, keys });
        self.names.insert(name.into(), ix);
        ix
    }

    fn bucket_of(&mut self, want: &Want<'_>, now_ms: i64) -> BucketIx {
        let limit_ix = self.named(want.name, LimitSpec::Concurrency(0));
        let limit = &self.limits[limit_ix.0 as usize];
        let found = match want.key {
            Some(key) => limit.keys.get(key).copied(),
            None => limit.plain,
        };
        if let Some(ix) = found {
            return ix;
        }
        let bucket = Bucket {
            limit: limit_ix,
            key: want.key.map(Into::into),
            units: Units::new(limit.spec, now_ms, self.empty_ms),
            takes: 0,
            waiters: BTreeSet::new(),
            by_age: BTreeSet::new(),
            rests_until: 0,
            protected: BTreeSet::new(),
            woken: Vec::new(),
            claims: 0,
            refill_ms: None,
        };
        let ix = match self.free_buckets.pop() {
            Some(ix) => {
                self.buckets[ix.0 as usize] = Some(bucket);
                ix
            }
            None => {
                self.buckets.push(Some(bucket));
                BucketIx(self.buckets.len() as u32 - 1)
            }
        };
        let limit = &mut self.limits[limit_ix.0 as usize];
        match want.key {
            Some(key) => {
                limit.keys.insert(key.into(), ix);
            }
            None => limit.plain = Some(ix),
        }
        ix
    }

    fn spec(&self, at: BucketIx) -> LimitSpec {
        self.limits[self.bucket(at).limit.0 as usize].spec
    }

    fn bucket(&self, ix: BucketIx) -> &Bucket {
        self.buckets[ix.0 as usize].as_ref().expect("a bucket lives while it is named")
    }

    fn bucket_mut(&mut self, ix: BucketIx) -> &mut Bucket {
        self.buckets[ix.0 as usize].as_mut().expect("a bucket lives while it is named")
    }

    fn of(&self, ix: ClaimIx) -> &Claim {
        self.claims[ix.0 as usize].as_ref().expect("a claim lives until it is dropped")
    }

    fn of_mut(&mut self, ix: ClaimIx) -> &mut Claim {
        self.claims[ix.0 as usize].as_mut().expect("a claim lives until it is dropped")
    }
}
