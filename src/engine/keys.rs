//! Keys: what a run's randomness and the idempotency keys of its steps come from.

use super::error::{EngineError, ErrorCode};
use crate::record::{Seq, TaskNo};
use sha2::{Digest, Sha256};

/// Key roots, drawn many at a time: asking the system for one would cost more than the rest of a start.
#[derive(Default)]
pub(super) struct KeyRoots {
    drawn: Vec<[u8; 16]>,
}

impl KeyRoots {
    pub(super) fn next(&mut self) -> Result<[u8; 16], EngineError> {
        if self.drawn.is_empty() {
            let mut bytes = [0; 16 * 64];
            getrandom::fill(&mut bytes).map_err(|error| {
                EngineError::new(ErrorCode::Storage, format!("the system gives no random numbers: {error}"))
            })?;
            self.drawn.extend(bytes.as_chunks::<16>().0);
        }
        Ok(self.drawn.pop().expect("it was just filled"))
    }
}

/// A child's keys follow from its parent's and its place there.
pub(super) fn child_root(parent: [u8; 16], seq: Seq) -> [u8; 16] {
    digest(&[b"child", &parent, &seq.0.to_le_bytes()])
}

/// The idempotency key of a step: the same for the n-th call of its name in all attempts, crashes and replays.
/// The first 16 bytes of SHA-256 over the run's key root, the name and n, in hexadecimal.
#[must_use]
pub fn idempotency_key(key_root: &str, name: &str, n: u32) -> String {
    hex(&digest(&[b"step", key_root.as_bytes(), name.as_bytes(), &n.to_le_bytes()]))
}

/// The idempotency key of a task: the same for all its attempts.
pub(super) fn task_key(store_id: [u8; 16], task: TaskNo) -> String {
    hex(&digest(&[b"task", &store_id, &task.0.to_le_bytes()]))
}

fn digest(parts: &[&[u8]]) -> [u8; 16] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let full = hasher.finalize();
    let mut short = [0; 16];
    short.copy_from_slice(&full[..16]);
    short
}

pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(2 * bytes.len());
    for digit in bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]) {
        text.push(char::from(DIGITS[usize::from(digit)]));
    }
    text
}
