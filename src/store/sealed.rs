//! Values with their checksum: CRC32C over the table's number, the key's length, the key and the value.

use super::StoreError;
use super::keys::Table;

const CHECKSUM_BYTES: usize = 4;

/// A value as it is stored.
pub(super) fn seal(table: Table, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(CHECKSUM_BYTES + value.len());
    sealed.extend_from_slice(&checksum(table, key, value).to_le_bytes());
    sealed.extend_from_slice(value);
    sealed
}

/// The value that was stored under a key, if it is whole.
pub(super) fn open<'a>(table: Table, key: &[u8], sealed: &'a [u8]) -> Result<&'a [u8], StoreError> {
    let damaged = || StoreError::Damaged { what: table.name_of(key) };
    let (stored, value) = sealed.split_first_chunk::<CHECKSUM_BYTES>().ok_or_else(damaged)?;
    if u32::from_le_bytes(*stored) != checksum(table, key, value) {
        return Err(damaged());
    }
    Ok(value)
}

fn checksum(table: Table, key: &[u8], value: &[u8]) -> u32 {
    let mut head = [0; 5];
    head[0] = table.number();
    head[1..].copy_from_slice(&(key.len() as u32).to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c_append(crc32c::crc32c(&head), key), value)
}
