//! Runs that somebody has paused.

use super::world::*;
use crate::machine::*;
use crate::record::*;

fn pause(world: &mut World, id: &str) -> Result<(), Refusal> {
    let home = world.home(id);
    world.on(home, |shard, work| shard.pause(work, Target { id, run: None }, Some("ann")))
}

#[test]
fn a_paused_run_takes_what_comes_and_goes_on_when_it_is_resumed() {
    let mut world = World::new(1);
    let run = world.started("a");
    world.sleep(run, 5).unwrap();
    world.step(run, "s").unwrap();
    world.wait(run, "x", None).unwrap();
    world.rests(run);
    pause(&mut world, "a").unwrap();
    pause(&mut world, "a").unwrap();
    assert!(world.has_effect(|effect| matches!(effect, Effect::Dropped(_))));
    assert!(!world.complete(run, 2, 1, "late"), "running attempts count no more");
    world.signal("a", "x", "1").unwrap();
    world.advance(10);
    for _ in 0..2 {
        assert_eq!(world.load(run), None);
        assert!(world.shards[0].view(run.1).marks.is_paused);
        assert_eq!(world.labels(run).iter().filter(|label| **label == "timerFired").count(), 0);
        world.no_orphans();
        world.reopen(true);
        assert!(!world.has_effect(|effect| matches!(effect, Effect::Load(_))));
    }
    world.resume("a").unwrap();
    assert!(world.has_effect(|effect| matches!(effect, Effect::Load(_))));
    world.load(run);
    assert_eq!(world.next(run), Some((DeliveryKind::Start, 0)));
    world.sleep(run, 5).unwrap();
    world.step(run, "s").unwrap();
    world.wait(run, "x", None).unwrap();
    assert_eq!(world.next(run), Some((DeliveryKind::SignalTaken, 3)));
    world.rests(run);
    assert_eq!(world.take_attempts().len(), 1, "the attempt is made again");
    world.advance(0);
    assert_eq!(world.next(run), Some((DeliveryKind::TimerFired, 1)));
    assert_eq!(world.labels(run).iter().filter(|label| **label == "paused").count(), 1);
    world.finish(run, Status::Completed, "").unwrap();
    assert!(matches!(pause(&mut world, "a"), Err(Refusal::Ended(..))));
}

#[test]
fn a_paused_run_may_be_terminated_and_its_time_may_be_over() {
    let mut world = World::new(1);
    world.started("a");
    pause(&mut world, "a").unwrap();
    world.terminate("a").unwrap();
    assert_eq!(world.status(world.find("a")), Some(Status::Terminated));
    let (new, reuse, conflict) = (new_run("b", ""), IdReuse::Allow, IdConflict::Fail);
    let (run, _) = world.try_start(NewRun { deadline_ms: Some(T0 + 5), ..new }, reuse, conflict).unwrap();
    pause(&mut world, "b").unwrap();
    world.advance(5);
    assert_eq!(world.status(run), Some(Status::TimedOut));
}
