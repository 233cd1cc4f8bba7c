//! Numbers of many things in one crossing, in memory that JS owns: heads of events, rows of results.
#![allow(unsafe_code, reason = "the one place that writes into a typed array of JS")]

use crate::engine::Event;
use napi::bindgen_prelude::Uint32Array;

/// Numbers before the first head: how many heads follow, and whether there are more events.
const PREFIX: usize = 4;

/// Numbers a head: kind, a, b, and where its text ends, in UTF-16 units.
const HEAD: usize = 4;

/// Writes as many events as fit. Returns their number and their texts, one behind the other.
pub(super) fn write_heads(mut heads: Uint32Array, events: &[Event], has_more: bool) -> (usize, String) {
    // SAFETY: JS runs on this thread and waits for this call; nothing else reads or writes the array until it returns,
    // and no JS is called meanwhile.
    let heads: &mut [u32] = unsafe { heads.as_mut() };
    let room = heads.len().saturating_sub(PREFIX) / HEAD;
    let written = events.len().min(room);
    let mut text = String::with_capacity(events[..written].iter().map(|event| event.text.len()).sum());
    let mut end = 0;
    if heads.len() < PREFIX {
        return (0, text);
    }
    for (head, event) in heads[PREFIX..].chunks_exact_mut(HEAD).zip(&events[..written]) {
        end += if event.text.is_ascii() { event.text.len() } else { event.text.encode_utf16().count() };
        text.push_str(&event.text);
        head.copy_from_slice(&[event.kind as u32, event.a, event.b, end as u32]);
    }
    heads[0] = written as u32;
    heads[1] = u32::from(has_more || written < events.len());
    (written, text)
}

/// Numbers a row of [`answer_rows`]: slot, operation, lease, and whether the result is to be taken as the next delivery.
const ROW: usize = 4;

/// Has each of the first `count` rows answered; the answer takes the place of its first number.
pub(super) fn answer_rows(mut rows: Uint32Array, count: usize, mut answer: impl FnMut(usize, [u32; ROW]) -> u32) {
    // SAFETY: as for the heads of events.
    let rows: &mut [u32] = unsafe { rows.as_mut() };
    for (index, row) in rows.as_chunks_mut::<ROW>().0.iter_mut().take(count).enumerate() {
        row[0] = answer(index, *row);
    }
}
