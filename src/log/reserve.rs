//! The reserve: a file of zeros that becomes a segment when the disk has no space for one.
//!
//! Nothing has to be allocated then: its blocks are there, it gets a header and another name. It lets what was asked for
//! on a full disk through that may make space, cancels and terminates, and the copy of what was ambiguous after an
//! unclean end. While it is used up the log takes nothing else; it is made again as soon as there is space.

use super::LogError;
use super::segment::{Segment, WriteFault, is_full};
use super::storage::{Storage, StorageFile};
use crate::record::frame::SegmentHeader;
use std::io;

/// Bytes of the reserve unless told otherwise. Judgement: a copied tail is the frames of one flush, and about 1 MiB closes
/// a frame; as much again is thousands of cancels of a hundred bytes.
pub(super) const RESERVE_BYTES: u64 = 2 << 20;

pub(super) const RESERVE_NAME: &str = "reserve";

/// Makes the reserve if it is not there whole. On a full disk nothing is left of the try.
pub(super) fn ensure(storage: &dyn Storage, bytes: u64) -> io::Result<()> {
    if storage.list()?.iter().any(|name| name == RESERVE_NAME) {
        let file = storage.open(RESERVE_NAME)?;
        if file.len()? == bytes && is_blank(&*file, bytes)? {
            return Ok(());
        }
        storage.remove(RESERVE_NAME)?;
    }
    let file = storage.create(RESERVE_NAME)?;
    let made = file.write_at(&vec![0; bytes as usize], 0).and_then(|()| file.sync());
    made.and_then(|()| storage.sync_directory()).inspect_err(|_| {
        // If that fails as well it is found unfinished the next time.
        let _ = storage.remove(RESERVE_NAME);
    })
}

/// The reserve as a segment that is not complete yet; nothing if it is not there or not whole.
pub(super) fn take(storage: &dyn Storage, header: SegmentHeader) -> Result<Option<Segment>, WriteFault> {
    let taken = (|| {
        if !storage.list()?.iter().any(|name| name == RESERVE_NAME) {
            return Ok(None);
        }
        let file = storage.open(RESERVE_NAME)?;
        let bytes = file.len()?;
        // Bytes of an earlier use that was cut short would lie behind our frames.
        Ok(if is_blank(&*file, bytes)? { Some((file, bytes)) } else { None })
    })();
    let taken = taken.map_err(|error: io::Error| WriteFault::Failed(LogError::io("read", RESERVE_NAME, &error)))?;
    Ok(taken.map(|(file, bytes)| Segment::of_zeros(header, RESERVE_NAME.into(), file, bytes)))
}

fn is_blank(file: &dyn StorageFile, bytes: u64) -> io::Result<bool> {
    // Longer than any reserve: not ours.
    let mut found = vec![1; usize::try_from(bytes).unwrap_or(0)];
    Ok(file.read_at(&mut found, 0)? == found.len() && found.iter().all(|byte| *byte == 0))
}

/// What is told when there is no space for it.
pub(super) fn missing(bytes: u64, error: &io::Error) -> LogError {
    if is_full(error) {
        LogError::Full { file: RESERVE_NAME.into(), needed_bytes: bytes }
    } else {
        LogError::io("make", RESERVE_NAME, error)
    }
}
