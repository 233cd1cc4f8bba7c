//! Runs that have ended, brought back to be looked at.

use super::world::*;
use crate::machine::*;
use crate::record::*;

#[test]
fn a_revived_run_replays_to_where_it_was_and_nobody_else_notices() {
    let mut world = World::new(1);
    let run = world.started("a");
    assert!(world.shards[0].revived(run.1).is_none(), "it has not ended");
    world.step(run, "s").unwrap();
    world.rests(run);
    world.complete(run, 1, 1, "done");
    world.next(run);
    world.wait(run, "x", None).unwrap();
    world.rests(run);
    world.terminate("a").unwrap();
    let records = world.log.len();
    let live = std::mem::replace(&mut world.shards[0], Shard::new(ShardId(0), 1));
    world.shards[0] = live.revived(run.1).unwrap();
    let ghost = R(0, REVIVED);
    assert_eq!(world.load(ghost), Some(true));
    assert_eq!(world.shards[0].view(REVIVED).no, live.view(run.1).no);
    assert_eq!(world.next(ghost), Some((DeliveryKind::Start, 0)));
    assert_eq!(world.step(ghost, "s"), Ok(OpenedStep::Recorded));
    assert_eq!(world.next(ghost), Some((DeliveryKind::StepCompleted, 1)));
    world.wait(ghost, "x", None).unwrap();
    world.rests(ghost);
    assert_eq!((world.log.len(), world.status(ghost)), (records, None));
}

#[test]
fn a_step_without_a_result_gets_no_body_in_a_revived_run() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.step(run, "s").unwrap();
    world.finish(run, Status::Completed, "").unwrap();
    let live = std::mem::replace(&mut world.shards[0], Shard::new(ShardId(0), 1));
    world.shards[0] = live.revived(run.1).unwrap();
    let ghost = R(0, REVIVED);
    assert_eq!(world.load(ghost), Some(true));
    world.next(ghost);
    assert_eq!(world.step(ghost, "s"), Ok(OpenedStep::Later), "as in any replay");
}

#[test]
fn a_run_that_was_paused_when_it_ended_is_replayed_all_the_same() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.rests(run);
    world.on(0, |shard, work| shard.pause(work, Target { id: "a", run: None }, None)).unwrap();
    world.terminate("a").unwrap();
    let live = std::mem::replace(&mut world.shards[0], Shard::new(ShardId(0), 1));
    world.shards[0] = live.revived(run.1).unwrap();
    assert_eq!(world.load(R(0, REVIVED)), Some(true));
}
