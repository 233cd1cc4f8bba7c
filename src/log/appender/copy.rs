//! A copy of the log while it grows: as it would be found if the process died now.

use super::{Log, POISONED};
use crate::log::LogError;
use crate::log::segment::segment_name;
use crate::log::storage::Storage;
use crate::record::Lsn;
use crate::record::frame::{HEADER_COPIES, SegmentHeader};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes that are copied at once.
const PIECE_BYTES: u64 = 1 << 20;

/// Asked before each piece whether to go on.
pub type GoesOn<'a> = &'a dyn Fn() -> Result<(), LogError>;

impl Log {
    /// Copies everything that is durable now, the newest segment first: of a copy that ends early the oldest records are
    /// missing. Nothing is trimmed meanwhile, and everything else goes on.
    pub fn copy_to(&self, target: &dyn Storage, goes_on: GoesOn<'_>) -> Result<(), LogError> {
        let _alone = self.trimming.lock();
        self.flush()?;
        let (storage, mut numbers, header, end, durable) = {
            let device = self.device.lock();
            if self.status.load(Ordering::Acquire) >= POISONED {
                return Err(self.refusal());
            }
            let numbers: Vec<u64> = device.older.iter().map(|(number, _)| *number).collect();
            let durable = Lsn(self.durable.load(Ordering::Acquire));
            (Arc::clone(&device.storage), numbers, device.segment.header, device.segment.position, durable)
        };
        let name = segment_name(header.number);
        copy_file(&*storage, target, &name, Some(end), goes_on)?;
        // The header there may know of more than was copied.
        let header = SegmentHeader { length: end, watermark: durable, ..header }.encode();
        let marked = target.open(&name).and_then(|file| {
            HEADER_COPIES.iter().try_for_each(|offset| file.write_at(&header, *offset))?;
            file.sync()
        });
        marked.map_err(|error| LogError::io("write the header of the copy of", &name, &error))?;
        while let Some(number) = numbers.pop() {
            copy_file(&*storage, target, &segment_name(number), None, goes_on)?;
        }
        Ok(())
    }
}

/// Copies a file, or so much of it. The copy is durable on return, its name is not.
pub fn copy_file(
    from: &dyn Storage,
    to: &dyn Storage,
    name: &str,
    length: Option<u64>,
    goes_on: GoesOn<'_>,
) -> Result<(), LogError> {
    let read = |error| LogError::io("copy", name, &error);
    let written = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            LogError::Full { file: format!("the copy of {name}"), needed_bytes: PIECE_BYTES }
        }
        _ => LogError::io("write the copy of", name, &error),
    };
    let source = from.open(name).map_err(read)?;
    let end = length.map_or_else(|| source.len(), Ok).map_err(read)?;
    let copy = to.create(name).map_err(written)?;
    let mut piece = vec![0; PIECE_BYTES.min(end) as usize];
    let mut offset = 0;
    while offset < end {
        goes_on()?;
        let wanted = (end - offset).min(PIECE_BYTES) as usize;
        let count = source.read_at(&mut piece[..wanted], offset).map_err(read)?;
        if count == 0 {
            return Err(read(std::io::ErrorKind::UnexpectedEof.into()));
        }
        copy.write_at(&piece[..count], offset).map_err(written)?;
        offset += count as u64;
    }
    copy.sync().map_err(written)
}
