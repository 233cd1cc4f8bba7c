//! Search attributes, and the runs that are found by them.

use super::world::*;
use crate::machine::*;
use crate::record::*;
use proptest::prelude::*;

fn written(entries: &[(&str, Option<Attribute<'_>>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    entries.iter().for_each(|(name, value)| write_attribute(&mut bytes, name, value.as_ref()));
    bytes
}

pub(super) fn number(name: &str, value: f64) -> Vec<u8> {
    written(&[(name, Some(Attribute::Number(value)))])
}

fn start_with(world: &mut World, id: &str, attributes: &[u8], signal: Option<NewSignal<'_>>) -> R {
    let (new, reuse, conflict) = (new_run(id, "in"), IdReuse::Allow, IdConflict::SameInput);
    let command = StartCommand { new, attributes, reuse, conflict };
    let started = world.on(0, |shard, work| match signal {
        Some(signal) => shard.start_signalled(work, command, signal),
        None => shard.start(work, command),
    });
    R(0, started.unwrap().run)
}

fn set(world: &mut World, run: R, seq: u32, bytes: &[u8]) -> Result<(), Halt> {
    world.on(0, |shard, work| shard.set_attributes(work, run.1, Seq(seq), bytes))
}

fn kept(world: &World, run: R) -> Vec<u8> {
    world.shards[0].view(run.1).attributes.to_vec()
}

fn found(shard: &Shard, filter: &Filter) -> Vec<String> {
    shard.search(filter, true, None, usize::MAX).into_iter().map(|run| shard.view(run).id.to_owned()).collect()
}

fn is_number(name: &str, value: f64) -> Filter {
    Filter::Attribute(name.into(), Test::Is(Value::Number(value)))
}

#[test]
fn a_start_has_its_attributes_and_its_signal_in_one_record() {
    let mut world = World::new(1);
    let signal = NewSignal { name: "go", payload: b"1", dedupe: None };
    let run = start_with(&mut world, "a", &number("total", 7.0), Some(signal));
    assert_eq!(world.log.len(), 1);
    assert_eq!(world.labels(run), ["started", "attributesSet", "signalReceived"]);
    assert_eq!(kept(&world, run), number("total", 7.0));
    world.load(run);
    world.next(run);
    assert_eq!(world.wait(run, "go", None), Ok(None));
    assert_eq!(world.next(run), Some((DeliveryKind::SignalTaken, 1)));
    // Whatever stands for a start keeps what it has.
    start_with(&mut world, "a", &number("total", 8.0), None);
    assert_eq!(kept(&world, run), number("total", 7.0));
}

#[test]
fn attributes_that_code_sets_are_recorded_once_and_are_the_same_after_a_crash() {
    let mut world = World::new(1);
    let run = world.started("a");
    set(&mut world, run, 1, &number("a", 1.0)).unwrap();
    set(&mut world, run, 2, &written(&[("a", None), ("b", Some(Attribute::Text("x")))])).unwrap();
    world.rests(run);
    let before = (kept(&world, run), world.log.len());
    assert_eq!(before.0, written(&[("b", Some(Attribute::Text("x")))]));
    world.reopen(false);
    assert_eq!(found(&world.shards[0], &Filter::Attribute("b".into(), Test::Exists)), ["a"]);
    world.load(run);
    assert_eq!(world.next(run), Some((DeliveryKind::Start, 0)));
    set(&mut world, run, 1, &number("a", 1.0)).unwrap();
    set(&mut world, run, 2, &written(&[("a", None)])).unwrap();
    world.rests(run);
    assert_eq!((kept(&world, run), world.log.len()), before);
}

#[test]
fn a_replay_that_sets_none_or_does_something_else_is_stuck() {
    let mut world = World::new(1);
    let run = world.started("a");
    set(&mut world, run, 1, &number("a", 1.0)).unwrap();
    world.rests(run);
    world.reopen(false);
    world.load(run);
    world.next(run);
    assert_eq!(world.sleep(run, 5), Err(Halt::Mismatch));
    let stuck = world.shards[0].stuck(run.1).unwrap();
    assert_eq!(stuck.message, "operation 1: recorded setAttributes, asked for sleep");
    world.reopen(false);
    world.load(run);
    world.next(run);
    world.rests(run);
    assert!(world.shards[0].stuck(run.1).is_some());
}

#[test]
fn a_run_that_sets_too_many_fails_with_the_numbers_and_a_start_is_refused() {
    let mut world = World::new(1);
    let run = world.started("a");
    let text = "x".repeat(1_024);
    for seq in 1..=7 {
        set(&mut world, run, seq, &written(&[(&format!("n{seq}"), Some(Attribute::Text(&text)))])).unwrap();
    }
    assert_eq!(set(&mut world, run, 8, &written(&[("n8", Some(Attribute::Text(&text)))])), Err(Halt::Dead));
    let (status, payload, _) = world.shards[0].outcome(run.1).unwrap();
    assert_eq!(status, Status::Failed);
    let failure = String::from_utf8_lossy(payload);
    assert!(failure.contains("8 search attributes take") && failure.contains("8192 bytes"), "{failure}");
    let refused = |set: &[u8]| check_attributes_set(set).and_then(|()| check_attributes_kept(&[], set)).unwrap_err();
    let names: Vec<String> = (10..75).map(|n| format!("n{n}")).collect();
    let many: Vec<_> = names.iter().map(|name| (name.as_str(), Some(Attribute::Flag(true)))).collect();
    assert!(refused(&written(&many)).starts_with("65 search attributes"));
    assert!(refused(&written(&[(&"x".repeat(65), None)])).contains("65 bytes"));
    assert!(refused(&written(&[("a", Some(Attribute::Text(&"x".repeat(1_025))))])).contains("1025 bytes"));
    assert!(refused(&written(&[("a", Some(Attribute::Texts(vec!["\u{1}"])))])).contains("control characters"));
}

#[test]
fn the_next_run_of_a_chain_has_what_the_one_before_it_had() {
    let mut world = World::new(1);
    let run = start_with(&mut world, "a", &number("total", 7.0), None);
    world.load(run);
    world.next(run);
    let next = NextRun { version: 1, key_root: [1; 16], timeout_ms: None, input: b"2" };
    world.on(0, |shard, work| shard.continue_as_new(work, run.1, next)).unwrap();
    let next = world.find("a");
    assert_ne!(next, run);
    assert_eq!(kept(&world, next), number("total", 7.0));
    assert_eq!(world.labels(next), ["started", "attributesSet"]);
    let restored = world.restored_from(world.log.len());
    assert_eq!(restored[0].view(next.1).attributes, number("total", 7.0));
    assert_eq!(found(&restored[0], &is_number("total", 7.0)), ["a", "a"]);
}

#[test]
fn a_clock_that_is_set_back_leaves_the_order_of_starts_alone() {
    let mut world = World::new(1);
    for (id, now_ms) in [("a", T0), ("b", T0 + 50), ("c", T0 - 100), ("d", T0 + 50), ("e", T0 + 60)] {
        world.now_ms = now_ms;
        world.started(id);
    }
    let all = Filter::All(Vec::new());
    assert_eq!(found(&world.shards[0], &all), ["e", "d", "c", "b", "a"]);
    let behind = world.shards[0].view(world.find("d").1);
    let place = (behind.order_ms, behind.no.0);
    let ids = |runs: Vec<RunIx>| runs.into_iter().map(|run| world.shards[0].view(run).id).collect::<String>();
    assert_eq!(ids(world.shards[0].search(&all, true, Some(place), 2)), "cb");
    assert_eq!(ids(world.shards[0].search(&all, false, Some(place), 2)), "e");
}

/// What is done to the runs of a shard.
#[derive(Clone, Debug)]
enum Does {
    Start(bool, Option<u8>),
    Set(usize, u8, u8),
    Remove(usize, u8),
    End(usize, bool),
}

const NAMES: [&str; 2] = ["a", "b"];

fn attribute(value: u8) -> Attribute<'static> {
    match value {
        0 => Attribute::Number(1.0),
        1 => Attribute::Number(-2.5),
        2 => Attribute::Whole(1),
        3 => Attribute::Whole(9),
        4 => Attribute::Text("customer-1"),
        5 => Attribute::Text("customer-2"),
        6 => Attribute::Text("cust"),
        7 => Attribute::Time(1),
        8 => Attribute::Flag(true),
        9 => Attribute::Texts(vec!["cust", "zebra"]),
        10 => Attribute::Texts(Vec::new()),
        _ => Attribute::Text(""),
    }
}

fn value(number: u8) -> Value {
    match attribute(number) {
        Attribute::Number(number) => Value::Number(number),
        Attribute::Whole(number) => Value::Whole(number),
        Attribute::Text(text) => Value::Text(text.into()),
        Attribute::Time(time_ms) => Value::Time(time_ms),
        Attribute::Flag(flag) => Value::Flag(flag),
        Attribute::Texts(_) => Value::Text("customer-".into()),
    }
}

fn does() -> impl Strategy<Value = Does> {
    prop_oneof![
        (any::<bool>(), proptest::option::of(0u8..12)).prop_map(|(kind, value)| Does::Start(kind, value)),
        (0usize..20, 0u8..2, 0u8..12).prop_map(|(run, name, value)| Does::Set(run, name, value)),
        (0usize..20, 0u8..2).prop_map(|(run, name)| Does::Remove(run, name)),
        (0usize..20, any::<bool>()).prop_map(|(run, good)| Does::End(run, good)),
    ]
}

fn filter() -> impl Strategy<Value = Filter> {
    let test = (0u8..6, 0u8..12, any::<bool>()).prop_map(|(kind, number, or_equal)| match kind {
        0 | 1 => Test::Is(value(number)),
        2 => Test::Above(value(number), or_equal),
        3 => Test::Below(value(number), or_equal),
        4 => Test::Prefix(["", "c", "customer", "customer-", "customer-2"][usize::from(number) % 5].into()),
        _ => Test::Exists,
    });
    let leaf = prop_oneof![
        (0usize..2, test).prop_map(|(name, test)| Filter::Attribute(NAMES[name].into(), test)),
        any::<bool>().prop_map(|kind| Filter::Kind(if kind { "flow" } else { "other" }.into())),
        (0u32..8).prop_map(Filter::Status),
        any::<bool>().prop_map(Filter::Stuck),
        Just(Filter::Paused(true)),
        Just(Filter::IdPrefix("r1".into())),
        (0i64..9).prop_map(|ms| Filter::StartedFrom(T0 + ms)),
        (0i64..9).prop_map(|ms| Filter::StartedBefore(T0 + ms)),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Filter::All),
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Filter::Any),
            inner.prop_map(|filter| Filter::Not(Box::new(filter))),
        ]
    })
}

fn shard_after(history: &[Does]) -> World {
    let mut world = World::new(1);
    let mut seqs: Vec<u32> = Vec::new();
    for does in history {
        world.now_ms += 1;
        let run = |at: usize| (at < seqs.len()).then_some(R(0, RunIx(at as u32)));
        let mut change = |at: usize, seqs: &mut Vec<u32>, bytes: &[u8]| {
            seqs[at] += 1;
            let _ = set(&mut world, R(0, RunIx(at as u32)), seqs[at], bytes);
        };
        match does {
            Does::Start(kind, attributes) => {
                let id = format!("r{}", seqs.len());
                let new = NewRun { kind: if *kind { "flow" } else { "other" }, ..new_run(&id, "in") };
                let attributes = attributes.map(|value| written(&[("a", Some(attribute(value)))])).unwrap_or_default();
                let (reuse, conflict) = (IdReuse::Allow, IdConflict::Fail);
                let command = StartCommand { new, attributes: &attributes, reuse, conflict };
                let started = world.on(0, |shard, work| shard.start(work, command)).unwrap();
                world.load(R(0, started.run));
                world.next(R(0, started.run));
                seqs.push(0);
            }
            Does::Set(at, name, value) if run(*at).is_some() => {
                let bytes = written(&[(NAMES[usize::from(*name)], Some(attribute(*value)))]);
                change(*at, &mut seqs, &bytes);
            }
            Does::Remove(at, name) if run(*at).is_some() => {
                let bytes = written(&[(NAMES[usize::from(*name)], None)]);
                change(*at, &mut seqs, &bytes);
            }
            Does::End(at, good) => {
                let Some(run) = run(*at) else { continue };
                let status = if *good { Status::Completed } else { Status::Failed };
                let _ = world.finish(run, status, "1");
            }
            Does::Set(..) | Does::Remove(..) => {}
        }
    }
    world
}

proptest! {
    #[test]
    fn a_search_finds_what_a_look_at_every_run_finds_page_by_page_and_after_a_restart(
        history in proptest::collection::vec(does(), 0..40),
        filter in filter(),
        is_newest_first: bool,
        limit in 1usize..5,
    ) {
        let world = shard_after(&history);
        let restored = world.restored_from(world.log.len());
        for shard in [&world.shards[0], &restored[0]] {
            let mut expected: Vec<RunIx> =
                shard.views().filter(|(_, view)| filter.admits(view)).map(|(run, _)| run).collect();
            if is_newest_first {
                expected.reverse();
            }
            let (mut pages, mut after) = (Vec::new(), None);
            loop {
                let page = shard.search(&filter, is_newest_first, after, limit);
                let Some(last) = page.last().map(|run| shard.view(*run)) else { break };
                after = Some((last.order_ms, last.no.0));
                pages.extend(page);
            }
            prop_assert_eq!(pages, expected);
        }
    }
}
