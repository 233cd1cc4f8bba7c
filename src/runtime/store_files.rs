//! The file of the run store in its directory: making and opening it.
//!
//! It gets its name when it is whole. What a sync that failed may have left is seen to when it is opened to be written:
//! see `docs/decisions/0015-run-store.md`.

use crate::log::{Storage, StorageFile};
use crate::store::{Identity, Store, StoreError, StoreFile};
use std::io;

/// Name of the file.
pub(super) const STORE_NAME: &str = "runs";
const UNFINISHED: &str = "runs.new";

struct Adapted(Box<dyn StorageFile>);

impl StoreFile for Adapted {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_at(bytes, offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}

fn failed(what: &str, error: &io::Error) -> StoreError {
    let detail = format!("could not {what}: {error}");
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full { detail },
        _ => StoreError::Io { detail },
    }
}

/// Whether a directory has a store.
pub(super) fn is_there(storage: &dyn Storage) -> Result<bool, StoreError> {
    let names = storage.list().map_err(|error| failed("list the directory", &error))?;
    Ok(names.iter().any(|name| name == STORE_NAME))
}

/// Makes the store of a directory. Durable on return, its name included.
pub(super) fn create(storage: &dyn Storage, identity: Identity) -> Result<Store, StoreError> {
    match storage.remove(UNFINISHED) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed("remove what is left of an unfinished run store", &error)),
    }
    let file = storage.create(UNFINISHED).map_err(|error| failed("create the run store", &error))?;
    let store = Store::create(Box::new(Adapted(file)), identity)?;
    storage.rename(UNFINISHED, STORE_NAME).map_err(|error| failed("name the run store", &error))?;
    storage.sync_directory().map_err(|error| failed("sync the directory", &error))?;
    Ok(store)
}

/// Opens the store of a directory, which was made for the log `store_id`, to write to it.
pub(super) fn open(storage: &dyn Storage, store_id: &[u8; 16]) -> Result<Store, StoreError> {
    // Whoever made it may have died, or failed, before its name was durable.
    storage.sync_directory().map_err(|error| failed("sync the directory", &error))?;
    Store::open(Box::new(existing(storage)?), store_id)
}

/// The same to read it: nothing is written.
pub(super) fn look(storage: &dyn Storage, store_id: &[u8; 16]) -> Result<Store, StoreError> {
    Store::look(Box::new(existing(storage)?), store_id)
}

fn existing(storage: &dyn Storage) -> Result<Adapted, StoreError> {
    let file = storage.open(STORE_NAME).map_err(|error| failed("open the run store", &error))?;
    if file.len().map_err(|error| failed("read the run store", &error))? == 0 {
        return Err(StoreError::Damaged { what: "its file is empty".into() });
    }
    Ok(Adapted(file))
}
