//! The small alphabet that records are written in: LEB128 numbers, zigzag for signed ones, byte strings with their
//! length before them.

use std::fmt;

/// Why bytes are no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end before the value does.
    Short,
    /// A number is longer than 64 bits, or not written in its shortest form.
    Number,
    /// A text is not UTF-8.
    Text,
    /// A kind, status or flag that this version does not know.
    Unknown(u64),
    /// Bytes are left over after the value.
    Trailing,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Short => formatter.write_str("the bytes end before the value does"),
            DecodeError::Number => formatter.write_str("a number is malformed"),
            DecodeError::Text => formatter.write_str("a text is not UTF-8"),
            DecodeError::Unknown(code) => write!(formatter, "code {code} is unknown to this version"),
            DecodeError::Trailing => formatter.write_str("bytes are left over after the value"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// Writes values at the end of a buffer that the caller keeps and reuses.
pub struct Writer<'a> {
    bytes: &'a mut Vec<u8>,
}

impl<'a> Writer<'a> {
    /// Writes behind what `bytes` holds already.
    pub fn new(bytes: &'a mut Vec<u8>) -> Self {
        Writer { bytes }
    }

    /// One byte.
    #[inline]
    pub fn byte(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// An unsigned number in 1 to 10 bytes.
    #[inline]
    pub fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// A signed number, small magnitudes first.
    pub fn signed(&mut self, value: i64) {
        self.number(((value << 1) ^ (value >> 63)) as u64);
    }

    /// Bytes as they are; the reader must know how many.
    pub fn raw(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
    }

    /// Bytes after their length.
    pub fn bytes(&mut self, value: &[u8]) {
        self.number(value.len() as u64);
        self.raw(value);
    }

    /// A text after its length in bytes.
    pub fn text(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    /// A flag, then the value if there is one.
    pub fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        match value {
            None => self.byte(0),
            Some(value) => {
                self.byte(1);
                write(self, value);
            }
        }
    }
}

/// Reads values one after the other. Borrows texts and bytes, so that no length on disk leads to an allocation.
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// Bytes not read yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// One byte.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, DecodeError> {
        let (first, rest) = self.rest.split_first().ok_or(DecodeError::Short)?;
        self.rest = rest;
        Ok(*first)
    }

    /// An unsigned number in its shortest form: one value, one writing.
    #[inline]
    pub fn number(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(DecodeError::Number);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                let is_shortest = byte != 0 || shift == 0;
                return if is_shortest { Ok(value) } else { Err(DecodeError::Number) };
            }
        }
        Err(DecodeError::Number)
    }

    /// A signed number.
    pub fn signed(&mut self) -> Result<i64, DecodeError> {
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// So many bytes.
    pub fn raw(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        if count > self.rest.len() {
            return Err(DecodeError::Short);
        }
        let (value, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(value)
    }

    /// Bytes after their length.
    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let count = self.number()?;
        self.raw(usize::try_from(count).map_err(|_| DecodeError::Short)?)
    }

    /// A text after its length in bytes.
    pub fn text(&mut self) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| DecodeError::Text)
    }

    /// A value, if its flag says that there is one.
    pub fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        match self.byte()? {
            0 => Ok(None),
            1 => read(self).map(Some),
            other => Err(DecodeError::Unknown(u64::from(other))),
        }
    }

    /// Says that the value must end here.
    pub fn end(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { Err(DecodeError::Trailing) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_round_trip(unsigned: u64, signed: i64) {
            let mut bytes = Vec::new();
            let mut writer = Writer::new(&mut bytes);
            writer.number(unsigned);
            writer.signed(signed);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.number(), Ok(unsigned));
            prop_assert_eq!(reader.signed(), Ok(signed));
            prop_assert_eq!(reader.end(), Ok(()));
        }

        #[test]
        fn a_number_has_one_writing(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            let mut reader = Reader::new(&bytes);
            if let Ok(value) = reader.number() {
                let read = bytes.len() - reader.rest().len();
                let mut again = Vec::new();
                Writer::new(&mut again).number(value);
                prop_assert_eq!(&again[..], &bytes[..read]);
            }
        }
    }

    #[test]
    fn a_length_past_the_end_allocates_nothing() {
        let mut bytes = Vec::new();
        Writer::new(&mut bytes).number(u64::MAX);
        assert_eq!(Reader::new(&bytes).bytes(), Err(DecodeError::Short));
    }
}
