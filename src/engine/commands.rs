//! What clients ask to change: checked, recorded, and answered once that is durable.

use super::error::{EngineError, ErrorCode, bad_input};
use super::events::fields;
use super::foreign::{ForeignEngine, Run};
use crate::machine::{NewUpdate, StartCommand, Target, check_actor, check_text};
use crate::record::{IdConflict, IdReuse, NewRun, NewSignal, RunNo, ShardId, run_id};
use crate::runtime::{Output, ShardCell, Token};

/// A record that ends a run has about so many bytes besides its reason.
pub(super) const URGENT_BYTES: usize = 512;

/// In place of a token: nobody waits for the answer.
const NOBODY: Token = 0;

/// What is sent to a run together with its start.
#[derive(Clone, Copy, Debug)]
pub enum StartWith<'a> {
    /// A signal, in the same record.
    Signal(NewSignal<'a>),
    /// An update, offered before anybody else can come between; the token gets its answer.
    Update(Token, NewUpdate<'a>),
}

/// A start as a client asks for it.
#[derive(Clone, Copy, Debug)]
pub struct StartRequest<'a> {
    /// The caller's name for the workflow.
    pub id: &'a str,
    /// The definition's name.
    pub kind: &'a str,
    /// Version of the code.
    pub version: u32,
    /// Encoded input.
    pub input: &'a [u8],
    /// For an id that has been used.
    pub reuse: IdReuse,
    /// For an id that is in use.
    pub conflict: IdConflict,
    /// First search attributes, in the writing of [`crate::record::write_attribute`]; empty: none.
    pub attributes: &'a [u8],
    /// Longest life of the run.
    pub timeout_ms: Option<i64>,
    /// Who asks.
    pub actor: Option<&'a str>,
    /// Names a request for the result; the end of the run is reported to it.
    pub result_token: Option<Token>,
    /// What the run is sent with its start, or the run that stands for it.
    pub with: Option<StartWith<'a>>,
}

impl ForeignEngine {
    /// Starts a workflow. `token` gets the run id, and whether it was there before, once that is durable; 0: nobody asks
    /// for that. What the id policies refuse is refused by an event, like everything that rests on what is recorded: law 1.
    /// The run is for the host alone until it hears of it, at the latest with the result; `None`: it is refused.
    pub fn start(&mut self, token: Token, request: StartRequest<'_>) -> Result<Option<(ShardId, RunNo)>, EngineError> {
        self.admits(request.id)?;
        check_text("the type of a workflow", request.kind).map_err(bad_input)?;
        check_actor(request.actor).map_err(bad_input)?;
        self.check_payload("the input", request.input)?;
        if let Some(StartWith::Update(_, update)) = &request.with {
            self.check_update(update)?;
        }
        self.admits_run()?;
        let key_root = self.key_roots.next()?;
        let shard = self.group.shard_of(request.id);
        let _recalled = self.recall(request.id)?;
        self.on_shard(shard, |cell, work| {
            let new = NewRun {
                id: request.id,
                kind: request.kind,
                version: request.version,
                key_root,
                deadline_ms: request.timeout_ms.map(|timeout_ms| work.now_ms.saturating_add(timeout_ms)),
                parent: None,
                input: request.input,
                actor: request.actor,
            };
            let command =
                StartCommand { new, attributes: request.attributes, reuse: request.reuse, conflict: request.conflict };
            let started = match request.with {
                Some(StartWith::Signal(signal)) => cell.shard.start_signalled(work, command, signal),
                Some(StartWith::Update(..)) | None => cell.shard.start(work, command),
            };
            let started = match started {
                Ok(started) => started,
                Err(refusal) => {
                    if let Some(StartWith::Update(token, _)) = request.with {
                        refuse(cell, token, &refusal);
                    }
                    let asking = [Some(token).filter(|token| *token != NOBODY), request.result_token];
                    asking.into_iter().flatten().for_each(|token| refuse(cell, token, &refusal));
                    return None;
                }
            };
            let no = cell.shard.view(started.run).no;
            if token != NOBODY {
                let reply = fields(&[&run_id(shard, no), if started.is_existing { "1" } else { "0" }]);
                cell.held.hold(cell.shard.last(), Output::Reply(token, reply));
            }
            if let Some(token) = request.result_token {
                cell.await_end(started.run, token);
            }
            if let Some(StartWith::Update(token, update)) = request.with {
                super::updates::offer(cell, token, Target { id: request.id, run: Some(no) }, &update);
            }
            Some((shard, no))
        })
    }

    /// Whether there may be one more run.
    pub(super) fn admits_run(&self) -> Result<(), EngineError> {
        let (open, max) = (self.group.open_runs(), self.config.open_runs_max);
        if open < max {
            return Ok(());
        }
        Err(EngineError::new(
            ErrorCode::Busy,
            format!("{open} runs are open, the limit is {max}; wait for some to end"),
        ))
    }

    /// Sends a signal; `token` is acknowledged once it is durable.
    pub fn signal(
        &mut self,
        token: Token,
        run: Run<'_>,
        name: &str,
        payload: &[u8],
        dedupe: Option<&str>,
        actor: Option<&str>,
    ) -> Result<(), EngineError> {
        self.config.limits().and_then(|limits| limits.check_signal(name, payload, dedupe, actor)).map_err(bad_input)?;
        self.command(token, run, |cell, work, target| cell.shard.signal(work, target, name, payload, dedupe, actor))
    }

    /// Asks a run to end; `token` is acknowledged once that is durable. No-op for a run that has ended.
    pub fn cancel(&mut self, token: Token, run: Run<'_>, reason: &str, actor: Option<&str>) -> Result<(), EngineError> {
        check_actor(actor).map_err(bad_input)?;
        self.check_payload("the reason", reason.as_bytes())?;
        self.urgent(token, run, reason, |cell, work, target| cell.shard.cancel(work, target, reason, actor))
    }

    /// Ends a run at once; `token` is acknowledged once that is durable. No-op for a run that has ended.
    pub fn terminate(
        &mut self,
        token: Token,
        run: Run<'_>,
        reason: &str,
        actor: Option<&str>,
    ) -> Result<(), EngineError> {
        check_actor(actor).map_err(bad_input)?;
        self.check_payload("the reason", reason.as_bytes())?;
        self.urgent(token, run, reason, |cell, work, target| {
            cell.shard.terminate(work, target, reason.as_bytes(), actor)
        })
    }

    /// Pauses a run; `token` is acknowledged once that is durable.
    pub fn pause(&mut self, token: Token, run: Run<'_>, actor: Option<&str>) -> Result<(), EngineError> {
        check_actor(actor).map_err(bad_input)?;
        self.command(token, run, |cell, work, target| cell.shard.pause(work, target, actor))
    }

    /// Ends a pause, or tries a stuck run again; `token` is acknowledged once that is durable.
    pub fn resume(&mut self, token: Token, run: Run<'_>, actor: Option<&str>) -> Result<(), EngineError> {
        check_actor(actor).map_err(bad_input)?;
        self.command(token, run, |cell, work, target| cell.shard.resume(work, target, actor))
    }

    /// Ends the sleeps of a run; `token` is acknowledged once that is durable.
    pub fn wake(&mut self, token: Token, run: Run<'_>, actor: Option<&str>) -> Result<(), EngineError> {
        check_actor(actor).map_err(bad_input)?;
        self.command(token, run, |cell, work, target| cell.shard.end_sleeps(work, target, actor))
    }

    fn command(
        &mut self,
        token: Token,
        run: Run<'_>,
        work: impl FnOnce(&mut ShardCell, &mut crate::machine::Work<'_>, Target<'_>) -> Result<(), crate::machine::Refusal>,
    ) -> Result<(), EngineError> {
        self.admits(run.id)?;
        self.commanded(token, run, work)
    }

    /// A command that ends something: on a full disk it may use the reserve.
    fn urgent(
        &mut self,
        token: Token,
        run: Run<'_>,
        reason: &str,
        work: impl FnOnce(&mut ShardCell, &mut crate::machine::Work<'_>, Target<'_>) -> Result<(), crate::machine::Refusal>,
    ) -> Result<(), EngineError> {
        self.check_id(run.id)?;
        self.group.admits_urgent(reason.len() + URGENT_BYTES)?;
        self.commanded(token, run, work)?;
        self.group.hurry();
        Ok(())
    }

    fn commanded(
        &mut self,
        token: Token,
        run: Run<'_>,
        work: impl FnOnce(&mut ShardCell, &mut crate::machine::Work<'_>, Target<'_>) -> Result<(), crate::machine::Refusal>,
    ) -> Result<(), EngineError> {
        let (shard, no, _recalled) = self.target(run)?;
        self.on_shard(shard, |cell, context| match work(cell, context, Target { id: run.id, run: no }) {
            Ok(()) => cell.held.hold(cell.shard.last(), Output::Ack(token)),
            Err(refusal) => refuse(cell, token, &refusal),
        })
    }

    pub(super) fn admits(&self, id: &str) -> Result<(), EngineError> {
        self.check_id(id)?;
        Ok(self.group.admits()?)
    }

    fn check_id(&self, id: &str) -> Result<(), EngineError> {
        self.check_open()?;
        check_text("an id", id).map_err(bad_input)?;
        if id.chars().any(char::is_control) {
            return Err(bad_input("an id is text without control characters".into()));
        }
        Ok(())
    }

    pub(super) fn check_payload(&self, what: &str, payload: &[u8]) -> Result<(), EngineError> {
        self.config.limits().and_then(|limits| limits.check_payload(what, payload)).map_err(bad_input)
    }
}

/// A refusal rests on what is recorded, or on what is not: it is told once that is durable.
pub(super) fn refuse(cell: &mut ShardCell, token: Token, refusal: &crate::machine::Refusal) {
    let error = EngineError::from(refusal.clone());
    cell.held.hold(cell.shard.last(), Output::Refuse(token, fields(&[error.code.text(), &error.message])));
}
