//! Drives the task scheduler: behind one lock of the group, with its records in the shared log.
//!
//! Whoever has a command runs the engine under the lock. What it says is appended and, save what need not wait, held by
//! LSN until that is durable (law 1). When something falls due is left to whoever ticks, as for shards: an idle
//! scheduler wakes nobody. It does not know what payloads mean, nor how answers are written.

use super::cell::Token;
use super::held::Held;
use super::places::Place;
use crate::machine::{Message, Outbox, Sink};
use crate::record::{AttemptEnd, Lsn, Outcome, ScheduleSpec, ShardId, TaskNo, TaskSpec, decode_schedule, run_id};
use crate::scheduler::{
    AbortReason, Answer, AttemptNote, BatchRefusal, Config, ConfigError, Dedupe, Engine, Lease, MemberNo, Output,
    Refusal, RestoreError, ScheduleError, ScheduleEvent, Status, Submitted, SubmitterNo, Warning,
};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU16, AtomicU64, Ordering};

/// What the host is told of tasks. All but aborts and warnings waited for the disk.
#[derive(Debug)]
pub enum TaskEvent {
    /// What was asked for is recorded.
    Ack(Token),
    /// The answer to a question.
    Reply(Token, String),
    /// A refusal that rests on what is recorded, or on what is not: a code of the host's, and why.
    Refuse(Token, &'static str, String),
    /// What became of submissions, in their order.
    Submitted(Token, Vec<Result<Answer, Refusal>>),
    /// What became of submissions that are taken in together or not at all.
    Together(Token, Result<Vec<Answer>, BatchRefusal>),
    /// How a task ended, for a request that waits for it.
    Result(Token, Box<TaskEnd>),
    /// The function of a task is to run.
    Dispatch {
        /// The task.
        task: TaskNo,
        /// The right to end the attempt.
        lease: Lease,
        /// Counted from 1.
        attempt: u32,
    },
    /// An attempt is to be given up.
    Abort(Lease, AbortReason),
    /// A task ended, for listeners.
    Ended(Box<TaskEnd>),
    /// An attempt of a task ended and another one follows, for listeners.
    Retrying {
        /// The task.
        task: TaskNo,
        /// The attempt that ended.
        attempt: u32,
        /// Why it ended.
        end: AttemptEnd,
    },
    /// A queue wants other slots than before; see [`Output::Scale`].
    Scale {
        /// The queue.
        queue: Box<str>,
        /// Slots that it wanted before.
        from: u32,
        /// Slots that it wants now.
        to: u32,
        /// Whether somebody outside is to provide them.
        is_outside: bool,
    },
    /// Something that nobody asked for and somebody should know.
    Warning(Warning),
    /// What a schedule did that no task shows.
    Schedule(ScheduleEvent),
}

/// Schedules that code declares: names, and definitions as they are recorded.
pub type DeclaredSchedules = Vec<(Box<str>, Box<[u8]>)>;

/// What they say.
#[must_use]
pub fn specs_of(declared: &DeclaredSchedules) -> Vec<(&str, ScheduleSpec<'_>)> {
    let spec = |bytes| decode_schedule(bytes).expect("a definition comes as it was encoded");
    declared.iter().map(|(name, bytes)| (&**name, spec(bytes))).collect()
}

/// How a task ended.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names say what they are")]
pub struct TaskEnd {
    pub task: TaskNo,
    pub kind: Box<str>,
    pub outcome: Outcome,
    /// Attempts that began.
    pub attempts: u32,
    /// What it returned, threw last, or was cancelled for.
    pub payload: Box<[u8]>,
    /// Attempts that others followed, the newest ones.
    pub history: Vec<AttemptNote>,
}

/// The run that a task stands for.
enum FoundRun {
    /// It stands for none.
    None,
    /// Its id and its run id.
    Is(String),
    /// Why it could not be made.
    Refused(String),
}

impl FoundRun {
    fn told(&self, token: Token) -> TaskEvent {
        match self {
            FoundRun::None => TaskEvent::Reply(token, String::new()),
            FoundRun::Is(text) => TaskEvent::Reply(token, text.clone()),
            FoundRun::Refused(why) => TaskEvent::Refuse(token, "ALREADY_STARTED", why.clone()),
        }
    }
}

/// Submissions that are answered together.
#[derive(Debug)]
struct Batch {
    token: Token,
    answers: Vec<Option<Result<Answer, Refusal>>>,
    missing: usize,
}

/// What attempts say of themselves while they run. In memory only.
#[derive(Debug, Default)]
struct Saying {
    progress: Box<[u8]>,
    heartbeat: Box<[u8]>,
}

/// What one place is told.
#[derive(Debug, Default)]
struct Mail {
    /// May be told, in order.
    ready: VecDeque<TaskEvent>,
    held: Held<TaskEvent>,
}

/// The scheduler as the group keeps it, behind its lock.
pub struct TaskCell {
    /// Its state.
    pub engine: Engine,
    /// By place: whether ends and retries are told to listeners there.
    listens: Vec<bool>,
    mail: Vec<Mail>,
    /// Messages to shards that have no receipt.
    pub(super) outbox: Outbox,
    /// Messages of shards whose receipts wait for the disk: sender and number.
    pub(crate) receipts: Held<(ShardId, u64)>,
    /// The newest record of the scheduler.
    pub(super) last: Lsn,
    /// The newest one that the last checkpoint has.
    pub(super) saved: Lsn,
    waiters: BTreeMap<TaskNo, Vec<Token>>,
    /// Number of shards.
    pub(super) shards: u16,
    batches: BTreeMap<u64, Batch>,
    next_batch: u64,
    /// Which place in which batch a submission that waits for room has.
    submitters: BTreeMap<SubmitterNo, (u64, usize)>,
    /// Who asked for tasks that are to be taken in together, and wait for room.
    together: BTreeMap<SubmitterNo, Token>,
    sayings: BTreeMap<TaskNo, Saying>,
}

/// What a verb works with: the time, and where records go.
pub struct TaskWork<'a> {
    /// Now, in ms since 1970.
    pub now_ms: i64,
    /// Takes the records of the scheduler.
    pub log: &'a mut dyn Sink,
    /// Takes messages for shards, to be delivered when the lock is released.
    pub outgoing: &'a mut VecDeque<Message>,
}

/// The scheduler of a group, and what others look at without its lock.
pub(super) struct Tasks {
    pub(super) cell: Mutex<TaskCell>,
    posts: Vec<Post>,
    /// The newest record of the scheduler.
    last: AtomicU64,
    due_ms: AtomicI64,
}

/// What is known of a place's mail without the lock.
struct Post {
    is_ready: AtomicBool,
    /// The lowest LSN that something for it waits for; `u64::MAX`: none.
    wanted: AtomicU64,
}

/// A token of a place that no group has: what is said to it is said to nobody.
const NOBODYS: Token = Token::MAX;

/// Openings in this process: leases of an earlier one never match.
static EPOCH: AtomicU16 = AtomicU16::new(0);

impl Tasks {
    pub(super) fn new(config: Config) -> Result<Tasks, ConfigError> {
        let epoch = EPOCH.fetch_add(1, Ordering::Relaxed);
        Ok(Tasks {
            cell: Mutex::new(TaskCell::new(Engine::new(Config { epoch, ..config })?)),
            posts: Vec::new(),
            last: AtomicU64::new(0),
            due_ms: AtomicI64::new(i64::MAX),
        })
    }

    /// The participants of the group, before anything is told.
    pub(super) fn set_places(&mut self, places: usize) {
        let post = || Post { is_ready: AtomicBool::new(false), wanted: AtomicU64::new(u64::MAX) };
        self.posts = std::iter::repeat_with(post).take(places).collect();
        let cell = self.cell.get_mut();
        cell.listens = vec![false; places];
        cell.mail = std::iter::repeat_with(Mail::default).take(places).collect();
    }

    /// How many shards the directory has, before anything is taken back.
    pub(super) fn set_shards(&mut self, count: u16) {
        self.cell.get_mut().shards = count;
    }

    /// Takes the next record back, before [`Tasks::recover`].
    pub(super) fn restore(&mut self, lsn: Lsn, bytes: &[u8]) -> Result<(), RestoreError> {
        let cell = self.cell.get_mut();
        cell.engine.restore(bytes)?;
        cell.last = lsn;
        while let Some(output) = cell.engine.poll_output() {
            let _ = cell.message_of(output);
        }
        Ok(())
    }

    /// Brings the declared schedules to these definitions, between [`Tasks::restore`] and [`Tasks::recover`]; `holds`: only
    /// checks them, and nothing fires until they are declared again.
    pub(super) fn declare(
        &mut self,
        now_ms: i64,
        declared: &DeclaredSchedules,
        holds: bool,
    ) -> Result<(), ScheduleError> {
        let (specs, engine) = (specs_of(declared), &mut self.cell.get_mut().engine);
        if holds { engine.hold_schedules(&specs) } else { engine.handle_reconcile(now_ms, &specs).map(|_| ()) }
    }

    /// Goes on after the last record.
    pub(super) fn recover(&self, work: TaskWork<'_>, was_clean: bool) {
        self.with(work, |cell, work| cell.engine.recover(work.now_ms, was_clean));
    }

    /// Does a piece of work under the lock, and what follows from it.
    pub(super) fn with<R>(&self, mut work: TaskWork<'_>, act: impl FnOnce(&mut TaskCell, &mut TaskWork<'_>) -> R) -> R {
        let mut cell = self.cell.lock();
        let result = act(&mut cell, &mut work);
        cell.commit(&mut work);
        // Receipts are anybody's: the opener is woken for them.
        let mut receipt = cell.receipts.first();
        for (post, mail) in self.posts.iter().zip(&cell.mail) {
            post.is_ready.store(!mail.ready.is_empty(), Ordering::SeqCst);
            let wanted = mail.held.first().into_iter().chain(receipt.take()).min();
            post.wanted.store(wanted.map_or(u64::MAX, |lsn| lsn.0), Ordering::SeqCst);
        }
        self.last.store(cell.last.0, Ordering::Release);
        self.due_ms.store(cell.engine.next_wake_ms().unwrap_or(i64::MAX), Ordering::Release);
        result
    }

    /// Does what is due and releases what is durable for a place, then hands the cell to `take`, which takes its events.
    /// Messages of shards that have durable records now: sender and number.
    pub(super) fn tick(
        &self,
        work: TaskWork<'_>,
        place: Place,
        durable: Lsn,
        take: impl FnOnce(&mut TaskCell),
    ) -> Vec<(ShardId, u64)> {
        self.with(work, |cell, work| {
            if cell.engine.next_wake_ms().is_some_and(|due_ms| due_ms <= work.now_ms) {
                cell.engine.handle_time(work.now_ms);
                cell.commit(work);
            }
            if let Some(mail) = cell.mail.get_mut(place.index()) {
                while let Some(event) = mail.held.release(durable) {
                    mail.ready.push_back(event);
                }
            }
            take(cell);
            std::iter::from_fn(|| cell.receipts.release(durable)).collect()
        })
    }

    /// A shard has a message on disk, and all before it.
    pub(super) fn acknowledge(&self, receiver: ShardId, number: u64) {
        self.cell.lock().outbox.acknowledge(receiver, number);
    }

    /// The last message of a shard that has a record here.
    pub(super) fn taken_from(&self, sender: ShardId) -> u64 {
        self.cell.lock().engine.taken_from(sender)
    }

    /// Messages that have no receipt, in order.
    pub(super) fn unacknowledged(&self) -> Vec<Message> {
        self.cell.lock().outbox.waiting(ShardId::SCHEDULER).collect()
    }

    /// Whether [`Tasks::tick`] has something to do for a place.
    pub(super) fn needs_tick(&self, place: Place, durable: Lsn, now_ms: impl FnOnce() -> i64) -> bool {
        self.has_mail(place, durable) || self.due_ms().is_some_and(|due_ms| due_ms <= now_ms())
    }

    /// When something falls due, in ms since 1970.
    pub(super) fn due_ms(&self) -> Option<i64> {
        let due_ms = self.due_ms.load(Ordering::Acquire);
        (due_ms != i64::MAX).then_some(due_ms)
    }

    /// The newest record of the scheduler of this life; 0: none.
    pub(super) fn last(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// Whether there is something for a place that may be told.
    pub(super) fn has_mail(&self, place: Place, durable: Lsn) -> bool {
        self.posts[place.index()].is_ready.load(Ordering::SeqCst) || self.wanted_by(place) <= durable.0
    }

    /// The lowest LSN that something for a place waits for; `u64::MAX`: none.
    pub(super) fn wanted_by(&self, place: Place) -> u64 {
        self.posts[place.index()].wanted.load(Ordering::SeqCst)
    }

    /// The lowest LSN that something held back waits for; `u64::MAX`: none.
    pub(super) fn wanted(&self) -> u64 {
        self.posts.iter().map(|post| post.wanted.load(Ordering::SeqCst)).min().unwrap_or(u64::MAX)
    }
}

impl TaskCell {
    fn new(engine: Engine) -> TaskCell {
        TaskCell {
            engine,
            listens: Vec::new(),
            mail: Vec::new(),
            outbox: Outbox::default(),
            receipts: Held::default(),
            last: Lsn::NONE,
            saved: Lsn::NONE,
            waiters: BTreeMap::new(),
            shards: 1,
            batches: BTreeMap::new(),
            next_batch: 0,
            submitters: BTreeMap::new(),
            together: BTreeMap::new(),
            sayings: BTreeMap::new(),
        }
    }

    /// Answers once all that the scheduler has recorded is durable: what the answer rests on, and what it says is not.
    pub fn tell(&mut self, work: &mut TaskWork<'_>, token: Token, event: TaskEvent) {
        self.commit(work);
        self.hold(Place::of(token), event);
    }

    /// Whether ends and retries are told to listeners of a place.
    pub fn listen(&mut self, place: Place, has_listeners: bool) {
        if let Some(listens) = self.listens.get_mut(place.index()) {
            *listens = has_listeners;
        }
    }

    /// The next thing that a place may be told.
    pub fn next_event(&mut self, place: Place) -> Option<TaskEvent> {
        self.mail.get_mut(place.index())?.ready.pop_front()
    }

    /// Whether there is such a thing.
    #[must_use]
    pub fn has_events(&self, place: Place) -> bool {
        self.mail.get(place.index()).is_some_and(|mail| !mail.ready.is_empty())
    }

    /// A place is gone: its attempts are lost ones, and nobody there waits for anything any more.
    pub(super) fn forget_place(&mut self, now_ms: i64, place: Place) {
        self.listen(place, false);
        self.keep_waiters(&|token| Place::of(token) != place);
        for batch in self.batches.values_mut().filter(|batch| Place::of(batch.token) == place) {
            batch.token = NOBODYS;
        }
        self.together.values_mut().filter(|token| Place::of(**token) == place).for_each(|token| *token = NOBODYS);
        self.engine.handle_member_gone(now_ms, MemberNo(place.0));
    }

    fn keep_waiters(&mut self, is_kept: &dyn Fn(Token) -> bool) {
        self.waiters.retain(|_, tokens| {
            tokens.retain(|token| is_kept(*token));
            !tokens.is_empty()
        });
    }

    /// What a place was to be told is not for whoever comes there next.
    pub(crate) fn drop_mail(&mut self, place: Place) {
        if let Some(mail) = self.mail.get_mut(place.index()) {
            *mail = Mail::default();
        }
    }

    fn hold(&mut self, place: Place, event: TaskEvent) {
        if let Some(mail) = self.mail.get_mut(place.index()) {
            mail.held.hold(self.last, event);
        }
    }

    fn listeners(&self) -> impl Iterator<Item = Place> + use<> {
        let listens = self.listens.clone();
        (0..listens.len()).filter(move |at| listens[*at]).map(|at| Place(at as u8))
    }

    /// Submits tasks, each for itself, in order; [`TaskEvent::Submitted`] follows once all are decided.
    pub fn submit<'a>(
        &mut self,
        work: &mut TaskWork<'_>,
        token: Token,
        submissions: impl Iterator<Item = &'a (TaskSpec<'a>, Dedupe)>,
    ) {
        self.decide(work, token, submissions, |engine, now_ms, (spec, dedupe)| {
            engine.handle_submit(now_ms, spec, *dedupe)
        });
    }

    /// Takes the answers to submissions of any kind, in order; [`TaskEvent::Submitted`] follows once all are decided.
    pub fn decide<S>(
        &mut self,
        work: &mut TaskWork<'_>,
        token: Token,
        submissions: impl Iterator<Item = S>,
        mut submit: impl FnMut(&mut Engine, i64, S) -> Result<Submitted<Answer>, Refusal>,
    ) {
        let number = self.next_batch;
        self.next_batch += 1;
        let mut batch = Batch { token, answers: Vec::new(), missing: 0 };
        for (place, submission) in submissions.enumerate() {
            batch.answers.push(match submit(&mut self.engine, work.now_ms, submission) {
                Ok(Submitted::Now(answer)) => Some(Ok(answer)),
                Err(refusal) => Some(Err(refusal)),
                Ok(Submitted::Waits(submitter)) => {
                    batch.missing += 1;
                    self.submitters.insert(submitter, (number, place));
                    None
                }
            });
        }
        let is_decided = batch.missing == 0;
        self.batches.insert(number, batch);
        self.commit(work);
        if is_decided {
            self.answer(number);
        }
    }

    /// Submits tasks, all or none; [`TaskEvent::Together`] follows once that is decided.
    pub fn submit_together(&mut self, work: &mut TaskWork<'_>, token: Token, specs: &[TaskSpec<'_>]) {
        let result = match self.engine.handle_batch(work.now_ms, specs) {
            Ok(Submitted::Now(answers)) => Ok(answers),
            Ok(Submitted::Waits(submitter)) => {
                self.together.insert(submitter, token);
                return self.commit(work);
            }
            Err(refusal) => Err(refusal),
        };
        self.tell(work, token, TaskEvent::Together(token, result));
    }

    /// A request waits for the end of a task: answered when that is durable, also if it has ended already. `false`: the
    /// task is not known.
    pub fn await_end(&mut self, work: &mut TaskWork<'_>, task: TaskNo, token: Token) -> bool {
        let Some(view) = self.engine.task(task) else { return false };
        if matches!(view.status, Status::Ended(_)) {
            let end = self.end_of(task);
            self.tell(work, token, TaskEvent::Result(token, end));
        } else {
            self.waiters.entry(task).or_default().push(token);
        }
        true
    }

    /// A request waits for the run that a task stands for: answered by its id and run id, by an empty text if the task
    /// stands for none, or refused if the run could not be made.
    pub fn await_run(&mut self, work: &mut TaskWork<'_>, task: TaskNo, token: Token) {
        match self.run_of(task) {
            Some(found) => self.tell(work, token, found.told(token)),
            None => self.waiters.entry(task).or_default().push(token),
        }
    }

    /// Whether there is a run that a task stands for is known now.
    pub(super) fn run_decided(&mut self, task: TaskNo) {
        let Some(found) = self.run_of(task) else { return };
        for token in self.waiters.remove(&task).into_iter().flatten() {
            self.hold(Place::of(token), found.told(token));
        }
    }

    /// `None`: its run is yet to be made.
    fn run_of(&self, task: TaskNo) -> Option<FoundRun> {
        let Some(view) = self.engine.task(task) else { return Some(FoundRun::None) };
        let Some(id) = view.launch else { return Some(FoundRun::None) };
        match view.run {
            Some(run) => Some(FoundRun::Is(format!("{id}\u{1f}{}", run_id(run.shard, run.run)))),
            None if matches!(view.status, Status::Ended(_)) => {
                Some(FoundRun::Refused(String::from_utf8_lossy(view.failure).into_owned()))
            }
            None => None,
        }
    }

    /// A request is not waited for any more.
    pub fn forget(&mut self, token: Token) {
        self.keep_waiters(&|waiting| waiting != token);
        if let Some(mail) = self.mail.get_mut(Place::of(token).index()) {
            mail.held.retain(
                |event| !matches!(event, TaskEvent::Result(held, _) | TaskEvent::Reply(held, _) if *held == token),
            );
        }
    }

    /// How far an attempt says that it is. `false`: it counts no more.
    pub fn set_progress(&mut self, lease: Lease, progress: &[u8]) -> bool {
        let Some(task) = self.engine.task_of(lease) else { return false };
        self.sayings.entry(task).or_default().progress = progress.into();
        true
    }

    /// An attempt lives; what it says of itself is for the next one. `false`: it counts no more.
    pub fn heartbeat(&mut self, now_ms: i64, lease: Lease, details: Option<&[u8]>) -> bool {
        if let (Some(task), Some(details)) = (self.engine.task_of(lease), details) {
            self.sayings.entry(task).or_default().heartbeat = details.into();
        }
        self.engine.handle_heartbeat(now_ms, lease)
    }

    /// What attempts of a task said last of how far they are; empty: nothing.
    #[must_use]
    pub fn progress(&self, task: TaskNo) -> &[u8] {
        self.sayings.get(&task).map_or(&[], |saying| &saying.progress)
    }

    /// What the last heartbeat of a task's attempts carried; empty: nothing.
    #[must_use]
    pub fn last_heartbeat(&self, task: TaskNo) -> &[u8] {
        self.sayings.get(&task).map_or(&[], |saying| &saying.heartbeat)
    }

    /// The newest record of the scheduler.
    pub(super) fn last(&self) -> Lsn {
        self.last
    }

    /// Appends what the engine recorded, and holds or passes on what it says.
    pub(super) fn commit(&mut self, work: &mut TaskWork<'_>) {
        while let Some(record) = self.engine.poll_record() {
            self.last = work.log.append(record);
        }
        while let Some(output) = self.engine.poll_output() {
            match self.message_of(output) {
                Ok(message) => work.outgoing.push_back(message),
                Err(other) => self.route(other),
            }
        }
        while let Some(event) = self.engine.poll_schedule_event() {
            self.hold(Place::OPENER, TaskEvent::Schedule(event));
        }
    }

    /// What goes to a shard; anything else comes back.
    fn message_of(&mut self, output: Output) -> Result<Message, Output> {
        match output {
            Output::Answer { caller, answer } => Ok(self.tell_run(caller, answer)),
            Output::Launch(order) => Ok(self.launch(*order)),
            Output::EndRun { id, run } => Ok(self.end_run(id, run)),
            Output::WatchRun { task, edge, id, run } => Ok(self.watch_run(task, edge, id, run)),
            other => Err(other),
        }
    }

    fn route(&mut self, output: Output) {
        match output {
            Output::Answer { .. } | Output::Launch(_) | Output::EndRun { .. } | Output::WatchRun { .. } => {
                unreachable!("it leaves as a message")
            }
            Output::Dispatch { task, lease, attempt, member, .. } => {
                self.hold(Place(member.0), TaskEvent::Dispatch { task, lease, attempt });
            }
            Output::Abort { lease, member, reason, .. } => self.say(Place(member.0), TaskEvent::Abort(lease, reason)),
            Output::Changed { task, status: Status::Ended(_), .. } => self.ended(task),
            Output::Changed { task, status: Status::Retrying, attempt, end: Some(end), .. } => {
                for place in self.listeners() {
                    self.hold(place, TaskEvent::Retrying { task, attempt, end });
                }
            }
            Output::Changed { .. } => {}
            Output::Admitted { submitter, result } => self.admitted(submitter, result),
            // No step of a workflow asks the scheduler for limits yet.
            Output::Granted(_) => {}
            Output::Scale { queue, from, to, is_outside } => {
                self.say(Place::OPENER, TaskEvent::Scale { queue, from, to, is_outside });
            }
            Output::Warning(warning) => self.say(Place::OPENER, TaskEvent::Warning(warning)),
        }
    }

    /// Tells what need not wait for the disk.
    fn say(&mut self, place: Place, event: TaskEvent) {
        if let Some(mail) = self.mail.get_mut(place.index()) {
            mail.ready.push_back(event);
        }
    }

    fn ended(&mut self, task: TaskNo) {
        self.sayings.remove(&task);
        if self.engine.task(task).is_some_and(|view| view.stands_for_run()) {
            // The run itself tells of its end.
            return;
        }
        for token in self.waiters.remove(&task).into_iter().flatten() {
            let end = self.end_of(task);
            self.hold(Place::of(token), TaskEvent::Result(token, end));
        }
        for place in self.listeners() {
            let end = self.end_of(task);
            self.hold(place, TaskEvent::Ended(end));
        }
    }

    fn end_of(&self, task: TaskNo) -> Box<TaskEnd> {
        let gone = || TaskEnd {
            task,
            kind: "".into(),
            outcome: Outcome::Failed,
            attempts: 0,
            payload: b"it ended and was forgotten before this could be told; raise what is remembered"
                .as_slice()
                .into(),
            history: Vec::new(),
        };
        Box::new(self.engine.task(task).map_or_else(gone, |view| TaskEnd {
            task,
            kind: view.kind.into(),
            outcome: match view.status {
                Status::Ended(outcome) => outcome,
                _ => Outcome::Failed,
            },
            attempts: view.attempts,
            payload: if view.status == Status::Ended(Outcome::Completed) {
                view.payload.into()
            } else {
                view.failure.into()
            },
            history: view.history.to_vec(),
        }))
    }

    fn admitted(&mut self, submitter: SubmitterNo, result: Result<Vec<Answer>, BatchRefusal>) {
        if let Some(token) = self.together.remove(&submitter) {
            return self.hold(Place::of(token), TaskEvent::Together(token, result));
        }
        let Some((number, place)) = self.submitters.remove(&submitter) else { return };
        let Some(batch) = self.batches.get_mut(&number) else { return };
        let answer = result.map(|answers| answers[0]).map_err(|refusal| refusal.why);
        if let Some(open) = batch.answers.get_mut(place) {
            *open = Some(answer);
        }
        batch.missing -= 1;
        if batch.missing == 0 {
            self.answer(number);
        }
    }

    fn answer(&mut self, number: u64) {
        let Some(batch) = self.batches.remove(&number) else { return };
        let answers = batch.answers.into_iter().flatten().collect();
        self.hold(Place::of(batch.token), TaskEvent::Submitted(batch.token, answers));
    }
}
