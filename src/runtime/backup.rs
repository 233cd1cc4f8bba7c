//! A copy of the directory while it is used: the run store, which nothing writes to but checkpoints, and the log behind it.
//!
//! No checkpoint is made meanwhile, so that the store stays as it is and the log keeps what comes behind it. What makes
//! the copy whole comes last: until then it has a file that an open refuses.

use super::group::Group;
use super::store_files::STORE_NAME;
use super::threads;
use crate::log::{LogError, Storage, copy_file};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A copy that has this file is not finished.
pub(super) const UNFINISHED_COPY: &str = "copy.unfinished";

/// Told what became of a copy.
pub type Done = Box<dyn FnOnce(&Group, Result<(), LogError>) + Send>;

impl Group {
    /// Copies what is durable now into an empty directory, which can be opened then like one whose process was killed. What
    /// an unfinished copy left there is replaced. Durable on return.
    pub fn backup(&self, target: &dyn Storage) -> Result<(), LogError> {
        let keeper = self.keeper.as_ref().ok_or_else(|| refused("there is no directory to copy"))?;
        let _no_checkpoint = keeper.begin();
        let _lock = target.lock()?;
        prepare(target)?;
        let goes_on = || keeper.may_copy();
        let storage = keeper.storage();
        let names = storage.list().map_err(|error| refused(&format!("the directory could not be read: {error}")))?;
        if names.iter().any(|name| name == STORE_NAME) {
            copy_file(storage, target, STORE_NAME, None, &goes_on)?;
        }
        self.log.copy_to(target, &goes_on)?;
        let finished = target.sync_directory().and_then(|()| {
            target.remove(UNFINISHED_COPY)?;
            target.sync_directory()
        });
        finished.map_err(|error| refused(&format!("the copy could not be finished: {error}")))
    }

    /// The same by a thread of its own, into what `open` opens there; `done` is told what became of it, there.
    pub fn backup_aside(
        self: &Arc<Self>,
        open: Box<dyn FnOnce() -> Result<Box<dyn Storage>, LogError> + Send>,
        done: Done,
    ) -> Result<(), LogError> {
        let group = Arc::clone(self);
        let work = move || {
            let made = catch_unwind(AssertUnwindSafe(|| group.backup(&*open()?)));
            done(&group, made.unwrap_or_else(|_| Err(refused("a panic, which is an error of fusee"))));
            group.places.wake_all();
            group.copies.fetch_sub(1, Ordering::SeqCst);
        };
        // Who asked for it sleeps from here on such that it can be woken.
        self.copies.fetch_add(1, Ordering::SeqCst);
        let spawned = threads::start("fusee-backup", Box::new(work));
        if spawned.is_err() {
            self.copies.fetch_sub(1, Ordering::SeqCst);
        }
        spawned.map(drop).map_err(|error| refused(&format!("its thread could not be started: {error}")))
    }
}

/// Whether a directory is a copy that is not finished.
pub(super) fn is_unfinished(storage: &dyn Storage) -> bool {
    // One that cannot be listed cannot be opened either.
    storage.list().is_ok_and(|names| names.iter().any(|name| name == UNFINISHED_COPY))
}

/// Has nothing in a directory but the mark of an unfinished copy.
fn prepare(target: &dyn Storage) -> Result<(), LogError> {
    let failed = |error: std::io::Error| refused(&format!("the copy could not be begun: {error}"));
    let names = target.list().map_err(failed)?;
    let is_unfinished = is_unfinished(target);
    let others = || names.iter().filter(|name| *name != "lock" && *name != UNFINISHED_COPY);
    let is_ours = |name: &str| is_unfinished && (name == STORE_NAME || name.ends_with(".log"));
    if let Some(name) = others().find(|name| !is_ours(name)) {
        return Err(refused(&format!("the directory for the copy is not empty, it has \"{name}\"; name a new one")));
    }
    if !is_unfinished {
        target.create(UNFINISHED_COPY).and_then(|file| file.sync()).map_err(failed)?;
    }
    others().try_for_each(|name| target.remove(name)).and_then(|()| target.sync_directory()).map_err(failed)
}

fn refused(reason: &str) -> LogError {
    LogError::Refused { reason: reason.into() }
}
