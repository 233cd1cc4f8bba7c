//! What the log needs of a directory.

use super::LogError;
use std::io;

/// Held while a directory is open; dropping it lets go.
pub trait LockGuard: Send + Sync {}

/// One directory. Names are plain file names that the log makes up. Creations, renames and removals are durable after
/// [`Storage::sync_directory`].
pub trait Storage: Send + Sync {
    /// Names of the files, in any order.
    fn list(&self) -> io::Result<Vec<String>>;
    /// A new, empty file. Fails if the name is taken.
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>>;
    /// A file that exists, to read and write.
    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>>;
    /// Gives a file another name, in place of a file that has it. A crash leaves one or the other under that name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Takes a file away.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes creations, renames and removals durable.
    fn sync_directory(&self) -> io::Result<()>;
    /// Why the promises on which a log rests may not hold here, if that is known.
    fn warning(&self) -> Option<String> {
        None
    }
    /// Takes the directory for this opening alone: neither another process nor another opening in this one has it.
    fn lock(&self) -> Result<Box<dyn LockGuard>, LogError>;
}

/// A file of a directory. Writes are durable after [`StorageFile::sync`], or on return of
/// [`StorageFile::write_durably`].
#[allow(clippy::len_without_is_empty, reason = "nobody asks whether a file of the log is empty")]
pub trait StorageFile: Send + Sync {
    /// Bytes of the file.
    fn len(&self) -> io::Result<u64>;
    /// Reads as much of `buffer` as there is from `offset` on; returns how much.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Cuts the file, or continues it with zeros. Durable like a write.
    fn set_len(&self, length: u64) -> io::Result<()>;
    /// Makes what was written durable.
    fn sync(&self) -> io::Result<()>;
    /// Writes all of `bytes` at `offset`, within the file, and makes them durable.
    fn write_durably(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(bytes, offset)?;
        self.sync()
    }
}
