//! A copy of the directory while it is used.

use super::error::EngineError;
use super::foreign::ForeignEngine;
use crate::log::{FileStorage, LogError, Storage};
use crate::runtime::{Group, TaskEvent, Token};
use std::path::PathBuf;

impl ForeignEngine {
    /// Copies what is durable now into a directory, which is made or empty, while everything goes on; no checkpoint is made
    /// meanwhile. `token` is acknowledged once the copy is durable and can be opened, or refused.
    pub fn backup(&self, token: Token, directory: &str) -> Result<(), EngineError> {
        self.check_open()?;
        let directory = PathBuf::from(directory);
        let open = move || Ok(Box::new(FileStorage::open(&directory)?) as Box<dyn Storage>);
        let done = move |group: &Group, made: Result<(), LogError>| {
            let event = match made.map_err(EngineError::from) {
                Ok(()) => TaskEvent::Ack(token),
                Err(error) => TaskEvent::Refuse(token, error.code.text(), error.message),
            };
            group.with_tasks(|cell, work| cell.tell(work, token, event));
        };
        Ok(self.group.backup_aside(Box::new(open), Box::new(done))?)
    }
}
