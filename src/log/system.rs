//! The three calls of the system that the standard library does not offer.
#![allow(unsafe_code, reason = "the system's calls, behind three safe functions")]

use std::fs::File;
use std::io;

/// The user that the process acts as.
pub(super) fn effective_user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// Writes at an offset and has the data on the device on return, in one call. `Unsupported` where the system has no such
/// call; nothing is written then. May write less than it was given.
#[cfg(target_os = "linux")]
pub(super) fn write_combined(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    use std::os::fd::AsRawFd;
    let part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let offset = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    loop {
        // SAFETY: the descriptor is open as long as `file`; the one part describes `bytes`, which is only read.
        let written = unsafe { libc::pwritev2(file.as_raw_fd(), &part, 1, offset, libc::RWF_DSYNC) };
        if let Ok(written) = usize::try_from(written) {
            return Ok(written);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::ENOSYS | libc::EOPNOTSUPP) => return Err(io::ErrorKind::Unsupported.into()),
            _ => return Err(error),
        }
    }
}

/// What opens a file for writes that go around the cache; `None` where the system has no such flag.
pub(super) fn direct_flag() -> Option<i32> {
    #[cfg(target_os = "linux")]
    return Some(libc::O_DIRECT);
    #[cfg(not(target_os = "linux"))]
    None
}

/// Nothing of the kind here.
#[cfg(not(target_os = "linux"))]
pub(super) fn write_combined(_file: &File, _bytes: &[u8], _offset: u64) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The number by which the system knows the kind of file system that a file is on.
#[cfg(target_os = "linux")]
pub(super) fn file_system_kind(file: &File) -> io::Result<u32> {
    use std::os::fd::AsRawFd;
    let mut found = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the descriptor is open as long as `file`; the call writes the whole of `found` when it returns 0.
    let found = unsafe {
        if libc::fstatfs(file.as_raw_fd(), found.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        found.assume_init()
    };
    // Its type differs from system to system; the numbers have 32 bits.
    Ok(found.f_type as u32)
}

/// Nothing of the kind here.
#[cfg(not(target_os = "linux"))]
pub(super) fn file_system_kind(_file: &File) -> io::Result<u32> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_file_system_is_the_number_that_the_system_has_for_it() {
        assert_eq!(file_system_kind(&File::open("/proc/self/stat").unwrap()).unwrap(), 0x9fa0);
    }
}
