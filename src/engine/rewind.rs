//! Opening an engine in memory at any point of its past, for tests that crash after every record.

use super::config::Durability;
use super::error::{EngineError, ErrorCode};
use super::events::fields;
use super::foreign::ForeignEngine;
use crate::log::{Log, MemoryStorage};
use crate::record::{Record, RunNo, ShardId, Source, Status};
use crate::runtime::Clock;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Every record that an engine in memory had made durable.
#[derive(Debug)]
pub struct Past {
    records: Vec<(Source, Vec<u8>)>,
    ends: Vec<PastEnd>,
}

impl Past {
    /// How many records there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// How many signals whose dedupe ids begin so are among the first records.
    #[must_use]
    pub fn signals(&self, records: usize, prefix: &str) -> usize {
        let is_meant = |bytes: &[u8]| matches!(Record::decode(bytes), Ok(Record::Signal { dedupe: Some(id), .. }) if id.starts_with(prefix));
        let first = self.records.iter().take(records);
        first.filter(|(source, bytes)| matches!(source, Source::Shard(_)) && is_meant(bytes)).count()
    }

    /// The ends that a run's own code came to, in the order of the log.
    #[must_use]
    pub fn ends(&self) -> &[PastEnd] {
        &self.ends
    }

    fn new(records: Vec<(Source, Vec<u8>)>) -> Self {
        let mut names = BTreeMap::new();
        let mut queued = BTreeMap::new();
        let mut ends = Vec::new();
        for (index, (source, bytes)) in records.iter().enumerate() {
            let (Source::Shard(shard), Ok(record)) = (*source, Record::decode(bytes)) else { continue };
            match record {
                Record::Start { run, new, .. }
                | Record::SignalledStart { run, new, .. }
                | Record::AttributedStart { run, new, .. }
                | Record::Continued { next: run, new, .. } => {
                    names.insert((shard, run), (new.kind.to_owned(), new.id.to_owned()));
                }
                Record::Queued { run, new, .. } => {
                    queued.insert((shard, run), (new.kind.to_owned(), new.id.to_owned()));
                }
                // Before that it has no code that could come to an end.
                Record::Activated { run, .. } => {
                    names.extend(queued.remove(&(shard, run)).map(|name| ((shard, run), name)));
                }
                Record::Forked { run, entries } | Record::Reset { next: run, entries, .. } => {
                    if let Some((kind, id)) = crate::machine::copied_names(entries) {
                        names.insert((shard, run), (kind.to_owned(), id.to_owned()));
                    }
                }
                Record::Done { run, status, payload, .. }
                    if matches!(status, Status::Completed | Status::Failed | Status::Cancelled) =>
                {
                    let Some((kind, id)) = names.get(&(shard, run)).cloned() else { continue };
                    ends.push(PastEnd {
                        records: index,
                        shard,
                        run,
                        kind,
                        id,
                        status,
                        payload: String::from_utf8_lossy(payload).into_owned(),
                    });
                }
                _ => {}
            }
        }
        Past { records, ends }
    }
}

/// How a run ended in the past.
#[derive(Clone, Debug)]
pub struct PastEnd {
    /// Records before its end.
    pub records: usize,
    /// Where it lives.
    pub shard: ShardId,
    /// The run.
    pub run: RunNo,
    /// The definition's name.
    pub kind: String,
    /// The caller's name for the workflow.
    pub id: String,
    /// How.
    pub status: Status,
    /// Encoded result or failure.
    pub payload: String,
}

impl PastEnd {
    /// Records before it, type, id, status, payload.
    #[must_use]
    pub fn row(&self) -> String {
        let (records, status) = (self.records.to_string(), self.status.code().to_string());
        fields(&[&records, &self.kind, &self.id, &status, &self.payload])
    }
}

impl ForeignEngine {
    /// Crashes, and gives what was durable. Nothing works before [`ForeignEngine::rewind`]. In memory only.
    pub fn past(&mut self) -> Result<Past, EngineError> {
        let Durability::Memory(memory) = self.durability() else {
            return Err(EngineError::new(ErrorCode::BadInput, "only an engine in memory can be rewound"));
        };
        let memory = memory.clone();
        self.check_alone()?;
        self.group().abandon();
        memory.crash();
        let mut records = Vec::new();
        let (log, _) = Log::open(Arc::new(memory), self.log_options(), &mut |_, source, bytes| {
            records.push((source, bytes.to_vec()));
        })?;
        log.abandon();
        Ok(Past::new(records))
    }

    /// Opens as if the process had been killed right after the `count`-th record became durable, with a virtual clock
    /// that stands at `now_ms`. Slots and tokens are void.
    pub fn rewind(&mut self, past: &Past, count: usize, now_ms: i64) -> Result<(), EngineError> {
        let memory = MemoryStorage::new();
        let (log, _) = Log::open(Arc::new(memory.clone()), self.log_options(), &mut |_, _, _| {})?;
        for (source, record) in past.records.iter().take(count) {
            log.append(*source, record)?;
        }
        log.flush()?;
        log.abandon();
        self.reopen(Durability::Memory(memory), Clock::virtual_at(now_ms))
    }

    /// How a run of the past stands now: its status code and its payload; while it has not ended, 0 and why it is stuck.
    #[must_use]
    pub fn standing(&self, end: &PastEnd) -> String {
        self.group().with(end.shard, |cell, _| {
            let Some(run) = cell.shard.run_of(end.run) else { return fields(&["0", ""]) };
            let view = cell.shard.view(run);
            match view.status {
                Some(status) => fields(&[&status.code().to_string(), &String::from_utf8_lossy(view.payload)]),
                None => fields(&["0", cell.shard.stuck(run).map_or("", |stuck| &stuck.message)]),
            }
        })
    }
}
