//! A file that is looked at before it is known to be the right one: what is written to it stays in memory.
//!
//! The tree writes when it is opened and closed. A store that is to be refused must be found as it was left.

use super::file::StoreFile;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::Arc;

const BLOCK: u64 = 4096;

pub(super) struct Probe {
    file: Arc<dyn StoreFile>,
    written: Mutex<Written>,
}

struct Written {
    length: u64,
    blocks: BTreeMap<u64, Vec<u8>>,
}

impl Probe {
    pub(super) fn of(file: Arc<dyn StoreFile>) -> io::Result<Probe> {
        let length = file.len()?;
        Ok(Probe { file, written: Mutex::new(Written { length, blocks: BTreeMap::new() }) })
    }
}

impl StoreFile for Probe {
    fn len(&self) -> io::Result<u64> {
        Ok(self.written.lock().length)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let written = self.written.lock();
        let count = (buffer.len() as u64).min(written.length.saturating_sub(offset));
        let buffer = &mut buffer[..count as usize];
        let found = self.file.read_at(buffer, offset)?;
        buffer[found..].fill(0);
        for (at, block) in written.blocks.range(offset / BLOCK..(offset + count).div_ceil(BLOCK)) {
            let (from, to) = ((at * BLOCK).max(offset), ((at + 1) * BLOCK).min(offset + count));
            let part = &block[(from - at * BLOCK) as usize..(to - at * BLOCK) as usize];
            buffer[(from - offset) as usize..(to - offset) as usize].copy_from_slice(part);
        }
        Ok(count as usize)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let written = &mut *self.written.lock();
        let end = offset + bytes.len() as u64;
        written.length = written.length.max(end);
        for at in offset / BLOCK..end.div_ceil(BLOCK) {
            let block = match written.blocks.entry(at) {
                Entry::Occupied(block) => block.into_mut(),
                Entry::Vacant(place) => {
                    let mut block = vec![0; BLOCK as usize];
                    self.file.read_at(&mut block, at * BLOCK)?;
                    place.insert(block)
                }
            };
            let (from, to) = ((at * BLOCK).max(offset), ((at + 1) * BLOCK).min(end));
            let part = &bytes[(from - offset) as usize..(to - offset) as usize];
            block[(from - at * BLOCK) as usize..(to - at * BLOCK) as usize].copy_from_slice(part);
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.written.lock().length = length;
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
