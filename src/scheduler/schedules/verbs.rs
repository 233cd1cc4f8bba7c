//! What somebody asks of schedules.

use super::super::cron::Timing;
use super::super::dedupe::Dedupe;
use super::super::engine::Engine;
use super::super::output::{Answer, Refusal, Submitted};
use super::fire::{KeyOwner, Names, TIME, occurrence_of};
use super::overlap::edges_behind;
use super::{QUEUED_MAX, ScheduleError, ScheduleEvent, ScheduleProblem, TIMES_MAX};
use crate::record::{
    CatchUp, Condition, Edge, Overlap, Parent, ScheduleEntry, ScheduleSpec, TEXT_BYTES_MAX, TaskNo, TaskRecord,
    TaskSpec, When, decode_schedule, encode_schedule,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the time and what is before it take in an id.
const TIME_BYTES_MAX: usize = 32;

/// Longest jitter: one day.
const JITTER_MS_MAX: u32 = 86_400_000;

/// What became of a set of declared schedules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// Made, or changed.
    pub set: Vec<Box<str>>,
    /// Declared before and not now.
    pub removed: Vec<Box<str>>,
    /// As they were.
    pub unchanged: usize,
}

impl Engine {
    /// Brings the schedules that code declares to these definitions, all or none, in one record: new ones are made,
    /// changed ones changed, and those that were declared before and are not now go. One that [`Engine::handle_schedule`]
    /// made stays, unless it is declared here: then it is the code's. Paused ones stay paused.
    ///
    /// To be called before [`Engine::recover`], so that nothing fires by an old definition; or after
    /// [`Engine::hold_schedules`], which it ends; it may be called later too.
    pub fn handle_reconcile(
        &mut self,
        now_ms: i64,
        declared: &[(&str, ScheduleSpec<'_>)],
    ) -> Result<Reconciled, ScheduleError> {
        if self.is_restoring {
            self.now_ms = self.now_ms.max(now_ms);
            return self.reconcile(declared);
        }
        self.begin(now_ms);
        let result = self.reconcile(declared);
        if result.is_ok() && std::mem::take(&mut self.schedules.are_held) {
            self.keep_overlaps();
            self.schedules.mark_all();
        }
        self.settle();
        result
    }

    /// Has no schedule fire before [`Engine::handle_reconcile`] with these definitions, which are checked but not taken:
    /// whether they are meant is yet to be seen. To be called before [`Engine::recover`].
    pub fn hold_schedules(&mut self, declared: &[(&str, ScheduleSpec<'_>)]) -> Result<(), ScheduleError> {
        self.check_declared(declared)?;
        self.schedules.are_held = true;
        Ok(())
    }

    fn check_declared<'a>(
        &mut self,
        declared: &[(&'a str, ScheduleSpec<'_>)],
    ) -> Result<BTreeSet<&'a str>, ScheduleError> {
        let mut names = BTreeSet::new();
        for (name, spec) in declared {
            self.check_schedule(name, spec)?;
            if !names.insert(*name) {
                return Err(error(
                    name,
                    ScheduleProblem::Invalid("it is declared twice; give one of them another name"),
                ));
            }
        }
        Ok(names)
    }

    fn reconcile(&mut self, declared: &[(&str, ScheduleSpec<'_>)]) -> Result<Reconciled, ScheduleError> {
        let names = self.check_declared(declared)?;
        let mut result = Reconciled::default();
        let mut set = Vec::new();
        for (name, spec) in declared {
            if self.is_declared_so(name, spec) {
                result.unchanged += 1;
                continue;
            }
            set.push(ScheduleEntry { name, is_declared: true, spec: spec.clone() });
            result.set.push((*name).into());
        }
        let defined = self.schedules.names.keys().filter_map(|name| self.schedules.find(name));
        let gone = defined.filter(|(_, schedule)| {
            let is_declared = schedule.definition.as_ref().is_some_and(|definition| definition.is_declared);
            is_declared && !names.contains(&*schedule.name)
        });
        result.removed = gone.map(|(_, schedule)| Box::from(&*schedule.name)).collect();
        let removed: Vec<&str> = result.removed.iter().map(|name| &**name).collect();
        self.set_schedules(set, removed);
        Ok(result)
    }

    fn is_declared_so(&self, name: &str, spec: &ScheduleSpec<'_>) -> bool {
        let Some((_, schedule)) = self.schedules.find(name) else { return false };
        let mut bytes = Vec::new();
        encode_schedule(&mut bytes, spec);
        schedule.definition.as_ref().is_some_and(|definition| definition.is_declared && *definition.bytes == *bytes)
    }

    fn set_schedules(&mut self, set: Vec<ScheduleEntry<'_>>, removed: Vec<&str>) {
        if set.is_empty() && removed.is_empty() {
            return;
        }
        let time_ms = self.now_ms;
        self.schedules.apply_set(time_ms, &set, &removed);
        let record = TaskRecord::SchedulesSet { time_ms, set, removed };
        self.records.write(|bytes| record.encode(bytes));
    }

    /// Makes a schedule, or changes it. A plan that is the same goes on where it was; another one begins now. What was made
    /// already is not made again, and a paused one stays paused.
    pub fn handle_schedule(&mut self, now_ms: i64, name: &str, spec: &ScheduleSpec<'_>) -> Result<(), ScheduleError> {
        self.begin(now_ms);
        let checked = self.check_schedule(name, spec);
        if checked.is_ok() {
            self.set_schedules(vec![ScheduleEntry { name, is_declared: false, spec: spec.clone() }], Vec::new());
        }
        self.settle();
        checked
    }

    /// Ends a schedule. The tasks that it made go on. `false`: there is none.
    pub fn handle_schedule_removed(&mut self, now_ms: i64, name: &str) -> bool {
        self.begin(now_ms);
        let is_there = self.schedules.find(name).is_some();
        if is_there {
            self.set_schedules(Vec::new(), vec![name]);
        }
        self.settle();
        is_there
    }

    /// Pauses a schedule, or lets it go on: with its next time, and with what [`CatchUp`] says of those in between. It stays
    /// so over restarts.
    pub fn handle_schedule_paused(&mut self, now_ms: i64, name: &str, is_paused: bool) -> Result<(), ScheduleError> {
        self.begin(now_ms);
        let found = self.schedules.find(name).map(|(_, schedule)| schedule.is_paused);
        if found.is_some_and(|was_paused| was_paused != is_paused) {
            self.record(&TaskRecord::SchedulePaused { name, time_ms: self.now_ms, is_paused });
            self.schedules.apply_paused(name, is_paused);
        }
        self.settle();
        found.map(|_| ()).ok_or_else(|| error(name, ScheduleProblem::Unknown))
    }

    /// Fires once now, beside the plan, also of a paused schedule. Whether others run does not matter, but the next
    /// regular one heeds it.
    pub fn handle_trigger(&mut self, now_ms: i64, name: &str) -> Result<Submitted<Answer>, ScheduleError> {
        self.begin(now_ms);
        let result = self.trigger(name);
        self.settle();
        result
    }

    fn trigger(&mut self, name: &str) -> Result<Submitted<Answer>, ScheduleError> {
        let bytes = self.definition_of(name)?;
        let spec = decode_schedule(&bytes).expect("a definition is kept as it was encoded");
        let mut at_ms = self.now_ms;
        loop {
            let names = self.names_of(&spec, name, at_ms);
            let mut task = occurrence_of(&spec, name, at_ms, false, &names);
            match self.key_owner(&task) {
                KeyOwner::Itself => {
                    at_ms += 1;
                    continue;
                }
                KeyOwner::Stranger => task.key = None,
                KeyOwner::Nobody => {}
            }
            let result = self.submit_or_wait(&task, Dedupe::default());
            return result.map_err(|refusal| error(name, ScheduleProblem::Task(refusal)));
        }
    }

    /// Makes the tasks of the times from one to another, both included, that have passed, in one record; times whose task
    /// is still known are left out. Unless the schedule allows overlap they run one after the other, behind those of the
    /// schedule that are not over. The plan does not move. More than `times_max` times are refused.
    pub fn handle_backfill(
        &mut self,
        now_ms: i64,
        name: &str,
        from_ms: i64,
        to_ms: i64,
        times_max: u32,
    ) -> Result<Vec<TaskNo>, ScheduleError> {
        self.begin(now_ms);
        let result = self.backfill(name, from_ms, to_ms, times_max.min(TIMES_MAX));
        self.settle();
        result
    }

    fn backfill(&mut self, name: &str, from_ms: i64, to_ms: i64, times_max: u32) -> Result<Vec<TaskNo>, ScheduleError> {
        let bytes = self.definition_of(name)?;
        let spec = decode_schedule(&bytes).expect("a definition is kept as it was encoded");
        let times = self.times_between(name, &spec, from_ms, to_ms.min(self.now_ms), times_max)?;
        let names: Vec<Names> = times.iter().map(|at_ms| self.names_of(&spec, name, *at_ms)).collect();
        let mut tasks: Vec<TaskSpec<'_>> = Vec::with_capacity(times.len());
        for (at_ms, names) in times.iter().zip(&names) {
            let task = occurrence_of(&spec, name, *at_ms, false, names);
            if !matches!(self.key_owner(&task), KeyOwner::Itself) {
                tasks.push(task);
            }
        }
        let refused = |refusal| error(name, ScheduleProblem::Task(refusal));
        for task in &tasks {
            if let (KeyOwner::Stranger, Some(key)) = (self.key_owner(task), task.key) {
                return Err(refused(Refusal::KeyInUse { key: key.into(), task: self.tasks[self.keys[key]].number }));
            }
        }
        if spec.overlap != Overlap::Allow {
            self.chain(name, spec.overlap, &mut tasks)?;
        }
        let Some(answers) = self.submit_batch(&tasks, false).map_err(|refusal| refused(refusal.why))? else {
            let demand = self.demand_of(&tasks).map_err(refused)?;
            return Err(refused(self.broken_bound(&demand, None).unwrap_or(Refusal::Closed)));
        };
        Ok(answers.into_iter().map(Answer::task).collect())
    }

    /// Each behind the one before, the first behind those that are not over, as the policy says.
    fn chain<'a>(&self, name: &str, overlap: Overlap, tasks: &mut [TaskSpec<'a>]) -> Result<(), ScheduleError> {
        let live = self.schedules.find(name).map(|(_, schedule)| &schedule.live);
        if live.is_some_and(|live| live.len() > QUEUED_MAX) {
            return Err(error(name, ScheduleProblem::Invalid("too many of its tasks are not over; backfill it later")));
        }
        let condition = if overlap == Overlap::QueueOnSuccess { Condition::Success } else { Condition::Completion };
        let behind_live = live.map_or_else(Vec::new, |live| edges_behind(live, condition));
        let mut before: Option<&'a str> = None;
        for task in tasks {
            task.after = match before {
                Some(key) => vec![Edge { parent: Parent::Key(key), condition }],
                None => behind_live.clone(),
            };
            before = task.key;
        }
        Ok(())
    }

    fn times_between(
        &self,
        name: &str,
        spec: &ScheduleSpec<'_>,
        from_ms: i64,
        to_ms: i64,
        times_max: u32,
    ) -> Result<Vec<i64>, ScheduleError> {
        let Some((_, schedule)) = self.schedules.find(name) else { return Err(error(name, ScheduleProblem::Unknown)) };
        let timing = match schedule.definition.as_ref().map(|definition| &definition.timing) {
            Some(Ok(timing)) => timing,
            Some(Err(broken)) => return Err(error(name, ScheduleProblem::Timing(broken.clone()))),
            None => return Err(error(name, ScheduleProblem::Unknown)),
        };
        let from_ms = from_ms.max(spec.start_ms.unwrap_or(i64::MIN)).max(i64::MIN + 1);
        let to_ms = to_ms.min(spec.end_ms.unwrap_or(i64::MAX));
        let mut times = Vec::new();
        let mut next = timing.next_after(from_ms - 1);
        while let Some(at_ms) = next.filter(|at_ms| *at_ms <= to_ms) {
            if times.len() == times_max as usize {
                return Err(error(name, ScheduleProblem::TooManyTimes(times_max)));
            }
            times.push(at_ms);
            next = timing.next_after(at_ms);
        }
        Ok(times)
    }

    fn definition_of(&self, name: &str) -> Result<Arc<[u8]>, ScheduleError> {
        let found = self.schedules.find(name).and_then(|(_, schedule)| schedule.definition.as_ref());
        found.map(|definition| Arc::clone(&definition.bytes)).ok_or_else(|| error(name, ScheduleProblem::Unknown))
    }

    /// What is wrong with a definition, whatever else there is.
    pub fn check_schedule(&mut self, name: &str, spec: &ScheduleSpec<'_>) -> Result<(), ScheduleError> {
        let problem = match Timing::new(spec.when, &mut self.schedules.zones) {
            Err(timing) => Some(ScheduleProblem::Timing(timing)),
            Ok(_) => complaint(name, spec).map(ScheduleProblem::Invalid).or_else(|| {
                let queue = self.find_queue(spec.template.queue);
                let checked = queue.and_then(|queue| self.check(queue, &spec.template));
                checked.err().map(ScheduleProblem::Task)
            }),
        };
        problem.map_or(Ok(()), |problem| Err(error(name, problem)))
    }

    /// The next thing to tell about schedules.
    pub fn poll_schedule_event(&mut self) -> Option<ScheduleEvent> {
        self.schedules.events.pop_front()
    }

    /// After a restart: says which stored definitions cannot be understood.
    pub(in crate::scheduler) fn warn_of_broken_schedules(&mut self) {
        let broken = self.schedules.slots.iter().flatten().filter_map(|schedule| {
            let error = schedule.definition.as_ref()?.timing.as_ref().err()?.clone();
            Some(ScheduleEvent::Broken { schedule: Arc::clone(&schedule.name), error })
        });
        let broken: Vec<ScheduleEvent> = broken.collect();
        self.schedules.events.extend(broken);
    }
}

fn error(name: &str, problem: ScheduleProblem) -> ScheduleError {
    ScheduleError { schedule: name.into(), problem }
}

fn complaint(name: &str, spec: &ScheduleSpec<'_>) -> Option<&'static str> {
    let (task, is_past_period) = (&spec.template, |period_ms| u64::from(spec.jitter_ms) > period_ms);
    if name.is_empty() {
        return Some("a schedule needs a name");
    }
    if spec.start_ms.zip(spec.end_ms).is_some_and(|(start_ms, end_ms)| start_ms > end_ms) {
        return Some("it ends before it starts; change `start` or `end`");
    }
    if spec.limit == Some(0) {
        return Some("a limit of 0 never fires; make it 1 or more, or pause the schedule");
    }
    match spec.catch_up {
        CatchUp::UpTo(0) => return Some("to make up for 0 missed times, say none"),
        CatchUp::UpTo(count) if count > TIMES_MAX => return Some("at most 1,000 missed times can be made up for"),
        CatchUp::None | CatchUp::Last | CatchUp::UpTo(_) => {}
    }
    if spec.jitter_ms > JITTER_MS_MAX {
        return Some("a jitter of more than 24 h is not possible");
    }
    if matches!(spec.when, When::Every { period_ms, .. } if is_past_period(period_ms)) {
        return Some("the jitter is longer than the period; make it shorter");
    }
    if task.not_before_ms.is_some() || task.reserve.is_some() {
        return Some("its task starts when the schedule says; leave the start out");
    }
    if task.deadline_ms.is_some() || task.expires_ms.is_some() {
        return Some("deadline and expiry of its task count from each time; give them as lengths");
    }
    if task.launch.is_some_and(|launch| !(launch.id.is_empty() || launch.id.contains(TIME))) {
        return Some("each of its runs needs an id of its own; put \"{time}\" into `id`");
    }
    let longest = task.launch.map_or(0, |launch| launch.id.len().max(name.len())) + TIME_BYTES_MAX;
    if task.launch.is_some() && longest > TEXT_BYTES_MAX {
        return Some("the ids of its runs would be longer than 256 bytes; give it a shorter name, or a shorter `id`");
    }
    if !task.after.is_empty() || task.occurrence.is_some() {
        return Some("its task waits for nothing but those before it; leave `after` out");
    }
    None
}
