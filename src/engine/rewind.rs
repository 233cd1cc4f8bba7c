//! Opening an engine in memory at any point of its past, for tests that crash after every record.

use super::config::Durability;
use super::error::{EngineError, ErrorCode};
use super::foreign::ForeignEngine;
use crate::log::{Log, MemoryStorage};
use crate::record::Source;
use crate::runtime::Clock;
use std::sync::Arc;

/// Every record that an engine in memory had made durable.
#[derive(Debug)]
pub struct Past {
    records: Vec<(Source, Vec<u8>)>,
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
        Ok(Past { records })
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
}
