//! Frames and segment headers: how records lie in the files of the log.
//!
//! ```text
//! segment   header | zeros ...4096 | header | zeros ...8192 | frame | frame | ... | zeros
//! header    magic 8 | format 4 | checksum 4 | number 8 | epoch 8 | first LSN 8 | chain 4 | 0 4 | store id 16
//!           | length 8 | watermark 8
//! frame     magic 4 | header checksum 4 | segment 8 | epoch 8 | first LSN 8 | watermark 8
//!           | count 4 | length 4 | chain 4 | payload checksum 4 | store 4 | flags 4 | payload | zeros to 512
//! payload   for each record: length, source (varints), bytes
//! ```
//!
//! Numbers are little endian, checksums CRC32C. The watermark is the newest LSN known durable when the frame was built;
//! the chain is the header checksum of the frame before. A segment belongs to one open of the log, its epoch.
//!
//! The copies of a segment's header are written in turn while it grows, so that one of them is whole at any moment. Both
//! are true; the one with the greater length and watermark says more.

use super::{DecodeError, Lsn, Reader, Source, Writer};

/// Version of the layout. A newer one is refused untouched.
pub const FORMAT: u32 = 1;

/// Where the first frame of a segment is.
pub const FRAMES_START: u64 = 8192;

/// Where the two copies of a segment's header are: no device writes both at once.
pub const HEADER_COPIES: [u64; 2] = [0, 4096];

/// Bytes of a segment's header.
pub const SEGMENT_HEADER_BYTES: usize = 80;

/// Bytes of a frame's header.
pub const FRAME_HEADER_BYTES: usize = 64;

/// Frames begin at multiples of this: the smallest sector of a disk. A write that is torn in a sector then harms no frame
/// that was acknowledged before, and the system can hand whole sectors to the device without copying them first.
pub const FRAME_ALIGN: u64 = 512;

const SEGMENT_MAGIC: [u8; 8] = *b"fuseelog";
const FRAME_MAGIC: [u8; 4] = *b"fsfr";

/// Flag of the last frame of an orderly close.
const SEAL: u32 = 1;

/// Header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Number of the segment, from 1, without gaps.
    pub number: u64,
    /// The open that wrote it.
    pub epoch: u64,
    /// First LSN of its first frame. Frames of earlier segments from here on are superseded.
    pub first: Lsn,
    /// Chain value of its first frame.
    pub chain: u32,
    /// Identity of the directory.
    pub store: [u8; 16],
    /// Bytes that the file had durably when this was written. It never gets shorter.
    pub length: u64,
    /// The newest LSN that was known durable when this was written.
    pub watermark: Lsn,
}

/// Why bytes are no header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentFault {
    /// Never written: all zeros.
    Blank,
    /// Written by a newer version.
    Newer(u32),
    /// Anything else.
    Damaged,
}

impl SegmentHeader {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        bytes[..8].copy_from_slice(&SEGMENT_MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.first.0.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.chain.to_le_bytes());
        bytes[48..64].copy_from_slice(&self.store);
        bytes[64..72].copy_from_slice(&self.length.to_le_bytes());
        bytes[72..80].copy_from_slice(&self.watermark.0.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads [`SEGMENT_HEADER_BYTES`] bytes.
    pub fn decode(bytes: &[u8]) -> Result<SegmentHeader, SegmentFault> {
        let bytes: &[u8; SEGMENT_HEADER_BYTES] = bytes.try_into().map_err(|_| SegmentFault::Damaged)?;
        if bytes.iter().all(|byte| *byte == 0) {
            return Err(SegmentFault::Blank);
        }
        let mut covered = *bytes;
        covered[12..16].fill(0);
        if bytes[..8] != SEGMENT_MAGIC || crc32c::crc32c(&covered) != u32_at(bytes, 12) {
            return Err(SegmentFault::Damaged);
        }
        match u32_at(bytes, 8) {
            FORMAT => {}
            newer if newer > FORMAT => return Err(SegmentFault::Newer(newer)),
            _ => return Err(SegmentFault::Damaged),
        }
        let mut store = [0; 16];
        store.copy_from_slice(&bytes[48..64]);
        Ok(SegmentHeader {
            number: u64_at(bytes, 16),
            epoch: u64_at(bytes, 24),
            first: Lsn(u64_at(bytes, 32)),
            chain: u32_at(bytes, 40),
            store,
            length: u64_at(bytes, 64),
            watermark: Lsn(u64_at(bytes, 72)),
        })
    }
}

/// Header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Number of its segment.
    pub segment: u64,
    /// The open that wrote it.
    pub epoch: u64,
    /// Number of its first record.
    pub first: Lsn,
    /// The newest LSN that was known durable when it was built.
    pub watermark: Lsn,
    /// Number of records.
    pub count: u32,
    /// Bytes of the payload.
    pub length: u32,
    /// Header checksum of the frame before.
    pub chain: u32,
    /// Checksum of the payload.
    pub payload_checksum: u32,
    /// First bytes of the directory's identity.
    pub store: u32,
    /// It ends an orderly close.
    pub is_seal: bool,
}

impl FrameHeader {
    /// Its bytes, and their checksum for the chain.
    #[must_use]
    pub fn encode(&self) -> ([u8; FRAME_HEADER_BYTES], u32) {
        let mut bytes = [0; FRAME_HEADER_BYTES];
        bytes[..4].copy_from_slice(&FRAME_MAGIC);
        bytes[8..16].copy_from_slice(&self.segment.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first.0.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.watermark.0.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.count.to_le_bytes());
        bytes[44..48].copy_from_slice(&self.length.to_le_bytes());
        bytes[48..52].copy_from_slice(&self.chain.to_le_bytes());
        bytes[52..56].copy_from_slice(&self.payload_checksum.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.store.to_le_bytes());
        bytes[60..64].copy_from_slice(&(if self.is_seal { SEAL } else { 0 }).to_le_bytes());
        let checksum = crc32c::crc32c(&bytes);
        bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
        (bytes, checksum)
    }

    /// Reads [`FRAME_HEADER_BYTES`] bytes, and the checksum for the chain. `None`: they are no header.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<(FrameHeader, u32)> {
        let bytes: &[u8; FRAME_HEADER_BYTES] = bytes.try_into().ok()?;
        if bytes[..4] != FRAME_MAGIC {
            return None;
        }
        let checksum = u32_at(bytes, 4);
        let mut covered = *bytes;
        covered[4..8].fill(0);
        let flags = u32_at(bytes, 60);
        if crc32c::crc32c(&covered) != checksum || flags & !SEAL != 0 {
            return None;
        }
        let header = FrameHeader {
            segment: u64_at(bytes, 8),
            epoch: u64_at(bytes, 16),
            first: Lsn(u64_at(bytes, 24)),
            watermark: Lsn(u64_at(bytes, 32)),
            count: u32_at(bytes, 40),
            length: u32_at(bytes, 44),
            chain: u32_at(bytes, 48),
            payload_checksum: u32_at(bytes, 52),
            store: u32_at(bytes, 56),
            is_seal: flags & SEAL != 0,
        };
        Some((header, checksum))
    }

    /// Bytes of the whole frame, its zeros at the end included.
    #[must_use]
    pub fn frame_bytes(&self) -> u64 {
        frame_bytes(self.length as usize)
    }
}

/// Bytes of a frame with a payload of so many.
#[must_use]
pub fn frame_bytes(payload: usize) -> u64 {
    (FRAME_HEADER_BYTES as u64 + payload as u64).next_multiple_of(FRAME_ALIGN)
}

/// Whether a frame header might begin with these bytes.
#[must_use]
pub fn is_frame_magic(bytes: &[u8]) -> bool {
    bytes.starts_with(&FRAME_MAGIC)
}

/// Adds a record to a payload.
pub fn push_record(payload: &mut Vec<u8>, source: Source, record: &[u8]) {
    let mut writer = Writer::new(payload);
    writer.number(record.len() as u64);
    writer.number(source.to_code());
    writer.raw(record);
}

/// Reads the records of a payload, `count` of them.
pub fn read_records<'a>(
    payload: &'a [u8],
    count: u32,
    mut each: impl FnMut(Source, &'a [u8]),
) -> Result<(), DecodeError> {
    let mut reader = Reader::new(payload);
    for _ in 0..count {
        let length = reader.number()?;
        let code = reader.number()?;
        let source = Source::from_code(code).ok_or(DecodeError::Unknown(code))?;
        each(source, reader.raw(usize::try_from(length).map_err(|_| DecodeError::Short)?)?);
    }
    reader.end()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame() -> FrameHeader {
        FrameHeader {
            segment: 3,
            epoch: 9,
            first: Lsn(70),
            watermark: Lsn(69),
            count: 2,
            length: 40,
            chain: 5,
            payload_checksum: 6,
            store: 7,
            is_seal: true,
        }
    }

    fn segment() -> SegmentHeader {
        SegmentHeader {
            number: 4,
            epoch: 2,
            first: Lsn(9),
            chain: 1,
            store: [8; 16],
            length: 1 << 20,
            watermark: Lsn(12),
        }
    }

    #[test]
    fn headers_round_trip() {
        let (bytes, checksum) = frame().encode();
        assert_eq!(FrameHeader::decode(&bytes), Some((frame(), checksum)));
        assert_eq!(SegmentHeader::decode(&segment().encode()), Ok(segment()));
        assert_eq!(SegmentHeader::decode(&[0; SEGMENT_HEADER_BYTES]), Err(SegmentFault::Blank));
    }

    #[test]
    fn headers_have_the_bytes_that_they_were_released_with() {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let golden = "66736672 d7e9f358 0300000000000000 0900000000000000 4600000000000000 4500000000000000 02000000 \
                      28000000 05000000 06000000 07000000 01000000";
        assert_eq!(hex(&frame().encode().0), golden.replace(' ', ""));
        let golden = "66757365656c6f67 01000000 0769f3e6 0400000000000000 0200000000000000 0900000000000000 01000000 \
                      00000000 08080808080808080808080808080808 0000100000000000 0c00000000000000";
        assert_eq!(hex(&segment().encode()), golden.replace(' ', ""));
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_noticed_law_10() {
        let (bytes, _) = frame().encode();
        for bit in 0..FRAME_HEADER_BYTES * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FrameHeader::decode(&damaged), None, "bit {bit}");
        }
        let segment = segment().encode();
        for bit in 0..SEGMENT_HEADER_BYTES * 8 {
            let mut damaged = segment;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::decode(&damaged), Err(SegmentFault::Damaged), "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_payloads_never_panic(payload in proptest::collection::vec(any::<u8>(), 0..200), count in 0u32..1_000) {
            let mut bytes = 0;
            let _ = read_records(&payload, count, |_, record| bytes += record.len());
            prop_assert!(bytes <= payload.len());
        }

        #[test]
        fn payloads_round_trip(records in proptest::collection::vec((0u64..9, proptest::collection::vec(any::<u8>(), 0..40)), 0..9)) {
            let mut payload = Vec::new();
            for (code, record) in &records {
                push_record(&mut payload, Source::from_code(*code).unwrap(), record);
            }
            let mut read = Vec::new();
            read_records(&payload, records.len() as u32, |source, record| read.push((source.to_code(), record.to_vec()))).unwrap();
            prop_assert_eq!(read, records);
        }
    }
}
