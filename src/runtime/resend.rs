//! When messages to shards of other processes are sent again: until a receipt comes, with waits that double. Law 3.
//!
//! Pure: the time is an argument. Shards that share the log need none of this.

use crate::record::ShardId;
use std::collections::BTreeMap;

/// Wait for a receipt before the first resend, in ms. Judgement: many times a round trip and a flush at both ends.
const FIRST_MS: i64 = 1_000;

/// Longest wait between two resends, in ms: so late a receiver hears of it after it has come back.
const MAX_MS: i64 = 60_000;

/// Messages sent again at a time; those behind them follow when these are acknowledged.
pub(super) const RESEND_BATCH: usize = 1_024;

/// The lanes of one sender in which messages wait for receipts, by receiver.
#[derive(Debug, Default)]
pub(super) struct Resends {
    lanes: BTreeMap<ShardId, Lane>,
}

#[derive(Debug)]
struct Lane {
    due_ms: i64,
    /// Wait until the resend after the next one.
    next_delay_ms: i64,
    /// Number of the last message that was sent again; 0: none since the lane was last empty.
    resent_to: u64,
}

impl Resends {
    /// A message for a receiver waits for its receipt from now on.
    pub(super) fn waits(&mut self, receiver: ShardId, now_ms: i64) {
        let lane = Lane { due_ms: now_ms.saturating_add(FIRST_MS), next_delay_ms: 2 * FIRST_MS, resent_to: 0 };
        self.lanes.entry(receiver).or_insert(lane);
    }

    /// A receiver has everything up to `number`; `is_empty`: nothing else waits for it.
    pub(super) fn acknowledged(&mut self, receiver: ShardId, number: u64, is_empty: bool, now_ms: i64) {
        if is_empty {
            self.lanes.remove(&receiver);
        } else if let Some(lane) = self.lanes.get_mut(&receiver) {
            // The receiver is there again: what was behind the last batch goes at once.
            let is_batch_done = lane.resent_to > 0 && number >= lane.resent_to;
            lane.due_ms = if is_batch_done { now_ms } else { now_ms.saturating_add(FIRST_MS) };
            lane.next_delay_ms = 2 * FIRST_MS;
        }
    }

    /// When something is sent again next, in ms since 1970.
    pub(super) fn due_ms(&self) -> Option<i64> {
        self.lanes.values().map(|lane| lane.due_ms).min()
    }

    /// Receivers to whom messages are sent again now.
    pub(super) fn due(&self, now_ms: i64) -> impl Iterator<Item = ShardId> {
        self.lanes.iter().filter(move |(_, lane)| lane.due_ms <= now_ms).map(|(receiver, _)| *receiver)
    }

    /// Messages up to a number were sent again; 0: none of them could be.
    pub(super) fn resent(&mut self, receiver: ShardId, number: u64, now_ms: i64) {
        if let Some(lane) = self.lanes.get_mut(&receiver) {
            lane.resent_to = number;
            lane.due_ms = now_ms.saturating_add(lane.next_delay_ms);
            lane.next_delay_ms = (2 * lane.next_delay_ms).min(MAX_MS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ShardId = ShardId(1);
    const B: ShardId = ShardId(2);

    fn resend(resends: &mut Resends, receiver: ShardId, number: u64) -> i64 {
        let now_ms = resends.due_ms().unwrap();
        assert_eq!(resends.due(now_ms).collect::<Vec<_>>(), [receiver]);
        resends.resent(receiver, number, now_ms);
        now_ms
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let mut resends = Resends::default();
        assert_eq!(resends.due_ms(), None);
        resends.waits(A, 0);
        resends.waits(A, 500);
        assert_eq!(resends.due(999).count(), 0);
        let times: Vec<i64> = (0..9).map(|_| resend(&mut resends, A, 1)).collect();
        assert_eq!(times, [1_000, 3_000, 7_000, 15_000, 31_000, 63_000, 123_000, 183_000, 243_000]);
        resends.acknowledged(A, 1, true, 250_000);
        assert_eq!(resends.due_ms(), None);
    }

    #[test]
    fn receipts_of_one_receiver_do_not_put_off_another() {
        let mut resends = Resends::default();
        resends.waits(A, 0);
        resends.waits(B, 0);
        resends.acknowledged(A, 1, false, 900);
        assert_eq!(resend(&mut resends, B, 1), 1_000);
        assert_eq!(resend(&mut resends, A, 2), 1_900);
    }

    #[test]
    fn what_is_behind_a_batch_goes_once_the_batch_is_acknowledged() {
        let mut resends = Resends::default();
        resends.waits(A, 0);
        for _ in 0..5 {
            resend(&mut resends, A, 10);
        }
        resends.acknowledged(A, 9, false, 40_000);
        assert_eq!(resends.due_ms(), Some(41_000), "the rest of the batch is on its way");
        resends.acknowledged(A, 10, false, 40_010);
        assert_eq!(resends.due_ms(), Some(40_010));
        resends.resent(A, 20, 40_010);
        assert_eq!(resends.due_ms(), Some(42_010), "waits are short again");
    }
}
