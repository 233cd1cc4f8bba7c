//! A directory of the file system. Modes are explicit, whatever the umask: 0700 and 0600.

use super::LogError;
use super::direct_file::DirectFile;
use super::storage::{LockGuard, Storage, StorageFile};
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// A directory of the file system.
pub struct FileStorage {
    path: PathBuf,
    directory: File,
}

impl FileStorage {
    /// Opens a directory, and makes it if it is not there. Refuses one that others may write to.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let refuse = |detail: String| LogError::Directory { directory: path.display().to_string(), detail };
        match std::fs::metadata(path) {
            Ok(found) if !found.is_dir() => return Err(refuse("it is a file".into())),
            Ok(found) => check_owner(&found).map_err(refuse)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(path)
                    .map_err(|error| refuse(format!("it could not be made: {error}")))?;
                std::fs::set_permissions(path, Permissions::from_mode(0o700))
                    .map_err(|error| refuse(format!("its mode could not be set: {error}")))?;
                sync_parent(path).map_err(|error| refuse(format!("it could not be made durable: {error}")))?;
            }
            Err(error) => return Err(refuse(error.to_string())),
        }
        let directory = File::open(path).map_err(|error| refuse(error.to_string()))?;
        Ok(FileStorage { path: path.into(), directory })
    }

    fn options(&self) -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
        options
    }
}

fn check_owner(found: &std::fs::Metadata) -> Result<(), String> {
    let us = super::system::effective_user();
    if found.uid() != us {
        return Err(format!("it belongs to user {}, this process runs as user {us}", found.uid()));
    }
    if found.mode() & 0o022 != 0 {
        return Err(format!("its mode {:o} lets others write to it; use chmod go-w", found.mode() & 0o777));
    }
    Ok(())
}

fn sync_parent(path: &Path) -> io::Result<()> {
    let absolute = std::path::absolute(path)?;
    match absolute.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// File systems whose server or helper process decides what a flush and a lock are worth, by the numbers of Linux.
fn distant_file_system(kind: u32) -> Option<&'static str> {
    Some(match kind {
        0x6969 => "a network file system (NFS)",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "a network file system (SMB/CIFS)",
        0x0102_1997 => "a file system of the host (9p)",
        0x786f_4256 => "a shared folder of a virtual machine",
        0x6573_5546 => "a file system in a process (FUSE)",
        0x00c3_6400 => "a network file system (Ceph)",
        0x5346_414f | 0x6b41_4653 => "a network file system (AFS)",
        0x0bd0_0bd0 => "a network file system (Lustre)",
        0x0116_1970 | 0x7461_636f => "a cluster file system",
        _ => return None,
    })
}

struct FileLock {
    // Dropping the file lets go of the lock.
    _file: File,
}

impl LockGuard for FileLock {}

impl Storage for FileStorage {
    fn list(&self) -> io::Result<Vec<String>> {
        std::fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let path = self.path.join(name);
        let file = self.options().create_new(true).open(&path)?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        Ok(Box::new(DiskFile { direct: DirectFile::open(&path), ..DiskFile::new(file) }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(DiskFile::new(self.options().open(self.path.join(name))?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.directory.sync_all()
    }

    fn warning(&self) -> Option<String> {
        // Where the system does not say, there is nothing to say.
        let kind = super::system::file_system_kind(&self.directory).ok()?;
        let name = distant_file_system(kind)?;
        Some(format!(
            "directory \"{}\" is on {name}: a lock may keep nobody out there and a flush may not reach a disk, so records \
             can be lost or mixed; use a disk of this machine",
            self.path.display()
        ))
    }

    /// `flock` on an open file: the system lets go of it when the process dies, and it keeps out a second opening in
    /// this process as well. What the file says is for messages only.
    fn lock(&self) -> Result<Box<dyn LockGuard>, LogError> {
        let directory = self.path.display().to_string();
        let mut file = self
            .options()
            .create(true)
            .truncate(false)
            .open(self.path.join("lock"))
            .map_err(|error| LogError::Directory { directory: directory.clone(), detail: error.to_string() })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // Without its text the message says less, and nothing else changes.
                let _ = file.read_to_string(&mut holder);
                return Err(LogError::Locked { directory, holder });
            }
            Err(TryLockError::Error(error)) => return Err(LogError::io("lock", "lock", &error)),
        }
        let written = (|| {
            file.set_permissions(Permissions::from_mode(0o600))?;
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            write!(file, "process {} on {}", std::process::id(), host_name())
        })();
        written.map_err(|error| LogError::io("write", "lock", &error))?;
        Ok(Box::new(FileLock { _file: file }))
    }
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(|_| "this host".into(), |name| name.trim().into())
}

struct DiskFile {
    file: File,
    /// For small durable writes, where the file system has it.
    direct: Option<DirectFile>,
    /// The kernel or the file system does not know the combined call.
    lacks_combined: AtomicBool,
}

impl DiskFile {
    fn new(file: File) -> Self {
        DiskFile { file, direct: None, lacks_combined: AtomicBool::new(false) }
    }
}

impl StorageFile for DiskFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut count = 0;
        while count < buffer.len() {
            match self.file.read_at(&mut buffer[count..], offset + count as u64) {
                Ok(0) => break,
                Ok(read) => count += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write_durably(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let direct = match &self.direct {
            Some(direct) => direct.write(bytes, offset),
            None => Err(io::ErrorKind::Unsupported.into()),
        };
        match direct {
            Ok(written) if written == bytes.len() => return Ok(()),
            Ok(written) => return self.write_and_sync(&bytes[written..], offset + written as u64),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(error) => return Err(error),
        }
        if !self.lacks_combined.load(Ordering::Relaxed) {
            match super::system::write_combined(&self.file, bytes, offset) {
                Ok(written) if written == bytes.len() => return Ok(()),
                // A short write: the rest goes the other way, and the flush then covers both.
                Ok(written) => return self.write_and_sync(&bytes[written..], offset + written as u64),
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    self.lacks_combined.store(true, Ordering::Relaxed);
                }
                Err(error) => return Err(error),
            }
        }
        self.write_and_sync(bytes, offset)
    }
}

impl DiskFile {
    fn write_and_sync(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)?;
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_told_from_disks() {
        for kind in [0x6969, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997, 0x6573_5546] {
            assert!(distant_file_system(kind).is_some(), "{kind:x}");
        }
        // ext4, XFS, btrfs, overlay, tmpfs.
        for kind in [0xef53, 0x5846_5342, 0x9123_683e, 0x794c_7630, 0x0102_1994] {
            assert_eq!(distant_file_system(kind), None, "{kind:x}");
        }
    }
}
