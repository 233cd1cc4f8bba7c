//! Limits alone: what they give, to whom, and that nobody waits for ever.

use super::*;
use crate::record::LimitSpec;
use proptest::prelude::*;
use std::collections::BTreeMap;

const QUEUE: Group = Group(0);

fn limits(of: &[(&str, LimitSpec)]) -> Limits {
    let mut limits = Limits::default();
    of.iter().for_each(|(name, spec)| limits.define(name, *spec, 0));
    limits
}

fn want(name: &str, amount: u32) -> Want<'_> {
    Want { name, key: None, amount }
}

fn woken(limits: &mut Limits) -> Vec<u64> {
    std::iter::from_fn(|| limits.poll_woken()).map(|(owner, _)| owner).take(1).collect()
}

#[test]
fn a_claim_is_taken_whole_or_not_at_all() {
    let mut limits = limits(&[("a", LimitSpec::Concurrency(2)), ("b", LimitSpec::Concurrency(1))]);
    let both = limits.claim(1, QUEUE, 0, &[want("a", 1), want("b", 1)], 0);
    let other = limits.claim(2, QUEUE, 1, &[want("a", 1), want("b", 1)], 0);
    assert!(limits.take(both, 0));
    assert!(!limits.take(other, 0));
    assert_eq!(limits.usage("a", None, 0).unwrap().used, 1, "nothing is held by who waits");
    assert_eq!(limits.waits_at(other), Some(("b", None, 1, 0, false)));
    limits.release(both, 5);
    assert_eq!(woken(&mut limits), [2]);
    assert!(limits.take(other, 5));
}

#[test]
fn what_can_never_be_had_is_refused_with_the_numbers() {
    let limits = limits(&[("a", LimitSpec::Concurrency(4))]);
    let refusal = limits.check(&[want("a", 5)]).unwrap_err();
    assert_eq!(refusal.to_string(), "5 units of limit \"a\" can never be had: it gives 4 at most");
    assert_eq!(limits.check(&[want("b", 1)]).unwrap_err(), LimitError::Unknown("b".into()));
    assert_eq!(limits.check(&[want("a", 0)]).unwrap_err(), LimitError::Nothing("a".into()));
}

#[test]
fn keys_count_apart_and_are_forgotten_when_idle() {
    let mut limits = limits(&[("per-user", LimitSpec::Concurrency(1))]);
    let of = |limits: &mut Limits, owner, key| {
        limits.claim(owner, QUEUE, 0, &[Want { name: "per-user", key: Some(key), amount: 1 }], 0)
    };
    let ann = of(&mut limits, 1, "ann");
    let again = of(&mut limits, 2, "ann");
    let bob = of(&mut limits, 3, "bob");
    assert!(limits.take(ann, 0) && !limits.take(again, 0) && limits.take(bob, 0));
    assert_eq!(limits.usage("per-user", Some("ann"), 0).unwrap().keys, 2);
    limits.release(bob, 0);
    limits.drop_claim(bob, 0);
    assert_eq!(limits.usage("per-user", Some("bob"), 0).unwrap().keys, 1);
}

#[test]
fn a_rate_gives_its_burst_and_then_one_a_period() {
    let mut limits = limits(&[("r", LimitSpec::Rate { limit: 10, period_ms: 1_000, burst: 1 })]);
    let mut starts = Vec::new();
    let mut now_ms = 0;
    for owner in 0..20 {
        let claim = limits.claim(owner, QUEUE, 0, &[want("r", 1)], now_ms);
        if !limits.take(claim, now_ms) {
            now_ms = limits.next_refill_ms().unwrap();
            limits.handle_time(now_ms);
            assert_eq!(woken(&mut limits), [owner]);
            assert!(limits.take(claim, now_ms));
        }
        starts.push(now_ms);
        limits.release(claim, now_ms);
        limits.drop_claim(claim, now_ms);
    }
    assert_eq!(starts.last(), Some(&1_900));
}

#[test]
fn a_large_request_is_passed_by_a_bounded_number_of_others() {
    let mut limits = limits(&[("a", LimitSpec::Concurrency(4))]);
    let mut running: Vec<ClaimIx> = (0..4).map(|owner| limits.claim(owner, QUEUE, 0, &[want("a", 1)], 0)).collect();
    assert!(running.iter().all(|claim| limits.take(*claim, 0)));
    let large = limits.claim(99, QUEUE, 1_000, &[want("a", 4)], 0);
    assert!(!limits.take(large, 0));
    let mut others = 0;
    for owner in 100..1_000 {
        let small = limits.claim(owner, QUEUE, 0, &[want("a", 1)], 0);
        let done = running.remove(0);
        limits.release(done, 0);
        limits.drop_claim(done, 0);
        if limits.take(small, 0) {
            others += 1;
            running.push(small);
        }
        if running.is_empty() {
            break;
        }
    }
    assert!(others <= BYPASSES_MAX, "{others} passed");
    assert_eq!(limits.poll_woken().map(|(owner, _)| owner), Some(99));
    assert!(limits.take(large, 0));
}

#[test]
fn two_protected_claims_do_not_wait_for_each_other() {
    let mut limits = limits(&[("a", LimitSpec::Concurrency(2)), ("b", LimitSpec::Concurrency(2))]);
    let small_a = limits.claim(1, QUEUE, 0, &[want("a", 1)], 0);
    let small_b = limits.claim(2, QUEUE, 0, &[want("b", 1)], 0);
    assert!(limits.take(small_a, 0) && limits.take(small_b, 0));
    let first = limits.claim(3, QUEUE, 5, &[want("a", 2), want("b", 1)], 0);
    let second = limits.claim(4, QUEUE, 5, &[want("b", 2), want("a", 1)], 0);
    assert!(!limits.take(first, 0) && !limits.take(second, 0));
    // Both see others take until they are protected.
    for owner in 10..60 {
        for name in ["a", "b"] {
            let small = limits.claim(owner, QUEUE, 0, &[want(name, 1)], 0);
            if limits.take(small, 0) {
                limits.release(small, 0);
            }
            limits.drop_claim(small, 0);
        }
    }
    limits.release(small_a, 0);
    limits.release(small_b, 0);
    let (owner, claim) = limits.poll_woken().unwrap();
    assert_eq!(owner, 3);
    assert!(limits.take(claim, 0));
    limits.release(claim, 0);
    let (owner, claim) = limits.poll_woken().unwrap();
    assert_eq!(owner, 4);
    assert!(limits.take(claim, 0));
}

#[test]
fn cancelling_the_waiter_that_blocks_wakes_the_next() {
    let mut limits = limits(&[("a", LimitSpec::Concurrency(1))]);
    let claims: Vec<ClaimIx> = (0..3).map(|owner| limits.claim(owner, QUEUE, 0, &[want("a", 1)], 0)).collect();
    assert!(limits.take(claims[0], 0) && !limits.take(claims[1], 0) && !limits.take(claims[2], 0));
    limits.release(claims[0], 0);
    assert_eq!(woken(&mut limits), [1]);
    limits.drop_claim(claims[1], 0);
    assert_eq!(woken(&mut limits), [2]);
}

#[test]
fn a_queue_that_cannot_run_keeps_no_other_waiting() {
    let mut limits = limits(&[("a", LimitSpec::Concurrency(1))]);
    let stuck = limits.claim(1, Group(1), 0, &[want("a", 1)], 0);
    let other = limits.claim(2, Group(2), 0, &[want("a", 1)], 0);
    let holder = limits.claim(3, Group(2), 0, &[want("a", 1)], 0);
    assert!(limits.take(holder, 0) && !limits.take(stuck, 0) && !limits.take(other, 0));
    limits.release(holder, 0);
    let both: Vec<u64> = std::iter::from_fn(|| limits.poll_woken()).map(|(owner, _)| owner).collect();
    assert_eq!(both, [1, 2], "one of each queue competes");
    assert!(limits.take(other, 0));
}

#[test]
fn resizing_live_wakes_who_fits_and_never_takes_back() {
    let mut limits = limits(&[("a", LimitSpec::Concurrency(1))]);
    let claims: Vec<ClaimIx> = (0..3).map(|owner| limits.claim(owner, QUEUE, 0, &[want("a", 1)], 0)).collect();
    assert!(limits.take(claims[0], 0) && !limits.take(claims[1], 0));
    limits.define("a", LimitSpec::Concurrency(2), 0);
    assert_eq!(woken(&mut limits), [1]);
    assert!(limits.take(claims[1], 0));
    limits.define("a", LimitSpec::Concurrency(1), 0);
    assert_eq!(limits.usage("a", None, 0).unwrap().used, 2);
    limits.release(claims[0], 0);
    assert!(!limits.take(claims[2], 0), "one is still out");
}

#[test]
fn after_an_unclean_end_rates_begin_empty() {
    let mut limits = limits(&[("r", LimitSpec::Rate { limit: 1, period_ms: 100, burst: 5 })]);
    limits.empty_rates(1_000);
    let claim = limits.claim(1, QUEUE, 0, &[want("r", 1)], 1_000);
    assert!(!limits.take(claim, 1_000));
    assert_eq!(limits.next_refill_ms(), Some(1_100));
}

/// A holder or a waiter of the random history below.
struct Actor {
    claim: ClaimIx,
    wants: Vec<(usize, u32)>,
    is_held: bool,
}

proptest! {
    #[test]
    fn no_limit_is_exceeded_and_all_who_wait_are_served(
        steps in proptest::collection::vec((0u8..6, 0u32..3, 1u32..4, 0u32..3, 1u32..3), 1..200),
    ) {
        let specs = [LimitSpec::Concurrency(3), LimitSpec::Concurrency(4),
            LimitSpec::Rate { limit: 2, period_ms: 10, burst: 3 }];
        let names = ["a", "b", "r"];
        let mut limits = limits(&[("a", specs[0]), ("b", specs[1]), ("r", specs[2])]);
        let mut actors: BTreeMap<u64, Actor> = BTreeMap::new();
        let mut taken: Vec<(i64, u32)> = Vec::new();
        let mut now_ms = 0;
        let mut owner = 0;
        let settle = |limits: &mut Limits, actors: &mut BTreeMap<u64, Actor>, taken: &mut Vec<(i64, u32)>, now_ms| {
            while let Some((owner, claim)) = limits.poll_woken() {
                if limits.take(claim, now_ms) {
                    let actor = actors.get_mut(&owner).unwrap();
                    actor.is_held = true;
                    taken.extend(actor.wants.iter().filter(|part| part.0 == 2).map(|part| (now_ms, part.1)));
                }
            }
        };
        for (what, first, amount, second, other) in steps {
            match what {
                0..=2 => {
                    owner += 1;
                    let mut wants = vec![(first as usize, amount)];
                    if second != first {
                        wants.push((second as usize, other));
                    }
                    let parts: Vec<Want<'_>> = wants.iter().map(|part| want(names[part.0], part.1)).collect();
                    let claim = limits.claim(owner, Group(first), i64::from(amount), &parts, now_ms);
                    let is_held = limits.take(claim, now_ms);
                    if is_held {
                        taken.extend(wants.iter().filter(|part| part.0 == 2).map(|part| (now_ms, part.1)));
                    }
                    actors.insert(owner, Actor { claim, wants, is_held });
                }
                3 => {
                    let held = actors.iter().find(|(_, actor)| actor.is_held).map(|(owner, _)| *owner);
                    if let Some(actor) = held.and_then(|owner| actors.remove(&owner)) {
                        limits.release(actor.claim, now_ms);
                        limits.drop_claim(actor.claim, now_ms);
                    }
                }
                4 => {
                    let waiting = actors.iter().find(|(_, actor)| !actor.is_held).map(|(owner, _)| *owner);
                    if let Some(actor) = waiting.and_then(|owner| actors.remove(&owner)) {
                        limits.drop_claim(actor.claim, now_ms);
                    }
                }
                _ => {
                    now_ms += i64::from(amount);
                    limits.handle_time(now_ms);
                }
            }
            settle(&mut limits, &mut actors, &mut taken, now_ms);
            for at in 0..2 {
                let used: u32 = actors.values().filter(|actor| actor.is_held)
                    .flat_map(|actor| &actor.wants).filter(|part| part.0 == at).map(|part| part.1).sum();
                let usage = limits.usage(names[at], None, now_ms).unwrap();
                prop_assert_eq!(usage.used, u64::from(used));
                prop_assert!(used <= [3, 4][at]);
            }
        }
        for (at, (from_ms, _)) in taken.iter().enumerate() {
            let mut sum = 0;
            for (to_ms, amount) in &taken[at..] {
                sum += i64::from(*amount);
                prop_assert!(sum * 10 <= 3 * 10 + (to_ms - from_ms) * 2, "{sum} in {} ms", to_ms - from_ms);
            }
        }
        // Let everything end: all are served.
        for _ in 0..2_000 {
            if actors.is_empty() {
                break;
            }
            let held: Vec<u64> = actors.iter().filter(|(_, actor)| actor.is_held).map(|(owner, _)| *owner).collect();
            for owner in held {
                let actor = actors.remove(&owner).unwrap();
                limits.release(actor.claim, now_ms);
                limits.drop_claim(actor.claim, now_ms);
            }
            settle(&mut limits, &mut actors, &mut taken, now_ms);
            if let Some(due_ms) = limits.next_refill_ms() {
                now_ms = now_ms.max(due_ms);
                limits.handle_time(now_ms);
                settle(&mut limits, &mut actors, &mut taken, now_ms);
            }
        }
        prop_assert!(actors.is_empty(), "{} wait for ever", actors.len());
    }
}
