//! A task as checkpoints have it, and the way back: its state, then its description as records have it ([`encode_spec`]).
//!
//! Nothing that follows from other tasks, from the time or from the configuration is written: `derive` finds it again.

use super::engine::Engine;
use super::restore::RestoreError;
use super::run_edges::{RunEdge, RunEnd};
use super::task::{AttemptNote, Booked, HISTORY_MAX, KindIx, Mark, More, OwnEdge, State, Task, TaskIx};
use super::timers::TimerNo;
use crate::record::{
    AttemptEnd, Caller, Condition, DecodeError, LimitUse, Outcome, Reader, Reserve, RunNo, Status, TaskNo, TaskSpec,
    Writer, code, decode_spec, encode_spec, flag, read_caller, small, write_caller,
};

/// First byte of what checkpoints have, tasks or not.
pub(super) const VERSION: u8 = 1;

/// Where a task is, as it is written.
const WAITS: u8 = 0;
const RUNS: u8 = 1;
const RETRIES: u8 = 2;
const ENDED: u8 = 3;

pub(super) type Decoded<T> = Result<T, DecodeError>;

impl Engine {
    pub(super) fn encode_task(&self, ix: TaskIx, bytes: &mut Vec<u8>) {
        let task = &self.tasks[ix];
        let out = &mut Writer::new(bytes);
        out.byte(VERSION);
        out.number(task.number.0);
        write_state(out, task.state);
        out.signed(task.submitted_ms);
        out.option(task.eligible_ms.filter(|_| !task.is_ended()), Writer::signed);
        for count in [task.attempts, task.free_attempts, task.losses, task.revivals] {
            out.number(u64::from(count));
        }
        out.option(task.more.as_deref(), |out, more| self.write_more(out, ix, more));
        let queue = self.queue(task.queue);
        let mut spec = TaskSpec::new(&queue.name, &queue.kinds[usize::from(task.kind.0)].name, &task.payload);
        spec.class = task.class;
        if let Some(more) = &task.more {
            describe(more, &mut spec);
        }
        encode_spec(bytes, &spec);
    }

    /// What a description does not have.
    fn write_more(&self, out: &mut Writer<'_>, ix: TaskIx, more: &More) {
        let has_key = more.key.as_ref().is_some_and(|key| self.keys.get(key) == Some(&ix));
        out.byte(u8::from(has_key));
        out.number(more.order_place);
        out.option(more.reserve, |out, booked| {
            out.signed(booked.at_ms);
            out.signed(booked.end_ms);
        });
        out.option(more.retry_ms, Writer::signed);
        out.bytes(&more.failure);
        list(out, &more.parents, |out, parent| out.number(parent.0));
        list(out, &more.edges, |out, edge| {
            out.number(edge.parent.0);
            out.number(u64::from(edge.revivals));
            out.byte(edge.condition.code());
        });
        list(out, &more.awaits, |out, (key, condition)| {
            out.text(key);
            out.byte(condition.code());
        });
        list(out, &more.watchers, |out, caller| {
            write_caller(out, *caller);
            out.byte(u8::from(self.orders.is_own(*caller)));
        });
        list(out, &more.history, write_note);
        list(out, &more.runs, write_run_edge);
        out.option(more.run, write_caller);
        out.byte(u8::from(more.launch.as_ref().is_some_and(|launch| launch.is_asked)));
    }

    /// Takes back a task of a checkpoint, after [`Engine::restore_head`] and in the order of numbers.
    pub fn restore_task(&mut self, bytes: &[u8]) -> Result<(), RestoreError> {
        let (task, spec, tail) = read_task(bytes).map_err(RestoreError::Decode)?;
        let number = task.number;
        if number.0 >= self.next_number || self.tasks.find(number).is_some() {
            return Err(RestoreError::Number(number));
        }
        self.keep_task(task, &spec, tail).ok_or(RestoreError::WrongState(number))
    }

    /// `None`: it does not fit to those before.
    fn keep_task(&mut self, mut task: Task, spec: &TaskSpec<'_>, tail: Tail) -> Option<()> {
        task.queue = self.stored_queue(spec.queue).ok()?;
        task.kind = self.stored_kind(task.queue, spec.kind).ok()?;
        let (queue, class, state) = (task.queue, task.class, task.state);
        if task.is_pending() {
            self.count_pending(queue, class, true);
        }
        if state == State::Retrying {
            self.queue_mut(queue).retrying[usize::from(class.code())] += 1;
        }
        let ix = self.tasks.insert(task);
        if let (Some(key), true) = (spec.key, tail.has_key)
            && self.keys.insert(key.into(), ix).is_some()
        {
            return None;
        }
        if let State::Ended { place, .. } = state {
            return (place <= self.ended_places && self.ended.insert(place, ix).is_none()).then_some(());
        }
        let number = self.tasks[ix].number;
        if let Some(booked) = self.tasks[ix].reserve().copied() {
            self.queue_mut(queue).reservations.book(number, &booked);
        }
        for (caller, is_own) in tail.watchers {
            self.orders.watches(caller, number, is_own);
        }
        if let Some(of) = spec.occurrence {
            self.schedules.lives(of.schedule, number);
        }
        let place = self.tasks[ix].more.as_ref().map_or(0, |more| more.order_place);
        (place <= self.order_places && self.stand_again(ix)).then_some(())
    }

    /// After the last task of a checkpoint, before the records behind it: what tasks are to each other.
    pub fn restore_links(&mut self) -> Result<(), RestoreError> {
        let waiting: Vec<TaskIx> = self
            .tasks
            .iter_after(TaskNo(0))
            .filter(|(_, task)| task.state == State::Blocked)
            .map(|(ix, _)| ix)
            .collect();
        for ix in &waiting {
            self.wait_again(*ix);
        }
        let behind: Vec<TaskIx> = self.order_lines.values().flat_map(|line| line.values().skip(1)).copied().collect();
        for ix in behind {
            let task = &mut self.tasks[ix];
            if task.state != State::Blocked {
                return Err(RestoreError::WrongState(task.number));
            }
            task.unmet += 1;
        }
        for ix in waiting {
            if self.tasks[ix].unmet == 0 {
                self.gate(ix, self.tasks[ix].eligible_ms.unwrap_or(self.now_ms));
            }
        }
        self.saving.resume();
        Ok(())
    }

    /// A queue of this name, unless there are too many.
    pub(super) fn stored_queue(&mut self, name: &str) -> Decoded<super::task::QueueIx> {
        let has_room = self.queues.len() < usize::from(u16::MAX) || self.queue_names.contains_key(name);
        if has_room { Ok(self.queue_or_new(name)) } else { Err(DecodeError::Number) }
    }

    pub(super) fn stored_kind(&mut self, queue: super::task::QueueIx, name: &str) -> Decoded<KindIx> {
        let queue = self.queue_mut(queue);
        if queue.knows_or_has_room_for(name) { Ok(queue.kind(name)) } else { Err(DecodeError::Number) }
    }
}

/// What of a stored task is kept elsewhere.
#[derive(Default)]
struct Tail {
    has_key: bool,
    watchers: Vec<(Caller, bool)>,
    is_asked: bool,
}

fn read_task(bytes: &[u8]) -> Decoded<(Task, TaskSpec<'_>, Tail)> {
    let from = &mut Reader::new(bytes);
    version(from)?;
    let number = task_no(from)?;
    let state = read_state(from)?;
    let (submitted_ms, eligible_ms) = (from.signed()?, from.option(Reader::signed)?);
    let (attempts, free_attempts, losses, revivals) = (count(from)?, count(from)?, count(from)?, count(from)?);
    let mut tail = Tail::default();
    let mut booked = None;
    let stored = from.option(|from| read_more(from, &mut tail, &mut booked))?;
    let spec = decode_spec(from.rest())?;
    let mut more = super::life::more_of(&spec);
    if let Some(stored) = stored {
        let own = more.get_or_insert_with(Box::default);
        own.order_place = stored.order_place;
        own.retry_ms = stored.retry_ms;
        own.failure = stored.failure;
        (own.parents, own.edges, own.awaits) = (stored.parents, stored.edges, stored.awaits);
        (own.watchers, own.history, own.run) = (stored.watchers, stored.history, stored.run);
        own.runs = stored.runs;
        if let Some(launch) = &mut own.launch {
            launch.is_asked = tail.is_asked;
        }
        own.reserve = spec.reserve.zip(booked).map(|(reserve, (at_ms, end_ms))| Booked {
            at_ms,
            tolerance_ms: i64::from(reserve.tolerance_ms),
            on_miss: reserve.on_miss,
            end_ms,
            hold: TimerNo::NONE,
            miss: TimerNo::NONE,
        });
    }
    if state == State::Retrying && more.as_ref().is_none_or(|more| more.retry_ms.is_none()) {
        return Err(DecodeError::Short);
    }
    let task = Task {
        number,
        queue: super::task::QueueIx(0),
        kind: KindIx(0),
        class: spec.class,
        mark: Mark::Stored,
        state,
        submitted_ms,
        eligible_ms,
        attempts,
        free_attempts,
        losses,
        revivals,
        unmet: 0,
        wake: TimerNo::NONE,
        payload: spec.payload.into(),
        more,
    };
    Ok((task, spec, tail))
}

fn read_more(from: &mut Reader<'_>, tail: &mut Tail, booked: &mut Option<(i64, i64)>) -> Decoded<More> {
    let mut more = More::default();
    tail.has_key = flag(from)?;
    more.order_place = counter(from)?;
    *booked = from.option(|from| Ok((from.signed()?, from.signed()?)))?;
    more.retry_ms = from.option(Reader::signed)?;
    more.failure = from.bytes()?.into();
    each(from, |from| {
        more.parents.push(task_no(from)?);
        Ok(())
    })?;
    each(from, |from| {
        let (parent, revivals) = (task_no(from)?, count(from)?);
        more.edges.push(OwnEdge { parent, revivals, condition: code(from, Condition::from_code)? });
        Ok(())
    })?;
    each(from, |from| {
        more.awaits.push((from.text()?.into(), code(from, Condition::from_code)?));
        Ok(())
    })?;
    each(from, |from| {
        let caller = read_caller(from)?;
        more.watchers.push(caller);
        tail.watchers.push((caller, flag(from)?));
        Ok(())
    })?;
    each(from, |from| {
        more.history.push(read_note(from)?);
        Ok(())
    })?;
    each(from, |from| {
        more.runs.push(read_run_edge(from)?);
        Ok(())
    })?;
    more.run = from.option(read_caller)?;
    tail.is_asked = flag(from)?;
    if more.history.len() > HISTORY_MAX { Err(DecodeError::Number) } else { Ok(more) }
}

/// The description of a task with options, as it is now.
fn describe<'a>(more: &'a More, spec: &mut TaskSpec<'a>) {
    (spec.key, spec.tenant, spec.order_key) = (more.key.as_deref(), more.tenant.as_deref(), more.order_key.as_deref());
    (spec.not_before_ms, spec.deadline_ms, spec.expires_ms) = (more.not_before_ms, more.deadline_ms, more.expires_ms);
    (spec.estimate_ms, spec.timeout_ms, spec.retry) = (more.estimate_ms, more.timeout_ms, more.retry);
    spec.reserve = more.reserve.map(|booked| Reserve {
        tolerance_ms: u32::try_from(booked.tolerance_ms).unwrap_or(u32::MAX),
        on_miss: booked.on_miss,
    });
    spec.limits = more.limits.iter().map(|of| LimitUse { name: &of.0, key: of.1.as_deref(), amount: of.2 }).collect();
    spec.labels = more.labels.iter().map(|(name, value)| (&**name, &**value)).collect();
    spec.tags = more.tags.iter().map(|(name, value)| (&**name, &**value)).collect();
    spec.occurrence = more.occurrence.as_ref().map(|of| crate::record::Occurrence {
        schedule: &of.schedule,
        at_ms: of.at_ms,
        is_regular: of.is_regular,
    });
    spec.launch = more.launch.as_ref().map(super::launches::OwnLaunch::as_launch);
}

fn write_state(out: &mut Writer<'_>, state: State) {
    match state {
        State::Blocked | State::Scheduled | State::Ready(_) => out.byte(WAITS),
        State::Running { started_ms, .. } => {
            out.byte(RUNS);
            out.signed(started_ms);
        }
        State::Retrying => out.byte(RETRIES),
        State::Ended { outcome, time_ms, place } => {
            out.byte(ENDED);
            out.byte(outcome.code());
            out.signed(time_ms);
            out.number(place);
        }
    }
}

fn read_state(from: &mut Reader<'_>) -> Decoded<State> {
    Ok(match from.byte()? {
        WAITS => State::Blocked,
        RUNS => State::Running { started_ms: from.signed()?, attempt: None },
        RETRIES => State::Retrying,
        ENDED => {
            State::Ended { outcome: code(from, Outcome::from_code)?, time_ms: from.signed()?, place: counter(from)? }
        }
        other => return Err(DecodeError::Unknown(u64::from(other))),
    })
}

fn write_note(out: &mut Writer<'_>, note: &AttemptNote) {
    out.number(u64::from(note.attempt));
    out.signed(note.started_ms);
    out.signed(note.ended_ms);
    out.byte(note.end.code());
    out.bytes(&note.failure);
}

fn read_note(from: &mut Reader<'_>) -> Decoded<AttemptNote> {
    Ok(AttemptNote {
        attempt: small(from)?,
        started_ms: from.signed()?,
        ended_ms: from.signed()?,
        end: code(from, AttemptEnd::from_code)?,
        failure: from.bytes()?.into(),
    })
}

fn write_run_edge(out: &mut Writer<'_>, edge: &RunEdge) {
    out.text(&edge.id);
    out.option(edge.run.map(|run| run.0), Writer::number);
    out.byte(edge.condition.code());
    match &edge.end {
        RunEnd::Awaited => out.byte(0),
        RunEnd::Past => out.byte(1),
        RunEnd::Is(status, payload) => {
            out.byte(2);
            out.byte(status.code());
            out.bytes(payload);
        }
    }
}

fn read_run_edge(from: &mut Reader<'_>) -> Decoded<RunEdge> {
    let (id, run) = (from.text()?.into(), from.option(Reader::number)?.map(RunNo));
    let condition = code(from, Condition::from_code)?;
    let end = match from.byte()? {
        0 => RunEnd::Awaited,
        1 => RunEnd::Past,
        2 => RunEnd::Is(code(from, Status::from_code)?, from.bytes()?.into()),
        other => return Err(DecodeError::Unknown(u64::from(other))),
    };
    Ok(RunEdge { id, run, condition, end })
}

fn list<T>(out: &mut Writer<'_>, items: &[T], write: impl Fn(&mut Writer<'_>, &T)) {
    out.number(items.len() as u64);
    items.iter().for_each(|item| write(out, item));
}

/// Reads a list. Nothing is allocated for its length, and each item has a byte at least.
pub(super) fn each<'a>(from: &mut Reader<'a>, mut read: impl FnMut(&mut Reader<'a>) -> Decoded<()>) -> Decoded<()> {
    (0..from.number()?).try_for_each(|_| read(from))
}

/// A number that is counted on from: it leaves room for that.
pub(super) fn counter(from: &mut Reader<'_>) -> Decoded<u64> {
    from.number().and_then(|number| if number < 1 << 62 { Ok(number) } else { Err(DecodeError::Number) })
}

fn count(from: &mut Reader<'_>) -> Decoded<u32> {
    small(from).and_then(|number| if number < 1 << 30 { Ok(number) } else { Err(DecodeError::Number) })
}

fn task_no(from: &mut Reader<'_>) -> Decoded<TaskNo> {
    counter(from).and_then(|number| if number > 0 { Ok(TaskNo(number)) } else { Err(DecodeError::Number) })
}

pub(super) fn version(from: &mut Reader<'_>) -> Decoded<()> {
    match from.byte()? {
        VERSION => Ok(()),
        other => Err(DecodeError::Unknown(u64::from(other))),
    }
}
