//! The units of one limit, or of one key of it. Whole numbers only: a rate is kept in units times its period, so that
//! nothing is lost to rounding however often it is looked at.

use crate::record::LimitSpec;

/// What a limit has left.
#[derive(Clone, Debug)]
pub(super) struct Units {
    /// In use now; only concurrency counts it.
    used: u64,
    /// Units that lie ready, times the period; only a rate counts it.
    level: u64,
    /// When `level` was right.
    at_ms: i64,
}

impl Units {
    /// A rate starts full, or as full as it has become since `empty_ms`, when it was empty.
    pub(super) fn new(spec: LimitSpec, now_ms: i64, empty_ms: Option<i64>) -> Units {
        let mut units = Units { used: 0, level: 0, at_ms: empty_ms.unwrap_or(now_ms) };
        match empty_ms {
            Some(_) => units.refill(spec, now_ms),
            None => units.level = full(spec),
        }
        units
    }

    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Units that can be taken now. Call [`Units::refill`] first.
    pub(super) fn available(&self, spec: LimitSpec) -> u64 {
        match spec {
            LimitSpec::Concurrency(units) => u64::from(units).saturating_sub(self.used),
            LimitSpec::Rate { period_ms, .. } => self.level / u64::from(period_ms.max(1)),
        }
    }

    pub(super) fn take(&mut self, spec: LimitSpec, amount: u32) {
        match spec {
            LimitSpec::Concurrency(_) => self.used += u64::from(amount),
            LimitSpec::Rate { period_ms, .. } => {
                self.level = self.level.saturating_sub(u64::from(amount) * u64::from(period_ms.max(1)));
            }
        }
    }

    /// Takes back what an attempt held. A rate keeps what was taken.
    pub(super) fn give(&mut self, spec: LimitSpec, amount: u32) {
        match spec {
            LimitSpec::Concurrency(_) => self.used = self.used.saturating_sub(u64::from(amount)),
            LimitSpec::Rate { .. } => {}
        }
    }

    pub(super) fn refill(&mut self, spec: LimitSpec, now_ms: i64) {
        let LimitSpec::Rate { limit, .. } = spec else { return };
        if now_ms > self.at_ms {
            let passed_ms = now_ms.saturating_sub(self.at_ms) as u64;
            self.level = self.level.saturating_add(u64::from(limit).saturating_mul(passed_ms)).min(full(spec));
            self.at_ms = now_ms;
        }
    }

    /// Keeps what is in use over a change of the definition; what lies ready never grows by it.
    pub(super) fn resize(&mut self, from: LimitSpec, to: LimitSpec, now_ms: i64) {
        self.refill(from, now_ms);
        let ready = self.available(from);
        self.level = match to {
            LimitSpec::Concurrency(_) => 0,
            LimitSpec::Rate { period_ms, .. } => ready.saturating_mul(u64::from(period_ms.max(1))).min(full(to)),
        };
        self.at_ms = self.at_ms.max(now_ms);
    }

    /// When `amount` will lie ready if nobody takes anything before. `None`: time alone does not bring it.
    pub(super) fn ready_ms(&self, spec: LimitSpec, amount: u32) -> Option<i64> {
        let LimitSpec::Rate { limit, period_ms, burst } = spec else { return None };
        if limit == 0 || amount > burst {
            return None;
        }
        let missing = (u64::from(amount) * u64::from(period_ms.max(1))).saturating_sub(self.level);
        Some(self.at_ms.saturating_add_unsigned(missing.div_ceil(u64::from(limit))))
    }

    /// Whether it is as if it had never been used.
    pub(super) fn is_fresh(&self, spec: LimitSpec) -> bool {
        match spec {
            LimitSpec::Concurrency(_) => self.used == 0,
            LimitSpec::Rate { .. } => self.level >= full(spec),
        }
    }
}

/// Most that one request can ask for.
pub(super) fn capacity(spec: LimitSpec) -> u32 {
    match spec {
        LimitSpec::Concurrency(units) => units,
        LimitSpec::Rate { burst, .. } => burst,
    }
}

fn full(spec: LimitSpec) -> u64 {
    match spec {
        LimitSpec::Concurrency(_) => 0,
        LimitSpec::Rate { period_ms, burst, .. } => u64::from(burst) * u64::from(period_ms.max(1)),
    }
}
