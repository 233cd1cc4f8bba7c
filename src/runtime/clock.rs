//! The wall clock, or one that a test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where the time comes from. Due times are wall time; order never comes from a clock.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's.
    System,
    /// Stands still until somebody moves it; in ms since 1970.
    Virtual(Arc<AtomicI64>),
}

impl Clock {
    /// A clock that stands at a time until it is moved.
    #[must_use]
    pub fn virtual_at(now_ms: i64) -> Self {
        Clock::Virtual(Arc::new(AtomicI64::new(now_ms)))
    }

    /// Now, in ms since 1970.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        match self {
            Clock::System => match SystemTime::now().duration_since(UNIX_EPOCH) {
                Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
                Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
            },
            Clock::Virtual(now_ms) => now_ms.load(Ordering::Relaxed),
        }
    }

    /// Moves a virtual clock; it never goes back. Without effect on the machine's.
    pub fn advance_to(&self, now_ms: i64) {
        if let Clock::Virtual(clock) = self {
            clock.fetch_max(now_ms, Ordering::Relaxed);
        }
    }
}
