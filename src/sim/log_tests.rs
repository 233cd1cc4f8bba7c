//! The log alone over the simulated disk: every call that may be the last one, and what the next opening finds.

use super::disk::{Faults, SimDisk};
use super::rng::Rng;
use crate::log::{Log, LogError, LogOptions, LogState};
use crate::record::{Lsn, ShardId, Source};
use std::sync::Arc;

const SHARD: Source = Source::Shard(ShardId(0));

type Records = Vec<(Lsn, Vec<u8>)>;

fn open(disk: &SimDisk) -> Result<(Log, Records), LogError> {
    let options = LogOptions { segment_bytes: 12 << 10, ..LogOptions::default() };
    let mut records = Vec::new();
    let (log, _) = Log::open(Arc::new(disk.clone()), options, &mut |lsn, _, record| {
        records.push((lsn, record.to_vec()));
    })?;
    Ok((log, records))
}

/// A record that fills a good part of a segment.
fn large(number: u64) -> Vec<u8> {
    vec![number as u8; 3_000]
}

/// A log of a dozen records in several segments.
fn several_segments(disk: &SimDisk) -> Log {
    let (log, _) = open(disk).unwrap();
    for number in 1..=12 {
        log.append(SHARD, &large(number)).unwrap();
        log.flush().unwrap();
    }
    log
}

#[test]
fn a_trim_that_dies_at_any_call_leaves_no_gap_and_everything_from_its_point_on_law_10() {
    let below = Lsn(11);
    let mut removed_in_all = 0;
    for seed in 0..40 {
        for call in 1.. {
            let disk = SimDisk::new(Rng::new(seed));
            let log = several_segments(&disk);
            disk.die_after(Some(call));
            let trimmed = log.trim(below);
            let has_died = disk.is_dead();
            log.abandon();
            disk.crash(true);
            let (log, records) = open(&disk).unwrap_or_else(|error| panic!("seed {seed}, call {call}: {error}"));
            let first = records[0].0;
            assert!(first <= below, "seed {seed}, call {call}: the log begins with record {first}");
            for (index, (lsn, record)) in records.iter().enumerate() {
                assert_eq!((*lsn, record), (Lsn(first.0 + index as u64), &large(lsn.0)));
            }
            assert_eq!(log.last(), Lsn(12));
            if !has_died {
                removed_in_all = trimmed.unwrap();
                break;
            }
        }
    }
    assert!(removed_in_all >= 4, "only {removed_in_all} segments could go");
}

#[test]
fn a_trim_whose_directory_sync_failed_takes_no_further_segment_law_9() {
    let disk = SimDisk::new(Rng::new(1));
    let log = several_segments(&disk);
    disk.set_faults(Faults { sync: 1, ..Faults::default() });
    assert!(matches!(log.trim(Lsn(11)), Err(LogError::Io { .. })));
    disk.set_faults(Faults::default());
    // Whether the first removal is durable is not known: another one might be, and leave a gap before it.
    assert!(matches!(log.state(), LogState::Poisoned(_)));
    assert!(matches!(log.trim(Lsn(11)), Err(LogError::Poisoned { .. })));
}
