//! What the engine is told before it begins: queues, limits, bounds, retention.

use super::order::OrderConfig;
use crate::record::{LimitSpec, RetryPolicy};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Everything that is fixed for one opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The queues, by name.
    pub queues: BTreeMap<Box<str>, QueueConfig>,
    /// The limits, by name.
    pub limits: BTreeMap<Box<str>, LimitSpec>,
    /// Bounds on what is accepted and does not run, over all queues.
    pub bounds: Bounds,
    /// So many ended tasks are remembered at most.
    pub retained_max: usize,
    /// An ended task is remembered so long at most.
    pub retained_ms: i64,
    /// How tasks are scored.
    pub order: OrderConfig,
    /// Where random numbers come from. The same for the same seed.
    pub seed: u64,
    /// Number of this opening, at most 65,535: leases of another one never match.
    pub epoch: u16,
    /// Whether every change of a status is told, not only retries and ends.
    pub tells_all: bool,
    /// Length of the window of metrics.
    pub window_ms: i64,
    /// Definitions that the thread with the number 0 has code for; tasks of others wait for another thread and hold up
    /// nobody. `None`: whoever drives the engine has all.
    pub kinds: Option<BTreeSet<Box<str>>>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            queues: BTreeMap::new(),
            limits: BTreeMap::new(),
            bounds: Bounds::default(),
            retained_max: 100_000,
            retained_ms: 3_600_000,
            order: OrderConfig::default(),
            seed: 0,
            epoch: 1,
            tells_all: false,
            window_ms: 60_000,
            kinds: None,
        }
    }
}

/// How many tasks may wait. Running ones do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// In all.
    pub pending: Option<u32>,
    /// Of each class, from critical to low.
    pub pending_of: [Option<u32>; 4],
}

/// What happens to a submission when a bound is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFull {
    /// It waits for room, in the order of arrival.
    Wait,
    /// It is refused.
    Reject,
    /// The oldest waiting low task gives way.
    DropOldest,
    /// The newest waiting task of the lowest class below it gives way.
    DropLowest,
}

/// What happens to a task that waits for a key that no task has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownKey {
    /// It is refused.
    Reject,
    /// It waits for one, so long at most.
    Wait {
        /// After this it is skipped; `None`: it waits for good.
        timeout_ms: Option<u32>,
    },
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// Slots at the start, without labels.
    pub concurrency: u32,
    /// Bounds on what is accepted and does not run.
    pub bounds: Bounds,
    /// What happens when one is reached.
    pub on_full: OnFull,
    /// When failed attempts are followed by others.
    pub retry: RetryPolicy,
    /// Longest run time of an attempt, unless the task says another.
    pub timeout_ms: Option<u32>,
    /// Longest silence of an attempt's executor; `None` for executors whose end is known otherwise.
    pub lease_ms: Option<u32>,
    /// Shares by tenant in percent of an ordinary one; `None`: tenants do not matter.
    pub fair: Option<BTreeMap<Box<str>, u32>>,
    /// Part of `concurrency` that may be reserved for one time.
    pub reservable_percent: u32,
    /// Expected run time before anything was learned.
    pub default_estimate_ms: u32,
    /// A slot is kept for a reserved start so long before it at most.
    pub hold_ms_max: u32,
    /// What happens to a task that waits for a key that no task has.
    pub unknown_key: UnknownKey,
    /// Crashes of a task that do not count as attempts.
    pub free_losses: u32,
}

impl Default for QueueConfig {
    fn default() -> Self {
        QueueConfig {
            concurrency: 10,
            bounds: Bounds::default(),
            on_full: OnFull::Wait,
            retry: RetryPolicy::default(),
            timeout_ms: None,
            lease_ms: None,
            fair: None,
            reservable_percent: 50,
            default_estimate_ms: 1_000,
            hold_ms_max: 300_000,
            unknown_key: UnknownKey::Reject,
            free_losses: 1,
        }
    }
}

impl QueueConfig {
    /// How many starts can be reserved for one time.
    #[must_use]
    pub fn reservable(&self) -> u32 {
        let share = u64::from(self.concurrency) * u64::from(self.reservable_percent) / 100;
        u32::try_from(share.max(1)).unwrap_or(u32::MAX)
    }
}

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The queue or limit.
    pub name: Box<str>,
    /// What it may not be, and what to do.
    pub complaint: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\": {}", self.name, self.complaint)
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        let complain = |name: &str, complaint| Err(ConfigError { name: name.into(), complaint });
        for (name, queue) in &self.queues {
            if let Some(complaint) = queue.complaint() {
                return complain(name, complaint);
            }
        }
        for (name, limit) in &self.limits {
            if let Some(complaint) = complaint_about(*limit) {
                return complain(name, complaint);
            }
        }
        if self.window_ms < 12 {
            return complain("window_ms", "the window of metrics has 12 parts of 1 ms or more; make it 12 or more");
        }
        Ok(())
    }
}

/// What is wrong with a limit.
pub(super) fn complaint_about(limit: LimitSpec) -> Option<&'static str> {
    match limit {
        LimitSpec::Concurrency(0) => Some("a concurrency of 0 lets nothing through; make it 1 or more"),
        LimitSpec::Rate { burst: 0, .. } => Some("a burst of 0 lets nothing through; make it 1 or more"),
        LimitSpec::Rate { period_ms: 0, .. } => Some("a period of 0 ms is no rate; make it 1 or more"),
        LimitSpec::Concurrency(_) | LimitSpec::Rate { .. } => None,
    }
}

impl QueueConfig {
    fn complaint(&self) -> Option<&'static str> {
        if self.reservable_percent == 0 {
            return Some("0 % of the workers can be reserved; make it 1 or more");
        }
        if self.retry.max_attempts == 0 {
            return Some("0 attempts never run; make it 1 or more");
        }
        if self.fair.iter().flat_map(BTreeMap::values).any(|weight| *weight == 0) {
            return Some("a tenant of weight 0 never runs; make it 1 % or more");
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(change: impl FnOnce(&mut QueueConfig)) -> String {
        let mut queue = QueueConfig::default();
        change(&mut queue);
        let config = Config { queues: [("mail".into(), queue)].into(), ..Config::default() };
        config.check().unwrap_err().to_string()
    }

    #[test]
    fn a_configuration_that_could_not_run_is_refused_with_the_name() {
        assert!(complaint(|queue| queue.retry.max_attempts = 0).starts_with("\"mail\": 0 attempts"));
        assert!(complaint(|queue| queue.reservable_percent = 0).contains("reserved"));
        assert!(complaint(|queue| queue.fair = Some([("gold".into(), 0)].into())).contains("weight 0"));
    }

    #[test]
    fn a_limit_that_gives_nothing_is_refused() {
        let refused = [
            LimitSpec::Concurrency(0),
            LimitSpec::Rate { limit: 1, period_ms: 1, burst: 0 },
            LimitSpec::Rate { limit: 1, period_ms: 0, burst: 1 },
        ];
        for limit in refused {
            let config = Config { limits: [("api".into(), limit)].into(), ..Config::default() };
            assert_eq!(&*config.check().unwrap_err().name, "api");
        }
        assert_eq!(Config { window_ms: 1, ..Config::default() }.check().unwrap_err().name, "window_ms".into());
        assert_eq!(Config::default().check(), Ok(()));
    }
}
