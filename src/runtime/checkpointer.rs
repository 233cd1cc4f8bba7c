//! When checkpoints are made: by a thread, once the log has grown enough behind the last one, and again after one that
//! failed, in ever longer intervals.
//!
//! The log takes and acknowledges records whatever becomes of a checkpoint: it only grows until one succeeds.

use super::group::Group;
use super::{store_files, threads};
use crate::log::{LogError, LogState, Storage};
use crate::store::{Identity, Store, StoreError};
use parking_lot::{Condvar, Mutex, MutexGuard};
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
}

impl Default for CheckpointOptions {
    fn default() -> Self {
        CheckpointOptions { log_bytes_max: 64 << 20 }
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

/// The run store as a group keeps it, and what makes checkpoints in it.
pub(super) struct Keeper {
    storage: Arc<dyn Storage>,
    identity: Identity,
    options: CheckpointOptions,
    /// Held by whoever makes a checkpoint, also over its syncs: nobody but the next checkpoint waits for it.
    store: Mutex<Option<Store>>,
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
    /// `saved_bytes` of what is in the log are in the store.
    pub(super) fn new(
        storage: Arc<dyn Storage>,
        identity: Identity,
        options: CheckpointOptions,
        saved_bytes: u64,
    ) -> Keeper {
        Keeper {
            storage,
            identity,
            options,
            store: Mutex::new(None),
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
        self.unsaved_bytes(appended_bytes) >= self.options.log_bytes_max
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

    /// The store, for one checkpoint at a time.
    pub(super) fn take(&self) -> MutexGuard<'_, Option<Store>> {
        self.store.lock()
    }

    /// The store to write to: it is made, or opened again if something was wrong with its file.
    pub(super) fn writer<'s>(&self, slot: &'s mut Option<Store>) -> Result<&'s Store, StoreError> {
        if slot.as_ref().is_some_and(|store| store.trouble().is_some()) {
            *slot = None;
        }
        let store = match slot.take() {
            Some(store) => store,
            None if store_files::is_there(&*self.storage)? => store_files::open(&*self.storage, &self.identity.store)?,
            None => store_files::create(&*self.storage, self.identity)?,
        };
        Ok(slot.insert(store))
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
        keeper.take().take();
    }

    /// The end of a killed process: one that is being made is given up.
    pub(super) fn abandon_checkpoints(&self) {
        let Some(keeper) = &self.keeper else { return };
        keeper.is_abandoned.store(true, Ordering::Release);
        keeper.end();
        // The file is let go of before the directory is.
        keeper.take().take();
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
