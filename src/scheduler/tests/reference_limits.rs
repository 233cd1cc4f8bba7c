//! Limits of concurrency as `reference` knows them, for the tasks of one queue: who takes, who waits where, who is woken,
//! and whom nobody passes. It finds each of them by looking at all claims.

use crate::record::TaskNo;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Free,
    /// `since`: the takes of its limit, less those that have passed it by.
    Waits {
        since: i64,
    },
    Woken {
        since: i64,
    },
    Held,
}

#[derive(Debug)]
struct Claim {
    task: TaskNo,
    rank: i64,
    wants: Vec<(String, u32)>,
    place: Place,
    /// The part that it lacked.
    short: String,
    passed: i64,
    /// Nobody passes it, but who has been longer so.
    stamp: Option<u64>,
}

#[derive(Debug, Default)]
struct Counter {
    takes: i64,
    rests_until: i64,
}

pub(super) struct Claims {
    /// By name.
    units: BTreeMap<String, u32>,
    counters: BTreeMap<String, Counter>,
    /// In the order in which they were made.
    claims: Vec<Claim>,
    woken: Vec<TaskNo>,
    pub(super) stamps: u64,
    is_suspended: bool,
}

impl Claims {
    pub(super) fn new(limits: &[(&str, u32)]) -> Claims {
        Claims {
            units: limits.iter().map(|(name, units)| ((*name).to_owned(), *units)).collect(),
            counters: BTreeMap::new(),
            claims: Vec::new(),
            woken: Vec::new(),
            stamps: 0,
            is_suspended: false,
        }
    }

    pub(super) fn add(&mut self, task: TaskNo, wants: &[(String, u32)], rank: i64) {
        let mut sums: Vec<(String, u32)> = Vec::new();
        for (bucket, amount) in wants {
            match sums.iter_mut().find(|sum| sum.0 == *bucket) {
                Some(sum) => sum.1 += amount,
                None => sums.push((bucket.clone(), *amount)),
            }
        }
        for (bucket, _) in &sums {
            self.counters.entry(bucket.clone()).or_default();
        }
        let (place, short) = (Place::Free, String::new());
        self.claims.push(Claim { task, rank, wants: sums, place, short, passed: 0, stamp: None });
    }

    pub(super) fn remove(&mut self, task: TaskNo) {
        self.withdraw(task);
        self.claims.retain(|claim| claim.task != task);
        let named = |bucket: &String| self.claims.iter().any(|claim| claim.amount(bucket).is_some());
        let mut counters = std::mem::take(&mut self.counters);
        counters.retain(|bucket, _| bucket.ends_with(':') || named(bucket));
        self.counters = counters;
    }

    pub(super) fn set_rank(&mut self, task: TaskNo, rank: i64) {
        let at = self.find(task);
        self.claims[at].rank = rank;
    }

    pub(super) fn poll_woken(&mut self) -> Vec<TaskNo> {
        let is_woken = |claim: &Claim| matches!(claim.place, Place::Woken { .. });
        let all = std::mem::take(&mut self.woken);
        all.into_iter().filter(|task| self.claims.iter().any(|claim| claim.task == *task && is_woken(claim))).collect()
    }

    fn find(&self, task: TaskNo) -> usize {
        self.claims.iter().position(|claim| claim.task == task).unwrap()
    }

    fn capacity(&self, bucket: &str) -> u32 {
        self.units[bucket.split(':').next().unwrap()]
    }

    fn left(&self, bucket: &str) -> u32 {
        let held = self.claims.iter().filter(|claim| claim.place == Place::Held);
        let used: u32 = held.filter_map(|claim| claim.amount(bucket)).sum();
        self.capacity(bucket).saturating_sub(used)
    }

    /// Whom nobody passes at a limit.
    fn protected(&self, bucket: &str) -> Option<usize> {
        let of = (0..self.claims.len()).filter(|at| self.claims[*at].amount(bucket).is_some());
        of.filter(|at| self.claims[*at].stamp.is_some()).min_by_key(|at| self.claims[*at].stamp)
    }

    /// Takes all of it, or waits for the first part that is short.
    pub(super) fn take(&mut self, task: TaskNo) -> bool {
        let at = self.find(task);
        let before = self.claims[at].short.clone();
        let was_woken = matches!(self.claims[at].place, Place::Woken { .. });
        if let Place::Woken { since } = self.claims[at].place {
            self.claims[at].passed = self.counters[&before].takes - since;
        }
        self.claims[at].place = Place::Free;
        let wants = self.claims[at].wants.clone();
        let own = self.claims[at].stamp.unwrap_or(u64::MAX);
        let is_short = |(bucket, amount): &&(String, u32)| {
            let first = self.protected(bucket).and_then(|first| self.claims[first].stamp);
            first.is_some_and(|stamp| stamp < own) || self.left(bucket) < *amount
        };
        if let Some((bucket, _)) = wants.iter().find(is_short) {
            self.wait_at(at, bucket);
            if was_woken && before != *bucket {
                self.wake(&before);
            }
            return false;
        }
        for (bucket, _) in &wants {
            self.counters.get_mut(bucket).unwrap().takes += 1;
        }
        self.claims[at].place = Place::Held;
        self.claims[at].passed = 0;
        self.unprotect(at);
        for (bucket, _) in &wants {
            self.protect(bucket);
            self.wake(bucket);
        }
        true
    }

    fn wait_at(&mut self, at: usize, bucket: &str) {
        let since = self.counters[bucket].takes - self.claims[at].passed;
        self.claims[at].short = bucket.to_owned();
        self.claims[at].place = Place::Waits { since };
        self.protect(bucket);
        self.wake(bucket);
    }

    /// Whoever was passed by 16 takes is passed no more: one at a time, and 16 takes after the last one.
    fn protect(&mut self, bucket: &str) {
        let waits = |claim: &Claim| match claim.place {
            Place::Waits { since } if claim.short == bucket && claim.stamp.is_none() => Some(since),
            _ => None,
        };
        loop {
            let Counter { takes, rests_until } = self.counters[bucket];
            let oldest = (0..self.claims.len()).filter_map(|at| Some((waits(&self.claims[at])?, at))).min();
            let Some((since, at)) = oldest else { return };
            if self.protected(bucket).is_some() || takes < rests_until || takes - since < 16 {
                return;
            }
            if !self.is_suspended && self.claims[at].amount(bucket).unwrap() <= self.capacity(bucket) {
                self.stamps += 1;
                self.claims[at].stamp = Some(self.stamps);
                return;
            }
            self.claims[at].place = Place::Waits { since: takes };
        }
    }

    fn unprotect(&mut self, at: usize) {
        if self.claims[at].stamp.take().is_none() {
            return;
        }
        for (bucket, _) in self.claims[at].wants.clone() {
            let counter = self.counters.get_mut(&bucket).unwrap();
            counter.rests_until = counter.takes + 16;
        }
        if let Place::Waits { .. } = self.claims[at].place {
            let since = self.counters[&self.claims[at].short].takes;
            self.claims[at].place = Place::Waits { since };
        }
    }

    /// Something may be there for whoever waits: one at a time, whom nobody passes or who ranks first among those it does for.
    fn wake(&mut self, bucket: &str) {
        let left = self.left(bucket);
        let is_out = |claim: &Claim| matches!(claim.place, Place::Woken { .. }) && claim.short == bucket;
        if left == 0 || self.claims.iter().any(is_out) {
            return;
        }
        let fits = |at: &usize| {
            let claim = &self.claims[*at];
            let waits = matches!(claim.place, Place::Waits { .. }) && claim.short == bucket;
            waits && claim.amount(bucket).unwrap() <= left
        };
        let chosen = match self.protected(bucket) {
            Some(at) => Some(at).filter(fits),
            None => (0..self.claims.len()).filter(fits).min_by_key(|at| (self.claims[*at].rank, *at)),
        };
        if let Some(at) = chosen
            && let Place::Waits { since } = self.claims[at].place
        {
            self.claims[at].place = Place::Woken { since };
            self.woken.push(self.claims[at].task);
        }
    }

    pub(super) fn release(&mut self, task: TaskNo) {
        let at = self.find(task);
        for (bucket, _) in self.claims[at].wants.clone() {
            self.claims[at].place = Place::Free;
            self.wake(&bucket);
        }
    }

    pub(super) fn withdraw(&mut self, task: TaskNo) {
        let at = self.find(task);
        let was = std::mem::replace(&mut self.claims[at].place, Place::Free);
        let was_protected = self.claims[at].stamp.is_some();
        self.claims[at].passed = 0;
        self.unprotect(at);
        if let Place::Woken { .. } = was {
            self.wake(&self.claims[at].short.clone());
        }
        if was_protected {
            self.claims[at].wants.clone().iter().for_each(|(bucket, _)| self.wake(bucket));
        }
    }

    pub(super) fn resize(&mut self, name: &str, units: u32) {
        self.units.insert(name.to_owned(), units);
        let buckets: Vec<String> =
            self.counters.keys().filter(|bucket| bucket.split(':').next() == Some(name)).cloned().collect();
        for bucket in buckets {
            let is_impossible = |claim: &Claim| claim.amount(&bucket).is_some_and(|amount| amount > units);
            let impossible = (0..self.claims.len()).filter(|at| is_impossible(&self.claims[*at]));
            let impossible: Vec<usize> = impossible.filter(|at| self.claims[*at].stamp.is_some()).collect();
            impossible.into_iter().for_each(|at| self.unprotect(at));
            self.wake(&bucket);
        }
    }

    pub(super) fn suspend(&mut self, is_suspended: bool) {
        if !std::mem::replace(&mut self.is_suspended, is_suspended) && is_suspended {
            let mut all: Vec<usize> = (0..self.claims.len()).filter(|at| self.claims[*at].stamp.is_some()).collect();
            all.sort_by_key(|at| self.claims[*at].stamp);
            for at in all {
                self.unprotect(at);
                self.claims[at].wants.clone().iter().for_each(|(bucket, _)| self.wake(bucket));
            }
        }
    }
}

impl Claim {
    fn amount(&self, bucket: &str) -> Option<u32> {
        self.wants.iter().find(|part| part.0 == bucket).map(|part| part.1)
    }
}
