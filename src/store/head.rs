//! What the store knows of a run besides its bytes: enough to find it, to list it and to take it away.

use crate::record::{DecodeError, Reader, Writer};

/// A run's head. Times are in ms since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// The workflow id.
    pub id: &'a str,
    /// The definition's name.
    pub kind: &'a str,
    /// When it started.
    pub created_ms: i64,
    /// Its place in the order of starts, whatever the clock was set to.
    pub order_ms: i64,
    /// The number of its status, and when it ended; `None`: it has not.
    pub end: Option<(u8, i64)>,
    /// Chunks of its journal.
    pub chunks: u32,
    /// What the store does not look into.
    pub body: &'a [u8],
}

/// A head that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    bytes: Vec<u8>,
}

impl Stored {
    pub(super) fn new(bytes: &[u8]) -> Result<Stored, DecodeError> {
        decode(bytes)?;
        Ok(Stored { bytes: bytes.to_vec() })
    }

    /// What it says.
    #[must_use]
    pub fn head(&self) -> Head<'_> {
        decode(&self.bytes).expect("it was decoded when it was read")
    }
}

pub(super) fn encode(head: &Head<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(head.id.len() + head.kind.len() + head.body.len() + 32);
    let mut out = Writer::new(&mut bytes);
    out.text(head.id);
    out.text(head.kind);
    out.signed(head.created_ms);
    out.signed(head.order_ms);
    out.option(head.end, |out, (status, ended_ms)| {
        out.byte(status);
        out.signed(ended_ms);
    });
    out.number(u64::from(head.chunks));
    out.bytes(head.body);
    bytes
}

fn decode(bytes: &[u8]) -> Result<Head<'_>, DecodeError> {
    let mut reader = Reader::new(bytes);
    let head = Head {
        id: reader.text()?,
        kind: reader.text()?,
        created_ms: reader.signed()?,
        order_ms: reader.signed()?,
        end: reader.option(|reader| Ok((reader.byte()?, reader.signed()?)))?,
        chunks: u32::try_from(reader.number()?).map_err(|_| DecodeError::Number)?,
        body: reader.bytes()?,
    };
    reader.end()?;
    Ok(head)
}
