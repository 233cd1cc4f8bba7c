//! Search attributes: what runs are found by. They are a function of the run's records and nothing that its code can read,
//! so that a replay does not depend on them.

use super::run::RunIx;
use super::shard::Shard;
use crate::record::{Attribute, attributes_in, check_attributes, merge_attributes};

/// A run has at most so many.
const COUNT_MAX: usize = 64;

/// All attributes of a run take at most so many bytes.
const BYTES_MAX: usize = 8_192;

/// Longest text among the values, in bytes of UTF-8.
const VALUE_BYTES_MAX: usize = 1_024;

/// Longest name, in bytes of UTF-8.
const NAME_BYTES_MAX: usize = 64;

/// Whether attributes may be set; if not, why.
pub fn check_attributes_set(set: &[u8]) -> Result<(), String> {
    check_attributes(set).map_err(|error| format!("the search attributes are malformed: {error}"))?;
    for entry in attributes_in(set) {
        let name = entry.name;
        if name.len() > NAME_BYTES_MAX || name.bytes().any(|byte| byte < b' ') {
            return Err(format!(
                "the name of a search attribute is 1 to {NAME_BYTES_MAX} bytes of text without control characters, not {} \
                 bytes",
                name.len()
            ));
        }
        let texts = match &entry.value {
            Some(Attribute::Text(text)) => std::slice::from_ref(text),
            Some(Attribute::Texts(texts)) => texts,
            Some(Attribute::Number(_) | Attribute::Flag(_) | Attribute::Time(_) | Attribute::Whole(_)) | None => &[],
        };
        if let Some(text) =
            texts.iter().find(|text| text.len() > VALUE_BYTES_MAX || text.bytes().any(|byte| byte < b' '))
        {
            return Err(format!(
                "the search attribute \"{name}\" has a text of {} bytes; it can be up to {VALUE_BYTES_MAX} bytes without \
                 control characters",
                text.len()
            ));
        }
    }
    Ok(())
}

/// Whether a run that has `old` may have what comes of `set`; if not, why.
pub fn check_attributes_kept(old: &[u8], set: &[u8]) -> Result<(), String> {
    let merged = merge_attributes(old, set);
    let (count, bytes) = (attributes_in(&merged).count(), merged.len());
    if count <= COUNT_MAX && bytes <= BYTES_MAX {
        return Ok(());
    }
    Err(format!(
        "{count} search attributes take {bytes} bytes; a run has up to {COUNT_MAX} of {BYTES_MAX} bytes: set those that runs \
         are found by, and keep the rest in the input or in results"
    ))
}

impl Shard {
    pub(super) fn attributes_set(&mut self, run: RunIx, set: &[u8]) {
        let merged = merge_attributes(&self.run(run).attributes, set).into_boxed_slice();
        let target = &mut self.runs[run.0 as usize];
        let old = std::mem::replace(&mut target.attributes, merged);
        self.index.remove_attributes(target.no, &old);
        self.index.add_attributes(target.no, &target.attributes);
    }
}
