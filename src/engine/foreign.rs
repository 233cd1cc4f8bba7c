//! The engine: opening, ticking, and what clients ask.

use super::config::{Config, Durability};
use super::error::{EngineError, ErrorCode};
use super::events::{EventKind, Events, fields};
use super::host::{Slot, Slots};
use crate::log::LogState;
use crate::machine::{
    Described, Explanation, Filter, RunIx, RunView, StartCommand, Stuck, Target, check_actor, check_text,
};
use crate::record::{IdConflict, IdReuse, Lsn, NewRun, Record, Seq, ShardId, Status, parse_run_id, run_id};
use crate::runtime::{Clock, Group, GroupOptions, HostEvent, Opened, Output, ShardCell, Token};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A record that ends a run has about so many bytes besides its reason.
const URGENT_BYTES: usize = 512;

/// Events handed out by one tick, about.
const EVENTS_MAX: usize = 4_096;

/// A start as a client asks for it.
#[derive(Clone, Copy, Debug)]
pub struct StartRequest<'a> {
    /// The caller's name for the workflow.
    pub id: &'a str,
    /// The definition's name.
    pub kind: &'a str,
    /// Version of the code.
    pub version: u32,
    /// Encoded input.
    pub input: &'a [u8],
    /// For an id that has been used.
    pub reuse: IdReuse,
    /// For an id that is in use.
    pub conflict: IdConflict,
    /// Longest life of the run.
    pub timeout_ms: Option<i64>,
    /// Who asks.
    pub actor: Option<&'a str>,
    /// Names a request for the result; the end of the run is reported to it.
    pub result_token: Option<Token>,
}

/// A workflow id, and one run of it if a certain one is meant.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The workflow id.
    pub id: &'a str,
    /// Text of a run id; empty: the latest.
    pub run_id: &'a str,
}

/// Wakes the host, once until it ticks again.
struct Waker {
    /// The host has nothing to do and waits to be woken.
    is_armed: AtomicBool,
    notify: Box<dyn Fn() + Send + Sync>,
}

/// The engine of one host thread, with all shards of its directory.
pub struct ForeignEngine {
    pub(super) group: Arc<Group>,
    pub(super) slots: Slots,
    config: Config,
    waker: Arc<Waker>,
    definitions: BTreeSet<String>,
    /// Open runs without a definition here, by type.
    unregistered: BTreeMap<String, usize>,
    key_roots: KeyRoots,
    /// The shard that the next tick visits first.
    first: usize,
    has_failed: bool,
    is_closed: bool,
    has_listeners: bool,
}

impl ForeignEngine {
    /// Opens a directory, takes back what was recorded, and asks for the code of open runs in the first ticks. `notify`
    /// may be called from any thread, once until the next tick. Durable on return: everything that was found.
    pub fn open(config: Config, notify: Box<dyn Fn() + Send + Sync>) -> Result<ForeignEngine, EngineError> {
        let waker = Arc::new(Waker { is_armed: AtomicBool::new(false), notify });
        let group = Self::open_group(&config, &waker)?;
        Ok(ForeignEngine {
            slots: Slots::new(group.shard_count()),
            group,
            definitions: config.definitions.iter().cloned().collect(),
            config,
            waker,
            unregistered: BTreeMap::new(),
            key_roots: KeyRoots::default(),
            first: 0,
            has_failed: false,
            is_closed: false,
            has_listeners: false,
        })
    }

    fn open_group(config: &Config, waker: &Arc<Waker>) -> Result<Arc<Group>, EngineError> {
        let flush = config.flush_mode().map_err(bad_input)?;
        let group = Group::open(GroupOptions {
            storage: config.storage()?,
            log: config.log,
            shards: config.shards,
            clock: config.clock.clone(),
            flush,
            is_memory: matches!(config.durability, Durability::Memory(_)),
            limits: config.limits().map_err(bad_input)?,
            relay: config.relay.clone(),
        })?;
        let weak = Arc::downgrade(waker);
        group.on_progress(Box::new(move || {
            if let Some(waker) = weak.upgrade()
                && waker.is_armed.swap(false, Ordering::AcqRel)
            {
                (waker.notify)();
            }
        }));
        Ok(Arc::new(group))
    }

    /// What opening found.
    #[must_use]
    pub fn opened(&self) -> Opened {
        self.group.opened()
    }

    /// Open runs without a definition here, by type. Complete after the first ticks.
    #[must_use]
    pub fn unregistered(&self) -> &BTreeMap<String, usize> {
        &self.unregistered
    }

    /// The group of shards under the engine.
    #[must_use]
    pub fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// Loses what was not durable, as a killed process would, and opens again. Slots and tokens are void. In memory only.
    pub fn crash(&mut self) -> Result<(), EngineError> {
        let Durability::Memory(memory) = &self.config.durability else {
            return Err(EngineError::new(ErrorCode::BadInput, "only an engine in memory can be crashed"));
        };
        let memory = memory.clone();
        self.group.abandon();
        memory.crash();
        self.reopen(Durability::Memory(memory), self.config.clock.clone())
    }

    /// Opens again elsewhere. The group must have been abandoned.
    pub(super) fn reopen(&mut self, durability: Durability, clock: Clock) -> Result<(), EngineError> {
        self.config.durability = durability;
        self.config.clock = clock;
        self.group = Self::open_group(&self.config, &self.waker)?;
        self.slots = Slots::new(self.group.shard_count());
        self.unregistered.clear();
        self.has_failed = false;
        self.listen(self.has_listeners);
        Ok(())
    }

    pub(super) fn durability(&self) -> &Durability {
        &self.config.durability
    }

    pub(super) fn log_options(&self) -> crate::log::LogOptions {
        crate::log::LogOptions { reserve_bytes: 0, ..self.config.log }
    }

    /// Flushes and lets go of the directory. Durable on return: everything that was appended.
    pub fn close(&mut self) -> Result<(), EngineError> {
        if self.is_closed {
            return Ok(());
        }
        self.is_closed = true;
        Ok(self.group.close()?)
    }

    /// Whether ends of runs and stuck runs are told as notices.
    pub fn listen(&mut self, has_listeners: bool) {
        self.has_listeners = has_listeners;
        for shard in self.shard_ids() {
            self.group.with(shard, |cell, _| cell.has_listeners = has_listeners);
        }
    }

    /// Moves a virtual clock.
    pub fn set_now_ms(&self, now_ms: i64) {
        self.config.clock.advance_to(now_ms);
    }

    /// Where the time comes from.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.config.clock
    }

    /// What is durable.
    #[must_use]
    pub fn durable(&self) -> Lsn {
        self.group.durable()
    }

    /// The host has nothing else to do but what a tick may have for it. If that is something, it is said at once; else
    /// what is staged is written, on this thread or on the log's, by flush mode. Answers with what is durable now, and
    /// whether the next tick has something. If more is waited for, `notify` will be called.
    pub fn idle(&mut self) -> (Lsn, bool) {
        if self.needs_tick() {
            return (self.group.durable(), true);
        }
        let durable = self.flush();
        (durable, self.needs_tick())
    }

    fn needs_tick(&self) -> bool {
        let has_failed = !self.has_failed && matches!(self.group.log_state(), LogState::Poisoned(_));
        has_failed || self.shard_ids().any(|shard| self.group.needs_tick(shard))
    }

    fn flush(&self) -> Lsn {
        let durable = self.group.idle();
        if durable >= self.group.last() || matches!(self.group.log_state(), LogState::Poisoned(_)) {
            return durable;
        }
        self.waker.is_armed.store(true, Ordering::Release);
        // What became durable before the waker was armed woke nobody.
        let now = self.group.durable();
        if now > durable {
            self.waker.is_armed.store(false, Ordering::Release);
        }
        now
    }

    /// Time until something falls due, in ms; `None`: nothing will. On a full disk the next try to write counts.
    #[must_use]
    pub fn next_due_ms(&self) -> Option<i64> {
        let due_ms = self.group.next_due_ms().map(|due_ms| due_ms.saturating_sub(self.config.clock.now_ms()).max(0));
        match self.group.log_state() {
            LogState::Full(_) => Some(due_ms.unwrap_or(i64::MAX).min(FULL_RETRY_MS)),
            LogState::Healthy | LogState::Poisoned(_) | LogState::Closed => due_ms,
        }
    }

    /// When something falls due next, in ms since 1970.
    #[must_use]
    pub fn next_due_at_ms(&self) -> Option<i64> {
        self.group.next_due_ms()
    }

    /// Does what is due, releases what is durable, and collects what the host has to do. `true`: there is more, tick
    /// again. A mass wake comes in batches; the shard that is visited first changes, so that none waits for ever.
    pub fn tick(&mut self, events: &mut Events) -> bool {
        self.waker.is_armed.store(false, Ordering::Release);
        self.check_health(events);
        let count = usize::from(self.group.shard_count());
        let mut has_more = false;
        // Messages between shards may make one dirty that was visited already.
        for _ in 0..4 {
            has_more = false;
            for offset in 0..count {
                let shard = ShardId(((self.first + offset) % count) as u16);
                if self.group.needs_tick(shard) {
                    has_more |= self.tick_shard(shard, events);
                }
            }
            if has_more || !self.needs_tick() {
                break;
            }
        }
        if has_more {
            self.first = (self.first + 1) % count;
        }
        has_more || self.needs_tick()
    }

    fn check_health(&mut self, events: &mut Events) {
        if let LogState::Poisoned(error) = self.group.log_state()
            && !self.has_failed
        {
            self.has_failed = true;
            let text = fields(&[ErrorCode::Storage.text(), &error.to_string()]);
            events.push(EventKind::Failed, 0, 0, text);
        }
    }

    fn tick_shard(&mut self, shard: ShardId, events: &mut Events) -> bool {
        let ForeignEngine { group, slots, definitions, unregistered, .. } = self;
        let mut has_more = false;
        group.tick(shard, |cell, _| {
            while events.len() < EVENTS_MAX {
                let Some(event) = cell.events.pop_front() else { break };
                translate(shard, cell, event, slots, events);
            }
            while events.len() < EVENTS_MAX {
                let Some(run) = cell.to_load.pop_front() else { break };
                load(shard, cell, run, slots, definitions, unregistered, events);
            }
            has_more = !cell.events.is_empty() || !cell.to_load.is_empty();
        });
        has_more
    }

    /// Starts a workflow. `token` gets the run id, and whether it was there before, once that is durable. What the id
    /// policies refuse is refused by an event, like everything that rests on what is recorded: law 1.
    pub fn start(&mut self, token: Token, request: StartRequest<'_>) -> Result<(), EngineError> {
        self.admits(request.id)?;
        check_text("the type of a workflow", request.kind).map_err(bad_input)?;
        check_actor(request.actor).map_err(bad_input)?;
        self.check_payload("the input", request.input)?;
        let open: usize = self.open_runs();
        if open >= self.config.open_runs_max {
            return Err(EngineError::new(
                ErrorCode::Busy,
                format!("{open} runs are open, the limit is {}; wait for some to end", self.config.open_runs_max),
            ));
        }
        let key_root = self.key_roots.next()?;
        let shard = self.group.shard_of(request.id);
        self.group.with(shard, |cell, work| {
            let new = NewRun {
                id: request.id,
                kind: request.kind,
                version: request.version,
                key_root,
                deadline_ms: request.timeout_ms.map(|timeout_ms| work.now_ms.saturating_add(timeout_ms)),
                parent: None,
                input: request.input,
                actor: request.actor,
            };
            let command = StartCommand { new, reuse: request.reuse, conflict: request.conflict };
            let started = match cell.shard.start(work, command) {
                Ok(started) => started,
                Err(refusal) => {
                    refuse(cell, token, &refusal);
                    request.result_token.into_iter().for_each(|token| refuse(cell, token, &refusal));
                    return;
                }
            };
            let no = cell.shard.view(started.run).no;
            let reply = fields(&[&run_id(shard, no), if started.is_existing { "1" } else { "0" }]);
            cell.held.hold(cell.shard.last(), Output::Reply(token, reply));
            if let Some(token) = request.result_token {
                cell.await_end(started.run, token);
            }
        });
        Ok(())
    }

    fn open_runs(&self) -> usize {
        self.group.open_runs()
    }

    /// Sends a signal; `token` is acknowledged once it is durable.
    pub fn signal(
        &mut self,
        token: Token,
        run: Run<'_>,
        name: &str,
        payload: &[u8],
        dedupe: Option<&str>,
        actor: Option<&str>,
    ) -> Result<(), EngineError> {
        self.config.limits().and_then(|limits| limits.check_signal(name, payload, dedupe, actor)).map_err(bad_input)?;
        self.command(token, run, |cell, work, target| cell.shard.signal(work, target, name, payload, dedupe, actor))
    }

    /// Asks a run to end; `token` is acknowledged once that is durable. No-op for a run that has ended.
    pub fn cancel(&mut self, token: Token, run: Run<'_>, reason: &str, actor: Option<&str>) -> Result<(), EngineError> {
        check_actor(actor).map_err(bad_input)?;
        self.check_payload("the reason", reason.as_bytes())?;
        self.urgent(token, run, reason, |cell, work, target| cell.shard.cancel(work, target, reason, actor))
    }

    /// Ends a run at once; `token` is acknowledged once that is durable. No-op for a run that has ended.
    pub fn terminate(
        &mut self,
        token: Token,
        run: Run<'_>,
        reason: &str,
        actor: Option<&str>,
    ) -> Result<(), EngineError> {
        check_actor(actor).map_err(bad_input)?;
        self.check_payload("the reason", reason.as_bytes())?;
        self.urgent(token, run, reason, |cell, work, target| {
            cell.shard.terminate(work, target, reason.as_bytes(), actor)
        })
    }

    /// Ends a pause, or tries a stuck run again; `token` is acknowledged once that is durable.
    pub fn resume(&mut self, token: Token, run: Run<'_>, actor: Option<&str>) -> Result<(), EngineError> {
        check_actor(actor).map_err(bad_input)?;
        self.command(token, run, |cell, work, target| cell.shard.resume(work, target, actor))
    }

    fn command(
        &mut self,
        token: Token,
        run: Run<'_>,
        work: impl FnOnce(&mut ShardCell, &mut crate::machine::Work<'_>, Target<'_>) -> Result<(), crate::machine::Refusal>,
    ) -> Result<(), EngineError> {
        self.admits(run.id)?;
        self.commanded(token, run, work)
    }

    /// A command that ends something: on a full disk it may use the reserve.
    fn urgent(
        &mut self,
        token: Token,
        run: Run<'_>,
        reason: &str,
        work: impl FnOnce(&mut ShardCell, &mut crate::machine::Work<'_>, Target<'_>) -> Result<(), crate::machine::Refusal>,
    ) -> Result<(), EngineError> {
        self.check_id(run.id)?;
        self.group.admits_urgent(reason.len() + URGENT_BYTES)?;
        self.commanded(token, run, work)?;
        self.group.hurry();
        Ok(())
    }

    fn commanded(
        &mut self,
        token: Token,
        run: Run<'_>,
        work: impl FnOnce(&mut ShardCell, &mut crate::machine::Work<'_>, Target<'_>) -> Result<(), crate::machine::Refusal>,
    ) -> Result<(), EngineError> {
        let (shard, no) = self.target(run)?;
        self.group.with(shard, |cell, context| match work(cell, context, Target { id: run.id, run: no }) {
            Ok(()) => cell.held.hold(cell.shard.last(), Output::Ack(token)),
            Err(refusal) => refuse(cell, token, &refusal),
        });
        Ok(())
    }

    /// `token` gets the status and the payload once the run has ended and that is durable.
    pub fn result(&mut self, token: Token, run: Run<'_>) -> Result<(), EngineError> {
        self.read(token, run, |cell, index| cell.await_end(index, token))
    }

    /// The answer to `token` is not wanted any more.
    pub fn forget(&mut self, token: Token) {
        for shard in self.shard_ids() {
            self.group.with(shard, |cell, _| cell.forget(token));
        }
    }

    /// `token` gets the run's row once everything that it rests on is durable.
    pub fn describe(&mut self, token: Token, run: Run<'_>) -> Result<(), EngineError> {
        let (shard, _) = self.target(run)?;
        self.read(token, run, |cell, index| {
            let row = row(shard, &cell.shard.view(index));
            cell.held.hold(cell.shard.last(), Output::Reply(token, row));
        })
    }

    /// `token` gets rows of the run's records, from the `from`-th on, at most `limit` of them.
    pub fn history(&mut self, token: Token, run: Run<'_>, from: usize, limit: usize) -> Result<(), EngineError> {
        self.read(token, run, |cell, index| {
            let rows: Vec<String> = cell
                .shard
                .history(index)
                .skip(from)
                .take(limit)
                .map(|entry| history_row(entry.lsn, &entry.record))
                .collect();
            cell.held.hold(cell.shard.last(), Output::Reply(token, rows.join(&super::events::ROW.to_string())));
        })
    }

    /// `token` gets why the run is not running.
    pub fn explain(&mut self, token: Token, run: Run<'_>) -> Result<(), EngineError> {
        let definitions = self.definitions.clone();
        self.read(token, run, |cell, index| {
            let kind = cell.shard.view(index).kind.to_owned();
            let text = explanation(&cell.shard.explain(index), definitions.contains(&kind));
            cell.held.hold(cell.shard.last(), Output::Reply(token, text));
        })
    }

    /// `token` gets rows of the runs that the filter admits, by start, at most `limit`, then a row with the cursor of
    /// the next page (empty: there is none). Durable is everything that the rows rest on.
    pub fn list(
        &mut self,
        token: Token,
        filter: &Filter,
        is_newest_first: bool,
        cursor: &str,
        limit: usize,
    ) -> Result<(), EngineError> {
        self.check_open()?;
        let cursor = parse_cursor(cursor)?;
        let mut rows: Vec<((i64, u16, u64), String)> = Vec::new();
        for shard in self.shard_ids() {
            self.group.with(shard, |cell, _| {
                let views = cell.shard.views().map(|(_, view)| view);
                let page = views.filter(|view| filter.admits(view)).filter_map(|view| {
                    let key = (view.created_ms, shard.0, view.no.0);
                    let is_after =
                        cursor.is_none_or(|cursor| if is_newest_first { key < cursor } else { key > cursor });
                    is_after.then(|| (key, row(shard, &view)))
                });
                rows.extend(page);
            });
        }
        rows.sort_by(|a, b| if is_newest_first { b.0.cmp(&a.0) } else { a.0.cmp(&b.0) });
        let is_last_page = rows.len() <= limit;
        rows.truncate(limit);
        let next = match rows.last() {
            Some(((created_ms, shard, no), _)) if !is_last_page => format!("{created_ms}.{shard}.{no}"),
            _ => String::new(),
        };
        let mut text: Vec<String> = rows.into_iter().map(|(_, row)| row).collect();
        text.push(next);
        self.reply_when_durable(token, text.join(&super::events::ROW.to_string()));
        Ok(())
    }

    /// `token` gets the number of runs that the filter admits.
    pub fn count(&mut self, token: Token, filter: &Filter) -> Result<(), EngineError> {
        self.check_open()?;
        let count: usize = self
            .shard_ids()
            .map(|shard| {
                self.group.with(shard, |cell, _| cell.shard.views().filter(|(_, view)| filter.admits(view)).count())
            })
            .sum();
        self.reply_when_durable(token, count.to_string());
        Ok(())
    }

    /// A read over all shards rests on the newest record of any.
    fn reply_when_durable(&self, token: Token, text: String) {
        let last = self.group.last();
        self.group.with(ShardId(0), |cell, _| cell.held.hold(last, Output::Reply(token, text)));
    }

    /// The slot of a run whose code is here, for a query; `Err` says why there is none.
    pub fn query_slot(&self, run: Run<'_>) -> Result<Slot, EngineError> {
        let (shard, _) = self.target(run)?;
        let (index, view) = self.group.with(shard, |cell, _| {
            let index = cell.shard.find(Target { id: run.id, run: parse_run_id(run.run_id).map(|(_, no)| no) })?;
            let view = cell.shard.view(index);
            Ok::<_, crate::machine::Refusal>((index, (view.status, view.kind.to_owned())))
        })?;
        match view {
            (Some(_), _) => Err(EngineError::new(
                ErrorCode::NotFound,
                format!("workflow \"{}\" has ended and answers no queries", run.id),
            )),
            (None, kind) => self.slots.slot(shard, index).ok_or_else(|| {
                EngineError::new(
                    ErrorCode::Unregistered,
                    format!("workflow \"{}\" of type \"{kind}\" has no code here to answer a query", run.id),
                )
            }),
        }
    }

    /// `token` is acknowledged once everything that the slot's shard has recorded so far is durable.
    pub fn ack_at(&mut self, slot: Slot, token: Token) -> Result<(), EngineError> {
        let (shard, _) = self.slots.place(slot).ok_or_else(|| {
            EngineError::new(ErrorCode::NotFound, "the run ended while it was asked; ask again for its result")
        })?;
        self.group.with(shard, |cell, _| cell.held.hold(cell.shard.last(), Output::Ack(token)));
        Ok(())
    }

    /// Counters and gauges by name, for the engine and for each shard.
    #[must_use]
    pub fn metrics(&self) -> Vec<(String, u64)> {
        let (flushes, average) = self.group.flush_figures();
        let mut figures = vec![
            ("log.durable_lsn".to_owned(), self.group.durable().0),
            ("log.last_lsn".to_owned(), self.group.last().0),
            ("log.flushes".to_owned(), flushes),
            ("log.flush_average_us".to_owned(), average.as_micros() as u64),
        ];
        for shard in self.shard_ids() {
            let (metrics, open, unacknowledged) = self.group.with(shard, |cell, _| {
                (cell.shard.metrics(), cell.shard.open_count(), cell.shard.unacknowledged_count())
            });
            for (name, value) in [
                ("open_runs", open as u64),
                ("unacknowledged_messages", unacknowledged as u64),
                ("records", metrics.records),
                ("runs_started", metrics.runs_started),
                ("runs_completed", metrics.runs_completed),
                ("runs_ended_otherwise", metrics.runs_ended_otherwise),
                ("steps_done", metrics.steps_done),
                ("attempts_failed", metrics.attempts_failed),
                ("signals", metrics.signals),
                ("timers_fired", metrics.timers_fired),
                ("messages_sent", metrics.messages_sent),
                ("deliveries", metrics.deliveries),
            ] {
                figures.push((format!("shard.{}.{name}", shard.0), value));
            }
        }
        figures
    }

    /// `ok`, `degraded` or `failed`, and what is wrong.
    #[must_use]
    pub fn health(&self) -> (&'static str, Vec<String>) {
        match self.group.log_state() {
            LogState::Healthy => ("ok", Vec::new()),
            LogState::Full(error) => ("degraded", vec![error.to_string()]),
            LogState::Poisoned(error) => ("failed", vec![error.to_string()]),
            LogState::Closed => ("failed", vec!["the engine is closed".into()]),
        }
    }

    /// Law 8: runs whose code is here and that nothing will ever wake, by id, with the operation that has no reason.
    #[must_use]
    pub fn orphans(&self) -> Vec<(String, Seq)> {
        let mut orphans = Vec::new();
        for shard in self.shard_ids() {
            self.group.with(shard, |cell, _| {
                for (run, seq) in cell.shard.orphans() {
                    orphans.push((cell.shard.view(run).id.to_owned(), seq));
                }
            });
        }
        orphans
    }

    fn read(
        &mut self,
        token: Token,
        run: Run<'_>,
        work: impl FnOnce(&mut ShardCell, RunIx),
    ) -> Result<(), EngineError> {
        self.check_open()?;
        if let LogState::Poisoned(error) = self.group.log_state() {
            return Err(EngineError::new(ErrorCode::Storage, error.to_string()));
        }
        let (shard, no) = self.target(run)?;
        self.group.with(shard, |cell, _| match cell.shard.find(Target { id: run.id, run: no }) {
            Ok(index) => work(cell, index),
            Err(refusal) => refuse(cell, token, &refusal),
        });
        Ok(())
    }

    fn target(&self, run: Run<'_>) -> Result<(ShardId, Option<crate::record::RunNo>), EngineError> {
        self.check_open()?;
        let shard = self.group.shard_of(run.id);
        if run.run_id.is_empty() {
            return Ok((shard, None));
        }
        match parse_run_id(run.run_id) {
            Some((found, no)) if found == shard => Ok((shard, Some(no))),
            Some(_) | None => Err(EngineError::new(
                ErrorCode::NotFound,
                format!("there is no run \"{}\" of workflow \"{}\"", run.run_id, run.id),
            )),
        }
    }

    fn admits(&self, id: &str) -> Result<(), EngineError> {
        self.check_id(id)?;
        Ok(self.group.admits()?)
    }

    fn check_id(&self, id: &str) -> Result<(), EngineError> {
        self.check_open()?;
        check_text("an id", id).map_err(bad_input)?;
        if id.chars().any(char::is_control) {
            return Err(bad_input("an id is text without control characters".into()));
        }
        Ok(())
    }

    fn check_open(&self) -> Result<(), EngineError> {
        if self.is_closed {
            return Err(EngineError::new(ErrorCode::Closed, "the engine is closed"));
        }
        Ok(())
    }

    fn check_payload(&self, what: &str, payload: &[u8]) -> Result<(), EngineError> {
        self.config.limits().and_then(|limits| limits.check_payload(what, payload)).map_err(bad_input)
    }

    fn shard_ids(&self) -> impl Iterator<Item = ShardId> + use<> {
        (0..self.group.shard_count()).map(ShardId)
    }
}

/// How long a full disk is left alone before the next try to write.
const FULL_RETRY_MS: i64 = 200;

fn bad_input(text: String) -> EngineError {
    EngineError::new(ErrorCode::BadInput, text)
}

/// A refusal rests on what is recorded, or on what is not: it is told once that is durable.
fn refuse(cell: &mut ShardCell, token: Token, refusal: &crate::machine::Refusal) {
    let error = EngineError::from(refusal.clone());
    cell.held.hold(cell.shard.last(), Output::Refuse(token, fields(&[error.code.text(), &error.message])));
}

fn translate(shard: ShardId, cell: &mut ShardCell, event: HostEvent, slots: &mut Slots, events: &mut Events) {
    match event {
        HostEvent::Wake(run) => {
            if let Some(slot) = slots.slot(shard, run) {
                events.push(EventKind::Wake, slot.0, 0, String::new());
            }
        }
        HostEvent::Attempt(run, seq, gate) => {
            if let (Some(slot), Some(attempt)) = (slots.slot(shard, run), cell.shard.attempt(run, seq, gate)) {
                let flags = if attempt.is_interrupted { "1" } else { "0" };
                let (number, lease) = (attempt.number.to_string(), attempt.lease.to_string());
                let last_heartbeat = String::from_utf8_lossy(&attempt.last_heartbeat);
                let text = fields(&[&number, flags, &lease, &last_heartbeat]);
                events.push(EventKind::Attempt, slot.0, seq.0, text);
            }
        }
        HostEvent::Overdue(run, seq, lease, is_timeout) => {
            if let Some(slot) = slots.slot(shard, run) {
                let what = if is_timeout { "t" } else { "h" };
                events.push(EventKind::Timeout, slot.0, seq.0, fields(&[&lease.to_string(), what]));
            }
        }
        HostEvent::Dropped(run) => {
            if let Some(slot) = slots.slot(shard, run) {
                let status = cell.shard.view(run).status.map_or(0, Status::code);
                slots.free(slot);
                events.push(EventKind::Ended, slot.0, u32::from(status), String::new());
            }
        }
        HostEvent::Stuck(run) => {
            if cell.has_listeners {
                let view = cell.shard.view(run);
                let why = cell.shard.stuck(run).map(stuck_report).unwrap_or_default();
                let text = fields(&[view.id, &run_id(shard, view.no), view.kind, "0", &why]);
                events.push(EventKind::Notice, slots.slot(shard, run).map_or(0, |slot| slot.0), 3, text);
            }
        }
        HostEvent::JournalHalf(run) => {
            let view = cell.shard.view(run);
            let message = journal_half(cell, run);
            events.push(EventKind::Notice, 0, 4, fields(&[view.id, &run_id(shard, view.no), view.kind, "0", &message]));
        }
        HostEvent::Ack(token) => events.push(EventKind::Ack, token, 0, String::new()),
        HostEvent::Reply(token, text) => events.push(EventKind::Reply, token, 0, text),
        HostEvent::Refuse(token, text) => events.push(EventKind::Refuse, token, 0, text),
        HostEvent::Result(token, status, payload) => {
            let text = String::from_utf8_lossy(&payload).into_owned();
            events.push(EventKind::Result, token, u32::from(status.code()), text);
        }
        HostEvent::Ended(run) => {
            let view = cell.shard.view(run);
            let code = view.status.map_or(0, Status::code);
            let payload = String::from_utf8_lossy(view.payload);
            let text = fields(&[view.id, &run_id(shard, view.no), view.kind, &code.to_string(), &payload]);
            events.push(EventKind::Notice, 0, if view.status == Some(Status::Completed) { 1 } else { 2 }, text);
        }
    }
}

fn journal_half(cell: &ShardCell, run: RunIx) -> String {
    let (size, limits) = (cell.shard.journal_size(run), cell.shard.limits());
    format!(
        "the journal of workflow \"{}\" has {} records and {} bytes; at {} records (journalRecordsMax) or {} bytes \
         (journalBytesMax) it fails: divide the work among child workflows",
        cell.shard.view(run).id,
        size.records,
        size.bytes,
        limits.journal_records_max,
        limits.journal_bytes_max
    )
}

fn load(
    shard: ShardId,
    cell: &mut ShardCell,
    run: RunIx,
    slots: &mut Slots,
    definitions: &BTreeSet<String>,
    unregistered: &mut BTreeMap<String, usize>,
    events: &mut Events,
) {
    let view = cell.shard.view(run);
    if view.status.is_some() {
        return;
    }
    if !definitions.contains(view.kind) {
        *unregistered.entry(view.kind.to_owned()).or_default() += 1;
        return;
    }
    let Some(is_replay) = cell.shard.load(run) else { return };
    let slot = slots.take(shard, run);
    let view = cell.shard.view(run);
    let input = String::from_utf8_lossy(cell.shard.input(run));
    let text = fields(&[view.id, &hex(&view.key_root), view.kind, &input]);
    events.push(EventKind::Start, slot.0, u32::from(is_replay), text);
}

/// What a run is, apart from its input: its id, run id, type, version, key root, start, and its parent's run id.
pub(super) fn identity(shard: ShardId, view: &RunView<'_>) -> String {
    fields(&[
        view.id,
        &run_id(shard, view.no),
        view.kind,
        &view.version.to_string(),
        &hex(&view.key_root),
        &view.created_ms.to_string(),
        &view.parent.map(|caller| run_id(caller.shard, caller.run)).unwrap_or_default(),
    ])
}

fn row(shard: ShardId, view: &RunView<'_>) -> String {
    let marks = u8::from(view.marks.is_paused) + 2 * u8::from(view.marks.is_stuck);
    fields(&[
        view.id,
        &run_id(shard, view.no),
        view.kind,
        &view.version.to_string(),
        &view.status.map_or(0, Status::code).to_string(),
        &marks.to_string(),
        &view.created_ms.to_string(),
        &view.created_ms.to_string(),
        &view.ended_ms.map(|ended_ms| ended_ms.to_string()).unwrap_or_default(),
        "",
        &view.parent.map(|caller| run_id(caller.shard, caller.run)).unwrap_or_default(),
    ])
}

fn history_row(lsn: Lsn, record: &Record<'_>) -> String {
    let (time_ms, seq, name, attempt, payload): (Option<i64>, Option<Seq>, &str, Option<u32>, &[u8]) = match *record {
        Record::Start { time_ms, new, .. } => (Some(time_ms), None, new.kind, None, new.input),
        Record::StepDone { seq, name, attempt, time_ms, payload, .. } => {
            (Some(time_ms), Some(seq), name, Some(attempt), payload)
        }
        Record::StepFailed { seq, name, attempt, time_ms, failure, .. } => {
            (Some(time_ms), Some(seq), name, Some(attempt), failure)
        }
        Record::StepStarted { seq, name, attempt, time_ms, .. } => (Some(time_ms), Some(seq), name, Some(attempt), b""),
        Record::Heartbeat { seq, attempt, time_ms, details, .. } => {
            (Some(time_ms), Some(seq), "", Some(attempt), details)
        }
        Record::TimerSet { seq, due_ms, .. } => (Some(due_ms), Some(seq), "", None, b""),
        Record::TimerFired { seq, time_ms, .. } => (Some(time_ms), Some(seq), "", None, b""),
        Record::WaitSet { seq, name, due_ms, .. } => (due_ms, Some(seq), name, None, b""),
        Record::ConditionSet { seq, due_ms, .. } => (due_ms, Some(seq), "", None, b""),
        Record::Signal { time_ms, name, payload, .. } => (Some(time_ms), None, name, None, payload),
        Record::ChildSet { seq, child, .. } => (None, Some(seq), child.id, None, child.input),
        Record::SendSet { seq, id, .. } => (None, Some(seq), id, None, b""),
        Record::ChildDone { seq, time_ms, payload, .. } => (Some(time_ms), Some(seq), "", None, payload),
        Record::Cancel { time_ms, reason, .. } => (Some(time_ms), None, "", None, reason.as_bytes()),
        Record::Resumed { time_ms, .. } => (Some(time_ms), None, "", None, b""),
        Record::Done { time_ms, payload, .. } => (Some(time_ms), None, "", None, payload),
        Record::Watched { .. } | Record::Answered { .. } | Record::Received { .. } => (None, None, "", None, b""),
    };
    let number = |value: Option<i64>| value.map(|value| value.to_string()).unwrap_or_default();
    fields(&[
        &lsn.to_string(),
        &number(time_ms),
        record.label(),
        &number(seq.map(|seq| i64::from(seq.0))),
        name,
        &number(attempt.map(i64::from)),
        &String::from_utf8_lossy(payload),
    ])
}

/// Message, operation number, kind and name of what was recorded and of what was asked for, place.
fn stuck_report(stuck: &Stuck) -> String {
    let parts = |operation: &Option<Described>| match operation {
        Some(Described { kind, name }) => fields(&[kind, name]),
        None => fields(&["", ""]),
    };
    let (recorded, asked) = (parts(&stuck.recorded), parts(&stuck.asked));
    fields(&[&stuck.message, &stuck.seq.0.to_string(), &recorded, &asked, &stuck.place])
}

fn explanation(explanation: &Explanation, has_definition: bool) -> String {
    match explanation {
        Explanation::Ended(status) => fields(&["ended", &status.code().to_string()]),
        Explanation::Stuck(stuck) => fields(&["stuck", &stuck_report(stuck)]),
        Explanation::Absent if !has_definition => "notRegistered".into(),
        Explanation::Absent | Explanation::Running => "running".into(),
        Explanation::Step(name) => fields(&["step", name]),
        Explanation::Timer(until_ms) => fields(&["timer", &until_ms.to_string()]),
        Explanation::Retry(name, until_ms) => fields(&["retry", &until_ms.to_string(), name]),
        Explanation::Paused(name) => fields(&["paused", name]),
        Explanation::Waiting(what) => fields(&["waiting", what]),
        Explanation::Outside => "outside".into(),
    }
}

fn parse_cursor(cursor: &str) -> Result<Option<(i64, u16, u64)>, EngineError> {
    if cursor.is_empty() {
        return Ok(None);
    }
    let mut parts = cursor.split('.');
    let parsed = (|| Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?)))();
    match (parsed, parts.next()) {
        (Some(key), None) => Ok(Some(key)),
        _ => Err(EngineError::new(ErrorCode::BadInput, format!("\"{cursor}\" is no cursor of a list"))),
    }
}

/// Key roots, drawn many at a time: asking the system for one would cost more than the rest of a start.
#[derive(Default)]
struct KeyRoots {
    drawn: Vec<[u8; 16]>,
}

impl KeyRoots {
    fn next(&mut self) -> Result<[u8; 16], EngineError> {
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

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}
