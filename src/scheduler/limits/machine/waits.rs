//! Who waits where, who is woken when units come back, who is protected, and when time brings units.

use super::{BYPASSES_MAX, BucketIx, ClaimIx, Group, Limits, State, Turn};
use crate::record::LimitSpec;
use crate::scheduler::limits::bucket::capacity;

impl Limits {
    /// The first part that cannot be taken now.
    pub(super) fn first_short(&mut self, ix: ClaimIx, now_ms: i64) -> Option<BucketIx> {
        let stamp = self.of(ix).stamp.unwrap_or(u64::MAX);
        for part in 0..self.of(ix).wants.len() {
            let (at, amount) = self.of(ix).wants[part];
            let is_passed_over = self.bucket(at).protected.first().is_some_and(|first| first.0 < stamp);
            if is_passed_over || self.refilled(at, now_ms) < u64::from(amount) {
                return Some(at);
            }
        }
        None
    }

    /// What a bucket has ready now.
    pub(super) fn refilled(&mut self, ix: BucketIx, now_ms: i64) -> u64 {
        let bucket = self.buckets[ix.0 as usize].as_mut().expect("a bucket lives while it is named");
        let limit = &self.limits[bucket.limit.0 as usize];
        bucket.units.refill(limit.spec, now_ms);
        if limit.is_defined { bucket.units.available(limit.spec) } else { 0 }
    }

    pub(super) fn park(&mut self, ix: ClaimIx, at: BucketIx, now_ms: i64) {
        let claim = self.of(ix);
        let (group, rank, bypasses, turn) = (claim.group, claim.rank, claim.bypasses, claim.turn(ix));
        let bucket = self.bucket_mut(at);
        let since = bucket.takes - bypasses;
        bucket.waiters.insert((group, rank, turn));
        if self.of(ix).stamp.is_none() {
            self.bucket_mut(at).by_age.insert((since, turn));
        }
        self.of_mut(ix).state = State::Parked { at, since };
        self.protect_oldest(at);
        self.wake(at, now_ms);
    }

    /// Protects the oldest waiter if it has been passed by often enough. One at a time, and not again before others
    /// took as often: most of a limit goes by rank, and a part of it by age.
    pub(super) fn protect_oldest(&mut self, at: BucketIx) {
        let capacity = capacity(self.spec(at));
        while let Some((since, turn)) = self.bucket(at).by_age.first().copied() {
            let ix = turn.ix;
            let bucket = self.bucket(at);
            let takes = bucket.takes;
            if !bucket.protected.is_empty() || takes < bucket.rests_until || takes - since < BYPASSES_MAX {
                return;
            }
            let claim = self.of(ix);
            let fits = claim.wants.iter().all(|part| part.0 != at || part.1 <= capacity);
            self.bucket_mut(at).by_age.remove(&(since, turn));
            if fits && !self.suspended.contains(&self.of(ix).group) {
                self.protect(ix);
                return;
            }
            // It could not have used what passed it by.
            self.bucket_mut(at).by_age.insert((takes, turn));
            self.of_mut(ix).state = State::Parked { at, since: takes };
        }
    }

    fn protect(&mut self, ix: ClaimIx) {
        let stamp = self.next_stamp;
        self.next_stamp += 1;
        self.of_mut(ix).stamp = Some(stamp);
        self.protected.insert(stamp, ix);
        for part in 0..self.of(ix).wants.len() {
            let bucket = self.of(ix).wants[part].0;
            self.bucket_mut(bucket).protected.insert((stamp, ix));
        }
    }

    pub(super) fn unprotect(&mut self, ix: ClaimIx) {
        let Some(stamp) = self.of_mut(ix).stamp.take() else { return };
        self.protected.remove(&stamp);
        for part in 0..self.of(ix).wants.len() {
            let bucket = self.of(ix).wants[part].0;
            let bucket = self.bucket_mut(bucket);
            bucket.protected.remove(&(stamp, ix));
            bucket.rests_until = bucket.takes + BYPASSES_MAX;
        }
        if let State::Parked { at, .. } = self.of(ix).state {
            let turn = self.of(ix).turn(ix);
            let bucket = self.bucket_mut(at);
            let since = bucket.takes;
            bucket.by_age.insert((since, turn));
            self.of_mut(ix).state = State::Parked { at, since };
        }
    }

    /// After a limit shrank: who asks for more than it has keeps nobody waiting.
    pub(super) fn forget_impossible(&mut self, at: BucketIx) {
        let capacity = capacity(self.spec(at));
        let impossible: Vec<ClaimIx> = self
            .bucket(at)
            .protected
            .iter()
            .map(|(_, ix)| *ix)
            .filter(|ix| self.of(*ix).wants.iter().any(|part| part.0 == at && part.1 > capacity))
            .collect();
        impossible.into_iter().for_each(|ix| self.unprotect(ix));
    }

    /// Wakes one waiter of each group, if there is something for it.
    pub(super) fn wake(&mut self, at: BucketIx, now_ms: i64) {
        if !self.bucket(at).waiters.is_empty() {
            let groups: Vec<Group> = self.first_of_groups(at).map(|ix| self.of(ix).group).collect();
            groups.into_iter().for_each(|group| self.wake_group(at, group, now_ms));
        }
        self.arm_refill(at, now_ms);
    }

    /// The first waiter of each group.
    fn first_of_groups(&self, at: BucketIx) -> impl Iterator<Item = ClaimIx> {
        let waiters = &self.bucket(at).waiters;
        std::iter::successors(waiters.first(), |waiter| {
            let next = waiter.0.0.checked_add(1)?;
            waiters.range((Group(next), i64::MIN, Turn::FIRST)..).next()
        })
        .map(|waiter| waiter.2.ix)
    }

    pub(super) fn amount(&self, ix: ClaimIx, at: BucketIx) -> Option<u32> {
        self.of(ix).wants.iter().find(|part| part.0 == at).map(|part| part.1)
    }

    fn wake_group(&mut self, at: BucketIx, group: Group, now_ms: i64) {
        if self.bucket(at).waiters.is_empty() {
            return;
        }
        let available = self.refilled(at, now_ms);
        let bucket = self.bucket(at);
        if available == 0 || bucket.woken.iter().any(|(of, _)| *of == group) {
            return;
        }
        let first = bucket.protected.first().map(|(_, ix)| *ix);
        let fits = |ix: ClaimIx| self.amount(ix, at).is_some_and(|amount| u64::from(amount) <= available);
        let chosen = match first {
            Some(ix) => Some(ix).filter(|ix| {
                matches!(self.of(*ix).state, State::Parked { at: place, .. } if place == at)
                    && self.of(*ix).group == group
                    && fits(*ix)
            }),
            None => {
                let of_group = bucket.waiters.range((group, i64::MIN, Turn::FIRST)..);
                of_group.take_while(|waiter| waiter.0 == group).map(|waiter| waiter.2.ix).find(|ix| fits(*ix))
            }
        };
        if let Some(ix) = chosen {
            let State::Parked { since, .. } = self.of(ix).state else { unreachable!("only waiters are woken") };
            let (rank, turn) = (self.of(ix).rank, self.of(ix).turn(ix));
            self.of_mut(ix).state = State::Woken { at, since };
            let bucket = self.bucket_mut(at);
            bucket.waiters.remove(&(group, rank, turn));
            bucket.by_age.remove(&(since, turn));
            bucket.woken.push((group, ix));
            self.woken.push_back(ix);
        }
    }

    /// Sets the time at which a rate has something for its first waiter, or is as good as new.
    pub(super) fn arm_refill(&mut self, at: BucketIx, now_ms: i64) {
        let spec = self.spec(at);
        let LimitSpec::Rate { burst, .. } = spec else { return };
        let bucket = self.bucket(at);
        let asked = match bucket.protected.first() {
            Some((_, ix)) => self.amount(*ix, at),
            None => self.first_of_groups(at).filter_map(|ix| self.amount(ix, at)).min(),
        };
        let is_idle = bucket.claims == 0 && !bucket.units.is_fresh(spec);
        let due_ms = match asked {
            Some(amount) => bucket.units.ready_ms(spec, amount),
            None if is_idle && bucket.key.is_some() => bucket.units.ready_ms(spec, burst),
            None => None,
        };
        // Not at once again: what is ready now waits for a slot, not for time.
        let due_ms = due_ms.filter(|due_ms| *due_ms > now_ms);
        let was_ms = std::mem::replace(&mut self.bucket_mut(at).refill_ms, due_ms);
        if was_ms != due_ms {
            if let Some(was_ms) = was_ms {
                self.refills.remove(&(was_ms, at));
            }
            if let Some(due_ms) = due_ms {
                self.refills.insert((due_ms, at));
            }
        }
    }

    /// A key that nobody names and that is as good as new need not be remembered.
    pub(super) fn drop_if_idle(&mut self, at: BucketIx) {
        let spec = self.spec(at);
        let bucket = self.bucket(at);
        if bucket.claims > 0 || bucket.key.is_none() {
            return;
        }
        if !bucket.units.is_fresh(spec) {
            let full_ms = match spec {
                LimitSpec::Rate { burst, .. } => bucket.units.ready_ms(spec, burst),
                LimitSpec::Concurrency(_) => None,
            };
            if let Some(full_ms) = full_ms.filter(|_| bucket.refill_ms.is_none()) {
                self.bucket_mut(at).refill_ms = Some(full_ms);
                self.refills.insert((full_ms, at));
            }
            return;
        }
        let bucket = self.buckets[at.0 as usize].take().expect("a bucket is dropped once");
        if let Some(due_ms) = bucket.refill_ms {
            self.refills.remove(&(due_ms, at));
        }
        if let Some(key) = bucket.key {
            self.limits[bucket.limit.0 as usize].keys.remove(&key);
        }
        self.free_buckets.push(at);
    }
}
