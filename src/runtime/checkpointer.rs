//! When checkpoints are made: by a thread, once the log has grown enough behind the last one, and again after one that
//! failed, in ever longer intervals.
//!
//! The log takes and acknowledges records whatever becomes of a checkpoint: it only grows until one succeeds.

use super::group::Group;
use super::{store_files, threads};
use crate::log::{LogError, LogState, Storage};
use crate::store::{Identity, Store, StoreError};
use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockWriteGuard};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// When checkpoints are made.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointOptions {
    /// Bytes of records behind the last checkpoint that ask for the next one. Default 64 MiB.
    pub log_bytes_max: u64,
    /// Finished runs of a shard that stay in memory once they are stored. Default 128: those that are asked for are mostly
    /// among the last ones.
    pub kept_runs: usize,
}

impl Default for CheckpointOptions {
    fn default() -> Self {
        CheckpointOptions { log_bytes_max: 64 << 20, kept_runs: 128 }
    }
}

/// An orderly end leaves a checkpoint if there are more bytes than this behind the last one: fewer are replayed in a
/// blink, and a small directory does without a store.
const CLOSE_BYTES: u64 = 1 << 20;

/// How long after a failed checkpoint the next one is tried, at first and at most.
const RETRY_FIRST: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// Why there is no checkpoint. What was to be in it belongs to the next one.
#[derive(Clone, Debug)]
pub enum CheckpointError {
    /// The store's reason.
    Store(StoreError),
    /// The log's reason.
    Log(LogError),
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckpointError::Store(error) => error.fmt(formatter),
            CheckpointError::Log(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for CheckpointError {}

impl From<StoreError> for CheckpointError {
    fn from(error: StoreError) -> Self {
        CheckpointError::Store(error)
    }
}

impl From<LogError> for CheckpointError {
    fn from(error: LogError) -> Self {
        CheckpointError::Log(error)
    }
}

/// The file, opened.
struct Opened {
    store: Store,
    /// Or only to be read.
    is_writable: bool,
}

/// Damages that are named; there may be more.
const DAMAGES_MAX: usize = 16;

/// The run store as a group keeps it, and what makes checkpoints in it.
pub(super) struct Keeper {
    storage: Arc<dyn Storage>,
    identity: Identity,
    options: CheckpointOptions,
    /// Held by whoever makes a checkpoint, also over its syncs: nobody but the next checkpoint waits for it.
    making: Mutex<()>,
    /// Read by all, also while a checkpoint is written; changed only when the file is opened or let go of.
    store: RwLock<Option<Opened>>,
    /// Finished runs may be in the store alone.
    has_past: AtomicBool,
    /// Rises when a checkpoint begins to change what is in the store and in memory, and when it has: odd between the two.
    changes: AtomicU64,
    /// A message waits for a run that could not be read.
    owes_messages: AtomicBool,
    /// What was found damaged.
    damages: Mutex<Vec<String>>,
    /// Bytes that the log had taken when the last checkpoint began.
    saved_bytes: AtomicU64,
    /// Why the last checkpoint failed.
    failed: Mutex<Option<String>>,
    is_kicked: AtomicBool,
    /// There will be no more checkpoints; changes under the lock that the thread sleeps on.
    is_over: Mutex<bool>,
    /// A checkpoint that is being made is to be given up.
    is_abandoned: AtomicBool,
    kicked: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Keeper {
    /// `saved_bytes` of what is in the log are in the store. `store`: what is there already, opened to be read.
    pub(super) fn new(
        storage: Arc<dyn Storage>,
        identity: Identity,
        options: CheckpointOptions,
        saved_bytes: u64,
        store: Option<Store>,
    ) -> Keeper {
        let has_past = AtomicBool::new(store.is_some());
        Keeper {
            storage,
            identity,
            options,
            making: Mutex::new(()),
            store: RwLock::new(store.map(|store| Opened { store, is_writable: false })),
            has_past,
            changes: AtomicU64::new(0),
            owes_messages: AtomicBool::new(false),
            damages: Mutex::new(Vec::new()),
            saved_bytes: AtomicU64::new(saved_bytes),
            failed: Mutex::new(None),
            is_kicked: AtomicBool::new(false),
            is_over: Mutex::new(false),
            is_abandoned: AtomicBool::new(false),
            kicked: Condvar::new(),
            thread: Mutex::new(None),
        }
    }

    fn unsaved_bytes(&self, appended_bytes: u64) -> u64 {
        appended_bytes.saturating_sub(self.saved_bytes.load(Ordering::Relaxed))
    }

    fn is_due(&self, appended_bytes: u64) -> bool {
        self.unsaved_bytes(appended_bytes) >= self.options.log_bytes_max || self.owes_messages()
    }

    /// The log has taken so many bytes in all.
    pub(super) fn appended(&self, appended_bytes: u64) {
        if self.is_due(appended_bytes) && !self.is_kicked.swap(true, Ordering::AcqRel) {
            // Whoever is about to sleep has the lock until it does.
            drop(self.is_over.lock());
            self.kicked.notify_all();
        }
    }

    pub(super) fn saved(&self, bytes: u64) {
        self.saved_bytes.store(bytes, Ordering::Relaxed);
    }

    /// What became of the last checkpoint: why it failed, if it did.
    pub(super) fn note(&self, failed: Option<String>) {
        *self.failed.lock() = failed;
    }

    /// Whether a checkpoint that is being made is not to be given up.
    pub(super) fn goes_on(&self) -> Result<(), LogError> {
        if self.is_abandoned.load(Ordering::Acquire) { Err(LogError::Closed) } else { Ok(()) }
    }

    /// Whether a copy of the directory is to go on: until the directory is let go of.
    pub(super) fn may_copy(&self) -> Result<(), LogError> {
        if *self.is_over.lock() { Err(LogError::Closed) } else { Ok(()) }
    }

    /// The directory.
    pub(super) fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// One checkpoint at a time.
    pub(super) fn begin(&self) -> MutexGuard<'_, ()> {
        self.making.lock()
    }

    /// Does `work` with the store to write to: it is made, or opened again if something was wrong with its file. Others read
    /// it meanwhile.
    pub(super) fn write(
        &self,
        work: &mut dyn FnMut(&Store) -> Result<(), CheckpointError>,
    ) -> Result<(), CheckpointError> {
        let mut slot = self.store.write();
        if slot.as_ref().is_none_or(|opened| !opened.is_writable || opened.store.trouble().is_some()) {
            *slot = None;
            let store = if store_files::is_there(&*self.storage)? {
                store_files::open(&*self.storage, &self.identity.store)?
            } else {
                store_files::create(&*self.storage, self.identity)?
            };
            *slot = Some(Opened { store, is_writable: true });
        }
        let slot = RwLockWriteGuard::downgrade(slot);
        slot.as_ref().map_or(Ok(()), |opened| work(&opened.store))
    }

    /// Reads the store, as the last checkpoint has left it.
    pub(super) fn read(&self, work: &mut dyn FnMut(&Store) -> Result<(), StoreError>) -> Result<(), StoreError> {
        loop {
            let read = self.store.read().as_ref().map(|opened| work(&opened.store));
            if let Some(read) = read {
                if matches!(read, Err(StoreError::Io { .. } | StoreError::Full { .. })) {
                    self.let_go_of_troubled();
                }
                return read;
            }
            if *self.is_over.lock() {
                return Err(StoreError::Io { detail: "the engine is closed".into() });
            }
            let mut slot = self.store.write();
            if slot.is_none() {
                let store = store_files::look(&*self.storage, &self.identity.store)?;
                *slot = Some(Opened { store, is_writable: false });
            }
        }
    }

    /// After an error of its file the store takes and gives nothing more: whoever reads next opens it again.
    fn let_go_of_troubled(&self) {
        if let Some(mut slot) = self.store.try_write()
            && slot.as_ref().is_some_and(|opened| opened.store.trouble().is_some())
        {
            *slot = None;
        }
    }

    /// Lets go of the file.
    pub(super) fn let_go(&self) {
        let _making = self.making.lock();
        *self.store.write() = None;
    }

    pub(super) fn has_past(&self) -> bool {
        self.has_past.load(Ordering::Acquire)
    }

    pub(super) fn kept_runs(&self) -> usize {
        self.options.kept_runs
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// There is a store, and finished runs of it may leave memory.
    pub(super) fn let_past_be(&self) {
        self.has_past.store(true, Ordering::Release);
    }

    /// A checkpoint begins or ends changing what is in the store and what in memory.
    pub(super) fn changing(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// A message cannot be applied before the store can be read again.
    pub(super) fn owe_messages(&self) {
        self.owes_messages.store(true, Ordering::Release);
    }

    pub(super) fn owes_messages(&self) -> bool {
        self.owes_messages.load(Ordering::Acquire)
    }

    pub(super) fn pays_messages(&self) -> bool {
        self.owes_messages.swap(false, Ordering::AcqRel)
    }

    /// Something in the store is damaged.
    pub(super) fn note_damage(&self, error: &StoreError) {
        let (mut damages, text) = (self.damages.lock(), error.to_string());
        if damages.len() < DAMAGES_MAX && !damages.contains(&text) {
            damages.push(text);
        }
    }

    /// Sleeps until there is something to do. After a failure nothing but time brings the next try. `false`: it is over.
    fn sleep(&self, after_failure: Option<Duration>) -> bool {
        let mut is_over = self.is_over.lock();
        match after_failure {
            Some(pause) if !*is_over => drop(self.kicked.wait_while_for(&mut is_over, |is_over| !*is_over, pause)),
            Some(_) => {}
            None => {
                while !*is_over && !self.is_kicked.load(Ordering::Acquire) {
                    self.kicked.wait(&mut is_over);
                }
            }
        }
        self.is_kicked.store(false, Ordering::Release);
        !*is_over
    }

    /// No more checkpoints by the thread; returns once it is gone.
    fn end(&self) {
        *self.is_over.lock() = true;
        self.kicked.notify_all();
        let thread = self.thread.lock().take();
        // The thread may be the last one that has the group.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            // It catches its own panics.
            drop(thread.join());
        }
    }
}

impl Group {
    /// Has checkpoints made by a thread from now on, if the group makes any. Where the time is simulated there is none.
    pub fn keep_checkpoints(self: &Arc<Self>) {
        let Some(keeper) = self.keeper.clone().filter(|_| self.flusher.is_real()) else { return };
        let mut thread = keeper.thread.lock();
        if thread.is_some() || *keeper.is_over.lock() {
            return;
        }
        // What was found at the open may be enough for one.
        keeper.appended(self.log.appended_bytes());
        let (group, work) = (Arc::downgrade(self), Arc::clone(&keeper));
        let spawned = threads::start("fusee-store", Box::new(move || run(&group, &work)));
        match spawned {
            Ok(spawned) => *thread = Some(spawned),
            Err(error) => keeper.note(Some(format!("their thread could not be started: {error}"))),
        }
    }

    /// Why the last checkpoint failed. `None`: it did not.
    #[must_use]
    pub fn checkpoint_trouble(&self) -> Option<String> {
        let failed = self.keeper.as_ref()?.failed.lock().clone()?;
        Some(format!(
            "no checkpoint could be made, so that the log grows and the next open takes longer; it is tried again by \
             itself: {failed}"
        ))
    }

    /// What was found damaged in the run store.
    #[must_use]
    pub fn store_damages(&self) -> Vec<String> {
        self.keeper.as_ref().map(|keeper| keeper.damages.lock().clone()).unwrap_or_default()
    }

    /// An orderly end: what is left to replay is little.
    pub(super) fn end_checkpoints(&self) {
        let Some(keeper) = &self.keeper else { return };
        keeper.end();
        let unsaved_bytes = keeper.unsaved_bytes(self.log.appended_bytes());
        if unsaved_bytes >= CLOSE_BYTES.min(keeper.options.log_bytes_max)
            && matches!(self.log_state(), LogState::Healthy)
        {
            // Everything is in the log as well: without it the next open reads more, that is all.
            drop(self.checkpoint());
        }
        keeper.let_go();
    }

    /// The end of a killed process: one that is being made is given up.
    pub(super) fn abandon_checkpoints(&self) {
        let Some(keeper) = &self.keeper else { return };
        keeper.is_abandoned.store(true, Ordering::Release);
        keeper.end();
        // The file is let go of before the directory is.
        keeper.let_go();
    }

    /// One try. `false`: it failed.
    fn try_checkpoint(&self, keeper: &Keeper) -> bool {
        catch_unwind(AssertUnwindSafe(|| self.checkpoint().is_ok())).unwrap_or_else(|_| {
            keeper.note(Some("a panic, which is an error of fusee".into()));
            false
        })
    }
}

fn run(group: &Weak<Group>, keeper: &Keeper) {
    let mut pause = None;
    while keeper.sleep(pause) {
        let Some(group) = group.upgrade() else { return };
        let is_due = keeper.is_due(group.log.appended_bytes());
        pause = match pause {
            _ if !is_due || group.try_checkpoint(keeper) => None,
            None => Some(RETRY_FIRST),
            Some(pause) => Some((pause * 2).min(RETRY_MAX)),
        };
    }
}
