//! Schedules as checkpoints have them. Which of their tasks are not over, the tasks say.

use super::super::cron::Timing;
use super::super::head::{Head, SCHEDULE};
use super::super::saved::counter;
use super::{Definition, Schedule, Schedules};
use crate::record::{DecodeError, Outcome, Reader, TaskNo, Writer, code, decode_schedule, flag};

impl Schedules {
    pub(in crate::scheduler) fn encode(&self, head: &mut Head) {
        for schedule in self.names.values().filter_map(|ix| self.get(*ix)) {
            let mut out = head.entry(SCHEDULE);
            out.text(&schedule.name);
            out.option(schedule.definition.as_ref(), |out, definition| {
                out.byte(u8::from(definition.is_declared));
                out.bytes(&definition.bytes);
            });
            out.byte(u8::from(schedule.is_paused));
            out.option(schedule.must_pause.map(|task| task.0), Writer::number);
            out.signed(schedule.past_ms);
            out.number(schedule.fired);
            out.option(schedule.last, |out, (task, at_ms)| {
                out.number(task.0);
                out.signed(at_ms);
            });
            out.option(schedule.last_outcome.map(Outcome::code), Writer::byte);
        }
    }

    /// Reads one of those that [`Schedules::encode`] wrote.
    pub(in crate::scheduler) fn decode(&mut self, from: &mut Reader<'_>) -> Result<(), DecodeError> {
        let ix = self.find_or_add(from.text()?);
        let definition = from.option(|from| self.read_definition(from))?;
        let schedule = self.get_mut(ix).expect("it was found or added");
        schedule.definition = definition;
        schedule.read_progress(from)
    }

    fn read_definition(&mut self, from: &mut Reader<'_>) -> Result<Definition, DecodeError> {
        let (is_declared, bytes) = (flag(from)?, from.bytes()?);
        let timing = Timing::new(decode_schedule(bytes)?.when, &mut self.zones);
        Ok(Definition { bytes: bytes.into(), is_declared, timing })
    }

    /// A stored task of a schedule is not over.
    pub(in crate::scheduler) fn lives(&mut self, name: &str, task: TaskNo) {
        let ix = self.find_or_add(name);
        self.get_mut(ix).expect("it was found or added").live.insert(task);
    }
}

impl Schedule {
    fn read_progress(&mut self, from: &mut Reader<'_>) -> Result<(), DecodeError> {
        self.is_paused = flag(from)?;
        self.must_pause = from.option(counter)?.map(TaskNo);
        self.past_ms = from.signed()?;
        self.fired = counter(from)?;
        self.last = from.option(|from| Ok((TaskNo(counter(from)?), from.signed()?)))?;
        self.last_outcome = from.option(|from| code(from, Outcome::from_code))?;
        Ok(())
    }
}
