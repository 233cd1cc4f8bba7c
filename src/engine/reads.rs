//! What clients ask to know: an answer waits until everything that it rests on is durable.

use super::commands::refuse;
use super::error::{EngineError, ErrorCode, bad_input};
use super::events::fields;
use super::foreign::{ForeignEngine, Run};
use super::host::Slot;
use super::rows::{explanation, history_row, row};
use crate::log::LogState;
use crate::machine::{Filter, RunIx, Target};
use crate::record::{Seq, ShardId, parse_run_id};
use crate::runtime::{Output, PastPlace, ShardCell, StorePage, Token};
use std::cmp::Ordering;

impl ForeignEngine {
    /// `token` gets the status and the payload once the run has ended and that is durable.
    pub fn result(&mut self, token: Token, run: Run<'_>) -> Result<(), EngineError> {
        self.read(token, run, |cell, index| cell.await_end(index, token))
    }

    /// The answer to `token` is not wanted any more.
    pub fn forget(&mut self, token: Token) {
        if !self.group.is_present(self.right) {
            return;
        }
        for shard in self.shard_ids() {
            self.group.with(shard, |cell, _| cell.forget(token));
        }
        self.group.with_tasks(|cell, _| cell.forget(token));
    }

    /// `token` gets the run's row once everything that it rests on is durable.
    pub fn describe(&mut self, token: Token, run: Run<'_>) -> Result<(), EngineError> {
        let shard = self.group.shard_of(run.id);
        self.read(token, run, |cell, index| {
            let row = row(shard, &cell.shard.view(index));
            cell.held.hold(cell.shard.last(), Output::Reply(token, row));
        })
    }

    /// `token` gets rows of the run's records, from the `from`-th on, at most `limit` of them.
    pub fn history(&mut self, token: Token, run: Run<'_>, from: usize, limit: usize) -> Result<(), EngineError> {
        self.read(token, run, |cell, index| {
            if cell.shard.is_stored(index) && cell.shard.history(index).next().is_none() {
                let text = format!(
                    "the history of workflow \"{}\" is damaged in the run store; restore a copy of the directory",
                    cell.shard.view(index).id
                );
                let refused = fields(&[ErrorCode::LogCorrupt.text(), &text]);
                return cell.held.hold(cell.shard.last(), Output::Refuse(token, refused));
            }
            let rows: Vec<String> = cell
                .shard
                .history(index)
                .skip(from)
                .take(limit)
                .map(|entry| history_row(entry.lsn, &entry.record))
                .collect();
            cell.held.hold(cell.shard.last(), Output::Reply(token, rows.join(&super::events::ROW.to_string())));
        })
    }

    pub(super) fn explain_here(&mut self, token: Token, run: Run<'_>) -> Result<(), EngineError> {
        let definitions = self.definitions.clone();
        self.read(token, run, |cell, index| {
            let kind = cell.shard.view(index).kind.to_owned();
            let text = explanation(&cell.shard.explain(index), definitions.contains(&kind));
            cell.held.hold(cell.shard.last(), Output::Reply(token, text));
        })
    }

    /// `token` gets rows of the runs that the filter admits, by start, at most `limit`, then a row with the cursor of
    /// the next page (empty: there is none). Durable is everything that the rows rest on. `query` is the filter as it was
    /// given: a cursor belongs to it.
    pub fn list(
        &mut self,
        token: Token,
        filter: &Filter,
        query: &str,
        is_newest_first: bool,
        cursor: &str,
        limit: usize,
    ) -> Result<(), EngineError> {
        self.check_open()?;
        let query = fingerprint(query, is_newest_first);
        let after = parse_cursor(cursor, query)?;
        let mut found: Vec<Found> = Vec::new();
        let search = |found: &mut Vec<Found>, shard: ShardId, after, count: usize| {
            self.group.with(shard, |cell, _| {
                let runs = cell.shard.search(filter, is_newest_first, after, count);
                found.extend(runs.iter().map(|run| {
                    let view = cell.shard.view(*run);
                    ((view.order_ms, shard.0, view.no.0), false, row(shard, &view))
                }));
                runs.len()
            })
        };
        // Of a run that is in memory and in the store what is in memory comes first, and stays.
        let sort = |found: &mut Vec<Found>| {
            let key = |run: &Found| (run.0, run.1 != is_newest_first);
            found.sort_unstable_by(|a, b| if is_newest_first { key(b).cmp(&key(a)) } else { key(a).cmp(&key(b)) });
            found.dedup_by(|later, earlier| later.0 == earlier.0);
        };
        // Most of the time each shard has about its share of a page; one that has more of it is asked again.
        let wanted = limit.saturating_add(1);
        let share = wanted.min(wanted.saturating_mul(2) / usize::from(self.group.shard_count()) + 8);
        let mut may_have_more: Vec<PastPlace> = Vec::new();
        for shard in self.shard_ids() {
            // Behind a place of another shard: those of its time come before or behind, by the numbers of the shards.
            let after = after.map(|(order_ms, other, no)| match shard.0.cmp(&other) {
                Ordering::Equal => (order_ms, no),
                Ordering::Less => (order_ms, u64::MAX),
                Ordering::Greater => (order_ms, 0),
            });
            if search(&mut found, shard, after, share) == share {
                may_have_more.extend(found.last().map(|run| run.0));
            }
        }
        sort(&mut found);
        found.truncate(wanted);
        let page_end = found.get(wanted - 1).map(|run| run.0);
        for (order_ms, shard, no) in may_have_more
            .into_iter()
            .filter(|last| page_end.is_none_or(|end| if is_newest_first { *last >= end } else { *last <= end }))
        {
            search(&mut found, ShardId(shard), Some((order_ms, no)), wanted - share);
        }
        // After memory: what leaves that is in the store before.
        let mut past = 0;
        self.group.past_runs(filter, is_newest_first, after, &mut |place, shard, view| {
            past += 1;
            found.push((place, true, row(shard, view)));
            if past == wanted { StorePage::Enough } else { StorePage::More }
        })?;
        sort(&mut found);
        let is_last_page = found.len() <= limit;
        found.truncate(limit);
        let next = match found.last() {
            Some(((order_ms, shard, no), ..)) if !is_last_page => format!("{order_ms}.{shard}.{no}.{query:x}"),
            _ => String::new(),
        };
        let mut text: Vec<String> = found.into_iter().map(|run| run.2).collect();
        text.push(next);
        self.reply_when_durable(token, text.join(&super::events::ROW.to_string()))
    }

    /// `token` gets the number of runs that the filter admits.
    pub fn count(&mut self, token: Token, filter: &Filter) -> Result<(), EngineError> {
        self.check_open()?;
        let count = self.group.count_runs(filter)?;
        self.reply_when_durable(token, count.to_string())
    }

    /// A read over all shards rests on the newest record of any.
    fn reply_when_durable(&self, token: Token, text: String) -> Result<(), EngineError> {
        let last = self.group.last();
        self.on_shard(ShardId(0), |cell, _| cell.held.hold(last, Output::Reply(token, text)))
    }

    /// The slot of a run whose code is here, for a query; `Err` says why there is none.
    pub fn query_slot(&self, run: Run<'_>) -> Result<Slot, EngineError> {
        let (shard, _, _recalled) = self.target(run)?;
        let (index, view) = self.group.with(shard, |cell, _| {
            let index = cell.shard.find_last(Target { id: run.id, run: parse_run_id(run.run_id).map(|(_, no)| no) })?;
            let view = cell.shard.view(index);
            Ok::<_, crate::machine::Refusal>((index, (view.status, view.kind.to_owned())))
        })?;
        match view {
            (Some(_), _) => Err(EngineError::new(
                ErrorCode::NotFound,
                format!("workflow \"{}\" has ended and answers no queries", run.id),
            )),
            (None, _) if self.group.with(shard, |cell, _| cell.shard.is_held(index)) => {
                Err(EngineError::new(ErrorCode::Busy, super::parts::paused(run.id)))
            }
            (None, _) if self.group.with(shard, |cell, _| cell.shard.is_queued(index)) => {
                Err(EngineError::new(ErrorCode::Busy, super::parts::queued(run.id)))
            }
            (None, kind) => self.slots.slot(shard, index).ok_or_else(|| {
                EngineError::new(
                    ErrorCode::Unregistered,
                    format!("workflow \"{}\" of type \"{kind}\" has no code here to answer a query", run.id),
                )
            }),
        }
    }

    /// `token` is acknowledged once everything that the slot's shard has recorded so far is durable.
    pub fn ack_at(&mut self, slot: Slot, token: Token) -> Result<(), EngineError> {
        let (shard, _) = self.slots.place(slot).ok_or_else(|| {
            EngineError::new(ErrorCode::NotFound, "the run ended while it was asked; ask again for its result")
        })?;
        // What a revived run shows rests on the records of the shard that it has ended in.
        let shard = self.group.with(shard, |cell, _| cell.shard.id());
        self.on_shard(shard, |cell, _| cell.held.hold(cell.shard.last(), Output::Ack(token)))
    }

    /// Counters and gauges by name, for the engine and for each shard.
    #[must_use]
    pub fn metrics(&self) -> Vec<(String, u64)> {
        let (flushes, average) = self.group.flush_figures();
        let mut figures = vec![
            ("log.durable_lsn".to_owned(), self.group.durable().0),
            ("log.last_lsn".to_owned(), self.group.last().0),
            ("log.flushes".to_owned(), flushes),
            ("log.flush_average_us".to_owned(), average.as_micros() as u64),
        ];
        for shard in self.shard_ids() {
            let (metrics, open, unacknowledged) = self.group.with(shard, |cell, _| {
                (cell.shard.metrics(), cell.shard.open_count(), cell.shard.unacknowledged_count())
            });
            for (name, value) in [
                ("open_runs", open as u64),
                ("unacknowledged_messages", unacknowledged as u64),
                ("records", metrics.records),
                ("runs_started", metrics.runs_started),
                ("runs_completed", metrics.runs_completed),
                ("runs_ended_otherwise", metrics.runs_ended_otherwise),
                ("steps_done", metrics.steps_done),
                ("attempts_failed", metrics.attempts_failed),
                ("signals", metrics.signals),
                ("timers_fired", metrics.timers_fired),
                ("messages_sent", metrics.messages_sent),
                ("deliveries", metrics.deliveries),
            ] {
                figures.push((format!("shard.{}.{name}", shard.0), value));
            }
        }
        figures
    }

    /// `ok`, `degraded` or `failed`, and what is wrong.
    #[must_use]
    pub fn health(&self) -> (&'static str, Vec<String>) {
        match self.group.log_state() {
            LogState::Healthy => {
                let mut problems = self.worker_problems();
                problems.extend(self.group.checkpoint_trouble());
                problems.extend(self.group.store_damages());
                (if problems.is_empty() { "ok" } else { "degraded" }, problems)
            }
            LogState::Full(error) => {
                let full = std::iter::once(error.to_string());
                ("degraded", full.chain(self.worker_problems()).collect())
            }
            LogState::Poisoned(error) => ("failed", vec![error.to_string()]),
            LogState::Closed => ("failed", vec!["the engine is closed".into()]),
        }
    }

    /// Law 8: runs whose code is here and that nothing will ever wake, by id, with the operation that has no reason.
    #[must_use]
    pub fn orphans(&self) -> Vec<(String, Seq)> {
        let mut orphans = Vec::new();
        for shard in self.shard_ids() {
            self.group.with(shard, |cell, _| {
                for (run, seq) in cell.shard.orphans() {
                    orphans.push((cell.shard.view(run).id.to_owned(), seq));
                }
            });
        }
        orphans
    }

    /// Whether what is recorded may still be told.
    pub(super) fn check_readable(&self) -> Result<(), EngineError> {
        self.check_open()?;
        match self.group.log_state() {
            LogState::Poisoned(error) => Err(EngineError::new(ErrorCode::Storage, error.to_string())),
            _ => Ok(()),
        }
    }

    pub(super) fn read(
        &mut self,
        token: Token,
        run: Run<'_>,
        work: impl FnOnce(&mut ShardCell, RunIx),
    ) -> Result<(), EngineError> {
        self.check_readable()?;
        let (shard, no, _recalled) = self.target(run)?;
        self.on_shard(shard, |cell, _| match cell.shard.find(Target { id: run.id, run: no }) {
            Ok(index) => work(cell, index),
            Err(refusal) => refuse(cell, token, &refusal),
        })
    }
}

/// A run of a page: its place, which no other one has; whether it comes from the store; its row.
type Found = (PastPlace, bool, String);

/// Tells queries apart, not against somebody who wants to be mistaken.
fn fingerprint(query: &str, is_newest_first: bool) -> u32 {
    let bytes = query.bytes().chain(std::iter::once(u8::from(is_newest_first)));
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn parse_cursor(cursor: &str, query: u32) -> Result<Option<PastPlace>, EngineError> {
    if cursor.is_empty() {
        return Ok(None);
    }
    let mut parts = cursor.split('.');
    let parsed = (|| {
        let place = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some((place, u32::from_str_radix(parts.next()?, 16).ok()?))
    })();
    match (parsed, parts.next()) {
        (Some((place, of)), None) if of == query => Ok(Some(place)),
        (Some(_), None) => Err(bad_input(format!(
            "the cursor \"{cursor}\" is of another query: give the filter and the order that it was given for"
        ))),
        _ => Err(bad_input(format!("\"{cursor}\" is no cursor of a list"))),
    }
}
