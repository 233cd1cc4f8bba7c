//! The records of one run, one after the other in one buffer: for each its length, its LSN, its bytes.

use crate::record::{Lsn, Numbered, Reader, Record, Writer};

/// A run's records, in order. A position is the offset of an entry; [`Journal::end`] is behind the last.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    bytes: Vec<u8>,
    records: u32,
}

/// How long a journal is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalSize {
    /// Records in it.
    pub records: usize,
    /// Bytes that they take in memory.
    pub bytes: usize,
}

/// An entry takes so much more than its record at most: its length and its LSN.
const ENTRY_BYTES_MAX: usize = 20;

impl Journal {
    /// Adds a record; returns its position.
    pub(crate) fn push(&mut self, lsn: Lsn, record: &[u8]) -> u32 {
        let position = self.end();
        if self.bytes.capacity() == 0 {
            // Most runs that wait have little more than their start: begin small.
            self.bytes.reserve_exact(record.len() + 12);
        }
        let mut writer = Writer::new(&mut self.bytes);
        writer.number(record.len() as u64);
        writer.number(lsn.0);
        writer.raw(record);
        self.records += 1;
        position
    }

    pub(crate) fn size(&self) -> JournalSize {
        JournalSize { records: self.records as usize, bytes: self.bytes.len() }
    }

    /// Whether a record of so many bytes still has a position. Live journals are bounded far below; those that are
    /// read back may have been written by anybody.
    pub(crate) fn has_room(&self, record_bytes: usize) -> bool {
        has_room(self.bytes.len(), record_bytes)
    }

    /// The position behind the last entry.
    pub(crate) fn end(&self) -> u32 {
        u32::try_from(self.bytes.len()).expect("journals are bounded live, and have room for what is read back")
    }

    /// A journal of records that were checked before.
    pub(crate) fn of(bytes: &[u8]) -> Journal {
        let mut journal = Journal { bytes: bytes.to_vec(), records: 0 };
        journal.records = journal.entries().count() as u32;
        journal
    }

    /// The bytes between two positions.
    pub(crate) fn bytes(&self, from: u32, to: u32) -> &[u8] {
        &self.bytes[from as usize..to as usize]
    }

    /// From a position on, the first one whose entry is newer than `newest`, or the end.
    pub(crate) fn end_at(&self, from: u32, newest: Lsn) -> u32 {
        let mut position = from;
        while position < self.end() {
            let mut reader = Reader::new(&self.bytes[position as usize..]);
            let next = (|| {
                let length = reader.number()?;
                let lsn = Lsn(reader.number()?);
                reader.raw(length as usize)?;
                Ok::<_, crate::record::DecodeError>((lsn <= newest).then(|| self.end() - reader.rest().len() as u32))
            })()
            .expect("a journal holds only entries that it wrote");
            match next {
                Some(next) => position = next,
                None => break,
            }
        }
        position
    }

    /// The entry at a position, and the position of the next one.
    pub(crate) fn read(&self, position: u32) -> (Numbered<'_>, u32) {
        let mut reader = Reader::new(&self.bytes[position as usize..]);
        let entry = (|| {
            let length = reader.number()?;
            let lsn = Lsn(reader.number()?);
            let record = Record::decode(reader.raw(length as usize)?)?;
            Ok::<_, crate::record::DecodeError>(Numbered { lsn, record })
        })()
        .expect("a journal holds only records that were encoded or decoded before");
        (entry, self.end() - reader.rest().len() as u32)
    }

    /// All entries with their positions.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u32, Numbered<'_>)> {
        self.entries_from(0)
    }

    /// Those from a position on.
    pub(crate) fn entries_from(&self, mut position: u32) -> impl Iterator<Item = (u32, Numbered<'_>)> {
        std::iter::from_fn(move || {
            (position < self.end()).then(|| {
                let (entry, next) = self.read(position);
                (std::mem::replace(&mut position, next), entry)
            })
        })
    }
}

fn has_room(bytes: usize, record_bytes: usize) -> bool {
    bytes.saturating_add(record_bytes).saturating_add(ENTRY_BYTES_MAX) <= u32::MAX as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_has_room_as_long_as_positions_are_numbers_of_32_bits() {
        let max = u32::MAX as usize;
        assert!(has_room(0, 16 << 20) && has_room(max - ENTRY_BYTES_MAX - 100, 100));
        assert!(!has_room(max - ENTRY_BYTES_MAX - 100, 101) && !has_room(max, 0) && !has_room(1, usize::MAX));
    }

    #[test]
    fn the_size_counts_records_and_all_their_bytes() {
        let mut journal = Journal::default();
        assert_eq!(journal.size(), JournalSize::default());
        journal.push(Lsn(1), &[19, 0, 1]);
        journal.push(Lsn(300), &[19, 0, 2]);
        assert_eq!(journal.size(), JournalSize { records: 2, bytes: 5 + 6 });
    }
}
