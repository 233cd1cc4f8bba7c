//! A directory that is looked at and stays as it is: whatever an opening writes goes into memory.

use super::LogError;
use super::memory_storage::MemoryStorage;
use super::storage::{LockGuard, Storage, StorageFile};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

/// A directory under one in memory. It is locked like any other, so that nobody writes to it meanwhile.
pub struct ReadOnlyStorage {
    below: Arc<dyn Storage>,
    above: MemoryStorage,
    /// Files below that were taken away.
    removed: Mutex<BTreeSet<String>>,
}

impl ReadOnlyStorage {
    /// Over a directory.
    #[must_use]
    pub fn over(below: Arc<dyn Storage>) -> Self {
        ReadOnlyStorage { below, above: MemoryStorage::new(), removed: Mutex::default() }
    }

    fn has_above(&self, name: &str) -> io::Result<bool> {
        Ok(self.above.list()?.iter().any(|file| file == name))
    }
}

impl Storage for ReadOnlyStorage {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names: BTreeSet<String> = self.below.list()?.into_iter().collect();
        names.retain(|name| !self.removed.lock().contains(name));
        names.extend(self.above.list()?);
        Ok(names.into_iter().collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        if self.list()?.iter().any(|file| file == name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.above.create(name)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        if self.has_above(name)? {
            return self.above.open(name);
        }
        if self.removed.lock().contains(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Box::new(ReadOnlyFile(self.below.open(name)?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        if !self.has_above(from)? {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.above.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        if self.has_above(name)? {
            self.above.remove(name)?;
        } else if !self.list()?.iter().any(|file| file == name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.removed.lock().insert(name.into());
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self) -> Result<Box<dyn LockGuard>, LogError> {
        self.below.lock()
    }
}

/// A file below.
struct ReadOnlyFile(Box<dyn StorageFile>);

impl StorageFile for ReadOnlyFile {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn set_len(&self, _length: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Log, LogOptions};
    use crate::record::{ShardId, Source};

    fn files(storage: &dyn Storage) -> Vec<(String, Vec<u8>)> {
        let mut names = storage.list().unwrap();
        names.sort();
        let read = |name: String| {
            let file = storage.open(&name).unwrap();
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.read_at(&mut bytes, 0).unwrap();
            (name, bytes)
        };
        names.into_iter().map(read).collect()
    }

    #[test]
    fn a_log_that_was_killed_is_read_and_written_to_and_its_directory_stays_as_it_is() {
        let options = LogOptions { segment_bytes: 32 << 10, reserve_bytes: 0, ..LogOptions::default() };
        let memory = MemoryStorage::new();
        let open = |storage: Arc<dyn Storage>| {
            let mut records = Vec::new();
            let (log, _) = Log::open(storage, options, &mut |_, _, bytes| records.push(bytes.to_vec())).unwrap();
            (log, records)
        };
        let (log, _) = open(Arc::new(memory.clone()));
        log.append(Source::Shard(ShardId(0)), b"one").unwrap();
        log.flush().unwrap();
        log.abandon();
        memory.crash();
        let before = files(&memory);
        let look = Arc::new(ReadOnlyStorage::over(Arc::new(memory.clone())));
        for round in 0..3_u8 {
            let (log, records) = open(Arc::clone(&look) as Arc<dyn Storage>);
            assert_eq!((records.len(), &records[0][..]), (1 + usize::from(round), &b"one"[..]));
            log.append(Source::Shard(ShardId(0)), &[round]).unwrap();
            log.close().unwrap();
        }
        assert_eq!(files(&memory), before);
        assert!(memory.lock().is_ok(), "it lets go of the lock");
    }
}
