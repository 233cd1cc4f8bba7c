//! Durable writes that go around the system's cache.
//!
//! A write of whole sectors over blocks that the file has already need not be copied into a page, nor wait for that page
//! to be written back and for the device to be flushed: where the device can, it goes there as one forced write. What it
//! saves is in `docs/decisions/0007`.

use parking_lot::Mutex;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Larger writes go through the cache: the flush is then a small part of their cost, and this bounds the buffer.
const WRITE_BYTES_MAX: usize = 64 << 10;

/// What devices ask of the place of the bytes in memory; the largest that is known.
const MEMORY_ALIGN: usize = 4096;

/// What a write must be a multiple of, in place and length.
const SECTOR_BYTES: u64 = 512;

/// A second descriptor of a file, for whole sectors.
pub(super) struct DirectFile {
    file: File,
    buffer: Mutex<Vec<u8>>,
    /// The device wants larger sectors, or the system does not know the call.
    is_refused: AtomicBool,
}

impl DirectFile {
    /// `None` where the file system does not offer it.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let flags = super::system::direct_flag()? | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let file = OpenOptions::new().write(true).custom_flags(flags).open(path).ok()?;
        let buffer = Mutex::new(vec![0; WRITE_BYTES_MAX + MEMORY_ALIGN]);
        Some(DirectFile { file, buffer, is_refused: AtomicBool::new(false) })
    }

    /// Has the bytes on the device on return, or a first part of them, and says how many. `Unsupported`: nothing was
    /// written, and this write must go another way.
    pub(super) fn write(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let is_sectors = offset.is_multiple_of(SECTOR_BYTES) && (bytes.len() as u64).is_multiple_of(SECTOR_BYTES);
        if bytes.len() > WRITE_BYTES_MAX || !is_sectors || self.is_refused.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut buffer = self.buffer.lock();
        let start = buffer.as_ptr().align_offset(MEMORY_ALIGN);
        let aligned = &mut buffer[start..start + bytes.len()];
        aligned.copy_from_slice(bytes);
        match super::system::write_combined(&self.file, aligned, offset) {
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
                self.is_refused.store(true, Ordering::Relaxed);
                Err(io::ErrorKind::Unsupported.into())
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn whole_sectors_reach_the_file_and_anything_else_is_left_to_the_cache() {
        let path = std::env::temp_dir().join(format!("fusee-direct-{}", std::process::id()));
        std::fs::write(&path, [0; 8192]).unwrap();
        let (direct, cached) = (DirectFile::open(&path), File::open(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        // A file system in memory may not offer it.
        let Some(direct) = direct else { return };
        assert_eq!(direct.write(&[1; 100], 512).unwrap_err().kind(), io::ErrorKind::Unsupported);
        assert_eq!(direct.write(&[1; 512], 100).unwrap_err().kind(), io::ErrorKind::Unsupported);
        assert_eq!(direct.write(&vec![1; WRITE_BYTES_MAX + 512], 0).unwrap_err().kind(), io::ErrorKind::Unsupported);
        if let Ok(written) = direct.write(&[7; 1024], 512) {
            assert_eq!(written, 1024);
            let mut found = [0; 2048];
            cached.read_exact_at(&mut found, 0).unwrap();
            assert!(found[..512].iter().all(|byte| *byte == 0) && found[512..1536].iter().all(|byte| *byte == 7));
        }
    }
}
