//! The log alone over the simulated disk: every call that may be the last one, and what the next opening finds.

use super::disk::{Faults, SimDisk};
use super::rng::Rng;
use crate::log::{Log, LogError, LogOptions, LogState, Storage};
use crate::record::{Lsn, ShardId, Source};
use std::sync::Arc;

const SHARD: Source = Source::Shard(ShardId(0));

type Records = Vec<(Lsn, Vec<u8>)>;

fn open(disk: &SimDisk) -> Result<(Log, Records), LogError> {
    let options = LogOptions { segment_bytes: 12 << 10, reserve_bytes: 16 << 10, ..LogOptions::default() };
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

/// A log whose next record needs space, on a disk that has none.
fn full(disk: &SimDisk) -> Log {
    let log = several_segments(disk);
    disk.set_faults(Faults { full: 1, ..Faults::default() });
    log.append(SHARD, &large(13)).unwrap();
    assert!(matches!(log.flush(), Err(LogError::Full { .. })));
    log
}

#[test]
fn on_a_full_disk_what_is_urgent_is_written_into_the_reserve_with_what_waits_before_it_law_9() {
    let disk = SimDisk::new(Rng::new(1));
    let log = full(&disk);
    assert!(matches!(log.admits(), Err(LogError::Full { .. })));
    log.admits_urgent(100).unwrap();
    assert_eq!((log.durable(), log.append(SHARD, b"urgent").unwrap()), (Lsn(12), Lsn(14)));
    log.hurry();
    assert_eq!(log.flush().unwrap(), Lsn(14));
    assert!(matches!(log.admits(), Err(LogError::Full { .. })), "it is for nothing else");
    // There is room left in it.
    log.admits_urgent(100).unwrap();
    log.append(SHARD, b"urgent").unwrap();
    log.hurry();
    assert_eq!(log.flush().unwrap(), Lsn(15));
    // Until there is none.
    let taken = (16..40).take_while(|_| {
        let is_taken = log.admits_urgent(3_000).is_ok();
        if is_taken {
            log.append(SHARD, &large(0)).unwrap();
            log.hurry();
            let _ = log.flush();
        }
        is_taken
    });
    assert!((1..4).contains(&taken.count()));
    let (durable, last) = (log.durable(), log.last());
    assert!(durable < last);
    disk.set_faults(Faults::default());
    assert_eq!(log.flush().unwrap(), last);
    log.admits().unwrap();
    // The reserve is there again.
    disk.set_faults(Faults { full: 1, ..Faults::default() });
    log.append(SHARD, &large(1)).unwrap();
    log.append(SHARD, &large(2)).unwrap();
    log.hurry();
    let last = log.flush().unwrap();
    assert_eq!(last, log.last());
    log.abandon();
    disk.crash(true);
    disk.set_faults(Faults::default());
    assert_eq!(open(&disk).unwrap().1.len() as u64, last.0);
}

#[test]
fn the_end_of_a_log_on_a_full_disk_is_written_into_the_reserve() {
    let disk = SimDisk::new(Rng::new(1));
    let log = full(&disk);
    log.close().unwrap();
    disk.crash(true);
    disk.set_faults(Faults::default());
    assert_eq!(open(&disk).unwrap().1.len(), 13);
}

#[test]
fn too_much_that_waits_for_a_full_disk_keeps_what_is_urgent_out() {
    let disk = SimDisk::new(Rng::new(1));
    let log = full(&disk);
    log.append(SHARD, &large(14)).unwrap();
    log.append(SHARD, &large(15)).unwrap();
    assert!(
        matches!(log.admits_urgent(100), Err(LogError::Full { .. })),
        "half of the reserve does not hold 9,000 bytes"
    );
}

#[test]
fn after_an_unclean_end_a_full_disk_has_room_for_the_copy_law_9() {
    for seed in 0..20 {
        for call in 1.. {
            let disk = SimDisk::new(Rng::new(seed));
            let log = several_segments(&disk);
            log.abandon();
            disk.crash(false);
            disk.set_faults(Faults { full: 1, ..Faults::default() });
            disk.die_after(Some(call));
            let opened = open(&disk).map(|(log, records)| {
                let is_full = matches!(log.state(), LogState::Full(_));
                log.abandon();
                (is_full, records.len())
            });
            let has_died = disk.is_dead();
            disk.crash(true);
            if !has_died {
                assert_eq!(opened.unwrap(), (true, 12), "it opens, and is full");
            }
            disk.set_faults(Faults::default());
            let (log, records) = open(&disk).unwrap_or_else(|error| panic!("seed {seed}, call {call}: {error}"));
            assert_eq!(records.len(), 12, "seed {seed}, call {call}");
            log.admits().unwrap();
            if !has_died {
                break;
            }
        }
    }
}

#[test]
fn torn_bytes_that_cannot_be_kept_on_a_full_disk_do_not_hinder_the_open() {
    let disk = SimDisk::new(Rng::new(3));
    let log = several_segments(&disk);
    log.abandon();
    disk.crash(false);
    let newest = disk.list().unwrap().into_iter().rfind(|name| name.ends_with(".log")).unwrap();
    let file = disk.open(&newest).unwrap();
    let length = file.len().unwrap();
    file.write_durably(&[7; 20], length - 100).unwrap();
    disk.set_faults(Faults { full: 1, ..Faults::default() });
    let mut records = 0;
    let options = LogOptions { segment_bytes: 12 << 10, reserve_bytes: 16 << 10, ..LogOptions::default() };
    let (_, opened) = Log::open(Arc::new(disk.clone()), options, &mut |_, _, _| records += 1).unwrap();
    assert_eq!(records, 12);
    assert!(opened.warnings.iter().any(|text| text.contains(&newest)), "{:?}", opened.warnings);
    assert!(!disk.list().unwrap().iter().any(|name| name.starts_with("quarantine")));
}
