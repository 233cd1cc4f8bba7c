//! Writing one segment: zeros ahead, frames at the tail, the header when it is time.

use super::LogError;
use super::storage::{Storage, StorageFile};
use crate::record::Lsn;
use crate::record::frame::{FRAMES_START, HEADER_COPIES, SegmentHeader};
use std::io;

/// Zeros are written ahead in pieces of this size, so that a flush moves data only.
const ZEROS_AHEAD: u64 = 1 << 20;

/// Why a write did not happen.
#[derive(Debug)]
pub(super) enum WriteFault {
    /// The disk is full, and nothing that matters was written.
    Full(LogError),
    /// It is not known what was written.
    Failed(LogError),
}

impl From<WriteFault> for LogError {
    fn from(fault: WriteFault) -> Self {
        match fault {
            WriteFault::Full(error) | WriteFault::Failed(error) => error,
        }
    }
}

/// The segment that grows.
pub(super) struct Segment {
    /// As it is on the device.
    pub(super) header: SegmentHeader,
    name: String,
    file: Box<dyn StorageFile>,
    /// Bytes that the segment may have.
    size: u64,
    /// Where the next frame goes.
    pub(super) position: u64,
    /// Everything before is on the device, zeros at least.
    zeroed_to: u64,
    /// It has its name; its header is kept true from then on.
    is_named: bool,
    /// Which copy of the header is written next.
    next_copy: usize,
}

/// The file name of a segment.
pub(super) fn segment_name(number: u64) -> String {
    format!("{number:012}.log")
}

/// The number of a segment, if the file is one.
pub(super) fn segment_number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".log")?;
    (digits.len() == 12).then(|| digits.parse().ok())?
}

/// The name of a segment that is being made.
fn unfinished_name(number: u64) -> String {
    format!("{number:012}{UNFINISHED}")
}

const UNFINISHED: &str = ".new";

impl Segment {
    /// Has its file open no more.
    pub(super) fn let_go(&mut self) {
        self.file = Box::new(super::gone::Gone);
    }

    /// A file of zeros under another name. It gets its own by [`Segment::complete`]: a segment that has its name is whole.
    pub(super) fn begin(storage: &dyn Storage, header: SegmentHeader, size: u64) -> Result<Segment, WriteFault> {
        let name = unfinished_name(header.number);
        let begun = (|| {
            for left in storage.list()?.iter().filter(|name| name.ends_with(UNFINISHED)) {
                storage.remove(left)?;
            }
            storage.create(&name)
        })();
        let file = begun.map_err(|error| fault("create", &name, &error))?;
        let mut segment =
            Segment { header, name, file, size, position: FRAMES_START, zeroed_to: 0, is_named: false, next_copy: 0 };
        match segment.zero_to(FRAMES_START + 1) {
            Ok(()) => Ok(segment),
            Err(why) => {
                segment.discard(storage);
                Err(why)
            }
        }
    }

    /// A segment in a file that has its zeros already.
    pub(super) fn of_zeros(header: SegmentHeader, name: String, file: Box<dyn StorageFile>, size: u64) -> Segment {
        Segment { header, name, file, size, position: FRAMES_START, zeroed_to: size, is_named: false, next_copy: 0 }
    }

    /// Takes the file of a segment that could not be completed away, for the space. If that fails, the next one does it.
    pub(super) fn discard(&self, storage: &dyn Storage) {
        if !self.is_named {
            let _ = storage.remove(&self.name);
        }
    }

    /// Writes the header and gives the file its name: from here on the segment counts. Everything in it is on the device,
    /// up to the record `watermark`.
    pub(super) fn complete(&mut self, storage: &dyn Storage, watermark: Lsn) -> Result<(), WriteFault> {
        self.header = SegmentHeader { length: self.zeroed_to, watermark, ..self.header };
        let bytes = self.header.encode();
        let written = (|| {
            for offset in HEADER_COPIES {
                self.file.write_at(&bytes, offset)?;
            }
            if cfg!(fusee_mutant = "segment_named_early") { Ok(()) } else { self.file.sync() }
        })();
        written.map_err(|error| WriteFault::Failed(LogError::io("write the header of", &self.name, &error)))?;
        let name = segment_name(self.header.number);
        storage.rename(&self.name, &name).map_err(|error| fault("name", &name, &error))?;
        self.name = name;
        self.is_named = true;
        storage.sync_directory().map_err(|error| WriteFault::Failed(LogError::io("sync", "the directory", &error)))
    }

    /// Writes into the header how long the file is and what is durable; on return that is on the device.
    pub(super) fn mark(&mut self, watermark: Lsn) -> Result<(), WriteFault> {
        let header = SegmentHeader { length: self.zeroed_to, watermark, ..self.header };
        let marked = self.file.write_durably(&header.encode(), HEADER_COPIES[self.next_copy]);
        marked.map_err(|error| WriteFault::Failed(LogError::io("write the header of", &self.name, &error)))?;
        self.next_copy = (self.next_copy + 1) % HEADER_COPIES.len();
        self.header = header;
        Ok(())
    }

    /// Whether so many bytes fit behind what is there.
    pub(super) fn fits(&self, bytes: u64) -> bool {
        self.position + bytes <= self.size
    }

    /// Writes frames at the tail; on return they are on the device. `watermark` was before.
    pub(super) fn write(&mut self, frames: &[u8], watermark: Lsn) -> Result<(), WriteFault> {
        let end = self.position + frames.len() as u64;
        if end > self.zeroed_to {
            self.zero_to(end)?;
            // Before a frame lies there: else the file could lose its new end, and the frame with it, unnoticed.
            if self.is_named {
                self.mark(watermark)?;
            }
        }
        let written = if cfg!(fusee_mutant = "flush_skipped") {
            self.file.write_at(frames, self.position)
        } else {
            self.file.write_durably(frames, self.position)
        };
        let written = match written {
            Err(_) if cfg!(fusee_mutant = "failed_flush_retried") => self.file.sync(),
            other => other,
        };
        written.map_err(|error| WriteFault::Failed(LogError::io("write to", &self.name, &error)))?;
        self.position = end;
        Ok(())
    }

    /// Has zeros on the device up to `end`, and some more for later.
    fn zero_to(&mut self, end: u64) -> Result<(), WriteFault> {
        let target = end.max(self.zeroed_to).div_ceil(ZEROS_AHEAD) * ZEROS_AHEAD;
        let target = target.min(self.size.max(end));
        let zeros = vec![0; (target - self.zeroed_to) as usize];
        let zeroed = self.file.write_at(&zeros, self.zeroed_to).and_then(|()| self.file.sync());
        zeroed.map_err(|error| fault("extend", &self.name, &error))?;
        self.zeroed_to = target;
        Ok(())
    }
}

/// Zeros that could not be written leave nothing behind that matters: a full disk is waited for.
fn fault(operation: &'static str, name: &str, error: &io::Error) -> WriteFault {
    if is_full(error) {
        WriteFault::Full(LogError::Full { file: name.into(), needed_bytes: ZEROS_AHEAD })
    } else {
        WriteFault::Failed(LogError::io(operation, name, error))
    }
}

/// Whether there was no space.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// The header of the segment after another one.
pub(super) fn next_header(before: &SegmentHeader, first: Lsn, chain: u32) -> SegmentHeader {
    SegmentHeader { number: before.number + 1, first, chain, ..*before }
}
