//! The records of one run, one after the other in one buffer: for each its length, its LSN, its bytes.

use crate::record::{Lsn, Numbered, Reader, Record, Writer};

/// A run's records, in order. A position is the offset of an entry; [`Journal::end`] is behind the last.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    bytes: Vec<u8>,
}

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
        position
    }

    /// The position behind the last entry.
    pub(crate) fn end(&self) -> u32 {
        u32::try_from(self.bytes.len()).expect("journals are bounded far below 4 GiB")
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
        let mut position = 0;
        std::iter::from_fn(move || {
            (position < self.end()).then(|| {
                let (entry, next) = self.read(position);
                (std::mem::replace(&mut position, next), entry)
            })
        })
    }
}
