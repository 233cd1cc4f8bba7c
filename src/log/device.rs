//! The device: staged records become frames, frames go into segments, and a full disk gets the reserve.

use super::LogError;
use super::appender::LogOptions;
use super::gone::Gone;
use super::recovery;
use super::reserve;
use super::segment::{Segment, WriteFault, next_header};
use super::storage::{LockGuard, Storage};
use crate::record::frame::{FRAMES_START, FrameHeader, frame_bytes, push_record};
use crate::record::{Lsn, Source};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A payload of about this size closes a frame.
const FRAME_PAYLOAD_BYTES: usize = 1 << 20;

/// Records that have a number and are not written yet, in frames to be.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) payload: Vec<u8>,
    pub(super) frames: Vec<PendingFrame>,
}

#[derive(Clone, Copy)]
pub(super) struct PendingFrame {
    first: Lsn,
    count: u32,
    /// Offset of its payload in the batch.
    start: usize,
    end: usize,
}

pub(super) struct Device {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) segment: Segment,
    /// Header checksum of the newest frame.
    chain: u32,
    /// What is being written, or waits for a full disk.
    pub(super) batch: Batch,
    /// Frames of the batch that are on the device.
    written: usize,
    /// The bytes of a write; kept to save the allocation.
    output: Vec<u8>,
    /// Segments before the growing one that are still there, oldest first, each with its first LSN.
    pub(super) older: Vec<(u64, Lsn)>,
    pub(super) lock: Option<Box<dyn LockGuard>>,
}

impl Batch {
    pub(super) fn push(&mut self, lsn: Lsn, source: Source, record: &[u8]) {
        let start = self.payload.len();
        push_record(&mut self.payload, source, record);
        let end = self.payload.len();
        match self.frames.last_mut() {
            Some(frame) if end - frame.start <= FRAME_PAYLOAD_BYTES => {
                frame.count += 1;
                frame.end = end;
            }
            Some(_) | None => self.frames.push(PendingFrame { first: lsn, count: 1, start, end }),
        }
    }
}

impl Device {
    pub(super) fn new(
        storage: Arc<dyn Storage>,
        segment: Segment,
        chain: u32,
        older: Vec<(u64, Lsn)>,
        lock: Box<dyn LockGuard>,
    ) -> Device {
        Device {
            storage,
            segment,
            chain,
            batch: Batch::default(),
            written: 0,
            output: Vec::new(),
            older,
            lock: Some(lock),
        }
    }

    /// Has nothing of the directory open any more. The lock goes last: whoever takes it next finds nobody else in there.
    pub(super) fn let_go(&mut self) {
        self.segment.let_go();
        self.storage = Arc::new(Gone);
        self.lock = None;
    }

    /// Takes what is staged, behind what waits for a full disk.
    pub(super) fn take(&mut self, staged: &mut Batch) {
        if self.batch.frames.is_empty() {
            std::mem::swap(&mut self.batch, staged);
            return;
        }
        let shift = self.batch.payload.len();
        self.batch.payload.append(&mut staged.payload);
        self.batch.frames.extend(staged.frames.drain(..).map(|frame| PendingFrame {
            start: frame.start + shift,
            end: frame.end + shift,
            ..frame
        }));
    }

    /// Forgets a batch that is written.
    pub(super) fn clear(&mut self) {
        self.batch.payload.clear();
        self.batch.frames.clear();
        self.written = 0;
    }

    /// Writes the frames of the batch, as many in one write as fit the segment, and publishes each write.
    pub(super) fn write(&mut self, durable: &AtomicU64, options: &LogOptions) -> Result<(), WriteFault> {
        while self.written < self.batch.frames.len() {
            let mut chain = self.chain;
            let mut index = self.written;
            let watermark = Lsn(durable.load(Ordering::Acquire));
            self.output.clear();
            while let Some(frame) = self.batch.frames.get(index).copied() {
                let bytes = frame_bytes(frame.end - frame.start);
                if !self.segment.fits(self.output.len() as u64 + bytes) {
                    break;
                }
                chain = self.build(frame, watermark, chain);
                index += 1;
            }
            if index == self.written {
                self.rotate(options)?;
                continue;
            }
            self.segment.write(&self.output, watermark)?;
            self.chain = chain;
            self.written = index;
            let last = self.batch.frames[index - 1];
            durable.store(last.first.0 + u64::from(last.count) - 1, Ordering::Release);
        }
        Ok(())
    }

    /// Adds a frame to the output; returns its chain value.
    fn build(&mut self, frame: PendingFrame, watermark: Lsn, chain: u32) -> u32 {
        let payload = &self.batch.payload[frame.start..frame.end];
        let header = FrameHeader {
            segment: self.segment.header.number,
            epoch: self.segment.header.epoch,
            first: frame.first,
            watermark: if cfg!(fusee_mutant = "watermark_frozen") { Lsn::NONE } else { watermark },
            count: frame.count,
            length: payload.len() as u32,
            chain,
            payload_checksum: crc32c::crc32c(payload),
            store: recovery::store_tag(&self.segment.header.store),
            is_seal: false,
        };
        let (bytes, checksum) = header.encode();
        let end = self.output.len() + header.frame_bytes() as usize;
        self.output.extend_from_slice(&bytes);
        self.output.extend_from_slice(payload);
        self.output.resize(end, 0);
        checksum
    }

    /// Begins the next segment, large enough for the next frame. Everything in this one is on the device.
    fn rotate(&mut self, options: &LogOptions) -> Result<(), WriteFault> {
        let frame = self.batch.frames[self.written];
        let size = options.segment_bytes.max(FRAMES_START + frame_bytes(frame.end - frame.start));
        self.next_segment(frame.first, size)
    }

    fn next_segment(&mut self, first: Lsn, size: u64) -> Result<(), WriteFault> {
        let header = next_header(&self.segment.header, first, self.chain);
        let segment = Segment::begin(&*self.storage, header, size)?;
        self.go_on_in(segment)
    }

    /// The reserve becomes the next segment.
    pub(super) fn use_reserve(&mut self) -> Result<(), WriteFault> {
        let first = self.batch.frames[self.written].first;
        let header = next_header(&self.segment.header, first, self.chain);
        match reserve::take(&*self.storage, header)? {
            Some(segment) => self.go_on_in(segment),
            None => Err(WriteFault::Full(LogError::Full { file: reserve::RESERVE_NAME.into(), needed_bytes: 0 })),
        }
    }

    fn go_on_in(&mut self, mut segment: Segment) -> Result<(), WriteFault> {
        let before = Lsn(segment.header.first.0 - 1);
        segment.complete(&*self.storage, before).inspect_err(|_| segment.discard(&*self.storage))?;
        self.older.push((self.segment.header.number, self.segment.header.first));
        self.segment = segment;
        Ok(())
    }

    /// Writes the mark of an orderly end.
    pub(super) fn seal(&mut self, durable: Lsn, options: &LogOptions) -> Result<(), WriteFault> {
        if !self.segment.fits(frame_bytes(0)) {
            self.next_segment(durable.next(), options.segment_bytes)?;
        }
        let header = FrameHeader {
            segment: self.segment.header.number,
            epoch: self.segment.header.epoch,
            first: durable.next(),
            watermark: durable,
            count: 0,
            length: 0,
            chain: self.chain,
            payload_checksum: crc32c::crc32c(&[]),
            store: recovery::store_tag(&self.segment.header.store),
            is_seal: true,
        };
        let (bytes, checksum) = header.encode();
        self.segment.write(&bytes, durable)?;
        self.chain = checksum;
        // The mark may lie in one sector with the last frame; what is damaged there is missed by the header.
        self.segment.mark(durable)
    }
}
