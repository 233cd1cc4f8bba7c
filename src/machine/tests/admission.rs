//! Runs that start when the scheduler lets them.

use super::world::*;
use crate::machine::*;
use crate::record::*;

fn bodies(world: &World) -> Vec<&Body> {
    world.to_scheduler.iter().map(|message| &*message.body).collect()
}

fn over(run: u64, outcome: Outcome) -> Body {
    Body::RunOver { caller: Caller { shard: ShardId(0), run: RunNo(run), seq: Seq(0) }, outcome }
}

#[test]
fn a_queued_run_takes_what_comes_and_its_code_waits_until_it_is_let_in() {
    let mut world = World::new(1);
    let run = world.enqueue("a", Some(50));
    assert!(matches!(bodies(&world)[..], [Body::Order { role: TaskRole::Run, .. }]));
    assert!(!world.has_effect(|effect| matches!(effect, Effect::Load(_))));
    world.signal("a", "x", "1").unwrap();
    assert_eq!(world.load(run), None);
    assert!(world.shards[0].view(run.1).marks.is_queued);
    world.reopen(true);
    assert!(!world.has_effect(|effect| matches!(effect, Effect::Load(_))), "nor after an open");
    world.advance(100);
    world.say(0, Body::Activate { run: RunNo(1) });
    assert!(world.has_effect(|effect| matches!(effect, Effect::Load(_))));
    assert_eq!(world.load(run), Some(true));
    assert_eq!(world.next(run), Some((DeliveryKind::Start, 0)));
    assert_eq!(world.shards[0].turn_ms(run.1), T0 + 100, "its time begins when it is let in");
    assert_eq!(world.wait(run, "x", None).unwrap(), None);
    assert_eq!(world.next(run), Some((DeliveryKind::SignalTaken, 1)));
    world.advance(50);
    assert_eq!(world.status(run), Some(Status::TimedOut));
    assert_eq!(world.to_scheduler.pop().map(|of| of.body), Some(over(1, Outcome::Dead).into()));
}

#[test]
fn a_first_turn_is_no_replay_because_the_run_waited_before_it() {
    let mut world = World::new(1);
    let run = world.enqueue("a", None);
    world.say(0, Body::Admitted { run: RunNo(1) });
    assert!(world.has_effect(|effect| matches!(effect, Effect::Admitted { refusal: None, .. })));
    world.say(0, Body::Activate { run: RunNo(1) });
    assert_eq!(world.load(run), Some(false));
}

#[test]
fn of_a_cancel_and_a_start_the_one_that_is_recorded_first_wins() {
    let mut world = World::new(1);
    let run = world.enqueue("a", None);
    world.cancel("a").unwrap();
    assert_eq!(world.status(run), Some(Status::Cancelled));
    world.say(0, Body::Activate { run: RunNo(1) });
    assert!(!world.has_effect(|effect| matches!(effect, Effect::Load(_))), "its code is never called");
    assert_eq!(*bodies(&world)[1], over(1, Outcome::Cancelled));

    let run = world.enqueue("b", None);
    world.say(0, Body::Activate { run: RunNo(2) });
    world.cancel("b").unwrap();
    assert_eq!(world.status(run), None, "its code hears of it");
    world.load(run);
    assert_eq!(world.next(run), Some((DeliveryKind::Start, 0)));
    assert_eq!(world.next(run), Some((DeliveryKind::Cancelled, 0)));
}

#[test]
fn what_ends_in_the_scheduler_ends_a_run_that_has_not_started_and_no_other() {
    let mut world = World::new(1);
    let ended = |run, status| Body::NeverLetIn { run, status, payload: b"why".as_slice().into() };
    let late = world.enqueue("a", None);
    world.say(0, ended(RunNo(1), Status::Expired));
    assert_eq!((world.status(late), world.payload_of_end(late)), (Some(Status::Expired), "why".into()));
    assert_eq!(bodies(&world).len(), 1, "the scheduler knows");
    let refused = world.enqueue("b", None);
    let why = Box::from(b"QUEUE_FULL\nit is full\nq\n5".as_slice());
    world.say(0, Body::NeverLetIn { run: RunNo(2), status: Status::Refused, payload: why });
    assert_eq!(world.status(refused), Some(Status::Failed));
    assert!(world.payload_of_end(refused).contains("it is full"));
    assert!(world.has_effect(|effect| matches!(effect, Effect::Admitted { refusal: Some(_), .. })));
    let running = world.enqueue("c", None);
    world.say(0, Body::Activate { run: RunNo(3) });
    world.say(0, ended(RunNo(3), Status::Expired));
    assert_eq!(world.status(running), None);
}

#[test]
fn the_task_stands_for_all_runs_that_take_each_others_place() {
    let mut world = World::new(1);
    let run = world.enqueue("a", None);
    world.say(0, Body::Activate { run: RunNo(1) });
    world.load(run);
    assert_eq!(world.next(run), Some((DeliveryKind::Start, 0)));
    let next = NextRun { version: 1, key_root: [9; 16], timeout_ms: None, input: b"2" };
    world.on(0, |shard, work| shard.continue_as_new(work, run.1, next)).unwrap();
    assert_eq!(bodies(&world).len(), 1);
    world.reopen(true);
    world.terminate("a").unwrap();
    assert_eq!(*bodies(&world)[1], over(1, Outcome::Cancelled));
}

#[test]
fn a_task_that_a_run_waits_for_has_its_class_its_tenant_and_its_deadline_unless_it_says_otherwise() {
    let mut world = World::new(1);
    let of_run = TaskSpec {
        class: Class::High,
        tenant: Some("acme"),
        deadline_ms: Some(T0 + 70),
        ..TaskSpec::new("q", "flow", b"")
    };
    let mut order = Vec::new();
    encode_order(&mut order, Dedupe::default(), &of_run);
    let run = world.enqueue_as("a", &order, Some(100));
    world.say(0, Body::Activate { run: RunNo(1) });
    world.reopen(true);
    world.load(run);
    assert_eq!(world.next(run), Some((DeliveryKind::Start, 0)));
    let plain = TaskSpec::new("q", "k", b"1");
    let own = TaskSpec { tenant: Some("b"), deadline_ms: Some(5), class: Class::Low, ..plain.clone() };
    for (seq, role, spec, inherits) in [
        (1, TaskRole::Awaited, &plain, true),
        (2, TaskRole::AwaitedLoosely, &own, false),
        (3, TaskRole::Detached, &plain, true),
    ] {
        let open = |shard: &mut Shard, work: &mut Work<'_>| {
            shard.open_task(work, run.1, Seq(seq), role, Dedupe::default(), spec, inherits, Ok(()))
        };
        world.on(0, open).unwrap();
    }
    let asked: Vec<_> = bodies(&world)
        .into_iter()
        .filter_map(|body| match body {
            Body::Order { caller: Caller { seq, .. }, order, .. } if *seq != Seq(0) => {
                let (_, spec) = decode_order(order).unwrap();
                Some((spec.class, spec.tenant.map(str::to_owned), spec.deadline_ms))
            }
            _ => None,
        })
        .collect();
    let expected = [
        (Class::High, Some("acme".to_owned()), Some(T0 + 70)),
        (Class::Low, Some("b".to_owned()), Some(5)),
        (Class::Normal, None, None),
    ];
    assert_eq!(asked, expected);
}
