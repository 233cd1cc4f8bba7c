//! A directory in memory, for tests and for engines that keep nothing.

use super::LogError;
use super::storage::{LockGuard, Storage, StorageFile};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// A directory in memory. Clones are the same directory.
#[derive(Clone, Default)]
pub struct MemoryStorage {
    directory: Arc<Mutex<Directory>>,
}

#[derive(Default)]
struct Directory {
    files: BTreeMap<String, Arc<Mutex<Content>>>,
    is_locked: bool,
}

#[derive(Default)]
struct Content {
    /// The file up to its last byte that is not zero, at least: segments are mostly zeros, and take no memory for them.
    bytes: Vec<u8>,
    length: usize,
    /// What was there before each write since the last sync.
    before: Vec<Before>,
}

struct Before {
    offset: usize,
    overwritten: Vec<u8>,
    kept: usize,
    length: usize,
}

impl Content {
    fn write(&mut self, bytes: &[u8], from: usize) {
        let end = from + bytes.len();
        self.length = self.length.max(end);
        if from >= self.bytes.len() && bytes.iter().all(|byte| *byte == 0) {
            return;
        }
        if end > self.bytes.len() {
            self.bytes.resize(end, 0);
        }
        self.bytes[from..end].copy_from_slice(bytes);
    }
}

impl MemoryStorage {
    /// An empty directory.
    #[must_use]
    pub fn new() -> Self {
        MemoryStorage::default()
    }

    /// Loses what was written since the last sync of each file, and the lock, as if the process had been killed and the
    /// machine lost its power.
    pub fn crash(&self) {
        let mut directory = self.directory.lock();
        directory.is_locked = false;
        for content in directory.files.values() {
            let mut content = content.lock();
            while let Some(Before { offset, overwritten, kept, length }) = content.before.pop() {
                let end = offset + overwritten.len();
                if content.bytes.len() < end {
                    content.bytes.resize(end, 0);
                }
                content.bytes[offset..end].copy_from_slice(&overwritten);
                content.bytes.truncate(kept);
                content.length = length;
            }
        }
    }
}

#[cfg(test)]
impl MemoryStorage {
    /// Cuts a file, as a damaged file system would.
    pub(super) fn truncate(&self, name: &str, length: u64) {
        let directory = self.directory.lock();
        let mut content = directory.files[name].lock();
        content.bytes.truncate(length as usize);
        content.length = length as usize;
        content.before.clear();
    }
}

struct MemoryLock(MemoryStorage);

impl LockGuard for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.0.directory.lock().is_locked = false;
    }
}

struct MemoryFile(Arc<Mutex<Content>>);

impl Storage for MemoryStorage {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.directory.lock().files.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let mut directory = self.directory.lock();
        if directory.files.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let content = Arc::<Mutex<Content>>::default();
        directory.files.insert(name.into(), Arc::clone(&content));
        Ok(Box::new(MemoryFile(content)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let content = self.directory.lock().files.get(name).cloned().ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(MemoryFile(content)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut directory = self.directory.lock();
        let content = directory.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        directory.files.insert(to.into(), content);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.directory.lock().files.remove(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self) -> Result<Box<dyn LockGuard>, LogError> {
        let mut directory = self.directory.lock();
        if directory.is_locked {
            return Err(LogError::Locked { directory: ":memory:".into(), holder: "in this process".into() });
        }
        directory.is_locked = true;
        Ok(Box::new(MemoryLock(self.clone())))
    }
}

impl StorageFile for MemoryFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().length as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let content = self.0.lock();
        let from = (offset as usize).min(content.length);
        let count = buffer.len().min(content.length - from);
        let kept = content.bytes.get(from..).unwrap_or_default();
        let kept = &kept[..kept.len().min(count)];
        buffer[..kept.len()].copy_from_slice(kept);
        buffer[kept.len()..count].fill(0);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let content = &mut *self.0.lock();
        let (from, kept, length) = (offset as usize, content.bytes.len(), content.length);
        let end = from + bytes.len();
        let overwritten = content.bytes[from.min(kept)..end.min(kept)].to_vec();
        content.before.push(Before { offset: from.min(kept), overwritten, kept, length });
        content.write(bytes, from);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let content = &mut *self.0.lock();
        let (kept, before) = (content.bytes.len(), content.length);
        let length = length as usize;
        let cut = content.bytes.split_off(kept.min(length));
        content.before.push(Before { offset: kept.min(length), overwritten: cut, kept, length: before });
        content.length = length;
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.0.lock().before.clear();
        Ok(())
    }

    fn write_durably(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let content = &mut *self.0.lock();
        content.write(bytes, offset as usize);
        content.before.clear();
        Ok(())
    }
}
