//! Opening a log: what is there, what is torn, what is damaged, and what must be made durable before anything rests on it.
//!
//! * A frame counts when its header and payload are whole, it continues the chain, and it belongs to its segment's epoch.
//! * A segment's frames end where the next segment's first record begins; what lies behind was superseded by a copy.
//! * In the last segment, the first place that is no frame is the end. If a later frame there knows that more was
//!   durable, that is damage; else it is a torn tail, whose bytes are put aside.
//! * A segment gets its name when it is complete, and its header says how long its file is and what was durable when that
//!   was written: one without a header, or a last one that is shorter or ends before that record, is damaged.
//! * Records past the newest watermark may have survived without ever having been flushed. They are copied into the new
//!   segment, and that is flushed and its header completed, before the log is given out.

use super::LogError;
use super::appender::LogOptions;
use super::reserve;
use super::segment::{Segment, WriteFault, is_full, segment_name, segment_number};
use super::storage::{Storage, StorageFile};
use crate::record::frame::{
    FORMAT, FRAME_ALIGN, FRAME_HEADER_BYTES, FRAMES_START, FrameHeader, HEADER_COPIES, SEGMENT_HEADER_BYTES,
    SegmentFault, SegmentHeader, frame_bytes, is_frame_magic, read_records,
};
use crate::record::{Lsn, Source};

/// What opening found.
#[derive(Clone, Debug, Default)]
pub struct Opened {
    /// There was no log.
    pub created: bool,
    /// The last close was orderly.
    pub clean: bool,
    /// Records read.
    pub records: u64,
    /// Bytes of these records.
    pub bytes: u64,
    /// The newest record.
    pub last: Lsn,
    /// Bytes behind the last whole frame that were put aside.
    pub torn_bytes: u64,
    /// Records that may never have been flushed and were written again.
    pub copied: u64,
    /// Identity of the directory.
    pub store_id: [u8; 16],
    /// What somebody should know, though it hinders nothing.
    pub warnings: Vec<String>,
}

/// What is known of a log before its records are read.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// There is none: it is about to be made.
    pub is_new: bool,
    /// Identity of the directory.
    pub store_id: [u8; 16],
    /// The first record that is there, or will be.
    pub first: Lsn,
}

/// A log that is ready to grow.
pub(super) struct Recovered {
    pub(super) segment: Segment,
    pub(super) chain: u32,
    pub(super) last: Lsn,
    pub(super) older: Vec<(u64, Lsn)>,
    pub(super) opened: Opened,
}

/// A frame that may never have been flushed.
struct TailFrame {
    first: Lsn,
    count: u32,
    payload: Vec<u8>,
}

/// The walk over all segments.
struct Walk<'a> {
    options: &'a LogOptions,
    each: &'a mut dyn FnMut(Lsn, Source, &[u8]),
    next: Lsn,
    chain: u32,
    is_sealed: bool,
    watermark: Lsn,
    /// Frames past the watermark.
    tail: Vec<TailFrame>,
    records: u64,
    bytes: u64,
    /// Somebody outside the log knows that this was durable.
    known_durable: Lsn,
    warnings: Vec<String>,
}

/// The first bytes of a directory's identity, for its frames.
pub(super) fn store_tag(store: &[u8; 16]) -> u32 {
    u32::from_le_bytes([store[0], store[1], store[2], store[3]])
}

pub(super) fn recover(
    storage: &dyn Storage,
    options: &LogOptions,
    begin_reading: &mut dyn FnMut(Found) -> Result<Lsn, LogError>,
    each: &mut dyn FnMut(Lsn, Source, &[u8]),
) -> Result<Recovered, LogError> {
    let headers = read_headers(storage)?;
    let Some(newest) = headers.last().copied() else { return create(storage, options, begin_reading) };
    let known_durable = begin_reading(Found { is_new: false, store_id: newest.store, first: headers[0].first })?;
    let mut walk = Walk {
        options,
        each,
        next: headers[0].first,
        chain: headers[0].chain,
        is_sealed: false,
        watermark: Lsn(headers[0].first.0 - 1),
        tail: Vec::new(),
        records: 0,
        bytes: 0,
        known_durable,
        warnings: Vec::new(),
    };
    let mut torn_bytes = 0;
    for (index, header) in headers.iter().enumerate() {
        let following = headers.get(index + 1);
        torn_bytes = walk.segment(storage, header, following)?;
    }
    let is_newest_empty = walk.next == newest.first && torn_bytes == 0;
    let number = if is_newest_empty { newest.number } else { newest.number + 1 };
    let mut older: Vec<(u64, Lsn)> = headers.iter().map(|header| (header.number, header.first)).collect();
    if is_newest_empty {
        older.pop();
    }
    let clean = walk.is_sealed;
    let (next, records, bytes, warnings) = (walk.next, walk.records, walk.bytes, walk.warnings);
    let tail = if clean || cfg!(fusee_mutant = "tail_not_copied") { Vec::new() } else { walk.tail };
    let copied = tail.iter().map(|frame| u64::from(frame.count)).sum();
    let header = SegmentHeader {
        number,
        epoch: next_epoch(newest.epoch)?,
        first: tail.first().map_or(next, |frame| frame.first),
        chain: 0,
        ..newest
    };
    // A file that an open before this one took away may come back, after the one before it is taken away below.
    storage.sync_directory().map_err(|error| LogError::io("sync", "the directory", &error))?;
    let (segment, chain) = begin(storage, options, header, &tail)?;
    let last = Lsn(next.0 - 1);
    let opened =
        Opened { created: false, clean, records, bytes, last, torn_bytes, copied, store_id: newest.store, warnings };
    Ok(Recovered { segment, chain, last, older, opened })
}

fn create(
    storage: &dyn Storage,
    options: &LogOptions,
    begin_reading: &mut dyn FnMut(Found) -> Result<Lsn, LogError>,
) -> Result<Recovered, LogError> {
    let mut store = [0; 16];
    getrandom::fill(&mut store).map_err(no_randomness)?;
    begin_reading(Found { is_new: true, store_id: store, first: Lsn(1) })?;
    let header = SegmentHeader {
        number: 1,
        epoch: next_epoch(0)?,
        first: Lsn(1),
        chain: 0,
        store,
        length: 0,
        watermark: Lsn::NONE,
    };
    let (segment, chain) = begin(storage, options, header, &[])?;
    let opened = Opened { created: true, clean: true, store_id: store, ..Opened::default() };
    Ok(Recovered { segment, chain, last: Lsn::NONE, older: Vec::new(), opened })
}

/// Begins the segment of this open with what has to be copied; it counts once it is complete.
fn begin(
    storage: &dyn Storage,
    options: &LogOptions,
    header: SegmentHeader,
    tail: &[TailFrame],
) -> Result<(Segment, u32), LogError> {
    let copied: u64 = tail.iter().map(|frame| frame_bytes(frame.payload.len())).sum();
    let size = options.segment_bytes.max(FRAMES_START + copied);
    let before = Lsn(header.first.0 - 1);
    let last = tail.last().map_or(before, |frame| Lsn(frame.first.0 + u64::from(frame.count) - 1));
    let (bytes, chain) = build(&header, tail, before);
    let fill = |mut segment: Segment| {
        let written = if bytes.is_empty() { Ok(()) } else { segment.write(&bytes, before) };
        match written.and_then(|()| segment.complete(storage, last)) {
            Ok(()) => Ok(segment),
            Err(fault) => {
                segment.discard(storage);
                Err(fault)
            }
        }
    };
    let begun = match Segment::begin(storage, header, size).and_then(fill) {
        Err(WriteFault::Full(error)) => match reserve::take(storage, header)? {
            Some(segment) if segment.fits(copied) => fill(segment),
            Some(_) | None => Err(WriteFault::Full(error)),
        },
        begun => begun,
    };
    Ok((begun?, chain))
}

/// The frames of the tail as they are in the new segment, and the chain value of the last one.
fn build(header: &SegmentHeader, tail: &[TailFrame], watermark: Lsn) -> (Vec<u8>, u32) {
    let mut chain = header.chain;
    let mut bytes = Vec::new();
    for frame in tail {
        let built = FrameHeader {
            segment: header.number,
            epoch: header.epoch,
            first: frame.first,
            watermark,
            count: frame.count,
            length: frame.payload.len() as u32,
            chain,
            payload_checksum: crc32c::crc32c(&frame.payload),
            store: store_tag(&header.store),
            is_seal: false,
        };
        let (head, checksum) = built.encode();
        let end = bytes.len() + built.frame_bytes() as usize;
        bytes.extend_from_slice(&head);
        bytes.extend_from_slice(&frame.payload);
        bytes.resize(end, 0);
        chain = checksum;
    }
    (bytes, chain)
}

/// Epochs rise from open to open, and no two opens have the same, even if one of them left no trace that counts.
fn next_epoch(before: u64) -> Result<u64, LogError> {
    let mut chance = [0; 4];
    getrandom::fill(&mut chance).map_err(no_randomness)?;
    Ok(((before >> 32) + 1) << 32 | u64::from(u32::from_le_bytes(chance)))
}

fn no_randomness(error: getrandom::Error) -> LogError {
    LogError::Io {
        operation: "get random numbers for",
        file: "the log".into(),
        kind: std::io::ErrorKind::Other,
        detail: error.to_string(),
    }
}

/// The headers of all segments, in order.
fn read_headers(storage: &dyn Storage) -> Result<Vec<SegmentHeader>, LogError> {
    let names = storage.list().map_err(|error| LogError::io("list", "the directory", &error))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| segment_number(name)).collect();
    numbers.sort_unstable();
    let mut headers: Vec<SegmentHeader> = Vec::with_capacity(numbers.len());
    for number in numbers {
        let name = segment_name(number);
        let file = storage.open(&name).map_err(|error| LogError::io("open", &name, &error))?;
        let expected = headers.last().map_or(number, |before| before.number + 1);
        if number != expected {
            return Err(damage(&segment_name(expected), 0, Lsn::NONE, "the file is missing"));
        }
        match read_header(&*file, &name)? {
            Ok(header) if header.number != number => {
                return Err(damage(&name, 0, header.first, &format!("it is a copy of segment {}", header.number)));
            }
            Ok(header) => {
                if let Some(before) = headers.last()
                    && (header.store != before.store || header.first < before.first || header.epoch < before.epoch)
                {
                    return Err(damage(&name, 0, header.first, "it does not follow the segment before it"));
                }
                headers.push(header);
            }
            Err(SegmentFault::Newer(found)) => return Err(LogError::Newer { file: name, found, supported: FORMAT }),
            Err(SegmentFault::Blank | SegmentFault::Damaged) => {
                return Err(damage(&name, 0, Lsn::NONE, "its header is damaged"));
            }
        }
    }
    Ok(headers)
}

/// Of the copies that are whole the one that says more.
fn read_header(file: &dyn StorageFile, name: &str) -> Result<Result<SegmentHeader, SegmentFault>, LogError> {
    let mut found = Err(SegmentFault::Blank);
    for offset in HEADER_COPIES {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        file.read_at(&mut bytes, offset).map_err(|error| LogError::io("read", name, &error))?;
        found = match (SegmentHeader::decode(&bytes), found) {
            (Ok(this), Ok(other)) => {
                let rank = |header: &SegmentHeader| (header.length, header.watermark);
                Ok(if rank(&this) > rank(&other) { this } else { other })
            }
            (Ok(header), Err(_)) | (Err(_), Ok(header)) => Ok(header),
            (Err(SegmentFault::Blank), Err(other)) | (Err(other), Err(SegmentFault::Blank)) => Err(other),
            (Err(SegmentFault::Newer(version)), Err(_)) | (Err(_), Err(SegmentFault::Newer(version))) => {
                Err(SegmentFault::Newer(version))
            }
            (Err(SegmentFault::Damaged), Err(SegmentFault::Damaged)) => Err(SegmentFault::Damaged),
        };
    }
    Ok(found)
}

fn read_all(file: &dyn StorageFile, name: &str) -> Result<Vec<u8>, LogError> {
    let length = file.len().map_err(|error| LogError::io("read", name, &error))?;
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    let count = file.read_at(&mut bytes, 0).map_err(|error| LogError::io("read", name, &error))?;
    bytes.truncate(count);
    Ok(bytes)
}

/// Everything from an offset on that looks like the header of a frame.
fn frames_in(bytes: &[u8], from: u64) -> impl Iterator<Item = (u64, FrameHeader)> {
    let from = (from.next_multiple_of(FRAME_ALIGN) as usize).min(bytes.len());
    (from..bytes.len()).step_by(FRAME_ALIGN as usize).filter_map(|offset| {
        if !is_frame_magic(&bytes[offset..]) {
            return None;
        }
        let head = bytes.get(offset..offset + FRAME_HEADER_BYTES)?;
        FrameHeader::decode(head).map(|(header, _)| (offset as u64, header))
    })
}

impl Walk<'_> {
    /// Reads a segment up to its end, or up to where the following one begins. Returns the bytes that were put aside.
    fn segment(
        &mut self,
        storage: &dyn Storage,
        header: &SegmentHeader,
        following: Option<&SegmentHeader>,
    ) -> Result<u64, LogError> {
        let name = segment_name(header.number);
        let file = storage.open(&name).map_err(|error| LogError::io("open", &name, &error))?;
        // A segment is a bounded file: one read, and every length in it is checked against what was read.
        let bytes = read_all(&*file, &name)?;
        if header.first > self.next {
            return Err(damage(&name, 0, self.next, &format!("it begins with record {} instead", header.first)));
        }
        if header.first < self.next {
            // Copies of what was read from the segment before, which ends where this one begins.
            return Err(damage(&name, 0, header.first, "records are there twice"));
        }
        self.known_durable(header.watermark);
        self.chain = header.chain;
        self.is_sealed = false;
        let mut position = FRAMES_START;
        let end = following.map(|following| following.first);
        while end.is_none_or(|end| self.next < end || cfg!(fusee_mutant = "tail_not_cut")) {
            match self.frame(&bytes, position, header, end) {
                Some(length) => position += length,
                None => break,
            }
        }
        match end {
            Some(end) if self.next == end => Ok(0),
            Some(end) => {
                Err(damage(&name, position, self.next, &format!("records up to {} are not whole", Lsn(end.0 - 1))))
            }
            None => self.end(storage, &name, &bytes, position, header),
        }
    }

    /// Reads the frame at a position. Returns its length, or nothing if there is no frame that counts.
    fn frame(&mut self, bytes: &[u8], position: u64, segment: &SegmentHeader, end: Option<Lsn>) -> Option<u64> {
        let start = position as usize;
        let head = bytes.get(start..start + FRAME_HEADER_BYTES)?;
        let (header, checksum) = FrameHeader::decode(head)?;
        let is_ours = header.segment == segment.number
            && header.epoch == segment.epoch
            && header.store == store_tag(&segment.store)
            && header.first == self.next
            && header.chain == self.chain;
        let last = Lsn(header.first.0 + u64::from(header.count));
        if !is_ours || end.is_some_and(|end| last > end && !cfg!(fusee_mutant = "tail_not_cut")) {
            return None;
        }
        let payload_start = start + FRAME_HEADER_BYTES;
        let payload = bytes.get(payload_start..payload_start + header.length as usize)?;
        if payload.len() > self.options.record_bytes_max.saturating_add(FRAME_LIMIT)
            || crc32c::crc32c(payload) != header.payload_checksum
        {
            return None;
        }
        let mut lsn = header.first;
        let each = &mut *self.each;
        read_records(payload, header.count, |source, record| {
            each(lsn, source, record);
            lsn = lsn.next();
        })
        .ok()?;
        self.records += u64::from(header.count);
        self.bytes += payload.len() as u64;
        self.next = last;
        self.chain = checksum;
        self.is_sealed = header.is_seal;
        self.known_durable(header.watermark);
        if last.0 > self.watermark.0 + 1 && header.count > 0 {
            self.tail.push(TailFrame { first: header.first, count: header.count, payload: payload.to_vec() });
        }
        Some(header.frame_bytes())
    }

    fn known_durable(&mut self, lsn: Lsn) {
        self.watermark = self.watermark.max(lsn);
        let watermark = self.watermark;
        self.tail.retain(|frame| frame.first.0 + u64::from(frame.count) - 1 > watermark.0);
    }

    /// Judges what lies behind the last whole frame of the last segment.
    fn end(
        &mut self,
        storage: &dyn Storage,
        name: &str,
        bytes: &[u8],
        position: u64,
        segment: &SegmentHeader,
    ) -> Result<u64, LogError> {
        let is_short = (bytes.len() as u64) < segment.length && !cfg!(fusee_mutant = "truncation_undetected");
        if is_short {
            let detail = format!("the file had {} bytes, it has {}", segment.length, bytes.len());
            return Err(damage(name, bytes.len() as u64, self.next, &detail));
        }
        if self.next <= self.known_durable {
            let detail = format!("the run store knows that record {} was durable", self.known_durable);
            return Err(damage(name, position, self.next, &detail));
        }
        if self.next <= segment.watermark {
            let detail = format!("its header knows that record {} was durable", segment.watermark);
            return Err(damage(name, position, self.next, &detail));
        }
        let rest = bytes.get(position as usize..).unwrap_or_default();
        let torn = rest.iter().rposition(|byte| *byte != 0).map_or(0, |index| index + 1);
        if torn == 0 {
            return Ok(0);
        }
        for (offset, later) in frames_in(bytes, position) {
            let is_ours = later.segment == segment.number && later.epoch == segment.epoch;
            if is_ours && later.watermark >= self.next {
                let detail = format!("the frame at {offset} knows that record {} was durable", later.watermark);
                return Err(damage(name, position, self.next, &detail));
            }
        }
        if self.is_sealed {
            return Err(damage(name, position, self.next, "there are bytes behind the mark of an orderly end"));
        }
        if !put_aside(storage, name, position, &rest[..torn])? {
            self.warnings.push(format!(
                "the disk is full: {torn} bytes of an unfinished write were not copied out of {name}, where they are at \
                 offset {position}; none of them was acknowledged"
            ));
        }
        Ok(torn as u64)
    }
}

/// More than a frame's payload has besides one record of the largest size.
const FRAME_LIMIT: usize = 2 << 20;

/// Keeps the bytes of a torn tail for whoever wants to look at them. `false`: the disk is full. They stay where they are,
/// and the copy of what may have been acknowledged needs the space more.
fn put_aside(storage: &dyn Storage, name: &str, position: u64, torn: &[u8]) -> Result<bool, LogError> {
    let aside = format!("quarantine-{}-{position}", name.trim_end_matches(".log"));
    let kept = (|| {
        if storage.list()?.contains(&aside) {
            return Ok(());
        }
        let file = storage.create(&aside)?;
        file.write_at(torn, 0)?;
        file.sync()?;
        storage.sync_directory()
    })();
    match kept {
        Ok(()) => Ok(true),
        Err(error) if is_full(&error) => {
            // It may not have been created.
            let _ = storage.remove(&aside);
            Ok(false)
        }
        Err(error) => Err(LogError::io("write", &aside, &error)),
    }
}

fn damage(file: &str, offset: u64, from: Lsn, detail: &str) -> LogError {
    LogError::Corrupt { file: file.into(), offset, from, detail: detail.into() }
}
