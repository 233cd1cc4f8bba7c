//! The tree's life and its transactions, made safe against its panics.
//!
//! The tree trusts what it reads, and may panic over a damaged file: that is caught and becomes an error. But what it drops
//! while a panic is on its way may panic too, which would end the process. So nothing of a transaction is touched again
//! after a panic in it, not even to be dropped.

use super::error::{StoreError, fault, guarded};
use super::keys::{TABLES, Table};
use super::tables::{damaged, definition};
use redb::{Database, WriteTransaction};
use std::mem::{self, ManuallyDrop};
use std::ops::{Deref, Index, IndexMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

pub(super) type OpenTable<'txn> = redb::Table<'txn, &'static [u8], &'static [u8]>;

/// An open tree.
pub(super) struct Tree {
    /// Always there, until it is dropped.
    database: Option<Database>,
    /// A transaction met a panic. It has not ended and never will, so that the next one would wait for it forever.
    is_stuck: AtomicBool,
}

impl Tree {
    pub(super) fn new(database: Database) -> Tree {
        Tree { database: Some(database), is_stuck: AtomicBool::new(false) }
    }

    /// Waits until no other is under way.
    pub(super) fn begin(&self) -> Result<Transaction<'_>, StoreError> {
        if self.is_stuck.load(Ordering::Acquire) {
            return Err(damaged("an earlier checkpoint broke off over it, so that there can be no other"));
        }
        let mut writing = self.begin_write().map_err(fault)?;
        writing.set_quick_repair(true);
        Ok(Transaction { writing: Some(writing), is_stuck: &self.is_stuck })
    }
}

impl Deref for Tree {
    type Target = Database;

    fn deref(&self) -> &Database {
        self.database.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Tree {
    /// The tree writes when it is closed, from what it has read. What was committed does not need that write.
    fn drop(&mut self) {
        let database = self.database.take();
        let _: Result<(), StoreError> = guarded(|| {
            drop(database);
            Ok(())
        });
    }
}

/// A transaction that writes. Dropped before it is committed, it leaves nothing.
pub(super) struct Transaction<'tree> {
    /// There until it ends.
    writing: Option<WriteTransaction>,
    is_stuck: &'tree AtomicBool,
}

impl Transaction<'_> {
    pub(super) fn open_tables(&self) -> Result<OpenTables<'_>, StoreError> {
        let writing = self.writing.as_ref().expect("it has not ended");
        let mut opened = OpenTables(Vec::with_capacity(TABLES.len()));
        for table in TABLES {
            opened.0.push(writing.open_table(definition(table)).map_err(fault)?);
        }
        Ok(opened)
    }

    /// Durable on return.
    pub(super) fn commit(mut self) -> Result<(), StoreError> {
        self.writing.take().expect("it has not ended").commit().map_err(fault)
    }

    pub(super) fn abort(mut self) -> Result<(), StoreError> {
        self.writing.take().expect("it has not ended").abort().map_err(fault)
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.is_stuck.store(true, Ordering::Release);
            mem::forget(self.writing.take());
        }
    }
}

/// The tables of a transaction, all of them.
pub(super) struct OpenTables<'txn>(Vec<OpenTable<'txn>>);

impl<'txn> Index<Table> for OpenTables<'txn> {
    type Output = OpenTable<'txn>;

    fn index(&self, table: Table) -> &OpenTable<'txn> {
        &self.0[table as usize]
    }
}

impl IndexMut<Table> for OpenTables<'_> {
    fn index_mut(&mut self, table: Table) -> &mut Self::Output {
        &mut self.0[table as usize]
    }
}

impl Drop for OpenTables<'_> {
    /// One at a time: should closing one panic, the others stay as they are.
    fn drop(&mut self) {
        let mut tables = ManuallyDrop::new(mem::take(&mut self.0));
        if thread::panicking() {
            return;
        }
        while let Some(table) = tables.pop() {
            drop(table);
        }
        drop(ManuallyDrop::into_inner(tables));
    }
}
