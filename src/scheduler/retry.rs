//! How long a task waits before its next attempt.

use super::chance::Chance;
use crate::record::RetryPolicy;

/// The wait after so many counted attempts, at least 1. `after_ms`: what the function asked for.
pub(super) fn wait_ms(policy: &RetryPolicy, counted_attempts: u32, after_ms: Option<i64>, chance: &mut Chance) -> i64 {
    let full_ms = backoff_ms(policy, counted_attempts);
    let drawn_ms = if policy.has_jitter { chance.below(full_ms) } else { full_ms };
    (drawn_ms as i64).max(after_ms.unwrap_or(0))
}

/// Without jitter: the first wait, lengthened with each attempt, up to the longest.
fn backoff_ms(policy: &RetryPolicy, counted_attempts: u32) -> u64 {
    let max_ms = u64::from(policy.max_ms);
    let mut wait_ms = u64::from(policy.initial_ms);
    for _ in 1..counted_attempts.min(64) {
        if wait_ms >= max_ms {
            break;
        }
        wait_ms = wait_ms.saturating_mul(u64::from(policy.backoff_percent)) / 100;
    }
    wait_ms.min(max_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLAIN: RetryPolicy =
        RetryPolicy { max_attempts: 10, initial_ms: 1_000, backoff_percent: 200, max_ms: 60_000, has_jitter: false };

    #[test]
    fn waits_double_up_to_the_longest() {
        let waits: Vec<u64> = (1..9).map(|attempts| backoff_ms(&PLAIN, attempts)).collect();
        assert_eq!(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(backoff_ms(&PLAIN, u32::MAX), 60_000);
    }

    #[test]
    fn what_the_function_asks_for_is_a_floor() {
        assert_eq!(wait_ms(&PLAIN, 1, Some(90_000), &mut Chance::new(1)), 90_000);
        assert_eq!(wait_ms(&PLAIN, 1, Some(10), &mut Chance::new(1)), 1_000);
    }

    proptest! {
        #[test]
        fn jitter_stays_within_the_wait(
            seed: u64, attempts in 1u32..100, initial_ms: u32, backoff_percent: u32, max_ms: u32,
        ) {
            let policy = RetryPolicy { max_attempts: 3, initial_ms, backoff_percent, max_ms, has_jitter: true };
            let wait_ms = wait_ms(&policy, attempts, None, &mut Chance::new(seed));
            prop_assert!((0..=i64::from(max_ms)).contains(&wait_ms));
        }
    }
}
