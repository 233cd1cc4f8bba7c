//! Tests of the log.

use super::*;
use crate::record::frame::{HEADER_COPIES, SEGMENT_HEADER_BYTES};
use crate::record::{Lsn, ShardId, Source};
use std::sync::Arc;

const SHARD: Source = Source::Shard(ShardId(2));

/// Bytes of a frame of [`small_store`], its zeros at the end aside.
const FRAME_BYTES: u64 = 86;

fn small() -> LogOptions {
    LogOptions { segment_bytes: 12 << 10, reserve_bytes: 0, ..LogOptions::default() }
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

/// A store of a few frames in two segments, closed by a crash. Returns what was acknowledged.
fn small_store() -> (MemoryStorage, Vec<Vec<u8>>) {
    let memory = MemoryStorage::new();
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    let mut all = Vec::new();
    for _ in 0..2 {
        let (log, ..) = read(&storage).unwrap();
        for number in all.len()..all.len() + 4 {
            all.push(vec![number as u8; 20]);
            log.append(SHARD, &all[number]).unwrap();
            log.flush().unwrap();
        }
        log.abandon();
        memory.crash();
    }
    (memory, all)
}

fn copy(memory: &MemoryStorage) -> MemoryStorage {
    let copied = MemoryStorage::new();
    for name in memory.list().unwrap() {
        let from = memory.open(&name).unwrap();
        let mut bytes = vec![0; from.len().unwrap() as usize];
        from.read_at(&mut bytes, 0).unwrap();
        copied.create(&name).unwrap().write_durably(&bytes, 0).unwrap();
    }
    copied
}

fn open_damaged(memory: MemoryStorage) -> Result<Vec<Vec<u8>>, LogError> {
    let storage: Arc<dyn Storage> = Arc::new(memory);
    let mut records = Vec::new();
    Log::open(storage, small(), &mut |_, _, record| records.push(record.to_vec()))?;
    Ok(records)
}

#[test]
fn every_flipped_bit_is_reported_or_hits_only_what_no_later_frame_vouches_for_law_10() {
    let (memory, all) = small_store();
    let mut outcomes = (0, 0, 0);
    for name in memory.list().unwrap() {
        let is_last = name == "000000000002.log";
        let frames = (0..5).flat_map(|frame| 8192 + frame * 512..8192 + frame * 512 + FRAME_BYTES);
        for offset in (0..80).chain(4096..4176).chain(frames) {
            for bit in 0..8 {
                let damaged = copy(&memory);
                let file = damaged.open(&name).unwrap();
                let mut byte = [0];
                file.read_at(&mut byte, offset).unwrap();
                file.write_durably(&[byte[0] ^ (1 << bit)], offset).unwrap();
                match open_damaged(damaged) {
                    Ok(records) if records == all => outcomes.0 += 1,
                    Ok(records) => {
                        // Damage in the newest frame looks like a torn tail on one disk: reliability rule R4.
                        assert!(
                            is_last && records == all[..all.len() - 1],
                            "{name} {offset} bit {bit}: {}",
                            records.len()
                        );
                        outcomes.1 += 1;
                    }
                    Err(LogError::Corrupt { .. } | LogError::Newer { .. }) => outcomes.2 += 1,
                    Err(other) => panic!("{name} {offset} bit {bit}: {other}"),
                }
            }
        }
    }
    assert!(outcomes.0 > 0 && outcomes.1 > 0 && outcomes.2 > 0, "{outcomes:?}");
}

#[test]
fn a_newest_segment_that_has_become_shorter_is_damage_and_no_torn_tail_law_10() {
    let (memory, _) = small_store();
    let newest = "000000000002.log";
    let length = memory.open(newest).unwrap().len().unwrap();
    for keep in (0..length).step_by(8).chain([length - 1]) {
        let damaged = copy(&memory);
        damaged.truncate(newest, keep);
        match open_damaged(damaged) {
            Err(LogError::Corrupt { file, offset, .. }) => {
                assert!(file == newest && (offset == keep || keep < 80 && offset == 0))
            }
            other => panic!("cut to {keep}: {other:?}"),
        }
    }
}

#[test]
fn a_segment_knows_its_length_also_after_it_has_grown_law_10() {
    let memory = MemoryStorage::new();
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    let (log, _) = Log::open(Arc::clone(&storage), LogOptions::default(), &mut |_, _, _| {}).unwrap();
    for number in 0..12 {
        log.append(SHARD, &vec![number; 300_000]).unwrap();
        log.flush().unwrap();
    }
    log.abandon();
    let name = "000000000001.log";
    let length = memory.open(name).unwrap().len().unwrap();
    assert!(length > 3 << 20, "it has grown piece by piece, to {length}");
    // Where the file ended before it grew, and everywhere else.
    for keep in (1 << 20..length).step_by(64 << 10) {
        let damaged = copy(&memory);
        damaged.truncate(name, keep);
        let refused = open_damaged(damaged);
        assert!(matches!(&refused, Err(LogError::Corrupt { offset, .. }) if *offset == keep), "{keep}: {refused:?}");
    }
}

#[test]
fn a_missing_segment_is_damage_and_not_a_shorter_log_law_10() {
    let (memory, _) = small_store();
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    drop(read(&storage).unwrap());
    memory.crash();
    memory.remove("000000000002.log").unwrap();
    assert!(matches!(open_damaged(memory), Err(LogError::Corrupt { file, .. }) if file == "000000000002.log"));
}

#[test]
fn a_torn_last_frame_is_put_aside_and_what_came_before_is_kept_rule_r4() {
    let (memory, all) = small_store();
    // The second segment begins with a copy of the record that no frame of the first one vouches for.
    let last_frame = 8192 + 4 * 512;
    for keep in (0..FRAME_BYTES).step_by(8) {
        let torn = copy(&memory);
        let file = torn.open("000000000002.log").unwrap();
        file.write_durably(&vec![0; (FRAME_BYTES - keep) as usize], last_frame + keep).unwrap();
        assert_eq!(open_damaged(torn.clone()).unwrap(), all[..all.len() - 1], "{keep} bytes of it");
        let is_aside = torn.list().unwrap().iter().any(|name| name.starts_with("quarantine-"));
        assert_eq!(is_aside, keep > 0);
        torn.crash();
        // The second opening must not meet what the first one cut.
        assert_eq!(open_damaged(torn).unwrap(), all[..all.len() - 1]);
    }
}

#[test]
fn a_newer_format_is_refused_and_nothing_is_changed() {
    let (memory, _) = small_store();
    let file = memory.open("000000000002.log").unwrap();
    for offset in HEADER_COPIES {
        let mut header = [0; SEGMENT_HEADER_BYTES];
        file.read_at(&mut header, offset).unwrap();
        header[8] = 9;
        header[12..16].fill(0);
        let checksum = crc32c::crc32c(&header);
        header[12..16].copy_from_slice(&checksum.to_le_bytes());
        file.write_durably(&header, offset).unwrap();
    }
    let before = copy(&memory).list().unwrap();
    assert!(matches!(open_damaged(memory.clone()), Err(LogError::Newer { found: 9, .. })));
    assert_eq!(memory.list().unwrap(), before);
}

/// Fails its calls when told to; otherwise the storage under it.
struct Faulty {
    memory: MemoryStorage,
    fault: Arc<parking_lot::Mutex<Option<std::io::ErrorKind>>>,
}

struct FaultyFile {
    file: Box<dyn StorageFile>,
    fault: Arc<parking_lot::Mutex<Option<std::io::ErrorKind>>>,
}

impl FaultyFile {
    fn check(&self) -> std::io::Result<()> {
        self.fault.lock().map_or(Ok(()), |kind| Err(kind.into()))
    }
}

impl StorageFile for FaultyFile {
    fn len(&self) -> std::io::Result<u64> {
        self.file.len()
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
        self.check()?;
        self.file.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> std::io::Result<()> {
        self.check()?;
        self.file.write_at(bytes, offset)
    }
    fn set_len(&self, length: u64) -> std::io::Result<()> {
        self.check()?;
        self.file.set_len(length)
    }
    fn sync(&self) -> std::io::Result<()> {
        self.check()?;
        self.file.sync()
    }
    fn write_durably(&self, bytes: &[u8], offset: u64) -> std::io::Result<()> {
        // The bytes are in the cache when the flush fails, as on a real system.
        self.file.write_at(bytes, offset)?;
        self.sync_once()
    }
}

impl FaultyFile {
    /// Fails once; a second try would claim success, as the kernel does.
    fn sync_once(&self) -> std::io::Result<()> {
        match self.fault.lock().take() {
            Some(kind) => Err(kind.into()),
            None => self.file.sync(),
        }
    }
}

impl Storage for Faulty {
    fn list(&self) -> std::io::Result<Vec<String>> {
        self.memory.list()
    }
    fn create(&self, name: &str) -> std::io::Result<Box<dyn StorageFile>> {
        let file = self.memory.create(name)?;
        Ok(Box::new(FaultyFile { file, fault: Arc::clone(&self.fault) }))
    }
    fn open(&self, name: &str) -> std::io::Result<Box<dyn StorageFile>> {
        let file = self.memory.open(name)?;
        Ok(Box::new(FaultyFile { file, fault: Arc::clone(&self.fault) }))
    }
    fn rename(&self, from: &str, to: &str) -> std::io::Result<()> {
        self.memory.rename(from, to)
    }
    fn remove(&self, name: &str) -> std::io::Result<()> {
        self.memory.remove(name)
    }
    fn sync_directory(&self) -> std::io::Result<()> {
        self.memory.sync_directory()
    }
    fn lock(&self) -> Result<Box<dyn LockGuard>, LogError> {
        self.memory.lock()
    }
}

fn faulty() -> (MemoryStorage, Arc<parking_lot::Mutex<Option<std::io::ErrorKind>>>, Arc<dyn Storage>) {
    let memory = MemoryStorage::new();
    let fault = Arc::new(parking_lot::Mutex::new(None));
    let storage = Faulty { memory: memory.clone(), fault: Arc::clone(&fault) };
    (memory, fault, Arc::new(storage))
}

#[test]
fn after_a_failed_flush_nothing_more_is_acknowledged_and_reopening_recovers_law_9() {
    let (memory, fault, storage) = faulty();
    let (log, ..) = read(&storage).unwrap();
    log.append(SHARD, b"kept").unwrap();
    let acknowledged = log.flush().unwrap();
    log.append(SHARD, b"unknown").unwrap();
    *fault.lock() = Some(std::io::ErrorKind::Other);
    assert!(matches!(log.flush(), Err(LogError::Io { .. })));
    assert!(matches!(log.flush(), Err(LogError::Poisoned { .. })));
    assert!(matches!(log.append(SHARD, b"more"), Err(LogError::Poisoned { .. })));
    assert!(matches!(log.admits(), Err(LogError::Poisoned { .. })));
    assert_eq!(log.durable(), acknowledged);
    log.abandon();
    memory.crash();
    assert_eq!(read(&storage).unwrap().2, [b"kept".to_vec()]);
}

#[test]
fn what_an_opening_showed_is_there_at_the_next_one_rule_r5() {
    let (memory, fault, storage) = faulty();
    let (log, ..) = read(&storage).unwrap();
    log.append(SHARD, b"a").unwrap();
    log.flush().unwrap();
    log.append(SHARD, b"ghost").unwrap();
    *fault.lock() = Some(std::io::ErrorKind::Other);
    assert!(log.flush().is_err());
    log.abandon();
    // The process is gone, the cache is not: the new process reads what the device never got.
    let (log, opened, records) = read(&storage).unwrap();
    assert_eq!((records.len(), opened.copied > 0), (2, true));
    log.abandon();
    memory.crash();
    assert_eq!(read(&storage).unwrap().2, [b"a".to_vec(), b"ghost".to_vec()]);
}

#[test]
fn a_full_disk_refuses_new_commands_keeps_what_was_appended_and_heals_law_9() {
    let (memory, fault, storage) = faulty();
    let (log, ..) = read(&storage).unwrap();
    // The next frame needs a new segment, and there is no space for one.
    let large = vec![7; 6 << 10];
    log.append(SHARD, &large).unwrap();
    log.flush().unwrap();
    log.append(SHARD, &large).unwrap();
    *fault.lock() = Some(std::io::ErrorKind::StorageFull);
    assert!(matches!(log.flush(), Err(LogError::Full { .. })));
    assert!(matches!(log.admits(), Err(LogError::Full { .. })));
    assert!(matches!(log.state(), LogState::Full(_)));
    assert_eq!(log.append(SHARD, b"late").unwrap(), Lsn(3));
    *fault.lock() = None;
    assert_eq!(log.flush().unwrap(), Lsn(3));
    assert!(log.admits().is_ok());
    log.abandon();
    memory.crash();
    assert_eq!(read(&storage).unwrap().2, [large.clone(), large, b"late".to_vec()]);
}

#[test]
fn a_failed_read_is_an_error_and_not_the_end_of_the_log() {
    let (_, fault, storage) = faulty();
    let (log, ..) = read(&storage).unwrap();
    log.append(SHARD, b"a").unwrap();
    log.close().unwrap();
    *fault.lock() = Some(std::io::ErrorKind::Other);
    assert!(matches!(read(&storage), Err(LogError::Io { .. })));
    *fault.lock() = None;
    assert_eq!(read(&storage).unwrap().2.len(), 1);
}

#[test]
fn files_and_directories_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let root = std::env::temp_dir().join(format!("fusee-modes-{}", std::process::id()));
    let directory = root.join("deep/store");
    let storage: Arc<dyn Storage> = Arc::new(FileStorage::open(&directory).unwrap());
    let (log, ..) = read(&storage).unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for entry in std::fs::read_dir(&directory).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
    log.close().unwrap();
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o770)).unwrap();
    assert!(matches!(FileStorage::open(&directory), Err(LogError::Directory { .. })));
    std::fs::write(root.join("file"), b"x").unwrap();
    assert!(matches!(FileStorage::open(&root.join("file")), Err(LogError::Directory { .. })));
    std::fs::remove_dir_all(&root).unwrap();
}

/// Files and folders at a place that this process has open.
#[cfg(target_os = "linux")]
fn open_files(place: &std::path::Path) -> usize {
    let links =
        std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    links.filter(|link| link.starts_with(place)).count()
}

#[cfg(target_os = "linux")]
#[test]
fn a_closed_log_has_nothing_open_though_somebody_still_has_it() {
    let place = std::env::temp_dir().join(format!("fusee-closed-{}", std::process::id()));
    for is_orderly in [true, false] {
        let storage: Arc<dyn Storage> = Arc::new(FileStorage::open(&place).unwrap());
        let (log, _) = Log::open(storage, LogOptions::default(), &mut |_, _, _| {}).unwrap();
        log.append(SHARD, b"record").unwrap();
        assert!(open_files(&place) > 0);
        if is_orderly {
            log.close().unwrap();
        } else {
            log.abandon();
        }
        assert_eq!(open_files(&place), 0, "orderly: {is_orderly}");
        assert!(log.append(SHARD, b"late").is_err() && log.flush().is_err() && log.trim(Lsn(1)).is_err());
    }
    std::fs::remove_dir_all(&place).unwrap();
}
