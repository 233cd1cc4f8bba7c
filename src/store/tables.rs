//! The store itself: making it, opening it, what it says about itself.

use super::error::{StoreError, fault, guarded};
use super::file::{Backend, StoreFile, Trouble, TroubleCell};
use super::keys::{COMMITS, IDENTITY, TABLES, TABLES_OF_FORMAT_1, Table};
use super::probe::Probe;
use super::sealed;
use super::tree::Tree;
use crate::record::{Reader, Writer as Bytes};
use redb::{ReadableDatabase, TableDefinition};
use std::sync::Arc;

/// Version of the layout. A newer one is refused untouched; an older one is read, and becomes this one with the next
/// checkpoint. Format 1 had no scheduler.
pub const FORMAT: u32 = 2;

/// Bytes of pages kept in memory. Judgement: the upper levels of a tree over millions of runs; the system's cache has
/// the rest.
const CACHE_BYTES: usize = 16 << 20;

/// Which directory a store belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Identity of the log.
    pub store: [u8; 16],
    /// Shards of the directory.
    pub shards: u16,
}

/// The run store of a directory. `Send` and `Sync`; readers see the newest commit and wait for nobody.
pub struct Store {
    pub(super) database: Tree,
    trouble: TroubleCell,
    identity: Identity,
    /// Version of its layout when it was opened.
    format: u32,
}

pub(super) fn definition(table: Table) -> TableDefinition<'static, &'static [u8], &'static [u8]> {
    TableDefinition::new(table.name())
}

impl Store {
    /// Makes a store in an empty file. Durable on return.
    pub fn create(file: Box<dyn StoreFile>, identity: Identity) -> Result<Store, StoreError> {
        let store = Store::over(file.into(), identity)?;
        store.guarded(|| {
            let mut writing = store.database.begin_write().map_err(fault)?;
            writing.set_quick_repair(true);
            for table in TABLES {
                drop(writing.open_table(definition(table)).map_err(fault)?);
            }
            {
                let mut meta = writing.open_table(definition(Table::Meta)).map_err(fault)?;
                let value = sealed::seal(Table::Meta, IDENTITY, &encode(identity));
                meta.insert(IDENTITY, &value[..]).map_err(fault)?;
            }
            writing.commit().map_err(fault)
        })?;
        Ok(store)
    }

    /// Opens a store that was made for the log `store`. Walks nothing, also after an unclean end. One that is refused is
    /// left as it was.
    pub fn open(file: Box<dyn StoreFile>, store: &[u8; 16]) -> Result<Store, StoreError> {
        let file: Arc<dyn StoreFile> = file.into();
        let Store { identity, format, .. } = Store::look_at(Arc::clone(&file), store)?;
        Ok(Store { format, ..Store::over(file, identity)? })
    }

    /// Opens a store to read it: its file is left as it is.
    pub fn look(file: Box<dyn StoreFile>, store: &[u8; 16]) -> Result<Store, StoreError> {
        Store::look_at(file.into(), store)
    }

    fn look_at(file: Arc<dyn StoreFile>, store: &[u8; 16]) -> Result<Store, StoreError> {
        let unknown = Identity { store: *store, shards: 0 };
        let probe = Probe::of(file).map_err(|error| StoreError::Io { detail: error.to_string() })?;
        let opened = Store::over(Arc::new(probe), unknown)?;
        let (format, identity) = opened.read_identity()?;
        if identity.store != *store {
            return Err(StoreError::Foreign { detail: "it was made for another log".into() });
        }
        Ok(Store { identity, format, ..opened })
    }

    fn read_identity(&self) -> Result<(u32, Identity), StoreError> {
        self.guarded(|| {
            let reading = self.database.begin_read().map_err(fault)?;
            let meta = reading.open_table(definition(Table::Meta)).map_err(missing)?;
            let value =
                meta.get(IDENTITY).map_err(fault)?.ok_or_else(|| damaged("the description of the store is missing"))?;
            decode(sealed::open(Table::Meta, IDENTITY, value.value())?)
        })
    }

    fn over(file: Arc<dyn StoreFile>, identity: Identity) -> Result<Store, StoreError> {
        let trouble = TroubleCell::default();
        let backend = Backend::new(file, TroubleCell::clone(&trouble));
        let database = judged(&trouble, || {
            let mut builder = redb::Builder::new();
            builder.set_cache_size(CACHE_BYTES);
            builder.create_with_backend(backend).map_err(|error| match error {
                redb::DatabaseError::UpgradeRequired(version) => StoreError::Damaged {
                    what: format!("its tree has version {version}, which this version does not read"),
                },
                other => fault(other),
            })
        })?;
        Ok(Store { database: Tree::new(database), trouble, identity, format: FORMAT })
    }

    /// Work on the tree.
    pub(super) fn guarded<T>(&self, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        judged(&self.trouble, work)
    }

    /// Which directory it belongs to.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Makes it what the first version wrote: without the scheduler.
    #[cfg(test)]
    pub fn make_format_1(&self) {
        let writing = self.database.begin_write().unwrap();
        for table in &TABLES[TABLES_OF_FORMAT_1..] {
            assert!(writing.delete_table(definition(*table)).unwrap());
        }
        {
            let mut meta = writing.open_table(definition(Table::Meta)).unwrap();
            meta.remove(super::keys::SCHEDULER).unwrap();
            let value = sealed::seal(Table::Meta, IDENTITY, &encode_as(1, self.identity));
            meta.insert(IDENTITY, &value[..]).unwrap();
        }
        writing.commit().unwrap();
    }

    /// Whether its checkpoints have the scheduler. In those of format 1 it is not, and the log has all of its records.
    #[must_use]
    pub fn has_scheduler(&self) -> bool {
        self.format > 1
    }

    /// The tables that it had when it was opened.
    pub(super) fn tables(&self) -> &'static [Table] {
        if self.has_scheduler() { &TABLES } else { &TABLES[..TABLES_OF_FORMAT_1] }
    }

    /// What has gone wrong with its file since it was opened, the worst of it.
    #[must_use]
    pub fn trouble(&self) -> Option<Trouble> {
        *self.trouble.lock()
    }

    /// How many checkpoints were committed to it.
    pub fn commits(&self) -> Result<u64, StoreError> {
        self.value(Table::Meta, COMMITS)?.map_or(Ok(0), |bytes| read_count(Table::Meta, COMMITS, &bytes))
    }
}

/// What looks like damage is none if the file could not be read or written.
fn judged<T>(trouble: &TroubleCell, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    guarded(work).map_err(|error| match error {
        StoreError::Damaged { what } if trouble.lock().is_some() => StoreError::Io { detail: what },
        other => other,
    })
}

pub(super) fn missing(error: redb::TableError) -> StoreError {
    match error {
        redb::TableError::TableDoesNotExist(name) => damaged(&format!("its table \"{name}\" is missing")),
        other => fault(other),
    }
}

pub(super) fn damaged(what: &str) -> StoreError {
    StoreError::Damaged { what: what.into() }
}

pub(super) fn encode_count(count: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    Bytes::new(&mut bytes).number(count);
    bytes
}

pub(super) fn read_count(table: Table, key: &[u8], bytes: &[u8]) -> Result<u64, StoreError> {
    Reader::new(bytes).number().map_err(|_| StoreError::Damaged { what: table.name_of(key) })
}

pub(super) fn encode(identity: Identity) -> Vec<u8> {
    encode_as(FORMAT, identity)
}

fn encode_as(format: u32, identity: Identity) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = Bytes::new(&mut bytes);
    out.number(u64::from(format));
    out.raw(&identity.store);
    out.number(u64::from(identity.shards));
    bytes
}

fn decode(bytes: &[u8]) -> Result<(u32, Identity), StoreError> {
    let unreadable = |_| damaged("the description of the store cannot be read");
    let mut reader = Reader::new(bytes);
    let found = reader.number().map_err(unreadable)?;
    let format = u32::try_from(found).unwrap_or(u32::MAX);
    if format == 0 || format > FORMAT {
        return Err(StoreError::Newer { found: format, supported: FORMAT });
    }
    let mut store = [0; 16];
    store.copy_from_slice(reader.raw(16).map_err(unreadable)?);
    let shards = reader.number().map_err(unreadable)?;
    let shards = u16::try_from(shards).map_err(|_| damaged("it names too many shards"))?;
    Ok((format, Identity { store, shards }))
}
