//! The engine: opening, its life, and what all verbs ask first.

use super::config::{Config, Durability};
use super::error::{EngineError, ErrorCode, bad_input};
use super::host::Slots;
use super::keys::KeyRoots;
use crate::log::LogState;
use crate::machine::Work;
use crate::record::{Lsn, RunNo, ShardId, parse_run_id};
use crate::runtime::{Clock, Group, GroupOptions, Opened, Place, Recalled, Right, ShardCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A workflow id, and one run of it if a certain one is meant.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The workflow id.
    pub id: &'a str,
    /// Text of a run id; empty: the latest.
    pub run_id: &'a str,
}

/// Called from any thread, once until the host ticks again.
pub(super) type Notify = Arc<dyn Fn() + Send + Sync>;

/// The engine of one host thread: with all shards of its directory, with those of one part of a group, or with none as
/// the client of one.
pub struct ForeignEngine {
    pub(super) group: Arc<Group>,
    /// Its place in the group, in its present life.
    pub(super) right: Right,
    pub(super) slots: Slots,
    pub(super) config: Config,
    notify: Notify,
    pub(super) definitions: BTreeSet<String>,
    /// Open runs without a definition here, by type.
    pub(super) unregistered: BTreeMap<String, usize>,
    pub(super) key_roots: KeyRoots,
    /// What keys of tasks come from: the identity of the directory, kept over a crash and a rewind.
    pub(super) store_id: [u8; 16],
    /// The shard that the next tick visits first.
    pub(super) first: usize,
    pub(super) has_failed: bool,
    /// The rights that its slots were looked through for.
    pub(super) rights_version: u64,
    /// By shard: its handovers when its code was asked for here.
    pub(super) handovers: Vec<u32>,
    is_closed: bool,
    has_listeners: bool,
}

impl ForeignEngine {
    /// Opens a directory, takes back what was recorded, and asks for the code of open runs in the first ticks; in those of
    /// the parts, if the configuration has workers. `notify` may be called from any thread, once until the next tick.
    /// Durable on return: everything that was found.
    pub fn open(config: Config, notify: Box<dyn Fn() + Send + Sync>) -> Result<ForeignEngine, EngineError> {
        let group = Self::open_group(&config)?;
        let notify: Notify = notify.into();
        let right = group.enter_opener(Arc::clone(&notify));
        Ok(Self::over(group, right, config, notify))
    }

    pub(super) fn over(group: Arc<Group>, right: Right, config: Config, notify: Notify) -> ForeignEngine {
        ForeignEngine {
            slots: Slots::new(group.shard_count()),
            rights_version: group.rights_version(),
            handovers: handovers(&group),
            store_id: group.store_id(),
            group,
            right,
            definitions: config.definitions.iter().cloned().collect(),
            config,
            notify,
            unregistered: BTreeMap::new(),
            key_roots: KeyRoots::default(),
            first: 0,
            has_failed: false,
            is_closed: false,
            has_listeners: false,
        }
    }

    fn open_group(config: &Config) -> Result<Arc<Group>, EngineError> {
        let flush = config.flush_mode().map_err(bad_input)?;
        super::schedules::check_declared(config)?;
        let group = Arc::new(Group::open(GroupOptions {
            storage: config.storage()?,
            log: config.log,
            shards: config.shards,
            workers: config.workers,
            may_clamp_workers: config.may_clamp_workers,
            clock: config.clock.clone(),
            flush,
            is_memory: matches!(config.durability, Durability::Memory(_) | Durability::ReadOnly(_)),
            limits: config.limits().map_err(bad_input)?,
            relay: config.relay.clone(),
            tasks: config.tasks.clone(),
            schedules: config.schedules.clone(),
            holds_schedules: config.holds_schedules,
            checkpoints: config.checkpoints,
        })?);
        group.keep_checkpoints();
        Ok(group)
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
        self.check_alone()?;
        let memory = memory.clone();
        self.group.abandon();
        memory.crash();
        self.reopen(Durability::Memory(memory), self.config.clock.clone())
    }

    /// Opens again elsewhere. The group must have been abandoned.
    pub(super) fn reopen(&mut self, durability: Durability, clock: Clock) -> Result<(), EngineError> {
        self.config.durability = durability;
        self.config.clock = clock;
        self.group = Self::open_group(&self.config)?;
        self.right = self.group.enter_opener(Arc::clone(&self.notify));
        self.rights_version = self.group.rights_version();
        self.handovers = handovers(&self.group);
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

    /// Of a group with workers: one is not to be crashed under the others.
    pub(super) fn check_alone(&self) -> Result<(), EngineError> {
        if self.group.workers() > 0 {
            return Err(EngineError::new(ErrorCode::BadInput, "a group with workers cannot be crashed or rewound"));
        }
        Ok(())
    }

    /// Flushes and lets go of the directory and of `notify`. Durable on return: everything that was appended. A part
    /// leaves its group, which goes on.
    pub fn close(&mut self) -> Result<(), EngineError> {
        if self.is_closed {
            return Ok(());
        }
        self.is_closed = true;
        // What the host gave as `notify` may hold the host, and the host this engine.
        self.notify = Arc::new(|| {});
        if self.right.place != Place::OPENER {
            self.group.leave(self.right);
            return Ok(());
        }
        let closed = self.group.close();
        self.group.leave(self.right);
        Ok(closed?)
    }

    /// Whether ends of runs and stuck runs are told as notices.
    pub fn listen(&mut self, has_listeners: bool) {
        self.has_listeners = has_listeners;
        if !self.group.is_present(self.right) {
            return;
        }
        self.group.with_tasks(|cell, _| cell.listen(self.right.place, has_listeners));
        for shard in self.shard_ids() {
            let place = self.right.place;
            self.group.with_present(self.right, shard, |cell, _| {
                cell.listeners.retain(|listener| *listener != place);
                if has_listeners {
                    cell.listeners.push(place);
                }
            });
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

    /// Where a run is to be found; in memory, also if it has ended, as long as the last of these is there.
    pub(super) fn target(&self, run: Run<'_>) -> Result<(ShardId, Option<RunNo>, Recalled), EngineError> {
        self.check_open()?;
        let shard = self.group.shard_of(run.id);
        let no = match parse_run_id(run.run_id) {
            _ if run.run_id.is_empty() => None,
            Some((found, no)) if found == shard => Some(no),
            Some(_) | None => {
                return Err(EngineError::new(
                    ErrorCode::NotFound,
                    format!("there is no run \"{}\" of workflow \"{}\"", run.run_id, run.id),
                ));
            }
        };
        Ok((shard, no, self.group.recall(shard, Some(run.id), no)?))
    }

    /// The latest run of an id stays in memory as long as this is there.
    pub(super) fn recall(&self, id: &str) -> Result<Recalled, EngineError> {
        Ok(self.group.recall(self.group.shard_of(id), Some(id), None)?)
    }

    pub(super) fn check_open(&self) -> Result<(), EngineError> {
        if self.is_closed || matches!(self.group.log_state(), LogState::Closed) {
            return Err(EngineError::new(ErrorCode::Closed, "the engine is closed"));
        }
        if !self.group.is_present(self.right) {
            return Err(replaced());
        }
        Ok(())
    }

    /// Does a client's work on a shard; refused once this thread was replaced, up to the last moment.
    pub(super) fn on_shard<R>(
        &self,
        shard: ShardId,
        work: impl FnOnce(&mut ShardCell, &mut Work<'_>) -> R,
    ) -> Result<R, EngineError> {
        self.group.with_present(self.right, shard, work).ok_or_else(replaced)
    }

    pub(super) fn shard_ids(&self) -> impl Iterator<Item = ShardId> + use<> {
        (0..self.group.shard_count()).map(ShardId)
    }
}

fn replaced() -> EngineError {
    EngineError::new(ErrorCode::Closed, "this thread was replaced in its group by another one")
}

fn handovers(group: &Group) -> Vec<u32> {
    (0..group.shard_count()).map(|shard| group.handovers(ShardId(shard))).collect()
}

impl Drop for ForeignEngine {
    /// A part whose thread is gone leaves; its runs go on where somebody has its shards.
    fn drop(&mut self) {
        self.group.lay_all(self.right);
        self.group.leave(self.right);
    }
}
