//! A run as one file (`.fjnl`): what was recorded about it, and nothing of the directory that it lived in.
//!
//! ```text
//! file      header | entry | entry | ...
//! header    magic 8 | format 4 | checksum 4 | entries 4 | shard 2 | shards 2 | bytes of the entries 8 | flags 4 | 0 4
//! entry     length of the record, LSN above that of the entry before (varints) | record | checksum 4
//! ```
//!
//! Numbers are little endian, checksums CRC32C: that of the header covers the header with zeros in its place, that of an
//! entry all of the entry before it. Records are those of a journal, as they are in the log.
//!
//! Such a file comes from anywhere. [`JournalFile::decode`] looks at all of it once and allocates nothing; whoever is
//! handed one may rely on what it has checked.

use super::{DecodeError, Lsn, Numbered, Reader, Record, RunNo, Seq, ShardId, TEXT_BYTES_MAX, Writer};
use std::fmt;

/// Version of the layout.
pub const JOURNAL_FILE_FORMAT: u32 = 1;

/// Bytes of the header.
const HEADER_BYTES: usize = 40;

/// Bytes of a file at most: positions in a journal are numbers of 32 bits.
const FILE_BYTES_MAX: usize = 1 << 30;

/// Highest number of an operation: a replay has a place for each up to the highest.
const OPERATIONS_MAX: u32 = 1 << 24;

/// No log comes so far.
const LSN_MAX: u64 = 1 << 52;

/// A directory has at most so many shards.
const SHARDS_MAX: u16 = 1_024;

const MAGIC: [u8; 8] = *b"fuseerun";

/// Flag of a file that ends before the run's records did.
const CUT: u32 = 1;

/// Where the records of a run end early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut<'a> {
    /// Before the first record of the first step of this name.
    BeforeStep(&'a str),
    /// Before the first record of this operation.
    BeforeOperation(Seq),
}

impl Cut<'_> {
    /// How many of the records come before it. `None`: it is not among them.
    pub fn place<'a>(self, records: &mut dyn Iterator<Item = Numbered<'a>>) -> Option<usize> {
        let mut first: Option<(Seq, usize)> = None;
        for (place, Numbered { record, .. }) in records.enumerate() {
            let Some(seq) = record.operation() else { continue };
            match self {
                Cut::BeforeOperation(wanted) if wanted == seq => return Some(place),
                Cut::BeforeStep(name) if record.step_name() == Some(name) && first.is_none_or(|(old, _)| seq < old) => {
                    first = Some((seq, place));
                }
                Cut::BeforeOperation(_) | Cut::BeforeStep(_) => {}
            }
        }
        first.map(|(_, place)| place)
    }
}

/// Why bytes are no run, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalFault {
    /// First byte of what is wrong.
    pub offset: usize,
    /// What is wrong.
    pub what: JournalWrong,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalWrong {
    /// It does not begin like one.
    NoJournal,
    /// Written by a newer version.
    Newer(u32),
    /// The header is damaged.
    Header,
    /// So many bytes are there; so many there should be.
    Length(u64, u64),
    /// It is longer than a run can be, with so many bytes.
    TooLong(u64),
    /// The entry is damaged: its checksum is another one, or it does not fit into the file.
    Entry,
    /// The bytes of the entry are no record.
    Record(DecodeError),
    /// The record cannot be where it is.
    Rule(&'static str),
}

impl fmt::Display for JournalFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            JournalWrong::NoJournal => formatter.write_str("this is no exported run"),
            JournalWrong::Newer(format) => write!(
                formatter,
                "it has format {format} and this version reads up to {JOURNAL_FILE_FORMAT}: use a newer version"
            ),
            JournalWrong::Header => formatter.write_str("the header is damaged"),
            JournalWrong::Length(found, wanted) => write!(formatter, "it has {found} bytes and should have {wanted}"),
            JournalWrong::TooLong(bytes) => {
                write!(formatter, "it has {bytes} bytes; a run has at most {FILE_BYTES_MAX}")
            }
            JournalWrong::Entry => formatter.write_str("the entry is damaged"),
            JournalWrong::Record(error) => write!(formatter, "the entry is no record: {error}"),
            JournalWrong::Rule(rule) => formatter.write_str(rule),
        }
    }
}

impl std::error::Error for JournalFault {}

/// Builds a file, record by record.
#[derive(Debug)]
pub struct JournalFileWriter {
    bytes: Vec<u8>,
    scratch: Vec<u8>,
    records: u32,
    last: Lsn,
}

impl Default for JournalFileWriter {
    fn default() -> Self {
        JournalFileWriter { bytes: vec![0; HEADER_BYTES], scratch: Vec::new(), records: 0, last: Lsn::NONE }
    }
}

impl JournalFileWriter {
    /// Adds a record of the run's journal, in order.
    pub fn push(&mut self, entry: &Numbered<'_>) {
        self.scratch.clear();
        entry.record.encode(&mut self.scratch);
        let start = self.bytes.len();
        let mut writer = Writer::new(&mut self.bytes);
        writer.number(self.scratch.len() as u64);
        writer.number(entry.lsn.0 - self.last.0);
        writer.raw(&self.scratch);
        let checksum = crc32c::crc32c(&self.bytes[start..]);
        self.bytes.extend_from_slice(&checksum.to_le_bytes());
        self.last = entry.lsn;
        self.records += 1;
    }

    /// The bytes of the file. `shard` of `shards`: where the run lives. `is_cut`: not all of its records were added.
    #[must_use]
    pub fn finish(mut self, shard: ShardId, shards: u16, is_cut: bool) -> Vec<u8> {
        let length = (self.bytes.len() - HEADER_BYTES) as u64;
        let header = &mut self.bytes[..HEADER_BYTES];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&JOURNAL_FILE_FORMAT.to_le_bytes());
        header[16..20].copy_from_slice(&self.records.to_le_bytes());
        header[20..22].copy_from_slice(&shard.0.to_le_bytes());
        header[22..24].copy_from_slice(&shards.to_le_bytes());
        header[24..32].copy_from_slice(&length.to_le_bytes());
        header[32..36].copy_from_slice(&(if is_cut { CUT } else { 0 }).to_le_bytes());
        let checksum = crc32c::crc32c(header);
        header[12..16].copy_from_slice(&checksum.to_le_bytes());
        self.bytes
    }
}

/// A file whose bytes are a run.
#[derive(Clone, Copy, Debug)]
pub struct JournalFile<'a> {
    /// Where the run lived.
    pub shard: ShardId,
    /// How many shards there were.
    pub shards: u16,
    /// It ends before the run's records did.
    pub is_cut: bool,
    /// How many records there are.
    pub records: u32,
    entries: &'a [u8],
}

impl<'a> JournalFile<'a> {
    /// Reads and checks all of a file: one run from its start on, its operations numbered within reason, nothing behind
    /// its end.
    pub fn decode(bytes: &'a [u8]) -> Result<JournalFile<'a>, JournalFault> {
        let file = JournalFile::header(bytes)?;
        let mut entries = Entries::of(&file);
        let mut rules = Rules::default();
        while !entries.reader.rest().is_empty() {
            let offset = entries.offset();
            let Numbered { lsn, record } = entries.next_entry()?;
            if let Err(rule) = rules.admit(lsn, &record) {
                return Err(fault(offset, JournalWrong::Rule(rule)));
            }
        }
        if rules.records != file.records {
            return Err(fault(16, JournalWrong::Rule("the header tells another number of records")));
        }
        if file.records == 0 {
            return Err(fault(HEADER_BYTES, JournalWrong::Rule("no record starts the run")));
        }
        Ok(file)
    }

    /// The records, in order.
    #[must_use]
    pub fn entries(&self) -> Entries<'a> {
        Entries::of(self)
    }

    fn header(bytes: &'a [u8]) -> Result<JournalFile<'a>, JournalFault> {
        if bytes.get(..8) != Some(&MAGIC[..]) {
            return Err(fault(0, JournalWrong::NoJournal));
        }
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(fault(bytes.len(), JournalWrong::Length(bytes.len() as u64, HEADER_BYTES as u64)));
        };
        let u32_at = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let u16_at = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        // A newer version may lay out the rest of it in another way.
        if u32_at(8) > JOURNAL_FILE_FORMAT {
            return Err(fault(8, JournalWrong::Newer(u32_at(8))));
        }
        let mut covered = *header;
        covered[12..16].fill(0);
        let (shards, flags) = (u16_at(22), u32_at(32));
        let is_sound = crc32c::crc32c(&covered) == u32_at(12)
            && u32_at(8) == JOURNAL_FILE_FORMAT
            && (1..=SHARDS_MAX).contains(&shards)
            && u16_at(20) < shards
            && flags & !CUT == 0;
        if !is_sound {
            return Err(fault(0, JournalWrong::Header));
        }
        let length = u64::from(u32_at(24)) | u64::from(u32_at(28)) << 32;
        let (found, wanted) = (bytes.len() as u64, length.saturating_add(HEADER_BYTES as u64));
        if found > FILE_BYTES_MAX as u64 {
            return Err(fault(FILE_BYTES_MAX, JournalWrong::TooLong(found)));
        }
        if found != wanted {
            let offset = found.min(wanted) as usize;
            return Err(fault(offset, JournalWrong::Length(found, wanted)));
        }
        let (shard, is_cut) = (ShardId(u16_at(20)), flags & CUT != 0);
        Ok(JournalFile { shard, shards, is_cut, records: u32_at(16), entries: &bytes[HEADER_BYTES..] })
    }
}

/// The records of a file, one after the other.
pub struct Entries<'a> {
    reader: Reader<'a>,
    length: usize,
    last: Lsn,
}

impl<'a> Entries<'a> {
    fn of(file: &JournalFile<'a>) -> Entries<'a> {
        Entries { reader: Reader::new(file.entries), length: file.entries.len(), last: Lsn::NONE }
    }

    /// Where in the file the next entry begins.
    fn offset(&self) -> usize {
        HEADER_BYTES + self.length - self.reader.rest().len()
    }

    fn next_entry(&mut self) -> Result<Numbered<'a>, JournalFault> {
        let offset = self.offset();
        let damaged = |_: DecodeError| fault(offset, JournalWrong::Entry);
        let all = self.reader.rest();
        let length = self.reader.number().map_err(damaged)?;
        let distance = self.reader.number().map_err(damaged)?;
        let bytes = self.reader.raw(usize::try_from(length).unwrap_or(usize::MAX)).map_err(damaged)?;
        let covered = &all[..all.len() - self.reader.rest().len()];
        if self.reader.raw(4).map_err(damaged)? != crc32c::crc32c(covered).to_le_bytes() {
            return Err(fault(offset, JournalWrong::Entry));
        }
        let record = Record::decode(bytes).map_err(|error| fault(offset, JournalWrong::Record(error)))?;
        self.last = Lsn(self.last.0.saturating_add(distance));
        Ok(Numbered { lsn: self.last, record })
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Numbered<'a>;

    /// A file that was decoded has nothing but records.
    fn next(&mut self) -> Option<Numbered<'a>> {
        if self.reader.rest().is_empty() { None } else { self.next_entry().ok() }
    }
}

/// What the records of one run look like: as far as whoever replays them relies on it.
#[derive(Default)]
struct Rules {
    records: u32,
    run: RunNo,
    has_copies: bool,
    has_ended: bool,
}

impl Rules {
    fn admit(&mut self, lsn: Lsn, record: &Record<'_>) -> Result<(), &'static str> {
        if lsn.0 >= LSN_MAX {
            return Err("the number of the record is higher than any");
        }
        if self.has_ended {
            return Err("there is a record behind the one that ends the run");
        }
        if self.records == 0 {
            let Record::Start { run, new, .. } = record else { return Err("the first record does not start a run") };
            if !is_name(new.id) || !is_name(new.kind) || run.0 == u64::MAX {
                return Err("the record starts a run that cannot be");
            }
            self.run = *run;
        } else if !belongs_into_a_journal(record) {
            return Err("the record is none of a journal");
        }
        self.has_copies |= matches!(record, Record::Branched { .. });
        // Copies have the number of the run that they are of.
        let may_be_copy = self.has_copies && !matches!(record, Record::Done { .. });
        if record.run() != Some(self.run) && !may_be_copy {
            return Err("the record belongs to another run");
        }
        if record.operation().is_some_and(|seq| !(1..=OPERATIONS_MAX).contains(&seq.0)) {
            return Err("the record is of an operation that cannot be");
        }
        self.has_ended = matches!(record, Record::Done { .. });
        self.records = self.records.saturating_add(1);
        Ok(())
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= TEXT_BYTES_MAX && text.bytes().all(|byte| byte >= b' ')
}

/// Whether the journal of a run may have it after its start.
fn belongs_into_a_journal(record: &Record<'_>) -> bool {
    match record {
        Record::StepDone { .. }
        | Record::StepFailed { .. }
        | Record::StepStarted { .. }
        | Record::Heartbeat { .. }
        | Record::TimerSet { .. }
        | Record::TimerFired { .. }
        | Record::WaitSet { .. }
        | Record::ConditionSet { .. }
        | Record::Signal { .. }
        | Record::ChildSet { .. }
        | Record::SendSet { .. }
        | Record::TaskSet { .. }
        | Record::ChildDone { .. }
        | Record::Cancel { .. }
        | Record::Resumed { .. }
        | Record::Done { .. }
        | Record::Watched { .. }
        | Record::Update { .. }
        | Record::UpdateDone { .. }
        | Record::Called { .. }
        | Record::CallDone { .. }
        | Record::Patched { .. }
        | Record::Activated { .. }
        | Record::Paused { .. }
        | Record::Attributes { .. }
        | Record::Branched { .. } => true,
        Record::Start { .. }
        | Record::Answered { .. }
        | Record::Received { .. }
        | Record::SignalledStart { .. }
        | Record::AttributedStart { .. }
        | Record::Queued { .. }
        | Record::Continued { .. }
        | Record::Forked { .. }
        | Record::Reset { .. } => false,
    }
}

fn fault(offset: usize, what: JournalWrong) -> JournalFault {
    JournalFault { offset, what }
}

#[cfg(test)]
mod tests;
