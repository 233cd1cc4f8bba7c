//! The builder: some shards over one list of records, a clock that stands still, code that is driven by hand.

use crate::machine::*;
use crate::record::*;
use std::collections::{BTreeMap, VecDeque};

/// A run of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct R(pub(super) usize, pub(super) RunIx);

/// One entry of the list that stands for the log. Its LSN is its place in the list, from 1.
pub(super) type Entry = (ShardId, Vec<u8>);

pub(super) struct World {
    pub(super) shards: Vec<Shard>,
    pub(super) log: Vec<Entry>,
    pub(super) now_ms: i64,
    /// What the shards asked for and no `take_*` has fetched.
    pub(super) effects: Vec<(usize, Effect)>,
    pub(super) mail: VecDeque<Message>,
    /// What shards said to the scheduler.
    pub(super) to_scheduler: Vec<Message>,
    /// Messages stay in `mail`.
    pub(super) is_mail_held: bool,
    /// Leases of the attempts that `take_attempts` has returned, in order.
    pub(super) leases: Vec<u32>,
    seqs: BTreeMap<R, u32>,
}

struct List<'a>(&'a mut Vec<Entry>, ShardId);

impl Sink for List<'_> {
    fn append(&mut self, record: &[u8]) -> Lsn {
        self.0.push((self.1, record.to_vec()));
        Lsn(self.0.len() as u64)
    }
}

pub(super) const T0: i64 = 1_000_000;

pub(super) fn new_run<'a>(id: &'a str, input: &'a str) -> NewRun<'a> {
    NewRun {
        id,
        kind: "flow",
        version: 1,
        key_root: [7; 16],
        deadline_ms: None,
        parent: None,
        input: input.as_bytes(),
        actor: None,
    }
}

pub(super) fn child<'a>(id: &'a str) -> ChildSpec<'a> {
    ChildSpec {
        id,
        kind: "flow",
        version: 1,
        key_root: [8; 16],
        timeout_ms: None,
        parent_close: ParentClose::Terminate,
        reuse: IdReuse::Allow,
        conflict: IdConflict::SameInput,
        input: b"in",
    }
}

impl World {
    pub(super) fn new(count: u16) -> World {
        World {
            shards: (0..count).map(|id| Shard::new(ShardId(id), count)).collect(),
            log: Vec::new(),
            now_ms: T0,
            effects: Vec::new(),
            mail: VecDeque::new(),
            to_scheduler: Vec::new(),
            is_mail_held: false,
            leases: Vec::new(),
            seqs: BTreeMap::new(),
        }
    }

    pub(super) fn limit(&mut self, limits: Limits) {
        self.shards.iter_mut().for_each(|shard| shard.set_limits(limits));
    }

    /// Work on one shard; messages that follow from it are delivered, unless they are held.
    pub(super) fn on<T>(&mut self, shard: usize, work: impl FnOnce(&mut Shard, &mut Work<'_>) -> T) -> T {
        let mut effects = Vec::new();
        let mut sink = List(&mut self.log, ShardId(shard as u16));
        let mut context = Work { now_ms: self.now_ms, log: &mut sink, effects: &mut effects };
        let result = work(&mut self.shards[shard], &mut context);
        for effect in effects {
            match effect {
                Effect::Post(message) if message.to == ShardId::SCHEDULER => self.to_scheduler.push(message),
                Effect::Post(message) => self.mail.push_back(message),
                other => self.effects.push((shard, other)),
            }
        }
        if !self.is_mail_held {
            self.post_all();
        }
        result
    }

    pub(super) fn post_all(&mut self) {
        while let Some(message) = self.mail.pop_front() {
            assert!(self.receive(&message), "messages arrive in order");
        }
    }

    pub(super) fn receive(&mut self, message: &Message) -> bool {
        self.on(usize::from(message.to.0), |shard, work| shard.handle_message(work, message))
    }

    /// Makes a run that waits until it is let in.
    pub(super) fn enqueue(&mut self, id: &str, timeout_ms: Option<i64>) -> R {
        self.enqueue_as(id, b"order", timeout_ms)
    }

    /// The same, with what the scheduler is to read.
    pub(super) fn enqueue_as(&mut self, id: &str, order: &[u8], timeout_ms: Option<i64>) -> R {
        let command = StartCommand {
            new: new_run(id, "in"),
            attributes: b"",
            reuse: IdReuse::Allow,
            conflict: IdConflict::UseExisting,
        };
        let home = self.home(id);
        let enqueued = Enqueued { order, timeout_ms };
        R(home, self.on(home, |shard, work| shard.enqueue(work, command, enqueued)).unwrap().run)
    }

    /// The scheduler says something to a shard.
    pub(super) fn say(&mut self, shard: usize, body: Body) {
        let number = self.shards[shard].applied_from(ShardId::SCHEDULER) + 1;
        let (from, to, lsn) = (ShardId::SCHEDULER, ShardId(shard as u16), Lsn::NONE);
        assert!(self.receive(&Message { from, to, number, lsn, body: body.into() }));
    }

    /// What a run ended with.
    pub(super) fn payload_of_end(&self, run: R) -> String {
        let end = self.shards[run.0].outcome(run.1).expect("it has ended");
        String::from_utf8_lossy(end.1).into_owned()
    }

    pub(super) fn home(&self, id: &str) -> usize {
        usize::from(shard_of(id, self.shards.len() as u16).0)
    }

    pub(super) fn try_start(
        &mut self,
        new: NewRun<'_>,
        reuse: IdReuse,
        conflict: IdConflict,
    ) -> Result<(R, bool), Refusal> {
        let home = self.home(new.id);
        let started =
            self.on(home, |shard, work| shard.start(work, StartCommand { new, attributes: b"", reuse, conflict }))?;
        Ok((R(home, started.run), started.is_existing))
    }

    /// Starts a run, calls its function, and leaves it in its first turn.
    pub(super) fn started(&mut self, id: &str) -> R {
        let (run, _) = self.try_start(new_run(id, "in"), IdReuse::Allow, IdConflict::SameInput).unwrap();
        self.load(run);
        assert_eq!(self.next(run), Some((DeliveryKind::Start, 0)));
        run
    }

    pub(super) fn find(&self, id: &str) -> R {
        let home = self.home(id);
        R(home, self.shards[home].find(Target { id, run: None }).unwrap())
    }

    pub(super) fn load(&mut self, run: R) -> Option<bool> {
        self.seqs.insert(run, 0);
        self.shards[run.0].load(run.1)
    }

    /// The code has come to rest: what it is handed next.
    pub(super) fn next(&mut self, run: R) -> Option<(DeliveryKind, u32)> {
        let delivery = self.on(run.0, |shard, work| shard.quiescent(work, run.1));
        delivery.map(|delivery| (delivery.kind, delivery.seq.0))
    }

    /// The code has come to rest and nothing is there for it.
    pub(super) fn rests(&mut self, run: R) {
        assert_eq!(self.next(run), None);
    }

    fn seq(&mut self, run: R) -> Seq {
        let seq = self.seqs.entry(run).or_default();
        *seq += 1;
        Seq(*seq)
    }

    pub(super) fn step(&mut self, run: R, name: &str) -> Result<OpenedStep, Halt> {
        self.step_as(run, name, StepMode::default())
    }

    pub(super) fn step_as(&mut self, run: R, name: &str, mode: StepMode) -> Result<OpenedStep, Halt> {
        let seq = self.seq(run);
        self.on(run.0, |shard, work| shard.open_step(work, run.1, seq, name, mode))
    }

    pub(super) fn sleep(&mut self, run: R, ms: i64) -> Result<(), Halt> {
        self.timer(run, ms, TimerMode::default())
    }

    pub(super) fn timer(&mut self, run: R, ms: i64, mode: TimerMode) -> Result<(), Halt> {
        let seq = self.seq(run);
        self.on(run.0, |shard, work| shard.open_timer(work, run.1, seq, ms, mode))
    }

    /// `Some`: the payload of a signal that was there.
    pub(super) fn wait(&mut self, run: R, name: &str, timeout_ms: Option<i64>) -> Result<Option<String>, Halt> {
        let seq = self.seq(run);
        let found = self.on(run.0, |shard, work| shard.open_wait(work, run.1, seq, name, timeout_ms))?;
        Ok(found.then(|| self.payload(run)))
    }

    pub(super) fn condition(&mut self, run: R, timeout_ms: Option<i64>) -> Result<(), Halt> {
        let seq = self.seq(run);
        self.on(run.0, |shard, work| shard.open_condition(work, run.1, seq, timeout_ms))
    }

    pub(super) fn child(&mut self, run: R, spec: ChildSpec<'_>) -> Result<(), Halt> {
        let seq = self.seq(run);
        self.on(run.0, |shard, work| shard.open_child(work, run.1, seq, spec))
    }

    pub(super) fn send(&mut self, run: R, id: &str, what: Sending<'_>) -> Result<(), Halt> {
        let seq = self.seq(run);
        self.on(run.0, |shard, work| shard.open_send(work, run.1, seq, id, None, what))
    }

    pub(super) fn attributes(&mut self, run: R, set: &[u8]) -> Result<(), Halt> {
        let seq = self.seq(run);
        self.on(run.0, |shard, work| shard.set_attributes(work, run.1, seq, set))
    }

    pub(super) fn task(&mut self, run: R, kind: &str, role: TaskRole) -> Result<(), Halt> {
        let seq = self.seq(run);
        let spec = TaskSpec::new("queue", kind, b"in");
        self.on(run.0, |shard, work| shard.open_task(work, run.1, seq, role, Dedupe::default(), &spec, false, Ok(())))
    }

    /// The scheduler says that what a run asked for as an operation has ended.
    pub(super) fn task_ended(&mut self, run: R, seq: u32) {
        let shard = &self.shards[run.0];
        let message = Message {
            from: ShardId::SCHEDULER,
            to: ShardId(run.0 as u16),
            number: shard.applied_from(ShardId::SCHEDULER) + 1,
            lsn: Lsn::NONE,
            body: std::sync::Arc::new(Body::Ended {
                run: shard.view(run.1).no,
                seq: Seq(seq),
                status: Status::Completed,
                payload: b"done".as_slice().into(),
            }),
        };
        assert!(self.receive(&message), "it is the next one");
    }

    pub(super) fn complete(&mut self, run: R, seq: u32, lease: u32, payload: &str) -> bool {
        self.on(run.0, |shard, work| shard.complete(work, run.1, Seq(seq), lease, payload.as_bytes()))
    }

    pub(super) fn fail(&mut self, run: R, seq: u32, lease: u32, failure: &str) -> bool {
        self.on(run.0, |shard, work| shard.fail(work, run.1, Seq(seq), lease, failure.as_bytes()))
    }

    /// `after_ms`: `None` pauses.
    pub(super) fn retry(&mut self, run: R, seq: u32, lease: u32, after_ms: Option<i64>) -> bool {
        let retry = after_ms.map_or(Retry::Paused, |after_ms| Retry::At(self.now_ms + after_ms));
        self.on(run.0, |shard, work| shard.retry(work, run.1, Seq(seq), lease, retry, b"no"))
    }

    pub(super) fn finish(&mut self, run: R, status: Status, payload: &str) -> Result<(), Halt> {
        self.on(run.0, |shard, work| shard.finish(work, run.1, status, payload.as_bytes()))
    }

    pub(super) fn signal(&mut self, id: &str, name: &str, payload: &str) -> Result<(), Refusal> {
        self.signal_once(id, name, payload, None)
    }

    pub(super) fn signal_once(
        &mut self,
        id: &str,
        name: &str,
        payload: &str,
        dedupe: Option<&str>,
    ) -> Result<(), Refusal> {
        let target = Target { id, run: None };
        let home = self.home(id);
        self.on(home, |shard, work| shard.signal(work, target, name, payload.as_bytes(), dedupe, None))
    }

    /// A client calls an object.
    pub(super) fn call(&mut self, id: &str, call_id: &str) -> Result<(R, u32), Refusal> {
        let new = NewRun { kind: "cart", ..new_run(id, "") };
        let call = NewUpdate { name: "add", id: call_id, payload: b"arg", actor: None };
        let home = self.home(id);
        let (run, number) = self.on(home, |shard, work| shard.call_object(work, new, call))?;
        Ok((R(home, run), number))
    }

    pub(super) fn answer(&mut self, run: R, answer: CallAnswer<'_>) -> Result<bool, Halt> {
        self.on(run.0, |shard, work| shard.answer_call(work, run.1, answer))
    }

    pub(super) fn cancel(&mut self, id: &str) -> Result<(), Refusal> {
        let home = self.home(id);
        self.on(home, |shard, work| shard.cancel(work, Target { id, run: None }, "enough", None))
    }

    pub(super) fn terminate(&mut self, id: &str) -> Result<(), Refusal> {
        let home = self.home(id);
        self.on(home, |shard, work| shard.terminate(work, Target { id, run: None }, b"stop", None))
    }

    pub(super) fn resume(&mut self, id: &str) -> Result<(), Refusal> {
        let home = self.home(id);
        self.on(home, |shard, work| shard.resume(work, Target { id, run: None }, None))
    }

    /// Time passes, and what falls due is done.
    pub(super) fn advance(&mut self, ms: i64) {
        self.now_ms += ms;
        for shard in 0..self.shards.len() {
            while self.shards[shard].next_due_ms().is_some_and(|due_ms| due_ms <= self.now_ms) {
                self.on(shard, |shard, work| shard.handle_due(work));
            }
        }
    }

    pub(super) fn payload(&self, run: R) -> String {
        let (status, payload) = self.shards[run.0].payload(run.1);
        let text = String::from_utf8(payload.to_vec()).unwrap();
        match status {
            Some(status) => format!("{status:?}:{text}"),
            None => text,
        }
    }

    pub(super) fn status(&self, run: R) -> Option<Status> {
        self.shards[run.0].view(run.1).status
    }

    /// Attempts that were asked for since the last call, in order: step, attempt, whether it was interrupted.
    pub(super) fn take_attempts(&mut self) -> Vec<(u32, u32, bool)> {
        let mut attempts = Vec::new();
        for (shard, effect) in std::mem::take(&mut self.effects) {
            if let Effect::Attempt { run, seq, gate } = effect {
                if let Some(attempt) = self.shards[shard].attempt(run, seq, gate) {
                    self.leases.push(attempt.lease);
                    attempts.push((seq.0, attempt.number, attempt.is_interrupted));
                }
            } else {
                self.effects.push((shard, effect));
            }
        }
        attempts
    }

    pub(super) fn has_effect(&self, is_meant: impl Fn(&Effect) -> bool) -> bool {
        self.effects.iter().any(|(_, effect)| is_meant(effect))
    }

    /// The labels of a run's records, in order.
    pub(super) fn labels(&self, run: R) -> Vec<&'static str> {
        self.shards[run.0].history(run.1).map(|entry| entry.record.label()).collect()
    }

    /// Shards that know only the first `count` records.
    pub(super) fn restored_from(&self, count: usize) -> Vec<Shard> {
        let shards = self.shards.len() as u16;
        let mut restored: Vec<Shard> = (0..shards).map(|id| Shard::new(ShardId(id), shards)).collect();
        for (index, (shard, record)) in self.log.iter().take(count).enumerate() {
            restored[usize::from(shard.0)].restore(Lsn(index as u64 + 1), record).unwrap();
        }
        restored
    }

    /// The process is gone and another one opens the log. No code is in memory; messages that have no record are sent
    /// again.
    pub(super) fn reopen(&mut self, is_clean: bool) {
        self.shards = self.restored_from(self.log.len());
        self.effects.clear();
        self.mail.clear();
        self.seqs.clear();
        for index in 0..self.shards.len() {
            let mut effects = Vec::new();
            self.shards[index].restored(is_clean, &mut effects);
            self.effects.extend(effects.into_iter().map(|effect| (index, effect)));
        }
        let waiting: Vec<Message> = self.shards.iter().flat_map(Shard::unacknowledged).collect();
        for message in waiting.iter().filter(|message| message.to != ShardId::SCHEDULER) {
            self.receive(message);
        }
    }

    /// A killed process, and the code of this run called again up to its first turn.
    pub(super) fn crash(&mut self, run: R) {
        self.reopen(false);
        assert_eq!(self.load(run), Some(true));
        assert_eq!(self.next(run), Some((DeliveryKind::Start, 0)));
    }

    pub(super) fn close_and_open(&mut self, run: R) {
        self.reopen(true);
        self.load(run);
        assert_eq!(self.next(run), Some((DeliveryKind::Start, 0)));
    }

    pub(super) fn no_orphans(&self) {
        for shard in &self.shards {
            assert_eq!(shard.orphans(), []);
        }
    }
}
