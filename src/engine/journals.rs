//! Runs as files: exporting one, and bringing one back so that its code replays.

use super::error::{EngineError, ErrorCode, bad_input};
use super::events::{ROW, fields};
use super::foreign::{ForeignEngine, Run};
use super::host::Slot;
use super::keys::hex;
use super::rows::{key_roots, row, stuck_report};
use crate::machine::{REVIVED, RunIx, Shard};
use crate::record::{Cut, JournalFault, JournalFile, JournalFileWriter, Record, run_id};
use crate::runtime::{Output, Token};

impl ForeignEngine {
    /// `token` gets the bytes of a file with the run's records, in hexadecimal, once they are durable.
    pub fn export_run(&mut self, token: Token, run: Run<'_>, cut: Option<Cut<'_>>) -> Result<(), EngineError> {
        let shards = self.group.shard_count();
        self.read(token, run, |cell, index| {
            let output = match exported(&cell.shard, index, shards, cut) {
                Ok(bytes) => Output::Reply(token, hex(&bytes)),
                Err(error) => Output::Refuse(token, fields(&[error.code.text(), &error.message])),
            };
            cell.held.hold(cell.shard.last(), output);
        })
    }

    /// A slot for the code of an exported run: it replays, and nothing comes of it. Answers with the slot and a text: run
    /// id, status (0: it has not ended, or was cut before), number of records; the payload of its end; what the event of a
    /// start says. Let go of it with [`ForeignEngine::lay`].
    pub fn open_journal(&mut self, bytes: &[u8], cut: Option<Cut<'_>>) -> Result<(Slot, String), EngineError> {
        self.check_open()?;
        let file = JournalFile::decode(bytes).map_err(|fault| unreadable(&fault))?;
        let records = match cut {
            Some(cut) => cut.place(&mut file.entries()).ok_or_else(|| no_place(cut))?,
            None => file.records as usize,
        };
        let limits = self.config.limits().map_err(bad_input)?;
        let shard = Shard::of_journal(file.shard, file.shards, limits, &mut file.entries().take(records));
        let mut shard = shard.ok_or_else(|| bad_input("nothing is left of the run before that place".into()))?;
        let kind = shard.view(REVIVED).kind.to_owned();
        if !self.definitions.contains(&kind) {
            return Err(EngineError::new(
                ErrorCode::Unregistered,
                format!("workflow '{}' of type '{kind}' has no code here to replay it", shard.view(REVIVED).id),
            ));
        }
        shard.load(REVIVED);
        let view = shard.view(REVIVED);
        let (status, payload) = match file.entries().take(records).last().map(|entry| entry.record) {
            Some(Record::Done { status, payload, .. }) => (status.code(), payload),
            _ => (0, &b""[..]),
        };
        let head = fields(&[&run_id(file.shard, view.no), &status.to_string(), &records.to_string()]);
        let start = fields(&[view.id, &key_roots(&shard, REVIVED), view.kind, &text(shard.input(REVIVED))]);
        let text = [head, text(payload), start].join(&ROW.to_string());
        let ghost = self.group.revive(shard, self.right).ok_or_else(|| {
            EngineError::new(ErrorCode::Busy, "too many runs are replayed at once; wait for some of them")
        })?;
        Ok((self.slots.take(ghost, REVIVED), text))
    }

    /// Why the code of a slot does not fit its records, as it is reported of a stuck run; then the place, from 0, and the
    /// number of the record at which they part, if there is one. Empty: it fits.
    pub fn misfit(&self, slot: Slot) -> String {
        let Some((shard, run)) = self.slots.place(slot) else { return String::new() };
        self.group.with(shard, |cell, _| {
            let Some(stuck) = cell.shard.stuck(run) else { return String::new() };
            let (place, lsn) = match stuck.recorded.as_ref().and_then(|_| cell.shard.first_of(run, stuck.seq)) {
                Some((place, lsn)) => (place.to_string(), lsn.to_string()),
                None => (String::new(), String::new()),
            };
            fields(&[&stuck_report(stuck), &place, &lsn])
        })
    }

    /// Rows of the runs of a directory, those that have ended included if their records are kept, as they were read when it
    /// was opened. Of one that is opened to be looked at: nobody waits for a disk.
    #[must_use]
    pub fn found_runs(&self) -> String {
        let mut rows = Vec::new();
        for shard in self.shard_ids() {
            self.group.with(shard, |cell, _| {
                let kept = cell.shard.views().filter(|(index, _)| cell.shard.history(*index).next().is_some());
                rows.extend(kept.map(|(_, view)| row(shard, &view)));
            });
        }
        rows.join(&ROW.to_string())
    }

    /// The bytes of a file with the records of a run that [`ForeignEngine::found_runs`] has named, in hexadecimal.
    pub fn found_journal(&self, run: Run<'_>) -> Result<String, EngineError> {
        let (shard, no, _recalled) = self.target(run)?;
        let shards = self.group.shard_count();
        self.group.with(shard, |cell, _| {
            let index = cell.shard.find(crate::machine::Target { id: run.id, run: no })?;
            exported(&cell.shard, index, shards, None).map(|bytes| hex(&bytes))
        })
    }
}

fn exported(shard: &Shard, run: RunIx, shards: u16, cut: Option<Cut<'_>>) -> Result<Vec<u8>, EngineError> {
    let records = match cut {
        Some(cut) => cut.place(&mut shard.history(run)).ok_or_else(|| no_place(cut))?,
        None => usize::MAX,
    };
    let mut writer = JournalFileWriter::default();
    let mut is_empty = true;
    for entry in shard.history(run).take(records) {
        writer.push(&entry);
        is_empty = false;
    }
    if is_empty {
        return Err(EngineError::new(
            ErrorCode::NotFound,
            format!("workflow \"{}\" has ended and its history is not kept any more", shard.view(run).id),
        ));
    }
    Ok(writer.finish(shard.id(), shards, cut.is_some()))
}

fn no_place(cut: Cut<'_>) -> EngineError {
    bad_input(match cut {
        Cut::BeforeStep(name) => format!("the run has no record of a step \"{name}\" to be cut before"),
        Cut::BeforeOperation(seq) => format!("the run has no record of operation {} to be cut before", seq.0),
    })
}

/// Offset, then what is wrong there.
fn unreadable(fault: &JournalFault) -> EngineError {
    EngineError::new(ErrorCode::JournalFile, fields(&[&fault.offset.to_string(), &fault.to_string()]))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
