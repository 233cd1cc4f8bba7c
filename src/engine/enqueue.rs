//! Workflows that start through the scheduler: put before it, and why they wait.

use super::commands::StartRequest;
use super::error::{EngineError, bad_input};
use super::events::fields;
use super::foreign::{ForeignEngine, Run};
use super::task_rows::reason_row;
use super::tasks::check_spec;
use crate::machine::{Enqueued, Explanation, StartCommand, Target, check_actor, check_text};
use crate::record::{Caller, Dedupe, NewRun, TEXT_BYTES_MAX, TaskSpec, encode_order, run_id};
use crate::runtime::{Output, TaskEvent, Token};
use crate::scheduler::Refusal;

/// What a run's own fields take in the record that has its order, too, at most.
pub(super) const RUN_FIELDS_BYTES: usize = 3 * TEXT_BYTES_MAX + 128;

impl ForeignEngine {
    /// Makes a run that starts when the scheduler lets it. `spec` is what stands for it there: without an input or a key.
    /// `token` gets a row once it is taken in and that is durable: `n` or, for an id that was in use, `e`, and the run id; or
    /// `r`, a code and why it is refused.
    pub fn enqueue_run(
        &mut self,
        token: Token,
        request: StartRequest<'_>,
        spec: &TaskSpec<'_>,
    ) -> Result<(), EngineError> {
        self.admits(request.id)?;
        check_text("the type of a workflow", request.kind).map_err(bad_input)?;
        check_actor(request.actor).map_err(bad_input)?;
        self.check_payload("the input", request.input)?;
        let limits = self.config.limits().map_err(bad_input)?;
        check_spec(&limits, spec, RUN_FIELDS_BYTES).map_err(bad_input)?;
        if spec.key.is_some() || !spec.payload.is_empty() || !spec.labels.is_empty() || spec.launch.is_some() {
            return Err(bad_input("a workflow that is enqueued has an id and no key, and no labels".into()));
        }
        if !request.attributes.is_empty() {
            return Err(bad_input(
                "a workflow that is enqueued has no search attributes before its code sets them".into(),
            ));
        }
        self.admits_run()?;
        let key_root = self.key_roots.next()?;
        let shard = self.group.shard_of(request.id);
        let _recalled = self.recall(request.id)?;
        let is_known = self.group.with(shard, |cell, _| {
            let found = cell.shard.find_last(Target { id: request.id, run: None });
            found.is_ok_and(|run| cell.shard.outcome(run).is_none())
        });
        if !is_known && self.refuses(token, spec) {
            return Ok(());
        }
        let mut order = Vec::new();
        encode_order(&mut order, Dedupe::default(), spec);
        self.on_shard(shard, |cell, work| {
            let new = NewRun {
                id: request.id,
                kind: request.kind,
                version: request.version,
                key_root,
                deadline_ms: None,
                parent: None,
                input: request.input,
                actor: request.actor,
            };
            let command = StartCommand { new, attributes: b"", reuse: request.reuse, conflict: request.conflict };
            let enqueued = Enqueued { order: &order, timeout_ms: request.timeout_ms };
            match cell.shard.enqueue(work, command, enqueued) {
                Ok(started) => {
                    let no = cell.shard.view(started.run).no;
                    let reply = fields(&[if started.is_existing { "e" } else { "n" }, &run_id(shard, no)]);
                    if started.is_existing {
                        cell.held.hold(cell.shard.last(), Output::Reply(token, reply));
                    } else {
                        cell.await_admission(started.run, token, reply);
                    }
                }
                Err(refusal) => super::commands::refuse(cell, token, &refusal),
            }
        })
    }

    /// Says what can be said before anything is recorded.
    fn refuses(&self, token: Token, spec: &TaskSpec<'_>) -> bool {
        let unknown = self.unknown_run(spec).map(|id| Refusal::UnknownRun(id.into()));
        self.group.with_tasks(|cell, work| {
            match unknown.map_or_else(|| cell.engine.check_enqueue(work.now_ms, spec), Err) {
                Ok(()) => false,
                Err(refusal) => {
                    cell.tell(work, token, TaskEvent::Submitted(token, vec![Err(refusal)]));
                    true
                }
            }
        })
    }

    /// `token` gets why the run is not running. Where it waits for the scheduler, that says it.
    pub fn explain(&mut self, token: Token, run: Run<'_>) -> Result<(), EngineError> {
        match self.waits_as(run)? {
            Some(caller) => {
                self.group.with_tasks(|cell, work| {
                    let reason = cell.engine.explain_run(caller);
                    let row = reason.map(|(reason, queue)| reason_row(&reason, queue, 0));
                    let row = row.filter(|row| row != "running").unwrap_or_else(|| "starting".into());
                    cell.tell(work, token, TaskEvent::Reply(token, row));
                });
                Ok(())
            }
            None => self.explain_here(token, run),
        }
    }

    fn waits_as(&self, run: Run<'_>) -> Result<Option<Caller>, EngineError> {
        let (shard, no, _recalled) = self.target(run)?;
        Ok(self.group.with(shard, |cell, _| {
            let index = cell.shard.find(Target { id: run.id, run: no }).ok()?;
            match cell.shard.explain(index) {
                Explanation::Queued(caller) => Some(caller),
                _ => None,
            }
        }))
    }
}
