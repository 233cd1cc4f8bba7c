//! One checkpoint: what has changed goes into the run store, and the log is trimmed behind it.
//!
//! From Rust state alone, whatever the code of the shards is doing. A shard's lock is held for one slice at a time; what
//! is written refers to nothing that is not durable; the log is trimmed once the store is durable, the oldest first.

use super::checkpointer::{CheckpointError, Keeper};
use super::group::Group;
use super::saved_tasks::BegunTasks;
use crate::log::{LogError, LogState};
use crate::machine::{RunIx, SavedRecords, Shard};
use crate::record::{Lsn, RunNo, ShardId};
use crate::store::{Chunk, Head, RunWrite, Store, Writer};

/// Runs, and bytes of them or of tasks, taken under one hold of a lock. Judgement: well under a millisecond of copying.
const SLICE_RUNS: usize = 256;
const SLICE_BYTES: usize = 256 << 10;

/// What of a shard goes into one checkpoint.
struct Begun {
    shard: ShardId,
    position: Lsn,
    state: Vec<u8>,
    runs: Vec<RunIx>,
    written: Vec<Written>,
}

/// What is in the store of a run once the checkpoint is.
struct Written {
    run: RunIx,
    stored_to: u32,
    chunks: u32,
    is_ended: bool,
}

/// A run copied out from under its shard's lock.
struct Taken {
    run: RunIx,
    no: RunNo,
    id: Box<str>,
    kind: Box<str>,
    created_ms: i64,
    order_ms: i64,
    end: Option<(u8, i64)>,
    chunks: u32,
    body: Vec<u8>,
    records: Records,
    stored_to: u32,
}

/// Its records.
enum Records {
    Same,
    More(Vec<u8>),
    All(Vec<u8>),
}

impl Group {
    /// Makes a checkpoint of everything that has changed, and trims the log behind it. `false`: nothing has changed, or the
    /// group makes none.
    pub fn checkpoint(&self) -> Result<bool, CheckpointError> {
        let Some(keeper) = &self.keeper else { return Ok(false) };
        let made = self.make_checkpoint(keeper);
        keeper.note(made.as_ref().err().map(ToString::to_string));
        made
    }

    fn make_checkpoint(&self, keeper: &Keeper) -> Result<bool, CheckpointError> {
        let _making = keeper.begin();
        match self.log_state() {
            LogState::Poisoned(error) => return Err((*error).clone().into()),
            LogState::Closed => return Err(LogError::Closed.into()),
            LogState::Healthy | LogState::Full(_) => {}
        }
        let bytes = self.log.appended_bytes();
        if self.is_unchanged() && !keeper.owes_messages() {
            keeper.saved(bytes);
            return Ok(false);
        }
        let mut begun = Vec::new();
        keeper.changing();
        let mut taken = None;
        let written = keeper.write(&mut |store| {
            let tasks = self.begin(&mut begun)?;
            self.write(keeper, store, &mut begun, &tasks)?;
            taken = Some(tasks);
            Ok(())
        });
        let tasks = match (written, taken) {
            (Ok(()), Some(tasks)) => tasks,
            (written, _) => {
                for begun in &begun {
                    self.visit(begun.shard, |cell, _| cell.shard.give_back(&begun.runs));
                }
                self.tasks.give_up_checkpoint();
                keeper.changing();
                return written.map(|()| false);
            }
        };
        keeper.saved(bytes);
        keeper.let_past_be();
        for begun in &begun {
            self.settle(keeper, begun);
        }
        keeper.changing();
        self.tasks.keep_checkpoint(&tasks);
        let oldest = begun.iter().map(|begun| begun.position).fold(tasks.position, Lsn::min);
        self.log.trim(oldest.next())?;
        if keeper.pays_messages() {
            (0..self.shard_count()).for_each(|shard| self.resend(ShardId(shard)));
            self.resend_tasks();
        }
        Ok(true)
    }

    fn is_unchanged(&self) -> bool {
        (0..self.shard_count()).all(|shard| self.visit(ShardId(shard), |cell, _| cell.shard.is_unchanged()))
            && self.tasks.is_unchanged()
    }

    fn begin(&self, begun: &mut Vec<Begun>) -> Result<BegunTasks, CheckpointError> {
        for shard in (0..self.shard_count()).map(ShardId) {
            let (of_shard, last) = self.visit(shard, |cell, _| {
                let position = self.log.last();
                let (state, runs) = (cell.shard.save_state(position), cell.shard.take_changed());
                (Begun { shard, position, state, runs, written: Vec::new() }, cell.shard.last())
            });
            let position = of_shard.position;
            begun.push(of_shard);
            if last > position {
                // What a log that fails did not take is in the state and must not be in the store.
                return Err(LogError::Closed.into());
            }
        }
        Ok(self.tasks.begin_checkpoint(|| self.log.last())?)
    }

    fn write(
        &self,
        keeper: &Keeper,
        store: &Store,
        begun: &mut [Begun],
        tasks: &BegunTasks,
    ) -> Result<(), CheckpointError> {
        store.checkpoint(|writer| {
            for begun in begun.iter_mut() {
                writer.put_shard(begun.shard, &begun.state)?;
                let mut next = 0;
                while next < begun.runs.len() {
                    keeper.goes_on()?;
                    let (slice, to) = self.slice(begun, next);
                    next = to;
                    for taken in slice {
                        begun.written.push(put(writer, begun.shard, &taken)?);
                    }
                }
            }
            self.write_tasks(keeper, writer, tasks)?;
            // Nothing in the store may rest on what a crash could still take.
            let position = begun.iter().map(|begun| begun.position).fold(tasks.position, Lsn::max);
            if self.durable() < position && self.log.flush()? < position {
                return Err(LogError::Closed.into());
            }
            Ok(())
        })
    }

    fn write_tasks(&self, keeper: &Keeper, writer: &mut Writer<'_>, tasks: &BegunTasks) -> Result<(), CheckpointError> {
        let mut has_more = true;
        while has_more {
            keeper.goes_on()?;
            let mut slice = Vec::new();
            has_more = self.tasks.save(SLICE_BYTES, &mut slice);
            for (no, bytes) in slice {
                writer.put_task(no, bytes.as_deref())?;
            }
        }
        Ok(writer.put_scheduler(&mut tasks.parts())?)
    }

    /// Copies some of the runs, from one of them on; also says where to go on.
    fn slice(&self, begun: &Begun, from: usize) -> (Vec<Taken>, usize) {
        self.visit(begun.shard, |cell, _| {
            let (mut slice, mut bytes, mut next) = (Vec::new(), 0, from);
            while next < begun.runs.len() && slice.len() < SLICE_RUNS && bytes < SLICE_BYTES {
                let run = begun.runs[next];
                next += 1;
                bytes += cell.shard.unsaved_bytes(run);
                slice.extend(take(&cell.shard, run, begun.position));
            }
            (slice, next)
        })
    }

    /// Notes what is stored. The finished runs that were stored last stay in memory.
    fn settle(&self, keeper: &Keeper, begun: &Begun) {
        for written in begun.written.chunks(SLICE_RUNS) {
            self.visit(begun.shard, |cell, _| {
                for Written { run, stored_to, chunks, is_ended } in written {
                    cell.shard.saved(*run, *stored_to, *chunks, *is_ended);
                    if *is_ended {
                        cell.shard.note_ended(*run);
                    }
                }
            });
            self.forget_oldest(keeper, begun.shard);
        }
    }
}

fn take(shard: &Shard, run: RunIx, position: Lsn) -> Option<Taken> {
    let saved = shard.save_run(run, position)?;
    Some(Taken {
        run,
        no: saved.name.no,
        id: saved.name.id.into(),
        kind: saved.name.kind.into(),
        created_ms: saved.name.created_ms,
        order_ms: saved.name.order_ms,
        end: saved.end.map(|(status, ended_ms)| (status.code(), ended_ms)),
        chunks: saved.chunks,
        body: saved.body,
        records: match saved.records {
            SavedRecords::None => Records::Same,
            SavedRecords::More(records) => Records::More(records.to_vec()),
            SavedRecords::All(records) => Records::All(records.to_vec()),
        },
        stored_to: saved.stored_to,
    })
}

fn put(writer: &mut Writer<'_>, shard: ShardId, taken: &Taken) -> Result<Written, CheckpointError> {
    let Taken { run, no, created_ms, order_ms, end, chunks, stored_to, .. } = *taken;
    let chunk = match &taken.records {
        Records::Same => Chunk::Keep,
        Records::More(records) => Chunk::Append(records),
        Records::All(records) => Chunk::Whole(records),
    };
    let head = Head { id: &taken.id, kind: &taken.kind, created_ms, order_ms, end, chunks, body: &taken.body };
    let chunks = writer.put_run(&RunWrite { shard, no, head, chunk })?;
    Ok(Written { run, stored_to, chunks, is_ended: end.is_some() })
}
