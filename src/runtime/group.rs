//! Everything of one directory in one process: the log, all shards, each behind its own lock, the flusher.

use super::backup::is_unfinished;
use super::cell::{HostEvent, Output, ShardCell};
use super::checkpointer::Keeper;
use super::clock::Clock;
use super::flusher::{FlushMode, Flusher};
use super::gauge::Gauge;
use super::ghosts::Ghosts;
use super::loading::Loading;
use super::opening::{GroupError, GroupOptions, Opened, Relay, SHARDS_MAX, settings};
use super::orders::Receipt;
use super::parts::{Parts, WORKERS_MAX};
use super::places::{Place, Places, Right};
use super::resend::RESEND_BATCH;
use super::tasks::{TaskCell, TaskWork, Tasks};
use crate::log::{Log, LogError, LogState};
use crate::machine::{Effect, Message, Shard, Sink, Work};
use crate::record::{Lsn, ShardId, Source};
use crate::store::Identity;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The group.
pub struct Group {
    pub(super) log: Arc<Log>,
    shards: Vec<Mutex<ShardCell>>,
    pub(super) gauges: Vec<Gauge>,
    pub(super) places: Arc<Places>,
    pub(super) parts: Parts,
    clock: Clock,
    pub(super) flusher: Arc<Flusher>,
    relay: Option<Arc<dyn Relay>>,
    pub(super) tasks: Tasks,
    /// Makes checkpoints; `None`: nobody does.
    pub(super) keeper: Option<Arc<Keeper>>,
    /// Copies of the directory that are being made.
    pub(super) copies: AtomicU64,
    store_id: [u8; 16],
    /// Numbers for records that a poisoned log did not take: nothing rests on them, nothing is released for them.
    void: AtomicU64,
    /// Runs that have ended and are looked at.
    ghosts: Ghosts,
    opened: Opened,
    warnings: Vec<String>,
}

/// Where the records of a shard go.
struct LogSink<'a> {
    log: &'a Log,
    source: Source,
    void: &'a AtomicU64,
}

impl Sink for LogSink<'_> {
    fn append(&mut self, record: &[u8]) -> Lsn {
        self.log.append(self.source, record).unwrap_or_else(|error| {
            // The state goes on as if it were recorded, so no later record may be: the log must not have a hole.
            if !cfg!(fusee_mutant = "refused_append_ignored") {
                self.log.fail(&error);
            }
            Lsn(VOID + self.void.fetch_add(1, Ordering::Relaxed))
        })
    }
}

/// LSNs from here on are never durable.
const VOID: u64 = 1 << 52;

impl Group {
    /// Opens a directory and takes every record back. On return everything that was read is durable.
    pub fn open(options: GroupOptions) -> Result<Group, GroupError> {
        let GroupOptions { storage, log: mut log_options, shards, mut workers, may_clamp_workers, .. } = options;
        let GroupOptions {
            clock, flush, is_memory, limits, relay, tasks, schedules, holds_schedules, checkpoints, ..
        } = options;
        let mut tasks = Tasks::new(tasks).map_err(GroupError::Tasks)?;
        if is_memory {
            log_options.reserve_bytes = 0;
        }
        if workers > WORKERS_MAX {
            return Err(GroupError::Shards(format!("a directory has at most {WORKERS_MAX} workers, not {workers}")));
        }
        if is_unfinished(&*storage) {
            return Err(GroupError::UnfinishedCopy);
        }
        let loading = RefCell::new(Loading::new(&*storage, &mut tasks, checkpoints.is_some()));
        let opening = Log::open_beside(
            Arc::clone(&storage),
            log_options,
            &mut |found| loading.borrow_mut().begin(found),
            &mut |lsn, source, bytes| loading.borrow_mut().record(lsn, source, bytes),
        );
        let Loading { mut machines, records, bytes, mut warnings, fault, store, .. } = loading.into_inner();
        if let Some(fault) = fault {
            return Err(fault);
        }
        let (log, opened) = opening?;
        if let Some(declared) = &schedules {
            tasks.declare(clock.now_ms(), declared, holds_schedules).map_err(GroupError::Schedule)?;
        }
        let mut count = machines.len() as u16;
        if machines.is_empty() {
            count = shards;
            if count == 0 || count > SHARDS_MAX {
                return Err(GroupError::Shards(format!("a directory has 1 to {SHARDS_MAX} shards, not {count}")));
            }
            tasks.set_shards(count);
            log.append(Source::Scheduler, &settings(count))?;
            log.flush()?;
            machines = (0..count).map(|id| Shard::new(ShardId(id), count)).collect();
        }
        if checkpoints.is_some() {
            machines.iter_mut().for_each(Shard::keep_ended_journals);
        }
        if may_clamp_workers {
            workers = workers.min(count);
        }
        if usize::from(workers) > machines.len() {
            return Err(GroupError::Shards(format!(
                "the directory has {count} shards, so that {workers} workers are too many: each needs one of its own; ask \
                 for at most {count} (the number of shards is set when a directory is made, with the option shards)"
            )));
        }
        for machine in &mut machines {
            machine.set_limits(limits);
        }
        let identity = Identity { store: opened.store_id, shards: count };
        let saved_bytes = opened.bytes - bytes;
        let keeper = checkpoints.map(|options| Arc::new(Keeper::new(storage, identity, options, saved_bytes, store)));
        warnings.extend(opened.warnings);
        let log = Arc::new(log);
        let is_real = matches!(clock, Clock::System);
        let places = usize::from(workers) + 1;
        tasks.set_places(places);
        let parts = Parts::new(count, workers);
        let group = Group {
            flusher: Arc::new(Flusher::new(Arc::clone(&log), flush, is_memory, is_real)),
            gauges: machines.iter().map(|_| Gauge::new(places)).collect(),
            opened: Opened {
                is_new: opened.created,
                is_clean: opened.clean,
                records,
                last: opened.last,
                torn_bytes: opened.torn_bytes,
                open_runs: machines.iter().map(Shard::open_count).sum(),
            },
            warnings,
            shards: machines.into_iter().map(|shard| Mutex::new(ShardCell::new(shard, places))).collect(),
            places: Arc::new(Places::new(places, Arc::clone(&parts.watchdog))),
            parts,
            log,
            clock,
            relay,
            tasks,
            keeper,
            copies: AtomicU64::new(0),
            store_id: opened.store_id,
            void: AtomicU64::new(0),
            ghosts: Ghosts::default(),
        };
        group.watch_progress();
        group.resume();
        group.flusher.stir();
        Ok(group)
    }

    /// Asks for the code of every open run, and sends again what was not acknowledged.
    fn resume(&self) {
        let count = self.shards.len();
        let applied: Vec<Vec<u64>> = (0..count)
            .map(|receiver| {
                let cell = self.shards[receiver].lock();
                (0..count).map(|sender| cell.shard.applied_from(ShardId(sender as u16))).collect()
            })
            .collect();
        for sender in 0..count {
            let id = ShardId(sender as u16);
            let from_scheduler = self.visit(id, |cell, _| {
                for (receiver, applied) in applied.iter().enumerate() {
                    cell.shard.acknowledge(ShardId(receiver as u16), applied[sender]);
                }
                cell.shard.acknowledge(ShardId::SCHEDULER, self.tasks.taken_from(id));
                cell.shard.applied_from(ShardId::SCHEDULER)
            });
            self.tasks.acknowledge(id, from_scheduler);
        }
        // Every shard is asked for its open runs before a message can start another one in it.
        for sender in 0..count {
            let is_clean = self.opened.is_clean || self.opened.is_new;
            self.visit(ShardId(sender as u16), |cell, work| cell.shard.restored(is_clean, work.effects));
        }
        self.with_tasks_sink(|tasks, work| tasks.recover(work, self.opened.is_clean || self.opened.is_new));
        self.deliver(self.tasks.unacknowledged().into());
        for sender in 0..count {
            self.resend(ShardId(sender as u16));
        }
    }

    /// Sends every message of a shard again that its receiver has not acknowledged: after an open, and when a relay knows
    /// that it has lost some. Those to other processes are sent again by themselves, see `resend`. Known ones change
    /// nothing.
    pub fn resend(&self, sender: ShardId) {
        self.with(sender, |cell, work| {
            let waiting: Vec<Effect> = cell.shard.unacknowledged().map(Effect::Post).collect();
            work.effects.extend(waiting);
        });
    }

    /// The same for messages of the scheduler.
    pub(super) fn resend_tasks(&self) {
        self.deliver(self.tasks.unacknowledged().into());
    }

    /// What opening found.
    #[must_use]
    pub fn opened(&self) -> Opened {
        self.opened
    }

    /// What somebody should know about the directory, though it hinders nothing.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Number of shards.
    #[must_use]
    pub fn shard_count(&self) -> u16 {
        self.shards.len() as u16
    }

    /// The shard of a workflow id.
    #[must_use]
    pub fn shard_of(&self, workflow_id: &str) -> ShardId {
        crate::record::shard_of(workflow_id, self.shard_count())
    }

    /// Runs of all shards that have not ended.
    #[must_use]
    pub fn open_runs(&self) -> usize {
        self.gauges.iter().map(|gauge| gauge.open_runs.load(Ordering::Relaxed)).sum()
    }

    /// The group's clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// What is durable.
    #[must_use]
    pub fn durable(&self) -> Lsn {
        self.log.durable()
    }

    /// The newest record of any shard.
    #[must_use]
    pub fn last(&self) -> Lsn {
        self.log.last()
    }

    /// Whether new commands are taken: refuses on a full disk and after poison, before anything is appended.
    pub fn admits(&self) -> Result<(), LogError> {
        self.log.admits()
    }

    /// The same for a command that may make space: also on a full disk, as long as it can be written.
    pub fn admits_urgent(&self, bytes: usize) -> Result<(), LogError> {
        self.log.admits_urgent(bytes)
    }

    /// What was just recorded may be written at the cost of the reserve.
    pub fn hurry(&self) {
        self.log.hurry();
    }

    /// State of the log.
    #[must_use]
    pub fn log_state(&self) -> LogState {
        self.log.state()
    }

    /// Where the log is written.
    #[must_use]
    pub fn flush_mode(&self) -> FlushMode {
        self.flusher.mode()
    }

    /// Flushes since the open, and the moving average of their time.
    #[must_use]
    pub fn flush_figures(&self) -> (u64, Duration) {
        self.flusher.figures()
    }

    /// The host goes on with its code after appending.
    pub fn appended(&self) {
        self.flusher.appended();
    }

    /// The host has nothing else to do. Returns what is durable.
    pub fn idle(&self) -> Lsn {
        self.flusher.idle()
    }

    /// Writes everything on this thread.
    pub fn flush(&self) {
        self.flusher.flush();
    }

    /// Does a piece of work on a shard, under its lock, and what follows from it after the lock is released.
    pub fn with<R>(&self, shard: ShardId, work: impl FnOnce(&mut ShardCell, &mut Work<'_>) -> R) -> R {
        let mut outgoing = VecDeque::new();
        let result = self.visit_into(shard, &mut outgoing, work);
        if !outgoing.is_empty() {
            self.deliver(outgoing);
        }
        result
    }

    /// Brings a run that has ended back to be looked at, as the one run of a shard of its own, whose code
    /// only `holder` may run. `None`: too many are.
    pub fn revive(&self, shard: Shard, holder: Right) -> Option<ShardId> {
        self.ghosts.add(shard, holder)
    }

    /// A revived run is looked at no more.
    pub fn lay(&self, shard: ShardId) {
        self.ghosts.remove(shard);
    }

    /// Whoever revived runs under a right is gone.
    pub fn lay_all(&self, holder: Right) {
        self.ghosts.remove_of(holder);
    }

    /// Whether it is the shard of a revived run.
    #[must_use]
    pub fn is_revived(&self, shard: ShardId) -> bool {
        Ghosts::has(shard)
    }

    /// Work whose messages have been sent before, or that has none.
    pub(super) fn visit<R>(&self, shard: ShardId, work: impl FnOnce(&mut ShardCell, &mut Work<'_>) -> R) -> R {
        let mut outgoing = VecDeque::new();
        self.visit_into(shard, &mut outgoing, work)
    }

    fn visit_into<R>(
        &self,
        shard: ShardId,
        outgoing: &mut VecDeque<Message>,
        work: impl FnOnce(&mut ShardCell, &mut Work<'_>) -> R,
    ) -> R {
        if Ghosts::has(shard) {
            return self.ghosts.with(shard, self.clock.now_ms(), work);
        }
        let index = usize::from(shard.0);
        let mut cell = self.shards[index].lock();
        let mut effects = std::mem::take(&mut cell.effects);
        let mut sink = LogSink { log: &self.log, source: Source::Shard(shard), void: &self.void };
        let mut context = Work { now_ms: self.clock.now_ms(), log: &mut sink, effects: &mut effects };
        let result = work(&mut cell, &mut context);
        let is_changed = !effects.is_empty() || !cell.events.is_empty();
        for effect in effects.drain(..) {
            self.route(&mut cell, effect, outgoing);
        }
        cell.effects = effects;
        let news = self.gauges[index].read(&cell, is_changed, &self.places);
        let holder = cell.holder.place;
        drop(cell);
        if self.is_shared() {
            if news.for_askers {
                self.wake_for_answers(index);
            }
            if is_changed || (news.for_holder && self.gauges[index].wanted.load(Ordering::SeqCst) <= self.durable().0) {
                self.places.wake(holder);
            }
        }
        result
    }

    /// What is durable already comes with no flush that would wake those who asked.
    fn wake_for_answers(&self, shard: usize) {
        let durable = self.durable().0;
        for (index, first) in self.gauges[shard].answers.iter().enumerate() {
            if first.load(Ordering::SeqCst) <= durable {
                self.places.wake(Place(index as u8));
            }
        }
    }

    fn route(&self, cell: &mut ShardCell, effect: Effect, outgoing: &mut VecDeque<Message>) {
        match effect {
            Effect::Load(run) => cell.to_load.push_back(run),
            Effect::Wake(run) => cell.wake(run),
            Effect::Attempt { run, seq, gate } => cell.held.hold(gate, Output::Attempt(run, seq, gate)),
            Effect::Overdue { run, seq, lease, is_timeout } => {
                cell.events.push_back(HostEvent::Overdue(run, seq, lease, is_timeout));
            }
            Effect::Ended { run, was_loaded } => {
                if was_loaded {
                    cell.events.push_back(HostEvent::Dropped(run));
                }
                cell.run_ended(run);
            }
            Effect::Dropped(run) => cell.events.push_back(HostEvent::Dropped(run)),
            Effect::JournalHalf(run) => {
                cell.held.hold(cell.shard.view(run).last, Output::JournalHalf(run));
            }
            Effect::UpdateAnswered { run, number } => cell.update_answered(run, number),
            Effect::Admitted { run, refusal } => cell.run_admitted(run, refusal.as_deref()),
            Effect::Stuck(run) => {
                cell.lose_updates(run);
                let last = cell.shard.last();
                for listener in cell.listeners.clone() {
                    cell.held.hold_for(listener, last, Output::Stuck(run));
                }
            }
            Effect::Post(message) => {
                if self.is_remote(message.to) {
                    cell.resends.waits(message.to, self.clock.now_ms());
                    cell.held.hold(message.lsn, Output::Remote(message));
                } else if !cfg!(fusee_mutant = "outbox_entry_dropped") {
                    outgoing.push_back(message);
                }
            }
        }
    }

    /// Applies messages to their shards, one lock at a time, and those that follow from them. They share the log with
    /// their senders' records and come after them in it, so none of them waits for the disk: law 3.
    fn deliver(&self, mut messages: VecDeque<Message>) {
        while let Some(message) = messages.pop_front() {
            self.receive_into(&message, &mut messages);
        }
    }

    /// Takes a message from a shard of another process. The relay is told once it is applied and durable.
    pub fn receive(&self, message: &Message) {
        let mut outgoing = VecDeque::new();
        self.receive_into(message, &mut outgoing);
        self.deliver(outgoing);
    }

    fn receive_into(&self, message: &Message, outgoing: &mut VecDeque<Message>) {
        if message.to == ShardId::SCHEDULER {
            return self.receive_task(message, outgoing);
        }
        let Some(_recalled) = self.recall_for(message) else { return };
        let missing = self.visit_into(message.to, outgoing, |cell, work| {
            if !cell.shard.handle_message(work, message) {
                return Some(cell.shard.applied_from(message.from) + 1);
            }
            let applied = Output::Applied { sender: message.from, number: message.number };
            cell.held.hold(cell.shard.last(), applied);
            None
        });
        let is_owed = self.keeper.as_ref().is_some_and(|keeper| keeper.owes_messages());
        if let Some(first) = missing.filter(|_| !is_owed && !self.is_remote(message.from)) {
            // Another thread took the one before it from the sender and has not come here yet: the sender knows them all.
            outgoing.extend(self.sent_from(message, first));
        }
    }

    /// The same for a message to the scheduler.
    fn receive_task(&self, message: &Message, outgoing: &mut VecDeque<Message>) {
        let receipt =
            self.visit_tasks(outgoing, |tasks, work| tasks.with(work, |cell, work| cell.receive(work, message)));
        if let Receipt::Missing(first) = receipt {
            outgoing.extend(self.sent_from(message, first));
        }
    }

    /// What the sender of a message has sent to its receiver, from a number on.
    fn sent_from(&self, message: &Message, first: u64) -> Vec<Message> {
        let is_missing = |waiting: &Message| waiting.to == message.to && waiting.number >= first;
        if message.from == ShardId::SCHEDULER {
            return self.tasks.unacknowledged().into_iter().filter(is_missing).collect();
        }
        self.visit(message.from, |cell, _| cell.shard.unacknowledged().filter(is_missing).collect())
    }

    fn is_remote(&self, shard: ShardId) -> bool {
        shard != ShardId::SCHEDULER && self.relay.as_ref().is_some_and(|relay| relay.is_remote(shard))
    }

    /// A shard of another process has a message of ours on disk.
    pub fn acknowledge(&self, sender: ShardId, receiver: ShardId, number: u64) {
        if sender == ShardId::SCHEDULER {
            return self.tasks.acknowledge(receiver, number);
        }
        let is_remote = self.is_remote(receiver);
        self.visit(sender, |cell, work| {
            if cell.shard.acknowledge(receiver, number) && is_remote {
                let is_empty = cell.shard.unacknowledged_to(receiver).next().is_none();
                cell.resends.acknowledged(receiver, number, is_empty, work.now_ms);
            }
        });
    }

    /// Sends messages of a shard again whose receipts have not come in time. What is not durable waits for that first.
    fn resend_due(cell: &mut ShardCell, now_ms: i64, durable: Lsn, remote: &mut Vec<Message>) {
        let due: Vec<ShardId> = cell.resends.due(now_ms).collect();
        for receiver in due {
            let waiting = cell.shard.unacknowledged_to(receiver).take_while(|message| message.lsn <= durable);
            remote.extend(waiting.take(RESEND_BATCH));
            let last = remote.last().filter(|message| message.to == receiver);
            let resent_to = last.map_or(0, |message| message.number);
            cell.resends.resent(receiver, resent_to, now_ms);
        }
    }

    /// Whether a shard has something for the host of its code: events, due timers, outputs whose records are durable.
    #[must_use]
    pub fn needs_tick(&self, shard: ShardId) -> bool {
        let gauge = &self.gauges[usize::from(shard.0)];
        gauge.is_dirty.load(Ordering::Acquire)
            || gauge.wanted.load(Ordering::Acquire) <= self.durable().0
            || match gauge.due_ms.load(Ordering::Acquire) {
                // Reading the clock costs more than all the rest.
                i64::MAX => false,
                due_ms => due_ms <= self.clock.now_ms(),
            }
    }

    /// Whether a shard has answers for a place that are durable.
    #[must_use]
    pub fn has_answers(&self, shard: ShardId, place: Place) -> bool {
        let answers = &self.gauges[usize::from(shard.0)].answers;
        answers.get(place.index()).is_some_and(|first| first.load(Ordering::Acquire) <= self.durable().0)
    }

    /// Hands over answers of a shard for a place, in order, at most `room` of them.
    pub fn collect(&self, shard: ShardId, place: Place, room: usize, mut each: impl FnMut(&mut ShardCell, Output)) {
        let durable = self.durable();
        self.visit(shard, |cell, _| {
            for _ in 0..room {
                let Some(output) = cell.held.release_for(place, durable) else { break };
                each(cell, output);
            }
        });
    }

    /// A shard has something for the host of its code that no effect tells of.
    pub fn stir(&self, shard: ShardId) {
        self.gauges[usize::from(shard.0)].stir();
        self.places.wake(self.holder(shard).place);
    }

    /// Lets what is due in a shard happen, whoever runs its code.
    pub(super) fn handle_due(&self, shard: ShardId) {
        self.with(shard, |cell, work| {
            if cell.shard.next_due_ms().is_some_and(|due_ms| due_ms <= work.now_ms) {
                cell.shard.handle_due(work);
            }
        });
    }

    /// Does what is due in a shard and releases what is durable, then hands the shard to `take`, which takes its events.
    pub fn tick(&self, shard: ShardId, take: impl FnOnce(&mut ShardCell, &mut Work<'_>)) {
        self.gauges[usize::from(shard.0)].is_dirty.store(false, Ordering::Release);
        let mut applied = Vec::new();
        let mut remote = Vec::new();
        let durable = self.durable();
        let mut has_rest = false;
        self.with(shard, |cell, work| {
            if cell.shard.next_due_ms().is_some_and(|due_ms| due_ms <= work.now_ms) {
                cell.shard.handle_due(work);
            }
            Self::resend_due(cell, work.now_ms, durable, &mut remote);
            while let Some(output) = cell.held.release(durable) {
                match output {
                    Output::Attempt(run, seq, gate) => cell.events.push_back(HostEvent::Attempt(run, seq, gate)),
                    Output::JournalHalf(run) => cell.events.push_back(HostEvent::JournalHalf(run)),
                    Output::Applied { sender, number } => applied.push((sender, number)),
                    Output::Remote(message) => remote.push(message),
                    Output::Ack(_)
                    | Output::Reply(..)
                    | Output::Refuse(..)
                    | Output::Result(..)
                    | Output::UpdateLost(..)
                    | Output::Notice(_)
                    | Output::Stuck(_) => unreachable!("answers and notices are held by place"),
                }
            }
            take(cell, work);
            has_rest = !cell.events.is_empty() || !cell.to_load.is_empty();
        });
        if has_rest {
            self.gauges[usize::from(shard.0)].is_dirty.store(true, Ordering::Release);
        }
        for (sender, number) in applied {
            match &self.relay {
                Some(relay) if self.is_remote(sender) => relay.acknowledge(sender, shard, number),
                Some(_) | None => self.acknowledge(sender, shard, number),
            }
        }
        if let Some(relay) = &self.relay {
            for message in &remote {
                relay.send(message);
            }
        }
    }

    /// The earliest time at which something falls due in a shard whose code is run under a right, in ms since 1970.
    #[must_use]
    pub fn next_due_ms(&self, right: Right) -> Option<i64> {
        let own = self.gauges.iter().filter(|gauge| gauge.holder.load(Ordering::Acquire) == right.pack());
        let of_shards = own.map(|gauge| gauge.due_ms.load(Ordering::Acquire)).filter(|due_ms| *due_ms != i64::MAX);
        // Everybody comes for tasks: whoever was to come may be blocked.
        of_shards.chain(self.tasks.due_ms()).min()
    }

    /// Does a piece of work on the scheduler, under its lock, and what follows from it.
    pub fn with_tasks<R>(&self, act: impl FnOnce(&mut TaskCell, &mut TaskWork<'_>) -> R) -> R {
        self.with_tasks_sink(|tasks, work| tasks.with(work, act))
    }

    /// The newest record of the scheduler of this life; 0: none.
    pub(super) fn tasks_last(&self) -> u64 {
        self.tasks.last()
    }

    /// The lowest LSN that something of the scheduler's for a place waits for; `u64::MAX`: none.
    pub(super) fn tasks_wanted(&self, place: Place) -> u64 {
        self.tasks.wanted_by(place)
    }

    /// Whether the scheduler has something for a place.
    #[must_use]
    pub fn tasks_need_tick(&self, place: Place) -> bool {
        self.tasks.needs_tick(place, self.durable(), || self.clock.now_ms())
    }

    /// Does what is due for tasks and releases what is durable for a place, then hands the scheduler to `take`, which
    /// takes its events.
    pub fn tick_tasks(&self, place: Place, take: impl FnOnce(&mut TaskCell)) {
        let receipts = self.with_tasks_sink(|tasks, work| tasks.tick(work, place, self.durable(), take));
        for (sender, number) in receipts {
            self.acknowledge(sender, ShardId::SCHEDULER, number);
        }
    }

    /// Work on the scheduler, and the delivery of the messages that follow from it.
    fn with_tasks_sink<R>(&self, act: impl FnOnce(&Tasks, TaskWork<'_>) -> R) -> R {
        let mut outgoing = VecDeque::new();
        let result = self.visit_tasks(&mut outgoing, act);
        self.deliver(outgoing);
        result
    }

    fn visit_tasks<R>(&self, outgoing: &mut VecDeque<Message>, act: impl FnOnce(&Tasks, TaskWork<'_>) -> R) -> R {
        let mut sink = LogSink { log: &self.log, source: Source::Scheduler, void: &self.void };
        let due_ms = self.tasks.due_ms();
        let result = act(&self.tasks, TaskWork { now_ms: self.clock.now_ms(), log: &mut sink, outgoing });
        if self.is_shared() {
            self.wake_for_tasks(due_ms != self.tasks.due_ms());
        }
        result
    }

    /// What the scheduler has for places that sleep wakes them, now or when it is durable.
    fn wake_for_tasks(&self, is_due_changed: bool) {
        for index in 0..self.places.len() {
            let place = Place(index as u8);
            let wanted = self.tasks.wanted_by(place);
            if wanted != u64::MAX {
                self.places.want(place, wanted);
            }
            // It may have become durable before it was wanted.
            if self.tasks.has_mail(place, self.durable()) || is_due_changed && place == Place::OPENER {
                self.places.wake(place);
            }
        }
    }

    /// Identity of the directory.
    #[must_use]
    pub fn store_id(&self) -> [u8; 16] {
        self.store_id
    }

    /// The lowest LSN that something held back waits for.
    #[must_use]
    pub fn wanted(&self) -> Option<Lsn> {
        let firsts = |gauge: &Gauge| {
            let answers = gauge.answers.iter().map(|first| first.load(Ordering::Acquire)).min();
            gauge.wanted.load(Ordering::Acquire).min(answers.unwrap_or(u64::MAX))
        };
        let wanted = self.gauges.iter().map(firsts).chain([self.tasks.wanted()]).min()?;
        (wanted != u64::MAX).then_some(Lsn(wanted))
    }

    /// Flushes, seals and lets go of the directory. Whoever still waits is not answered.
    pub fn close(&self) -> Result<(), LogError> {
        self.end_watch();
        self.end_checkpoints();
        let closed = self.log.close();
        self.flusher.join();
        closed
    }

    /// Lets go of the directory as a killed process would: nothing more is written.
    pub fn abandon(&self) {
        self.end_watch();
        self.abandon_checkpoints();
        self.log.abandon();
        self.flusher.join();
    }
}

impl Drop for Group {
    /// A group that nobody has closed must not keep the directory through the log's thread.
    fn drop(&mut self) {
        self.abandon();
    }
}
