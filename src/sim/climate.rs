//! How a seed is run, drawn from the seed: each has faults of its own.

use super::disk::Faults;
use super::host::PAYLOAD_BYTES_SMALL;
use super::rng::Rng;

#[derive(Debug)]
pub(super) struct Climate {
    pub(super) shards: u16,
    /// Threads that run code besides the opener, at most: each opening draws their number; 0: it always runs all itself.
    pub(super) workers_max: u16,
    /// Threads that come, go, are seized or come back, one action in so many.
    pub(super) unrest: u64,
    /// Of those a thread dies or is seized, one in so many.
    pub(super) loss: u64,
    pub(super) segment_bytes: u64,
    pub(super) actions: u64,
    /// A crash about every so many actions; 0: none.
    pub(super) crash: u64,
    /// One crash in so many comes from within a call to the disk.
    pub(super) crash_in_call: u64,
    /// Recoveries that crash, one in so many; 0: none.
    pub(super) crash_in_recovery: u64,
    /// Before one in so many opens a copy of the directory is damaged and opened; 0: never.
    pub(super) rot: u64,
    /// Bytes that may wait for a full disk.
    pub(super) staged_bytes_max: usize,
    /// Bytes of the reserve; 0: there is none.
    pub(super) reserve_bytes: u64,
    /// Largest payload.
    pub(super) payload_bytes_max: usize,
    /// Records in a journal before its run fails.
    pub(super) journal_records_max: usize,
    /// Checkpoints are made, in one action of so many; 0: never.
    pub(super) checkpoint: u64,
    /// Finished runs of a shard that stay in memory.
    pub(super) kept_runs: usize,
    pub(super) faults: Faults,
}

impl Climate {
    pub(super) fn of(rng: &mut Rng) -> Climate {
        let is_faulty = rng.one_in(2);
        let mut chance = |one_in: &[u64]| if is_faulty { *rng.pick(one_in) } else { 0 };
        let faults = Faults {
            write: chance(&[0, 0, 40, 200]),
            sync: chance(&[0, 20, 60, 200]),
            read: chance(&[0, 0, 0, 300]),
            full: chance(&[0, 0, 3, 30]),
        };
        let shards = rng.below(5) as u16 + 1;
        Climate {
            shards,
            workers_max: if rng.one_in(2) { 0 } else { shards.min(rng.below(4) as u16 + 1) },
            unrest: *rng.pick(&[8, 20, 60]),
            loss: *rng.pick(&[3, 6, 12]),
            segment_bytes: *rng.pick(&[8 << 10, 12 << 10, 20 << 10]),
            actions: 150 + rng.below(450),
            crash: *rng.pick(&[0, 20, 60, 60, 150]),
            crash_in_call: *rng.pick(&[1, 2, 2, 4]),
            crash_in_recovery: *rng.pick(&[0, 0, 2, 4]),
            rot: *rng.pick(&[0, 2]),
            staged_bytes_max: *rng.pick(&[300, 4 << 10, 64 << 20]),
            reserve_bytes: *rng.pick(&[0, 10 << 10, 32 << 10]),
            payload_bytes_max: *rng.pick(&[PAYLOAD_BYTES_SMALL, 4 << 20]),
            journal_records_max: *rng.pick(&[10, 20, 50_000, 50_000]),
            checkpoint: *rng.pick(&[0, 10, 25, 60]),
            kept_runs: *rng.pick(&[0, 0, 2, 100]),
            faults,
        }
    }
}
