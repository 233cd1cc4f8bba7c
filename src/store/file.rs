//! What the store needs of a file, and the face of it that redb sees.

use super::error::is_full;
use parking_lot::Mutex;
use std::fmt;
use std::io;
use std::sync::Arc;

/// The file of a store. Writes are durable after [`StoreFile::sync`].
#[allow(clippy::len_without_is_empty, reason = "nobody asks whether the file of a store is empty")]
pub trait StoreFile: Send + Sync {
    /// Bytes of the file.
    fn len(&self) -> io::Result<u64>;
    /// Reads as much of `buffer` as there is from `offset` on; returns how much.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Cuts the file, or continues it with zeros.
    fn set_len(&self, length: u64) -> io::Result<()>;
    /// Makes what was written durable.
    fn sync(&self) -> io::Result<()>;
}

/// What has gone wrong with the file, the worst of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// A write found no space. Nothing committed is touched: open it again when there is some.
    Full,
    /// A read or a write failed.
    Failed,
    /// A sync failed: what a reader sees may not be on the device, and a second sync may lie about it. Not to be used
    /// again before it is copied.
    Unsynced,
}

pub(super) type TroubleCell = Arc<Mutex<Option<Trouble>>>;

pub(super) struct Backend {
    file: Arc<dyn StoreFile>,
    trouble: TroubleCell,
}

impl fmt::Debug for Backend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the file of a store")
    }
}

impl Backend {
    pub(super) fn new(file: Arc<dyn StoreFile>, trouble: TroubleCell) -> Self {
        Backend { file, trouble }
    }

    fn noted<T>(&self, is_sync: bool, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result {
            let trouble = if is_sync {
                Trouble::Unsynced
            } else if is_full(error) {
                Trouble::Full
            } else {
                Trouble::Failed
            };
            let mut worst = self.trouble.lock();
            *worst = (*worst).max(Some(trouble));
        }
        result
    }
}

impl redb::StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.noted(false, self.file.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let count = self.noted(false, self.file.read_at(out, offset))?;
        if count < out.len() {
            let detail = format!(
                "the file ends at {}, bytes up to {} are asked for",
                offset + count as u64,
                offset + out.len() as u64
            );
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, detail));
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.noted(false, self.file.set_len(length))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.noted(true, self.file.sync())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.noted(false, self.file.write_at(bytes, offset))
    }
}
