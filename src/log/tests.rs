//! Tests of the log.

use super::*;
use crate::record::{Lsn, ShardId, Source};
use std::sync::Arc;

const SHARD: Source = Source::Shard(ShardId(2));

fn small() -> LogOptions {
    LogOptions { segment_bytes: 8 << 10, ..LogOptions::default() }
}

fn read(storage: &Arc<dyn Storage>) -> Result<(Log, Opened, Vec<Vec<u8>>), LogError> {
    let mut records = Vec::new();
    let (log, opened) = Log::open(Arc::clone(storage), small(), &mut |lsn, source, record| {
        assert_eq!((lsn.0 as usize, source), (records.len() + 1, SHARD));
        records.push(record.to_vec());
    })?;
    Ok((log, opened, records))
}

fn record(number: usize) -> Vec<u8> {
    vec![number as u8; number % 300]
}

#[test]
fn what_was_flushed_is_there_after_a_crash_law_3() {
    let memory = MemoryStorage::new();
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    let mut kept = 0;
    for round in 0..20 {
        let (log, opened, records) = read(&storage).unwrap();
        assert_eq!(opened.created, round == 0);
        assert_eq!(records, (0..kept).map(record).collect::<Vec<_>>());
        for number in kept..kept + 30 {
            log.append(SHARD, &record(number)).unwrap();
            if number % 3 == 0 {
                log.flush().unwrap();
            }
        }
        kept = log.durable().0 as usize;
        assert!(kept > 0);
        log.abandon();
        memory.crash();
    }
}

#[test]
fn an_orderly_end_is_known_and_a_crash_before_the_first_record_is_none() {
    let memory = MemoryStorage::new();
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    let (log, ..) = read(&storage).unwrap();
    log.append(SHARD, b"a").unwrap();
    log.close().unwrap();
    assert!(matches!(log.append(SHARD, b"b"), Err(LogError::Closed)));
    let (log, opened, _) = read(&storage).unwrap();
    assert!(opened.clean);
    log.abandon();
    memory.crash();
    assert!(!read(&storage).unwrap().1.clean);
}

#[test]
fn a_directory_is_open_once_rule_r7() {
    let directory = std::env::temp_dir().join(format!("fusee-log-{}", std::process::id()));
    let storage: Arc<dyn Storage> = Arc::new(FileStorage::open(&directory).unwrap());
    let (log, ..) = read(&storage).unwrap();
    let again: Arc<dyn Storage> = Arc::new(FileStorage::open(&directory).unwrap());
    assert!(
        matches!(read(&again), Err(LogError::Locked { holder, .. }) if holder.contains(&std::process::id().to_string()))
    );
    for number in 0..100 {
        log.append(SHARD, &record(number)).unwrap();
        log.flush().unwrap();
    }
    log.close().unwrap();
    let (log, opened, records) = read(&again).unwrap();
    assert!(opened.clean);
    assert_eq!(records.len(), 100);
    assert_eq!(log.last(), Lsn(100));
    drop(log);
    std::fs::remove_dir_all(&directory).unwrap();
}
