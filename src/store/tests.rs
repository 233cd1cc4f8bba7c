//! The store over a file in memory: what is kept, what is found, what damage does.

use super::*;
use crate::record::{RunNo, ShardId};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;

#[derive(Clone, Default)]
pub(super) struct MemoryFile(pub(super) Arc<Mutex<Vec<u8>>>);

impl StoreFile for MemoryFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().len() as u64)
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.0.lock();
        let from = (offset as usize).min(bytes.len());
        let count = buffer.len().min(bytes.len() - from);
        buffer[..count].copy_from_slice(&bytes[from..from + count]);
        Ok(count)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut content = self.0.lock();
        let end = offset as usize + bytes.len();
        if content.len() < end {
            content.resize(end, 0);
        }
        content[offset as usize..end].copy_from_slice(bytes);
        Ok(())
    }
    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.lock().resize(length as usize, 0);
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

const S: ShardId = ShardId(3);
const ME: Identity = Identity { store: [7; 16], shards: 8 };
const DONE: u8 = 1;
const FAILED: u8 = 2;

fn head<'a>(id: &'a str, kind: &'a str, created_ms: i64, end: Option<(u8, i64)>) -> Head<'a> {
    Head { id, kind, created_ms, order_ms: created_ms, end, chunks: 0, body: b"body" }
}

fn put(store: &Store, no: u64, head: Head<'_>, chunk: Chunk<'_>) -> u32 {
    store.checkpoint(|writer| writer.put_run(&RunWrite { shard: S, no: RunNo(no), head, chunk })).unwrap()
}

fn places(store: &Store, kinds: &[&str], is_newest_first: bool, after: Option<(i64, ShardId, RunNo)>) -> Vec<u64> {
    let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    let query = Query { kinds: &kinds, statuses: &[DONE, FAILED], from_ms: 0, before_ms: None, after, is_newest_first };
    let mut found = Vec::new();
    store
        .finished(&query, &mut |(_, no), head| {
            head.unwrap();
            found.push(no.0);
            Page::More
        })
        .unwrap();
    found
}

/// Runs 1 to 6, of which 5 has not ended.
fn filled() -> (MemoryFile, Store) {
    let file = MemoryFile::default();
    let store = Store::create(Box::new(file.clone()), ME).unwrap();
    for (no, id, kind, end) in [
        (1, "a", "x", Some((DONE, 50))),
        (2, "b", "y", Some((FAILED, 20))),
        (3, "a", "x", Some((FAILED, 30))),
        (4, "c", "y", Some((DONE, 40))),
        (5, "d", "x", None),
        (6, "e", "x", Some((DONE, 60))),
    ] {
        put(&store, no, head(id, kind, 10 * no as i64, end), Chunk::Whole(&[no as u8; 100]));
    }
    store.checkpoint(|writer| writer.put_shard(S, b"state")).unwrap();
    (file, store)
}

#[test]
fn what_a_checkpoint_wrote_is_there_after_a_reopen() {
    let (file, store) = filled();
    drop(store);
    let store = Store::open(Box::new(file), &ME.store).unwrap();
    assert_eq!((store.identity(), store.commits().unwrap()), (ME, 7));
    assert_eq!(store.shard(S).unwrap().as_deref(), Some(&b"state"[..]));
    assert_eq!(store.shard(ShardId(0)).unwrap(), None);
    assert_eq!(store.latest(S, "a").unwrap(), Some(RunNo(3)));
    assert_eq!(store.latest(S, "aa").unwrap(), None);
    let (stored, journal) = store.run(S, RunNo(4)).unwrap().unwrap();
    assert_eq!((stored.head().id, stored.head().end, journal), ("c", Some((DONE, 40)), vec![4; 100]));
    let mut open = Vec::new();
    let each = &mut |run: FoundRun| open.push((run.no.0, run.head.unwrap().head().chunks, run.journal.unwrap()));
    store.open_runs(S, each).unwrap();
    assert_eq!(open, [(5, 1, vec![5; 100])]);
    assert_eq!(store.verify().unwrap().damages, [""; 0]);
}

#[test]
fn finished_runs_are_listed_by_start_from_any_place_and_counted() {
    let (_, store) = filled();
    assert_eq!(places(&store, &[], false, None), [1, 2, 3, 4, 6]);
    assert_eq!(places(&store, &[], true, None), [6, 4, 3, 2, 1]);
    assert_eq!(places(&store, &["x"], false, None), [1, 3, 6]);
    assert_eq!(places(&store, &["x", "y"], true, Some((40, S, RunNo(4)))), [3, 2, 1]);
    assert_eq!(places(&store, &[], false, Some((40, S, RunNo(4)))), [6]);
    assert_eq!(places(&store, &[], false, Some((99, S, RunNo(9)))), [0; 0]);
    assert_eq!(store.count(&[], &[DONE, FAILED]).unwrap(), 5);
    assert_eq!(store.count(&["x".into()], &[DONE]).unwrap(), 2);
    let oldest: Vec<_> = store.ended_before(FAILED, 30, 9).unwrap();
    assert_eq!(oldest, [(20, (S, RunNo(2)))]);
}

#[test]
fn chunks_follow_one_another_until_the_end_of_the_run_makes_one_of_them() {
    let (_, store) = filled();
    let open = Head { chunks: 1, ..head("d", "x", 50, None) };
    assert_eq!(put(&store, 5, open, Chunk::Append(b"more")), 2);
    assert_eq!(put(&store, 5, Head { chunks: 2, ..open }, Chunk::Keep), 2);
    assert_eq!(store.run(S, RunNo(5)).unwrap().unwrap().1, [&[5; 100][..], b"more"].concat());
    let ended = Head { chunks: 2, end: Some((DONE, 70)), ..open };
    assert_eq!(put(&store, 5, ended, Chunk::Whole(b"all")), 1);
    assert_eq!(store.run(S, RunNo(5)).unwrap().unwrap().1, b"all");
    let long = vec![9; 600 << 10];
    assert_eq!(put(&store, 7, head("f", "x", 70, Some((DONE, 80))), Chunk::Whole(&long)), 3);
    assert_eq!(store.run(S, RunNo(7)).unwrap().unwrap().1, long);
    assert_eq!(store.verify().unwrap().damages, [""; 0]);
}

#[test]
fn a_removed_run_leaves_nothing_and_the_one_before_it_has_the_id_again() {
    let (_, store) = filled();
    let removed = store.checkpoint::<_, StoreError>(|writer| {
        Ok([writer.remove_run(S, RunNo(3))?, writer.remove_run(S, RunNo(5))?, writer.remove_run(S, RunNo(99))?])
    });
    assert_eq!(removed, Ok([true, false, false]), "only what has ended");
    assert_eq!((store.head(S, RunNo(3)).unwrap(), store.latest(S, "a").unwrap()), (None, Some(RunNo(1))));
    assert_eq!(places(&store, &[], false, None), [1, 2, 4, 6]);
    assert_eq!(store.verify().unwrap().damages, [""; 0]);
}

#[test]
fn a_checkpoint_that_fails_leaves_nothing_of_itself() {
    let (_, store) = filled();
    let failed = store.checkpoint::<(), _>(|writer| {
        writer.put_shard(S, b"half")?;
        writer.remove_run(S, RunNo(1))?;
        Err(StoreError::Io { detail: "the log is gone".into() })
    });
    assert_eq!(failed, Err(StoreError::Io { detail: "the log is gone".into() }));
    assert_eq!(store.shard(S).unwrap().as_deref(), Some(&b"state"[..]));
    assert_eq!((store.commits().unwrap(), store.count(&[], &[DONE]).unwrap()), (7, 3));
}

#[test]
fn a_store_of_another_directory_or_a_file_that_is_none_is_refused() {
    let (file, store) = filled();
    drop(store);
    let refused = |file: MemoryFile, id: [u8; 16]| Store::open(Box::new(file), &id).map(drop).unwrap_err();
    assert!(matches!(refused(file, [8; 16]), StoreError::Foreign { .. }));
    let noise = MemoryFile(Arc::new(Mutex::new(vec![0x5a; 8 << 10])));
    assert!(matches!(refused(noise, ME.store), StoreError::Damaged { .. } | StoreError::Io { .. }));
}

#[test]
fn a_damaged_run_is_named_and_the_others_are_read_law_10() {
    let (file, store) = filled();
    drop(store);
    let at = {
        let bytes = file.0.lock();
        bytes.windows(100).rposition(|window| window == [4; 100]).unwrap()
    };
    let bytes = file.0.lock().clone();
    // Every place that still has the bytes: the tree keeps what it has not used again.
    for place in 0..=at {
        if bytes[place..].starts_with(&[4; 100]) {
            file.0.lock()[place + 50] ^= 1;
        }
    }
    let store = Store::open(Box::new(file), &ME.store).unwrap();
    let error = store.run(S, RunNo(4)).unwrap_err();
    assert_eq!(error, StoreError::Damaged { what: "the journal of run 3-4".into() });
    assert_eq!(store.run(S, RunNo(1)).unwrap().unwrap().1, [1; 100]);
    assert_eq!(store.verify().unwrap().damages, ["the journal of run 3-4"]);
}
