//! The disk floor: how long one durable write of 256 bytes takes when nothing else is done.
//!
//! `floor DIR` makes a zero-filled file in DIR and answers each line on stdin, a number n, with one line of 2n
//! durations in nanoseconds: n writes made durable by `fdatasync`, then n by `RWF_DSYNC` (0 where the system has none).
//! The two take turns, so that both see the same disk. The file goes when stdin ends.
//!
//! Built by `bench/floor.mjs` with rustc alone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

const WRITE_BYTES: usize = 256;
const FILE_BYTES: u64 = 4 << 20;

fn main() -> io::Result<()> {
    let dir = std::env::args().nth(1).expect("usage: floor DIR");
    let path = PathBuf::from(dir).join(format!("floor-{}", std::process::id()));
    let file = zero_filled(&path)?;
    let answered = answer(&file);
    fs::remove_file(&path)?;
    answered
}

fn zero_filled(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    let zeros = vec![0; 1 << 20];
    for offset in (0..FILE_BYTES).step_by(zeros.len()) {
        file.write_all_at(&zeros, offset)?;
    }
    file.sync_all()?;
    Ok(file)
}

fn answer(file: &File) -> io::Result<()> {
    let mut offset = 0;
    for line in io::stdin().lock().lines() {
        let count: usize = line?.trim().parse().expect("each line is a number");
        let (mut synced, mut direct) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut bytes = [b'x'; WRITE_BYTES];
        for index in 0..count {
            bytes[0] = index as u8;
            synced.push(timed(|| fdatasynced(file, &bytes, offset))?);
            offset = next(offset);
            direct.push(timed(|| dsynced(file, &bytes, offset))?);
            offset = next(offset);
        }
        let numbers: Vec<String> = synced.iter().chain(&direct).map(u64::to_string).collect();
        writeln!(io::stdout(), "{}", numbers.join(" "))?;
    }
    Ok(())
}

fn next(offset: u64) -> u64 {
    (offset + WRITE_BYTES as u64) % FILE_BYTES
}

fn timed(write: impl FnOnce() -> io::Result<bool>) -> io::Result<u64> {
    let begin = Instant::now();
    let has_written = write()?;
    Ok(if has_written { begin.elapsed().as_nanos() as u64 } else { 0 })
}

fn fdatasynced(file: &File, bytes: &[u8], offset: u64) -> io::Result<bool> {
    file.write_all_at(bytes, offset)?;
    file.sync_data()?;
    Ok(true)
}

#[cfg(target_os = "linux")]
fn dsynced(file: &File, bytes: &[u8], offset: u64) -> io::Result<bool> {
    const RWF_DSYNC: i32 = 2;
    #[repr(C)]
    struct IoVec {
        base: *const u8,
        bytes: usize,
    }
    unsafe extern "C" {
        fn pwritev2(fd: i32, vectors: *const IoVec, count: i32, offset: i64, flags: i32) -> isize;
    }
    let vector = IoVec { base: bytes.as_ptr(), bytes: bytes.len() };
    // SAFETY: one vector, which describes `bytes` and outlives the call; the kernel only reads it.
    let written = unsafe { pwritev2(file.as_raw_fd(), &vector, 1, offset as i64, RWF_DSYNC) };
    match usize::try_from(written) {
        Ok(count) if count == bytes.len() => Ok(true),
        Ok(_) => Err(io::ErrorKind::WriteZero.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

#[cfg(not(target_os = "linux"))]
fn dsynced(_: &File, _: &[u8], _: u64) -> io::Result<bool> {
    Ok(false)
}
