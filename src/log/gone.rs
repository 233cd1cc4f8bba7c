//! What stands in the place of a directory that the log has let go of: nothing of it stays open, whoever still has the log.

use super::LogError;
use super::storage::{LockGuard, Storage, StorageFile};
use std::io;

/// Neither a directory nor a file.
pub(super) struct Gone;

fn gone<T>() -> io::Result<T> {
    Err(io::Error::other("the log is closed"))
}

impl Storage for Gone {
    fn list(&self) -> io::Result<Vec<String>> {
        gone()
    }

    fn create(&self, _name: &str) -> io::Result<Box<dyn StorageFile>> {
        gone()
    }

    fn open(&self, _name: &str) -> io::Result<Box<dyn StorageFile>> {
        gone()
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        gone()
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        gone()
    }

    fn sync_directory(&self) -> io::Result<()> {
        gone()
    }

    fn lock(&self) -> Result<Box<dyn LockGuard>, LogError> {
        Err(LogError::Closed)
    }
}

impl StorageFile for Gone {
    fn len(&self) -> io::Result<u64> {
        gone()
    }

    fn read_at(&self, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
        gone()
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        gone()
    }

    fn set_len(&self, _length: u64) -> io::Result<()> {
        gone()
    }

    fn sync(&self) -> io::Result<()> {
        gone()
    }
}
