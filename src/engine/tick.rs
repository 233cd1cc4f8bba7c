//! Ticking: when the host has to come, and what it is handed when it does.

use super::error::ErrorCode;
use super::events::{EventKind, Events, fields};
use super::foreign::ForeignEngine;
use super::host::Slots;
use super::parts::ask;
use super::rows::{key_roots, stuck_report};
use crate::log::LogState;
use crate::machine::RunIx;
use crate::record::{Lsn, ShardId, Status, run_id};
use crate::runtime::{HostEvent, Output, Place, ShardCell};
use std::collections::{BTreeMap, BTreeSet};

/// Events handed out by one tick, about.
const EVENTS_MAX: usize = 4_096;

/// How long a full disk is left alone before the next try to write.
const FULL_RETRY_MS: i64 = 200;

impl ForeignEngine {
    /// The host has nothing else to do but what a tick may have for it. If that is something, it is said at once; else
    /// what is staged is written, on this thread or on the log's, by flush mode. Answers with what is durable now, and
    /// whether the next tick has something. If more is waited for, `notify` will be called.
    pub fn idle(&mut self) -> (Lsn, bool) {
        if self.has_work() {
            return (self.group.durable(), true);
        }
        let durable = self.group.rest(self.right);
        (durable, self.has_work())
    }

    /// Whether a tick would find something.
    #[must_use]
    pub fn has_work(&self) -> bool {
        if !self.group.is_present(self.right) {
            // The answers in its place are for whoever has it now.
            return self.has_lost_code();
        }
        let has_failed = !self.has_failed && matches!(self.group.log_state(), LogState::Poisoned(_));
        let is_opener = self.right.place == Place::OPENER;
        has_failed
            || self.has_lost_code()
            || (is_opener && self.group.has_blocked_reports())
            || self.shard_ids().any(|shard| self.has_news(shard))
            || self.tasks_need_tick()
    }

    fn has_news(&self, shard: ShardId) -> bool {
        self.group.has_answers(shard, self.right.place) || (self.owns(shard) && self.group.needs_tick(shard))
    }

    /// Whether the code of a shard's runs is this host's to run.
    #[must_use]
    pub fn owns(&self, shard: ShardId) -> bool {
        self.group.holder(shard) == self.right
    }

    /// Time until something falls due, in ms; `None`: nothing will. On a full disk the next try to write counts.
    #[must_use]
    pub fn next_due_ms(&self) -> Option<i64> {
        let due_ms = self.next_due_at_ms().map(|due_ms| due_ms.saturating_sub(self.config.clock.now_ms()).max(0));
        match self.group.log_state() {
            LogState::Full(_) => Some(due_ms.unwrap_or(i64::MAX).min(FULL_RETRY_MS)),
            LogState::Healthy | LogState::Poisoned(_) | LogState::Closed => due_ms,
        }
    }

    /// When something falls due next, in ms since 1970.
    #[must_use]
    pub fn next_due_at_ms(&self) -> Option<i64> {
        self.group.next_due_ms(self.right)
    }

    /// Does what is due, releases what is durable, and collects what the host has to do. `true`: there is more, tick
    /// again. A mass wake comes in batches; the shard that is visited first changes, so that none waits for ever.
    pub fn tick(&mut self, events: &mut Events) -> bool {
        self.group.awake(self.right);
        self.check_health(events);
        self.drop_lost(events);
        if !self.group.is_present(self.right) {
            return false;
        }
        self.report_blocked(events);
        let count = usize::from(self.group.shard_count());
        let mut has_more = false;
        // Messages between shards may make one dirty that was visited already.
        for _ in 0..4 {
            has_more = false;
            for offset in 0..count {
                let shard = ShardId(((self.first + offset) % count) as u16);
                if self.group.has_answers(shard, self.right.place) {
                    has_more |= self.collect(shard, events);
                }
                if self.owns(shard) && self.group.needs_tick(shard) {
                    has_more |= self.tick_shard(shard, events);
                }
            }
            if self.tasks_need_tick() {
                has_more |= self.tick_tasks(events);
            }
            if has_more || !self.has_work() {
                break;
            }
        }
        if has_more {
            self.first = (self.first + 1) % count;
        }
        has_more || self.has_work()
    }

    fn check_health(&mut self, events: &mut Events) {
        if let LogState::Poisoned(error) = self.group.log_state()
            && !self.has_failed
        {
            self.has_failed = true;
            let text = fields(&[ErrorCode::Storage.text(), &error.to_string()]);
            events.push(EventKind::Failed, 0, 0, text);
        }
    }

    fn tasks_need_tick(&self) -> bool {
        self.group.tasks_need_tick(self.right.place)
    }

    fn tick_tasks(&mut self, events: &mut Events) -> bool {
        let mut has_more = false;
        let place = self.right.place;
        self.group.tick_tasks(place, |cell| {
            while events.len() < EVENTS_MAX {
                let Some(event) = cell.next_event(place) else { break };
                super::task_rows::translate(cell, event, events);
            }
            has_more = cell.has_events(place);
        });
        has_more
    }

    /// Takes the answers of a shard that are durable.
    fn collect(&mut self, shard: ShardId, events: &mut Events) -> bool {
        let (place, room) = (self.right.place, EVENTS_MAX.saturating_sub(events.len()));
        self.group.collect(shard, place, room, |cell, output| answer(shard, cell, output, events));
        self.group.has_answers(shard, place)
    }

    fn tick_shard(&mut self, shard: ShardId, events: &mut Events) -> bool {
        let ForeignEngine { group, slots, definitions, unregistered, right, handovers, .. } = self;
        let mut has_more = false;
        group.tick(shard, |cell, _| {
            if cell.holder != *right || cell.handovers != handovers[usize::from(shard.0)] {
                return;
            }
            while events.len() < EVENTS_MAX {
                let Some(event) = cell.next_event() else { break };
                translate(shard, cell, event, slots, events);
            }
            while events.len() < EVENTS_MAX {
                let Some(run) = cell.to_load.pop_front() else { break };
                load(shard, cell, run, slots, definitions, unregistered, events);
            }
            has_more = !cell.events.is_empty() || !cell.to_load.is_empty();
            if !has_more {
                ask(shard, cell, slots, events);
            }
        });
        has_more
    }
}

fn translate(shard: ShardId, cell: &mut ShardCell, event: HostEvent, slots: &mut Slots, events: &mut Events) {
    match event {
        HostEvent::Wake(run) => {
            if let Some(slot) = slots.slot(shard, run) {
                events.push(EventKind::Wake, slot.0, 0, String::new());
            }
        }
        HostEvent::Attempt(run, seq, gate) => {
            if let (Some(slot), Some(attempt)) = (slots.slot(shard, run), cell.shard.attempt(run, seq, gate)) {
                let flags = if attempt.is_interrupted { "1" } else { "0" };
                let (number, lease) = (attempt.number.to_string(), attempt.lease.to_string());
                let last_heartbeat = String::from_utf8_lossy(&attempt.last_heartbeat);
                let text = fields(&[&number, flags, &lease, &last_heartbeat]);
                events.push(EventKind::Attempt, slot.0, seq.0, text);
            }
        }
        HostEvent::Offer(run, number) => {
            if let (Some(slot), Some(offer)) = (slots.slot(shard, run), cell.offers.get(number)) {
                events.push(EventKind::Offer, slot.0, number, offer_text(offer));
            }
        }
        HostEvent::Overdue(run, seq, lease, is_timeout) => {
            if let Some(slot) = slots.slot(shard, run) {
                let what = if is_timeout { "t" } else { "h" };
                events.push(EventKind::Timeout, slot.0, seq.0, fields(&[&lease.to_string(), what]));
            }
        }
        HostEvent::Dropped(run) => {
            if let Some(slot) = slots.slot(shard, run) {
                let status = cell.shard.view(run).status.map_or(0, Status::code);
                slots.free(slot);
                events.push(EventKind::Ended, slot.0, u32::from(status), String::new());
            }
        }
        HostEvent::JournalHalf(run) => {
            let view = cell.shard.view(run);
            let message = journal_half(cell, run);
            events.push(EventKind::Notice, 0, 4, fields(&[view.id, &run_id(shard, view.no), view.kind, "0", &message]));
        }
    }
}

/// An answer to somebody here, or a notice for listeners.
fn answer(shard: ShardId, cell: &ShardCell, output: Output, events: &mut Events) {
    match output {
        Output::Ack(token) => events.push(EventKind::Ack, token, 0, String::new()),
        Output::Reply(token, text) => events.push(EventKind::Reply, token, 0, text),
        Output::Refuse(token, text) => events.push(EventKind::Refuse, token, 0, text),
        Output::Result(token, status, payload) => {
            let text = String::from_utf8_lossy(&payload).into_owned();
            events.push(EventKind::Result, token, u32::from(status.code()), text);
        }
        Output::UpdateLost(token, run) => {
            events.push(EventKind::Refuse, token, 0, super::updates::lost(cell, run));
        }
        Output::Notice(run) => {
            let view = cell.shard.view(run);
            let code = view.status.map_or(0, Status::code);
            let payload = String::from_utf8_lossy(view.payload);
            let text = fields(&[view.id, &run_id(shard, view.no), view.kind, &code.to_string(), &payload]);
            events.push(EventKind::Notice, 0, if view.status == Some(Status::Completed) { 1 } else { 2 }, text);
        }
        Output::Stuck(run) => {
            // One that has ended meanwhile, by its policy, is told of as such.
            let Some(stuck) = cell.shard.stuck(run) else { return };
            let view = cell.shard.view(run);
            let text = fields(&[view.id, &run_id(shard, view.no), view.kind, "0", &stuck_report(stuck)]);
            events.push(EventKind::Notice, 0, 3, text);
        }
        Output::Attempt(..) | Output::JournalHalf(_) | Output::Applied { .. } | Output::Remote(_) => {}
    }
}

fn offer_text(offer: &crate::runtime::Offer) -> String {
    fields(&[&offer.name, &String::from_utf8_lossy(&offer.payload)])
}

fn journal_half(cell: &ShardCell, run: RunIx) -> String {
    let (size, limits) = (cell.shard.journal_size(run), cell.shard.limits());
    format!(
        "the journal of workflow \"{}\" has {} records and {} bytes; at {} records (journalRecordsMax) or {} bytes \
         (journalBytesMax) it fails: divide the work among child workflows",
        cell.shard.view(run).id,
        size.records,
        size.bytes,
        limits.journal_records_max,
        limits.journal_bytes_max
    )
}

fn load(
    shard: ShardId,
    cell: &mut ShardCell,
    run: RunIx,
    slots: &mut Slots,
    definitions: &BTreeSet<String>,
    unregistered: &mut BTreeMap<String, usize>,
    events: &mut Events,
) {
    let view = cell.shard.view(run);
    if view.status.is_some() {
        return;
    }
    if !definitions.contains(view.kind) {
        *unregistered.entry(view.kind.to_owned()).or_default() += 1;
        return;
    }
    let Some(is_replay) = cell.shard.load(run) else { return };
    let slot = slots.take(shard, run);
    let view = cell.shard.view(run);
    let input = String::from_utf8_lossy(cell.shard.input(run));
    let text = fields(&[view.id, &key_roots(&cell.shard, run), view.kind, &input]);
    events.push(EventKind::Start, slot.0, u32::from(is_replay), text);
    for (number, offer) in cell.offers.to(run) {
        events.push(EventKind::Offer, slot.0, number, offer_text(offer));
    }
}
