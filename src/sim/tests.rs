//! A sample of seeds, the seeds that once found something, and one seed on request.

use super::*;

/// Seeds that found a bug, and must not find one again.
const FOUND: &[u64] = &[];

#[test]
fn no_seed_breaks_a_law() {
    if let Ok(seed) = std::env::var("FUSEE_SEED") {
        let (result, trace) = trace_seed(seed.parse().unwrap());
        println!("{}", trace.join("\n"));
        panic!("seed {seed}: {result:?}");
    }
    let count = std::env::var("FUSEE_SEEDS").map_or(300, |count| count.parse().unwrap());
    for seed in FOUND.iter().copied().chain(1..=count) {
        if let Err(broken) = run_seed(seed) {
            panic!(
                "seed {seed}: {broken}\nFUSEE_SEED={seed} cargo test sim::tests::no_seed_breaks_a_law -- --nocapture"
            );
        }
    }
}

#[test]
fn a_seed_does_the_same_again() {
    for seed in [3, 50, 77, 141] {
        let (first, second) = (run_seed(seed), run_seed(seed));
        assert_eq!(format!("{first:?}"), format!("{second:?}"), "seed {seed}");
        let ((_, first), (_, second)) = (trace_seed(seed), trace_seed(seed));
        assert_eq!(first.len(), second.len(), "seed {seed}");
    }
}
