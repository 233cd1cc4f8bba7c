//! Which task of a queue goes next: importance, age, urgency, and a floor under everybody.
//!
//! `score = min(base + age · rate, ceiling) + urgency`, in thousandths of a point. Normal and low have the same ceiling;
//! those that have reached it are told apart by their age without it, so among them the order is that of age for
//! ever: a low one goes before a normal one that became eligible 45 s after it, however old both are.
//!
//! **Relief.** Classes above could still fill a queue for good. Each line (a class, and in it the plain tasks, those with a
//! deadline, those of tenants) counts the dispatches that passed it by. A line that was passed by [`RELIEF_PASSES`]
//! times, and whose first task has waited for [`RELIEF_WAIT_MS`], goes next whatever the scores say. There are
//! [`LINES`] lines, so the bound is: *a line whose first task has waited so long gets one of any
//! `RELIEF_PASSES + LINES` dispatches of its queue.*

use crate::record::Class;

/// Dispatches that may pass a line by before it is relieved.
pub const RELIEF_PASSES: u32 = 64;

/// How long the first task of a line has waited before it can be relieved.
pub const RELIEF_WAIT_MS: i64 = 60_000;

/// Four classes times plain, with a deadline, of a tenant.
pub const LINES: usize = 12;

/// How a class is scored, in points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassOrder {
    /// What a new task has.
    pub base: i64,
    /// What each second of waiting adds.
    pub per_s: i64,
    /// What base and waiting come to at most.
    pub ceiling: i64,
}

/// How all are scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderConfig {
    /// From critical to low.
    pub classes: [ClassOrder; 4],
    /// Urgency at the latest start time, in points.
    pub urgency_max: i64,
    /// How long before the latest start time urgency begins, at least.
    pub urgency_window_ms: i64,
    /// What each second after the latest start time adds, in points.
    pub overdue_per_s: i64,
    /// What that comes to at most.
    pub overdue_max: i64,
}

impl Default for OrderConfig {
    fn default() -> Self {
        let class = |base, ceiling| ClassOrder { base, per_s: 2, ceiling };
        OrderConfig {
            classes: [class(10_000, 10_800), class(1_000, 1_800), class(100, 900), class(10, 900)],
            urgency_max: 5_000,
            urgency_window_ms: 5_000,
            overdue_per_s: 100,
            overdue_max: 3_000,
        }
    }
}

/// What a task is worth now. Greater goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Score {
    total: i64,
    /// Without a ceiling.
    aged: i64,
}

/// When a task with a deadline must start, and how long before that it was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Latest {
    pub(super) start_ms: i64,
    pub(super) estimate_ms: i64,
}

impl OrderConfig {
    pub(super) fn score(&self, class: Class, wait_ms: i64, latest: Option<Latest>, now_ms: i64) -> Score {
        let order = &self.classes[usize::from(class.code())];
        let aged = (order.base * 1_000).saturating_add(wait_ms.max(0).saturating_mul(order.per_s));
        let urgency = latest.map_or(0, |latest| self.urgency(latest, now_ms));
        Score { total: aged.min(order.ceiling * 1_000) + urgency, aged: aged.saturating_add(urgency) }
    }

    /// Only rises with time, in thousandths of a point.
    fn urgency(&self, latest: Latest, now_ms: i64) -> i64 {
        let horizon_ms = latest.estimate_ms.max(self.urgency_window_ms).max(1);
        let slack_ms = latest.start_ms.saturating_sub(now_ms);
        if slack_ms >= horizon_ms {
            0
        } else if slack_ms >= 0 {
            let share = i128::from(horizon_ms - slack_ms) * i128::from(self.urgency_max) * 1_000;
            (share / i128::from(horizon_ms)) as i64
        } else {
            let overdue = slack_ms.saturating_neg().saturating_mul(self.overdue_per_s).min(self.overdue_max * 1_000);
            self.urgency_max * 1_000 + overdue
        }
    }

    /// Where a task stands among those that wait for a limit: its score as a time, which does not change while it
    /// waits. Smaller goes first.
    pub(super) fn rank(&self, class: Class, eligible_ms: i64) -> i64 {
        let order = &self.classes[usize::from(class.code())];
        eligible_ms.saturating_sub(order.base * 1_000 / order.per_s.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fresh(class: Class) -> Score {
        OrderConfig::default().score(class, 0, None, 0)
    }

    fn old(class: Class, wait_s: i64) -> Score {
        OrderConfig::default().score(class, wait_s * 1_000, None, 0)
    }

    #[test]
    fn an_old_low_task_goes_before_a_new_normal_one_and_after_a_new_high_one() {
        assert!(old(Class::Low, 499) > fresh(Class::Normal));
        assert!(old(Class::Low, 499) < fresh(Class::High));
        assert!(old(Class::High, 1_000_000) < fresh(Class::Critical));
    }

    #[test]
    fn forty_five_seconds_bring_low_before_normal_however_old_both_are() {
        for age_s in [0, 100, 355, 400, 1_000, 1_000_000] {
            assert!(old(Class::Low, age_s + 46) > old(Class::Normal, age_s), "at {age_s} s");
            assert!(old(Class::Low, age_s + 44) < old(Class::Normal, age_s), "at {age_s} s");
        }
    }

    #[test]
    fn an_imminent_low_task_goes_before_high_and_an_overdue_high_one_after_critical() {
        let order = OrderConfig::default();
        let latest = Some(Latest { start_ms: 0, estimate_ms: 1_000 });
        assert!(order.score(Class::Low, 0, latest, 0) > old(Class::High, 10_000));
        assert!(order.score(Class::High, 1_000_000_000, latest, i64::MAX) < fresh(Class::Critical));
    }

    proptest! {
        #[test]
        fn urgency_never_falls(start_ms in -10_000i64..100_000, estimate_ms in 0i64..20_000, now_ms in 0i64..100_000) {
            let (order, latest) = (OrderConfig::default(), Latest { start_ms, estimate_ms });
            prop_assert!(order.urgency(latest, now_ms) <= order.urgency(latest, now_ms + 1));
            prop_assert!(order.urgency(latest, now_ms) >= 0);
        }
    }
}
