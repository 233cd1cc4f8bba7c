//! What of a checkpoint is no task: entries one after the other, in parts of a bounded size, since nobody bounds how many
//! schedules there are, nor how much waits for room.

use super::engine::Engine;
use super::restore::RestoreError;
use super::saved::{Decoded, VERSION, counter, version};
use crate::record::{DecodeError, Reader, Writer, flag, read_bounds, read_limit, small, write_bounds, write_limit};

/// A part that is so long is closed. It is longer by an entry at most, and an entry is bounded as a record is.
const PART_BYTES: usize = if cfg!(test) { 256 } else { 64 << 10 };

/// Numbers that are counted on from, and the time.
const COUNTS: u8 = 0;
const QUEUE: u8 = 1;
const KIND: u8 = 2;
const LIMIT: u8 = 3;
/// A schedule: see `schedules::saved`.
pub(super) const SCHEDULE: u8 = 4;
/// The last message that was taken from a shard.
pub(super) const TAKEN: u8 = 5;
/// What a run asked for and waits for room.
pub(super) const WAITS: u8 = 6;
/// Bounds of a queue that somebody set while it ran.
const BOUNDS: u8 = 7;

/// Parts that are being written.
#[derive(Default)]
pub(super) struct Head {
    parts: Vec<Vec<u8>>,
}

impl Head {
    /// Where the next entry, of this kind, is to be written.
    pub(super) fn entry(&mut self, kind: u8) -> Writer<'_> {
        if self.parts.last().is_none_or(|part| part.len() >= PART_BYTES) {
            self.parts.push(vec![VERSION]);
        }
        let mut out = Writer::new(self.parts.last_mut().expect("a part was just added"));
        out.byte(kind);
        out
    }
}

impl Engine {
    /// All that is no task.
    pub(super) fn encode_head(&self) -> Vec<Vec<u8>> {
        let mut head = Head::default();
        let mut out = head.entry(COUNTS);
        out.signed(self.now_ms);
        let totals = &self.totals;
        let numbers = [self.next_number, self.order_places, self.ended_places];
        let counts = [totals.submitted, totals.dispatched, totals.retried];
        numbers.iter().chain(&counts).chain(&totals.ended).for_each(|number| out.number(*number));
        for queue in &self.queues {
            let mut out = head.entry(QUEUE);
            out.text(&queue.name);
            out.byte(u8::from(queue.is_paused));
            out.option(queue.resized.map(u64::from), Writer::number);
            queue.learned.encode(&mut out);
            if let Some(bounds) = queue.bounds_set {
                let mut out = head.entry(BOUNDS);
                out.text(&queue.name);
                write_bounds(&mut out, bounds);
            }
            for kind in &queue.kinds {
                let mut out = head.entry(KIND);
                out.text(&queue.name);
                out.text(&kind.name);
                kind.learned.encode(&mut out);
            }
        }
        for (name, spec) in &self.limits_set {
            let mut out = head.entry(LIMIT);
            out.text(name);
            write_limit(&mut out, *spec);
        }
        self.schedules.encode(&mut head);
        self.orders.encode(&mut head);
        self.waiting.encode(&mut head);
        head.parts
    }

    /// Takes back a part of what [`Engine::begin_checkpoint`] returned, in their order and before anything else.
    pub fn restore_head(&mut self, part: &[u8]) -> Result<(), RestoreError> {
        self.is_restoring = true;
        self.read_part(part).map_err(RestoreError::Decode)
    }

    fn read_part(&mut self, part: &[u8]) -> Decoded<()> {
        let from = &mut Reader::new(part);
        version(from)?;
        while !from.rest().is_empty() {
            match from.byte()? {
                COUNTS => self.read_counts(from)?,
                QUEUE => self.read_queue(from)?,
                KIND => {
                    let queue = self.stored_queue(from.text()?)?;
                    let kind = self.stored_kind(queue, from.text()?)?;
                    self.queue_mut(queue).kinds[usize::from(kind.0)].learned.decode(from)?;
                }
                BOUNDS => {
                    let queue = self.stored_queue(from.text()?)?;
                    let bounds = read_bounds(from)?;
                    self.apply_queue_bounds(queue, bounds);
                }
                LIMIT => {
                    let name = from.text()?;
                    self.apply_limit_set(name, read_limit(from)?);
                }
                SCHEDULE => self.schedules.decode(from)?,
                TAKEN => self.orders.decode(from)?,
                WAITS => self.read_waiting(from)?,
                other => return Err(DecodeError::Unknown(u64::from(other))),
            }
        }
        Ok(())
    }

    fn read_counts(&mut self, from: &mut Reader<'_>) -> Decoded<()> {
        self.now_ms = from.signed()?;
        self.next_number = counter(from)?;
        self.order_places = counter(from)?;
        self.ended_places = counter(from)?;
        self.totals.submitted = counter(from)?;
        self.totals.dispatched = counter(from)?;
        self.totals.retried = counter(from)?;
        for ended in &mut self.totals.ended {
            *ended = counter(from)?;
        }
        Ok(())
    }

    fn read_queue(&mut self, from: &mut Reader<'_>) -> Decoded<()> {
        let ix = self.stored_queue(from.text()?)?;
        let (is_paused, resized) = (flag(from)?, from.option(small)?);
        self.queue_mut(ix).learned.decode(from)?;
        self.apply_queue_set(ix, is_paused, resized);
        Ok(())
    }
}
